"""Run methods and their players over questions, and score their answers.

    safe-stepwise evaluate_stepwise --questions build/verified --method no_verification \\
        --method safe --generator SPEC --verifier SPEC --judge SPEC --output build/results
"""

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from builders.benchmarks import BENCHMARKS
from evaluators.comparison import published, report
from evaluators.derivations import read_derivations
from evaluators.faithfulness import command as faithfulness
from evaluators.faithfulness.tables import FILES as PAGES
from evaluators.prompting import predictions
from evaluators.run.command import carry_out
from evaluators.run.options import SHOWN, Options
from evaluators.run.truth import TRUTH
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.methods.running import AT_ONCE
from safe_stepwise.methods.scene import JUDGE
from safe_stepwise.open import Opener
from safe_stepwise.store import locks
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import JOURNAL, QUESTIONS, REJECTS, REPORT, RESULTS, TRAJECTORIES
from scripts.cli import COUNT, FOLDER, Parser, add_published, add_teacher_options, command, run, warn
from scripts.loop_options import add_loop_options, add_prompting_options
from scripts.question_options import add_question_options, keep_rejects, questions_of
from scripts.role_options import add_role_options, roles_of

ROLES = (*roles_of(name for method in METHODS.values() for name in method.prompts), JUDGE)


def main(arguments: Sequence[str]) -> None:
    """Evaluate and print a summary; raises ``UserError`` for what the user can mend."""
    print(evaluated(Options(**vars(_parser().parse_args(arguments)))))


def evaluated(options: Options) -> str:
    """Evaluate; returns the summary, and raises as `main` does."""
    options.check()
    for note in options.faultless:
        warn(note)
    printed = published.chosen(options.published)
    asked = questions_of(options)
    notes = {
        "source": asked.source,
        "source_sha256": asked.digest,
        "split": asked.split,
        "skipped": len(asked.skipped),
    }
    people = read_derivations(options.derivations) if options.derivations else {}
    if options.derivations:
        notes["derivations"] = sha256_of(options.derivations)
    file = options.cache or default_cache()
    corpus = Corpus.open(options.corpus, file.parent / "corpora") if options.corpus else None
    owned = (
        *(JOURNAL, TRAJECTORIES, QUESTIONS, RESULTS, REJECTS, TRUTH, predictions.FOLDER),
        *faithfulness.OWNED,
        *((*report.FILES, *PAGES) if options.report else [REPORT]),
    )
    with locks.exclusive(options.output, owned=owned), closing(ResponseCache(file)) as cache:
        keep_rejects(options, asked)
        plan = options.plan(asked.questions, Opener(options.timeout), corpus, cache, notes)
        scoring = {name: benchmark.SCORING for name, benchmark in BENCHMARKS.items()}
        return carry_out(
            replace(plan, scoring=scoring, derivations=people),
            lambda outcomes, at: report.write(outcomes, at, options.seed, printed).results,
            partial(faithfulness.as_it_ends, judge_chain),
            warn,
        )


def _parser() -> Parser:
    parser = command("evaluate_stepwise", (__doc__ or "").partition("\n")[0])
    parser.argument_default = argparse.SUPPRESS  # the defaults are those of `Options`
    add = parser.add_argument
    add("--questions", required=True, metavar="DIR|FILE|HUB-ID@REV", help="see below")
    add("--output", **FOLDER, required=True, help=f"for {TRAJECTORIES}, {RESULTS}")
    methods = f"{', '.join(METHODS)}; may be repeated"
    add("--method", action="append", required=True, metavar="M", help=methods)
    add("--generator", action="append", metavar="SPEC", help="writes the steps; may be repeated")
    judges = "judges them, where the method has one; may be repeated"
    add("--verifier", action="append", metavar="SPEC", help=judges)
    add("--player", action="append", metavar="ROLE=SPEC", help="plays a method's other role")
    add("--judge", metavar="SPEC", help="says whether an answer means the reference (Acc)")
    add_question_options(parser)
    add_loop_options(parser)
    add_prompting_options(parser)
    how = parser.add_argument_group("how")
    add = how.add_argument
    add("--judge-repeats", **COUNT, help="verdicts an answer (default 1)")
    add("--judge-all", action="store_true", help="also ask about exact matches")
    add("--seed", type=int, metavar="N", help="of the bootstrap, and of passages drawn (default 0)")
    add_published(parser)
    add("--at-once", **COUNT, help=f"questions under way (default {AT_ONCE})")
    add_role_options(add_teacher_options(parser), ROLES, SHOWN)
    return parser


if __name__ == "__main__":
    run(main)
