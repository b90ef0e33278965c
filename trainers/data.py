"""The rows of a run, as tokens, checked, and the order they are trained on in.

They are those of its dataset, and of sets that join for an ablation (SAFE v2, Table 5). What is checked here is what
is trained on: the trainer gets token ids and labels, and leaves them as they are. A prompt has the very tokens that
our engines send (`engines.chat`), and a completion is all that is learnt, up to and with the token that ends the turn.
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
from trainers.rows.base import BadRow, Kind, Row, Source, fingerprint, kind_of, refuse

IGNORED = -100
"""The label of a token that is not learnt."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row as tokens; the first ``prompt`` of them are not learnt."""

    id: str
    tokens: tuple[int, ...]
    prompt: int
    label: bool = True
    """Whether it is to be said: what is learnt from unlabelled rows always is."""

    @property
    def labels(self) -> list[int]:
        """A label a token, as the trainer wants them."""
        return [IGNORED] * self.prompt + list(self.tokens[self.prompt :])


@dataclass(frozen=True, slots=True)
class Joined:
    """A set that joined: the ids of its rows that the filters leave, and their SHA-256."""

    source: Source
    ids: frozenset[str]
    sha256: str


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of a run, checked. ``longest`` is in tokens; ``dropped`` are ids of long rows."""

    source: Source
    joined: Sequence[Joined]
    sha256: str
    train: Sequence[Example]
    held_out: Sequence[Example]
    longest: int
    limit: int
    dropped: Sequence[str]

    @property
    def completion_tokens(self) -> int:
        """Tokens that are learnt in one epoch."""
        return sum(len(example.tokens) - example.prompt for example in self.train)


def read_data(recipe: Recipe, weights: Weights, kind: Kind | None = None) -> Data:
    """The rows as tokens; their ``kind`` is the recipe's, if not said.

    Raises ``UserError`` with the ids of rows that are empty, cut short or too long.
    """
    chat, kind = Chat.load(weights), kind or kind_of(recipe)
    source, rows, joined = train_rows(recipe, kind)
    train, bad = tokenize(rows, chat, kind.check)
    held_out: list[Example] = []
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
    sha256 = fingerprint(rows)
    return Data(source, joined, sha256, train, held_out, longest, limit, sorted(long))


def train_rows(recipe: Recipe, kind: Kind | None = None) -> tuple[Source, list[Row], list[Joined]]:
    """The rows of ``dataset`` that a recipe trains on, followed by those of ``plus``.

    Raises ``UserError`` for what ``kind.open`` does, for a row that comes twice, and for rows of a
    question that ``dataset`` keeps for its test split.
    """
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


def tokenize(rows: Iterable[Row], chat: Chat, check: Callable[[str], None]) -> tuple[list[Example], dict[str, str]]:
    """The rows as tokens, and for those that can't be trained on the reason, by id.

    ``check`` is their kind's: it raises ``BadRow`` for a completion that must not be learnt.
    """
    examples, bad = [], {}
    for row in rows:
        try:
            examples.append(_example(row, chat, check))
        except (BadRow, EngineError) as error:
            bad[str(row["id"])] = str(error)
    return examples, bad


def too_long(examples: Iterable[Example], limit: int) -> dict[str, str]:
    """Rows of more than ``limit`` tokens, with the reason: they would lose their completion."""
    lengths = {example.id: len(example.tokens) for example in examples}
    return {id_: f"has {length} tokens, more than {limit}" for id_, length in lengths.items() if length > limit}


def check_masks(
    trained: Sequence[Mapping[str, Any]],
    collate: Callable[[list[Mapping[str, Any]]], Mapping[str, Any]],
    examples: Sequence[Example],
) -> None:
    """Raise ``UserError`` with the row's id unless the trainer holds each row as it was checked.

    ``trained`` is its dataset as prepared, ``collate`` what makes batches of it; both are asked, as
    either could cut, pad or mask.
    """
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
    """Row numbers in the order they are trained on, ``step`` of them making one optimizer step.

    Every whole epoch holds each row once. With ``by_length`` the rows of a step are sorted, so that
    what is batched together is of like length; which rows make up a step stays the same. A list
    fixed in advance is what makes a resumed run see what the uninterrupted one would have.

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


def _example(row: Row, chat: Chat, check: Callable[[str], None]) -> Example:
    prompt, completion = row["prompt"], row["completion"]
    if not prompt or not all(turn["content"].strip() for turn in prompt):
        raise BadRow("has an empty prompt")
    if not completion or not all(turn["content"].strip() for turn in completion):
        raise BadRow("has an empty completion")
    if [turn["role"] for turn in completion] != ["assistant"]:
        raise BadRow("has a completion that is not one turn of the assistant")
    check(completion[0]["content"])
    turns = [Message(turn["role"], turn["content"]) for turn in (*prompt, *completion)]
    start = chat.tokens(turns[:-1])
    tokens = (*start, *_completion(chat, turns))
    return Example(str(row["id"]), tokens, len(start), bool(row.get("label", True)))


def _completion(chat: Chat, turns: Sequence[Message]) -> list[int]:
    """The last turn's tokens as a model would say them after the prompt, its end included."""
    prefix, rendered = chat.render(turns[:-1]), chat.render(turns, complete=True)
    if not rendered.startswith(prefix):
        raise BadRow("is rendered so that its prompt is no prefix of the whole, by the chat template")
    reply = rendered[len(prefix) :].rstrip()  # what stands after the turn's end is never generated
    ids: list[int] = chat.tokenizer.encode(reply, add_special_tokens=False)
    ends = set(chat.tokenizer.all_special_ids)
    if ids[-1] not in ends:
        raise BadRow("has a completion whose turn the chat template does not end")
    if ends & set(ids[:-1]):
        raise BadRow("has a control token inside its completion")
    if chat.tokenizer.decode(ids[:-1]).strip() != escape_control(turns[-1].content, chat.control).strip():
        raise BadRow("has a completion that the chat template or the tokenizer changes")
    return ids
