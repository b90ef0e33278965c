"""Writes articles: a writer words the facts that an entity holds, and no other fact.

The text depends only on the facts, so noise is made by writing an article from changed facts.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from builders.synthetic.world import PLACE, Article, Day, Entity, Value, order_of, pick, text_of
from builders.synthetic.writers import FORMAT, MIN_WORDINGS, REMARKS_MARK, SPECIAL_FORMS, Wording, Writer

_KINDS = {"song": "record", "album": "record",
          **dict.fromkeys(("school", "company", "label", "award"), "organisation")}  # fmt: skip

_NAMES_IT = {"name", "short", "surname", "He", "he", "him", "His", "his"}
"""Words for the subject; in a sentence outside of an article the name replaces the first of them."""
_IT = {"It": "", "Its": "'s"}
"""Words for a thing that open a sentence; its name and this suffix replace them."""

_DATED = {"born": "date of death", "died": "date of birth"}


def write_article(writers: Sequence[Writer], entity: Entity, rng: Random, is_short: bool = False) -> Article:
    """Write an entity's article: every fact that it holds and no other; a short one is one sentence with one fact."""
    author = _ArticleWriter(pick(rng, writers), rng, entity)
    (author.sentence if is_short else author.article)()
    return Article(entity.title, tuple(author.sentences), author.states, frozenset(author.mentions))


