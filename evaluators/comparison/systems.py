"""Describe the systems of a comparison: what each consists of, what it is called, and which are paired.

A system is a method with its players (a model for each role), its options and its conditions: removed evidence, a
corpus to search, the name of a joined run. Its name is the method's title, followed by the options and players that
differ among the systems and by its conditions. A method that the registry does not know (somebody else's, or of a
later version) has its own name as title, and the first of its roles in alphabetical order answers.

Only systems with the same answerer (the engine in the role that answers) are paired. For each method, its own
included, a system is paired with the closest systems: those that differ in the fewest conditions, options and players.
So a sweep over K and N pairs methods at equal K and N, and neighbours that differ in one of them. All pairs would be
many more, and each further test costs power (Holm).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any

from evaluators.outcomes import Outcome, grouped
from safe_stepwise.methods import METHODS, base
from safe_stepwise.methods.machine import Machine
from safe_stepwise.records import canonical_json

EVERY = "Total average"
"""The answerer's name in the mean over all answerers (SAFE v1, Table 3)."""
LETTERS = {"max_steps": "K", "max_retries": "N"}
"""The papers' letters for options; names show both or neither."""
VARIANT = "variant"
"""The condition that holds the name of a joined run."""


@dataclass(frozen=True, slots=True)
class System:
    """A method with its players, options and conditions: what a comparison compares."""

    method: str
    players: tuple[tuple[str, str], ...]
    """Roles and their engines' names, the role that answers first."""
    options: tuple[tuple[str, Any], ...]
    """Names and values, in the order of the method's own."""
    conditions: tuple[tuple[str, Any], ...] = ()
    """Names and values in alphabetical order; a missing condition has its usual value."""

    @classmethod
    def make(
        cls,
        method: str,
        players: Mapping[str, str],
        options: Mapping[str, Any],
        conditions: Mapping[str, Any] = MappingProxyType({}),
    ) -> "System":
        """Make the system of an outcome's fields; raises ``TypeError`` or the like where they are no mappings."""
        roles = sort_by(players, METHODS[method].roles if method in METHODS else ())
        return cls(
            str(method),
            tuple((str(role), str(players[role])) for role in roles),
            tuple((str(name), _hashable(options[name])) for name in sort_by(options, _defaults(method))),
            tuple((str(name), _hashable(conditions[name])) for name in sorted(conditions)),
        )

    @property
    def title(self) -> str:
        return METHODS[self.method].title if self.method in METHODS else self.method

    @property
    def answering(self) -> str:
        return next((name for _, name in self.players), "")

    @property
    def other_players(self) -> dict[str, str]:
        """The players that do not answer, by role."""
        return dict(self.players[1:])

    def players_in(self, roles: Iterable[str]) -> dict[str, str]:
        """Return the player of each role; the answerer plays the roles without a player of their own."""
        players = dict(self.players)
        return players | dict.fromkeys(sorted(set(roles) - players.keys()), self.answering)

    @property
    def is_baseline(self) -> bool:
        """Whether the role that answers is the only one that has a player."""
        return len(self.players) == 1

    @property
    def variant(self) -> str:
        return str(dict(self.conditions).get(VARIANT, ""))

    def answered_by(self, player: str) -> "System":
        """Return this system with another player in the role that answers."""
        return replace(self, players=((self.players[0][0], player), *self.players[1:]))

    @property
    def departures(self) -> set[str]:
        """The names of options that differ from the method's default."""
        defaults = _defaults(self.method)
        return {name for name, value in self.options if name not in defaults or defaults[name] != value}

    def describe(self, names: Iterable[str]) -> str:
        """Render the options and conditions with these names as text.

        >>> System("safe", (), (("max_steps", 5), ("feedback", "full"))).describe(["max_steps"])
        'K=5'
        >>> System("safe", (), (), (("drop_gold", True), ("variant", "b"))).describe(["drop_gold"])
        'drop_gold'
        """
        shown_names = set(names)
        pairs = [(LETTERS.get(name, name), value) for name, value in self.options if name in shown_names]
        pairs += [(name, value) for name, value in self.conditions if name in shown_names]
        return ", ".join(condition_text(name, value) for name, value in pairs)

    def as_json(self) -> dict[str, Any]:
        fields = {"players": self.players, "options": self.options, "conditions": self.conditions}
        return {"method": self.method, **{name: dict(pairs) for name, pairs in fields.items()}}


