"""Decides in which direction a sentence's predications join two names, for all rules that read claims.

A *tie* is a predication (`language.syntax`) with both ends of a fact among its arguments. Its direction follows from
the ends that its senses give to the roles of these arguments.
"""

from collections.abc import Callable, Iterator, Mapping
from operator import eq
from typing import NamedTuple

from safe_stepwise.checking.words import BOUNDS
from safe_stepwise.language.senses import Meaning
from safe_stepwise.language.syntax import Argument, Predication, Syntax

IsEnd = Callable[[Argument, str], bool]
"""Recognises an end of a fact by an argument and a name that the argument stands for ("" if it has none)."""
_HEADS = frozenset(("subj", "is"))
"""Roles that come first in a predication without a known sense."""


class Tie(NamedTuple):
    """A predication, and the roles that the two ends of a fact have in it."""

    predication: Predication
    heads: frozenset[str]
    tails: frozenset[str]

    def signs(self) -> Mapping[str, int]:
        """Map each sense (or the verb or noun) to 1 if it runs from head to tail, -1 for the reverse, 0 for both."""
        ends = {e.sense: e.end_of for e in self.predication.expressions}
        if not ends:
            ends = {self.predication.predicate: lambda role: "head" if role in _HEADS else "tail"}
        return {sense: self._sign(end_of) for sense, end_of in ends.items()}

    def _sign(self, end_of: Callable[[str], str]) -> int:
        heads, tails = ({end_of(role) for role in roles} for roles in (self.heads, self.tails))
        if "both" in heads | tails:
            return 0
        return 1 if "head" in heads or "tail" in tails else -1

    def direction(self, meaning: Meaning, is_same: Callable[[str, str], bool] = eq) -> int | None:
        """Return the sign of a relation's senses, the best one; None if the tie expresses none of these senses."""
        signs: list[int] = []
        for sense, sign in self.signs().items():
            signs += [sign] if any(is_same(sense, expressed) for expressed in meaning.senses) else []
            signs += [-sign] if any(is_same(sense, expressed) for expressed in meaning.turned) else []
        return None if not signs else 0 if 0 in signs else max(signs)


def ties(syntax: Syntax, is_head: IsEnd, is_tail: IsEnd) -> Iterator[Tie]:
    """Yield the predications that have both ends of a fact, which ``is_head`` and ``is_tail`` recognise.

    A noun stands for the names that it describes, and for its work in "The music of Dune Rain was composed".
    """
    owners: dict[int, list[Predication]] = {}
    for predication in syntax.predications:
        if predication.is_noun:
            owners.setdefault(predication.token, []).append(predication)
    for predication in syntax.predications:
        senses = {e.sense for e in predication.expressions}
        roles: tuple[set[str], set[str]] = (set(), set())
        for role, argument in predication.arguments:
            if role in BOUNDS and "named_after" not in senses:
                continue
            names = [argument.value] if argument.value else [*syntax.described.get(argument.token, ())] or [""]
            for noun in owners.get(argument.token, ()):
                if any(e.sense in senses for e in noun.expressions):
                    names += [a.value for a in noun.roles.get("of", ())]
            for matching, is_end in zip(roles, (is_head, is_tail), strict=True):
                if any(is_end(argument, name) for name in names):
                    matching.add(role)
        if all(roles):
            yield Tie(predication, *map(frozenset, roles))
