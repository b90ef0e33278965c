"""Shortens a sentence: removes the brackets, asides and further facts that a reader does not need."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from safe_stepwise.language.syntax import MAX_TEXT_CHARS, parse_tree

if TYPE_CHECKING:
    from spacy.tokens import Token
else:
    Token = Any

_BRACKETS = re.compile(r" ?\([^()]*\)| ?\[[^\[\]]*\]")
_DETAILS = frozenset(("prep", "npadvmod", "agent"))
_ASIDES = frozenset(("relcl", "appos", "acl", "parataxis"))
_CONDITIONS = frozenset("according except without unlike until despite instead if unless".split())
"""Words that open a condition of a statement, without which it may be false."""
_SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj"))
_JOINTS = frozenset((",", ";", "–", "—", "-"))
_UNGRAMMATICAL = re.compile(r"[.:] ?\.$|\. [a-z]|[({] ?[:;,)]|\b(?:the|an?|of|in|and|as)\.$")
_MAX_NESTING = 3  # brackets within brackets
_MIN_WORDS = 4  # of a shortened sentence


@lru_cache(maxsize=16384)
def shorten(sentence: str, needed: str) -> tuple[str, ...]:
    """Return shorter forms of a sentence that still contain ``needed``, longest first; none if it has conditions.

    Brackets are removed first, then relative clauses and appositions, then what is joined by "and", then details of
    place, time and manner that follow the verb's first complement.

    >>> for short in shorten("Ana Vorr (born 1901), who lived in Oru, was a poet and the founder of Lom.", "poet"):
    ...     print(short)
    Ana Vorr, who lived in Oru, was a poet and the founder of Lom.
    Ana Vorr was a poet and the founder of Lom.
    Ana Vorr was a poet.
    """
    if len(sentence) > MAX_TEXT_CHARS or not _CONDITIONS.isdisjoint(sentence.lower().split()):
        return ()
    bare = sentence
    for _ in range(_MAX_NESTING):
        bare = _BRACKETS.sub(lambda span: span[0] if needed and needed in span[0] else "", bare)
    tree = parse_tree(bare)
    roots = [token for token, _ in tree if token.dep_ == "ROOT"]
    if not bare.endswith(".") or len(roots) != 1 or not any(c.dep_ in _SUBJECTS for c in roots[0].children):
        return ()
    start = bare.find(needed)
    needed_tokens = [token for token, span in tree if span[0] < start + len(needed) and start < span[1]]
    needed_indices = {above.i for token in needed_tokens for above in (token, *token.ancestors)} if needed else set()
    forms, removed = [bare], set[int]()
    for level in (_find_asides, _find_conjuncts, _find_details):
        for token in level(roots[0], needed_indices):
            removed |= {inner.i for inner in token.subtree}
        forms.append(_render(bare, tree, removed))
    shorter = (form for form in forms if needed in form and len(form.split()) >= _MIN_WORDS)
    return tuple(form for form in dict.fromkeys(shorter) if form != sentence and not _UNGRAMMATICAL.search(form))


def _find_asides(root: Token, needed_indices: set[int]) -> Iterator[Token]:
    """Yield relative clauses, appositions and the like; a participle only if it describes the subject."""
    subject = next(child for child in root.children if child.dep_ in _SUBJECTS)
    for token in root.subtree:
        is_aside = token.dep_ in _ASIDES and (token.dep_ != "acl" or token.head.i == subject.i)
        if is_aside and token.i not in needed_indices and token.i > subject.left_edge.i:
            yield token


def _find_conjuncts(root: Token, needed_indices: set[int]) -> Iterator[Token]:
    """Yield what is joined to the verb or its complements, with the conjunction."""
    for head in (root, *(child for child in root.children if child.dep_ not in _SUBJECTS)):
        joined = [child for child in head.children if child.dep_ == "conj"]
        if joined and not _is_definite(head) and not any(child.i in needed_indices for child in joined):
            yield from joined
            yield from (child for child in head.children if child.dep_ in ("cc", "preconj"))


def _find_details(root: Token, needed_indices: set[int]) -> Iterator[Token]:
    """Yield what follows the verb's first complement, and the details of that complement."""
    complements = [child for child in root.children if child.i > root.i and child.dep_ not in ("punct", "cc", "conj")]
    for complement in complements[1:]:
        if complement.i not in needed_indices and complement.dep_ in _DETAILS:
            yield complement
    for complement in complements[:1]:
        for child in complement.children if not _is_definite(complement) else ():
            is_detail = child.dep_ in ("prep", "acl") and child.text != "of"
            if is_detail and child.i > complement.i and child.i not in needed_indices:
                yield child


def _is_definite(noun: Token) -> bool:
    """Whether a noun says little without what follows it: "the name", "his son"."""
    return any(child.tag_ in ("PRP$", "POS") or child.lower_ == "the" for child in noun.children)


def _render(text: str, tree: list[tuple[Token, tuple[int, int]]], removed: set[int]) -> str:
    """Join the tokens that are left, without the marks beside removed parts."""
    dropped = set(removed)
    for (token, _), (following, _) in pairwise(tree):
        if token.text in _JOINTS and (following.i in removed or (token.i - 1 in removed and token.text == ",")):
            dropped.add(token.i)
    pieces: list[str] = []
    end = 0
    for token, (start, stop) in tree:
        if token.i in dropped:
            end = max(end, stop)
            continue
        if not pieces or start > end:
            pieces.append(text[max(end, start - 1) if text[max(0, start - 1)] == " " else start : start])
        pieces.append(text[max(start, end) : stop])
        end = stop
    words = " ".join("".join(pieces).split())
    return re.sub(r"\s+([,.;])", r"\1", words[:1].upper() + words[1:].rstrip(" ,;.") + ".")
