"""What a step says in the place of a needed fact, and whether the question's text bears it out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property

from safe_stepwise.checking.faithfulness.grounds import Fault, Grounds, Path, is_same
from safe_stepwise.checking.faithfulness.step_text import Stance, StepText, parse_text
from safe_stepwise.checking.step_reading import content_words, coverage, has_value
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import RELATIONS, is_nation, same_nation
from safe_stepwise.language.senses import meaning_of, sense_cues
from safe_stepwise.language.text import as_date, as_number, normal_name
from safe_stepwise.records import Passage, Triple


def is_same_value(value: str, other_value: str) -> bool:
    """Whether two writings mean one entity, date or nation.

    >>> is_same_value("3 May 1901", "May 1901"), is_same_value("French", "France"), is_same_value("The Oru", "Oru")
    (True, True, True)
    """
    if is_same(value, other_value):
        return True
    a, b = as_date(value), as_date(other_value)
    if a and b:
        return a.agrees(b)
    return (is_nation(clean(value)) or is_nation(clean(other_value))) and same_nation(clean(value), clean(other_value))


_TOLD_BY_KIND = frozenset(("nation", "text", "place"))
"""Values of which one alone beside a head, in words of no other sense, says what is asked."""
_PARAPHRASED = 0.75  # share of a step's content words that a sentence has which says the same


class Support:
    """The evidence that a question's triples and passages give for claims.

    ``stance_on``: what a step does with a triple, by `house.stance_on`.
    """

    def __init__(self, grounds: Grounds, stance_on: Callable[[StepText, Triple], Stance]) -> None:
        self.grounds = grounds
        # Many gold paths share facts, and each is held against the same steps.
        self.stance_on = cache(stance_on)
        self.bears_out = cache(self._bears_out)
        # Whether a name, date or number stands anywhere in what the question gives.
        self.has = cache(lambda value: any(has_value(page, value) for page in self._texts))
        self._pages = tuple(enumerate(grounds.passages, 1))

    @cached_property
    def question(self) -> StepText:
        """The question, read as a step is."""
        return parse_text(self.grounds.question)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of entities that the question's facts and passages have."""
        g = self.grounds
        ends = (name for t in g.triples for name in (t.head, t.tail))
        return tuple(dict.fromkeys([*ends, *(page.title for page in g.passages)]))

    @cached_property
    def knows_more(self) -> bool:
        """Whether there is more to look up than the gold paths."""
        needed = {triple for path in self.grounds.paths for triple in path}
        return bool(self._pages) or any(t not in needed for t in self.grounds.triples)

    def _bears_out(self, triple: Triple) -> bool:
        """Whether a triple, or one that says the same, is in the graph or the passages."""
        if self.in_graph(triple):
            return True
        if triple.relation not in RELATIONS:
            return False
        finding = ground(triple.head, triple.relation, triple.tail, self._pages)
        if finding.status != "stated":
            return False
        meaning = meaning_of(triple.relation)
        has_other = bool(meaning and meaning.single) and any(
            fact.relation == triple.relation and is_same_value(fact.head, triple.head) for fact in self.grounds.triples
        )
        return not has_other or self._is_told(triple)

    def _is_told(self, triple: Triple) -> bool:
        """Whether a passage's sentence states a triple as a step would have to."""
        return any(
            self.stance_on(parse_text(sentence, [page.title], [page.title]), triple) == "states"
            for page in self.grounds.passages
            for sentence in page.sentences
            if has_value(Passage("", (sentence,)), triple.tail)
        )

    def is_paraphrased(self, step: StepText, triple: Triple) -> bool:
        """Whether a passage's sentence with a triple's tail has most words of a step."""
        names = " ".join(value for _, value in step.values)
        rivals = [
            value for _, value in step.values
            if _kind(value) == _kind(triple.tail)
            and not any(is_same_value(value, end) for end in (triple.head, triple.tail))
        ]  # fmt: skip
        meaning = meaning_of(triple.relation)
        kind = meaning.kind if meaning else ""
        if rivals and kind != "text":  # whose words these are is not told
            return False
        if kind in _TOLD_BY_KIND:
            return True
        words = content_words(step.reading.claim) - content_words(names)
        return any(
            coverage(words, sentence) >= _PARAPHRASED
            for page in self.grounds.passages
            for sentence in page.sentences
            if has_value(Passage("", (sentence,)), triple.tail)
            and has_value(Passage(page.title, (sentence,)), triple.head)
        )

    def in_graph(self, triple: Triple) -> bool:
        """Whether the graph has a triple, or one of a relation that is said alike."""
        meaning = meaning_of(triple.relation)
        for fact in self.grounds.triples:
            if is_same_value(fact.head, triple.head) and is_same_value(fact.tail, triple.tail):
                fact_meaning = meaning_of(fact.relation)
                if fact.relation == triple.relation:
                    return True
                if meaning and fact_meaning and meaning.senses & fact_meaning.senses:
                    return True
        return False

    @cached_property
    def _texts(self) -> tuple[Passage, ...]:
        g = self.grounds
        graph = tuple(f"{t.head} {t.relation} {t.tail}" for t in g.triples)
        return (Passage("", (g.question, *g.answers, *graph)), *g.passages)


