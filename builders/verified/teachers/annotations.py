"""Verify questions without a model: check a benchmark's annotations against its gold text.

The teacher proposes the hops that the benchmark annotates (evidence triples of 2Wiki, decomposition of MuSiQue,
supporting facts of HotpotQA). It claims a triple only if a gold sentence states the relation (`language.grounding`).
The text decides the type of noise otherwise.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from builders.verified.teachers import Proposal, supporting_facts
from builders.work.shards import NoModel
from safe_stepwise.graphs.hop_lookup import look_up
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.language import grounding, mentions, namesakes, relations
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.text import as_date, has_words, normal_name, normal_words
from safe_stepwise.records import NoiseType, Question, Triple

_SHORT = 2
_EPITHET = re.compile(r",? (?:the )?(?:Elder|Younger|Sr|Jr|Senior|Junior)\.?$")


class AnnotationsTeacher(NoModel):
    """A teacher that judges by annotations; its stages are those of `builders.verified.teachers.Teacher`."""

    name = "annotations"
    identity = "annotations"
    alone = None
    replies: Mapping[str, int] = {}

    def __init__(self) -> None:
        self._loose: set[Triple] = set()
        """Triples that the text states, but not in so many words."""

    async def extract(self, question: Question, passage: int) -> tuple[Triple, ...]:
        """Return the annotated hops that the passage states, further values beside them, and contradictions."""
        if has_only_facts(question):
            return supporting_facts.extract(question, passage)
        extracted = tuple(_extracted(question, passage))
        self._loose.update(triple for triple, loose in extracted if loose)
        return tuple(triple for triple, _ in extracted)

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        """Map the names that hops use for a gold passage's subject to that subject."""
        names = [question.answer]
        if not has_only_facts(question):
            names += [name for triple in triples for name in (triple.head, triple.tail)]
        aliases = mentions.titles_of(names, (passage for _, passage in question.gold))
        aliases.update(_renamed([hop.triple for hop in annotated_hops(question)]))
        return aliases

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """Propose the annotated path, up to the first hop that the graph lacks."""
        if has_only_facts(question):
            return supporting_facts.propose(question, graph)
        hops = annotated_hops(question)
        if not hops:
            return Proposal((), "unparsed", "The row carries no annotations to judge it by.")
        path: list[Triple] = []
        for hop in hops:
            for triple in hop.triples:
                matches = graph.find(triple.head, triple.relation, triple.tail)
                if not matches:
                    return Proposal(tuple(path), *_diagnose(hop, question), missing=hop)
                path.append(next((t for t in matches if t not in self._loose), matches[0]))
        for earlier, later in combinations(path, 2):
            if reason := _confusion(earlier, later, question):
                explanation = f"Two entities share a name: {reason}."
                return Proposal(tuple(path), "entity_confusion", explanation, _CONFUSED)
        is_loose = any(triple in self._loose for triple in path)
        return Proposal(tuple(path), "none", "", _LOOSELY if is_loose else _STATED)


def has_only_facts(question: Question) -> bool:
    """Whether a question's annotations are gold passages or supporting facts, without triples or a decomposition."""
    return bool(question.gold or question.supporting_facts) and not (question.evidence or question.decomposition)


def _extracted(question: Question, number: int) -> Iterator[tuple[Triple, bool]]:
    """Yield the triples that a gold passage states, and whether it states them only loosely."""
    gold = question.passages[number - 1]
    for hop in annotated_hops(question):
        finding = look_up(hop, [(number, gold)])
        if finding.sentence is None:
            continue
        triple = hop.triple
        head, relation, sentence = triple.head, triple.relation, finding.sentence
        if finding.status == "other":
            yield Triple(head, relation, finding.value, number, sentence), False
        elif finding.status == "stated":
            for variant in hop.triples:
                yield Triple(variant.head, relation, triple.tail, number, sentence), finding.loose or hop.free
            for name in grounding.find_further_values(gold.sentences[sentence], relation, triple.tail):
                if not mentions.is_about(read(gold), name):
                    yield Triple(head, relation, name, number, sentence), True


def _renamed(hops: Sequence[Triple]) -> Iterator[tuple[str, str]]:
    """Yield pairs of names that two hops use for their joint, if they share a word ("née")."""
    heads, tails = {hop.head for hop in hops}, {hop.tail for hop in hops}
    for earlier, later in combinations(hops, 2):
        loose = earlier.tail not in heads and later.head not in tails
        if loose and _is_one_name(earlier.tail, later.head):
            yield earlier.tail, later.head


def _is_one_name(name: str, other_name: str) -> bool:
    """Whether two names may belong to one person or thing: they share words, the first or last among them."""
    a, b = normal_name(name).split(), normal_name(other_name).split()
    shared = {word for word in set(a) & set(b) if len(word) > _SHORT}
    if as_date(name) or not shared:
        return False
    return set(a) <= set(b) or set(b) <= set(a) or a[-1] == b[-1] or bool({a[0], b[0]} <= shared)


