"""Label questions by the SAFE authors' published lists of unverifiable questions.

The lists decide whether a row is noise. They have no type, path or explanation; those come from the `annotations` if
these agree with the lists. Otherwise the type is ``unspecified``, and the explanation names the lists. A row that the
lists call sound and the annotations doubt has no path.

A list is a text file of one question a line, or of one JSON string a line, or one JSON array of strings. An entry
names the rows with its `plain` form, as editors trim blanks and recompose accents.
"""

import functools
import hashlib
import unicodedata
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builders.verified.teachers import Proposal
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import drop_loops, validate
from builders.work.shards import NoModel
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import NO_NOISE, NoiseType, Question, canonical_json
from safe_stepwise.store import boundary, published_labels


@dataclass(frozen=True, slots=True)
class QuestionList:
    """The questions of a list in order, with repeats; ``name`` is that of the file, ``sha256`` of its content."""

    name: str
    sha256: str
    texts: tuple[str, ...]


def plain(text: str) -> str:
    """Normalise a text: Unicode's composed form (NFC), no outer blanks, one space for each inner blank.

    >>> plain(" Who  wrote\\u00a0E\\u0301mile? ")
    'Who wrote Émile?'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def read_list(file: Path) -> QuestionList:
    """Read a list of questions; raise ``UserError``, with the line or entry, for another file or an empty one."""
    content = boundary.read_content(file, boundary.MAX_JSON_BYTES)
    try:
        texts = questions_of(content)
    except ValueError as error:
        raise UserError(f"{file}{error}; name a text file of questions, one a line") from None
    return QuestionList(file.name, hashlib.sha256(content).hexdigest(), tuple(texts))


def questions_of(content: bytes) -> list[str]:
    """Parse a list's questions (UTF-8, no blank lines); raise ``ValueError`` with the line or entry for others."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f":{line}: not UTF-8 text") from None
    # Only newlines end a line: a question may hold other characters that end a line for Python.
    lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
    starts, is_array = {line.lstrip()[0] for line in lines}, text.lstrip().startswith("[")
    if "{" in starts and not is_array:
        raise ValueError(": holds an object of JSON, not questions")
    questions: list[Any] = lines
    with suppress(ValueError):
        if is_array:
            questions = boundary.parse_json(text)
        elif starts == {'"'}:
            questions = list(map(boundary.parse_json, lines))
    if questions is lines and is_array and text.lstrip()[1:].lstrip().startswith('"'):
        raise ValueError(": a JSON array that is damaged or cut short")
    for number, question in enumerate(questions, 1):
        if not isinstance(question, str):
            raise ValueError(f": entry {number} is not the text of a question")
    if not (filled := [question for question in questions if question.strip()]):
        raise ValueError(": holds no question")
    return filled


@dataclass(frozen=True)
class PublishedTeachers(NoModel):
    """Makes the teacher of each question from lists; picklable."""

    lists: tuple[QuestionList, ...]
    alone = None

    @property
    def name(self) -> str:
        """The entry in the ``teacher`` column: the names of the list files, without folders."""
        return f"{published_labels.PUBLISHED}:{','.join(questions.name for questions in self.lists)}"

    @property
    def identity(self) -> str:
        """The name, which explanations quote, and the lists' digests."""
        return canonical_json([self.name, [questions.sha256 for questions in self.lists]])

    @functools.cached_property
    def noise(self) -> frozenset[str]:
        """The questions that the lists name, in their plain form."""
        return frozenset(plain(text) for questions in self.lists for text in questions.texts)

    def __call__(self) -> "PublishedTeacher":
        return PublishedTeacher(self.name, self.noise)


def load_lists(files: Iterable[Path]) -> PublishedTeachers:
    """Return the teachers of some lists; raise ``UserError`` for a file that is not a list of questions."""
    return PublishedTeachers(tuple(map(read_list, files)))


class PublishedTeacher(AnnotationsTeacher):
    """A teacher by annotations, overruled by the lists."""

    def __init__(self, name: str, noise: Set[str]) -> None:
        super().__init__()
        self.name = name
        self._noise = noise
        """The plain forms of the questions that the lists name."""

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """Propose the label of the lists, with path and explanation of the annotations if these agree."""
        proposal = await super().propose(question, graph)
        proposal = replace(proposal, path=drop_loops(proposal.path, question))
        type_, explanation = validate(question, graph, proposal)
        proposal = replace(proposal, noise_type=type_, explanation=explanation, is_final=True)
        is_noise = plain(question.question) in self._noise
        if type_ not in ("unparsed", "undecided") and is_noise == (type_ not in NO_NOISE):
            return proposal
        return self._overruled(proposal, is_noise)

    def _overruled(self, proposal: Proposal, is_noise: bool) -> Proposal:
        """Return the label of the lists without confidence and path, as the annotations disagree."""
        verdict = "sound" if proposal.noise_type == "none" else proposal.noise_type
        annotations = f"by the annotations it is {verdict}"
        if proposal.noise_type == "unparsed":
            annotations = "the annotations could not judge it"
        label, source = _LIST_LABELS[is_noise]
        explanation = f"{source} ({self.name.partition(':')[2]}); {annotations}: {proposal.explanation}"
        return Proposal((), label, explanation, None, is_final=True)


_LIST_LABELS: dict[bool, tuple[NoiseType, str]] = {
    True: ("unspecified", "Unverifiable by the SAFE authors' published list, without a reason"),
    False: ("none", "Sound, as the SAFE authors' published list does not name it"),
}
