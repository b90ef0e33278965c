"""An article under way: its sentences, and which of them states which fact."""

from random import Random

from builders.synthetic.wording import PROSE
from builders.synthetic.world import Entity, Value, one, order_of, start_year, text_of


class Writer:
    """Collects an article's sentences and what they state."""

    def __init__(self, rng: Random, e: Entity) -> None:
        self.rng = rng
        self.e = e
        self.sentences: list[str] = []
        self.states: dict[tuple[int, str], int] = {}
        year = start_year(e)
        late = min(year + 60, 2015)
        facts = e.facts
        if "date of death" in facts:
            late = min(late, order_of(facts["date of death"][0])[0] - 1)
        first = year + 22 if e.kind == "person" else year + 3
        self.years = (min(first, late), max(first, late))
        f = e.female
        # Everyone born before 1925 has died, whether or not this article says when.
        dead = year < 1925 or "date of death" in facts or "place of death" in facts
        self.words: dict[str, str] = {
            "n": e.name,
            "S": e.short or e.name,
            "He": "She" if f else "He",
            "he": "she" if f else "he",
            "him": "her" if f else "him",
            "His": "Her" if f else "His",
            "his": "her" if f else "his",
            "son": "daughter" if f else "son",
            "wife": "husband" if f else "wife",
            "dad": "mother" if f else "father",
            "bro": "sister" if f else "brother",
            "was": "was" if dead else "is",
        }

    def describe(self, values: list[Value]) -> str:
        if len(values) == 1:
            value = values[0]
            if isinstance(value, Entity) and value.occupation and self.rng.random() < 0.35:
                return f"the {value.occupation} {value.name}"
        return self.plain(values)

    @staticmethod
    def plain(values: list[Value]) -> str:
        return " and ".join(map(text_of, values))

    def year(self) -> int:
        low, high = self.years
        return low + int(self.rng.random() * (high - low + 1))

    def add(self, text: str, *stated: tuple[int, str]) -> None:
        for fact in stated:
            self.states.setdefault(fact, len(self.sentences))
        if text.endswith(".."):
            text = text[:-1]
        self.sentences.append(text[0].upper() + text[1:])

    def tell(self, template: str, relation: str, second: str = "") -> None:
        """State one fact (or two together) if the entity has it and no sentence does yet."""
        values = self.e.facts.get(relation)
        if values is None or (self.e.key, relation) in self.states:
            return
        words = self.words
        value = values[0]
        words["x"] = self.plain(values)
        words["X"] = self.describe(values)
        words["yr"] = str(self.year())
        if isinstance(value, Entity):
            words["d"] = value.demonym
            plural = len(values) > 1
            kid, sib = ("daughter", "sister") if value.female else ("son", "brother")
            words["kid"] = "children" if plural else kid
            words["sib"] = "siblings" if plural else sib
            words["were"], words["s"] = ("were", "s") if plural else ("was", "")
        stated = [(self.e.key, relation)]
        if second:
            words["y"] = self.plain(self.e.facts[second])
            stated.append((self.e.key, second))
        self.add(one(self.rng, PROSE[template]).format_map(words), *stated)

    def aside(self, template: str, value: Value | None) -> None:
        words = self.words
        rng = self.rng
        words["x"] = text_of(value) if value else ""
        words["X"] = self.describe([value]) if value else ""
        words["yr"] = str(self.year())
        words["num"] = str(1200 + int(rng.random() * 40000))
        words["km"] = str(5 + int(rng.random() * 90))
        self.add(one(rng, PROSE[template]).format_map(words))