_STATED, _LOOSELY, _CONFUSED = 0.95, 0.7, 0.5
_NAMESAKE, _OTHER_VALUE, _OTHER_RELATION, _ABSENT, _ELSEWHERE, _NO_RELATION = 0.7, 0.7, 0.7, 0.6, 0.6, 0.6
"""Confidences in a label of noise.

The text has in place of the annotation: a name-alike, another value, another relation, nothing, the value without the
head, a sentence without a known relation of the two. They are set near the shares that the published labels confirm
(notes/2026-11-noise-labels.md).
"""


def _diagnose(hop: AnnotatedHop, question: Question) -> tuple[NoiseType, str, float]:
    """Explain why no gold passage states a hop: return the type of noise, a sentence and the confidence (0-1)."""
    triple = hop.triple
    finding = look_up(hop, question.gold)
    link = f"“{triple.head} – {triple.relation} – {triple.tail}”"
    place = f"passage {finding.passage}"
    prefix = f"No gold passage was found to state {link}"
    pages = enumerate(question.passages, 1)
    distractors = [(number, page) for number, page in pages if not page.is_gold and triple.tail in page.text]
    elsewhere = look_up(replace(hop, triple=replace(triple, passage=None)), distractors)
    if elsewhere.status == "stated" and not (elsewhere.loose or hop.free):
        quoted = _quoted(elsewhere, triple.tail, question)
        reason = f"passage {elsewhere.passage}, which is no gold passage, states it{quoted}"
        return "missing_evidence", f"{prefix}: {reason}.", _ELSEWHERE
    if namesake := _name_alike(triple, question):
        return "entity_confusion", f"{prefix}: the text is about “{namesake}”.", _NAMESAKE
    if finding.status == "other":
        reason = f"The annotation is {link}, but {place} gives “{finding.value}”"
        return "wrong_answer", f"{reason}{_quoted(finding, finding.value, question)}.", _OTHER_VALUE
    if finding.status == "together":
        quoted = _quoted(finding, triple.tail, question)
        if finding.says_otherwise:
            reason = f"{place} says something else of “{triple.tail}”{quoted}"
            return "external_knowledge", f"{prefix}: {reason}.", _OTHER_RELATION
        reason = f"what {place} says of “{triple.tail}” is not this{quoted}"
        of_two = relations.RELATIONS.get(triple.relation, _ANY).kind == "name"
        return "external_knowledge" if of_two else "missing_evidence", f"{prefix}: {reason}.", _NO_RELATION
    if finding.status == "mentioned":
        reason = f"“{triple.tail}” stands in {place}, but not with “{triple.head}”"
        return "missing_evidence", f"{prefix}: {reason}.", _ELSEWHERE
    if any(has_words(normal_words(p.text), normal_words(triple.tail)) for _, p in question.gold):
        return "missing_evidence", f"{prefix}: its ends do not stand together.", _ELSEWHERE
    return "missing_evidence", f"{prefix}: “{triple.tail}” is not in them.", _ABSENT


_ANY = relations.Relation("", "name")
_QUOTE = 60
"""Characters quoted on either side of a name."""


def _quoted(finding: grounding.Finding, name: str, question: Question) -> str:
    """Quote the words around a name in a finding's sentence; "" if the finding has no sentence."""
    if finding.passage is None or finding.sentence is None:
        return ""
    sentence = " ".join(question.passages[finding.passage - 1].sentences[finding.sentence].split())
    place = sentence.lower().find(name.split(",")[0].lower())
    if place < 0:
        return f" (“{sentence[: 2 * _QUOTE]}{'…' if len(sentence) > 2 * _QUOTE else ''}”)"
    low, high = max(0, place - _QUOTE), place + len(name) + _QUOTE
    words = sentence[low:high]
    if low:
        words = f"…{words.partition(' ')[2]}"
    if high < len(sentence):
        words = f"{words.rpartition(' ')[0]}…"
    return f" (“{words.strip()}”)"


def _name_alike(triple: Triple, question: Question) -> str:
    """Return the name-alike that the gold passages describe in place of a hop's head or tail, or ""."""
    titles = [passage.title for _, passage in question.gold]
    alikes = [title for title in titles if namesakes.are_name_alikes(triple.head, title)]
    if alikes and not any(mentions.is_about(read(passage), triple.head) for _, passage in question.gold):
        return alikes[0]
    bare = _EPITHET.sub("", triple.tail)
    if bare == triple.tail:
        return ""
    for number, passage in question.gold:
        finding = grounding.ground(triple.head, triple.relation, bare, [(number, passage)])
        if finding.status == "stated" and (full_name := namesakes.extend_name(bare, read(passage))):
            return "" if full_name == clean(triple.tail) else full_name
    return ""


def _confusion(earlier: Triple, later: Triple, question: Question) -> str:
    """Explain why the entity that one hop ends in is not the one that a later hop is about, or return ""."""
    if earlier.passage == later.passage or not earlier.passage or not later.passage:
        return ""
    context = read(question.passages[earlier.passage - 1])
    subject = read(question.passages[later.passage - 1])
    bare = _EPITHET.sub("", earlier.tail)
    joint = clean(_EPITHET.sub("", later.head)) == clean(bare)
    if not joint and not mentions.is_about(subject, earlier.tail) and not mentions.is_about(subject, bare):
        return ""
    return namesakes.explain_difference(bare, earlier.relation, context, subject)
