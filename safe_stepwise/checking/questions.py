"""How the facts of a plan are asked for, one simple question each.

The wordings stand in ``vocabulary/questions.yaml``. A hop of MuSiQue's that is a question in words
is asked as it stands, with earlier answers filled in.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from safe_stepwise.checking.statements import asked_of, fill, is_free
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Triple

_WORDINGS: Mapping[str, Any] = load("questions")


def ask(triples: Sequence[Triple], for_head: bool = False) -> str:
    """The question that a fact answers: with its tail, or with its head where the tail is known.

    >>> ask([Triple("Dune Rain", "director", "Ors Velt")])
    'Who directed Dune Rain?'
    >>> ask([Triple("Oru", "when was … founded", "1901")])
    'When was Oru founded?'
    >>> ask([Triple("Oru", "mascot", "Bo")]), ask([Triple("Oru", "mascot", "Bo")], for_head=True)
    ('What is the mascot of Oru?', 'What has Bo as its mascot?')
    """
    first = triples[0]
    if is_free(first):
        words = " ".join(asked_of(triples).split()).strip(" ?") + "?"
        return words[:1].upper() + words[1:]
    if for_head:
        other = f"What has {{t}} as its {first.relation}?"
        return fill(_WORDINGS["of_the_head"].get(first.relation, other), t=first.tail)
    other = f"What is the {first.relation} of {{h}}?"
    return fill(_WORDINGS["questions"].get(first.relation, other), h=first.head)


def besides(question: str, known: Sequence[str]) -> str:
    """A question once more, for another answer than those that are known.

    >>> besides("Who directed Dune Rain?", ["Ors Velt"])
    'Besides Ors Velt, who directed Dune Rain?'
    """
    opened = question[:1].lower() + question[1:]
    return fill(_WORDINGS["besides"], known=" and ".join(known), q=opened)


def given(question: str, found: Sequence[tuple[str, str]]) -> str:
    """A question with what was found put in: pairs of a question and its answer.

    >>> given("Where was its director born?", [("Who directed Dune Rain?", "Ors Velt")])
    'Where was its director born, given that the answer to “Who directed Dune Rain?” is Ors Velt?'
    """
    told = " and ".join(f"the answer to “{asked}” is {answer}" for asked, answer in found)
    return fill(_WORDINGS["given"], q=question.rstrip(" ?"), found=told) if told else question
