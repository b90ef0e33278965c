"""Read what the synthetic world's writers write, or see how well their rows are labelled.

safe-stepwise try_writers                                    # scores by writer
safe-stepwise try_writers --writer dense --samples 20        # articles to read
"""

from collections.abc import Sequence

from builders.synthetic import Spec
from builders.synthetic.writers import names, writer
from safe_stepwise.records import canonical_json
from safe_stepwise.store.files import named_by_user, write_lines
from safe_stepwise.store.tables import table
from scripts.cli import COUNT, FILE, SEED, command, run, share
from studies import writers


def main(arguments: Sequence[str]) -> None:
    """Print the articles or the scores; raises ``UserError`` for what the user can mend."""
    parser = command("try_writers", "Read the synthetic world's writers, or score their labels.")
    add = parser.add_argument
    add("--writer", metavar="NAME", help="only this one (default: each)")
    add("--samples", **COUNT, help="print so many gold articles of each instead")
    add("--rows", **COUNT, default=3_000, help="rows of each (default 3,000)")
    add("--noise", type=share, default=0.3, metavar="RATE", help="share of noise (default 0.3)")
    add("--seed", **SEED, help="of the rows (default 0)")
    add("--misread", **FILE, help="write the rows here whose label is not the truth, as JSONL")
    options = parser.parse_args(arguments)
    chosen = [writer(options.writer).name] if options.writer else names()
    specs = [Spec(options.rows, options.seed, options.noise, name) for name in chosen]
    if options.samples:
        print("\n\n".join(text for spec in specs for text in writers.articles(spec, options.samples)))
        return
    rows, misread = writers.scores(specs)
    print(table([writers.HEADER, *rows]))
    if options.misread:
        with named_by_user(options.misread):
            write_lines(options.misread, map(canonical_json, misread))
        print(f"{len(misread)} rows in {options.misread}")


if __name__ == "__main__":
    run(main)
