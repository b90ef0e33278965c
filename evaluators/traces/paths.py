"""The verdicts on chains of ``faithfulness.jsonl``, for the page of traces.

A folder without measured faithfulness has none; its page lacks this part.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluators import outcomes
from evaluators.comparison.systems import System
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import parse_json, read_json
from safe_stepwise.store.files import read_lines
from safe_stepwise.store.names import CHAINS, FAITHFULNESS

_AGAIN = "measure it anew with safe-stepwise measure_faithfulness"
Paths = list[dict[str, Any]]
"""The verdicts on one run's chain, one a rule."""
NO_CHAIN = "no chain"


def read_paths(folder: Path) -> dict[tuple[str, str, System], Paths]:
    """Read the verdicts of a folder by benchmark, question and system; a vote's are on its majority's chain.

    A question with two chains under one key has none.
    """
    if not (folder / FAITHFULNESS).exists():  # it is written last
        return {}
    systems, chains = dict(_systems(folder / FAITHFULNESS)), dict[tuple[str, str, System], list[Paths]]()
    for place, line in read_lines(folder / CHAINS, bytes, "verdict", _AGAIN):
        with outcomes.reading(place):
            row = parse_json(line)
            if (system := systems.get(row["system"])) is not None:
                key = str(row["benchmark"]), str(row["question_id"]), system
                chains.setdefault(key, []).append(_paths(row))
    return {key: paths[0] for key, paths in chains.items() if len(paths) == 1}


def _systems(file: Path) -> Iterator[tuple[int, System]]:
    """Yield the systems of lines, by place; the best of several samples is left out."""
    try:
        for place, system in enumerate(read_json(file)["systems"]):
            if system["taken"] != "best_of_n":
                yield (place, System.make(*(system[name] for name in ("method", "players", "options", "conditions"))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or "not a record of measured faithfulness"
        raise UserError(f"{file}: cannot be read ({reason}); {_AGAIN}") from None


def _paths(row: Mapping[str, Any]) -> Paths:
    """Return a line's verdicts as the page shows them, with checked types."""
    if row["response"] != "chain" or not row["rules"]:
        reason = str(row["response"]) if row["response"] != "chain" else "no evidence to judge it by"
        return [{"rule": "", "path": NO_CHAIN, "fault": reason, "first": 0, "missing": [], "steps": []}]
    return [
        {
            "rule": str(rule),
            "path": str(verdicts["path"]),
            "fault": str(verdicts["fault"]),
            "first": int(verdicts["first"] or 0),
            "missing": [*map(_triple, verdicts["missing"])],
            "steps": [
                {
                    "number": int(step["number"]),
                    "text": str(step["text"]),
                    "triples": [*map(_triple, verdict["triples"])],
                    "fault": str(verdict["fault"]),
                    "score": _score(verdict["score"]),
                }
                for step, verdict in zip(row["steps"], verdicts["steps"], strict=True)
            ],
        }
        for rule, verdicts in sorted(row["rules"].items())
    ]


def _triple(triple: Any) -> list[str]:
    head, relation, tail = triple
    return [str(head), str(relation), str(tail)]


def _score(score: Any) -> float | None:
    if score is None:
        return None
    if not math.isfinite(score):
        raise ValueError(f"{score} is no score")
    return float(score)
