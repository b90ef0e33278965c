"""State gold facts rightly and wrongly, and see what passes the house rule and the paper's."""

from evaluators.derivations import read_derivations
from safe_stepwise.errors import UserError
from scripts.cli import command, run
from studies.calibration import report
from studies.calibration.passing import measure
from studies.calibration.reading import Benchmark, CalibrationOptions, benchmark_of, distances_of, films_of, rows_of
from studies.calibration.tables import Distance, Measured, judges_of


@command
def main(options: CalibrationOptions) -> str:
    """Write the calibration; returns its page, and raises ``UserError`` for what the user can mend."""
    judges = judges_of(options.retrieval)
    derivations = read_derivations(options.derivations) if options.derivations else {}
    measured: list[Measured] = []
    distances: list[Distance] = []

    def add(name: str, found: Benchmark) -> None:
        if found.sources:
            measured.append(measure(name, found.sources, judges, options.seed, found.graph, found.left_out))

    for name, read in rows_of(options) if options.verified or options.questions else ():
        rows = list(read)
        add(name, benchmark_of(rows, derivations, options))
        if name == "hotpotqa" and derivations:
            distances = distances_of(rows, derivations)
    if options.kb and options.kb_questions:
        add("metaqa", films_of(options, options.kb, options.kb_questions))
    if not measured:
        raise UserError(
            "no question has a gold path: HotpotQA's need --derivations, those of other benchmarks "
            "their annotations, and labels that call them sound"
        )
    page = report.write(measured, distances, options.seed, options.output)
    return f"{page}\nwritten: {', '.join(report.FILES)} in {options.output}"


if __name__ == "__main__":
    run(main)
