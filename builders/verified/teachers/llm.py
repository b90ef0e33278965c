"""Verify questions with a model, stage by stage (SAFE v1, section 3.2).

The triples of a passage are extracted only from the passage, so a passage that several questions share is read once.
A triple whose ends the passage does not mention is dropped. A path is given by numbers of triples in the graph, and
`builders.verified.verification` checks it.
"""

import functools
import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

from builders.verified.teachers import Proposal, TeacherError, Teachers
from builders.verified.teachers.replies import UnreadableReply, read_groups, read_path, read_triples
from safe_stepwise import prompts
from safe_stepwise.engines import client
from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Completion, Engine, EngineError, Message, Request
from safe_stepwise.engines.client import Account, Client, ResponseCache, render_usage
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph, entity_key
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import nation_pattern
from safe_stepwise.language.text import as_date, normal_name
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Question, Triple, identity
from safe_stepwise.store.code import code_digest, modules_of
from safe_stepwise.store.event_loop import wait_for

PROMPTS = [prompts.load(f"verification/{role}") for role in ("extract", "glean", "resolve", "path")]
EXTRACT, GLEAN, RESOLVE, PATH = PROMPTS
PROMPTS_DIGEST = prompts.digest(*PROMPTS)

GLEANING_ROUNDS = 2
"""SAFE v1, section 3.2: gleaning is repeated at most twice."""
CONTEXT = 3
"""The maximum number of facts shown with a name to be resolved (SAFE v1, Figure 22)."""


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """What is known of an engine without running it."""

    name: str
    identity: dict[str, Any]
    simulated: bool


@dataclass(frozen=True)
class LLMTeachers:
    """Makes the teacher of each question, all with one client per process; ``opener`` opens ``spec``. Picklable."""

    spec: str
    cache: Path
    opener: Callable[[str], Engine]
    in_flight: int = client.IN_FLIGHT
    allowance: Allowance = AS_PROMPTED

    alone: ClassVar[Teachers | None] = None
    is_cpu_bound = False
    """False keeps the work in one process, whose client shares replies and keeps the engine busy."""

    @property
    def name(self) -> str:
        return self.name_with(PROMPTS_DIGEST)

    def name_with(self, digest: str) -> str:
        """Return the entry in the ``teacher`` column: the model and the prompts of that digest, no address."""
        return f"{self.engine.name} prompts {digest[:12]}{self.allowance.examples_suffix}"

    @property
    def identity(self) -> str:
        return identity([self.engine.identity, PROMPTS_DIGEST])

    @property
    def simulated(self) -> bool:
        return self.engine.simulated

    @functools.cached_property
    def engine(self) -> EngineDescription:
        """The engine's description, computed once, as the digest of a folder of weights takes a while."""
        engine = self.opener(self.spec)
        content = {**engine.identity, **self.allowance.plain, "code": code_digest(*modules_of([engine]))}
        return EngineDescription(f"{engine.name}{self.allowance.effort_suffix}", content, engine.simulated)

    @property
    def client(self) -> Client:
        with _LOCK:
            if self not in _CLIENTS:
                rank = os.environ.get("SLURM_ARRAY_TASK_ID")  # SQLite is not for several machines
                file = self.cache if rank is None else self.cache.with_stem(f"{self.cache.stem}-{rank}")
                engine, cache = self.opener(self.spec), ResponseCache(file)
                _CLIENTS[self] = Client(engine, cache, self.in_flight, client.TRIES, self.allowance)
            return _CLIENTS[self]

    def __call__(self) -> "LLMTeacher":
        return LLMTeacher(self.client, self.name)

    def progress(self) -> str:
        """Render the paths proposed (a question's last reply), requests and tokens so far."""
        paths = self.client.accounts.get("path", Account())
        return f"paths {paths.answered + paths.hits}; {render_usage(self.client.total())}"

    def check(self) -> None:
        wait_for(client.check(self.client.engine))

    def close(self) -> None:
        with _LOCK:
            opened = _CLIENTS.pop(self, None)
        if opened is not None:
            wait_for(opened.engine.close())
            if opened.cache is not None:
                opened.cache.close()


