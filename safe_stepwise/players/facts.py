"""Turn the facts of a question's plan into simple questions with answers, right and wrong, for the symbolic players.

A *place* is the index of an item in the plan, from 0. A fact that uses an earlier fact is asked for with the answer
that a player gave there, so that a wrong answer leads to a question about something else, which can't be right either.

A chain of steps may reach the right answer although a fact that the answer needs is false or missing: it has a `Flaw`.
At the rate ``spurious``, decided once per question, the symbolic generator states one fact with another value or
relation, or omits it, and still ends with the right answer. The flaw depends only on the question.
If a verifier reports it, the generator usually corrects it.

A fact that is annotated but that no passage states gets a *stand-in*: a made-up passage after the real ones, so that
the checker can make its plan. No player reads from a stand-in: the generator says that it does not find the fact, the
verifier says what to search for. A retrieved passage that states the fact counts as gold.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from safe_stepwise.checking import statements
from safe_stepwise.checking.claims import Claims
from safe_stepwise.checking.plans import DESCRIBED, NAMES, Item, describe, described_subjects
from safe_stepwise.checking.wordings import missing, phrase, render, search_query, sought
from safe_stepwise.engines.base import EngineError
from safe_stepwise.graphs.hop_lookup import locate
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.language.mentions import is_about
from safe_stepwise.language.reading import read
from safe_stepwise.language.text import as_date, as_number, normal_name, without_qualifier
from safe_stepwise.language.vocabulary import load
from safe_stepwise.methods.scene import SubAnswer
from safe_stepwise.records import Feedback, Passage, Question, Step, Triple
from safe_stepwise.scoring import exact_match
from safe_stepwise.taxonomy import CORRECT, ENTRIES, MISSING_EVIDENCE

_PASSAGE = re.compile(r"\bPassage (\d+)")


def draw_distractor(question: Question, value: str, chance: Random) -> str:
    """Draw a wrong value of the same sort: another date or number, or the title of a distractor passage."""
    date = as_date(value)
    if date and date.year:
        return value.replace(str(abs(date.year)), str(abs(date.year) + chance.choice((3, 7, 11))))
    number = re.search(r"\d+", value) if as_number(value) is not None else None
    if number:
        return value.replace(number[0], str(int(number[0]) + chance.choice((1, 4, 9))))
    titles = [without_qualifier(page.title) for page in question.passages if not page.is_gold]
    words = set(normal_name(value).split())
    candidates = [t for t in titles if not words & set(normal_name(t).split())]
    return chance.choice(candidates) if candidates else f"{value} the Other"


class Facts:
    """The facts of a question's plan, by place; ``claims`` has all passages, with stand-ins for hidden ones."""

    def __init__(self, question: Question, claims: Claims) -> None:
        self.question = question
        self.claims = claims
        self.plan = claims.plan
        self.places = self.plan.fact_places

    @property
    def is_whole(self) -> bool:
        """Whether the passages at hand state every fact."""
        return not any(self.is_hidden(place) for place in self.places)

    def is_hidden(self, place: int) -> bool:
        """Whether the passages at hand lack the one that states a fact."""
        return is_hidden(self.plan.items[place], self.question)

    def question_for(self, place: int, answers: Mapping[int, SubAnswer]) -> str:
        """Write the simple question for the fact at a place, given earlier answers by place, right or wrong."""
        item = self.plan.items[place]
        uses = [use for use in item.uses if use in answers and not self.is_right(use, answers)]
        wrong = {self.claims.joint(item, self.plan.items[use]): answers[use].answer for use in uses}
        ends = ((wrong.get(t.head, t.head), wrong.get(t.tail, t.tail), t) for t in item.triples)
        triples = [replace(t, head=head, tail=tail) for head, tail, t in ends]
        text = statements.phrase_question(triples, self.asks_for_head(item))
        alike = [n for n in self.places if n < place and self._plain(n) == self._plain(place)]
        if not alike:
            return text
        return statements.besides(text, [answers[n].answer if n in answers else self.answer(n) for n in alike])

    def _plain(self, place: int) -> str:
        item = self.plan.items[place]
        return statements.phrase_question(item.triples, self.asks_for_head(item))

    def asks_for_head(self, item: Item) -> bool:
        """Whether a fact's question asks for its head, since earlier facts or the decomposition give its tail."""
        first = item.triples[0]
        head, tail = normal_name(first.head), normal_name(first.tail)
        if self.question.decomposition:
            answers = {normal_name(hop.answer) for hop in self.question.decomposition}
            return head in answers and tail not in answers
        joints = {normal_name(self.claims.joint(item, self.plan.items[use])) for use in item.uses}
        return tail in joints and head not in joints

    def answer(self, place: int) -> str:
        """Return the right answer to a fact's question."""
        item = self.plan.items[place]
        first = item.triples[0]
        if first.relation == DESCRIBED:
            assert item.sentence is not None
            return describe(item.page(self.claims.passages).sentences[item.sentence])
        if len(self.places) == 1:
            return self.question.answer
        if self.asks_for_head(item):
            return first.head
        later = [self.plan.items[n] for n in self.places if place in self.plan.items[n].uses]
        joints = [self.claims.joint(follower, item) for follower in later] or [self.question.answer]
        tails = {normal_name(t.tail): t.tail for t in item.triples}
        matches = [tails[normal_name(name)] for name in joints if normal_name(name) in tails]
        return matches[0] if matches and first.relation == NAMES else self.claims.value_of(item)

    def draw_wrong_answer(self, place: int, chance: Random) -> str:
        """Draw a wrong answer to a fact's question; it is not the answer of the whole question either."""
        right = [self.answer(place), *self.question.accepted]
        if self.plan.items[place].triples[0].relation == DESCRIBED:
            pages = [p for p in self.question.passages if not p.is_gold and p.sentences]
            candidates = [describe(page.sentences[0]) for page in pages]
        else:
            candidates = [draw_distractor(self.question, right[0], chance) for _ in range(3)]
        wrong = [text for text in candidates if re.search(r"\w", text) and not exact_match(text, right)]
        return chance.choice(wrong) if wrong else f"{right[0]} the Other"

    def conclusion(self, answers: Mapping[int, SubAnswer]) -> str:
        """Return the final answer that follows from the answers to all facts."""
        if all(self.is_right(place, answers) for place in self.places):
            return self.question.answer
        if self.plan.kind == "sequential":
            return self.ensure_wrong(answers[self.places[-1]].answer)
        return self.wrong_answer

    @property
    def wrong_answer(self) -> str:
        """The question's wrong answer, always the same: yes for no, a compared entity, or a distractor."""
        answer = self.question.answer
        if answer.lower() in ("yes", "no"):
            return "no" if answer.lower() == "yes" else "yes"
        if self.plan.kind != "sequential":
            for head in (t.head for item in self.plan.items for t in item.triples):
                name = without_qualifier(head)
                if exact_match(name, self.question.accepted) != 1:
                    return name
        return draw_distractor(self.question, answer, Random(self.question.id))

    def ensure_wrong(self, answer: str) -> str:
        """Return an answer that follows from a mistake, or `wrong_answer` if it happens to be right."""
        is_lucky = exact_match(answer, self.question.accepted) == 1
        return self.wrong_answer if is_lucky else answer

    def index_by_place(self, sub_answers: Sequence[SubAnswer]) -> dict[int, SubAnswer]:
        """Map places of the plan to their sub-answers; the later one counts if there are two."""
        answers: dict[int, SubAnswer] = {}
        for sub_answer in sub_answers:
            if (place := self.place_of(sub_answer.question, answers)) is not None:
                answers[place] = sub_answer
        return answers

    def place_of(self, question: str, answers: Mapping[int, SubAnswer]) -> int | None:
        """Find the place of the fact that a question asks for, given earlier answers; None if it asks for no fact."""
        wording = normalize_quotes(question)
        ready = sorted(self.places, key=lambda place: place in answers)
        return next((n for n in ready if normalize_quotes(self.question_for(n, answers)) == wording), None)

    def unanswered(self, answers: Mapping[int, SubAnswer]) -> list[int]:
        """List the places whose facts' questions have no answer yet."""
        return [place for place in self.places if place not in answers]

    def is_right(self, place: int, answers: Mapping[int, SubAnswer]) -> bool:
        """Whether the answer to a fact's question is right; False if there is none."""
        sub_answer = answers.get(place)
        return sub_answer is not None and exact_match(sub_answer.answer, [self.answer(place)]) == 1

    def is_misled(self, place: int, answers: Mapping[int, SubAnswer]) -> bool:
        """Whether a fact's question uses a wrong answer, or no passage at hand states the fact."""
        uses = [use for use in self.plan.items[place].uses if use in answers]
        return self.is_hidden(place) or any(not self.is_right(use, answers) for use in uses)

    def passage(self, place: int) -> int:
        """Return the number (from 1) of the passage that states a fact; it may be a stand-in."""
        number = self.plan.items[place].passage_number
        assert number is not None
        return number

    def sentences(self, place: int) -> list[int]:
        """List the numbers (from 0) of the sentences that state a fact in its passage, as annotated if possible."""
        page = self.plan.items[place].page(self.claims.passages)
        annotated = self.question.supporting_sentences(page.title)
        numbers = sorted({n for n in annotated if n < len(page.sentences)})
        place_in_page = self.claims.place_of(self.plan.items[place]) or 0
        return numbers or [place_in_page][: len(page.sentences)]

    @property
    def annotated_sentences(self) -> list[list[int]]:
        """The annotated supporting facts as pairs of passage (from 1) and sentence (from 0)."""
        facts, gold = self.question.supporting_facts, self.question.gold
        places = ((fact.sentence, n, page) for fact in facts for n, page in gold if page.title == fact.title)
        return [[number, sentence] for sentence, number, page in places if sentence < len(page.sentences)]

    def other_passage(self, about: str, place: int, chance: Random) -> int:
        """Return the number of a passage that does not state a fact: the one titled ``about``, else a random one."""
        pages = list(enumerate(self.question.passages, 1))
        candidates = [n for n, page in pages if n != self.passage(place) and not page.is_gold]
        candidates = candidates or [n for n, _ in pages if n != self.passage(place)] or [1]
        titled = [n for n in candidates if without_qualifier(pages[n - 1][1].title) == about]
        return titled[0] if titled else chance.choice(candidates)


