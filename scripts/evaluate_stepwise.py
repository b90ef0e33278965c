"""Run generators through the loop, method by method, and score their answers.

    python -m scripts.evaluate_stepwise --questions build/verified --method no_verification \\
        --method safe --generator SPEC --verifier SPEC --judge SPEC --output build/results
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import CUSTOM, TEST, Questions, read, without_last_gold
from builders.work import folders
from evaluators.comparison import report
from evaluators.run.evaluation import Evaluation, Progress, Run, Setting, evaluate
from evaluators.run.outcomes import REPORT, RESULTS, TRAJECTORIES
from evaluators.run.results import ALL, AVERAGE, MEASURES, finish, settings_of, write
from safe_stepwise.engines.base import Engine
from safe_stepwise.engines.cache import ResponseCache
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.methods.generator import FEEDBACK_FORMS
from safe_stepwise.methods.loop import DEFAULT, METHODS, Limits, Method
from safe_stepwise.methods.running import AT_ONCE
from safe_stepwise.metric.judge import Judge
from safe_stepwise.open import open_engine
from safe_stepwise.store.progress import telling
from scripts.cli import Parser, one_of, positive, run, table, warn
from scripts.teacher import add_teacher_options, default_cache

EXAMPLES = """
examples:
  # no model: generator and verifier play their parts, the generator wrong in 3 of 10 steps
  python -m scripts.evaluate_stepwise --questions build/demo --limit 100 \\
      --method no_verification --method self_verification --method safe \\
      --generator symbolic:error_rate=0.3,seed=1 --verifier symbolic --output build/results

  # two generators, a trained verifier and a judge, each behind an OpenAI-compatible server
  python -m scripts.evaluate_stepwise --questions build/verified \\
      --method no_verification --method self_verification --method safe \\
      --generator openai:Qwen/Qwen3-8B@http://localhost:8000/v1 \\
      --generator openai:Qwen/Qwen3-14B@http://localhost:8001/v1 \\
      --verifier openai:safe-verifier@http://localhost:8002/v1 \\
      --judge openai:openai/gpt-oss-120b@http://localhost:8003/v1 --output build/results

  # the published sample; a sweep over steps and retries
  python -m scripts.evaluate_stepwise --questions NAMESPACE/safe-verified-multihop@v1.0.0 \\
      --benchmark musique --method safe --generator SPEC --verifier SPEC \\
      --max-steps 2,4,6,8,10 --max-retries 0,1,3 --output build/sweep

  # incomplete evidence: a gold passage is dropped, and what the verifier asks for is searched
  python -m scripts.evaluate_stepwise --questions build/verified --benchmark 2wikimultihopqa \\
      --drop-gold --corpus corpus.jsonl --method safe --generator SPEC --verifier SPEC \\
      --output build/incomplete

--questions is the --output of build_verified (its evaluation sample), a file of a benchmark, a Hub
dataset at a revision, or your own questions, an object a line:
  {"question": "Where is Oru?", "answer": "Marn", "passages": [{"title": "Oru", "text": "..."}]}

A run that was stopped or killed goes on where it was when started again, and ends in the same
bytes; what failed is asked again by the same command. A run with other settings takes the place of
the one in --output, whose replies and trajectories are kept.

