"""What a manifest says of adapters, how they are refined, and evaluations: its own, its blocks'."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_type_hints

from releases.keys import Known, read_entry
from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods import METHODS, asking, verifier
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.options import published_values
from safe_stepwise.methods.scene import JUDGE
from safe_stepwise.records import VERDICT_ORDERS

OWN_ADAPTER = "{adapter}"
"""In an engine's spec: the folder of the release's own adapter; in a block that trains adapters,
of each of them in turn."""
OWN_GENERATOR = "{generator}"
"""Likewise: the model that the release trains to write steps."""
MEASURED_RATE = "{rate}"
"""In a verifier's spec, as ``chance:reject={rate}``: the share of steps that the first of the
verifiers rejects. That is measured first."""
_PLACEHOLDER = re.compile(r"\{\w*\}")
CHOICES = tuple(published_values(Limits))
"""Options in which the papers may be followed, true or false."""
LOOP = ("no_verification", "self_verification", "safe")
"""The methods of the papers' main table, which an evaluation has where it names none."""
OPTIONS = (*("max_steps", "max_retries", "on_exhausted", "feedback", *CHOICES), *asking.OPTIONS)
"""Options of methods that an evaluation may name, each with several values."""
SHOWN = (verifier.ROLE, JUDGE)
"""Roles of an evaluation that may be shown examples."""
_SEVERAL = ("generator", "verifier", "methods", "examples", *OPTIONS)


@dataclass(frozen=True, slots=True)
class AdapterEntry:
    """``adapter``: a recipe of ours by its name, or a YAML file beside the manifest."""

    recipe: Path
    verifier: str | None = None
    """An engine's spec to measure the adapter with on the test split; not measured if not said."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the recipe that are other here, as ``filters.drop_category``."""
    incomplete_evidence: bool = False
    """Whether it learns to say that evidence is missing (SAFE v2, finding 5)."""

    @property
    def changes(self) -> dict[str, Any]:
        """All that the recipe is told beside its file."""
        told = {"incomplete_evidence": True} if self.incomplete_evidence else {}
        return {**self.change, **told}


@dataclass(frozen=True, slots=True)
class GeneratorEntry:
    """``generator``: what learns to write steps from the release's verifier set."""

    recipe: Path
    change: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the recipe that are other here."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What an evaluation runs over all its questions."""

    method: str
    generator: str
    verifier: str | None
    options: tuple[tuple[str, Any], ...]
    gold: tuple[bool, Path | None]
    """Whether a gold passage is taken away, and where another is searched."""
    examples: tuple[str, ...]
    """The roles that are shown some."""


