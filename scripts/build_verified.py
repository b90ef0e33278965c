"""Verify a multi-hop QA benchmark against its own gold passages."""

from collections import ChainMap
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from builders.benchmarks import BENCHMARKS, custom, sources
from builders.verified import questions
from builders.verified.build import build, summary
from builders.verified.collect import Build
from builders.verified.estimate import estimate_table
from builders.verified.teachers.adjudicating import ADJUDICATE
from builders.verified.teachers.choice import client_of, resolve_teacher, spending
from builders.verified.teachers.llm import EXTRACT, PATH, PROMPTS
from builders.work import executors, plans
from cards.datasets import CARDS
from safe_stepwise.commands.options import copy_into, is_set
from safe_stepwise.commands.values import COUNT, Count, Name, Price, Share
from safe_stepwise.errors import UserError
from safe_stepwise.scoring import CUSTOM
from scripts.cli import ModelOptions, command, cores, run

ROLES = [prompt.role for prompt in (*PROMPTS, ADJUDICATE)]


def verifiable_split(name: str) -> str:
    """Return ``train`` or ``validation`` for a spelling of it; raise ``UserError`` for another split."""
    split = sources.canonical_split(name)
    if split not in questions.SPLITS:
        raise UserError(f"--split {name}: only {' and '.join(questions.SPLITS)} have the gold annotations")
    return split


def passages_limit(text: str) -> int | None:
    """Return the number of passages of a question in the sample, None for ``auto``; raise ``BadParameter``."""
    return None if text == "auto" else COUNT.convert(text, None, None)


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions, plans.Plan, custom.Terms):  # the options of every build (`Plan`) are also this command's
    benchmark: Annotated[str, Name(ChainMap({CUSTOM: None}, BENCHMARKS))]
    source: str
    split: Annotated[str, verifiable_split]
    teacher: str
    min_confidence: Share = 0.0
    adjudicate: str | None = None
    published: Path | None = None
    evaluation_size: Count = questions.EVALUATION_SIZE
    evaluation_passages: Annotated[int | None, passages_limit] = questions.PASSAGES
    estimate: bool = False
    price_prompt: Price | None = None
    price_completion: Price | None = None


def describe_own_benchmark(options: Options) -> dict[str, Any]:
    """Return the fields of a `Build` that describe a benchmark of the user's own; {} for another benchmark."""
    if options.benchmark == CUSTOM:
        own_benchmark = custom.describe(options.source, options.split, options)
        print(own_benchmark.render_columns(), flush=True)
        return {"benchmark": own_benchmark.name, "own_benchmark": own_benchmark}
    if names := [term.name for term in fields(custom.Terms) if is_set(getattr(options, term.name))]:
        raise UserError(f"--{names[0]}: describes a benchmark of your own; give it with --benchmark {CUSTOM}")
    return {}


def build_verified(options: Options) -> None:
    """Build, or estimate the costs, and print a summary; raise ``UserError`` for a mistake of the user."""
    model_options = (options.cache, options.in_flight, options.timeout)
    teachers = resolve_teacher(
        options.teacher, *model_options, allowance=options.allowance, lists=Path(), adjudicator=options.adjudicate
    )
    plan = copy_into(Build, options, teacher=teachers, **describe_own_benchmark(options))
    try:
        if options.estimate:
            print(estimate_table(plan, options.price_prompt, options.price_completion))
            return
        teachers.check()
        print(summary(plan, build(plan, CARDS)))
        print(spending(client_of(teachers)))
    except executors.Submitted as message:
        print(message)
    finally:
        teachers.close()


main = command(build_verified, roles=ROLES, example_roles=[EXTRACT.role, PATH.role], workers=cores())

if __name__ == "__main__":
    run(main)
