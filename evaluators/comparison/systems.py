"""The systems that are compared: what each is, what it is called, and which are paired.

A system is a method with its players, its options and the conditions that it ran under: evidence
taken away, a corpus to search, the name that a joined run was given. Its name is the method's
title, with what differs among the systems shown, and its conditions, of which most have none. A
method that the registry does not know (somebody else's, or of a later version) goes by its name,
and the first of its roles by the alphabet answers.

Only systems with the same engine in the role that answers are paired. Of each other method, and of
its own with other options, players or conditions, a system meets the ones that come closest: those
that differ from it in the fewest conditions, and options and players that both have. So a sweep
over K and N pairs methods at equal K and N and neighbours that differ in one of them, and methods
that never ran alike are paired whatever their options. All pairs would be many more, each of which
costs the others power (Holm).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import Any

from evaluators.outcomes import Outcome, grouped
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.machine import Machine
from safe_stepwise.methods.options import option_values
from safe_stepwise.records import canonical_json

EVERY = "Total average"
"""Who answers in the mean over all who answer (SAFE v1, Table 3)."""
LETTERS = {"max_steps": "K", "max_retries": "N"}
"""The papers' names of options; they are told together."""
VARIANT = "variant"
"""The condition that is a name which somebody gave: it says by itself what else differs."""


@dataclass(frozen=True, slots=True)
class System:
    """What was run."""

    method: str
    players: tuple[tuple[str, str], ...]
    """Roles and their engines' names, the role that answers first."""
    options: tuple[tuple[str, Any], ...]
    """Names and values, in the order of the method's own."""
    conditions: tuple[tuple[str, Any], ...] = ()
    """Names and values by the alphabet; what is not there is as in all other systems."""

    @classmethod
    def of(
        cls,
        method: str,
        players: Mapping[str, str],
        options: Mapping[str, Any],
        conditions: Mapping[str, Any] = MappingProxyType({}),
    ) -> System:
        """The system of an outcome's fields; ``TypeError`` or the like where they are no mappings.

        >>> System.of("safe", {"verifier": "v", "generator": "g"}, {"max_retries": 3}).players
        (('generator', 'g'), ('verifier', 'v'))
        """
        roles = known_first(players, METHODS[method].roles if method in METHODS else ())
        names = known_first(options, _defaults(method))
        return cls(
            str(method),
            tuple((str(role), str(players[role])) for role in roles),
            tuple((str(name), _hashable(options[name])) for name in names),
            tuple((str(name), _hashable(conditions[name])) for name in sorted(conditions)),
        )

    @property
    def title(self) -> str:
        return METHODS[self.method].title if self.method in METHODS else self.method

    @property
    def answering(self) -> str:
        return next((name for _, name in self.players), "")

    @property
    def others(self) -> dict[str, str]:
        return dict(self.players[1:])

    def asked(self, roles: Iterable[str]) -> dict[str, str]:
        """Who plays each role, those of ``roles`` too that have no player: the one who answers."""
        players = dict(self.players)
        return players | dict.fromkeys(sorted(set(roles) - players.keys()), self.answering)

    @property
    def is_baseline(self) -> bool:
        """Whether the role that answers is the only one that has a player."""
        return len(self.players) == 1

    @property
    def variant(self) -> str:
        return str(dict(self.conditions).get(VARIANT, ""))

    def answered_by(self, who: str) -> System:
        """The same with another in the role that answers."""
        return replace(self, players=((self.players[0][0], who), *self.players[1:]))

    @property
    def departures(self) -> set[str]:
        """The options at another value than the method's default."""
        defaults = _defaults(self.method)
        return {n for n, value in self.options if n not in defaults or defaults[n] != value}

    def told(self, names: Iterable[str]) -> str:
        """Options and conditions in words.

        >>> System("safe", (), (("max_steps", 5), ("feedback", "full"))).told(["max_steps"])
        'K=5'
        >>> System("safe", (), (), (("drop_gold", True), ("variant", "b"))).told(["drop_gold"])
        'drop_gold'
        """
        wanted = set(names)
        known = [(LETTERS.get(name, name), value) for name, value in self.options if name in wanted]
        known += [(name, value) for name, value in self.conditions if name in wanted]
        return ", ".join(condition_text(name, value) for name, value in known)

    def as_json(self) -> dict[str, Any]:
        """The system for a record."""
        return {
            "method": self.method,
            "players": dict(self.players),
            "options": dict(self.options),
            "conditions": dict(self.conditions),
        }


