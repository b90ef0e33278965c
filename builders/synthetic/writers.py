"""Writers: who words the articles. One file a writer in ``writers/``, whose README has the format.

A wording states the facts whose placeholders stand in it, so what a text says is known exactly.
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

from builders.synthetic.world import MONTHS, Day, Entity, Value, load, one, text_of
from safe_stepwise.errors import UserError

FOLDER = Path(__file__).parent / "writers"

FORMAT: dict[str, Any] = load("articles.yaml")
TOLD: dict[str, list[str]] = FORMAT["told"]
"""What an article of a kind can have to tell. ``/year``: of a date that is known by its year."""
RARE = {
    key: (f"{key}/trade", f"{key}/region", f"{key}/year")
    for key in {key.removesuffix("/year") for keys in TOLD.values() for key in keys}
}
"""Forms that not every value of a relation has."""
BESIDE = frozenset(FORMAT["beside"])
"""Relations whose two ends a sentence can name without saying it."""
REMARKS: dict[str, tuple[str, ...]] = {
    **{f"works {relation}": ("work",) for relation in FORMAT["works"]},
    **{f"aside {kind}": ("near",) for kind in FORMAT["aside"]},
    "aside filler": (),
    **{f"beside {relation}": ("other",) for relation in (*FORMAT["beside"], "record label of a person")},
    "apart hatnote": ("other",),
    "apart remark": ("meant", "other"),
}
"""Sentences that are no fact of their subject's, and the placeholders of what they are about."""
WORDS, SOME, FORMS = frozenset(FORMAT["words"].split()), FORMAT["some"], FORMAT["forms"]
REST = "{remarks}"
"""Among the facts of a kind: here stands what is no fact."""
LEAST = 2
"""Wordings that each fact needs."""

K = TypeVar("K")


def _th(day: int) -> str:
    last = 0 if 10 < day < 20 else day % 10
    return f"{day}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"


_DAYS = {day: {"day": str(day), "dd": f"{day:02}", "th": _th(day)} for day in range(1, 32)}
_MONTHS = {n: {"month": month, "mon": month[:3], "mm": f"{n:02}"} for n, month in enumerate(MONTHS, 1)}


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence with placeholders.

    ``fields`` are its placeholders as (placeholder, "a" or "A" where it takes an article, what it is of, form),
    ``needs`` what an article must still have to tell for it to fit, ``tells`` the facts that it states.
    """

    text: str
    fields: tuple[tuple[str, str, str, str], ...]
    needs: frozenset[str]
    tells: tuple[str, ...]


class Choice:
    """Wordings to choose from."""

    def __init__(self, wordings: Iterable[Wording]) -> None:
        self.wordings = tuple(wordings)
        self.needs = frozenset[str]().union(*(each.needs for each in self.wordings))
        self.fitting: dict[frozenset[str], list[Wording]] = {}

    def draw(self, rng: Random, have: set[str]) -> Wording:
        """One that fits what is left to tell; of two at random that which says more."""
        key = self.needs & have
        fitting = self.fitting.get(key)
        if fitting is None:
            fitting = [each for each in self.wordings if each.needs <= key]
            self.fitting[key] = fitting
        first, second = one(rng, fitting), one(rng, fitting)
        return first if len(first.tells) >= len(second.tells) else second


@dataclass(frozen=True, slots=True)
class Writer:
    """One author's wordings by kind of article; those of facts by what they tell, in order."""

    name: str
    dates: tuple[str, str]
    place: str
    openings: Mapping[str, Choice]
    facts: Mapping[str, Mapping[str, Choice]]
    remarks: Mapping[str, list[Wording]]

    def day(self, day: Day) -> str:
        """A day as this author writes it."""
        return self.dates[day.month_first].format_map({**_MONTHS[day.month], **_DAYS[day.day], "year": day.year})

    def town(self, name: str) -> str:
        """A town's name; one that is told with its region as this author tells it."""
        town, comma, region = name.partition(", ")
        return self.place.format(town=town, region=region) if comma else name


def names() -> list[str]:
    """The writers that there are, each a file."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


@cache
def writer(name: str) -> Writer:
    """The writer of that name; UserError when there is none or the file isn't complete."""
    if name not in names():
        raise UserError(f"no synthetic writer {name!r}: choose from {', '.join(names())}")
    return read_writer(FOLDER / f"{name}.yaml")


def spellings(value: Value) -> list[str]:
    """Every way in which a text may write a value."""
    if isinstance(value, Day):
        return [writer(name).day(value) for name in names()]
    demonym = value.demonym if isinstance(value, Entity) else ""
    return [text_of(value), *([demonym] if demonym else [])]


def read_writer(file: Path) -> Writer:
    """The writer in a file; UserError, one line that names the place, when something is amiss."""
    try:
        return _Reading(file.stem, load(file)).writer()
    except yaml.YAMLError as error:
        what = " ".join(str(error).split())
        raise UserError(f"writer {file}: not YAML: {what}") from error
    except _Amiss as error:
        raise UserError(f"writer {file}: {error}; writers/README.md has the format") from error


class _Amiss(Exception):
    pass


