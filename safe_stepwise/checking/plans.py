"""The minimal atomic plan of a question: which facts to read in passages, and what to derive from them.

The kinds of plan are those of SAFE v1, appendix A.9 (Figures 15-17): a chain of facts; a comparison
of values that are looked up (simple), looked up behind a bridge, or calculated (a life span); a
comparison of sets, by their size or by what they share. Where the paper reads a set in one step, a
step here reads one member. Every plan ends in one derivation, which settles the answer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Literal

from safe_stepwise.graphs.comparisons import Operation, Side, answers_choice, comparison_of, is_by_size, is_comparison
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.language.mentions import is_about, mentions, names_in, titles_of
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.relations import RELATIONS, is_country, is_nation
from safe_stepwise.language.text import has_words, normal_name, words_of
from safe_stepwise.records import Passage, Question, StepKind, Triple

PlanKind = Literal["sequential", "simple comparison", "bridge comparison", "calculated comparison", "set comparison"]
NAMES, DESCRIBED = "names", "is described as"
"""Relations of facts without a relation of their own: a sentence names something, or describes its subject."""
Derivation = Literal["", "life span", "count", "conclusion"]
MAX_GOLD = 10
"""Maximum number of gold passages in a plan, as time grows with them; the benchmarks' rows have up to four."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a plan: a fact to read in one passage, or something to derive.

    ``triples`` are a fact's content (several if one hop joins several earlier answers). ``sentence`` is the index
    (from 0) of the sentence that states a fact whose relation has no wording of its own; else it is None. ``uses`` are
    the places in the plan (from 0) of the items that this one builds on.
    """

    kind: StepKind
    triples: tuple[Triple, ...] = ()
    uses: tuple[int, ...] = ()
    sentence: int | None = None
    derivation: Derivation = ""

    @property
    def passage(self) -> int | None:
        """The number (from 1) of the passage that states the fact; None for a derivation."""
        return self.triples[0].passage if self.triples else None

    @property
    def ends(self) -> tuple[str, ...]:
        """Head and tail of each triple, in order."""
        return tuple(name for t in self.triples for name in (t.head, t.tail))

    def page(self, passages: Sequence[Passage]) -> Passage:
        """Return the passage that states the fact, from a question's passages."""
        assert self.passage is not None
        return passages[self.passage - 1]

    def quoted(self, passages: Sequence[Passage]) -> str:
        """Return the sentence that states a fact without a wording of its own."""
        assert self.sentence is not None
        return self.page(passages).sentences[self.sentence]


@dataclass(frozen=True, slots=True)
class Plan:
    """Items in order; ``operation`` and ``sides`` (both empty otherwise) of a comparison that the values decide."""

    kind: PlanKind
    items: tuple[Item, ...]
    operation: Operation | None = None
    sides: tuple[Side, ...] = ()

    @property
    def facts(self) -> tuple[int, ...]:
        """The places (from 0) of the items that read a fact."""
        return tuple(n for n, item in enumerate(self.items) if item.triples)


class PlanError(Exception):
    """A question that no plan can be made for; the message is the reason, in one clause."""


def make_plan(question: Question, path: Sequence[Triple], graph: Sequence[Triple]) -> Plan:
    """Make the plan that a verified reasoning path carries out.

    ``path`` and ``graph`` are a label's: triples with the passage (from 1) that states them. Raises ``PlanError`` for
    an empty path, a hop without a passage, a comparison with one branch or without the answer among its choices, and
    more than `MAX_GOLD` gold passages.

    >>> path = (Triple("Dune Rain", "director", "Ors Velt", 1),
    ...         Triple("Ors Velt", "spouse", "Ana", 2))
    >>> plan = make_plan(Question("q", "b", "train", "Who?", "Ana"), path, path)
    >>> plan.kind, [(item.kind, item.uses) for item in plan.items]
    ('sequential', [('Attribution', ()), ('Attribution', (0,)), ('Logical', (1,))])
    """
    if (gold := len(question.gold)) > MAX_GOLD:
        raise PlanError(f"{gold} gold passages, at most {MAX_GOLD} can be planned for")
    if not path:
        raise PlanError("no path")
    if any(triple.passage is None for triple in path):
        raise PlanError("a hop without a passage")
    graph_ = graph_of(question, [*graph, *path])
    if is_comparison(question):
        return _comparison(question, path, graph_)
    if _by_sentences(question):
        return Plan("sequential", _concluded(_sentence_items(question)))
    facts = tuple(_facts(path, graph_))
    return Plan("sequential", _concluded(_linked(facts, graph_, question)))


def described_subjects(question: Question) -> Iterator[Triple]:
    """Yield the first supporting sentence of each gold passage: all that HotpotQA annotates."""
    for number, page in question.gold:
        annotated = [fact.sentence for fact in question.supporting_facts if fact.title == page.title]
        for sentence in [n for n in annotated if 0 <= n < len(page.sentences)][:1]:
            yield Triple(page.title, DESCRIBED, described(page.sentences[sentence]), number, sentence)


