"""Score our rule and that of arXiv 2402.11199 on chains that two people labelled."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.derivations import read_derivations
from safe_stepwise.checking.faithfulness.grounds import Grounds
from safe_stepwise.errors import UserError
from scripts.cli import command, run
from studies.calibration import human
from studies.calibration.reading import QuestionOptions, labelled_rows
from studies.calibration.sources import question_source
from studies.calibration.tables import list_judges


@dataclass(frozen=True, kw_only=True)
class Options(QuestionOptions):
    """The chains, the labels of two people, and the questions with their evidence."""

    chains: Path
    labels: Sequence[Path] = ()
    provenance: str
    """Who wrote the chains, and who labelled them: a text for the results."""

    def __post_init__(self) -> None:
        if bool(self.verified) == bool(self.questions):
            raise UserError("give the chains' questions: --verified DIR, or --questions FILE")
        if len(self.labels) != 2:
            raise UserError(f"--labels: {len(self.labels)} given; two readers label the chains")


@command
def main(options: Options) -> str:
    """Judge the chains, write the results, and return their page; raise ``UserError`` for a mistake of the user."""
    chains = human.read_chains(options.chains)
    labels_1, labels_2 = (human.read_labels(file, chains) for file in options.labels)
    derivations = read_derivations(options.derivations) if options.derivations else {}
    keys = {(chain.benchmark, chain.question_id) for chain in chains}
    grounds_by_key: dict[tuple[str, str], Grounds] = {}
    for benchmark, rows in labelled_rows(options):
        for question, label in rows:
            if (key := (benchmark, question.id)) in keys:
                gold = derivations.get(question.id, ()) if benchmark == "hotpotqa" else ()
                if source := question_source(question, label.knowledge_graph, gold):
                    grounds_by_key[key] = source.grounds
    grounds = {chain.id: _grounds_of(chain, grounds_by_key, options.chains) for chain in chains}
    verdicts = human.judge_chains(list_judges(options.retrieval), chains, grounds)
    results = human.compare_with_readers(chains, (labels_1, labels_2), verdicts, options.provenance)
    page = human.write_results(results, options.output)
    return f"{page}\nwritten: {', '.join(human.FILES)} in {options.output}"


def _grounds_of(chain: human.WrittenChain, grounds_by_key: dict[tuple[str, str], Grounds], file: Path) -> Grounds:
    key = (chain.benchmark, chain.question_id)
    if key not in grounds_by_key:
        raise UserError(
            f"{file}: chain {chain.id!r}: no {chain.benchmark} question {chain.question_id!r} with "
            "a gold path is given; HotpotQA's need --derivations"
        )
    return grounds_by_key[key]


if __name__ == "__main__":
    run(main)
