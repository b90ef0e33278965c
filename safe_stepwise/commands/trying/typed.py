"""What a stranger types, as a question with its passages: data, of a limited size."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.records import Passage, Question, Triple, identity

LIMITS: Mapping[str, int] = {"question": 500, "passages": 20_000, "facts": 4_000, "answer": 200}
"""Characters of each field."""
MOST_PASSAGES, MOST_FACTS = 20, 12
TITLE = "# "
"""What a passage's title stands behind, on a line of its own."""


def typed_question(question: str, passages: str, facts: str = "", answer: str = "") -> Question:
    """The question that four fields make; ``UserError`` for what is too much, or none.

    A blank line ends a passage; a fact is a line ``head | relation | tail``. Facts and answer may
    be left out: players without a model go by them, and so does the checker.

    >>> pages = "# Low Tide\\nA film by Ana Brell.\\n\\nAna Brell was born in Oru."
    >>> facts = "Low Tide | director | Ana Brell\\nAna Brell | place of birth | Oru"
    >>> found = typed_question("Where was the director of Low Tide born?", pages, facts)
    >>> found.passages[0].title, found.hops, found.answer
    ('Low Tide', 2, 'Oru')
    """
    fields = {"question": question, "passages": passages, "facts": facts, "answer": answer}
    texts = {name: _limited(name, text) for name, text in fields.items()}
    asked, known = " ".join(texts["question"].split()), tuple(_facts(texts["facts"]))
    if not asked:
        raise UserError("there is no question: type one")
    pages = [*_pages(texts["passages"], known)]
    if not pages:
        raise UserError("there are no passages: the loop answers from them, type at least one")
    if len(pages) > MOST_PASSAGES:
        raise UserError(f"there are {len(pages)} passages: {MOST_PASSAGES} at most")
    for number, fact in enumerate(known, 1):
        if not any(_names(page, fact) for page in pages):
            raise UserError(
                f"fact {number}: no passage names both “{fact.head}” and “{fact.tail}”; a fact has to stand in one"
            )
    told = " ".join(texts["answer"].split()) or (known[-1].tail if known else "")
    ends = {end.casefold() for fact in known for end in (fact.head, fact.tail)}
    if known and told.casefold() not in {"yes", "no", *ends}:
        raise UserError("the answer has to be yes, no, or one end of a fact")
    named = identity([asked, [[page.title, page.text] for page in pages]])
    return Question(
        id=named,
        benchmark="2wikimultihopqa",  # whose annotations are facts
        split="",
        question=asked,
        answer=told,
        kind="",
        hops=min(len(known), sum(page.is_gold for page in pages)),  # one may state several
        passages=tuple(pages),
        evidence=known,
    )


def typed_fields(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What to type for a row with annotations: question, passages, facts and answer."""
    pages = (f"{TITLE}{page['title']}\n{' '.join(page['sentences'])}" for page in row["passages"])
    facts = (f"{one['head']} | {one['relation']} | {one['tail']}" for one in row["evidence"])
    return row["question"], "\n\n".join(pages), "\n".join(facts), row["answer"]


def _limited(name: str, text: Any) -> str:
    if not isinstance(text, str | None):
        raise UserError(f"the {name} has to be text")
    found, most = text or "", LIMITS[name]
    if len(found) > most:
        raise UserError(f"the field {name} has {len(found):,} characters: {most:,} at most")
    # Half a surrogate pair is in no encoding, and NUL is in no file of replies.
    return found.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _facts(text: str) -> Iterator[Triple]:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1 or len(lines) > MOST_FACTS:
        raise UserError(f"facts: {len(lines)}; give none, or from 2 (one is no hop) to {MOST_FACTS}")
    for number, line in enumerate(lines, 1):
        parts = [" ".join(part.split()) for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise UserError(f"fact {number}: write head | relation | tail")
        head, relation, tail = parts
        yield Triple(head, relation, tail)


def _pages(text: str, facts: tuple[Triple, ...]) -> Iterator[Passage]:
    """The passages; gold are those that name both ends of a fact."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            block.append(" ".join(line.split()))
            continue
        titled = bool(block) and block[0].startswith(TITLE)
        title = block[0].removeprefix(TITLE) if titled else ""
        told = " ".join(block[titled:])
        if told:
            page = Passage(title, (told,), False)
            yield replace(page, is_gold=any(_names(page, fact) for fact in facts))
        block = []


def _names(page: Passage, fact: Triple) -> bool:
    """Whether a passage names both ends of a fact."""
    whole = f"{page.title} {page.text}".casefold()
    return fact.head.casefold() in whole and fact.tail.casefold() in whole
