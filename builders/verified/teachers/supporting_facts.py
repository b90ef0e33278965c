"""Judge a HotpotQA question by its supporting facts, as the benchmark has no triples, without a model.

The gold passages of a bridge question have to be linked (one names the other's subject, or both name a third thing),
and one of them has to hold the answer. The dates, nations or numbers that both sides of a comparison state decide it;
what they have in common has to be in both; any other comparison is undecided. Further checks hold the question's words
against the passages and the answer (`doubt`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path

from builders.verified.teachers import Proposal
from safe_stepwise.checking.plans import DESCRIBED, NAMES
from safe_stepwise.graphs.comparisons import NUMBER_OF, comparison_of, is_yes_or_no, operation, without_names
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.language import grounding, relations
from safe_stepwise.language.mentions import first_mention, is_about, names_in
from safe_stepwise.language.reading import Text, clean, read
from safe_stepwise.language.text import (
    CAPITAL,
    as_number,
    dates_in,
    fold,
    has_words,
    normal_name,
    normal_words,
    without_qualifier,
)
from safe_stepwise.language.vocabulary import load, word_list
from safe_stepwise.records import Passage, Question, SupportingFact, Triple
from safe_stepwise.store.packaged import read_patterns

_PATTERNS = read_patterns(Path(__file__).with_suffix(".yaml"), capital=CAPITAL)
_DATES = ("date of death", "date of birth", "publication date", "inception")
_COMPARED_DATES = {name: re.compile(_PATTERNS[name], re.IGNORECASE) for name in _DATES}
_VERB = re.compile(r"\b(?:is|was|are|were|has|have|had|consists?|contains?)\b")
_SHORT_WORD = 3
_DECADE = re.compile(r"\b\d{3}0s\b")
"""A date that is not read, so that no other date of its passage can be the one to compare."""
_GLUED_ANSWER = 6
"""The least characters of an answer that counts as there even within other words ("14786 July 1535")."""
_CLAUSE = re.compile(r"""[.,;:()"“”–—]|\b(?:that|which|who|whom|whose|where|when|while|because|although)\b""")
_PLAIN_WORD = re.compile(r"[^\W\d_A-Z][^\W\d_A-Z'’-]*")
_MAX_RELATION_WORDS = 5
_MAX_CLAUSE_CHARS = 200
_SAYS_NOTHING = word_list("stop_words") | word_list("function_words")
_LOOSE_END = word_list("loose_ends")
_LONG_WORD_CHARS = 6
_OPENED = re.compile(r" (?:in|of|at|for) |[,(]")
_COMMON = word_list("common_nouns") | word_list("sorts")


def extract(question: Question, number: int) -> tuple[Triple, ...]:
    """Extract links from one gold passage to the others, to what they share, and to the answer."""
    passage = question.passages[number - 1]
    if "comparison" in question.kind:
        return tuple(_description(question, number, passage))
    text = read(passage)
    other_pages = [page for n, page in question.gold if n != number]
    # A passage that names itself names no namesake: the album and the band "Dune Rain".
    title = normal_name(passage.title)
    linked = [page.title for page in other_pages if normal_name(page.title) != title]
    triples = [*_mentions(passage, number, linked), *_partial_mentions(passage, text, number, linked)]
    if not is_about(text, question.answer):
        triples += _mentions(passage, number, [question.answer])
    titles = {normal_name(p.title.split(" (")[0]) for _, p in question.gold}
    other_names = [names_in(page) for page in other_pages]
    for name, (surface, sentence) in names_in(passage).items():
        if normal_name(name) not in titles and all(name in names for names in other_names):
            relation = leading_words(passage.sentences[sentence], surface)
            triples.append(Triple(passage.title, relation, surface, number, sentence))
    return tuple(triples)


