"""The card of ``safe-path-probe``: README from its statistics alone."""

from collections.abc import Mapping, Sequence

from cards.cards import Config, DatasetCard, Record, render
from safe_stepwise.store.names import CORRUPTIONS, PATH_PROBE, PROBED, README, TEST, TRAIN, VALIDATION

_SPLITS = (TRAIN, VALIDATION, TEST)
MEANINGS = {
    "valid": "a gold path, told in order",
    "factual_head": "the head of one triple is another entity; what went before leads elsewhere",
    "factual_tail": "the tail of one triple is another entity, wherever the path names it",
    "incoherent": "the right triples in an order in which one starts from nothing that is known",
    "misguided_question": "the gold path of another question",
    "misguided_walk": "a walk of true triples from the same entity that ends elsewhere",
    "relation_swapped": "one triple has another relation",
    "reversed": "one triple has head and tail exchanged",
    "hop_dropped": "one triple that every gold path needs is gone",
}
"""What was done to the path, by kind."""


def files(statistics: Record, dataset_info: Sequence[Record]) -> dict[str, bytes]:
    """README.md; raises ``KeyError`` for a figure that ``statistics/path_probe.json`` lacks."""
    card = DatasetCard(
        PATH_PROBE,
        statistics["version"],
        statistics["rows"],
        statistics["verified"],
        configs_of(statistics["files"]),
        dataset_info,
    )
    readme = render(
        card,
        "path_probe.md.jinja",
        ["text-classification"],
        default=PROBED,
        record=statistics,
        kinds=CORRUPTIONS,
        meanings=MEANINGS,
        by_form=_by_form(statistics["marked"]),
    )
    return {README: readme.encode()}


def _by_form(marked: Mapping[str, Record]) -> float | None:
    """The balanced accuracy of going by the form alone; None where a label has no rows."""
    valid = marked.get("valid", {"rows": 0, "marked": 0})
    wrong = [of for kind, of in marked.items() if kind != "valid"]
    rows = sum(of["rows"] for of in wrong)
    if not rows or not valid["rows"]:
        return None
    passed = 1 - valid["marked"] / valid["rows"]
    return float(passed + sum(of["marked"] for of in wrong) / rows) / 2


def configs_of(written: Mapping[str, Mapping[str, Record]]) -> tuple[Config, ...]:
    """Every config that has rows, the default first."""
    names = sorted(written, key=lambda name: (name != PROBED, name))
    found = (
        Config(name, tuple((s, n) for s in (TRAIN, VALIDATION, TEST) if (n := _rows(written, name, s))))
        for name in names
    )
    return tuple(config for config in found if config.splits)


def _rows(written: Mapping[str, Mapping[str, Record]], config: str, split: str) -> int:
    return int(written[config].get(split, {}).get("rows", 0))
