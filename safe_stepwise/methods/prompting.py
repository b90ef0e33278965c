"""Options of the prompting methods that more than one file has to know."""

from dataclasses import dataclass
from typing import Literal, get_args

SamplingName = Literal["greedy", "paper"]
OPTIONS = ("iterations", "revisions", "samples", "sampling", "evidence")
"""Those that commands and manifests have by their names."""
SAMPLING: tuple[SamplingName, ...] = get_args(SamplingName)


@dataclass(frozen=True, slots=True)
class Prompting:
    """Options of every prompting method.

    ``evidence``: also ask for supporting facts and triples (SG-FSM's Setting 2, section 4.3).
    """

    evidence: bool = False
    sampling: SamplingName = "greedy"

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLING:
            raise ValueError(f"sampling is greedy or paper, not {self.sampling!r}")


@dataclass(frozen=True, slots=True)
class Samples(Prompting):
    """``samples``: how many replies are put to the vote.

    More than one are drawn, at temperature 0.8 and top_p 0.8: greedy ones would all be alike.
    """

    samples: int = 1

    def __post_init__(self) -> None:
        super(Samples, self).__post_init__()
        if self.samples < 1:
            raise ValueError("samples has to be 1 or more")


@dataclass(frozen=True, slots=True)
class Iterating(Prompting):
    """Options of the machines (SG-FSM, sections 3.2 and 3.5).

    ``iterations``: sub-questions that may be asked for; one more ends in an early withdrawal.
    ``revisions``: tries at putting right the form of a reply. ``redo``: how often a reply that none
    of them put right is asked for once more, its end being shown, before the question is given up.
    """

    iterations: int = 6
    revisions: int = 2
    redo: int = 0

    def __post_init__(self) -> None:
        super(Iterating, self).__post_init__()
        if self.iterations < 1 or self.revisions < 0 or self.redo < 0:
            raise ValueError("iterations has to be 1 or more, revisions and redo 0 or more")