def _by_sentences(question: Question) -> bool:
    """Whether a question is annotated with supporting facts alone, as in HotpotQA."""
    return bool(question.supporting_facts) and not (question.evidence or question.decomposition)


def graph_of(question: Question, triples: Sequence[Triple]) -> KnowledgeGraph:
    """Build a graph of a label's triples, in which all names of a gold passage's subject are one node.

    A people ("American") is not a name of a subject, though a passage may open with it.
    """
    names = [(name, clean(name)) for t in triples for name in (t.head, t.tail)]
    entities = [name for name, words in names if not is_nation(words) or is_country(words)]
    return KnowledgeGraph(triples, titles_of(entities, question.gold))


def _facts(path: Sequence[Triple], graph: KnowledgeGraph) -> Iterator[Item]:
    """Yield one item for each statement; triples that join several earlier answers share one."""
    for _, group in groupby(path, key=lambda t: (t.relation, t.tail, t.passage)):
        triples = tuple(group)
        first, sentence = triples[0], None
        if first.relation in (NAMES, DESCRIBED):  # a statement in the passage's words, as in HotpotQA
            triples_ = graph.find(first.head, first.relation, first.tail)
            sentence = next((t.sentence for t in triples_ if t.passage == first.passage), None)
        yield Item("Attribution", triples, (), sentence)


def _sentence_items(question: Question) -> tuple[Item, ...]:
    """Return items for the supporting sentences of the gold passages, which are annotated without triples.

    From each passage, those sentences are taken that first name another gold passage's subject or the answer; if none
    does, the first one.
    """
    items = []
    for number, passage in sorted(question.gold, key=lambda gold: _cited(question, gold[1].title)):
        sentences = [f.sentence for f in question.supporting_facts if f.title == passage.title]
        sentences = [n for n in dict.fromkeys(sentences) if n < len(passage.sentences)] or [0]
        keys = [p.title for n, p in question.gold if n != number]
        if not is_about(read(passage), question.answer):
            keys.append(question.answer)
        linked: list[Item] = []
        for sentence in sentences:
            text = read(Passage("", (passage.sentences[sentence],)))
            new = [key for key in keys if mentions(text, key) and normal_name(key) != normal_name(passage.title)]
            keys = [key for key in keys if key not in new]
            if new:
                linked.append(_quoted(passage, number, sentence, NAMES, new))
        items += linked or [_quoted(passage, number, sentences[0], DESCRIBED, [passage.title])]
    return _in_order(items, question)


_VERB = re.compile(r"\b(?:is|was|are|were|has|have|had)\b")
_MAX_DESCRIPTION_WORDS = 12  # of an answer that describes an entity


def described(sentence: str) -> str:
    """Return how a sentence describes an entity: the words after the verb, cut to `_MAX_DESCRIPTION_WORDS`."""
    return " ".join(_VERB.split(sentence, maxsplit=1)[-1].split()[:_MAX_DESCRIPTION_WORDS]).rstrip(".,;")


def _cited(question: Question, title: str) -> int:
    """Return the place (from 0) at which supporting facts first cite a passage, as people reason (R4C); else the last.

    >>> from safe_stepwise.records import SupportingFact
    >>> facts = (SupportingFact("Oru", 1), SupportingFact("Vel", 0))
    >>> asked = Question("q", "b", "train", "Where?", "Oru", supporting_facts=facts)
    >>> [_cited(asked, title) for title in ("Oru", "Vel", "Marn")]
    [0, 1, 2]
    """
    titles = [fact.title for fact in question.supporting_facts]
    return titles.index(title) if title in titles else len(titles)


def _in_order(items: Sequence[Item], question: Question) -> tuple[Item, ...]:
    """Order sentences so that each follows those that it builds on, and fill in what each uses.

    A sentence builds on those that name its subject, unless the question names that. Otherwise the order is kept. If
    one sentence alone has an answer that is no passage's subject, it may follow the sentences that it leads to, and
    then builds on them. A sentence that names something from the question builds on nothing.
    """
    question_words = words_of(question.question)
    alone = _sole_answering(items, question)
    waiting = list(items)
    placed: list[Item] = []
    while waiting:
        leaders = [item for item in waiting if item is not alone]
        item = next((i for i in waiting if not _leading(i, leaders, question_words)), waiting[0])
        waiting.remove(item)
        uses = [n for n, earlier in enumerate(placed) if _leading(item, [earlier], question_words)]
        if item is alone and not uses and not has_words(question_words, normal_name(item.triples[0].head)):
            uses = [n for n, earlier in enumerate(placed) if _leading(earlier, [item], question_words)]
        own_words = Passage("", (item.quoted(question.passages),))
        # A sentence with a name from the question can be read at any time.
        if any(has_words(question_words, words_of(name)) for name in names_in(own_words)):
            uses = []
        placed.append(replace(item, uses=tuple(uses[-1:])))
    return tuple(placed)