def _mentions(passage: Passage, number: int, names: list[str]) -> Iterator[Triple]:
    text = read(passage)
    for name in names:
        if (start := first_mention(text, name)) is not None:
            sentence = text.sentence_at(start)
            relation = leading_words(passage.sentences[sentence], name)
            yield Triple(passage.title, relation, name, number, sentence)


def leading_words(sentence: str, name: str) -> str:
    """Return the last lower-case words that lead to a name, its relation to the subject, or "names"."""
    bare = without_qualifier(name)
    places = map(sentence.find, (bare, bare.split(",")[0], *bare.split()[-1:]))
    before = sentence[: next((place for place in places if place > 0), 0)]
    if before[-1:].isalnum():
        return NAMES
    clause = _CLAUSE.split(before[-_MAX_CLAUSE_CHARS:].rstrip("\"“‘' "))[-1]
    words = list(takewhile(_PLAIN_WORD.fullmatch, reversed(clause.split())))[:_MAX_RELATION_WORDS]
    words = list(dropwhile(_LOOSE_END.__contains__, words))[::-1]
    return " ".join(dropwhile(_SAYS_NOTHING.__contains__, words)) or NAMES


def _partial_mentions(passage: Passage, text: Text, number: int, titles: list[str]) -> Iterator[Triple]:
    """Yield links to titles that the passage gives not in full, but by a name within them ("Hotspur")."""
    lacking = [title for title in titles if first_mention(text, title) is None]
    name_words = {word for name in names_in(passage) for word in name.split()} if lacking else set()
    for title in lacking:
        words = [w for w in clean(title.split(" (")[0]).split() if w in name_words]
        specific = [w for w in words if len(w) > _SHORT_WORD and w not in _COMMON]
        places = [text.sentence_at(text.clean.find(f" {specific[-1]} ") + 1)] if specific else []
        for sentence in places or _in_other_words(passage, title):
            yield Triple(text.title, NAMES, title, number, sentence)


def _in_other_words(passage: Passage, title: str) -> Iterator[int]:
    """Yield the first sentence with a title's topic: the stems of its words, or its only, long word unchanged."""
    words = [w for w in clean(_OPENED.split(title)[0]).split() if w not in _SAYS_NOTHING]
    stems = [f" {word[:5]}" for word in words]
    if len(words) < 2:
        stems = [f" {word} " for word in words if len(word) > _LONG_WORD_CHARS and word not in _COMMON]
    for number, sentence in enumerate(passage.sentences if stems else ()):
        text = f" {clean(sentence)} "
        if all(stem in text for stem in stems):
            yield number
            return


def _description(question: Question, number: int, passage: Passage) -> Iterator[Triple]:
    relation = _compared_date(question.question)
    if relation and not _DECADE.search(fold(passage.text)):
        for sentence, date in grounding.stated_dates(passage, relation)[:1]:
            yield Triple(passage.title, relation, date, number, sentence)
    if nationality := _compared_nation(question.question):
        for nation in grounding.stated_nations(passage):
            yield Triple(passage.title, nationality, nation, number, 0)
    numbers = dict.fromkeys(_stated_numbers(passage, noun)) if (noun := _compared_number(question)[1]) else ()
    if len({as_number(value) for _, value in numbers}) == 1:
        sentence, value = next(iter(numbers))
        yield Triple(passage.title, f"{NUMBER_OF}{noun}", value, number, sentence)
    for fact in question.supporting_facts or (SupportingFact(passage.title, 0),):
        if fact.title == passage.title and fact.sentence < len(passage.sentences):
            description = _VERB.split(passage.sentences[fact.sentence], maxsplit=1)[-1]
            words = " ".join(description.split()[:12]).rstrip(".,;")
            if normal_name(words) != normal_name(passage.title):
                yield Triple(passage.title, DESCRIBED, words, number, fact.sentence)


def _compared_date(question: str) -> str:
    if operation(question) not in ("earliest", "latest"):
        return ""
    return next((name for name, pattern in _COMPARED_DATES.items() if pattern.search(question)), "")


