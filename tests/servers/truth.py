"""Replies of a model that knows the synthetic world: the generator's truth, in its words."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from builders.verified.teachers.adjudicating import ruling_requests
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.teachers.llm import extraction_request, names_to_resolve, path_request, resolution_request
from builders.verified.verification import build_graph
from safe_stepwise.checking.step_reading import content_words
from safe_stepwise.engines.base import Request
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import NoiseType, Question, Triple

ANNOTATIONS = AnnotationsTeacher()


class Truth:
    """Answers the verification prompts for given questions, whose noise it knows."""

    def __init__(self, rows: Iterable[tuple[Question, NoiseType]]) -> None:
        self.rows = list(rows)
        self.stated: dict[str, dict[Triple, None]] = defaultdict(dict)
        self.replies: dict[str, str] = {}
        for question, _ in self.rows:
            for number, _ in question.gold:
                asked = said(extraction_request(question, number))
                found = asyncio.run(ANNOTATIONS.extract(question, number))
                self.stated[asked].update(dict.fromkeys(map(bare, found)))
        for question, truth in self.rows:
            if question.gold:
                self._answer(question, truth)

    def __call__(self, body: Mapping[str, Any]) -> str:
        """The reply to a chat completion's request body."""
        return self.reply([m["content"] for m in body["messages"]])

    def of(self, request: Request) -> str:
        """The reply to one of our own requests."""
        return self.reply([message.content for message in request.messages])

    def reply(self, contents: list[str]) -> str:
        if len(contents) > 2:
            return '{"triples": []}'
        asked = contents[-1]
        if asked in self.stated:
            return json.dumps({"triples": [asdict(triple) for triple in self.stated[asked]]})
        return self.replies.get(key(asked), '{"groups": []}')

    def _answer(self, question: Question, truth: NoiseType) -> None:
        graph = asyncio.run(build_graph(question, ANNOTATIONS))
        proposal = asyncio.run(ANNOTATIONS.propose(question, graph))
        triples = tuple(t for n, _ in question.gold for t in self.stated[said(extraction_request(question, n))])
        groups = [[b, a] for a, b in graph.aliases.items()]
        names = names_to_resolve(question, triples)
        self.replies[key(said(resolution_request(question, names, triples)))] = json.dumps({"groups": groups})
        path = [[t.head, t.relation, t.tail] for t in proposal.path]
        self.replies[key(said(path_request(question, KnowledgeGraph())))] = json.dumps(
            {"path": path, "verdict": truth, "explanation": f"The truth is {truth}."}
        )


def said(request: Request) -> str:
    """What the user's turn of a request says."""
    return request.messages[1].content


def key(asked: str) -> str:
    """What identifies a prompt: a path's question and answer, names alone, without the facts."""
    start = asked.find("\nQuestion: ")
    names = [line for line in asked.splitlines() if line.startswith("- ")]
    return asked[start:] if start >= 0 else "\n".join(names) or asked


def bare(triple: Triple) -> Triple:
    """A triple as a model gives it: without its passage."""
    return Triple(triple.head, triple.relation, triple.tail, None, triple.sentence)


class Rulings:
    """Rules on claims as known labels say: those of a sound question are stated, those of another are not.

    At the rate ``wrong``, drawn by a digest of the claim and its passages, it says the opposite.
    """

    def __init__(self, rows: Iterable[tuple[Question, bool]], wrong: float = 0.0) -> None:
        self.stated: dict[str, bool] = {}
        self.quotes: dict[str, str] = {}
        for question, is_noise in rows:
            sentences = [sentence for _, page in question.gold for sentence in page.sentences]
            for request in asyncio.run(ruling_requests(question)):
                draw = int.from_bytes(hashlib.sha256(said(request).encode()).digest()[:4], "big") / 2**32
                self.stated[said(request)] = (not is_noise) != (draw < wrong)
                claimed = content_words(request.pair[1] if request.pair else "")
                self.quotes[said(request)] = max(sentences, key=lambda text: len(claimed & content_words(text)))

    def __call__(self, body: Mapping[str, Any]) -> str:
        """The reply to a chat completion's request body."""
        return self.reply(body["messages"][-1]["content"])

    def reply(self, asked: str) -> str:
        is_stated = self.stated[asked]
        return json.dumps({"stated": "yes" if is_stated else "no", "quote": self.quotes[asked] if is_stated else ""})
