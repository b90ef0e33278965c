"""Who proposes paths in a run of its own, by what a command line says."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.deliberation.asked import Asked
from evaluators.deliberation.labelled import Example, Labels, PathsSet
from evaluators.deliberation.proposing import BASELINES, Engine, Proposer, majority, nearest, oracle
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import TEST, TRAIN


@dataclass(frozen=True, slots=True)
class Contender:
    """Who proposes, under the name that the run has."""

    name: str
    proposer: Proposer


_NAMED = re.compile(r"([^:=]+)=(.+)")
CANDIDATES = 3
"""Paths a topic entity that a generator chooses from, if not said; without one the first counts."""


@dataclass(frozen=True, slots=True)
class Proposing:
    """How paths are proposed."""

    candidates: int
    constrained: bool
    labels: Labels
    seed: int


def named(spec: str) -> tuple[str, str]:
    """The name that a run is given and what proposes its paths; "" where it is given none.

    >>> named("SFT=vllm:m+a"), named("symbolic:error_rate=0.3")
    (('SFT', 'vllm:m+a'), ('', 'symbolic:error_rate=0.3'))
    """
    match = _NAMED.fullmatch(spec)
    return (match[1].strip(), match[2]) if match else ("", spec)


def engines_of(specs: Sequence[str]) -> list[str]:
    """The specs of those who have to be asked; ``UserError`` for a baseline that is misspelt.

    >>> engines_of(["nearest", "SFT=vllm:m+a"])
    ['vllm:m+a']
    """
    said = [named(text)[1] for text in specs]
    for spec in said:
        if spec not in BASELINES and (near := difflib.get_close_matches(spec, BASELINES, n=1)):
            raise UserError(f"--paths {spec}: is not known; did you mean {near[0]}?")
    return [spec for spec in said if spec not in BASELINES]


def check_paths(specs: Sequence[str]) -> None:
    """Raise ``UserError`` for two of ``--paths`` that are given, or have, one name."""
    engines_of(specs)
    seen = set[str]()
    for name, spec in map(named, specs):
        name = name or spec
        if name in seen:
            raise _twice(name, spec)
        seen.add(name)


def _twice(name: str, spec: str) -> UserError:
    return UserError(f"--paths: two are called {name!r}; name them, as NAME={spec}")


def contenders(
    specs: Sequence[str],
    how: Proposing,
    asked: Sequence[Asked],
    learnt: PathsSet | None,
    clients: Mapping[str, Client],
) -> tuple[Contender, ...]:
    """Who proposes, by the specs of ``--paths``, of which ``clients`` has the engines.

    Raises ``UserError`` for two of one name.
    """
    found: dict[str, Contender] = {}
    for text in specs:
        name, spec = named(text)
        proposer = _proposer(spec, how, asked, learnt, clients)
        name = name or proposer.name
        if name in found:
            raise _twice(name, spec)
        found[name] = Contender(name, proposer)
    return tuple(found.values())


def _proposer(
    spec: str, how: Proposing, asked: Sequence[Asked], learnt: PathsSet | None, clients: Mapping[str, Client]
) -> Proposer:
    if spec not in BASELINES:
        client = clients[spec]
        return Engine(client.name, client, how.candidates, how.constrained, how.seed)
    if spec == "oracle":
        if not any(one.gold for one in asked):
            raise UserError("--paths oracle: no gold path of any question is known")
        return oracle()
    examples = learnt.learnt(how.labels) if learnt else _others(asked)
    if not examples:
        raise UserError(f"--paths {spec}: no question to learn from has a {how.labels} path")
    learner = majority if spec == "majority" else nearest
    return learner(examples, how.candidates, how.constrained)


def _others(asked: Sequence[Asked]) -> list[Example]:
    """The questions themselves, of which each learns from all others."""
    found: dict[str, Example] = {}
    for one in asked:
        words, paths = one.question.question, [path for own in one.gold.values() for path in own]
        if words in found:  # asked twice, it would teach itself
            paths = [*found[words].paths, *paths]
        if paths:
            unique = tuple(dict.fromkeys(paths))
            found[words] = Example(words, one.template, one.question.hops, unique)
    return [*found.values()]


def held_out(asked: Sequence[Asked], learnt: PathsSet | None, only: bool) -> tuple[list[int], dict[str, int], str]:
    """Which questions are put, by their places; how many are of which split; a note, if any.

    With ``only`` those of the set's test split; raises ``UserError`` where there are none.
    """
    if learnt is None:
        return [*range(len(asked))], {}, ""
    of = [learnt.split_of(one.question.question, one.template) for one in asked]
    counts = {split or "neither": of.count(split) for split in dict.fromkeys(of)}
    if not only:
        seen = counts.get(TRAIN, 0)
        note = (
            f"{seen:,} of {len(asked):,} questions are in the train split of {learnt.folder}; "
            "--held-out puts only those of its test split"
        )
        return [*range(len(asked))], counts, note if seen else ""
    places = [n for n, split in enumerate(of) if split == TEST]
    if not places:
        raise UserError(
            f"--held-out: none of the {len(asked):,} questions is in the test split of "
            f"{learnt.folder} (by {learnt.way}); give the file that it was built of"
        )
    return places, counts, ""