exit status: 0 done, 2 something to mend (one line says what), 130 interrupted, 1 a fault of ours
"""


def main(arguments: Sequence[str]) -> None:
    """Evaluate and print a summary; raises ``UserError`` for what the user can mend."""
    print(evaluated(arguments))


def evaluated(arguments: Sequence[str]) -> str:
    """Evaluate; returns the summary, and raises as `main` does."""
    options = _parser().parse_args(arguments)
    settings = Settings.read(options)
    cache_file = options.cache or default_cache()
    asked = questions(options)
    corpus = Corpus.open(options.corpus, cache_file.parent / "corpora") if options.corpus else None
    with folders.exclusive(options.output):
        cache = ResponseCache(cache_file)
        try:
            plan = _plan(options, settings, asked, corpus, cache)
            return _done(plan, options.seed)
        except OSError as error:
            if folders.is_disk_full(error) or folders.is_forbidden(error):
                raise folders.cannot_write(Path(error.filename or options.output), error) from error
            raise
        finally:
            cache.close()


def _done(plan: Evaluation, seed: int) -> str:
    """Run, write everything down, and say what came of it."""
    if earlier := _earlier(plan):
        warn(earlier)
    progress = Progress()
    with telling(
        "evaluation",
        "trajectory",
        len(plan.questions) * len(plan.settings),
        lambda: progress.done,
        lambda: progress.standing(plan.clients),
    ):
        runs = asyncio.run(evaluate(plan, progress))
    _refuse_nothing(plan, runs)
    results = write(plan, runs)
    outcomes = [outcome for run_ in runs for outcome in run_.outcomes]
    compared = report.write(outcomes, plan.output / REPORT, seed).results
    finish(plan, {**results, "comparison": compared})
    return summary(plan, results)


def questions(options: argparse.Namespace) -> Questions:
    """The questions that the options name."""
    names = [*BENCHMARKS, CUSTOM]
    benchmarks = [one_of(name, names, "--benchmark") for name in options.benchmark]
    found = read(
        options.questions,
        benchmarks,
        options.split,
        options.limit,
        options.seed,
        skip=options.on_error == "skip",
    )
    if found.skipped:
        warn(f"rows left out: {len(found.skipped)}, the first: {found.skipped[0]}")
    _refuse_symbolic(options, found)
    if not options.drop_gold:
        return found
    if without := sum(not question.gold for question in found.questions):
        told = f"--drop-gold: {without} of {len(found.questions)} questions mark no gold passage"
        if without == len(found.questions):
            raise UserError(f'{told}; give passages "is_gold": true')
        warn(f"{told}, and stay whole")
    return replace(found, questions=tuple(map(without_last_gold, found.questions)))


def _refuse_symbolic(options: argparse.Namespace, asked: Questions) -> None:
    if any(question.is_annotated for question in asked.questions):
        return
    for option in ("generator", "verifier"):
        named = getattr(options, option) or []
        for spec in [named] if isinstance(named, str) else named:
            if spec.partition(":")[0] == "symbolic":
                raise UserError(
                    f"--{option} symbolic goes by annotations, which these questions lack; name a "
                    "model, or take questions of a benchmark"
                )


@dataclass(frozen=True, slots=True)
class Settings:
    """What the options ask for, before any engine is opened."""

    generators: tuple[str, ...]
    methods: tuple[Method, ...]
    limits: tuple[Limits, ...]

    @classmethod
    def read(cls, options: argparse.Namespace) -> Settings:
        """Raises ``UserError`` for options that do not go together."""
        names: Mapping[str, Method] = {method: method for method in METHODS}
        methods = [names[one_of(name, names, "--method")] for name in options.method]
        if "safe" in methods and options.verifier is None:
            raise UserError("--method safe wants a --verifier SPEC; see --help")
        if options.judge is None and (options.judge_repeats > 1 or options.judge_all):
            raise UserError("--judge-repeats and --judge-all go with a --judge SPEC; see --help")
        grid = product(options.max_steps, options.max_retries)
        return cls(
            tuple(dict.fromkeys(options.generator)),
            tuple(dict.fromkeys(methods)),
            tuple(
                Limits(
                    steps,
                    retries,
                    one_of(options.on_exhausted, ("accept", "drop"), "--on-exhausted"),  # type: ignore[arg-type]
                    one_of(options.feedback, FEEDBACK_FORMS, "--feedback"),  # type: ignore[arg-type]
                )
                for steps, retries in grid
            ),
        )


def _plan(
    options: argparse.Namespace,
    settings: Settings,
    asked: Questions,
    corpus: Corpus | None,
    cache: ResponseCache,
) -> Evaluation:
    engines: dict[str, Engine] = {}

    def client(option: str, spec: str) -> Client:
        """A client of its own each: only one who verifies itself is the same as the generator."""
        try:
            engine = engines.setdefault(spec, engines.get(spec) or open_engine(spec))
        except UserError as error:
            raise UserError(f"--{option}: {error}") from None
        return Client(engine, cache, options.in_flight)

    generators = [client("generator", spec) for spec in settings.generators]
    named = Counter(generator.engine.name for generator in generators)
    if twice := [name for name, times in named.items() if times > 1]:
        raise UserError(f"two generators are both called {twice[0]}; evaluate one at a time")
    verifier = client("verifier", options.verifier) if "safe" in settings.methods else None
    judge = None
    if options.judge is not None:
        judge = Judge(
            client("judge", options.judge),
            skip_exact=not options.judge_all,
            repeats=options.judge_repeats,
        )
    return Evaluation(
        questions=asked.questions,
        settings=tuple(
            Setting(generator, method, limits)
            for generator in generators
            for method in settings.methods
            for limits in settings.limits
        ),
        output=options.output,
        verifier=verifier,
        judge=judge,
        corpus=corpus,
        at_once=options.at_once,
        notes={
            "source": asked.source,
            "source_sha256": asked.digest,
            "split": asked.split,
            "drop_gold": options.drop_gold,
            "skipped": len(asked.skipped),
            "seed": options.seed,
        },
    )


def _earlier(plan: Evaluation) -> str:
    """What to say of results that this run takes the place of; nothing if they are the same."""
    file = plan.output / RESULTS
    try:
        before = json.loads(file.read_bytes())["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    now = json.loads(json.dumps(settings_of(plan)))
    other = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not other:
        return ""
    return f"{file}: had other settings ({', '.join(other)}); this run takes its place"


def _refuse_nothing(plan: Evaluation, runs: Sequence[Run]) -> None:
    """Raise ``UserError`` if not one question could be answered."""
    outcomes = [outcome for run_ in runs for outcome in run_.outcomes]
    if all(outcome.trajectory.stop_reason == "failed" for outcome in outcomes):
        reason = next((c.last_error for c in plan.clients if c.last_error), "no reason given")
        raise UserError(
            f"all {len(outcomes)} trajectories failed and nothing was written; the last: {reason}; "
            "mend that and run the same command again"
        )


def summary(plan: Evaluation, results: Mapping[str, Any]) -> str:
    """What was scored, what it took, where it is."""
    header = ("generator", "method", "K", "N", "EM", "F1", "Acc", "calls", "steps", "failed")
    rows = [
        (
            run_["generator"],
            run_["method"],
            run_["max_steps"],
            run_["max_retries"],
            *("-" if run_[AVERAGE][m] is None else f"{run_[AVERAGE][m]:.3f}" for m in MEASURES),
            f"{run_[ALL]['calls_per_question']:.1f}",
            f"{run_[ALL]['steps_per_question']:.1f}",
            run_[ALL]["failed"],
        )
        for run_ in results["runs"]
    ]
    sizes = ", ".join(f"{n:,} of {name}" for name, n in results["settings"]["questions"].items())
    means = " (EM, F1 and Acc are means of the benchmarks)" if sizes.count(" of ") > 1 else ""
    lines = [
        table([header, *rows]),
        "",
        f"questions: {sizes}{means}; calls and steps are a question's",
    ]
    lines += _tokens(results["runs"])
    totals = {name: sum(r[ALL][name] for r in results["runs"]) for name in _COUNTED}
    lines += [say(totals[name]) for name, say in _COUNTED.items() if totals[name]]
    if results["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    names = (TRAJECTORIES, RESULTS, f"{REPORT}/{report.COMPARISON}")
    files = [plan.output / name for name in names]
    lines += ["", *map(str, files), "", "to read the traces:"]
    return "\n".join([*lines, f"python -m scripts.view_traces {plan.output}"])


_COUNTED: Mapping[str, Callable[[int], str]] = {
    "unscored": "verdicts that could not be had: {:,}; they are left out of Acc".format,
    "unread": "verdicts on steps that could not be read: {:,}".format,
    "malformed": "replies that are no step: {:,}".format,
    "failed": (
        "trajectories that failed: {:,}; they count as wrong. Run the same command again: "
        "only they are asked"
    ).format,
}


def _tokens(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for role in ("generator", "verifier"):
        prompt, cached = (
            sum(run_[ALL][f"{what}_tokens"][role] for run_ in runs) for what in ("prompt", "cached")
        )
        if prompt:
            lines.append(f"{role}: {prompt:,} prompt tokens, {cached / prompt:.1%} of them cached")
    return lines


def numbers(least: int) -> Callable[[str], list[int]]:
    """An option's whole numbers, with commas between them (for argparse)."""

    def parse(text: str) -> list[int]:
        parts = [part.strip() for part in text.split(",")]
        found = [int(part) for part in parts if part.isascii() and part.isdigit()]
        if len(found) < len(parts) or min(found) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers from {least} on")
        return sorted(set(found))

    return parse


