"""Who proposes relation paths: those that ask nobody, and an engine with an adapter.

- ``oracle``: the gold paths.
- ``majority``: the most frequent paths of the labelled questions of as many hops.
- ``nearest``: the paths of the labelled questions whose words around the topic are nearest (the
  cosine of TF-IDF weights of words; of those as near the more frequent one).

The last two leave the question itself out of what they learn from, and are held to the paths of the
graph where an engine is. An engine is asked for each
topic entity once greedily, and then for further paths drawn at a seed each.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

from evaluators.deliberation.asked import Asked
from evaluators.deliberation.labelled import Example
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.counting import Counted
from safe_stepwise.methods.deliberation import Knowledge
from safe_stepwise.methods.path_proposing import prompt_digest, propose_request, read_path
from safe_stepwise.records import RelationPath, Usage, identity

PROPOSER = "proposer"
"""The role whose calls Table 5 of the paper leaves out."""
BASELINES = ("oracle", "majority", "nearest")
PATH, UNREADABLE, NOWHERE, LOST = "path", "unreadable", "nowhere", "failed"
"""What came of a proposal: a path, a reply without one, a topic that no path leads from, or a
request that failed for good."""
TEMPERATURE = 1.0
"""Of the paths that are drawn: as likely as the model holds them to be."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One path that was proposed from a topic entity, or why there is none."""

    topic: str
    said: str
    path: RelationPath = ()
    text: str = ""
    reason: str = ""
    usage: Usage | None = None


class Proposer(Protocol):
    """Who names paths for a question."""

    @property
    def name(self) -> str:
        """What may be published."""

    @property
    def identity(self) -> Any:
        """A JSON value with all that can change what it proposes."""

    @property
    def client(self) -> Client | None:
        """Whoever is asked, if anyone is."""

    async def propose(self, asked: Asked, knowledge: Knowledge) -> list[Proposal]:
        """The proposals, topic by topic, the best first."""


Ranking = Callable[[Asked, str], Iterable[RelationPath]]


@dataclass(frozen=True, slots=True)
class Baseline:
    """Who asks nobody."""

    name: str
    identity: Any
    rank: Ranking
    """From a question and its topic entity to paths, the best first."""
    most: int | None
    constrained: bool = False
    """Whether it names only paths that the graph has, as an engine does that is held to them."""
    client: Client | None = None

    async def propose(self, asked: Asked, knowledge: Knowledge) -> list[Proposal]:
        """See `Proposer`."""
        found = []
        for topic in asked.question.topics:
            ranked: Iterable[RelationPath] = dict.fromkeys(self.rank(asked, topic))
            if self.constrained:
                there = frozenset(knowledge.executable(topic))
                ranked = (path for path in ranked if path in there)
            found += [Proposal(topic, PATH, path) for path in islice(ranked, self.most)]
        return found


def oracle() -> Baseline:
    """Who knows the gold paths, however many."""
    return Baseline("oracle", ["oracle"], lambda asked, topic: asked.gold.get(topic, ()), None)


def majority(examples: Sequence[Example], most: int, constrained: bool = False) -> Baseline:
    """Who names what is asked most often, of questions of as many hops."""
    counts: dict[int, Counter[RelationPath]] = defaultdict(Counter)
    for example in examples:
        counts[example.hops].update(example.paths)
    own = {example.question: example for example in examples}

    def rank(asked: Asked, topic: str) -> list[RelationPath]:
        del topic
        return _frequent(counts[asked.question.hops], own.get(asked.question.question))

    about: list[Any] = ["majority", _digest(examples), most, constrained]
    return Baseline("majority", about, rank, most, constrained)


def nearest(examples: Sequence[Example], most: int, constrained: bool = False) -> Baseline:
    """Who names the paths of the questions whose masked words are nearest."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts: dict[str, Counter[RelationPath]] = defaultdict(Counter)
    sizes = Counter(example.template for example in examples)
    for example in examples:
        counts[example.template].update(example.paths)
    own = {example.question: example for example in examples}
    templates = sorted(counts)
    words = TfidfVectorizer(token_pattern=r"\S+", lowercase=False)
    known = words.fit_transform(templates)
    orders: dict[str, list[str]] = {}

    def order(template: str) -> list[str]:
        if template not in orders:
            near = (known @ words.transform([template]).T).toarray().ravel().round(9)
            by = sorted(range(len(templates)), key=lambda n: (-near[n], -sizes[templates[n]], n))
            orders[template] = [templates[n] for n in by]
        return orders[template]

    def rank(asked: Asked, topic: str) -> Iterator[RelationPath]:
        del topic
        same = own.get(asked.question.question)
        for template in order(asked.template):
            mine = same if same is not None and same.template == template else None
            yield from _frequent(counts[template], mine)

    about: list[Any] = ["nearest", _digest(examples), most, constrained]
    return Baseline("nearest", about, rank, most, constrained)


def _frequent(counts: Counter[RelationPath], own: Example | None) -> list[RelationPath]:
    """Paths by frequency, then by name; ``own`` is left out of the count."""
    left = counts - Counter(own.paths) if own is not None else counts
    return sorted(left, key=lambda path: (-left[path], path))


def _digest(examples: Sequence[Example]) -> str:
    return identity(examples)


@dataclass(frozen=True, slots=True)
class Engine:
    """A model, with its adapter most often; ``constrained`` to the paths that the graph has."""

    name: str
    client: Client
    candidates: int
    constrained: bool
    seed: int

    @property
    def identity(self) -> Any:
        """See `Proposer`."""
        how = [self.candidates, self.constrained, self.seed, TEMPERATURE, prompt_digest()]
        return [dict(self.client.engine.identity), self.client.allowance.plain, *how]

    async def propose(self, asked: Asked, knowledge: Knowledge) -> list[Proposal]:
        """See `Proposer`."""
        simulated = self.client.engine.simulated
        client: Client = Counted(self.client) if simulated else self.client
        found = []
        for topic in asked.question.topics:
            paths = knowledge.executable(topic)
            if not paths:
                found.append(Proposal(topic, NOWHERE, reason="the graph has no path from it"))
                continue
            requests = self._requests(asked.question.question, topic, paths)
            found += await asyncio.gather(*(_proposal(client, topic, one) for one in requests))
        return found

    def _requests(self, question: str, topic: str, paths: Sequence[RelationPath]) -> list[Request]:
        greedy = propose_request(question, topic, paths if self.constrained else None)
        drawn = replace(greedy.sampling, temperature=TEMPERATURE)
        seeds = range(self.seed + 1, self.seed + self.candidates)
        return [greedy, *(replace(greedy, sampling=replace(drawn, seed=seed)) for seed in seeds)]


async def _proposal(client: Client, topic: str, request: Request) -> Proposal:
    try:
        reply = await client.ask(request)
    except EngineError as error:
        return Proposal(topic, LOST, reason=str(error))
    try:
        path, said, reason = read_path(reply.text), PATH, ""
    except ValueError as error:
        path, said, reason = (), UNREADABLE, str(error)
    return Proposal(topic, said, path, reply.text, reason, reply.usage)


def plain(proposal: Proposal) -> Mapping[str, Any]:
    """What a trajectory keeps of a proposal beside its text and tokens."""
    told = {"topic": proposal.topic, "said": proposal.said, "path": list(proposal.path)}
    return {**told, **({"reason": proposal.reason} if proposal.reason else {})}
