"""Reads a passage as a source that claims are compared with: its words, names, predications and descriptions.

A description is one word that says what somebody or something *is* ("chemist" and "Danish" for "Ann Sole, a Danish
chemist"): the noun of a predicate, an apposition, or an adjective or noun before these or a name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from safe_stepwise.checking.statements import quote_sentence
from safe_stepwise.checking.words import NUMBER, STOP_WORDS, SYNONYMS, is_same_name, is_time, stem, words_of
from safe_stepwise.language import syntax
from safe_stepwise.language.relations import is_nation, nation_pattern
from safe_stepwise.language.syntax import Argument, Predication, Replacement, Syntax, Word, parse
from safe_stepwise.language.text import as_date, as_number, dates_in, fold, fold_traced, normal_name, strip_diacritics
from safe_stepwise.language.vocabulary import wording
from safe_stepwise.records import Passage

_NEGATED_PART = wording("sources", "negated_part")
"""What a text names only to deny it: "French, not Turkish"."""
_YEARS_IN_BRACKETS = re.compile(r" \((?:[12]\d{3}(?:[–-]\d{2,4})?|[^()]{0,80}\b\d{4}(?: ?[–-] ?[^()]{0,40})?)\)")
"""Brackets with years between the titles of a list, or after a name, which confuse the parser."""
_ASIDE = re.compile(r" \([^()]*\)| [“\"][\w ]{1,30}[”\"](?= [A-Z])")
_LIFE = re.compile(r"\s*[^()]{1,120}\([^()]*\d{4}[^()]*\)")
_LINKING = frozenset(("be", "become", "remain"))
_ORIGINS = ("from", "of", "in", "nation")
COPIED_WORDS = 6
"""Minimum number of words in a row that are copied from a passage, and so stated by it."""


class Description(NamedTuple):
    """A word (by its token) that describes a holder, in a predication or (None) beside the holder's name."""

    holder: Argument
    token: int
    predication: Predication | None = None


def descriptions_in(syntax: Syntax) -> Iterator[Description]:
    """Yield the descriptions that a text states.

    >>> from safe_stepwise.language.syntax import parse
    >>> syntax = parse("Karl Ude was a German painter.")
    >>> [(each.holder.name, syntax.words[each.token].text) for each in descriptions_in(syntax)][:2]
    [('Karl Ude', 'painter'), ('Karl Ude', 'German')]
    """
    for predication in _stated_predications(syntax):
        for holder in _find_holders(predication):
            for head in _find_heads(predication):
                yield Description(holder, head, predication)
                for modifier in syntax.modifiers.get(head, ()):
                    yield Description(holder, modifier, predication)
    for token, word in enumerate(syntax.words):
        for modifier in syntax.modifiers.get(token, ()) if word.name else ():
            yield Description(Argument(word.name, word.lemma, token), modifier)


def further_descriptions(syntax: Syntax) -> Iterator[Description]:
    """Yield words that describe somebody indirectly: the nation they are from ("a town in Kelvia"), what they do."""
    for predication in _stated_predications(syntax):
        if not (predication.is_noun or predication.predicate in _LINKING):
            for actor in predication.roles.get("subj", ()):
                yield Description(actor, predication.token, predication)
        places = chain.from_iterable(predication.roles.get(role, ()) for role in _ORIGINS)
        nations = [place.token for place in places if is_nation((place.name or place.noun).lower())]
        for holder in _find_holders(predication):
            yield from (Description(holder, token, predication) for token in nations)


def _stated_predications(syntax: Syntax) -> Iterator[Predication]:
    return (p for p in syntax.predications if p.is_stated and not p.is_denied)


def _find_holders(predication: Predication) -> tuple[Argument, ...]:
    """Return the arguments that a predication describes."""
    if predication.is_noun:
        return tuple(holder for holder in predication.roles.get("is", ()) if not holder.value[:1].isdigit())
    return predication.roles.get("subj", ())


def _find_heads(predication: Predication) -> list[int]:
    """Return the words of a predication that describe its holders."""
    if predication.is_noun:
        return [predication.token]
    values = predication.roles.get("attr", ()) if predication.predicate in _LINKING else ()
    if "obj" not in predication.roles:  # "lived there as a painter"
        values += predication.roles.get("as", ())
    return [value.token for value in values if not value.value]


