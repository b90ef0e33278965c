"""Read questions with gold paths from verified benchmarks, with R4C's derivations for HotpotQA, or from MetaQA.

The evidence triples of 2Wiki and of the synthetic benchmark, and MuSiQue's decomposition, are paths already. HotpotQA
annotates none; R4C (Inoue et al. 2020, CC0 1.0) has three annotators' derivations for some of its questions, each of
which is a gold path. Only verified questions are read.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, ClassVar

from builders.paths import metaqa
from builders.paths.relation_readers import questions
from builders.paths.weak import Templates, explore
from builders.paths.world import Path, PathQuestion, Refuse, bare
from builders.steps.questions import source_record
from builders.verified.lookup import labelled
from builders.work.plans import Plan
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.graphs import store
from safe_stepwise.graphs.hops import annotated_hops
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.graphs.store import BACKWARDS, HOPS, GraphStore, MemoryGraph, inverse
from safe_stepwise.language.text import words_of
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import Candidate, KGQuestion, Label, Question, RelationPath, Triple
from safe_stepwise.store import names, parquet, progress
from safe_stepwise.store.files import sha256_of

Derivation = Sequence[tuple[str, int, tuple[str, str, str]]]
"""(title, sentence from 0, (head, relation, tail))."""
R4C = {
    "benchmark": "r4c",
    "license": "cc0-1.0",
    "homepage": "https://naoya-i.github.io/r4c/",
    "citation": """\
@inproceedings{inoue2020r4c,
  title = {{R4C}: A Benchmark for Evaluating {RC} Systems to Get the Right Answer for the Right
           Reason},
  author = {Inoue, Naoya and Stenetorp, Pontus and Inui, Kentaro},
  booktitle = {Proceedings of ACL},
  year = {2020}
}""",
}


@dataclass(frozen=True, slots=True)
class ProbeBuild(Plan):
    """The options of a path probe; ``films`` and ``questions`` are MetaQA's; ``limit`` is a benchmark's questions."""

    work_name: ClassVar[str] = "path-probe"
    verified: File
    films: File | None = None
    questions: File | None = None
    derivations: File | None = None
    benchmarks: tuple[str, ...] = ()
    """Benchmarks to use; all of the folder if empty."""


def origins(plan: ProbeBuild, builds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of all sources, in the form of ``builds``; raise ``UserError`` for an unreadable file."""
    records = [*map(source_record, builds)]
    if plan.derivations is not None:
        records.append(_record(R4C, plan.version, plan.derivations))
    if plan.films is not None and plan.questions is not None:
        terms = {name: getattr(metaqa, name.upper()) for name in ("license", "homepage", "citation")}
        records.append(_record({"benchmark": metaqa.NAME, **terms}, plan.version, plan.films, plan.questions))
    return records


def _record(terms: Mapping[str, str], version: str, *files: File) -> dict[str, Any]:
    try:
        digests = {file.name: sha256_of(file) for file in files}
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror})") from None
    return {
        **terms,
        "split": "",
        "version": version,
        "source": {"files": digests, "synthetic": False},
        "teacher": "annotations",
        "simulated": False,
        "verified": 0,
        "digest": "",
        "code_sha256": "",
    }


def verified_questions(
    folder: File, derivations: Mapping[str, Sequence[Derivation]], refuse: Refuse, benchmarks: Sequence[str] = ()
) -> Iterator[PathQuestion]:
    """Yield the questions of a built folder that have a gold path, each id once; raise ``UserError`` for none."""
    dataset = parquet.dataset_folder(folder, names.VERIFIED)
    for benchmark, rows in labelled(folder):
        if benchmarks and benchmark not in benchmarks:
            continue
        sample = parquet.parquet_files(dataset, benchmark + names.EVAL) if dataset else []
        tested = {id_ for file in sample for id_ in parquet.read_rows(file, lambda row: str(row["id"]), ["id"])}
        ids = set[str]()
        for question, label in rows:
            if question.id in ids:
                continue
            ids.add(question.id)
            result = path_question(question, label, derivations.get(question.id, ()), tested)
            if isinstance(result, PathQuestion):
                yield result
            else:
                refuse(benchmark, question.id, result)


def path_question(
    question: Question, label: Label, derivations: Sequence[Derivation] = (), tested: Collection[str] = ()
) -> PathQuestion | str:
    """Return the question with its paths, or the reason why it has none; ``tested``: ids of evaluation questions."""
    if label.noise_type != "none":
        return f"not verified: {label.noise_type}"
    gold = of_derivations(derivations) if derivations else of_annotations(question)
    if gold is None:
        return "no annotated path"
    ends = {end for triple in gold.paths[0] for end in (triple.head, triple.tail)}
    if "" in {words_of(end) or end.strip() for end in ends}:
        return "its path has an end without a name"
    return PathQuestion(
        benchmark=question.benchmark,
        id=question.id,
        question=question.question.strip(),
        answer=question.answer,
        accepted=question.accepted,
        paths=gold.paths,
        start=gold.paths[0][0].head,
        needed=gold.needed,
        facts=() if derivations else bare(label.knowledge_graph),
        free=gold.free,
        text=" ".join(words_of(f"{page.title} {page.text}") for _, page in question.gold),
        is_held_out=question.id in tested,
    )


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold paths, the first of which is shown, with the fields ``needed`` and ``free`` of `PathQuestion`."""

    paths: tuple[Path, ...]
    needed: tuple[int, ...]
    free: frozenset[str] = frozenset()


def of_annotations(question: Question) -> Gold | None:
    """Return the gold path of a question's annotations; None if it has none."""
    hops = annotated_hops(question)
    path = bare(triple for hop in hops for triple in hop.triples)
    if not path:
        return None
    return Gold((path,), tuple(range(1, len(path) + 1)), frozenset(hop.triple.relation for hop in hops if hop.free))


