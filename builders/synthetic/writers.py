"""Reads writers, the sets of wordings for articles: one file each in ``writers/``, whose README has the format.

A wording states the facts whose placeholders it has, so the facts that a text states are known exactly.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from string import Formatter
from typing import Any

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
OPTIONAL, FORMS = FORMAT["some"], FORMAT["forms"]
REMARKS_MARK = "{remarks}"
"""Marks the place of remarks among the facts of a kind."""
MIN_WORDINGS = 2
"""Wordings that each fact needs at least."""


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
    """Read the writer of that name; raise UserError when there is none."""
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
    """Read a writer from a file in the format of ``writers/README.md``, which tests hold all writers to."""
    content = load(file)
    fragments = {f"{{{key}}}": texts for key, texts in content.get("parts", {}).items()}

    def read(texts: Iterable[str], keys: Iterable[str]) -> list[Wording]:
        topics = {key.partition("/")[0] for key in keys}
        return [_wording(variant, topics) for text in texts for variant in _expand(text, fragments)]

    def read_facts(kind: str) -> dict[str, WordingChoice]:
        """Group wordings by the facts that they state; `REMARKS_MARK` keeps its place among them."""
        groups: dict[str, list[Wording]] = {}
        for text in content["facts"][kind]:
            if text == REMARKS_MARK:
                groups[text] = []
            for wording in read([text], FACTS[kind]) if text != REMARKS_MARK else ():
                for key in wording.states:
                    groups.setdefault(key, []).append(wording)
        return {key: WordingChoice(wordings) for key, wordings in groups.items()}

    return Writer(
        name=file.stem,
        dates=(content["dates"][0], content["dates"][-1]),
        place=content["place"],
        openings={kind: WordingChoice(read(content["opening"][kind], FACTS[kind])) for kind in FACTS},
        facts={kind: read_facts(kind) for kind in FACTS},
        remarks={key: read(content["remarks"][key], subjects) for key, subjects in REMARKS.items()},
    )


def _expand(text: str, fragments: Mapping[str, Sequence[str]]) -> list[str]:
    """Replace the fragments in a text by each of their choices."""
    if (fragment := next((fragment for fragment in fragments if fragment in text), None)) is None:
        return [text]
    chosen = (text.replace(fragment, choice, 1) for choice in fragments[fragment])
    return [choice for chosen_text in chosen for choice in _expand(chosen_text, fragments)]


def _wording(text: str, topics: Set[str]) -> Wording:
    """Read a wording for an article about ``topics``, the relations or entities that it may name."""
    text = _ARTICLE.sub(r"{\1 ", text)
    fields, requires, states = [], set[str](), dict[str, None]()
    for field in (field for _, field, _, _ in Formatter().parse(text) if field is not None):
        article = field[0] if field[:2] in ("a ", "A ") else ""
        bare = field[2:] if article else field
        topic, _, form = bare.partition("/")
        fields.append((field, article, topic, form))
        if topic in topics and form in FORMS:
            if topic not in _SUBJECTS:
                requires.add(bare if bare in SPECIAL_FORMS[topic] else topic)
                states[bare if form == "year" else topic] = None
        elif bare in OPTIONAL:
            requires.add(OPTIONAL[bare])
    return Wording(text, tuple(dict.fromkeys(fields)), frozenset(requires), tuple(states))


_ARTICLE = re.compile(r"\b([Aa])\(n\) \{")
_SUBJECTS = {name for names in REMARKS.values() for name in names}
