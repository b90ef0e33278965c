"""TRACE: triples of all passages, chained by a model, and an answer from the chain (Fang et al., 2024).

The model turns each passage into triples. Then it chooses the triple that leads on from the chain so far, among those
that share most words with question and chain, until nothing is lacking. It answers from the triples of the chain.
SAFE compares itself with TRACE "under the same context setting" (v1 and v2, section 4.1).

Where our sources do not say: one chain is built greedily, and words rank the triples instead of a dense retriever.
"""

from dataclasses import asdict, dataclass, replace
from itertools import islice

from safe_stepwise.engines.base import Request
from safe_stepwise.methods.machine import ANSWER_ENDS, Machine, MachineMethod, Move, State, answering_state
from safe_stepwise.methods.prompting import filled_request, texts_of
from safe_stepwise.methods.ranking import rank
from safe_stepwise.methods.reading import Reading, list_reader, number_in, read, triple
from safe_stepwise.methods.scene import Scene, TripleScene
from safe_stepwise.records import Question, Step, Triple

EXTRACT, CHOOSE, ANSWER = "extract", "choose", "answer"
MAX_TRIPLES_OF_PASSAGE = 200


@dataclass(frozen=True, slots=True)
class TripleOptions:
    """Options of TRACE: how many triples the chain has at most, and from how many the model chooses at a time."""

    max_triples: int = 6
    candidates: int = 20

    def __post_init__(self) -> None:
        if self.max_triples < 1 or self.candidates < 1:
            raise ValueError("max_triples and candidates have to be 1 or more")


@dataclass(frozen=True, slots=True)
class TripleMemory:
    """The machine's memory of a question: the passages read so far, their triples, the chain, and the answer."""

    question: Question
    options: TripleOptions
    passages_read: int = 0
    triples: tuple[Triple, ...] = ()
    chain: tuple[Triple, ...] = ()
    answer: str = ""

    @property
    def candidates(self) -> tuple[Triple, ...]:
        """The triples to choose from, the likeliest first."""
        open_triples = [t for t in self.triples if t not in self.chain]
        query = " ".join((self.question.question, *map(_words, self.chain)))
        ranked = rank(query, [t.head for t in open_triples], [f"{t.relation} {t.tail}" for t in open_triples])
        likeliest_first = dict.fromkeys((*ranked, *range(len(open_triples))))
        return tuple(open_triples[n] for n in islice(likeliest_first, self.options.candidates))

    @property
    def scene(self) -> TripleScene:
        return TripleScene(self.question, self.candidates, self.chain)


def _words(fact: Triple) -> str:
    return f"{fact.head} {fact.relation} {fact.tail}"


def _ask_extractor(memory: TripleMemory) -> Request | None:
    if memory.passages_read >= len(memory.question.passages):
        return None
    page = memory.question.passages[memory.passages_read]
    scene = Scene(memory.question, memory.passages_read + 1)
    return filled_request("trace/extract", scene, title=page.title, text=page.text)


def _read_triples(memory: TripleMemory, text: str) -> Reading:
    page = memory.question.passages[memory.passages_read]
    fields = {"triples": list_reader(triple, MAX_TRIPLES_OF_PASSAGE)}
    return read(text, fields, texts_of([page]))


def _extract(memory: TripleMemory, reading: Reading) -> Move[TripleMemory]:
    number = memory.passages_read + 1
    if number > len(memory.question.passages):
        return Move(CHOOSE, memory)
    # A passage whose triples could not be read has none; triples that can be read count, whatever stands beside them.
    entries = reading.value.get("triples", [])
    new = dict.fromkeys(Triple(head, relation, tail, number) for head, relation, tail in entries)
    return Move(EXTRACT, replace(memory, passages_read=number, triples=(*memory.triples, *new)))


def _ask_chooser(memory: TripleMemory) -> Request | None:
    if len(memory.chain) >= memory.options.max_triples or not (candidates := memory.candidates):
        return None
    chain, listed = [asdict(t) for t in memory.chain], [asdict(t) for t in candidates]
    return filled_request(
        "trace/choose", memory.scene, question=memory.question.question, chain=chain, candidates=listed
    )


def _read_choice(memory: TripleMemory, text: str) -> Reading:
    quoted = [memory.question.question, *map(_words, memory.candidates)]
    return read(text, {"number": number_in(0, len(memory.candidates), "triple")}, quoted)


def _choose(memory: TripleMemory, reading: Reading) -> Move[TripleMemory]:
    number = reading.value.get("number", 0)
    if not number:
        return Move(ANSWER, memory)
    return Move(CHOOSE, replace(memory, chain=(*memory.chain, memory.candidates[number - 1])))


def _ask_reader(memory: TripleMemory) -> Request:
    chain = [asdict(t) for t in memory.chain]
    return filled_request("trace/answer", memory.scene, question=memory.question.question, chain=chain)


def _make_steps(memory: TripleMemory) -> tuple[Step, ...]:
    texts = (f"According to Passage {t.passage}, {_words(t)}." for t in memory.chain)
    return tuple(Step(number, text, "Attribution") for number, text in enumerate(texts, 1))


MACHINE = Machine(
    {
        EXTRACT: State(EXTRACT, frozenset((EXTRACT, CHOOSE)), _extract, _ask_extractor, _read_triples),
        CHOOSE: State(CHOOSE, frozenset((CHOOSE, ANSWER)), _choose, _ask_chooser, _read_choice),
        ANSWER: answering_state(ANSWER, _ask_reader, lambda m: [m.question.question, *map(_words, m.chain)]),
    },
    ANSWER_ENDS,
    number=lambda memory: len(memory.chain),
    steps=_make_steps,
)
PROMPTS = ("trace/extract", "trace/choose", "trace/answer")
TRACE = MachineMethod("trace", "TRACE", MACHINE, TripleMemory, PROMPTS, TripleOptions)
