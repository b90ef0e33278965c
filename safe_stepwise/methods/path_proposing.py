"""Render the request for a relation path, for training rows as for the loop, and parse its reply.

A request asks for one path from one topic entity (Deliberation on Priors, section 3.2), so that replies can be
sampled, ranked and constrained to the graph's paths. The *joint* request asks for all paths from all topic entities
(appendix B.2.1 and the authors' code).
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from safe_stepwise import prompts
from safe_stepwise.engines.base import Request
from safe_stepwise.methods.path_deliberating import plain_path
from safe_stepwise.records import Candidate, RelationPath
from safe_stepwise.store.boundary import parse_json, read

PROMPTS = _PROMPT, _JOINT = "deliberation/propose", "deliberation/propose_joint"
TOPIC = "[topic]"
"""The replacement of a topic entity in a masked question."""


def propose_request(question: str, topic: str, paths: Sequence[RelationPath] | None = None) -> Request:
    """Render the greedy request for a path from ``topic``; choices and schema constrain it to ``paths``, if given.

    >>> request = propose_request("who directed [Dune Rain]", "Dune Rain", [("directed_by",)])
    >>> print(request.messages[1].content)
    Question: "who directed [Dune Rain]"
    Topic: "Dune Rain"
    >>> json.loads(request.schema.text)["properties"]
    {'path': {'enum': [['directed_by']]}}
    >>> request.choices
    ('{"path": ["directed_by"]}',)
    """
    prompt = prompts.load(_PROMPT)
    request = prompt.request(prompt.messages(question=question, topic=topic))
    if paths is None:
        return request
    schema = prompt.schema.with_properties(path={"enum": [list(path) for path in paths]})
    return replace(request, schema=schema, choices=tuple(map(completion_of, paths)))


def joint_request(question: str, topics: Sequence[str]) -> Request:
    """Render the greedy request for all paths from all topic entities of a question."""
    prompt = prompts.load(_JOINT)
    return prompt.request(prompt.messages(question=question, topics=topics))


def joint_completion(candidates: Iterable[Candidate]) -> str:
    """Render the reply that names all paths, each with its topic entity.

    >>> joint_completion([Candidate("Oru", ("by",))])
    '{"paths": [{"topic": "Oru", "path": ["by"]}]}'
    """
    return json.dumps({"paths": [*map(plain_path, candidates)]}, ensure_ascii=False)


def read_joint(text: str) -> list[Candidate]:
    """Parse the paths in a joint reply; raise ``ValueError`` if there are none, or if one is empty."""
    candidates = read(dict[str, list[Candidate]], parse_json(text.strip()), "the reply").get("paths", [])
    if not candidates or not all(candidate.path for candidate in candidates):
        raise ValueError('no {"paths": [{"topic": ..., "path": [relation, ...]}, ...]}')
    return candidates


def completion_of(path: RelationPath) -> str:
    """Render the reply that names a path.

    >>> completion_of(("~directed_by", "has_genre"))
    '{"path": ["~directed_by", "has_genre"]}'
    """
    return json.dumps({"path": list(path)}, ensure_ascii=False)


def read_path(text: str) -> RelationPath:
    """Parse the path in a reply; raise ``ValueError`` if there is none."""
    reply = parse_json(text.strip())
    path = reply.get("path") if isinstance(reply, dict) else None
    if not isinstance(path, list) or not path or not all(isinstance(relation, str) for relation in path):
        raise ValueError('no {"path": [relation, ...]}')
    return tuple(path)


def prompt_digest(*, joint: bool = False) -> str:
    """Return the SHA-256 (64 hex digits) of the constant text of a request, or of a ``joint`` one."""
    return prompts.load(_JOINT if joint else _PROMPT).digest


def masked(question: str, topics: Sequence[str]) -> str:
    """Replace a question's topics by ``[topic]``, so that all questions of a template become equal.

    If the benchmark marks a topic by brackets, as MetaQA does, only the marked one is replaced.

    >>> masked("what did ana vorr write?", ["Ana Vorr"])
    'what did [topic] write?'
    """
    for topic in sorted(topics, key=len, reverse=True):
        if f"[{topic}]" in question:
            question = question.replace(f"[{topic}]", TOPIC)
        else:
            word = rf"(?<!\w){re.escape(topic)}(?!\w)"
            question = re.sub(word, lambda _: TOPIC, question, flags=re.IGNORECASE)
    return question
