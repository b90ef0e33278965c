"""HotpotQA has no triples: what its supporting facts let one claim without a model.

A bridge question needs its gold passages to be linked (one names the other's subject, or both name
a third thing) and one of them to hold the answer. A comparison needs one described subject a side;
where it compares dates of birth, death, release or founding, the dates are read from the text.
What the question's words ask for is held against both in `asked`.
"""

import re
from collections.abc import Iterator
from itertools import dropwhile, takewhile

from builders.verified.teachers import Proposal
from builders.verified.teachers.asked import doubt
from safe_stepwise.checking.plans import DESCRIBED, NAMES
from safe_stepwise.graphs.comparisons import operation
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.language.grounding import stated_dates
from safe_stepwise.language.mentions import first_mention, is_about, names_in
from safe_stepwise.language.reading import Text, clean, read
from safe_stepwise.language.text import normal_name, without_qualifier
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage, Question, Triple

_COMPARED_DATES = (
    ("date of death", re.compile(r"\b(?:died|death|die)\b", re.IGNORECASE)),
    ("date of birth", re.compile(r"\b(?:born|older|younger|oldest|youngest)\b", re.IGNORECASE)),
    ("publication date", re.compile(r"\b(?:released?|came out|published)\b", re.IGNORECASE)),
    ("inception", re.compile(r"\b(?:founded|formed|established|opened|built)\b", re.IGNORECASE)),
)
_VERB = re.compile(r"\b(?:is|was|are|were|has|have|had|consists?|contains?)\b")
_SHORT_WORD = 3
_CLAUSE = re.compile(r"""[.,;:()"“”–—]|\b(?:that|which|who|whom|whose|where|when|while|because|although)\b""")
_PLAIN_WORD = re.compile(r"[^\W\d_A-Z][^\W\d_A-Z'’-]*")
_LONGEST_RELATION = 5
_LONGEST_CLAUSE = 200
_SAYS_NOTHING = word_list("stop_words") | word_list("function_words")
_LOOSE_END = word_list("loose_ends")
_LONG_WORD = 6
_OPENED = re.compile(r" (?:in|of|at|for) |[,(]")
_COMMON = word_list("common_nouns") | word_list("sorts")


def extract(question: Question, number: int) -> tuple[Triple, ...]:
    """Links of one gold passage to the others, to what they share, and to the answer."""
    passage = question.passages[number - 1]
    if "comparison" in question.kind:
        return tuple(_description(question, number, passage))
    text = read(passage)
    others = [other for n, other in question.gold if n != number]
    # A passage that names itself names no namesake: the album and the band "Dune Rain".
    own = normal_name(passage.title)
    linked = [other.title for other in others if normal_name(other.title) != own]
    found = [*_named(passage, number, linked), *_named_in_part(passage, text, number, linked)]
    if not is_about(text, question.answer):
        found += _named(passage, number, [question.answer])
    titles = {normal_name(p.title.split(" (")[0]) for _, p in question.gold}
    elsewhere = [names_in(other) for other in others]
    for name, (written, sentence) in names_in(passage).items():
        if normal_name(name) not in titles and all(name in names for names in elsewhere):
            relation = led_to(passage.sentences[sentence], written)
            found.append(Triple(passage.title, relation, written, number, sentence))
    return tuple(found)


def _named(passage: Passage, number: int, names: list[str]) -> Iterator[Triple]:
    text = read(passage)
    for name in names:
        start = first_mention(text, name)
        if start is not None:
            sentence = text.sentence_at(start)
            relation = led_to(passage.sentences[sentence], name)
            yield Triple(passage.title, relation, name, number, sentence)


def led_to(sentence: str, name: str) -> str:
    """The words of a sentence that lead to a name: what it is to the subject, else that it "names".

    They are the last few words in lower case before it, without loose ends; words that say nothing
    alone ("of the") are none.

    >>> led_to("It is a film that was directed by the painter Ors Velt.", "Ors Velt")
    'directed by the painter'
    >>> led_to("Ana Leigh, role of Hester's and Ors Velt", "Ors Velt")
    'names'
    """
    bare = without_qualifier(name)
    places = map(sentence.find, (bare, bare.split(",")[0], *bare.split()[-1:]))
    before = sentence[: next((place for place in places if place > 0), 0)]
    if before[-1:].isalnum():
        return NAMES
    clause = _CLAUSE.split(before[-_LONGEST_CLAUSE:].rstrip("\"“‘' "))[-1]
    words = list(takewhile(_PLAIN_WORD.fullmatch, reversed(clause.split())))[:_LONGEST_RELATION]
    words = list(dropwhile(_LOOSE_END.__contains__, words))[::-1]
    return " ".join(dropwhile(_SAYS_NOTHING.__contains__, words)) or NAMES


