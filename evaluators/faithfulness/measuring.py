"""Judge every chain of an evaluation by each rule: one line a question and system.

Questions are judged one after the other, or spread over processes, each with all its chains: its
grounds are made once, and equal chains are judged once. Neither the order of outcomes nor the
spread changes the lines.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from evaluators.comparison.systems import in_order, system_of
from evaluators.faithfulness.knowledge import Knowledge
from evaluators.faithfulness.lines import RULES, Line, Pair, Verdicts, is_grounded
from evaluators.faithfulness.responses import Response, response_of, takes
from evaluators.outcomes import Outcome
from safe_stepwise.checking.faithfulness.grounds import Chain, Rule, grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.records import Question, Triple, canonical_json
from safe_stepwise.store.progress import counts, telling

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
    with telling("faithfulness", "chain", total, lambda: done_count, progress):
        for job, verdicts_ in options.spread(partial(judge_all, rules=options.rules, settings=settings), jobs):
            judged += verdicts_
            done_count += sum(len(piece.chains) for piece in job)
    by_chain = {
        (key, chain): verdicts
        for key, verdicts_ in zip(keys, judged, strict=True)
        for chain, verdicts in zip(pieces[key].chains, verdicts_, strict=True)
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
            places[line.system], take_order[line.taken], line.benchmark, line.outcome.question_id,
            canonical_json([line.outcome, line.question]),
        ),
    )  # fmt: skip


def judge_all(job: Job, rules: Sequence[Rule], settings: tuple[str, float | None]) -> list[list[Verdicts]]:
    """Return the verdicts on each piece's chains, by rule; ``settings`` are retrieval and sigma."""
    retrieval, sigma = RETRIEVALS[settings[0]], settings[1]
    grounds = [grounds_of(piece.question, piece.external) for piece in job]
    return [
        [{rule: judge_chain(grounds_, chain, rule, retrieval, sigma) for rule in rules} for chain in piece.chains]
        for piece, grounds_ in zip(job, grounds, strict=True)
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
        external = knowledge.about([question.question, *question.accepted, *ends, *texts])
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
