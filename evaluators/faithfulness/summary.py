"""What the judged chains of each system come to; README.md says what each number is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from evaluators.comparison.significance import wilson
from evaluators.comparison.systems import System, names
from evaluators.faithfulness.lines import ANSWERS, COLUMNS, AnswerBy, Line, is_right, outcome_of
from evaluators.faithfulness.said import Kind
from safe_stepwise.checking.faithfulness.chains import Rule, Verdict
from safe_stepwise.store.names import marked

WAYS = {"only": "", "majority": " (majority)", "best_of_n": " (best of n)"}
_DIGITS = 6


def systems(lines: Sequence[Line], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """The systems, in the order of their lines; ``rules`` are those that judged them."""
    groups: dict[tuple[System, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.system, line.taken), []).append(line)
    titles = names(list(dict.fromkeys(system for system, _ in groups)))
    return [_system(way, f"{titles[system]}{WAYS[way]}", group, rules) for (system, way), group in groups.items()]


def _system(way: str, name: str, lines: Sequence[Line], rules: Sequence[Rule]) -> dict[str, Any]:
    by_benchmark: dict[str, list[Line]] = {}
    for line in lines:
        by_benchmark.setdefault(line.benchmark, []).append(line)
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
