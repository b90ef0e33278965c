"""Reads and writes other projects' trajectories, and the labels that people or models gave to their steps.

Every format is read into a `Chain` and written from one. A format is one file with a ``read`` and a ``write``. In a
conversion, only what the other format can't express is lost.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from safe_stepwise.formats import (
    agentprocessbench,
    claims,
    openai,
    plain,
    prm,
    processbench,
    search_r1,
    steps,
    trl_stepwise,
)
from safe_stepwise.formats.chains import Chain

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """A format's ``read``, which raises ``ValueError`` for a wrong row, and its ``write``, which may yield no row."""

    read: Callable[[Row], Chain]
    write: Callable[[Chain], Iterator[Row]]


FORMATS: Mapping[str, Format] = {
    "steps": Format(steps.read, steps.write),
    "plain": Format(plain.read, plain.write),
    "openai": Format(openai.read, openai.write),
    "search-r1": Format(search_r1.read, search_r1.write),
    "agentprocessbench": Format(agentprocessbench.read, agentprocessbench.write),
    "processbench": Format(processbench.read, processbench.write),
    "prm": Format(prm.read, prm.write),
    "trl-stepwise": Format(trl_stepwise.read, trl_stepwise.write),
    "claims": Format(claims.read, claims.write),
}