class _ArticleWriter:
    """Writes one article; keeps its sentences, and the facts that it still has to state."""

    def __init__(self, writer: Writer, rng: Random, entity: Entity) -> None:
        self.writer, self.rng, self.entity = writer, rng, entity
        self.kind = _KINDS.get(entity.kind, entity.kind)
        self.gender = entity.female if entity.kind == "person" else 2
        self.sentences: list[str] = []
        self.states: dict[tuple[int, str], int] = {}
        self.mentions = {entity.key}
        self.about: Mapping[str, Sequence[Value]] = entity.facts
        self.pending: dict[str, str] = {}
        self.is_alone = False
        self.available = _optional_words(entity) if entity.kind == "person" else set[str]()
        for relation, values in entity.facts.items():
            self._plan(relation, values)
        for _, work in entity.works:
            self.mentions.add(work.key)

    def _plan(self, relation: str, values: list[Value]) -> None:
        """Add a relation to the pending facts, and note the forms in which it can be stated."""
        for value in values:
            if isinstance(value, Entity):
                self.mentions.add(value.key)
        if relation == "_near":
            return
        value, have = values[0], self.available
        trade, region, year = SPECIAL_FORMS[relation]
        if isinstance(value, Entity):
            self.pending[relation] = relation
            have.add(relation)
            if len(values) == 1:
                if value.kind == "person":
                    have.add(trade)
                elif value.kind == "town" and PLACE in value.facts and "," not in value.name:
                    have.add(region)
        elif isinstance(value, Day):
            self.pending[relation] = relation
            have.update((relation, year))
        else:
            self.pending[year] = relation
            have.add(year)

    def article(self) -> None:
        """Write a whole article: an opening, the other facts, and incidents somewhere between them."""
        entity, rng = self.entity, self.rng
        self.write(self.writer.openings[self.kind].draw(rng, self.available))
        facts = self.writer.facts[self.kind]
        incidents_at = -1 if REMARKS_MARK in facts else int(rng.random() * (len(self.pending) + 1))
        for relation, work in entity.works:
            self.remark(f"works {relation}", {"work": work})
            self.states[work.key, relation] = len(self.sentences) - 1
        for key, wordings in facts.items():
            if key == REMARKS_MARK:
                self._incidents()
            elif key in self.pending:
                if len(self.pending) <= incidents_at:
                    incidents_at = -1
                    self._incidents()
                self.write(wordings.draw(rng, self.available))
        if incidents_at >= 0:
            self._incidents()
        for key, entities in entity.asides:
            self.remark(key, entities)
        if len(self.sentences) < 2:
            self.remark("aside filler", {})

    def sentence(self) -> None:
        """Write one sentence: an incident or aside, if there is any, else the first fact."""
        self.is_alone = True
        for key, entities in (*self.entity.incidents, *self.entity.asides):
            self.remark(key, entities)
        if self.sentences or not self.pending:
            if not self.sentences:
                self.remark("aside filler", {})
            return
        key = next(iter(self.pending))
        have = {key, *SPECIAL_FORMS[self.pending[key]], "given"} & self.available
        wordings = (*self.writer.facts[self.kind][key].wordings, *self.writer.openings[self.kind].wordings)
        fitting = [wording for wording in wordings if wording.requires <= have and wording.states == (key,)]
        naming = [
            wording
            for wording in fitting
            if wording.text.partition(" ")[0] in _IT or any(topic in _NAMES_IT for _, _, topic, _ in wording.fields)
        ]
        short = sorted(naming or fitting, key=lambda wording: len(wording.text))
        self.write(pick(self.rng, short[: max(MIN_WORDINGS, len(short) // 2)]))

    def _incidents(self) -> None:
        """Write near misses: other places and people that the subject had to do with."""
        for key, entities in self.entity.incidents:
            self.remark(key, entities)
        for value in self.entity.facts.get("_near", ()) if len(self.sentences) < 5 else ():
            if isinstance(value, Entity):
                kind = "award" if self.entity.kind == "award" else self.kind
                kind = "company" if value.kind == "person" else kind
                self.remark(f"aside {kind}", {"near": value})

    def remark(self, key: str, entities: Mapping[str, Entity]) -> None:
        """Write a sentence that states no fact of the subject."""
        self.about = {name: [value] for name, value in entities.items()}
        self.write(pick(self.rng, self.writer.remarks[key]))
        self.about = self.entity.facts

    def write(self, wording: Wording) -> None:
        """Write a sentence, and remove the facts that it states from the pending ones."""
        values_by_topic, words = self.about, {}
        unnamed = self.is_alone and "name" not in {topic for _, _, topic, _ in wording.fields}
        for field, article, topic, form in wording.fields:
            values = values_by_topic.get(topic)
            word = _FORMS[form](self, values) if values else _WORDS[topic](self)
            if unnamed and not values and topic in _NAMES_IT:
                word = f"{self.entity.name}'s" if topic in ("His", "his") else self.entity.name
                unnamed = False
            words[field] = _with_article(article, word) if article else word
        text = wording.text.format_map(words)
        first, _, predicate = text.partition(" ")
        if unnamed and first in _IT:
            text = f"{self.entity.name}{_IT[first]} {predicate}"
        if text.endswith(".."):
            text = text[:-1]
        for key in wording.states:
            if relation := self.pending.pop(key, ""):
                self.states[self.entity.key, relation] = len(self.sentences)
                self.available.discard(relation)
                self.available.difference_update(SPECIAL_FORMS[relation])
        self.sentences.append(text if text[0].isupper() else text[0].upper() + text[1:])

    def render(self, values: Sequence[Value]) -> str:
        if len(values) > 1:
            return " and ".join([self.render([value]) for value in values])
        value = values[0]
        if isinstance(value, Entity):
            return self.writer.town(value.name) if value.kind == "town" else value.name
        return self.writer.day(value) if isinstance(value, Day) else value

    def render_introduced(self, values: Sequence[Value]) -> str:
        """Render a value, now and then with its trade before it."""
        value = values[0]
        trade = value.occupation if isinstance(value, Entity) and len(values) == 1 else ""
        name = self.render(values)
        return f"the {trade} {name}" if trade and self.rng.random() < 0.35 else name

    def region(self, values: Sequence[Value]) -> str:
        """Render the region of a town, and note that the article mentions it."""
        (region,) = _entity(values).facts[PLACE]
        self.mentions.add(_entity([region]).key)
        return text_of(region)

    def is_dead(self) -> bool:
        """Whether the subject is dead: everyone born before 1925 is, even if no article says when."""
        facts = self.entity.facts
        return self.entity.start_year < 1925 or "date of death" in facts or "place of death" in facts

    def by_gender(self, words: Sequence[str]) -> str:
        """Choose the word for the subject from the words for a man, a woman and a thing."""
        return words[self.gender]

    def year(self) -> str:
        """Draw a year in which something can have happened to the subject."""
        year, facts = self.entity.start_year, self.entity.facts
        late = min(year + 60, 2015)
        if "date of death" in facts:
            late = min(late, order_of(facts["date of death"][0])[0] - 1)
        first = year + (22 if self.kind == "person" else 3)
        low, high = min(first, late), max(first, late)
        return str(low + int(self.rng.random() * (high - low + 1)))

    def number(self, low: int, size: int) -> str:
        """Draw a number without a meaning."""
        return str(low + int(self.rng.random() * size))


def _optional_words(entity: Entity) -> set[str]:
    """Return the optional placeholders that a person has, such as a middle name."""
    first_name, _, surname = entity.name.partition(" ")
    words = {"given"} if surname == entity.short and not entity.alikes else set[str]()
    if entity.full:
        words.add("full" if entity.short in entity.full else "born as")
        if entity.full.startswith(f"{first_name} ") and "full" in words:
            words.add("middle")
    words.update(word for word, date in _DATED.items() if date not in entity.facts)
    return words


def _with_article(a: str, noun: str) -> str:
    vowel = noun[0] in "aeiouAEIOU" and not noun.startswith("uni")
    return f"{a}n {noun}" if vowel else f"{a} {noun}"


def _entity(values: Sequence[Value]) -> Entity:
    (value,) = values
    assert isinstance(value, Entity)
    return value


def _by_number(words: Sequence[str], _: _ArticleWriter, values: Sequence[Value]) -> str:
    masculine, feminine, plural = words
    return plural if len(values) > 1 else feminine if getattr(values[0], "female", False) else masculine


_WORDS: dict[str, Callable[[_ArticleWriter], str]] = {
    "name": lambda t: t.entity.name,
    "short": lambda t: t.entity.short or t.entity.name,
    "surname": lambda t: t.entity.short,
    "full": lambda t: t.entity.full,
    "born as": lambda t: t.entity.full,
    "given": lambda t: t.entity.name.partition(" ")[0],
    "nick": lambda t: t.entity.name[:3],
    "initial": lambda t: f"{t.entity.name[0]}.",
    "middle": lambda t: t.entity.full.split(" ")[1],
    "born": lambda _: "born",
    "died": lambda _: "died",
    "kind": lambda t: t.entity.kind,
    "trade": lambda t: t.entity.occupation,
    "was": lambda t: "was" if t.is_dead() else "is",
    "has": lambda t: "had" if t.is_dead() else "has",
    "year": lambda t: t.year(),
    "inhabitants": lambda t: t.number(1200, 40000),
    "km": lambda t: t.number(5, 90),
    **{word: partial(_ArticleWriter.by_gender, words=words) for word, words in FORMAT["by_gender"].items()},
}
_FORMS: dict[str, Callable[[_ArticleWriter, Sequence[Value]], str]] = {
    "": _ArticleWriter.render,
    "who": _ArticleWriter.render_introduced,
    "region": _ArticleWriter.region,
    "year": lambda _, values: str(values[0].start_year if isinstance(values[0], Entity) else order_of(values[0])[0]),
    "trade": lambda _, values: _entity(values).occupation,
    "people": lambda _, values: _entity(values).demonym,
    "title": lambda _, values: _entity(values).title,
    **{form: partial(_by_number, words) for form, words in FORMAT["by_number"].items()},
}
