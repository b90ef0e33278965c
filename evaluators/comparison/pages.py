"""The report's pages of Markdown."""

from collections.abc import Iterable, Sequence

from evaluators.comparison import cost_tables, score_tables
from evaluators.comparison.failures import Failures, failure_table
from evaluators.comparison.published import lines as published_lines
from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import EVERY, System, common_options, values_by_name
from evaluators.comparison.tables import escaped, mark, markdown
from safe_stepwise.store.published_tables import PublishedScore

_SIMULATED = (
    "> **Simulated.** An engine without a model took part in the rows so marked: they show that "
    "the loop works, and nothing about how well a model reasons."
)


def comparison_text(comparison: Comparison, published: Sequence[PublishedScore]) -> str:
    """``comparison.md``."""
    marked = mark(comparison.simulated)
    systems = [row.system for row in comparison.rows]
    options = common_options(systems)
    about = [*_players(systems), *([f"{options}."] if options else [])]
    count = len(comparison.benchmarks)
    about.append(
        f"Percentages; {count} benchmarks and their mean."
        if count > 1
        else "Percentages; of one benchmark, which is the average."
    )
    return page(
        "Comparison",
        comparison,
        " ".join(about),
        markdown(score_tables.score_table(comparison, published)),
        MARGINS,
        *_totals(comparison),
        *_published(comparison, published),
        *_counts(comparison),
        f"## 95% confidence intervals{marked}",
        markdown(score_tables.interval_table(comparison)),
        f"## Paired tests{marked}",
        markdown(score_tables.difference_table(comparison)),
        tests_text(comparison),
    )


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


def _totals(comparison: Comparison) -> list[str]:
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


def _published(comparison: Comparison, published: Sequence[PublishedScore]) -> list[str]:
    if not published:
        return []
    if not published_lines(published, comparison.benchmarks):
        return ["The papers print nothing on these benchmarks, so that no published row is shown."]
    return [
        "Published rows are as printed: of other samples of questions, another judge and other "
        "verifiers, so that they are in no difference and no test. IRCoT and TRACE are as the "
        "papers took them from TRACE's own."
    ]


def page(title: str, comparison: Comparison, *parts: str) -> str:
    """A page of Markdown, which says at its top what is simulated."""
    marks = [_SIMULATED] if comparison.simulated else []
    return "\n\n".join([f"# {title}{mark(comparison.simulated)}", *marks, *parts]) + "\n"


def _players(systems: Iterable[System]) -> list[str]:
    """Who plays the other roles of a method, where that is one and the same for all."""
    known = values_by_name((f"{s.title}'s {r}", name) for s in systems for r, name in s.players[1:])
    return [escaped(f"{who}: {names[0]}.") for who, names in known.items() if len(names) == 1]


def _counts(comparison: Comparison) -> list[str]:
    """What the scores leave out or hold against a system, a line each."""
    names = comparison.names
    lines = []
    for row in comparison.rows:
        cells = row.cells.values()
        judged = any(cell.scored for cell in cells)
        counts = {
            "unscored by the judge (in no Acc)": sum(c.unscored for c in cells),
            "never judged (in no Acc)": sum(c.unjudged for c in cells) if judged else 0,
            "failed for good (wrong in EM and F1)": sum(c.failed for c in cells),
        }
        said = [f"{count:,} {what}" for what, count in counts.items() if count]
        lacking = [name for name in comparison.benchmarks if name not in row.cells]
        if lacking:
            said.append(f"none of {', '.join(lacking)}, so it has no average")
        if said:
            total = sum(cell.questions for cell in cells)
            name = f"{row.system.answering}, {names[row.system]}"
            lines.append(escaped(f"{name}: of {total:,} questions {'; '.join(said)}"))
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def cost_text(comparison: Comparison, papers: Iterable[str]) -> str:
    """``cost.md``; ``papers`` are those whose tokens stand below."""
    counted = (
        " Players without a model count no tokens: theirs are the words and the punctuation that a "
        "model would be sent, under a prefix cache in blocks of 16 for each question."
    )
    printed = cost_tables.published_table(papers)
    return page(
        "Cost",
        comparison,
        "Tokens as the engines reported them; computed are the prompt tokens that no prefix cache "
        "held. Replies that the response cache gave count with what they cost at first. The judge "
        "is not in it." + (counted if comparison.simulated else ""),
        markdown(cost_tables.cost_table(comparison)),
        *([markdown(printed)] if len(printed) > 1 else []),
        f"## How questions ended{mark(comparison.simulated)}",
        markdown(cost_tables.ending_table(comparison)),
    )


def failure_text(comparison: Comparison, found: Sequence[Failures], papers: Iterable[str]) -> str:
    """``failures.md``."""
    return page(
        "Failures",
        comparison,
        "What a verifier found wrong with steps, by category, over all who answered.",
        markdown(failure_table(found, papers)),
    )
