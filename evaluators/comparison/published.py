"""The papers' own rows in the form of our tables: shown beside ours, marked, and never tested.

They are of other questions, another judge and other verifiers. A row is shown as far as its
benchmarks are among ours, and its average only beside averages of the same benchmarks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from evaluators.comparison.systems import EVERY
from evaluators.outcomes import METRICS, Metric
from safe_stepwise.errors import one_of
from safe_stepwise.methods import METHODS
from safe_stepwise.store import published_tables
from safe_stepwise.store.published_tables import AVERAGE, BENCHMARKS, MAIN, PAPERS, PublishedScore
from safe_stepwise.store.published_tables import published as printed
from safe_stepwise.store.tables import NOTHING

_PRINTED: Mapping[Metric, str] = {"exact_match": "em", "f1": "f1", "accuracy": "acc"}
_TITLES = {"ircot": "IRCoT", "trace": "TRACE"}
_TUNED = re.compile(r"(instruct|it|chat|hf)+$")

Line = tuple[str, str, list[str]]
"""Who answers, the method, and its cells."""


def chosen(tables: Iterable[str]) -> tuple[PublishedScore, ...]:
    """The rows of tables that are named as on a command line: ``v2`` is SAFE v2's main one.

    Raises ``UserError`` for a table that is not there.

    >>> list(dict.fromkeys(row.table for row in chosen(["v2", "v1:12"])))
    ['2', '12']
    """
    main: dict[str, str] = {paper: f"{paper}:{table}" for paper, table in MAIN.items()}
    known = dict.fromkeys(f"{row.paper}:{row.table}" for row in printed().scores)
    names = [one_of(text, [*main, *known], "--published") for text in tables]
    wanted = dict.fromkeys(main.get(name, name) for name in names)
    return tuple(row for name in wanted for row in printed().scores if f"{row.paper}:{row.table}" == name)


def spelled(generator: str) -> str:
    """A model's name as far as it tells models apart, however it is written.

    >>> spelled("openai:Qwen/Qwen3-8B") == spelled("Qwen 3 8B")
    True
    >>> spelled("vllm:google/gemma-3-12b-it@0123") == spelled("Gemma 3 12B")
    True
    """
    model = re.split(r"[@+]", generator)[0].rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    return _TUNED.sub("", re.sub(r"[^a-z0-9]", "", model.casefold()))


def lines(published: Sequence[PublishedScore], benchmarks: Sequence[str]) -> dict[str, list[Line]]:
    """The rows by their generators' spelled names, the totals last."""
    found: dict[str, list[Line]] = {}
    for row in sorted(published, key=lambda row: row.generator == published_tables.EVERY):
        who = EVERY if row.generator == published_tables.EVERY else row.generator
        for name, cells in _cells(row, benchmarks):
            if any(cell != NOTHING for cell in cells):
                found.setdefault(spelled(who), []).append((who, name, cells))
    return found


def _cells(row: PublishedScore, benchmarks: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """A row, and what it gains as far as that is printed."""
    places = [*benchmarks, *([AVERAGE] if set(benchmarks) == set(BENCHMARKS) else [])]
    missing = [NOTHING] * (len(METRICS) * (len(benchmarks) + 1 - len(places)))
    title = METHODS[row.method].title if row.method in METHODS else _TITLES[row.method]
    name = ", ".join(filter(None, (title, row.variant)))
    of = f"(published: {PAPERS[row.paper]}, Table {row.table})"
    printed = [row.scores.get(place, {}).get(_PRINTED[m]) for place in places for m in METRICS]
    yield f"{name} {of}", [*map(_shown, printed), *missing]
    gains = [row.delta.get(p) if m == "accuracy" else None for p in places for m in METRICS]
    yield f"Δ {name} {of}", [NOTHING if g is None else f"{g:+.1f}" for g in gains] + missing


def _shown(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"
