"""An experiment: what was trained, measured and evaluated, in its places."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.comparison.significance import Estimate
from evaluators.comparison.systems import System
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import VERIFIER
from safe_stepwise.store.names import GENERATOR, marked
from studies.experiment.verdicts import LabelledStep, Said

Record = Mapping[str, Any]
NAMES = {"no_verification": "no verification", "self_verification": "self-verification"}
PLAIN = NAMES["no_verification"]
LEARNED, CHECKER, CHANCE = "SAFE, learned verifier", "SAFE, graph checker", "SAFE, by chance"
_CHECKER = re.compile(r"symbolic:error_rate=0\.0,seed=\d+ \(simulated\)")
"""The player without mistakes; with any other setting it is another verifier."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the systems of ``results.json``."""

    name: str
    run: Record
    """Of ``runs``: ``players``, ``options``, ``simulated``, and in ``all`` what it came to."""
    system: Record
    """Of ``comparison``: its scores in ``average`` with their intervals."""
    earned: Record | None
    """Of ``faithfulness``: its answers by EM and our checker's rule; None if nobody judged them."""

    @property
    def key(self) -> System:
        return _key(self.run)

    @property
    def label(self) -> str:
        return marked(self.name, self.run["simulated"])

    @property
    def em(self) -> Estimate:
        return Estimate(**self.system["average"]["exact_match"])

    @property
    def retries(self) -> int:
        return int(self.run["options"].get("max_retries", 0))

    @property
    def rejected(self) -> float | None:
        """The share (0-1) of tries at a step that were rejected; None where nobody judged."""
        found = self.run["all"]
        return self._of_judged(sum(found["error_types"].values()) + found["unread"])

    @property
    def unread(self) -> float | None:
        """The share (0-1) of tries whose verdict could not be read, which rejects them, too."""
        return self._of_judged(self.run["all"]["unread"])

    @property
    def both(self) -> float | None:
        """The share (0-1) of questions that were answered rightly and by a faithful chain."""
        if self.earned is None:
            return None
        return float(self.earned["right"]["faithful"]) / float(self.run["all"]["questions"])

    def _of_judged(self, tries: int) -> float | None:
        judged = self.run["all"]["calls"].get(VERIFIER, 0)
        return tries / judged if judged else None


@dataclass(frozen=True, slots=True)
class Gain:
    """Of exact match (0-1): how much, McNemar's p, and p by Holm among all that are tested."""

    estimate: Estimate
    p: float
    p_holm: float

    def turned(self) -> "Gain":
        """The other's.

        >>> Gain(Estimate(0.1, -0.1, 0.3), 0.2, 0.4).turned().estimate
        Estimate(value=-0.1, low=-0.3, high=0.1)
        """
        one = self.estimate
        return Gain(Estimate(-one.value, -one.high, -one.low), self.p, self.p_holm)


Gains = Mapping[tuple[System, System], Gain]
"""The first's over the second's; each pair stands there both ways."""


def arms(results: Record) -> list[Arm]:
    """The arms in the order of the run; the first verifier that was named is the learned one."""
    first = next((r["players"][VERIFIER] for r in results["runs"] if VERIFIER in r["players"]), "")
    earned = {_key(one): one for one in results.get("faithfulness", {}).get("systems", ())}
    systems = {_key(one): one for one in results["comparison"]["systems"]}
    return [
        Arm(_name(run, first), run, systems[_key(run)], _faithful(earned.get(_key(run)))) for run in results["runs"]
    ]


def one_of(found: Sequence[Arm], name: str, **options: Any) -> Arm | None:
    """The arm of that name, of several the one with these options; None if there is none."""
    fitting = [
        arm for arm in found if arm.name == name and all(arm.run["options"].get(k) == v for k, v in options.items())
    ]
    return fitting[0] if fitting else None


def _name(run: Record, first: str) -> str:
    verifier = run["players"].get(VERIFIER)
    if verifier is None:
        return NAMES.get(run["method"], str(run["method"]))
    if verifier == first:
        return LEARNED
    if _CHECKER.fullmatch(verifier):
        return CHECKER
    return CHANCE if verifier.startswith("chance:") else f"SAFE, {verifier}"


