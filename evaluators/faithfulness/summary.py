"""What the judged chains of each system come to, alone and in pairs; README.md says what each number is."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from evaluators.comparison.significance import holm, mcnemar, six_digits, wilson
from evaluators.comparison.systems import in_order, names, pairs
from evaluators.faithfulness.lines import ANSWERS, COLUMNS, AnswerBy, Line, is_right, outcome_of, places
from evaluators.faithfulness.said import Kind
from evaluators.outcomes import grouped, numbered
from safe_stepwise.checking.faithfulness.grounds import Rule, Verdict
from safe_stepwise.store.names import marked

WAYS = {"only": "", "majority": " (majority)", "best_of_n": " (best of n)"}
_DIGITS = 6


def systems(lines: Sequence[Line], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """The systems, in the order of their lines; ``rules`` are those that judged them."""
    groups = grouped(lines, lambda line: (line.system, line.taken))
    titles = names(list(dict.fromkeys(system for system, _ in groups)))
    return [_system(way, f"{titles[system]}{WAYS[way]}", group, rules) for (system, way), group in groups.items()]


def _system(way: str, name: str, lines: Sequence[Line], rules: Sequence[Rule]) -> dict[str, Any]:
    by_benchmark = grouped(lines, lambda line: line.benchmark)
    simulated = any(line.outcome.simulated for line in lines)
    return {
        "name": marked(name, simulated),
        **lines[0].system.as_json(),
        "simulated": simulated,
        "taken": way,
        "benchmarks": {benchmark: part(found, rules) for benchmark, found in by_benchmark.items()},
        "all": part(lines, rules),
    }


def part(lines: Sequence[Line], rules: Sequence[Rule]) -> dict[str, Any]:
    """What some lines of one system come to."""
    responses = Counter(line.response for line in lines)
    return {
        "questions": len(lines),
        "chains": responses["chain"],
        **{kind: responses[kind] for kind in get_args(Kind) if kind != "chain"},
        "rules": {rule: _ruled(lines, rule) for rule in rules},
    }


def _ruled(lines: Sequence[Line], rule: Rule) -> dict[str, Any]:
    judged = any(line.outcome.verdict is not None for line in lines)
    return {
        "answers": {
            by: _table(lines, rule, by) for by in ANSWERS if by != "judge" or judged
        },
        "edits": _edits(lines, rule),
        "breaks": _breaks(lines, rule),
    }  # fmt: skip


def _table(lines: Sequence[Line], rule: Rule, by: AnswerBy) -> dict[str, Any]:
    known = [(is_right(line, rule, by), outcome_of(line, rule)) for line in lines]
    counts = Counter(known)
    right, wrong = ({column: counts[is_so, column] for column in COLUMNS} for is_so in (True, False))
    unscored = sum(is_so is None for is_so, _ in known)
    return {
        "right": right,
        "wrong": wrong,
        "unscored": unscored,
        "spurious": spurious(right),
        "gap": gap(right, len(known) - unscored),
    }


def spurious(right: Mapping[str, int]) -> dict[str, Any]:
    """The share of unfaithful chains among right answers, of which ``right`` has the counts.

    >>> found = spurious({"faithful": 8, "unfaithful": 2, "unjudgeable": 10})
    >>> found["value"], found["low"], found["high"], found["least"], found["most"]
    (0.2, 0.0567, 0.5098, 0.1, 0.6)
    """
    faithful, bad, open_ = (right[name] for name in get_args(Verdict))
    decided, chains = faithful + bad, faithful + bad + open_
    share = asdict(wilson(bad, decided)) if decided else dict.fromkeys(("value", "low", "high"))
    return {
        "of": decided,
        **share,
        "least": round(bad / chains, _DIGITS) if chains else None,
        "most": round((bad + open_) / chains, _DIGITS) if chains else None,
    }


def gap(right: Mapping[str, int], questions: int) -> dict[str, float | None]:
    """The paper's headline: answers minus reasoning, over all questions.

    >>> gap({"faithful": 6, "unfaithful": 1, "unjudgeable": 1}, 10)
    {'answer': 0.8, 'reasoning': 0.6, 'low': 0.1, 'high': 0.2}
    """
    if not questions:
        return dict.fromkeys(("answer", "reasoning", "low", "high"))
    answered, earned = sum(right.values()), right["faithful"]
    shares = {"answer": answered, "reasoning": earned, "low": right["unfaithful"], "high": answered - earned}
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


Asked = tuple[tuple[str, str], int]
"""Benchmark and id of a question, and which of those that share them, from 0."""
Flag = Callable[[Line], bool | None]


def paired(lines: Sequence[Line], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Whether one system reasons less spuriously than another, on the questions that both have.

    All pairs of `evaluators.comparison.systems.pairs` (of a vote its majority), by rule, measure, answer and
    benchmark, with Holm's p within these. McNemar's exact test counts the questions on which one alone is *spurious*
    (a right answer by an unfaithful chain) or *unfaithful*. What is undecided in either of the two is left out and
    counted: a chain that is unjudgeable, or none beside an answer, whether that is right or wrong, as else the wrong
    ones alone would stay. Who gave no answer was not spurious. A system that answers more questions rightly has more
    right answers to be spurious in: *unearned* are unfaithful chains among the questions that both answered rightly.
    """
    told = [line for line in lines if line.taken != "best_of_n"]
    held = {
        system: dict(numbered(own, lambda line: (line.benchmark, line.outcome.question_id)))
        for system, own in grouped(told, lambda line: line.system).items()
    }
    at = {system: place for (system, way), place in places(lines).items() if way != "best_of_n"}
    met = pairs(in_order(held))
    benchmarks = sorted({line.benchmark for line in told})
    parts = [None, *(benchmarks if len(benchmarks) > 1 else [])]
    found: list[dict[str, Any]] = []
    for key, flag in _measures(told, rules):
        for benchmark in parts:
            family = [
                {"first": at[first], "second": at[second], **key, "benchmark": benchmark, **tested}
                for first, second in met
                if (tested := _tested(held[first], held[second], flag, benchmark))
            ]
            adjusted = holm([one["p"] for one in family])
            for one, p in zip(family, adjusted, strict=True):
                found.append({**one, "p": six_digits(one["p"]), "p_holm": six_digits(p)})
    return found


