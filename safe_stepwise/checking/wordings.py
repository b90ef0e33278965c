"""How a step is put, and how a finding of the checker is: diagnosis (why, and where the text says so) and guidance.

What a step says is the caller's; a grammar (``vocabulary/phrases.yaml``) varies how it is said, whatever label the
step will get, so that no wording gives a label away. Half of it is held back for tests; for models that have room for
little there are brief wordings (``vocabulary/brief.yaml``). Findings have a grammar of parts,
``vocabulary/verdicts.yaml``; which ones are taken depends on the step's words, so that equal steps get equal verdicts
and a dataset is not written in one tone.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, Literal

from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.statements import fill, filled_question, is_free, noun_of, pick, state
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Passage

Half = Literal["seen", "unseen", "brief", "brief unseen"]
"""Which wordings are taken; those that are ``unseen`` are held back for tests."""
HELD_BACK: Mapping[Half, Half] = {"seen": "unseen", "brief": "brief unseen"}

_SLOT = re.compile(r"{(\w+)}|\[([^\]]*)\]")


def choice_for(*texts: str) -> int:
    """A number that depends on some texts alone.

    >>> choice_for("a") == choice_for("a") != choice_for("b")
    True
    """
    return int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[:4], "big")


class _Lacking(Exception):
    """A wording wants a value that is not there."""


def part_of(half: Half) -> str:
    """The key of a half's wordings in the vocabulary."""
    return "unseen" if half.endswith("unseen") else "seen"


def is_brief(half: Half) -> bool:
    """Whether brief wordings go before others."""
    return half.startswith("brief")


def phrase(kind: str, seed: str, *, half: Half = "seen", **values: object) -> str:
    """One wording of a kind of step; such as want a value that is not given are not taken.

    Equal arguments give equal words. Raises KeyError for a kind that is none.

    >>> phrase("fact", "b", n=3, claim="Oru is a town")
    'Here, Oru is a town, according to Passage 3.'
    >>> phrase("fact", "b", half="brief", n=3, claim="Oru is a town")
    'Passage 3: Oru is a town.'
    """
    values["later" if values.get("k") else "first"] = ""
    if " and " in str(values.get("steps")):
        values["several"] = ""
    text = _draw(kind, half, seed, {k: str(v) for k, v in values.items() if v is not None})
    return text[:1].upper() + text[1:]


def _draw(kind: str, half: Half, seed: str, values: Mapping[str, str]) -> str:
    brief = load("brief")["phrases"] if is_brief(half) else {}
    options: Sequence[str] = (brief.get(kind) or load("phrases")[kind])[part_of(half)]
    start = choice_for(seed, kind)
    for n in range(len(options)):
        try:
            return _filled(options[(start + n) % len(options)], half, seed, values)
        except _Lacking:
            continue
    raise _Lacking(kind)


def _filled(option: str, half: Half, seed: str, values: Mapping[str, str]) -> str:
    """A wording with its places filled; values are not looked into."""
    pieces: list[str] = []
    end = 0
    for number, place in enumerate(_SLOT.finditer(option)):
        pieces.append(option[end : place.start()])
        end = place.end()
        name, alternatives = place.groups()
        if name is None:
            choices = alternatives.split("|")
            chosen = choices[choice_for(seed, option, str(number)) % len(choices)]
            pieces.append(_filled(chosen, half, seed, values))
        elif name in values:
            pieces.append(values[name])
        elif name in load("phrases"):
            pieces.append(_draw(name, half, seed, values))
        else:
            raise _Lacking(name)
    return "".join([*pieces, option[end:]])


_PLACE = re.compile(r"{(\w+)}(\.?)")
_EITHER = re.compile(r"\[([^]]*)\]")
LONGEST_QUOTE = 200
"""Characters of a sentence that a diagnosis may quote where we have words of our own for it."""


def render(section: str, code: str, text: str, *, half: Half = "seen", **values: Any) -> str:
    """One wording of ``diagnosis`` or ``guidance``; parts with a value that is None are not taken.

    >>> render("guidance", "conclude", "a step", steps="Step 1")
    'Conclude from Step 1 what the question asks for, as the facts for it are in.'
    """
    values_ = {name: " ".join(str(v).split()) for name, v in values.items() if v is not None}
    for slot, options in _fitting(section, code, half, frozenset(values_)).items():
        clause = _placed(pick(options, choice_for(text, f"{section} {slot}")), values_)
        values_ |= {slot: clause, slot.capitalize(): _capital(clause)}
    return values_["join"]


