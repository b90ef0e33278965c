"""Writes steps and the checker's findings: a diagnosis (why a step is wrong) and guidance (what to do next).

The caller decides what a step says. A grammar (``vocabulary/phrases.yaml``) varies the words, whatever label the step
will get, so that no wording gives a label away. Half of the wordings are reserved for tests. Small models get brief
wordings (``vocabulary/brief.yaml``). A finding is built from clauses (``vocabulary/verdicts.yaml``). The step's text
selects them, so that equal steps get equal findings and a dataset is not written in one tone."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count, product
from typing import Any, Literal

from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.statements import fill, filled_question, is_free, noun_of, pick, state
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Passage

WordingStyle = Literal["seen", "unseen", "brief", "brief unseen"]
"""Which wordings are used: full or brief ones. The ``unseen`` ones are reserved for tests."""
HELD_BACK: Mapping[WordingStyle, WordingStyle] = {"seen": "unseen", "brief": "brief unseen"}
_HALVES = {"seen": "seen", "unseen": "unseen", "brief": "seen", "brief unseen": "unseen"}
"""The key of each style's wordings in the vocabulary files."""

_PHRASE_FIELD = re.compile(r"{(\w+)}|\[([^\]]*)\]")


def choice_for(*texts: str) -> int:
    """Return a number that depends on the texts alone, to select one of several wordings.

    >>> choice_for("a") == choice_for("a") != choice_for("b")
    True
    """
    return int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[:4], "big")


class _MissingValue(Exception):
    """A wording has a field for which no value was given."""


def phrase(kind: str, seed: str, *, style: WordingStyle = "seen", **values: object) -> str:
    """Write a step of a kind with the given values; wordings that need a missing value are skipped.

    Equal arguments give equal words. Raises ``KeyError`` for an unknown kind, and ``_MissingValue`` (a fault of the
    caller) if every wording needs a value that is missing.

    >>> phrase("fact", "b", n=3, claim="Oru is a town")
    'According to Passage 3, Oru is a town.'
    >>> phrase("fact", "b", style="brief", n=3, claim="Oru is a town")
    'Passage 3: Oru is a town.'
    """
    values["later" if values.get("k") else "first"] = ""
    if " and " in str(values.get("steps")):
        values["several"] = ""
    text = _word_phrase(kind, style, seed, {k: str(v) for k, v in values.items() if v is not None})
    return text[:1].upper() + text[1:]


def _word_phrase(kind: str, style: WordingStyle, seed: str, values: Mapping[str, str]) -> str:
    brief = load("brief")["phrases"] if style.startswith("brief") else {}
    options: Sequence[str] = (brief.get(kind) or load("phrases")[kind])[_HALVES[style]]
    start = choice_for(seed, kind)
    for n in range(len(options)):
        with suppress(_MissingValue):
            return _fill_fields(pick(options, start + n), style, seed, values)
    raise _MissingValue(kind)


def _fill_fields(option: str, style: WordingStyle, seed: str, values: Mapping[str, str]) -> str:
    """Fill the fields of a wording; values are inserted verbatim, even if they contain braces."""
    numbers = count()

    def fill_field(field: re.Match[str]) -> str:
        number, (name, alternatives) = next(numbers), field.groups()
        if name is None:
            chosen = pick(alternatives.split("|"), choice_for(seed, option, str(number)))
            return _fill_fields(chosen, style, seed, values)
        if name in values:
            return values[name]
        if name in load("phrases"):
            return _word_phrase(name, style, seed, values)
        raise _MissingValue(name)

    return _PHRASE_FIELD.sub(fill_field, option)


_VERDICT_FIELD = re.compile(r"{(\w+)}(\.?)")
_ALTERNATIVES = re.compile(r"\[([^]]*)\]")
LONGEST_QUOTE = 200
"""Characters of the longest sentence that a diagnosis quotes if it could also state the fact in our own words."""


def render(section: str, code: str, text: str, *, style: WordingStyle = "seen", **values: Any) -> str:
    """Write a finding: ``section`` is "diagnosis" or "guidance", ``code`` the kind of finding or action in it.

    ``text`` is the step's text; it seeds the choice of wording. A wording that needs a missing value is skipped.

    >>> render("guidance", "conclude", "a step", steps="Step 1")
    'Conclude from Step 1 what the question asks for, as the facts for it are in.'
    """
    values_ = {name: " ".join(str(v).split()) for name, v in values.items() if v is not None}
    for slot, options in _available_options(section, code, style, frozenset(values_)).items():
        clause = _insert_values(pick(options, choice_for(text, f"{section} {slot}")), values_)
        values_ |= {slot: clause, slot.capitalize(): _capitalise(clause)}
    return values_["join"]


@cache
def _available_options(
    section: str, code: str, style: WordingStyle, names: frozenset[str]
) -> Mapping[str, tuple[str, ...]]:
    fitting, available = {}, set(names)
    for slot, options in grammar(section, code, style).items():
        fitting[slot] = tuple(option for option, fields in options if fields <= available)
        available |= {slot, slot.capitalize()}
    return fitting