def _measures(lines: Sequence[Line], rules: Sequence[Rule]) -> Iterator[tuple[dict[str, Any], Flag]]:
    judged = any(line.outcome.verdict is not None for line in lines)
    by: tuple[AnswerBy, ...] = ("exact_match", "judge") if judged else ("exact_match",)
    for rule in rules:
        for answer in by:
            yield {"rule": rule, "what": "spurious", "answer": answer}, _spurious(rule, answer)
            yield {"rule": rule, "what": "unearned", "answer": answer}, _unearned(rule, answer)
        yield {"rule": rule, "what": "unfaithful", "answer": None}, _unfaithful(rule)


def _spurious(rule: Rule, by: AnswerBy) -> Flag:
    def flag(line: Line) -> bool | None:
        right, came_to = is_right(line, rule, by), outcome_of(line, rule)
        if right is None or came_to in ("unjudgeable", "unstructured"):
            return None
        return right and came_to == "unfaithful"

    return flag


def _unearned(rule: Rule, by: AnswerBy) -> Flag:
    unfaithful = _unfaithful(rule)
    return lambda line: unfaithful(line) if is_right(line, rule, by) else None


def _unfaithful(rule: Rule) -> Flag:
    known = {"faithful": False, "unfaithful": True}
    return lambda line: known.get(outcome_of(line, rule))


def _tested(
    first: Mapping[Asked, Line], second: Mapping[Asked, Line], flag: Flag, benchmark: str | None
) -> dict[str, Any]:
    """Of one pair; nothing where the two share no question that is decided in both."""
    shared = [key for key in first if key in second and benchmark in (None, key[0][0])]
    both = [(flag(first[key]), flag(second[key])) for key in shared]
    known = [(one, other) for one, other in both if one is not None and other is not None]
    if not known:
        return {}
    ours = sum(one and not other for one, other in known)
    theirs = sum(other and not one for one, other in known)
    return {
        "pairs": len(known),
        "left_out": len(shared) - len(known),
        "first_only": ours,
        "second_only": theirs,
        "difference": round((ours - theirs) / len(known), 6),
        "p": mcnemar(ours, theirs),
    }