@cache
def _fitting(section: str, code: str, half: Half, names: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Select the options of each slot whose fields are all available."""
    fitting, available = {}, set(names)
    for slot, options in grammar(section, code, half).items():
        fitting[slot] = tuple(option for option, fields in options if fields <= available)
        available |= {slot, slot.capitalize()}
    return fitting


@cache
def grammar(section: str, code: str, half: Half = "seen") -> Mapping[str, tuple[tuple[str, frozenset[str]], ...]]:
    """The options of each kind of part, with the values they need; last ``join``, the whole text.

    >>> list(grammar("diagnosis", "contradicted"))
    ['finding', 'reason', 'join']
    """
    verdicts = load("brief") if is_brief(half) else {}
    verdicts = verdicts if code in verdicts.get(section, ()) else load("verdicts")
    kinds = dict(verdicts[section][code])
    full_texts = kinds.pop("whole", [])
    kinds["join"] = [verdicts["joins"][next(iter(kinds))], full_texts]
    return {
        kind: tuple((o, frozenset(n for n, _ in _PLACE.findall(o))) for o in _options(tree, part_of(half)))
        for kind, tree in kinds.items()
    }


def _options(tree: Any, half: str) -> Iterator[str]:
    """The wordings of a half of the vocabulary: of a text each choice, of lists what they hold."""
    if isinstance(tree, Mapping):
        yield from _options(tree[half], half)
    elif isinstance(tree, str):
        pieces = _EITHER.split(tree)
        choices = [p.split("|") if n % 2 else [p] for n, p in enumerate(pieces)]
        yield from map("".join, product(*choices))
    else:
        for branch in tree:
            yield from _options(branch, half)


def _placed(wording: str, values: Mapping[str, str]) -> str:
    """A wording with its values, which are not looked into: a brace of theirs stays one.

    >>> _placed("It is {what}. {More}.", {"what": "Ors Velt Jr.", "More": "So it {is}"})
    'It is Ors Velt Jr. So it {is}.'
    """

    def value(place: re.Match[str]) -> str:
        name, stop = place.groups()
        return values[name] + ("" if values[name].endswith((".", "!", "?")) else stop)

    return _PLACE.sub(value, wording)


def _capital(clause: str) -> str:
    """A clause as it stands at the head of a sentence.

    >>> _capital("the step repeats it"), _capital("iPod Touch was made by Apple")
    ('The step repeats it', 'iPod Touch was made by Apple')
    """
    first = clause.split(maxsplit=1)[0] if clause else ""
    return clause if first[1:] != first[1:].lower() else clause[:1].upper() + clause[1:]


def sought(item: Item, passages: Sequence[Passage]) -> str:
    """Word what an item looks for, as a noun phrase or question that does not give the value away."""
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
    """`sought` as it stands inside a sentence."""
    if item.sentence is not None:
        return f"the key fact about “{sought(item, passages)}”"
    if is_free(item.triples[0]):
        return f"the answer to “{sought(item, passages)}”"
    return sought(item, passages)


def state_item(item: Item, passages: Sequence[Passage], choice: int = 0) -> str:
    """Word what a passage says of an item: our statement of it, or its own sentence."""
    if item.sentence is not None:
        return _in_quotes(item.quoted(passages))
    return state(item.triples, choice)


def quote_item(item: Item, passages: Sequence[Passage]) -> str | None:
    """The passage's own sentence for an item, where one is known to give the value."""
    if item.sentence is not None:
        return state_item(item, passages)
    triple, page = item.triples[0], item.page(passages)
    if triple.sentence is None or triple.sentence >= len(page.sentences):
        return None
    sentence = page.sentences[triple.sentence]
    fits = len(sentence) <= LONGEST_QUOTE and triple.tail in sentence
    return _in_quotes(sentence) if fits else None


def _in_quotes(sentence: str) -> str:
    return f"“{' '.join(sentence.split()).rstrip('.')}”"


def guide_to(
    item: Item,
    passages: Sequence[Passage],
    text: str,
    *,
    is_repeated: bool = False,
    unnamed: bool = False,
    half: Half = "seen",
) -> str:
    """The action that an item asks for; ``is_repeated`` after a step that got it wrong.

    ``unnamed``: without the title of the passage that tells what is asked for.
    """
    codes = ("find", "instead")
    if unnamed:
        codes = ("read_unnamed", "read_unnamed")
    elif item.sentence is not None:
        codes = ("read", "read_instead")
    elif is_free(item.triples[0]):
        codes = ("ask", "ask_instead")
    target = sought(item, passages)
    return render("guidance", codes[is_repeated], text, half=half, what=target, passage=item.passage)
