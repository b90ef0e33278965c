"""Say of an evaluation's right answers whether the reasoning behind them was right, too.

safe-stepwise measure_faithfulness build/results
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from builders.verified.evaluation_questions import read
from builders.work.workers import in_order
from evaluators.faithfulness.command import Plan, Source, measure_folder
from evaluators.faithfulness.knowledge import read_knowledge
from evaluators.faithfulness.lines import RULES, Options
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import FAITHFULNESS
from scripts.cli import COUNT, FILE, FOLDER, Parser, command, cores, run, share


def main(arguments: Sequence[str]) -> None:
    """Measure and print a summary; raises ``UserError`` for what the user can mend."""
    given = _parser().parse_args(arguments)
    rules = RULES if given.rule == "both" else (given.rule,)
    RETRIEVALS[given.retrieval]([""], [""])  # an extra that is not installed is told now
    plan = Plan(
        Options(rules, given.retrieval, given.sigma),
        read_knowledge(given.kb) if given.kb else None,
        partial(in_order, workers=given.workers, own_processes=True),
    )
    source = partial(_source, given.questions) if given.questions else None
    print(measure_folder(judge_chain, given.results, plan, source))


def _source(questions: str, settings: Mapping[str, Any]) -> Source:
    """The questions that an evaluation of these settings was given, with their evidence."""
    asked, split = settings.get("questions"), settings.get("split")
    if not isinstance(asked, Mapping) or not isinstance(split, str | None):
        raise UserError("results.json does not say what was asked; run the evaluation again")
    is_whole = settings.get("passages") == "all"
    found = read(questions, [*asked], split, None, skip=True, whole=is_whole)
    known = {(question.benchmark, question.id): question for question in found.questions}
    return Source(found.source, found.digest, known)


def _parser() -> Parser:
    parser = command("measure_faithfulness", (__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("results", **FOLDER, help=f"--output of evaluate_stepwise; gets {FAITHFULNESS}")
    rules = "whose rule judges a chain (default both)"
    add("--rule", choices=("paper", "house", "both"), default="both", help=rules)
    chosen = "how the paper's rule finds a step's triple (default words)"
    add("--retrieval", choices=[*RETRIEVALS], default="words", help=chosen)
    add("--sigma", type=share, metavar="X", help="least score of a triple found (default 0.7)")
    add("--kb", **FILE, help="an external graph beside the evidence: head|relation|tail a line")
    older = "with their evidence, where the evaluation kept none"
    add("--questions", metavar="DIR|FILE|HUB-ID@REV", help=older)
    add("--workers", **COUNT, default=cores(), help="processes (default: all cores)")
    return parser


if __name__ == "__main__":
    run(main)
