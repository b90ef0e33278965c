"""Says which columns a config of verified questions or of noise labels has; `codec` makes their rows."""

import hashlib
from typing import Any

from builders.work.columns import features
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.names import EVAL, LABELED, NOISE_LABELS, TRAIN, VALIDATION

SPLITS = (TRAIN, VALIDATION)
"""Splits with gold annotations."""


def config_features(dataset: str, config: str) -> Any:
    """Return a config's `datasets.Features`: a question's, with a label (``B_labeled``) or the prompt (``B_eval``)."""
    if dataset == NOISE_LABELS:
        return features("labelled_id", "label", noise_type=NOISE_TYPES)
    further = ["label"] if config.endswith(LABELED) else ["input"] if config.endswith(EVAL) else []
    return features("question", *further, noise_type=NOISE_TYPES)


def question_sha256(question: str) -> str:
    """Return 64 hex digits by which a label finds its question in a copy of the original benchmark.

    >>> question_sha256("Who founded Oru?")[:12]
    '9701819681d4'
    """
    return hashlib.sha256(question.encode("utf-8")).hexdigest()