@cache
def grammar(
    section: str, code: str, style: WordingStyle = "seen"
) -> Mapping[str, tuple[tuple[str, frozenset[str]], ...]]:
    """Return the wordings of each kind of clause, with the values they need; last ``join``, for the full text.

    >>> list(grammar("diagnosis", "contradicted"))
    ['finding', 'reason', 'join']
    """
    verdicts = load("brief") if style.startswith("brief") else {}
    verdicts = verdicts if code in verdicts.get(section, ()) else load("verdicts")
    kinds = dict(verdicts[section][code])
    full_texts = kinds.pop("whole", [])
    kinds["join"] = [verdicts["joins"][next(iter(kinds))], full_texts]
    choices = {kind: _options(tree, _HALVES[style]) for kind, tree in kinds.items()}

    def with_fields(text: str) -> tuple[str, frozenset[str]]:
        return text, frozenset(name for name, _ in _VERDICT_FIELD.findall(text))

    return {kind: tuple(map(with_fields, texts)) for kind, texts in choices.items()}


def _options(tree: Any, key: str) -> Iterator[str]:
    """Yield the wordings under a tree of the vocabulary: each choice of a text, each element of a list."""
    if isinstance(tree, Mapping):
        yield from _options(tree[key], key)
    elif isinstance(tree, str):
        pieces = _ALTERNATIVES.split(tree)
        choices = [p.split("|") if n % 2 else [p] for n, p in enumerate(pieces)]
        yield from map("".join, product(*choices))
    else:
        for branch in tree:
            yield from _options(branch, key)


def _insert_values(wording: str, values: Mapping[str, str]) -> str:
    """Insert values into a wording verbatim: a value may contain braces.

    >>> _insert_values("It is {what}. {More}.", {"what": "Ors Velt Jr.", "More": "So it {is}"})
    'It is Ors Velt Jr. So it {is}.'
    """

    def value(field: re.Match[str]) -> str:
        name, stop = field.groups()
        return values[name] + ("" if values[name].endswith((".", "!", "?")) else stop)

    return _VERDICT_FIELD.sub(value, wording)


def _capitalise(clause: str) -> str:
    """Capitalise a clause that begins a sentence, unless its first word has capitals inside.

    >>> _capitalise("the step repeats it"), _capitalise("iPod Touch was made by Apple")
    ('The step repeats it', 'iPod Touch was made by Apple')
    """
    first = clause.split(maxsplit=1)[0] if clause else ""
    return clause if first[1:] != first[1:].lower() else clause[:1].upper() + clause[1:]


def sought(item: Item, passages: Sequence[Passage]) -> str:
    """Write what an item looks for as a noun phrase or a question, without its value."""
    triple = item.triples[0]
    if item.sentence is not None:
        return item.page(passages).title
    if is_free(triple):
        return filled_question(item.triples).strip(" ?") + "?"
    template = load("statements")["sought"].get(triple.relation)
    return fill(template or f"{noun_of(triple.relation)} of {{h}}", h=triple.head)


def search_query(item: Item, passages: Sequence[Passage]) -> str:
    """Build the query that finds a fact: subject and relation, without the value."""
    triple = item.triples[0]
    if item.sentence is not None:
        return sought(item, passages)
    if is_free(triple):
        return filled_question(item.triples).strip(" ?")
    return f"{triple.head} {triple.relation}"


def missing(item: Item, passages: Sequence[Passage]) -> str:
    """Write what an item looks for so that it fits inside a sentence."""
    if item.sentence is not None:
        return f"the key fact about “{sought(item, passages)}”"
    if is_free(item.triples[0]):
        return f"the answer to “{sought(item, passages)}”"
    return sought(item, passages)


def state_item(item: Item, passages: Sequence[Passage], choice: int = 0) -> str:
    """Write the fact of an item: in our statement, or in the passage's sentence if we have no wording for it."""
    if item.sentence is not None:
        return _in_quotes(item.quoted(passages))
    return state(item.triples, choice)


def quote_item(item: Item, passages: Sequence[Passage]) -> str | None:
    """Quote the passage's sentence that states an item; None if none is known to give its value in few words."""
    if item.sentence is not None:
        return state_item(item, passages)
    triple, page = item.triples[0], item.page(passages)
    if triple.sentence is None or triple.sentence >= len(page.sentences):
        return None
    sentence = page.sentences[triple.sentence]
    return _in_quotes(sentence) if len(sentence) <= LONGEST_QUOTE and triple.tail in sentence else None


def _in_quotes(sentence: str) -> str:
    return f"“{' '.join(sentence.split()).rstrip('.')}”"


def guide_to(
    item: Item,
    passages: Sequence[Passage],
    text: str,
    *,
    after_error: bool = False,
    unnamed: bool = False,
    style: WordingStyle = "seen",
) -> str:
    """Write the action for an item (``after_error``: for it again); ``unnamed`` leaves out the telling title."""
    codes = ("find", "instead")
    if unnamed:
        codes = ("read_unnamed", "read_unnamed")
    elif item.sentence is not None:
        codes = ("read", "read_instead")
    elif is_free(item.triples[0]):
        codes = ("ask", "ask_instead")
    target = sought(item, passages)
    return render("guidance", codes[after_error], text, style=style, what=target, passage=item.passage_number)
