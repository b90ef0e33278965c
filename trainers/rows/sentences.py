"""Sentences of passages as claims in pairs: one as the passage has it, and one with one thing changed.

They teach an encoder to compare, before it learns the words of steps. All text is that of the passages; a seed makes
the choices. A wrong claim has one of these errors:

- *value*: a name, a date or a number is another one of its shape (Contradictory)
- *order*: two names with a verb between them change places (Contradictory)
- *subject*: another passage's title stands for the passage's own (Unsupported)
- *fact*: another passage's sentence, about this passage's title (Unsupported)
- *tail*: the sentence goes on as another passage's does (Unsupported)
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from safe_stepwise.language.relations import is_nation
from safe_stepwise.language.text import MONTHS, whole_words_pattern
from safe_stepwise.players.encoding import split_text_of
from safe_stepwise.records import Passage
from safe_stepwise.taxonomy import CORRECT

MIN_WORDS, MAX_WORDS = 5, 35
"""The fewest and the most words of a sentence that becomes a claim."""
_CONTEXT = 1
"""Sentences on either side of the claim's own that stand in its excerpt."""
_OPENINGS = ("According to Passage {}, ", "Based on Passage {}, ", "Passage {} says that ", "From Passage {}: ")
_MONTHS = "|".join(map(str.title, MONTHS))
_DATE = rf"\d{{1,2}} (?:{_MONTHS}) \d{{4}}|(?:{_MONTHS}) \d{{1,2}}, \d{{4}}"
_NAME = r"(?:[A-Z]\.|[A-Z][\w'’-]+)"
_VALUE = re.compile(rf"{_DATE}|\b\d[\d,.]*\d\b|\b\d\b|{_NAME}(?: (?:of |the |de |von )?{_NAME})*")
_IS_PERSON = re.compile(r"\((?:[^()]*\b)?(?:born\b|\d{4} ?[-–])")
_PRONOUNS = {
    True: re.compile(r"(?:He|She)\b"),
    False: re.compile(r"(?:It|The (?:film|band|album|song|series|novel|book|city|town|club|company))\b"),
}
"""What may stand for a passage's title, by whether its first sentence has a person's dates."""
_IS_SYMMETRIC = re.compile(r"\b(?:and|married|known as|near|with|sister|brother|spouse|partner|cousin|between)\b")
_PREDICATE = re.compile(r" (?:is|was|were|are|has|had|won|became|served|plays|played|directed|wrote|stars|starred) ")
_BRACKETS = re.compile(r" ?\([^()]*\)")
ClaimPair = tuple[str, str] | None
"""A right claim and a wrong one, if an error fits."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence as a claim about its passage's ``subject``; ``index`` is its place (from 0) in the passage."""

    passage: Passage
    subject: str
    sentences: Sequence[str]
    index: int
    text: str

    @property
    def following(self) -> str:
        """What the next sentence says of the subject, from its verb on; "" if it speaks of something else."""
        text = "".join(self.sentences[self.index + 1 : self.index + 2])
        pronoun = _pronoun_of(self.sentences).match(text)
        predicate = _PREDICATE.match(text, pronoun.end()) if pronoun else None
        return text[predicate.start() :].rstrip(".") if predicate else ""

    def with_subject(self, name: str) -> str:
        """Return the claim with another name for its subject."""
        return _replace_whole(self.subject, name, self.text)


