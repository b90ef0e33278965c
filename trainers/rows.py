"""The rows a verifier is trained on: found, filtered, turned into tokens, and checked.

What is checked here is what is trained on: the trainer gets token ids and labels, and leaves them
as they are. A prompt has the very tokens that our engines send (`engines.chat`), and a completion
is all that is learnt, up to and with the token that ends the turn.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.engines.base import EngineError, Message
from safe_stepwise.engines.chat import Chat, spelled_out
from safe_stepwise.engines.weights import one_line
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, format_feedback, parse_feedback
from safe_stepwise.records import Feedback, identity
from safe_stepwise.taxonomy import CORRECT, category
from trainers.config import Filters

IGNORED = -100
"""The label of a token that is not learnt."""
NAMED = 10
PLAIN_GUIDANCE = "Write this step again, without the error."
"""Guidance of a diagnosis-only verifier, as every error needs one that is not empty."""

_SET = "safe-verifier-steps"
_TOLD = ["id", "benchmark", "question_id", "error_type", "origin"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """The dataset of a run; ``revision`` is a commit, or None for a folder.

    ``about`` is the build's own ``statistics/verifier_steps.json``, empty if it has none.
    """

    name: str
    revision: str | None
    about: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """One row as tokens; the first ``prompt`` of them are not learnt."""

    id: str
    tokens: tuple[int, ...]
    prompt: int

    @property
    def labels(self) -> list[int]:
        """A label a token, as the trainer wants them."""
        return [IGNORED] * self.prompt + list(self.tokens[self.prompt :])


def open_rows(dataset: str, split: str, filters: Filters) -> tuple[Source, list[Row]]:
    """The rows ``{id, prompt, completion}`` of a split that the filters leave, in their order.

    Raises ``UserError`` for a dataset that is not there, not pinned or of another kind, and for
    filters that leave nothing.
    """
    source, place = _find(dataset)
    rows = list(_load(dataset, place, source.revision, "prompt_completion", split))
    for row in rows[:1]:
        if not {"id", "prompt", "completion"} <= set(row):
            raise UserError(f"{dataset}: its prompt_completion lacks id, prompt or completion")
    if filters.drop_category or filters.origins:
        labels = _labels(dataset, place, source.revision, split)
        kept = {row["id"] for row in labels if _stays(row, filters)}
        rows = [row for row in rows if row["id"] in kept]
    rows = rows[: filters.rows]
    if not rows:
        raise UserError(f"{dataset}: no row of {split} is left by the filters; loosen them")
    return source, [_with_feedback(row, filters.feedback) for row in rows]


def labels_of(dataset: str, split: str) -> list[Row]:
    """``{id, benchmark, question_id, error_type, origin}`` of every row of a split, in words.

    Raises ``UserError`` as `open_rows` does.
    """
    source, place = _find(dataset)
    return _labels(dataset, place, source.revision, split)


def _labels(dataset: str, place: str, revision: str | None, split: str) -> list[Row]:
    found = _load(dataset, place, revision, "steps", split).select_columns(_TOLD)
    named = {name: found.features[name] for name in ("error_type", "origin")}
    return [
        {**row, **{name: label.int2str(row[name]) for name, label in named.items()}}
        for row in found
    ]


def fingerprint(rows: Iterable[Row]) -> str:
    """SHA-256 (64 hex digits) of rows in their order, wherever they came from."""
    return identity([[row["id"], list(row["prompt"]), list(row["completion"])] for row in rows])


def tokenize(rows: Iterable[Row], chat: Chat) -> tuple[list[Example], dict[str, str]]:
    """The rows as tokens, and for those that can't be trained on the reason, by id."""
    examples, bad = [], {}
    for row in rows:
        try:
            examples.append(_example(row, chat))
        except (_Bad, EngineError) as error:
            bad[str(row["id"])] = str(error)
    return examples, bad


