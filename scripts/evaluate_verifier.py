"""Measure verifiers on the labelled steps of safe-verifier-steps, baselines beside them.

    python -m scripts.evaluate_verifier --steps build/steps --output build/verifier-quality \\
        --verifier openai:safe-verifier@http://localhost:8000/v1
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.benchmarks.hub import HubSource, resolve_commit
from builders.work import folders
from evaluators.verifier import step_set
from evaluators.verifier.page import SHOWN, agreement_rows, title_of
from evaluators.verifier.report import PREFIXES, VERDICTS, files, results
from evaluators.verifier.runs import Run, constant, run_verifier
from safe_stepwise.engines import client as asking
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.cache import ResponseCache
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import prompt_digest
from safe_stepwise.open import open_engine
from safe_stepwise.store import locks
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.layout import dataset_folder
from safe_stepwise.store.names import STEPS, STEPS_RECORD, TEST, TRAIN, VERIFIER_STEPS
from safe_stepwise.taxonomy import CORRECT
from scripts.cli import Parser, positive, run, table
from scripts.step_annotations import with_annotations
from scripts.teacher import default_cache

IN_FLIGHT = 64
EXAMPLES = """
examples:
  # a trained adapter, the base model zero-shot and the graph checker beside it
  python -m scripts.evaluate_verifier --steps build/steps --output build/quality \\
      --verifier vllm:Qwen/Qwen3-8B+ns/safe-verifier-qwen3-8b@v1.0.0 \\
      --baseline vllm:Qwen/Qwen3-8B --baseline symbolic --verified build/verified

  # the adapter as it was trained (4 bits) and as it is served (16 bits): agreement is printed
  python -m scripts.evaluate_verifier --steps ns/safe-verifier-steps@v1.0.0 \\
      --output build/quality --verifier openai:verifier-4bit@http://one:8000/v1 \\
      --baseline openai:verifier-16bit@http://other:8000/v1

A run that was stopped goes on where it was: replies are kept in --cache. What the measures mean
stands in evaluators/verifier_quality.py. Writes verifier_quality.json and .md, confusion.png and
.csv, verdicts.jsonl (rows), prefixes.jsonl (steps before them); those of baselines beside them.

exit status: 0 done, 2 something to mend (one line says what), 130 interrupted, 1 a fault of ours
"""


def main(arguments: Sequence[str]) -> None:
    """Measure, write, print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    specs = [options.verifier, *options.baseline]
    for spec in specs:
        _check(spec, options.verified)
    folder, steps = open_steps(options.steps, options.split)
    cases = step_set.read_cases(folder, options.split, options.limit)
    if options.verified is not None:
        cases = with_annotations(cases, options.verified)
    steps |= {"split": options.split, "limit": options.limit, "prompt_sha256": prompt_digest()}
    if steps.pop("rendered_by") not in (None, steps["prompt_sha256"]):
        print(
            "note: the set's prompts were rendered by other code; sent are this code's, as in the"
            " loop",
            file=sys.stderr,
        )
    asked = shortened(step_set.requests(cases), options.max_tokens)
    steps["max_tokens"] = max(request.sampling.max_tokens for request in asked.values())
    with locks.exclusive(options.output):
        cache = ResponseCache(options.cache or default_cache())
        try:
            runs, spent = ask(specs, asked, cache, options.in_flight)
        finally:
            cache.close()
        runs += list(constants(step_set.majority(folder), asked))
        found = results(steps, cases, runs, options.seed)
        write(options.output, files(found, cases, runs))
    print(summary(found, options.output), *spent, sep="\n")


def open_steps(source: str, split: str) -> tuple[Path, dict[str, Any]]:
    """A verifier set's folder and what is known of it: a local one, or a pinned one of the Hub.

    Raises ``UserError`` where there is none.
    """
    folder, name, revision = Path(source), VERIFIER_STEPS, None
    hub = None if folder.exists() else HubSource.read(source)
    if hub is not None:
        revision = resolve_commit(hub)
        folder, name = _pulled(hub, revision, split), hub.repo
    folder = dataset_folder(folder, VERIFIER_STEPS) or folder
    digests = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in step_set.split_files(folder, split)
    }
    told: dict[str, Any] = {}
    if (folder / STEPS_RECORD).is_file():
        (told,) = folders.read_statistics(folder)
    return folder, {
        "name": name,
        "revision": revision,
        "version": told.get("version"),
        "simulated": bool(told.get("simulated")),
        "sha256": digests,
        "rendered_by": told.get("prompt_sha256"),
    }


def shortened(
    asked: Mapping[step_set.Asked, Request], tokens: int | None
) -> Mapping[step_set.Asked, Request]:
    """The requests, their replies cut after so many tokens (None: as the loop asks)."""
    if tokens is None:
        return asked
    return {
        key: replace(request, sampling=replace(request.sampling, max_tokens=tokens))
        for key, request in asked.items()
    }


