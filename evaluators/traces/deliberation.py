"""The loop over relation paths, state by state, for the page of traces.

Fields are paths, instances, the graph's decisions and verdicts: names and texts, as
`methods.deliberation` keeps them; an attempt of another form has no fields.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evaluators.deliberation import FIRST_PATH, FOLLOW, PROPOSE
from safe_stepwise.methods.deliberation import INSTANTIATE, NAME, POOL
from safe_stepwise.methods.path_deliberating import CONSTRAINTS, SELECT, VERIFY

_METHODS = (NAME, FIRST_PATH)
Field = tuple[str, str]
"""A name, and a text of one or more lines."""


def unit_of(method: str) -> str:
    """Return the title of a method's groups of attempts; "" for steps."""
    return "Path" if method in _METHODS else ""


def fields_of(method: str, state: str, read: Any) -> list[Field] | None:
    """Return the fields of an attempt of the loop; None for other methods' attempts or malformed ones."""
    reader = _READERS.get(state) if method in _METHODS and isinstance(read, Mapping) else None
    if reader is None:
        return None
    try:
        return [(name, text) for name, text in reader(read) if text]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _propose(read: Mapping[str, Any]) -> Iterator[Field]:
    yield "Path", _path(read) if read["path"] else f"none from {read['topic']}: {read['said']}"
    yield "Leads", "somewhere" if read["executable"] else "nowhere"
    yield "Reason", str(read.get("reason", ""))


def _follow(read: Mapping[str, Any]) -> Iterator[Field]:
    yield "Path", _path(read)
    yield "Answers", _lines(map(str, read["answers"]))


def _pool(read: Mapping[str, Any]) -> Iterator[Field]:
    yield "Paths", str(read["left"])
    yield "Led nowhere", _lines(map(_path, read["led_nowhere"]))


def _constraints(read: Mapping[str, Any]) -> Iterator[Field]:
    for number, constraint in enumerate(read["value"].get("constraints", ()), 1):
        details = [f"{name} {constraint[name]}" for name in _CONSTRAINT_FIELDS if constraint.get(name)]
        yield f"Constraint {number}", f"{constraint['text']} ({', '.join([str(constraint['kind']), *details])})"


_CONSTRAINT_FIELDS = ("comparison", "time", "entity", "relation")


def _select(read: Mapping[str, Any]) -> Iterator[Field]:
    if "chosen" in read:
        yield "Chosen", _path(read["chosen"]) if read["chosen"] else "none of them"
    yield "Reason", str(read["value"].get("reason", ""))


def _instantiate(read: Mapping[str, Any]) -> Iterator[Field]:
    yield "Path", _path(read)
    ellipsis = ["… and more"] if read["more_instances"] else []
    yield "Instances", _lines([*(_chain(read, chain) for chain in read["instances"]), *ellipsis])
    names = [_entity(entity) for entity in read["entities"]]
    hidden = int(read["reached"]) - len(names)
    yield f"Leads to {read['reached']}", _lines([*names, *([f"… and {hidden} more"] if hidden else [])])


def _entity(entity: Mapping[str, Any]) -> str:
    outcomes = ((word, entity[word]) for word in ("meets", "fails"))
    return "; ".join([str(entity["name"]), *(f"{w} {', '.join(map(str, n))}" for w, n in outcomes if n)])


def _verify(read: Mapping[str, Any]) -> Iterator[Field]:
    value = read["value"]
    if "answers" in read:
        yield "Answers", _lines(map(str, read["answers"])) or "none"
        yield "Not reached by the path", _lines(map(str, read.get("unreached", ())))
        yield "Fails a constraint", _lines(map(str, read.get("failing", ())))
        respelled = read.get("respelled", {}).items()
        yield "Taken for", _lines(f"{value} → {spelling}" for value, spelling in respelled)
        yield "Verdict", "suffices" if read["suffices"] else f"does not suffice: {read['told']}"
    if read.get("told") != value.get("reason"):
        yield "Reason", str(value.get("reason", ""))


def _path(record: Mapping[str, Any]) -> str:
    return " → ".join(map(str, [record["topic"], *record["path"]]))


def _chain(read: Mapping[str, Any], chain: Sequence[Any]) -> str:
    hops = zip(read["path"], chain[1:], strict=True)
    return str(chain[0]) + "".join(f" →[{relation}]→ {entity}" for relation, entity in hops)


def _lines(texts: Any) -> str:
    return "\n".join(texts)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Field]]] = {
    PROPOSE: _propose,
    FOLLOW: _follow,
    POOL: _pool,
    CONSTRAINTS: _constraints,
    SELECT: _select,
    INSTANTIATE: _instantiate,
    VERIFY: _verify,
}
