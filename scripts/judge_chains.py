"""Hold the rules that judge reasoning chains against two readers' labels of written chains.

safe-stepwise judge_chains --verified build/verified --chains chains.jsonl \
    --labels reader1.jsonl --labels reader2.jsonl --who "…" --output build/judged
"""

from collections.abc import Sequence
from pathlib import Path

from evaluators.derivations import read_derivations
from safe_stepwise.checking.faithfulness.chains import Grounds
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.errors import UserError, one_of
from scripts.cli import FILE, FOLDER, NAMES, Parser, command, run
from studies.calibration import human
from studies.calibration.reading import rows_of
from studies.calibration.sources import of_question
from studies.calibration.tables import judges_of
from studies.calibration.written import Written, read_chains, read_labels


def main(arguments: Sequence[str]) -> None:
    """Write and print the results; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    if bool(options.verified) == bool(options.questions):
        raise UserError("give the chains' questions: --verified DIR, or --questions FILE")
    if len(options.labels) != 2:
        raise UserError(f"--labels: {len(options.labels)} given; two readers label the chains")
    retrievals = [one_of(r, RETRIEVALS, "--retrieval") for r in options.retrieval or ["words"]]
    chains = read_chains(options.chains)
    one, other = (read_labels(file, chains) for file in options.labels)
    derivations = read_derivations(options.derivations) if options.derivations else {}
    wanted = {(chain.benchmark, chain.question_id) for chain in chains}
    known: dict[tuple[str, str], Grounds] = {}
    for benchmark, rows in rows_of(options):
        for question, label in rows:
            if (key := (benchmark, question.id)) in wanted:
                given = derivations.get(question.id, ()) if benchmark == "hotpotqa" else ()
                if source := of_question(question, label.knowledge_graph, given):
                    known[key] = source.grounds
    grounds = {chain.id: _of(chain, known, options.chains) for chain in chains}
    verdicts = human.judged(judges_of(retrievals), chains, grounds)
    found = human.results(chains, (one, other), verdicts, options.who)
    print(human.write(found, options.output), end="")
    print(f"\nwritten: {', '.join(human.FILES)} in {options.output}")


def _of(chain: Written, known: dict[tuple[str, str], Grounds], file: Path) -> Grounds:
    key = (chain.benchmark, chain.question_id)
    if key not in known:
        raise UserError(
            f"{file}: chain {chain.id!r}: no {chain.benchmark} question {chain.question_id!r} with "
            "a gold path is given; HotpotQA's need --derivations"
        )
    return known[key]


def _parser() -> Parser:
    parser = command("judge_chains", "Score the house rule and the paper's on chains that two readers labelled.")
    add = parser.add_argument
    add("--verified", **FOLDER, help="an --output of build_verified that holds the questions")
    add("--questions", **NAMES, metavar="FILE", help="or rows of a benchmark; repeatable")
    add("--benchmark", **NAMES, metavar="B", help="of --questions; default all; repeatable")
    add("--derivations", **FILE, help="R4C's, which give HotpotQA's questions their gold paths")
    add("--chains", **FILE, required=True, help="id, benchmark, question_id, steps, answer a line")
    label = "a reader's: id, label (faithful or unfaithful), first_bad if a step is; give two"
    add("--labels", **FILE, action="append", default=[], help=label)
    add("--who", required=True, metavar="TEXT", help="who wrote the chains, and who labelled them")
    known = ", ".join(RETRIEVALS)
    how = f"how the paper's rule finds triples: {known} (default words); repeatable"
    add("--retrieval", **NAMES, metavar="R", help=how)
    add("--output", **FOLDER, required=True, help="results.json and results.md go here")
    return parser


if __name__ == "__main__":
    run(main)
