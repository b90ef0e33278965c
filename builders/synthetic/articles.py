"""Articles: an entity's facts told as a writer would, and no fact that it doesn't hold.

Text is made from facts alone, so noise is made by writing an article from changed facts.
"""

import re
from collections.abc import Sequence
from random import Random

from builders.synthetic.world import Article, Day, Entity, Value, one, order_of, start_year, text_of
from builders.synthetic.writers import PLACE, Wording, Writer

_KINDS = {"song": "record", "album": "record",
          **dict.fromkeys(("school", "company", "label", "award"), "organisation")}  # fmt: skip
_GENDERED = {
    "He": ("He", "She", "It"), "he": ("he", "she", "it"), "him": ("him", "her", "it"),
    "His": ("His", "Her", "Its"), "his": ("his", "her", "its"), "son": ("son", "daughter", ""),
    "wife": ("wife", "husband", ""), "dad": ("father", "mother", ""),
    "bro": ("brother", "sister", ""),
}  # fmt: skip
_SEVERAL = {"s": ("", "s"), "were": ("was", "were")}
_VALUES = {"son": ("son", "daughter", "children"), "brother": ("brother", "sister", "siblings"),
           "he": ("he", "she", "they"), "his": ("his", "her", "their")}  # fmt: skip
_DRAWS = 20
"""Openings that are tried before one that states nothing is taken."""
_ARTICLE = re.compile(r"([Aa])\(n\) (?=(uni)?([aeiouAEIOU])?)")


def write_article(writers: Sequence[Writer], e: Entity, rng: Random) -> Article:
    """The article of ``e`` by one of the writers: every fact that it holds and no other."""
    telling = _Telling(one(rng, writers), rng, e)
    telling.article()
    return Article(e.title, tuple(telling.sentences), telling.states, frozenset(telling.mentions))


