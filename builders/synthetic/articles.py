"""Articles: an entity's facts told as a writer would, and no fact that it doesn't hold.

Text is made from facts alone, so noise is made by writing an article from changed facts.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from builders.synthetic.world import PLACE, Article, Day, Entity, Value, one, order_of, text_of
from builders.synthetic.writers import FORMAT, LEAST, RARE, REST, Wording, Writer

_KINDS = {"song": "record", "album": "record",
          **dict.fromkeys(("school", "company", "label", "award"), "organisation")}  # fmt: skip

_NAMES_IT = {"name", "short", "surname", "He", "he", "him", "His", "his"}
"""Words for the subject, of which a sentence that stands alone has its name in the first."""
_IT = {"It": "", "Its": "'s"}
"""Likewise, of a thing, where they open a sentence; what stands behind its name for them."""

_DATED = {"born": "date of death", "died": "date of birth"}


def write_article(writers: Sequence[Writer], e: Entity, rng: Random, is_short: bool = False) -> Article:
    """The article of ``e`` by one of the writers: every fact that it holds and no other.

    A short one is a sentence that names it: one fact, or what is none.
    """
    telling = _Telling(one(rng, writers), rng, e)
    (telling.sentence if is_short else telling.article)()
    return Article(e.title, tuple(telling.sentences), telling.states, frozenset(telling.mentions))


class _Telling:
    """An article under way: what it has said, and what it still has to say."""

    def __init__(self, writer: Writer, rng: Random, e: Entity) -> None:
        self.writer, self.rng, self.e = writer, rng, e
        self.kind = _KINDS.get(e.kind, e.kind)
        self.gender = e.female if e.kind == "person" else 2
        self.sentences: list[str] = []
        self.states: dict[tuple[int, str], int] = {}
        self.mentions = {e.key}
        self.about: Mapping[str, Sequence[Value]] = e.facts
        self.owed: dict[str, str] = {}
        self.is_alone = False
        self.have = _for_some(e) if e.kind == "person" else set[str]()
        for relation, values in e.facts.items():
            self._owe(relation, values)
        for _, work in e.works:
            self.mentions.add(work.key)

    def _owe(self, relation: str, values: list[Value]) -> None:
        """Note what there is to tell of a relation, and in which forms it can be told."""
        for value in values:
            if isinstance(value, Entity):
                self.mentions.add(value.key)
        if relation == "_near":
            return
        value, have = values[0], self.have
        trade, region, year = RARE[relation]
        if isinstance(value, Entity):
            self.owed[relation] = relation
            have.add(relation)
            if len(values) == 1:
                if value.kind == "person":
                    have.add(trade)
                elif value.kind == "town" and PLACE in value.facts and "," not in value.name:
                    have.add(region)
        elif isinstance(value, Day):
            self.owed[relation] = relation
            have.update((relation, year))
        else:
            self.owed[year] = relation
            have.add(year)

    def article(self) -> None:
        """Write the whole: an opening, the facts it leaves, and somewhere between them the rest."""
        e, rng = self.e, self.rng
        self.say(self.writer.openings[self.kind].draw(rng, self.have))
        facts = self.writer.facts[self.kind]
        left = -1 if REST in facts else int(rng.random() * (len(self.owed) + 1))
        for relation, work in e.works:
            self.remark(f"works {relation}", {"work": work})
            self.states[work.key, relation] = len(self.sentences) - 1
        for key, wordings in facts.items():
            if key == REST:
                self._incidents()
            elif key in self.owed:
                if len(self.owed) <= left:
                    left = -1
                    self._incidents()
                self.say(wordings.draw(rng, self.have))
        if left >= 0:
            self._incidents()
        for key, about in e.asides:
            self.remark(key, about)
        if len(self.sentences) < 2:
            self.remark("aside filler", {})

    def sentence(self) -> None:
        """Write one sentence: what is no fact but stands out, else the first fact."""
        self.is_alone = True
        for key, about in (*self.e.incidents, *self.e.asides):
            self.remark(key, about)
        if self.sentences or not self.owed:
            if not self.sentences:
                self.remark("aside filler", {})
            return
        told = next(iter(self.owed))
        have = {told, *RARE[self.owed[told]], "given"} & self.have
        choices = (self.writer.facts[self.kind][told], self.writer.openings[self.kind])
        fitting = [
            each for choice in choices for each in choice.wordings if each.needs <= have and each.tells == (told,)
        ]
        named = [
            each
            for each in fitting
            if each.text.partition(" ")[0] in _IT or any(of in _NAMES_IT for _, _, of, _ in each.fields)
        ]
        short = sorted(named or fitting, key=lambda each: len(each.text))
        self.say(one(self.rng, short[: max(LEAST, len(short) // 2)]))

    def _incidents(self) -> None:
        """Near misses: other places and people the subject had to do with."""
        for key, about in self.e.incidents:
            self.remark(key, about)
        for value in self.e.facts.get("_near", ()) if len(self.sentences) < 5 else ():
            if isinstance(value, Entity):
                kind = "award" if self.e.kind == "award" else self.kind
                kind = "company" if value.kind == "person" else kind
                self.remark(f"aside {kind}", {"near": value})

    def remark(self, key: str, about: Mapping[str, Entity]) -> None:
        """Say something that is no fact of the subject's."""
        self.about = {name: [value] for name, value in about.items()}
        self.say(one(self.rng, self.writer.remarks[key]))
        self.about = self.e.facts

    def say(self, wording: Wording) -> None:
        """Write a sentence; what it states is no longer owed."""
        about, words = self.about, {}
        unnamed = self.is_alone and "name" not in {of for _, _, of, _ in wording.fields}
        for field, article, of, form in wording.fields:
            values = about.get(of)
            word = _FORMS[form](self, values) if values else _WORDS[of](self)
            if unnamed and not values and of in _NAMES_IT:
                word = f"{self.e.name}'s" if of in ("His", "his") else self.e.name
                unnamed = False
            words[field] = _with_article(article, word) if article else word
        text = wording.text.format_map(words)
        first, _, rest = text.partition(" ")
        if unnamed and first in _IT:
            text = f"{self.e.name}{_IT[first]} {rest}"
        if text.endswith(".."):
            text = text[:-1]
        for key in wording.tells:
            if relation := self.owed.pop(key, ""):
                self.states[self.e.key, relation] = len(self.sentences)
                self.have.discard(relation)
                self.have.difference_update(RARE[relation])
        self.sentences.append(text if text[0].isupper() else text[0].upper() + text[1:])

    def named(self, values: Sequence[Value]) -> str:
        """The values as this writer writes them."""
        if len(values) > 1:
            return " and ".join([self.named([value]) for value in values])
        value = values[0]
        if isinstance(value, Entity):
            return self.writer.town(value.name) if value.kind == "town" else value.name
        return self.writer.day(value) if isinstance(value, Day) else value

    def introduced(self, values: Sequence[Value]) -> str:
        """The value, now and then with its trade before it."""
        value = values[0]
        trade = value.occupation if isinstance(value, Entity) and len(values) == 1 else ""
        named = self.named(values)
        return f"the {trade} {named}" if trade and self.rng.random() < 0.35 else named

    def region(self, values: Sequence[Value]) -> str:
        """The region of a town, which the article now mentions."""
        (region,) = _entity(values).facts[PLACE]
        self.mentions.add(_entity([region]).key)
        return text_of(region)

    def gone(self) -> bool:
        """Everyone born before 1925 has died, whether or not this article says when."""
        facts = self.e.facts
        return self.e.start_year < 1925 or "date of death" in facts or "place of death" in facts

    def by_gender(self, words: Sequence[str]) -> str:
        """The one of some words that goes with the subject: of a man, of a woman, of a thing."""
        return words[self.gender]

    def year(self) -> str:
        """A year in which something can have happened to the subject."""
        year, facts = self.e.start_year, self.e.facts
        late = min(year + 60, 2015)
        if "date of death" in facts:
            late = min(late, order_of(facts["date of death"][0])[0] - 1)
        first = year + (22 if self.kind == "person" else 3)
        low, high = min(first, late), max(first, late)
        return str(low + int(self.rng.random() * (high - low + 1)))

    def number(self, low: int, size: int) -> str:
        """A number that means nothing."""
        return str(low + int(self.rng.random() * size))


