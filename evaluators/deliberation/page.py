"""An evaluation as a page to read, the paper's figures beside, and as a figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill as folded
from typing import Any

from evaluators.deliberation.scorers import METRICS, TITLES
from safe_stepwise.graphs.relation_paths import Convention
from safe_stepwise.store.figures import png
from safe_stepwise.store.names import marked
from safe_stepwise.store.pages import fill
from safe_stepwise.store.published_tables import published
from safe_stepwise.store.tables import percent, shown, table

_METRIC_TITLES = dict(zip(METRICS, ("H", "H@1", "F1"), strict=True))
_CONVENTIONS: Mapping[Convention, str] = {
    "no_topic": "No hop of a path leads back to its topic (`no_topic`).",
    "no_revisit": "No path visits an entity twice (`no_revisit`).",
    "walk": "A path may come back to where it was (`walk`).",
}
Record = Mapping[str, Any]


def page(found: Record) -> str:
    """The results as Markdown."""
    settings = found["settings"]
    return fill(
        Path(__file__).parent / "templates",
        "deliberation.md.jinja",
        **found,
        metrics=METRICS,
        titles=_METRIC_TITLES,
        rules=TITLES,
        published=published(),
        convention=_CONVENTIONS.get(settings.get("convention"), ""),
        off=[name for name in ("introspection", "predefined", "feedback") if not settings["options"].get(name, 1)],
    )


def summary(found: Record) -> str:
    """The results in short."""
    runs = found["runs"]
    hops = [*runs[0]["by_hop"]]
    header = ("paths", *_METRIC_TITLES.values(), *(f"H@1 {hop}-hop" for hop in hops), "exec.", "gold", "failed")
    rows = [
        (
            marked(run["name"], run["simulated"]),
            *(shown(run[name], percent) for name in METRICS),
            *(shown(run["by_hop"][hop]["hits_at_1"], percent) for hop in hops),
            *(shown(run["paths"][name], percent) for name in ("executable", "gold")),
            run["failed"],
        )
        for run in runs
    ]
    generator = found["settings"]["generator"]
    who = f"verified by {generator}" if generator else "no model verifies"
    return f"{table([header, *rows])}\n\n{runs[0]['questions']:,} questions; {who}"


_PALETTE = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#777777")


def figure(runs: Sequence[Record]) -> bytes:
    """Hits@1 by the number of hops as PNG, a bar a run, with its interval; all questions together stand last."""
    hops = [*runs[0]["by_hop"]]
    labels = [*(f"{hop} hop{'s' if hop != '1' else ''}" for hop in hops), "all"]
    width = 0.8 / len(runs)

    def draw(drawn: Any) -> None:
        axes = drawn.add_subplot()
        for number, run in enumerate(runs):
            groups = [*(run["by_hop"][hop] for hop in hops), run]
            tops = [group["hits_at_1"] for group in groups]
            spans = [group["intervals"]["hits_at_1"] for group in groups]
            below = [top - low for top, (low, _) in zip(tops, spans, strict=True)]
            above = [high - top for top, (_, high) in zip(tops, spans, strict=True)]
            at = [place - 0.4 + width * (number + 0.5) for place in range(len(groups))]
            color = _PALETTE[number % len(_PALETTE)]
            axes.bar(at, tops, width, color=color, label=folded(run["name"][:60], 30))
            axes.errorbar(at, tops, (below, above), fmt="none", ecolor="#333333", capsize=2)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("Hits@1")
        axes.spines[["top", "right"]].set_visible(False)
        # Beside the bars, of which it would else cover some.
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))

    return png(draw, (7.2, 3.4))
