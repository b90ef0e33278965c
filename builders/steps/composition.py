"""Chooses the rows to publish from those that could be made: exact numbers, balanced over classes.

A hash of (seed, id) decides each choice, so the order of the candidates does not matter.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import networkx as nx

from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import IDEAL, INJECTED, REFINED, Origin
from safe_stepwise.taxonomy import ERROR_TYPES

_TYPES = tuple(entry.name for entry in ERROR_TYPES)
CLASSES = (IDEAL, REFINED, *_TYPES)
"""Classes of rows: ideal, refined, and injected by error type."""
ROWS_PER_QUESTION = 8
"""Default highest number of rows of a question."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The number of rows and questions of a set, and of each class of rows (SAFE v1, Table 7).

    ``questions`` None means any number. ``ideal`` is a share of the rows (0-1), ``refined`` a number of rows (None:
    all available); all others are injected. ``per_benchmark`` has (rows, questions) of each benchmark, summing to the
    totals; None distributes rows evenly. No question has more than ``rows_per_question``.
    """

    rows: int
    questions: int | None = None
    ideal: float = 0.34
    refined: int | None = 0
    per_benchmark: Mapping[str, tuple[int, int]] | None = None
    rows_per_question: int = ROWS_PER_QUESTION

    def __post_init__(self) -> None:
        if not 0 <= self.ideal <= 1:
            raise UserError(f"ideal {self.ideal}: a share lies between 0 and 1")
        if self.rows_per_question < 1:
            raise UserError("rows_per_question has to be 1 or more")
        refined = self.refined or 0
        if refined < 0 or self.rows < 1:
            raise UserError("rows have to be 1 or more, refined rows not negative")
        if refined > self.rows - round(self.ideal * self.rows):
            raise UserError(f"{refined} refined rows and {self.ideal:.0%} ideal are too many")
        _check_questions("", self.rows, self.questions, self.rows_per_question)
        if self.per_benchmark is not None:
            rows, questions = (sum(target[i] for target in self.per_benchmark.values()) for i in (0, 1))
            if rows != self.rows or self.questions not in (None, questions):
                raise UserError(
                    f"per_benchmark sums to {rows} rows of {questions} questions, not to "
                    f"{self.rows} of {self.questions}"
                )
            for name, target in self.per_benchmark.items():
                _check_questions(f"{name}: ", *target, self.rows_per_question)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fields of a row that the choice needs."""

    id: str
    benchmark: str
    question: str
    error_type: str
    position: int
    origin: Origin
    borrowed: str | None = None
    """The id of the question that lent a passage to this row's, if there is one."""
    incomplete: bool = False
    """Whether the row belongs to the incomplete-evidence set (`StepRow.incomplete`)."""
    family: str = ""
    """The weakness of a verifier that a refined row shows; empty if none is recorded."""

    @classmethod
    def of_row(cls, row: StepRow) -> "Candidate":
        question, label, position = row.question, row.feedback.error_type, row.step.number
        identity = (row.id, question.benchmark, question.id, label, position, row.origin)
        return cls(*identity, row.borrowed, row.incomplete, row.family)

    @property
    def row_class(self) -> str:
        """One of `CLASSES`."""
        return self.error_type if self.origin == INJECTED else self.origin

    @property
    def place(self) -> str:
        """The key over which rows of one class are spread: the weakness of a verifier, else the position."""
        return self.family or f"{self.position:06}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Ids of the chosen rows, and ``shortfalls`` by benchmark and class, in whose place others were chosen."""

    ids: frozenset[str]
    shortfalls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def choose(candidates: Iterable[Candidate], composition: Composition, seed: int) -> Chosen:
    """Choose exactly ``composition.rows`` rows, one of each question at least; raise ``UserError`` for fewer."""
    pools: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda c: rank(seed, c.id)):
        pools[candidate.benchmark].append(candidate)
    available, shortage = available_rows([c for pool in pools.values() for c in pool], composition)
    if shortage:
        raise UserError(
            f"{composition.rows:,} rows are wanted, but {shortage}; ask for --rows {available} or fewer, or give it "
            "more questions (--pool N tries more of those it has)"
        )
    ids: set[str] = set()
    shortfalls = {}
    for benchmark, share in _shares(pools, composition).items():
        picked, short = _choose(benchmark, pools.get(benchmark, []), share, seed)
        ids |= {candidate.id for candidate in picked}
        if short:
            shortfalls[benchmark] = short
    return Chosen(frozenset(ids), shortfalls)