def normalize_quotes(text: str) -> str:
    """Return a question with straight quotes and single blanks, as a step quotes it."""
    return " ".join(text.replace("“", '"').replace("”", '"').split())


FlawKind = Literal["value", "relation", "missing"]
_OTHERS: Mapping[str, Sequence[str]] = load("relations")["alike"]


@dataclass(frozen=True, slots=True)
class Flaw:
    """A chain's flaw: the fact at ``place`` is wrong or missing; ``text`` is the flawed step's, "" if missing."""

    place: int
    kind: FlawKind
    text: str = ""


def flaw_of(facts: Facts, ideal: Sequence[Step]) -> Flaw | None:
    """Draw the flaw of a question's chain, always the same, from the correct steps; None if all facts are hidden."""
    chance = Random(f"spurious {facts.question.id}")
    places = [place for place in facts.places if not facts.is_hidden(place)]
    if not places:
        return None
    place = chance.choice(places)
    return chance.choice([*_flaws(facts, ideal, place, chance)])


def _flaws(facts: Facts, ideal: Sequence[Step], place: int, chance: Random) -> Iterator[Flaw]:
    yield Flaw(place, "missing")
    item, right = facts.plan.items[place], ideal[place].text
    value = facts.claims.value_of(item)
    distractor, seed = draw_distractor(facts.question, value, chance), chance.randrange(100)
    if item.sentence is not None:
        if value in right:
            yield Flaw(place, "value", " ".join(right.replace(value, distractor).split()))
        return

    def state_fact(triples: Sequence[Triple]) -> str:
        claim = statements.state(triples, seed)
        return " ".join(phrase("fact", str(seed), n=item.passage_number, claim=claim).split())

    yield Flaw(place, "value", state_fact([replace(t, tail=distractor) for t in item.triples]))
    if relations := _OTHERS.get(item.triples[0].relation):
        relation = chance.choice(relations)
        yield Flaw(place, "relation", state_fact([replace(t, relation=relation) for t in item.triples]))


