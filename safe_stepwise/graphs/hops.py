"""Turns the hops that a benchmark annotates into triples: 2Wiki's evidence, MuSiQue's decomposition."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from safe_stepwise.language.relations import TriplePattern, parse_question
from safe_stepwise.language.text import normal_name
from safe_stepwise.records import Hop, Question, Triple

_REFERENCE = re.compile(r"#(\d+)")
_LEADING_WORD = re.compile(r"^(?:under|in|on|at|by|during|from|of|an?) (?=[A-ZÀ-ÞŠ])")
_SORT_OF_WORK = re.compile(r"^(?:the )?(?:\d{4} )?(?:film|song|album|book|novel) (?=[A-ZÀ-ÞŠ])")


@dataclass(frozen=True, slots=True)
class AnnotatedHop:
    """One annotated hop; ``free`` if its relation is a question in words.

    ``triple.passage`` is set if the benchmark names the passage. ``refers`` are the earlier answers that a free hop
    builds on.
    """

    triple: Triple
    free: bool = False
    refers: tuple[str, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triple; of a free hop that builds on several answers, one with each of them as its head."""
        if not self.free or len(self.refers) < 2:
            return (self.triple,)
        return tuple(replace(self.triple, head=head) for head in self.refers)


def annotated_hops(question: Question) -> tuple[AnnotatedHop, ...]:
    """Return the hops of the benchmark: the decomposition if there is one, else the evidence triples.

    >>> from safe_stepwise.records import Hop
    >>> question = Question("q", "musique", "train", "", "Kelvia", decomposition=(
    ...     Hop("Ana Vorr >> place of birth", "Oru"), Hop("In which country is #1?", "Kelvia")))
    >>> [(t.head, t.relation, t.tail) for hop in annotated_hops(question) for t in hop.triples]
    [('Ana Vorr', 'place of birth', 'Oru'), ('Oru', 'country', 'Kelvia')]
    """
    if question.decomposition:
        return _read_decomposition(question.decomposition, tuple(passage.title for passage in question.passages))
    return tuple(AnnotatedHop(triple) for triple in question.evidence)


@lru_cache(maxsize=256)
def _read_decomposition(hops: tuple[Hop, ...], titles: tuple[str, ...]) -> tuple[AnnotatedHop, ...]:
    """Turn a decomposition into hops; cached, as each passage of a question asks for them."""
    annotated: list[AnnotatedHop] = []
    answers = {str(number): hop.answer for number, hop in enumerate(hops, 1)}
    referred = {n for hop in hops for n in _REFERENCE.findall(hop.question)}

    def fill(text: str) -> str:
        return _REFERENCE.sub(lambda match: answers.get(match[1], match[0]), text)

    for number, hop in enumerate(hops, 1):
        refers = [fill(f"#{n}") for n in _REFERENCE.findall(hop.question)]
        if number == len(hops):
            # The last hop also needs the answers that no other hop refers to.
            refers += [answers[str(n)] for n in range(1, number) if str(n) not in referred]
        head, arrow, relation = (side.strip() for side in hop.question.partition(">>"))
        pattern = TriplePattern(head, relation) if arrow else parse_question(hop.question)
        if pattern:
            subject = _SORT_OF_WORK.sub("", _LEADING_WORD.sub("", fill(pattern.subject)))
            ends = (hop.answer, subject) if pattern.inverse else (subject, hop.answer)
            annotated.append(AnnotatedHop(Triple(ends[0], pattern.relation, ends[1], hop.passage)))
        else:
            words = _REFERENCE.sub("…", hop.question).strip()
            start = refers[0] if refers else _choose_head(hop, titles)
            annotated.append(AnnotatedHop(Triple(start, words, hop.answer, hop.passage), True, tuple(refers)))
    return tuple(annotated)


def _choose_head(hop: Hop, titles: Sequence[str]) -> str:
    """Return a first hop's head: its passage's title, or its question if there is no title or it is the answer."""
    title = titles[hop.passage - 1] if hop.passage else ""
    return hop.question if normal_name(title) in ("", normal_name(hop.answer)) else title
