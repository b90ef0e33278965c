"""Defines the columns of the published datasets as `datasets.Features`; `codec` makes their rows."""

import hashlib
from typing import Any

from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.names import EVAL, INPUT, LABELED, NOISE_LABELS, TRAIN, VALIDATION

SPLITS = (TRAIN, VALIDATION)
"""Splits with gold annotations."""


def config_features(dataset: str, config: str) -> Any:
    """Return the `datasets.Features` of a config of the verified set or of the noise labels.

    ``B`` has a question's columns; ``B_labeled`` adds its label's, ``B_eval`` the prompt (``input``).
    """
    from datasets import ClassLabel, Features, List, Value

    text, number, flag = Value("string"), Value("int32"), Value("bool")
    triple = {"head": text, "relation": text, "tail": text}
    question = {
        **dict.fromkeys(("id", "question", "answer"), text),
        "aliases": List(text),
        "kind": text,
        "hops": number,
        "passages": List({"title": text, "sentences": List(text), "is_gold": flag}),
        "supporting_facts": List({"title": text, "sentence": number}),
        "evidence": List(triple),
        "decomposition": List({"question": text, "answer": text, "passage": number}),
    }
    label = {
        "unverifiable": flag,
        "noise_type": ClassLabel(names=list(NOISE_TYPES)),
        "confidence": Value("float64"),
        "explanation": text,
        "reasoning_path": List({**triple, "passage": number}),
        "knowledge_graph": List({**triple, "passage": number, "sentence": number}),
        "teacher": text,
    }
    if dataset == NOISE_LABELS:
        return Features({"id": text, "question_sha256": text, **label})
    extra = label if config.endswith(LABELED) else {INPUT: text} if config.endswith(EVAL) else {}
    return Features({**question, **extra})


def question_sha256(question: str) -> str:
    """Return 64 hex digits by which a label finds its question in a copy of the original benchmark.

    >>> question_sha256("Who founded Oru?")[:12]
    '9701819681d4'
    """
    return hashlib.sha256(question.encode("utf-8")).hexdigest()
