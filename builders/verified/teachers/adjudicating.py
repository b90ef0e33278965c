"""Judge by annotations, and ask a model about each fact that reading without a model denies or finds only loosely.

The model reads the gold passages and one claim, and says whether they state it. It never sees a label. A fact that it
reads joins the question's graph. A fact that neither reads is noise. One that only the annotations' loose reading
finds makes the row undecided: most such facts are there, and readers err. All else stays as it was: facts stated in so
many words, namesakes, comparisons. A question without triples has one claim: that its answer is the answer.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from builders.verified.teachers import Proposal, TeacherError, Teachers, replies
from builders.verified.teachers.annotations import AnnotationsTeacher, has_only_facts
from builders.verified.teachers.llm import LLMTeacher, LLMTeachers
from builders.verified.verification import build_graph
from safe_stepwise import prompts
from safe_stepwise.checking import statements, step_reading
from safe_stepwise.engines.base import Pair, Request
from safe_stepwise.engines.client import Client, render_usage
from safe_stepwise.graphs.hop_lookup import look_up
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import clean, read
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import render_premise
from safe_stepwise.records import Question, Triple, identity

ADJUDICATE = prompts.load("verification/adjudicate")
_LOOSE = "The gold passages seem to state every fact"
_LINKED = "The gold passages are linked"
_LEAST_QUOTE = 3
"""The fewest words of a quotation that shows something."""
FIRM = 0.9
"""The confidence from which a question without triples is not asked about: its dates were read and compared."""


@dataclass(frozen=True)
class AdjudicatingTeachers(LLMTeachers):
    """Makes the teacher of each question; ``spec`` names the model that is asked about doubtful facts."""

    alone: ClassVar[Teachers | None] = AnnotationsTeacher

    @property
    def name(self) -> str:
        """The entry in the ``teacher`` column: who judged, who was asked, and the prompt."""
        return f"adjudicating: annotations, doubts ruled by {self.name_with(ADJUDICATE.digest)}"

    @property
    def identity(self) -> str:
        """The digest of everything beside the code that can change a label."""
        return identity([self.engine.identity, ADJUDICATE.digest])

    def __call__(self) -> "AdjudicatingTeacher":
        return AdjudicatingTeacher(self.client, self.name, self.engine.name, quotes=not self.spec.startswith("nli:"))

    def progress(self) -> str:
        """Render requests and tokens so far."""
        return render_usage(self.client.total())


Place = tuple[int, int | None]
"""Where a passage states something: its number (from 1), and the sentence (from 0) if it is known."""


class Ruling(NamedTuple):
    """The model's decision on a claim, with the place that states it; None if it finds none."""

    place: Place | None


class AdjudicatingTeacher(LLMTeacher):
    """The teacher of one question; its stages are those of `builders.verified.teachers.Teacher`.

    A claim without a ruling stays as the annotations read it: the model gave no reply that can be read, or says yes
    and quotes no words of the passages about the claim (counted in ``replies`` as ``unproved``). A model that does not
    write (``quotes`` is False) need not quote.
    """

    def __init__(self, client: Client, name: str, reader: str, *, quotes: bool = True) -> None:
        super().__init__(client, name)
        self._annotations, self._reader, self._quotes = AnnotationsTeacher(), reader, quotes
        self._rulings: asyncio.Task[Mapping[AnnotatedHop, Ruling]] | None = None

    async def extract(self, question: Question, passage: int) -> tuple[Triple, ...]:
        """Return the annotated hops that the passage states, by the model's ruling where one was needed."""
        triples = await self._annotations.extract(question, passage)
        if has_only_facts(question):
            return triples
        for hop, (place,) in (await self._request_rulings(question)).items():
            if place is not None:
                # What seemed to be stated in its place goes.
                findings = (look_up(hop, [page]) for page in question.gold)
                values = {finding.value for finding in findings if finding.status == "other"}
                triples = tuple(t for t in triples if not (_is_of(t, hop) and t.tail in values))
            if place is not None and place[0] == passage and not any(_is_of(t, hop) for t in triples):
                triples += tuple(replace(t, passage=passage, sentence=place[1]) for t in hop.triples)
        return triples

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        """Map names as the annotations do."""
        return await self._annotations.resolve(question, triples)

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """Propose the annotated path, up to the first hop that the graph lacks; say what the model decided."""
        proposal = await self._annotations.propose(question, graph)
        if has_only_facts(question):
            return await self._adjudicate_answer(question, proposal)
        rulings, reader = await self._request_rulings(question), self._reader
        if not rulings:
            return proposal
        affirmed = [claim_of(hop) for hop, ruling in rulings.items() if ruling.place is not None]
        note = f"{reader} reads in the passages: {' '.join(affirmed)}" if affirmed else ""
        if proposal.missing in rulings:
            reason = f"{proposal.explanation[:-1]}; {reader} does not read it there either."
            return replace(proposal, explanation=reason, confidence=None, note=note)
        denied = [claim_of(hop) for hop, ruling in rulings.items() if ruling.place is None]
        if denied and proposal.noise_type == "none":
            reason = f"{_LOOSE}, but {reader} does not read there: {' '.join(denied)}"
            return replace(proposal, noise_type="undecided", explanation=reason, confidence=None)
        return replace(proposal, confidence=None if affirmed else proposal.confidence, note=note)

    async def _adjudicate_answer(self, question: Question, proposal: Proposal) -> Proposal:
        """Return the proposal for a question without triples as the model rules on its answer."""
        claim = claim_of_answer(question)
        is_doubtful = is_answer_doubtful(question, proposal)
        ruling = await self._request_ruling(question, claim, question.answer) if is_doubtful else None
        if ruling is None:
            return proposal
        if ruling.place is not None:
            reason = f"{self._reader} reads in passage {ruling.place[0]}: {claim}"
            return replace(proposal, noise_type="none", explanation=reason, confidence=None, is_final=True)
        if proposal.noise_type == "none" or (proposal.noise_type == "undecided" and proposal.path):
            reason = f"{_LINKED}, but {self._reader} does not read there: {claim}"
            return replace(proposal, noise_type="undecided", explanation=reason, confidence=None)
        noise_type = "missing_evidence" if proposal.noise_type == "undecided" else proposal.noise_type
        reason = f"{proposal.explanation} {self._reader} does not read in the gold passages: {claim}"
        return replace(proposal, noise_type=noise_type, explanation=reason, confidence=None)

    async def _request_rulings(self, question: Question) -> Mapping[AnnotatedHop, Ruling]:
        """Return the rulings on a question's doubtful hops, which are asked about once."""

        async def request_all() -> Mapping[AnnotatedHop, Ruling]:
            hops = tuple(doubtful_hops(question))
            requests = (self._request_ruling(question, claim_of(hop), hop.triple.tail) for hop in hops)
            rulings = zip(hops, await asyncio.gather(*requests), strict=True)
            return {hop: ruling for hop, ruling in rulings if ruling is not None}

        if self._rulings is None:
            self._rulings = asyncio.ensure_future(request_all())
        return await self._rulings

    async def _request_ruling(self, question: Question, claim: str, value: str) -> Ruling | None:
        """Ask about a claim; None if the reply does not count. Without a quotation, ``value`` shows the place."""
        request = ruling_request(question, claim)
        try:
            async with self._reading(request, "a claim") as reply:
                is_stated, quote = replies.read_ruling(reply.text, prompts.data_of(request))
        except TeacherError:
            return None
        if not is_stated:
            return Ruling(None)
        place = _find_quote(quote, claim, question) if self._quotes else _find_mention(value, question)
        self.replies["unproved"] += place is None
        return None if place is None else Ruling(place)