def make_claims(passages: Sequence[Passage], pairs: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield up to ``pairs`` pairs as (step, excerpt of what it cites, label), the right one of each pair first.

    >>> pages = [Passage("Oru", ("Oru is a town that Ana Vel founded in 1901.",)),
    ...          Passage("Tesk", ("Tesk is a river that rises near Marn.",))]
    >>> for step, excerpt, label in make_claims(pages, 1, seed=2):
    ...     print(f"{label}: {step}")
    Correct: Step 4: Based on Passage 10, Tesk is a river that rises near Marn. (Attribution)
    Unsupported: Step 3: From Passage 10: Tesk is a town that Ana Vel founded in 1901. (Attribution)
    """
    chance = random.Random(seed)
    claims = [claim for passage in dict.fromkeys(passages) for claim in _claims_of(passage)]
    chance.shuffle(claims)
    drafts = (draft for n, claim in enumerate(claims) if (draft := _draft_pair(claim, claims[n - 1], chance)))
    for claim, right, wrong, label in islice(drafts, pairs):
        number = chance.randrange(1, 11)
        near = claim.sentences[max(0, claim.index - _CONTEXT) : claim.index + _CONTEXT + 1]
        excerpt = f"Passage {number}. {claim.passage.title}: {' '.join(near)}"
        for text, label_of_text in ((right, CORRECT), (wrong, label)):
            opening = chance.choice(_OPENINGS).format(number)
            yield f"Step {chance.randrange(1, 5)}: {opening}{text}. (Attribution)", excerpt, label_of_text


def _draft_pair(claim: Claim, donor: Claim, chance: random.Random) -> tuple[Claim, str, str, str] | None:
    """Return a claim with its right text, a wrong one, and that one's label; None if no error fits it."""
    for label, change in chance.sample(_CHANGES, len(_CHANGES)):
        texts = change(claim, donor, chance)
        if texts and texts[0] != texts[1]:
            return claim, *texts, label
    return None


def _claims_of(passage: Passage) -> Iterator[Claim]:
    """Yield the sentences that name their passage's title, or begin with a pronoun for it."""
    sentences, subject = split_text_of(passage), _BRACKETS.sub("", passage.title)
    if not subject or not sentences:
        return
    names_subject, stands_for_it = whole_words_pattern(subject), _pronoun_of(sentences)
    for index, sentence in enumerate(sentences):
        text = _BRACKETS.sub("", sentence).rstrip(".")
        if pronoun := stands_for_it.match(text):
            text = f"{subject}{text[pronoun.end() :]}"
        if names_subject.search(text) and MIN_WORDS <= len(text.split()) <= MAX_WORDS:
            yield Claim(passage, subject, sentences, index, text)


def _pronoun_of(sentences: Sequence[str]) -> re.Pattern[str]:
    return _PRONOUNS[_IS_PERSON.search(sentences[0]) is not None]


def _replace_whole(name: str, replacement: str, text: str) -> str:
    return whole_words_pattern(name).sub(lambda _: replacement, text)


def _drop_end(text: str, chance: random.Random) -> str:
    """Leave out what follows the last comma, half of the time."""
    head, comma, _ = text.rpartition(", ")
    return head if comma and len(head.split()) >= MIN_WORDS and chance.random() < 1 / 2 else text


def _values(*sentences: str) -> list[str]:
    """Return names, dates and numbers; a capital that opens a sentence makes no name."""
    matches = (match for text in sentences for match in _VALUE.finditer(text))
    return [match.group() for match in matches if match.start() or match.group()[0].isdigit()]


def _shape(value: str) -> str:
    """Return a value's form: a number as its digits' places, a name as its number of words."""
    return re.sub(r"\d", "0", value) if value[0].isdigit() else str(len(value.split()))


def _change_value(claim: Claim, donor: Claim, chance: random.Random) -> ClaimPair:
    values = [value for value in _values(claim.text) if value not in claim.subject and claim.subject not in value]
    values = [value for value in values if not is_nation(value.lower())]
    chance.shuffle(values)
    # What its own passage says elsewhere might be true of it, too.
    foreign = [value for value in _values(*donor.sentences) if value not in claim.passage.text]
    for value in values:
        if choices := [other_value for other_value in foreign if _shape(other_value) == _shape(value)]:
            return claim.text, _replace_whole(value, chance.choice(choices), claim.text)
    return None


def _change_order(claim: Claim, donor: Claim, chance: random.Random) -> ClaimPair:
    for name in _values(claim.text):
        first, second = sorted((claim.subject, name), key=claim.text.find)
        between = claim.text[claim.text.find(first) + len(first) : claim.text.find(second)]
        is_name = not name[0].isdigit() and name not in claim.subject and not is_nation(name.lower())
        if is_name and _PREDICATE.search(f"{between} ") and not _IS_SYMMETRIC.search(between):
            swapped = claim.text.replace(first, "\0", 1).replace(second, first, 1).replace("\0", second, 1)
            return claim.text, swapped
    return None


def _change_subject(claim: Claim, donor: Claim, chance: random.Random) -> ClaimPair:
    return None if donor.subject in claim.passage.text else (claim.text, claim.with_subject(donor.subject))


def _borrow_fact(claim: Claim, donor: Claim, chance: random.Random) -> ClaimPair:
    if donor.subject == claim.subject:
        return None
    return _drop_end(claim.text, chance), _drop_end(donor.with_subject(claim.subject), chance)


def _add_tail(claim: Claim, donor: Claim, chance: random.Random) -> ClaimPair:
    """Go on with what the next sentence says of the subject, or with what another passage says of its own."""
    if not claim.following or not donor.following or claim.passage == donor.passage:
        return None
    return f"{claim.text}, and{claim.following}", f"{claim.text}, and{donor.following}"


_CHANGES: Sequence[tuple[str, Callable[[Claim, Claim, random.Random], ClaimPair]]] = (
    *[("Contradictory", _change_value), ("Contradictory", _change_order), ("Unsupported", _add_tail)] * 2,
    ("Unsupported", _change_subject),
    ("Unsupported", _borrow_fact),
)
"""The errors with their labels; those that are harder to see are tried twice as often."""
