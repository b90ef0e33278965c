"""Make test cases for judges of chains: a fact stated correctly, or with one error, alone or within its gold path.

Questions, gold paths and errors are those of the path probe (`builders.paths`): 2Wiki's evidence, MuSiQue's
decomposition, R4C's derivations of HotpotQA (each annotator's is a gold path) and MetaQA's paths. An error exchanges
the head, the tail or the relation, or swaps head and tail. A seed makes the choices.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path as File
from random import Random

from builders.paths.corruptions import KINDS as DRAFTS
from builders.paths.corruptions import Scope, find_objection
from builders.paths.world import Path, PathQuestion, World, sort_of
from safe_stepwise.checking import statements, wordings
from safe_stepwise.checking.faithfulness.grounds import Chain, Grounds
from safe_stepwise.records import Triple
from safe_stepwise.store import boundary, names

_CORRUPTIONS: Mapping[str, names.Corruption] = {
    "wrong tail": "factual_tail",
    "wrong head": "factual_head",
    "wrong relation": "relation_swapped",
    "reversed": "reversed",
}
TRUE, WRONG = "true", tuple(_CORRUPTIONS)
ALONE, IN_PATH = "alone", "in its path"
_MOST_PATHS = 3
"""The maximum number of a question's gold paths that cases are made of: R4C has three annotators, a film 200 paths."""
Wording = Callable[[Sequence[Triple], int], str]
"""A function that states a fact as a clause; the number chooses among its wordings."""
_FILM_WORDINGS: Mapping[str, Sequence[str]] = boundary.read_yaml(File(__file__).with_name("films.yaml"))
"""Wordings of MetaQA's relations, which the language module can read; MetaQA has no passages to word them."""


@dataclass(frozen=True, slots=True)
class CalibrationSource:
    """A question with its gold paths, the grounds by which its chains are judged, and how its facts are worded."""

    question: PathQuestion
    grounds: Grounds
    wording: Wording

    def phrase(self, facts: Sequence[Triple], *seeds: str) -> str:
        """State one fact, or the several facts of one hop, as a sentence."""
        clause = self.wording(facts, wordings.choice_for(self.question.id, *seeds)).strip()
        return f"{clause[:1].upper()}{clause[1:].removesuffix('.')}."


def word_plainly(facts: Sequence[Triple], _: int) -> str:
    """State a fact whose relation is the words between its ends, as R4C's are: "Oru", "lies on", "the Vel"."""
    return f"{facts[0].head} {facts[0].relation} {facts[0].tail}"


def word_film_fact(facts: Sequence[Triple], choice: int) -> str:
    """State a fact of MetaQA in its own wordings; other relations get those of all benchmarks."""
    fact = facts[0]
    if fact.relation not in _FILM_WORDINGS:
        return statements.state(facts, choice)
    return statements.fill(statements.pick(_FILM_WORDINGS[fact.relation], choice), h=fact.head, t=fact.tail)


def split_hops(path: Path) -> list[list[Triple]]:
    """Group the facts of a path by hop; a hop that joins several answers has several facts.

    >>> meet, age = Triple("Ana", "where do … and … meet", "Oru"), Triple("Ors", "is", "old")
    >>> [len(hop) for hop in split_hops((meet, Triple("Vel", meet.relation, "Oru"), age))]
    [2, 1]
    """

    def hop_key(index: int) -> object:
        fact = path[index]
        joins = statements.is_free(fact) and fact.relation.count("…") > 1
        return (fact.relation, fact.tail) if joins else index

    return [[path[n] for n in places] for _, places in groupby(range(len(path)), hop_key)]


@dataclass(frozen=True, slots=True)
class ChainCase:
    """A chain with its gold ``fact``, and the ``claim`` in its place; both are the path's first fact if it is true."""

    source: CalibrationSource
    setting: str
    kind: str
    chain: Chain
    fact: Triple
    claim: Triple


def make_cases(sources: Sequence[CalibrationSource], world: World, seed: int) -> tuple[list[ChainCase], Counter[str]]:
    """Make the cases: every fact alone in each kind; each path without an error, and once with each error.

    The seed and the question's id choose which fact is exchanged, and what replaces it. Also returns the number of
    cases that could not be made, as no such error is surely wrong, by setting and kind.
    """
    cases: list[ChainCase] = []
    impossible: Counter[str] = Counter()
    for source in sources:
        for setting, path_source, answer, marks in _list_paths(source, seed):
            path_cases = list(_make_cases(path_source, world, setting, answer, marks))
            cases += path_cases
            impossible.update(f"{setting}: {kind}" for kind in WRONG if kind not in {case.kind for case in path_cases})
    return cases, impossible


def _list_paths(source: CalibrationSource, seed: int) -> Iterator[tuple[str, CalibrationSource, str, Sequence[str]]]:
    """Yield a question's facts and paths: setting, source with only that path, answer, and seeds of choices."""
    question, paths = source.question, source.question.paths
    hops = [hop for path in paths[:_MOST_PATHS] for hop in split_hops(path)]
    for fact in dict.fromkeys(hop[0] for hop in hops if len(hop) == 1):
        answers, paths_alone = (fact.tail,), ((fact,),)
        grounds = replace(source.grounds, answers=answers, paths=paths_alone, starts=(fact.head,), is_branched=False)
        single = replace(question, paths=paths_alone, answer=fact.tail, accepted=answers, start=fact.head)
        fact_source = replace(source, question=single, grounds=grounds)
        yield ALONE, fact_source, fact.tail, (str(seed), fact.head, fact.relation)
    for number, path in enumerate(paths[:_MOST_PATHS]):
        reordered = replace(question, paths=(path, *paths[:number], *paths[number + 1 :]))
        answer = question.accepted[0] if question.accepted else ""
        yield IN_PATH, replace(source, question=reordered), answer, (str(seed), str(number))


def _make_cases(
    source: CalibrationSource, world: World, setting: str, answer: str, marks: Sequence[str]
) -> Iterator[ChainCase]:
    """Yield a path's true chain, and one with each error that is possible in it."""
    hops = split_hops(source.question.path)
    sentences = [source.phrase(hop, *marks, str(n)) for n, hop in enumerate(hops)]
    fact = source.question.path[0]
    yield ChainCase(source, setting, TRUE, Chain(tuple(sentences), answer), fact, fact)
    for kind in WRONG:
        for index, claim in _list_errors(source.question, world, kind, " ".join(marks)):
            sentence = source.phrase([claim], *marks, str(index))
            if len(hops[index]) == 1 and sentence != sentences[index]:  # a wording may leave out the head
                chain = Chain((*sentences[:index], sentence, *sentences[index + 1 :]), answer)
                yield ChainCase(source, setting, kind, chain, hops[index][0], claim)
                break


def _list_errors(question: PathQuestion, world: World, kind: str, seed: str) -> Iterator[tuple[int, Triple]]:
    """Yield a hop's index in the question's path, and a wrong claim of its fact, in the order that the seed gives."""
    corruption = _CORRUPTIONS[kind]
    scope = Scope(question, world, (), Random(f"{seed} {question.benchmark} {question.id} {kind}"))
    hop_indices = [index for index, hop in enumerate(split_hops(question.path)) for _ in hop]
    for path, position in DRAFTS[corruption][0](scope):
        if find_objection(corruption, scope, path, position) is None:
            claim = path[position - 1]
            if kind != "reversed" or sort_of(claim.head) == "name":  # "1954 was released in Dune" says nothing
                yield hop_indices[position - 1], claim
