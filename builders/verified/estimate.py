"""What a teacher run will cost at most, told from the rows: calls, tokens and, by price, money."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from builders.verified.teachers.llm import (
    LLMTeachers,
    extraction_request,
    gleaning_request,
    path_request,
    resolution_request,
)
from builders.verified.verification import GLEANING_ROUNDS
from safe_stepwise.engines.base import Request, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Passage, Question

CHARACTERS_PER_TOKEN = 4
"""English prose in the vocabularies of today's models."""
REPLY_TOKENS = {"glean": 60, "resolve": 60, "path": 100}
"""Assumed replies; an extraction's is twice as long as its passage."""
_NAMES_PER_PASSAGE, _NAME = 12, "A Name of Length"


@dataclass(slots=True)
class Work:
    """One role's share: calls if every question asked for itself, calls to make, their tokens."""

    naive: int = 0
    calls: int = 0
    stored: int = 0
    """Replies that the cache holds already."""
    prompt: int = 0
    completion: int = 0

    def cost(self, prompt_price: float, completion_price: float) -> float:
        """Money at prices per million tokens."""
        return (self.prompt * prompt_price + self.completion * completion_price) / 1e6


def estimate(questions: Iterable[Question], teachers: LLMTeachers) -> dict[str, Work]:
    """Work by role, in the order of the stages, with all gleaning rounds: an upper bound on calls.

    Nothing is asked; the cache is only looked into.
    """
    work = {role: Work() for role in ("extract", "glean", "resolve", "path")}
    seen: set[str] = set()
    for question in questions:
        said = [_reply(passage) for _, passage in question.gold]
        for number, passage in question.gold:
            work["extract"].naive += 1
            work["glean"].naive += GLEANING_ROUNDS
            key = request_key(teachers.client.engine, extraction_request(question, number))
            if key not in seen:
                seen.add(key)
                _read(question, number, _reply(passage), teachers.client, key, work)
        names = [_NAME] * (_NAMES_PER_PASSAGE * len(said))
        _add(work["resolve"], resolution_request(question, names), REPLY_TOKENS["resolve"])
        path = path_request(question, KnowledgeGraph())
        _add(work["path"], path, REPLY_TOKENS["path"], sum(said))
        for role in ("resolve", "path"):
            work[role].naive += 1
    return work


def _read(
    question: Question, number: int, said: int, client: Client, key: str, work: dict[str, Work]
) -> None:
    """Extraction and gleaning of a passage that no earlier question had."""
    if client.cache is not None and client.cache.get(key):
        work["extract"].stored += 1
    else:
        _add(work["extract"], extraction_request(question, number), said)
    for round_ in range(GLEANING_ROUNDS):
        more = said + round_ * REPLY_TOKENS["glean"]
        _add(work["glean"], gleaning_request(question, number, ()), REPLY_TOKENS["glean"], more)


def _add(work: Work, request: Request, completion: int, more_prompt: int = 0) -> None:
    characters = sum(len(message.content) for message in request.messages)
    work.calls += 1
    work.prompt += characters // CHARACTERS_PER_TOKEN + more_prompt
    work.completion += completion


def _reply(passage: Passage) -> int:
    """Tokens in which a passage's triples are told: twice those of the passage."""
    return 2 * len(passage.text) // CHARACTERS_PER_TOKEN
