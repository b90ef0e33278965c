"""Judge every chain of an evaluation by each rule: one line a question and system.

Questions are judged one after the other, or spread over processes, each with all its chains: its
grounds are made once, and equal chains are judged once. Neither the order of outcomes nor the
spread changes the lines.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from evaluators.comparison.systems import in_order, system_of
from evaluators.faithfulness.lines import RULES, Line, Pair, Verdicts, is_grounded
from evaluators.faithfulness.responses import Response, response_of, takes
from evaluators.outcomes import Outcome
from safe_stepwise.checking.faithfulness.grounds import Chain, Rule, grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.graphs.store import read_triples
from safe_stepwise.language.text import normal_name, strip_diacritics, words_of
from safe_stepwise.records import Question, Triple, canonical_json
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.progress import counts, show_progress

HUB_SIZE = 200
LONGEST_NAME = 12
"""The maximum of words of a name."""


@dataclass(frozen=True)
class Knowledge:
    """The triples of an external graph by which chains may be judged, too (``--kb FILE``), with an index by entity.

    A line holds ``head|relation|tail`` (MetaQA's form); the file may be ``.gz``. A question gets the triples of the
    entities that its texts name; of an entity with more than `HUB_SIZE` triples, such as a language or a
    year, only those whose other end is named as well.
    """

    name: str
    sha256: str
    triples: Sequence[Triple]
    _places: dict[str, list[int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for place in range(len(self.triples)):
            for end in self._ends(place):
                self._places.setdefault(end, []).append(place)

    @property
    def record(self) -> dict[str, object]:
        return {"name": self.name, "sha256": self.sha256, "triples": len(self.triples)}

    def triples_naming(self, texts: Iterable[str]) -> tuple[Triple, ...]:
        """Return the triples of entities that texts name, in the graph's order."""
        entities = {name for text in texts for name in self._names_in(text)}
        triple_numbers: set[int] = set()
        for name in entities:
            places = self._places[name]
            if len(places) <= HUB_SIZE:
                triple_numbers.update(places)
            else:
                triple_numbers.update(n for n in places if self._ends(n) <= entities)
        return tuple(self.triples[n] for n in sorted(triple_numbers))

    def _ends(self, place: int) -> set[str]:
        triple = self.triples[place]
        return {normal_name(triple.head), normal_name(triple.tail)}

    def _names_in(self, text: str) -> Iterator[str]:
        """Yield the longest names in a text, from the left, without overlap."""
        words = words_of(strip_diacritics(text)).split()
        start = 0
        while start < len(words):
            ends = range(min(len(words), start + LONGEST_NAME), start, -1)
            spans = ((end, " ".join(words[start:end])) for end in ends)
            end, name = next(((e, n) for e, n in spans if n in self._places), (start + 1, ""))
            if name:
                yield name
            start = end


def read_knowledge(file: Path) -> Knowledge:
    """Read the graph of a file, names stripped of blanks; raises the errors of `read_triples`."""
    triples = dict.fromkeys(Triple(head.strip(), r.strip(), t.strip()) for head, r, t in read_triples(file))
    return Knowledge(file.name, sha256_of(file), [*triples])


AT_ONCE = 25
"""The number of questions in a job."""
_BEST = {"faithful": 0, "unjudgeable": 1, "unfaithful": 2}

Judge = Callable[["Job"], list[list[Verdicts]]]
Spread = Callable[[Judge, Iterable["Job"]], Iterable[tuple["Job", list[list[Verdicts]]]]]
"""Runs a judge over jobs; yields each job with its result, in order."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A question, external triples about its entities, and its distinct chains."""

    question: Question
    external: tuple[Triple, ...]
    chains: tuple[Chain, ...]


Job = tuple[Piece, ...]


def one_by_one(judge: Judge, jobs: Iterable[Job]) -> Iterator[tuple[Job, list[list[Verdicts]]]]:
    """Judge the jobs in this process."""
    return ((job, judge(job)) for job in jobs)


@dataclass(frozen=True, slots=True)
class Options:
    """The rules and the graph to judge chains by, and how the work is spread.

    ``retrieval`` (by its name) and ``sigma`` are the paper's rule's.
    """

    rules: tuple[Rule, ...] = RULES
    retrieval: str = "words"
    sigma: float | None = None
    """None: the paper's threshold."""
    knowledge: Knowledge | None = None
    spread: Spread = one_by_one


DEFAULT = Options()


def measure(pairs: Sequence[Pair], options: Options = DEFAULT) -> list[Line]:
    """Judge all outcomes; returns lines ordered by system, benchmark and question."""
    responses = [response_of(outcome) for outcome, _ in pairs]
    pieces = _pieces(pairs, responses, options.knowledge)
    keys = [*pieces]
    starts = range(0, len(keys), AT_ONCE)
    jobs = [tuple(pieces[key] for key in keys[start : start + AT_ONCE]) for start in starts]
    total, done_count = sum(len(piece.chains) for piece in pieces.values()), 0
    judged: list[list[Verdicts]] = []
    progress = lambda: counts(done_count, 0, total - done_count)  # noqa: E731
    settings = options.retrieval, options.sigma
    with show_progress("faithfulness", "chain", total, lambda: done_count, progress):
        for job, chain_verdicts in options.spread(partial(judge_all, rules=options.rules, settings=settings), jobs):
            judged += chain_verdicts
            done_count += sum(len(piece.chains) for piece in job)
    by_chain = {
        (key, chain): verdicts
        for key, chain_verdicts in zip(keys, judged, strict=True)
        for chain, verdicts in zip(pieces[key].chains, chain_verdicts, strict=True)
    }
    lines = [
        line
        for (outcome, question), response in zip(pairs, responses, strict=True)
        for line in _lines(outcome, question, response, by_chain)
    ]
    take_order = {"only": 0, "majority": 0, "best_of_n": 1}
    places = {system: n for n, system in enumerate(in_order({line.system for line in lines}))}
    return sorted(
        lines,
        key=lambda line: (
            places[line.system], take_order[line.vote], line.benchmark, line.outcome.question_id,
            canonical_json([line.outcome, line.question]),
        ),
    )  # fmt: skip


def judge_all(job: Job, rules: Sequence[Rule], settings: tuple[str, float | None]) -> list[list[Verdicts]]:
    """Return the verdicts on each piece's chains, by rule; ``settings`` are retrieval and sigma."""
    retrieval, sigma = RETRIEVALS[settings[0]], settings[1]
    grounds = [grounds_of(piece.question, piece.external) for piece in job]
    return [
        [{rule: judge_chain(piece_grounds, chain, rule, retrieval, sigma) for rule in rules} for chain in piece.chains]
        for piece, piece_grounds in zip(job, grounds, strict=True)
    ]


def _pieces(pairs: Sequence[Pair], responses: Sequence[Response], knowledge: Knowledge | None) -> dict[str, Piece]:
    chains_by_key: dict[str, tuple[Question, dict[Chain, None]]] = {}
    for (_, question), response in zip(pairs, responses, strict=True):
        if response.chains and is_grounded(question):
            chains = chains_by_key.setdefault(_key(question), (question, {}))[1]
            chains.update(dict.fromkeys(response.chains))
    return {
        key: _piece(question, sorted(chains, key=canonical_json), knowledge)
        for key, (question, chains) in sorted(chains_by_key.items())
    }


def _piece(question: Question, chains: Sequence[Chain], knowledge: Knowledge | None) -> Piece:
    external: tuple[Triple, ...] = ()
    if knowledge:
        texts = [text for chain in chains for text in (*chain.steps, chain.answer)]
        ends = [end for t in question.evidence for end in (t.head, t.tail)]
        ends += [hop.answer for hop in question.decomposition]
        external = knowledge.triples_naming([question.question, *question.accepted, *ends, *texts])
    return Piece(question, external, tuple(chains))


def _key(question: Question) -> str:
    return canonical_json([question.benchmark, question.id, question])


def _lines(
    outcome: Outcome, question: Question, response: Response, judged: Mapping[tuple[str, Chain], Verdicts]
) -> Iterator[Line]:
    system, key = system_of(outcome), _key(question)
    verdicts = [judged.get((key, chain), {}) for chain in response.chains]
    for take in takes(response):
        line = Line(outcome, question, system, take, response.kind)
        if take == "best_of_n":
            yield _best(line, response, verdicts)
        elif response.chains:
            chain = response.chains[response.chosen]
            numbers = chain.numbers or range(1, len(chain.steps) + 1)
            sample = response.samples[response.chosen] if response.samples else None
            yield replace(
                line,
                steps=tuple(zip(numbers, chain.steps, strict=True)),
                verdicts=verdicts[response.chosen],
                samples={} if sample is None else dict.fromkeys(verdicts[response.chosen], sample),
            )
        else:
            yield line


def _best(line: Line, response: Response, verdicts: Sequence[Verdicts]) -> Line:
    """Return the line with each rule's best sample, the first of equals; the answer stays the vote's."""
    places = {rule: min(range(len(verdicts)), key=lambda n: _BEST[verdicts[n][rule].path]) for rule in verdicts[0]}
    return replace(
        line,
        verdicts={rule: verdicts[place][rule] for rule, place in places.items()},
        samples={rule: response.samples[place] for rule, place in places.items()},
    )
