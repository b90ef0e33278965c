"""The columns of the published datasets, as `datasets.Features`; `codec` makes their rows."""

import hashlib
from typing import Any

from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.names import INPUT, TRAIN, VALIDATION

SPLITS = (TRAIN, VALIDATION)
"""Those with gold annotations."""


def question_features() -> Any:
    """The `datasets.Features` of a question: the row columns of DESIGN section 5."""
    from datasets import Features, List, Value

    text, number = Value("string"), Value("int32")
    return Features(
        {
            "id": text,
            "question": text,
            "answer": text,
            "aliases": List(text),
            "kind": text,
            "hops": number,
            "passages": List({"title": text, "sentences": List(text), "is_gold": Value("bool")}),
            "supporting_facts": List({"title": text, "sentence": number}),
            "evidence": List({"head": text, "relation": text, "tail": text}),
            "decomposition": List({"question": text, "answer": text, "passage": number}),
        }
    )


def evaluation_features() -> Any:
    """Row columns, then ``input``: question and passages as one prompt (config ``B_eval``)."""
    from datasets import Features, Value

    return Features({**question_features(), INPUT: Value("string")})


def label_features() -> Any:
    """The `datasets.Features` of a label: the label columns of DESIGN section 5."""
    from datasets import ClassLabel, Features, List, Value

    text, number = Value("string"), Value("int32")
    step = {"head": text, "relation": text, "tail": text, "passage": number}
    return Features(
        {
            "unverifiable": Value("bool"),
            "noise_type": ClassLabel(names=list(NOISE_TYPES)),
            "confidence": Value("float64"),
            "explanation": text,
            "reasoning_path": List(step),
            "knowledge_graph": List({**step, "sentence": number}),
            "teacher": text,
        }
    )


def labeled_features() -> Any:
    """Row columns, then label columns (config ``B_labeled``)."""
    from datasets import Features

    return Features({**question_features(), **label_features()})


def noise_label_features() -> Any:
    """``id``, ``question_sha256``, then label columns (the whole of ``safe-noise-labels``)."""
    from datasets import Features, Value

    keys = {"id": Value("string"), "question_sha256": Value("string")}
    return Features({**keys, **label_features()})


def question_sha256(question: str) -> str:
    """64 hex digits that let a label find its question in a copy of the original benchmark.

    >>> question_sha256("Who founded Oru?")[:12]
    '9701819681d4'
    """
    return hashlib.sha256(question.encode("utf-8")).hexdigest()
