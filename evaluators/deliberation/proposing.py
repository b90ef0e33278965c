"""Proposers of relation paths (baselines, and engines with an adapter), and the answers from their paths.

- ``oracle``: the gold paths.
- ``majority``: the most frequent paths of the labelled questions of as many hops.
- ``nearest``: the paths of the labelled questions whose words around the topic are nearest (the
  cosine of TF-IDF weights of words; of those as near the more frequent one).

The last two exclude the question itself from what they learn, and are constrained to the graph's paths where an
engine is. An engine proposes one path per topic entity greedily, and further paths sampled at a seed each; or,
jointly, all paths of a question in each reply. Constrained to the graph, it chooses among the paths that there are. If
these are too many to list, it goes on from the path that it has chosen so far, by as many hops as can be listed: a
token has the probability that it has among all paths, most of which are never listed.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import Any

from evaluators.deliberation import EXTEND, FIRST_PATH, FOLLOW, PROPOSE
from evaluators.deliberation.options import BASELINES, Options, check_names, split_name
from evaluators.deliberation.questions import GraphQuestion, PathExample, PathsSet, merge_examples
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import CountingClient
from safe_stepwise.errors import UserError
from safe_stepwise.methods import deliberation, path_proposing
from safe_stepwise.methods.deliberation import Knowledge, PathOptions, deliberate
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Candidate, RelationPath, Trajectory, Usage, identity

PROPOSER = "proposer"
"""The role whose calls Table 5 of the paper leaves out."""
PATH, UNREADABLE, NOWHERE, FAILED_CALL = "path", "unreadable", "nowhere", "failed"
"""Outcomes of a proposal: a path, a reply without one, a topic that no path leads from, or a
request that failed for good."""
TEMPERATURE = 1.0
"""The temperature of sampled paths: the model's own distribution."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposed path from a topic entity, or the reason why there is none."""

    topic: str
    outcome: str
    path: RelationPath = ()
    text: str = ""
    reason: str = ""
    usage: Usage | None = None
    is_begun: bool = False
    """Whether the path's first hops are chosen, and further ones are still to be."""


Ranking = Callable[[GraphQuestion, str], Iterable[RelationPath]]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A proposer that makes no requests."""

    name: str
    """The name, which may be published."""
    identity: Any
    """A JSON value with all that can change what it proposes."""
    rank: Ranking
    """From a question and its topic entity to paths, the best first."""
    limit: int | None
    constrained: bool = False
    """Whether it proposes only paths that the graph has, like a constrained engine."""
    client: Client | None = None

    async def propose(self, case: GraphQuestion, knowledge: Knowledge) -> list[Proposal]:
        """Return the proposals, topic by topic, the best first."""
        proposals = []
        for topic in case.question.topics:
            ranked: Iterable[RelationPath] = dict.fromkeys(self.rank(case, topic))
            if self.constrained:
                in_reach = (path for path in ranked if len(path) <= knowledge.hops)
                ranked = (path for path in in_reach if knowledge.rank_ends(Candidate(topic, path)))
            proposals += [Proposal(topic, PATH, path) for path in islice(ranked, self.limit)]
        return proposals


def make_oracle() -> Baseline:
    """Return the proposer of the gold paths, however many."""
    return Baseline("oracle", ["oracle"], lambda case, topic: case.gold.get(topic, ()), None)


def make_majority(examples: Sequence[PathExample], limit: int, constrained: bool = False) -> Baseline:
    """Return the proposer of the most frequent paths of questions with as many hops."""
    counts: dict[int, Counter[RelationPath]] = defaultdict(Counter)
    for example in examples:
        counts[example.hops].update(example.paths)
    by_question = {example.question: example for example in examples}

    def rank(case: GraphQuestion, _: str) -> list[RelationPath]:
        return _frequent(counts[case.question.hops], by_question.get(case.question.question))

    return Baseline("majority", ["majority", identity(examples), limit, constrained], rank, limit, constrained)


def make_nearest(examples: Sequence[PathExample], limit: int, constrained: bool = False) -> Baseline:
    """Return the proposer of the paths of the questions whose masked words are nearest."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts: dict[str, Counter[RelationPath]] = defaultdict(Counter)
    sizes = Counter(example.template for example in examples)
    for example in examples:
        counts[example.template].update(example.paths)
    by_question = {example.question: example for example in examples}
    templates = sorted(counts)
    words = TfidfVectorizer(token_pattern=r"\S+", lowercase=False)
    vectors = words.fit_transform(templates)

    @cache
    def order(template: str) -> list[str]:
        similarity = (vectors @ words.transform([template]).T).toarray().ravel().round(9)
        places = sorted(range(len(templates)), key=lambda n: (-similarity[n], -sizes[templates[n]], n))
        return [templates[n] for n in places]

    def rank(case: GraphQuestion, _: str) -> Iterator[RelationPath]:
        example = by_question.get(case.question.question)
        for template in order(case.template):
            excluded = example if example is not None and example.template == template else None
            yield from _frequent(counts[template], excluded)

    return Baseline("nearest", ["nearest", identity(examples), limit, constrained], rank, limit, constrained)


