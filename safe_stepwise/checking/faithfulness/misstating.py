"""Decides what is wrong with a step that does not state a needed fact, and whether the question's texts support it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property

from safe_stepwise.checking.faithfulness.grounds import Fault, Grounds, Path, ends_of, is_same
from safe_stepwise.checking.faithfulness.step_text import Stance, StepText, parse_text
from safe_stepwise.checking.step_reading import content_words, coverage, has_value
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import RELATIONS, is_nation, same_nation
from safe_stepwise.language.senses import meaning_of, senses_of
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import as_date, as_number
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Passage, Triple


def is_same_value(value: str, other_value: str) -> bool:
    """Whether two spellings mean one entity, date or nation.

    >>> is_same_value("3 May 1901", "May 1901"), is_same_value("French", "France"), is_same_value("The Oru", "Oru")
    (True, True, True)
    """
    if is_same(value, other_value):
        return True
    date, other_date = as_date(value), as_date(other_value)
    if date and other_date:
        return date.agrees(other_date)
    return (is_nation(clean(value)) or is_nation(clean(other_value))) and same_nation(clean(value), clean(other_value))


_KINDS_WITHOUT_CUE = frozenset(("nation", "text", "place"))
"""Kinds of relation that a step paraphrases if it has head and right value together and no other sense."""
OPENERS = frozenset(load("syntax")["openers"].split())
"""Words that open a sentence with a capital, but are not names."""


class SupportFinder:
    """Looks for support of claims in a question's triples and passages; ``stance_on`` is `house.stance_on`."""

    def __init__(self, grounds: Grounds, stance_on: Callable[[StepText, Triple], Stance]) -> None:
        self.grounds = grounds
        # Many gold paths share facts, and each is compared with the same steps.
        self.stance_on = cache(stance_on)
        self.supports = cache(self._is_supported)
        # Whether the question, its triples or its passages have a name, date or number.
        self.has = cache(lambda value: any(has_value(page, value) for page in self._pages_to_search))
        self._pages = tuple(enumerate(grounds.passages, 1))

    @cached_property
    def question(self) -> StepText:
        """The question, parsed like a step."""
        return parse_text(self.grounds.question)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The ends of the question's triples, and its passages' titles."""
        titles = (page.title for page in self.grounds.passages)
        return tuple(dict.fromkeys([*ends_of(self.grounds.triples), *titles]))

    @cached_property
    def has_more_than_gold(self) -> bool:
        """Whether there are passages, or triples outside the gold paths."""
        needed = {triple for path in self.grounds.paths for triple in path}
        return bool(self._pages) or any(t not in needed for t in self.grounds.triples)

    def _is_supported(self, triple: Triple) -> bool:
        if self.in_graph(triple):
            return True
        if triple.relation not in RELATIONS:
            return False
        if ground(*triple.names, self._pages).status != "stated":
            return False
        meaning = meaning_of(triple.relation)
        facts = self.grounds.triples if meaning and meaning.single else ()
        has_rival = any(f.relation == triple.relation and is_same_value(f.head, triple.head) for f in facts)
        return not has_rival or self._states_in_sentence(triple)

    def _states_in_sentence(self, triple: Triple) -> bool:
        pairs = (([page.title], sentence) for page in self.grounds.passages for sentence in page.sentences)
        near = ((focus, sentence) for focus, sentence in pairs if has_value(Passage("", (sentence,)), triple.tail))
        return any(self.stance_on(parse_text(sentence, names, names), triple) == "states" for names, sentence in near)

    def in_graph(self, triple: Triple) -> bool:
        """Whether the graph has a triple, or one with a relation of the same sense."""
        meaning = meaning_of(triple.relation)
        for fact in self.grounds.triples:
            if is_same_value(fact.head, triple.head) and is_same_value(fact.tail, triple.tail):
                fact_meaning = meaning_of(fact.relation)
                is_same_sense = meaning and fact_meaning and meaning.senses & fact_meaning.senses
                if fact.relation == triple.relation or is_same_sense:
                    return True
        return False

    @cached_property
    def _pages_to_search(self) -> tuple[Passage, ...]:
        grounds = self.grounds
        graph = tuple(f"{t.head} {t.relation} {t.tail}" for t in grounds.triples)
        return (Passage("", (grounds.question, *grounds.answers, *graph)), *grounds.passages)


def find_fault(
    step: StepText, triple: Triple, stance: Stance, path: Path, elsewhere: bool, support: SupportFinder
) -> Fault:
    """Return the fault of a step that does not state a fact; "" if it has none.

    ``elsewhere``: whether another step states the fact; then only values that the path lacks are faults.
    """
    if stance == "reversed":
        swapped = replace(triple, head=triple.tail, tail=triple.head)
        names_both = step.spans_of(triple.head) and step.spans_of(triple.tail)
        # If another step states the fact, a pronoun is too weak to prove the contrary.
        return "" if support.in_graph(swapped) or (elsewhere and not names_both) else "reversed"
    if stance == "relation" and not elsewhere and not _states_supported_relation(step, triple, support):
        return "relation"
    if meaning_of(triple.relation) is None:
        return "factual" if not elsewhere and _gives_wrong_answer(step, triple, path) else ""
    for claim in _claims(step, triple, stance in ("near", "relation"), support):
        new_end = claim.tail if claim.head == triple.head else claim.head
        if elsewhere and any(is_same_value(new_end, end) for end in ends_of(path)):
            continue
        if not support.supports(claim):
            return "factual"
    return ""


_MIN_QUESTION_SHARE = 0.7  # of a question's content words in a step about that question


def _gives_wrong_answer(step: StepText, triple: Triple, path: Path) -> bool:
    """Whether a step repeats the words of a free relation, but not its tail, with a value of the tail's kind."""
    question_words = content_words(triple.relation) - content_words(triple.head)
    if step.spans_of(triple.tail) or len(question_words) < 2:
        return False
    if coverage(question_words, step.reading.claim) < _MIN_QUESTION_SHARE:
        return False
    fact_words = content_words(f"{triple.head} {triple.relation}")
    ends = ends_of(path)
    return any(
        _kind(value) == _kind(triple.tail) and not content_words(value) <= fact_words
        and not any(is_same_value(value, end) for end in ends)
        for _, value in step.values
    )  # fmt: skip


