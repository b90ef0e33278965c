"""The options of `evaluate_stepwise`, the systems that they name, and the plan of the evaluation."""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from evaluators.run.evaluation import Evaluation, Setting
from evaluators.run.trial import PROBED_ROLES, Trial
from safe_stepwise import prompts
from safe_stepwise.commands.options import ModelOptions
from safe_stepwise.commands.values import Commas, Count, Name
from safe_stepwise.engines.base import Allowance, Engine
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.errors import UserError, at_place, check_choice
from safe_stepwise.methods import METHODS, base, running, scene
from safe_stepwise.methods.best_of import CHOICES, MAX_SAMPLES, BestOf, ChainScore, Choose
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.metric.judge import Judge
from safe_stepwise.records import Question
from safe_stepwise.store import boundary
from safe_stepwise.store.names import REPORT


@dataclass(frozen=True, slots=True)
class Options(Trial, ModelOptions):
    """The options of the command, by their names; ``report`` is where a release has its tables."""

    questions: str
    output: Path
    method: Sequence[Annotated[str, Name(METHODS)]]
    generator: Sequence[str] = ()
    verifier: Sequence[str] = ()
    player: Sequence[str] = ()
    benchmark: Sequence[str] = ()
    split: Literal["train", "validation", "test"] | None = None
    on_error: Literal["stop", "keep", "skip"] = "stop"
    passages: Literal["10", "all", "none"] = "10"
    kb: Path | None = None
    drop_gold_count: Count = 1
    option: Sequence[str] = ()
    choose: Annotated[Sequence[Choose], Commas(names=CHOICES)] = ()
    chain_score: ChainScore = "least"
    judge_repeats: Count = 1
    judge_all: bool | None = None
    seed: int = 0
    published: Sequence[str] = ()
    report: Path | None = None
    derivations: Path | None = None
    at_once: Count = running.AT_ONCE

    @property
    def players(self) -> dict[str, list[str]]:
        players = {"generator": [*self.generator], "verifier": [*self.verifier]}
        for role, spec in _split_pairs(self.player, "--player ROLE=SPEC"):
            players.setdefault(role, []).append(spec)
        return players

    @property
    def values(self) -> dict[str, list[Any]]:
        """The values to try of each option, texts where a user wrote them."""
        option_names = {field.name for method in METHODS.values() for field in fields(base.options_type(method))}
        option_names -= {"samples"} if self.choose else set()
        direct = {field.name: getattr(self, field.name) for field in fields(self) if field.name in option_names}
        values = {name: [*value] for name, value in direct.items() if value}
        for name, texts in _split_pairs(self.option, "--option NAME=VALUE"):
            values.setdefault(name, []).extend(texts.split(","))
        return values

    def check(self) -> list[base.Method]:
        """The methods, each once; raises as `plan` does, as far as nothing need be opened."""
        if self.judge is None and (self.judge_repeats > 1 or self.judge_all or self.judge_without_question):
            raise UserError(
                "--judge-repeats, --judge-all and --judge-without-question go with a --judge SPEC; see --help"
            )
        if self.drop_gold_count > 1 and not self.drop_gold:
            raise UserError("--drop-gold-count goes with --drop-gold")
        if self.drop_gold and self.passages == "none":
            raise UserError("--drop-gold removes passages, and --passages none leaves none: take one of them")
        methods = [METHODS[check_choice(name, METHODS, "--method")] for name in dict.fromkeys(self.method)]
        players = self.players
        roles = {role for method in METHODS.values() for role in method.roles}
        for role in players:
            check_choice(role, {*roles, "generator", "verifier"}, "--player")
        if self.choose and not self.samples:
            raise UserError("--choose picks one of several trajectories: say how many with --samples N")
        if self.choose and max(self.samples) > MAX_SAMPLES:
            raise UserError(f"--samples {max(self.samples)}: at most {MAX_SAMPLES} trajectories are sampled")
        if self.chain_score != "least" and not any(best_of and best_of.roles for best_of in self._choices()):
            raise UserError("--chain-score goes with --choose verifier or weighted, which score chains")
        for method in methods:
            for role in self._roles(method):
                if not players.get(role):
                    raise UserError(f"--method {method.name} wants a {_option(role, 'SPEC')}; see --help")
        option_names = {f.name for method in methods for f in fields(base.options_type(method)) if f.compare}
        for name in self.values:
            if name not in option_names:
                names = ", ".join(sorted(option_names)) or "none"
                raise UserError(f"no method here has an option {name!r}; they have: {names}")
        return methods

    @property
    def followed(self) -> list[str]:
        """The names of the choices in which `as_published` follows the papers."""
        if not self.as_published:
            return []
        kinds = [base.options_type(METHODS[name]) for name in self.method if name in METHODS]
        published = dict.fromkeys(name for kind in kinds for name in base.published_values(kind))
        names = [name for name in published if name not in self.values]
        if self.allowance.examples is None:
            names.append("examples")
        judging = ("judge_without_question", "judge_all") if self.judge is not None else ()
        return [*names, *(name for name in judging if getattr(self, name) is None)]

    @property
    def allowed(self) -> Allowance:
        """The roles' allowance beside their prompts, with the papers' examples where those count."""
        if "examples" not in self.followed:
            return self.allowance
        return self.allowance.with_examples(prompts.examples(PROBED_ROLES))

    @property
    def symbolic(self) -> list[str]:
        """The roles that a symbolic player takes, who reasons over annotations."""
        engines = {role: [spec.partition(":")[0] for spec in specs] for role, specs in self.players.items()}
        return [role for role, names in engines.items() if "symbolic" in names]

    def refuse_symbolic(self) -> None:
        """Raise ``UserError`` for a symbolic player, as the questions lack annotations."""
        for role in self.symbolic:
            raise UserError(
                f"{_option(role, 'symbolic')} goes by annotations, which these questions lack; "
                "name a model, or take questions of a benchmark"
            )

    def refuse_without_passages(self) -> None:
        """Raise ``UserError`` for a method that reads passages, as the questions have none."""
        free = [name for name, method in METHODS.items() if not getattr(method, "reads_passages", True)]
        if readers := [name for name in self.method if name not in free]:
            raise UserError(
                f"--method {readers[0]} reads passages, which these questions lack; take {' or '.join(free)}"
            )

    def plan(
        self,
        questions: Sequence[Question],
        opener: Callable[[str], Engine],
        corpus: Corpus | None,
        cache: ResponseCache,
        notes: Mapping[str, Any],
    ) -> Evaluation:
        """Plan the evaluation; ``opener`` opens engines, ``notes`` say where the questions come from.

        Every method runs with every combination of the players and options that it has. Raises
        ``UserError`` for an unknown method or option, a role that nobody plays, two players of one
        name, and an engine that can't be opened, with the option that it concerns.
        """
        opened, allowed, followed = functools.cache(opener), self.allowed, self.followed

        def client(role: str, spec: str) -> Client:
            allowance = allowed.restrict([scene.JUDGE]) if role == scene.JUDGE else allowed
            with at_place(_option(role)):
                return Client(opened(spec), cache, self.in_flight, allowance=allowance)

        settings, judge = self._settings(client), None
        if self.judge is not None:
            judge_client = client("judge", self.judge)
            blind = self.judge_without_question or "judge_without_question" in followed
            judges_all = self.judge_all or "judge_all" in followed
            judge = Judge(judge_client, not judges_all, self.judge_repeats, sees_question=not blind)
        notes = {
            **notes,
            **({"passages": self.passages} if self.passages != "10" else {}),
            "drop_gold": self.drop_gold_count if self.drop_gold_count > 1 else self.drop_gold,
            "seed": self.seed,
            **({"as_published": followed} if self.as_published else {}),
        }
        folders = self.output, self.report or self.output / REPORT
        return Evaluation(tuple(questions), settings, *folders, judge, corpus, self.at_once, notes)

    def _settings(self, opened: Callable[[str, str], Client]) -> tuple[Setting, ...]:
        methods, players, cached = self.check(), self.players, functools.cache(opened)
        for role in dict.fromkeys(role for method in methods for role in self._roles(method)):
            times = Counter(cached(role, spec).engine.name for spec in dict.fromkeys(players[role]))
            if duplicates := [name for name in times if times[name] > 1]:
                raise UserError(
                    f"two {role}s are both called {duplicates[0]}; evaluate one at a time, and lay them "
                    "side by side with safe-stepwise join_results DIR=NAME DIR=NAME"
                )

        def place(combination: tuple[base.Method, dict[str, str], Any]) -> int:
            role = combination[0].roles[0]
            return players[role].index(combination[1][role])

        settings = []
        for method, specs, options in sorted(self.combinations(), key=place):
            cast = {role: cached(role, spec) for role, spec in specs.items()}
            resolved = base.resolve_options(method, options, {role: cast[role] for role in method.roles})
            for best_of in self._choices():
                roles = best_of.applied_to(method).roles if best_of else method.roles
                settings.append(Setting(method, {role: cast[role] for role in roles}, resolved, best_of))
        # Without a verifier's say all verifiers give the same system.
        return tuple(setting for n, setting in enumerate(settings) if setting not in settings[:n])

    def _choices(self) -> Iterator[BestOf | None]:
        """Yield each way to choose among samples; None alone without ``choose``."""
        if not self.choose:
            yield None
        for samples, choose in product(self.samples, self.choose):
            yield BestOf(samples, choose, self.chain_score)

    def _roles(self, method: base.Method) -> tuple[str, ...]:
        """The roles of a method, with the one that chooses among samples."""
        applied = (best_of.applied_to(method) if best_of else method for best_of in self._choices())
        return tuple(dict.fromkeys(role for chosen in applied for role in chosen.roles))

    def combinations(self) -> Iterator[tuple[base.Method, dict[str, str], Any]]:
        """Yield each method with each combination of players' specs and options; raise as `check`, or if refused."""
        methods, players = self.check(), self.players
        for method in methods:
            roles = self._roles(method)
            for specs in product(*(dict.fromkeys(players[role]) for role in roles)):
                for options in self._options(method):
                    yield method, dict(zip(roles, specs, strict=True)), options

    def _options(self, method: base.Method) -> Iterator[Any]:
        kind = base.options_type(method)
        types = get_type_hints(kind)
        paper_values = base.published_values(kind) if self.as_published else {}
        candidates = {**{name: [value] for name, value in paper_values.items()}, **self.values}
        names = [field.name for field in fields(kind) if field.name in candidates]
        choices = (dict.fromkeys(_value(types[name], name, value) for value in candidates[name]) for name in names)
        for values in product(*choices):
            with at_place(f"--method {method.name}", ValueError):
                yield kind(**dict(zip(names, values, strict=True)))


def _split_pairs(texts: Sequence[str], form: str) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts]
    if wrong := [name for name, equals, value in pairs if not (name and equals and value)]:
        raise UserError(f"{form}: {wrong[0]!r} is not of this form")
    return [(name, value) for name, _, value in pairs]


def _option(role: str, spec: str = "") -> str:
    if role in ("generator", "verifier", "judge"):
        return f"--{role} {spec}".rstrip()
    return f"--player {role}={spec}".removesuffix("=")


def _value(kind: Any, name: str, value: Any) -> Any:
    kind = next((inner for inner in get_args(kind) if inner in (int, float, bool)), kind)  # of an optional value
    if not isinstance(value, str) or kind not in (int, float, bool):
        with at_place("option", ValueError):
            return boundary.read(kind, value, name)
    try:
        if kind is float and not math.isfinite(float(value)):
            raise ValueError(value)
        return {"true": True, "false": False}[value] if kind is bool else kind(value)
    except (ValueError, KeyError):
        raise UserError(f"option {name}: {value!r} is no {kind.__name__}") from None
