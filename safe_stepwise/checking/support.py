"""Decides whether passages bear out what a text says: each of its claims, in its direction and polarity.

A claim is a predication of the text (`language.syntax`). It is *stated* if a predication of a passage has the same
relation and the same names in the same roles; *otherwise* if that predication is denied, has the roles exchanged, or
has another name; else *not read*. A name or number that no passage has is *not found*. No annotation is used.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from safe_stepwise.checking.argument_matching import ENDS, EXCLUDING, SINGULAR, TIMES, ArgumentMatch, ArgumentMatcher
from safe_stepwise.checking.attributes import attributes_in
from safe_stepwise.checking.direction import IsEnd, ties
from safe_stepwise.checking.sources import COPIED_WORDS, Description, Source, descriptions_in, source_of
from safe_stepwise.checking.step_reading import remove_silences
from safe_stepwise.checking.words import (
    BOUNDS,
    NUMBER,
    REPORTING,
    STOP_WORDS,
    SYNONYMS,
    is_same_name,
    is_time,
    stem,
    words_of,
)
from safe_stepwise.language import syntax
from safe_stepwise.language.grounding import ground, ground_values
from safe_stepwise.language.mentions import is_about
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.relations import RELATIONS, is_nation, nation_pattern
from safe_stepwise.language.senses import SINGLE, are_alike, meaning_of, sense_cues, senses_of
from safe_stepwise.language.syntax import Argument, Predication, Replacement, Syntax, Word, is_source_name, parse
from safe_stepwise.language.text import as_number, fold, fold_traced, has_words, is_latin, strip_diacritics
from safe_stepwise.language.vocabulary import load, word_list, wording
from safe_stepwise.records import Passage, Triple

Status = Literal["stated", "otherwise", "not found", "not read"]
_VOCABULARY = load("predicates")
_CONCLUDING = frozenset(_VOCABULARY["concluding"].split())
_LIGHT = frozenset(_VOCABULARY["light"].split())  # verbs that say little themselves
_DENIALS = frozenset(("not", "n't", "no", "neither", "none", "nobody", "untrue", "false", "never", "nor", "nowhere"))
_NO_DENIALS = frozenset(("only", "just", "merely", "simply", "solely", "doubt", "less", "other", "later", "earlier"))
"""Words after "no" or "not" with which it denies nothing."""
_COMPARING = frozenset(("than", "against", "but"))
_CONTENT_TAGS = frozenset(("NOUN", "VERB", "ADJ", "ADV", "PROPN", "INTJ", "NUM"))
_QUESTION = re.compile(r"“[^”]*\?”")
_CITED = r"(?:the )?passages? \d{1,9}(?:(?:,| and|, and) (?:passages? )?\d{1,9})*"
_PARSED_AS = {"according_to": "The text says that", "reports": "says that", "aside": ""}
_CITATIONS = [(wording("support", name, re.IGNORECASE, cited=_CITED), words) for name, words in _PARSED_AS.items()]
"""Citations in a clause, and the words parsed instead, so that no name beside one is taken for its apposition."""
_CONTRAST = re.compile(r",? (?:and |but )?not (in|by|on|at|from) [A-Z][^,.;]{1,60}(?=[.,;]|$)")
"""A contrast, of which a passage need not state anything: "not in Vel" in "born in Oru, not in Vel"."""
_YEAR = re.compile(r"1\d{3}|20\d\d")
_ROUNDING = 0.1
"""How far, as a share of a number, a text may round it."""
_CURRENCIES = ("$", "€", "£", "¥", "₹")
_LIMITING = word_list("limiting")
_RANKS = frozenset(("first", "second"))


class Finding(NamedTuple):
    """What the passages say of one claim, name or word of a text; ``reason`` is a clause.

    ``span`` has its offsets in the text. ``passage`` (from 1) states it or says otherwise, in ``sentence`` (from 0);
    ``quote`` has that sentence's words, and ``place`` their offsets in the passage's text.
    """

    status: Status
    reason: str
    passage: int | None = None
    part: str = ""
    span: tuple[int, int] = (0, 0)
    sentence: int | None = None
    quote: str = ""
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Support:
    """What the passages say about a text: the ``stated`` claims, and ``findings`` about all that is not stated."""

    findings: tuple[Finding, ...]
    stated: tuple[Finding, ...]

    @property
    def is_borne_out(self) -> bool:
        """Whether every part of the text is stated."""
        return not self.findings

    @property
    def contradiction(self) -> Finding | None:
        """The first finding that a passage contradicts the text; None if there is none."""
        return next((f for f in self.findings if f.status == "otherwise"), None)


def weigh(
    text: str,
    passages: Sequence[tuple[int, Passage]],
    context: Sequence[str] = (),
    facts: Sequence[Triple] = (),
    *,
    accepted: Sequence[str] = (),
    concludes: bool = False,
) -> Support:
    """Compare the claims of a text with numbered passages.

    ``context``: texts whose names and words count as read. ``facts``: triples that the text is about and the passages
    are known to state; only their direction and polarity in the text are weighed. ``accepted``: the earlier steps,
    which may say what somebody is. ``concludes``: words of conclusions ("so") need no passage.

    >>> page = Passage("Dune Rain", ("Dune Rain is a 1954 film directed by Ors Velt.",))
    >>> weigh("Ors Velt was directed by Dune Rain.", [(1, page)]).contradiction.status
    'otherwise'
    """
    weighing = _Weighing(text, passages, context, facts)
    weighing.earlier = [source_of(Passage("", (step_text,))) for step_text in accepted]
    weighing.accounted_words |= _CONCLUDING if concludes else frozenset()
    return weighing.collect_findings()


def is_asserted(
    text: str, passages: Sequence[tuple[int, Passage]], context: Sequence[str], *, may_deny: bool = False
) -> bool:
    """Whether a conclusion is stated, without a denial (unless it may deny), only in words of context and passages.

    Its names must occur in the context.

    >>> is_asserted("So the answer is Oru.", [], ["Which town is it? Oru."])
    True
    >>> is_asserted("So the answer is Oru, a rich town.", [], ["Which town is it? Oru."])
    False
    """
    weighing = _Weighing(text, passages, context, ())
    claims = weighing.syntax.predications
    if not all(claim.is_stated and (may_deny or not claim.is_denied) for claim in claims):
        return False
    weighing.accounted_words |= _CONCLUDING
    words = {word.removesuffix("'s") for text in context for word in words_of(fold(text))} | _CONCLUDING
    names = (name for name in weighing.syntax.names if name != _QUOTE and not is_source_name(name))
    has_names = all(words.issuperset(word.removesuffix("'s") for word in words_of(name)) for name in names)
    return has_names and not weighing._list_unread_words()


class _Weighing:
    """Compares one text with passages, and collects findings and what is supported."""

    def __init__(
        self, text: str, passages: Sequence[tuple[int, Passage]], context: Sequence[str], facts: Sequence[Triple]
    ) -> None:
        self.facts = facts
        self.sources = [(number, source_of(passage)) for number, passage in passages]
        self.traced = remove_silences(fold_traced(text))
        text = self.traced.text
        self.copies = _find_copied_pieces(text, [source.grams for _, source in self.sources])
        names = {name for fact in facts for name in (fact.head, fact.tail)}
        names |= {name for _, source in self.sources for name in source.names}
        names |= set(_find_in_other_case(text, names))
        questions = (Replacement(*match.span(), "the question") for match in _QUESTION.finditer(text))
        leads = (Replacement(*m.span(), words) for pattern, words in _CITATIONS for m in pattern.finditer(text))
        contrasts = (
            Replacement(*match.span(), "")
            for match in _CONTRAST.finditer(text)
            if re.search(rf" {match[1]} (?!Passage)[A-Z\d]", text[: match.start()].rpartition(". ")[2])
        )
        copies = _replace_quotations(text, [source.wording for _, source in self.sources])
        self.syntax: Syntax = parse(text, frozenset(names), (*questions, *leads, *contrasts, *copies))
        ends = ((fact, _is_named(fact.head), _is_named(fact.tail)) for fact in facts)
        self.ties = [(fact, tie) for fact, is_head, is_tail in ends for tie in ties(self.syntax, is_head, is_tail)]
        self.matcher = ArgumentMatcher(self.syntax)
        self.context = fold(" . ".join(context)).lower()
        self.earlier: Sequence[Source] = ()
        self.spellings = frozenset[str]().union(*(source.tokens for _, source in self.sources))
        self.findings: list[Finding] = []
        # Facts without a known relation were found to be stated by their words.
        self.accounted_names = {name for fact in facts if not _has_direction(fact) for name in (fact.head, fact.tail)}
        self.accounted_words: set[str] = {word for fact in facts for word in self._find_relation_words(fact)}
        self.stated: list[Finding] = []
        self.stated_nouns: set[int] = set()
        self.attributed: dict[int, dict[str, Any]] = {}
        """The words of stated attributes, and where these are stated."""

    def collect_findings(self) -> Support:
        self._weigh_attributes()
        for predication in self.syntax.predications:
            if finding := self._weigh_claim(predication):
                findings = self.stated if finding.status == "stated" else self.findings
                findings.append(finding._replace(span=self.syntax.span_of(predication)))
        self._withdraw_descriptions()
        self.findings += self._find_excluded_words()
        self.findings += self._find_unread_denials()
        self.findings += self._find_missing_names()
        self.findings += self._find_foreign_numbers()
        self.findings += self._find_unaccounted_words()
        if len(self.traced.text) > syntax.MAX_TEXT_CHARS:
            self.findings.append(Finding("not read", f"it has more than {syntax.MAX_TEXT_CHARS:,} characters"))
        quotations = [self._inside_marks(*word.span) for word in self.syntax.words if word.text == _QUOTE]
        self.stated += [Finding("stated", "", span=span, **self._nearest(span, ())) for span in quotations]
        if not (self.findings or self.stated) and all(map(_has_direction, self.facts)):
            self.findings.append(Finding("not read", "no claim is read in it", span=(0, len(self.traced.text))))
        return Support(tuple(map(self._restore_span, self.findings)), tuple(map(self._restore_span, self.stated)))

    def _weigh_attributes(self) -> None:
        """Note the words of attributes that passages state, as several predications may share them."""
        for claim in self.syntax.predications:
            is_plain = claim.is_stated and not claim.is_denied
            attributes = [*attributes_in(claim, self.syntax.words)] if is_plain else []
            if not attributes:
                continue
            pages = [(number, source.passage) for number, source in self._find_relevant_sources(claim)]
            grounded = [finding for each in attributes if (finding := ground_values(*each, pages))]
            best = min(grounded, key=attrgetter("rank"), default=None)
            if best is None or best.passage is None or best.sentence is None:
                continue
            place = _locate_sentence(best.passage, dict(pages)[best.passage], best.sentence)
            if best.status == "stated":
                tokens = [claim.token, *(argument.token for _, argument in claim.arguments)]
                self.attributed |= dict.fromkeys(tokens, place)
                self.accounted_words |= {argument.noun for _, argument in claim.arguments if not argument.name}
            else:
                reason = f"Passage {best.passage} says {self._word(claim)!r} with another name or date"
                self.findings.append(Finding("otherwise", reason, span=self.syntax.span_of(claim), **place))

    def _withdraw_descriptions(self) -> None:
        """Replace each stated claim by a finding if it describes somebody as no source does."""
        for description, names in self._unstated_descriptions():
            word = self.syntax.words[description.token]
            holder = description.holder
            is_noun = not (holder.name or holder.is_pronoun)
            reason = f"no passage says {word.text!r} of {f'the {holder.noun}' if is_noun else names[0]}"
            claims = [claim for claim in self.stated if _contains(claim.span, word.span)]
            self.stated = [claim for claim in self.stated if claim not in claims]
            claimed = self.syntax.words[description.holder.token].span
            stretch = (min(word.span[0], claimed[0]), max(word.span[1], claimed[1]))
            if not any(_contains(finding.span, word.span) for finding in self.findings):
                spans = [claim.span for claim in claims] or [stretch]
                self.findings += [Finding("not read", reason, part=word.text, span=span) for span in spans]

    def _unstated_descriptions(self) -> Iterator[tuple[Description, Sequence[str]]]:
        """Yield the descriptions in the text that no source gives, with the names of the person or thing described."""
        for description in () if self.facts else descriptions_in(self.syntax):
            word, claim = self.syntax.words[description.token], description.predication
            is_stated_noun = claim is not None and claim.is_noun and description.token in self.stated_nouns
            is_stated_noun |= description.token in self.attributed
            is_idle = claim is not None and claim.is_noun and claim.predicate in STOP_WORDS  # "the final answer"
            if is_stated_noun or is_idle or not self._has_to_be_read(word) or word.lemma in _CONCLUDING:
                continue
            names = self._find_holder_names(description.holder)
            is_source = any(is_source_name(name) for name in names)
            if names and not is_source and not self._is_described_as(names, description):
                yield description, names

    def _find_holder_names(self, holder: Argument) -> Sequence[str]:
        """Return the names that an argument of the text may stand for."""
        if holder.name:
            return (holder.name,)
        if holder.is_pronoun and holder.noun in SINGULAR:
            return self.matcher.names_before(holder.token)
        if names := self.syntax.described.get(holder.token, ()):
            return names
        noun = self.syntax.words[holder.token]  # "the painter who lived there"
        description = (pair for _, source in self.sources for pair in source.descriptions)
        return [names[0] for names, word in description if names and _is_alike(noun, word)]

    def _is_described_as(self, names: Sequence[str], description: Description) -> bool:
        """Whether a source describes one of the names by the word of a description."""
        word = self.syntax.words[description.token]
        sources = [*(source for _, source in self.sources), *self.earlier]
        for source in (source for source in sources if any(map(source.has_name, names))):
            if self._copies_description(description, source):
                return True
            for holders, stated_word in source.descriptions:
                if _is_alike(word, stated_word) and any(is_same_name(a, b) for a in names for b in holders):
                    return True
        return False

    def _copies_description(self, description: Description, source: Source) -> bool:
        """Whether a source has all words from a name to its description in a row, if they are many or have no verb."""
        first, last = sorted((description.holder.token, description.token))
        stretch = self.syntax.words[first : last + 1]
        spellings = words_of(" ".join(word.name or word.text for word in stretch))
        is_telling = len(spellings) >= COPIED_WORDS or not any(word.tag in ("VERB", "AUX") for word in stretch)
        return bool(description.holder.name) and is_telling and has_words(source.wording, " ".join(spellings))

    def _find_unaccounted_words(self) -> Iterator[Finding]:
        """Yield a finding for each word that no passage has, or that no sentence has which states a claim."""
        words = [
            w for w in self._list_unread_words()
            if not any(f.part == w.text and _contains(f.span, w.span) for f in self.findings)
        ]  # fmt: skip
        elsewhere = [word for word in words if any(source.has_word(word.text.lower()) for _, source in self.sources)]
        nowhere = [word for word in words if word not in elsewhere]
        for group, lack in ((nowhere, "no passage has"), (elsewhere, "no sentence that states the rest has")):
            reason = f"{lack} {', '.join(word.text for word in group)}"
            yield from (Finding("not read", reason, part=w.text, span=w.span) for w in group)

    def _inside_marks(self, start: int, end: int) -> tuple[int, int]:
        quotation = self.traced.text[start:end]
        return start + len(quotation) - len(quotation.lstrip("“")), start + len(quotation.rstrip("”."))

    def _restore_span(self, finding: Finding) -> Finding:
        """Return a finding with its span in the original text, before folding."""
        return finding._replace(span=self.traced.source_span(*finding.span))

    def _span_of(self, spelling: str) -> tuple[int, int]:
        """Return the span of the first word or name that has a spelling."""
        spellings = ((w.span, {w.name, w.text, *words_of(w.name or w.text)}) for w in self.syntax.words)
        return next((span for span, words in spellings if spelling in words), (0, 0))

    def _find_relation_words(self, fact: Triple) -> Iterator[str]:
        """Yield the words of the text that express a fact's relation ("came into the world")."""
        senses = senses_of(fact.relation)
        text = clean(" ".join(word.text for word in self.syntax.words))
        for cue in sense_cues(text) if senses else ():
            if any(are_alike(cue.sense, sense) for sense in senses):
                yield from text[cue.start : cue.end].split()

    def _is_copied(self, claim: Predication) -> bool:
        """Whether the words of a claim, with those that deny it or leave it open, are copied from a passage."""
        if not self.copies:
            return False
        tokens = {claim.token, *(a.token for _, a in claim.arguments if not a.is_source)}
        if claim.is_denied or not claim.is_stated:
            until = (n for n in range(max(tokens) + 1) if self.syntax.words[n].sentence == claim.sentence)
            tokens |= {n for n in until if not self._only_frames(self.syntax.words[n])}
        spellings = [" ".join(words_of(self.syntax.words[n].name or self.syntax.words[n].text)) for n in tokens]
        return any(all(f" {spelling} " in f" {piece} " for spelling in spellings if spelling) for piece in self.copies)

    def _is_left_open(self, claim: Predication) -> bool:
        """Whether passages say what a claim says, but only deny it or do not state it ("it is a myth that …")."""
        facts = [fact for match, _, _, fact in self._match_candidates(claim) if match.agrees]
        bearing = (f.is_denied == claim.is_denied and f.is_stated >= claim.is_stated for f in facts)
        return bool(facts) and not any(bearing)

    def _only_links(self, claim: Predication) -> bool:
        """Whether a verb adds nothing to what it links: "is" in "1901 is Ana's date of death"."""
        if claim.is_noun or claim.predicate not in _LIGHT:
            return False
        linked = {a.token for role in ("subj", "attr") for a in claim.roles.get(role, ())}
        values = {a.token for _, a in claim.arguments if a.value and not a.is_source}
        is_bare = claim.predicate == "be" and claim.roles.keys() <= {"subj"}
        predications = (p for p in self.syntax.predications if p is not claim and p.is_denied == claim.is_denied)
        expressive = (p for p in predications if p.expressions and (is_bare or (p.is_noun and p.token in linked)))
        return bool(values) and any(values <= {a.token for _, a in p.arguments} for p in expressive)

    def _only_frames(self, word: Word) -> bool:
        """Whether a word only says where a claim was read."""
        return is_source_name(word.name) or word.lemma in REPORTING or word.tag in ("PUNCT", "ADP", "DET")

    def _weigh_claim(self, claim: Predication) -> Finding | None:
        arguments = [a for _, a in claim.arguments]
        names = [a.value for a in arguments if a.value not in ("", _QUOTE) and not a.is_source]
        if any(a.is_source for a in arguments):
            reports = any(a.is_source for a in claim.roles.get("subj", ()))
            if not reports and not names and not claim.is_noun:  # "it is written in Passage 2"
                self.accounted_words.add(claim.predicate)
            if reports and not claim.is_noun and claim.is_denied:
                return Finding("otherwise", "it denies what the passages say")
            if not claim.is_noun and not claim.is_stated:
                return Finding("not read", "it leaves open whether a passage says so")
            if not claim.is_noun and claim.predicate in REPORTING:
                self.accounted_names.update(source.subject for _, source in self.sources)
                return None
        if any(argument.name == _QUOTE for argument in arguments):  # "it is written: “…”"
            return None
        if self._is_copied(claim) and not self._is_left_open(claim):
            return self._accept(claim, names)
        if self._only_links(claim):
            return None
        if not names and claim.is_denied:
            return Finding("not read", f"it denies {self._word(claim)!r} and names nobody")
        if not names and claim.is_stated and not self._joins_two_ends(claim):
            return None
        if not claim.is_stated:
            return Finding("not read", f"it leaves open whether {self._word(claim)!r} is so")
        lives = self._life_values(claim)
        if lives and all(lives.values()) and not claim.is_denied:
            self.accounted_words.update(
                a.noun for a in claim.roles.get("of", ()) if not a.name
            )  # brackets have no "death"
            return self._accept(claim, names)
        if {claim.token, *(argument.token for argument in arguments)} <= self.attributed.keys():
            return self._accept(claim, names, self.attributed[claim.token])
        if not claim.is_denied and self._states_occupation(claim):
            return self._accept(claim, names)
        for fact, tie in self.ties:
            if tie.predication is claim:
                meaning = meaning_of(fact.relation)
                direction = tie.direction(meaning, are_alike) if meaning else None
                if (direction == -1) == claim.is_denied:
                    return self._accept(claim, [fact.head, fact.tail], bears=direction is not None)
                return Finding("otherwise", f"Passage {fact.passage} says it the other way round", fact.passage)
        return self._weigh_best(claim, names, lives)

    def _states_occupation(self, claim: Predication) -> bool:
        """Whether passages describe somebody as what a claim says that the person works as."""
        holders = claim.roles.get("of" if claim.is_noun else "subj", ())
        works = claim.roles.get("is" if claim.is_noun else "as", ())
        if not (holders and works and any(expression.sense == "occupation" for expression in claim.expressions)):
            return False
        pairs = (
            (self._find_holder_names(holder), Description(holder, work.token)) for holder in holders for work in works
        )
        return all(self._is_described_as(names, description) for names, description in pairs)

    def _weigh_best(self, claim: Predication, names: Sequence[str], lives: Mapping[str, bool]) -> Finding | None:
        candidates = list(self._match_candidates(claim))
        if not candidates:
            denied = " and denies it" if claim.is_denied else ""
            if len(names) < 2 and not claim.is_denied and not (names and claim.roles.keys() & TIMES - {"of"}):
                return None
            holder = f" of {names[0]!r}" if names else ""
            return Finding("not read", f"no passage says {self._word(claim)!r}{holder}{denied}")
        match, number, source, fact = max(candidates, key=lambda c: (c[0].score, c[3].is_stated))
        if match.score[1] < 2:  # a single name may agree by chance where two are exchanged
            reversed_candidates = (c for c in candidates if sum(bool(a.value) for a in c[0].exchanged) > 1)
            match, number, source, fact = next(reversed_candidates, (match, number, source, fact))
        located, matched = _locate_fact(number, source, fact), [a.value for a in match.matched if a.value]
        if match.agrees and not fact.is_stated:
            return Finding("not read", f"Passage {number} leaves open whether {self._word(claim)!r} is so", **located)
        if match.agrees:
            unmatched = [*match.unknown, *match.open]
            if finding := self._weigh_amounts(claim, fact, source, number):
                return finding._replace(**located)
            if claim.is_denied != fact.is_denied:
                is_full = not unmatched and len(matched) > 1 and claim.predicate not in _LIGHT
                status: Status = "otherwise" if is_full else "not read"
                negation = "" if claim.is_denied else "not "
                return Finding(status, f"Passage {number} says that it is {negation}so", **located)
            values = [argument.value for argument in unmatched if argument.value]
            distant = [value for value in values if not (lives.get(value) or self._is_near(value, fact, source))]
            if distant:
                return Finding("not read", f"Passage {number} has {self._word(claim)!r}, but not with {distant[0]!r}")
            self.accounted_words.update(argument.noun for argument in match.matched if not argument.name)
            self.stated_nouns.add(claim.token)
            return self._accept(claim, [*matched, *values], located)
        if sum(bool(a.value) for a in match.exchanged) > 1:
            return Finding("otherwise", f"Passage {number} says it the other way round", **located)
        if self._has_rival(claim, match, fact, source):
            reason = f"Passage {number} says {self._word(claim)!r} with another name or date"
            return Finding("otherwise", reason, **located)
        is_kind = claim.is_noun and "is" in claim.roles and bool(names)
        pronouns = [a for _, a in claim.arguments if self._has_antecedent(a)] if claim.predicate not in _LIGHT else []
        bounded = [argument for role in BOUNDS for argument in claim.roles.get(role, ())]
        has_time = any(is_time(argument.value) or argument in bounded for argument in match.different)
        if len(names) + len(pronouns) > 1 or claim.is_denied or is_kind or has_time:
            return Finding("not read", f"Passage {number} says {self._word(claim)!r} of others")
        return None

    def _weigh_amounts(self, claim: Predication, fact: Predication, source: Source, page: int) -> Finding | None:
        """Return a finding if a number at a claim's nouns is not the one that the passage has there ("540 km")."""
        if claim.is_denied or claim.predicate in _LIGHT or not (amounts := _amounts_of(self.syntax, claim)):
            return None
        fact_amounts = _amounts_of(source.syntax, fact)
        near = {as_number(word.text) for word in source.syntax.words if word.sentence == fact.sentence}
        for noun, number in sorted(amounts - fact_amounts):
            rivals = sorted(rival for name, rival in fact_amounts if name == noun)
            if rivals and number not in near and all(abs(number - rival) > rival * _ROUNDING for rival in rivals):
                return Finding("otherwise", f"Passage {page} has {rivals[0]:,.15g}, not {number:,.15g}")
            if rivals or number not in near:
                return Finding("not read", f"Passage {page} has {self._word(claim)!r}, but not with {number:,.15g}")
        return None

    def _word(self, claim: Predication) -> str:
        """Return the word that makes a claim, as the text has it."""
        return self.syntax.words[claim.token].text

    def _has_rival(self, claim: Predication, match: ArgumentMatch, fact: Predication, source: Source) -> bool:
        """Whether a passage says what a claim says of the same head, with another name or date: another birthplace."""
        is_plain = fact.is_stated and not (claim.is_denied or fact.is_denied)
        if not (is_plain and match.has_head and match.different == match.rivals != []):
            return False
        # The parser may have missed who else does something in the same sentence.
        return any(expression.sense in SINGLE for expression in claim.expressions) or not any(
            self._is_near(rival.value, fact, source) for rival in match.rivals
        )

    def _accept(self, claim: Predication, names: Sequence[str], located: Any = None, *, bears: bool = True) -> Finding:
        """Note the names and words of a stated claim; ``located``: where a passage states it, if known."""
        self.accounted_names.update(names)
        if bears:
            self.accounted_words.add(claim.predicate)
        return Finding("stated", "", **(located or self._nearest(self.syntax.span_of(claim), names)))

    def _nearest(self, span: tuple[int, int], names: Sequence[str]) -> dict[str, Any]:
        """Locate the sentence with all names of a stated claim and most of its words; {} if there is none."""
        words = set(map(stem, words_of(self.traced.text[slice(*span)])))
        best, place = 1, dict[str, Any]()
        for number, source in self.sources:
            word_sets = [set(map(stem, words_of(name))) for name in names if not is_same_name(name, source.subject)]
            for sentence, stems in enumerate(source.stems_by_sentence):
                if len(words & stems) > best and all(name <= stems for name in word_sets):
                    best, place = len(words & stems), _locate_sentence(number, source.passage, sentence)
        return place

    def _match_candidates(self, claim: Predication) -> Iterator[tuple[ArgumentMatch, int, Source, Predication]]:
        """Yield comparisons with predications of the claim's sense or verb; with all predications for a light verb."""
        # The order is fixed, since the first of equal candidates is taken.
        stems = dict.fromkeys([stem(claim.predicate), *sorted(map(stem, SYNONYMS.get(claim.predicate, ())))])
        for number, source in self._find_relevant_sources(claim):
            candidates = {id(fact): fact for key in stems for fact in source.by_stem.get(key, ())}
            for fact in source.syntax.predications if claim.expressions else ():
                if any(are_alike(c.sense, f.sense) for c in claim.expressions for f in fact.expressions):
                    candidates[id(fact)] = fact
            for fact in candidates.values():
                yield self.matcher.match(claim, fact, source.names_of), number, source, fact
            if claim.predicate in _LIGHT and not claim.is_noun:
                for fact in source.syntax.predications:
                    match = self.matcher.match(claim, fact, source.names_of)
                    is_complete = not (match.absent or match.different or match.exchanged)
                    if is_complete and sum(1 for a in match.matched if a.name) > 1:
                        yield match, number, source, fact

    def _find_relevant_sources(self, claim: Predication) -> Sequence[tuple[int, Source]]:
        """Return the sources that have a name of a claim (parsing takes time); all sources if it has no names."""
        arguments = [argument for _, argument in claim.arguments if not argument.is_source]
        names = {name for a in arguments for name in (a.value, *self.syntax.described.get(a.token, ())) if name}
        concerned = [pair for pair in self.sources if any(map(pair[1].has_name, names))]
        return concerned if names else self.sources

    def _joins_two_ends(self, claim: Predication) -> bool:
        """Whether a claim without names has two ends, which a passage may have the other way round."""
        return len(ENDS & {role for role, a in claim.arguments if not (a.is_pronoun or a.is_source)}) > 1

    def _has_antecedent(self, argument: Argument) -> bool:
        is_singular = argument.is_pronoun and argument.noun in SINGULAR
        return is_singular and bool(self.matcher.names_before(argument.token))

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
        holders = [n for a in people for n in ((a.name,) if a.name else self.syntax.described.get(a.token, ()))]
        if event is None or not holders:
            return {}
        return {
            value: any(
                ground(holder, f"{'date' if is_time(value) else 'place'} of {event}", value, [(n, s.lives)]).status
                == "stated"
                for holder in holders
                for n, s in self.sources
                if s.lives.sentences and is_about(read(s.passage), holder)
            )
            for role in ("in", "on", "at", "when", "is", "attr")
            for a in claim.roles.get(role, ())
            if (value := a.name or (a.noun if a.noun[:1].isdigit() else ""))
        }

    def _find_excluded_words(self) -> Iterator[Finding]:
        """Yield a finding for each passage that denies a word of the text ("not a comedy")."""
        spellings = (w.name or w.text for w in self.syntax.words if not is_source_name(w.name))
        copies = {word for piece in self.copies if "not" in (words := piece.split()) for word in words}
        words_of_text = set(re.findall(r"\w+", strip_diacritics(" ".join(spellings)).lower())) - copies
        for number, source in self.sources:
            if words := sorted(words_of_text & source.excluded):
                reason = f"Passage {number} says: not {words[0]}"
                yield Finding("otherwise", reason, number, span=self._span_of(words[0]))

    def _find_unread_denials(self) -> Iterator[Finding]:
        """Yield a finding for the last denial if it is in no predication ("born in Oru, not")."""
        words, copies = self.syntax.words, {word for piece in self.copies for word in piece.split()}
        followers = (word.text.lower() for word in (*words[1:], *words[-1:]))
        denying = _DENIALS - copies
        pairs = ((w, following) for w, following in zip(words, followers, strict=True) if not w.name)
        denials = [w for w, following in pairs if w.text.lower() in denying and following not in _NO_DENIALS]
        if len(denials) > sum(claim.is_denied for claim in self.syntax.predications):
            last = denials[-1]
            yield Finding("not read", f"what {last.text!r} denies is not read", part=last.text, span=last.span)

    def _find_missing_names(self) -> Iterator[Finding]:
        """Yield a finding for each name that no passage has, or that no supported claim has."""
        numbers = [w.text for w in self.syntax.words if not w.name and NUMBER.fullmatch(w.text)]
        for name in (*self.syntax.names, *numbers):
            if name == _QUOTE or is_source_name(name) or fold(name).lower() in self.context:
                continue
            ends = (end for fact in self.facts for end in (fact.head, fact.tail))
            is_end = any(is_same_name(name, end) for end in ends)
            if not is_end and not any(source.has_name(name) for _, source in self.sources):
                claims = [p for p in self.syntax.predications if any(a.name == name for _, a in p.arguments)]
                is_left_open = bool(claims) and all(claim.is_denied or not claim.is_stated for claim in claims)
                # Short forms in capitals ("TV") may stand for words, and only names in Latin letters are read.
                is_unclear = (name.isupper() and len(name) < 5) or any(c.isalpha() and not is_latin(c) for c in name)
                is_unclear = is_unclear or self._is_bound(name)
                status: Status = "not read" if is_left_open or is_unclear else "not found"
                yield Finding(status, f"no passage has {name!r}", part=name, span=self._span_of(name))
            elif (
                name in self.syntax.names
                and not any(" ".join(words_of(name)) in piece for piece in self.copies)
                and not any(is_same_name(name, accounted) for accounted in self.accounted_names)
            ):
                yield Finding("not read", f"no passage was found to say this of {name!r}", span=self._span_of(name))

    def _find_foreign_numbers(self) -> Iterator[Finding]:
        """Yield a finding for each number that only passages have in which no name of the text stands."""
        names = [word.name for word in self.syntax.words if word.name and not is_source_name(word.name)]
        names = [name for name in names if not is_time(name) and name != _QUOTE]
        for word in self.syntax.words if names else ():
            if not word.name and NUMBER.fullmatch(word.text) and not _YEAR.fullmatch(word.text):
                sign = self.traced.text[: word.span[0]].rstrip()[-1:]
                holding = [source for _, source in self.sources if source.has_name(word.text)]
                if sign in _CURRENCIES and not any(f"{sign}{word.text}" in source.passage.text for source in holding):
                    yield Finding("not read", f"no passage has '{sign}{word.text}'", span=word.span)
                if holding and not any(source.has_name(name) for source in holding for name in names):
                    yield Finding("not read", f"no passage has {word.text!r} and {names[0]!r}", span=word.span)

    def _is_bound(self, number: str) -> bool:
        """Whether a number only limits another one, or is rounded: "before 2000", "about 300"."""
        pairs = pairwise(self.syntax.words)
        return any(word.text == number and before.lemma in _LIMITING for before, word in pairs)

    def _list_unread_words(self) -> list[Word]:
        """Return the words of the text that no passage and no stated claim has."""
        return [w for w in self.syntax.words if self._has_to_be_read(w) and not self._is_read(w)]

    def _has_to_be_read(self, word: Word) -> bool:
        if word.name or not word.text.isalpha() or word.tag not in _CONTENT_TAGS:
            return word.text.lower() in EXCLUDING - STOP_WORDS - _COMPARING - self.spellings
        idle_words = STOP_WORDS | _LIGHT if word.tag in ("VERB", "AUX") else STOP_WORDS
        idle_words = idle_words - _RANKS if word.tag == "ADJ" else idle_words
        return not {word.lemma, word.text.lower()} & idle_words

    @cached_property
    def _stating_sentences(self) -> Sequence[str]:
        """The sentences that state claims, and those that open their passages."""
        pages = {number: source.passage for number, source in self.sources}
        stating = [(f.passage, f.sentence) for f in self.stated if f.passage is not None and f.sentence is not None]
        places = {(number, place) for number, sentence in stating for place in (0, sentence)}
        return [pages[number].sentences[sentence] for number, sentence in places]

    def _is_in_stating_sentence(self, word: Word) -> bool:
        """Whether a sentence that states a claim has an adjective or number; elsewhere it may qualify another word."""
        spelling = word.text.lower()
        if is_nation(spelling):
            return any(nation_pattern(spelling).search(clean(sentence)) for sentence in self._stating_sentences)
        stems = {stem(other) for form in (word.lemma, spelling) for other in (form, *SYNONYMS.get(form, ()))}
        return any(not stems.isdisjoint(map(stem, words_of(sentence))) for sentence in self._stating_sentences)

    def _is_read(self, word: Word) -> bool:
        if word.tag not in _CONTENT_TAGS:
            return False
        if {word.lemma, word.text.lower()} & self.accounted_words or word.text.lower() in self.context:
            return True
        if word.tag in ("ADJ", "NUM") and self._stating_sentences:
            return self._is_in_stating_sentence(word)
        spellings = [strip_diacritics(spelling).lower() for spelling in (word.lemma, word.text)]
        return any(source.has_word(spelling) for _, source in self.sources for spelling in spellings)


