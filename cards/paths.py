"""The card of a set of relation paths: its README, from its statistics alone."""

from collections.abc import Mapping, Sequence

from cards.cards import Config, DatasetCard, Record, render
from safe_stepwise.store.names import PATHS, PROMPT_COMPLETION, README, TEST, TRAIN, paths_set

TITLES = {
    "shortest": "all shortest paths to each answer (equation 1)",
    "best_f1": "best execution F1, all that tie",
    "best": "best execution F1, ties settled (the labels here)",
}
MEANINGS = {
    "positive": "a weak label: of best execution F1",
    "truncation": "a positive path without its last hop (the paper's)",
    "swap": "the path of another topic entity of the question (the paper's)",
    "deletion": "no path, where there is one (the paper's, of questions with several topics)",
    "spurious": "a shortest path to an answer, of lower F1 than the best",
    "flipped": "a positive path with one direction turned",
    "wrong_relation": "a positive path with one relation replaced, executable all the same",
}


def files(statistics: Record, dataset_info: Sequence[Record]) -> dict[str, bytes]:
    """README.md by its name; ``statistics`` is the record that ``statistics/paths.json`` holds.

    Raises ``KeyError`` for a figure that is missing.
    """
    builds = [{**statistics, "source": source} for source in statistics["sources"]]
    configs = configs_of(statistics["files"])
    rows = sum(rows for _, rows in next(c.splits for c in configs if c.name == PATHS))
    readme = render(
        DatasetCard(paths_set(statistics["benchmark"]), statistics["version"], rows, builds, configs, dataset_info),
        "paths.md.jinja",
        ["question-answering"],
        default=PROMPT_COMPLETION,
        record=statistics,
        hops=statistics["hops"],
        titles=TITLES,
        meanings=MEANINGS,
        kinds=_kinds(statistics["hops"]),
        share=_share,
    )
    return {README: readme.encode()}


def configs_of(files: Mapping[str, Mapping[str, Record]]) -> tuple[Config, ...]:
    """Every config that has rows, with its splits; ``files`` as the statistics hold them."""
    configs = []
    for name in sorted(files):
        there = {split: part["rows"] for split, part in files[name].items() if part["rows"]}
        parts = tuple((split, there[split]) for split in (TRAIN, TEST) if split in there)
        if parts:
            configs.append(Config(name, parts))
    return tuple(configs)


def _kinds(hops: Mapping[str, Record]) -> dict[str, int]:
    """Rows of KTO by kind, of all numbers of hops."""
    return {kind: sum(audit["kto"][kind] for audit in hops.values()) for kind in MEANINGS}


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
