"""What a teacher run will cost at most, told from the rows: calls, tokens and, by price, money."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from builders.verified.collect import Build, questions
from builders.verified.teachers.llm import (
    LLMTeachers,
    extraction_request,
    gleaning_request,
    path_request,
    resolution_request,
)
from builders.verified.verification import GLEANING_ROUNDS
from builders.work.publishing import summary
from safe_stepwise.engines.base import Allowance, Request, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Passage, Question, Triple

CHARACTERS_PER_TOKEN = 4
"""English prose in the vocabularies of today's models."""
REPLY_TOKENS = {"glean": 60, "resolve": 60, "path": 100}
"""Assumed replies; an extraction's is twice as long as its passage. A role that was given a limit
or an effort of its own is counted at its limit, all of which a model that thinks may use."""
_NAMES_PER_PASSAGE, _NAME = 12, "A Name of Length"
_FACTS = [Triple(_NAME, "a relation", _NAME, 1)] * 2
"""With a name: as each fact has two ends, and there are about as many facts as names."""


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


def estimate(asked: Iterable[Question], teachers: LLMTeachers) -> dict[str, Work]:
    """Work by role, in the order of the stages, with all gleaning rounds: an upper bound on calls.

    Nothing is asked; the cache is only looked into.
    """
    work = {role: Work() for role in ("extract", "glean", "resolve", "path")}
    seen: set[str] = set()
    for question in asked:
        said = [_reply(passage) for _, passage in question.gold]
        for number, passage in question.gold:
            work["extract"].naive += 1
            work["glean"].naive += GLEANING_ROUNDS
            read = extraction_request(question, number)
            key = request_key(teachers.client.engine, read)
            if key not in seen:
                seen.add(key)
                _read(question, number, _reply(passage), teachers.client, work)
        names = [_NAME] * (_NAMES_PER_PASSAGE * len(said))
        allowance, resolve = teachers.allowance, resolution_request(question, names, _FACTS)
        _add(work, resolve, allowance, REPLY_TOKENS["resolve"])
        path = path_request(question, KnowledgeGraph())
        _add(work, path, allowance, REPLY_TOKENS["path"], sum(said))
        for role in ("resolve", "path"):
            work[role].naive += 1
    return work


def at_hand(plan: Build) -> bool:
    """Whether the rows of a build can be counted without the Hub."""
    return plan.benchmark == "synthetic" or Path(plan.source).exists()


def told(plan: Build, price_prompt: float | None, price_completion: float | None) -> str:
    """A table of the calls and tokens that a build would take at most.

    Prices are those of a million tokens; raises ``UserError`` for one without the other.
    """
    if not isinstance(plan.teacher, LLMTeachers):
        return f"the {plan.teacher.name} teacher asks no model: nothing to pay"
    if (price_prompt is None) != (price_completion is None):
        raise UserError("--price-prompt and --price-completion go together: give both, or neither")
    work, allowance, cost = estimate(questions(plan), plan.teacher), plan.teacher.allowance, None
    rows = [(role, w.naive, w.stored, w.calls, w.prompt, w.completion) for role, w in work.items()]
    header = ("at most", "naive calls", "in the cache", "calls", "prompt tokens", "reply tokens")
    naive, stored, calls, *tokens = (sum(column) for column in zip(*(row[1:] for row in rows), strict=True))
    if price_prompt is not None and price_completion is not None:
        cost = sum(w.cost(price_prompt, price_completion) for w in work.values())
    return summary(
        Path(__file__).parent / "templates",
        "estimate.txt",
        rows=[header, *rows, ("total", naive, stored, calls, *tokens)],
        saved=1 - (stored + calls) / naive if naive else 0.0,
        is_limited=bool(allowance.max_tokens or allowance.effort),
        cost=cost,
    )


def _read(question: Question, number: int, said: int, client: Client, work: dict[str, Work]) -> None:
    """Extraction and gleaning of a passage that no earlier question had."""
    read = extraction_request(question, number)
    if client.stored(read) is not None:
        work["extract"].stored += 1
    else:
        _add(work, read, client.allowance, said)
    for round_ in range(GLEANING_ROUNDS):
        more = said + round_ * REPLY_TOKENS["glean"]
        glean = gleaning_request(question, number, ())
        _add(work, glean, client.allowance, REPLY_TOKENS["glean"], more)


def _add(work: dict[str, Work], request: Request, allowance: Allowance, completion: int, more_prompt: int = 0) -> None:
    sent, share = allowance.applied(request), work[request.role]
    characters = sum(len(message.content) for message in sent.messages)
    share.calls += 1
    share.prompt += characters // CHARACTERS_PER_TOKEN + more_prompt
    limit = sent.sampling.max_tokens
    share.completion += limit if allowance.limits(request.role) else completion


def _reply(passage: Passage) -> int:
    """Tokens in which a passage's triples are told: twice those of the passage."""
    return 2 * len(passage.text) // CHARACTERS_PER_TOKEN
