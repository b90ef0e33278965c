"""Steps that repeat a passage's own words, which are the benchmark's proof of what is needed."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from safe_stepwise.checking.faithfulness.names import is_same
from safe_stepwise.checking.faithfulness.said import Said, as_read, named, said_by
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import nation_pattern
from safe_stepwise.language.senses import meaning_of
from safe_stepwise.language.text import has_words, words_of
from safe_stepwise.records import Passage, Triple

_FEWEST = 3
"""Words of a sentence; fewer than these are no quotation."""


class _Sentence(NamedTuple):
    title: str
    text: str
    words: str


class Quotations:
    """The sentences of some passages, to be found again in steps."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        every = (
            _Sentence(page.title, sentence, words_of(as_read(sentence)))
            for page in passages
            for sentence in page.sentences
        )
        self._sentences = tuple(one for one in every if len(one.words.split()) >= _FEWEST)
        self._found: dict[str, tuple[_Sentence, ...]] = {}

    def _of(self, said: Said) -> tuple[_Sentence, ...]:
        """The sentences that a step repeats, word for word."""
        text = said.reading.claim
        if text not in self._found:
            words = words_of(text)
            self._found[text] = tuple(s for s in self._sentences if has_words(words, s.words))
        return self._found[text]

    def are_all(self, said: Said) -> bool:
        """Whether a step names nothing but what a sentence that it repeats does, or is about."""
        found = self._of(said)
        return bool(found) and all(
            any(has_words(s.words, words_of(value)) or is_same(value, s.title) for s in found)
            for value in said.reading.values
        )

    def state(self, said: Said, triple: Triple) -> bool:
        """Whether a sentence that a step repeats has both ends of a triple.

        What a passage is about need not be named in it, and one of the ends has to.

        >>> quotations = Quotations([Passage("Dune Rain", ("The film was shot by Ana Vorr.",))])
        >>> fact = Triple("Dune Rain", "cinematographer", "Ana Vorr")
        >>> quotations.state(said_by("Passage 1 reads: “The film was shot by Ana Vorr.”"), fact)
        True
        """
        return any(
            all(ends) or (any(ends) and is_same(sentence.title, other))
            for sentence in self._of(said)
            for ends in (tuple(_names(sentence, triple)),)
            for other in (triple.tail if ends[0] else triple.head,)
        )


def _names(sentence: _Sentence, triple: Triple) -> Iterator[bool]:
    """Whether a sentence names the head of a triple, and its tail."""
    said = said_by(sentence.text)
    meaning = meaning_of(triple.relation)
    of_nations = "country" in triple.relation or (meaning is not None and meaning.kind == "nation")
    for end in (triple.head, triple.tail):
        is_there = bool(named(said, end)) or has_words(sentence.words, words_of(end))
        yield is_there or (of_nations and bool(nation_pattern(clean(end)).search(said.clean)))