def _is_alike(word: Word, stated_word: Word) -> bool:
    """Whether two words are forms of the same word or nation, or synonyms ("painter" and "painted" are alike)."""
    spelling, stated_spellings = word.text.lower(), {stated_word.lemma, (stated_word.name or stated_word.text).lower()}
    if is_nation(spelling):
        return any(nation_pattern(spelling).search(form) for form in stated_spellings)
    if stated_word.tag == "VERB":
        return stem(word.lemma) == stem(stated_word.lemma)
    forms = {form for w in (word.lemma, spelling) for form in (w, *SYNONYMS.get(w, ()))}
    return not forms.isdisjoint(stated_spellings)


def _contains(span: tuple[int, int], inner: tuple[int, int]) -> bool:
    return span[0] <= inner[0] and inner[1] <= span[1]


def _locate_fact(number: int, source: Source, fact: Predication) -> dict[str, Any]:
    start, _ = source.traced.source_span(*source.syntax.span_of(fact))
    ends = accumulate(len(sentence.strip()) + 1 for sentence in source.passage.sentences)
    return _locate_sentence(number, source.passage, next((n for n, end in enumerate(ends) if start < end), 0))


def _locate_sentence(number: int, passage: Passage, sentence: int) -> dict[str, Any]:
    quote = passage.sentences[sentence].strip()
    start = sum(len(earlier.strip()) + 1 for earlier in passage.sentences[:sentence])
    return {"passage": number, "sentence": sentence, "quote": quote, "place": (start, start + len(quote))}


