"""What is asked about relation paths, and how replies are read: constraints, choice, verdict.

Deliberation on Priors, section 3.3 and appendices B.2.2 to B.2.4.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import Request, Schema
from safe_stepwise.methods.path_following import Instantiated, Tried, plain_path
from safe_stepwise.methods.reading import LONGEST, Reading, flag, maybe_words, read, reason, several
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.records import COMPARISONS, CONSTRAINT_KINDS, Candidate, Constraint, KGQuestion

CONSTRAINTS, SELECT, VERIFY = "constraints", "select", "verify"
"""The states that ask; a prompt of that name each."""
PROMPTS = tuple(f"deliberation/{name}" for name in (CONSTRAINTS, SELECT, VERIFY))
MOST_CONSTRAINTS = 20
MOST_RELATIONS = 100
"""A graph with more of them near a question's paths is not told of."""
MOST_ANSWERS = 5_000
_NONE = {"", "none", "no path", "null"}
_NUMBERED = re.compile(r"(?:path)?\s*#?([0-9]{1,6})", re.IGNORECASE)


# ---------------------------------------------------------------- what is asked


def ask_constraints(question: KGQuestion, relations: Sequence[str], scene: PoolScene, refused: str = "") -> Request:
    """The request for a question's constraints."""
    shown = relations if len(relations) <= MOST_RELATIONS else ()
    data = {"topics": question.topics, "relations": shown, "refused": refused}
    return _request(CONSTRAINTS, scene, question=question.question, **data)


def ask_choice(
    question: KGQuestion, pool: Sequence[Candidate], tried: Sequence[Tried], scene: PoolScene, refused: str = ""
) -> Request:
    """The request for the number of the path to follow, 0 for none of them."""
    told = [{**plain_path(one.candidate), "reason": one.reason} for one in tried]
    shown = [plain_path(one) for one in pool]
    data = {"tried": told, "pool": shown, "refused": refused}
    request = _request(SELECT, scene, question=question.question, **data)
    return _held_to(request, path={"enum": [*range(len(pool) + 1)]})


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
    told = zip(constraints, followed.verdicts, strict=True)
    request = _request(
        VERIFY,
        scene,
        question=question.question,
        **plain_path(followed.candidate),
        chains=followed.chains,
        more_chains=followed.more_chains,
        constraints=[{"text": c.text, "is_decided": bool(decided)} for c, decided in told],
        induced=induced,
        reached=len(followed.ends),
        ends=followed.entities,
        refused=refused,
    )
    return _held_to(request, answer={"type": "array", "items": {"enum": list(followed.first)}})


def _request(name: str, scene: PoolScene, **data: Any) -> Request:
    prompt = prompts.load(f"deliberation/{name}")
    asked = prompt.messages(**data)
    return Request(asked, prompt.sampling, prompt.schema, prompt.role, scene)


def _held_to(request: Request, **fields: Any) -> Request:
    """The request, some fields of its schema being those that there can be."""
    assert request.schema is not None
    schema = json.loads(request.schema.text)
    schema["properties"] |= fields
    return replace(request, schema=Schema.of(request.schema.name, schema))


# ---------------------------------------------------------------- what is read


def read_constraints(text: str, question: KGQuestion) -> Reading:
    """The constraints that a reply lists; of one that is salvaged those that are some.

    >>> asked = KGQuestion("q", "metaqa", "test", "who wrote [It]", ("It",), frozenset(("Ana",)))
    >>> said = '{"constraints": [{"kind": "type", "text": "It is a person."}, {"kind": "mood"}]}'
    >>> [one.text for one in constraints_in(read_constraints(said, asked).value)]
    ['It is a person.']
    """
    return read(text, {"constraints": several(_constraint, MOST_CONSTRAINTS)}, [question.question])


def constraints_in(value: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """The constraints of a reading's value."""
    return tuple([Constraint(**one) for one in value.get("constraints", ())])


def _constraint(value: Any, salvaging: bool) -> dict[str, Any]:
    if not isinstance(value, dict) or value.get("kind") not in CONSTRAINT_KINDS:
        raise ValueError("it is of none of the kinds")
    said = maybe_words(value.get("text"), salvaging)
    if not said:
        raise ValueError("it says no condition")
    compared = value.get("comparison") or ""
    if compared not in ("", *COMPARISONS) and not salvaging:
        raise ValueError("there is no such comparison")
    names = {key: _name(value.get(key) or "", salvaging) for key in ("relation", "entity", "time")}
    names["comparison"] = compared if compared in COMPARISONS else ""
    return {"kind": value["kind"], "text": said, **names}


def read_choice(text: str, pool: Sequence[Candidate], quoted: Sequence[str]) -> Reading:
    """The number of the path that a reply chooses, from 1; 0 for none.

    >>> read_choice('{"reason": "It asks who.", "path": 1}', [Candidate("It", ("by",))], ()).value
    {'path': 1, 'reason': 'It asks who.'}
    """

    def number(value: Any, salvaging: bool) -> int:
        if salvaging and (value is None or isinstance(value, str)):
            said = (value or "").strip().lower()
            match = _NUMBERED.fullmatch(said)
            value = 0 if said in _NONE else int(match[1]) if match else value
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
    found = read(text, {"answer": _names, "sufficient": flag, "reason": reason}, quoted)
    if found.value and "sufficient" not in found.value:
        return Reading("unreadable", {}, "it does not say whether the answer is sufficient", text)
    return found


def _names(value: Any, salvaging: bool) -> list[str]:
    if salvaging and isinstance(value, str | int):
        value = [value]
    if not isinstance(value, list) or len(value) > MOST_ANSWERS:
        raise ValueError(f"it is no list of {MOST_ANSWERS:,} at most")
    names = dict.fromkeys(name for one in value for name in _name_in(one, salvaging))
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
    if not isinstance(value, str) or len(value) > LONGEST:
        raise ValueError("it is no name")
    value.encode("utf-8")  # half of a surrogate pair is a ValueError
    return value
