"""Make the probe's rows of a question, a valid path and its corruptions, and count them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from builders.paths.corruptions import KINDS, Scope, corrupt_path
from builders.paths.world import Path, PathQuestion, World
from safe_stepwise.graphs.path_order import end_key, ends_in_question, find_unreached
from safe_stepwise.methods.paths import path_request
from safe_stepwise.records import Triple, identity
from safe_stepwise.store.names import CORRUPTIONS, PATH_LABELS, PROBED, PROMPT_COMPLETION, Corruption

CONFIGS = (PROBED, PROMPT_COMPLETION)


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One path of a question. ``position`` is the place of the error, from 1; None in a valid path.

    ``pair_id`` is the id of the row with the question's valid path.
    """

    question: PathQuestion
    path: Path
    corruption: Corruption
    position: int | None
    pair_id: str

    @property
    def id(self) -> str:
        """A hash of the row's content."""
        return row_id(self.question, self.path, self.corruption)


def row_id(question: PathQuestion, path: Path, corruption: Corruption) -> str:
    """Return the SHA-256 of a row's content."""
    triples = [(triple.head, triple.relation, triple.tail) for triple in path]
    identifiers = [question.benchmark, question.id, question.question, question.answer]
    return identity([*identifiers, corruption, triples])


def rows_of(
    question: PathQuestion, world: World, donors: Sequence[PathQuestion], seed: int, refused: Counter[tuple[str, str]]
) -> Iterator[ProbeRow | tuple[Corruption, str]]:
    """Yield the rows of a question, the valid one first; for a kind without a row, the kind and the reason.

    A row depends only on seed, question, kind, world and donors; ``refused`` counts refused drafts (`corrupt_path`).
    """
    pair = row_id(question, question.path, "valid")
    paths = {question.path}
    yield ProbeRow(question, question.path, "valid", None, pair)
    for kind in KINDS:
        chance = Random(f"{seed} {question.benchmark} {question.id} {kind}")
        draft = corrupt_path(kind, Scope(question, world, donors, chance), refused)
        if isinstance(draft, str):
            yield kind, draft
        elif draft[0] in paths:
            yield kind, "another kind made the same path"
        else:
            paths.add(draft[0])
            yield ProbeRow(question, draft[0], kind, draft[1], pair)


def config_features(config: str) -> Any:
    """Return the `datasets.Features` of a config; `PROMPT_COMPLETION` is TRL's conversational form."""
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
    """Return the columns of a row in a config, with class labels as the numbers that `ClassLabel` stores."""
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


Pairs = Counter[tuple[str, str]]


@dataclass(slots=True)
class Tally:
    """Counts as the rows are made."""

    read: int = 0
    """Questions with a path, before sampling."""
    row_counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Rows by split, benchmark and kind."""
    lengths: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Valid rows by benchmark and number of triples."""
    marked: Counter[str] = field(default_factory=Counter)
    """Rows that look wrong by their form, by kind."""
    left_out: Pairs = field(default_factory=Counter)
    refused: Pairs = field(default_factory=Counter)
    refused_drafts: Pairs = field(default_factory=Counter)

    def add(self, split: str, row: ProbeRow) -> None:
        question = row.question
        self.row_counts[split, question.benchmark, row.corruption] += 1
        self.marked[row.corruption] += is_marked(question.question, question.answer, row.path)
        self.lengths[question.benchmark, len(row.path)] += row.corruption == "valid"

    def count(self, *keys: str) -> int:
        """Count the rows of a split, benchmark and kind (any may be left out); ``valid`` rows are questions."""
        return sum(number for key, number in list(self.row_counts.items()) if set(keys) <= set(key))

    def fields(self) -> dict[str, Any]:
        """Return the counts for the record of a build, in rows unless a comment says otherwise."""
        splits, benchmarks, _ = (sorted(set(names)) for names in zip(*self.row_counts, strict=True))
        return {
            "rows": self.count(),
            "questions": self.count("valid"),
            "splits": {name: {"rows": self.count(name), "questions": self.count(name, "valid")} for name in splits},
            "benchmarks": {
                name: {
                    "questions": self.count(name, "valid"),
                    **{kind: n for kind in sorted(self.marked) if (n := self.count(name, kind))},
                }
                for name in benchmarks
            },
            # Questions by benchmark, then the number of triples in their valid path.
            "lengths": _nest(+self.lengths),
            # All rows, and those that look wrong by their form alone.
            "marked": {kind: {"rows": self.count(kind), "marked": n} for kind, n in sorted(self.marked.items())},
            "left_out": _nest(self.left_out),  # questions without rows
            "refused": _nest(self.refused),  # questions without a corruption of a kind
            "drawn": _nest(self.refused_drafts),
        }


def _nest(counts: Mapping[tuple[str, Any], int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), number in sorted(counts.items()):
        nested.setdefault(outer, {})[str(inner)] = number
    return nested


def is_marked(question: str, answer: str, path: Sequence[Triple]) -> bool:
    """Whether a path looks wrong by its form alone, so that a model needs no knowledge to reject it.

    A path is marked if its first triple names nothing of the question, if a triple joins nothing that the question or
    an earlier triple names, or if no triple names the answer.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> question = "In which country was Ana Vorr born?"
    >>> is_marked(question, "Oru", [oru]), is_marked(question, "Kelvia", [oru])
    (False, True)
    """
    ends = {end_key(end) for triple in path for end in (triple.head, triple.tail)}
    sought = end_key(answer)
    return find_unreached(path, ends_in_question(question, path)) is not None or sought not in ends | {"yes", "no"}
