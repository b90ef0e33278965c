"""Decides whether passages bear out what a text says: each of its claims, in its direction and polarity.

A claim is a predication of the text (`language.syntax`). It is *stated* if a predication of a passage has the same
relation and the same names in the same roles; said *otherwise* if that one is denied, has the roles exchanged, or
names another; else *not read*. A name or number that no passage has is *not found*. No annotation is used.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import accumulate, product
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from safe_stepwise.checking.direction import BOUNDS, IsEnd, ties
from safe_stepwise.checking.statements import quote_sentence
from safe_stepwise.checking.step_reading import remove_silences
from safe_stepwise.language import syntax
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.mentions import is_about
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.relations import RELATIONS, is_nation, nation_pattern
from safe_stepwise.language.senses import SINGLE, are_alike, meaning_of, sense_cues, senses_of
from safe_stepwise.language.syntax import Argument, Predication, Rewrite, Syntax, Word, parse
from safe_stepwise.language.text import (
    as_date,
    as_number,
    dates_in,
    fold,
    fold_traced,
    has_words,
    is_latin,
    normal_name,
    strip_diacritics,
)
from safe_stepwise.language.tracing import TracedText
from safe_stepwise.language.vocabulary import load, word_list
from safe_stepwise.records import Passage, Triple

EndOf = Callable[[str], str]
Status = Literal["stated", "otherwise", "not found", "not read"]
_VOCABULARY = load("predicates")
_REPORTING = frozenset(_VOCABULARY["reporting"].split())
_CONCLUDING = frozenset(_VOCABULARY["concluding"].split())
_STOP_WORDS = word_list("stop_words") | _REPORTING
_LIGHT = frozenset(_VOCABULARY["light"].split())
_SYNONYMS: dict[str, set[str]] = {}
for _group in _VOCABULARY["synonyms"]:
    for _word in _group.split():
        _SYNONYMS.setdefault(_word, set()).update(_group.split())
_ENDS = frozenset(("head", "tail", "subj", "obj", "is", "of"))
_TIMES = frozenset(("in", "on", "when", "during", "at", "of"))
_TIME_BOUNDS = BOUNDS | {"since", "from", "to", "by"}
"""Roles of a date that is named to say when something else is."""
_CORE = _ENDS | _TIME_BOUNDS
_STEM = 5
_DENIALS = frozenset(("not", "n't", "no", "neither", "none", "nobody", "untrue", "false", "never", "nor", "nowhere"))
_NO_DENIALS = frozenset(("only", "just", "merely", "simply", "solely", "doubt", "less", "other", "later", "earlier"))
"""Words after "no" or "not" with which it denies nothing."""
_EXCLUDING = frozenset(
    ("outside", "without", "except", "unlike", "than", "besides", "beyond", "against", "instead", "but")
)
_COMPARING = frozenset(("than", "against", "but"))
_EXCLUDED = re.compile(
    r"(?<!\bis)(?<!\bwas)(?<!\bare)(?<!\bwere)(?<!\bdid)(?<!\bdo)(?<!\bdoes)(?<!\bhas)(?<!\bhad)(?<!\bhave)(?<!\bbe)(?<!\bbeen)"
    r"(?<!\bcan)(?<!\bcould)(?<!\bwill)(?<!\bwould)(?<!\bmay)(?<!\bmight)(?<!\bif)(?<!\bor)(?<!\bwhy),? not "
    r"(?!only\b|just\b|merely\b|to\b|until\b|yet\b|all\b)([^,.;()]{1,60})(?=[,.;()]|$| but )"
)
"""What a text names to say that it is not so: "French, not Turkish"."""
_CONTENT = frozenset(("NOUN", "VERB", "ADJ", "ADV", "PROPN", "INTJ", "NUM"))
_YEARS_IN_BRACKETS = re.compile(r" \((?:[12]\d{3}(?:[–-]\d{2,4})?|[^()]{0,80}\b\d{4}(?: ?[–-] ?[^()]{0,40})?)\)")
"""What stands between the titles of a list, or between a name and what it does, and confuses the parser."""
_QUESTION = re.compile(r"“[^”]*\?”")
_CITED = r"(?:the )?passages? \d{1,9}(?:(?:,| and|, and) (?:passages? )?\d{1,9})*"
_LEADS = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (rf"(?:^|(?<=[.;] )|(?<=\band )|(?<=\bbut ))(?:according to {_CITED},|{_CITED}:)(?= )", "The text says that"),
        (r"(?<=\d )(?:say|state|note|report|mention|tells us)s?(?= (?-i:[A-Z]))", "says that"),
        (rf", (?:as )?(?:per|according to|so|so says) {_CITED},", ""),
    )
)
"""Where a clause was read, and how it is parsed: so that no name beside it is taken for its apposition."""
_CONTRAST = re.compile(r",? (?:and |but )?not (in|by|on|at|from) [A-Z][^,.;]{1,60}(?=[.,;]|$)")
"""What a clause is contrasted with: "born in Oru, not in Vel" says nothing of Vel that has to be read."""
_NUMBER = re.compile(r"\d[\d,.]*")
_LIFE = re.compile(r"\s*[^()]{1,120}\([^()]*\d{4}[^()]*\)")
_SINGULAR = ("he", "she", "it")
_RANKS = frozenset(("first", "second"))


class Finding(NamedTuple):
    """What the passages say of one claim, name or word of a text; ``reason`` is a clause.

    ``span`` are its offsets in the text. Of a passage (from 1) that states it, or says otherwise, ``sentence`` is the
    number (from 0), ``quote`` the words, and ``place`` their offsets in the passage's text.
    """

    status: Status
    reason: str
    passage: int | None = None
    part: str = ""
    span: tuple[int, int] = (0, 0)
    sentence: int | None = None
    quote: str = ""
    place: tuple[int, int] | None = None


def stem(word: str) -> str:
    """Return the first letters of a word, by which its forms are compared."""
    return word[:_STEM]


@lru_cache(maxsize=65536)
def is_same_name(name: str, other_name: str) -> bool:
    """Whether two spellings name the same: one has the words of the other, or both are one day.

    >>> is_same_name("Velt", "Ors Velt"), is_same_name("O. Velt", "Ors Velt"), is_same_name("Ors Velt", "Ors Vorr")
    (True, True, False)
    """
    if name[:1].isdigit() and other_name[:1].isdigit() and name == other_name:
        return True
    date, other_date = as_date(name), as_date(other_name)
    if date or other_date:
        return bool(date and other_date and date.agrees(other_date))
    words, other_words = normal_name(name).split(), normal_name(other_name).split()
    if not words or not other_words:
        return False
    short, long = sorted((words, other_words), key=len)
    if len(short) > 1 and short[-1] == long[-1] and short[0][0] == long[0][0] and 1 in (len(short[0]), len(long[0])):
        return True
    if set(short) <= set(long) and (short[-1] == long[-1] or short[0] == long[0]):
        return True
    return 1 < len(short) < len(long) and (short[0], short[-1]) == (long[0], long[-1])


class Source:
    """A passage that claims are compared with."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.subject = re.sub(r"\s*\([^)]*\)$", "", passage.title)
        text = strip_diacritics(fold(f"{passage.title} . {passage.text}")).lower()
        self.whole_text = text
        self.text, excluded = text, ""
        if " not " in text:  # as the pattern takes long
            self.text = _EXCLUDED.sub(" ", text)
            excluded = " ".join(match[1] for match in _EXCLUDED.finditer(text))
        self.tokens = frozenset(re.findall(r"\w+", self.text))
        self.stems = {stem(word) for word in self.tokens}
        self.excluded = frozenset(re.findall(r"\w+", excluded)) - self.tokens - _STOP_WORDS
        self.traced = fold_traced(TracedText.from_source(passage.text))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names and titles that the passage has, without dates."""
        names = (*syntax.names_in_text(self.traced.text), self.subject, self.passage.title)
        return frozenset(name for name in names if not _is_time(name))

    @cached_property
    def words(self) -> Sequence[str]:
        """The words of the text, as it is and with the subject's name for what stands for it as a sentence opens."""
        page = self.passage
        quoted = " ".join(quote_sentence(page, number, page.title) for number in range(len(page.sentences)))
        return _words_of(f"{self.whole_text} . {strip_diacritics(fold(quoted)).lower()}")

    @cached_property
    def wording(self) -> str:
        """The words in a row, in which quotations are looked for."""
        return " ".join(self.words)

    @cached_property
    def grams(self) -> frozenset[tuple[str, ...]]:
        """Every `_COPIED_WORDS` words in a row."""
        return frozenset(zip(*(self.words[n:] for n in range(_COPIED_WORDS)), strict=False))

    @cached_property
    def syntax(self) -> Syntax:
        """The parsed passage; to be asked for late, as parsing takes time."""
        years = (Rewrite(*match.span(), "") for match in _YEARS_IN_BRACKETS.finditer(self.traced.text))
        return parse(self.traced.text, frozenset([self.subject]), tuple(years))

    @cached_property
    def lives(self) -> Passage:
        """The names with dates in brackets after them, which say when and where somebody lived."""
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
    def stems_by_sentence(self) -> Sequence[set[str]]:
        """The stems of the words of each sentence."""
        return [set(map(stem, _words_of(sentence))) for sentence in self.passage.sentences]

    def has_word(self, word: str) -> bool:
        """Whether the passage has a word, by its stem, or one that stands for it."""
        return any(w in self.tokens or stem(w) in self.stems for w in (word, *_SYNONYMS.get(word, ())))

    def has_name(self, name: str) -> bool:
        """Whether the passage has a name, date or number, perhaps in another form."""
        date = as_date(name)
        if date and date.month:
            return any(day.year and day.agrees(date) for day in dates_in(self.text))
        if _NUMBER.fullmatch(name):
            number = name.rstrip(".,").replace(",", "")
            if re.search(rf"(?<!\d){re.escape(number)}(?!\d)", self.text.replace(",", "")):
                return True
            return len(number) < 3 and any(as_number(t) == as_number(number) for t in self.tokens if t.isalpha())
        if is_nation(name.lower()):
            return nation_pattern(name.lower()).search(self.text) is not None
        words = set(re.findall(r"\w+", strip_diacritics(fold(name)).lower())) - _STOP_WORDS
        return all(not self.tokens.isdisjoint((w, w.removesuffix("s"), *_SYNONYMS.get(w, ()))) for w in words)

    def names_of(self, argument: Argument) -> tuple[tuple[str, ...], bool]:
        """Return the names that an argument of the passage may stand for, and whether these are all."""
        if names := (argument.value,) if argument.value else self.syntax.holders.get(argument.token):
            words = set(normal_name(self.subject).split())
            # A surname alone is the subject's, also where the passage names a relative.
            names = tuple(self.subject if " " not in name and normal_name(name) in words else name for name in names)
            return (*names, *self.aliases) if any(name in self.aliases for name in names) else names, True
        if argument.is_pronoun or argument.noun in self.kinds:
            return (self.subject,), False
        return (), False