def _parser() -> Parser:
    parser = Parser(
        prog="python -m scripts.evaluate_stepwise",
        description=(__doc__ or "").partition("\n")[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--questions", required=True, metavar="DIR|FILE|HUB-ID@REV", help="see below")
    add("--output", required=True, type=Path, metavar="DIR", help=f"for {TRAJECTORIES}, {RESULTS}")
    methods = f"{', '.join(METHODS)}; may be repeated"
    add("--method", action="append", required=True, metavar="M", help=methods)
    specs = "writes the steps; may be repeated"
    add("--generator", action="append", required=True, metavar="SPEC", help=specs)
    add("--verifier", metavar="SPEC", help="judges them, with --method safe")
    add("--judge", metavar="SPEC", help="says whether an answer means the reference (Acc)")
    chosen = parser.add_argument_group("which questions")
    add = chosen.add_argument
    add("--benchmark", action="append", default=[], metavar="B", help="default all; repeatable")
    add("--split", choices=("train", "validation", TEST), help=f"default {TEST}, the sample")
    add("--limit", type=positive, metavar="N", help="questions a benchmark (default all)")
    add("--on-error", choices=("stop", "skip"), default="stop", help="at a row that can't be read")
    add("--drop-gold", action="store_true", help="without the last gold passage of each")
    add("--corpus", type=Path, metavar="FILE", help="passages to search when evidence is missing")
    how = parser.add_argument_group("how")
    add = how.add_argument
    K, N = DEFAULT.max_steps, DEFAULT.max_retries
    add("--max-steps", type=numbers(1), default=[K], metavar="K[,K]", help=f"default {K}")
    add("--max-retries", type=numbers(0), default=[N], metavar="N[,N]", help=f"default {N}")
    add("--on-exhausted", default=DEFAULT.on_exhausted, metavar="RULE", help="accept or drop")
    add("--feedback", default=DEFAULT.feedback, metavar="F", help=", ".join(FEEDBACK_FORMS))
    add("--judge-repeats", type=positive, default=1, metavar="N", help="verdicts an answer")
    add("--judge-all", action="store_true", help="also ask about exact matches")
    add("--seed", type=int, default=0, metavar="N", help="of the bootstrap, and of passages drawn")
    add("--at-once", type=positive, default=AT_ONCE, metavar="N", help="questions under way")
    add_teacher_options(parser)
    return parser


if __name__ == "__main__":
    run(main)
