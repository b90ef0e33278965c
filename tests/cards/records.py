"""What a run writes down, for the cards: a training, an evaluation of the loop, a measured quality.

The training is one of SmolLM2 on two cores, as ``trainers.run`` wrote it; the quality is
measured by the real code on verdicts that are said here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.run.runner import VerdictReply, Verdicts
from evaluators.verifier.command import make_constant, render_results
from evaluators.verifier.step_set import build_requests, read_cases
from tests.evaluators.verifier.step_rows import row, step, write_set

HUB = {"name": "Qwen/Qwen3-8B", "revision": "b968826d9c46dd6066d109eabc6255188de91218"}


def training(**changes: Any) -> dict[str, Any]:
    """``training.json``; a key like ``run.seconds`` changes one figure."""
    made: dict[str, Any] = {
        "adapter": {"dtype": "float32", "sha256": "bc" * 32},
        "base_model": {**HUB, "on_hub": True, "source": "Hub"},
        "curve": [
            {"grad_norm": 0.42, "learning_rate": 0.0, "loss": 2.796757, "step": 1},
            {"grad_norm": 2.85, "learning_rate": 0.0001, "loss": 0.869671, "step": 17},
        ],
        "dataset": {
            "dropped_as_long": ["aa", "bb", "cc"],
            "plus": [],
            "name": "safe-verifier-steps",
            "revision": None,
            "rows": 541,
            "sha256": "b5" * 32,
            "simulated": False,
            "teacher": "annotations",
            "version": "v0.3.0",
        },
        "held_out": {"loss_after": 1.393249, "loss_before": 2.520570, "rows": 23},
        "optimizer": {
            "betas": [0.91, 0.998],
            "clipping": 1.25,
            "epsilon": 1e-08,
            "name": "adamw_torch",
            "schedule": "cosine",
        },
        "libraries": {"peft": "0.21.2", "torch": "2.13.0+cpu", "trl": "1.16.0"},
        "prompt_sha256": "08" * 32,
        "recipe": {
            "attention": "sdpa",
            "base_model": "Qwen/Qwen3-8B@b968826",
            "base_model_name": None,
            "batching": "by_length",
            "dataset": "safe-verifier-steps",
            "device_batch": 4,
            "double_quantization": True,
            "drop_long": True,
            "dtype": "auto",
            "effective_batch": 64,
            "epochs": 2.0,
            "filters": {
                "drop_category": None,
                "drop_from_prompt": False,
                "feedback": "full",
                "origins": [],
                "rows": None,
            },
            "gradient_checkpointing": True,
            "held_out": 23,
            "learning_rate": 0.00013,
            "lora_alpha": 128,
            "lora_dropout": 0.05,
            "lora_rank": 64,
            "max_length": None,
            "output": "adapter",
            "padding_free": False,
            "quantization": "nf4",
            "report_to": "none",
            "save_steps": 20,
            "seed": 7,
            "warmup": 0.03,
            "weight_decay": 0.01,
        },
        "run": {
            "accumulation": 8,
            "device": "NVIDIA H200",
            "devices": 2,
            "dtype": "bfloat16",
            "peak_memory_bytes": 36_155_228_160,
            "resumed_from_step": None,
            "seconds": 3749.4,
            "seconds_per_step": 220.553,
            "steps": 17,
            "tokens": 1_660_307,
        },
        "tokens": {"completion": 70_239, "limit": 8192, "longest": 1795, "prompt": 759_941},
    }
    return changed(made, changes)


def config(**changes: Any) -> dict[str, Any]:
    """``adapter_config.json``, what of it matters here."""
    made = {
        "base_model_name_or_path": "Qwen/Qwen3-8B",
        "lora_alpha": 128,
        "lora_dropout": 0.05,
        "peft_type": "LORA",
        "r": 64,
        "target_modules": ["o_proj", "q_proj", "down_proj"],
        "task_type": "CAUSAL_LM",
    }
    return changed(made, changes)


def loop_results(**changes: Any) -> dict[str, Any]:
    """``report/results.json``, what of it matters here."""
    found = {"exact_match": 0.61, "f1": 0.702, "accuracy": None, "unscored": 0, "failed": 1}
    one = {
        "method": "no_verification",
        "players": {"generator": "openai:m"},
        "options": {"max_retries": 3, "max_steps": 10},
        "simulated": False,
        "benchmarks": {"musique": found, "hotpotqa": {**found, "f1": 0.733}},
        "average": {"exact_match": 0.612, "f1": 0.7175, "accuracy": None},
        "all": {**found, "calls": {"generator": 9, "verifier": 0}},
    }
    both = {"generator": "openai:m", "verifier": "vllm:Qwen/Qwen3-8B+ns/adapter@v0.3.0"}
    other = {**one, "method": "safe", "players": both}
    made = {
        "version": "0.1.0",
        "simulated": False,
        "settings": {"questions": {"musique": 75, "hotpotqa": 81}, "judge": None},
        "runs": [one, other],
    }
    return changed(made, changes)


def quality(folder: Path, **changes: Any) -> dict[str, Any]:
    """``verifier_quality.json`` of an adapter, its base model, the graph checker and constants."""
    first, second = step(1, "Oru lies on the Vel."), step(2, "The Vel is old.")
    off = step(2, "Tin is a metal.")
    rows = [
        row("a", [first]),
        row("b", [first, second]),
        row("c", [first, off], "Off-topic", "injected"),
        row("d", [first, step(2, "Oru lies on the Vel again.")], "Redundancy", "injected"),
        *(row(f"q{n}", [first], question=f"r{n}") for n in range(4)),
        row("e", [off.replace("2", "1")], "Off-topic", "injected", question="r9"),
    ]
    cases = read_cases(write_set(folder, test=rows), "test")
    asked = build_requests(cases)
    gold = {case.prefix: case.gold for case in cases}
    some = {one: VerdictReply(gold.get(one, "Correct")) for one in asked}
    worse = {one: VerdictReply("unparsed" if n % 3 else "Correct") for n, one in enumerate(asked)}
    missed = {**some, cases[2].prefix: VerdictReply("Correct"), cases[3].prefix: VerdictReply("Off-topic")}
    runs = [
        Verdicts("vllm:Qwen/Qwen3-8B+adapter@0123", "verifier", False, missed),
        Verdicts("vllm:Qwen/Qwen3-8B", "baseline 1", False, worse),
        Verdicts("symbolic: checker", "baseline 2", True, some),
        make_constant("Correct", "majority class of train", asked),
    ]
    steps = {
        "name": "safe-verifier-steps",
        "revision": None,
        "version": "v0.3.0",
        "simulated": False,
        "sha256": {"test-00000-of-00001.parquet": "ab" * 32},
        "split": "test",
        "limit": None,
        "max_tokens": 739,
        "prompt_sha256": "08" * 32,
    }
    made: dict[str, Any] = json.loads(json.dumps(render_results(steps, cases, runs, 0)))
    return changed(made, changes)


def changed(made: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """With other values at dotted paths; ``verifiers.0.failed`` goes into a list."""
    for path, value in changes.items():
        *way, last = path.split(".")
        at: Any = made
        for name in way:
            at = at[int(name)] if isinstance(at, list) else at[name]
        at[int(last) if isinstance(at, list) else last] = value
    return made
