"""Have people judge a sample of labels or of verifier steps, and score their judgements."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cards.pages import WORDS
from evaluators.audit import report
from evaluators.audit.rows import draw
from evaluators.audit.score import read, score
from safe_stepwise.commands.command import group
from safe_stepwise.commands.values import Count
from safe_stepwise.store import page, tables
from safe_stepwise.store.names import LABELS, Audited
from safe_stepwise.taxonomy import TAXONOMY
from scripts.cli import command, run

ROWS = 150
"""The rows that the SAFE authors judged (v1, section 5)."""


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    kind: Audited
    input: Path
    rows: Count = ROWS
    seed: int = 0
    output: Path


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    files: Sequence[Path]
    output: Path | None = None


def sample(options: SampleOptions) -> str:
    """Draw rows and write the page to judge them on."""
    selection = draw(options.input, options.kind, options.rows, options.seed)
    error_types = {entry.name: entry.definition for entry in TAXONOMY}
    meanings = WORDS["noise_types"] if options.kind == LABELS else error_types
    page.write_page(options.output, report.render_sample(selection, meanings))
    counts = Counter(row.stratum for row in selection.rows)
    rows = [(", ".join(stratum), size, counts[stratum]) for stratum, size in selection.sizes.items()]
    table = tables.text_table([("stratum", "rows", "drawn"), *rows])
    return f"{table}\n\n{len(selection.rows):,} rows; open the page in a browser:\n{options.output}"


def score_files(options: ScoreOptions) -> str:
    """Score what the page exported."""
    if options.output:
        page.check_output(options.output, *options.files)
    scores = score(read(options.files))
    text = report.render_scores(scores)
    if options.output:
        report.write_scores(scores, options.output)
        text += f"\n\n{options.output}"
    return text


main = group("audit_labels", command(sample, "audit_labels sample"), command(score_files, "audit_labels score"))

if __name__ == "__main__":
    run(main)
