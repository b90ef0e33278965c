"""Look up an annotated hop in passages: find the sentence that states it.

A hop is one fact of a question: a triple (2WikiMultihopQA), or a single-hop question with its answer (MuSiQue).
"""

from collections.abc import Sequence
from dataclasses import replace

from safe_stepwise.graphs.hops import AnnotatedHop
from safe_stepwise.language.grounding import Finding, ground
from safe_stepwise.language.mentions import first_mention, is_about, mentions
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage

_STOP_WORDS = word_list("stop_words")
_LEAST_OVERLAP = 0.2
"""Share of a hop question's content words that its passage must have, unless the passage names an earlier answer. Of
313 real hops in free words, one noisy hop and no clean one lies below it."""


def look_up(hop: AnnotatedHop, passages: Sequence[tuple[int, Passage]]) -> Finding:
    """Find the sentence that states a hop in passages with their numbers (from 1), or says something else instead.

    A hop in free words is searched only in the passage that its annotation names.
    """
    triple = hop.triple
    if not hop.free and (triple.relation in RELATIONS or triple.passage is None):
        finding = ground(triple.head, triple.relation, triple.tail, passages)
        is_there = finding.status == "mentioned" and finding.passage == triple.passage
        # The annotated passage may use another name for the head: a part of the name is enough.
        if is_there and triple.passage and _overlap(triple.head, dict(passages)[triple.passage]) > 0:
            return replace(finding, status="stated", loose=True)
        return finding
    for number, passage in passages:
        if triple.passage in (None, number):
            return _answered(hop, number, passage)
    return Finding("absent")


def locate(hop: AnnotatedHop, passages: Sequence[tuple[int, Passage]]) -> tuple[int, int] | None:
    """Return the passage (from 1) and sentence (from 0) that state a hop; passages about its head are tried first."""
    head_pages = [page for page in passages if is_about(read(page[1]), hop.triple.head)]
    finding = look_up(hop, [*head_pages, *(page for page in passages if page not in head_pages)])
    if finding.status != "stated" or finding.passage is None:
        return None
    return finding.passage, finding.sentence or 0


def _answered(hop: AnnotatedHop, number: int, passage: Passage) -> Finding:
    text = read(passage)
    if (place := first_mention(text, hop.triple.tail)) is None:
        return Finding("absent")
    sentence = text.sentence_at(place)
    claim = hop.triple.relation if hop.free else f"{hop.triple.head} {hop.triple.relation}"
    linked = any(mentions(text, name) or is_about(text, name) for name in hop.refers)
    builds = hop.refers or not hop.free
    if builds and not linked and _overlap(claim, passage) < _LEAST_OVERLAP:
        return Finding("mentioned", number, sentence)
    return Finding("stated", number, sentence)


def _overlap(text: str, passage: Passage) -> float:
    stems = {word[:5] for word in f"{clean(passage.title)} {read(passage).clean}".split()}
    words = [w for w in clean(text).replace("?", "").split() if w not in _STOP_WORDS]
    return sum(word[:5] in stems for word in words) / max(1, len(words))
