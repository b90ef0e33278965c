"""Makes the minimal plan of a question: which facts to read in passages, and what to derive from them.

The kinds of plan are those of SAFE v1, appendix A.9 (Figures 15-17): a chain of facts; a comparison
of values that are looked up (simple), looked up after another fact (bridge), or calculated (a life span); a
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
from safe_stepwise.language.text import has_words, normal_name, normal_words
from safe_stepwise.records import Passage, Question, StepKind, Triple

PlanKind = Literal["sequential", "simple comparison", "bridge comparison", "calculated comparison", "set comparison"]
NAMES, DESCRIBED = "names", "is described as"
"""Relations for facts without an annotated relation: a sentence names something, or describes its subject."""
Derivation = Literal["", "life span", "count", "conclusion"]
MAX_GOLD = 10
"""Maximum number of gold passages in a plan, as time grows with them; the benchmarks' rows have up to four."""
_VERB = re.compile(r"\b(?:is|was|are|were|has|have|had)\b")
_MAX_DESCRIPTION_WORDS = 12  # of an answer that describes an entity


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a plan: a fact to read in one passage, or something to derive.

    ``triples`` are a fact's content (several if one hop joins several earlier answers). ``uses`` has the places in the
    plan (from 0) of the items that this item builds on. ``sentence`` is the index (from 0) of the sentence that states
    a fact whose relation has no wording (`NAMES`, `DESCRIBED`), else None.
    """

    kind: StepKind
    triples: tuple[Triple, ...] = ()
    uses: tuple[int, ...] = ()
    sentence: int | None = None
    derivation: Derivation = ""

    @property
    def passage_number(self) -> int | None:
        """The number (from 1) of the passage that states the fact; None for a derivation."""
        return self.triples[0].passage if self.triples else None

    @property
    def used_steps(self) -> list[int]:
        """The numbers (from 1) of the steps that carry out the items in ``uses``, if each item gets one step."""
        return [place + 1 for place in self.uses]

    @property
    def ends(self) -> tuple[str, ...]:
        """Head and tail of each triple, in order."""
        return tuple(name for t in self.triples for name in (t.head, t.tail))

    def page(self, passages: Sequence[Passage]) -> Passage:
        """Return the passage that states the fact, from a question's passages."""
        assert self.passage_number is not None
        return passages[self.passage_number - 1]

    def quoted(self, passages: Sequence[Passage]) -> str:
        """Return the sentence that states a fact whose relation has no wording."""
        assert self.sentence is not None
        return self.page(passages).sentences[self.sentence]


@dataclass(frozen=True, slots=True)
class Plan:
    """The items in order; a comparison that the values decide also has its ``operation`` and ``sides``."""

    kind: PlanKind
    items: tuple[Item, ...]
    operation: Operation | None = None
    sides: tuple[Side, ...] = ()

    @property
    def fact_places(self) -> tuple[int, ...]:
        """The places (from 0) of the items that read a fact."""
        return tuple(n for n, item in enumerate(self.items) if item.triples)


class PlanError(Exception):
    """A question that no plan can be made for; the message is the reason, in one clause."""


