"""What an evaluation's loop did, question by question, as one HTML page that needs nothing else.

Everything a run wrote down is data to the page: it is carried as JSON that cannot end its element,
shown as text alone, and a content security policy lets nothing run but the page's own script and
nothing be fetched at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import safe_stepwise
from evaluators.comparison.tables import METHOD_NAMES
from evaluators.run.outcomes import Asked, Outcome, read_outcomes, read_questions
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import tries_at_steps
from safe_stepwise.methods.running import GENERATOR, VERIFIER, statistics
from safe_stepwise.records import Attempt, Passage, Trajectory
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES
from safe_stepwise.taxonomy import CORRECT, TAXONOMY

PAGE = "traces.html"
Worth = Literal["right", "wrong", "unscored", "failed"]

_System = tuple[str, str, str, int, int]
"""Generator, verifier, method, K, N."""
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("elements", "filters", "questions", "totals", "details", "page")
# All of these are mere spelling in JSON; raw, the first three can end or change a script element.
_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
_ROLES = (GENERATOR, VERIFIER)


def write(folder: Path, output: Path) -> int:
    """Write the page on an evaluation's folder to ``output``; returns the trajectories in it.

    Same folder, same bytes. Raises ``UserError`` for a folder without an evaluation, for a line
    that can't be read, and for a file that can't be written or holds the evaluation itself.
    """
    if output.resolve() in {(folder / f).resolve() for f in (TRAJECTORIES, QUESTIONS, RESULTS)}:
        raise UserError(f"{output}: is a file of the evaluation itself; choose another --output")
    found = traces(folder)
    # What a model said may hold half of a surrogate pair, for which this writes JSON's own escape.
    page = html(found).encode("utf-8", "backslashreplace")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(output, page)
    except OSError as error:
        raise UserError(
            f"{output}: cannot be written ({error.strerror}); choose another --output"
        ) from None
    return len(found["runs"])


def html(found: Mapping[str, Any]) -> str:
    """The page on what `traces` found."""
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    script = "\n".join((_TEMPLATES / f"{n}.js").read_text(encoding="utf-8") for n in _SCRIPTS)
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, autoescape=True
    )
    return environment.get_template("page.html.jinja").render(
        name=found["name"],
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
        data=Markup(embedded(found)),
    )


def embedded(data: object) -> str:
    r"""JSON that can stand in an HTML script element, whatever it holds.

    >>> print(embedded(["</script><!--"]))
    ["\u003c/script\u003e\u003c!--"]
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def worth(outcome: Outcome) -> Worth:
    """What an answer is worth: by the judge's verdict, without one by exact match."""
    if outcome.trajectory.stop_reason == "failed":
        return "failed"
    if outcome.verdict == "unscored":
        return "unscored"
    is_right = outcome.exact_match == 1 if outcome.verdict is None else outcome.verdict == "correct"
    return "right" if is_right else "wrong"


def traces(folder: Path) -> dict[str, Any]:
    """All that the page shows, for JSON; texts are texts and numbers numbers, whatever the files.

    Without ``questions.jsonl`` there are no texts of questions and no passages, without
    ``results.json`` no settings.
    """
    _check(folder)
    asked = _questions(folder)
    questions: dict[tuple[str, str], int] = {}
    systems: dict[_System, int] = {}
    simulated: set[int] = set()
    labels: set[str] = set()
    runs = []
    for number, outcome in enumerate(read_outcomes(folder), 1):
        try:
            run = _run(outcome)
            question = questions.setdefault(_question_key(outcome), len(questions))
            system = systems.setdefault(_system_key(outcome), len(systems))
        except (TypeError, ValueError, AttributeError) as error:
            raise _unread(folder / TRAJECTORIES, number, error) from None
        if outcome.simulated:
            simulated.add(system)
        labels.update(attempt["label"] for attempt in run["attempts"])
        runs.append({**run, "question": question, "system": system})
    if not runs:
        raise UserError(f"{folder / TRAJECTORIES}: holds no trajectory; run the evaluation again")
    return {
        "name": folder.resolve().name,
        "version": safe_stepwise.__version__,
        "settings": _settings(folder),
        "has_questions": (folder / QUESTIONS).exists(),
        "labels": _ordered(labels - {"", CORRECT}),
        "systems": [_system(s, n in simulated) for s, n in systems.items()],
        "questions": [asked.get(key) or _unknown(*key) for key in questions],
        "runs": runs,
    }


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(
            f"{folder}: no such folder; give the --output of python -m scripts.evaluate_stepwise"
        )
    if not (folder / TRAJECTORIES).exists():
        begun = (folder / f".{TRAJECTORIES}").exists()
        mend = (
            "the evaluation has not ended; run the same command again"
            if begun
            else "give the --output of python -m scripts.evaluate_stepwise"
        )
        raise UserError(f"{folder}: no {TRAJECTORIES} in it; {mend}")


