"""The judged outcome (a line): its rows in files, the accepted unfaithful steps that verifiers can learn from, and the
numbers of each system and of pairs of systems, which README.md defines.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from typing import Any, Literal, get_args

from evaluators.comparison.significance import holm, mcnemar, round_p, wilson
from evaluators.comparison.systems import System, in_order, names, pairs
from evaluators.faithfulness.responses import Kind
from evaluators.outcomes import Outcome, grouped, numbered
from safe_stepwise.checking.faithfulness.grounds import ChainVerdict, Rule, Verdict, verdict_row
from safe_stepwise.methods.loop import read_reply, tries_at_steps
from safe_stepwise.records import Question, Step, Trajectory, as_object
from safe_stepwise.steps import StepError
from safe_stepwise.store.codec import passages_digest
from safe_stepwise.store.names import marked
from safe_stepwise.taxonomy import CORRECT

RULES: tuple[Rule, ...] = ("house", "paper")
Verdicts = Mapping[Rule, ChainVerdict]
Pair = tuple[Outcome, Question]
"""An outcome with its question, annotations included."""
AnswerBy = Literal["exact_match", "judge", "rule"]
ANSWERS: tuple[AnswerBy, ...] = get_args(AnswerBy)
COLUMNS = (*get_args(Verdict), *(kind for kind in get_args(Kind) if kind != "chain"))
"""Results of a question under a rule: a verdict on its chain, or why there is none."""


@dataclass(frozen=True, slots=True)
class Line:
    """One judged outcome; README.md describes its row.

    ``vote``: how a vote counts (majority, best of n); ``steps``: numbers and texts of the chain;
    ``verdicts``, and the attempts that they judge (``samples``) of a vote, are by rule.
    """

    outcome: Outcome
    question: Question
    system: System
    vote: str
    response: Kind
    steps: tuple[tuple[int, str], ...] = ()
    verdicts: Verdicts = field(default_factory=dict)
    samples: Mapping[Rule, int] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        return self.outcome.benchmark

    @property
    def is_exact(self) -> bool:
        return self.outcome.exact_match == 1


def column_of(line: Line, rule: Rule) -> str:
    """Return one of `COLUMNS` for a line; without evidence it is unjudgeable."""
    if line.response != "chain":
        return line.response
    verdict = line.verdicts.get(rule)
    return verdict.path if verdict else "unjudgeable"


def is_right(line: Line, rule: Rule, measure: AnswerBy) -> bool | None:
    """Return whether an answer is right by a measure; None without a verdict."""
    if measure == "exact_match":
        return line.is_exact
    if measure == "judge":
        return {"correct": True, "incorrect": False}.get(line.outcome.verdict or "")
    verdict = line.verdicts.get(rule)
    # A rule needs a chain to compare an answer; without one, exact match decides.
    return verdict.is_right if verdict else line.is_exact


def is_grounded(question: Question) -> bool:
    """Return whether a question has evidence to judge chains by."""
    return bool(question.evidence or question.decomposition)


def places(lines: Sequence[Line]) -> dict[tuple[System, str], int]:
    """Return the place of each system and way of counting it among `systems`."""
    keys = dict.fromkeys((line.system, line.vote) for line in lines)
    return {key: place for place, key in enumerate(keys)}


def row_of(line: Line, system: int) -> dict[str, Any]:
    """Return a row of ``faithfulness.jsonl``; ``system`` is the place among the systems."""
    return {
        "system": system,
        "benchmark": line.benchmark,
        "question_id": line.outcome.question_id,
        "answer": line.outcome.trajectory.answer,
        "exact_match": line.is_exact,
        "judge": line.outcome.verdict,
        "response": line.response,
        "steps": [{"number": number, "text": text} for number, text in line.steps],
        "rules": {
            rule: verdict_row(verdict) | ({"sample": line.samples[rule]} if rule in line.samples else {})
            for rule, verdict in line.verdicts.items()
        },
    }


def accepted_unfaithful(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield rows of the unfaithful steps that a verifier accepted, in the order of the lines.

    ``accepted_unfaithful.jsonl`` has a line a step, which ``scripts.refine_verifier_steps --accepted`` mines;
    ``passages_sha256`` is that of the passages' titles and texts, as the steps cite them by number::

        {"benchmark": "musique", "question_id": "q1", "rule": "house", "fault": "factual",
         "number": 2, "kind": "Attribution", "text": "According to Passage 3, ...",
         "previous": [{"number": 1, "text": "...", "kind": "Attribution"}], "passages_sha256": "...",
         "method": "safe", "players": {"generator": "g", "verifier": "v"}, "simulated": true}

    Faults are the house's where that rule was measured, else the paper's. Steps of SAFE's loop alone are listed, as
    only there each step has a verdict of its own.
    """
    for line in lines:
        rule = next((rule for rule in RULES if rule in line.verdicts), None)
        if rule is None or line.response != "chain":
            continue
        accepted_by_number = {step.number: step for step in accepted_steps(line.outcome.trajectory)}
        for (number, _), verdict in zip(line.steps, line.verdicts[rule].steps, strict=False):
            if verdict.fault and verdict.fault != "unread" and number in accepted_by_number:
                yield _row(line, accepted_by_number[number], rule, verdict.fault)