def _sole_answering(items: Sequence[Item], question: Question) -> Item | None:
    """Return the one sentence that has the answer; None if several do, or a gold passage is about the answer."""
    answer = normal_name(question.answer)
    if any(normal_name(page.title) == answer for _, page in question.gold):
        return None
    answering = [item for item in items if answer in map(normal_name, item.ends)]
    return answering[0] if len(answering) == 1 else None


def _leading(item: Item, items: Sequence[Item], question_words: str) -> list[Item]:
    """Return the items whose sentences name an item's subject; none if the question names it."""
    title = item.triples[0].head
    if has_words(question_words, normal_name(title)):
        return []
    return [o for o in items if o is not item and any(t.tail == title for t in o.triples)]


def _quoted(passage: Passage, number: int, sentence: int, relation: str, tails: Sequence[str]) -> Item:
    triples = tuple(Triple(passage.title, relation, tail, number, sentence) for tail in tails)
    return Item("Attribution", triples, (), sentence)


def _linked(facts: Sequence[Item], graph: KnowledgeGraph, question: Question) -> tuple[Item, ...]:
    """Fill in what each fact uses: earlier facts that share an entity with it which the question does not name."""
    question_words = words_of(question.question)
    nodes = [{graph.node(name) for name in item.ends} for item in facts]
    linked: list[Item] = []
    for item in facts:
        new = (name for name in item.ends if not has_words(question_words, normal_name(name)))
        ends = {graph.node(name) for name in new}
        uses = [n for n in range(len(linked)) if ends & nodes[n] and not _beside(linked[n], item)]
        linked.append(replace(item, uses=tuple(uses[-len(item.triples) :])))
    return tuple(linked)


def _beside(item: Item, other_item: Item) -> bool:
    """Whether two facts list members of one set, so that neither builds on the other."""
    triple, other_triple = item.triples[0], other_item.triples[0]
    is_same_set = (triple.head, triple.relation) == (other_triple.head, other_triple.relation)
    return is_same_set and triple.relation in RELATIONS


def _concluded(facts: tuple[Item, ...]) -> tuple[Item, ...]:
    """Add a conclusion to some facts, from those that no other fact builds on."""
    used = {n for item in facts for n in item.uses}
    last = tuple(n for n in range(len(facts)) if n not in used)
    return (*facts, Item("Logical", (), last, None, "conclusion"))


def _first_cited(question: Question, branch: Sequence[Triple]) -> int:
    pages = (question.passages[t.passage - 1] for t in branch if t.passage is not None)
    return min(_cited(question, page.title) for page in pages)


def _comparison(question: Question, path: Sequence[Triple], graph: KnowledgeGraph) -> Plan:
    branches = KnowledgeGraph(path, graph.aliases).branches(path)
    if _by_sentences(question):
        branches = tuple(sorted(branches, key=lambda branch: _first_cited(question, branch)))
    if len(branches) < 2:
        raise PlanError("a comparison with one branch")
    comparison = comparison_of(question, branches)
    if not answers_choice(question, [side.entity for side in comparison.sides]):
        raise PlanError("the answer is none of those that the question lets choose from")
    is_decided = comparison.result is not None and graph.is_same_entity(comparison.result, question.answer)
    by_count = is_decided and is_by_size(comparison.operation, comparison.sides)
    spans = len(branches) == 2 and all(side.since for side in comparison.sides)
    items: list[Item] = []
    ends: list[int] = []
    for branch in branches:
        shared = [n for n, item in enumerate(items) if set(item.triples) & set(branch)]
        facts = [f for f in _facts(branch, graph) if not any(f.triples == i.triples for i in items)]
        start = len(items)
        for fact in _linked(facts, graph, question):
            items.append(replace(fact, uses=tuple(start + n for n in fact.uses)))
        places = list(range(start, len(items))) or shared
        values = [n for n in places if items[n].triples[0].relation == branch[-1].relation]
        if spans:
            dated = [n for n in places if items[n].triples[0].relation.startswith("date of")]
            items.append(Item("Logical", (), tuple(dated), None, "life span"))
            ends.append(len(items) - 1)
        elif by_count:
            items.append(Item("Logical", (), tuple(values), None, "count"))
            ends.append(len(items) - 1)
        else:
            ends += values
    items.append(Item("Logical", (), tuple(dict.fromkeys(ends)), None, "conclusion"))
    kind: PlanKind = "simple comparison"
    if spans:
        kind = "calculated comparison"
    elif any(_beside(*two) for two in combinations([i for i in items if i.triples], 2)):
        kind = "set comparison"
    elif any(len(branch) > 1 for branch in branches):
        kind = "bridge comparison"
    return Plan(kind, tuple(items), *((comparison.operation, comparison.sides) if is_decided else ()))
