"""Questions over a knowledge graph, with the paths that lead to their answers: for the probe.

No path is annotated. One is derived as the training rows' gold ones are (`builders.paths.weak`): of
all questions of a template, the relation path of their number of hops that yields their answers
best. A question is left out where another path yields them as well and is not rare beside it, and
where its template's path gives not exactly its answers.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path as File
from typing import NamedTuple

from builders.paths import metaqa
from builders.paths.relation_readers import questions
from builders.paths.weak import Templates, explore
from builders.paths.world import Path, PathQuestion, Refuse
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.relation_paths import HOPS, execute, instances
from safe_stepwise.graphs.store import BACKWARDS, GraphStore, MemoryGraph, inverse, read_triples
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath, Triple
from safe_stepwise.store.names import TEST
from safe_stepwise.store.progress import telling

_MOST_PATHS = 200
"""Gold paths of a question that are kept: a genre's films alone are thousands."""


class Films(NamedTuple):
    """MetaQA's knowledge base, to list and to walk on, and its questions."""

    triples: tuple[Triple, ...]
    graph: GraphStore
    questions: list[KGQuestion]


def read_films(kb: File, asked: File) -> Films:
    """The files of MetaQA; ``UserError`` where one is none, with the line."""
    named = list(dict.fromkeys(read_triples(kb)))
    try:
        graph = MemoryGraph(named)
    except ValueError as error:
        raise UserError(f"{kb}: {error}") from None
    read = list(questions(metaqa.NAME, str(asked), TEST))
    return Films(tuple(Triple(*triple) for triple in named), graph, read)


def derived(graph: GraphStore, asked: Sequence[KGQuestion]) -> dict[str, RelationPath]:
    """The relation path of each template of some questions, where it is beyond doubt."""
    templates, done = Templates(), 0
    with telling("relation paths", "question", len(asked), lambda: done, lambda: ""):
        for one in asked:
            if _refused(graph, one) is None:
                found = explore(graph, one.topics[0], one.answers, one.hops, one.hops).candidates
                templates.add(_template(one), one.hops, [(c.path, c.f1) for c in found])
            done += 1
    return templates.sure()


def with_paths(
    graph: GraphStore, asked: Iterable[KGQuestion], gold: dict[str, RelationPath], refuse: Refuse
) -> Iterable[PathQuestion]:
    """The questions that their template's path answers, with its instances as gold paths."""
    for one in asked:
        found = _refused(graph, one) or _asked(graph, one, gold.get(_template(one)))
        if isinstance(found, PathQuestion):
            yield found
        else:
            refuse(one.benchmark, one.id, found)


def _template(one: KGQuestion) -> str:
    return masked(one.question, one.topics)


def _refused(graph: GraphStore, one: KGQuestion) -> str | None:
    if len(one.topics) != 1 or graph.node(one.topics[0]) is None:
        return "no topic entity of the knowledge base"
    return None if 1 <= one.hops <= HOPS else f"no number of hops from 1 to {HOPS}"


def _asked(graph: GraphStore, one: KGQuestion, gold: RelationPath | None) -> PathQuestion | str:
    if gold is None:
        return "no relation path, or several, give the answers of its template"
    topic = one.topics[0]
    if execute(graph, topic, gold) != one.answers:
        return "its template's relation path does not give its answers"
    told = (facts(chain, gold) for chain in instances(graph, topic, gold, most=_MOST_PATHS))
    paths = tuple(path for path in told if len(set(path)) == len(path))
    if not paths:
        return "its paths go by one fact twice"
    last = paths[0][-1]
    return PathQuestion(
        benchmark=one.benchmark,
        id=one.id,
        question=one.question.replace(f"[{topic}]", topic),
        answer=last.head if gold[-1].startswith(BACKWARDS) else last.tail,
        accepted=tuple(sorted(one.answers)),
        paths=paths,
        start=topic,
        needed=tuple(range(1, one.hops + 1)),
    )


def facts(chain: Sequence[str], path: RelationPath) -> Path:
    """The triples of a chain of entities, as the graph has them.

    >>> facts(("Ana", "Oru"), ("~directed_by",))
    (Triple(head='Oru', relation='directed_by', tail='Ana', passage=None, sentence=None),)
    """
    return tuple(
        Triple(other, inverse(relation), one) if relation.startswith(BACKWARDS) else Triple(one, relation, other)
        for one, relation, other in zip(chain, path, chain[1:], strict=False)
    )
