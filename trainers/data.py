"""Read, tokenise and check the rows of a training run, and put them in the order of training.

The rows are those of the recipe's data set, and of sets that join it for an ablation (SAFE v2, Table 5). The trainer
gets token ids and labels and does not change them, so the rows checked here are the rows trained on. A prompt has the
tokens that our engines send (`engines.chat`). Only the completion is learnt, with the token that ends its turn.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from safe_stepwise.engines.base import EngineError, Message
from safe_stepwise.engines.chat import Chat, escape_control
from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from safe_stepwise.players.encoding import encode_pair
from safe_stepwise.store.names import TEST, TRAIN
from trainers.config import Recipe
from trainers.models import context_of, load_tokenizer
from trainers.rows.base import BadRow, DatasetSource, Row, RowKind, fingerprint, kind_of, refuse

IGNORED = -100
"""The label of a token that is not learnt."""


@dataclass(frozen=True, slots=True)
class Example:
    """A training row as tokens; the first ``prompt_length`` tokens are not learnt."""

    id: str
    tokens: tuple[int, ...]
    prompt_length: int
    is_desirable: bool = True
    """Whether the completion is desirable (KTO); always true for SFT."""
    class_number: int = 0
    """The number of the class that an encoder learns."""
    view: str = ""
    """The part of a curriculum that the row belongs to."""
    types: tuple[int, ...] = ()
    """The token types of an encoder's row."""

    @property
    def labels(self) -> list[int]:
        """One label per token, in the trainer's format."""
        return [IGNORED] * self.prompt_length + list(self.tokens[self.prompt_length :])


@dataclass(frozen=True, slots=True)
class ExtraSet:
    """A data set that a recipe adds (``plus``): its source, and ids and `fingerprint` of its selected rows."""

    source: DatasetSource
    ids: frozenset[str]
    sha256: str


@dataclass(frozen=True, slots=True)
class Data:
    """The checked rows of a run, as examples."""

    source: DatasetSource
    extra_sets: Sequence[ExtraSet]
    sha256: str
    train: Sequence[Example]
    held_out: Sequence[Example]
    longest_example: int
    """Number of tokens of the longest example, before long ones are left out."""
    max_tokens: int
    """The most tokens that an example may have."""
    dropped: Sequence[str]
    """Sorted ids of the rows that were left out as too long."""


def read_data(recipe: Recipe, weights: Weights, kind: RowKind | None = None) -> Data:
    """Read and tokenise a recipe's rows; raise ``UserError`` with ids of rows that are empty, cut or too long."""
    kind = kind or kind_of(recipe)
    source, rows, extra_sets = read_train_rows(recipe, kind)
    if kind.classes:
        encode = partial(_encode_row, load_tokenizer(weights), kind)
    else:
        encode = partial(tokenize_row, Chat.load(weights), kind.check)
    train, bad = tokenize(rows, encode)
    held_out: list[Example] = []
    if recipe.held_out:
        _, test_rows = kind.open(recipe.dataset, TEST, replace(recipe.filters, rows=None))
        held_out, bad_test_rows = tokenize(test_rows[: recipe.held_out], encode)
        bad |= bad_test_rows
    refuse(bad, recipe.dataset, "mend or leave out these rows")
    longest_example = max(len(example.tokens) for example in (*train, *held_out))
    context = context_of(weights)
    max_tokens = min(recipe.max_length or context, context)
    too_long = find_too_long((*train, *held_out), max_tokens)
    if not recipe.drop_long:
        refuse(too_long, recipe.dataset, f"set max_length up to {context}, or drop_long: true")
    train = [example for example in train if example.id not in too_long]
    held_out = [example for example in held_out if example.id not in too_long]
    if not train:
        raise UserError(f"{recipe.dataset}: every row has more than {max_tokens} tokens")
    return Data(source, extra_sets, fingerprint(rows), train, held_out, longest_example, max_tokens, sorted(too_long))


def read_train_rows(recipe: Recipe, kind: RowKind | None = None) -> tuple[DatasetSource, list[Row], list[ExtraSet]]:
    """Load the train rows of ``dataset``, then of ``plus``; raise ``UserError`` for repeats and for test questions."""
    kind = kind or kind_of(recipe)
    source, rows = kind.open(recipe.dataset, TRAIN, recipe.filters)
    test_questions = set(kind.questions(recipe.dataset, TEST).values()) if recipe.plus else set()
    extra_sets = []
    for name in recipe.plus:
        extra_source, extra_rows = kind.open(name, TRAIN, recipe.filters)
        questions = kind.questions(name, TRAIN)
        seen = [r for r in extra_rows if questions.get(r["id"]) in test_questions]
        leaked = {str(row["id"]): "is of a test question" for row in seen}
        refuse(leaked, name, f"leave out the questions that {recipe.dataset} tests")
        ids = frozenset(str(row["id"]) for row in extra_rows)
        extra_sets.append(ExtraSet(extra_source, ids, fingerprint(extra_rows)))
        rows += extra_rows
    counts = Counter(str(row["id"]) for row in rows)
    duplicates = {id_: f"comes {number} times" for id_, number in counts.items() if number > 1}
    refuse(duplicates, ", ".join((recipe.dataset, *recipe.plus)), "name each set once")
    return source, rows, extra_sets


