"""Whether answers were earned, for the page of traces: what ``faithfulness.jsonl`` says of a run.

Folders that were not measured have none of it; the page shows what it did before.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluators import outcomes
from evaluators.comparison.systems import System
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store.names import CHAINS, FAITHFULNESS
from safe_stepwise.store.parsing import parse_json, read_json

Paths = list[dict[str, Any]]
"""Of one run, a verdict a rule."""
NO_CHAIN = "no chain"


class Measured:
    """The verdicts of a folder, by what they are of; of a vote those on its majority's chain."""

    def __init__(self, folder: Path) -> None:
        self._chains: dict[tuple[str, str, str], list[Paths]] = {}
        if not (folder / FAITHFULNESS).exists():  # it is there once the others are
            return
        keys = dict(_systems(folder / FAITHFULNESS))
        file = folder / CHAINS
        try:
            lines = file.read_bytes().splitlines()
        except OSError as error:
            raise UserError(f"{file}: cannot be read ({error.strerror}); {_AGAIN}") from None
        for number, line in enumerate(lines, 1):
            with outcomes.reading(file, number):
                row = parse_json(line)
                if (system := keys.get(row["system"])) is not None:
                    key = str(row["benchmark"]), str(row["question_id"]), system
                    self._chains.setdefault(key, []).append(_paths(row))

    def of(self, outcome: outcomes.Outcome, system: System) -> Paths:
        """What an outcome's chain comes to; nothing where two could be meant."""
        key = outcome.benchmark, outcome.question_id, canonical_json(system.as_json())
        chains = self._chains.get(key, [])
        return chains[0] if len(chains) == 1 else []


_AGAIN = "measure it anew with safe-stepwise measure_faithfulness"


def _systems(file: Path) -> Iterator[tuple[int, str]]:
    """The systems that a line can be of, by place; the best of several samples is none."""
    try:
        for place, one in enumerate(read_json(file)["systems"]):
            if one["taken"] != "best_of_n":
                names = ("method", "players", "options", "conditions")
                system = System.of(*(one[name] for name in names))
                yield place, canonical_json(system.as_json())
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or "not a record of measured faithfulness"
        raise UserError(f"{file}: cannot be read ({reason}); {_AGAIN}") from None


def _paths(row: Mapping[str, Any]) -> Paths:
    """A line's verdicts as the page shows them: texts are texts, and numbers numbers."""
    if row["response"] != "chain" or not row["rules"]:
        why = str(row["response"]) if row["response"] != "chain" else "no evidence to judge it by"
        return [{"rule": "", "path": NO_CHAIN, "fault": why, "first": 0, "missing": [], "steps": []}]
    return [
        {
            "rule": str(rule),
            "path": str(judged["path"]),
            "fault": str(judged["fault"]),
            "first": int(judged["first"] or 0),
            "missing": [*map(_triple, judged["missing"])],
            "steps": [
                {
                    "number": int(step["number"]),
                    "text": str(step["text"]),
                    "triples": [*map(_triple, one["triples"])],
                    "fault": str(one["fault"]),
                    "score": _score(one["score"]),
                }
                for step, one in zip(row["steps"], judged["steps"], strict=True)
            ],
        }
        for rule, judged in sorted(row["rules"].items())
    ]


def _triple(parts: Any) -> list[str]:
    head, relation, tail = parts
    return [str(head), str(relation), str(tail)]


def _score(score: Any) -> float | None:
    if score is None:
        return None
    if not math.isfinite(score):
        raise ValueError(f"{score} is no score")
    return float(score)
