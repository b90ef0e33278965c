"""What is asked about relation paths, and how replies are read: constraints, choice, verdict.

Deliberation on Priors, section 3.3 and appendices B.2.2 to B.2.4.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import Request, Schema
from safe_stepwise.methods.reading import MAX_CHARACTERS, Reading, flag, list_reader, maybe_words, read, reason
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.records import COMPARISONS, CONSTRAINT_KINDS, Candidate, Constraint, KGQuestion


@dataclass(frozen=True, slots=True)
class TriedPath:
    """A path that was followed, and why it did not do."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Instantiated:
    """A path as it is shown: its first chains, and where it leads to, ``max_shown`` entities at most.

    The graph disposes: an answer is an entity that the path leads to, letter by letter, or but for its case where that
    leaves no doubt. ``verdicts``: for each constraint what the graph decided, by the entities it decided on.
    """

    candidate: Candidate
    chains: tuple[tuple[str, ...], ...]
    more_chains: bool
    ends: tuple[str, ...]
    max_shown: int
    verdicts: tuple[Mapping[str, bool], ...] = ()

    def standing(self, name: str, is_met: bool) -> list[int]:
        """The numbers of constraints, from 1, that an entity meets, or those that it fails."""
        numbered = enumerate(self.verdicts, 1)
        return [number for number, verdict in numbered if verdict.get(name) is is_met]

    def failing(self, name: str) -> bool:
        """Whether the graph says that a constraint is not met."""
        return any(verdict.get(name) is False for verdict in self.verdicts)

    @property
    def all_fail(self) -> bool:
        """Whether the graph says so of all that the path leads to."""
        return all(map(self.failing, self.ends))

    @property
    def first(self) -> tuple[str, ...]:
        """The entities that are shown: what fails goes last."""
        return tuple(sorted(self.ends, key=self.failing)[: self.max_shown])

    @property
    def entities(self) -> list[dict[str, Any]]:
        """The shown entities, each with the constraints that it meets and fails."""
        return [{"name": n, "meets": self.standing(n, True), "fails": self.standing(n, False)} for n in self.first]

    @property
    def plain(self) -> dict[str, Any]:
        """The path as a JSON value; ``cut``: how many entities are not shown."""
        return {
            **plain_path(self.candidate),
            "instances": [list(chain) for chain in self.chains],
            "more_instances": self.more_chains,
            "reached": len(self.ends),
            "cut": max(0, len(self.ends) - self.max_shown),
            "entities": self.entities,
        }


def plain_path(candidate: Candidate) -> dict[str, Any]:
    """A candidate as a JSON value."""
    return {"topic": candidate.topic, "path": list(candidate.path)}


@dataclass(frozen=True, slots=True)
class CheckedAnswers:
    """The answers that a reply names, sorted by what the graph says of them.

    ``answers`` count; ``respelled`` are those meant by another case; ``unreached`` the path does
    not lead to; ``failing`` are said by the graph to fail a constraint.
    """

    answers: tuple[str, ...]
    respelled: Mapping[str, str]
    unreached: tuple[str, ...]
    failing: tuple[str, ...]

    @property
    def plain(self) -> dict[str, Any]:
        """The answers as a JSON value; empty fields are left out."""
        exclusions = {"unreached": list(self.unreached), "failing": list(self.failing)}
        content = {"answers": list(self.answers), "respelled": dict(self.respelled), **exclusions}
        return {key: value for key, value in content.items() if value or key == "answers"}


def check_answers(names: Sequence[str], followed: Instantiated) -> CheckedAnswers:
    """Hold the answers that a reply names to what the path leads to and what the graph decided.

    Where the graph says that all it leads to fails, it rules out no answer: the path is at fault.

    >>> path = Instantiated(Candidate("It", ("by",)), (), False, ("Ana", "Edo"), 2)
    >>> check_answers(["ana", "Pell"], path)
    CheckedAnswers(answers=('Ana',), respelled={'ana': 'Ana'}, unreached=('Pell',), failing=())
    """
    folded: dict[str, list[str]] = {}
    for end in followed.ends:
        folded.setdefault(end.casefold(), []).append(end)
    ends, all_fail = set(followed.ends), followed.all_fail
    answers, unreached, failing = dict[str, None](), list[str](), list[str]()
    respelled: dict[str, str] = {}
    for name in names:
        matches = [name] if name in ends else folded.get(name.casefold(), [])
        if len(matches) != 1:
            unreached.append(name)
            continue
        if matches[0] != name:
            respelled[name] = matches[0]
        if followed.failing(matches[0]) and not all_fail:
            failing.append(matches[0])
        else:
            answers[matches[0]] = None
    return CheckedAnswers(tuple(answers), respelled, tuple(unreached), tuple(failing))


CONSTRAINTS, SELECT, VERIFY = "constraints", "select", "verify"
"""The states that ask; a prompt of that name each."""
PROMPTS = tuple(f"deliberation/{name}" for name in (CONSTRAINTS, SELECT, VERIFY))
MAX_CONSTRAINTS = 20
MAX_RELATIONS = 100
"""A graph with more of them near a question's paths is not told of."""
MAX_ANSWERS = 5_000
_NONE = {"", "none", "no path", "null"}
_NUMBERED = re.compile(r"(?:path)?\s*#?([0-9]{1,6})", re.IGNORECASE)


def ask_constraints(question: KGQuestion, relations: Sequence[str], scene: PoolScene, refused: str = "") -> Request:
    """The request for a question's constraints."""
    listed = relations if len(relations) <= MAX_RELATIONS else ()
    data = {"topics": question.topics, "relations": listed, "refused": refused}
    return _request(CONSTRAINTS, scene, question=question.question, **data)


