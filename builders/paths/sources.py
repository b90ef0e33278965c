"""Read questions with gold paths: verified ones, with R4C's derivations for HotpotQA, or those over a graph.

The evidence triples of 2Wiki and of the synthetic benchmark, and MuSiQue's decomposition, are paths already. HotpotQA
annotates none; R4C (Inoue et al. 2020, CC0 1.0) has three annotators' derivations for some of its questions, each of
which is a gold path. Only verified ones are read.

The paper of direct evaluation finds the gold paths over a graph in the subgraph of a question's query: all walks from
a topic to an answer (arXiv 2402.11199, Appendix A). Here, gold relation paths (`Questions.find_gold_paths`) take the
query's place; those of GrailQA are read from it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path as File
from typing import Any, ClassVar

from builders.benchmarks.sources import InputSource
from builders.benchmarks.terms import TERMS
from builders.paths import metaqa
from builders.paths.questions import GoldPaths, Questions
from builders.paths.relation_readers import READERS
from builders.paths.weak import Templates, explore
from builders.paths.world import Path, PathQuestion, Refuse, bare
from builders.steps.questions import source_record
from builders.verified.lookup import drop_repeats, labelled
from builders.work.plans import Plan
from safe_stepwise.errors import UserError
from safe_stepwise.graphs import graph_store
from safe_stepwise.graphs.graph_store import BACKWARDS, GraphStore, inverse
from safe_stepwise.graphs.hops import annotated_hops
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.language.text import normal_words
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import Candidate, KGQuestion, Label, Question, QuestionSet, RelationPath, Triple, identity
from safe_stepwise.store import names, parquet, progress

Derivation = Sequence[tuple[str, int, tuple[str, str, str]]]
"""(title, sentence from 0, (head, relation, tail))."""


@dataclass(frozen=True, slots=True)
class ProbeBuild(Plan):
    """The options of a path probe; ``films`` is the graph of ``questions``; ``limit`` is a benchmark's questions."""

    work_name: ClassVar[str] = "path-probe"
    verified: File
    films: File | None = None
    questions: File | None = None
    derivations: File | None = None
    benchmarks: tuple[str, ...] = ()
    """Benchmarks to use; all if empty."""

    @property
    def over_graph(self) -> str:
        """The benchmark of ``questions``: that of `READERS` among ``benchmarks``, else MetaQA; "" without any."""
        return next(name for name in (*self.benchmarks, metaqa.NAME) if name in READERS) if self.questions else ""