class _Telling:
    """An article under way: what it has said, and what it still has to say."""

    def __init__(self, writer: Writer, rng: Random, e: Entity) -> None:
        self.writer, self.rng, self.e = writer, rng, e
        self.sentences: list[str] = []
        self.states: dict[tuple[int, str], int] = {}
        self.mentions = {e.key}
        self.owed: dict[str, str] = {}
        self.have: set[str] = set()
        self.about: dict[str, list[Value]] = e.facts
        for relation, values in e.facts.items():
            self._owe(relation, values)
        self.mentions.update(work.key for _, work in e.works)
        if e.kind == "person":
            given = e.name.partition(" ")[0]
            if e.full:
                self.have.add("full" if e.short in e.full else "born as")
            if e.name.count(" ") == 1 and not e.alikes:
                self.have.add("given")
            if e.full.startswith(f"{given} ") and e.full.endswith(f" {e.short}"):
                self.have.add("middle")

    def _owe(self, relation: str, values: list[Value]) -> None:
        for value in values:
            if isinstance(value, Entity):
                self.mentions.add(value.key)
        if relation == "_near":
            return
        value, have = values[0], self.have
        if isinstance(value, Entity):
            self.owed[relation] = relation
            have.add(relation)
            if len(values) == 1:
                if value.kind == "person":
                    have.add(f"{relation}/trade")
                elif value.kind == "town" and PLACE in value.facts and ", " not in value.name:
                    have.add(f"{relation}/region")
        else:
            have.add(f"{relation}/year")
            if isinstance(value, Day):
                have.add(relation)
            self.owed[relation if isinstance(value, Day) else f"{relation}/year"] = relation

    def article(self) -> None:
        e, rng = self.e, self.rng
        kind = _KINDS.get(e.kind, e.kind)
        self.open(self.writer.openings[kind])
        aside = int(rng.random() * (len(self.owed) + 1))
        for relation, work in e.works:
            self.remark(f"works {relation}", {"work": work})
            self.states[work.key, relation] = len(self.sentences) - 1
        for key, wordings in self.writer.facts[kind].items():
            if key in self.owed:
                if len(self.owed) <= aside:
                    aside = -1
                    self._incidents(kind)
                self.tell(wordings)
        if aside >= 0:
            self._incidents(kind)
        for key, about in e.asides:
            self.remark(key, about)
        if len(self.sentences) < 2:
            self.remark("aside filler", {})

    def _incidents(self, kind: str) -> None:
        """Near misses: other places and people the subject had to do with."""
        kind = "award" if self.e.kind == "award" else kind
        for key, about in self.e.incidents:
            self.remark(key, about)
        for value in self.e.facts.get("_near", ()) if len(self.sentences) < 5 else ():
            if isinstance(value, Entity):
                sort = "company" if value.kind == "person" else kind
                self.remark(f"aside {sort}", {"near": value})

    def remark(self, key: str, about: dict[str, Entity]) -> None:
        """Say something of the subject that is none of its facts."""
        self.about = {name: [value] for name, value in about.items()}
        self.say(one(self.rng, self.writer.remarks[key]))
        self.about = self.e.facts

    def open(self, wordings: list[Wording]) -> None:
        """State some of the facts; what fits only rarely may be missed."""
        draws = (one(self.rng, wordings) for _ in range(_DRAWS))
        fitting = (each for each in draws if each.needs <= self.have)
        self.say(next(fitting, None) or next(each for each in wordings if not each.needs))

    def tell(self, wordings: list[Wording]) -> None:
        """State facts that are owed, in a wording that fits what is left to tell."""
        while not (wording := one(self.rng, wordings)).needs <= self.have:
            pass
        self.say(wording)

    def say(self, wording: Wording) -> None:
        """Write the sentence; what it states is no longer owed."""
        words = {field: self._word(of, form) for field, of, form in wording.fields}
        text = wording.text.format_map(words)
        if "(n)" in text:
            text = _ARTICLE.sub(lambda m: f"{m[1]}{'n' if m[3] and not m[2] else ''} ", text)
        if text.endswith(".."):
            text = text[:-1]
        self.sentences.append(text[0].upper() + text[1:])
        for key in wording.tells:
            relation = self.owed.pop(key, "")
            if relation:
                self.states[self.e.key, relation] = len(self.sentences) - 1
                self.have.difference_update(
                    (relation, f"{relation}/trade", f"{relation}/region", f"{relation}/year")
                )

    def _word(self, of: str, form: str) -> str:
        if of in self.about:
            return self._value(self.about[of], form)
        e = self.e
        if of in _GENDERED:
            return _GENDERED[of][e.female if e.kind == "person" else 2]
        match of:
            case "name":
                return e.name
            case "short":
                return e.short or e.name
            case "was" | "has":
                return {"was": ("is", "was"), "has": ("has", "had")}[of][self._gone()]
            case "year":
                return str(self._year())
            case "trade":
                return e.occupation
            case "kind":
                return e.kind
            case "full":
                return e.full
            case "born as":
                return e.full
            case "inhabitants":
                return str(1200 + int(self.rng.random() * 40000))
            case "km":
                return str(5 + int(self.rng.random() * 90))
        given = e.name.partition(" ")[0]
        return {"given": given, "surname": e.short, "nick": given[:3], "initial": f"{given[0]}.",
                "middle": e.full.removeprefix(given).removesuffix(e.short).strip()}[of]

    def _value(self, values: list[Value], form: str) -> str:
        value = values[0]
        if form == "year":
            return str(start_year(value) if isinstance(value, Entity) else order_of(value)[0])
        if form in _SEVERAL:
            return _SEVERAL[form][len(values) > 1]
        if not isinstance(value, Entity) or not form:
            return " and ".join(map(self._name, values))
        if form in _VALUES:
            return _VALUES[form][2 if len(values) > 1 else value.female]
        if form == "region":
            region = value.facts[PLACE][0]
            self.mentions.update({region.key} if isinstance(region, Entity) else ())
            return text_of(region)
        if form == "who":
            if len(values) > 1 or not value.occupation or self.rng.random() > 0.35:
                return " and ".join(map(self._name, values))
            return f"the {value.occupation} {value.name}"
        return {"trade": value.occupation, "people": value.demonym, "title": value.title}[form]

    def _name(self, value: Value) -> str:
        if isinstance(value, Day):
            return self.writer.day(value)
        named = text_of(value)
        return self.writer.town(named) if isinstance(value, Entity) and value.kind == "town" \
            else named

    def _gone(self) -> bool:
        """Everyone born before 1925 has died, whether or not this article says when."""
        facts = self.e.facts
        return start_year(self.e) < 1925 or "date of death" in facts or "place of death" in facts

    def _year(self) -> int:
        """A year in which something can have happened to the subject."""
        year, facts = start_year(self.e), self.e.facts
        late = min(year + 60, 2015)
        if "date of death" in facts:
            late = min(late, order_of(facts["date of death"][0])[0] - 1)
        first = year + (22 if self.e.kind == "person" else 3)
        low, high = min(first, late), max(first, late)
        return low + int(self.rng.random() * (high - low + 1))