def _named_in_part(passage: Passage, text: Text, number: int, titles: list[str]) -> Iterator[Triple]:
    """Titles that the passage does not give in full, but by a name within them ("Hotspur")."""
    lacking = [title for title in titles if first_mention(text, title) is None]
    named = {word for name in names_in(passage) for word in name.split()} if lacking else set()
    for title in lacking:
        words = [w for w in clean(title.split(" (")[0]).split() if w in named]
        telling = [w for w in words if len(w) > _SHORT_WORD and w not in _COMMON]
        places = [text.sentence_at(text.clean.find(f" {telling[-1]} ") + 1)] if telling else []
        for sentence in places or _in_other_words(passage, title):
            yield Triple(text.title, NAMES, title, number, sentence)


def _in_other_words(passage: Passage, title: str) -> Iterator[int]:
    """The first sentence with each word of what a title is about ("politically correct").

    That is what stands before "in", "of", a comma: "Tourism in Oru" is about tourism. A single word
    must be a long one and stand there as it is; of several their stems do.
    """
    words = [w for w in clean(_OPENED.split(title)[0]).split() if w not in _SAYS_NOTHING]
    stems = [f" {word[:5]}" for word in words]
    if len(words) < 2:
        stems = [f" {word} " for word in words if len(word) > _LONG_WORD and word not in _COMMON]
    for number, sentence in enumerate(passage.sentences if stems else ()):
        told = f" {clean(sentence)} "
        if all(stem in told for stem in stems):
            yield number
            return


def _description(question: Question, number: int, passage: Passage) -> Iterator[Triple]:
    relation = _compared_date(question.question)
    if relation:
        for sentence, date in stated_dates(passage, relation)[:1]:
            yield Triple(passage.title, relation, date, number, sentence)
    for fact in question.supporting_facts:
        if fact.title == passage.title and fact.sentence < len(passage.sentences):
            told = _VERB.split(passage.sentences[fact.sentence], maxsplit=1)[-1]
            words = " ".join(told.split()[:12]).rstrip(".,;")
            if normal_name(words) != normal_name(passage.title):
                yield Triple(passage.title, DESCRIBED, words, number, fact.sentence)


def _compared_date(question: str) -> str:
    if operation(question) not in ("earliest", "latest"):
        return ""
    return next((name for name, pattern in _COMPARED_DATES if pattern.search(question)), "")


def propose(question: Question, graph: KnowledgeGraph) -> Proposal:
    """A path over the links, or why there is none, or why the answer does not follow."""
    found = _linked(question, graph)
    against = doubt(question) if found.noise_type == "none" else None
    return Proposal(found.path, *against) if against else found


def _linked(question: Question, graph: KnowledgeGraph) -> Proposal:
    titles = [passage.title for _, passage in question.gold]
    relation = _compared_date(question.question)
    if "comparison" in question.kind:
        dated = [triple for title in titles for triple in graph.find(title, relation)]
        told = [graph.find(title, DESCRIBED)[:1] for title in titles]
        if len(dated) == len(titles):
            return Proposal(tuple(dated), "none", "", 0.9)
        return Proposal(tuple(t for found in told for t in found), "none", "", 0.6)
    subjects = [p.title for _, p in question.gold if is_about(read(p), question.answer)]
    goal = subjects[0] if subjects else question.answer
    paths = {title: graph.path([title], goal) for title in titles}
    reached = [t for t, path in paths.items() if path is not None or graph.same(t, goal)]
    # Namesakes (the album and the band "Dune Rain") are joined by their name, which is no triple.
    lost = [t for t in titles if normal_name(t) not in map(normal_name, reached)]
    if not subjects and goal not in graph:
        why = f"The answer “{goal}” was not found in the gold passages."
        return Proposal((), "missing_evidence", why, 0.6)
    if lost:
        why = f"No link was found between the gold passages, from “{lost[0]}” to “{goal}”."
        return Proposal((), "missing_evidence", why, 0.4)
    return Proposal(max((path or () for path in paths.values()), key=len), "none", "", 0.7)