def available_rows(candidates: Collection[Candidate], composition: Composition) -> tuple[int, str]:
    """Return how many rows the candidates give a composition, and, if they are too few, that in words."""
    available = _room(candidates, composition.rows_per_question)
    if available >= composition.rows:
        return available, ""
    return available, f"only {available:,} could be made{_capped(candidates, composition.rows_per_question)}"


def rank(seed: int, id_: str) -> bytes:
    """Return a random sort key of 16 bytes that depends only on seed and id."""
    return hashlib.sha256(f"{seed}\0{id_}".encode("utf-8", "replace")).digest()[:16]


def fill(number: int, room: Mapping[str, int]) -> dict[str, int]:
    """Distribute ``number`` as evenly as ``room`` allows; fewer in all if the room is smaller.

    >>> fill(10, {"a": 2, "b": 9, "c": 9})
    {'a': 2, 'b': 4, 'c': 4}
    """
    shares = dict.fromkeys(room, 0)
    unfilled = [name for name in room if room[name] > 0]
    while number and unfilled:
        even_share = number // len(unfilled)
        if even_share == 0:
            for name in unfilled[:number]:
                shares[name] += 1
            break
        for name in unfilled:
            increase = min(even_share, room[name] - shares[name])
            shares[name] += increase
            number -= increase
        unfilled = [name for name in unfilled if shares[name] < room[name]]
    return shares


def _room(pool: Iterable[Candidate], per_question: int) -> int:
    """Return the number of rows of a pool with at most ``per_question`` of each question."""
    return sum(min(number, per_question) for number in Counter((c.benchmark, c.question) for c in pool).values())


