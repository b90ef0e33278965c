"""Changes a question's passages, so that the same step gets another label.

A step's label has to depend on the passages. So a question also occurs with another value in a passage, without the
passage of a fact, or with a passage of another question: the same step is then Correct in one context, and
Contradictory, Unsupported or Off-topic in another.
"""

import re
from dataclasses import dataclass, replace

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.claims import Claims
from safe_stepwise.checking.plans import Item, PlanError
from safe_stepwise.checking.wordings import WordingStyle, choice_for
from safe_stepwise.language import reading, relations
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.text import CAPITAL, as_date, normal_name, normal_words
from safe_stepwise.records import Label, Passage, Question, Triple
from safe_stepwise.store.names import ContextKind

_NAME_GOES_ON = re.compile(rf"[ -]{CAPITAL}")
_NAME_BEFORE = re.compile(rf"({CAPITAL}[\w'’.-]*) $")


@dataclass(frozen=True, slots=True)
class Context:
    """A question with its passages, the checker of its steps, and the question that lent a passage."""

    question: Question
    checker: Checker
    kind: ContextKind = "original"
    borrowed: str | None = None


@dataclass(frozen=True, slots=True)
class StepSource:
    """A verified question with its label and checker, from which contexts are made."""

    question: Question
    label: Label
    checker: Checker

    @classmethod
    def build(cls, question: Question, label: Label, style: WordingStyle = "seen") -> "StepSource":
        """Make the checker of a question in a ``style``; raise ``PlanError`` if the label's path gives no plan."""
        path, graph = label.reasoning_path, label.knowledge_graph
        return cls(question, label, Checker(question, path, graph, style))


def alter_value(source: StepSource, item: Item, value: str, new_value: str) -> Context | None:
    """Give a fact's passage, path and graph another value; None if a part of the old remains, or it is the title."""
    number, page = item.passage_number, item.page(source.question.passages)
    assert number is not None
    facts = source.checker.claims.facts
    if normal_name(value) == normal_name(page.title) or any(new_value in f.ends for f in facts):
        return None
    changed = replace(page, sentences=tuple(replace_value(s, value, new_value) for s in page.sentences))
    if changed == page or _has_remnant(changed, value, new_value):
        return None

    def alter(triple: Triple) -> Triple:
        is_altered = triple.passage == number and normal_name(triple.tail) == normal_name(value)
        return replace(triple, tail=new_value) if is_altered else triple

    question = _with_page(source.question, number, changed)
    if normal_name(question.answer) == normal_name(value):
        question = replace(question, answer=new_value, aliases=())
    path, graph = (tuple(map(alter, ts)) for ts in (source.label.reasoning_path, source.label.knowledge_graph))
    return _context(source, replace(source.label, reasoning_path=path, knowledge_graph=graph), question, "altered")


def add_sentence(source: StepSource, item: Item, sentence: str) -> Context | None:
    """Let the passage of a fact end with a sentence; return None if the path then gives no plan."""
    number, page = item.passage_number, item.page(source.question.passages)
    assert number is not None
    question = _with_page(source.question, number, replace(page, sentences=(*page.sentences, sentence)))
    return _context(source, source.label, question, "altered")


def exchange_passage(source: StepSource, item: Item, partner: Question, seed: str) -> Context | None:
    """Replace the passage of a fact by one of ``partner`` with the most similar title, which lacks the fact's value.

    None if none of its three likeliest passages fits.
    """
    number, value = item.passage_number, source.checker.claims.value_of(item)
    assert number is not None
    title = set(normal_words(item.page(source.question.passages).title).split())
    titles = {page.title for page in source.question.passages}
    pages = [page for page in partner.passages if page.title not in titles]
    pages.sort(key=lambda p: (-len(title & set(normal_words(p.title).split())), choice_for(seed, p.title)))
    for page in pages[:3]:
        changed = _with_page(source.question, number, replace(page, is_gold=False))
        if all(first_mention(reading.read(passage), value) is None for passage in changed.passages):
            return Context(changed, source.checker.with_page(number, page), "borrowed", partner.id)
    return None


def add_passage(source: StepSource, partner: StepSource, item: Item, seed: str) -> tuple[Context, int] | None:
    """Replace a distractor by the passage of the partner's ``item``; return the context and the passage's number."""
    page, pages = item.page(partner.question.passages), source.question.passages
    free = [n for n, passage in enumerate(pages, 1) if not passage.is_gold]
    if not free or any(page.title == passage.title for passage in pages):
        return None
    number = item.passage_number if item.passage_number in free else free[choice_for(seed) % len(free)]
    assert number is not None
    changed = _with_page(source.question, number, replace(page, is_gold=False))
    graph = (*source.label.knowledge_graph, *(replace(t, passage=number) for t in item.triples))
    label = replace(source.label, knowledge_graph=graph)
    context = _context(source, label, changed, "borrowed", partner.question.id)
    return None if context is None else (context, number)


def _context(
    source: StepSource, label: Label, question: Question, kind: ContextKind, borrowed: str | None = None
) -> Context | None:
    """Return a changed question with its checker in the source's style; None if the label's path gives no plan."""
    try:
        return Context(question, StepSource.build(question, label, source.checker.style).checker, kind, borrowed)
    except PlanError:
        return None


def ends(claims: Claims, item: Item, value: str) -> bool:
    """Whether nothing depends on a value: no other fact has it, and no passage is about it."""
    names = [name for fact in claims.facts if fact is not item for name in fact.ends]
    return normal_name(value) not in map(normal_name, [*names, *(page.title for page in claims.passages)])


def replace_value(sentence: str, value: str, new_value: str) -> str:
    """Replace a value in a sentence, except where it is a part of a longer name.

    >>> replace_value("He sailed the Pacific Ocean near Ohio.", "Pacific", "Oru")
    'He sailed the Pacific Ocean near Ohio.'
    >>> replace_value("In Ohio he sailed.", "Ohio", "Oru")
    'In Oru he sailed.'
    """

    def substitute(match: re.Match[str]) -> str:
        return new_value if as_date(value) or _is_whole(sentence, *match.span()) else match[0]

    return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", substitute, sentence)


def _is_whole(sentence: str, start: int, end: int) -> bool:
    """Whether a span is a whole name: no other word of a name is next to it, except a nation before it."""
    if _NAME_GOES_ON.match(sentence, end):
        return False
    name = _NAME_BEFORE.search(sentence[:start])
    return name is None or reading.clean(name[1]) in reading.OPENERS or relations.is_nation(reading.clean(name[1]))


def _has_remnant(page: Passage, value: str, new_value: str) -> bool:
    """Whether a part of a replaced value, such as a surname, remains in the passage."""
    if first_mention(reading.read(Passage("", page.sentences)), value) is not None:
        return True
    if as_date(value):
        return False
    words = [w for w in value.split() if len(w) > 2 and w[0].isupper() and w not in new_value]
    return any(re.search(rf"\b{re.escape(word)}\b", s) for word in words for s in page.sentences)


def _with_page(question: Question, number: int, page: Passage) -> Question:
    pages = question.passages
    return replace(question, passages=(*pages[: number - 1], page, *pages[number:]))