def _compared_nation(question: str) -> str:
    match = _ONE_COUNTRY.search(question)
    return "" if match is None else "country of citizenship" if match[1].lower() == "nationality" else "country"


def propose(question: Question, graph: KnowledgeGraph) -> Proposal:
    """Propose a path over the links, or the reason why there is none or why the answer does not follow."""
    proposal = _linked(question, graph)
    objection = doubt(question) if proposal.noise_type == "none" or proposal.path else None
    return replace(objection, path=proposal.path) if objection else proposal


def _linked(question: Question, graph: KnowledgeGraph) -> Proposal:
    titles = [passage.title for _, passage in question.gold]
    is_unmarked = _is_unmarked(question)
    named = [title for title in titles if has_words(normal_words(question.question), normal_name(title))]
    if "comparison" in question.kind:
        return _compared(question, graph, named if is_unmarked and len(named) > 1 else titles)
    if is_unmarked:
        titles = named
    subjects = [p.title for _, p in question.gold if is_about(read(p), question.answer)]
    goal = subjects[0] if subjects else question.answer
    paths = {title: graph.path(title, goal) for title in titles}
    reached = [t for t, path in paths.items() if path is not None or graph.is_same_entity(t, goal)]
    # Namesakes (the album and the band "Dune Rain") are joined by their name, which is not a triple.
    lost = [t for t in titles if normal_name(t) not in map(normal_name, reached)]
    if not subjects and goal not in graph:
        glued = [
            n for n, p in question.gold if len(goal) >= _GLUED_ANSWER and fold(goal).lower() in fold(p.text).lower()
        ]
        if glued:
            reason = f"Passage {glued[0]} has “{goal}”, and what it says of it could not be read."
            return Proposal((), "undecided", reason, 0.4)
        reason = f"The answer “{goal}” was not found in the gold passages."
        return Proposal((), "missing_evidence", reason, 0.6)
    if is_unmarked and (lost or not titles):
        reason = "All passages count as needed, and no link was found from the question to the answer."
        return Proposal((), "undecided", reason, 0.4)
    if lost:
        reason = f"No link was found between the gold passages, from “{lost[0]}” to “{goal}”."
        return Proposal((), "undecided", f"{reason[:-1]}; one in other words may be there.", 0.4)
    return Proposal(max((path or () for path in paths.values()), key=len), "none", "", 0.7, is_linked=True)


def _compared(question: Question, graph: KnowledgeGraph, titles: Sequence[str]) -> Proposal:
    """Propose the values that decide a comparison; where they cannot be read on each side, it is undecided."""
    number = f"{NUMBER_OF}{_compared_number(question)[1]}"
    for relation in filter(None, (_compared_date(question.question), _compared_nation(question.question), number)):
        branches = [graph.find(title, relation) for title in titles]
        if all(branches) and _is_clear(question, branches):
            return Proposal(tuple(triple for branch in branches for triple in branch), "none", "", 0.9)
    path = tuple(triple for title in titles for triple in graph.find(title, DESCRIBED)[:1])
    answer, pages = question.answer, [read(page) for _, page in question.gold if page.title in titles]
    unchecked = f"Whether “{answer}” is right was not checked"
    if is_yes_or_no(answer) and not _names_both(question, titles):
        return Proposal((), "undecided", f"{unchecked}: the question compares no two passages.", 0.4)
    if len(path) < 2 and not _is_unmarked(question):
        return Proposal(path, "none", "", 0.6)  # which lacks a branch
    is_shared = all(first_mention(page, answer) is not None and not is_about(page, answer) for page in pages)
    if is_shared and not is_yes_or_no(answer):
        return Proposal(path, "none", "", 0.6, is_linked=True)
    return Proposal(path, "undecided", f"{unchecked}: the values to compare were not read on each side.", 0.4)


def _is_unmarked(question: Question) -> bool:
    """Whether nothing says which passages a question needs."""
    return not question.supporting_facts and len(question.gold) == len(question.passages)


