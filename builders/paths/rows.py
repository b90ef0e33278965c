"""The probe's rows of one question, a valid path and its corruptions, and the columns of its two configs."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from builders.paths.corruptions import KINDS, Scope, corrupted
from builders.paths.world import Path, PathQuestion, World
from safe_stepwise.methods.paths import path_request
from safe_stepwise.records import identity
from safe_stepwise.store.names import CORRUPTIONS, PATH_LABELS, PROBED, PROMPT_COMPLETION, Corruption

CONFIGS = (PROBED, PROMPT_COMPLETION)


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One path of a question. ``position``: where it is wrong, from 1; None where it is valid.

    ``pair_id`` is the id of the question's valid path, its own if it is that.
    """

    question: PathQuestion
    path: Path
    corruption: Corruption
    position: int | None
    pair_id: str

    @property
    def id(self) -> str:
        """A hash of what it says."""
        return row_id(self.question, self.path, self.corruption)


def row_id(question: PathQuestion, path: Path, corruption: Corruption) -> str:
    """SHA-256 of what a row says."""
    triples = [(triple.head, triple.relation, triple.tail) for triple in path]
    named = [question.benchmark, question.id, question.question, question.answer]
    return identity([*named, corruption, triples])


def rows_of(
    question: PathQuestion, world: World, donors: Sequence[PathQuestion], seed: int, drawn: Counter[tuple[str, str]]
) -> Iterator[ProbeRow | tuple[Corruption, str]]:
    """The rows of a question, the valid one first, or why a kind is not among them.

    Each depends on the seed, the question and the kind alone, given world and donors; ``drawn`` is as of `corrupted`.
    """
    pair = row_id(question, question.path, "valid")
    seen = {question.path}
    yield ProbeRow(question, question.path, "valid", None, pair)
    for kind in KINDS:
        chance = Random(f"{seed} {question.benchmark} {question.id} {kind}")
        draft = corrupted(kind, Scope(question, world, donors, chance), drawn)
        if isinstance(draft, str):
            yield kind, draft
        elif draft[0] in seen:
            yield kind, "another kind made the same path"
        else:
            seen.add(draft[0])
            yield ProbeRow(question, draft[0], kind, draft[1], pair)


def config_features(config: str) -> Any:
    """The `datasets.Features` of a config; `PROMPT_COMPLETION` is TRL's conversational form."""
    from datasets import ClassLabel, Features, List, Value

    text = Value("string")
    if config == PROMPT_COMPLETION:
        turns = List({"role": text, "content": text})
        return Features({"id": text, "prompt": turns, "completion": turns})
    return Features(
        {
            "id": text,
            "benchmark": text,
            "question_id": text,
            "question": text,
            "answer": text,
            "path": List({"head": text, "relation": text, "tail": text}),
            "label": ClassLabel(names=list(PATH_LABELS)),
            "corruption": ClassLabel(names=list(CORRUPTIONS)),
            "position": Value("int32"),
            "pair_id": text,
        }
    )


def columns_of(config: str, row: ProbeRow) -> dict[str, Any]:
    """A row as a config has it; class labels as the numbers that `ClassLabel` stores."""
    question, is_valid = row.question, row.corruption == "valid"
    if config == PROMPT_COMPLETION:
        request = path_request(question.question, question.answer, row.path)
        verdict = json.dumps({"verdict": "YES" if is_valid else "NO"})
        return {
            "id": row.id,
            "prompt": [{"role": turn.role, "content": turn.content} for turn in request.messages],
            "completion": [{"role": "assistant", "content": verdict}],
        }
    return {
        "id": row.id,
        "benchmark": question.benchmark,
        "question_id": question.id,
        "question": question.question,
        "answer": question.answer,
        "path": [{"head": t.head, "relation": t.relation, "tail": t.tail} for t in row.path],
        "label": PATH_LABELS.index("valid" if is_valid else "invalid"),
        "corruption": CORRUPTIONS.index(row.corruption),
        "position": row.position,
        "pair_id": row.pair_id,
    }