def with_stand_ins(question: Question) -> tuple[Question, tuple[Triple, ...]]:
    """Return a question with all passages of its path, and the path; raise ``EngineError`` if a whole row lacks it."""
    pages, path = list(question.passages), list[Triple]()
    hops = annotated_hops(question)
    for title in [] if hops else dict.fromkeys(fact.title for fact in question.supporting_facts):
        _stand_in_title(question, title, pages)
    for hop in hops:
        place = locate(hop, question.gold or tuple(enumerate(pages, 1)))
        if place is None and not lacks_passages(question):
            raise EngineError(f"no passage states “{hop.triple.head} – {hop.triple.relation}”")
        number, sentence = place or _locate_or_stand_in(hop, question, pages)
        path += [replace(t, passage=number, sentence=sentence) for t in hop.triples]
    completed = replace(question, passages=tuple(pages))
    return completed, tuple(path) or tuple(described_subjects(completed))


def lacks_passages(question: Question) -> bool:
    """Whether a row lacks gold passages, according to its annotations."""
    titles = {page.title for page in question.passages if page.is_gold}
    annotated_titles = {fact.title for fact in question.supporting_facts}
    return bool(annotated_titles - titles) or (not annotated_titles and len(question.gold) < question.hops)


def _locate_or_stand_in(hop: AnnotatedHop, question: Question, pages: list[Passage]) -> tuple[int, int]:
    """Return the passage after the gold ones that states a hop, or a stand-in for it."""
    loose = replace(hop, triple=replace(hop.triple, passage=None))
    for page in enumerate(pages, 1):
        is_own = is_about(read(page[1]), hop.triple.head) or not hop.free
        place = locate(loose, [page]) if is_own else None
        if place is not None:
            pages[page[0] - 1] = replace(page[1], is_gold=True)
            return place
    pages.append(Passage(hop.triple.head, (statements.state_sentence(hop.triples),), True))
    return len(pages), 0


