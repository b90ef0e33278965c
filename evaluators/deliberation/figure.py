"""Hits@1 by the number of hops, a bar a run, with its interval."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from safe_stepwise.store.figures import png

_PALETTE = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#777777")


def figure(runs: Sequence[Mapping[str, Any]]) -> bytes:
    """The figure as PNG; all questions together stand last."""
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
            axes.bar(at, tops, width, color=color, label=fill(run["name"][:60], 30))
            axes.errorbar(at, tops, (below, above), fmt="none", ecolor="#333333", capsize=2)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("Hits@1")
        axes.spines[["top", "right"]].set_visible(False)
        # Beside the bars, of which it would else cover some.
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))

    return png(draw, (7.2, 3.4))