@lru_cache(maxsize=4096)
def source_of(passage: Passage) -> Source:
    """Parse a passage (cached)."""
    return Source(passage)


@dataclass
class _Comparison:
    """The arguments of a claim by how those of a passage's predication agree with them.

    ``unknown``: the passage has an argument at that end, of which it can't be told whether it is the same.
    ``absent``: it has none. ``open``: none, nor any of its kind (a time, a place). ``rivals``: of the different ones,
    the names and dates at the tail. ``has_head``: whether a matched one is the head.
    """

    matched: list[Argument] = field(default_factory=list)
    exchanged: list[Argument] = field(default_factory=list)
    different: list[Argument] = field(default_factory=list)
    unknown: list[Argument] = field(default_factory=list)
    absent: list[Argument] = field(default_factory=list)
    open: list[Argument] = field(default_factory=list)
    rivals: list[Argument] = field(default_factory=list)
    has_head: bool = False

    @property
    def score(self) -> tuple[float, float]:
        names = sum(1.0 if a.value else 0.5 for a in self.matched)
        return names - len(self.exchanged) - len(self.different) - len(self.absent), names

    @property
    def agrees(self) -> bool:
        return bool(self.matched) and not (self.exchanged or self.different or self.absent)


@dataclass(frozen=True, slots=True)
class Support:
    """What the passages say of a text: what is ``stated``, and a finding for whatever of it is not."""

    findings: tuple[Finding, ...]
    stated: tuple[Finding, ...]

    @property
    def is_borne_out(self) -> bool:
        """Whether every part of the text is stated."""
        return not self.findings

    @property
    def contradiction(self) -> Finding | None:
        """The first claim of which a passage says otherwise."""
        return next((f for f in self.findings if f.status == "otherwise"), None)