@dataclass(frozen=True, slots=True)
class EvaluationEntry:
    """``evaluation``: the loop over the evaluation samples, by engine specs.

    Where several values may be given, one alone need not be a list.
    """

    generator: tuple[str, ...]
    verifier: tuple[str, ...]
    methods: tuple[str, ...]
    """`LOOP`, if not said."""
    judge: str | None = None
    limit: int | None = None
    """Questions of each benchmark; all if not said."""
    max_steps: tuple[int, ...] = ()
    max_retries: tuple[int, ...] = ()
    on_exhausted: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    tries_total: tuple[bool, ...] = ()
    accepted_diagnosis: tuple[bool, ...] = ()
    last_rejected: tuple[bool, ...] = ()
    answer_when_told: tuple[bool, ...] = ()
    iterations: tuple[int, ...] = ()
    revisions: tuple[int, ...] = ()
    samples: tuple[int, ...] = ()
    sampling: tuple[str, ...] = ()
    evidence: tuple[bool, ...] = ()
    """Whether prompting methods are asked for facts and triples, too."""
    verdict_order: str | None = None
    """What verdicts begin with in the loop, where players that we trained do not say it."""
    judge_without_question: bool | None = None
    examples: tuple[str, ...] | None = None
    """The roles that are shown some, of `SHOWN`."""
    as_published: bool = False
    """Whether the papers are followed in all of these that are not said."""
    drop_gold: bool = False
    """Whether each question loses one of its gold passages."""
    corpus: Path | None = None
    """Passages to search; a path that is not absolute is beside the manifest."""

    @property
    def needs_adapter(self) -> bool:
        """Whether any of its engines is an adapter that is trained for it."""
        return any(OWN_ADAPTER in spec for spec in self.specs)

    @property
    def needs_generator(self) -> bool:
        """Whether the release's own generator plays in it."""
        return any(OWN_GENERATOR in spec for spec in self.specs)

    @property
    def matched(self) -> tuple[str, ...]:
        """The verifiers whose rate is that of the first one, which has to be measured before."""
        return tuple(spec for spec in self.verifier if MEASURED_RATE in spec)

    @property
    def specs(self) -> tuple[str, ...]:
        """Everybody who is asked."""
        return (*self.generator, *self.verifier, *([self.judge] if self.judge else []))

    def check(self) -> None:
        """Raise ``UserError`` if what it searches is not here."""
        if self.corpus is not None and not self.corpus.is_file():
            raise UserError(
                f"{self.corpus} is not here: the passages that evidence is searched in; make it "
                "with safe-stepwise build_corpus"
            )

    def allowed(self, allowance: Allowance) -> Allowance:
        """What its roles have beside their prompts, with examples of its own."""
        allowance = replace(allowance, examples=None)
        shown = self.examples
        return allowance if shown is None else allowance.showing(prompts.examples(shown))

    @property
    def settings(self) -> Iterator[Setting]:
        """Each method with every combination of the players and options that it has."""
        gold = self.drop_gold, self.corpus
        theirs = SHOWN if self.as_published else ()
        examples = theirs if self.examples is None else self.examples
        for name in self.methods:
            method = METHODS[name]
            judging = self.verifier if "verifier" in method.roles else (None,)
            kind = options_type(method)
            has = {f.name for f in fields(kind)}
            tried = {key: getattr(self, key) for key in OPTIONS if key in has}
            followed = published_values(kind) if self.as_published else {}
            tried |= {key: (value,) for key, value in followed.items() if not tried.get(key)}
            said = {key: dict.fromkeys(values) for key, values in tried.items() if values}
            for generator, judge in product(self.generator, judging):
                for values in product(*said.values()):
                    options = tuple(zip(said, values, strict=True))
                    yield Setting(name, generator, judge, options, gold, examples)


@dataclass(frozen=True, slots=True)
class RefinementEntry:
    """``verifier_steps.refinement``: what mines hard cases with the adapter just trained."""

    rows: int
    """Hard cases that a round may add."""
    generator: str
    verifier: str
    """``{adapter}`` in it is the one that the round trained."""
    teacher: str = "annotations"
    """Who words the labels: an engine's spec, or annotations, the checker's own words."""
    limit: int | None = None
    """Training questions of a round; as many as steps are made of, if not said."""
    rounds: int = 1


def read_adapter(values: Any, where: str, beside: Path, known: Known) -> AdapterEntry:
    """An adapter of the manifest; raises ``UserError`` with the key that is wrong."""
    said = read_entry(AdapterEntry, values, f"{where}.")
    if said.verifier is not None:
        check_spec(said.verifier, f"{where}.verifier", (OWN_ADAPTER,), known)
    file = find_recipe(said.recipe, where, beside, known.recipes)
    try:
        known.check_recipe(file, said.change)
    except UserError as error:
        raise UserError(f"{where}.change: {error}") from None
    return replace(said, recipe=file)


def read_generator(values: Any, where: str, beside: Path, known: Known) -> GeneratorEntry:
    """What is trained to write steps; raises as `read_adapter`."""
    said = read_entry(GeneratorEntry, values, f"{where}.")
    file = find_recipe(said.recipe, where, beside, known.recipes)
    try:
        known.check_generator(file, said.change)
    except UserError as error:
        raise UserError(f"{where}.change: {error}") from None
    return replace(said, recipe=file)


def find_recipe(named: Path, where: str, beside: Path, recipes: Path) -> Path:
    """The file of a recipe: one of the folder ``recipes`` by its name, or YAML beside a manifest.

    Raises ``UserError`` for one that is not there.
    """
    own = beside / named if named.suffix in (".yaml", ".yml") else None
    file = own or recipes / f"{named}.yaml"
    if not file.is_file():
        there = ", ".join(sorted(recipe.stem for recipe in recipes.glob("*.yaml")))
        raise UserError(f"{where}.recipe: there is no {file}; name one of {there}, or a YAML file")
    return file


