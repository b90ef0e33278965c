"""Label questions by the SAFE authors' published lists of unverifiable questions.

The lists decide whether a row is noise. They have no type, path or explanation; those come from the `annotations` if
these agree with the lists. Otherwise the type is ``unspecified``, and the explanation names the lists. A row that the
lists call sound and the annotations doubt has no path.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builders.verified.question_lists import ListIndex, QuestionList, read_list
from builders.verified.teachers import Proposal
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import drop_loops, validate
from builders.work.shards import NoModel
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import NoiseType, Question, canonical_json
from safe_stepwise.store.agreement import PUBLISHED, SOUND


@dataclass(frozen=True)
class PublishedTeachers(NoModel):
    """Makes the teacher of each question, from the lists in ``files``; picklable.

    ``digests`` are the SHA-256 of the lists when they were first read. See `load_lists`.
    """

    files: tuple[Path, ...]
    digests: tuple[str, ...]

    @property
    def name(self) -> str:
        """The entry in the ``teacher`` column: the names of the list files, without folders."""
        return f"{PUBLISHED}:{','.join(file.name for file in self.files)}"

    @property
    def identity(self) -> str:
        """The name, which explanations quote, and the lists' digests."""
        return canonical_json([self.name, self.digests])

    def __call__(self) -> "PublishedTeacher":
        return PublishedTeacher(self.name, _index(self))

    def check(self) -> None:  # type: ignore[override]
        """Raise ``UserError`` if a list is missing or was changed since it was first read."""
        _index(self)


def load_lists(files: Sequence[Path]) -> PublishedTeachers:
    """Return the teachers of some lists; raise ``UserError`` for a file that is no list of questions."""
    digests = tuple(read_list(file).sha256 for file in files)
    # A worker of a scheduler may have another working folder.
    return PublishedTeachers(tuple(file.absolute() for file in files), digests)


def lists_of(teachers: object) -> tuple[QuestionList, ...]:
    """Return the lists that label a build's rows; none if another teacher does.

    Raises ``UserError`` for a list that is missing or was changed since it was first read.
    """
    return _read(teachers) if isinstance(teachers, PublishedTeachers) else ()


@functools.lru_cache(maxsize=8)
def _read(teachers: PublishedTeachers) -> tuple[QuestionList, ...]:
    lists = tuple(map(read_list, teachers.files))
    for file, question_list, digest in zip(teachers.files, lists, teachers.digests, strict=True):
        if question_list.sha256 != digest:
            raise UserError(f"{file}: was changed since it was first read; run the command again")
    return lists


@functools.lru_cache(maxsize=8)
def _index(teachers: PublishedTeachers) -> ListIndex:
    """Return the index of the lists, which is made once per process."""
    return ListIndex(_read(teachers))


class PublishedTeacher(AnnotationsTeacher):
    """A teacher by annotations, overruled by the lists."""

    def __init__(self, name: str, index: ListIndex) -> None:
        super().__init__()
        self.name = name
        self._index = index

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        """Propose the label of the lists, with path and explanation of the annotations if these agree."""
        proposal = await super().propose(question, graph)
        proposal = replace(proposal, path=drop_loops(proposal.path, question))
        type_, explanation = validate(question, graph, proposal)
        proposal = replace(proposal, noise_type=type_, explanation=explanation, is_final=True)
        is_noise = self._index.find(question.question) is not None
        if type_ != "unparsed" and is_noise == (type_ not in SOUND):
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
