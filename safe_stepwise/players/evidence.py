"""Let the symbolic players work on questions whose gold passages are missing.

A fact that is annotated but that no passage states gets a *stand-in*: a made-up passage after the real ones, so that
the checker can make its plan. No player reads from a stand-in: the generator says that it does not find the fact, the
verifier says what to search for. A retrieved passage that states the fact counts as gold.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from safe_stepwise.checking.plans import Item, described_subjects
from safe_stepwise.checking.statements import state_sentence
from safe_stepwise.checking.wordings import missing, render, search_query, sought
from safe_stepwise.engines.base import EngineError
from safe_stepwise.graphs.hop_lookup import locate
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.language.mentions import is_about
from safe_stepwise.language.reading import read
from safe_stepwise.records import Feedback, Passage, Question, Step, Triple
from safe_stepwise.taxonomy import CORRECT, ENTRIES, MISSING_EVIDENCE

_PASSAGE = re.compile(r"\bPassage (\d+)")


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
    pages.append(Passage(hop.triple.head, (state_sentence(hop.triples),), True))
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
