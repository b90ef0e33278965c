"""Verify benchmark questions: a teacher proposes a reasoning path, the graph checks it (SAFE v1, section 3.2).

The stages are: triples from each gold passage, entity resolution, the local graph, a proposed path, and its
validation. Every triple of the path must be an edge of the graph. A chain must
hold the answer and be connected with it; a comparison must have each of its branches.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from builders.verified.teachers import Proposal, Teacher, TeacherError
from safe_stepwise.graphs import comparisons, hops
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph, entity_key
from safe_stepwise.language.mentions import is_about
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.relations import RELATIONS, same_nation
from safe_stepwise.language.text import has_words, normal_name, normal_words
from safe_stepwise.records import NO_NOISE, Label, NoiseType, Question, Triple

BY_GRAPH = 0.6
"""The confidence in noise that the graph finds in a path that the teacher claimed, at most."""


async def verify(question: Question, teacher: Teacher) -> Label:
    """Label one question; a teacher that fails makes it ``unparsed``, with the reason."""
    try:
        graph = await build_graph(question, teacher)
        proposal = await teacher.propose(question, graph)
    except TeacherError as error:
        return Label("unparsed", f"The teacher failed: {error}", (), (), teacher.name, 0.0)
    proposal = replace(proposal, path=drop_loops(proposal.path, question))
    noise_type, explanation = validate(question, graph, proposal)
    confidence = 0.0 if noise_type == "unparsed" else proposal.confidence
    if confidence is not None and noise_type != proposal.noise_type and noise_type not in NO_NOISE:
        confidence = min(confidence, BY_GRAPH)
    if proposal.note:
        explanation += f" {proposal.note}"
    for loop in filter(_is_loop, proposal.path):
        link = f"“{loop.head} – {loop.relation} – {loop.tail}”"
        explanation += f" The benchmark itself annotates {link}."
    return Label(noise_type, explanation, proposal.path, graph.triples, teacher.name, confidence)


def apply_min_confidence(label: Label, min_confidence: float) -> Label:
    """Return the label; noise of lower confidence than ``min_confidence`` becomes "undecided", and says so."""
    if not label.unverifiable or label.confidence is None or label.confidence >= min_confidence:
        return label
    # Two digits, or more where rounding would change the share.
    shares = (label.confidence, min_confidence)
    confidence, limit = (f"{share:.2f}" if round(share, 2) == share else f"{share:g}" for share in shares)
    explanation = f"Undecided, since the confidence {confidence} lies under {limit}: {label.explanation}"
    return replace(label, noise_type="undecided", explanation=explanation, reasoning_path=())


async def build_graph(question: Question, teacher: Teacher) -> KnowledgeGraph:
    """Build the graph of the gold passages by extraction and entity resolution."""
    reading = (teacher.extract(question, number) for number, _ in question.gold)
    passages = await asyncio.gather(*reading, return_exceptions=True)
    # Raised after all have ended, so that no passage is still being read when the question fails.
    triples: tuple[Triple, ...] = ()
    for result in passages:
        if isinstance(result, BaseException):
            raise result
        triples += drop_loops(result, question)
    return KnowledgeGraph(triples, await teacher.resolve(question, triples))


def drop_loops(triples: Iterable[Triple], question: Question) -> tuple[Triple, ...]:
    """Drop triples that lead from an entity to itself, unless the benchmark annotates them.

    >>> drop_loops([Triple("The Oru", "is", "oru"), Triple("Oru", "country", "Kelvia")],
    ...               Question("q", "b", "train", "Where is Oru?", "Kelvia"))
    (Triple(head='Oru', relation='country', tail='Kelvia', passage=None, sentence=None),)
    """
    triples = tuple(triples)
    if not any(map(_is_loop, triples)):
        return triples
    annotated = {(t.head, t.tail) for hop in hops.annotated_hops(question) for t in hop.triples}
    return tuple(t for t in triples if not _is_loop(t) or (t.head, t.tail) in annotated)


def _is_loop(triple: Triple) -> bool:
    return entity_key(triple.head) == entity_key(triple.tail)


def validate(question: Question, graph: KnowledgeGraph, proposal: Proposal) -> tuple[NoiseType, str]:
    """Check the claims of a proposal against the graph; return its noise type and explanation."""
    if proposal.is_final or proposal.noise_type != "none":
        return proposal.noise_type, proposal.explanation
    if not proposal.path:
        return "missing_evidence", "No path was found in what the gold passages state."
    for triple in proposal.path:
        if not graph.find(triple.head, triple.relation, triple.tail):
            link = f"“{triple.head} – {triple.relation} – {triple.tail}”"
            return "missing_evidence", f"No gold passage states {link}, which the path needs."
    if comparisons.is_comparison(question):
        return _validate_comparison(question, graph, proposal)
    noise_type, explanation = _validate_chain(question, graph, proposal.path)
    if noise_type == "none" and proposal.is_linked:
        explanation = f"The passages are linked and hold “{question.answer}”; what the links say was not checked."
    return noise_type, explanation


def _validate_chain(question: Question, graph: KnowledgeGraph, path: tuple[Triple, ...]) -> tuple[NoiseType, str]:
    """Check that a chain holds the answer, that its hops are connected with it, and that they are single-valued."""
    names = [name for t in reversed(path) for name in (t.tail, t.head)]
    accepted = question.accepted
    goal = next((n for n in names for a in accepted if graph.is_same_entity(n, a) or similar(n, a)), "")
    if not goal:
        return "wrong_answer", f"The path ends in “{path[-1].tail}”, not in “{question.answer}”."
    if ambiguity := _ambiguity(question, graph, path):
        return "ambiguous_question", ambiguity
    local = KnowledgeGraph((*path, *_contained(path)), graph.aliases)
    for triple in path:
        start = triple.tail if graph.is_same_entity(triple.head, goal) else triple.head
        if local.path(start, goal) is None:
            return "missing_evidence", f"The path is broken: nothing joins “{start}” to “{goal}”."
    facts = "1 stated fact leads" if len(path) == 1 else f"{len(path)} stated facts lead"
    return "none", f"{facts} to “{question.answer}”."


def _contained(path: tuple[Triple, ...]) -> Iterator[Triple]:
    """Yield links that names imply: "Lake Oru (Kelvia)" belongs to the hop that ends in Kelvia."""
    for hop, earlier in product(path, path):
        if has_words(normal_words(hop.head), normal_name(earlier.tail)) and hop.head != earlier.tail:
            yield Triple(earlier.tail, "stands in the name of", hop.head)


def _ambiguity(question: Question, graph: KnowledgeGraph, path: tuple[Triple, ...]) -> str:
    """Explain why a question has several answers: a hop has two values, or two entities have one name; else ""."""
    for hop in (triple for triple in path if triple.relation in RELATIONS):
        link = f"“{hop.head} – {hop.relation}”"
        for value in _parallel_values(hop, path, graph):
            leads_on = (is_about(read(passage), value) for passage in question.passages)
            if graph.is_same_entity(hop.tail, path[-1].tail) or any(leads_on):
                return f"The text gives more than one value for {link}: “{hop.tail}” and “{value}”."
        name = normal_name(hop.head)
        titles = {p.title: None for _, p in question.gold if normal_name(p.title) == name}
        is_asked = has_words(normal_words(question.question), name)
        if is_asked and len(titles) > 1 and not any(title in question.question for title in titles):
            return f"“{hop.head}” can mean {' or '.join(f'“{title}”' for title in titles)}."
    return ""


def _parallel_values(hop: Triple, path: tuple[Triple, ...], graph: KnowledgeGraph) -> Iterator[str]:
    """Yield values of a hop's relation that its sentence states too and the path leaves out."""
    places = {(triple.passage, triple.sentence) for triple in graph.find(hop.head, hop.relation, hop.tail)}
    tails = [triple.tail for triple in path if triple.relation == hop.relation]
    for candidate in graph.find(hop.head, hop.relation):
        # One value may have several forms ("Kelvia", "Kelvian").
        value = candidate.tail
        in_path = any(
            graph.is_same_entity(value, tail) or similar(value, tail) or same_nation(clean(value), clean(tail))
            for tail in tails
        )
        if (candidate.passage, candidate.sentence) in places and not in_path:
            yield value