def _questions(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What was asked, by benchmark and id; empty where that was not written down."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    if not (folder / QUESTIONS).exists():
        return found
    for number, asked in enumerate(read_questions(folder), 1):
        try:
            found[str(asked.benchmark), str(asked.id)] = _question(asked)
        except (TypeError, ValueError, AttributeError) as error:
            raise _unread(folder / QUESTIONS, number, error) from None
    return found


def _unread(file: Path, line: int, error: Exception) -> UserError:
    return UserError(
        f"{file}, line {line}: cannot be read ({error}); "
        "make it anew with python -m scripts.evaluate_stepwise"
    )


def _settings(folder: Path) -> list[list[str]] | None:
    """Names and values of ``results.json``; None where it is missing."""
    file = folder / RESULTS
    if not file.exists():
        return None
    try:
        settings = json.loads(file.read_bytes())["settings"]
        return [[name, _plain(value)] for name, value in settings.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or "not the record of an evaluation"
        raise UserError(f"{file}: cannot be read ({reason}); run the evaluation again") from None


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(part)}" for name, part in value.items())
    return {None: "none", True: "yes", False: "no"}.get(value, str(value))


def _question_key(outcome: Outcome) -> tuple[str, str]:
    return str(outcome.benchmark), str(outcome.question_id)


def _system_key(outcome: Outcome) -> _System:
    names = (outcome.generator, outcome.verifier, outcome.method)
    generator, verifier, method = map(str, names)
    return generator, verifier, method, int(outcome.max_steps), int(outcome.max_retries)


def _system(system: _System, simulated: bool) -> dict[str, Any]:
    generator, verifier, method, steps, retries = system
    return {
        "generator": generator,
        "verifier": verifier,
        "method": method,
        "name": METHOD_NAMES.get(method, method),
        "limits": f"K={steps}, N={retries}",
        "max_steps": steps,
        "max_retries": retries,
        "simulated": simulated,
    }


def _question(asked: Asked) -> dict[str, Any]:
    return {
        "benchmark": str(asked.benchmark),
        "id": str(asked.id),
        "text": str(asked.question),
        "references": [str(reference) for reference in asked.references],
        "passages": [{**_passage(p), "gold": bool(p.is_gold)} for p in asked.passages],
    }


def _unknown(benchmark: str, id: str) -> dict[str, Any]:
    return {"benchmark": benchmark, "id": id, "text": "", "references": [], "passages": []}


def _passage(passage: Passage) -> dict[str, str]:
    return {"title": str(passage.title), "text": passage.text}


def _run(outcome: Outcome) -> dict[str, Any]:
    trajectory = outcome.trajectory
    counted = statistics([trajectory])
    counts = (
        counted.calls,
        counted.prompt_tokens,
        counted.cached_tokens,
        counted.completion_tokens,
    )
    return {
        "worth": worth(outcome),
        "em": _score(outcome.exact_match),
        "f1": _score(outcome.f1),
        "verdict": outcome.verdict,
        "judge": str(outcome.judge),
        "answer": str(trajectory.answer),
        "stop": str(trajectory.stop_reason),
        "steps": len(trajectory.steps),
        # Calls, prompt, cached and completion tokens of the generator, then of the verifier.
        "cost": [[int(count[role]) for count in counts] for role in _ROLES],
        "attempts": list(_attempts(trajectory)),
    }


def _score(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no score")
    return round(float(value), 6)


def _attempts(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    tries = len(tries_at_steps(trajectory))
    for place, attempt in enumerate(trajectory.attempts):
        said = attempt.feedback
        yield {
            "step": int(attempt.number),
            "text": str(attempt.text),
            "accepted": bool(attempt.accepted),
            "fate": _fate(attempt, is_try=place < tries),
            "label": str(said.error_type) if said else "",
            "diagnosis": str(said.diagnosis) if said else "",
            "guidance": str(said.guidance) if said else "",
            "query": str(said.query or "") if said else "",
            "retrieved": [_passage(passage) for passage in attempt.retrieved],
            "verdict": str(attempt.verdict),
            "tokens": [
                [int(number) for number in astuple(usage)]
                for usage in (attempt.generator_usage, attempt.verifier_usage)
            ],
        }


def _fate(attempt: Attempt, is_try: bool) -> str:
    """What became of an attempt, in words."""
    if not is_try:
        return "accepted: asked for as the answer" if attempt.accepted else "holds no answer"
    said = attempt.feedback
    if attempt.accepted:
        if said is None:
            return "accepted, not verified"
        return "accepted" if said.error_type == CORRECT else "accepted: retries used up"
    return "rejected" if said else "not verified: the request failed"


def _ordered(labels: Iterable[str]) -> list[str]:
    """Labels in the taxonomy's order, then those that are none of it."""
    known = [entry.name for entry in TAXONOMY]
    return sorted(labels, key=lambda label: (known.index(label) if label in known else 99, label))


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
