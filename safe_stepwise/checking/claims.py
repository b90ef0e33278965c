"""Compares a step's claim with the facts of a plan: does it state one, alter its value, or use another relation?

A *free* hop has a question in words instead of a relation. A fact with a ``sentence`` has no wording: a step has to
repeat that sentence. The names in it that link it to other facts are its *linking names*.
"""

from collections.abc import Sequence
from functools import cached_property

from safe_stepwise.checking.plans import DESCRIBED, Item, Plan
from safe_stepwise.checking.statements import filled_question, is_free
from safe_stepwise.checking.step_reading import Reading, content_words, coverage, has_value, quotations
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.mentions import is_about, mentions, names_in
from safe_stepwise.language.reading import read
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.text import as_date, normal_name
from safe_stepwise.records import Passage, Question, Step, Triple

MIN_SOURCE_SHARE = 0.8
"""Minimum share of a claim's content words that its source, a passage or a sentence, contains."""
MIN_MISQUOTE_SHARE = 0.7
"""Minimum share of a sentence's content words in a step that misquotes it with another name."""

_MIN_QUESTION_SHARE = 0.8  # of a hop's content words in a quotation of its question
_MIN_SENTENCE_SHARE = 0.7  # of a claim's content words in the sentence that the claim repeats
_MIN_ANSWER_SHARE = 1 / 3
"""Minimum share of a free hop's content words in the title and sentence that answer it. Of 287 hops of MuSiQue, nearly
all with less were not stated by their sentence."""
_MIN_QUOTE_WORDS = 4  # content words, besides the value, of a sentence whose quotation can be recognised
_MIN_UNLINKED_SHARE = 0.6  # of the content words of a sentence without linking names in a step that quotes it


