"""Seeded cases: a fact stated rightly, or with one thing exchanged, alone or within its path."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from safe_stepwise.checking.faithfulness.chains import Chain, Grounds
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.records import Triple
from studies.calibration.pool import Pool
from studies.calibration.sources import Source, hops_of, plainly
from studies.calibration.tables import KINDS, WRONG, Kind, Setting


@dataclass(frozen=True, slots=True)
class Case:
    """A chain that is to be judged, and what is true of it.

    ``fact`` is the gold one, ``said`` what the chain states in its place; both the first of the
    path where nothing is wrong.
    """

    source: Source
    setting: Setting
    kind: Kind
    grounds: Grounds
    chain: Chain
    fact: Triple
    said: Triple


@dataclass(frozen=True, slots=True)
class Cases:
    """``not_made`` counts, by setting and kind, the facts for which there was no such error."""

    cases: tuple[Case, ...]
    not_made: Counter[tuple[Setting, Kind]]


def cases_of(sources: Sequence[Source], pool: Pool, seed: int) -> Cases:
    """Every fact of every path alone in each kind; each path whole, and once with each error.

    Which fact of a path an error befalls, and with what, hangs on the seed and the question's id.
    """
    found: list[Case] = []
    not_made: Counter[tuple[Setting, Kind]] = Counter()
    for source in sources:
        for case in (*_alone(source, pool, seed), *_in_paths(source, pool, seed)):
            if isinstance(case, Case):
                found.append(case)
            else:
                not_made[case] += 1
    return Cases(tuple(found), not_made)


def _alone(source: Source, pool: Pool, seed: int) -> Iterator[Case | tuple[Setting, Kind]]:
    hops = [hop for path in source.grounds.paths[:_MOST_PATHS] for hop in hops_of(path)]
    facts = dict.fromkeys(hop[0] for hop in hops if len(hop) == 1)
    for fact in facts:
        grounds = replace(
            source.grounds, answers=(fact.tail,), paths=((fact,),), starts=(fact.head,), is_branched=False
        )
        for kind in KINDS:
            said = _exchanged(pool, fact, kind, f"{seed} {source.id} {fact.head} {fact.relation}")
            if said is None:
                yield ("alone", kind)
                continue
            told = Chain((source.say([said], str(seed), fact.head, fact.relation),), fact.tail)
            yield Case(source, "alone", kind, grounds, told, fact, said)


_MOST_PATHS = 3
"""Gold paths of a question that cases are made of: three annotators, or of a film's two hundred."""


def _in_paths(source: Source, pool: Pool, seed: int) -> Iterator[Case | tuple[Setting, Kind]]:
    for number, path in enumerate(source.grounds.paths[:_MOST_PATHS]):
        hops = hops_of(path)
        marks = (str(seed), str(number))
        right = [source.say(hop, *marks, str(n)) for n, hop in enumerate(hops)]
        answer = source.grounds.answers[0] if source.grounds.answers else ""
        whole = Chain(tuple(right), answer)
        yield Case(source, "in its path", "true", source.grounds, whole, path[0], path[0])
        for kind in WRONG:
            made = _with_error(source, pool, hops, kind, " ".join((*marks, source.id, kind)))
            if made is None:
                yield ("in its path", kind)
                continue
            place, said = made
            sentence = source.say([said], *marks, str(place))
            steps = (*right[:place], sentence, *right[place + 1 :])
            told = Chain(steps, answer)
            fact = hops[place][0]
            yield Case(source, "in its path", kind, source.grounds, told, fact, said)


def against_others(sources: Sequence[Source]) -> tuple[Case, ...]:
    """Each annotator's derivation as a chain where only those of the others are gold.

    Only of questions that people derived an answer to; their paths are alternatives.
    """
    found = []
    for source in sources:
        paths = source.grounds.paths
        for number, path in enumerate(paths if source.wording is plainly else ()):
            others = paths[:number] + paths[number + 1 :]
            grounds = replace(source.grounds, paths=others)
            answer = source.grounds.answers[0] if source.grounds.answers else ""
            told = Chain(tuple(source.say([fact]) for fact in path), answer)
            if others:
                found.append(Case(source, "in its path", "true", grounds, told, path[0], path[0]))
    return tuple(found)


def _with_error(
    source: Source, pool: Pool, hops: Sequence[Sequence[Triple]], kind: Kind, seed: str
) -> tuple[int, Triple] | None:
    """The first hop, from one that the seed gives on, that the error can befall, and what is said.

    An error that is another of the question's own facts is none.
    """
    start = choice_for(seed) % len(hops)
    for place in (*range(start, len(hops)), *range(start)):
        hop = hops[place]
        said = _exchanged(pool, hop[0], kind, seed) if len(hop) == 1 else None
        if said is not None:
            return place, said
    return None


def _exchanged(pool: Pool, fact: Triple, kind: Kind, seed: str) -> Triple | None:
    return fact if kind == "true" else pool.exchanged(fact, kind, f"{seed} {kind}")
