"""An experiment: what was trained, measured and evaluated, in its places."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import VERIFIER
from safe_stepwise.store.names import GENERATOR
from studies.experiment import arms as of_arms
from studies.experiment.arms import Arm, Gains, Record
from studies.experiment.verdicts import LabelledStep, Said


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
        trained = self.place and self.training is not None and arm.name == of_arms.LEARNED
        return f"SAFE, {self.name}" if trained else arm.label

    @property
    def arms(self) -> Sequence[Arm]:
        return of_arms.arms(self.results) if self.results is not None else []

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
        first = of_arms.one_of(self.own.arms, of_arms.LEARNED)
        baseline = of_arms.one_of(self.own.arms, of_arms.PLAIN)
        return any(arm is not None and arm.run["simulated"] for arm in (first, baseline))


def references(home: Home, own: Home) -> tuple[Arm, Arm]:
    """No verification and the release's ``own`` learned verifier, as ``home`` has them.

    Where it has several the one with the main evaluation's options, where none the main one's.
    """
    found = []
    for name in (of_arms.PLAIN, of_arms.LEARNED):
        main = of_arms.one_of(own.arms, name)
        assert main is not None  # `of_arms.check`
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
