"""Render the traces of an evaluation, question by question, as one self-contained HTML page.

`read_traces` collects the page's data from an evaluation's folder: its questions, its systems (methods with players
and options), and one *run* for each trajectory with its attempts. ``templates/*.js`` show them; text that a model or a
benchmark wrote is data, never HTML (`store.page`). If chains were judged (``measure_faithfulness``), a run also has
the verdicts on its steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Literal

import safe_stepwise
from evaluators import outcomes
from evaluators.comparison.systems import System, condition_text, edge_text, list_notable, name_systems, sort_by
from evaluators.uptake import MENDED, describe_retries
from safe_stepwise.engines.base import NO_USAGE
from safe_stepwise.errors import UserError
from safe_stepwise.methods import loop
from safe_stepwise.records import FAILED, Attempt, Passage, canonical_json
from safe_stepwise.store import boundary, files, page
from safe_stepwise.store.names import CHAINS, FAITHFULNESS, QUESTIONS, RESULTS, TRAJECTORIES
from safe_stepwise.taxonomy import CORRECT, TAXONOMY

_MEASURE_ADVICE = "measure it anew with safe-stepwise measure_faithfulness"
Paths = list[dict[str, Any]]
"""The verdicts on one run's chain, one for each rule of faithfulness."""
Fact = tuple[str, str, str]
"""Head, relation and tail of a triple."""
PAGE = "traces.html"
MAX_BYTES = 25_000_000
"""The largest size of an evaluation's traces for which a release gets a page; ``view_traces`` makes larger pages."""
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("list", "elements", "paths", "filters", "questions", "totals", "details", "page")
_Key = tuple[str, str, str]
"""A question: benchmark, id, and in words the conditions that change it."""
_FORMS = {"strict": "read", "salvaged": "not in the form asked for", "unreadable": "unreadable"}


def read_paths(folder: Path) -> dict[tuple[str, str, System], Paths]:
    """Read the verdicts on chains in a folder, by benchmark, question and system; empty if chains were not judged.

    For a vote it is the majority's chain. A question with two chains under one key is left out.
    """
    if not (folder / FAITHFULNESS).exists():  # it is written last
        return {}
    systems, chains = dict(_measured_systems(folder / FAITHFULNESS)), dict[tuple[str, str, System], list[Paths]]()
    for place, line in files.read_lines(folder / CHAINS, bytes, "verdict", _MEASURE_ADVICE):
        with files.explain_line(f"{place}: cannot be read", outcomes.ANEW):
            row = boundary.parse_json(line)
            if (system := systems.get(row["system"])) is not None:
                key = str(row["benchmark"]), str(row["question_id"]), system
                chains.setdefault(key, []).append(_paths(row))
    return {key: paths[0] for key, paths in chains.items() if len(paths) == 1}