def of_derivations(derivations: Sequence[Derivation]) -> Gold | None:
    """Return R4C's gold paths, the shortest first, or None; needed are the sentences that every annotator has.

    >>> first = [("Oru", 0, ("Oru", "is", "old")), ("Vel", 1, ("Vel", "is in", "Oru"))]
    >>> of_derivations([first, first[1:] + [("Vel", 2, ("Vel", "is", "long"))]]).needed
    (2,)
    """
    filled = sorted((d for d in derivations if d), key=len)
    if not filled:
        return None
    paths = tuple(bare(Triple(*triple) for _, _, triple in derivation) for derivation in filled)
    read_by_all = set.intersection(*({(title, n) for title, n, _ in derivation} for derivation in filled))
    places = {Triple(*triple): (title, sentence) for title, sentence, triple in filled[0]}
    needed = (n for n, triple in enumerate(paths[0], 1) if places[triple] in read_by_all)
    return Gold(paths, tuple(needed), frozenset(t.relation for path in paths for t in path))


_MAX_PATHS = 200
"""The most gold paths of a question; a genre alone has thousands of films."""


Films = tuple[tuple[Triple, ...], GraphStore, list[KGQuestion]]
"""MetaQA's knowledge base as triples and as a graph, and its questions."""


def read_films(kb: File, questions_file: File) -> Films:
    """Read the files of MetaQA; raise ``UserError``, with the line, for a bad file."""
    triples = list(dict.fromkeys(store.read_triples(kb)))
    with at_place(f"{kb}", ValueError):
        graph = MemoryGraph(triples)
    read = list(questions(metaqa.NAME, str(questions_file), names.TEST))
    return tuple(Triple(*triple) for triple in triples), graph, read


def derive(graph: GraphStore, questions: Sequence[KGQuestion]) -> dict[str, RelationPath]:
    """Derive each template's path (`weak.Templates`), unless another that is not rare yields its answers as well."""
    templates = Templates()
    for question in progress.bar(questions, desc="relation paths", unit="question", delay=1):
        if _refused(graph, question) is None:
            topic, hops = question.topics[0], question.hops
            candidates = explore(graph, topic, question.answers, hops, hops).candidates
            templates.add(masked(question.question, question.topics), hops, [(c.path, c.f1) for c in candidates])
    return templates.sure()


def with_paths(
    graph: GraphStore, questions: Iterable[KGQuestion], gold: dict[str, RelationPath], refuse: Refuse
) -> Iterable[PathQuestion]:
    """Yield the questions that their template's path answers exactly, with its instances as gold paths."""
    for question in questions:
        path = gold.get(masked(question.question, question.topics))
        result = _refused(graph, question) or _over_graph(graph, question, path)
        if isinstance(result, PathQuestion):
            yield result
        else:
            refuse(question.benchmark, question.id, result)


def _refused(graph: GraphStore, question: KGQuestion) -> str | None:
    if len(question.topics) != 1 or graph.node(question.topics[0]) is None:
        return "no topic entity of the knowledge base"
    return None if 1 <= question.hops <= HOPS else f"no number of hops from 1 to {HOPS}"


def _over_graph(graph: GraphStore, question: KGQuestion, gold: RelationPath | None) -> PathQuestion | str:
    if gold is None:
        return "no relation path, or several, give the answers of its template"
    topic = question.topics[0]
    if {*GraphKnowledge(graph).rank_ends(Candidate(topic, gold))} != question.answers:
        return "its template's relation path does not give its answers"
    walks = (facts(chain, gold) for chain in store.instances(graph, topic, gold, limit=_MAX_PATHS))
    paths = tuple(path for path in walks if len(set(path)) == len(path))
    if not paths:
        return "its paths go by one fact twice"
    last = paths[0][-1]
    return PathQuestion(
        benchmark=question.benchmark,
        id=question.id,
        question=question.question.replace(f"[{topic}]", topic),
        answer=last.head if gold[-1].startswith(BACKWARDS) else last.tail,
        accepted=tuple(sorted(question.answers)),
        paths=paths,
        start=topic,
        needed=tuple(range(1, question.hops + 1)),
    )


def facts(chain: Sequence[str], path: RelationPath) -> Path:
    """Return the triples of a chain of entities, in the direction that the graph has.

    >>> facts(("Ana", "Oru"), ("~directed_by",))
    (Triple(head='Oru', relation='directed_by', tail='Ana', passage=None, sentence=None),)
    """
    return tuple(
        Triple(end, inverse(relation), start) if relation.startswith(BACKWARDS) else Triple(start, relation, end)
        for start, relation, end in zip(chain, path, chain[1:], strict=False)
    )