def accepted_steps(trajectory: Trajectory) -> Iterator[Step]:
    """Yield the steps that a verifier called Correct."""
    steps = {step.number: step for step in trajectory.steps}
    for attempt in tries_at_steps(trajectory):
        feedback = attempt.feedback
        if not attempt.accepted or feedback is None or feedback.error_type != CORRECT:
            continue
        try:
            step = read_reply(attempt.text, attempt.number)
        except StepError:
            continue
        if steps.get(step.number) == step:
            yield step


def _row(line: Line, step: Step, rule: str, fault: str) -> dict[str, Any]:
    previous = [s for s in line.outcome.trajectory.steps if s.number < step.number]
    return {
        "benchmark": line.benchmark,
        "question_id": line.outcome.question_id,
        "rule": rule,
        "fault": fault,
        **as_object(step),
        "previous": [as_object(previous_step) for previous_step in previous],
        "passages_sha256": passages_digest(line.question.passages),
        "method": line.outcome.method,
        "players": dict(line.outcome.players),
        "simulated": line.outcome.simulated,
    }


TAKE_TITLES = {"only": "", "majority": " (majority)", "best_of_n": " (best of n)"}
_DIGITS = 6


def systems(lines: Sequence[Line], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Sum up each system, in the order of the lines; ``rules`` are those that judged them."""
    groups = grouped(lines, lambda line: (line.system, line.vote))
    titles = names(list(dict.fromkeys(system for system, _ in groups)))
    records = []
    for (system, take), group in groups.items():
        by_benchmark = grouped(group, lambda line: line.benchmark)
        simulated = any(line.outcome.simulated for line in group)
        records.append(
            {
                "name": marked(f"{titles[system]}{TAKE_TITLES[take]}", simulated),
                **system.as_json(),
                "simulated": simulated,
                "taken": take,
                "benchmarks": {name: summarize(members, rules) for name, members in by_benchmark.items()},
                "all": summarize(group, rules),
            }
        )
    return records


def summarize(lines: Sequence[Line], rules: Sequence[Rule]) -> dict[str, Any]:
    """Count the responses of some lines of one system, and sum up the verdicts by rule."""
    responses = Counter(line.response for line in lines)
    judged = any(line.outcome.verdict is not None for line in lines)
    measures = [measure for measure in ANSWERS if measure != "judge" or judged]
    return {
        "questions": len(lines),
        "chains": responses["chain"],
        **{kind: responses[kind] for kind in get_args(Kind) if kind != "chain"},
        "rules": {
            rule: {
                "answers": {measure: _table(lines, rule, measure) for measure in measures},
                "edits": _edits(lines, rule),
                "breaks": _breaks(lines, rule),
            }
            for rule in rules
        },
    }


def _table(lines: Sequence[Line], rule: Rule, measure: AnswerBy) -> dict[str, Any]:
    cells = [(is_right(line, rule, measure), column_of(line, rule)) for line in lines]
    counts = Counter(cells)
    right, wrong = ({column: counts[is_correct, column] for column in COLUMNS} for is_correct in (True, False))
    unscored = sum(is_correct is None for is_correct, _ in cells)
    return {
        "right": right,
        "wrong": wrong,
        "unscored": unscored,
        "spurious": spurious(right),
        "gap": gap(right, len(cells) - unscored),
    }


def spurious(right: Mapping[str, int]) -> dict[str, Any]:
    """Compute the share of unfaithful chains among right answers; ``right`` has the counts by verdict.

    >>> found = spurious({"faithful": 8, "unfaithful": 2, "unjudgeable": 10})
    >>> found["value"], found["low"], found["high"], found["least"], found["most"]
    (0.2, 0.0567, 0.5098, 0.1, 0.6)
    """
    faithful, unfaithful, unjudgeable = (right[name] for name in get_args(Verdict))
    decided, chains = faithful + unfaithful, faithful + unfaithful + unjudgeable
    share = asdict(wilson(unfaithful, decided)) if decided else dict.fromkeys(("value", "low", "high"))
    return {
        "of": decided,
        **share,
        "least": round(unfaithful / chains, _DIGITS) if chains else None,
        "most": round((unfaithful + unjudgeable) / chains, _DIGITS) if chains else None,
    }


def gap(right: Mapping[str, int], questions: int) -> dict[str, float | None]:
    """Compute the paper's headline: answers minus reasoning, over all questions.

    >>> gap({"faithful": 6, "unfaithful": 1, "unjudgeable": 1}, 10)
    {'answer': 0.8, 'reasoning': 0.6, 'low': 0.1, 'high': 0.2}
    """
    if not questions:
        return dict.fromkeys(("answer", "reasoning", "low", "high"))
    answer, reasoning = sum(right.values()), right["faithful"]
    shares = {"answer": answer, "reasoning": reasoning, "low": right["unfaithful"], "high": answer - reasoning}
    return {name: round(count / questions, _DIGITS) for name, count in shares.items()}


def _edits(lines: Sequence[Line], rule: Rule) -> dict[str, Any] | None:
    verdicts = [line.verdicts[rule] for line in lines if rule in line.verdicts]
    edited = [(v.edits, v.distance) for v in verdicts if v.edits is not None and v.distance is not None]
    if not edited:
        return None
    edits, distance = (sum(column) / len(edited) for column in zip(*edited, strict=True))
    return {"chains": len(edited), "count": round(edits, _DIGITS), "normalised": round(100 * distance, _DIGITS)}


def _breaks(lines: Sequence[Line], rule: Rule) -> list[dict[str, Any]]:
    chains: Counter[tuple[int | None, str]] = Counter()
    right: Counter[tuple[int | None, str]] = Counter()
    for line in lines:
        verdict = line.verdicts.get(rule)
        if line.response == "chain" and verdict and verdict.path == "unfaithful":
            chains[verdict.first, verdict.fault] += 1
            right[verdict.first, verdict.fault] += line.is_exact
    order = sorted(chains, key=lambda key: (key[0] is None, key[0] or 0, key[1]))
    return [{"position": key[0], "fault": key[1], "chains": chains[key], "right": right[key]} for key in order]


QuestionKey = tuple[tuple[str, str], int]
"""Benchmark and id of a question, and its number among those that share them, from 0."""


def compare_pairs(lines: Sequence[Line], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Test whether one system reasons less spuriously than another, on the questions that both have.

    All pairs of `evaluators.comparison.systems.pairs` (of a vote its majority), by rule, measure, answer and
    benchmark, with Holm's p within these. McNemar's exact test counts the questions on which one alone is *spurious*
    (a right answer by an unfaithful chain) or *unfaithful*. A question that is undecided in either system is left out
    and counted: its chain is unjudgeable, or its answer has no chain, right or wrong (else only wrong ones stay).
    An abstention is not spurious. A system with more right answers has more that can be spurious: *unearned* are
    unfaithful chains among the questions that both answered rightly.
    """
    compared = [line for line in lines if line.vote != "best_of_n"]
    by_system = {
        system: dict(numbered(group, lambda line: (line.benchmark, line.outcome.question_id)))
        for system, group in grouped(compared, lambda line: line.system).items()
    }
    place_by_system = {system: place for (system, take), place in places(lines).items() if take != "best_of_n"}
    system_pairs = pairs(in_order(by_system))
    benchmarks = sorted({line.benchmark for line in compared})
    scopes = [None, *(benchmarks if len(benchmarks) > 1 else [])]
    rows: list[dict[str, Any]] = []
    judged = any(line.outcome.verdict is not None for line in compared)
    answers: tuple[AnswerBy, ...] = ("exact_match", "judge") if judged else ("exact_match",)
    questions = [*((name, answer) for answer in answers for name in ("spurious", "unearned")), ("unfaithful", None)]
    for rule, (measure, answer), benchmark in product(rules, questions, scopes):
        key = {"rule": rule, "what": measure, "answer": answer, "benchmark": benchmark}
        flag = partial(_flag, rule=rule, measure=measure, answer=answer)
        family = [
            {"first": place_by_system[later], "second": place_by_system[earlier], **key, **test}
            for later, earlier in system_pairs
            if (test := _test_pair(by_system[later], by_system[earlier], flag, benchmark))
        ]
        adjusted = holm([row["p"] for row in family])
        for row, p in zip(family, adjusted, strict=True):
            rows.append({**row, "p": round_p(row["p"]), "p_holm": round_p(p)})
    return rows


def _flag(line: Line, rule: Rule, measure: str, answer: AnswerBy | None) -> bool | None:
    """Whether a test counts a line; None where that is undecided."""
    column, right = column_of(line, rule), is_right(line, rule, answer) if answer else True
    if measure == "spurious":
        is_undecided = right is None or column in ("unjudgeable", "unstructured")
        return None if is_undecided else right and column == "unfaithful"
    return {"faithful": False, "unfaithful": True}.get(column) if right else None


def _test_pair(
    first: Mapping[QuestionKey, Line],
    peer: Mapping[QuestionKey, Line],
    flag: Callable[[Line], bool | None],
    benchmark: str | None,
) -> dict[str, Any]:
    """Test one pair; returns nothing where the two share no question that is decided in both."""
    shared = [key for key in first if key in peer and benchmark in (None, key[0][0])]
    flags = [(flag(first[key]), flag(peer[key])) for key in shared]
    decided = [(a, b) for a, b in flags if a is not None and b is not None]
    if not decided:
        return {}
    first_only = sum(a and not b for a, b in decided)
    second_only = sum(b and not a for a, b in decided)
    return {
        "pairs": len(decided),
        "left_out": len(shared) - len(decided),
        "first_only": first_only,
        "second_only": second_only,
        "difference": round((first_only - second_only) / len(decided), 6),
        "p": mcnemar(first_only, second_only),
    }