class Claims:
    """Compares claims of steps with the facts of one question's plan, its graph and its passages."""

    def __init__(self, question: Question, plan: Plan, graph: KnowledgeGraph) -> None:
        self.question, self.plan, self.graph = question, plan, graph
        self.passages = question.passages
        self.facts = [plan.items[place] for place in plan.fact_places]
        self._stated: dict[tuple[object, ...], bool] = {}

    @cached_property
    def entities(self) -> tuple[str, ...]:
        """The heads and tails of the plan's facts, and the gold passages' titles."""
        ends = [name for item in self.facts for name in item.ends]
        return tuple(dict.fromkeys([*ends, *(page.title for _, page in self.question.gold)]))

    def is_in_passages(self, value: str) -> bool:
        """Whether some passage has a value."""
        return any(has_value(page, value) for page in self.passages)

    def searchable_context(self, previous: Sequence[Step]) -> Passage:
        """Return the question and some accepted steps as one text to search."""
        return Passage("", (self.question.question, *(step.text for step in previous)))

    def value_of(self, item: Item) -> str:
        """Return what a fact adds: its tail, or the first linking name of its sentence."""
        if item.sentence is not None:
            linking_names = self._linking_names(item)
            return linking_names[0] if linking_names else item.page(self.passages).title
        return item.triples[0].tail

    def joint(self, item: Item, earlier: Item) -> str:
        """Return the first end of an item that an earlier item shares; the item's first end if none is shared."""
        ends = {normal_name(name) for name in earlier.ends}
        return next((name for name in item.ends if normal_name(name) in ends), item.ends[0])

    def states(self, reading: Reading, place: int) -> bool:
        """Whether a claim states the fact at a place (from 0) of the plan (cached)."""
        key = (reading.claim, reading.cited, reading.refers, place)
        if key not in self._stated:
            self._stated[key] = self._states_fact(reading, self.plan.items[place])
        return self._stated[key]

    def _states_fact(self, reading: Reading, item: Item) -> bool:
        if item.sentence is not None:
            return self._quotes_sentence(reading, item)
        if reading.denies or (reading.announces and not reading.cited and not reading.refers):
            return False
        first = item.triples[0]
        if is_free(first):
            return reading.mentions(first.tail) and _is_about_hop(reading, item)
        return any(_states_triple(reading, triple) for triple in item.triples)

    def _quotes_sentence(self, reading: Reading, item: Item) -> bool:
        """Whether a step repeats the sentence of an item: its words and its linking names."""
        page = item.page(self.passages)
        if reading.cited and item.passage_number not in reading.cited:
            return False
        if coverage(reading.words, f"{page.title} {item.quoted(self.passages)}") < _MIN_SENTENCE_SHARE:
            return False
        if not all(has_value(page, value) for value in reading.values):
            return False
        linking_names = self._linking_names(item)
        if item.triples[0].relation == DESCRIBED or not linking_names:
            return self.quoted_share(reading, item) >= _MIN_UNLINKED_SHARE or self._has_asked_words(reading, item)
        return all(reading.mentions(key) for key in linking_names)

    def _has_asked_words(self, reading: Reading, item: Item) -> bool:
        """Whether a step has all words that an item's sentence (not its title) shares with question or answer."""
        needed = content_words(item.quoted(self.passages)) & self.question_words(item.page(self.passages))
        return bool(needed) and needed <= reading.words

    def question_words(self, page: Passage) -> frozenset[str]:
        """Return the content words of the question and its answer that a passage's title lacks."""
        return content_words(f"{self.question.question} {self.question.answer}") - content_words(page.title)

    def _linking_names(self, item: Item) -> tuple[str, ...]:
        """Return the ends of an item's triples that its sentence names, apart from its passage's title."""
        sentence = read(Passage("", (item.quoted(self.passages),)))
        title = normal_name(item.page(self.passages).title)
        ends = [name for t in item.triples for name in (t.tail, t.head)]
        names = [name for name in ends if normal_name(name) != title]
        return tuple(dict.fromkeys(n for n in names if mentions(sentence, n)))

    def quoted_share(self, reading: Reading, item: Item) -> float:
        """Return the share (0-1) that a step has of the content words of an item's sentence without linking names."""
        linking_names = [content_words(key) for key in self._linking_names(item)]
        words = content_words(item.quoted(self.passages)).difference(*linking_names)
        return coverage(words, reading.claim)

    def find_wrong_value(self, reading: Reading, item: Item) -> str | None:
        """Return the value that a step gives instead of that of an item; None if it gives none."""
        triple = item.triples[0]
        if (altered := self._find_misquoted_value(reading, item)) or item.sentence is not None:
            return altered
        values = [v for v in reading.values if not _is_end(v, triple)]
        if not values or reading.mentions(triple.tail):
            return None
        if is_free(triple) and content_words(triple.tail) <= reading.words:
            return None
        if triple.relation in RELATIONS:
            return self._find_misstated_value(reading, triple, values)
        if reading.cited and item.passage_number not in reading.cited:
            return None
        if is_free(triple):
            question_words = content_words(filled_question(item.triples))
            values = [v for v in values if not content_words(v) <= question_words]
            return values[-1] if values and _repeats_question(reading, item) else None
        is_about_head = reading.mentions(triple.head) and content_words(triple.relation) <= reading.words
        return values[-1] if is_about_head else None

    def _find_misstated_value(self, reading: Reading, triple: Triple, values: Sequence[str]) -> str | None:
        """Return the value that a step states instead of a triple's and no passage states; None if there is none."""
        # Likely values come first, so that a number in a film's name is not taken for its date.
        likely = sorted(values, key=lambda value: _is_unlike(value, triple))
        claims = (Triple(triple.head, triple.relation, value) for value in likely)
        return next((claim.tail for claim in claims if self._is_only_in_step(reading, claim)), None)

    def _find_misquoted_value(self, reading: Reading, item: Item) -> str | None:
        """Return the value with which a step misquotes the sentence of a fact; None if it does not misquote it."""
        place, page = self.place_of(item), item.page(self.passages)
        if place is None or (reading.cited and item.passage_number not in reading.cited):
            return None
        linking_names = [self.value_of(item)] if item.sentence is None else self._linking_names(item)
        words = content_words(page.sentences[place]).difference(*map(content_words, linking_names))
        is_right = bool(linking_names) and all(map(reading.mentions, linking_names))
        if is_right or len(words) < _MIN_QUOTE_WORDS or coverage(words, reading.claim) < MIN_MISQUOTE_SHARE:
            return None
        return next((v for v in reading.values if not has_value(page, v)), None)

    def place_of(self, item: Item) -> int | None:
        """Return the number (from 0) of the sentence that states a fact in its passage; None if it is unknown."""
        triple, sentences = item.triples[0], item.page(self.passages).sentences
        if item.sentence is not None:
            return item.sentence
        if triple.relation not in RELATIONS:
            return max(self._find_answering_sentences(item), default=(0.0, 0, None))[2]
        triples = self.graph.find(*triple.names)
        place = next((t.sentence for t in triples if t.passage == triple.passage), None)
        return place if place is not None and place < len(sentences) else None

    def is_grounded(self, item: Item) -> bool:
        """Whether an item's passage states subject, relation and value of its fact.

        For a free hop, one sentence must have the value and a third of the hop's content words. A sentence without
        linking names must have some word of the question.
        """
        triple, page = item.triples[0], item.page(self.passages)
        if item.sentence is not None:
            return triple.relation != DESCRIBED or self._is_asked_about(item)
        if triple.relation not in RELATIONS:
            return bool(self._find_answering_sentences(item))
        # A nation beside a person's name is often a film's, and "The Caine Mutiny" is not a mutiny.
        is_citizenship = triple.relation == "country of citizenship"
        if not is_about(read(page), triple.head) and (is_citizenship or _in_longer_names(page, triple.head)):
            return False
        return ground(*triple.names, [(1, page)]).status == "stated"

    def _is_asked_about(self, item: Item) -> bool:
        """Whether a sentence without linking names shares some word with the question.

        True also if the plan is not a chain, or the passage is about the answer.
        """
        page, question = item.page(self.passages), self.question
        if self.plan.kind != "sequential" or is_about(read(page), question.answer):
            return True
        question_words = content_words(question.question) - content_words(page.title)
        return bool(question_words & content_words(item.quoted(self.passages)))

    def _find_answering_sentences(self, item: Item) -> list[tuple[float, int, int]]:
        """Return the sentences that may answer a hop, as (share of the hop's words, -place, place), places from 0."""
        page, triple = item.page(self.passages), item.triples[0]
        words = filled_question(item.triples) if is_free(triple) else f"{triple.head} {triple.relation}"
        question_words = content_words(words) - content_words(triple.tail)
        matches = []
        for place, sentence in enumerate(page.sentences):
            if has_value(Passage("", (sentence,)), triple.tail):
                share = coverage(question_words, f"{page.title} {sentence}")
                if share >= _MIN_ANSWER_SHARE:
                    matches.append((share, -place, place))
        return matches

    def _is_only_in_step(self, reading: Reading, claim: Triple) -> bool:
        """Whether a step states a triple that no passage states."""
        if not _states_triple(reading, claim):
            return False
        return ground(*claim.names, tuple(enumerate(self.passages, 1))).status != "stated"

    def states_other_relation(self, reading: Reading, item: Item) -> bool:
        """Whether a step joins both ends of a fact by a relation that no passage states."""
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in RELATIONS:
            return False
        if not (reading.mentions(triple.head) and reading.mentions(triple.tail)):
            return False
        definition = RELATIONS[triple.relation]
        alike = (r.name for r in RELATIONS.values() if r.group and r.kind == definition.kind and r is not definition)
        return any(self._is_only_in_step(reading, Triple(triple.head, name, triple.tail)) for name in alike)

    def is_taken_from(self, reading: Reading, number: int) -> bool:
        """Whether a claim comes from a passage (number from 1), but not from a sentence that the plan needs."""
        page = self.passages[number - 1]
        if any(not has_value(page, name) for name in reading.values):
            return False
        if self._states_unneeded(reading, number):
            return True
        if coverage(reading.words, f"{page.title} {page.text}") < MIN_SOURCE_SHARE:
            return False
        needed = [item for item in self.facts if item.passage_number == number]
        if not needed:
            return True
        shares = [coverage(reading.words, f"{page.title} {s}") for s in page.sentences]
        gives_needed = any(reading.mentions(self.value_of(item)) for item in needed)
        # Something else in a supporting sentence may be needed, though the plan does not use it.
        places = self.question.supporting_sentences(page.title)
        is_supporting = any(shares[place] >= MIN_SOURCE_SHARE for place in places if place < len(shares))
        return max(shares) >= MIN_SOURCE_SHARE and not gives_needed and not is_supporting

    def _states_unneeded(self, reading: Reading, number: int) -> bool:
        """Whether a claim states a triple that the graph has from a passage and the plan does not need."""
        needed = {triple.names for item in self.facts for triple in item.triples}
        triples = (t for t in self.graph.triples if t.passage == number and t.relation in RELATIONS)
        return any(_states_triple(reading, triple) for triple in triples if triple.names not in needed)

    def denies_fact(self, reading: Reading, item: Item) -> bool:
        """Whether a denial in a step is about the fact of an item."""
        triple = item.triples[0]
        if item.sentence is not None:
            return reading.mentions(item.page(self.passages).title)
        if is_free(triple):
            return _is_about_hop(reading, item)
        return reading.mentions(triple.head) or reading.mentions(triple.tail)