def _frequent(counts: Counter[RelationPath], excluded: PathExample | None) -> list[RelationPath]:
    """Sort paths by frequency, then by name; the paths of ``excluded`` do not count."""
    remaining = counts - Counter(excluded.paths) if excluded is not None else counts
    return sorted(remaining, key=lambda path: (-remaining[path], path))


@dataclass(frozen=True, slots=True)
class ModelProposer:
    """A model, usually with an adapter; ``constrained`` to the paths that the graph has, or ``joint``."""

    name: str
    client: Client
    candidates: int
    constrained: bool
    seed: int
    joint: bool = False

    @property
    def identity(self) -> Any:
        """A JSON value with all that can change what it proposes."""
        prompt = path_proposing.prompt_digest(joint=self.joint)
        settings = [self.candidates, self.constrained, self.seed, TEMPERATURE, prompt]
        return [dict(self.client.engine.identity), self.client.allowance.plain, *settings]

    async def propose(self, case: GraphQuestion, knowledge: Knowledge) -> list[Proposal]:
        """Return the proposals, topic by topic, the greedy one first."""
        client: Client = CountingClient(self.client) if self.client.engine.simulated else self.client
        words, proposals = case.question.question, list[Proposal]()
        seeds = [None, *range(self.seed + 1, self.seed + self.candidates)]  # the first reply is greedy
        for topic in case.question.topics:
            if not knowledge.list_paths(topic):
                proposals.append(Proposal(topic, NOWHERE, reason="the graph has no path from it"))
            elif not self.joint:
                walks = (self._walk(client, words, topic, knowledge, seed) for seed in seeds)
                proposals += chain(*await asyncio.gather(*walks))
        if self.joint and len(proposals) < len(case.question.topics):
            request = path_proposing.joint_request(words, case.question.topics)
            proposals += chain(*await asyncio.gather(*(_propose(client, "", request, seed) for seed in seeds)))
        return proposals

    async def _walk(
        self, client: Client, words: str, topic: str, knowledge: Knowledge, seed: int | None
    ) -> list[Proposal]:
        """Propose one path, hop by hop if the graph has too many to choose from; earlier replies go first."""
        proposals = list[Proposal]()
        choices = knowledge.list_paths(topic)
        while True:
            request = path_proposing.propose_request(words, topic, choices if self.constrained else None)
            (proposal,) = await _propose(client, topic, request, seed)
            path, longest = proposal.path, len(choices[-1])
            choices = knowledge.list_paths(topic, path) if path in choices and len(path) == longest else []
            if not self.constrained or len(choices) < 2:  # the path itself alone
                return [*proposals, proposal]
            proposals.append(replace(proposal, is_begun=True))


Proposer = Baseline | ModelProposer
"""What proposes paths for a question."""


