"""IRCoT: a chain of thought whose every sentence retrieves the next passages (Trivedi et al., 2023).

The question retrieves the first passages. The model writes one sentence at a time, and each is the next query. The
chain ends with the sentence that states the answer, or if no step is left. Then a reader with the prompt of `cot`
answers from all passages that were retrieved.

The passages come from a corpus (``search``), without one from the question's own. SAFE's main tables report IRCoT with
Llama 3 8B (v1, Table 3; v2, Table 2).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import sentencex

from safe_stepwise.engines.base import Request
from safe_stepwise.methods import ranking, searching
from safe_stepwise.methods.limits import Search
from safe_stepwise.methods.machine import ANSWER_ENDS, Machine, MachineMethod, Move, State, answering_state
from safe_stepwise.methods.prompting import filled_request, texts_of
from safe_stepwise.methods.reading import PATTERNS, Reading
from safe_stepwise.methods.scene import PromptingScene
from safe_stepwise.records import Passage, Question, Step, select_passages

RETRIEVE, THINK, READ = "retrieve", "think", "read"
TOP = 4
"""The passages that a query retrieves; the paper tries 2, 4, 6 and 8."""
MAX_PASSAGES = 15
"""The maximum number of passages that a question collects, as in the paper."""
MAX_SENTENCE_CHARACTERS = 2_000
_ANSWERS = re.compile(PATTERNS["answer_in_sentence"], re.IGNORECASE)
_PREFACE = re.compile(PATTERNS["preface"], re.IGNORECASE)
_MARK = re.compile(r"^[\s*_>#•-]*+(?:(?:step|thought)\s*)?\(?\d{0,2}[.):]?(?<=[.):])\s+|^[\s*_>#•-]++", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """Options of IRCoT; ``max_steps`` is the maximum number of sentences of the chain (the paper's limit is 8)."""

    max_steps: int = 8
    search: Search | None = field(default=None, compare=False, repr=False)
    """The search of a corpus."""

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise ValueError("max_steps has to be 1 or more")


@dataclass(frozen=True, slots=True)
class ChainMemory:
    """The machine's memory of a question: what was retrieved, the sentences written, and the answer.

    ``question`` has its own passages and those that a corpus adds; ``retrieved`` are the numbers (from 1) of the
    passages that the model sees, in the order in which they were retrieved.
    """

    question: Question
    options: RetrievalOptions
    retrieved: tuple[int, ...] = ()
    sentences: tuple[str, ...] = ()
    answer: str = ""

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(self.question.passages[number - 1] for number in self.retrieved)

    @property
    def scene(self) -> PromptingScene:
        question = select_passages(self.question, self.retrieved)
        turns = tuple((sentence, "") for sentence in self.sentences)
        return PromptingScene(question, turns=turns, numbers=self.retrieved)


def read_sentence(text: str) -> str:
    r"""Return the first sentence of a reply, without marks and a preface; the rest is dropped, as in the paper.

    >>> read_sentence("Sure!\n**2.** Oru lies on the Vel. It is a town.")
    'Oru lies on the Vel.'
    """
    for line in text[:MAX_SENTENCE_CHARACTERS].replace("*", "").splitlines():
        if line.lstrip().startswith("```"):
            continue
        for piece in sentencex.segment("en", _MARK.sub("", line)):
            sentence = " ".join(_MARK.sub("", piece).split())
            if re.search(r"[^\W\d_]", sentence) and not _PREFACE.fullmatch(sentence):
                return sentence
    return ""


def _search_own(passages: Sequence[Passage]) -> Search:
    titles, texts = [page.title for page in passages], [page.text for page in passages]
    return lambda query: [passages[n] for n in ranking.rank(query, titles, texts)]


def _retrieve(memory: ChainMemory, _: Reading) -> Move[ChainMemory]:
    query = memory.sentences[-1] if memory.sentences else memory.question.question
    search = memory.options.search or _search_own(memory.question.passages)
    new = searching.retrieve_new(search, query, memory.passages, TOP)[: MAX_PASSAGES - len(memory.retrieved)]
    pages, numbers, size = list(memory.question.passages), list(memory.retrieved), len(memory.question.passages)
    places = {(page.title, page.text): n for n, page in reversed([*enumerate(pages, 1)])}  # of equal ones the first
    for page in new:
        if (page.title, page.text) not in places:
            pages.append(page)
            places[page.title, page.text] = len(pages)
        numbers.append(places[page.title, page.text])
    question = replace(memory.question, passages=tuple(pages))
    # The trajectory lists what the question lacks after its own passages, under the same numbers.
    return Move(THINK, replace(memory, question=question, retrieved=tuple(numbers)), tuple(pages[size:]))


def _ask_thinker(memory: ChainMemory) -> Request:
    text = memory.question.question
    numbered = list(zip(memory.retrieved, memory.passages, strict=True))
    return filled_request("ircot/think", memory.scene, question=text, passages=numbered, sentences=memory.sentences)


def _think(memory: ChainMemory, reading: Reading) -> Move[ChainMemory]:
    if not (sentence := reading.value["sentence"]):
        return Move(READ, memory)
    memory = replace(memory, sentences=(*memory.sentences, sentence))
    is_over = _ANSWERS.match(sentence) or len(memory.sentences) >= memory.options.max_steps
    return Move(READ if is_over else RETRIEVE, memory)


def _ask_reader(memory: ChainMemory) -> Request:
    text = memory.question.question
    return filled_request("cot/cot", memory.scene, evidence=False, question=text, passages=memory.passages)


def _make_steps(memory: ChainMemory) -> tuple[Step, ...]:
    return tuple(
        Step(number, sentence, "Logical" if _ANSWERS.match(sentence) else "Attribution")
        for number, sentence in enumerate(memory.sentences, 1)
    )


MACHINE = Machine(
    {
        RETRIEVE: State(RETRIEVE, frozenset((THINK,)), _retrieve),
        THINK: State(
            THINK,
            frozenset((RETRIEVE, READ)),
            _think,
            _ask_thinker,
            lambda _, text: Reading("strict", {"sentence": read_sentence(text)}, text=text),
        ),
        READ: answering_state(READ, _ask_reader, lambda m: texts_of(m.passages, m.question.question)),
    },
    ANSWER_ENDS,
    number=lambda memory: len(memory.sentences),
    steps=_make_steps,
)
IRCOT = MachineMethod("ircot", "IRCoT", MACHINE, ChainMemory, ("ircot/think", "cot/cot"), RetrievalOptions)
