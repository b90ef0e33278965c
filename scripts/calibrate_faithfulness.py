"""Count the right and wrong statements of gold facts that pass the house rule and the paper's rule."""

from evaluators.derivations import read_derivations
from safe_stepwise.errors import UserError
from scripts.cli import command, run
from studies.calibration import reading, report
from studies.calibration.passing import Calibration, calibrate, list_judges


@command
def main(options: reading.CalibrationOptions) -> str:
    """Write the calibration and return its page; raise ``UserError`` for a mistake of the user."""
    judges = list_judges(options.retrieval)
    derivations = read_derivations(options.derivations) if options.derivations else {}
    measured: list[Calibration] = []

    def add(name: str, group: reading.BenchmarkSources) -> None:
        if group.sources:
            measured.append(calibrate(name, group.sources, judges, options.seed, group.graph, group.left_out))

    for name, rows in reading.labelled_rows(options) if options.verified or options.questions else ():
        add(name, reading.select_questions(rows, derivations, options))
    if options.kb and options.kb_questions:
        add("metaqa", reading.select_films(options, options.kb, options.kb_questions))
    if not measured:
        raise UserError(
            "no question has a gold path: HotpotQA's need --derivations, those of other benchmarks "
            "their annotations, and labels that call them sound"
        )
    page = report.write(measured, options.seed, options.output)
    return f"{page}\nwritten: {', '.join(report.FILES)} in {options.output}"


if __name__ == "__main__":
    run(main)
