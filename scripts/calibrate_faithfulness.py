"""Count right and wrong statements of gold facts that our rule of faithfulness ("house") and the paper's let pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from builders.benchmarks import BENCHMARKS
from evaluators.derivations import read_derivations
from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.commands.values import Count, Name
from safe_stepwise.errors import UserError
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store import files, tables
from scripts.cli import command, run
from studies import calibration
from studies.calibration.passing import calibrate
from studies.calibration.reading import BenchmarkSources, labelled_rows, select_metaqa_questions, select_questions

FILES = ("calibration.json", "calibration.md")


@dataclass(frozen=True, kw_only=True)
class Options:
    verified: Path | None = None
    questions: Sequence[str] = ()
    benchmark: Sequence[Annotated[str, Name([*BENCHMARKS, CUSTOM])]] = ()
    derivations: Path | None = None
    retrieval: Sequence[Annotated[str, Name(RETRIEVALS)]] = ("words",)
    output: Path
    kb: Path | None = None
    kb_questions: Path | None = None
    seed: int = 0
    rows: Count | None = None

    def __post_init__(self) -> None:
        if self.verified and self.questions:
            raise UserError("--verified and --questions are two ways to name questions: give one")
        if not (self.verified or self.questions or self.kb):
            raise UserError("nothing to calibrate on; give --verified, --questions or --kb; see --help")
        if bool(self.kb) != bool(self.kb_questions):
            raise UserError("--kb and --kb-questions go together: give both, or neither")


@command
def main(options: Options) -> str:
    """Write the calibration and return its page; raise ``UserError`` for a mistake of the user."""
    derivations = read_derivations(options.derivations) if options.derivations else {}
    measured: dict[str, Any] = {}

    def measure(name: str, group: BenchmarkSources) -> None:
        if group.sources:
            retrievals, seed = options.retrieval, options.seed
            measured[name] = calibrate(name, group.sources, retrievals, seed, group.graph, group.left_out)

    for name, rows in labelled_rows(options.verified, options.questions, options.benchmark):
        measure(name, select_questions(rows, derivations, options.seed, options.rows))
    if options.kb and options.kb_questions:
        measure("metaqa", select_metaqa_questions(options.kb, options.kb_questions, options.seed, options.rows))
    if not measured:
        raise UserError(
            "no question has a gold path: HotpotQA's need --derivations, those of other benchmarks "
            "their annotations, and labels that call them sound"
        )
    templates = Path(calibration.__path__[0]) / "templates"
    words = {"seed": options.seed, "sigma": SIGMA, "share": tables.decimal(3)}
    page = tables.fill(templates, "calibration.md.jinja", benchmarks=measured, **words)
    numbers = {"seed": options.seed, "paper_sigma": SIGMA, "benchmarks": measured}
    files.write_files(options.output, FILES, {FILES[0]: files.json_bytes(numbers), FILES[1]: page.encode()})
    return f"{page}\nwritten: {', '.join(FILES)} in {options.output}"


if __name__ == "__main__":
    run(main)
