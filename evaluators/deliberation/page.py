"""An evaluation as a page to read, the paper's figures beside."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

from evaluators.deliberation.scorers import METRICS, SCORERS, TITLES
from safe_stepwise.graphs.relation_paths import Convention
from safe_stepwise.store import published_tables
from safe_stepwise.store.figures import png
from safe_stepwise.store.names import marked
from safe_stepwise.store.tables import escaped, markdown, table

_SHOWN = ("H", "H@1", "F1")
_COUNTED = {"unanswered": "no answer", "failed": "failed", "cut": "cut"}
_READ = (
    "In brackets: 95% interval, bootstrap over questions. Scored by the rule of Deliberation on "
    "Priors: names are equal but for case; a question that failed or has no answer is wrong. Cut: "
    "questions of which a path led to more entities than the model was shown, who could not name "
    "all."
)
_PROPOSED = ["paths", "proposed", "executable", "gold", "unreadable", "no path", "failed", "a topic"]
_PATHS = (
    "Executable: it leads somewhere from its topic. Gold: it is a gold path ({gold}). Replies that "
    "could not be read, and topics that no path leads from, are in what the shares are of. In "
    "brackets: of the first proposal for each topic."
)
_PRINTED = (
    "**Others' figures, of other questions**: 500 sampled questions of WebQSP and of CWQ over "
    "Freebase, 600 of MetaQA, other prompts and models (arXiv 2505.15210). No measure of anything "
    "here, and never tested against it. Percent."
)
_CONVENTIONS: Mapping[Convention, str] = {
    "no_topic": "No hop of a path leads back to its topic (`no_topic`).",
    "no_revisit": "No path visits an entity twice (`no_revisit`).",
    "walk": "A path may come back to where it was (`walk`).",
}
Record = Mapping[str, Any]


def page(found: Record) -> str:
    """The results as Markdown."""
    runs: Sequence[Record] = found["runs"]
    hops = [*runs[0]["by_hop"]]
    parts = [
        "# Questions answered over a knowledge graph",
        _what(found),
        markdown([["paths", "questions", *_SHOWN, *_COUNTED.values()], *map(_overall, runs)]),
        _READ,
        *_by_hop(runs, hops),
        "## By whose rule",
        markdown([["paths", "rule", *_SHOWN], *(row for run in runs for row in _rules(run))]),
        "The rules and where they differ: `evaluators/deliberation/scorers.py`.",
        "## Proposed paths",
        markdown([_PROPOSED, *map(_proposed, runs)]),
        _PATHS.format(gold=escaped(found["settings"].get("gold", ""))),
        *_costs(runs),
        *_differences(found),
        *_printed(),
    ]
    return "\n\n".join(parts) + "\n"


def summary(found: Record) -> str:
    """The results in short."""
    runs = found["runs"]
    hops = [*runs[0]["by_hop"]]
    header = ("paths", *_SHOWN, *(f"H@1 {hop}-hop" for hop in hops), "exec.", "gold", "failed")
    rows = [
        (
            _name(run),
            *(_percent(run[name]) for name in METRICS),
            *(_percent(run["by_hop"][hop]["hits_at_1"]) for hop in hops),
            *(_percent(run["paths"][name]) for name in ("executable", "gold")),
            run["failed"],
        )
        for run in runs
    ]
    generator = found["settings"]["generator"]
    who = f"verified by {generator}" if generator else "no model verifies"
    return f"{table([header, *rows])}\n\n{runs[0]['questions']:,} questions; {who}"


def _what(found: Record) -> str:
    settings = found["settings"]
    simulated = "> **Simulated**: an engine without a model took part; nothing is a result.\n\n"
    generator = settings["generator"]
    how = (
        f"Paths are chosen and answers verified by {escaped(generator)}."
        if generator
        else "No model verifies: the first path that leads somewhere answers."
    )
    count, benchmark = settings["questions"], settings.get("benchmark", "")
    told = f"{count:,} questions of {escaped(str(benchmark))}. {how}"
    told += f" {_CONVENTIONS[settings['convention']]}" if "convention" in settings else ""
    options = settings["options"]
    off = [name for name in ("introspection", "predefined", "feedback") if not options.get(name, 1)]
    without = f" Without {', '.join(off)}." if off else ""
    bare = found["runs"][0]["without_gold"]
    right = f" {bare:,} have no gold answer: right by DP's rule, whatever is said." if bare else ""
    return f"{simulated if found['simulated'] else ''}{told}{without}{right}"


def _overall(run: Record) -> list[str]:
    cells = [_with_span(run, name) for name in METRICS]
    return [_name(run), f"{run['questions']:,}", *cells, *_counts(run)]


def _counts(of: Record) -> list[str]:
    return [f"{of[name]:,}" for name in _COUNTED]


def _by_hop(runs: Sequence[Record], hops: Sequence[str]) -> list[str]:
    if not hops:
        return []
    rows = [
        [*(_name(run), hop, f"{of['questions']:,}"), *(_with_span(of, metric) for metric in METRICS), *_counts(of)]
        for run in runs
        for hop, of in run["by_hop"].items()
    ]
    header = ["paths", "hops", "questions", *_SHOWN, *_COUNTED.values()]
    return ["## By hops", markdown([header, *rows])]


def _rules(run: Record) -> Iterable[list[str]]:
    for name in SCORERS:
        means = run["scorers"][name]
        yield [_name(run), TITLES[name], *(_percent(means[m]) for m in METRICS)]


def _proposed(run: Record) -> list[str]:
    found = run["paths"]
    shares = [f"{_percent(found[n])} ({_percent(found[f'first_{n}'])})" for n in ("executable", "gold")]
    counts = [f"{found[name]:,}" for name in ("unreadable", "nowhere", "failed")]
    each = f"{found['candidates_per_topic']:.2f}"
    return [_name(run), f"{found['proposals']:,}", *shares, *counts, each]


def _costs(runs: Sequence[Record]) -> list[str]:
    """In the form of the paper's Table 5."""
    rows = []
    for run in runs:
        cost = run["cost"]
        roles = {**cost["by_role"], "all but the proposer": cost["without_proposer"]}
        for role, of in roles.items():
            counts = [of[n] for n in ("calls", "prompt_tokens", "completion_tokens", "tokens")]
            rows.append([_name(run), role, *(f"{count:,.1f}" for count in counts)])
    printed = [
        ["", f"{c.method}, {c.benchmark} (published: arXiv 2505.15210, Table 5)"]
        + [f"{n:,.1f}" for n in (c.calls, c.prompt, c.completion, c.total)]
        for c in published_tables.published().answer_costs
    ]
    wrong = [
        f"Misprint, Table 5, {c.method}, {c.benchmark}: {c.misprint}."
        for c in published_tables.published().answer_costs
        if c.misprint
    ]
    return [
        "## Calls and tokens a question",
        markdown([["paths", "role", "calls", "in", "out", "total"], *rows, *printed]),
        "The paper leaves out what proposes paths. Players that count no tokens are counted in words and punctuation.",
        *wrong,
    ]


