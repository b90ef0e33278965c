"""Build the three requests of Deliberation on Priors (`methods.deliberation`) and read their replies.

The requests ask for a question's constraints, for the path to follow, and for a verdict: which ends of the path (the
entities that it leads to) are answers, and whether they suffice. An answer counts only if it is an end of the path and
the graph shows no constraint that it fails. Section 3.3 and appendices B.2.2 to B.2.4 of arXiv 2505.15210.
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
    """A path that was followed, and the reason why it did not suffice."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Instantiated:
    """A path that the graph followed: its first chains of entities, whether there are more, and its ends, ranked.

    The model sees ``max_shown`` of the ends at most. ``verdicts`` has a mapping for each constraint: from the ends
    that the graph could decide to whether they meet it.
    """

    candidate: Candidate
    chains: tuple[tuple[str, ...], ...]
    more_chains: bool
    ends: tuple[str, ...]
    max_shown: int
    verdicts: tuple[Mapping[str, bool], ...] = ()

    def standing(self, name: str, is_met: bool) -> list[int]:
        """List the numbers (from 1) of the constraints that an entity meets, or fails if ``is_met`` is False."""
        return [number for number, verdict in enumerate(self.verdicts, 1) if verdict.get(name) is is_met]

    def failing(self, name: str) -> bool:
        """Whether the graph shows that an entity fails a constraint."""
        return any(verdict.get(name) is False for verdict in self.verdicts)

    @property
    def all_fail(self) -> bool:
        """Whether the graph shows that every end of the path fails a constraint."""
        return all(map(self.failing, self.ends))

    @property
    def first(self) -> tuple[str, ...]:
        """The ends that the model sees; those that fail a constraint come last."""
        return tuple(sorted(self.ends, key=self.failing)[: self.max_shown])

    @property
    def entities(self) -> list[dict[str, Any]]:
        """The ends that the model sees, each with the numbers of the constraints that it meets and fails."""
        return [{"name": n, "meets": self.standing(n, True), "fails": self.standing(n, False)} for n in self.first]

    @property
    def plain(self) -> dict[str, Any]:
        """The path as a JSON value; ``cut`` is the number of ends that the model does not see."""
        return {
            **plain_path(self.candidate),
            "instances": [list(chain) for chain in self.chains],
            "more_instances": self.more_chains,
            "reached": len(self.ends),
            "cut": max(0, len(self.ends) - self.max_shown),
            "entities": self.entities,
        }


def plain_path(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as a JSON value."""
    return {"topic": candidate.topic, "path": list(candidate.path)}


@dataclass(frozen=True, slots=True)
class CheckedAnswers:
    """The names that a reply gives as answers, sorted by what the graph says about them.

    ``answers`` count. ``respelled`` maps a name to the entity that it means but for upper and lower case.
    ``unreached`` are no ends of the path; ``failing`` fail a constraint.
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
    """Compare the names that a reply gives as answers with the ends of the path and the graph's verdicts.

    A name in other upper or lower case counts if it can mean only one end. If all ends fail a constraint, the path is
    at fault, and no answer is ruled out.

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
"""The states with a call; each has the prompt file of its name."""
PROMPTS = tuple(f"deliberation/{name}" for name in (CONSTRAINTS, SELECT, VERIFY))
MAX_CONSTRAINTS = 20
MAX_RELATIONS = 100
"""If the graph has more relations near a question's paths, the request for constraints lists none of them."""
MAX_ANSWERS = 5_000
_NONE = {"", "none", "no path", "null"}
_NUMBERED = re.compile(r"(?:path)?\s*#?([0-9]{1,6})", re.IGNORECASE)


def ask_constraints(question: KGQuestion, relations: Sequence[str], scene: PoolScene, refused: str = "") -> Request:
    """Build the request for a question's constraints; ``refused`` is an unreadable reply to show again."""
    listed = relations if len(relations) <= MAX_RELATIONS else ()
    data = {"topics": question.topics, "relations": listed, "refused": refused}
    return _request(CONSTRAINTS, scene, question=question.question, **data)


def ask_choice(
    question: KGQuestion, pool: Sequence[Candidate], tried: Sequence[TriedPath], scene: PoolScene, refused: str = ""
) -> Request:
    """Build the request for the number of the path to follow, 0 for none; ``tried`` tells of the earlier paths."""
    tried_paths = [{**plain_path(path.candidate), "reason": path.reason} for path in tried]
    data = {"tried": tried_paths, "pool": [plain_path(path) for path in pool], "refused": refused}
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
    """Build the request for answers and whether they suffice; ``induced``: the model finds the conditions itself."""
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
    """Read the list of constraints in a reply; in a salvaged reply, malformed items are left out.

    >>> asked = KGQuestion("q", "metaqa", "test", "who wrote [It]", ("It",), frozenset(("Ana",)))
    >>> said = '{"constraints": [{"kind": "type", "text": "It is a person."}, {"kind": "mood"}]}'
    >>> [one.text for one in constraints_in(read_constraints(said, asked).value)]
    ['It is a person.']
    """
    return read(text, {"constraints": list_reader(_constraint, MAX_CONSTRAINTS)}, [question.question])


def constraints_in(value: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Return the constraints in the value of a reading (`read_constraints`)."""
    return tuple([Constraint(**fields) for fields in value.get("constraints", ())])


def _constraint(value: Any, salvaging: bool) -> dict[str, Any]:
    """Read one constraint; when salvaging, an unknown comparison is left out."""
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
    """Read the number of the path that a reply chooses, from 1; 0 for none.

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
    """Read a verdict: the names in ``answer``, whether they are ``sufficient``, and the ``reason``.

    >>> read_verdict('{"answer": ["Ana"], "sufficient": true, "reason": "By It."}', ()).value
    {'answer': ['Ana'], 'sufficient': True, 'reason': 'By It.'}
    """
    reading = read(text, {"answer": _names, "sufficient": flag, "reason": reason}, quoted)
    if reading.value and "sufficient" not in reading.value:
        return Reading("unreadable", {}, "it does not say whether the answer is sufficient", text)
    return reading


def _names(value: Any, salvaging: bool) -> list[str]:
    """Read a list of entity names without repeated ones; when salvaging, one name alone too."""
    if salvaging and isinstance(value, str | int):
        value = [value]
    if not isinstance(value, list) or len(value) > MAX_ANSWERS:
        raise ValueError(f"it is no list of {MAX_ANSWERS:,} at most")
    return [name for name in dict.fromkeys(name for item in value for name in _name_in(item, salvaging)) if name]


def _name_in(value: Any, salvaging: bool) -> tuple[str, ...]:
    try:
        return (_name(value, salvaging),)
    except ValueError:
        if not salvaging:
            raise
        return ()


def _name(value: Any, salvaging: bool) -> str:
    """Return a name unchanged, since the graph's names may have any blanks and any case."""
    if salvaging and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        raise ValueError("it is no name")
    value.encode("utf-8")  # half of a surrogate pair is a ValueError
    return value
