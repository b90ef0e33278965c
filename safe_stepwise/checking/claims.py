"""What a step's claim does with the facts of a plan: states them, alters them, joins them anew."""

import re
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter

from safe_stepwise.checking.plans import DESCRIBED, Item, Plan
from safe_stepwise.checking.statements import filled_question, is_free
from safe_stepwise.checking.step_reading import Reading, content_words, coverage, has_value, quotations
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.mentions import is_about, mentions, names_in
from safe_stepwise.language.reading import read
from safe_stepwise.language.relations import RELATIONS, cues_in
from safe_stepwise.language.text import as_date, normal_name
from safe_stepwise.records import Passage, Question, Step, Triple

IN_ONE_SENTENCE = 0.8
"""Share of a claim's content words that one passage must hold for the claim to be taken from it."""
MOST_OF_A_QUOTE = 0.7
"""Share of a sentence's words from which on a step with another name in it misquotes it."""

_OF_A_NATION = re.compile(r"\b(?:countr|nation|citizen|origin)|\b(?:is|lies|was|comes) (?:in|from)\b")
_SAME_QUESTION = 0.8  # share of a hop's content words that a quoted question must have to be that hop's
_OF_THE_SENTENCE = 0.7  # share of a claim's content words that have to be the sentence's, if it is to state that one
_ANSWERS = 1 / 3
"""Share of a free hop's content words that title and sentence must have for it to answer the hop.
Of 287 real hops of MuSiQue nearly all below it were not stated by their passage's sentence."""
_LEAST_OF_A_QUOTE = 4  # content words that a sentence has besides the value for a step to be known as quoting it
_TOKENS_OF_A_QUOTE = 0.6  # share of a sentence's words that a step has to hold to be taken as quoting it


