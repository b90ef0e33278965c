"""What is written about verifiers: results as JSON, their files, entries for a model card."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import CONFIDENCE
from evaluators.verifier.page import confusion_csv, confusion_png, page
from evaluators.verifier.quality import RESAMPLES, agreement
from evaluators.verifier.runs import VerifierRun
from evaluators.verifier.step_set import Prefix, StepCase
from safe_stepwise.records import canonical_json
from safe_stepwise.steps import format_step
from safe_stepwise.store.agreement import Score
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.locks import cannot_write
from safe_stepwise.store.measures import title_of
from safe_stepwise.taxonomy import CORRECT

QUALITY, PAGE, CONFUSION, VERDICTS, PREFIXES = (
    *("verifier_quality.json", "verifier_quality.md", "confusion"),
    *("verdicts", "prefixes"),
)
OWNED = (*(QUALITY, PAGE, f"{CONFUSION}.csv", f"{CONFUSION}.png"), *(f"{VERDICTS}.jsonl", f"{PREFIXES}.jsonl"))
"""Files of an evaluation; baselines have more of the last two."""


def results(
    steps: Mapping[str, Any], cases: Sequence[StepCase], runs: Sequence[VerifierRun], seed: int
) -> dict[str, Any]:
    """All that was measured, of the verifier first; ``steps`` says what the rows are."""
    said = [run.judged(cases) for run in runs]
    return {
        "simulated": bool(steps["simulated"] or runs[0].simulated),
        "steps": dict(steps),
        "bootstrap": {"over": "questions", "resamples": RESAMPLES, "level": CONFIDENCE, "seed": seed},
        "verifiers": [
            {
                "name": run.name,
                "role": run.role,
                "simulated": run.simulated,
                **asdict(found := run.quality(cases, seed)),
                "types": [_type(score) for score in found.types],
                "tokens": run.tokens(),
            }
            for run in runs
        ],
        "agreement": [
            {"a": runs[a].role, "b": runs[b].role, **asdict(agreement(said[a], said[b]))}
            for a, b in itertools.combinations(range(len(runs)), 2)
            if not (runs[a].is_constant or runs[b].is_constant)
        ],
    }


def files(found: Mapping[str, Any], cases: Sequence[StepCase], runs: Sequence[VerifierRun]) -> dict[str, bytes]:
    """The files of an evaluation by name."""
    first, twelve = found["verifiers"][0], found["steps"].get("incomplete_evidence", False)
    made = {
        QUALITY: (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode(),
        PAGE: page(found).encode(),
        f"{CONFUSION}.csv": confusion_csv(first["confusion"], twelve),
        f"{CONFUSION}.png": confusion_png(first["confusion"], title_of(first), twelve),
    }
    rows = {case.asked for case in cases}
    for run in runs:
        if not run.is_constant:
            suffix = "" if run is runs[0] else f".{run.role.replace(' ', '-')}"
            made[f"{VERDICTS}{suffix}.jsonl"] = _lines(
                _line(run, case.asked, id=case.id, gold=case.gold) for case in cases
            )
            # Steps that were asked of for trajectories alone.
            made[f"{PREFIXES}{suffix}.jsonl"] = _lines(
                _line(run, asked, steps=[*map(format_step, asked.steps)], gold=CORRECT)
                for asked in run.replies
                if asked not in rows
            )
    return made


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
        raise cannot_write(output, error) from None


def _line(run: VerifierRun, asked: Prefix, **about: Any) -> str:
    """A JSON object: what is known of a step, what was said of it, the raw reply."""
    reply = run.replies[asked]
    return canonical_json(
        {
            **about,
            "benchmark": asked.benchmark,
            "question_id": asked.question,
            "said": reply.said,
            "reply": reply.text,
            "reason": reply.reason,
            "simulated": run.simulated,
        }
    )


def _type(score: Score) -> dict[str, Any]:
    return {
        "name": score.name,
        "both": score.both,
        "gold": score.true,
        "said": score.found,
        "precision": score.precision if score.found else None,
        "recall": score.recall if score.true else None,
        "f1": score.f1,
    }


def _lines(lines: Iterable[str]) -> bytes:
    # Half a surrogate pair, which a broken reply may hold, becomes its escape.
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