def weigh(
    text: str,
    passages: Sequence[tuple[int, Passage]],
    context: Sequence[str] = (),
    facts: Sequence[Triple] = (),
    *,
    concludes: bool = False,
) -> Support:
    """Compare the claims of a text with numbered passages.

    ``context``: texts whose names and words count, too. ``facts``: triples that the text is known to be about and the
    passages to state; only their direction and polarity in the text are left to be weighed. ``concludes``: words of
    conclusions ("so") need no passage.

    >>> page = Passage("Dune Rain", ("Dune Rain is a 1954 film directed by Ors Velt.",))
    >>> weigh("The director of Dune Rain was Ors Velt.", [(1, page)]).is_borne_out
    True
    >>> weigh("Ors Velt was directed by Dune Rain.", [(1, page)]).contradiction.status
    'otherwise'
    """
    weighing = _Weighing(text, passages, context, facts)
    weighing.borne |= _CONCLUDING if concludes else frozenset()
    return weighing.support()


def is_asserted(
    text: str, passages: Sequence[tuple[int, Passage]], context: Sequence[str], *, may_deny: bool = False
) -> bool:
    """Whether a conclusion is stated, without denial unless it may deny, in the words of context and passages alone.

    Its names have to stand in the context.

    >>> is_asserted("So the answer is Oru.", [], ["Which town is it? Oru."])
    True
    >>> is_asserted("So the answer is Oru, a rich town.", [], ["Which town is it? Oru."])
    False
    """
    weighing = _Weighing(text, passages, context, ())
    claims = weighing.syntax.predications
    if not all(claim.is_stated and (may_deny or not claim.is_denied) for claim in claims):
        return False
    weighing.borne |= _CONCLUDING
    words = {word.removesuffix("'s") for text in context for word in _words_of(fold(text))} | _CONCLUDING
    names = (name for name in weighing.syntax.names if name != _COPY and not Argument(name, "", 0).is_source)
    has_names = all(words.issuperset(word.removesuffix("'s") for word in _words_of(name)) for name in names)
    return has_names and not weighing._unread_words()