_LOCK = threading.Lock()
_CLIENTS: dict[LLMTeachers, Client] = {}


class LLMTeacher:
    """The teacher of one question; ``replies`` counts its replies by how they could be read.

    Classes: ``read``, ``unreadable``, ``failed`` (no whole reply), each reply once; and besides
    ``triples left out`` (not in the passage, or malformed) and ``groups left out``.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self.replies: Counter[str] = Counter()
        self._client = client

    async def extract(self, question: Question, passage: int) -> tuple[Triple, ...]:
        """Extract a passage's triples, then overlooked ones, in one conversation that does not have the question."""
        triples = await self._request_triples(extraction_request(question, passage), question, passage, ())
        for _ in range(GLEANING_ROUNDS):
            new = await self._request_triples(gleaning_request(question, passage, triples), question, passage, triples)
            if not new:
                break
            triples += new
        return triples

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        """Map names of one entity to the first of their group; titles are never joined."""
        names = names_to_resolve(question, triples)
        if len(names) < 2:
            return {}
        async with self._reading(resolution_request(question, names, triples), "names") as reply:
            groups = read_groups(reply.text)
        return self._find_aliases(groups, set(names), {p.title for _, p in question.gold})

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """Propose a path by numbers of triples, or the noise that prevents one; no confidence is asked for."""
        if not question.gold:
            return Proposal((), "unparsed", "The row names no gold passage to judge it by.")
        if not graph.triples:
            reason = "No triple was found in the gold passages."
            return Proposal((), "missing_evidence", reason, confidence=None)
        request = path_request(question, graph)
        async with self._reading(request, "the path") as reply:
            path = read_path(reply.text, prompts.data_of(request))
            steps = tuple(_make_triple(step, graph) for step in path.steps)
        explanation = path.explanation or "The teacher gave no explanation."
        return Proposal(steps, path.verdict, explanation, confidence=None)

    @asynccontextmanager
    async def _reading(self, request: Request, subject: str) -> AsyncIterator[Completion]:
        """Yield the reply to a request; turn its failure or the block's `UnreadableReply` into a ``TeacherError``."""
        try:
            async with self._client.reading(request) as reply:
                yield reply
            self.replies["read"] += 1
        except EngineError as error:
            self.replies["failed"] += 1
            raise TeacherError(f"no reply ({error})") from None
        except UnreadableReply as error:
            self.replies["unreadable"] += 1
            raise TeacherError(f"its reply on {subject} can't be read: {error}") from None

    async def _request_triples(
        self, request: Request, question: Question, number: int, earlier: tuple[Triple, ...]
    ) -> tuple[Triple, ...]:
        """Ask for triples; return those new ones that the passage mentions, with their place."""
        page = question.passages[number - 1]
        async with self._reading(request, f"passage {number}") as reply:
            parsed = read_triples(reply.text)
        text = clean(f"{page.title} {page.text}")
        mentioned = [triple for triple in parsed.triples if _is_mentioned(triple, text)]
        left_out = parsed.left_out + len(parsed.triples) - len(mentioned)
        self.replies["triples left out"] += left_out
        new: dict[tuple[str, str, str], Triple] = {}
        for triple in mentioned:
            new.setdefault(_bare(triple), triple)
        for triple in earlier:
            new.pop(_bare(triple), None)
        places = range(len(page.sentences))
        return tuple(
            replace(t, passage=number, sentence=t.sentence if t.sentence in places else None) for t in new.values()
        )

    def _find_aliases(self, groups: tuple[tuple[str, ...], ...], names: set[str], titles: set[str]) -> dict[str, str]:
        aliases: dict[str, str] = {}
        for group in groups:
            members = [name for name in group if name in names]
            if len({normal_name(name) for name in members if name in titles}) > 1 or len(members) < 2:
                self.replies["groups left out"] += 1
                continue
            first = next((name for name in members if name in titles), members[0])
            aliases.update({name: first for name in members if name != first})
        return aliases