def too_long(examples: Iterable[Example], limit: int) -> dict[str, str]:
    """Rows of more than ``limit`` tokens, with the reason: they would lose their completion."""
    return {
        one.id: f"has {len(one.tokens)} tokens, more than {limit}"
        for one in examples
        if len(one.tokens) > limit
    }


def refuse(bad: Mapping[str, str], dataset: str, mend: str) -> None:
    """Raise ``UserError`` with up to ten ids if there are bad rows."""
    if bad:
        named = "; ".join(f"{id_}: {reason}" for id_, reason in sorted(bad.items())[:NAMED])
        more = f"; and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
        raise UserError(f"{dataset}: {len(bad)} rows can't be trained on ({named}{more}); {mend}")


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
        raise UserError(
            f"the trainer holds {len(trained)} rows of {len(examples)}: it dropped some"
        )
    for row, example in zip(trained, examples, strict=True):
        if list(row["input_ids"]) != list(example.tokens) or row["labels"] != example.labels:
            raise UserError(f"row {example.id}: the trainer changed its tokens or its mask")
    # A padded batch of the longest and the shortest: padding must not be learnt.
    by_length = sorted(range(len(examples)), key=lambda n: len(examples[n].tokens))
    for number in {by_length[0], by_length[-1]}:
        batch = collate([trained[number], trained[by_length[-1]]])
        learnt = [int(token) for token in batch["labels"].reshape(-1) if token != IGNORED]
        pair = (examples[number], examples[by_length[-1]])
        if learnt != [token for one in pair for token in one.tokens[one.prompt :]]:
            raise UserError(f"row {examples[number].id}: a batch learns other tokens than its own")


def order(
    lengths: Sequence[int], epochs: float, step: int, seed: int, by_length: bool
) -> list[int]:
    """Row numbers in the order they are trained on, ``step`` of them making one optimizer step.

    Every whole epoch holds each row once. With ``by_length`` the rows of a step are sorted, so that
    what is batched together is of like length; which rows make up a step stays the same. A list
    fixed in advance is what makes a resumed run see what the uninterrupted one would have.

    >>> order([5, 1, 3, 2], 1.5, 2, seed=0, by_length=True)
    [3, 0, 1, 2, 1, 0]
    """
    total = round(len(lengths) * epochs)
    drawn: list[int] = []
    epoch = 0
    while len(drawn) < total:
        rows = list(range(len(lengths)))
        random.Random(f"{seed}/{epoch}").shuffle(rows)
        drawn += rows
        epoch += 1
    drawn = drawn[: max(total, 1)]
    if not by_length:
        return drawn
    steps = [drawn[start : start + step] for start in range(0, len(drawn), step)]
    return [row for rows in steps for row in sorted(rows, key=lambda n: lengths[n])]


class _Bad(Exception):
    """Why a row can't be trained on."""


def _example(row: Row, chat: Chat) -> Example:
    prompt, completion = row["prompt"], row["completion"]
    if not prompt or not all(turn["content"].strip() for turn in prompt):
        raise _Bad("has an empty prompt")
    if not completion or not all(turn["content"].strip() for turn in completion):
        raise _Bad("has an empty completion")
    if [turn["role"] for turn in completion] != ["assistant"]:
        raise _Bad("has a completion that is not one turn of the assistant")
    try:
        parse_feedback(completion[0]["content"], incomplete_evidence=True)
    except FeedbackError as error:
        raise _Bad(f"has a completion that is no verdict, or is cut short ({error})") from None
    turns = [Message(turn["role"], turn["content"]) for turn in (*prompt, *completion)]
    start = chat.tokens(turns[:-1])
    return Example(str(row["id"]), (*start, *_completion(chat, turns)), len(start))