def ask(
    specs: Sequence[str],
    asked: Mapping[step_set.Asked, Request],
    cache: ResponseCache,
    in_flight: int,
) -> tuple[list[Run], list[str]]:
    """The verdicts of each engine, one after the other, and what was spent on them."""
    runs, spent = [], []
    for number, spec in enumerate(specs):
        role = f"baseline {number}" if number else "verifier"
        client = asking.Client(open_engine(spec), cache, in_flight, asking.TRIES)
        runs.append(run_verifier(client, role, asked))
        a = client.total()
        spent.append(
            f"{role}: {a.answered:,} requests answered, {a.hits:,} from the cache, {a.failed:,} "
            f"failed, {a.retries:,} retries; {a.prompt:,} prompt tokens ({a.cached:,} cached), "
            f"{a.completion:,} reply tokens"
        )
        if a.failed:
            spent.append(
                f"{a.failed:,} requests failed, and count as not right; run the same command "
                "again: only they are asked"
            )
    return runs, spent


def constants(majority: str | None, asked: Mapping[step_set.Asked, Any]) -> Iterator[Run]:
    """The baselines that ask nobody: train's most frequent label, and `Correct`."""
    if majority is not None:
        yield constant(majority, "majority class of train", asked)
    if majority != CORRECT:
        yield constant(CORRECT, "no error ever", asked)


def write(output: Path, made: Mapping[str, bytes]) -> None:
    """Write the files, and remove those of baselines that an earlier run had."""
    try:
        for kind in (VERDICTS, PREFIXES):
            for old in output.glob(f"{kind}.baseline-*.jsonl"):
                if old.name not in made:
                    old.unlink()
        for name, content in made.items():
            write_atomically(output / name, content)
    except OSError as error:
        raise locks.cannot_write(output, error) from None


def summary(found: Mapping[str, Any], output: Path) -> str:
    """A table of the measures, the agreement of each two verifiers, where the rest is."""
    header = ("", "verifier", *(name.replace("first_error_f1", "first error") for name in SHOWN))
    rows = [
        (v["role"], title_of(v), *(_number(v["measures"][name]) for name in SHOWN))
        for v in found["verifiers"]
    ]
    first = found["verifiers"][0]
    lines = [
        table([header, *rows]),
        f"\n{first['rows']:,} rows of {first['questions']:,} questions; unparsed "
        f"{first['unparsed']:,}, failed {first['failed']:,}; first error: "
        f"{first['erroneous']:,} trajectories with an error, {first['correct']:,} without",
    ]
    if found["agreement"]:
        lines += ["", table(agreement_rows(found))]
    return "\n".join([*lines, "", str(output / "verifier_quality.md"), ""])


def _check(spec: str, verified: Path | None) -> None:
    """Raise ``UserError`` for a spec that can't be read, or lacks the annotations it needs."""
    open_engine(spec)
    if spec.partition(":")[0] == "symbolic" and verified is None:
        raise UserError(
            f"{spec} reasons over annotations, which the steps do not hold: add --verified with "
            "the folder that they were made of"
        )


def _pulled(hub: HubSource, commit: str, split: str) -> Path:
    from huggingface_hub import snapshot_download

    wanted = [f"data/{STEPS}/{name}-*.parquet" for name in dict.fromkeys((split, TRAIN))]
    try:
        return Path(
            snapshot_download(
                hub.repo,
                repo_type="dataset",
                revision=commit,
                allow_patterns=[*wanted, "statistics/*.json"],
            )
        )
    except Exception as error:  # the client's errors have no common base; none is ours
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{hub.repo}@{hub.revision}: can't be pulled ({reason})") from error


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m scripts.evaluate_verifier",
        description="Measure a verifier on the labelled steps of safe-verifier-steps.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--steps", required=True, metavar="DIR|ID@REV", help="a safe-verifier-steps: folder or Hub")
    add("--verifier", required=True, metavar="SPEC", help="openai:, vllm:, transformers:, symbolic")
    add("--output", required=True, type=Path, metavar="DIR", help="the results go there")
    add("--baseline", action="append", default=[], metavar="SPEC", help="beside it; repeatable")
    add("--verified", type=Path, metavar="DIR", help="annotations, for symbolic (build_verified)")
    add("--split", default=TEST, metavar="NAME", help="of the set (default test)")
    add("--limit", type=positive, metavar="N", help="the first N rows (default: all)")
    add(
        "--max-tokens",
        type=positive,
        metavar="N",
        help="cut replies there: an untrained model may go on and on (default: as in the loop)",
    )
    add(
        "--cache",
        type=Path,
        metavar="FILE",
        help="replies (default $SAFE_STEPWISE_CACHE or ~/.cache/safe_stepwise/replies.sqlite)",
    )
    add(
        "--in-flight",
        type=positive,
        default=IN_FLIGHT,
        metavar="N",
        help=f"requests under way at a time (default {IN_FLIGHT})",
    )
    add("--seed", type=int, default=0, metavar="N", help="of the bootstrap (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