def make_plan(question: Question, path: Sequence[Triple], graph: Sequence[Triple]) -> Plan:
    """Make the plan that a verified reasoning path follows.

    ``path`` and ``graph`` are a label's triples with the passages (from 1) that state them. Raises ``PlanError`` for
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
    knowledge_graph = graph_of(question, [*graph, *path])
    if is_comparison(question):
        return _plan_comparison(question, path, knowledge_graph)
    if _has_only_supporting_facts(question):
        return Plan("sequential", _add_conclusion(_make_sentence_items(question)))
    facts = tuple(_make_facts(path, knowledge_graph))
    return Plan("sequential", _add_conclusion(_link_facts(facts, knowledge_graph, question)))


def described_subjects(question: Question) -> Iterator[Triple]:
    """Yield (title, `DESCRIBED`, first supporting sentence) for each gold passage; HotpotQA annotates no more."""
    for number, page in question.gold:
        annotated = question.supporting_sentences(page.title)
        for sentence in [n for n in annotated if 0 <= n < len(page.sentences)][:1]:
            yield Triple(page.title, DESCRIBED, describe(page.sentences[sentence]), number, sentence)


def _has_only_supporting_facts(question: Question) -> bool:
    """Whether a question is annotated only with supporting facts, as in HotpotQA."""
    return bool(question.supporting_facts) and not (question.evidence or question.decomposition)


def graph_of(question: Question, triples: Sequence[Triple]) -> KnowledgeGraph:
    """Build a graph of a label's triples that merges the names of each gold passage's subject into one node.

    A demonym ("American") does not name a subject, though a passage may open with it.
    """
    names = [(name, clean(name)) for t in triples for name in (t.head, t.tail)]
    entities = [name for name, words in names if not is_nation(words) or is_country(words)]
    return KnowledgeGraph(triples, titles_of(entities, (passage for _, passage in question.gold)))


def _make_facts(path: Sequence[Triple], graph: KnowledgeGraph) -> Iterator[Item]:
    """Yield one item for each statement; triples that join several earlier answers share an item."""
    for _, group in groupby(path, key=lambda t: (t.relation, t.tail, t.passage)):
        triples = tuple(group)
        first, sentence = triples[0], None
        if first.relation in (NAMES, DESCRIBED):  # a statement in the passage's words, as in HotpotQA
            same_statement = (t for t in graph.find(*first.names) if t.passage == first.passage)
            sentence = next((t.sentence for t in same_statement), None)
        yield Item("Attribution", triples, (), sentence)


def _make_sentence_items(question: Question) -> tuple[Item, ...]:
    """Return items for the supporting sentences of the gold passages, which are annotated without triples.

    From each passage, the sentences are taken that first name another gold passage's subject or the answer; if there
    is no such sentence, the first one.
    """
    items = []
    for number, passage in sorted(question.gold, key=lambda gold: _citation_order(question, gold[1].title)):
        annotated = dict.fromkeys(question.supporting_sentences(passage.title))
        sentences = [n for n in annotated if n < len(passage.sentences)] or [0]
        keys = [p.title for n, p in question.gold if n != number]
        if not is_about(read(passage), question.answer):
            keys.append(question.answer)
        naming_items: list[Item] = []
        for sentence in sentences:
            text = read(Passage("", (passage.sentences[sentence],)))
            newly_named = [k for k in keys if mentions(text, k) and normal_name(k) != normal_name(passage.title)]
            keys = [key for key in keys if key not in newly_named]
            if newly_named:
                naming_items.append(_make_quoted_item(passage, number, sentence, NAMES, newly_named))
        items += naming_items or [_make_quoted_item(passage, number, sentences[0], DESCRIBED, [passage.title])]
    return _order_sentences(items, question)


def describe(sentence: str) -> str:
    """Return how a sentence describes an entity: the words after the verb, cut to `_MAX_DESCRIPTION_WORDS`."""
    return " ".join(_VERB.split(sentence, maxsplit=1)[-1].split()[:_MAX_DESCRIPTION_WORDS]).rstrip(".,;")


def _citation_order(question: Question, title: str) -> int:
    """Return the index of a title's first supporting fact, as people reason (R4C), or the number of all facts."""
    titles = [fact.title for fact in question.supporting_facts]
    return titles.index(title) if title in titles else len(titles)


def _order_sentences(items: Sequence[Item], question: Question) -> tuple[Item, ...]:
    """Order sentences so that each follows those that it builds on, and fill in what each uses.

    A sentence builds on those that name its subject, unless the question names that subject. Otherwise the order is
    kept. If only one sentence has the answer, and no passage is about the answer, it may follow the sentences that it
    leads to.
    """
    question_words = normal_words(question.question)
    answer_sentence = _find_sole_answering(items, question)
    waiting = list(items)
    ordered: list[Item] = []
    while waiting:
        candidates = [item for item in waiting if item is not answer_sentence]
        item = next((i for i in waiting if not _is_named(i, candidates, question_words)), waiting[0])
        waiting.remove(item)
        uses = _find_premises(item, ordered, question, may_be_led_to=item is not answer_sentence)
        ordered.append(replace(item, uses=tuple(uses[-1:])))
    return tuple(ordered)


def _find_premises(
    item: Item, earlier_items: Sequence[Item], question: Question, *, may_be_led_to: bool
) -> Sequence[int]:
    """Return the places of the earlier sentences that a sentence builds on.

    Unless it ``may_be_led_to`` only, a sentence whose subject nothing names builds on the sentences that it leads to.
    """
    question_words = normal_words(question.question)
    # A sentence with a name from the question can be read at any time.
    if any(
        has_words(question_words, normal_words(n)) for n in names_in(Passage("", (item.quoted(question.passages),)))
    ):
        return ()
    uses = [n for n, earlier in enumerate(earlier_items) if _is_named(item, [earlier], question_words)]
    if uses or may_be_led_to or has_words(question_words, normal_name(item.triples[0].head)):
        return uses
    return [n for n, earlier in enumerate(earlier_items) if _is_named(earlier, [item], question_words)]


