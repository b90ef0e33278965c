"""What `evaluate_stepwise` is asked for, and the plan that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.run.choices import Choices
from evaluators.run.evaluation import Evaluation
from safe_stepwise.engines.base import Engine
from safe_stepwise.engines.cache import ResponseCache
from safe_stepwise.engines.client import IN_FLIGHT, Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.methods.running import AT_ONCE
from safe_stepwise.metric.judge import Judge
from safe_stepwise.records import Question


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command, by their names."""

    questions: str
    output: Path
    method: Sequence[str]
    generator: Sequence[str] = ()
    verifier: Sequence[str] = ()
    player: Sequence[str] = ()
    judge: str | None = None
    benchmark: Sequence[str] = ()
    split: str | None = None
    limit: int | None = None
    on_error: str = "stop"
    drop_gold: bool = False
    corpus: Path | None = None
    max_steps: Sequence[int] = ()
    max_retries: Sequence[int] = ()
    on_exhausted: Sequence[str] = ()
    feedback: Sequence[str] = ()
    option: Sequence[str] = ()
    judge_repeats: int = 1
    judge_all: bool = False
    seed: int = 0
    at_once: int = AT_ONCE
    cache: Path | None = None
    in_flight: int = IN_FLIGHT

    @property
    def choices(self) -> Choices:
        """The systems to run; raises ``UserError`` for what does not go together."""
        if self.judge is None and (self.judge_repeats > 1 or self.judge_all):
            raise UserError("--judge-repeats and --judge-all go with a --judge SPEC; see --help")
        players = {"generator": [*self.generator], "verifier": [*self.verifier]}
        for role, spec in _named(self.player, "--player ROLE=SPEC"):
            players.setdefault(role, []).append(spec)
        named = ("max_steps", "max_retries", "on_exhausted", "feedback")
        values = {name: [*getattr(self, name)] for name in named if getattr(self, name)}
        for name, texts in _named(self.option, "--option NAME=VALUE"):
            values.setdefault(name, []).extend(texts.split(","))
        return Choices(self.method, players, values)

    def plan(
        self,
        questions: Sequence[Question],
        opener: Callable[[str], Engine],
        corpus: Corpus | None,
        cache: ResponseCache,
        notes: Mapping[str, Any],
    ) -> Evaluation:
        """What to run, engines opened by ``opener``; ``notes`` say where the questions come from.

        Raises ``UserError``, with the option that it concerns.
        """
        engines: dict[str, Engine] = {}

        def client(role: str, spec: str) -> Client:
            try:
                engine = engines.setdefault(spec, engines.get(spec) or opener(spec))
            except UserError as error:
                raise UserError(f"--{role}: {error}") from None
            return Client(engine, cache, self.in_flight)

        settings, judge = self.choices.settings(client), None
        if self.judge is not None:
            asked = client("judge", self.judge)
            judge = Judge(asked, skip_exact=not self.judge_all, repeats=self.judge_repeats)
        return Evaluation(
            questions=tuple(questions),
            settings=settings,
            output=self.output,
            judge=judge,
            corpus=corpus,
            at_once=self.at_once,
            notes={**notes, "drop_gold": self.drop_gold, "seed": self.seed},
        )


def _named(texts: Sequence[str], form: str) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts]
    if wrong := [name for name, equals, value in pairs if not (name and equals and value)]:
        raise UserError(f"{form}: {wrong[0]!r} is not of this form")
    return [(name, value) for name, _, value in pairs]
