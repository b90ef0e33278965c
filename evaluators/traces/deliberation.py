"""Render the attempts of Deliberation on Priors for the page of traces: one list of fields for each state.

A field is a name and a text: a relation path, its instances in the graph, the graph's decisions, the model's verdict.
`methods.deliberation` records them in the attempts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluators.deliberation import EXTEND, FIRST_PATH, FOLLOW, PROPOSE
from safe_stepwise.methods.deliberation import INSTANTIATE, NAME, POOL
from safe_stepwise.methods.path_deliberating import CONSTRAINTS, SELECT, VERIFY

METHODS = (NAME, FIRST_PATH)
Field = tuple[str, str]
"""A name, and a text of one or more lines."""


def fields_of(method: str, state: str, read: Any) -> list[Field] | None:
    """Return the fields of an attempt of the loop; None for other methods' attempts or malformed ones."""
    if method not in METHODS or state not in _STATES or not isinstance(read, Mapping):
        return None
    try:
        return [(name, text) for name, text in _fields(state, read) if text]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


_STATES = (PROPOSE, EXTEND, FOLLOW, POOL, CONSTRAINTS, SELECT, INSTANTIATE, VERIFY)


def _fields(state: str, read: Mapping[str, Any]) -> Iterator[Field]:
    """Yield the fields of an attempt at a state; raises an error if its record is malformed."""
    if state in (PROPOSE, EXTEND):
        yield "Path", _path(read) if read["path"] else f"none from {read['topic']}: {read['said']}"
        yield "Leads", "somewhere" if read["executable"] else "nowhere"
        yield "Reason", str(read.get("reason", ""))
    elif state == FOLLOW:
        yield "Path", _path(read)
        yield "Answers", "\n".join(map(str, read["answers"]))
    elif state == POOL:
        yield "Paths", str(read["left"])
        yield "Led nowhere", "\n".join(map(_path, read["led_nowhere"]))
    elif state == CONSTRAINTS:
        for number, constraint in enumerate(read["value"].get("constraints", ()), 1):
            names = [name for name in ("comparison", "time", "entity", "relation") if constraint.get(name)]
            details = [str(constraint["kind"]), *(f"{name} {constraint[name]}" for name in names)]
            yield f"Constraint {number}", f"{constraint['text']} ({', '.join(details)})"
    elif state == SELECT:
        if "chosen" in read:
            yield "Chosen", _path(read["chosen"]) if read["chosen"] else "none of them"
        yield "Reason", str(read["value"].get("reason", ""))
    elif state == INSTANTIATE:
        yield "Path", _path(read)
        ellipsis = ["… and more"] if read["more_instances"] else []
        yield "Instances", "\n".join([*(_chain(read, chain) for chain in read["instances"]), *ellipsis])
        entities = [*map(_entity, read["entities"])]
        hidden = int(read["reached"]) - len(entities)
        yield f"Leads to {read['reached']}", "\n".join([*entities, *([f"… and {hidden} more"] if hidden else [])])
    else:
        yield from _verify(read)


def _entity(entity: Mapping[str, Any]) -> str:
    outcomes = ((word, entity[word]) for word in ("meets", "fails"))
    return "; ".join([str(entity["name"]), *(f"{w} {', '.join(map(str, n))}" for w, n in outcomes if n)])


def _verify(read: Mapping[str, Any]) -> Iterator[Field]:
    value = read["value"]
    if "answers" in read:
        yield "Answers", "\n".join(map(str, read["answers"])) or "none"
        yield "Not reached by the path", "\n".join(map(str, read.get("unreached", ())))
        yield "Fails a constraint", "\n".join(map(str, read.get("failing", ())))
        respelled = read.get("respelled", {}).items()
        yield "Taken for", "\n".join(f"{value} → {spelling}" for value, spelling in respelled)
        yield "Verdict", "suffices" if read["suffices"] else f"does not suffice: {read['told']}"
    if read.get("told") != value.get("reason"):
        yield "Reason", str(value.get("reason", ""))


def _path(record: Mapping[str, Any]) -> str:
    return " → ".join(map(str, [record["topic"], *record["path"]]))


def _chain(read: Mapping[str, Any], chain: Sequence[Any]) -> str:
    hops = zip(read["path"], chain[1:], strict=True)
    return str(chain[0]) + "".join(f" →[{relation}]→ {entity}" for relation, entity in hops)