def _validate_comparison(question: Question, graph: KnowledgeGraph, proposal: Proposal) -> tuple[NoiseType, str]:
    """Check that a comparison has two branches whose values give the answer."""
    path = proposal.path
    branches = KnowledgeGraph(path, graph.aliases).branches(path)
    if len(branches) < 2:
        # An alias that joins the two sides is ignored, as the question compares two.
        branches = KnowledgeGraph(path).branches(path)
    if len(branches) < 2:
        return "missing_evidence", "A comparison needs two branches; the path has one."
    if len({branch[-1].relation for branch in branches} & set(RELATIONS)) > 1:
        return "missing_evidence", "The branches end in different relations: one is cut short."
    comparison = comparisons.comparison_of(question, branches)
    result = comparison.result
    if result == "tie":
        value = f"the same value, “{comparison.sides[0].values[0]}”"
        if comparisons.is_by_size(comparison.operation, comparison.sides):
            value = f"the same number of values, {comparisons.count_values(comparison.sides[0])}"
        return "ambiguous_question", f"Both sides have {value}."
    if result and not any(graph.is_same_entity(result, a) or similar(result, a) for a in question.accepted):
        return "wrong_answer", f"The values compared give “{result}”, not “{question.answer}”."
    if not result:
        note = "the passages describe each of them; the comparison itself was not checked"
        if proposal.is_linked:
            note = f"the passages of each have “{question.answer}”; what they say of it was not checked"
        return "none", f"{len(branches)} things are compared: {note}."
    return "none", f"The values of {len(branches)} branches give “{question.answer}”."


def similar(answer: str, reference: str) -> bool:
    """Whether two answers have the same words, or one contains the other."""
    a, b = normal_name(answer), normal_name(reference)
    return has_words(a, b) or has_words(b, a)
