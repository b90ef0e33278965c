"""What is written down is called here: artifacts, splits, configs, origins, files, reasons.

Releases are tagged ``vMAJOR.MINOR.PATCH``.
"""

import re
from typing import Literal, get_args

from safe_stepwise.errors import UserError

VERIFIED = "safe-verified-multihop"
NOISE_LABELS = "safe-noise-labels"
VERIFIER_STEPS = "safe-verifier-steps"
SETS = (VERIFIED, NOISE_LABELS, VERIFIER_STEPS)
PATH_PROBE = "safe-path-probe"
"""Valid and corrupted relation paths; in a release if its manifest says so."""
METRIC = "safe_stepwise"
"""The artifacts' repos; those of models are `model_repo`."""
VERIFIER_KIND, GENERATOR_KIND = "safe-verifier", "safe-generator"

DATASETS, ADAPTER, SPACE, REPORT = "datasets", "adapter", "space", "report"
BLOCKS, SFT, GENERATOR = "blocks", "sft", "generator"
"""Folders of a release. `GENERATOR` has the model that writes steps, `SFT` the adapter that KTO
went on from; in `BLOCKS` each block has one with a `REPORT` and its verifier set, and in that one
for each adapter that it trains, with `ADAPTER` and `REPORT`."""

TRAIN, VALIDATION, TEST = "train", "validation", "test"
LABELED, EVAL = "_labeled", "_eval"
"""What configs of `VERIFIED` append to a benchmark's name: all rows with labels, the sample."""
INPUT = "input"
"""The column of the sample that renders a row as one prompt, for harnesses of others."""
STEPS, PROMPT_COMPLETION, MISSING = "steps", "prompt_completion", "missing_evidence"
MISSING_TWINS, MISSING_PROMPT_COMPLETION = f"{MISSING}_twins", f"{MISSING}_{PROMPT_COMPLETION}"
PREFERENCE, KTO = "preference", "kto"
"""Configs of `VERIFIER_STEPS`; the last is one of `paths_set`, too."""
ASKED_OF = {False: (STEPS,), True: (STEPS, MISSING, MISSING_TWINS)}
"""Those with a row a step, without and with incomplete evidence."""
RENDERED_BY = {False: "prompt_sha256", True: "missing_evidence_prompt_sha256"}
"""What the set's record calls the digest of the prompts of either setting."""

Corruption = Literal[
    "valid",
    "factual_head",
    "factual_tail",
    "incoherent",
    "misguided_question",
    "misguided_walk",
    "relation_swapped",
    "reversed",
    "hop_dropped",
]
CORRUPTIONS: tuple[Corruption, ...] = get_args(Corruption)
"""What was done to a path of `PATH_PROBE`, if anything; stored as its place in this."""
PATH_LABELS = ("invalid", "valid")
PROBED = "path_probe"
"""The config of `PATH_PROBE` with a row a path; the other is `PROMPT_COMPLETION`."""
PATHS, BY_TEMPLATE = "paths", "_by_template"
"""A config of `paths_set`, beside `PROMPT_COMPLETION` and `KTO`, and what one appends that is split
so that no template of a question is on both sides."""
PATHS_RECORD = f"statistics/{PATHS}.json"
PATHS_SETS = f"dp-*-{PATHS}"
"""Every `paths_set`, as a pattern of names."""

Origin = Literal["ideal", "injected", "refined"]
IDEAL, INJECTED, REFINED = ORIGINS = get_args(Origin)
"""Where a row of `VERIFIER_STEPS` comes from; stored as its place in this."""

Wording = Literal["seen", "unseen"]
SEEN, UNSEEN = WORDINGS = get_args(Wording)
"""Whether a row of `TRAIN` has a step that is worded so; stored as its place in this."""

ContextKind = Literal["original", "altered", "borrowed"]
ORIGINAL, ALTERED, BORROWED = CONTEXTS = get_args(ContextKind)
"""Whether a row's passages are its question's own, or one states another value, or is another's;
stored as its place in this."""

