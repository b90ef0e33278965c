"""A relation path that was followed, and the answers that it allows.

The graph disposes: an answer is an entity that the path leads to, letter by letter, or but for its
case where that leaves no doubt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.records import Candidate


@dataclass(frozen=True, slots=True)
class Tried:
    """A path that was followed, and why it did not do."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Instantiated:
    """A path as it is shown: its first chains, and where it leads to, ``shown`` entities at most.

    ``verdicts``: for each constraint what the graph decided, by the entities it decided on.
    """

    candidate: Candidate
    chains: tuple[tuple[str, ...], ...]
    more_chains: bool
    ends: tuple[str, ...]
    shown: int
    verdicts: tuple[Mapping[str, bool], ...] = ()

    def standing(self, name: str, is_met: bool) -> list[int]:
        """The numbers of constraints, from 1, that an entity meets, or those that it fails."""
        told = enumerate(self.verdicts, 1)
        return [number for number, verdict in told if verdict.get(name) is is_met]

    def failing(self, name: str) -> bool:
        """Whether the graph says that a constraint is not met."""
        return any(verdict.get(name) is False for verdict in self.verdicts)

    @property
    def all_fail(self) -> bool:
        """Whether the graph says so of all that the path leads to."""
        return all(map(self.failing, self.ends))

    @property
    def first(self) -> tuple[str, ...]:
        """The entities that are shown: what fails goes last."""
        return tuple(sorted(self.ends, key=self.failing)[: self.shown])

    @property
    def entities(self) -> list[dict[str, Any]]:
        """Those that are shown, each with the constraints that it meets and fails."""
        return [{"name": n, "meets": self.standing(n, True), "fails": self.standing(n, False)} for n in self.first]

    @property
    def plain(self) -> dict[str, Any]:
        """All that is told of it, a JSON value; ``cut``: how many entities are not shown."""
        return {
            **plain_path(self.candidate),
            "instances": [list(chain) for chain in self.chains],
            "more_instances": self.more_chains,
            "reached": len(self.ends),
            "cut": max(0, len(self.ends) - self.shown),
            "entities": self.entities,
        }


def plain_path(candidate: Candidate) -> dict[str, Any]:
    """A candidate as a JSON value."""
    return {"topic": candidate.topic, "path": list(candidate.path)}


@dataclass(frozen=True, slots=True)
class Settled:
    """What becomes of the answers that a reply names.

    ``answers`` count; ``respelled`` are those meant by another case; ``unreached`` the path does
    not lead to; ``failing`` are said by the graph to fail a constraint.
    """

    answers: tuple[str, ...]
    respelled: Mapping[str, str]
    unreached: tuple[str, ...]
    failing: tuple[str, ...]

    @property
    def plain(self) -> dict[str, Any]:
        """What is kept of it; what is empty is left out."""
        told = {"respelled": dict(self.respelled), "unreached": list(self.unreached)}
        told["failing"] = list(self.failing)
        return {"answers": list(self.answers), **{k: v for k, v in told.items() if v}}


def settle(named: Sequence[str], followed: Instantiated) -> Settled:
    """Hold the answers that a reply names to what the path leads to and what the graph decided.

    Where the graph says that all it leads to fails, it rules out no answer: the path is at fault.

    >>> path = Instantiated(Candidate("It", ("by",)), (), False, ("Ana", "Edo"), 2)
    >>> settle(["ana", "Pell"], path)
    Settled(answers=('Ana',), respelled={'ana': 'Ana'}, unreached=('Pell',), failing=())
    """
    folded: dict[str, list[str]] = {}
    for end in followed.ends:
        folded.setdefault(end.casefold(), []).append(end)
    ends, all_fail = set(followed.ends), followed.all_fail
    answers, unreached, failing = dict[str, None](), list[str](), list[str]()
    respelled: dict[str, str] = {}
    for name in named:
        meant = [name] if name in ends else folded.get(name.casefold(), [])
        if len(meant) != 1:
            unreached.append(name)
            continue
        if meant[0] != name:
            respelled[name] = meant[0]
        if followed.failing(meant[0]) and not all_fail:
            failing.append(meant[0])
        else:
            answers[meant[0]] = None
    return Settled(tuple(answers), respelled, tuple(unreached), tuple(failing))