class Claims:
    """Claims of steps, held against the facts of one question's plan, its graph and passages."""

    def __init__(self, question: Question, plan: Plan, graph: KnowledgeGraph) -> None:
        self.question, self.plan, self.graph = question, plan, graph
        self.passages = question.passages
        self.facts = [plan.items[place] for place in plan.facts]
        self._stated: dict[tuple[object, ...], bool] = {}
        self._held: dict[str, bool] = {}

    @cached_property
    def entities(self) -> tuple[str, ...]:
        """Heads and tails of the plan's facts, and the gold passages' titles."""
        ends = [name for item in self.facts for name in item.ends]
        titles = [page.title for _, page in self.question.gold]
        return tuple(dict.fromkeys([*ends, *titles]))

    def is_in_passages(self, value: str) -> bool:
        """Whether some passage has a value."""
        if value not in self._held:
            self._held[value] = any(has_value(page, value) for page in self.passages)
        return self._held[value]

    def as_context(self, previous: Sequence[Step]) -> Passage:
        """The question and the accepted steps, as a text to search."""
        return Passage("", (self.question.question, *(step.text for step in previous)))

    def value_of(self, item: Item) -> str:
        """Return what a fact adds: its tail, or the name that makes a quoted sentence a link."""
        if item.sentence is not None:
            keys = self._linking_names(item)
            return keys[0] if keys else item.page(self.passages).title
        return item.triples[0].tail

    def joint(self, item: Item, earlier: Item) -> str:
        """The name under which an item goes on from an earlier one."""
        ends = {normal_name(name) for name in earlier.ends}
        return next((name for name in item.ends if normal_name(name) in ends), item.ends[0])

    def states(self, reading: Reading, place: int) -> bool:
        """Whether a claim states the fact at a place of the plan; each is looked at once."""
        key = (reading.claim, reading.cited, reading.refers, place)
        if key not in self._stated:
            self._stated[key] = self._states(reading, self.plan.items[place])
        return self._stated[key]

    def _states(self, reading: Reading, item: Item) -> bool:
        if item.sentence is not None:
            return self._quotes(reading, item)
        if reading.denies or (reading.announces and not reading.cited and not reading.refers):
            return False
        first = item.triples[0]
        if is_free(first):
            return reading.mentions(first.tail) and _answers_question(reading, item)
        return any(_states_triple(reading, triple) for triple in item.triples)

    def _quotes(self, reading: Reading, item: Item) -> bool:
        """Whether a step tells what a sentence tells: its words, and the names that link it."""
        page = item.page(self.passages)
        if reading.cited and item.passage not in reading.cited:
            return False
        if coverage(reading.words, f"{page.title} {item.quoted(self.passages)}") < _OF_THE_SENTENCE:
            return False
        if not all(has_value(page, value) for value in reading.values):
            return False
        keys = self._linking_names(item)
        if item.triples[0].relation == DESCRIBED or not keys:
            return self.quoted_share(reading, item) >= _TOKENS_OF_A_QUOTE
        return all(reading.mentions(key) for key in keys)

    def _linking_names(self, item: Item) -> tuple[str, ...]:
        """The names that make a quoted sentence the link it is: ends of its triple it gives."""
        sentence = read(Passage("", (item.quoted(self.passages),)))
        title = normal_name(item.page(self.passages).title)
        ends = [name for t in item.triples for name in (t.tail, t.head)]
        names = [name for name in ends if normal_name(name) != title]
        return tuple(dict.fromkeys(n for n in names if mentions(sentence, n)))

    def quoted_share(self, reading: Reading, item: Item) -> float:
        """Share of the words of an item's sentence that a step holds, from 0 to 1."""
        keys = [content_words(key) for key in self._linking_names(item)]
        words = content_words(item.quoted(self.passages)).difference(*keys)
        return coverage(words, reading.claim)

    def other_value(self, reading: Reading, item: Item) -> str | None:
        """Return the value that a step gives in place of an item's, where the text has another one; else None."""
        triple = item.triples[0]
        if item.passage not in reading.cited and self._is_read_elsewhere(reading):
            return None
        if item.sentence is not None:
            return self._altered(reading, item)
        values = [v for v in reading.values if not _is_end(v, triple)]
        if not values or reading.mentions(triple.tail):
            return None
        if altered := self._altered_quote(reading, item):
            return altered
        if triple.relation in RELATIONS:
            return self._misstated(reading, triple, values)
        if reading.cited and item.passage not in reading.cited:
            return None
        if is_free(triple):
            question_words = content_words(filled_question(item.triples))
            values = [v for v in values if not content_words(v) <= question_words]
            return values[-1] if values and _repeats_question(reading, item) else None
        relation = content_words(triple.relation)
        about = reading.mentions(triple.head) and relation <= reading.words
        return values[-1] if about else None

    def _is_read_elsewhere(self, reading: Reading) -> bool:
        pages = [self.passages[n - 1] for n in reading.cited if 0 < n <= len(self.passages)]
        return any(
            coverage(reading.words, f"{page.title} {page.text}") >= IN_ONE_SENTENCE
            and all(has_value(page, name) for name in reading.values)
            for page in pages
        )

    def _misstated(self, reading: Reading, triple: Triple, values: Sequence[str]) -> str | None:
        """The value that a step states in the place of a triple's, and that no passage does."""
        if not _has_cue(reading, triple.relation):
            return None
        # What the step means comes first, so that a number in a film's name is not called its date.
        likely = sorted(values, key=lambda value: _is_unlike(value, triple))
        claims = (Triple(triple.head, triple.relation, value) for value in likely)
        return next((claim.tail for claim in claims if self._only_said(reading, claim)), None)

    def _altered(self, reading: Reading, item: Item) -> str | None:
        """Return the name that a step puts in place of the linking name of a quoted sentence; else None."""
        page, keys = item.page(self.passages), self._linking_names(item)
        if keys and all(reading.mentions(key) for key in keys):
            return None
        if self.quoted_share(reading, item) < MOST_OF_A_QUOTE:
            return None
        return next((v for v in reading.values if not has_value(page, v)), None)

    def place_of(self, item: Item) -> int | None:
        """The sentence (from 0) of its passage that states a fact, where one is known to."""
        triple, sentences = item.triples[0], item.page(self.passages).sentences
        if item.sentence is not None:
            return item.sentence
        if triple.relation not in RELATIONS:
            return max(self._answering(item), default=(0.0, 0, None))[2]
        triples = self.graph.find(triple.head, triple.relation, triple.tail)
        place = next((t.sentence for t in triples if t.passage == triple.passage), None)
        return place if place is not None and place < len(sentences) else None

    def is_grounded(self, item: Item) -> bool:
        """Whether one passage states subject, relation and value of a fact.

        Of a relation that has no wording of its own, a sentence has to hold the value and a third
        of the words that the hop asks with; one that links to nothing, some word of the question.
        """
        triple, page = item.triples[0], item.page(self.passages)
        if item.sentence is not None:
            return triple.relation != DESCRIBED or self._is_asked_about(item)
        if triple.relation not in RELATIONS:
            return bool(self._answering(item))
        # A nation beside somebody's name is often that of a film, and "The Caine Mutiny" no mutiny.
        citizen = triple.relation == "country of citizenship"
        about = is_about(read(page), triple.head)
        if not about and (citizen or _in_longer_names(page, triple.head)):
            return False
        return ground(triple.head, triple.relation, triple.tail, [(1, page)]).status == "stated"

    def _is_asked_about(self, item: Item) -> bool:
        """Whether a sentence that links to nothing says something that the question speaks of."""
        page, question = item.page(self.passages), self.question
        if self.plan.kind != "sequential" or is_about(read(page), question.answer):
            return True
        question_words = content_words(question.question) - content_words(page.title)
        return bool(question_words & content_words(item.quoted(self.passages)))

    def _answering(self, item: Item) -> list[tuple[float, int, int]]:
        """Sentences with a free hop's value, as (share of its words, - place, place)."""
        page, triple = item.page(self.passages), item.triples[0]
        words = filled_question(item.triples) if is_free(triple) else f"{triple.head} {triple.relation}"
        question_words = content_words(words) - content_words(triple.tail)
        matches = []
        for place, sentence in enumerate(page.sentences):
            if has_value(Passage("", (sentence,)), triple.tail):
                share = coverage(question_words, f"{page.title} {sentence}")
                if share >= _ANSWERS:
                    matches.append((share, -place, place))
        return matches

    def _altered_quote(self, reading: Reading, item: Item) -> str | None:
        """Return the value that a step puts in place of a fact's in the sentence that states it; else None."""
        place, value = self.place_of(item), item.triples[0].tail
        if place is None or reading.denies or (reading.cited and item.passage not in reading.cited):
            return None
        page = item.page(self.passages)
        remaining = content_words(page.sentences[place]) - content_words(value)
        if len(remaining) < _LEAST_OF_A_QUOTE or coverage(remaining, reading.claim) < MOST_OF_A_QUOTE:
            return None
        return next((v for v in reading.values if not has_value(page, v)), None)

    def _only_said(self, reading: Reading, claim: Triple) -> bool:
        if not _states_triple(reading, claim):
            return False
        pages = tuple(enumerate(self.passages, 1))
        return ground(claim.head, claim.relation, claim.tail, pages).status != "stated"

    def other_relation(self, reading: Reading, item: Item) -> bool:
        """Whether a step joins both ends of a fact by a relation that no passage states."""
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in RELATIONS:
            return False
        if not (reading.mentions(triple.head) and reading.mentions(triple.tail)):
            return False
        definition = RELATIONS[triple.relation]
        return any(
            self._only_said(reading, Triple(triple.head, name, triple.tail))
            for name, relation in RELATIONS.items()
            if relation.group and relation.kind == definition.kind and name != triple.relation
        )

    def taken_from(self, reading: Reading, number: int) -> bool:
        """Whether a claim is a passage's own, and not from a sentence that the plan needs."""
        page = self.passages[number - 1]
        if any(not has_value(page, name) for name in reading.values):
            return False
        if self._says_beside(reading, number):
            return True
        if coverage(reading.words, f"{page.title} {page.text}") < IN_ONE_SENTENCE:
            return False
        if any(self._speaks_of(reading, item) for item in self.facts):
            return False
        needed = [item for item in self.facts if item.passage == number]
        if not needed:
            return True
        shares = [coverage(reading.words, f"{page.title} {s}") for s in page.sentences]
        gives_needed = any(reading.mentions(self.value_of(item)) for item in needed)
        # What a supporting sentence says besides may be needed, though the plan needs another part.
        supporting = any(
            fact.title == page.title and shares[fact.sentence] >= IN_ONE_SENTENCE
            for fact in self.question.supporting_facts
            if fact.sentence < len(shares)
        )
        return max(shares) >= IN_ONE_SENTENCE and not gives_needed and not supporting

    def _says_beside(self, reading: Reading, number: int) -> bool:
        """Whether a claim states what the graph has of a passage and the plan does not need."""
        parts_of = attrgetter("head", "relation", "tail")
        needed = {parts_of(triple) for item in self.facts for triple in item.triples}
        return any(
            triple.passage == number
            and triple.relation in RELATIONS
            and parts_of(triple) not in needed
            and _states_triple(reading, triple)
            for triple in self.graph.triples
        )

    def _speaks_of(self, reading: Reading, item: Item) -> bool:
        """Whether a claim is about the very thing that a fact of the plan is about."""
        if item.sentence is not None:
            return False
        if is_free(item.triples[0]):
            question = content_words(filled_question(item.triples))
            return len(question & reading.words) >= max(2, 0.8 * len(question))
        return self.other_value(reading, item) is not None

    def asks_for(self, reading: Reading, item: Item) -> bool:
        """Whether a step that denies something speaks of what an item would tell."""
        triple = item.triples[0]
        if item.sentence is not None:
            return reading.mentions(item.page(self.passages).title)
        if is_free(triple):
            return _answers_question(reading, item)
        return reading.mentions(triple.head) or reading.mentions(triple.tail)


