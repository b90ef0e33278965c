"""Print articles of the synthetic world's writers, or score the labels of their rows."""

from dataclasses import dataclass
from pathlib import Path

from builders.synthetic import Spec
from builders.synthetic.writers import names, writer
from safe_stepwise.commands.values import Count, Share
from safe_stepwise.records import canonical_json
from safe_stepwise.store import files, tables
from scripts.cli import command, run
from studies import writers


@dataclass(frozen=True, kw_only=True)
class Options:
    writer: str | None = None
    samples: Count | None = None
    rows: Count = 3_000
    noise: Share = 0.3
    seed: int = 0
    misread: Path | None = None


@command
def main(options: Options) -> str:
    """Render articles or the scores of labels; raise ``UserError`` for a mistake of the user."""
    writer_names = [writer(options.writer).name] if options.writer else names()
    specs = [Spec(options.rows, options.seed, options.noise, name) for name in writer_names]
    if options.samples:
        return "\n\n".join(text for spec in specs for text in writers.list_articles(spec, options.samples))
    rows, misread = writers.score_writers(specs)
    scores = tables.text_table([writers.HEADER, *rows])
    if not options.misread:
        return scores
    with files.report_unwritable(options.misread):
        files.write_lines(options.misread, map(canonical_json, misread))
    return f"{scores}\n{len(misread)} rows in {options.misread}"


if __name__ == "__main__":
    run(main)