def _for_some(e: Entity) -> set[str]:
    """Which of the words that only some persons have this one has."""
    given, _, surname = e.name.partition(" ")
    found = {"given"} if surname == e.short and not e.alikes else set[str]()
    if e.full:
        found.add("full" if e.short in e.full else "born as")
        if e.full.startswith(f"{given} ") and "full" in found:
            found.add("middle")
    found.update(word for word, date in _DATED.items() if date not in e.facts)
    return found


def _with_article(a: str, noun: str) -> str:
    vowel = noun[0] in "aeiouAEIOU" and not noun.startswith("uni")
    return f"{a}n {noun}" if vowel else f"{a} {noun}"


def _entity(values: Sequence[Value]) -> Entity:
    (value,) = values
    assert isinstance(value, Entity)
    return value


def _by_number(words: Sequence[str], _: _Telling, values: Sequence[Value]) -> str:
    he, she, they = words
    return they if len(values) > 1 else she if getattr(values[0], "female", False) else he


_WORDS: dict[str, Callable[[_Telling], str]] = {
    "name": lambda t: t.e.name,
    "short": lambda t: t.e.short or t.e.name,
    "surname": lambda t: t.e.short,
    "full": lambda t: t.e.full,
    "born as": lambda t: t.e.full,
    "given": lambda t: t.e.name.partition(" ")[0],
    "nick": lambda t: t.e.name[:3],
    "initial": lambda t: f"{t.e.name[0]}.",
    "middle": lambda t: t.e.full.split(" ")[1],
    "born": lambda _: "born",
    "died": lambda _: "died",
    "kind": lambda t: t.e.kind,
    "trade": lambda t: t.e.occupation,
    "was": lambda t: "was" if t.gone() else "is",
    "has": lambda t: "had" if t.gone() else "has",
    "year": lambda t: t.year(),
    "inhabitants": lambda t: t.number(1200, 40000),
    "km": lambda t: t.number(5, 90),
    **{word: partial(_Telling.by_gender, words=words) for word, words in FORMAT["by_gender"].items()},
}
_FORMS: dict[str, Callable[[_Telling, Sequence[Value]], str]] = {
    "": _Telling.named,
    "who": _Telling.introduced,
    "region": _Telling.region,
    "year": lambda _, values: str(values[0].start_year if isinstance(values[0], Entity) else order_of(values[0])[0]),
    "trade": lambda _, values: _entity(values).occupation,
    "people": lambda _, values: _entity(values).demonym,
    "title": lambda _, values: _entity(values).title,
    **{form: partial(_by_number, words) for form, words in FORMAT["by_number"].items()},
}
