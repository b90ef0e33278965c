"""Checks steps against a plan, without a model: the graph-based checker.

Given a question, its passages, its graph and the steps accepted so far, the checker proves an error of the next step,
in the taxonomy's order (SAFE v1, Table 1 and Figure 12), or that the step is right. If it can prove neither, it
abstains. A *fact* is an item of the plan that a passage states; an item is *established* once an accepted step has
carried it out.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from safe_stepwise.checking import inference
from safe_stepwise.checking.claims import MIN_MISQUOTE_SHARE, MIN_SOURCE_SHARE, Claims
from safe_stepwise.checking.inference import Conclusion, Count, Lifespan, calculation_of, comparisons_hold, measure_of
from safe_stepwise.checking.plans import Item, Plan, graph_of, make_plan
from safe_stepwise.checking.statements import filled_question, is_free, list_steps, plural
from safe_stepwise.checking.step_reading import Reading, content_words, coverage, has_value, read_step
from safe_stepwise.checking.support import Support, is_asserted, weigh
from safe_stepwise.checking.wordings import WordingStyle, choice_for, guide_to, missing, quote_item, render, state_item
from safe_stepwise.checking.words import is_same_name
from safe_stepwise.graphs.comparisons import is_yes_or_no
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.syntax import Predication, parse
from safe_stepwise.language.text import as_date, fold, has_words, normal_name, normal_words, without_qualifier
from safe_stepwise.records import Feedback, Passage, Question, Step, Triple
from safe_stepwise.scoring import normalize_answer
from safe_stepwise.steps import final_answer
from safe_stepwise.taxonomy import CORRECT, check_order

MAX_GROUNDS_CHARS = 240
"""Maximum length of a derivation's facts that a diagnosis repeats; longer facts are left out."""
_INTERROGATIVES = ("who", "what", "which", "where", "when")
_DASHES = re.compile("[–—]")


@dataclass(frozen=True, slots=True)
class _Case:
    """A step to check, with the accepted steps before it; ``established`` maps plan items to step numbers."""

    previous: Sequence[Step]
    step: Step
    reading: Reading
    established: dict[int, int]
    unclear: frozenset[int]
    """Places of facts that an accepted step may have read, in words that the checker could not read."""


