"""The prompting methods on SmolLM2 through vLLM: what is asked, computed and accounted for.

A model of 135M parameters writes no JSON, so by its own words no machine leaves its first state. A
second run therefore speaks by the symbolic players: every prompt is computed, every reply decoded,
but what it says is what the machine needs to go on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partialmethod
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from builders.synthetic import Spec, generate
from evaluators.outcomes import read_outcomes
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.client import ResponseCache
from safe_stepwise.engines.vllm import VLLMEngine
from safe_stepwise.engines.weights import Model, find_model
from safe_stepwise.methods import METHODS
from safe_stepwise.open import open_engine
from safe_stepwise.players.steps import checker_of
from safe_stepwise.records import Trajectory, Usage
from safe_stepwise.store.codec import question_row
from scripts import evaluate_stepwise

pytest.importorskip("vllm", reason="no vLLM here: `make test-vllm` runs the model tests")

ONE_SHOT, MACHINES = ("direct", "cot", "sp_cot"), ("sg_fsm1", "sg_fsm2", "sg_fsm_safe")
BLOCK = 32
"""Tokens in a block of the prefix cache: the least that vLLM takes on a CPU."""
NUMBER, PASSAGES, REPLY = 5, 4, 8
"""Questions, passages of each, tokens of a reply."""
LIGHT = {"dtype": "float32", "enforce_eager": True, "max_model_len": 4096}
"""Compiling takes longer than the calls, and bfloat16 longer than float32 on most CPUs."""


@dataclass
class Heard:
    """What vLLM was asked, and what it replied, in the order of the replies."""

    calls: list[tuple[Request, Completion]] = field(default_factory=list)
    words: Callable[[Request], str] | None = None
    """What is said in the model's place."""

    @property
    def usage(self) -> Usage:
        spent = [one.usage for _, one in self.calls]
        return Usage(
            sum(u.prompt for u in spent), sum(u.cached for u in spent),
            sum(u.completion for u in spent),
        )  # fmt: skip

    def by_question(self, role: str) -> Iterator[list[tuple[Request, Completion]]]:
        """A role's calls, those of one question together."""
        questions = dict.fromkeys(r.scene.question.id for r, _ in self.calls)  # type: ignore[union-attr]
        for name in questions:
            yield [
                (request, said)
                for request, said in self.calls
                if (request.role, request.scene.question.id) == (role, name)  # type: ignore[union-attr]
            ]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    found, answer = Heard(), VLLMEngine.generate

    async def listening(engine: VLLMEngine, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        said = list(await answer(engine, requests))
        for place, (request, one) in enumerate(zip(requests, said, strict=True)):
            assert isinstance(one, Completion), one
            # As if it had ended there by itself: what is cut would be asked for again, and by every method.
            said[place] = one = Completion(found.words(request) if found.words else one.transcript, one.usage)
            found.calls.append((request, one))
        return said

    monkeypatch.setattr(VLLMEngine, "generate", listening)
    monkeypatch.setattr(VLLMEngine, "__init__", partialmethod(VLLMEngine.__init__, **LIGHT))
    return found


def chains(folder: Path) -> Path:
    """Questions of two hops, with what they need and little else to read."""
    rows = []
    for question, _ in generate(Spec(60, 3, 0.0, "plain"), split="validation"):
        fits = question.hops == 2 and not question.decomposition and len(rows) < NUMBER
        if fits and checker_of(question).plan.kind == "sequential":
            row = question_row(question)
            row["passages"].sort(key=lambda page: not page["is_gold"])
            rows.append(row | {"passages": row["passages"][:PASSAGES]})
    file = folder / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def evaluated(folder: Path, model: Path, methods: Sequence[str], *more: str) -> dict[str, Any]:
    """The results by method, and beside them the trajectories."""
    evaluate_stepwise.main(
        [f"--questions={chains(folder)}", f"--output={folder / 'out'}",
         f"--cache={folder / 'replies.sqlite'}", *(f"--method={name}" for name in methods),
         f"--generator=vllm:{model}", f"--verifier=vllm:{model}", "--iterations=2",
         "--revisions=1", f"--max-tokens={REPLY}", *more]
    )  # fmt: skip
    results = json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))
    assert not results["simulated"]
    return {run["method"]: run["all"] for run in results["runs"]}