def find_fault(step: StepText, triple: Triple, stance: Stance, path: Path, elsewhere: bool, support: Support) -> Fault:
    """Find what is wrong with what a step says in place of a fact that it does not state.

    ``elsewhere``: whether some other step states it; then only what the path has nowhere counts.
    """
    if stance == "reversed":
        turned = replace(triple, head=triple.tail, tail=triple.head)
        names_both = step.spans_of(triple.head) and step.spans_of(triple.tail)
        # Of what another step states, a pronoun or what was spoken of last proves no contrary.
        return "" if support.in_graph(turned) or (elsewhere and not names_both) else "reversed"
    if stance == "relation" and not elsewhere and not _other_is_true(step, triple, support):
        return "relation"
    if meaning_of(triple.relation) is None:
        return "factual" if not elsewhere and _answers_otherwise(step, triple, path) else ""
    for claim in _claims(step, triple, stance in ("near", "relation"), support):
        new = claim.tail if claim.head == triple.head else claim.head
        if elsewhere and any(is_same_value(new, end) for t in path for end in (t.head, t.tail)):
            continue
        if not support.bears_out(claim):
            return "factual"
    return ""


_REPEATED = 0.7  # share of a question's content words from which on a step speaks of that question


def _answers_otherwise(step: StepText, triple: Triple, path: Path) -> bool:
    """Whether a step repeats a free relation's words with another value than its tail."""
    question_words = content_words(triple.relation) - content_words(triple.head)
    if step.spans_of(triple.tail) or len(question_words) < 2:
        return False
    if coverage(question_words, step.reading.claim) < _REPEATED:
        return False
    fact_words = content_words(f"{triple.head} {triple.relation}")
    ends = [end for t in path for end in (t.head, t.tail)]
    return any(
        _kind(value) == _kind(triple.tail) and not content_words(value) <= fact_words
        and not any(is_same_value(value, end) for end in ends)
        for _, value in step.values
    )  # fmt: skip


def is_told_otherwise(step: StepText, triple: Triple, support: Support) -> bool:
    """Whether a step has another value of a fact of one value, and the text bears that out, too.

    Then gold and text are at odds, and which of the two is right is not for a rule to say.
    """
    meaning = meaning_of(triple.relation)
    if meaning is None or not meaning.single or step.reading.denies:
        return False
    return any(
        claim.head == triple.head and support.bears_out(claim) for claim in _claims(step, triple, True, support)
    )


def _other_is_true(step: StepText, triple: Triple, support: Support) -> bool:
    """Whether the text bears out some other relation between the same ends."""
    return any(
        support.bears_out(claim)
        for name in RELATIONS
        if name != triple.relation
        for claim in (replace(triple, relation=name),)
        if support.stance_on(step, claim) == "states"
    )


def _claims(step: StepText, triple: Triple, near: bool, support: Support) -> Iterator[Triple]:
    """Triples that a step states with one end of a fact exchanged for another value of its."""
    has_head = bool(step.spans_of(triple.head)) or triple.head in step.focus
    has_tail = bool(step.spans_of(triple.tail))
    meaning = meaning_of(triple.relation)
    kinds = meaning.senses | meaning.turned if meaning else frozenset()
    if not any(cue.sense in kinds for cue in step.cues):
        return
    if has_head and (near or not has_tail):
        for value in _values(step, triple.tail, triple.head, meaning.kind if meaning else ""):
            claim = replace(triple, tail=value)
            if support.stance_on(step, claim) == "states":
                yield claim
    elif has_tail and not step.spans_of(triple.head):
        if any(step.pronouns) and triple.head in step.focus:
            return
        for value in _values(step, triple.head, triple.tail):
            claim = replace(triple, head=value)
            if support.stance_on(step, claim) == "states":
                yield claim


def _values(step: StepText, instead_of: str, beside: str, kind: str = "") -> Iterator[str]:
    """Values of a step that are of the kind of an end, and neither of the ends."""
    for value in dict.fromkeys(value for _, value in step.values):
        if kind == "nation" and not is_nation(clean(value)):
            continue
        if is_nation(clean(value)) != is_nation(clean(instead_of)):
            continue
        if _kind(value) != _kind(instead_of) or is_same_value(value, beside) or is_same_value(value, instead_of):
            continue
        words = set(normal_name(value).split())
        if words <= set(normal_name(beside).split()) or step.reading.opens_with(value):
            continue
        if words and not sense_cues(clean(value)):
            yield value


def _kind(value: str) -> str:
    if as_date(value):
        return "date"
    if as_number(value) is not None and not any(map(str.isalpha, value)):
        return "number"
    return "name"


def novelties(step: StepText, grounds: Grounds, support: Support) -> Sequence[str]:
    """Names and dates of a step that stand nowhere in what the question gives."""
    if not support.knows_more or step.reading.denies or step.reading.announces:
        return ()
    return [
        value for value in step.reading.values
        if _kind(value) != "number" and not step.reading.opens_with(value)
        and not is_nation(clean(value)) and not support.has(value)
    ]  # fmt: skip
