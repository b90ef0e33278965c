"""Matches a claim's arguments with those of a passage's predication, by the ends of a shared relation or by roles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from operator import attrgetter

from safe_stepwise.checking.words import BOUNDS, SYNONYMS, is_same_name, is_time, stem
from safe_stepwise.language.relations import is_nation
from safe_stepwise.language.senses import are_alike, sense_cues
from safe_stepwise.language.syntax import Argument, Predication, Syntax, is_source_name
from safe_stepwise.language.vocabulary import load

EndOf = Callable[[str], str]
"""Returns the end (head, tail) that a role of a predication names."""
NamesOf = Callable[[Argument], tuple[tuple[str, ...], bool]]
"""Returns the names that an argument of a passage may stand for, and whether the list is complete."""
ENDS = frozenset(("head", "tail", "subj", "obj", "is", "of"))
TIMES = frozenset(("in", "on", "when", "during", "at", "of"))
_TIME_BOUNDS = BOUNDS | {"since", "from", "to", "by"}
"""Roles of a date that only limits when something is."""
_CORE = ENDS | _TIME_BOUNDS
_RELATIVES = frozenset(load("predicates")["relatives"].split())
EXCLUDING = frozenset(
    ("outside", "without", "except", "unlike", "than", "besides", "beyond", "against", "instead", "but")
)
SINGULAR = ("he", "she", "it")


@dataclass
class ArgumentMatch:
    """The arguments of a claim, sorted by how the arguments of a passage's predication agree with them.

    ``unknown``: the predication has an argument at that end, but it is unclear whether it is the same. ``absent``: it
    has none at that end. ``open``: nor has it any of that kind (a time, a place). ``rivals``: those of ``different``
    that are names or dates at the tail. ``has_head``: whether the head is among ``matched``.
    """

    matched: list[Argument] = field(default_factory=list)
    exchanged: list[Argument] = field(default_factory=list)
    different: list[Argument] = field(default_factory=list)
    unknown: list[Argument] = field(default_factory=list)
    absent: list[Argument] = field(default_factory=list)
    open: list[Argument] = field(default_factory=list)
    rivals: list[Argument] = field(default_factory=list)
    has_head: bool = False

    @property
    def score(self) -> tuple[float, float]:
        names = sum(1.0 if a.value else 0.5 for a in self.matched)
        return names - len(self.exchanged) - len(self.different) - len(self.absent), names

    @property
    def agrees(self) -> bool:
        return bool(self.matched) and not (self.exchanged or self.different or self.absent)


class ArgumentMatcher:
    """Matches the claims of one parsed text."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax

    def match(self, claim: Predication, fact: Predication, names_of: NamesOf) -> ArgumentMatch:
        """Compare the arguments by the ends of a shared sense, or else by their roles."""
        expressions = product(claim.expressions, fact.expressions)
        shared = [(a.end_of, b.end_of) for a, b in expressions if are_alike(a.sense, b.sense)]
        pairs = shared or [(partial(_role_as_end, claim), partial(_role_as_end, fact))]
        return max((self._match_ends(claim, fact, names_of, *ends) for ends in pairs), key=attrgetter("score"))

    def _match_ends(
        self, claim: Predication, fact: Predication, names_of: NamesOf, end_of: EndOf, fact_end_of: EndOf
    ) -> ArgumentMatch:
        match = ArgumentMatch()
        ends = {fact_end_of(role) for role in fact.roles}
        for role, argument in claim.arguments:
            if argument.is_source or (not argument.value and (argument.is_pronoun or role == "attr")):
                continue
            end = _find_end(role, argument, end_of)
            agreed = exchanged = different = unknown = False
            for fact_role, fact_argument in fact.possible_arguments:
                agrees = self._is_same_argument(argument, fact_argument, names_of)
                fact_end = _find_end(fact_role, fact_argument, fact_end_of)
                if end == fact_end or ("both" in (end, fact_end) and "time" not in (end, fact_end)):
                    agreed |= agrees is True
                    different |= agrees is False
                    unknown |= agrees is None
                elif agrees and fact_end in _TIME_BOUNDS:
                    different = True
                elif agrees and ({end, fact_end} == {"head", "tail"} or {end, fact_end} == {"subj", "obj"}):
                    exchanged = True
            is_core = end in _CORE
            is_bound = different and end in BOUNDS  # "after the war" for "before the war"
            is_told = agreed or argument.value or exchanged or is_bound or (is_core and self.is_described(argument))
            if not is_told:
                continue
            kinds = {"matched": agreed, "exchanged": exchanged, "different": different, "unknown": unknown}
            kind = next((kind for kind, holds in kinds.items() if holds), "")
            match.has_head |= kind == "matched" and end == "head"
            if kind == "different" and end in ("tail", "time") and argument.value:
                match.rivals.append(argument)
            is_open = (end == "time" or not is_core) and role not in EXCLUDING and end not in ends
            getattr(match, kind or ("open" if is_open else "absent")).append(argument)
        return match

    def is_described(self, argument: Argument) -> bool:
        """Whether a noun means somebody without a name, by a relation to another ("the father of Ana")."""
        return bool(sense_cues(argument.noun)) and not self.syntax.described.get(argument.token)

    def _is_same_argument(self, argument: Argument, candidate: Argument, names_of: NamesOf) -> bool | None:
        """Whether an argument of the text and one of a passage mean the same; None if that is unclear."""
        names = (argument.value,) if argument.value else self.syntax.described.get(argument.token, ())
        candidate_names, are_all = names_of(candidate)
        if not names and not candidate_names:
            is_synonym = candidate.noun in SYNONYMS.get(argument.noun, ())
            return True if is_synonym or stem(argument.noun) == stem(candidate.noun) else None
        if argument.is_pronoun and argument.noun in SINGULAR:
            if candidate.noun in SINGULAR and candidate.noun != argument.noun:
                return False
            names = names or tuple(self.names_before(argument.token))
        is_other = argument.name if argument.noun not in _RELATIVES else argument.noun != candidate.noun
        if is_other and not candidate.name and candidate.noun in _RELATIVES and not argument.is_pronoun:
            return False  # "her parents were born there"
        if not names or not candidate_names:
            return True if argument.is_pronoun and not names else None
        if any(is_same_name(a, b) for a in names for b in candidate_names):
            return True
        if is_nation(argument.noun) != is_nation(candidate.noun):  # a town and its country
            return None
        return False if are_all or argument.is_pronoun else None

    def names_before(self, token: int) -> Sequence[str]:
        """Return the names before a word, one of which a pronoun at that place may mean."""
        names = (word.name for word in self.syntax.words[:token] if word.name)
        return [name for name in names if not (is_source_name(name) or is_time(name))]


def _role_as_end(predication: Predication, role: str) -> str:
    """Return a role as an end; an agent noun ("supervisor of") has the ends of its verb."""
    if not predication.is_noun:
        return role
    if predication.predicate.endswith(("er", "or")):
        return {"is": "subj", "of": "obj"}.get(role, role)
    return "of" if role == "by" else role


def _find_end(role: str, argument: Argument, end_of: EndOf) -> str:
    """Return the end that an argument names: "time", a bound ("until 1901", "near Oru"), or that of its role."""
    has_time = is_time(argument.value)
    if role in (_TIME_BOUNDS if has_time else BOUNDS):
        return role
    return "time" if has_time and role in TIMES else end_of(role)
