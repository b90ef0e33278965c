"""Questions with gold paths from verified benchmarks, and from R4C's derivations for HotpotQA.

2Wiki's evidence triples, MuSiQue's decomposition and the synthetic benchmark's evidence are a path
as they stand. HotpotQA annotates none; R4C (Inoue et al. 2020, CC0 1.0) has three annotators'
derivations for some of its questions, each of which is a gold path. Only questions whose path
verification found sound are taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File

from builders.paths.asked import Asked, Path, Refuse, bare
from builders.verified.lookup import labelled
from safe_stepwise.graphs.hops import annotated_hops
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Label, Question, Triple
from safe_stepwise.store.names import EVAL, VERIFIED
from safe_stepwise.store.parquet import dataset_folder, parquet_files, read_rows

Derivation = Sequence[tuple[str, int, tuple[str, str, str]]]
"""(title, sentence from 0, (head, relation, tail))."""


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold paths, the first of which is shown, and what `Asked` says of them."""

    paths: tuple[Path, ...]
    needed: tuple[int, ...]
    free: frozenset[str] = frozenset()


def verified_questions(
    folder: File, derivations: Mapping[str, Sequence[Derivation]], refuse: Refuse, benchmarks: Sequence[str] = ()
) -> Iterator[Asked]:
    """The questions of a folder of `build_verified` that have a gold path, each id once.

    Of all its benchmarks, or of those named.

    Raises ``UserError`` for a folder that holds none.
    """
    for benchmark, rows in labelled(folder):
        if benchmarks and benchmark not in benchmarks:
            continue
        tested, seen = evaluated_ids(folder, benchmark), set[str]()
        for question, label in rows:
            if question.id in seen:
                continue
            seen.add(question.id)
            found = _asked(question, label, derivations.get(question.id, ()), tested)
            if isinstance(found, Asked):
                yield found
            else:
                refuse(benchmark, question.id, found)


def evaluated_ids(folder: File, benchmark: str) -> set[str]:
    """The ids of a benchmark's evaluation sample."""
    dataset = dataset_folder(folder, VERIFIED)
    files = parquet_files(dataset, benchmark + EVAL) if dataset else []
    return {id_ for file in files for id_ in read_rows(file, lambda row: str(row["id"]), ["id"])}


def _asked(question: Question, label: Label, derivations: Sequence[Derivation], tested: set[str]) -> Asked | str:
    """The question with its paths, or why it has none."""
    if label.noise_type != "none":
        return f"not verified: {label.noise_type}"
    gold = of_derivations(derivations) if derivations else of_annotations(question)
    if gold is None:
        return "no annotated path"
    named = {end for triple in gold.paths[0] for end in (triple.head, triple.tail)}
    if "" in {words_of(end) or end.strip() for end in named}:
        return "its path has an end without a name"
    return Asked(
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


def of_annotations(question: Question) -> Gold | None:
    """The path of a question's own annotations; None where it has none."""
    hops = annotated_hops(question)
    path = bare(triple for hop in hops for triple in hop.triples)
    if not path:
        return None
    free = frozenset(hop.triple.relation for hop in hops if hop.free)
    return Gold((path,), tuple(range(1, len(path) + 1)), free)


def of_derivations(derivations: Sequence[Derivation]) -> Gold | None:
    """R4C's derivations as paths, the shortest shown; None where all are empty.

    A triple is needed if every annotator reads one of that sentence: they differ in how much they
    write down beside what the answer takes.

    >>> one = [("Oru", 0, ("Oru", "is", "old")), ("Vel", 1, ("Vel", "is in", "Oru"))]
    >>> of_derivations([one, one[1:] + [("Vel", 2, ("Vel", "is", "long"))]]).needed
    (2,)
    """
    there = sorted((d for d in derivations if d), key=len)
    if not there:
        return None
    cited = [{(title, sentence) for title, sentence, _ in one} for one in there]
    paths = tuple(bare(Triple(*triple) for _, _, triple in one) for one in there)
    of_all = set.intersection(*cited)
    places = {Triple(*t): (title, sentence) for title, sentence, t in there[0]}
    needed = (n for n, triple in enumerate(paths[0], 1) if places[triple] in of_all)
    return Gold(paths, tuple(needed), frozenset(t.relation for path in paths for t in path))
