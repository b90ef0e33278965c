"""Twice the text takes twice the time, whatever the text: no reader looks at anything anew."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from safe_stepwise.checking import statements
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.inference import Lifespan, claim_polarity, conclusion_of
from safe_stepwise.checking.step_reading import content_words, has_value, read_step
from safe_stepwise.graphs.comparisons import operation, without_names
from safe_stepwise.graphs.knowledge_graph import entity_key
from safe_stepwise.language import text as written
from safe_stepwise.language.cues import governing_cues
from safe_stepwise.language.grounding import find_further_values, ground, stated_dates
from safe_stepwise.language.mentions import first_mention, is_about, mentions, names_in
from safe_stepwise.language.namesakes import are_name_alikes, epithet, explain_difference, extend_name
from safe_stepwise.language.reading import clean, read
from safe_stepwise.language.relations import RELATIONS, parse_question, same_nation
from safe_stepwise.methods.ranking import _terms
from safe_stepwise.records import Passage, Question, Step, StepKind, Triple
from safe_stepwise.scoring import BENCHMARKS, f1
from safe_stepwise.steps import StepError, format_step, parse_step
from safe_stepwise.store.terminal import printable, redact
from tests.growth import PARSED, TEXTS, Reader, too_slow

FILM = Passage("Dune Rain", ("Dune Rain is a film directed by Ana Vorr.",), True)
BORN = Passage("Ana Vorr", ("Ana Vorr was born in Oru.",), True)
HOPS = (Triple("Dune Rain", "director", "Ana Vorr", 1), Triple("Ana Vorr", "place of birth", "Oru", 2))
FIRST = Step(1, "According to Passage 1, Dune Rain was directed by Ana Vorr.", "Attribution")
GROUPS = {
    (relation.group, relation.kind): name
    for name, relation in RELATIONS.items()
    if relation.kind != "name" or relation.group in ("credit", "kin", "")
}


def page(text: str, title: str = "Ana Vorr") -> Passage:
    return Passage(title, (text,), True)


def checker(*passages: Passage) -> Checker:
    who = "Where was the director of Dune Rain born?"
    return Checker(Question("q", "b", "train", who, "Oru", passages=passages), HOPS, HOPS)


def names(text: str) -> None:
    for reader in (written.normal_name, written.qualifier, written.without_qualifier, epithet):
        reader(text)
    for date_or_number in (written.dates_in, written.as_date, written.as_number, entity_key):
        date_or_number(text)
    are_name_alikes(text, "Ors the Elder")


def questions(text: str) -> None:
    for question in (text, f"Where was {text} born?", f"Which film was directed by {text}"):
        parse_question(question)
    operation(f"Are {text}")
    without_names(text, ["Ana Vorr (film)"])
    without_names("Who is Ana Vorr?", [text])


def passages(text: str) -> None:
    here = read(page(text, "Else"))
    for name in ("Ana Maria Vorr", "Oru", "A", "Oru Oru"):
        mentions(here, name)
        first_mention(here, name)
        is_about(here, name)
    names_in(page(text))
    governing_cues(here.clean, 10, 12, *here.sentence_span(10), "credit")


def titles(text: str) -> None:
    for one, name in ((read(BORN), text), (read(page("It is.", text)), "Ana Vorr (poet)")):
        is_about(one, name)
        mentions(one, name)
    same_nation(clean(text), "kelvia")


def relations(text: str) -> None:
    for relation in GROUPS.values():
        for head, tail in (("Ana Vorr", "Vel"), ("Ana Vorr", "3 May 1911"), ("Ors Velt", "Kelvia")):
            ground(head, relation, tail, [(1, page(text))])


def ends(text: str) -> None:
    for relation in GROUPS.values():
        ground("Ana Vorr", relation, text, [(1, BORN)])
        ground(text, relation, "Oru", [(1, BORN)])


def beside(text: str) -> None:
    find_further_values(text, "director", "Ors Velt")
    find_further_values("It was directed by Ana Vorr and Ors Velt.", "director", text)
    for relation in ("date of birth", "publication date", "inception"):
        stated_dates(page(text), relation)


def namesakes(text: str) -> None:
    here, subject = read(page(text)), read(page(text, "Ana Vorr, Kelvia"))
    for relation in ("place of birth", "father", "director"):
        explain_difference("Ana Vorr", relation, here, subject)
    extend_name("Ana", here)


def steps(text: str) -> None:
    reading = read_step(text)
    assert isinstance(reading.values, tuple)
    assert isinstance(reading.words, frozenset)
    reading.mentions("Ana Vorr")
    reading.mentions("3 May 1901")
    conclusion_of(reading.claim)
    claim_polarity(text)
    Lifespan("Ana", "1900", "1950", 50).is_stated(reading)
    content_words(text)


def values(text: str) -> None:
    has_value(page(text), "Ana Vorr")
    has_value(BORN, text)


def grammar(text: str) -> None:
    for reply in (text, f"Step 1: {text} (Attribution)", f"Step 1: ####ANSWER: {text}"):
        with suppress(StepError):
            parse_step(reply)
    for kind, opening in (("Logical", ""), ("Final Answer", "####ANSWER: ")):
        with suppress(StepError):
            format_step(Step(1, f"{opening}{text.strip()}", kind))


def checked_pages(text: str) -> None:
    one = checker(FILM, page(text))
    for claim in ("According to Passage 2, Ana Vorr was born in Vel.", "Ana Vorr wrote of Vel."):
        one.check([FIRST], Step(2, claim, "Attribution"))
    one.check([FIRST], Step(2, "So the answer is Vel.", "Logical"))


def checked_steps(kind: StepKind) -> Reader:
    one = checker(FILM, BORN)
    return lambda text: one.check([FIRST], Step(2, text, kind))


def scores(text: str) -> None:
    for benchmark in BENCHMARKS:
        f1(text, ["Oru", text], benchmark)


def wordings(text: str) -> None:
    statements.quote_sentence(page(text), 0, "Oru")
    statements.quote_sentence(BORN, 0, text)


READERS: dict[str, Callable[[str], object]] = {
    reader.__name__: reader
    for reader in (names, questions, passages, titles, relations, ends, beside, namesakes, steps)
} | {reader.__name__: reader for reader in (values, grammar, checked_pages, scores, wordings, redact, printable)}
READERS["attributions"] = checked_steps("Attribution")
READERS["conclusions"] = checked_steps("Logical")
READERS["terms"] = lambda text: _terms([text])


PARSING = ("attributions", "conclusions", "checked_pages")
"""Readers that parse each text."""


@pytest.mark.parametrize("name", READERS)
def test_twice_the_text_takes_twice_the_time(name: str) -> None:
    assert too_slow(READERS[name], PARSED if name in PARSING else TEXTS) == []