def _find_sole_answering(items: Sequence[Item], question: Question) -> Item | None:
    """Return the only sentence that has the answer; None if several do, or a gold passage is about the answer."""
    answer = normal_name(question.answer)
    if any(normal_name(page.title) == answer for _, page in question.gold):
        return None
    answering = [item for item in items if answer in map(normal_name, item.ends)]
    return answering[0] if len(answering) == 1 else None


def _is_named(item: Item, items: Sequence[Item], question_words: str) -> bool:
    """Whether other items' sentences name an item's subject, and the question does not."""
    title = item.triples[0].head
    is_in_question = has_words(question_words, normal_name(title))
    return not is_in_question and any(t.tail == title for o in items if o is not item for t in o.triples)


def _make_quoted_item(passage: Passage, number: int, sentence: int, relation: str, tails: Sequence[str]) -> Item:
    triples = tuple(Triple(passage.title, relation, tail, number, sentence) for tail in tails)
    return Item("Attribution", triples, (), sentence)


def _link_facts(facts: Sequence[Item], graph: KnowledgeGraph, question: Question) -> tuple[Item, ...]:
    """Fill in what each fact uses: earlier facts that share an entity with it that the question does not name."""
    question_words = normal_words(question.question)
    nodes = [{graph.node(name) for name in item.ends} for item in facts]
    linked: list[Item] = []
    for item in facts:
        ends = {graph.node(name) for name in item.ends if not has_words(question_words, normal_name(name))}
        uses = [n for n in range(len(linked)) if ends & nodes[n] and not _are_siblings(linked[n], item)]
        linked.append(replace(item, uses=tuple(uses[-len(item.triples) :])))
    return tuple(linked)


def _are_siblings(item: Item, other_item: Item) -> bool:
    """Whether two facts give values of the same relation and head, so that neither builds on the other."""
    triple, other_triple = item.triples[0], other_item.triples[0]
    is_same_set = (triple.head, triple.relation) == (other_triple.head, other_triple.relation)
    return is_same_set and triple.relation in RELATIONS


def _add_conclusion(facts: tuple[Item, ...]) -> tuple[Item, ...]:
    """Add the conclusion, which uses the facts that no other fact builds on."""
    used = {n for item in facts for n in item.uses}
    last = tuple(n for n in range(len(facts)) if n not in used)
    return (*facts, Item("Logical", uses=last, derivation="conclusion"))


def _branch_order(question: Question, branch: Sequence[Triple]) -> int:
    pages = (question.passages[t.passage - 1] for t in branch if t.passage is not None)
    return min(_citation_order(question, page.title) for page in pages)


def _plan_comparison(question: Question, path: Sequence[Triple], graph: KnowledgeGraph) -> Plan:
    branches = KnowledgeGraph(path, graph.aliases).branches(path)
    if _has_only_supporting_facts(question):
        branches = tuple(sorted(branches, key=lambda branch: _branch_order(question, branch)))
    if len(branches) < 2:
        raise PlanError("a comparison with one branch")
    comparison = comparison_of(question, branches)
    if not answers_choice(question, [side.entity for side in comparison.sides]):
        raise PlanError("the answer is none of those that the question lets choose from")
    is_decided = comparison.result is not None and graph.is_same_entity(comparison.result, question.answer)
    counts_values = is_decided and is_by_size(comparison.operation, comparison.sides)
    compares_spans = len(branches) == 2 and all(side.since for side in comparison.sides)
    derivation: Derivation = "life span" if compares_spans else "count" if counts_values else ""
    items: list[Item] = []
    compared: list[int] = []
    for branch in branches:
        shared = [n for n, item in enumerate(items) if set(item.triples) & set(branch)]
        facts = [f for f in _make_facts(branch, graph) if not any(f.triples == i.triples for i in items)]
        start = len(items)
        for fact in _link_facts(facts, graph, question):
            items.append(replace(fact, uses=tuple(start + n for n in fact.uses)))
        places = list(range(start, len(items))) or shared
        relations = {n: items[n].triples[0].relation for n in places}
        values = [n for n, relation in relations.items() if relation == branch[-1].relation]
        if compares_spans:
            values = [n for n, relation in relations.items() if relation.startswith("date of")]
        if derivation:
            items.append(Item("Logical", uses=tuple(values), derivation=derivation))
            values = [len(items) - 1]
        compared += values
    items.append(Item("Logical", uses=tuple(dict.fromkeys(compared)), derivation="conclusion"))
    kind: PlanKind = "simple comparison"
    if compares_spans:
        kind = "calculated comparison"
    elif any(_are_siblings(*two) for two in combinations([i for i in items if i.triples], 2)):
        kind = "set comparison"
    elif any(len(branch) > 1 for branch in branches):
        kind = "bridge comparison"
    return Plan(kind, tuple(items), *((comparison.operation, comparison.sides) if is_decided else ()))
