"""The card of ``safe-verifier-steps``: README and figures, from its statistics alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cards.audit import Audit
from cards.cards import Config, DatasetCard, Record, render
from cards.figures import positions_histogram, types_bars
from safe_stepwise.store.names import MISSING, README, STEPS, TEST, TRAIN, VERIFIER_STEPS
from safe_stepwise.taxonomy import TAXONOMY, category

_PLAIN = frozenset(" .,;:?!'\"/-")


@dataclass(frozen=True, slots=True)
class TypeRow:
    """One error type: its category, and rows by benchmark and by split."""

    name: str
    category: str
    by_benchmark: tuple[int, ...]
    train: int
    test: int


def files(statistics: Record, dataset_info: Sequence[Record], audit: Audit | None = None) -> dict[str, bytes]:
    """README.md and the images it shows, by file name.

    ``statistics`` is the record that ``statistics/verifier_steps.json`` holds, ``audit`` what
    people found who judged its rows, if any did. Raises ``KeyError`` for a figure that is missing.
    """
    types = _types(statistics["types"])
    card = DatasetCard(
        VERIFIER_STEPS,
        statistics["version"],
        statistics["rows"],
        statistics["verified"],
        configs_of(statistics["files"]),
        dataset_info,
    )
    readme = render(
        card,
        "verifier_steps.md.jinja",
        ["text-classification"],
        default=STEPS,
        record=statistics,
        types=types,
        shown=shown,
        share=_share,
        tried=[probe for probe in statistics["probes"] if probe["score"] is not None],
        above=above(statistics["probes"]),
        audit=audit,
    )
    return {
        README: readme.encode(),
        "images/types.png": types_bars({row.name: row.train + row.test for row in types}),
        "images/positions.png": positions_histogram(statistics["positions"]),
    }


def shown(text: str) -> str:
    r"""Text of a row as it stands, in HTML: no Markdown, no markup, no end of its place.

    >>> shown("a <b>\n\n# c | `d` [e](f)")
    'a &#60;b&#62;&#10;&#10;&#35; c &#124; &#96;d&#96; &#91;e&#93;&#40;f&#41;'
    """
    return "".join(c if c.isalnum() or c in _PLAIN else f"&#{ord(c)};" for c in text)


def above(probes: Sequence[Record]) -> list[Record]:
    """The probes that reach more than their aim."""
    return [p for p in probes if p["score"] is not None and p["score"] > p["aim"]]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


def _types(types: Mapping[str, Mapping[str, Mapping[str, int]]]) -> tuple[TypeRow, ...]:
    rows = []
    for entry in TAXONOMY:
        counts = [found.get(entry.name, {}) for found in types.values()]
        if any(counts):
            train, test = (sum(c.get(split, 0) for c in counts) for split in (TRAIN, TEST))
            by_benchmark = tuple(sum(c.values()) for c in counts)
            rows.append(TypeRow(entry.name, category(entry.name), by_benchmark, train, test))
    return tuple(rows)


def configs_of(files: Mapping[str, Mapping[str, Record]]) -> tuple[Config, ...]:
    """Every config that has rows, the default first; ``files`` as the statistics hold them."""
    configs = []
    for name in sorted(files, key=lambda name: (name != STEPS, name.startswith(MISSING), name)):
        there = {split: part["rows"] for split, part in files[name].items() if part["rows"]}
        parts = tuple((split, there[split]) for split in (TRAIN, TEST) if split in there)
        if parts:
            configs.append(Config(name, parts))
    return tuple(configs)
