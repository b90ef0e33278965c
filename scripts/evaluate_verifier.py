"""Measure verifiers on the labelled steps of safe-verifier-steps, baselines beside them.

    safe-stepwise evaluate_verifier --steps build/steps --output build/verifier-quality \\
        --verifier openai:safe-verifier@http://localhost:8000/v1
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from builders.steps.published import find_steps
from builders.verified.lookup import annotated
from evaluators.verifier import runs, step_set
from evaluators.verifier.options import IN_FLIGHT, Options
from evaluators.verifier.page import summary
from evaluators.verifier.report import OWNED, PAGE, files, results, write
from safe_stepwise.engines import client as asking
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.methods.prompt_sets import PROMPTS
from safe_stepwise.methods.verifier import ROLE, prompt_digest
from safe_stepwise.open import Opener
from safe_stepwise.records import VERDICT_ORDERS
from safe_stepwise.store.locks import exclusive
from safe_stepwise.store.names import ASKED_OF, TEST
from safe_stepwise.taxonomy import DROPPABLE
from scripts.cli import COUNT, FOLDER, NAMES, SEED, Parser, add_model_options, command, run, warn
from scripts.role_options import add_role_options


def main(arguments: Sequence[str]) -> None:
    """Measure, write, print a summary; raises ``UserError`` for what the user can mend."""
    print(evaluated(Options(**vars(_parser().parse_args(arguments)))))


def evaluated(options: Options) -> str:
    """Measure and write; returns the summary, and raises as `main` does."""
    opener = Opener(options.timeout)
    setting = options.settled(opener)
    twelve, dropped, prompt_set = setting.values()
    folder, name, revision = find_steps(options.steps, options.split, ASKED_OF[twelve])
    steps = {"name": name, "revision": revision, **step_set.about(folder, options.split, twelve)}
    cases = step_set.read_cases(folder, options.split, options.limit, twelve)
    if options.verified is not None:
        cases = with_annotations(cases, options.verified)
    asked = step_set.requests(cases, **setting)
    if steps.pop("rendered_by") not in (None, prompt_digest(incomplete_evidence=twelve, prompt_set=prompt_set)):
        warn("the set's prompts were rendered by other code; sent are this code's, as in the loop")
    steps |= {"split": options.split, "limit": options.limit, "drop_category": dropped}
    steps |= prompt_set.plain
    steps["prompt_sha256"] = prompt_digest(**setting)
    sent = map(options.allowance.applied, asked.values())
    steps["max_tokens"] = max(request.sampling.max_tokens for request in sent)
    if shown := options.allowance.plain.get("examples"):
        steps["examples"] = shown
    how = (options.in_flight, asking.TRIES, options.allowance)
    with exclusive(options.output, owned=OWNED), closing(ResponseCache(options.cache or default_cache())) as cache:
        made, spent = runs.ask(
            options.specs, lambda spec: asking.Client(opener(spec), cache, *how), asked, twelve, dropped
        )
        made += runs.constants(step_set.majority(folder, incomplete_evidence=twelve), asked)
        found = results(steps, cases, made, options.seed)
        write(options.output, files(found, cases, made))
    return "\n".join([summary(found), "", str(options.output / PAGE), "", *spent])


def with_annotations(cases: Sequence[step_set.StepCase], folder: Path) -> list[step_set.StepCase]:
    """The same rows, their questions with the answers and annotations of a verified folder."""
    found = annotated([case.question for case in cases], folder)
    return [replace(case, question=own) for case, own in zip(cases, found, strict=True)]


def _parser() -> Parser:
    parser = command("evaluate_verifier", "Measure a verifier on the labelled steps of safe-verifier-steps.")
    add = parser.add_argument
    add("--steps", required=True, metavar="DIR|ID@REV", help="a safe-verifier-steps: folder or Hub")
    add("--verifier", required=True, metavar="SPEC", help="openai:, vllm:, transformers:, symbolic")
    add("--output", **FOLDER, required=True, help="the results go there")
    add("--baseline", **NAMES, metavar="SPEC", help="beside it; repeatable")
    add("--verified", **FOLDER, help="annotations, for symbolic (build_verified)")
    add("--split", default=TEST, metavar="NAME", help="of the set (default test)")
    lacking = "with twelve labels: rows that lack evidence, too"
    add("--incomplete-evidence", action="store_true", help=lacking)
    learnt = "that the prompt lacks, of a served verifier that learnt so (adapters here say it)"
    add("--drop-category", choices=DROPPABLE, help=learnt)
    asked = "of the prompts, for a model of which nothing is known (ours say what they learnt)"
    add("--prompts", choices=PROMPTS, help=f"the set {asked}")
    add("--verdict-order", choices=VERDICT_ORDERS, help=f"what a verdict begins with, {asked}")
    add("--limit", **COUNT, help="the first N rows (default: all)")
    add_model_options(parser, IN_FLIGHT)
    add_role_options(parser, [ROLE], [ROLE])
    add("--seed", **SEED, help="of the bootstrap (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