def origins(plan: ProbeBuild, builds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of all sources, in the form of ``builds``; raise ``UserError`` for an unreadable file."""
    records = [*map(source_record, builds)]
    if plan.derivations is not None:
        records.append(_record("r4c", plan.version, plan.derivations))
    if plan.over_graph:
        records.append(_record(plan.over_graph, plan.version, *filter(None, (plan.films, plan.questions))))
    return records


def _record(benchmark: str, version: str, *files: File) -> dict[str, Any]:
    inputs = [InputSource.describe(str(file)) for file in files]
    return {
        "benchmark": benchmark,
        "license": "unknown",
        **TERMS[benchmark],
        "split": "",
        "version": version,
        "source": {"files": {source.name: source.digest for source in inputs}, "synthetic": False},
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
        for question, label in drop_repeats(rows):
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
    if "" in {normal_words(end) or end.strip() for end in ends}:
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
        text=" ".join(normal_words(f"{page.title} {page.text}") for _, page in question.gold),
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


MAX_PATHS = 200
"""The maximum number of gold paths of a question; a genre alone has thousands of films."""
_MAX_CHAINS = 20_000
"""The maximum number of chains of entities along a relation path that are searched for an answer."""


def derive(graph: GraphStore, questions: Sequence[KGQuestion]) -> dict[str, RelationPath]:
    """Derive each template's path (`weak.Templates`), unless another that is not rare yields its answers as well."""
    templates = Templates()
    for question in progress.bar(questions, desc="relation paths", unit="question", delay=1):
        topic, hops = question.topics[0], question.hops
        candidates = explore(graph, topic, question.answers, hops, hops).candidates
        templates.add(masked(question.question, question.topics), hops, [(c.path, c.f1) for c in candidates])
    return templates.sure()


def find_gold(rows: Questions) -> Iterator[tuple[KGQuestion, GraphStore, GoldPaths]]:
    """Yield the questions with graphs and gold paths: `Questions.find_gold_paths`, or those of `derive` for MetaQA."""
    by_template, searched = dict[str, tuple[RelationPath, ...]](), range(len(rows.questions))
    if rows.benchmark == metaqa.NAME:
        paths, searched = derive(next(rows.graphs()), rows.questions), range(0)
        by_template = {template: (path,) for template, path in paths.items()}
    return zip(rows.questions, rows.graphs(), rows.find_gold_paths(by_template, searched)[0], strict=False)


def with_paths(
    rows: Iterable[tuple[KGQuestion, GraphStore, GoldPaths]], refuse: Refuse, keeps_graphs: bool = False
) -> Iterator[PathQuestion]:
    """Yield the questions with gold paths that are annotated, or one that gives exactly the answers.

    The walks along them that end at an answer are the question's paths. ``keeps_graphs``: its graph is its facts.
    """
    for question, graph, gold in rows:
        result = _over_graph(graph, question, gold)
        if isinstance(result, PathQuestion):
            yield replace(result, facts=tuple(Triple(*names) for names in graph)) if keeps_graphs else result
        else:
            refuse(question.benchmark, question.id, result)


def _over_graph(graph: GraphStore, question: KGQuestion, gold: GoldPaths) -> PathQuestion | str:
    candidates = [Candidate(topic, path) for topic, paths in gold.items() for path in paths]
    if not question.topics:
        return "it has no topic entity: there is nowhere to start from"
    if not candidates or (len(candidates) > 1 and not question.gold_paths):
        return "no relation path, or several, give its answers best"
    ends = {end for candidate in candidates for end in GraphKnowledge(graph).rank_ends(candidate)}
    if not (ends & question.answers if question.gold_paths else ends == question.answers):
        return "its relation path does not give its answers"
    chained = to_question(question, graph, gold)
    if not chained.paths:
        return "its paths go by one fact twice"
    return PathQuestion(
        benchmark=question.benchmark,
        id=question.id,
        question=chained.question,
        answer=chained.answer,
        accepted=tuple(sorted(question.answers)),
        paths=chained.paths,
        start=next(t for t in question.topics if t in (chained.evidence[0].head, chained.evidence[0].tail)),
        needed=tuple(range(1, chained.hops + 1)),
        topics=question.topics,
    )


def read_chain_questions(
    kb: File | None,
    source: str,
    benchmarks: Sequence[str],
    split: str | None,
    limit: int | None,
    *_: Any,
    **rules: Any,
) -> QuestionSet:
    """Read the first ``limit`` questions as `evaluation_questions.read` does; ``kb`` is the graph if rows bring none.

    A question without a gold path is kept, as its answer still counts. All options but ``skip`` are ignored.
    """
    if len(benchmarks) != 1:
        raise UserError("questions over a graph are of one benchmark: name it, as --benchmark metaqa")
    split = split or names.TEST
    rows = Questions(benchmarks[0], [source], split, kb, keeps_rejects=rules.get("skip", False))
    gold_paths, _origin = rows.find_gold_paths({}, range(len(rows.questions))[:limit])
    triples = islice(zip(rows.questions, rows.graphs(), gold_paths, strict=False), limit)
    questions = tuple(to_question(*triple) for triple in triples)
    skipped = tuple(line.decode() for line in rows.rejects)
    return QuestionSet(questions, File(source).name, identity(rows.description), split, skipped, tuple(rows.rejects))


def to_question(question: KGQuestion, graph: GraphStore, gold_paths: GoldPaths) -> Question:
    """Return a question with all walks along its relation paths that end at an answer (`MAX_PATHS` at most)."""
    starts = [(topic, path) for topic, relation_paths in gold_paths.items() for path in relation_paths]
    walks = (walk for topic, path in starts for walk in list_walks(graph, topic, path, _MAX_CHAINS))
    ends = dict(islice(((path, end) for path, end in walks if end in question.answers), MAX_PATHS))
    paths = tuple(ends)
    answer, *aliases = dict.fromkeys([*ends.values(), *sorted(question.answers)]) or [""]
    text = question.question
    for topic in question.topics:
        text = text.replace(f"[{topic}]", topic)
    return Question(
        *(question.id, question.benchmark, question.split, text, answer, tuple(aliases)),
        hops=len(paths[0]) if paths else question.hops,
        evidence=paths[0] if paths else (),
        paths=paths,
    )


def list_walks(graph: GraphStore, topic: str, path: RelationPath, limit: int) -> Iterator[tuple[Path, str]]:
    """Yield the facts and the end of each walk along a relation path, of ``limit`` at most, that has no fact twice."""
    for chain in graph_store.instances(graph, topic, path, limit):
        walk = facts(chain, path)
        if len(set(walk)) == len(walk):
            yield walk, chain[-1]


def facts(chain: Sequence[str], path: RelationPath) -> Path:
    """Return the triples of a chain of entities, in the direction that the graph has.

    >>> facts(("Ana", "Oru"), ("~directed_by",))
    (Triple(head='Oru', relation='directed_by', tail='Ana', passage=None, sentence=None),)
    """
    return tuple(
        Triple(end, inverse(relation), start) if relation.startswith(BACKWARDS) else Triple(start, relation, end)
        for start, relation, end in zip(chain, path, chain[1:], strict=False)
    )
