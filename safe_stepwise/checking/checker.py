"""The graph-based checker: the evaluation protocol carried out on a plan, without a model.

Given a question, its passages, its graph and the steps accepted so far, it says of one more step
what it can prove, in the order of the taxonomy (SAFE v1, Table 1 and Figure 12): an error, or that
the step is sound. Where neither can be proved it abstains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from safe_stepwise.checking.claims import MOST_OF_A_QUOTE, Claims
from safe_stepwise.checking.inference import Drawn, Lifespan, concludes, draw, lifespan, states_span
from safe_stepwise.checking.plans import Item, Plan, graph_of, make_plan
from safe_stepwise.checking.statements import steps_named
from safe_stepwise.checking.step_reading import (
    Reading,
    holds,
    names,
    opens,
    quoted_share,
    read_step,
    values,
)
from safe_stepwise.checking.wordings import guide_to, missing, said, word
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.records import Feedback, Question, Step, Triple
from safe_stepwise.scoring import normalize_answer
from safe_stepwise.steps import final_answer
from safe_stepwise.taxonomy import CORRECT, check_order


class Checker:
    """Checks the steps of one question.

    Args:
        question: with its passages, in the numbering that steps cite, and its answer.
        path, graph: a verified label's reasoning path and knowledge graph.

    Raises ``PlanError`` where the path gives no plan.

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

    def __init__(self, question: Question, path: Sequence[Triple], graph: Sequence[Triple]) -> None:
        self.question = question
        self.plan: Plan = make_plan(question, path, graph)
        self.passages = question.passages
        self.graph = graph_of(question, graph)
        self.claims = Claims(question, self.plan)

    def check(self, previous: Sequence[Step], step: Step) -> Feedback | None:
        """The verdict on a step after those accepted before it; None where nothing is proved."""
        done = self.established(previous)
        if step.kind == "Final Answer":
            return self._check_answer(previous, step, done)
        reading = read_step(step.text)
        if settling := self._settled_by(previous, step, done):
            return self._feedback("Overthinking", "answered", step, self._final(), step_=settling)
        if step.kind == "Logical":
            return self._check_logical(previous, step, reading, done)
        return self._check_attribution(previous, step, reading, done)

    def established(self, previous: Sequence[Step]) -> dict[int, int]:
        """Places of plan items that accepted steps have established, to the steps' numbers."""
        done: dict[int, int] = {}
        for step in previous:
            if step.kind == "Final Answer":
                continue
            reading = read_step(step.text)
            for place in range(len(self.plan.items)):
                if place not in done and self._carries_out(reading, step, place, done):
                    done[place] = step.number
        return done

    def _carries_out(self, reading: Reading, step: Step, place: int, done: dict[int, int]) -> bool:
        item = self.plan.items[place]
        if item.triples:
            return step.kind == "Attribution" and self.claims.states(reading, place)
        if step.kind != "Logical":
            return False
        if item.derivation == "life span":
            return states_span(reading, self._span_of(item)) is True
        read_all = all(place in done for place in self.plan.facts)
        return read_all and self._drawn(reading).right is True

    # --------------------------------------------------------------------------------- procedure

    def _settled_by(self, previous: Sequence[Step], step: Step, done: dict[int, int]) -> int | None:
        """The step that reached the answer, where there is nothing left to read or derive."""
        last = len(self.plan.items) - 1
        if last in done:
            return done[last]
        reached = all(place in done for place in self.plan.facts)
        if self.plan.kind == "sequential" and reached and step.kind == "Attribution":
            return max(done.values())
        return None

    def next_item(self, done: dict[int, int]) -> int | None:
        """Place of the first item that is not established and builds on nothing that is not."""
        for place, item in enumerate(self.plan.items):
            if place not in done and all(use in done for use in item.uses):
                return place
        return None

    def guidance(self, done: dict[int, int], text: str) -> str:
        """The one next action, once some items are established."""
        place = self.next_item(done)
        if place is None:
            return word("guidance", "answer", text)
        item = self.plan.items[place]
        if item.triples:
            return guide_to(item, self.passages, text)
        steps = steps_named(sorted({done[use] for use in item.uses})) if item.uses else "the steps"
        if item.derivation == "life span":
            return word("guidance", "span", text, steps=steps, what=self._span_of(item).head)
        code = "conclude" if self.plan.kind == "sequential" else "compare"
        return word("guidance", code, text, steps=steps)

    # ------------------------------------------------------------------------------- attribution

    def _check_attribution(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        stated = [n for n in self.plan.facts if self.claims.states(reading, n)]
        new = [n for n in stated if n not in done]
        if len(new) > 1:
            return None
        if new:
            return self._check_new_fact(step, reading, done, new[0])
        if stated:
            return self._feedback(
                "Redundancy", "redundant", step, self.guidance(done, step.text), done[stated[0]]
            )
        checks: dict[str, Callable[..., Feedback | None]] = {
            "Off-topic": self._off_topic,
            "Inefficiency": self._inefficiency,
            "Contradictory": self._contradictory,
            "Unsupported": self._unsupported,
            "Information Miss": self._information_miss,
            "Premature Attribution": self._bypass,
        }
        for error_type in check_order("Attribution"):
            if error_type in checks:
                found = checks[error_type](previous, step, reading, done)
                if found is not None:
                    return found
        return None

    def _check_new_fact(
        self, step: Step, reading: Reading, done: dict[int, int], place: int
    ) -> Feedback | None:
        item = self.plan.items[place]
        if item.passage not in reading.cited and reading.cited:
            return self._not_in_passage(step, reading, item, done)
        waiting = [use for use in item.uses if use not in done]
        if waiting:
            first = self.plan.items[self.next_item(done) or waiting[0]]
            return self._feedback(
                "Premature Attribution",
                "premature",
                step,
                guide_to(first, self.passages, step.text),
                entity=self.claims.joint(item, self.plan.items[waiting[0]]),
                missing=missing(first, self.passages),
            )
        after = {**done, place: step.number}
        guidance = self.guidance(after, step.text)
        return self._feedback(CORRECT, "sound_fact", step, guidance, passage=item.passage)

    def _not_in_passage(
        self, step: Step, reading: Reading, item: Item, done: dict[int, int]
    ) -> Feedback | None:
        """A fact with the wrong passage: proved where that passage does not name the value."""
        pages = [self.passages[n - 1] for n in reading.cited if 0 < n <= len(self.passages)]
        value = self.claims.value_of(item)
        if any(first_mention(read(page), value) is not None for page in pages):
            return None
        return self._feedback(
            "Unsupported",
            "not_in_passage",
            step,
            guide_to(item, self.passages, step.text, again=True),
            passage=reading.cited[0],
            value=value,
            what=missing(item, self.passages),
        )

    def _off_topic(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        """A true statement of one passage that is no fact of the plan."""
        if reading.denies or len(reading.cited) != 1 or not reading.words:
            return None
        number = reading.cited[0]
        if not 0 < number <= len(self.passages) or not self.claims.taken_from(reading, number):
            return None
        return self._feedback(
            "Off-topic", "off_topic", step, self.guidance(done, step.text), passage=number
        )

    def _inefficiency(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        """Words about the work: they cite nothing and hold nothing of the passages that is new."""
        known = self.claims.known(previous)
        new = [v for v in values(reading) if not holds(known, v)]
        if reading.denies or reading.cited or any(self.claims.held(value) for value in new):
            return None
        entities = any(names(reading, name) for name in self.claims.entities)
        if step.kind == "Logical" and entities and not reading.announces:
            return None
        return self._feedback("Inefficiency", "no_operation", step, self.guidance(done, step.text))

    def _contradictory(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        idle = reading.announces and not reading.cited
        if reading.denies or idle or self._bypass(previous, step, reading, done):
            return None
        for item in sorted(self.claims.facts, key=lambda item: self.plan.items.index(item) in done):
            claimed = self.claims.other_value(reading, item)
            if claimed is None:
                continue
            return self._feedback(
                "Contradictory",
                "contradicted",
                step,
                guide_to(item, self.passages, step.text, again=True),
                passage=item.passage,
                said=said(item, self.passages),
                value=None if item.sentence is not None else item.triples[0].tail,
                claimed=claimed,
            )
        return None

    def _unsupported(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        if reading.denies:
            return None
        for item in self.claims.facts:
            if item.sentence is not None and item.passage not in reading.cited and reading.cited:
                if quoted_share(reading, item, self.passages) >= MOST_OF_A_QUOTE:
                    return self._not_in_passage(step, reading, item, done)
            elif self.claims.other_relation(reading, item):
                triple = item.triples[0]
                return self._feedback(
                    "Unsupported",
                    "no_relation",
                    step,
                    self.guidance(done, step.text),
                    head=triple.head,
                    tail=triple.tail,
                )
        if not any(names(reading, entity) for entity in self.claims.entities):
            return None
        known = self.claims.known(previous)
        for value in values(reading) if reading.cited else ():
            if not (opens(reading, value) or holds(known, value) or self.claims.held(value)):
                guidance = self.guidance(done, step.text)
                return self._feedback("Unsupported", "absent", step, guidance, claimed=value)
        return None

    def _information_miss(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        if not reading.denies:
            return None
        for place in self.plan.facts:
            item = self.plan.items[place]
            if place not in done and self.claims.asks_for(reading, item):
                return self._feedback(
                    "Information Miss",
                    "missed",
                    step,
                    guide_to(item, self.passages, step.text, again=True),
                    passage=item.passage,
                    said=said(item, self.passages),
                )
        return None

    def _bypass(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        """A value tied to an earlier entity as if the link between them were not needed."""
        for place in self.plan.facts:
            item = self.plan.items[place]
            if place in done or item.sentence is not None or not item.uses:
                continue
            earlier = self.plan.items[item.uses[-1]]
            if item.uses[-1] in done or not earlier.triples:
                continue
            triple, first = item.triples[0], earlier.triples[0]
            skips = names(reading, first.head) and names(reading, triple.tail)
            if skips and not names(reading, triple.head):
                return self._feedback(
                    "Premature Attribution",
                    "bypassed",
                    step,
                    guide_to(earlier, self.passages, step.text),
                    missing=missing(earlier, self.passages),
                )
        return None

    # ------------------------------------------------------------------------------------ logic

    def _check_logical(
        self, previous: Sequence[Step], step: Step, reading: Reading, done: dict[int, int]
    ) -> Feedback | None:
        marked = concludes(reading)
        drawn = self._drawn(reading)
        if marked and drawn.right is not None:
            return self._check_conclusion(step, drawn, done)
        for place, item in enumerate(self.plan.items):
            if item.derivation == "life span":
                right = states_span(reading, self._span_of(item))
                if right is not None:
                    return self._check_span(step, item, place, right, done)
        facts = [n for n in self.plan.facts if n in done]
        stated = [n for n in facts if self.claims.states(reading, n)]
        if len(stated) == 1:
            guidance = self.guidance(done, step.text)
            return self._feedback("Redundancy", "redundant", step, guidance, done[stated[0]])
        if drawn.right is not None:
            return self._check_conclusion(step, drawn, done)
        return self._inefficiency(previous, step, reading, done)

    def _check_conclusion(self, step: Step, drawn: Drawn, done: dict[int, int]) -> Feedback | None:
        last = len(self.plan.items) - 1
        lacking = [n for n in self.plan.facts if n not in done]
        fallacy = "Logical Fallacy"
        if lacking:
            item = self.plan.items[lacking[0]]
            what = missing(item, self.passages)
            guidance = self.guidance(done, step.text)
            return self._feedback(fallacy, "baseless", step, guidance, missing=what)
        if drawn.right:
            guidance = self.guidance({**done, last: step.number}, step.text)
            return self._feedback(CORRECT, "sound_derivation", step, guidance)
        code = "false_inference" if self.plan.kind == "sequential" else "false_comparison"
        guidance = self.guidance(done, step.text)
        return self._feedback(
            fallacy, code, step, guidance, said=self._because(done), claimed=drawn.claimed
        )

    def _check_span(
        self, step: Step, item: Item, place: int, right: bool, done: dict[int, int]
    ) -> Feedback | None:
        if place in done:
            guidance = self.guidance(done, step.text)
            return self._feedback("Redundancy", "redundant", step, guidance, done[place])
        if any(use not in done for use in item.uses):
            what = missing(self.plan.items[item.uses[0]], self.passages)
            guidance = self.guidance(done, step.text)
            return self._feedback("Logical Fallacy", "baseless", step, guidance, missing=what)
        if right:
            guidance = self.guidance({**done, place: step.number}, step.text)
            return self._feedback(CORRECT, "sound_derivation", step, guidance)
        span = self._span_of(item)
        told = f"{span.head} lived from {span.born} to {span.died}, which is {span.years} years"
        guidance = self.guidance(done, step.text)
        return self._feedback("Logical Fallacy", "false_calculation", step, guidance, said=told)

    def _span_of(self, item: Item) -> Lifespan:
        return lifespan([self.plan.items[use].triples[0] for use in item.uses])

    def _drawn(self, reading: Reading) -> Drawn:
        """What a step concludes, and whether that is what the facts give."""
        others = [
            name for item in self.claims.facts for t in item.triples for name in (t.head, t.tail)
        ]
        return draw(reading, self.question, self.plan, others)

    def _because(self, done: dict[int, int]) -> str:
        """What the facts do give, in one clause."""
        last = self.plan.items[-1]
        places = last.uses if all(use in done for use in last.uses) else self.plan.facts
        steps = steps_named(sorted({done[place] for place in places}))
        if self.plan.kind == "sequential":
            return f"what they lead to, from {steps}, is “{self.question.answer}”"
        items = [self.plan.items[place] for place in places]
        told = "; ".join(said(item, self.passages) for item in items if item.triples)
        return f"{told or steps}, which gives “{self.question.answer}”"

    # ----------------------------------------------------------------------------------- answer

    def _check_answer(
        self, previous: Sequence[Step], step: Step, done: dict[int, int]
    ) -> Feedback | None:
        submitted = final_answer(step)
        lacking = [n for n in self.plan.facts if n not in done]
        normal = normalize_answer(submitted)
        right = any(normal == normalize_answer(answer) for answer in self.question.accepted)
        if lacking:
            what = missing(self.plan.items[lacking[0]], self.passages)
            guidance = self.guidance(done, step.text)
            return self._feedback(
                "Wrong Conclusion", "unearned_answer", step, guidance, missing=what
            )
        if right:
            guidance = word("guidance", "finished", step.text)
            return self._feedback(CORRECT, "sound_answer", step, guidance)
        if any(_within(normal, normalize_answer(answer)) for answer in self.question.accepted):
            return None
        return self._feedback(
            "Wrong Conclusion",
            "wrong_answer",
            step,
            self._final(),
            claimed=submitted,
            value=self.question.answer,
        )

    def _final(self) -> str:
        return word("guidance", "answer", self.question.id)

    def _feedback(
        self,
        error_type: str,
        code: str,
        step: Step,
        guidance: str,
        step_: int | None = None,
        **values: object,
    ) -> Feedback:
        diagnosis = word("diagnosis", code, step.text, step=step_, **values)
        return Feedback(error_type, diagnosis, guidance)


def _within(one: str, other: str) -> bool:
    """Whether an answer is another with more words around it: a matter for a judge."""
    return bool(one and other) and (f" {one} " in f" {other} " or f" {other} " in f" {one} ")
