"""Reads writers, the sets of wordings for articles: one file each in ``writers/``, whose README has the format.

A wording states the facts whose placeholders it has, so the facts that a text states are known exactly.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from string import Formatter
from typing import Any, TypeVar

import yaml

from builders.synthetic.world import MONTHS, Day, Entity, Value, load, pick, text_of
from safe_stepwise.errors import UserError

FOLDER = Path(__file__).parent / "writers"

FORMAT: dict[str, Any] = load("articles.yaml")
FACTS: dict[str, list[str]] = FORMAT["told"]
"""Facts that an article of each kind can state; ``/year`` is a date of which only the year is known."""
SPECIAL_FORMS = {
    key: (f"{key}/trade", f"{key}/region", f"{key}/year")
    for key in {key.removesuffix("/year") for keys in FACTS.values() for key in keys}
}
"""Forms that only some values of a relation have."""
BESIDE = frozenset(FORMAT["beside"])
"""Relations whose two ends a sentence can name without stating the relation."""
REMARKS: dict[str, tuple[str, ...]] = {
    **{f"works {relation}": ("work",) for relation in FORMAT["works"]},
    **{f"aside {kind}": ("near",) for kind in FORMAT["aside"]},
    "aside filler": (),
    **{f"beside {relation}": ("other",) for relation in (*FORMAT["beside"], "record label of a person")},
    "apart hatnote": ("other",),
    "apart remark": ("meant", "other"),
}
"""Sentences that state no fact of their subject, with their placeholders."""
WORDS, OPTIONAL, FORMS = frozenset(FORMAT["words"].split()), FORMAT["some"], FORMAT["forms"]
REMARKS_MARK = "{remarks}"
"""Marks the place of remarks among the facts of a kind."""
MIN_WORDINGS = 2
"""Wordings that each fact needs at least."""

K = TypeVar("K")


def _th(day: int) -> str:
    last = 0 if 10 < day < 20 else day % 10
    return f"{day}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"


_DAYS = {day: {"day": str(day), "dd": f"{day:02}", "th": _th(day)} for day in range(1, 32)}
_MONTHS = {n: {"month": month, "mon": month[:3], "mm": f"{n:02}"} for n, month in enumerate(MONTHS, 1)}


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence with placeholders.

    ``fields`` are its placeholders as (placeholder, "a" or "A" if it takes an article, relation or word, form),
    ``requires`` the facts that an article must still have to state for it to fit, ``states`` the facts that it states.
    """

    text: str
    fields: tuple[tuple[str, str, str, str], ...]
    requires: frozenset[str]
    states: tuple[str, ...]


class WordingChoice:
    """A set of wordings, from which an article draws those that fit."""

    def __init__(self, wordings: Iterable[Wording]) -> None:
        self.wordings = tuple(wordings)
        self.requires = frozenset[str]().union(*(wording.requires for wording in self.wordings))
        self.fitting: dict[frozenset[str], list[Wording]] = {}

    def draw(self, rng: Random, available: set[str]) -> Wording:
        """Draw two wordings that fit the available facts, and return the one that states more."""
        key = self.requires & available
        if (fitting := self.fitting.get(key)) is None:
            fitting = [wording for wording in self.wordings if wording.requires <= key]
            self.fitting[key] = fitting
        first, rival = pick(rng, fitting), pick(rng, fitting)
        return first if len(first.states) >= len(rival.states) else rival


@dataclass(frozen=True, slots=True)
class Writer:
    """An author's wordings by kind of article; those of facts by fact, in order."""

    name: str
    dates: tuple[str, str]
    place: str
    openings: Mapping[str, WordingChoice]
    facts: Mapping[str, Mapping[str, WordingChoice]]
    remarks: Mapping[str, list[Wording]]

    def day(self, day: Day) -> str:
        return self.dates[day.month_first].format_map({**_MONTHS[day.month], **_DAYS[day.day], "year": day.year})

    def town(self, name: str) -> str:
        """Render a town's name, and its region, if it has one, as this author does."""
        town, comma, region = name.partition(", ")
        return self.place.format(town=town, region=region) if comma else name


def names() -> list[str]:
    """Return the names of all writers, each a file."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


@cache
def writer(name: str) -> Writer:
    """Read the writer of that name; raise UserError when there is none or its file isn't complete."""
    if name not in names():
        raise UserError(f"no synthetic writer {name!r}: choose from {', '.join(names())}")
    return read_writer(FOLDER / f"{name}.yaml")


def written_forms(value: Value) -> list[str]:
    """Return every form in which a text may write a value: a day as each writer does, a name with its demonym."""
    if isinstance(value, Day):
        return [writer(name).day(value) for name in names()]
    demonym = value.demonym if isinstance(value, Entity) else ""
    return [text_of(value), *([demonym] if demonym else [])]


def read_writer(file: Path) -> Writer:
    """Read a writer from a file; raise UserError, with the place, for a mistake in it."""
    try:
        return _Reader(file.stem, load(file)).writer()
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise UserError(f"writer {file}: not YAML: {problem}") from error
    except _FormatError as error:
        raise UserError(f"writer {file}: {error}; writers/README.md has the format") from error


class _FormatError(Exception):
    pass


