"""Whether a path is right, decided anew from the raw files: it shares no code with the builder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

Told = Sequence[tuple[str, str, str]]


def plain(name: str) -> str:
    """A name without article and the brackets at its end, as questions write it."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    bare = re.sub(r"^(the|an?) | \([^()]*\)$|[\u0300-\u036f]", "", plain)
    return re.sub(r"\W+", " ", bare).strip() or name


def follows(path: Told, starts: Iterable[str]) -> bool:
    known = {plain(start) for start in starts}
    for head, _, tail in path:
        if not {plain(head), plain(tail)} & known:
            return False
        known |= {plain(head), plain(tail)}
    return True


def starts(question: str, gold: Told) -> set[str]:
    """What the question names, and heads that the gold path itself starts from anew."""
    known = {e for h, _, t in gold for e in (h, t) if f" {plain(e)} " in f" {plain(question)} "}
    for n, (head, _, _) in enumerate(gold):
        if not follows(gold[: n + 1], known):
            known.add(head)
    return known


def is_right(question: str, path: Told, golds: Sequence[Told]) -> bool:
    """Text benchmarks: all triples of one gold path and no other, told in an order that follows."""
    same = (gold for gold in golds if set(gold) == set(path))
    return any(follows(path, starts(question, gold)) for gold in same)


def leads(path: Told, facts: set[tuple[str, str, str]], topic: str, answers: set[str]) -> bool:
    """A knowledge base: true triples, each from where the one before led, from topic to answer."""
    at = topic
    for head, relation, tail in path:
        if (head, relation, tail) not in facts or at not in (head, tail):
            return False
        at = tail if at == head else head
    return at in answers
