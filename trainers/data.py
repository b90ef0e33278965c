"""Read, tokenise and check the rows of a training run, and put them in the order of training.

The rows are those of the recipe's data set, and of sets that join it for an ablation (SAFE v2, Table 5). The trainer
gets token ids and labels and does not change them, so the rows checked here are the rows trained on. A prompt has the
tokens that our engines send (`engines.chat`). Only the completion is learnt, with the token that ends its turn.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.engines.base import EngineError, Message
from safe_stepwise.engines.chat import Chat, escape_control
from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import TEST, TRAIN
from trainers.config import Recipe
from trainers.models import context_of
from trainers.rows.base import BadRow, DatasetSource, Row, RowKind, fingerprint, kind_of, refuse

IGNORED = -100
"""The label of a token that is not learnt."""


@dataclass(frozen=True, slots=True)
class TokenizedRow:
    """A training row as tokens; the first ``prompt`` tokens are not learnt."""

    id: str
    tokens: tuple[int, ...]
    prompt: int
    label: bool = True
    """Whether the completion is desirable (KTO); always true for SFT."""

    @property
    def labels(self) -> list[int]:
        """One label per token, in the trainer's format."""
        return [IGNORED] * self.prompt + list(self.tokens[self.prompt :])


@dataclass(frozen=True, slots=True)
class Joined:
    """A further data set of a recipe (``plus``): the ids of its filtered rows, and their SHA-256."""

    source: DatasetSource
    ids: frozenset[str]
    sha256: str


@dataclass(frozen=True, slots=True)
class Data:
    """The checked rows of a run."""

    source: DatasetSource
    joined: Sequence[Joined]
    sha256: str
    train: Sequence[TokenizedRow]
    held_out: Sequence[TokenizedRow]
    longest: int
    """Tokens of the longest row, before long ones are left out."""
    limit: int
    """The maximum of tokens of a row."""
    dropped: Sequence[str]
    """Sorted ids of the rows that were left out as too long."""


def read_data(recipe: Recipe, weights: Weights, kind: RowKind | None = None) -> Data:
    """Read and tokenise a recipe's rows; raise ``UserError`` with ids of rows that are empty, cut or too long."""
    chat, kind = Chat.load(weights), kind or kind_of(recipe)
    source, rows, joined = train_rows(recipe, kind)
    train, bad = tokenize(rows, chat, kind.check)
    held_out: list[TokenizedRow] = []
    if recipe.held_out:
        _, tests = kind.open(recipe.dataset, TEST, recipe.filters)
        held_out, bad_tests = tokenize(tests[: recipe.held_out], chat, kind.check)
        bad |= bad_tests
    refuse(bad, recipe.dataset, "mend or leave out these rows")
    longest = max(len(example.tokens) for example in (*train, *held_out))
    context = context_of(weights)
    limit = min(recipe.max_length or context, context)
    long = too_long((*train, *held_out), limit)
    if not recipe.drop_long:
        refuse(long, recipe.dataset, f"set max_length up to {context}, or drop_long: true")
    train = [example for example in train if example.id not in long]
    held_out = [example for example in held_out if example.id not in long]
    if not train:
        raise UserError(f"{recipe.dataset}: every row has more than {limit} tokens")
    return Data(source, joined, fingerprint(rows), train, held_out, longest, limit, sorted(long))


def train_rows(recipe: Recipe, kind: RowKind | None = None) -> tuple[DatasetSource, list[Row], list[Joined]]:
    """Load the rows of ``dataset``, then of ``plus``; raise ``UserError`` for repeats and for test questions."""
    kind = kind or kind_of(recipe)
    source, rows = kind.open(recipe.dataset, TRAIN, recipe.filters)
    test_questions = set(kind.questions(recipe.dataset, TEST).values()) if recipe.plus else set()
    joined = []
    for name in recipe.plus:
        joined_source, joined_rows = kind.open(name, TRAIN, recipe.filters)
        questions = kind.questions(name, TRAIN)
        leaked = {str(r["id"]): "is of a test question" for r in joined_rows if questions[r["id"]] in test_questions}
        refuse(leaked, name, f"leave out the questions that {recipe.dataset} tests")
        ids = frozenset(str(row["id"]) for row in joined_rows)
        joined.append(Joined(joined_source, ids, fingerprint(joined_rows)))
        rows += joined_rows
    counts = Counter(str(row["id"]) for row in rows)
    duplicates = {id_: f"comes {number} times" for id_, number in counts.items() if number > 1}
    refuse(duplicates, ", ".join((recipe.dataset, *recipe.plus)), "name each set once")
    return source, rows, joined


