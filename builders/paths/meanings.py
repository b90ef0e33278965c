"""Which relations hold both ways, and which exclude each other."""

from builders.paths.world import World, sort_of
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.records import Triple

SYMMETRIC = frozenset(
    {
        *("spouse", "sibling", "partner", "unmarried partner", "relative", "shares border with"),
        *("twinned administrative body", "different from", "opposite of", "adjacent station"),
        *("said to be the same as", "significant person", "diplomatic relation", "connects with"),
    }
)
"""Relations that hold as well the other way round."""
KIN = frozenset(("father", "mother", "spouse", "sibling", "child", "stepfather", "stepmother", "grandparent"))
EXCLUSIVE = (KIN, frozenset(("date of birth", "date of death")))
"""Of two things at most one of a set holds."""
_WIDE = frozenset({"place", "nation", "name"})
"""Kinds of values of which one thing may be two."""


def excludes(world: World, old: Triple, new: Triple) -> bool:
    """Whether a triple is false because another of the same ends is true.

    Both differ in their relation. It is, where the graph is all there is; where at most one of the
    relations holds of two things, the head is known to have another value of one that has but one,
    or values of the one are dates and of the other none.
    """
    if world.is_complete or _at_most_one(old.relation, new.relation):
        return True
    one, other = RELATIONS.get(old.relation), RELATIONS.get(new.relation)
    if one is None or other is None:
        return False
    if other.functional and world.has_other(new):
        return True
    return one.kind != other.kind and not {one.kind, other.kind} <= _WIDE


def strangeness(world: World, triple: Triple, relation: str) -> int:
    """How little a relation is like that of a triple: those least like it are told at a glance.

    0 where at most one of both holds; 1 where its values look like the triple's tail; else 2.
    """
    if _at_most_one(triple.relation, relation):
        return 0
    values = world.values(relation)
    return 1 if values and sort_of(values[0]) == sort_of(triple.tail) else 2


def _at_most_one(one: str, other: str) -> bool:
    return any({one, other} <= group for group in EXCLUSIVE)