def doubtful_hops(question: Question) -> Iterator[AnnotatedHop]:
    """Yield the annotated hops that no gold passage states literally, without repeats."""
    for hop in dict.fromkeys(annotated_hops(question)):
        finding = look_up(hop, question.gold)
        if question.gold and (finding.status != "stated" or finding.loose or hop.free):
            yield hop


def is_answer_doubtful(question: Question, proposal: Proposal) -> bool:
    """Whether a question without triples is asked about."""
    is_compared = proposal.noise_type == "none" and (proposal.confidence or 0.0) >= FIRM
    return bool(question.gold) and not is_compared


def claim_of(hop: AnnotatedHop) -> str:
    """Word a hop as a sentence that passages may state.

    >>> claim_of(AnnotatedHop(Triple("Ana Vorr", "place of birth", "Oru")))
    'Ana Vorr was born in Oru.'
    >>> claim_of(AnnotatedHop(Triple("Oru", "Who founded …?", "Ors Velt"), True, ("Oru",)))
    'The answer to “Who founded Oru?” is Ors Velt.'
    """
    return statements.state_sentence(hop.triples)


def claim_of_answer(question: Question) -> str:
    """Word the claim that a question's answer is right."""
    return f"The answer to “{replies.one_line(question.question)}” is “{question.answer}”."


def ruling_request(question: Question, claim: str) -> Request:
    """Return the request for a ruling on a claim: all gold passages, then the claim, so that claims share a prefix."""
    pages = [passage for _, passage in question.gold]
    request = ADJUDICATE.request(ADJUDICATE.messages(passages=pages, claim=claim), Scene(question))
    yes, no = (json.dumps({"stated": stated, "quote": ""}) for stated in ("yes", "no"))
    return replace(request, pair=Pair(render_premise(pages), claim, yes, no, no))


async def ruling_requests(question: Question) -> list[Request]:
    """Return all requests that a question needs."""
    if not has_only_facts(question):
        return [ruling_request(question, claim_of(hop)) for hop in doubtful_hops(question)]
    annotations = AnnotationsTeacher()
    proposal = await annotations.propose(question, await build_graph(question, annotations))
    return [ruling_request(question, claim_of_answer(question))] if is_answer_doubtful(question, proposal) else []


def _is_of(triple: Triple, hop: AnnotatedHop) -> bool:
    return triple.relation == hop.triple.relation and triple.head in {t.head for t in hop.triples}


def _find_quote(quote: str, claim: str, question: Question) -> Place | None:
    """Find a quotation in the gold passages: return the passage, and the sentence unless it spans several.

    None if it is shorter than `_LEAST_QUOTE`, has no content word, or is not near a word of the claim.
    """
    words, claimed = clean(quote), step_reading.content_words(claim)
    if len(words.split()) < _LEAST_QUOTE or not step_reading.content_words(quote):
        return None
    for number, passage in question.gold:
        for sentence, text in enumerate(passage.sentences):
            if words in clean(text) and not claimed.isdisjoint(step_reading.content_words(f"{passage.title} {text}")):
                return number, sentence
        if words in clean(passage.text):
            return number, None
    return None


def _find_mention(value: str, question: Question) -> Place:
    """Return the place where a gold passage names a value, or the first gold passage."""
    for number, passage in question.gold:
        if (offset := first_mention(read(passage), value)) is not None:
            return number, read(passage).sentence_at(offset)
    return question.gold[0][0], None