def ask_choice(
    question: KGQuestion, pool: Sequence[Candidate], tried: Sequence[TriedPath], scene: PoolScene, refused: str = ""
) -> Request:
    """The request for the number of the path to follow, 0 for none of them."""
    tried_paths = [{**plain_path(path.candidate), "reason": path.reason} for path in tried]
    pool_paths = [plain_path(path) for path in pool]
    data = {"tried": tried_paths, "pool": pool_paths, "refused": refused}
    request = _request(SELECT, scene, question=question.question, **data)
    return _restrict_schema(request, path={"enum": [*range(len(pool) + 1)]})


def ask_verdict(
    question: KGQuestion,
    followed: Instantiated,
    constraints: Sequence[Constraint],
    scene: PoolScene,
    refused: str = "",
    *,
    induced: bool = False,
) -> Request:
    """The request for the answers and whether they suffice; ``induced``: by conditions that the
    model itself finds in the question.
    """
    pairs = zip(constraints, followed.verdicts, strict=True)
    request = _request(
        VERIFY,
        scene,
        question=question.question,
        **plain_path(followed.candidate),
        chains=followed.chains,
        more_chains=followed.more_chains,
        constraints=[{"text": c.text, "is_decided": bool(decided)} for c, decided in pairs],
        induced=induced,
        reached=len(followed.ends),
        ends=followed.entities,
        refused=refused,
    )
    return _restrict_schema(request, answer={"type": "array", "items": {"enum": list(followed.first)}})


def _request(name: str, scene: PoolScene, **data: Any) -> Request:
    prompt = prompts.load(f"deliberation/{name}")
    return Request(prompt.messages(**data), prompt.sampling, prompt.schema, prompt.role, scene)


def _restrict_schema(request: Request, **fields: Any) -> Request:
    assert request.schema is not None
    schema = json.loads(request.schema.text)
    schema["properties"] |= fields
    return replace(request, schema=Schema.from_dict(request.schema.name, schema))


def read_constraints(text: str, question: KGQuestion) -> Reading:
    """The constraints that a reply lists; of one that is salvaged those that are some.

    >>> asked = KGQuestion("q", "metaqa", "test", "who wrote [It]", ("It",), frozenset(("Ana",)))
    >>> said = '{"constraints": [{"kind": "type", "text": "It is a person."}, {"kind": "mood"}]}'
    >>> [one.text for one in constraints_in(read_constraints(said, asked).value)]
    ['It is a person.']
    """
    return read(text, {"constraints": list_reader(_constraint, MAX_CONSTRAINTS)}, [question.question])


def constraints_in(value: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """The constraints of a reading's value."""
    return tuple([Constraint(**fields) for fields in value.get("constraints", ())])


def _constraint(value: Any, salvaging: bool) -> dict[str, Any]:
    if not isinstance(value, dict) or value.get("kind") not in CONSTRAINT_KINDS:
        raise ValueError("it is of none of the kinds")
    condition = maybe_words(value.get("text"), salvaging)
    if not condition:
        raise ValueError("it says no condition")
    compared = value.get("comparison") or ""
    if compared not in ("", *COMPARISONS) and not salvaging:
        raise ValueError("there is no such comparison")
    names = {key: _name(value.get(key) or "", salvaging) for key in ("relation", "entity", "time")}
    names["comparison"] = compared if compared in COMPARISONS else ""
    return {"kind": value["kind"], "text": condition, **names}


def read_choice(text: str, pool: Sequence[Candidate], quoted: Sequence[str]) -> Reading:
    """The number of the path that a reply chooses, from 1; 0 for none.

    >>> read_choice('{"reason": "It asks who.", "path": 1}', [Candidate("It", ("by",))], ()).value
    {'path': 1, 'reason': 'It asks who.'}
    """

    def number(value: Any, salvaging: bool) -> int:
        if salvaging and (value is None or isinstance(value, str)):
            word = (value or "").strip().lower()
            match = _NUMBERED.fullmatch(word)
            value = 0 if word in _NONE else int(match[1]) if match else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError("it is no path's number")
        if not 0 <= value <= len(pool):
            raise ValueError(f"there is no path of that number, only 1 to {len(pool)}")
        return value

    return read(text, {"path": number, "reason": reason}, quoted)


def read_verdict(text: str, quoted: Sequence[str]) -> Reading:
    """The ``answer``, whether it is ``sufficient``, and the ``reason`` that a reply gives.

    >>> read_verdict('{"answer": ["Ana"], "sufficient": true, "reason": "By It."}', ()).value
    {'answer': ['Ana'], 'sufficient': True, 'reason': 'By It.'}
    """
    reading = read(text, {"answer": _names, "sufficient": flag, "reason": reason}, quoted)
    if reading.value and "sufficient" not in reading.value:
        return Reading("unreadable", {}, "it does not say whether the answer is sufficient", text)
    return reading


def _names(value: Any, salvaging: bool) -> list[str]:
    if salvaging and isinstance(value, str | int):
        value = [value]
    if not isinstance(value, list) or len(value) > MAX_ANSWERS:
        raise ValueError(f"it is no list of {MAX_ANSWERS:,} at most")
    names = dict.fromkeys(name for item in value for name in _name_in(item, salvaging))
    return [name for name in names if name]


def _name_in(value: Any, salvaging: bool) -> tuple[str, ...]:
    """The one name of a value; none of what is salvaged and is no name."""
    try:
        return (_name(value, salvaging),)
    except ValueError:
        if not salvaging:
            raise
        return ()


def _name(value: Any, salvaging: bool) -> str:
    """A name as it stands: the graph's may have any blanks and any case."""
    if salvaging and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        raise ValueError("it is no name")
    value.encode("utf-8")  # half of a surrogate pair is a ValueError
    return value