def _stand_in_title(question: Question, title: str, pages: list[Passage]) -> None:
    """Mark the passage with an annotated title as gold, or append a stand-in; for HotpotQA, which has no triples."""
    places = [n for n, page in enumerate(pages) if page.title == title]
    if any(pages[n].is_gold for n in places):
        return
    if places:
        pages[places[0]] = replace(pages[places[0]], is_gold=True)
        return
    last = max(question.supporting_sentences(title))
    pages.append(Passage(title, (f"{title} is described elsewhere.",) * (last + 1), True))


def is_hidden(item: Item, question: Question) -> bool:
    """Whether the question's passages lack the one that an item reads."""
    return item.passage_number is not None and item.passage_number > len(question.passages)


def denial(item: Item, passages: Sequence[Passage]) -> str:
    """Write the sentence in which a generator says that it does not find a fact; ``passages`` include stand-ins."""
    if item.sentence is not None:
        return f"None of the passages is about {sought(item, passages)}."
    return " ".join(f"None of the passages states {missing(item, passages)}.".split())


def may_lack_evidence(feedback: Feedback | None, step: Step) -> bool:
    """Whether a step is wrong, or may be, because its evidence is missing."""
    if step.kind == "Final Answer":
        return False
    if feedback is None:
        return True
    entry = ENTRIES[feedback.error_type]
    is_proved = entry.name == CORRECT or entry.is_contradiction
    return not is_proved and entry.category != "Procedural"


def ask_for_evidence(item: Item, passages: Sequence[Passage], step: Step | None = None) -> Feedback:
    """Build the verdict that an item's evidence is missing, with the query for it."""
    gap, text = missing(item, passages), step.text if step else ""
    diagnosis = render("diagnosis", "missing_evidence", text, what=gap)
    guidance = render("guidance", "search", text, what=gap)
    return Feedback(MISSING_EVIDENCE, diagnosis, guidance, search_query(item, passages))


def hide_stand_ins(feedback: Feedback, question: Question, item: Item, passages: Sequence[Passage]) -> Feedback:
    """Replace the texts of a verdict that name a stand-in passage by those of the verdict about missing evidence."""
    substitute, count = ask_for_evidence(item, passages), len(question.passages)
    for field in ("diagnosis", "guidance"):
        if any(int(number) > count for number in _PASSAGE.findall(getattr(feedback, field))):
            feedback = replace(feedback, **{field: getattr(substitute, field)})
    return feedback
