"""The names that occur in written files and on the Hub: artifacts, splits, configs, origins, files, reasons."""

import re
from typing import Literal, get_args

from safe_stepwise.errors import UserError

VERIFIED = "safe-verified-multihop"
NOISE_LABELS = "safe-noise-labels"
VERIFIER_STEPS = "safe-verifier-steps"
SETS = (VERIFIED, NOISE_LABELS, VERIFIER_STEPS)
PATH_PROBE = "safe-path-probe"
"""The dataset of valid and corrupted relation paths; in a release if its manifest says so."""
METRIC = "safe_stepwise"
"""The name of the metric's repo; a dataset's repo has the dataset's name, a model's that of `model_repo`."""
VERIFIER_KIND, GENERATOR_KIND = "safe-verifier", "safe-generator"

DATASETS, ADAPTER, SPACE, REPORT = "datasets", "adapter", "space", "report"
BLOCKS, SFT, GENERATOR = "blocks", "sft", "generator"
"""Folders of a release. `GENERATOR` has the model that writes steps, `SFT` the adapter that KTO continued. `BLOCKS`
has a folder for each block with a `REPORT` and its verifier set, and in it a folder for each adapter that the block
trains, with `ADAPTER` and `REPORT`."""

TRAIN, VALIDATION, TEST = "train", "validation", "test"
LABELED, EVAL = "_labeled", "_eval"
"""Suffixes of `VERIFIED`'s configs, after a benchmark's name: all rows with labels, the evaluation sample."""
INPUT = "input"
"""The column of the evaluation sample that has a row as one prompt, for other projects' harnesses."""
STEPS, PROMPT_COMPLETION, MISSING = "steps", "prompt_completion", "missing_evidence"
MISSING_TWINS, MISSING_PROMPT_COMPLETION = f"{MISSING}_twins", f"{MISSING}_{PROMPT_COMPLETION}"
PREFERENCE, KTO = "preference", "kto"
"""Configs of `VERIFIER_STEPS`; `KTO` is also one of `paths_set`."""
STEP_CONFIGS = {False: (STEPS,), True: (STEPS, MISSING, MISSING_TWINS)}
"""The configs with a row for each step, by whether evidence may be incomplete."""
RENDERED_BY = {False: "prompt_sha256", True: "missing_evidence_prompt_sha256"}
"""The field, in the record of `VERIFIER_STEPS`, of the prompts' digest, by whether evidence may be incomplete."""

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
"""How a path of `PATH_PROBE` was corrupted, if at all; stored as the index in this tuple."""
PATH_LABELS = ("invalid", "valid")
PROBED = "path_probe"
"""The config of `PATH_PROBE` with a row for each path; the other config is `PROMPT_COMPLETION`."""
PATHS, BY_TEMPLATE = "paths", "_by_template"
"""A config of `paths_set`, beside `PROMPT_COMPLETION` and `KTO`; and the suffix of a config whose splits share no
question template."""
PATHS_RECORD = f"statistics/{PATHS}.json"
PATHS_SETS = f"dp-*-{PATHS}"
"""The glob pattern of the names of every `paths_set`."""

Origin = Literal["ideal", "injected", "refined"]
IDEAL, INJECTED, REFINED = ORIGINS = get_args(Origin)
"""Where a row of `VERIFIER_STEPS` comes from; stored as the index in this tuple."""

Wording = Literal["seen", "unseen"]
SEEN, UNSEEN = WORDINGS = get_args(Wording)
"""Whether a row of `TRAIN` has a step in these words; stored as the index in this tuple."""

ContextKind = Literal["original", "altered", "borrowed"]
ORIGINAL, ALTERED, BORROWED = CONTEXTS = get_args(ContextKind)
"""Whether a row's passages are its question's own, or one of them states another value (altered) or is from another
question (borrowed); stored as the index in this tuple."""