class Source:
    """A passage that claims are compared with."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.subject = re.sub(r"\s*\([^)]*\)$", "", passage.title)
        text = strip_diacritics(fold(f"{passage.title} . {passage.text}")).lower()
        self.whole_text = text
        self.text, excluded = text, ""
        if " not " in text:  # as the pattern takes long
            self.text = _NEGATED_PART.sub(" ", text)
            excluded = " ".join(match[1] for match in _NEGATED_PART.finditer(text))
        self.tokens = frozenset(re.findall(r"\w+", self.text))
        self.stems = {stem(word) for word in self.tokens}
        self.excluded = frozenset(re.findall(r"\w+", excluded)) - self.tokens - STOP_WORDS
        self.traced = fold_traced(passage.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names and titles that the passage has, without dates."""
        names = (*syntax.names_in_text(self.traced.text), self.subject, self.passage.title)
        return frozenset(name for name in names if not is_time(name))

    @cached_property
    def words(self) -> Sequence[str]:
        """The words of the text, then again with the subject's name instead of a pronoun that opens a sentence."""
        page = self.passage
        quoted = " ".join(quote_sentence(page, number, page.title) for number in range(len(page.sentences)))
        return words_of(f"{self.whole_text} . {strip_diacritics(fold(quoted)).lower()}")

    @cached_property
    def wording(self) -> str:
        """The `words` as one text, in which quotations are looked for."""
        return " ".join(self.words)

    @cached_property
    def grams(self) -> frozenset[tuple[str, ...]]:
        """Every `COPIED_WORDS` words in a row."""
        return frozenset(zip(*(self.words[n:] for n in range(COPIED_WORDS)), strict=False))

    @cached_property
    def syntax(self) -> Syntax:
        """The parsed passage; parsing takes time, so use it only when it is needed."""
        years = (Replacement(*match.span(), "") for match in _YEARS_IN_BRACKETS.finditer(self.traced.text))
        return parse(self.traced.text, frozenset([self.subject]), tuple(years))

    @cached_property
    def lives(self) -> Passage:
        """The openings of sentences that give a name and, in brackets after it, when and where its bearer lived."""
        matches = (_LIFE.match(sentence) for sentence in self.passage.sentences)
        return Passage(self.passage.title, tuple(f"{match[0]}." for match in matches if match))

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The nouns that the passage says its subject is: film, poet."""
        nouns = ((p.predicate, a.name) for p in self.syntax.predications for a in p.roles.get("is", ()) if a.name)
        return frozenset(noun for noun, name in nouns if is_same_name(name, self.subject))

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """The subject, and the fuller name that the passage opens with: "Carver Dana Andrews" for "Dana Andrews"."""
        opening = next((word.name for word in self.syntax.words if word.name), "")
        shares = set(normal_name(opening).split()) & set(normal_name(self.subject).split())
        return (self.subject, opening) if shares and opening != self.subject else (self.subject,)

    @cached_property
    def by_stem(self) -> Mapping[str, list[Predication]]:
        """The passage's predications by the stem of their verb or noun."""
        grouped: dict[str, list[Predication]] = {}
        for predication in self.syntax.predications:
            grouped.setdefault(stem(predication.predicate), []).append(predication)
        return grouped

    @cached_property
    def descriptions(self) -> Sequence[tuple[tuple[str, ...], Word]]:
        """The words that describe somebody, each after the names of this person or thing; a title may have one.

        >>> source = Source(Passage("Dune Rain", ("Dune Rain is a 1954 drama film. It is Danish.",)))
        >>> sorted({word.text for names, word in source.descriptions if "Dune Rain" in names})
        ['Danish', 'drama', 'film']
        """
        brackets = re.findall(r"\(([^)]*)\)$", self.passage.title)
        kinds = [Word(word, word, "NOUN", 0, (0, 0)) for kind in brackets for word in words_of(kind)]
        descriptions = chain(descriptions_in(self.syntax), further_descriptions(self.syntax))
        words = [(self.names_of(each.holder)[0], self.syntax.words[each.token]) for each in descriptions]
        return [*(((self.subject,), kind) for kind in kinds), *words, *self._opening_descriptions()]

    def _opening_descriptions(self) -> Iterator[tuple[tuple[str, ...], Word]]:
        """Yield the descriptions of the first sentence's first name, parsed without brackets and quoted nicknames."""
        opening = fold(next(iter(self.passage.sentences), ""))
        if (without_asides := _ASIDE.sub("", opening)) == opening:
            return
        parsed = parse(without_asides, frozenset([self.subject]))
        first = next((word.name for word in parsed.words if word.name), "")
        shares = set(normal_name(first).split()) & set(normal_name(self.subject).split())
        is_known_as = re.search(rf"\bknown (?:\w+ )?as {re.escape(self.subject)}(?!\w)", without_asides)
        for description in descriptions_in(parsed) if shares or is_known_as else ():
            if description.holder.name == first:
                yield (self.subject, first), parsed.words[description.token]

    @cached_property
    def stems_by_sentence(self) -> Sequence[set[str]]:
        """The stems of the words of each sentence."""
        return [set(map(stem, words_of(sentence))) for sentence in self.passage.sentences]

    def has_word(self, word: str) -> bool:
        """Whether the passage has a word or a synonym of it, by stem."""
        return any(w in self.tokens or stem(w) in self.stems for w in (word, *SYNONYMS.get(word, ())))

    def has_name(self, name: str) -> bool:
        """Whether the passage has a name, date or number, perhaps in another form."""
        date = as_date(name)
        if date and date.month:
            return any(day.year and day.agrees(date) for day in dates_in(self.text))
        if NUMBER.fullmatch(name):
            number = name.rstrip(".,").replace(",", "")
            if re.search(rf"(?<!\d){re.escape(number)}(?!\d)", self.text.replace(",", "")):
                return True
            return len(number) < 3 and any(as_number(t) == as_number(number) for t in self.tokens if t.isalpha())
        if is_nation(name.lower()):
            return nation_pattern(name.lower()).search(self.text) is not None
        words = set(re.findall(r"\w+", strip_diacritics(fold(name)).lower())) - STOP_WORDS
        return all(not self.tokens.isdisjoint((w, w.removesuffix("s"), *SYNONYMS.get(w, ()))) for w in words)

    def names_of(self, argument: Argument) -> tuple[tuple[str, ...], bool]:
        """Return the names that an argument of the passage may stand for, and whether these are all."""
        if names := (argument.value,) if argument.value else self.syntax.described.get(argument.token):
            words = set(normal_name(self.subject).split())
            # A surname by itself is the subject's, even if the passage names a relative.
            names = tuple(self.subject if " " not in name and normal_name(name) in words else name for name in names)
            return (*names, *self.aliases) if any(name in self.aliases for name in names) else names, True
        if argument.is_pronoun or argument.noun in self.kinds:
            return (self.subject,), False
        return (), False


@lru_cache(maxsize=4096)
def source_of(passage: Passage) -> Source:
    """Return the source of a passage (cached); it is parsed when it is first compared."""
    return Source(passage)
