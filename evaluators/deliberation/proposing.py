"""Propose relation paths for questions, by baselines or engines with an adapter, and answer from these paths.

- ``oracle``: the gold paths.
- ``majority``: the most frequent paths of the labelled questions with as many hops.
- ``nearest``: the paths of the labelled questions with the nearest template (by the cosine of TF-IDF weights of
  words; if two are equally near, the one of more questions).
- ``no_graph``: none; the generator answers from the question alone (Table 3).

Majority and nearest do not learn from the question itself. If proposals are *constrained*, only paths that the graph
has are proposed. An engine proposes one path per topic entity greedily, and samples further ones, each with its own
seed; a *joint* reply has all paths of a question. A constrained engine chooses from a list of the graph's paths. If
these are too many to list, it extends the path that it has chosen so far, by as many hops as can be listed at a time.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import Any

from evaluators.deliberation import EXTEND, FIRST_PATH, FOLLOW, NO_REPLY, NOWHERE, PATH, PROPOSE, PROPOSER, UNREADABLE
from evaluators.deliberation.options import BASELINES, NO_GRAPH, Options, check_names, split_name
from evaluators.deliberation.questions import Case, PathExample, PathsSet, merge_examples
from safe_stepwise import prompts
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import CountingClient
from safe_stepwise.errors import UserError
from safe_stepwise.methods import deliberation, path_proposing, path_recall
from safe_stepwise.methods.deliberation import Knowledge, PathOptions, deliberate
from safe_stepwise.methods.prompting import GENERATOR
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Candidate, RelationPath, Trajectory, Usage, identity

SEEDS_PER_RUN = 1_000
"""The distance between the seeds of independent runs (``--repeats``)."""
TEMPERATURE = 1.0
"""The temperature of sampled paths: the model's own distribution."""
Ranking = Callable[[Case, str], Iterable[RelationPath]]
"""A function from a case and its topic entity to paths, the best first."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposed path from a topic entity, or why there is none; of a joint reply only the first has its text."""

    topic: str
    outcome: str
    path: RelationPath = ()
    text: str = ""
    reason: str = ""
    usage: Usage | None = None
    is_begun: bool = False
    """Whether the path has only its first hops so far, and is extended by the next proposal."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A proposer that makes no requests; ``limit`` is its maximum of paths per topic entity."""

    name: str
    """The name, which may be published."""
    identity: Any
    """A JSON value with everything that can change its proposals."""
    rank: Ranking
    limit: int | None
    constrained: bool = False
    """Whether it proposes only paths that the graph has."""
    client: Client | None = None
    repeat: int = 0

    async def propose(self, case: Case, knowledge: Knowledge) -> list[Proposal]:
        """Return the proposals, topic by topic, the best first."""
        proposals = []
        for topic in case.question.topics:
            ranked: Iterable[RelationPath] = dict.fromkeys(self.rank(case, topic))
            if self.constrained:
                short = (path for path in ranked if len(path) <= knowledge.hops)
                ranked = (path for path in short if knowledge.rank_ends(Candidate(topic, path)))
            proposals += [Proposal(topic, PATH, path) for path in islice(ranked, self.limit)]
        return proposals


def make_oracle() -> Baseline:
    """Return the proposer of all gold paths."""
    return Baseline("oracle", ["oracle"], lambda case, topic: case.gold_paths.get(topic, ()), None)


def make_majority(examples: Sequence[PathExample], limit: int, constrained: bool = False) -> Baseline:
    """Return the proposer of the most frequent paths of the examples with as many hops as the question."""
    counts: dict[int, Counter[RelationPath]] = defaultdict(Counter)
    for example in examples:
        counts[example.hops].update(example.paths)
    by_question = {example.question: example for example in examples}

    def rank(case: Case, _: str) -> list[RelationPath]:
        return _sort_by_frequency(counts[case.question.hops], by_question.get(case.question.question))

    return Baseline("majority", ["majority", identity(examples), limit, constrained], rank, limit, constrained)