def _completion(chat: Chat, turns: Sequence[Message]) -> list[int]:
    """The last turn's tokens as a model would say them after the prompt, its end included."""
    before, whole = chat.rendered(turns[:-1]), chat.rendered(turns, complete=True)
    if not whole.startswith(before):
        raise _Bad("is rendered so that its prompt is no prefix of the whole, by the chat template")
    said = whole[len(before) :].rstrip()  # what stands after the turn's end is never generated
    ids: list[int] = chat.tokenizer.encode(said, add_special_tokens=False)
    ends = set(chat.tokenizer.all_special_ids)
    if ids[-1] not in ends:
        raise _Bad("has a completion whose turn the chat template does not end")
    if ends & set(ids[:-1]):
        raise _Bad("has a control token inside its completion")
    if (
        chat.tokenizer.decode(ids[:-1]).strip()
        != spelled_out(turns[-1].content, chat.control).strip()
    ):
        raise _Bad("has a completion that the chat template or the tokenizer changes")
    return ids


def _stays(row: Row, filters: Filters) -> bool:
    label = row["error_type"]
    dropped = label != CORRECT and category(label) == filters.drop_category
    return not dropped and (not filters.origins or row["origin"] in filters.origins)


def _with_feedback(row: Row, keep: str) -> Row:
    """The row with one field of its verdict blanked, in the wire format that the loop reads."""
    if keep == "full":
        return row
    turn = row["completion"][0]
    found = parse_feedback(turn["content"], incomplete_evidence=True)
    plain = "" if found.error_type == CORRECT else PLAIN_GUIDANCE
    diagnosis, guidance = (found.diagnosis, plain) if keep == "diagnosis" else ("", found.guidance)
    verdict = Feedback(found.error_type, diagnosis, guidance, found.query)
    return {**row, "completion": [{**turn, "content": format_feedback(verdict)}]}


def _find(dataset: str) -> tuple[Source, str]:
    """The source, and what `datasets` takes as a path."""
    folder = Path(dataset).expanduser()
    if (folder / _SET / "data").is_dir():
        folder /= _SET  # what build_verifier_steps was given as --output
    if folder.is_dir():
        file = folder / "statistics" / "verifier_steps.json"
        about = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return Source(folder.resolve().name, None, about), str(folder)
    name, at, revision = dataset.partition("@")
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise UserError(f"{dataset}: no such folder, and no NAMESPACE/NAME@REVISION of the Hub")
    if not at or not revision:
        raise UserError(f"{dataset}: no such folder, and not pinned; write {name}@COMMIT_OR_TAG")
    return _on_hub(name, revision), name


def _on_hub(name: str, revision: str) -> Source:
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    file = "statistics/verifier_steps.json"
    try:
        commit = HfApi().dataset_info(name, revision=revision).sha
        try:
            about = hf_hub_download(name, file, repo_type="dataset", revision=commit)
        except EntryNotFoundError:
            return Source(name, commit, {})
    except Exception as error:  # the client's errors have no common base
        raise UserError(
            f"{name}@{revision}: cannot be had from the Hub ({one_line(error)})"
        ) from None
    return Source(name, commit, json.loads(Path(about).read_text(encoding="utf-8")))


def _load(dataset: str, place: str, revision: str | None, config: str, split: str) -> Any:
    """A config's rows of a split as a `datasets.Dataset`."""
    from datasets import load_dataset
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        if revision is None:
            return _from_folder(Path(place), config, split)
        return load_dataset(place, config, split=split, revision=revision)
    except Exception as error:  # a missing config or split, damaged files: whatever it raises
        raise UserError(f"{dataset}: no {config} rows of {split} ({one_line(error)})") from None


def _from_folder(folder: Path, config: str, split: str) -> Any:
    """A split's Parquet files as they are now: `load_dataset` would answer from a stale cache."""
    import pyarrow
    import pyarrow.parquet
    from datasets import Dataset

    files = sorted((folder / "data" / config).glob(f"{split}-*.parquet"))
    if not files:
        raise FileNotFoundError(f"no data/{config}/{split}-*.parquet in it")
    return Dataset(pyarrow.concat_tables([pyarrow.parquet.read_table(file) for file in files]))
