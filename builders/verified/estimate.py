"""Estimates the highest cost of a teacher run from the rows: calls, tokens and, by price, money."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from builders.verified.collect import Build, questions
from builders.verified.teachers import llm
from builders.verified.teachers.adjudicating import ADJUDICATE, ruling_requests
from safe_stepwise.engines.base import Allowance, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Question, Triple
from safe_stepwise.store import event_loop, tables

CHARACTERS_PER_TOKEN = 4
"""Average for English prose in the vocabularies of current models."""
REPLY_TOKENS = {"glean": 60, "resolve": 60, "path": 100, "adjudicate": 40}
"""Assumed tokens of replies; an extraction is twice as long as its passage.

A role with a token limit or an effort is counted at its limit, as a thinking model may use all of it.
"""
_NAMES_PER_PASSAGE, _NAME = 12, "A Name of Length"
_FACTS = [Triple(_NAME, "a relation", _NAME, 1)] * 2
"""Facts beside a name: a fact has two ends, and there are about as many facts as names."""


@dataclass(slots=True)
class RoleCost:
    """The calls and tokens of one role."""

    calls: int = 0
    stored: int = 0
    """Replies that the cache already holds."""
    prompt: int = 0
    completion: int = 0

    def add(self, request: Request, allowance: Allowance, completion: int, extra_prompt: int = 0) -> None:
        """Count a call with the tokens of its prompt and of its reply."""
        sent = allowance.apply(request)
        self.calls += 1
        self.prompt += sum(len(message.content) for message in sent.messages) // CHARACTERS_PER_TOKEN + extra_prompt
        self.completion += sent.sampling.max_tokens if allowance.has_limits(request.role) else completion


def estimate(questions: Iterable[Question], teachers: llm.LLMTeachers) -> dict[str, RoleCost]:
    """Estimate the maximum of work by role, in the order of the stages, without a call; shared requests count once.

    Of teachers that rule on another's doubts these are exactly the claims to ask about, as no request depends on a
    reply.
    """
    is_ruling = teachers.alone is not None
    work = {role: RoleCost() for role in ([ADJUDICATE.role] if is_ruling else ("extract", "glean", "resolve", "path"))}
    keys, client, allowance = set[str](), teachers.client, teachers.allowance

    def count(request: Request, completion: int) -> bool:
        """Count a request that questions may share; return whether it is the first of them."""
        if (key := request_key(client.engine, request)) in keys:
            return False
        keys.add(key)
        if client.cached_reply(request) is not None:
            work[request.role].stored += 1
        else:
            work[request.role].add(request, allowance, completion)
        return True

    for question in questions:
        if is_ruling:
            for ruling in event_loop.wait_for(ruling_requests(question)):
                count(ruling, REPLY_TOKENS[ADJUDICATE.role])
            continue
        graph_tokens = 0
        for number, passage in question.gold:
            reply = 2 * len(passage.text) // CHARACTERS_PER_TOKEN  # twice the tokens of the passage
            graph_tokens += reply
            is_first = count(llm.extraction_request(question, number), reply)
            for earlier_rounds in range(llm.GLEANING_ROUNDS if is_first else 0):
                extra = reply + earlier_rounds * REPLY_TOKENS["glean"]
                work["glean"].add(llm.gleaning_request(question, number, ()), allowance, REPLY_TOKENS["glean"], extra)
        names = [_NAME] * (_NAMES_PER_PASSAGE * len(question.gold))
        work["resolve"].add(llm.resolution_request(question, names, _FACTS), allowance, REPLY_TOKENS["resolve"])
        work["path"].add(llm.path_request(question, KnowledgeGraph()), allowance, REPLY_TOKENS["path"], graph_tokens)
    return work


def is_local(plan: Build) -> bool:
    """Whether the rows of a build can be counted without the Hub."""
    return plan.benchmark == "synthetic" or Path(plan.source).exists()


def estimate_table(plan: Build, price_prompt: float | None, price_completion: float | None) -> str:
    """Render a build's maximum of calls and tokens; prices are per million; raise ``UserError`` for only one price."""
    if not isinstance(plan.teacher, llm.LLMTeachers):
        return f"the {plan.teacher.name} teacher asks no model: nothing to pay"
    if (price_prompt is None) != (price_completion is None):
        raise UserError("--price-prompt and --price-completion go together: give both, or neither")
    work, allowance, cost = estimate(questions(plan), plan.teacher), plan.teacher.allowance, None
    rows = [(role, w.stored, w.calls, w.prompt, w.completion) for role, w in work.items()]
    header = ("at most", "in the cache", "calls", "prompt tokens", "reply tokens")
    totals = (sum(column) for column in zip(*(row[1:] for row in rows), strict=True))
    if price_prompt is not None and price_completion is not None:
        cost = sum((w.prompt * price_prompt + w.completion * price_completion) / 1e6 for w in work.values())
    return tables.fill(
        Path(__file__).parent / "templates",
        "estimate.txt",
        rows=[header, *rows, ("total", *totals)],
        is_exact=plan.teacher.alone is not None,
        is_limited=bool(allowance.max_tokens or allowance.effort),
        cost=cost,
    ).rstrip()