def _differences(found: Record) -> list[str]:
    if not found["differences"]:
        return []
    rows = [
        [
            *(row["second"], row["first"], _SHOWN[METRICS.index(row["metric"])]),
            f"{100 * row['difference']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]",
            f"{row['p']:.4f}",
            f"{row['p_holm']:.4f}",
        ]
        for row in found["differences"]
        for low, high in [row["interval"]]
    ]
    return [
        "## Differences, question by question",
        markdown([["paths", "less", "measure", "points", "p", "Holm's p"], *rows]),
        "Random flips of signs. Holm's p counts all rows.",
    ]


def _printed() -> list[str]:
    rows, notes = [], []
    for row in published_tables.published().answers:
        mark = " (misprint)" if row.misprint else ""
        cells = [
            " / ".join("-" if v is None else f"{v:.1f}" for v in of) if of else "-"
            for of in (row.webqsp, row.cwq, row.metaqa)
        ]
        rows.append([f"published: Table {row.table}", row.method, f"{row.model}{mark}", *cells])
        notes += [f"Misprint, Table {row.table}, {row.model}: {row.misprint}."] * bool(row.misprint)
    header = ["whose", "method", "model", *(f"{b}, H / H@1 / F1" for b in ("WebQSP", "CWQ"))]
    told = markdown([[*header, "MetaQA, H / H@1 / F1"], *rows])
    return ["## What the paper printed", _PRINTED, told, *notes]


def _name(run: Record) -> str:
    return marked(run["name"], run["simulated"])


def _with_span(of: Record, name: str) -> str:
    low, high = of["intervals"][name]
    return f"{_percent(of[name])} [{100 * low:.1f}, {100 * high:.1f}]"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


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
            axes.bar(at, tops, width, color=color, label=fill(run["name"][:60], 30))
            axes.errorbar(at, tops, (below, above), fmt="none", ecolor="#333333", capsize=2)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("Hits@1")
        axes.spines[["top", "right"]].set_visible(False)
        # Beside the bars, of which it would else cover some.
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))

    return png(draw, (7.2, 3.4))