def system_of(outcome: Outcome) -> System:
    """The system that an outcome is of."""
    return System.of(outcome.method, outcome.players, outcome.options, outcome.conditions)


def condition_text(name: str, value: Any) -> str:
    """A condition or an option in words.

    >>> condition_text("corpus", "pages.jsonl@0123"), condition_text("drop_gold", True)
    ('corpus=pages.jsonl@0123', 'drop_gold')
    """
    if value is True:
        return name
    return str(value) if name == VARIANT else f"{name}={value}"


def values_by_name(items: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """All values that a name has, each once, in their order."""
    found: dict[str, dict[Any, None]] = {}
    for name, value in items:
        found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}


def differing(systems: Iterable[System]) -> set[str]:
    """The options of which systems have several values, and conditions that not all share."""
    systems = list(systems)
    conditions = [dict(system.conditions) for system in systems]
    apart = {name for name in conditions_of(systems) if len({own.get(name) for own in conditions}) > 1}
    return _differing_options(systems) | apart


def _differing_options(systems: Sequence[System]) -> set[str]:
    """Of one method, to have none of a name is to differ from who has one; another has its own."""
    known = values_by_name(option for system in systems for option in system.options)
    methods = {system.method: set[str]() for system in systems}
    for system in systems:
        methods[system.method].update(name for name, _ in system.options)
    lacking = {n for s in systems for n in methods[s.method] if n not in dict(s.options)}
    return lacking | {name for name, values in known.items() if len(values) > 1}


def varying(systems: Iterable[System]) -> set[str]:
    """What is part of systems' names beside conditions: options that differ, K and N together."""
    found = differing(systems)
    return found | (set(LETTERS) if found & set(LETTERS) else set())


def notable(systems: Sequence[System]) -> set[str]:
    """What is worth telling: K and N, what differs, and what is not the default."""
    return set(LETTERS).union(differing(systems), conditions_of(systems), *(system.departures for system in systems))


def conditions_of(systems: Iterable[System]) -> set[str]:
    """The names of all conditions that any system ran under."""
    return {name for system in systems for name, _ in system.conditions}


def swept(systems: Sequence[System]) -> dict[str, str]:
    """Of each method with several options the one that its systems are lined up by: N, else K."""
    methods = dict.fromkeys(system.method for system in systems)
    several = {m: _differing_options([s for s in systems if s.method == m]) for m in methods}
    return {method: known_first(found, ("max_retries", "max_steps"))[0] for method, found in several.items() if found}


def names(systems: Sequence[System]) -> dict[System, str]:
    """A name for each system beside who answers: its method, and what else sets it apart."""
    wanted = varying(systems) | conditions_of(systems)
    found = {}
    for one in systems:
        if one.variant:
            # What was given says what differs from others; the rest sets these apart alone.
            own = [s for s in systems if _given(s) == _given(one)]
            told = _named(one, own), one.variant, one.told(varying(own))
        else:
            told = _named(one, systems), one.told(wanted), ""
        found[one] = ", ".join(filter(None, told))
    return found


def _given(system: System) -> tuple[str, str, str]:
    return system.answering, system.method, system.variant


def _named(system: System, systems: Sequence[System]) -> str:
    """A method's title, with the players of its other roles that have several."""
    alike = [other.others for other in systems if other.method == system.method]
    several = {role: name for role, name in system.others.items() if len({others.get(role) for others in alike}) > 1}
    if not several:
        return system.title
    # Where a method has but one other role there is no need to say which.
    said = several.values() if len(system.others) == 1 else map(" ".join, several.items())
    return f"{system.title} with {' and '.join(said)}"


