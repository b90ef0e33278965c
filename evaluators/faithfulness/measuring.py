"""Judge every chain of an evaluation by each rule, and return a judged outcome for each question and system.

A question is judged with all its chains at once: its grounds are built once, and equal chains are judged once. The
questions may be spread over processes. Neither the order of the outcomes nor the spread changes the result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from evaluators.comparison.systems import sort_systems, system_of
from evaluators.faithfulness.judged_outcomes import RULES, JudgedOutcome, Pair, Verdicts, is_grounded
from evaluators.faithfulness.responses import Response, Selection, response_of
from evaluators.outcomes import Outcome
from safe_stepwise.checking.faithfulness.grounds import Chain, Rule, ends_of, grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.graphs.graph_store import read_triples
from safe_stepwise.language.text import normal_name, normal_words, strip_diacritics
from safe_stepwise.records import Question, Triple, canonical_json
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.progress import counts, show_progress

HUB_SIZE = 200
"""The number of triples above which an entity is a hub."""
MAX_NAME_WORDS = 12
"""The maximum number of words in an entity's name."""
QUESTIONS_PER_JOB = 25
_VERDICT_RANKS = {"faithful": 0, "unjudgeable": 1, "unfaithful": 2}
ChainVerdicts = Mapping[Chain, Verdicts]
Judge = Callable[["Job"], list[ChainVerdicts]]
Spread = Callable[[Judge, Iterable["Job"]], Iterable[tuple["Job", list[ChainVerdicts]]]]
"""Runs a judge over jobs; yields each job with its result, in order."""