def _is_clear(question: Question, branches: Sequence[Sequence[Triple]]) -> bool:
    """Whether the values of branches decide: nations if each side has one and the same, or known ones, none shared."""
    comparison = comparison_of(question, branches)
    if comparison.result is None or comparison.operation != "same":
        return comparison.result is not None
    values = [clean(value) for side in comparison.sides for value in side.values]
    if comparison.result == "yes":
        return all(relations.same_nation(values[0], value) for value in values)
    return all(map(relations.is_nation, values))


def _names_both(question: Question, titles: Sequence[str]) -> bool:
    """Whether a question has a word of the titles of two passages."""
    words = set(normal_words(question.question).split())
    return sum(not words.isdisjoint(normal_name(title).split()) for title in titles) > 1


def doubt(question: Question) -> Proposal | None:
    """Return the first doubt that a question's words raise, as a proposal without a path, or None.

    HotpotQA annotates no relations, so each check reads one sort of question only, and doubts if the text lacks what
    is asked for. The confidences are estimates: of 1,273 real rows these checks doubt seven, all published noise.

    >>> doubt(Question("q", "b", "train", "When did it end?", "after 53 days")).explanation
    'The question asks when; the answer “after 53 days” gives no date.'
    """
    checks = _COMPARED if "comparison" in question.kind else _ANSWERED
    return next((raised for check in checks for raised in check(question)), None)


_WHEN = re.compile(r"\s*(?:in |since |until )?when (?:did|was|were|is|does|will|has)\b", re.I)
_A_TIME = re.compile(r"\d{3}|\d0s\b|centur|decade|spring|summer|autumn|winter|\w+day\b|today|present|now\b", re.I)
_HOW_MANY = re.compile(r"\bhow (?:many|much|old|tall)\b", re.IGNORECASE)
_AMOUNT = re.compile(_PATTERNS["amount"], re.IGNORECASE)
_WHO = re.compile(r"\s*who\b(?!.*\bor\b)", re.IGNORECASE)


def _wrong_sort(question: Question) -> Iterator[Proposal]:
    """Doubt an answer that is not the time or number that is asked for; capitalised names may be times."""
    text, answer = question.question, question.answer
    clause = f"the answer “{answer}” gives"
    if _WHEN.match(text) and not (dates_in(answer) or _A_TIME.search(answer) or re.search(CAPITAL, answer)):
        yield Proposal((), "wrong_answer", f"The question asks when; {clause} no date.", 0.6)
    quantity = _HOW_MANY.search(text)
    if quantity and as_number(answer) is None and not _AMOUNT.search(answer):
        yield Proposal((), "wrong_answer", f"The question asks {quantity[0].lower()}; {clause} no number.", 0.6)


def _named_in_the_question(question: Question) -> Iterator[Proposal]:
    """Doubt a person as answer to "who" if the question names that person and offers no choice."""
    name = normal_name(question.answer)
    if name and _WHO.match(question.question) and has_words(normal_words(question.question), name):
        reason = f"The question asks who, and names “{question.answer}” itself as somebody else."
        yield Proposal((), "wrong_answer", reason, 0.6)


_COUNTED = re.compile(_PATTERNS["counted"], re.IGNORECASE)
_ENDING = re.compile(r"(?:ies|es|s)$")
_NUMBERS = "|".join(load("words")["numbers"].split())
_COUNT = rf"(?<!one of the )(?<!one of the top )\b(\d{{1,3}}(?: , \d{{3}})+|\d[\d,]*|{_NUMBERS})(?: \w+){{0,4}}? "
_AMOUNTS = rf"\b(?:\d[\d,]*|{_NUMBERS}|several|many|numerous|few|hundreds|thousands|dozens)\b"


def _compared_number(question: Question) -> tuple[str, str]:
    """Return the word that compares numbers ("more") and the noun counted; two empty texts if there is none."""
    match = _COUNTED.search(without_names(question.question, [passage.title for _, passage in question.gold]))
    return (match[1].lower(), match[2]) if match else ("", "")