Audited = Literal["labels", "steps"]
LABELS, _ = AUDITED = get_args(Audited)
"""What people judge in an audit: labels of questions, or rows of `STEPS`."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""What this machine calls itself."""
SIMULATED = " (simulated)"
"""Stands behind the name of whatever no model made."""

README = "README.md"
LOCK = "release.lock.json"
TRAINING = "training.json"
"""An adapter's own record of how it was trained, beside its weights."""
TUNED = "model"
"""The folder beside `TRAINING` of a model of which all weights were tuned."""
STATISTICS = "statistics"
"""The folder of a dataset's records of its builds."""
STEPS_RECORD = f"{STATISTICS}/verifier_steps.json"
PROBE_RECORD = f"{STATISTICS}/{PROBED}.json"
WORK = ".work"
"""The hidden folder of what a run goes on from."""
REJECTS, REFUSED, UNMATCHED = "rejects.jsonl", "refused.jsonl", "unmatched.jsonl"
"""Rows that could not be read, steps that were not kept, entries of a list that no row has."""
TRAJECTORIES, QUESTIONS, RESULTS = "trajectories.jsonl", "questions.jsonl", "results.json"
JOURNAL = f".{TRAJECTORIES}"
FAITHFULNESS, CHAINS = "faithfulness.json", "faithfulness.jsonl"
"""Of measured faithfulness, the numbers and each chain."""
"""Trajectories as they ended, which an evaluation goes on from."""
COMPARISON = "comparison.md"
METHODS_PAGE = "methods.md"

NO_PATH = "no path"
REQUEST_FAILED = "the request failed"
"""Clauses with which reasons begin. Another run may turn what `REQUEST_FAILED` into rows."""

_VERSION = re.compile(r"v(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")


def paths_set(benchmark: str) -> str:
    """The dataset of relation paths of a benchmark.

    >>> paths_set("metaqa")
    'dp-metaqa-paths'
    """
    return f"dp-{benchmark}-{PATHS}"


def known_version(version: str) -> str:
    """``version``, if it is one. Raises ``UserError`` for what is no ``vMAJOR.MINOR.PATCH``."""
    version_key(version)
    return version


def version_key(version: str) -> tuple[int, ...]:
    """A version to sort by; raises as `known_version`.

    >>> version_key("v1.10.0") > version_key("v1.9.0")
    True
    """
    match = _VERSION.fullmatch(str(version))
    if match is None:
        raise UserError(f"version {version!r}: write it as vMAJOR.MINOR.PATCH, like v1.0.0")
    return tuple(map(int, match.groups()))


def model_repo(kind: str, base: str) -> str:
    """The repo of a model that was trained, called after its kind and its base model.

    That is `VERIFIER_KIND`, `GENERATOR_KIND`, or of what proposes paths the `paths_set` that it learnt. Raises
    ``UserError`` for a base model without a name.

    >>> model_repo(VERIFIER_KIND, "Qwen/Qwen3-8B"), model_repo("dp-metaqa-paths", "HuggingFaceTB/SmolLM2-135M")
    ('safe-verifier-Qwen3-8B', 'dp-metaqa-SmolLM2-135M')
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", base.rstrip("/").rsplit("/", 1)[-1]).strip("-.")
    if not name:
        raise UserError(f"base model {base!r} has no name to call the adapter's repo after")
    return f"{kind.removesuffix(f'-{PATHS}')}-{name}"


def marked(name: str, simulated: bool) -> str:
    """A name that says once that no model stands behind it, where none does.

    >>> marked("SAFE", True), marked("symbolic (simulated)", True), marked("SAFE", False)
    ('SAFE (simulated)', 'symbolic (simulated)', 'SAFE')
    """
    return f"{name}{SIMULATED}" if simulated and SIMULATED not in name else name