class _Reader:
    """Reads and checks a writer's file."""

    def __init__(self, name: str, content: Any) -> None:
        self.name = name
        _keys("the file", content, ("dates", "place", "opening", "facts", "remarks"), ("parts",))
        self.content = content
        fragments: dict[str, Any] = content.get("parts", {})
        if reserved := [key for key in fragments if key in _PLACEHOLDERS]:
            raise _FormatError(f"parts: {reserved[0]!r} is the name of a placeholder")
        self.fragments = {f"{{{key}}}": _texts(f"parts {key}", texts) for key, texts in fragments.items()}

    def writer(self) -> Writer:
        content = self.content
        for section, allowed in (("opening", FACTS), ("facts", FACTS), ("remarks", REMARKS)):
            _keys(section, content[section], allowed)
        dates = [_filled("dates", text, ("year",), _DAY) for text in _texts("dates", content["dates"])]
        if len(dates) > 2:
            raise _FormatError("dates: one way of writing a day or two")
        (place,) = _texts("place", [content["place"]])
        place = _filled("place", place, ("town", "region"), ("town", "region"))
        return Writer(
            self.name, (dates[0], dates[-1]), place,
            {kind: self._opening(kind) for kind in FACTS},
            {kind: self._facts(kind) for kind in FACTS},
            {key: self._remarks(key) for key in REMARKS},
        )  # fmt: skip

    def _opening(self, kind: str) -> WordingChoice:
        wordings = self._wordings(f"opening {kind}", self.content["opening"][kind], FACTS[kind])
        if all(wording.requires for wording in wordings):
            raise _FormatError(f"opening {kind}: no wording does without a fact")
        return WordingChoice(wordings)

    def _facts(self, kind: str) -> dict[str, WordingChoice]:
        texts = _texts(f"facts {kind}", self.content["facts"][kind])
        wordings: list[Wording] = []
        order: dict[str, None] = {}
        for text in texts:
            if text == REMARKS_MARK:
                order[text] = None
                continue
            variants = self._wordings(f"facts {kind}", [text], FACTS[kind])
            wordings += variants
            order |= dict.fromkeys(key for wording in variants for key in wording.states)
        for key in FACTS[kind]:
            if sum(wording.requires == {key} for wording in wordings) < MIN_WORDINGS:
                raise _FormatError(f"facts {kind}: {MIN_WORDINGS} wordings must have {{{key}}} and no other fact")
        return {key: WordingChoice(wording for wording in wordings if key in wording.states) for key in order}

    def _remarks(self, key: str) -> list[Wording]:
        wordings = self._wordings(key, self.content["remarks"][key], REMARKS[key])
        for wording in wordings:
            if key.startswith(("beside", "works")) and not _SUBJECTS & {topic for _, _, topic, _ in wording.fields}:
                raise _FormatError(f"remarks {key}: {wording.text!r} lacks {{{REMARKS[key][0]}}}")
        return wordings

    def _wordings(self, place: str, value: Any, about: Iterable[str]) -> list[Wording]:
        allowed = {key.partition("/")[0] for key in about}
        texts = [variant for text in _texts(place, value) for variant in self._expand(text)]
        return [_wording(place, variant, allowed) for variant in texts]

    def _expand(self, text: str) -> Iterable[str]:
        """Replace the fragments in a text by each of their choices."""
        if (fragment := next((fragment for fragment in self.fragments if fragment in text), None)) is None:
            return [text]
        chosen = (text.replace(fragment, choice, 1) for choice in self.fragments[fragment])
        return [choice for chosen_text in chosen for choice in self._expand(chosen_text)]


def _keys(place: str, content: Any, needed: Iterable[str], allowed: Iterable[str] = ()) -> None:
    if not isinstance(content, dict):
        raise _FormatError(f"{place} is no mapping")
    if missing := [key for key in needed if key not in content]:
        raise _FormatError(f"{place} lacks {missing[0]!r} ({len(missing)} missing)")
    if unknown := [key for key in content if key not in {*needed, *allowed}]:
        raise _FormatError(f"{place} has an unknown {unknown[0]!r}")


def _texts(place: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise _FormatError(f"{place} is no list of wordings")
    return value


def _placeholders(place: str, text: str) -> list[str]:
    try:
        return [field for _, field, _, _ in Formatter().parse(text) if field is not None]
    except ValueError as error:
        raise _FormatError(f"{place}: {text!r}: {error}") from error


def _filled(place: str, text: str, needed: Iterable[str], allowed: Iterable[str]) -> str:
    """Return the text, if all its placeholders are allowed and the needed ones are among them."""
    fields = _placeholders(place, text)
    for field in fields:
        if field not in allowed:
            raise _FormatError(f"{place}: {text!r}: unknown placeholder {{{field}}}")
    for field in needed:
        if field not in fields:
            raise _FormatError(f"{place}: {text!r} lacks {{{field}}}")
    return text


def _wording(place: str, text: str, allowed: set[str]) -> Wording:
    text = _ARTICLE.sub(r"{\1 ", text)
    fields, requires, states = [], set[str](), dict[str, None]()
    for field in _placeholders(place, text):
        article = field[0] if field[:2] in ("a ", "A ") else ""
        bare = field[2:] if article else field
        topic, _, form = bare.partition("/")
        fields.append((field, article, topic, form))
        if topic in allowed and form in FORMS:
            if topic not in _SUBJECTS:
                requires.add(bare if bare in SPECIAL_FORMS[topic] else topic)
                states[bare if form == "year" else topic] = None
        elif bare in OPTIONAL:
            requires.add(OPTIONAL[bare])
        elif bare not in WORDS:
            raise _FormatError(f"{place}: {text!r}: unknown placeholder {{{bare}}}")
    return Wording(text, tuple(dict.fromkeys(fields)), frozenset(requires), tuple(states))


_DAY = (*_DAYS[1], *_MONTHS[1], "year")
_ARTICLE = re.compile(r"\b([Aa])\(n\) \{")
_SUBJECTS = {name for names in REMARKS.values() for name in names}
_PLACEHOLDERS = {*WORDS, *OPTIONAL, *_SUBJECTS, *(key for keys in FACTS.values() for key in keys)}
