"""An external graph beside a question's own triples, by which chains may be judged (``--kb FILE``).

A line holds ``head|relation|tail`` (MetaQA's form); the file may be ``.gz``. A question gets the triples of the
entities that its texts name; of an entity with more than `HUB_SIZE` triples, such as a language or a
year, only those whose other end is named as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from safe_stepwise.graphs.store import read_triples
from safe_stepwise.language.text import normal_name, strip_diacritics, words_of
from safe_stepwise.records import Triple
from safe_stepwise.store.files import sha256_of

HUB_SIZE = 200
LONGEST_NAME = 12
"""The maximum of words of a name."""


@dataclass(frozen=True)
class Knowledge:
    """A graph's triples, with an index by entity."""

    name: str
    sha256: str
    triples: Sequence[Triple]
    _places: dict[str, list[int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for place in range(len(self.triples)):
            for end in self._ends(place):
                self._places.setdefault(end, []).append(place)

    @property
    def record(self) -> dict[str, object]:
        return {"name": self.name, "sha256": self.sha256, "triples": len(self.triples)}

    def about(self, texts: Iterable[str]) -> tuple[Triple, ...]:
        """Return the triples of entities that texts name, in the graph's order."""
        entities = {name for text in texts for name in self._names_in(text)}
        places_: set[int] = set()
        for name in entities:
            places = self._places[name]
            if len(places) <= HUB_SIZE:
                places_.update(places)
            else:
                places_.update(n for n in places if self._ends(n) <= entities)
        return tuple(self.triples[n] for n in sorted(places_))

    def _ends(self, place: int) -> set[str]:
        triple = self.triples[place]
        return {normal_name(triple.head), normal_name(triple.tail)}

    def _names_in(self, text: str) -> Iterator[str]:
        """Yield the longest names in a text, from the left, without overlap."""
        words = words_of(strip_diacritics(text)).split()
        start = 0
        while start < len(words):
            ends = range(min(len(words), start + LONGEST_NAME), start, -1)
            spans = ((end, " ".join(words[start:end])) for end in ends)
            end, name = next(((e, n) for e, n in spans if n in self._places), (start + 1, ""))
            if name:
                yield name
            start = end


def read_knowledge(file: Path) -> Knowledge:
    """Read the graph of a file, names stripped of blanks; raises the errors of `read_triples`."""
    triples = dict.fromkeys(Triple(head.strip(), r.strip(), t.strip()) for head, r, t in read_triples(file))
    return Knowledge(file.name, sha256_of(file), [*triples])