def _capped(candidates: Collection[Candidate], per_question: int) -> str:
    """Describe the effect of the cap on these candidates for a message; empty if it has none."""
    if len(candidates) == _room(candidates, per_question):
        return ""
    return (
        f" with at most {per_question} rows a question ({len(candidates):,} without that: raise --rows-per-question)"
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """The share of one benchmark in a composition."""

    rows: int
    questions: int | None
    ideal: int
    refined: int
    per_question: int
    """Rows of a question."""


def _shares(pools: Mapping[str, Sequence[Candidate]], composition: Composition) -> dict[str, _Share]:
    questions: dict[str, int] = {}
    per_question = composition.rows_per_question
    if composition.per_benchmark is not None:
        rows = {name: n for name, (n, _) in sorted(composition.per_benchmark.items())}
        questions = {name: q for name, (_, q) in composition.per_benchmark.items()}
    else:
        rows = fill(composition.rows, {name: _room(pools[name], per_question) for name in sorted(pools)})
        if composition.questions is not None:
            room = {n: min(len({c.question for c in pools[n]}), rows[n]) for n in rows}
            questions = fill(composition.questions, room)
            if (most_questions := sum(room.values())) < composition.questions:
                raise UserError(
                    f"{composition.questions:,} questions are wanted, but only {most_questions:,} have a row; ask for "
                    "fewer, or give it more verified questions"
                )
    ideal = _split(round(composition.ideal * composition.rows), rows)
    refined = _refined(pools, composition, {name: rows[name] - ideal[name] for name in rows})
    return {n: _Share(rows[n], questions.get(n), ideal[n], refined[n], per_question) for n in rows}


def _refined(
    pools: Mapping[str, Sequence[Candidate]], composition: Composition, room: Mapping[str, int]
) -> dict[str, int]:
    """Return the number of refined rows for each benchmark, as evenly distributed as the supply allows."""
    refined = {name: sum(c.origin == REFINED for c in pools.get(name, ())) for name in room}
    available = {name: min(refined[name], room[name]) for name in room}
    number = sum(available.values()) if composition.refined is None else composition.refined
    shares = fill(number, available)
    # What there is too little of is wanted wherever it would have had room.
    extra = fill(number - sum(shares.values()), {name: room[name] - shares[name] for name in room})
    return {name: shares[name] + extra[name] for name in room}


def _split(number: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Split a number into whole shares in proportion to the weights (largest remainders)."""
    total = sum(weights.values())
    exact = {name: number * weight / total for name, weight in weights.items()}
    shares = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(weights, key=lambda name: (shares[name] - exact[name], name))
    for name in by_remainder[: number - sum(shares.values())]:
        shares[name] += 1
    return shares


def _choose(benchmark: str, pool: list[Candidate], share: _Share, seed: int) -> tuple[list[Candidate], dict[str, int]]:
    """Choose one benchmark's rows from a pool in random order; return them and the shortfalls."""
    short: dict[str, int] = {}
    eligible, suffix = pool, ""
    if share.questions is not None:
        lacking = share.questions - len({c.question for c in pool})
        if lacking > 0:
            short["questions"] = lacking
        questions, suffix = _draw_questions(pool, share, seed), f" of {share.questions:,} questions"
        eligible = [c for c in pool if c.question in questions]
    if (available := _room(eligible, share.per_question)) < share.rows:
        raise UserError(
            f"{benchmark}: {share.rows:,} rows are wanted{suffix}, but only {available:,} could be made"
            f"{_capped(eligible, share.per_question)}; ask for fewer rows, or give it more verified questions"
        )
    picked = _pick(eligible, share)
    per_type, counts = (share.rows - share.ideal - share.refined) // len(_TYPES), Counter(c.row_class for c in picked)
    quota = {IDEAL: share.ideal, REFINED: share.refined, **dict.fromkeys(_TYPES, per_type)}
    return picked, short | {name: quota[name] - counts[name] for name in CLASSES if quota[name] > counts[name]}


def _draw_questions(pool: Sequence[Candidate], share: _Share, seed: int) -> set[str]:
    """Draw the questions of a share: first those with rows of rare classes, then any."""
    assert share.questions is not None
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for candidate in pool:
        rows[candidate.question][candidate.row_class] += 1
    names = sorted(rows, key=lambda name: rank(seed, name))
    supply = Counter(c.row_class for c in pool)
    quota = _quota(share, supply)
    questions: set[str] = set()
    for row_class in sorted(quota, key=lambda c: (supply[c] / max(quota[c], 1), c)):
        covered = sum(rows[name][row_class] for name in questions)
        for name in names:
            if covered >= quota[row_class] or len(questions) >= share.questions:
                break
            if name not in questions and rows[name][row_class]:
                questions.add(name)
                covered += rows[name][row_class]
    questions |= {*islice((name for name in names if name not in questions), share.questions - len(questions))}
    room = {name: min(counts.total(), share.per_question) for name, counts in rows.items()}
    if sum(room[name] for name in questions) < share.rows:
        names.sort(key=lambda name: -room[name])
        return set(names[: share.questions])
    return questions


def _quota(share: _Share, supply: Counter[str]) -> dict[str, int]:
    """Return the number of rows by class, as near to the share as the supply allows; they sum to its rows."""
    quota = {IDEAL: min(share.ideal, supply[IDEAL]), REFINED: min(share.refined, supply[REFINED])}
    injected = share.rows - sum(quota.values())
    quota |= fill(injected, {name: supply[name] for name in _TYPES})
    for name in (IDEAL, REFINED):
        missing = share.rows - sum(quota.values())
        quota[name] += min(missing, supply[name] - quota[name])
    return quota


def _pick(pool: Sequence[Candidate], share: _Share) -> list[Candidate]:
    """Pick a share's rows, spread over their places; one of every question comes first if their number is fixed."""
    supply = Counter(c.row_class for c in pool)
    quota = _quota(share, supply)
    picking = _Picking(pool, share.per_question)
    if share.questions is not None:
        classes = {name: [*by_class] for name, by_class in picking.options.items()}
        for question, row_class in _assign_classes(classes, quota).items():
            candidates = picking.options[question][row_class]
            picking.pick(min(candidates, key=lambda c: picking.used[row_class][c.place]))
    for name in sorted(quota, key=lambda c: (supply[c] / max(quota[c], 1), c)):
        picking.spread(name, quota[name] - picking.used[name].total())
    while missing := share.rows - len(picking.picked):
        room = picking.room()
        errors = {name: room.get(name, 0) for name in _TYPES}  # if there are any left to take
        for name, number in fill(missing, errors if any(errors.values()) else room).items():
            picking.spread(name, number)
    return list(picking.picked.values())


class _Picking:
    """Picks rows from a pool, in its order, and keeps count."""

    def __init__(self, pool: Sequence[Candidate], per_question: int) -> None:
        self.picked: dict[str, Candidate] = {}
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        """By class, then place."""
        self.options: dict[str, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
        """By question, then class."""
        self._waiting: dict[str, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
        self._left: dict[str, int] = {}
        for candidate in pool:
            self.options[candidate.question][candidate.row_class].append(candidate)
            self._waiting[candidate.row_class][candidate.place].append(candidate)
            self._left[candidate.question] = per_question

    def pick(self, candidate: Candidate) -> None:
        self.picked[candidate.id] = candidate
        self.used[candidate.row_class][candidate.place] += 1
        self._left[candidate.question] -= 1

    def room(self) -> dict[str, int]:
        """Return the number of candidates by class that could be picked next."""
        return {
            name: sum(self._is_free(c) for waiting in places.values() for c in waiting)
            for name, places in self._waiting.items()
        }

    def spread(self, row_class: str, number: int) -> None:
        """Pick ``number`` rows of a class, or all available ones, evenly over places."""
        queues = {
            place: [c for c in reversed(waiting) if self._is_free(c)]
            for place, waiting in sorted(self._waiting[row_class].items())
        }
        counts = self.used[row_class]
        while number > 0:
            for queue in queues.values():
                while queue and not self._is_free(queue[-1]):
                    queue.pop()
            unfilled = [place for place, queue in queues.items() if queue]
            if not unfilled:
                break
            self.pick(queues[min(unfilled, key=lambda p: (counts[p], p))].pop())
            number -= 1

    def _is_free(self, candidate: Candidate) -> bool:
        return candidate.id not in self.picked and self._left[candidate.question] > 0


def _assign_classes(classes: Mapping[str, Sequence[str]], quota: dict[str, int]) -> dict[str, str]:
    """Assign a class to every question; where the quota has no room, another class gives up a row."""
    assigned = cover(classes, quota)
    used = Counter(assigned.values())
    for question in classes:
        if question not in assigned:
            row_class = classes[question][0]
            yielding = max(quota, key=lambda name: (quota[name] - used[name], name))
            quota[yielding] -= 1
            quota[row_class] += 1
            assigned[question] = row_class
            used[row_class] += 1
    return assigned


def _check_questions(prefix: str, rows: int, questions: int | None, per_question: int) -> None:
    if questions is None:
        return
    if not 1 <= questions <= rows:
        raise UserError(f"{prefix}{questions} questions: each needs a row, and there are {rows}")
    if questions * per_question < rows:
        raise UserError(
            f"{prefix}{questions} questions with at most {per_question} rows each are too few for {rows} "
            "rows; ask for more questions, or raise --rows-per-question"
        )


def cover(options: Mapping[str, Sequence[str]], room: Mapping[str, int]) -> dict[str, str]:
    """Assign classes to as many questions as possible: a maximum flow from questions to classes with this room.

    >>> cover({"q1": ["a", "b"], "q2": ["a"]}, {"a": 1, "b": 1}) == {"q1": "b", "q2": "a"}
    True
    """
    # Nodes are numbers, as texts in the sets of networkx would have another order in each process.
    source, sink = 0, len(options) + 1
    classes = {name: -number for number, name in enumerate(room, 1)}
    flows = nx.DiGraph()
    flows.add_nodes_from((source, sink))
    flows.add_edges_from((classes[name], sink, {"capacity": number}) for name, number in room.items())
    for number, names in enumerate(options.values(), 1):
        flows.add_edge(source, number, capacity=1)
        flows.add_edges_from(((number, classes[name]) for name in names), capacity=1)
    _, flow = nx.maximum_flow(flows, source, sink)
    chosen = ((question, name) for question, names in options.items() for name in names)
    numbers = {question: number for number, question in enumerate(options, 1)}
    return {question: name for question, name in chosen if flow[numbers[question]][classes[name]]}