def _key(system: Record) -> System:
    told = (system[name] for name in ("method", "players", "options", "conditions"))
    return System.of(*told)


def _faithful(system: Record | None) -> Record | None:
    if system is None:
        return None
    found: Record = system["all"]["rules"]["house"]["answers"]["exact_match"]
    return found


def check(results: Record, place: str) -> None:
    """Raise ``UserError`` for results that are no experiment's."""
    names = {arm.name for arm in arms(results)}
    if lacking := {PLAIN, LEARNED} - names:
        raise UserError(
            f"{place}: has no {' and no '.join(sorted(lacking))}; evaluate no_verification and safe with one generator"
        )


@dataclass(frozen=True, slots=True)
class Home:
    """What was trained, measured and evaluated in one place of a release."""

    place: str
    """The folder, from the release's; empty of the release's own."""
    training: Record | None
    """Of the verifier."""
    quality: Record | None
    said: Said | None
    results: Record | None

    @property
    def name(self) -> str:
        return self.place.partition("/")[2] or "the release's own"

    def label(self, arm: Arm) -> str:
        """What an arm is called here: a verifier that was trained for a block has its name."""
        trained = self.place and self.training is not None and arm.name == LEARNED
        return f"SAFE, {self.name}" if trained else arm.label

    @property
    def arms(self) -> Sequence[Arm]:
        return arms(self.results) if self.results is not None else []

    @property
    def measures(self) -> Mapping[str, float | None]:
        """Of the verifier on the steps of test; empty if it was not measured."""
        found: Mapping[str, float | None] = {} if self.quality is None else self.quality["verifiers"][0]["measures"]
        return found


@dataclass(frozen=True, slots=True)
class Experiment:
    """All that a report is made of."""

    lock: Record
    own: Home
    generator: Record | None
    """The record of its training."""
    blocks: Mapping[str, Sequence[Home]]
    """By name: the block itself, or each of the adapters that it trains."""
    steps: Sequence[LabelledStep]
    """Test rows of the verifier set."""
    probe: Said | None
    """What a probe says of them that sees no passage; None where no verifier was measured."""
    gains: Mapping[str, Gains]
    """By place: of all that was evaluated there over its `references`."""
    example: str
    """One question with and without verification; empty where there is none to show."""

    @property
    def results(self) -> Record:
        assert self.own.results is not None
        return self.own.results

    @property
    def trainings(self) -> Mapping[str, Record]:
        named = {"generator": self.generator, "verifier": self.own.training}
        for homes in self.blocks.values():
            named |= {home.name: home.training for home in homes}
        return {name: record for name, record in named.items() if record is not None}

    @property
    def simulated(self) -> bool:
        first = one_of(self.own.arms, LEARNED)
        baseline = one_of(self.own.arms, PLAIN)
        return any(arm is not None and arm.run["simulated"] for arm in (first, baseline))


def references(home: Home, own: Home) -> tuple[Arm, Arm]:
    """No verification and the release's ``own`` learned verifier, as ``home`` has them.

    Where it has several the one with the main evaluation's options, where none the main one's.
    """
    found = []
    for name in (PLAIN, LEARNED):
        main = one_of(own.arms, name)
        assert main is not None  # `check`
        alike = [arm for arm in home.arms if arm.run["players"] == main.run["players"]]
        closest = [arm for arm in alike if arm.run["options"] == main.run["options"]]
        found.append(next(iter([*closest, *alike]), main))
    return found[0], found[1]


def refuse_others(one: Experiment, other: Experiment, place: str) -> None:
    """Raise ``UserError`` if one was made with other models than the other, by their revisions."""
    for role in (GENERATOR, VERIFIER):
        names = [references(e.own, e.own)[1].run["players"][role] for e in (one, other)]
        revisions = {name.rpartition("@")[2] for name in names}
        if len(revisions) > 1:
            raise UserError(
                f"{place}: its {role} is {names[0]}, where {names[1]} is asked for; evaluate the same models there"
            )
