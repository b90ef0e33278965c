"""Writes facts, questions and references to steps, from the wordings in ``vocabulary/statements.yaml``.

The caller selects a wording by a number, so that a dataset can vary them and a test can try all.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import RELATIONS, is_country, is_nation
from safe_stepwise.language.text import as_date, whole_words_pattern, without_qualifier
from safe_stepwise.language.vocabulary import load, word_list, wording
from safe_stepwise.records import Passage, Triple

_WORDINGS: Mapping[str, Any] = load("statements")
_FIELD = re.compile(r"{(\w+)}")
_PRONOUN = wording("statements", "pronoun")
_FULL_STOP = re.compile(r"(?<=[^\W\d_]{5})\.$")
_REPEATED_ARTICLE = re.compile(r"\b(the|a|an) \1\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"^(?:His|Her|Its|Their)\b")
_LOWER_CASE_OPENERS = word_list("stop_words") | frozenset("he her his it its she their they".split())
_QUESTION_OPENS = re.compile(r"^(?:who|what|when|where|which|how|why|in |on )", re.IGNORECASE)
_REWORDED = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, _WORDINGS['rewordings']))})(?![\w-])")
_KEPT_IN = 4  # of this many words that could be replaced, one is not
MAX_NAME_WORDS = 5
"""A longer answer is quoted, not used like a name."""
MAX_QUOTATION_CHARS = 320
"""A longer quoted sentence is cut after the clause that is needed."""


def pick(wordings: Sequence[str], choice: int) -> str:
    """Select a wording by a number of any size."""
    return wordings[choice % len(wordings)]


def fill(wording: str, **values: object) -> str:
    """Replace the fields in braces of a wording by values; unknown fields and braces inside values stay.

    >>> fill("According to Passage {n}, {claim}.", n=3, claim="Oru is a town")
    'According to Passage 3, Oru is a town.'
    """
    return _FIELD.sub(lambda match: str(values.get(match[1], match[0])), wording)


def is_noun(relation: str) -> bool:
    """Whether a relation is known and "the … of somebody" can express it.

    >>> is_noun("director"), is_noun("educated at")
    (True, False)
    """
    return relation in RELATIONS and RELATIONS[relation].has_noun_form


def noun_of(relation: str) -> str:
    """Return a relation with its article, in quotes if it is too long for a noun.

    >>> noun_of("director"), noun_of("Count Olaf in the series that Netflix made")
    ('the director', 'the “Count Olaf in the series that Netflix made”')
    """
    return f"the {relation}" if len(relation.split()) <= MAX_NAME_WORDS else f"the “{relation}”"


def count_phrase(relation: str, number: int) -> str:
    """Write a number of values of a relation.

    >>> count_phrase("director", 2), count_phrase("country of citizenship", 2), count_phrase("cast member", 1)
    ('2 directors', '2 countries of citizenship', '1 cast member')
    """
    return f"{number} {relation if number == 1 else plural(relation)}"


def plural(relation: str) -> str:
    """Return a relation as a plural noun; a relation that is not a noun is quoted.

    >>> plural("country"), plural("educated at")
    ('countries', 'things under “educated at”')
    """
    if not is_noun(relation):
        return f"things under “{relation}”"
    noun, preposition, complement = relation.partition(" of ")
    ends = "ies" if noun.endswith("y") else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{noun[:-1] if ends == 'ies' else noun}{ends}{preposition}{complement}"


def is_free(triple: Triple) -> bool:
    """Whether a relation is a question in words; in it, ``…`` stands for an earlier answer.

    >>> is_free(Triple("Oru", "when was … founded", "1901")), is_free(Triple("A", "spouse", "B"))
    (True, False)
    """
    words = triple.relation
    return "…" in words or words.endswith("?") or bool(_QUESTION_OPENS.match(words))


def filled_question(triples: Sequence[Triple]) -> str:
    """Return the question of a free hop, with earlier answers filled in.

    >>> filled_question([Triple("Oru", "when was … founded", "1901")])
    'when was Oru founded'
    """
    words = triples[0].relation
    for triple in triples:
        words = words.replace("…", triple.head, 1)
    return _REPEATED_ARTICLE.sub(r"\1", words)


def wordings(triple: Triple) -> tuple[str, ...]:
    """Return all clauses that state a triple whose relation is not free.

    >>> wordings(Triple("Dune Rain", "director", "Ors Velt"))[0]
    'Dune Rain was directed by Ors Velt'
    """
    templates = _WORDINGS["statements"].get(triple.relation)
    people = clean(triple.tail)
    if is_nation(people) and not is_country(people):
        templates = _WORDINGS["of_a_people"].get(triple.relation, templates)
    patterns = templates or [f"{noun_of(triple.relation)} of {{h}} is {{t}}"]
    date = as_date(triple.tail)
    preposition = "on" if date and date.day else "in"
    tail = triple.tail.title() if date and triple.tail.islower() else triple.tail
    return tuple(fill(pattern, on=preposition, h=triple.head, t=tail) for pattern in patterns)


def state(triples: Sequence[Triple], choice: int) -> str:
    """Write a fact as a clause; ``choice`` selects the wording."""
    triple = triples[0]
    if is_free(triple):
        question = filled_question(triples).strip(" ?") + "?"
        answer = _FULL_STOP.sub("", triple.tail)
        if len(answer.split()) > MAX_NAME_WORDS:
            answer = f"“{answer}”"
        return fill(pick(_WORDINGS["answers"], choice), q=question, t=answer)
    return pick(wordings(triple), choice)


def state_sentence(triples: Sequence[Triple]) -> str:
    """Write a fact as a sentence, in the first wording."""
    clause = state(triples, 0)
    return f"{clause[:1].upper()}{clause[1:]}."


def quote_sentence(passage: Passage, sentence: int, needed: str) -> str:
    """Quote a passage's sentence (number from 0) so that it can be understood by itself.

    If the passage begins with its title, the title replaces a pronoun that opens the sentence. A long sentence is cut
    after the clause that has ``needed``.

    >>> page = Passage("Ana Vorr (poet)", ("Ana Vorr was a poet.", "She lived in Oru."))
    >>> quote_sentence(page, 1, "Oru")
    'Ana Vorr lived in Oru.'
    """
    title = without_qualifier(passage.title)
    words = " ".join(passage.sentences[sentence].split())
    if needed != passage.title:
        words = _cut_after_needed(words, needed)
    if not title.strip():
        return words
    before = passage.sentences[sentence - 1] if sentence else ""
    follows_subject = before.strip().startswith(title.split()[0]) or _PRONOUN.match(before.strip())
    if not follows_subject or not names_subject(passage, passage.sentences[0]) or title.startswith("List"):
        return words  # it is unknown whom a pronoun means
    text = _PRONOUN.sub(lambda _: title, words)
    text = _POSSESSIVE.sub(lambda _: f"{title}'s", text)
    if needed in words and needed not in text:
        return words
    return text


def reword(clause: str, choice: int) -> str:
    """Replace some words of a clause by words that mean the same; ``choice`` selects which.

    >>> reword("Dune Rain is a film by Ors Velt", 1), reword("It was founded in Oru", 1)
    ('Dune Rain is a movie by Ors Velt', 'It was established in Oru')
    """

    def replacement(match: re.Match[str]) -> str:
        return match[0] if (choice + match.start()) % _KEPT_IN == _KEPT_IN - 1 else _WORDINGS["rewordings"][match[0]]

    return _REWORDED.sub(replacement, clause)


def as_clause(sentence: str, title: str) -> str:
    """Return a sentence as it continues after "says that": in lower case, unless a name opens it.

    >>> as_clause("The idea was his.", "Ana Vorr"), as_clause("The Silent Ford is a film.", "The Silent Ford")
    ('the idea was his.', 'The Silent Ford is a film.')
    """
    first, _, rest = sentence.partition(" ")
    opens_a_name = sentence.startswith(title.split(" (")[0]) or rest[:1].isupper()
    return sentence if opens_a_name or first.lower() not in _LOWER_CASE_OPENERS else f"{first.lower()} {rest}"


def names_subject(passage: Passage, sentence: str) -> bool:
    """Whether a sentence names its passage's subject, so that it can be understood by itself.

    >>> names_subject(Passage("Oru", ("A big town.",)), "A big town.")
    False
    """
    title = without_qualifier(passage.title)
    return title in sentence or any(word in sentence for word in title.split() if len(word) > 3)


def _cut_after_needed(sentence: str, needed: str) -> str:
    """Cut a sentence longer than `MAX_QUOTATION_CHARS` after the clause that has ``needed``."""
    if len(sentence) <= MAX_QUOTATION_CHARS:
        return sentence
    match = whole_words_pattern(needed, re.IGNORECASE).search(sentence)
    for end in re.finditer(r"[,;] | and | but ", sentence[match.end() :]) if match else ():
        clause = sentence[: match.end() + end.start()] if match else sentence
        if clause.count("(") == clause.count(")") and clause.count('"') % 2 == 0:
            return clause.rstrip(" ,;") + "."
    return sentence


def list_steps(numbers: Sequence[int]) -> str:
    """Write a list of step numbers.

    >>> list_steps([1]), list_steps([1, 2]), list_steps([1, 2, 4])
    ('Step 1', 'Step 1 and Step 2', 'Step 1, Step 2 and Step 4')
    """
    names = [f"Step {number}" for number in numbers]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_QUESTIONS: Mapping[str, Any] = load("questions")


def phrase_question(triples: Sequence[Triple], for_head: bool = False) -> str:
    """Write the question that a fact answers with its tail; ``for_head``: with its head.

    >>> phrase_question([Triple("Dune Rain", "director", "Ors Velt")])
    'Who directed Dune Rain?'
    >>> mascot = [Triple("Oru", "mascot", "Bo")]
    >>> phrase_question(mascot), phrase_question(mascot, for_head=True)
    ('What is the mascot of Oru?', 'What has Bo as its mascot?')
    """
    first = triples[0]
    if is_free(first):
        words = " ".join(filled_question(triples).split()).strip(" ?") + "?"
        return words[:1].upper() + words[1:]
    if for_head:
        fallback = f"What has {{t}} as its {first.relation}?"
        return fill(_QUESTIONS["of_the_head"].get(first.relation, fallback), t=first.tail)
    fallback = f"What is the {first.relation} of {{h}}?"
    return fill(_QUESTIONS["questions"].get(first.relation, fallback), h=first.head)


def besides(question: str, answers: Sequence[str]) -> str:
    """Write a question for an answer besides the known ones.

    >>> besides("Who directed Dune Rain?", ["Ors Velt"])
    'Besides Ors Velt, who directed Dune Rain?'
    """
    opened = question[:1].lower() + question[1:]
    return fill(_QUESTIONS["besides"], known=" and ".join(answers), q=opened)


def condition_on(question: str, answered: Sequence[tuple[str, str]]) -> str:
    """Write a question on the condition of other questions' answers, given as pairs of question and answer.

    >>> condition_on("Where was its director born?", [("Who directed Dune Rain?", "Ors Velt")])
    'Where was its director born, given that the answer to “Who directed Dune Rain?” is Ors Velt?'
    """
    conditions = " and ".join(f"the answer to “{subquestion}” is {answer}" for subquestion, answer in answered)
    return fill(_QUESTIONS["given"], q=question.rstrip(" ?"), found=conditions) if conditions else question