class _Weighing:
    def __init__(
        self, text: str, passages: Sequence[tuple[int, Passage]], context: Sequence[str], facts: Sequence[Triple]
    ) -> None:
        self.facts = facts
        self.sources = [(number, source_of(passage)) for number, passage in passages]
        self.traced = remove_silences(fold_traced(TracedText.from_source(text)))
        text = self.traced.text
        self.copied = _copied(text, [source.grams for _, source in self.sources])
        names = {name for fact in facts for name in (fact.head, fact.tail)}
        names |= {name for _, source in self.sources for name in source.names}
        names |= set(_in_other_case(text, names))
        questions = (Rewrite(*match.span(), "the question") for match in _QUESTION.finditer(text))
        leads = (Rewrite(*m.span(), words) for pattern, words in _LEADS for m in pattern.finditer(text))
        contrasts = (
            Rewrite(*match.span(), "")
            for match in _CONTRAST.finditer(text)
            if re.search(rf" {match[1]} (?!Passage)[A-Z\d]", text[: match.start()].rpartition(". ")[2])
        )
        copies = _copies(text, [source.wording for _, source in self.sources])
        self.syntax: Syntax = parse(text, frozenset(names), (*questions, *leads, *contrasts, *copies))
        self.ties = [
            (fact, tie) for fact in facts for tie in ties(self.syntax, _is_named(fact.head), _is_named(fact.tail))
        ]
        self.context = fold(" . ".join(context)).lower()
        self.spellings = frozenset[str]().union(*(source.tokens for _, source in self.sources))
        self.findings: list[Finding] = []
        # That a fact without a known relation is stated was decided by its words.
        self.borne_names = {name for fact in facts if not _has_direction(fact) for name in (fact.head, fact.tail)}
        self.borne: set[str] = {word for fact in facts for word in self._words_for(fact)}
        self.stated: list[Finding] = []

    def support(self) -> Support:
        for predication in self.syntax.predications:
            if finding := self._weigh(predication):
                findings = self.stated if finding.status == "stated" else self.findings
                findings.append(finding._replace(span=self.syntax.span_of(predication)))
        self.findings += self._excluded_words()
        self.findings += self._unread_denials()
        self.findings += self._missing_names()
        words = self._unread_words()
        reason = f"no passage has {', '.join(word.text for word in words)}"
        self.findings += [Finding("not read", reason, part=word.text, span=word.span) for word in words]
        if len(self.traced.text) > syntax.LONGEST_TEXT:
            self.findings.append(Finding("not read", f"it has more than {syntax.LONGEST_TEXT:,} characters"))
        quotations = [self._inside_marks(*word.span) for word in self.syntax.words if word.text == _COPY]
        self.stated += [Finding("stated", "", span=span, **self._nearest(span, ())) for span in quotations]
        if not (self.findings or self.stated) and all(map(_has_direction, self.facts)):
            self.findings.append(Finding("not read", "no claim is read in it", span=(0, len(self.traced.text))))
        return Support(tuple(map(self._placed, self.findings)), tuple(map(self._placed, self.stated)))

    def _inside_marks(self, start: int, end: int) -> tuple[int, int]:
        quotation = self.traced.text[start:end]
        return start + len(quotation) - len(quotation.lstrip("“")), start + len(quotation.rstrip("”."))

    def _placed(self, finding: Finding) -> Finding:
        """Return a finding with the span of the text as it was before it was folded."""
        return finding._replace(span=self.traced.source_span(*finding.span))

    def _span_of(self, spelling: str) -> tuple[int, int]:
        """Return the span of the first word that is, or stands for a name that has, a spelling."""
        spellings = ((w.span, {w.name, w.text, *_words_of(w.name or w.text)}) for w in self.syntax.words)
        return next((span for span, words in spellings if spelling in words), (0, 0))

    def _words_for(self, fact: Triple) -> Iterator[str]:
        """Yield the words of the text that express a fact's relation ("came into the world")."""
        senses = senses_of(fact.relation)
        text = clean(" ".join(word.text for word in self.syntax.words))
        for cue in sense_cues(text) if senses else ():
            if any(are_alike(cue.sense, sense) for sense in senses):
                yield from text[cue.start : cue.end].split()

    def _is_copied(self, claim: Predication) -> bool:
        """Whether a claim stands in words that are copied from a passage, also those that deny it or leave it open."""
        if not self.copied:
            return False
        tokens = {claim.token, *(a.token for _, a in claim.arguments if not a.is_source)}
        if claim.is_denied or not claim.is_stated:
            until = (n for n in range(max(tokens) + 1) if self.syntax.words[n].sentence == claim.sentence)
            tokens |= {n for n in until if not self._frames(self.syntax.words[n])}
        spellings = [" ".join(_words_of(self.syntax.words[n].name or self.syntax.words[n].text)) for n in tokens]
        return any(all(f" {spelling} " in f" {piece} " for spelling in spellings if spelling) for piece in self.copied)

    def _is_left_open(self, claim: Predication) -> bool:
        """Whether passages say what a claim says only to deny it, or without stating it ("it is a myth that …")."""
        facts = [fact for comparison, _, _, fact in self._candidates(claim) if comparison.agrees]
        bearing = (f.is_denied == claim.is_denied and f.is_stated >= claim.is_stated for f in facts)
        return bool(facts) and not any(bearing)

    def _only_links(self, claim: Predication) -> bool:
        """Whether a verb adds nothing to what it links: "1901 is Ana's date of death", "1901 is when Ana died"."""
        if claim.is_noun or claim.predicate not in _LIGHT:
            return False
        linked = {a.token for role in ("subj", "attr") for a in claim.roles.get(role, ())}
        values = {a.token for _, a in claim.arguments if a.value and not a.is_source}
        is_bare = claim.predicate == "be" and claim.roles.keys() <= {"subj"}
        predications = (p for p in self.syntax.predications if p is not claim and p.is_denied == claim.is_denied)
        expressive = (p for p in predications if p.expressions and (is_bare or (p.is_noun and p.token in linked)))
        return bool(values) and any(values <= {a.token for _, a in p.arguments} for p in expressive)

    def _frames(self, word: Word) -> bool:
        """Whether a word only says where a claim was read."""
        is_source = Argument(word.name, "", 0).is_source
        return is_source or word.lemma in _REPORTING or word.tag in ("PUNCT", "ADP", "DET")

    def _weigh(self, claim: Predication) -> Finding | None:
        arguments = [a for _, a in claim.arguments]
        names = [a.value for a in arguments if a.value not in ("", _COPY) and not a.is_source]
        if any(a.is_source for a in arguments):
            reports = any(a.is_source for a in claim.roles.get("subj", ()))
            if not reports and not names and not claim.is_noun:  # "it is written in Passage 2"
                self.borne.add(claim.predicate)
            if reports and not claim.is_noun and claim.is_denied:
                return Finding("otherwise", f"it denies what it reads ({claim.predicate})")
            if not claim.is_noun and not claim.is_stated:
                return Finding("not read", f"it does not state what it reads ({claim.predicate})")
            if not claim.is_noun and claim.predicate in _REPORTING:
                self.borne_names.update(source.subject for _, source in self.sources)
                return None
        if any(argument.name == _COPY for argument in arguments):  # "it is written: “…”"
            return None
        if self._is_copied(claim) and not self._is_left_open(claim):
            return self._hold(claim, names)
        if self._only_links(claim):
            return None
        if not names and claim.is_denied:
            return Finding("not read", f"it denies something ({claim.predicate})")
        if not names and claim.is_stated and not self._core(claim):
            return None
        if not claim.is_stated:
            return Finding("not read", f"it does not state it ({claim.predicate})")
        lives = self._life_values(claim)
        if lives and all(lives.values()) and not claim.is_denied:
            self.borne.update(a.noun for a in claim.roles.get("of", ()) if not a.name)  # brackets have no "death"
            return self._hold(claim, names)
        for fact, tie in self.ties:
            if tie.predication is claim:
                meaning = meaning_of(fact.relation)
                direction = tie.direction(meaning, are_alike) if meaning else None
                if (direction == -1) == claim.is_denied:
                    return self._hold(claim, [fact.head, fact.tail], bears=direction is not None)
                return Finding("otherwise", f"it is the other way round ({fact.relation})", fact.passage)
        return self._best(claim, names, lives)

    def _best(self, claim: Predication, names: Sequence[str], lives: Mapping[str, bool]) -> Finding | None:
        candidates = list(self._candidates(claim))
        if not candidates:
            denied = " and denies it" if claim.is_denied else ""
            if len(names) < 2 and not claim.is_denied and not (names and claim.roles.keys() & _TIMES - {"of"}):
                return None
            holder = f" of {names[0]!r}" if names else ""
            return Finding("not read", f"no passage says {claim.predicate!r}{holder}{denied}")
        comparison, number, source, fact = max(candidates, key=lambda c: (c[0].score, c[3].is_stated))
        if comparison.score[1] < 2:  # a single name may agree by chance where two are exchanged
            turned = (c for c in candidates if sum(bool(a.value) for a in c[0].exchanged) > 1)
            comparison, number, source, fact = next(turned, (comparison, number, source, fact))
        located, matched = _located(number, source, fact), [a.value for a in comparison.matched if a.value]
        if comparison.agrees and not fact.is_stated:
            return Finding("not read", f"Passage {number} does not state it ({claim.predicate})", **located)
        if comparison.agrees:
            loose = [*comparison.unknown, *comparison.open]
            if claim.is_denied != fact.is_denied:
                is_full = not loose and len(matched) > 1 and claim.predicate not in _LIGHT
                status: Status = "otherwise" if is_full else "not read"
                return Finding(status, f"Passage {number} says that it is so ({claim.predicate})", **located)
            values = [argument.value for argument in loose if argument.value]
            far = [value for value in values if not (lives.get(value) or self._is_near(value, fact, source))]
            if far:
                return Finding("not read", f"Passage {number} does not tie {far[0]!r} to {claim.predicate!r}")
            self.borne.update(argument.noun for argument in comparison.matched if not argument.name)
            return self._hold(claim, [*matched, *values], located)
        if sum(bool(a.value) for a in comparison.exchanged) > 1:
            reason = f"Passage {number} says it the other way round ({claim.predicate})"
            return Finding("otherwise", reason, **located)
        if self._has_rival(claim, comparison, fact, source):
            return Finding("otherwise", f"Passage {number} says it of others ({claim.predicate})", **located)
        is_kind = claim.is_noun and "is" in claim.roles and bool(names)
        pronouns = [a for _, a in claim.arguments if self._has_antecedent(a)] if claim.predicate not in _LIGHT else []
        has_time = any(_is_time(argument.value) for argument in comparison.different)
        if len(names) + len(pronouns) > 1 or claim.is_denied or is_kind or has_time:
            return Finding("not read", f"Passage {number} says {claim.predicate!r} of others")
        return None

    def _has_rival(self, claim: Predication, comparison: _Comparison, fact: Predication, source: Source) -> bool:
        """Whether a passage says what a claim says of the same head, with another name or date: another birthplace."""
        is_plain = fact.is_stated and not (claim.is_denied or fact.is_denied)
        if not (is_plain and comparison.has_head and comparison.different == comparison.rivals != []):
            return False
        # Who else does something in the same sentence, the parser may have missed.
        return any(expression.sense in SINGLE for expression in claim.expressions) or not any(
            self._is_near(rival.value, fact, source) for rival in comparison.rivals
        )

    def _hold(self, claim: Predication, names: Sequence[str], located: Any = None, *, bears: bool = True) -> Finding:
        """Note the names and words that a stated claim bears out; ``located``: where a passage states it, if known."""
        self.borne_names.update(names)
        if bears:
            self.borne.add(claim.predicate)
        return Finding("stated", "", **(located or self._nearest(self.syntax.span_of(claim), names)))

    def _nearest(self, span: tuple[int, int], names: Sequence[str]) -> dict[str, Any]:
        """Return the place of the sentence with all names of a stated claim and most of its words; {} if none has."""
        words = set(map(stem, _words_of(self.traced.text[slice(*span)])))
        best, place = 1, dict[str, Any]()
        for number, source in self.sources:
            word_sets = [set(map(stem, _words_of(name))) for name in names if not is_same_name(name, source.subject)]
            for sentence, stems in enumerate(source.stems_by_sentence):
                if len(words & stems) > best and all(name <= stems for name in word_sets):
                    best, place = len(words & stems), _place_of(number, source.passage, sentence)
        return place

    def _candidates(self, claim: Predication) -> Iterator[tuple[_Comparison, int, Source, Predication]]:
        """Yield comparisons with predications of the claim's sense or verb; with all if its verb says little."""
        # In a fixed order, as of equal candidates the first is taken.
        stems = dict.fromkeys([stem(claim.predicate), *sorted(map(stem, _SYNONYMS.get(claim.predicate, ())))])
        for number, source in self._concerned(claim):
            candidates = {id(fact): fact for key in stems for fact in source.by_stem.get(key, ())}
            for fact in source.syntax.predications if claim.expressions else ():
                if any(are_alike(c.sense, f.sense) for c in claim.expressions for f in fact.expressions):
                    candidates[id(fact)] = fact
            for fact in candidates.values():
                yield self._compare(claim, fact, source), number, source, fact
            if claim.predicate in _LIGHT and not claim.is_noun:
                for fact in source.syntax.predications:
                    comparison = self._compare(claim, fact, source)
                    full = not (comparison.absent or comparison.different or comparison.exchanged)
                    if full and sum(1 for a in comparison.matched if a.name) > 1:
                        yield comparison, number, source, fact

    def _concerned(self, claim: Predication) -> Sequence[tuple[int, Source]]:
        """Return the sources with a name of a claim, as parsing takes time; all for a claim without names."""
        arguments = [argument for _, argument in claim.arguments if not argument.is_source]
        names = {name for a in arguments for name in (a.value, *self.syntax.holders.get(a.token, ())) if name}
        concerned = [pair for pair in self.sources if any(map(pair[1].has_name, names))]
        return concerned if names else self.sources

    def _compare(self, claim: Predication, fact: Predication, source: Source) -> _Comparison:
        """Compare the arguments by the ends of a shared sense, else by their roles."""
        expressions = product(claim.expressions, fact.expressions)
        shared = [(a.end_of, b.end_of) for a, b in expressions if are_alike(a.sense, b.sense)]
        pairs = shared or [(partial(_plain_end, claim), partial(_plain_end, fact))]
        return max((self._compare_ends(claim, fact, source, *ends) for ends in pairs), key=attrgetter("score"))

    def _compare_ends(
        self, claim: Predication, fact: Predication, source: Source, end_of: EndOf, fact_end_of: EndOf
    ) -> _Comparison:
        comparison = _Comparison()
        ends = {fact_end_of(role) for role in fact.roles}
        for role, argument in claim.arguments:
            if argument.is_source or (not argument.value and (argument.is_pronoun or role == "attr")):
                continue
            end = _end(role, argument, end_of)
            agreed = exchanged = different = unknown = False
            for fact_role, fact_argument in fact.possible_arguments:
                agrees = self._agrees(argument, fact_argument, source)
                fact_end = _end(fact_role, fact_argument, fact_end_of)
                if end == fact_end or ("both" in (end, fact_end) and "time" not in (end, fact_end)):
                    agreed |= agrees is True
                    different |= agrees is False
                    unknown |= agrees is None
                elif agrees and fact_end in _TIME_BOUNDS:
                    different = True
                elif agrees and ({end, fact_end} == {"head", "tail"} or {end, fact_end} == {"subj", "obj"}):
                    exchanged = True
            is_core = end in _CORE
            if not agreed and not argument.value and not exchanged and not (is_core and self._is_described(argument)):
                continue
            kinds = {"matched": agreed, "exchanged": exchanged, "different": different, "unknown": unknown}
            kind = next((kind for kind, holds in kinds.items() if holds), "")
            comparison.has_head |= kind == "matched" and end == "head"
            if kind == "different" and end in ("tail", "time") and argument.value:
                comparison.rivals.append(argument)
            is_open = (end == "time" or not is_core) and role not in _EXCLUDING and end not in ends
            getattr(comparison, kind or ("open" if is_open else "absent")).append(argument)
        return comparison

    def _core(self, claim: Predication) -> bool:
        """Whether a claim without names has two ends that a passage may have the other way round."""
        roles = {role for role, a in claim.arguments if not (a.is_pronoun or a.is_source)}
        return len(roles & _ENDS) > 1

    def _is_described(self, argument: Argument) -> bool:
        """Whether a noun means somebody by relation to another ("the father of Ana") without a name."""
        return bool(sense_cues(argument.noun)) and not self.syntax.holders.get(argument.token)

    def _agrees(self, argument: Argument, candidate: Argument, source: Source) -> bool | None:
        """Whether an argument of the text and one of a passage are the same; None if that can't be told."""
        names = (argument.value,) if argument.value else self.syntax.holders.get(argument.token, ())
        candidate_names, are_all = source.names_of(candidate)
        if not names and not candidate_names:
            is_alike = stem(argument.noun) == stem(candidate.noun) or candidate.noun in _SYNONYMS.get(
                argument.noun, ()
            )
            return True if is_alike else None
        if argument.is_pronoun and argument.noun in _SINGULAR:
            if candidate.noun in _SINGULAR and candidate.noun != argument.noun:
                return False
            names = names or tuple(self._names_before(argument.token))
        if not names or not candidate_names:
            return True if argument.is_pronoun and not names else None
        if any(is_same_name(a, b) for a in names for b in candidate_names):
            return True
        return False if are_all or argument.is_pronoun else None

    def _has_antecedent(self, argument: Argument) -> bool:
        is_singular = argument.is_pronoun and argument.noun in _SINGULAR
        return is_singular and bool(self._names_before(argument.token))

    def _names_before(self, token: int) -> Sequence[str]:
        """Return the names before a word, of which a pronoun there means one."""
        names = (word.name for word in self.syntax.words[:token] if word.name)
        return [name for name in names if not (Argument(name, "", 0).is_source or _is_time(name))]

    def _is_near(self, name: str, fact: Predication, source: Source) -> bool:
        """Whether a passage has a name in a predication's sentence, or is about it."""
        words = (w for w in source.syntax.words if w.sentence == fact.sentence)
        names = (w.name or w.text for w in words if w.name or w.text[:1].isdigit())
        return any(is_same_name(name, near_name) for near_name in (source.subject, *names))

    def _life_values(self, claim: Predication) -> Mapping[str, bool]:
        """Map the places and dates of a birth or death to whether passages state them in brackets after the name."""
        events = {a.noun for a in claim.roles.get("of", ()) if not a.name}  # "the date of birth of"
        senses = {expression.sense for expression in claim.expressions} | events
        event = next((event for event in ("birth", "death") if any(are_alike(event, sense) for sense in senses)), None)
        arguments = (a for role in ("of", "obj", "subj") for a in claim.roles.get(role, ()))
        people = [a for a in arguments if not (a.is_source or a.noun == event)][:1]
        holders = [n for a in people for n in ((a.name,) if a.name else self.syntax.holders.get(a.token, ()))]
        if event is None or not holders:
            return {}
        return {
            value: any(
                ground(holder, f"{'date' if _is_time(value) else 'place'} of {event}", value, [(n, s.lives)]).status
                == "stated"
                for holder in holders
                for n, s in self.sources
                if s.lives.sentences and is_about(read(s.passage), holder)
            )
            for role in ("in", "on", "at", "when", "is", "attr")
            for a in claim.roles.get(role, ())
            if (value := a.name or (a.noun if a.noun[:1].isdigit() else ""))
        }

    def _excluded_words(self) -> Iterator[Finding]:
        """Yield the words that a passage names only to say that it is not so ("not a comedy")."""
        spellings = (w.name or w.text for w in self.syntax.words if not Argument(w.name, "", 0).is_source)
        copied = {word for piece in self.copied if "not" in (words := piece.split()) for word in words}
        words_of_text = set(re.findall(r"\w+", strip_diacritics(" ".join(spellings)).lower())) - copied
        for number, source in self.sources:
            if words := sorted(words_of_text & source.excluded):
                reason = f"Passage {number} says: not {words[0]}"
                yield Finding("otherwise", reason, number, span=self._span_of(words[0]))

    def _unread_denials(self) -> Iterator[Finding]:
        """Yield the last of the denials that no predication has ("born in Oru, not"), unless a passage has them."""
        words, copied = self.syntax.words, {word for piece in self.copied for word in piece.split()}
        followers = (word.text.lower() for word in (*words[1:], *words[-1:]))
        denials = [
            word
            for word, following in zip(words, followers, strict=True)
            if not word.name and word.text.lower() in _DENIALS - copied and following not in _NO_DENIALS
        ]
        if len(denials) > sum(claim.is_denied for claim in self.syntax.predications):
            reason = f"what {denials[-1].text!r} denies is not read"
            yield Finding("not read", reason, part=denials[-1].text, span=denials[-1].span)

    def _missing_names(self) -> Iterator[Finding]:
        """Yield the names that no passage has, and those that no claim ties to anything."""
        numbers = [w.text for w in self.syntax.words if not w.name and _NUMBER.fullmatch(w.text)]
        for name in (*self.syntax.names, *numbers):
            if name == _COPY or Argument(name, "", 0).is_source or fold(name).lower() in self.context:
                continue
            ends = (end for fact in self.facts for end in (fact.head, fact.tail))
            is_end = any(is_same_name(name, end) for end in ends)
            if not is_end and not any(source.has_name(name) for _, source in self.sources):
                claims = [p for p in self.syntax.predications if any(a.name == name for _, a in p.arguments)]
                is_left_open = bool(claims) and all(claim.is_denied or not claim.is_stated for claim in claims)
                # Short forms in capitals ("TV") may stand for words, and only names in Latin letters are read.
                is_unread = (
                    is_left_open
                    or (name.isupper() and len(name) < 5)
                    or any(c.isalpha() and not is_latin(c) for c in name)
                )
                status: Status = "not read" if is_unread else "not found"
                yield Finding(status, f"no passage has {name!r}", part=name, span=self._span_of(name))
            elif (
                name in self.syntax.names
                and not any(" ".join(_words_of(name)) in piece for piece in self.copied)
                and not any(is_same_name(name, borne_name) for borne_name in self.borne_names)
            ):
                yield Finding("not read", f"what is said of {name!r} is read nowhere", span=self._span_of(name))

    def _unread_words(self) -> list[Word]:
        """Return the words of the text that no passage has, and no stated claim covers."""
        return [w for w in self.syntax.words if self._has_to_be_read(w) and not self._is_read(w)]

    def _has_to_be_read(self, word: Word) -> bool:
        if word.name or not word.text.isalpha() or word.tag not in _CONTENT:
            return word.text.lower() in _EXCLUDING - _STOP_WORDS - _COMPARING - self.spellings
        idle = _STOP_WORDS | _LIGHT if word.tag in ("VERB", "AUX") else _STOP_WORDS
        idle = idle - _RANKS if word.tag == "ADJ" else idle
        return not {word.lemma, word.text.lower()} & idle

    @cached_property
    def _stating_sentences(self) -> Sequence[str]:
        """The sentences that state claims, and those that open their passages."""
        pages = {number: source.passage for number, source in self.sources}
        stating = [(f.passage, f.sentence) for f in self.stated if f.passage is not None and f.sentence is not None]
        places = {(number, place) for number, sentence in stating for place in (0, sentence)}
        return [pages[number].sentences[sentence] for number, sentence in places]

    def _is_qualified(self, word: Word) -> bool:
        """Whether a sentence that states a claim has an adjective or a number: elsewhere, it may qualify another."""
        spelling = word.text.lower()
        if is_nation(spelling):
            return any(nation_pattern(spelling).search(clean(sentence)) for sentence in self._stating_sentences)
        forms = (word.lemma, spelling)
        stems = {stem(other) for form in forms for other in (form, *_SYNONYMS.get(form, ()))}
        return any(not stems.isdisjoint(map(stem, _words_of(sentence))) for sentence in self._stating_sentences)

    def _is_read(self, word: Word) -> bool:
        if word.tag not in _CONTENT:
            return False
        if {word.lemma, word.text.lower()} & self.borne or word.text.lower() in self.context:
            return True
        if word.tag in ("ADJ", "NUM") and self._stating_sentences:
            return self._is_qualified(word)
        spellings = [strip_diacritics(spelling).lower() for spelling in (word.lemma, word.text)]
        return any(source.has_word(spelling) for _, source in self.sources for spelling in spellings)


