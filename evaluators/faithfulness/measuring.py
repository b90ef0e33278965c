"""Every chain that an evaluation kept, judged by each rule: a line a question and system.

Questions are judged one after the other, or spread over processes, each with all that was said of
it: its grounds are made once, and equal chains are judged once. Neither the order of what comes in
nor how it is spread changes what comes out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from evaluators.comparison.systems import System, in_order
from evaluators.faithfulness.knowledge import Knowledge
from evaluators.faithfulness.said import Kind, Response, response_of, taken
from evaluators.outcomes import Outcome
from safe_stepwise.checking.faithfulness.chains import (
    Chain,
    ChainVerdict,
    Grounds,
    Rule,
    StepVerdict,
)
from safe_stepwise.checking.faithfulness.grounds import grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.records import Question, Triple, canonical_json
from safe_stepwise.store.progress import counts, telling

RULES: tuple[Rule, ...] = ("house", "paper")
AT_ONCE = 25
"""Questions of a piece of work."""
_BEST = {"faithful": 0, "unjudgeable": 1, "unfaithful": 2}

Asked = tuple[Outcome, Question]
"""An outcome with what was asked, its annotations included."""
Verdicts = Mapping[Rule, ChainVerdict]
Judge = Callable[["Job"], list[list[Verdicts]]]
Spread = Callable[[Judge, Iterable["Job"]], Iterable[tuple["Job", list[list[Verdicts]]]]]
"""Runs a judge over jobs; gives each with its result, in their order."""


@dataclass(frozen=True, slots=True)
class Options:
    """How chains are judged; ``retrieval`` (by its name) and ``sigma`` are the paper's rule's."""

    rules: tuple[Rule, ...] = RULES
    retrieval: str = "words"
    sigma: float | None = None
    """None: the paper's."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A question, what else is known of its entities, and the different chains to judge by it."""

    question: Question
    known: tuple[Triple, ...]
    chains: tuple[Chain, ...]


Job = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One outcome, judged; see the package for how it is written.

    ``taken``: as what a vote is told; ``question``: what was asked; ``steps``: numbers and texts of
    the chain; ``verdicts`` and, of a vote, the attempts that they are of, by rule.
    """

    outcome: Outcome
    question: Question
    system: System
    taken: str
    response: Kind
    steps: tuple[tuple[int, str], ...] = ()
    verdicts: Verdicts = field(default_factory=dict)
    samples: Mapping[Rule, int] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        """The question's."""
        return self.outcome.benchmark

    @property
    def is_exact(self) -> bool:
        """Whether the answer is right by the benchmark's exact match."""
        return self.outcome.exact_match == 1


def one_by_one(judge: Judge, jobs: Iterable[Job]) -> Iterator[tuple[Job, list[list[Verdicts]]]]:
    """The jobs in this process."""
    return ((job, judge(job)) for job in jobs)


def measure(
    asked: Sequence[Asked],
    options: Options = Options(),
    knowledge: Knowledge | None = None,
    spread: Spread = one_by_one,
) -> list[Line]:
    """The lines of all outcomes, ordered by system, benchmark and question."""
    responses = [response_of(outcome) for outcome, _ in asked]
    pieces = _pieces(asked, responses, knowledge)
    keys = [*pieces]
    starts = range(0, len(keys), AT_ONCE)
    jobs = [tuple(pieces[key] for key in keys[at : at + AT_ONCE]) for at in starts]
    total, done = sum(len(piece.chains) for piece in pieces.values()), 0
    judged: list[list[Verdicts]] = []
    stands = lambda: counts(done, 0, total - done)  # noqa: E731
    with telling("faithfulness", "chain", total, lambda: done, stands):
        for job, found in spread(partial(judge_all, options=options), jobs):
            judged += found
            done += sum(len(piece.chains) for piece in job)
    by_chain = {
        (key, chain): verdicts
        for key, found in zip(keys, judged, strict=True)
        for chain, verdicts in zip(pieces[key].chains, found, strict=True)
    }
    lines = [
        line
        for (outcome, question), response in zip(asked, responses, strict=True)
        for line in _lines(outcome, question, response, by_chain)
    ]
    return _sorted(lines)


def judge_all(job: Job, options: Options) -> list[list[Verdicts]]:
    """What each chain of each piece comes to, by rule."""
    return [_judged(piece, options) for piece in job]


def _judged(piece: Piece, options: Options) -> list[Verdicts]:
    grounds = grounds_of(piece.question, piece.known)
    return [
        {rule: _verdict(grounds, chain, rule, options) for rule in options.rules}
        for chain in piece.chains
    ]


def _verdict(grounds: Grounds, chain: Chain, rule: Rule, options: Options) -> ChainVerdict:
    """By the paper's rule each step is a triple, so that it is not shown what only concludes."""
    retrieval = RETRIEVALS[options.retrieval]
    if rule != "paper" or not chain.concluding:
        return judge_chain(grounds, chain, rule, retrieval, options.sigma)
    places = [n for n in range(1, len(chain.steps) + 1) if n not in chain.concluding]
    stating = Chain(tuple(chain.steps[n - 1] for n in places), chain.answer)
    found = judge_chain(grounds, stating, rule, retrieval, options.sigma)
    steps = dict(zip(places, found.steps, strict=False))
    whole = tuple(steps.get(n, StepVerdict()) for n in range(1, len(chain.steps) + 1))
    return replace(found, steps=whole, first=found.first and places[found.first - 1])