Audited = Literal["labels", "steps"]
LABELS, _ = AUDITED = get_args(Audited)
"""What people judge in an audit: labels of questions, or rows of `STEPS`."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""This machine's own host names."""
SIMULATED = " (simulated)"
"""The suffix of the names of results that were made without a model."""

README = "README.md"
LOCK = "release.lock.json"
TRAINING = "training.json"
"""The record of an adapter's training, beside its weights."""
TUNED = "model"
"""The folder of a model whose weights were all tuned, beside `TRAINING`."""
STATISTICS = "statistics"
"""The folder of the records of a dataset's builds."""
STEPS_RECORD = f"{STATISTICS}/verifier_steps.json"
PROBE_RECORD = f"{STATISTICS}/{PROBED}.json"
WORK = ".work"
"""The hidden folder from which an interrupted run resumes."""
REJECTS, REFUSED, UNMATCHED = "rejects.jsonl", "refused.jsonl", "unmatched.jsonl"
"""Files of rows that could not be read, of refused steps, and of a list's entries that match no row."""
LABELS_PAGE = "labels.html"
"""The page of a build's labels, beside its datasets."""
TRAJECTORIES, QUESTIONS, RESULTS = "trajectories.jsonl", "questions.jsonl", "results.json"
JOURNAL = f".{TRAJECTORIES}"
"""Trajectories in the order in which they ended, from which an interrupted evaluation resumes."""
FAITHFULNESS, CHAINS = "faithfulness.json", "faithfulness.jsonl"
"""The numbers of measured faithfulness, and each chain."""
COMPARISON = "comparison.md"
METHODS_PAGE = "methods.md"
REPORT_PAGE = "report.html"
"""A report's Markdown pages and figures as one page."""

NO_PATH = "no path"
REQUEST_FAILED = "the request failed"
"""Clauses with which reasons begin. Rows rejected for `REQUEST_FAILED` may be good in another run."""

_VERSION = re.compile(r"v(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")


def paths_set(benchmark: str) -> str:
    """Return the name of a benchmark's dataset of relation paths.

    >>> paths_set("metaqa")
    'dp-metaqa-paths'
    """
    return f"dp-{benchmark}-{PATHS}"


def check_version(version: str) -> str:
    """Return ``version`` unchanged; raises ``UserError`` unless it is ``vMAJOR.MINOR.PATCH``, the tag of a release."""
    version_key(version)
    return version


def version_key(version: str) -> tuple[int, ...]:
    """Return the key by which versions are sorted; raises ``UserError`` as `check_version` does.

    >>> version_key("v1.10.0") > version_key("v1.9.0")
    True
    """
    if (match := _VERSION.fullmatch(str(version))) is None:
        raise UserError(f"version {version!r}: write it as vMAJOR.MINOR.PATCH, like v1.0.0")
    return tuple(map(int, match.groups()))


def model_repo(kind: str, base: str) -> str:
    """Name the repo of a trained model after its kind and its base model.

    ``kind`` is `VERIFIER_KIND`, `GENERATOR_KIND`, or the `paths_set` on which a model that proposes relation paths was
    trained. Raises ``UserError`` for a base model without a name.

    >>> model_repo(VERIFIER_KIND, "Qwen/Qwen3-8B"), model_repo("dp-metaqa-paths", "HuggingFaceTB/SmolLM2-135M")
    ('safe-verifier-Qwen3-8B', 'dp-metaqa-SmolLM2-135M')
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", base.rstrip("/").rsplit("/", 1)[-1]).strip("-.")
    if not name:
        raise UserError(f"base model {base!r} has no name to call the adapter's repo after")
    return f"{kind.removesuffix(f'-{PATHS}')}-{name}"


def marked(name: str, simulated: bool) -> str:
    """Mark the name of something simulated with `SIMULATED`, once.

    >>> marked("SAFE", True), marked("symbolic (simulated)", True), marked("SAFE", False)
    ('SAFE (simulated)', 'symbolic (simulated)', 'SAFE')
    """
    return f"{name}{SIMULATED}" if simulated and SIMULATED not in name else name