class Checker:
    """Checks the steps of one question, by a verified label's reasoning path and knowledge graph.

    Steps cite the question's passages by number. ``style``: which wordings the findings use. Raises ``PlanError`` if
    the path gives no plan.

    >>> from safe_stepwise.records import Passage
    >>> page = Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",), True)
    >>> other = Passage("Ors Velt", ("Ors Velt was born in Oru.",), True)
    >>> hops = (Triple("Dune Rain", "director", "Ors Velt", 1),
    ...         Triple("Ors Velt", "place of birth", "Oru", 2))
    >>> question = Question("q", "musique", "train", "Where was the director of Dune Rain born?",
    ...                     "Oru", passages=(page, other))
    >>> checker = Checker(question, hops, hops)
    >>> step = Step(1, "According to Passage 1, Dune Rain was directed by Ana Vorr.", "Attribution")
    >>> checker.check([], step).error_type
    'Contradictory'
    """

    def __init__(
        self, question: Question, path: Sequence[Triple], graph: Sequence[Triple], style: WordingStyle = "seen"
    ) -> None:
        self.question, self.style = question, style
        self.plan: Plan = make_plan(question, path, graph)
        self.passages = question.passages
        self.claims = Claims(question, self.plan, graph_of(question, graph))
        self.replaced: Mapping[int, Passage] = {}

    def with_page(self, number: int, page: Passage) -> "Checker":
        """Return a checker with the same plan, but with another passage at ``number`` (from 1)."""
        variant = copy(self)
        variant.replaced = {**self.replaced, number: page}
        return variant

    def check(self, previous: Sequence[Step], step: Step) -> Feedback | None:
        """Judge a step that follows accepted steps; None if it can be proved neither right nor wrong."""
        established = self.established(previous)
        unclear = self._find_unclear(previous, established)
        case = _Case(previous, step, read_step(step.text), established, unclear)
        if step.kind == "Final Answer":
            return self._check_answer(case)
        if answering := self._answering_step(case):
            guidance = self._render("guidance", "answer", case.step.text)
            return self._report(case, "Overthinking", "answered", guidance, step=answering)
        if step.kind == "Logical":
            return self._check_logical(case)
        return self._check_attribution(case)

    def passes(self, previous: Sequence[Step], step: Step) -> bool:
        """Whether a step that follows accepted steps is proved to be right."""
        verdict = self.check(previous, step)
        return verdict is not None and verdict.error_type == CORRECT

    def established(self, previous: Sequence[Step]) -> dict[int, int]:
        """Map the places (from 0) of the plan items that accepted steps have established to the steps' numbers."""
        steps_by_place: dict[int, int] = {}
        for step in previous:
            reading = read_step(step.text)
            for place in range(len(self.plan.items)):
                if place not in steps_by_place and self._carries_out(reading, step, place, steps_by_place):
                    steps_by_place[place] = step.number
        return steps_by_place

    def _find_unclear(self, previous: Sequence[Step], established: Mapping[int, int]) -> frozenset[int]:
        """Return the places of open facts that an accepted step may have read, as it cites or names them.

        A step that has established facts of a passage is clear about that passage's other facts.
        """
        clear = set(established.values())
        readings = [read_step(step.text) for step in previous if step.number not in clear]
        gaps = (place for place in self.plan.fact_places if place not in established)
        return frozenset(place for place in gaps if any(self._may_read(reading, place) for reading in readings))

    def _may_read(self, reading: Reading, place: int) -> bool:
        item = self.plan.items[place]
        if reading.cited:
            return item.passage_number in reading.cited and not reading.denies
        return not reading.denies and reading.mentions(self.claims.value_of(item))

    def _carries_out(self, reading: Reading, step: Step, place: int, established: dict[int, int]) -> bool:
        item = self.plan.items[place]
        if item.triples:
            return step.kind == "Attribution" and self.claims.states(reading, place)
        if step.kind != "Logical":
            return False
        if calculation := calculation_of(self.plan, item):
            return calculation.is_stated(reading) is True
        return established.keys() >= {*self.plan.fact_places} and self._parse_conclusion(reading).right is True

    def _answering_step(self, case: _Case) -> int | None:
        """Return the number of the step that reached the answer; None if something is left to read or derive."""
        established, last = case.established, len(self.plan.items) - 1
        if last in established:
            return established[last]
        for step in case.previous if self._has_unclear_gap(case) else ():
            if step.kind == "Logical" and self._parse_conclusion(read_step(step.text)).right:
                return step.number
        is_read = self.plan.kind == "sequential" and established.keys() >= {*self.plan.fact_places}
        return max(established.values()) if is_read and case.step.kind == "Attribution" else None

    def next_item(self, established: dict[int, int]) -> int | None:
        """Return the place of the first open item whose premises are all established; None if there is none."""
        waiting = ((n, item) for n, item in enumerate(self.plan.items) if n not in established)
        return next((n for n, item in waiting if established.keys() >= set(item.uses)), None)

    def guidance(self, established: dict[int, int], previous: Sequence[Step], text: str) -> str:
        """Write the next action after some items are established by accepted steps; ``text`` selects the wording."""
        place = self.next_item(established)
        if place is None:
            return self._render("guidance", "answer", text)
        item = self.plan.items[place]
        if item.triples:
            return self._guide_to(item, previous, text)
        steps = list_steps(sorted({established[use] for use in item.uses})) if item.uses else "the steps"
        if calculation := calculation_of(self.plan, item):
            noun = plural(calculation.relation) if isinstance(calculation, Count) else None
            code = "count" if noun else "span"
            return self._render("guidance", code, text, steps=steps, what=calculation.head, things=noun)
        code = "conclude" if self.plan.kind == "sequential" else "compare"
        return self._render("guidance", code, text, steps=steps)

    def _check_attribution(self, case: _Case) -> Feedback | None:
        places = [n for n in self.plan.fact_places if self.claims.states(case.reading, n)]
        new = [n for n in places if n not in case.established]
        if new:
            return self._check_new_facts(case, new)
        if places:
            return None if self._may_read_on(case) else self._report_redundancy(case, places[0])
        checks: Mapping[str, Callable[[_Case], Feedback | None]] = {
            "Off-topic": self._check_off_topic,
            "Inefficiency": self._check_inefficiency,
            "Contradictory": self._check_contradictory,
            "Unsupported": self._check_unsupported,
            "Information Miss": self._check_information_miss,
            "Premature Attribution": self._check_bypass,
        }
        verdicts = (checks[name](case) for name in check_order("Attribution") if name in checks)
        return next(filter(None, verdicts), None) or self._check_statement(case)

    def _check_new_facts(self, case: _Case, places: Sequence[int]) -> Feedback | None:
        items, cited = [self.plan.items[place] for place in places], case.reading.cited
        item = items[0]
        if changed := next((item for item in items if item.passage_number in self.replaced), None):
            number, gap = changed.passage_number or 0, missing(changed, self.passages)
            fields: dict[str, Any] = {"passage": number, "title": self.replaced[number].title}
            guidance = self._render("guidance", "withdraw", case.step.text, what=gap)
            return self._report(case, "Unsupported", "not_stated", guidance, what=gap, **fields)
        misplaced = next((item for item in items if cited and item.passage_number not in cited), None)
        waiting = [use for item in items for use in item.uses if use not in {*case.established, *places}]
        support = self._weigh_facts(case, places) if misplaced or not waiting else None
        if support and misplaced and not support.is_borne_out:
            return self._report_wrong_passage(case, misplaced)
        if case.unclear.intersection(waiting):
            return None
        if waiting:
            first = self.plan.items[self.next_item(case.established) or waiting[0]]
            entity = self.claims.joint(item, self.plan.items[waiting[0]])
            is_mentioned = case.reading.mentions(entity)
            fields = {"entity": entity if is_mentioned else None, "passage": item.passage_number}
            return self._report_fact(first, case, "Premature Attribution", "premature", **fields)
        if support and not support.is_borne_out:
            return self._report_unsupported_part(case, support, {**self._make_fact_fields(case, item), "value": None})
        if self._says_too_much(case, items):
            return None
        return self._report_correct(case, "sound_fact", *places, **self._make_fact_fields(case, item))

    def _says_too_much(self, case: _Case, items: Sequence[Item]) -> bool:
        """Whether a step cites a passage that states no part of it, or copies more sentences than its facts need."""
        text, context = normal_words(case.step.text), self.claims.searchable_context(case.previous).sentences
        pages, facts = (
            case.reading.cited_passages(self.passages),
            [triple for item in items for triple in item.triples],
        )
        copied = sum(has_words(text, normal_words(sentence)) for _, page in pages for sentence in page.sentences)
        further_pages = [page for page in pages if page[0] not in {item.passage_number for item in items}]
        return copied > len(items) + 1 or any(
            not any(_is_stated(fact, [page]) for fact in facts) and not weigh(case.step.text, [page], context).stated
            for page in further_pages
        )

    def _weigh_facts(self, case: _Case, places: Sequence[int]) -> Support:
        items = [self.plan.items[n] for n in places]
        cited = [n for n in case.reading.cited if n <= len(self.passages)]
        numbers = cited or sorted({item.passage_number or 1 for item in items})
        pages = self._pages(numbers)
        items = [item for item in items if item.sentence is None]
        facts = [t for i in items for t in i.triples if i.passage_number in numbers or _is_stated(t, pages)]
        questions = [filled_question(item.triples) for item in items if is_free(item.triples[0])]
        context = [*self.claims.searchable_context(case.previous).sentences, *questions]
        return weigh(self._without_closing(case, places), pages, context, facts)

    def _without_closing(self, case: _Case, places: Sequence[int]) -> str:
        """Return a step's text without a last sentence that draws the right conclusion from what has been read."""
        text, stop, closing = case.step.text.rpartition(". ")
        conclusion = read_step(closing)
        is_complete = all(place in case.established or place in places for place in self.plan.fact_places)
        if not (stop and is_complete and inference.says_the_answer(conclusion)):
            return case.step.text
        is_right = self._parse_conclusion(conclusion).right and self._asserts(case, closing)
        return f"{text}." if is_right else case.step.text

    def _report_unsupported_part(self, case: _Case, support: Support, fields: Mapping[str, Any]) -> Feedback | None:
        """Report a part that a passage contradicts or no passage has; None if some part only could not be read."""
        if finding := support.contradiction:
            quote = f"“{finding.quote}”" if finding.quote else fields.get("quote")
            fields = {**fields, "passage": finding.passage or fields.get("passage"), "quote": quote}
            return self._report(case, "Contradictory", "otherwise", **fields) if quote else None
        absent = next((finding for finding in support.findings if finding.status == "not found"), None)
        if absent and not self.claims.is_in_passages(absent.part):
            passage = case.reading.cited[0] if case.reading.cited else None
            return self._report(case, "Unsupported", "absent", claimed=absent.part, passage=passage)
        return None

    def _check_statement(self, case: _Case) -> Feedback | None:
        """Judge a step without a fact of the plan: right if it reads supporting facts about something named before."""
        if case.reading.denies or not case.reading.cited or case.reading.announces:
            return None
        support = self._weigh_facts(case, ())
        if not support.is_borne_out:
            return self._report_unsupported_part(case, support, {"passage": case.reading.cited[0]})
        places = {(self.passages[f.passage - 1].title, f.sentence): f for f in support.stated if f.passage}
        supporting = {(fact.title, fact.sentence) for fact in self.question.supporting_facts}
        if not places or not places.keys() <= supporting:
            return None
        earlier = self.claims.searchable_context(case.previous).text
        words, known_words = content_words(case.step.text), content_words(earlier)
        is_due = any(has_words(normal_words(earlier), normal_words(without_qualifier(title))) for title, _ in places)
        if not (is_due or len(words & known_words) > 1) or words <= known_words:
            return None
        finding = next(iter(places.values()))
        fields = {"passage": finding.passage, "quote": f"“{finding.quote}”"}
        guidance = self.guidance(case.established, [*case.previous, case.step], case.step.text)
        return self._report(case, CORRECT, "sound_fact", guidance, **fields)

    def _report_wrong_passage(self, case: _Case, item: Item) -> Feedback | None:
        """Report a fact that is cited from the wrong passage, if that passage does not name the fact's value."""
        cited = case.reading.cited
        pages, value = case.reading.cited_passages(self.passages), self.claims.value_of(item)
        if any(first_mention(read(page), value) is not None for _, page in pages):
            return None
        title = pages[0][1].title if len(pages) == len(cited) else None
        fields = {"passage": cited[0], "value": value, "source": item.passage_number, "title": title}
        return self._report_fact(item, case, "Unsupported", "not_in_passage", **fields)

    def _check_off_topic(self, case: _Case) -> Feedback | None:
        """Report a true statement from one passage that the plan does not need."""
        reading = case.reading
        if reading.denies or len(reading.cited) != 1 or not reading.words:
            return None
        number = reading.cited[0]
        if not 0 < number <= len(self.passages) or not self.claims.is_taken_from(reading, number):
            return None
        support = self._weigh_facts(case, ())
        is_needed = any(item.passage_number == number for item in self.claims.facts)
        if support.contradiction or (is_needed and not support.is_borne_out):
            return None
        title = self.passages[number - 1].title
        return self._report(case, "Off-topic", "off_topic", passage=number, title=title)

    def _check_inefficiency(self, case: _Case) -> Feedback | None:
        """Report a step that only talks about the task: it cites nothing and adds nothing from the passages."""
        reading, earlier = case.reading, self.claims.searchable_context(case.previous)
        new = [v for v in reading.values if not has_value(earlier, v)]
        reads_passage = reading.cited and not reading.announces
        if reading.denies or reads_passage or any(self.claims.is_in_passages(value) for value in new):
            return None
        entities = any(map(reading.mentions, self.claims.entities))
        if case.step.kind == "Logical" and (entities or inference.names_answer(reading)) and not reading.announces:
            return None
        if any(map(_names_somebody, parse(fold(case.step.text)).predications)):
            return None
        return self._report(case, "Inefficiency", "no_operation", missing=self._first_gap(case) or None)

    def _check_contradictory(self, case: _Case) -> Feedback | None:
        reading = case.reading
        is_idle = reading.announces and not reading.cited
        if reading.denies or is_idle or self._check_bypass(case):
            return None
        items = self.plan.items
        for item in sorted(self.claims.facts, key=lambda item: items.index(item) in case.established):
            claimed = self.claims.find_wrong_value(reading, item)
            if claimed is not None and not self._leads_to(item, claimed):
                value = None if item.sentence is not None else item.triples[0].tail
                return self._report_fact(item, case, "Contradictory", "contradicted", value=value, claimed=claimed)
        return None

    def _leads_to(self, item: Item, name: str) -> bool:
        """Whether a name is the value of a later fact: Oru, of "the director of Dune Rain was born in Oru"."""
        place, tail = self.plan.items.index(item), normal_name(item.triples[0].tail)
        later = (later_item.triples[0] for later_item in self.claims.facts if place in later_item.uses)
        return any(is_same_name(name, fact.tail) and normal_name(fact.head) == tail for fact in later)

    def _check_unsupported(self, case: _Case) -> Feedback | None:
        reading = case.reading
        if reading.denies:
            return None
        for item in self.claims.facts:
            if item.sentence is not None and item.passage_number not in reading.cited and reading.cited:
                if self.claims.quoted_share(reading, item) >= MIN_MISQUOTE_SHARE and not self._is_near_cited(reading):
                    return self._report_wrong_passage(case, item)
            elif self.claims.states_other_relation(reading, item):
                ends = dict(zip(("head", "tail"), item.ends, strict=False))
                fields = {**self._make_fact_fields(case, item), **ends}
                return self._report(case, "Unsupported", "no_relation", **fields)
        return None

    def _is_near_cited(self, reading: Reading) -> bool:
        """Whether a cited passage has nearly all words of a claim, so that it may state it in other words."""
        pages = reading.cited_passages(self.passages)
        return any(coverage(reading.words, f"{page.title} {page.text}") >= MIN_SOURCE_SHARE for _, page in pages)

    def _check_information_miss(self, case: _Case) -> Feedback | None:
        for item in self._unread_items(case) if case.reading.denies else ():
            if self.claims.denies_fact(case.reading, item):
                hidden = self._gives_away(item, case.previous)
                fields = {"missing": "what is needed"} if hidden else {}
                return self._report_fact(item, case, "Information Miss", "missed", **fields)
        return None

    def _check_bypass(self, case: _Case) -> Feedback | None:
        """Report a value that a step ties to an earlier entity without the fact that links them."""
        mentions = case.reading.mentions
        for item in self._unread_items(case):
            if item.sentence is not None or not item.uses or item.uses[-1] in case.established:
                continue
            earlier = self.plan.items[item.uses[-1]]
            triple, first = item.triples[0], earlier.triples[0]
            if mentions(first.head) and mentions(triple.tail) and not mentions(triple.head):
                ends = {"head": first.head, "tail": triple.tail}
                return self._report_fact(earlier, case, "Premature Attribution", "bypassed", **ends)
        return None

    def _check_logical(self, case: _Case) -> Feedback | None:
        conclusion = self._parse_conclusion(case.reading)
        if verdict := self._check_comparison(case, conclusion):
            return verdict
        if inference.conclusion_of(case.reading.claim) and conclusion.right is not None:
            return self._check_conclusion(case, conclusion)
        if (calculated := self._find_calculation(case.reading)) is not None:
            return self._check_calculation(case, *calculated)
        facts = [n for n in self.plan.fact_places if n in case.established]
        restated = [n for n in facts if self.claims.states(case.reading, n)]
        if len(restated) == 1:
            return self._report_redundancy(case, restated[0])
        if conclusion.right is not None:
            return self._check_conclusion(case, conclusion)
        return self._check_inefficiency(case)

    def _check_comparison(self, case: _Case, conclusion: Conclusion) -> Feedback | None:
        """Judge the comparisons of a step by the values of the facts, once all facts are read."""
        if case.reading.announces or self._unread_items(case):
            return None
        facts = [triple for item in self.claims.facts for triple in item.triples]
        measures = filter(None, (measure_of(fact.head, fact.tail, fact.relation) for fact in facts))
        is_right, last = comparisons_hold(case.reading.claim, list(measures)), len(self.plan.items) - 1
        if is_right and self._asserts(case, case.step.text):
            places = (last,) if conclusion.right else ()
            return self._report_correct(case, "sound_derivation", *places, **self._describe_grounds(case, last))
        if is_right is False:
            return self._report(case, "Logical Fallacy", "false_comparison", **self._describe_grounds(case, last))
        return None

    def _check_conclusion(self, case: _Case, conclusion: Conclusion) -> Feedback | None:
        if self._has_unclear_gap(case):
            return None
        if gap := self._first_gap(case):
            if not conclusion.right and self._is_on_the_way(case, conclusion.claimed):
                return None
            return self._report(case, "Logical Fallacy", "baseless", missing=gap)
        last = len(self.plan.items) - 1
        if conclusion.right:
            is_decided = self.plan.operation not in (None, "same") and not inference.conclusion_of(case.reading.claim)
            says_alike = is_decided and inference.claim_polarity(case.reading.claim) == "yes"
            if says_alike or not self._asserts(case, case.step.text):
                return None
            return self._report_correct(case, "sound_derivation", last, **self._describe_grounds(case, last))
        reading = case.reading
        is_final = max(case.established.values()) in reading.refers or inference.says_the_answer(reading)
        is_final = is_final or comparisons_hold(reading.claim) is False
        if not is_final and not self._is_rival(case, conclusion.claimed):
            return None
        code = "false_inference" if self.plan.kind == "sequential" else "false_comparison"
        fields = self._describe_grounds(case, last)
        if not self._is_answer(conclusion.claimed):  # if it is the answer, the reasoning is wrong
            fields |= {"claimed": conclusion.claimed, "answer": self.question.answer.removesuffix(".")}
        return self._report(case, "Logical Fallacy", code, **fields)

    def _asserts(self, case: _Case, conclusion: str) -> bool:
        """Whether a conclusion is stated without a denial (unless sides may differ) and without words from nowhere."""
        names = [self.question.question, *self.question.accepted, *(end for i in self.claims.facts for end in i.ends)]
        texts = [*names, *(step.text for step in case.previous)]
        numbers = {item.passage_number or 0 for item in self.claims.facts} | set(case.reading.cited)
        return is_asserted(conclusion, self._pages(numbers), texts, may_deny=is_yes_or_no(self.question.answer))

    def _is_rival(self, case: _Case, claimed: str) -> bool:
        """Whether a name that a step decides for can be meant as the answer, and not as a step on the way to it."""
        if self.plan.kind == "sequential":
            return not self._is_on_the_way(case, claimed)
        sides = [side.entity for side in self.plan.sides] or [item.ends[0] for item in self.claims.facts]
        return claimed in ("yes", "no") or any(is_same_name(claimed, side) for side in sides)

    def _is_on_the_way(self, case: _Case, name: str) -> bool:
        """Whether a name is an end of a fact that has been read, perhaps in words that the checker could not read."""
        read_places = case.established.keys() | case.unclear
        ends = (end for place in read_places for end in self.plan.items[place].ends)
        return any(is_same_name(name, end) for end in ends)

    def _check_calculation(
        self, case: _Case, place: int, calculation: Lifespan | Count, right: bool
    ) -> Feedback | None:
        item = self.plan.items[place]
        if place in case.established:
            return self._report_redundancy(case, place)
        if any(use not in case.established for use in item.uses):
            gap = self._describe_gap(self.plan.items[item.uses[0]], case.previous)
            return self._report(case, "Logical Fallacy", "baseless", missing=gap)
        fields = self._describe_grounds(case, place)
        if right:
            return self._report_correct(case, "sound_derivation", place, **fields)
        fields["said"] = calculation.claim + calculation.grounds
        return self._report(case, "Logical Fallacy", calculation.fault, **fields)

    def _find_calculation(self, reading: Reading) -> tuple[int, Lifespan | Count, bool] | None:
        """Return the life span or the only count that a step gives, as (place in the plan, calculation, is right)."""
        calculations = [(n, calculation_of(self.plan, item)) for n, item in enumerate(self.plan.items)]
        results = [(n, c, right) for n, c in calculations if c and (right := c.is_stated(reading)) is not None]
        return results[0] if len(results) == 1 or (results and not self._has_count) else None

    @property
    def _has_count(self) -> bool:
        return any(item.derivation == "count" for item in self.plan.items)

    def _parse_conclusion(self, reading: Reading) -> Conclusion:
        if self._has_count and self._find_calculation(reading):
            return Conclusion(None)
        names = [name for item in self.claims.facts for name in item.ends]
        return inference.parse_conclusion(reading, self.question, self.plan, names)

    def _describe_grounds(self, case: _Case, place: int) -> dict[str, Any]:
        """Return the steps that a derivation rests on, and what they say, unless that is long."""
        items, places = self.plan.items, self.plan.items[place].uses
        if self.plan.kind == "sequential" or any(use not in case.established for use in places):
            places = self.plan.fact_places
        steps = list_steps(sorted({case.established[use] for use in places}))
        claims = [self._describe(case, items[use]) for use in places]
        is_brief = sum(map(len, claims)) <= MAX_GROUNDS_CHARS
        return {"steps": steps, "said": " and ".join(claims) if is_brief and len(claims) < 3 else None}

    def _describe(self, case: _Case, item: Item) -> str:
        if item.triples:
            return state_item(item, self.passages, choice_for(case.step.text, "said"))
        calculation = calculation_of(self.plan, item)
        return calculation.claim if calculation else ""

    def _check_answer(self, case: _Case) -> Feedback | None:
        submitted = final_answer(case.step)
        unclear = self._has_unclear_gap(case)
        if not unclear and (gap := self._first_gap(case)):
            fields: dict[str, Any] = {"missing": gap, "claimed": submitted}
            return self._report(case, "Wrong Conclusion", "unearned_answer", **fields)
        if unclear and self._is_answer(submitted):
            return None
        steps = list_steps([step.number for step in case.previous])
        if not unclear:
            steps = self._describe_grounds(case, len(self.plan.items) - 1)["steps"]
        if self._is_answer(submitted):
            guidance = self._render("guidance", "finished", case.step.text)
            fields = {"value": submitted, "steps": steps}
            return self._report(case, CORRECT, "sound_answer", guidance, **fields)
        text, accepted = _normalize(submitted), map(_normalize, self.question.accepted)
        if text and any(answer and (has_words(answer, text) or has_words(text, answer)) for answer in accepted):
            return None  # an answer with more or fewer words is left to a judge
        fields = {"claimed": submitted, "value": self.question.answer, "steps": steps}
        return self._report(case, "Wrong Conclusion", "wrong_answer", **fields)

    def _is_answer(self, text: str) -> bool:
        return any(form(text) in map(form, self.question.accepted) for form in (normalize_answer, _normalize))

    def _first_gap(self, case: _Case) -> str:
        """Write the first fact that no accepted step has read, as a phrase; "" if all are read."""
        return next((self._describe_gap(item, case.previous) for item in self._unread_items(case)), "")

    def _has_unclear_gap(self, case: _Case) -> bool:
        """Whether accepted steps may have read all facts that no step is proved to have read."""
        return bool(case.unclear) and all(n in case.established or n in case.unclear for n in self.plan.fact_places)

    def _pages(self, numbers: Iterable[int]) -> list[tuple[int, Passage]]:
        """Return the passages with some numbers; numbers without a passage are skipped."""
        return [(n, self.passages[n - 1]) for n in numbers if 0 < n <= len(self.passages)]

    def _unread_items(self, case: _Case) -> list[Item]:
        return [self.plan.items[n] for n in self.plan.fact_places if n not in case.established]

    def _may_read_on(self, case: _Case) -> bool:
        """Whether a step that repeats a fact may also read an open fact, whose value no earlier step names."""
        earlier = self.claims.searchable_context(case.previous)
        values = map(self.claims.value_of, self._unread_items(case))
        return any(case.reading.mentions(value) and not has_value(earlier, value) for value in values)

    def _report_redundancy(self, case: _Case, place: int) -> Feedback:
        item = self.plan.items[place]
        fields = self._make_fact_fields(case, item) if item.triples else {}
        return self._report(case, "Redundancy", "redundant", step=case.established[place], **fields)

    def _report_correct(self, case: _Case, code: str, *places: int, **values: Any) -> Feedback:
        established = {**case.established, **dict.fromkeys(places, case.step.number)}
        guidance = self.guidance(established, [*case.previous, case.step], case.step.text)
        return self._report(case, CORRECT, code, guidance, **values)

    def _report_fact(self, item: Item, case: _Case, error_type: str, code: str, **values: Any) -> Feedback:
        after_error, text = error_type != "Premature Attribution", case.step.text
        fields = {**self._make_fact_fields(case, item), **values}
        guidance = self._guide_to(item, case.previous, text, after_error=after_error)
        return self._report(case, error_type, code, guidance, **fields)

    def _guide_to(self, item: Item, previous: Sequence[Step], text: str, *, after_error: bool = False) -> str:
        unnamed = self._gives_away(item, previous)
        return guide_to(item, self.passages, text, after_error=after_error, unnamed=unnamed, style=self.style)

    def _describe_gap(self, item: Item, previous: Sequence[Step]) -> str:
        """Write what an item looks for, without a name that is still to be found."""
        if self._gives_away(item, previous):
            return f"the fact needed from Passage {item.passage_number}"
        return missing(item, self.passages)

    def _gives_away(self, item: Item, previous: Sequence[Step]) -> bool:
        """Whether the title of an item's passage would tell something new, or a new part of the answer."""
        if item.sentence is None:
            return False
        text = self.claims.searchable_context(previous).text
        title = without_qualifier(item.page(self.passages).title)
        if 2 * len(content_words(title) & content_words(text)) <= len(content_words(title)):
            return True
        words, known_words = set(normal_words(title).split()), set(normal_words(text).split())
        answers = [set(normal_words(answer).split()) for answer in self.question.accepted]
        return any(2 * len(a & words) >= len(a) and a & words - known_words for a in answers)

    def _make_fact_fields(self, case: _Case, item: Item) -> dict[str, Any]:
        gap = self._describe_gap(item, case.previous)
        fields = {"said": self._describe(case, item), "quote": quote_item(item, self.passages)}
        return {**fields, "passage": item.passage_number, "what": gap, "missing": gap}

    def _report(self, case: _Case, error_type: str, code: str, guidance: str = "", **values: Any) -> Feedback:
        """Write a finding; without ``guidance``, it guides to the next item of the plan."""
        text = case.step.text
        diagnosis = self._render("diagnosis", code, text, **values)
        return Feedback(error_type, diagnosis, guidance or self.guidance(case.established, case.previous, text))

    def _render(self, section: str, code: str, text: str, **values: Any) -> str:
        return render(section, code, f"{self.question.id} {text}", style=self.style, **values)


def _is_stated(fact: Triple, pages: Sequence[tuple[int, Passage]]) -> bool:
    return fact.relation in RELATIONS and ground(*fact.names, pages).status == "stated"


def _names_somebody(claim: Predication) -> bool:
    """Whether a claim states something of a name, and is not a question ("who founded Oru")."""
    named_roles = {role for role, a in claim.arguments if a.name and not a.is_source}
    reports = bool(named_roles) and any(a.is_source for a in claim.roles.get("subj", ()))
    is_question = any(a.noun in _INTERROGATIVES for _, a in claim.arguments)
    return claim.is_stated and (reports or not named_roles.isdisjoint(("is", "subj", "attr"))) and not is_question


def _normalize(answer: str) -> str:
    """Normalise an answer for comparison: by the scorers' rule, with look-alike characters and dates unified."""
    day = as_date(answer)
    return f"{day.year} {day.month} {day.day}" if day and day.day else normalize_answer(_DASHES.sub("-", fold(answer)))
