"""What pages say around their tables."""

from collections.abc import Iterable, Sequence

from evaluators.comparison.published import lines as published_lines
from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import System, common_options, values_by_name
from evaluators.comparison.tables import EVERY
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import escaped, mark

_SIMULATED = (
    "> **Simulated.** An engine without a model took part in the rows so marked: they show that "
    "the loop works, and nothing about how well a model reasons."
)


ABLATED = ("on_exhausted", "feedback")
"""Options that reports are set apart by (SAFE v2, finding 1), so that each tells its own."""


def about(comparison: Comparison) -> str:
    """What all systems have in common, and what the numbers are."""
    count = len(comparison.benchmarks)
    of = f"{count} benchmarks and their mean" if count > 1 else "of one benchmark, the average"
    return " ".join([*in_common(comparison), f"Percentages; {of}."])


def in_common(comparison: Comparison) -> list[str]:
    """The players and options of the whole run, of which no name tells; a sentence each."""
    systems = [row.system for row in comparison.rows]
    options = common_options(systems, ABLATED)
    return [*_players(systems), *([f"{options}."] if options else [])]


MARGINS = (
    "± is half the width of the 95% bootstrap interval over questions. Δ is in percentage "
    "points, on the questions that both systems have, over the baseline that is better on "
    "average. Where all questions are right, or all wrong, no resample differs: ±0.0 is no "
    "certainty."
)


def tests_text(comparison: Comparison) -> str:
    """What stands below paired tests."""
    return (
        "EM and Acc in one benchmark: McNemar's exact test. F1, and averages of several: random "
        f"flips of signs ({comparison.resamples:,}, seed {comparison.seed}). Holm's p counts all "
        "tests of one measure in one column of the first table. Pairs and unpaired questions are "
        "those of EM; Acc pairs only what the judge scored in both."
    )


def totals(comparison: Comparison) -> list[str]:
    """What totals are of, where there are any."""
    answering = dict.fromkeys(row.system.answering for row in comparison.rows)
    if not comparison.totals:
        return []
    whole = {row.system for row in comparison.totals}
    names = comparison.names
    lacking = [r for r in comparison.rows if r.system.answered_by(EVERY) not in whole]
    left_out = "; ".join(f"{row.system.answering}, {names[row.system]}" for row in lacking)
    return [
        escaped(
            f"{EVERY}: the mean over all {len(answering)} that answer, question by question, of "
            "what ran with each of them; their differences are tested by flips of signs."
            + (f" Not in it: {left_out}." if left_out else "")
        )
    ]


def about_published(comparison: Comparison, published: Sequence[PublishedScore]) -> list[str]:
    """What the papers' rows are, where there are any."""
    if not published:
        return []
    if not published_lines(published, comparison.benchmarks):
        return ["The papers print nothing on these benchmarks, so that no published row is shown."]
    borrowed = any(row.method in ("ircot", "trace") for row in published)
    return [
        "Published rows are as printed: of other samples of questions, another judge and other "
        "verifiers, so that they are in no difference and no test."
        + (" IRCoT and TRACE are as the papers took them from TRACE's own." if borrowed else "")
    ]


def page(title: str, comparison: Comparison, *parts: str) -> str:
    """A page of Markdown, which says at its top what is simulated."""
    marks = [_SIMULATED] if comparison.simulated else []
    return "\n\n".join([f"# {title}{mark(comparison.simulated)}", *marks, *parts]) + "\n"


def _players(systems: Iterable[System]) -> list[str]:
    """Who plays the other roles of a method, where that is one and the same for all."""
    known = values_by_name((f"{s.title}'s {r}", name) for s in systems for r, name in s.players[1:])
    return [escaped(f"{who}: {names[0]}.") for who, names in known.items() if len(names) == 1]


def counts(comparison: Comparison) -> list[str]:
    """What the scores leave out or hold against a system, a line each."""
    names = comparison.names
    lines = []
    for row in comparison.rows:
        cells = row.cells.values()
        judged = any(cell.scored for cell in cells)
        found = {
            "unscored by the judge (in no Acc)": sum(c.unscored for c in cells),
            "never judged (in no Acc)": sum(c.unjudged for c in cells) if judged else 0,
            "failed for good (wrong in EM and F1)": sum(c.failed for c in cells),
        }
        said = [f"{count:,} {what}" for what, count in found.items() if count]
        lacking = [name for name in comparison.benchmarks if name not in row.cells]
        if lacking:
            said.append(f"none of {', '.join(lacking)}, so it has no average")
        if said:
            total = sum(cell.questions for cell in cells)
            name = f"{row.system.answering}, {names[row.system]}"
            lines.append(escaped(f"{name}: of {total:,} questions {'; '.join(said)}"))
    return ["\n".join(f"- {line}" for line in lines)] if lines else []