def _in_longer_names(page: Passage, name: str) -> bool:
    """Whether a passage has a name of one word as a part of longer ones alone.

    >>> _in_longer_names(Passage("", ("He saw The Caine Mutiny.",)), "Mutiny (film)")
    True
    """
    word = normal_name(name)
    names = [normal_name(longer) for longer in names_in(page)]
    return " " not in word and word not in names and any(word in longer.split() for longer in names)


def _states_triple(reading: Reading, triple: Triple) -> bool:
    """Whether a step states a triple whose relation has a wording of its own."""
    if triple.relation in RELATIONS:
        finding = ground(triple.head, triple.relation, triple.tail, [(1, reading.page)])
        return finding.status == "stated"
    return reading.mentions(triple.head) and reading.mentions(triple.tail)


def _has_cue(reading: Reading, relation: str) -> bool:
    """Whether a step has wording of a known relation, be it of this fact or another."""
    definition = RELATIONS[relation]
    if definition.kind == "nation":
        return bool(_OF_A_NATION.search(reading.text.clean))
    if not definition.group:
        return True
    return any(cue.label in definition.cues for cue in cues_in(reading.text.clean, definition.group))


def _is_end(value: str, triple: Triple) -> bool:
    """Whether a value is a triple's head or tail, or a part of its name."""
    date, tail = as_date(value), as_date(triple.tail)
    if date and tail:
        return date.agrees(tail)
    words = set(normal_name(value).split())
    return any(words <= set(normal_name(end).split()) for end in (triple.head, triple.tail))


def _is_unlike(value: str, triple: Triple) -> bool:
    """Whether a value is no date where a triple's is one, or a part of its head's name."""
    if as_date(triple.tail) and not as_date(value):
        return True
    return set(normal_name(value).split()) <= set(normal_name(triple.head).split())


def _answers_question(reading: Reading, item: Item) -> bool:
    """Whether a step speaks of a free hop: of its head, or of what it asks."""
    head = item.triples[0].head
    if _quoted_question(reading) is None and reading.mentions(head):
        return head != item.triples[0].tail or _repeats_question(reading, item)
    return _repeats_question(reading, item)


def _quoted_question(reading: Reading) -> str | None:
    return next((quotation for quotation in quotations(reading.claim) if quotation[1:].endswith("?")), None)


def _repeats_question(reading: Reading, item: Item) -> bool:
    """Whether a step speaks in the words of the question that a free hop asks."""
    question = content_words(filled_question(item.triples))
    quoted = _quoted_question(reading)
    if quoted is not None:
        return len(question & content_words(quoted)) >= _SAME_QUESTION * len(question)
    return len(question & reading.words) >= max(1, len(question) / 2)
