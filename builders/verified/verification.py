"""Benchmark verification: the teacher proposes, the graph disposes (SAFE v1, section 3.2).

Triples from each gold passage, up to two gleaning rounds, entity resolution, the local graph, a proposed path, and its
validation: every triple of the path must be an edge of the graph, and the path must join the question's entities to
the answer (chain), or give each branch that a comparison needs.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from builders.verified.teachers import Proposal, Teacher, TeacherError
from safe_stepwise.graphs.comparisons import compared, is_by_size, is_comparison, size
from safe_stepwise.graphs.hops import annotated_hops
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph, entity_key
from safe_stepwise.language.mentions import is_about
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.relations import RELATIONS, same_nation
from safe_stepwise.language.text import has_words, normal_name, words_of
from safe_stepwise.records import Label, NoiseType, Question, Triple

GLEANING_ROUNDS = 2
"""SAFE v1, section 3.2: gleaning is repeated at most twice."""


async def verify(question: Question, teacher: Teacher) -> Label:
    """The label of one question; a teacher that fails makes it ``unparsed``, with the reason."""
    try:
        graph = await build_graph(question, teacher)
        proposal = await teacher.propose(question, graph)
    except TeacherError as error:
        return Label("unparsed", f"The teacher failed: {error}", (), (), teacher.name, 0.0)
    proposal = replace(proposal, path=without_loops(proposal.path, question))
    noise_type, explanation = validate(question, graph, proposal)
    for loop in filter(_is_loop, proposal.path):
        link = f"“{loop.head} – {loop.relation} – {loop.tail}”"
        explanation += f" The benchmark itself annotates {link}."
    sure = 0.0 if noise_type == "unparsed" else proposal.confidence
    return Label(noise_type, explanation, proposal.path, graph.triples, teacher.name, sure)


def doubted(label: Label, least: float) -> Label:
    """The label; if it is of noise and less sure than ``least``, the row is kept and says so.

    Such a row has no reasoning path: as far as one was found it leads to no answer that was
    confirmed, and steps are made of paths. Noise of which no confidence is said stays.

    >>> label = Label("missing_evidence", "No passage states it.", (), (), "annotations", 0.35)
    >>> doubted(label, 0.5).explanation
    'Kept, since the confidence 0.35 lies under 0.50: No passage states it.'
    """
    if not label.unverifiable or label.confidence is None or label.confidence >= least:
        return label
    # Two digits, or as many as tell it from what rounds to the same.
    sure, limit = (f"{share:.2f}" if round(share, 2) == share else f"{share:g}" for share in (label.confidence, least))
    kept = f"Kept, since the confidence {sure} lies under {limit}: {label.explanation}"
    return replace(label, noise_type="none", explanation=kept, reasoning_path=())


async def build_graph(question: Question, teacher: Teacher) -> KnowledgeGraph:
    """Extraction, gleaning and entity resolution over the gold passages, read at the same time."""
    reading = (_read(question, number, teacher) for number, _ in question.gold)
    passages = await asyncio.gather(*reading, return_exceptions=True)
    # Only now, so that no passage is still being read when the question is given up.
    triples: tuple[Triple, ...] = ()
    for stated in passages:
        if isinstance(stated, BaseException):
            raise stated
        triples += without_loops(stated, question)
    return KnowledgeGraph(triples, await teacher.resolve(question, triples))


def without_loops(triples: Iterable[Triple], question: Question) -> tuple[Triple, ...]:
    """Triples without those that lead from a thing to itself, unless the benchmark annotates it.

    >>> without_loops([Triple("The Oru", "is", "oru"), Triple("Oru", "country", "Kelvia")],
    ...               Question("q", "b", "train", "Where is Oru?", "Kelvia"))
    (Triple(head='Oru', relation='country', tail='Kelvia', passage=None, sentence=None),)
    """
    triples = tuple(triples)
    if not any(map(_is_loop, triples)):
        return triples
    annotated = {(t.head, t.tail) for hop in annotated_hops(question) for t in hop.triples}
    return tuple(t for t in triples if not _is_loop(t) or (t.head, t.tail) in annotated)


def _is_loop(triple: Triple) -> bool:
    return entity_key(triple.head) == entity_key(triple.tail)


async def _read(question: Question, passage: int, teacher: Teacher) -> tuple[Triple, ...]:
    """Triples of one gold passage, gleaned until nothing new is found."""
    found = await teacher.extract(question, passage)
    for _ in range(GLEANING_ROUNDS):
        more = await teacher.glean(question, passage, found)
        if not more:
            break
        found += more
    return found


def validate(question: Question, graph: KnowledgeGraph, proposal: Proposal) -> tuple[NoiseType, str]:
    """Noise type and explanation of a proposal, after checking what it claims against the graph."""
    if proposal.settled or proposal.noise_type != "none":
        return proposal.noise_type, proposal.explanation
    if not proposal.path:
        return "missing_evidence", "No path was found in what the gold passages state."
    for triple in proposal.path:
        if not graph.find(triple.head, triple.relation, triple.tail):
            link = f"“{triple.head} – {triple.relation} – {triple.tail}”"
            return "missing_evidence", f"No gold passage states {link}, which the path needs."
    if is_comparison(question):
        return _validate_comparison(question, graph, proposal.path)
    return _validate_chain(question, graph, proposal.path)


def _validate_chain(question: Question, graph: KnowledgeGraph, path: tuple[Triple, ...]) -> tuple[NoiseType, str]:
    """A chain must lead from where it starts to the answer, by single-valued hops."""
    names = [name for t in reversed(path) for name in (t.tail, t.head)]
    accepted = question.accepted
    goal = next((n for n in names for a in accepted if graph.same(n, a) or similar(n, a)), "")
    if not goal:
        return "wrong_answer", f"The path ends in “{path[-1].tail}”, not in “{question.answer}”."
    if several := _several(question, graph, path):
        return "ambiguous_question", several
    local = KnowledgeGraph((*path, *_contained(path)), graph.aliases)
    for triple in path:
        start = triple.tail if graph.same(triple.head, goal) else triple.head
        if gap := local.gap([start], goal):
            return "missing_evidence", f"The path is broken: {gap}."
    facts = "1 stated fact leads" if len(path) == 1 else f"{len(path)} stated facts lead"
    return "none", f"{facts} to “{question.answer}”."


def _contained(path: tuple[Triple, ...]) -> Iterator[Triple]:
    """Joints that a name itself makes: "Lake Oru (Kelvia)" belongs to the hop that found Kelvia."""
    for hop, earlier in product(path, path):
        inside = has_words(words_of(hop.head), normal_name(earlier.tail))
        if inside and hop.head != earlier.tail:
            yield Triple(earlier.tail, "stands in the name of", hop.head)


def _several(question: Question, graph: KnowledgeGraph, path: tuple[Triple, ...]) -> str:
    """Why a question has several answers, or "": two values of a hop, or of a name it starts from.

    A second value in mid-path counts where a passage, gold or not, would lead on from it.
    """
    for hop in (triple for triple in path if triple.relation in RELATIONS):
        link = f"“{hop.head} – {hop.relation}”"
        for other in _beside(hop, path, graph):
            leads_on = (is_about(read(passage), other) for passage in question.passages)
            if graph.same(hop.tail, path[-1].tail) or any(leads_on):
                return f"The text gives more than one value for {link}: “{hop.tail}” and “{other}”."
        name = normal_name(hop.head)
        titles = {p.title: None for _, p in question.gold if normal_name(p.title) == name}
        asked = has_words(words_of(question.question), name)
        if asked and len(titles) > 1 and not any(title in question.question for title in titles):
            return f"“{hop.head}” can mean {' or '.join(f'“{title}”' for title in titles)}."
    return ""


def _beside(hop: Triple, path: tuple[Triple, ...], graph: KnowledgeGraph) -> Iterator[str]:
    """Values that stand in the sentence of a hop beside its own and that the path leaves out."""
    said = graph.find(hop.head, hop.relation, hop.tail)
    places = {(triple.passage, triple.sentence) for triple in said}
    known = [triple.tail for triple in path if triple.relation == hop.relation]
    for other in graph.find(hop.head, hop.relation):
        # One value may be told in several words ("Kelvia", "Kelvian").
        in_path = any(
            graph.same(other.tail, tail) or similar(other.tail, tail) or same_nation(clean(other.tail), clean(tail))
            for tail in known
        )
        if (other.passage, other.sentence) in places and not in_path:
            yield other.tail


def _validate_comparison(question: Question, graph: KnowledgeGraph, path: tuple[Triple, ...]) -> tuple[NoiseType, str]:
    """A comparison needs two branches whose values give the answer."""
    branches = KnowledgeGraph(path, graph.aliases).branches(path)
    if len(branches) < 2:
        # An alias that joins the two sides is none: they are asked about as two.
        branches = KnowledgeGraph(path).branches(path)
    if len(branches) < 2:
        return "missing_evidence", "A comparison needs two branches; the path has one."
    if len({branch[-1].relation for branch in branches} & set(RELATIONS)) > 1:
        return "missing_evidence", "The branches end in different relations: one is cut short."
    found = compared(question, branches)
    result = found.result
    if result == "tie":
        same = f"the same value, “{found.sides[0].values[0]}”"
        if is_by_size(found.operation, found.sides):
            same = f"the same number of values, {size(found.sides[0])}"
        return "ambiguous_question", f"Both sides have {same}."
    if result and not any(graph.same(result, a) or similar(result, a) for a in question.accepted):
        return "wrong_answer", f"The values compared give “{result}”, not “{question.answer}”."
    if not result:
        why = "the passages describe each of them; the comparison itself was not checked"
        return "none", f"{len(branches)} things are compared: {why}."
    return "none", f"The values of {len(branches)} branches give “{question.answer}”."


def similar(one: str, other: str) -> bool:
    """Whether two answers are the same words, or one is the other with more words around it."""
    a, b = normal_name(one), normal_name(other)
    return has_words(a, b) or has_words(b, a)