def _measured_systems(file: Path) -> Iterator[tuple[int, System]]:
    """Yield index and system of each measured system, without those that count as the best of n samples."""
    try:
        for place, system in enumerate(boundary.read_json(file)["systems"]):
            if system["taken"] != "best_of_n":
                yield (place, System.make(*(system[name] for name in ("method", "players", "options", "conditions"))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or "not a record of measured faithfulness"
        raise UserError(f"{file}: cannot be read ({reason}); {_MEASURE_ADVICE}") from None


def _paths(row: Mapping[str, Any]) -> Paths:
    if row["response"] != "chain" or not row["rules"]:
        reason = str(row["response"]) if row["response"] != "chain" else "no evidence to judge it by"
        return [{"rule": "", "path": "no chain", "fault": reason, "first": 0, "missing": [], "steps": []}]
    return [
        {
            "rule": str(rule),
            "path": str(verdicts["path"]),
            "fault": str(verdicts["fault"]),
            "first": int(verdicts["first"] or 0),
            "missing": boundary.read(list[Fact], verdicts["missing"], "missing"),
            "steps": [
                {
                    "number": int(step["number"]),
                    "text": str(step["text"]),
                    "triples": boundary.read(list[Fact], verdict["triples"], "triples"),
                    "fault": str(verdict["fault"]),
                    "score": boundary.read(float | None, verdict["score"], "score"),
                }
                for step, verdict in zip(row["steps"], verdicts["steps"], strict=True)
            ],
        }
        for rule, verdicts in sorted(row["rules"].items())
    ]


def write(folder: Path, output: Path) -> int:
    """Write the page of an evaluation's folder to ``output``; return its number of trajectories.

    The same folder gives the same bytes. Raises ``UserError`` for a folder without an evaluation, a line that can't be
    read, and an ``output`` that can't be written or is a file of the evaluation.
    """
    page.check_output(output, *(folder / name for name in (TRAJECTORIES, QUESTIONS, RESULTS)))
    data = read_traces(folder)
    page.write_page(output, render_traces(data))
    return len(data["runs"])


def show(folder: Path) -> None:
    """Write the page of an evaluation into its folder, or remove it if the traces exceed `MAX_BYTES`."""
    if sum((folder / name).stat().st_size for name in (TRAJECTORIES, QUESTIONS)) <= MAX_BYTES:
        write(folder, folder / PAGE)
    else:
        (folder / PAGE).unlink(missing_ok=True)


def render_traces(data: Mapping[str, Any]) -> str:
    return page.render_page(_TEMPLATES, data["name"], _SCRIPTS, data, ("list", "style"))


def worth(outcome: outcomes.Outcome) -> Literal["right", "wrong", "unscored", "failed"]:
    """Rate an answer by the judge's verdict, or by exact match if nobody judged it."""
    if outcome.trajectory.stop_reason == FAILED:
        return "failed"
    if outcome.verdict == "unscored":
        return "unscored"
    is_right = outcome.exact_match == 1 if outcome.verdict is None else outcome.verdict == "correct"
    return "right" if is_right else "wrong"


def read_traces(folder: Path) -> dict[str, Any]:
    """Return the page's data; without ``questions.jsonl`` it lacks texts, without ``results.json`` settings."""
    _check(folder)
    records, measured, settings = _questions(folder), read_paths(folder), None
    if (folder / RESULTS).exists():
        settings = [[name, _plain(value)] for name, value in outcomes.read_results(folder)["settings"].items()]
    questions: dict[_Key, int] = {}
    systems: dict[System, int] = {}
    roles: dict[System, set[str]] = {}
    simulated: set[System] = set()
    labels: set[str] = set()
    states: dict[str, str] = {}
    runs = []
    for number, outcome in enumerate(outcomes.read_outcomes(folder), 1):
        with files.explain_line(f"{folder / TRAJECTORIES}, line {number}: cannot be read", outcomes.ANEW):
            run = _run(outcome)
            key = outcome.benchmark, outcome.question_id, _conditions_text(outcome.conditions)
            system = System.make(**outcome.system)
        if outcome.simulated:
            simulated.add(system)
        roles.setdefault(system, set()).update(role for role, _ in run["cost"])
        labels.update(attempt["label"] for attempt in run["attempts"])
        for state in (attempt["state"] for attempt in run["attempts"]):
            states[state] = max(states.get(state, ""), edge_text(system.method, state, ""))
        question = questions.setdefault(key, len(questions))
        place = systems.setdefault(system, len(systems))
        paths = measured.get((outcome.benchmark, outcome.question_id, system), [])
        runs.append({**run, "question": question, "system": place, "paths": paths})
    answering = dict.fromkeys(role for system in systems for role, _ in system.players[:1])
    if not runs:
        raise UserError(f"{folder / TRAJECTORIES}: holds no trajectory; run the evaluation again")
    return {
        "name": folder.resolve().name,
        "version": safe_stepwise.__version__,
        "settings": settings,
        "has_questions": files.locate_lines(folder, QUESTIONS).exists(),
        "roles": sort_by(set().union(*roles.values()), answering),
        "labels": sort_by(labels - {"", CORRECT}, (entry.name for entry in TAXONOMY)),
        "states": [[state, states[state]] for state in sorted(states) if state],
        "systems": _systems([*systems], roles, simulated),
        "questions": [
            records.get(key) or _question(outcomes.QuestionRecord(*key[:2], "", (), ()), key[2]) for key in questions
        ],
        "runs": runs,
    }


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; {outcomes.GIVE}")
    if not files.locate_lines(folder, TRAJECTORIES).exists():
        begun = (folder / f".{TRAJECTORIES}").exists()
        mend = "the evaluation has not ended; run the same command again" if begun else outcomes.GIVE
        raise UserError(f"{folder}: no {TRAJECTORIES} in it; {mend}")


def _questions(folder: Path) -> dict[_Key, dict[str, Any]]:
    if not files.locate_lines(folder, QUESTIONS).exists():
        return {}
    questions = ((record, _conditions_text(record.conditions)) for record in outcomes.read_questions(folder))
    return {(record.benchmark, record.id, words): _question(record, words) for record, words in questions}


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ("; " if any(isinstance(v, dict) for v in value) else ", ").join(map(_plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(item)}" for name, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _systems(
    systems: Sequence[System], roles: Mapping[System, set[str]], simulated: set[System]
) -> list[dict[str, Any]]:
    labels = name_systems(systems)
    shown_names = list_notable(systems)
    return [
        {
            "method": system.method,
            "title": system.title,
            "label": labels[system],
            "answering": system.answering,
            "players": [*system.players_in(roles[system]).items()],
            "options": system.describe(shown_names),
            "address": [system.method, *(f"{k}={v}" for k, v in system.players + system.options + system.conditions)],
            "simulated": system in simulated,
        }
        for system in systems
    ]


def _conditions_text(conditions: Mapping[str, Any]) -> str:
    return ", ".join(condition_text(name, value) for name, value in outcomes.asking_conditions(conditions).items())


def _question(record: outcomes.QuestionRecord, conditions: str) -> dict[str, Any]:
    return {
        "benchmark": record.benchmark,
        "id": record.id,
        "under": conditions,
        "text": record.question,
        "references": record.references,
        "passages": [{**_passage(passage), "gold": passage.is_gold} for passage in record.passages],
    }


def _passage(passage: Passage) -> dict[str, str]:
    return {"title": passage.title, "text": passage.text}


def _run(outcome: outcomes.Outcome) -> dict[str, Any]:
    trajectory = outcome.trajectory
    spent = outcomes.statistics_of([outcome])
    counts = (spent.calls, spent.prompt_tokens, spent.cached_tokens, spent.completion_tokens)
    by_role = " · ".join(f"{role} {tokens:,}" for role, tokens in spent.thought_tokens.items())
    thought = [("Tokens of thoughts", by_role)] if by_role else []
    uptakes = describe_retries(trajectory, outcome.measures)
    measures = {name: values for name, values in outcome.measures.items() if name != MENDED}
    return {
        "worth": worth(outcome),
        "em": round(float(outcome.exact_match), 6),
        "f1": round(float(outcome.f1), 6),
        "verdict": outcome.verdict,
        "judge": outcome.judge,
        "answer": trajectory.answer,
        "stop": trajectory.stop_reason,
        "failure": trajectory.failure,
        "steps": len(trajectory.steps),
        "measures": [*thought, *_measures(measures)],
        # Calls, prompt, cached and completion tokens by role.
        "cost": [(role, [count[role] for count in counts]) for role in spent.calls],
        "attempts": [
            {**_attempt(attempt, outcome), "uptake": uptakes.get(place, "")}
            for place, attempt in enumerate(trajectory.attempts)
        ],
        "samples": [*_samples(outcome)],
    }


def _attempt(attempt: Attempt, outcome: outcomes.Outcome) -> dict[str, Any]:
    feedback, thoughts = attempt.feedback, []
    for role, thought in attempt.thoughts.items():
        tokens = attempt.usage.get(role, NO_USAGE).thought
        thoughts.append((f"{role} ({tokens:,} tokens)" if tokens else role, thought))
    return {
        "step": attempt.number,
        "text": attempt.text,
        "accepted": attempt.accepted,
        "fate": _fate(attempt, outcome),
        "label": feedback.error_type if feedback else "",
        "diagnosis": feedback.diagnosis if feedback else "",
        "score": f"{feedback.score:.3f}" if feedback and feedback.score is not None else "",
        "guidance": feedback.guidance if feedback else "",
        "query": (feedback.query or "") if feedback else "",
        "retrieved": [_passage(passage) for passage in attempt.retrieved],
        "verdict": attempt.verdict,
        "thoughts": thoughts,
        "state": attempt.state if attempt.state != loop.SCORED else "",
        "edge": edge_text(outcome.method, attempt.state, attempt.next_state),
        "read": "" if attempt.read is None else _field(attempt.read),
        "reading": _reading(attempt),
        "tokens": [(role, astuple(usage)[:3]) for role, usage in attempt.usage.items()],
    }


def _reading(attempt: Attempt) -> dict[str, Any] | None:
    """Return how a reply was read, and its fields, or what a graph decided; None for anything but an object."""
    if not isinstance(attempt.read, dict):
        return None
    record = {**attempt.read}
    reading = {name: str(record.pop(name, None) or "") for name in ("form", "why", "revises")}
    value = record.pop("value", None)
    record |= value if isinstance(value, dict) else {} if value is None else {"value": value}
    return {**reading, "fields": [(f"Read: {name}", _field(item)) for name, item in record.items()]}


def _field(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _samples(outcome: outcomes.Outcome) -> Iterator[dict[str, Any]]:
    """Yield the sampled trajectories, the chosen one marked; verdicts on their chains stand for equal steps."""
    trajectory, is_open = outcome.trajectory, True
    for sample in trajectory.sampled:
        is_chosen = is_open and sample.attempts[: len(trajectory.attempts)] == trajectory.attempts
        is_open &= not is_chosen
        judged = {attempt.text for attempt in sample.attempts if attempt.state == loop.SCORED}
        listed = (a for a in sample.attempts if a.state == loop.SCORED or a.text not in judged)
        yield {
            "answer": sample.answer,
            "score": sample.score,
            "chosen": is_chosen,
            "stop": sample.stop_reason,
            "failure": sample.failure,
            "attempts": [_attempt(attempt, outcome) for attempt in listed],
        }


def _measures(measures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, values in measures.items():
        values_by_name = values if isinstance(values, Mapping) else {}
        texts = {key: f"{n:.3g}" if isinstance(n, float) else str(n) for key, n in values_by_name.items() if n}
        numbers = [f"{_words(key)} {number}" for key, number in texts.items()]
        text = " · ".join(numbers) if values_by_name else _words(values)
        yield _words(name).capitalize(), text or "nothing"


def _words(name: Any) -> str:
    return str(name).replace("_", " ")


def _fate(attempt: Attempt, outcome: outcomes.Outcome) -> str:
    feedback, run = attempt.feedback, outcome.trajectory
    reading = _reading(attempt)
    if reading and reading["form"] and not feedback:
        form = _FORMS.get(reading["form"], reading["form"])
        return f"revised: {form}" if reading["revises"] else form
    if attempt.state == loop.SCORED:
        return "judged"
    if attempt.state == loop.FINAL_ANSWER:
        return "accepted: asked for as the answer" if attempt.accepted else "holds no answer"
    if attempt.accepted:
        if attempt.state and not attempt.usage and not attempt.text:
            return "nobody was asked"
        if feedback is None:
            return "accepted, not verified"
        forced = "accepted: retries used up" if "max_retries" in outcome.options else "accepted"
        return "accepted" if feedback.error_type == CORRECT else forced
    if feedback:
        return "rejected"
    broke_off = run.stop_reason == FAILED and attempt is run.attempts[-1]
    return "not verified: the request failed" if broke_off else "not accepted"
