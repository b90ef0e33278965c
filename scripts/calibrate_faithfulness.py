"""How well the rules that judge reasoning chains tell true statements from seeded errors.

safe-stepwise calibrate_faithfulness --verified build/verified --output build/calibration
"""

import argparse
from collections.abc import Iterable, Sequence

from evaluators.derivations import read_derivations
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store import progress
from scripts.cli import COUNT, FILE, FOLDER, NAMES, SEED, Parser, command, run
from studies.calibration import report
from studies.calibration.cases import Case
from studies.calibration.distances import Distance
from studies.calibration.measuring import measure
from studies.calibration.reading import Benchmark, benchmark_of, distances_of, films_of, rows_of
from studies.calibration.tables import Measured, judges_of


def main(arguments: Sequence[str]) -> None:
    """Write the calibration and print its page; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    _check(options)
    judges = judges_of(options.retrieval or ["words"])
    derivations = read_derivations(options.derivations) if options.derivations else {}
    measured: list[Measured] = []
    distances: list[Distance] = []

    def add(name: str, found: Benchmark) -> None:
        if found.sources:
            parts = (options.seed, found.graph, found.left_out, _bar)
            measured.append(measure(name, found.sources, judges, judge_chain, *parts))

    for name, read in rows_of(options) if options.verified or options.questions else ():
        rows = list(read)
        add(name, benchmark_of(rows, derivations, options))
        if name == "hotpotqa" and derivations:
            distances = distances_of(rows, derivations)
    if options.kb:
        add("metaqa", films_of(options))
    if not measured:
        raise UserError(
            "no question has a gold path: HotpotQA's need --derivations, those of other benchmarks "
            "their annotations, and labels that call them sound"
        )
    print(report.write(measured, distances, options.seed, options.output), end="")
    print(f"\nwritten: {', '.join(report.FILES)} in {options.output}")


def _bar(cases: Iterable[Case], what: str, total: int) -> Iterable[Case]:
    return progress.bar(cases, desc=what, total=total, unit="chain", delay=1)


def _check(options: argparse.Namespace) -> None:
    if options.verified and options.questions:
        raise UserError("--verified and --questions are two ways to name questions: give one")
    if not (options.verified or options.questions or options.kb):
        raise UserError("nothing to calibrate on; give --verified, --questions or --kb; see --help")
    if bool(options.kb) != bool(options.kb_questions):
        raise UserError("--kb and --kb-questions go together: give both, or neither")
    for name in options.retrieval:
        one_of(name, RETRIEVALS, "--retrieval")


def _parser() -> Parser:
    parser = command(
        "calibrate_faithfulness",
        "State gold facts rightly and wrongly, and see what passes the house rule and the paper's.",
    )
    add = parser.add_argument
    add("--verified", **FOLDER, help="an --output of build_verified: its sound questions")
    rows = "or rows of a benchmark, labelled by their annotations as they are read; repeatable"
    add("--questions", **NAMES, metavar="FILE", help=rows)
    add("--benchmark", **NAMES, metavar="B", help="of --questions; default all; repeatable")
    add("--derivations", **FILE, help="R4C's, which give HotpotQA's questions their gold paths")
    add("--kb", **FILE, help="MetaQA's knowledge base, head|relation|tail a line, plain or .gz")
    add("--kb-questions", **FILE, help="MetaQA's questions: id, hop, question, answers a line")
    known = ", ".join(RETRIEVALS)
    how = f"how the paper's rule finds triples: {known} (default words); repeatable"
    add("--retrieval", **NAMES, metavar="R", help=how)
    add("--seed", **SEED, help="of the errors (default 0)")
    add("--rows", **COUNT, help="questions a benchmark, drawn by the seed (default all)")
    add("--output", **FOLDER, required=True, help="calibration.json, .md and curve.svg go here")
    return parser


if __name__ == "__main__":
    run(main)
