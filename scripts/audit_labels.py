"""Have people judge a sample of labels, or of verifier steps, and score what they say.

safe-stepwise audit_labels sample --of labels --input build/verified --output audit.html
safe-stepwise audit_labels score ann.jsonl bob.jsonl --output audit-labels.json
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cards.pages import WORDS
from evaluators.audit import judgements, page, report
from evaluators.audit.sample import Sample, draw
from evaluators.audit.score import score
from safe_stepwise.store.names import AUDITED, LABELS
from safe_stepwise.store.tables import table
from safe_stepwise.taxonomy import TAXONOMY
from scripts.cli import COUNT, FILE, FOLDER, SEED, Parser, command, run

ROWS = 150
"""What the SAFE authors looked at (v1, section 5)."""


def main(arguments: Sequence[str]) -> None:
    """Write a page or score files; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    options.do(options)


def _sample(options: argparse.Namespace) -> None:
    sample = draw(options.input, options.of, options.rows, options.seed)
    page.write(sample, meanings(options.of), options.output)
    print(f"{_strata(sample)}\n\n{len(sample.rows):,} rows; open the page in a browser:")
    print(options.output)


def _score(options: argparse.Namespace) -> None:
    found = score(judgements.read(options.files))
    print(report.told(found))
    if options.output:
        report.write_scores(found, options.output)
        print(f"\n{options.output}")


def meanings(of: str) -> Mapping[str, str]:
    """What the labels mean that a reviewer looks at."""
    return WORDS["noise_types"] if of == LABELS else {entry.name: entry.definition for entry in TAXONOMY}


def _strata(sample: Sample) -> str:
    drawn = Counter(row.stratum for row in sample.rows)
    rows = [(", ".join(stratum), size, drawn[stratum]) for stratum, size in sample.sizes.items()]
    return table([("stratum", "rows", "drawn"), *rows])


def _parser() -> Parser:
    parser = command("audit_labels", (__doc__ or "").partition("\n")[0])
    todo = parser.add_subparsers(required=True, metavar="sample|score", parser_class=Parser)
    drawn = todo.add_parser("sample", help="draw rows and write the page to judge them on")
    drawn.set_defaults(do=_sample)
    add = drawn.add_argument
    add("--of", choices=AUDITED, required=True, help="what to judge")
    built = "the --output of build_verified, build_verifier_steps or regenerate"
    add("--input", **FOLDER, required=True, help=built)
    add("--rows", **COUNT, default=ROWS, help=f"rows to judge (default {ROWS})")
    add("--seed", **SEED, help="another draws other rows (default 0)")
    add("--output", **FILE, required=True, help="the page (HTML)")
    scored = todo.add_parser("score", help="score what the page exported")
    scored.set_defaults(do=_score)
    scored.add_argument("files", nargs="+", type=Path, metavar="FILE", help="exports (JSONL)")
    scored.add_argument("--output", **FILE, help="write the scores here (JSON), for a release")
    return parser


if __name__ == "__main__":
    run(main)