@dataclass(frozen=True)
class ExternalGraph:
    """The triples of an external graph that may also support chains (``--kb FILE``), with an index by entity.

    A question gets the triples of the entities that its texts name. An entity with more than `HUB_SIZE` triples, such
    as a language or a year, contributes only those triples whose other end is named as well.
    """

    name: str
    sha256: str
    triples: Sequence[Triple]
    _indices: dict[str, list[int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for index in range(len(self.triples)):
            for end in self._ends(index):
                self._indices.setdefault(end, []).append(index)

    @property
    def record(self) -> dict[str, object]:
        return {"name": self.name, "sha256": self.sha256, "triples": len(self.triples)}

    def triples_naming(self, texts: Iterable[str]) -> tuple[Triple, ...]:
        """Return the triples of entities that texts name, in the graph's order."""
        entities = {name for text in texts for name in self._names_in(text)}
        triple_numbers: set[int] = set()
        for name in entities:
            indices = self._indices[name]
            if len(indices) <= HUB_SIZE:
                triple_numbers.update(indices)
            else:
                triple_numbers.update(n for n in indices if self._ends(n) <= entities)
        return tuple(self.triples[n] for n in sorted(triple_numbers))

    def _ends(self, index: int) -> set[str]:
        triple = self.triples[index]
        return {normal_name(triple.head), normal_name(triple.tail)}

    def _names_in(self, text: str) -> Iterator[str]:
        """Yield the longest names in a text, from the left, without overlap."""
        words = normal_words(strip_diacritics(text)).split()
        start = 0
        while start < len(words):
            ends = range(min(len(words), start + MAX_NAME_WORDS), start, -1)
            spans = ((end, " ".join(words[start:end])) for end in ends)
            end, name = next(((e, n) for e, n in spans if n in self._indices), (start + 1, ""))
            if name:
                yield name
            start = end


def read_knowledge(file: Path) -> ExternalGraph:
    """Read a graph's file as `read_triples` does: lines ``head|relation|tail``, optionally gzipped."""
    triples = dict.fromkeys(Triple(head.strip(), r.strip(), t.strip()) for head, r, t in read_triples(file))
    return ExternalGraph(file.name, sha256_of(file), [*triples])


@dataclass(frozen=True, slots=True)
class Piece:
    """A question, external triples about its entities, and its distinct chains."""

    question: Question
    external: tuple[Triple, ...]
    chains: tuple[Chain, ...]


Job = tuple[Piece, ...]


def judge_sequentially(judge: Judge, jobs: Iterable[Job]) -> Iterator[tuple[Job, list[ChainVerdicts]]]:
    """Judge the jobs in this process."""
    return ((job, judge(job)) for job in jobs)


@dataclass(frozen=True, slots=True)
class Options:
    """The rules and the graph to judge chains by, and how the work is spread over processes."""

    rules: tuple[Rule, ...] = RULES
    retrieval: str = "words"
    """How the paper's rule finds evidence for a step: a name in `RETRIEVALS`."""
    sigma: float | None = None
    """The similarity at which the paper's rule accepts evidence; None for the paper's own threshold."""
    knowledge: ExternalGraph | None = None
    spread: Spread = judge_sequentially


DEFAULT = Options()


def measure(pairs: Sequence[Pair], options: Options = DEFAULT) -> list[JudgedOutcome]:
    """Judge the chains of all outcomes; return the judged outcomes by system, selection, benchmark and question."""
    responses = [response_of(outcome) for outcome, _ in pairs]
    pieces = _to_pieces(pairs, responses, options.knowledge or _combine_paths(pairs))
    keys = [*pieces]
    starts = range(0, len(keys), QUESTIONS_PER_JOB)
    jobs = [tuple(pieces[key] for key in keys[start : start + QUESTIONS_PER_JOB]) for start in starts]
    total, done_count = sum(len(piece.chains) for piece in pieces.values()), 0
    measured: list[ChainVerdicts] = []
    progress = lambda: counts(done_count, 0, total - done_count)  # noqa: E731
    settings = options.retrieval, options.sigma
    with show_progress("faithfulness", "chain", total, lambda: done_count, progress):
        for job, chain_verdicts in options.spread(partial(judge_all, rules=options.rules, settings=settings), jobs):
            measured += chain_verdicts
            done_count += sum(len(piece.chains) for piece in job)
    by_question = dict(zip(keys, measured, strict=True))
    all_judged = [
        judged
        for (outcome, question), response in zip(pairs, responses, strict=True)
        for judged in _select_chains(outcome, question, response, by_question.get(_key(question), {}))
    ]
    selection_order: dict[Selection, int] = {"only": 0, "majority": 0, "best_of_n": 1}
    ranks = {system: n for n, system in enumerate(sort_systems({judged.system for judged in all_judged}))}
    return sorted(
        all_judged,
        key=lambda judged: (
            ranks[judged.system], selection_order[judged.selection], judged.benchmark, judged.outcome.question_id,
            canonical_json([judged.outcome, judged.question]),
        ),
    )  # fmt: skip


def judge_all(job: Job, rules: Sequence[Rule], settings: tuple[str, float | None]) -> list[ChainVerdicts]:
    """Return the verdicts on each piece's chains; ``settings`` are retrieval and sigma."""
    retrieval, sigma = RETRIEVALS[settings[0]], settings[1]
    grounds = [grounds_of(piece.question, piece.external) for piece in job]
    return [
        {c: {rule: judge_chain(piece_grounds, c, rule, retrieval, sigma) for rule in rules} for c in piece.chains}
        for piece, piece_grounds in zip(job, grounds, strict=True)
    ]


def _combine_paths(pairs: Sequence[Pair]) -> ExternalGraph | None:
    """Return the graph of the paths of all questions over a graph, as the paper has it (C.1); None without any."""
    triples = dict.fromkeys(triple for _, question in pairs for path in question.paths for triple in path)
    return ExternalGraph("paths", "", [*triples]) if triples else None


def _to_pieces(pairs: Sequence[Pair], responses: Sequence[Response], graph: ExternalGraph | None) -> dict[str, Piece]:
    chains_by_key: dict[str, tuple[Question, dict[Chain, None]]] = {}
    for (_, question), response in zip(pairs, responses, strict=True):
        if response.chains and is_grounded(question):
            chains = chains_by_key.setdefault(_key(question), (question, {}))[1]
            chains.update(dict.fromkeys(response.chains))
    pieces = {}
    for key, (question, distinct) in sorted(chains_by_key.items()):
        texts = [text for chain in distinct for text in (*chain.steps, chain.answer)]
        texts += [end for path in (question.evidence, *question.paths) for end in ends_of(path)]
        texts += [question.question, *question.accepted, *(hop.answer for hop in question.decomposition)]
        external = graph.triples_naming(texts) if graph else ()
        pieces[key] = Piece(question, external, tuple(sorted(distinct, key=canonical_json)))
    return pieces


def _key(question: Question) -> str:
    return canonical_json([question.benchmark, question.id, question])


def _select_chains(
    outcome: Outcome, question: Question, response: Response, by_chain: ChainVerdicts
) -> Iterator[JudgedOutcome]:
    system, verdicts = system_of(outcome), [by_chain.get(chain, {}) for chain in response.chains]
    selections: tuple[Selection, ...] = ("majority", "best_of_n") if response.samples else ("only",)
    for selection in selections:
        judged = JudgedOutcome(outcome, question, system, selection, response.kind)
        if selection == "best_of_n" and response.chains:
            yield _select_best_samples(judged, response, verdicts)
        elif response.chains:
            chain = response.chains[response.chosen]
            numbers = chain.numbers or range(1, len(chain.steps) + 1)
            sample = response.samples[response.chosen] if response.samples else None
            yield replace(
                judged,
                steps=tuple(zip(numbers, chain.steps, strict=True)),
                verdicts=verdicts[response.chosen],
                samples={} if sample is None else dict.fromkeys(verdicts[response.chosen], sample),
            )
        else:
            yield judged


def _select_best_samples(judged: JudgedOutcome, response: Response, verdicts: Sequence[Verdicts]) -> JudgedOutcome:
    """Add each rule's verdict on its best sample, the first of equals; the answer remains the vote's."""
    best = {
        rule: min(range(len(verdicts)), key=lambda n: _VERDICT_RANKS[verdicts[n][rule].path]) for rule in verdicts[0]
    }
    return replace(
        judged,
        verdicts={rule: verdicts[index][rule] for rule, index in best.items()},
        samples={rule: response.samples[index] for rule, index in best.items()},
    )
