"""Looks up an annotated hop in passages: finds the sentence that states it.

A hop is one fact of a question: a triple (2WikiMultihopQA), or a single-hop question with its answer (MuSiQue).
"""

from collections.abc import Sequence

from safe_stepwise.graphs.hops import AnnotatedHop
from safe_stepwise.language import reading, vocabulary
from safe_stepwise.language.grounding import Finding, ground
from safe_stepwise.language.mentions import first_mention, is_about, mentions
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.records import Passage

_STOP_WORDS = vocabulary.word_list("stop_words")
_MIN_OVERLAP = 0.2
"""Share of a hop question's content words that its passage must have, unless the passage names an earlier answer. Of
313 real hops in free words, one noisy hop and no clean one are below it."""


def look_up(hop: AnnotatedHop, passages: Sequence[tuple[int, Passage]]) -> Finding:
    """Return what numbered passages (from 1) state about a hop; one in free words has only its own passage."""
    triple = hop.triple
    if not hop.free and (triple.relation in RELATIONS or triple.passage is None):
        finding = ground(*triple.names, passages)
        is_there = finding.status == "mentioned" and finding.passage == triple.passage
        # The annotated passage may use another name for the head: a part of the name is enough.
        if is_there and triple.passage and _share_of_words(triple.head, dict(passages)[triple.passage]) > 0:
            return finding._replace(status="stated", loose=True)
        return finding
    for number, passage in passages:
        if triple.passage in (None, number):
            return _find_answer(hop, number, passage)
    return Finding("absent")


def locate(hop: AnnotatedHop, passages: Sequence[tuple[int, Passage]]) -> tuple[int, int] | None:
    """Return the passage (from 1) and sentence (from 0) that state a hop; passages about its head are tried first."""
    head_pages = [page for page in passages if is_about(reading.read(page[1]), hop.triple.head)]
    finding = look_up(hop, [*head_pages, *(page for page in passages if page not in head_pages)])
    if finding.status != "stated" or finding.passage is None:
        return None
    return finding.passage, finding.sentence or 0


def _find_answer(hop: AnnotatedHop, number: int, passage: Passage) -> Finding:
    """Find a hop's answer in the annotated passage, which must share words with the hop or name what it refers to."""
    text = reading.read(passage)
    if (offset := first_mention(text, hop.triple.tail)) is None:
        return Finding("absent")
    sentence = text.sentence_at(offset)
    claim = hop.triple.relation if hop.free else f"{hop.triple.head} {hop.triple.relation}"
    is_linked = any(mentions(text, name) or is_about(text, name) for name in hop.refers)
    if (hop.refers or not hop.free) and not is_linked and _share_of_words(claim, passage) < _MIN_OVERLAP:
        return Finding("mentioned", number, sentence)
    return Finding("stated", number, sentence)


def _share_of_words(text: str, passage: Passage) -> float:
    """Return the share of a text's content words that a passage has, by their first letters."""
    stems = {word[:5] for word in f"{reading.clean(passage.title)} {reading.read(passage).clean}".split()}
    words = [w for w in reading.clean(text).replace("?", "").split() if w not in _STOP_WORDS]
    return sum(word[:5] in stems for word in words) / max(1, len(words))
