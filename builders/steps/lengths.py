"""No completion may be cut off in training: the tokens of every row, or a bound on them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.steps.configs import prompt_completion_row
from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet

BYTES_PER_TOKEN = 2.5
"""Fewer than common tokenizers put into a token of English text (about four)."""
TURN = 16
"""Tokens that a chat template puts around a turn, at most; it also is their number of bytes."""
NAMED = 10


@dataclass(frozen=True, slots=True)
class Lengths:
    """The longest prompt with its completion, and how that is known.

    ``method`` is ``tokens`` (counted with ``tokenizer``), ``bytes`` (of UTF-8, which no tokenizer
    exceeds) or ``estimate`` (bytes / 2.5).
    """

    method: str
    tokenizer: str | None
    max_length: int
    longest: int


def check_lengths(
    rows: Iterable[StepRow], max_length: int, tokenizer: str | None, prompt_set: PromptSet = PAPER
) -> Lengths:
    """Raise ``UserError`` with up to ten row ids if any is longer than ``max_length`` tokens.

    A row is as long as under the prompt of twelve labels, which says more than that of eleven.
    ``tokenizer`` is a name or folder for transformers' `AutoTokenizer`.
    """
    if tokenizer is not None:
        count, method = _counter(tokenizer, prompt_set), "tokens"
        sizes = {row.id: count(row) for row in rows}
    else:
        sizes, method = (
            {row.id: sum(len(turn["content"].encode()) + TURN for turn in _turns(row, prompt_set)) for row in rows},
            "bytes",
        )
        if any(size > max_length for size in sizes.values()):
            sizes = {id_: round(size / BYTES_PER_TOKEN) for id_, size in sizes.items()}
            method = "estimate"
    long = sorted(id_ for id_, size in sizes.items() if size > max_length)
    if long:
        more = f" and {len(long) - NAMED} more" if len(long) > NAMED else ""
        known = "counted" if method == "tokens" else "estimated"
        raise UserError(
            f"{len(long)} rows are longer than --max-length {max_length} tokens "
            f"({known}; the longest {max(sizes.values())}): "
            f"{', '.join(long[:NAMED])}{more}; allow more, or use shorter passages"
        )
    # Of a folder the name alone: where it lies is nobody's business.
    name = Path(tokenizer).name if tokenizer and Path(tokenizer).exists() else tokenizer
    return Lengths(method, name, max_length, max(sizes.values(), default=0))


def _turns(row: StepRow, prompt_set: PromptSet) -> list[dict[str, str]]:
    content = prompt_completion_row(row, incomplete_evidence=True, prompt_set=prompt_set)
    return [*content["prompt"], *content["completion"]]


def _counter(name: str, prompt_set: PromptSet) -> Callable[[StepRow], int]:
    tokenizer = _tokenizer(name)

    def count(row: StepRow) -> int:
        turns = _turns(row, prompt_set)
        if getattr(tokenizer, "chat_template", None):
            text = tokenizer.apply_chat_template(turns, tokenize=False)
            return len(tokenizer(text, add_special_tokens=False)["input_ids"])
        texts = [turn["content"] for turn in turns]
        return sum(len(ids) + TURN for ids in tokenizer(texts)["input_ids"])

    return count


def _tokenizer(name: str) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise UserError(
            "--tokenizer needs transformers, which is not installed; pip install -e '.[train]', or "
            "leave it out: lengths are then bounded by bytes"
        ) from None
    try:
        return AutoTokenizer.from_pretrained(name)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"--tokenizer {name}: cannot be loaded ({reason})") from None