def _find_copied_pieces(text: str, gram_sets: Sequence[Set[tuple[str, ...]]]) -> list[str]:
    """Return the pieces of a text, in lower case, that a source (given by its `Source.grams`) has in a row."""
    words = words_of(text)
    pieces: list[str] = []
    end = 0
    for start in range(len(words) - COPIED_WORDS + 1):
        gram = tuple(words[start : start + COPIED_WORDS])
        if any(gram in grams for grams in gram_sets):
            if start < end and pieces:
                pieces[-1] += f" {gram[-1]}"
            else:
                pieces.append(" ".join(gram))
            end = start + COPIED_WORDS
    return pieces


_QUOTATION = re.compile(r"“([^”]+)”|(?<=[:,] )([A-Z][^“”]+?)(?=$)")
_QUOTE = "Quotation"


def _replace_quotations(text: str, wordings: Sequence[str]) -> Iterator[Replacement]:
    """Yield a stand-in for each quotation in a text, and for its last sentence, that a source has word for word.

    >>> list(_replace_quotations("Passage 1 says: “Oru is a town.”", ["oru oru is a town"]))
    [Replacement(start=16, end=32, words='Quotation.')]
    """
    for match in _QUOTATION.finditer(text):
        words = words_of(match[1] or match[2])
        if len(words) > 2 and any(has_words(wording, " ".join(words)) for wording in wordings):
            yield Replacement(*match.span(), f"{_QUOTE}.")