async def _propose(client: Client, topic: str, request: Request, seed: int | None) -> list[Proposal]:
    """Return what a reply proposes, at first its text and usage; without a ``topic`` it is a joint reply."""
    if seed is not None:
        request = replace(request, sampling=replace(request.sampling, temperature=TEMPERATURE, seed=seed))
    try:
        reply = await client.complete(request)
    except EngineError as error:
        return [Proposal(topic, FAILED_CALL, reason=str(error))]
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
    options: Options, cases: Sequence[GraphQuestion], train: PathsSet | None, clients: Mapping[str, Client]
) -> dict[str, Proposer]:
    """Make the proposers of ``--paths`` by the run's name; raise ``UserError`` for two with one name."""
    specs = map(split_name, options.paths)
    pairs = [(name, spec, _proposer(spec, options, cases, train, clients)) for name, spec in specs]
    check_names((name or proposer.name, spec) for name, spec, proposer in pairs)
    return {name or proposer.name: proposer for name, _, proposer in pairs}


def _proposer(
    spec: str, options: Options, cases: Sequence[GraphQuestion], train: PathsSet | None, clients: Mapping[str, Client]
) -> Proposer:
    limit, constrained = options.candidates_per_topic, not options.free
    if spec not in BASELINES:
        client = clients[spec]
        return ModelProposer(client.name, client, limit, constrained, options.seed, options.joint)
    if spec == "oracle":
        if not any(case.gold for case in cases):
            raise UserError("--paths oracle: no gold path of any question is known")
        return make_oracle()
    labelled = [(case.question, case.template, tuple(chain(*case.gold.values()))) for case in cases]
    of_cases = (PathExample(q.question, template, q.hops, paths) for q, template, paths in labelled if paths)
    examples = train.examples(options.labels) if train else merge_examples(of_cases)
    if not examples:
        raise UserError(f"--paths {spec}: no question to learn from has a {options.labels} path")
    return (make_majority if spec == "majority" else make_nearest)(examples, limit, constrained)


async def answer_case(
    case: GraphQuestion, knowledge: Knowledge, proposer: Proposer, clients: Mapping[str, Client], options: PathOptions
) -> Trajectory:
    """Answer one question, by the loop or, without ``clients``, by the first path that leads somewhere.

    The proposals stand first among the attempts, each with its usage. A request that fails for good,
    a proposal's too, ends the question with the stop reason ``failed``; earlier usage is kept.
    """
    method = deliberation.NAME if clients else FIRST_PATH
    nowhere = Proposal("", NOWHERE, reason="the question has no topic entity to start from")
    proposals = await proposer.propose(case, knowledge) if case.question.topics else [nowhere]
    attempts = tuple(_attempt(number, proposal, knowledge) for number, proposal in enumerate(proposals, 1))
    if failures := [proposal.reason for proposal in proposals if proposal.outcome == FAILED_CALL]:
        return Trajectory(case.question.id, method, (), attempts, "", FAILED, failures[0])
    finished = (proposal for proposal in proposals if proposal.outcome == PATH and not proposal.is_begun)
    pool = [*dict.fromkeys(Candidate(proposal.topic, proposal.path) for proposal in finished)]
    if clients:
        simulated = any(client.engine.simulated for client in clients.values())
        players = {role: CountingClient(client) if simulated else client for role, client in clients.items()}
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


def _attempt(number: int, proposal: Proposal, knowledge: Knowledge) -> Attempt:
    leads = proposal.outcome == PATH and bool(knowledge.rank_ends(Candidate(proposal.topic, proposal.path)))
    reason = {"reason": proposal.reason} if proposal.reason else {}
    path = {"topic": proposal.topic, "said": proposal.outcome, "path": list(proposal.path)}
    read = {**path, **reason, "executable": leads}
    usage = {} if proposal.usage is None else {PROPOSER: proposal.usage}
    state = EXTEND if proposal.is_begun else PROPOSE
    return Attempt(number, proposal.text, None, leads, usage, state=state, read=read)