def tokenize(
    rows: Iterable[Row], chat: Chat, check: Callable[[str], None]
) -> tuple[list[TokenizedRow], dict[str, str]]:
    """Tokenise rows; return the examples and, by id, why other rows, such as those ``check`` refuses, can't be."""
    examples, bad = [], {}
    for row in rows:
        try:
            examples.append(_example(row, chat, check))
        except (BadRow, EngineError) as error:
            bad[str(row["id"])] = str(error)
    return examples, bad


def too_long(examples: Iterable[TokenizedRow], limit: int) -> dict[str, str]:
    """Map the id of each row with more than ``limit`` tokens to an error message."""
    lengths = {example.id: len(example.tokens) for example in examples}
    return {id_: f"has {length} tokens, more than {limit}" for id_, length in lengths.items() if length > limit}


def check_masks(
    trained: Sequence[Mapping[str, Any]],
    collate: Callable[[list[Mapping[str, Any]]], Mapping[str, Any]],
    examples: Sequence[TokenizedRow],
) -> None:
    """Raise ``UserError`` with a row's id if the trainer or its collator cut, padded or masked a row."""
    if len(trained) != len(examples):
        raise UserError(f"the trainer holds {len(trained)} rows of {len(examples)}: it dropped some")
    for row, example in zip(trained, examples, strict=True):
        if list(row["input_ids"]) != list(example.tokens) or row["labels"] != example.labels:
            raise UserError(f"row {example.id}: the trainer changed its tokens or its mask")
    # A padded batch of the longest and the shortest: padding must not be learnt.
    by_length = sorted(range(len(examples)), key=lambda n: len(examples[n].tokens))
    for number in {by_length[0], by_length[-1]}:
        batch = collate([trained[number], trained[by_length[-1]]])
        learnt = [int(token) for token in batch["labels"].reshape(-1) if token != IGNORED]
        pair = (examples[number], examples[by_length[-1]])
        if learnt != [token for example in pair for token in example.tokens[example.prompt :]]:
            raise UserError(f"row {examples[number].id}: a batch learns other tokens than its own")


def order(lengths: Sequence[int], epochs: float, step: int, seed: int, by_length: bool) -> list[int]:
    """Return row numbers in the order of training; ``step`` of them make one optimizer step.

    Every whole epoch holds each row once. ``by_length`` sorts the rows within a step, so that a batch has rows of
    similar length. The list is fixed in advance, so that a resumed run sees the rows of an uninterrupted one.

    >>> order([5, 1, 3, 2], 1.5, 2, seed=0, by_length=True)
    [3, 0, 1, 2, 1, 0]
    """
    total = round(len(lengths) * epochs)
    shuffled: list[int] = []
    epoch = 0
    while len(shuffled) < total:
        rows = list(range(len(lengths)))
        random.Random(f"{seed}/{epoch}").shuffle(rows)
        shuffled += rows
        epoch += 1
    shuffled = shuffled[: max(total, 1)]
    if not by_length:
        return shuffled
    steps = [shuffled[start : start + step] for start in range(0, len(shuffled), step)]
    return [row for rows in steps for row in sorted(rows, key=lambda n: lengths[n])]


def _example(row: Row, chat: Chat, check: Callable[[str], None]) -> TokenizedRow:
    prompt, completion = row["prompt"], row["completion"]
    if not prompt or not all(turn["content"].strip() for turn in prompt):
        raise BadRow("has an empty prompt")
    if not completion or not all(turn["content"].strip() for turn in completion):
        raise BadRow("has an empty completion")
    if [turn["role"] for turn in completion] != ["assistant"]:
        raise BadRow("has a completion that is not one turn of the assistant")
    check(completion[0]["content"])
    turns = [Message(turn["role"], turn["content"]) for turn in (*prompt, *completion)]
    start = chat.encode(turns[:-1])
    return TokenizedRow(str(row["id"]), (*start, *_completion(chat, turns)), len(start), bool(row.get("label", True)))


def _completion(chat: Chat, turns: Sequence[Message]) -> list[int]:
    """Return the tokens of the last turn as a model would generate them, with its end token."""
    prefix, rendered = chat.render(turns[:-1]), chat.render(turns, complete=True)
    if not rendered.startswith(prefix):
        raise BadRow("is rendered so that its prompt is no prefix of the whole, by the chat template")
    reply = rendered[len(prefix) :].rstrip()  # text after the turn's end is never generated
    ids: list[int] = chat.tokenizer.encode(reply, add_special_tokens=False)
    ends = set(chat.tokenizer.all_special_ids)
    if ids[-1] not in ends:
        raise BadRow("has a completion whose turn the chat template does not end")
    if ends & set(ids[:-1]):
        raise BadRow("has a control token inside its completion")
    if chat.tokenizer.decode(ids[:-1]).strip() != escape_control(turns[-1].content, chat.control).strip():
        raise BadRow("has a completion that the chat template or the tokenizer changes")
    return ids