def _located(number: int, source: Source, fact: Predication) -> dict[str, Any]:
    start, _ = source.traced.source_span(*source.syntax.span_of(fact))
    sentences = source.passage.sentences
    ends = accumulate(len(sentence.strip()) + 1 for sentence in sentences)
    return _place_of(number, source.passage, next((n for n, end in enumerate(ends) if start < end), 0))


def _place_of(number: int, passage: Passage, sentence: int) -> dict[str, Any]:
    quote = passage.sentences[sentence].strip()
    start = sum(len(earlier.strip()) + 1 for earlier in passage.sentences[:sentence])
    return {"passage": number, "sentence": sentence, "quote": quote, "place": (start, start + len(quote))}


_COPIED_WORDS = 6
"""Words in a row that a text copies from a passage: they are stated as they stand there."""


def _copied(text: str, gram_sets: Sequence[Set[tuple[str, ...]]]) -> list[str]:
    """Return the pieces of a text, in lower case, that are words in a row of a source, given as its grams."""
    words = _words_of(text)
    pieces: list[str] = []
    end = 0
    for start in range(len(words) - _COPIED_WORDS + 1):
        gram = tuple(words[start : start + _COPIED_WORDS])
        if any(gram in grams for grams in gram_sets):
            if start < end and pieces:
                pieces[-1] += f" {gram[-1]}"
            else:
                pieces.append(" ".join(gram))
            end = start + _COPIED_WORDS
    return pieces


