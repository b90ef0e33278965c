"""A chain: the reasoning that a model wrote about a question, step by step, with the labels of its steps."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from safe_stepwise.errors import RowError
from safe_stepwise.records import Passage, Question, identity
from safe_stepwise.store import boundary, sizes

StepLabel = Literal[1, 0, -1]
"""A step's label, as in AgentProcessBench: right (1), neutral (0), or wrong (-1)."""
RIGHT: StepLabel = 1
WRONG: StepLabel = -1
_SEARCH_PREFIX = "Search: "
"""The beginning of a step that only searches, when it is shown."""
ANSWER = re.compile(r"<answer>((?:(?!</?answer>).)*+)</answer>", re.DOTALL)


_LIST_MARK = re.compile(r"^[ \t]*(?:\(?\d{1,2}[.)]|[-*•]|#{1,6})[ \t]+", re.MULTILINE)
_DOCUMENT = re.compile(r"\b(?:the )?doc(?:ument)? ?\[?\d{1,3}\]?(?!\d)", re.IGNORECASE)
"""A document's number by a search engine, which is not the number of a passage."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A part of what a model wrote: a claim, a paragraph, or a turn that may call a search.

    ``known_passages`` is how many of the chain's passages the model had been shown by then (None: all of them),
    ``key`` the step's name in the source, by which other files refer to it. A step that only searches has no ``text``.
    """

    text: str
    known_passages: int | None = None
    searches: tuple[str, ...] = ()
    label: StepLabel | None = None
    key: str = ""

    def __post_init__(self) -> None:
        if self.known_passages is not None and self.known_passages < 0:
            raise ValueError(f"it knows {self.known_passages} passages")

    @property
    def is_search(self) -> bool:
        """Whether the step only searches.

        >>> ChainStep("", searches=("Oru",)).is_search, ChainStep("I look for Oru.", searches=("Oru",)).is_search
        (True, False)
        """
        return not self.text and bool(self.searches)

    @property
    def shown_text(self) -> str:
        """The step as one line without list marks: its text, a tagged answer spelled out, or what it searches for.

        >>> ChainStep("It lies there.\\n<answer>Oru</answer>").shown_text, ChainStep("", searches=("Oru",)).shown_text
        ('It lies there. The answer is Oru.', 'Search: Oru')
        """
        if self.is_search:
            return _SEARCH_PREFIX + " ".join("; ".join(self.searches).split())
        text = ANSWER.sub(lambda tag: f"The answer is {tag[1].strip().rstrip('.')}.", self.text)
        return " ".join(_DOCUMENT.sub("the text", _LIST_MARK.sub("", text)).replace("**", "").split())


@dataclass(frozen=True, slots=True)
class Chain:
    """A model's steps about a question, in order, with the passages that it was shown.

    ``references`` are the accepted answers, ``prediction`` is the model's answer; ``is_right`` is the source's verdict
    on it.
    """

    question: str
    steps: tuple[ChainStep, ...]
    id: str = ""
    passages: tuple[Passage, ...] = ()
    references: tuple[str, ...] = ()
    prediction: str = ""
    is_right: bool | None = None
    model: str = ""

    def known_to(self, step: ChainStep) -> tuple[Passage, ...]:
        """Return the passages that the model had been shown when it wrote a step."""
        return self.passages[: step.known_passages]


def check_chain(chain: Chain) -> Chain:
    """Return a valid chain with an id (a digest of its content if it has none); raise ``RowError`` for another."""
    boundary.read(Chain, chain, "the row")
    if not chain.question.strip():
        raise RowError("its question is empty")
    if not chain.steps:
        raise RowError("it has no steps")
    if (longest := max(len(step.text) for step in chain.steps)) > sizes.MAX_STEP_CHARS:
        raise RowError(f"a step has {longest} characters, at most {sizes.MAX_STEP_CHARS} are read")
    sizes.check_steps([step.shown_text for step in chain.steps])
    sizes.check_size(Question("", "", "", chain.question, "", passages=chain.passages))
    for number, step in enumerate(chain.steps, 1):
        if not step.shown_text:
            raise RowError(f"step {number} is empty")
        if step.known_passages is not None and step.known_passages > len(chain.passages):
            raise RowError(f"step {number} knows {step.known_passages} passages of {len(chain.passages)}")
    content = [chain.question, [step.shown_text for step in chain.steps], [page.text for page in chain.passages]]
    return replace(chain, id=chain.id or identity(content))


_TITLE_KEYS, _TEXT_KEYS = (
    ("title", "name", "heading"),
    ("contents", "sentences", "text", "content", "snippet", "body", "passage", "page_content", "document"),
)


def page_of(content: Any) -> Passage:
    """Read a passage: a text, or an object with title and text (or sentences); else raises ``ValueError``."""
    if isinstance(content, str):
        return Passage("", (content,))
    if not isinstance(content, Mapping):
        raise RowError("a passage is neither a text nor an object")
    text = next((content[name] for name in _TEXT_KEYS if content.get(name)), None)
    title = next((content[name] for name in _TITLE_KEYS if content.get(name)), "")
    if isinstance(text, str) and not title and "contents" in content:  # as pyserini's indexes have it
        title, _, text = (text if "\n" in text else f"\n{text}").partition("\n")
        title = title.removeprefix('"').removesuffix('"')
    page = {"title": title, "sentences": [text.strip()] if isinstance(text, str) else text}
    return boundary.read(Passage, page, "a passage")


def add_pages(pages: list[Passage], added: Iterable[Passage]) -> int:
    """Append the passages that are not in the list yet; return the new length."""
    pages += [page for page in dict.fromkeys(added) if page not in pages]
    return len(pages)


def with_fresh_pages(
    steps: Iterable[ChainStep], pages: Sequence[Passage]
) -> Iterator[tuple[ChainStep, Sequence[Passage]]]:
    """Yield each step with the passages that the model had been shown by then, and no earlier step had."""
    shown_pages = 0
    for step in steps:
        known_pages = len(pages) if step.known_passages is None else step.known_passages
        yield step, pages[shown_pages:known_pages]
        shown_pages = max(shown_pages, known_pages)