def _in_longer_names(page: Passage, name: str) -> bool:
    """Whether a passage has a one-word name only as a part of longer names.

    >>> _in_longer_names(Passage("", ("He saw The Caine Mutiny.",)), "Mutiny (film)")
    True
    """
    word = normal_name(name)
    names = [normal_name(longer) for longer in names_in(page)]
    return " " not in word and word not in names and any(word in longer.split() for longer in names)


def _states_triple(reading: Reading, triple: Triple) -> bool:
    """Whether a step states a triple; of a relation that is not one of `RELATIONS`, it need only name both ends."""
    if triple.relation in RELATIONS:
        return ground(*triple.names, [(1, reading.page)]).status == "stated"
    return reading.mentions(triple.head) and reading.mentions(triple.tail)


def _is_end(value: str, triple: Triple) -> bool:
    date, tail = as_date(value), as_date(triple.tail)
    if date and tail:
        return date.agrees(tail)
    words = set(normal_name(value).split())
    return any(words <= set(normal_name(end).split()) for end in (triple.head, triple.tail))


def _is_unlike(value: str, triple: Triple) -> bool:
    """Whether a value differs in kind from a triple's: it is not a date, or it is part of the head's name."""
    if as_date(triple.tail) and not as_date(value):
        return True
    return set(normal_name(value).split()) <= set(normal_name(triple.head).split())


def _is_about_hop(reading: Reading, item: Item) -> bool:
    """Whether a step is about a free hop: it names the hop's head or repeats its question."""
    head = item.triples[0].head
    if _quoted_question(reading) is None and reading.mentions(head):
        return head != item.triples[0].tail or _repeats_question(reading, item)
    return _repeats_question(reading, item)


def _quoted_question(reading: Reading) -> str | None:
    return next((quotation for quotation in quotations(reading.claim) if quotation[1:].endswith("?")), None)


def _repeats_question(reading: Reading, item: Item) -> bool:
    question = content_words(filled_question(item.triples))
    quoted = _quoted_question(reading)
    if quoted is not None:
        return len(question & content_words(quoted)) >= _MIN_QUESTION_SHARE * len(question)
    return len(question & reading.words) >= max(1, len(question) / 2)