_QUOTATION = re.compile(r"“([^”]+)”|(?<=[:,] )([A-Z][^“”]+?)(?=$)")
_COPY = "Quotation"


def _copies(text: str, wordings: Sequence[str]) -> Iterator[Rewrite]:
    """Yield one word for each quotation in a text, and for a sentence at its end, that a source has word for word.

    >>> list(_copies("Passage 1 says: “Oru is a town.”", ["oru oru is a town"]))
    [Rewrite(start=16, end=32, words='Quotation.')]
    """
    for match in _QUOTATION.finditer(text):
        words = _words_of(match[1] or match[2])
        if len(words) > 2 and any(has_words(wording, " ".join(words)) for wording in wordings):
            yield Rewrite(*match.span(), f"{_COPY}.")


def _words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; a day is one word, however it is written."""
    text = strip_diacritics(text).lower()
    pieces, end = [], 0
    for date in dates_in(text):
        if date.year and date.day:
            pieces += [text[end : date.start], f"{date.year}-{date.month}-{date.day}"]
            end = date.end
    return re.findall(r"[\w'’-]+", "".join([*pieces, text[end:]]))


def _plain_end(predication: Predication, role: str) -> str:
    """Return a role as an end; who does something ("supervisor of") has the roles of the verb."""
    if not predication.is_noun:
        return role
    if predication.predicate.endswith(("er", "or")):
        return {"is": "subj", "of": "obj"}.get(role, role)
    return "of" if role == "by" else role


def _end(role: str, argument: Argument, end_of: EndOf) -> str:
    """Return the end that an argument is: a time, a bound ("until 1901", "near Oru"), or what its role names."""
    is_time = _is_time(argument.value)
    if role in (_TIME_BOUNDS if is_time else BOUNDS):
        return role
    return "time" if is_time and role in _TIMES else end_of(role)


def _in_other_case(text: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that a text has in lower case, as it has them."""
    folded = text.lower()
    for name in names:
        if name.lower() in folded and name not in text and not name.isupper():
            yield from (match[0] for match in re.finditer(rf"\b{re.escape(name)}\b", text, re.IGNORECASE))


def _is_named(end: str) -> IsEnd:
    return lambda _, name: is_same_name(name, end)


def _has_direction(fact: Triple) -> bool:
    return fact.relation in RELATIONS and RELATIONS[fact.relation].kind != "nation"


def _is_time(value: str) -> bool:
    """Whether a value is a date or a number, not a title that begins with one ("127 Hours")."""
    return as_date(value) is not None or _NUMBER.fullmatch(value) is not None