def common_options(systems: Sequence[System], always: Iterable[str] = ()) -> str:
    """In words the options that do not vary, those to tell ``always`` at their defaults, too."""
    wanted = notable(systems).union(always) - varying(systems) - conditions_of(systems)
    known = {name: s.told([name]) for s in systems for name, _ in s.options if name in wanted}
    return ", ".join(known.values())


def in_order(systems: Iterable[System]) -> list[System]:
    """As tables have them: by who answers, by the options that all have, by method."""
    found = list(systems)
    shared = set.intersection(*({name for name, _ in s.options} for s in found)) if found else set()

    def key(system: System) -> tuple[Any, ...]:
        alike = [(name, value) for name, value in system.options if name in shared]
        return system.answering, _sortable(alike), _rank(system)

    return sorted(found, key=key)


def pairs(systems: Sequence[System]) -> list[tuple[System, System]]:
    """Who is compared with whom: of two methods the later one with the earlier one."""
    met = [(a, b) for a, b in combinations(systems, 2) if a.answering == b.answering]
    closest: dict[tuple[System, str], int] = {}
    for one, other in [*met, *((b, a) for a, b in met)]:
        key = one, other.method
        closest[key] = min(closest.get(key, apart(one, other)), apart(one, other))
    return [
        (b, a) if _rank(a) < _rank(b) else (a, b)
        for a, b in met
        if apart(a, b) in (closest[a, b.method], closest[b, a.method])
    ]


def shared_by_all(systems: Sequence[System]) -> dict[System, list[System]]:
    """Systems that ran with each of several who answer, by what they are apart from who that is.

    None where one alone answers all.
    """
    answering = {system.answering for system in systems}
    groups = grouped((system for system in systems if system.players), lambda system: system.answered_by(EVERY))
    whole = {s: found for s, found in groups.items() if len(found) == len(answering)}
    return whole if len(answering) > 1 else {}


def apart(one: System, other: System) -> int:
    """How many conditions differ, and how many of the options and players that both have."""
    theirs = other.others
    players = sum(theirs.get(role, name) != name for role, name in one.others.items())
    return len(differing([one, other])) + players


def _rank(system: System) -> tuple[Any, ...]:
    known = list(METHODS)
    place = known.index(system.method) if system.method in METHODS else len(known)
    conditions = _sortable(system.conditions)
    return place, system.method, _sortable(system.options), system.players, conditions


def _sortable(options: Iterable[tuple[str, Any]]) -> tuple[tuple[str, float, str], ...]:
    return tuple(
        (name, value if isinstance(value, int | float) else float("inf"), str(value)) for name, value in options
    )


def _defaults(method: str) -> dict[str, Any]:
    if method not in METHODS:
        return {}
    defaults = option_values(options_type(METHODS[method])())
    return {name: _hashable(value) for name, value in defaults.items()}


def known_first(found: Iterable[str], known: Iterable[str]) -> list[str]:
    """Names in the order of those known, then the others by the alphabet."""
    there = set(found)
    first = [name for name in known if name in there]
    return [*first, *sorted(there.difference(first))]


def _hashable(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else canonical_json(value)


def machine_of(method: str) -> Machine[object] | None:
    """A method's machine; None of one without, or that is unknown here."""
    machine = getattr(METHODS.get(method), "machine", None)
    return machine if isinstance(machine, Machine) else None


def title_of(method: str, state: str) -> str:
    """What happens in a state; nothing where its name says so, or that is unknown.

    >>> title_of("sg_fsm1", "q2"), title_of("react", "act"), title_of("scouting", "q2")
    ('Search', '', '')
    """
    machine = machine_of(method)
    return machine.titles.get(state, "") if machine else ""


def edge_text(method: str, state: str, to: str) -> str:
    """An edge in words.

    >>> edge_text("sg_fsm1", "q2", "q4"), edge_text("react", "act", "end"), edge_text("", "q2", "")
    ('q2 Search → q4', 'act → end', 'q2')
    """
    named = f"{state} {title_of(method, state)}".strip()
    return f"{named} → {to}" if to else named