def trajectories(folder: Path) -> dict[str, list[Trajectory]]:
    found: dict[str, list[Trajectory]] = {}
    for one in read_outcomes(folder / "out"):
        found.setdefault(one.method, []).append(one.trajectory)
    return found


def check_accounts(folder: Path, runs: dict[str, Any], heard: Heard) -> None:
    """What is reported is what the replies say, and no reply was asked for twice."""
    for name, found in trajectories(folder).items():
        assert len(found) == NUMBER
        spent = [one for t in found for a in t.attempts for one in a.usage.values()]
        run = runs[name]
        assert sum(run["calls"].values()) == len(spent)
        for what in ("prompt", "cached", "completion"):
            assert sum(run[f"{what}_tokens"].values()) == sum(getattr(u, what) for u in spent)
        assert all(0 <= u.cached < u.prompt and 0 < u.completion <= REPLY for u in spent)
    cache = ResponseCache(folder / "replies.sqlite")
    assert len(cache) == len(heard.calls) == len({r.messages for r, _ in heard.calls})
    cache.close()


def show(runs: dict[str, Any], heard: Heard) -> None:
    """With ``pytest -rP`` or ``-s``."""
    for name, run in runs.items():
        told = (sum(run[f"{what}_tokens"].values()) for what in ("prompt", "computed"))
        print(name, sum(run["calls"].values()), *told, run["transitions"], run["stop_reasons"])
    print(len(heard.calls), heard.usage, Counter(r.role for r, _ in heard.calls))


def test_all_of_them_take_what_a_small_model_says(model_folder: Path, tmp_path: Path, heard: Heard) -> None:
    names = [*ONE_SHOT, "react", *MACHINES]
    assert set(names) < set(METHODS)
    runs = evaluated(tmp_path, model_folder, names, "--evidence", "--max-steps=2")
    show(runs, heard)
    check_accounts(tmp_path, runs, heard)
    found = trajectories(tmp_path)
    ends = {name: {one.stop_reason for one in several} for name, several in found.items()}
    for name in names:
        other = {"react": "unfinished"}.get(name, "withdrawn" if name in MACHINES else "unreadable")
        assert ends[name] <= {"answered", other}
    for one, two in zip(found["sg_fsm1"], found["sg_fsm2"], strict=True):
        assert one.attempts == two.attempts[: len(one.attempts)]


def shared(chat: Chat, one: Request, other: Request) -> int:
    """Tokens in the blocks that two prompts have in common from their start."""
    both = zip(chat.encode(one.messages), chat.encode(other.messages), strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], both)]) // BLOCK * BLOCK


def test_a_question_computes_its_passages_once(model_folder: Path, tmp_path: Path, heard: Heard) -> None:
    player = open_engine("symbolic")
    heard.words = lambda request: player.answer(request).text  # type: ignore[attr-defined]
    runs = evaluated(tmp_path, model_folder, ("react", *MACHINES))
    show(runs, heard)
    check_accounts(tmp_path, runs, heard)
    asked = Counter(request.role for request, _ in heard.calls)
    per_question = {"decompose": 2, "search": 2, "terminate": 2, "summarize": 1, "verify": 3}
    # What the first machine has asked none asks again: of the others only their own is called for.
    assert {role: asked[role] for role in per_question} == {
        role: times * NUMBER for role, times in per_question.items()
    }
    assert runs["sg_fsm2"]["calls"]["generator"] == 7 * NUMBER
    chat = Chat.load(find_model(Model(str(model_folder))))
    for role, least in {"search": 0.6, "verify": 0.6, "react": 0.5}.items():
        for calls in heard.by_question(role):
            assert len(calls) > 1
            for (before, _), (request, said) in pairwise(calls):
                common = shared(chat, before, request)
                assert said.usage.cached >= common > least * said.usage.prompt, role