def _pieces(
    asked: Sequence[Asked], responses: Sequence[Response], knowledge: Knowledge | None
) -> dict[str, Piece]:
    """By what was asked, in the order of that."""
    found: dict[str, tuple[Question, dict[Chain, None]]] = {}
    for (_, question), response in zip(asked, responses, strict=True):
        if response.chains and is_grounded(question):
            chains = found.setdefault(_key(question), (question, {}))[1]
            chains.update(dict.fromkeys(response.chains))
    return {
        key: _piece(question, sorted(chains, key=canonical_json), knowledge)
        for key, (question, chains) in sorted(found.items())
    }


def _piece(question: Question, chains: Sequence[Chain], knowledge: Knowledge | None) -> Piece:
    known: tuple[Triple, ...] = ()
    if knowledge:
        said = [text for chain in chains for text in (*chain.steps, chain.answer)]
        ends = [end for t in question.evidence for end in (t.head, t.tail)]
        ends += [hop.answer for hop in question.decomposition]
        known = knowledge.about([question.question, *question.accepted, *ends, *said])
    return Piece(question, known, tuple(chains))


def is_grounded(question: Question) -> bool:
    """Whether a question has what its chains can be judged by."""
    return bool(question.evidence or question.decomposition)


def _key(question: Question) -> str:
    return canonical_json([question.benchmark, question.id, question])


def _lines(
    outcome: Outcome,
    question: Question,
    response: Response,
    judged: Mapping[tuple[str, Chain], Verdicts],
) -> Iterator[Line]:
    system = System.of(outcome.method, outcome.players, outcome.options, outcome.conditions)
    key = _key(question)
    found = [judged.get((key, chain), {}) for chain in response.chains]
    for way in taken(response):
        plain = Line(outcome, question, system, way, response.kind)
        if way == "best_of_n":
            yield _best(plain, response, found)
        elif response.chains:
            chain = response.chains[response.chosen]
            numbers = chain.numbers or range(1, len(chain.steps) + 1)
            at = response.samples[response.chosen] if response.samples else None
            yield replace(
                plain,
                steps=tuple(zip(numbers, chain.steps, strict=True)),
                verdicts=found[response.chosen],
                samples={} if at is None else dict.fromkeys(found[response.chosen], at),
            )
        else:
            yield plain


def _best(line: Line, response: Response, found: Sequence[Verdicts]) -> Line:
    """Each rule's best sample, the first of several; the answer stays the vote's."""
    places = {
        rule: min(range(len(found)), key=lambda n: _BEST[found[n][rule].path]) for rule in found[0]
    }
    return replace(
        line,
        verdicts={rule: found[place][rule] for rule, place in places.items()},
        samples={rule: response.samples[place] for rule, place in places.items()},
    )


def _sorted(lines: Sequence[Line]) -> list[Line]:
    ways = {"only": 0, "majority": 0, "best_of_n": 1}
    places = {system: n for n, system in enumerate(in_order({line.system for line in lines}))}
    return sorted(
        lines,
        key=lambda line: (
            places[line.system], ways[line.taken], line.benchmark, line.outcome.question_id,
            canonical_json([line.outcome, line.question]),
        ),
    )  # fmt: skip


def repeated(lines: Iterable[Line]) -> Iterator[tuple[tuple[str, str, int], Line]]:
    """Lines of one system by question: those that share an id are numbered in their order."""
    seen = Counter[tuple[str, str]]()
    for line in lines:
        key = line.benchmark, line.outcome.question_id
        yield (*key, seen[key]), line
        seen[key] += 1


def judged_row(verdict: ChainVerdict, sample: int | None) -> dict[str, Any]:
    """A verdict as it is written down."""
    row = {
        "path": verdict.path,
        "is_right": verdict.is_right,
        "fault": verdict.fault,
        "first": verdict.first,
        "edits": verdict.edits,
        "distance": None if verdict.distance is None else round(verdict.distance, 4),
        "missing": [_plain(triple) for triple in verdict.missing],
        "steps": [
            {
                "triples": [_plain(triple) for triple in step.triples],
                "fault": step.fault,
                "score": None if step.score is None else round(step.score, 4),
            }
            for step in verdict.steps
        ],
    }
    return row if sample is None else {**row, "sample": sample}


def _plain(triple: Triple) -> list[str]:
    return [triple.head, triple.relation, triple.tail]


def row_of(line: Line, system: int) -> dict[str, Any]:
    """A line of ``faithfulness.jsonl``; ``system`` is its place among the systems."""
    return {
        "system": system,
        "benchmark": line.benchmark,
        "question_id": line.outcome.question_id,
        "answer": line.outcome.trajectory.answer,
        "exact_match": line.is_exact,
        "judge": line.outcome.verdict,
        "response": line.response,
        "steps": [{"number": number, "text": text} for number, text in line.steps],
        "rules": {r: judged_row(v, line.samples.get(r)) for r, v in line.verdicts.items()},
    }