def system_of(outcome: Outcome) -> System:
    return System.make(outcome.method, outcome.players, outcome.options, outcome.conditions)


def condition_text(name: str, value: Any) -> str:
    """Render a condition or an option as text.

    >>> condition_text("corpus", "pages.jsonl@0123"), condition_text("drop_gold", True)
    ('corpus=pages.jsonl@0123', 'drop_gold')
    """
    if value is True:
        return name
    return str(value) if name == VARIANT else f"{name}={value}"


def values_by_name(items: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Group values by name, each value once, in their order."""
    groups = grouped(items, itemgetter(0))
    return {name: list(dict.fromkeys(value for _, value in pairs)) for name, pairs in groups.items()}


def find_differing(systems: Iterable[System]) -> set[str]:
    """Return the names of options and conditions in which systems differ."""
    systems = list(systems)
    conditions = [dict(system.conditions) for system in systems]
    unequal = {name for name in conditions_of(systems) if len({values.get(name) for values in conditions}) > 1}
    return _different_options(systems) | unequal


def _different_options(systems: Sequence[System]) -> set[str]:
    """Return the options with several values, or that only some systems of a method have."""
    by_name = values_by_name(option for system in systems for option in system.options)
    methods = {system.method: set[str]() for system in systems}
    for system in systems:
        methods[system.method].update(name for name, _ in system.options)
    lacking = {n for s in systems for n in methods[s.method] if n not in dict(s.options)}
    return lacking | {name for name, values in by_name.items() if len(values) > 1}


def name_options(systems: Iterable[System]) -> set[str]:
    """Return the options that systems' names show: those that differ, and K and N if either does."""
    options = find_differing(systems)
    return options | (set(LETTERS) if options & set(LETTERS) else set())


def list_notable(systems: Sequence[System]) -> set[str]:
    """Return the options and conditions that tables show: K and N, those that differ, and non-defaults."""
    return set(LETTERS).union(
        find_differing(systems), conditions_of(systems), *(system.departures for system in systems)
    )


def conditions_of(systems: Iterable[System]) -> set[str]:
    """Return the names of all conditions that any system ran under."""
    return {name for system in systems for name, _ in system.conditions}


def has_sweep(systems: Iterable[System]) -> bool:
    """Return whether some method's systems differ in an option."""
    return any(_different_options(group) for group in grouped(systems, lambda system: system.method).values())


def name_systems(systems: Sequence[System]) -> dict[System, str]:
    """Name each system, without its answerer: by its method, and the options and conditions that set it apart."""
    shown_names = name_options(systems) | conditions_of(systems)
    labels = {}
    for system in systems:
        if system.variant:
            # The variant's name says what differs from other variants; options set apart its own systems alone.
            key = attrgetter("answering", "method", "variant")
            variants = [s for s in systems if key(s) == key(system)]
            words = _method_title(system, variants), system.variant, system.describe(name_options(variants))
        else:
            words = _method_title(system, systems), system.describe(shown_names), ""
        labels[system] = ", ".join(filter(None, words))
    return labels


def _method_title(system: System, systems: Sequence[System]) -> str:
    """Return a method's title, with the players of other roles in which its systems differ."""
    alike = [peer.other_players for peer in systems if peer.method == system.method]
    ambiguous = {role: name for role, name in system.other_players.items() if len({p.get(role) for p in alike}) > 1}
    if not ambiguous:
        return system.title
    # A method with one other role needs no role's name.
    labels = ambiguous.values() if len(system.other_players) == 1 else map(" ".join, ambiguous.items())
    return f"{system.title} with {' and '.join(labels)}"


def common_options(systems: Sequence[System], always: Iterable[str] = ()) -> str:
    """Render the options that have one value in all systems; defaults are left out, unless they are in ``always``."""
    shown_names = list_notable(systems).union(always) - name_options(systems) - conditions_of(systems)
    texts = {name: s.describe([name]) for s in systems for name, _ in s.options if name in shown_names}
    return ", ".join(texts.values())


def sort_systems(systems: Iterable[System]) -> list[System]:
    """Sort systems for tables: by answerer, by the options that all systems have, by method."""
    listed = list(systems)
    shared = set.intersection(*({name for name, _ in s.options} for s in listed)) if listed else set()

    def key(system: System) -> tuple[Any, ...]:
        shared_values = [(name, value) for name, value in system.options if name in shared]
        return system.answering, _sortable(shared_values), _rank(system)

    return sorted(listed, key=key)


def pair_systems(systems: Sequence[System]) -> list[tuple[System, System]]:
    """Return the pairs to compare, the system of the method that is later in the registry first."""
    candidates = [(a, b) for a, b in combinations(systems, 2) if a.answering == b.answering]
    closest: dict[tuple[System, str], int] = {}
    for system, opponent in [*candidates, *((b, a) for a, b in candidates)]:
        key, differences = (system, opponent.method), count_differences(system, opponent)
        closest[key] = min(closest.get(key, differences), differences)
    near = ((a, b) for a, b in candidates if count_differences(a, b) in (closest[a, b.method], closest[b, a.method]))
    return [(b, a) if _rank(a) < _rank(b) else (a, b) for a, b in near]


def group_totals(systems: Sequence[System]) -> dict[System, list[System]]:
    """Group the systems that ran with every answerer, by the system without its answerer; {} for a single answerer."""
    answering = {system.answering for system in systems}
    groups = grouped((system for system in systems if system.players), lambda system: system.answered_by(EVERY))
    totals = {s: members for s, members in groups.items() if len(members) == len(answering)}
    return totals if len(answering) > 1 else {}


def count_differences(system: System, peer: System) -> int:
    """Count the conditions that differ, and the options and players in which the two systems differ."""
    players = peer.other_players
    changed = sum(players.get(role, name) != name for role, name in system.other_players.items())
    return len(find_differing([system, peer])) + changed


def _rank(system: System) -> tuple[Any, ...]:
    order = list(METHODS)
    place = order.index(system.method) if system.method in METHODS else len(order)
    return place, system.method, _sortable(system.options), system.players, _sortable(system.conditions)


def _sortable(options: Iterable[tuple[str, Any]]) -> tuple[tuple[str, float, str], ...]:
    return tuple(
        (name, value if isinstance(value, int | float) else float("inf"), str(value)) for name, value in options
    )


def _defaults(method: str) -> dict[str, Any]:
    if method not in METHODS:
        return {}
    return {name: _hashable(value) for name, value in base.option_values(base.options_type(METHODS[method])()).items()}


def sort_by(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """Sort names by ``order``; those that it lacks come last, in alphabetical order."""
    present = set(names)
    leading = [name for name in order if name in present]
    return [*leading, *sorted(present.difference(leading))]


def _hashable(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else canonical_json(value)


def machine_of(method: str) -> Machine[object] | None:
    """Return a method's machine; None for a method without one, or an unknown method."""
    machine = getattr(METHODS.get(method), "machine", None)
    return machine if isinstance(machine, Machine) else None


def title_of(method: str, state: str) -> str:
    """Return a state's title; "" if the machine gives it none, or for an unknown method."""
    machine = machine_of(method)
    return machine.titles.get(state, "") if machine else ""


def edge_text(method: str, state: str, next_state: str) -> str:
    """Render an edge of a machine as text.

    >>> edge_text("sg_fsm1", "q2", "q4"), edge_text("react", "act", "end"), edge_text("", "q2", "")
    ('q2 Search → q4', 'act → end', 'q2')
    """
    text = f"{state} {title_of(method, state)}".strip()
    return f"{text} → {next_state}" if next_state else text


@dataclass(frozen=True, slots=True)
class Transition:
    """An edge of a system's machine, how often questions took it, and its shares (0-1) in moves."""

    system: System
    state: str
    next_state: str
    count: int
    share: float
    """Of all moves of the machine."""
    share_of_state: float
    """Of the moves from its state."""


@dataclass(frozen=True, slots=True)
class MachineCounts:
    """The state machine of a system: its states in their order, and its edges."""

    system: System
    title: str
    states: tuple[str, ...]
    moves: tuple[Transition, ...]