class _Reading:
    """A writer's file as it is read and checked."""

    def __init__(self, name: str, found: Any) -> None:
        self.name = name
        _keys("the file", found, ("dates", "place", "opening", "facts", "remarks"), ("parts",))
        self.found = found
        parts: dict[str, Any] = found.get("parts", {})
        if taken := [key for key in parts if key in _PLACEHOLDERS]:
            raise _Amiss(f"parts: {taken[0]!r} is the name of a placeholder")
        self.parts = {f"{{{key}}}": _texts(f"parts {key}", said) for key, said in parts.items()}

    def writer(self) -> Writer:
        found = self.found
        for section, known in (("opening", TOLD), ("facts", TOLD), ("remarks", REMARKS)):
            _keys(section, found[section], known)
        dates = [_filled("dates", each, ("year",), _DAY) for each in _texts("dates", found["dates"])]
        if len(dates) > 2:
            raise _Amiss("dates: one way of writing a day or two")
        (place,) = _texts("place", [found["place"]])
        place = _filled("place", place, ("town", "region"), ("town", "region"))
        return Writer(
            self.name, (dates[0], dates[-1]), place,
            {kind: self._opening(kind) for kind in TOLD},
            {kind: self._facts(kind) for kind in TOLD},
            {key: self._remarks(key) for key in REMARKS},
        )  # fmt: skip

    def _opening(self, kind: str) -> Choice:
        made = self._wordings(f"opening {kind}", self.found["opening"][kind], TOLD[kind])
        if all(each.needs for each in made):
            raise _Amiss(f"opening {kind}: no wording does without a fact")
        return Choice(made)

    def _facts(self, kind: str) -> dict[str, Choice]:
        said = _texts(f"facts {kind}", self.found["facts"][kind])
        made: list[Wording] = []
        order: dict[str, None] = {}
        for text in said:
            found = [] if text == REST else self._wordings(f"facts {kind}", [text], TOLD[kind])
            made += found
            order |= dict.fromkeys([REST] if text == REST else [key for each in found for key in each.tells])
        for key in TOLD[kind]:
            if sum(each.needs == {key} for each in made) < LEAST:
                raise _Amiss(f"facts {kind}: {LEAST} wordings must have {{{key}}} and no other fact")
        return {key: Choice(each for each in made if key in each.tells) for key in order}

    def _remarks(self, key: str) -> list[Wording]:
        made = self._wordings(key, self.found["remarks"][key], REMARKS[key])
        for each in made:
            if key.startswith(("beside", "works")) and not _SUBJECTS & {of for _, _, of, _ in each.fields}:
                raise _Amiss(f"remarks {key}: {each.text!r} lacks {{{REMARKS[key][0]}}}")
        return made

    def _wordings(self, where: str, said: Any, about: Iterable[str]) -> list[Wording]:
        known = {key.partition("/")[0] for key in about}
        texts = [text for each in _texts(where, said) for text in self._without_parts(each)]
        return [_wording(where, text, known) for text in texts]

    def _without_parts(self, text: str) -> Iterable[str]:
        """The text with each choice of its parts."""
        part = next((part for part in self.parts if part in text), None)
        if part is None:
            return [text]
        chosen = (text.replace(part, each, 1) for each in self.parts[part])
        return [each for one in chosen for each in self._without_parts(one)]


def _keys(where: str, found: Any, needed: Iterable[str], allowed: Iterable[str] = ()) -> None:
    if not isinstance(found, dict):
        raise _Amiss(f"{where} is no mapping")
    if missing := [key for key in needed if key not in found]:
        raise _Amiss(f"{where} lacks {missing[0]!r} ({len(missing)} missing)")
    if unknown := [key for key in found if key not in {*needed, *allowed}]:
        raise _Amiss(f"{where} has an unknown {unknown[0]!r}")


def _texts(where: str, said: Any) -> list[str]:
    if not isinstance(said, list) or not said or not all(isinstance(each, str) for each in said):
        raise _Amiss(f"{where} is no list of wordings")
    return said


def _placeholders(where: str, text: str) -> list[str]:
    try:
        return [field for _, field, _, _ in Formatter().parse(text) if field is not None]
    except ValueError as error:
        raise _Amiss(f"{where}: {text!r}: {error}") from error


def _filled(where: str, text: str, needed: Iterable[str], known: Iterable[str]) -> str:
    """The text, if its placeholders are known and those needed among them."""
    found = _placeholders(where, text)
    for each in found:
        if each not in known:
            raise _Amiss(f"{where}: {text!r}: unknown placeholder {{{each}}}")
    for each in needed:
        if each not in found:
            raise _Amiss(f"{where}: {text!r} lacks {{{each}}}")
    return text


def _wording(where: str, text: str, known: set[str]) -> Wording:
    text = _ARTICLE.sub(r"{\1 ", text)
    fields, needs, tells = [], set[str](), dict[str, None]()
    for field in _placeholders(where, text):
        article = field[0] if field[:2] in ("a ", "A ") else ""
        bare = field[2:] if article else field
        of, _, form = bare.partition("/")
        fields.append((field, article, of, form))
        if of in known and form in FORMS:
            if of not in _SUBJECTS:
                needs.add(bare if bare in RARE[of] else of)
                tells[bare if form == "year" else of] = None
        elif bare in SOME:
            needs.add(SOME[bare])
        elif bare not in WORDS:
            raise _Amiss(f"{where}: {text!r}: unknown placeholder {{{bare}}}")
    return Wording(text, tuple(dict.fromkeys(fields)), frozenset(needs), tuple(tells))


_DAY = (*_DAYS[1], *_MONTHS[1], "year")
_ARTICLE = re.compile(r"\b([Aa])\(n\) \{")
_SUBJECTS = {name for names in REMARKS.values() for name in names}
_PLACEHOLDERS = {*WORDS, *SOME, *_SUBJECTS, *(key for keys in TOLD.values() for key in keys)}
