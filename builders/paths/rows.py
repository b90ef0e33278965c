"""The probe's rows of one question, a valid path and its corruptions; their columns, and what is counted of them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from builders.paths.corruptions import KINDS, Scope, corrupted
from builders.paths.world import Path, PathQuestion, World
from safe_stepwise.graphs.told import end_key, first_lost, named_in
from safe_stepwise.methods.paths import path_request
from safe_stepwise.records import Triple, identity
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


Pairs = Counter[tuple[str, str]]


@dataclass(slots=True)
class Tally:
    """Counts as the rows are made."""

    read: int = 0
    """Questions with a path, before any is drawn."""
    made: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Rows by split, benchmark and kind."""
    lengths: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By benchmark and number of triples."""
    marked: Counter[str] = field(default_factory=Counter)
    """By kind."""
    left_out: Pairs = field(default_factory=Counter)
    refused: Pairs = field(default_factory=Counter)
    drawn: Pairs = field(default_factory=Counter)

    def add(self, split: str, row: ProbeRow) -> None:
        """Count a row."""
        question = row.question
        self.made[split, question.benchmark, row.corruption] += 1
        self.marked[row.corruption] += is_marked(question.question, question.answer, row.path)
        self.lengths[question.benchmark, len(row.path)] += row.corruption == "valid"

    def count(self, *parts: str) -> int:
        """Rows that are of some split, benchmark and kind, each if it is named; of kind ``valid``: questions."""
        return sum(number for key, number in list(self.made.items()) if set(parts) <= set(key))

    def fields(self) -> dict[str, Any]:
        """The counts as the record of a build has them; each counts rows, unless it says otherwise."""
        splits, benchmarks, _ = (sorted(set(names)) for names in zip(*self.made, strict=True))
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
            "lengths": _nested(+self.lengths),
            # All, and those that look wrong by their form alone.
            "marked": {kind: {"rows": self.count(kind), "marked": n} for kind, n in sorted(self.marked.items())},
            # Questions without rows; corruptions that a question has none of; drafts refused on the way.
            **{name: _nested(getattr(self, name)) for name in ("left_out", "refused", "drawn")},
        }


def _nested(counts: Mapping[tuple[str, Any], int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), number in sorted(counts.items()):
        nested.setdefault(outer, {})[str(inner)] = number
    return nested


def is_marked(question: str, answer: str, path: Sequence[Triple]) -> bool:
    """Whether a path looks wrong by its form alone: the probe that tries to cheat on the probe.

    It knows no fact. Marked is a path whose first triple names nothing of the question, in which a triple joins
    nothing named or told before it, or that does not name the answer. Whatever this gets right, a model can get right
    without knowing anything.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> question = "In which country was Ana Vorr born?"
    >>> is_marked(question, "Oru", [oru]), is_marked(question, "Kelvia", [oru])
    (False, True)
    """
    ends = {end_key(end) for triple in path for end in (triple.head, triple.tail)}
    sought = end_key(answer)
    return first_lost(path, named_in(question, path)) is not None or sought not in ends | {"yes", "no"}
