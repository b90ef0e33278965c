"""What a build of relation paths says of itself to the one who ran it."""

from builders.paths.kg_collect import PathsBuild
from builders.paths.relation_statistics import RULES, PathStatistics
from safe_stepwise.store.names import BY_TEMPLATE, PROMPT_COMPLETION, REJECTS, TRAIN, paths_set
from safe_stepwise.store.tables import table

_LEGEND = """
shortest: all shortest paths (equation 1); best_f1: those whose answers are nearest to the right
ones; best: of these the likeliest elsewhere, which are the labels. Recall and precision are of
gold paths."""


def summary(plan: PathsBuild, statistics: PathStatistics) -> str:
    """What was found, where it is, how to open it."""
    header = ("hops", "topics", "no path", "rule", "recall", "precision", "paths each")
    lines: list[tuple[object, ...]] = [header]
    for hops, audit in statistics.hops.items():
        for rule in RULES:
            found = audit.rules[rule]
            figures = (_told(found.recall), _told(found.precision), _told(found.paths))
            lines.append((hops, audit.topics, audit.no_path, rule, *figures))
    place = plan.output / paths_set(plan.benchmark)
    said = [
        f"{plan.benchmark} {plan.split}: {statistics.rows:,} questions, {statistics.rejected:,} rejected",
        table(lines),
        _LEGEND,
        f"rows by config, train/test: {_sizes(statistics)}",
        f"positive rows of kto: {_told(statistics.positive_share)}",
        f"\n{place}",
        f'load_dataset("{place}", "{PROMPT_COMPLETION}{BY_TEMPLATE}", split="{TRAIN}")',
    ]
    if statistics.rejected:
        said.append(f"rejected rows, with reasons: {plan.output / REJECTS}")
    return "\n".join(said)


def _sizes(statistics: PathStatistics) -> str:
    found = [
        f"{config} {'/'.join(f'{part.rows:,}' for part in parts.values())}"
        for config, parts in statistics.files.items()
    ]
    return ", ".join(found)


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