def extraction_request(question: Question, passage: int) -> Request:
    """Return the request for the triples of a passage; it depends only on the title and sentences."""
    page = question.passages[passage - 1]
    return EXTRACT.request(EXTRACT.messages(title=page.title, sentences=page.sentences), Scene(question, passage))


def gleaning_request(question: Question, passage: int, triples: tuple[Triple, ...]) -> Request:
    """Return the request for overlooked triples, which continues the conversation of the extraction."""
    listed = [{k: v for k, v in asdict(triple).items() if k != "passage" and v is not None} for triple in triples]
    reply = prompts.defuse(json.dumps({"triples": listed}, ensure_ascii=False))
    earlier = extraction_request(question, passage)
    messages = (*earlier.messages, Message("assistant", reply), Message("user", GLEAN.render_user()))
    return GLEAN.request(messages, earlier.scene)


def resolution_request(question: Question, names: Sequence[str], triples: Sequence[Triple]) -> Request:
    """Return the request to group names of one entity, each with up to `CONTEXT` facts."""
    messages = RESOLVE.messages(names=list(zip(names, in_context(names, triples), strict=True)))
    return RESOLVE.request(messages, Scene(question))


def path_request(question: Question, graph: KnowledgeGraph) -> Request:
    """Return the request for a path: the question, its answer, and the graph's triples numbered from 1."""
    groups: dict[str, list[str]] = {}
    for name, canonical in sorted(graph.aliases.items()):
        groups.setdefault(canonical, [canonical]).append(name)
    values = {"triples": graph.triples, "groups": list(groups.values())}
    return PATH.request(PATH.messages(**values, question=question.question, answer=question.answer), Scene(question))


def names_to_resolve(question: Question, triples: tuple[Triple, ...]) -> list[str]:
    """Return distinct names: titles, the answer, then the ends of triples; no dates, no numbers."""
    titles = [passage.title for _, passage in question.gold]
    ends = [name for triple in triples for name in (triple.head, triple.tail)]
    names: dict[str, str] = {}
    for name in (*titles, question.answer, *ends):
        if not as_date(name) and any(letter.isalpha() for letter in name):
            names.setdefault(entity_key(name), name)
    return list(names.values())


def in_context(names: Iterable[str], triples: Iterable[Triple]) -> list[list[Triple]]:
    """Return the first facts of each name, one from every passage before a second from any."""
    facts: defaultdict[str, defaultdict[int | None, list[Triple]]] = defaultdict(lambda: defaultdict(list))
    for triple in triples:
        for key in {entity_key(triple.head), entity_key(triple.tail)}:
            facts[key][triple.passage].append(triple)
    rounds = (zip_longest(*facts[entity_key(name)].values()) for name in names)
    return [[fact for turn in turns for fact in turn if fact is not None][:CONTEXT] for turns in rounds]


def _is_mentioned(triple: Triple, text: str) -> bool:
    """Whether a passage mentions both ends by some word, to guard against triples that a model invents."""
    ends = (triple.head, triple.tail)
    words = set(text.split())
    return all(
        as_date(end) or not words.isdisjoint(clean(end).split()) or nation_pattern(clean(end)).search(text)
        for end in ends
    )


def _bare(triple: Triple) -> tuple[str, str, str]:
    return entity_key(triple.head), normal_name(triple.relation), entity_key(triple.tail)


def _make_triple(step: int | Triple, graph: KnowledgeGraph) -> Triple:
    if isinstance(step, Triple):
        edges = graph.find(step.head, step.relation, step.tail)
        return edges[0] if edges else step
    if not 1 <= step <= len(graph.triples):
        raise UnreadableReply(f"it names triple {step} of {len(graph.triples)}")
    return graph.triples[step - 1]
