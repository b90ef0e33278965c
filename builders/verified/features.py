"""The columns of the published datasets, and the way from records to rows and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.records import (
    NOISE_TYPES,
    Hop,
    Label,
    Passage,
    Question,
    SupportingFact,
    Triple,
)

VERIFIED = "safe-verified-multihop"
NOISE_LABELS = "safe-noise-labels"
SPLITS = ("train", "validation")

Row = dict[str, Any]


def verified_folder(folder: Path, *parts: str) -> Path:
    """The verified set, with these parts, in a folder that `build_verified` or `regenerate` wrote.

    Raises ``UserError`` if there is none.
    """
    named = (folder / VERIFIED, folder / "datasets" / VERIFIED, folder)
    found = next((f for f in named if all((f / part).is_dir() for part in parts)), None)
    if found is None:
        raise UserError(
            f"{folder}: no {VERIFIED} in it; build one with python -m scripts.build_verified "
            f"--output {folder}"
        )
    return found


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


def label_features() -> Any:
    """The `datasets.Features` of a label: the label columns of DESIGN section 5."""
    from datasets import ClassLabel, Features, List, Value

    text, number = Value("string"), Value("int32")
    step = {"head": text, "relation": text, "tail": text, "passage": number}
    return Features(
        {
            "unverifiable": Value("bool"),
            "noise_type": ClassLabel(names=list(NOISE_TYPES)),
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


def question_to_row(question: Question) -> Row:
    """One row of config ``B``; the passage numbers of ``evidence`` are no column, so they go.

    >>> question_to_row(Question("q1", "synthetic", "train", "Where?", "Oru"))["answer"]
    'Oru'
    """
    return {
        "id": question.id,
        "question": question.question,
        "answer": question.answer,
        "aliases": list(question.aliases),
        "kind": question.kind,
        "hops": question.hops,
        "passages": [
            {"title": p.title, "sentences": list(p.sentences), "is_gold": p.is_gold}
            for p in question.passages
        ],
        "supporting_facts": [
            {"title": fact.title, "sentence": fact.sentence} for fact in question.supporting_facts
        ],
        "evidence": [
            {"head": t.head, "relation": t.relation, "tail": t.tail} for t in question.evidence
        ],
        "decomposition": [
            {"question": hop.question, "answer": hop.answer, "passage": hop.passage}
            for hop in question.decomposition
        ],
    }


def row_to_question(row: Mapping[str, Any], benchmark: str, split: str) -> Question:
    """The question of a published row (as `datasets` or pyarrow give it)."""
    return Question(
        id=row["id"],
        benchmark=benchmark,
        split=split,
        question=row["question"],
        answer=row["answer"],
        aliases=tuple(row["aliases"]),
        kind=row["kind"],
        hops=row["hops"],
        passages=tuple(
            Passage(p["title"], tuple(p["sentences"]), p["is_gold"]) for p in row["passages"]
        ),
        supporting_facts=tuple(
            SupportingFact(fact["title"], fact["sentence"]) for fact in row["supporting_facts"]
        ),
        evidence=tuple(Triple(t["head"], t["relation"], t["tail"]) for t in row["evidence"]),
        decomposition=tuple(
            Hop(hop["question"], hop["answer"], hop["passage"]) for hop in row["decomposition"]
        ),
    )


def label_to_row(label: Label) -> Row:
    """The label columns of one row; ``noise_type`` as the number that `ClassLabel` stores.

    >>> label_to_row(Label("missing_evidence", "No sentence names it.", (), (), "t"))["noise_type"]
    1
    """
    return {
        "unverifiable": label.unverifiable,
        "noise_type": NOISE_TYPES.index(label.noise_type),
        "explanation": label.explanation,
        "reasoning_path": [
            {"head": t.head, "relation": t.relation, "tail": t.tail, "passage": t.passage}
            for t in label.reasoning_path
        ],
        "knowledge_graph": [
            {
                "head": t.head,
                "relation": t.relation,
                "tail": t.tail,
                "passage": t.passage,
                "sentence": t.sentence,
            }
            for t in label.knowledge_graph
        ],
        "teacher": label.teacher,
    }
