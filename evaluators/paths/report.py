"""What is written about verdicts on paths: results as JSON, a page, the verdicts themselves."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.asking import tokens
from evaluators.comparison.significance import CONFIDENCE
from evaluators.paths.page import page
from evaluators.paths.probe_set import PathCase
from evaluators.paths.quality import RESAMPLES
from evaluators.paths.runs import PathRun
from safe_stepwise import prompts
from safe_stepwise.methods.paths import WAYS, prompt_of
from safe_stepwise.records import canonical_json
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.locks import cannot_write
from safe_stepwise.store.names import RESULTS

PAGE, VERDICTS = "paths.md", "verdicts"
OWNED = (RESULTS, PAGE, *(f"{VERDICTS}.{way}.jsonl" for way in WAYS))
"""Files of an evaluation."""


def results(probe: Mapping[str, Any], cases: Sequence[PathCase], runs: Sequence[PathRun], seed: int) -> dict[str, Any]:
    """All that was measured; ``probe`` says what the rows are."""
    return {
        "simulated": bool(probe["simulated"] or any(run.simulated for run in runs)),
        "probe": dict(probe),
        "bootstrap": {"over": "questions", "resamples": RESAMPLES, "level": CONFIDENCE, "seed": seed},
        "runs": [
            {
                "name": run.name,
                "prompt": run.way,
                "prompt_sha256": prompts.load(prompt_of(run.way)).digest,
                "max_tokens": run.max_tokens,
                "simulated": run.simulated,
                **asdict(run.quality(cases, seed)),
                "tokens": tokens(run.replies),
            }
            for run in runs
        ],
    }


def files(found: Mapping[str, Any], cases: Sequence[PathCase], runs: Sequence[PathRun]) -> dict[str, bytes]:
    """The files of an evaluation by name."""
    made = {RESULTS: (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode(), PAGE: page(found).encode()}
    for run in runs:
        lines = (_line(run, n, case) for n, case in enumerate(cases))
        text = "".join(f"{line}\n" for line in lines)
        # Half a surrogate pair, which a broken reply may hold, becomes its escape.
        made[f"{VERDICTS}.{run.way}.jsonl"] = text.encode("utf-8", "backslashreplace")
    return made


def write(output: Path, made: Mapping[str, bytes]) -> None:
    """Write the files, and remove those of prompts that an earlier run had."""
    try:
        for name in OWNED:
            if name not in made:
                (output / name).unlink(missing_ok=True)
        for name, content in made.items():
            write_atomically(output / name, content)
    except OSError as error:
        raise cannot_write(output, error) from None


def _line(run: PathRun, place: int, case: PathCase) -> str:
    reply = run.replies[place]
    return canonical_json(
        {
            "id": case.id,
            "benchmark": case.benchmark,
            "question_id": case.question_id,
            "corruption": case.corruption,
            "gold": "YES" if case.is_valid else "NO",
            "said": reply.said,
            "reply": reply.text,
            "reason": reply.reason,
            "simulated": run.simulated,
        }
    )