def tokenize(rows: Iterable[Row], encode: Callable[[Row], Example]) -> tuple[list[Example], dict[str, str]]:
    """Tokenise rows; return the examples, and by id why the rows that ``encode`` refuses can't be trained on."""
    examples, bad = [], {}
    for row in rows:
        try:
            examples.append(encode(row))
        except (BadRow, EngineError) as error:
            bad[str(row["id"])] = str(error)
    return examples, bad


def find_too_long(examples: Iterable[Example], max_tokens: int) -> dict[str, str]:
    """Map the id of each example with more than ``max_tokens`` tokens to an error message."""
    lengths = {example.id: len(example.tokens) for example in examples}
    return {
        id_: f"has {length} tokens, more than {max_tokens}" for id_, length in lengths.items() if length > max_tokens
    }


def check_masks(
    trainer_rows: Sequence[Mapping[str, Any]],
    collate: Callable[[list[Mapping[str, Any]]], Mapping[str, Any]],
    examples: Sequence[Example],
) -> None:
    """Raise ``UserError`` with an example's id if the trainer or its collator dropped, cut, padded or masked it."""
    if len(trainer_rows) != len(examples):
        raise UserError(f"the trainer holds {len(trainer_rows)} rows of {len(examples)}: it dropped some")
    for row, example in zip(trainer_rows, examples, strict=True):
        if list(row["input_ids"]) != list(example.tokens) or row["labels"] != example.labels:
            raise UserError(f"row {example.id}: the trainer changed its tokens or its mask")
    # Padding must not be learnt: the shortest example is padded in a batch with the longest.
    by_length = sorted(range(len(examples)), key=lambda n: len(examples[n].tokens))
    longest = by_length[-1]
    for number in {by_length[0], longest}:
        batch = collate([trainer_rows[number], trainer_rows[longest]])
        learnt = [int(token) for token in batch["labels"].reshape(-1) if token != IGNORED]
        pair = (examples[number], examples[longest])
        if learnt != [token for example in pair for token in example.tokens[example.prompt_length :]]:
            raise UserError(f"row {examples[number].id}: a batch learns other tokens than its own")


def training_order(lengths: Sequence[int], epochs: float, rows_per_step: int, seed: int, by_length: bool) -> list[int]:
    """Return row numbers in the order of training, at least one; ``lengths`` are the tokens of each row.

    Every whole epoch holds each row once. ``by_length`` sorts the rows within an optimizer step, so that a batch has
    rows of similar length. The list is fixed in advance, so that a resumed run sees the rows of an uninterrupted one.
    """
    total = max(1, round(len(lengths) * epochs))
    shuffled: list[int] = []
    epoch = 0
    while len(shuffled) < total:
        rows = list(range(len(lengths)))
        random.Random(f"{seed}/{epoch}").shuffle(rows)
        shuffled += rows
        epoch += 1
    shuffled = shuffled[:total]
    if not by_length:
        return shuffled
    steps = [shuffled[start : start + rows_per_step] for start in range(0, total, rows_per_step)]
    return [row for rows in steps for row in sorted(rows, key=lambda n: lengths[n])]


def _encode_row(tokenizer: Any, kind: RowKind, row: Row) -> Example:
    """Tokenise a pair of texts, whose label is the number of its class."""
    inputs = encode_pair(tokenizer, row["prompt"])
    tokens, types = tuple(inputs["input_ids"]), tuple(inputs["token_type_ids"])
    kind.check(row["completion"])
    number = kind.classes.index(row["completion"])
    return Example(row["id"], tokens, len(tokens), class_number=number, view=row["view"], types=types)


def tokenize_row(chat: Chat, check: Callable[[str], None], row: Row) -> Example:
    """Tokenise a conversation whose completion passes ``check``; raise `BadRow` for one that can't be trained on."""
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
    tokens = (*start, *_tokenize_completion(chat, turns))
    return Example(str(row["id"]), tokens, len(start), bool(row.get("label", True)))


def _tokenize_completion(chat: Chat, turns: Sequence[Message]) -> list[int]:
    """Return the tokens of the last turn as a model would generate them, with its end token."""
    prefix, rendered = chat.render(turns[:-1]), chat.render(turns, complete=True)
    if not rendered.startswith(prefix):
        raise BadRow("is rendered so that its prompt is no prefix of the whole, by the chat template")
    reply = rendered[len(prefix) :].rstrip()  # text after the turn's end is never generated
    ids: list[int] = chat.tokenizer.encode(reply, add_special_tokens=False)
    end_tokens = set(chat.tokenizer.all_special_ids)
    if ids[-1] not in end_tokens:
        raise BadRow("has a completion whose turn the chat template does not end")
    if end_tokens & set(ids[:-1]):
        raise BadRow("has a control token inside its completion")
    if chat.tokenizer.decode(ids[:-1]).strip() != escape_control(turns[-1].content, chat.control).strip():
        raise BadRow("has a completion that the chat template or the tokenizer changes")
    return ids