def is_contradicted_by_text(step: StepText, triple: Triple, support: SupportFinder) -> bool:
    """Whether a step gives another value for a single-valued fact, and the question's texts support that value.

    Then the gold path contradicts the texts, and the rule can't decide which is right.
    """
    meaning = meaning_of(triple.relation)
    if meaning is None or not meaning.single or step.reading.denies:
        return False
    return any(claim.head == triple.head and support.supports(claim) for claim in _claims(step, triple, True, support))


def _states_supported_relation(step: StepText, triple: Triple, support: SupportFinder) -> bool:
    claims = (replace(triple, relation=name) for name in RELATIONS if name != triple.relation)
    return any(support.supports(claim) for claim in claims if support.stance_on(step, claim) == "states")


def is_paraphrased(step: StepText, triple: Triple) -> bool:
    """Whether a step that joins both ends of a triple, but not by known words for its relation, paraphrases it.

    If it has another value of the same kind, it is unclear which value the words are about.
    """
    meaning = meaning_of(triple.relation)
    if meaning is None or meaning.kind not in _KINDS_WITHOUT_CUE:
        return False
    return meaning.kind == "text" or not any(_find_rival_values(step, triple.tail, triple.head))


def _claims(step: StepText, triple: Triple, near: bool, support: SupportFinder) -> Iterator[Triple]:
    """Yield the triples that a step states and that differ from a fact in one end."""
    has_head, has_tail = bool(step.spans_of(triple.head)), bool(step.spans_of(triple.tail))
    claims: list[Triple] = []
    if not any(cue.sense in senses_of(triple.relation) for cue in step.cues):
        return iter(())
    if (has_head or triple.head in step.focus) and (near or not has_tail):
        claims = [replace(triple, tail=value) for value in _find_rival_values(step, triple.tail, triple.head)]
    elif has_tail and not has_head and not (any(step.pronouns) and triple.head in step.focus):
        values = _find_rival_values(step, triple.head, triple.tail)
        claims = [replace(triple, head=v) for v in values if not _is_another_tail(v, step, triple.relation, support)]
    return (claim for claim in claims if support.stance_on(step, claim) == "states")


def _is_another_tail(value: str, step: StepText, relation: str, support: SupportFinder) -> bool:
    """Whether a fact gives a value as the tail of a head in the step: Ana, of "Dune was directed by Ana and Ors"."""
    facts = (fact for fact in support.grounds.triples if fact.relation == relation and is_same_value(value, fact.tail))
    return any(step.spans_of(fact.head) and step.spans_of(fact.tail) for fact in facts)


def _find_rival_values(step: StepText, instead_of: str, beside: str) -> Iterator[str]:
    """Yield a step's values that could replace one end of a triple (``instead_of``) next to the other (``beside``)."""
    for value in dict.fromkeys(value for _, value in step.values):
        if value.lower() in OPENERS:
            continue
        if _kind(value) == _kind(instead_of) and not any(is_same_value(value, end) for end in (instead_of, beside)):
            yield value


def _kind(value: str) -> str:
    if as_date(value):
        return "date"
    if as_number(value) is not None and not any(map(str.isalpha, value)):
        return "number"
    return "nation" if is_nation(clean(value)) else "name"


def adds_unknown_value(step: StepText, triple: Triple, support: SupportFinder) -> bool:
    """Whether a step that states a fact gives its head a further value from nowhere: "directed by Ana and Nobody"."""
    return support.has_more_than_gold and any(not support.has(c.tail) for c in _claims(step, triple, True, support))


def find_novelties(step: StepText, grounds: Grounds, support: SupportFinder) -> Sequence[str]:
    """Return the names and dates of a step that neither the question nor its triples and passages have."""
    if not support.has_more_than_gold or step.reading.denies or step.reading.announces:
        return ()
    names = names_in_text(step.reading.claim)
    return [name for name in names if not is_nation(clean(name)) and not support.has(name)]