def _stated_numbers(passage: Passage, noun: str) -> Iterator[tuple[int, str]]:
    """Yield the numbers that a passage gives of a noun, each with its sentence (from 0)."""
    text, stem = read(passage), re.escape(_ENDING.sub("", clean(noun)))
    for match in re.finditer(rf"{_COUNT}{stem}", text.clean):
        value = match[1].replace(" , ", ",")
        if as_number(value) is not None:
            yield text.sentence_at(match.start()), value


def _uncounted(question: Question) -> Iterator[Proposal]:
    """Doubt a comparison of numbers if only one passage has a number, or the numbers contradict the answer."""
    comparative, noun = _compared_number(question)
    if not noun or len(question.gold) != 2:
        return
    stem = re.escape(_ENDING.sub("", clean(noun)))
    (_, page), (_, other_page) = question.gold
    counts = [[as_number(n) or 0.0 for _, n in _stated_numbers(p, noun)] for p in (page, other_page)]
    if bool(counts[0]) != bool(counts[1]):
        numbered, lacking = (page, other_page) if counts[0] else (other_page, page)
        # An amount near the thing counted, even if it is not a number to compare.
        amount = rf"(?:{_AMOUNTS})(?: \w+){{0,4}}? {stem}|\b{stem}\w*(?: \w+){{0,2}}? (?:{_AMOUNTS})"
        if not re.search(amount, read(lacking).clean):
            reason = f"“{numbered.title}” gives a number of {noun}, “{lacking.title}” gives none."
            yield Proposal((), "missing_evidence", reason, 0.8)
    elif all(counts) and (min(counts[0]) > max(counts[1]) or max(counts[0]) < min(counts[1])):
        larger = (min(counts[0]) > max(counts[1])) == (comparative in ("more", "most"))
        winner, loser = (page, other_page) if larger else (other_page, page)
        if _is_side(question.answer, loser) and not _is_side(question.answer, winner):
            reason = f"The numbers of {noun} in the passages give “{winner.title}”"
            yield Proposal((), "wrong_answer", f"{reason}, not “{question.answer}”.", 0.6)


def _is_side(answer: str, passage: Passage) -> bool:
    return not set(normal_name(answer).split()).isdisjoint(normal_name(passage.title).split())


_ONE_COUNTRY = re.compile(r"\bsame (country|nationality|nation)\b", re.IGNORECASE)
_ORIGIN = re.compile(_PATTERNS["origin"])


def _placeless(question: Question) -> Iterator[Proposal]:
    """Doubt a question about the same country if a passage has no place that its subject could be from."""
    if not _ONE_COUNTRY.search(question.question):
        return
    for _, passage in question.gold:
        if not _ORIGIN.search(passage.text.replace(passage.title, "")):
            reason = f"“{passage.title}” names no country, nationality or place of its subject."
            yield Proposal((), "missing_evidence", reason, 0.6)


_OCCUPATIONS: dict[str, str] = load("words")["occupations"]


def _of_no_such_occupation(question: Question) -> Iterator[Proposal]:
    """Doubt a shared occupation if a passage has another occupation and not that one."""
    *question_words, last = normal_words(question.question).split() or [""]
    noun = last.removesuffix("s")
    if question.answer.lower() != "yes" or "both" not in question_words or noun not in _OCCUPATIONS:
        return
    for _, passage in question.gold:
        text = read(passage).clean
        occupations = [o for o, words in _OCCUPATIONS.items() if re.search(rf"\b(?:{words})\b", text)]
        if occupations and noun not in occupations:
            reason = f"“{passage.title}” says what its subject did, and nothing of a work as {noun}."
            yield Proposal((), "missing_evidence", reason, 0.6)


_ANSWERED = (_wrong_sort, _named_in_the_question)
_COMPARED = (_uncounted, _placeless, _of_no_such_occupation)
