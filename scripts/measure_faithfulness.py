"""Measure how many correct answers of an evaluation also rest on sound reasoning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from builders.verified.evaluation_questions import read
from builders.work.executors import run_in_order
from evaluators.faithfulness import judged_outcomes, measuring
from evaluators.faithfulness.command import measure_folder
from evaluators.faithfulness.measuring import Options as Judging
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.commands.values import Count, Share
from safe_stepwise.errors import UserError
from safe_stepwise.records import QuestionSet
from scripts.cli import command, cores, run


@dataclass(frozen=True, kw_only=True)
class Options:
    results: Path
    rule: Literal["paper", "house", "both"] = "both"
    retrieval: Literal["words", "embeddings"] = "words"
    sigma: Share | None = None
    kb: Path | None = None
    questions: str | None = None
    workers: Count = field(default_factory=cores)


@command
def main(options: Options) -> str:
    """Measure faithfulness and return a summary; raise ``UserError`` for a mistake of the user."""
    RETRIEVALS[options.retrieval]([""], [""])  # raises now if its extra is not installed
    rules = judged_outcomes.RULES if options.rule == "both" else (options.rule,)
    plan = Judging(
        rules,
        options.retrieval,
        options.sigma,
        measuring.read_knowledge(options.kb) if options.kb else None,
        partial(run_in_order, workers=options.workers, is_cpu_bound=True),
    )
    source = partial(_read_source, options.questions) if options.questions else None
    return measure_folder(options.results, plan, source)


def _read_source(questions: str, settings: Mapping[str, Any]) -> QuestionSet:
    """Read the questions of an evaluation with these settings, and their evidence."""
    benchmarks, split = settings.get("questions"), settings.get("split")
    if not isinstance(benchmarks, Mapping) or not isinstance(split, str | None):
        raise UserError("results.json does not say what was asked; run the evaluation again")
    is_whole = settings.get("passages") == "all"
    return read(questions, [*benchmarks], split, None, skip=True, all_passages=is_whole)


if __name__ == "__main__":
    run(main)
