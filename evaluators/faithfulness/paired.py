"""Whether one system reasons less spuriously than another, on the questions that both have.

The pairs are the comparison's (`evaluators.comparison.systems.pairs`); of a vote its majority is
paired. McNemar's exact test counts the questions on which one alone is *spurious* (a right answer
by an unfaithful chain) or *unfaithful*. What is undecided in either of the two is left out and
counted: a chain that is unjudgeable, or none beside an answer, whether that is right or wrong, as
else the wrong ones alone would stay. Who gave no answer was not spurious. A system that answers
more questions rightly has more right answers to be spurious in: *unearned* are unfaithful chains
among the questions that both answered rightly.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evaluators.comparison.significance import holm, mcnemar, six_digits
from evaluators.comparison.systems import System, in_order, pairs
from evaluators.faithfulness.lines import AnswerBy, Line, is_right, outcome_of, places, repeated
from safe_stepwise.checking.faithfulness.chains import Rule

Asked = tuple[str, str, int]
Flag = Callable[[Line], bool | None]


def paired(lines: Sequence[Line], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """All pairs, by rule, measure, answer and benchmark, with Holm's p within these."""
    told = [line for line in lines if line.taken != "best_of_n"]
    held: dict[System, dict[Asked, Line]] = {}
    for system in dict.fromkeys(line.system for line in told):
        held[system] = dict(repeated(line for line in told if line.system == system))
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
    shared = [key for key in first if key in second and benchmark in (None, key[0])]
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