def _amounts_of(syntax: Syntax, predication: Predication) -> set[tuple[str, float]]:
    """Return the numbers at the nouns of a predication, each with its noun; a year is none.

    >>> syntax = parse("The Vel is 540 km long.")
    >>> _amounts_of(syntax, syntax.predications[0])
    {('km', 540.0)}
    """
    nouns = {noun.token: noun for noun in syntax.predications if noun.is_noun and "when" in noun.roles}
    tokens, amounts = [predication.token, *(argument.token for _, argument in predication.arguments)], set()
    for token in tokens:
        for argument in nouns[token].roles["when"] if token in nouns else ():
            number = as_number(argument.noun)
            if number is None and argument.token not in tokens:
                tokens.append(argument.token)
            elif number is not None and not _YEAR.fullmatch(argument.noun):
                amounts.add((nouns[token].predicate, number))
    return amounts


def _find_in_other_case(text: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that a text has only in another case, in the text's spelling."""
    folded = text.lower()
    for name in names:
        if name.lower() in folded and name not in text and not name.isupper():
            yield from (match[0] for match in re.finditer(rf"\b{re.escape(name)}\b", text, re.IGNORECASE))


def _is_named(end: str) -> IsEnd:
    return lambda _, name: is_same_name(name, end)


def _has_direction(fact: Triple) -> bool:
    return fact.relation in RELATIONS and RELATIONS[fact.relation].kind != "nation"