def make_nearest(examples: Sequence[PathExample], limit: int, constrained: bool = False) -> Baseline:
    """Return the proposer of the paths of the examples whose templates are nearest."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts: dict[str, Counter[RelationPath]] = defaultdict(Counter)
    sizes = Counter(example.template for example in examples)
    for example in examples:
        counts[example.template].update(example.paths)
    by_question = {example.question: example for example in examples}
    templates = sorted(counts)
    vectorizer = TfidfVectorizer(token_pattern=r"\S+", lowercase=False)
    vectors = vectorizer.fit_transform(templates)

    @cache
    def sort_by_similarity(template: str) -> list[str]:
        similarity = (vectors @ vectorizer.transform([template]).T).toarray().ravel().round(9)
        indices = sorted(range(len(templates)), key=lambda n: (-similarity[n], -sizes[templates[n]], n))
        return [templates[n] for n in indices]

    def rank(case: Case, _: str) -> Iterator[RelationPath]:
        example = by_question.get(case.question.question)
        for template in sort_by_similarity(case.template):
            excluded = example if example is not None and example.template == template else None
            yield from _sort_by_frequency(counts[template], excluded)

    return Baseline("nearest", ["nearest", identity(examples), limit, constrained], rank, limit, constrained)


def _sort_by_frequency(counts: Counter[RelationPath], excluded: PathExample | None) -> list[RelationPath]:
    """Sort paths by frequency, then by name; the paths of ``excluded`` do not count."""
    remaining = counts - Counter(excluded.paths) if excluded is not None else counts
    return sorted(remaining, key=lambda path: (-remaining[path], path))


@dataclass(frozen=True, slots=True)
class ModelProposer:
    """A proposer that asks a model, usually with an adapter; ``constrained`` and ``joint`` as the module says."""

    name: str
    client: Client
    candidates: int
    """The number of replies per topic entity, or per question if they are joint; the first is greedy."""
    constrained: bool
    seed: int
    joint: bool = False
    repeat: int = 0
    """The number of the independent run, from 0, that its requests are for."""

    @property
    def identity(self) -> Any:
        """A JSON value with everything that can change its proposals."""
        prompt = path_proposing.prompt_digest(joint=self.joint)
        settings = [self.candidates, self.constrained, self.seed, TEMPERATURE, prompt]
        return [dict(self.client.engine.identity), self.client.allowance.plain, *settings]

    async def propose(self, case: Case, knowledge: Knowledge) -> list[Proposal]:
        """Return the proposals, topic by topic, the greedy one first."""
        client = open_for_question(self.client, self.repeat)
        question, proposals = case.question.question, list[Proposal]()
        seeds = [None, *range(self.seed + 1, self.seed + self.candidates)]  # the first reply is greedy
        for topic in case.question.topics:
            if not knowledge.list_paths(topic):
                proposals.append(Proposal(topic, NOWHERE, reason="the graph has no path from it"))
            elif not self.joint:
                walks = (self._propose_path(client, question, topic, knowledge, seed) for seed in seeds)
                proposals += chain(*await asyncio.gather(*walks))
        if self.joint and len(proposals) < len(case.question.topics):
            request = path_proposing.joint_request(question, case.question.topics)
            proposals += chain(*await asyncio.gather(*(_propose(client, "", request, seed) for seed in seeds)))
        return proposals

    async def _propose_path(
        self, client: Client, question: str, topic: str, knowledge: Knowledge, seed: int | None
    ) -> list[Proposal]:
        """Propose one path, in several requests if the graph has too many to list; the last proposal is complete."""
        proposals = list[Proposal]()
        choices = knowledge.list_paths(topic)
        while True:
            request = path_proposing.propose_request(question, topic, choices if self.constrained else None)
            (proposal,) = await _propose(client, topic, request, seed)
            path, longest = proposal.path, len(choices[-1])
            choices = knowledge.list_paths(topic, path) if path in choices and len(path) == longest else []
            if not self.constrained or len(choices) < 2:  # only the path itself
                return [*proposals, proposal]
            proposals.append(replace(proposal, is_begun=True))


Proposer = Baseline | ModelProposer


class RepeatClient(Client):
    """A client whose requests have seeds of their own, so that no reply of another run answers them."""

    def __init__(self, client: Client, repeat: int) -> None:
        super().__init__(client.engine, allowance=client.allowance)
        self._client, self._offset = client, repeat * SEEDS_PER_RUN

    async def complete(self, request: Request) -> Completion:
        """Complete one request; raise as the client does."""
        sampling = replace(request.sampling, seed=request.sampling.seed + self._offset)
        return await self._client.complete(replace(request, sampling=sampling))


def open_for_question(client: Client, repeat: int) -> Client:
    """Return a client for one question of an independent run, which counts the tokens of a simulated engine."""
    seeded = RepeatClient(client, repeat) if repeat else client
    return CountingClient(seeded) if client.engine.simulated else seeded


async def _propose(client: Client, topic: str, request: Request, seed: int | None) -> list[Proposal]:
    """Return the proposals of a reply, the first with its text and usage; without a ``topic`` the reply is joint."""
    if seed is not None:
        request = replace(request, sampling=replace(request.sampling, temperature=TEMPERATURE, seed=seed))
    try:
        reply = await client.complete(request)
    except EngineError as error:
        return [Proposal(topic, NO_REPLY, reason=str(error))]
    first = Proposal(topic, UNREADABLE, text=reply.transcript, usage=reply.usage)
    try:
        if topic:
            candidates = [Candidate(topic, path_proposing.read_path(reply.text))]
        else:
            candidates = path_proposing.read_joint(reply.text)
    except ValueError as error:
        return [replace(first, reason=reply.flaw or str(error))]
    proposals = [replace(first, topic=candidate.topic, outcome=PATH, path=candidate.path) for candidate in candidates]
    return [proposals[0], *(replace(proposal, text="", usage=None) for proposal in proposals[1:])]


def make_proposers(
    options: Options, cases: Sequence[Case], train: PathsSet | None, clients: Mapping[str, Client]
) -> dict[str, Proposer]:
    """Make the proposers of ``--paths`` by the names of their runs, of the second independent run as ``NAME #2``.

    Raises ``UserError`` for two with one name.
    """
    specs = map(split_name, options.paths)
    proposers = [(name, spec, _make_proposer(spec, options, cases, train, clients)) for name, spec in specs]
    check_names((name or proposer.name, spec) for name, spec, proposer in proposers)
    first = {name or proposer.name: proposer for name, _, proposer in proposers}
    further = ((n, name) for n in range(1, options.repeats) for name in first)
    return {**first, **{f"{name} #{n + 1}": replace(first[name], repeat=n) for n, name in further}}


def _make_proposer(
    spec: str, options: Options, cases: Sequence[Case], train: PathsSet | None, clients: Mapping[str, Client]
) -> Proposer:
    limit, constrained = options.candidates_per_topic, not options.free
    if spec not in BASELINES:
        client = clients[spec]
        return ModelProposer(client.name, client, limit, constrained, options.seed, options.joint)
    if spec == NO_GRAPH:
        return Baseline(NO_GRAPH, [NO_GRAPH, prompts.load(path_recall.PROMPT).digest], lambda *_: (), 0)
    if spec == "oracle":
        if not any(case.gold_paths for case in cases):
            raise UserError("--paths oracle: no gold path of any question is known")
        return make_oracle()
    labelled = [(case.question, case.template, tuple(chain(*case.gold_paths.values()))) for case in cases]
    own_examples = (PathExample(q.question, template, q.hops, paths) for q, template, paths in labelled if paths)
    examples = train.examples(options.labels) if train else merge_examples(own_examples)
    if not examples:
        raise UserError(f"--paths {spec}: no question to learn from has a {options.labels} path")
    return (make_majority if spec == "majority" else make_nearest)(examples, limit, constrained)


async def answer_case(
    case: Case, knowledge: Knowledge, proposer: Proposer, clients: Mapping[str, Client], options: PathOptions
) -> Trajectory:
    """Answer one question by the loop; without ``clients``, by the first path that leads to entities.

    The proposals are the first attempts, each with its usage. A request that fails for good, of a proposal or of the
    loop, ends the question with the stop reason ``failed``; earlier usage is kept.
    """
    players = {role: open_for_question(client, proposer.repeat) for role, client in clients.items()}
    if proposer.name == NO_GRAPH:
        return await path_recall.answer_alone(case.question, players[GENERATOR])
    method = deliberation.NAME if clients else FIRST_PATH
    nowhere = Proposal("", NOWHERE, reason="the question has no topic entity to start from")
    proposals = await proposer.propose(case, knowledge) if case.question.topics else [nowhere]
    attempts = tuple(_record_attempt(number, proposal, knowledge) for number, proposal in enumerate(proposals, 1))
    if failures := [proposal.reason for proposal in proposals if proposal.outcome == NO_REPLY]:
        return Trajectory(case.question.id, method, (), attempts, "", FAILED, failures[0])
    finished = (proposal for proposal in proposals if proposal.outcome == PATH and not proposal.is_begun)
    pool = [*dict.fromkeys(Candidate(proposal.topic, proposal.path) for proposal in finished)]
    if clients:
        trajectory = await deliberate(case.question, pool, knowledge, players, options)
    else:
        trajectory = _follow_first(case.question.id, pool, knowledge)
    return replace(trajectory, attempts=(*attempts, *trajectory.attempts))


def _follow_first(question: str, pool: Sequence[Candidate], knowledge: Knowledge) -> Trajectory:
    for candidate in pool:
        if answers := [*knowledge.rank_ends(candidate)]:
            read = {"topic": candidate.topic, "path": list(candidate.path), "answers": answers}
            attempt = Attempt(1, "", None, True, state=FOLLOW, read=read)
            return Trajectory(question, FIRST_PATH, (), (attempt,), answers[0], ANSWERED)
    return Trajectory(question, FIRST_PATH, (), (), "", deliberation.NO_PATHS)


def _record_attempt(number: int, proposal: Proposal, knowledge: Knowledge) -> Attempt:
    is_executable = proposal.outcome == PATH and bool(knowledge.rank_ends(Candidate(proposal.topic, proposal.path)))
    reason = {"reason": proposal.reason} if proposal.reason else {}
    path = {"topic": proposal.topic, "said": proposal.outcome, "path": list(proposal.path)}
    read = {**path, **reason, "executable": is_executable}
    usage = {} if proposal.usage is None else {PROPOSER: proposal.usage}
    state = EXTEND if proposal.is_begun else PROPOSE
    return Attempt(number, proposal.text, None, is_executable, usage, state=state, read=read)