def read_evaluation(values: Any, where: str, own: Collection[str], beside: Path, known: Known) -> EvaluationEntry:
    """An evaluation of the manifest; raises as `read_adapter`.

    ``own`` are those of `OWN_ADAPTER` and `OWN_GENERATOR` that stand for something.
    """
    if isinstance(values, dict):
        one = {name: values[name] for name in _SEVERAL if name in values}
        lists = {name: of if isinstance(of, list) else [of] for name, of in one.items()}
        values = {**values, **lists}
    said = read_entry(EvaluationEntry, values, f"{where}.", methods=list(LOOP))
    for name in said.methods:
        one_of(str(name), METHODS, f"{where}.methods")
    for role in ("generator", "verifier"):
        for spec in (specs := getattr(said, role)):
            check_spec(spec, f"{where}.{role}", own, known)
        if not specs or len(set(specs)) < len(specs):
            raise UserError(f"{where}.{role}: name at least one, and each once")
    if said.judge is not None:
        check_spec(said.judge, f"{where}.judge", own, known)
    if said.matched and (said.matched[0] == said.verifier[0] or "safe" not in said.methods):
        raise UserError(
            f"{where}.verifier: {MEASURED_RATE} is the rate of the first verifier in safe: name "
            "that one before it, and the method"
        )
    if not said.methods or (said.limit is not None and said.limit < 1):
        raise UserError(f"{where}.methods and {where}.limit: name at least one")
    if said.verdict_order is not None:
        one_of(said.verdict_order, VERDICT_ORDERS, f"{where}.verdict_order")
    _check_options(said, where)
    return said if said.corpus is None else replace(said, corpus=beside / said.corpus)


def _check_options(said: EvaluationEntry, where: str) -> None:
    for role in said.examples or ():
        one_of(str(role), SHOWN, f"{where}.examples:")
    if said.judge_without_question and said.judge is None:
        raise UserError(f"{where}.judge_without_question: there is no judge; name one")
    hints = get_type_hints(EvaluationEntry)
    kinds = [options_type(METHODS[name]) for name in said.methods]
    known = {option.name for kind in kinds for option in fields(kind)}
    for key in OPTIONS:
        kind, *_ = get_args(hints[key])
        if any(type(value) is not kind for value in getattr(said, key)):
            raise UserError(f"{where}.{key}: has to be of type {kind.__name__}, or a list of such")
        if getattr(said, key) and key not in known:
            raise UserError(f"{where}.{key}: none of {', '.join(said.methods)} has it")
    for setting in said.settings:
        try:
            options_type(METHODS[setting.method])(**dict(setting.options))
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None


def read_refinement(values: Any, where: str, known: Known) -> RefinementEntry:
    """The rounds that a manifest names; raises ``UserError`` with the key that is wrong."""
    found = read_entry(RefinementEntry, values, f"{where}.")
    if min(found.rows, found.rounds, 1 if found.limit is None else found.limit) < 1:
        raise UserError(f"{where}.rows, rounds and limit have to be 1 or more")
    for role in ("generator", "verifier"):
        check_spec(getattr(found, role), f"{where}.{role}", (OWN_ADAPTER,), known)
    known.check_teacher(found.teacher, f"{where}.teacher", None)
    plays = found.verifier.startswith(("symbolic", "mock"))
    if OWN_ADAPTER not in found.verifier and not plays:
        raise UserError(
            f"{where}.verifier: {found.verifier} is not what a round trains; write {OWN_ADAPTER} "
            f"for that, as in vllm:BASE+{OWN_ADAPTER}"
        )
    return found


def check_spec(spec: Any, where: str, own: Collection[str], known: Known) -> None:
    """Raise ``UserError`` for a spec of no engine, and of a model that is not trained here."""
    if not isinstance(spec, str):
        raise UserError(f"{where}: has to be of type str")
    meant = spec.replace(MEASURED_RATE, "0") if where.endswith(".verifier") else spec
    for one, what in ((OWN_ADAPTER, "an adapter"), (OWN_GENERATOR, "a generator")):
        if one in spec and one not in own:
            key = what.partition(" ")[2]
            raise UserError(f"{where}: {one} stands for {what}; add {key} to the manifest")
        meant = meant.replace(one, "trained")
    if other := _PLACEHOLDER.search(meant):
        names = f"{OWN_ADAPTER}, {OWN_GENERATOR} or, of a verifier, {MEASURED_RATE}"
        raise UserError(f"{where}: {other[0]} stands for nothing; write {names}")
    try:
        known.check_engine(meant)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
