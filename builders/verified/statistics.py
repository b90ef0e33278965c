"""The statistics of a build, in the form of ``statistics/*.json``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from builders.benchmarks.sources import InputSource
from builders.verified.questions import PASSAGES
from builders.verified.teachers.published import QuestionList, plain
from builders.work.parquet import SplitFiles
from safe_stepwise.records import NoiseType
from safe_stepwise.store.agreement import Agreement, Outcome, measure_agreement

TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Counts of the evaluation sample; ``left_out`` are the rows that cannot have as many passages."""

    size: int
    rows: int
    left_out: int
    passages: int = PASSAGES
    exact: bool = True
    """Whether each question has exactly ``passages`` passages, not at most."""


@dataclass(frozen=True, slots=True)
class KindCounts:
    """Rows of one kind of question."""

    rows: int
    unverifiable: int


@dataclass(frozen=True, slots=True)
class ReferenceLabels:
    """Agreement of a build's labels with reference labels: the truth, or published ones."""

    by: str
    """`TRUTH` for synthetic rows, or the name of a file of published labels."""
    digest: str
    """SHA-256 of the file (64 hex digits); empty for the truth, which is in the source."""
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class Adjudication:
    """The effect of asking a model about what the annotations doubt."""

    changes: Mapping[str, int]
    """Rows whose noise type changed, by ``BEFORE to AFTER``."""
    before: Agreement | None
    """The agreement of annotations without a model; None if no row has a reference label."""


@dataclass(frozen=True, slots=True)
class ListMatches:
    name: str
    digest: str
    """SHA-256 of the file (64 hex digits)."""
    matched: int
    unmatched: int


@dataclass(frozen=True, slots=True)
class ListCounts:
    """Rows that lists of questions call noise."""

    lists: tuple[ListMatches, ...]
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics of one build; ``rows`` counts everything that was read."""

    version: str
    seed: int
    limit: int | None
    files: Mapping[str, Mapping[str, SplitFiles]]
    """By dataset and config."""
    libraries: Mapping[str, str]
    code_sha256: str
    benchmark: str
    split: str
    source: InputSource
    teacher: str
    simulated: bool
    """Whether a script or annotations stood in for a model."""
    replies: Mapping[str, int]
    """Replies of a model by how they could be read."""
    rows: int
    verified: int
    unverifiable: Mapping[str, int]
    unparsed: int
    rejected: int
    kinds: Mapping[str, KindCounts]
    evaluation: SampleCounts | None
    license: str
    homepage: str
    citation: str
    caveat: str = ""
    """Builds of earlier versions lack this field and the following ones."""
    min_confidence: float = 0.0
    known: ReferenceLabels | None = None
    """None if no row has a reference label."""
    listed: ListCounts | None = None
    """None if no list labelled the rows."""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The columns of a benchmark of the user's own, by field; empty for the benchmarks of this toolkit."""
    added: Sequence[str] = ()
    """What passages of the user's own benchmark lack and got: ``sentences``, ``title``."""
    undecided: int = 0
    """Rows of which nothing was proved: neither verified nor noise."""
    adjudication: Adjudication | None = None
    """None if no model was asked about what the annotations doubt."""

    def __post_init__(self) -> None:
        accounted = self.verified + sum(self.unverifiable.values()) + self.unparsed + self.undecided + self.rejected
        if accounted != self.rows:
            raise AssertionError(f"{self.rows} rows in, {accounted} accounted for")


class Tally:
    """Counts over labelled rows; ``published`` are reference labels by id, ``lists`` those that labelled the rows."""

    def __init__(self, published: Mapping[str, bool] | None, lists: Sequence[QuestionList] = ()) -> None:
        self.rows = Counter[tuple[str, str]]()
        """By kind of question and noise type."""
        self.outcomes = Counter[Outcome]()
        self._outcomes_before = Counter[Outcome]()
        self._rulings = Counter[tuple[str, str]]()
        """Rows by noise type before and after a model ruled on them."""
        self._published = published
        self.lists = lists
        self._listed = {plain(text) for questions in lists for text in questions.texts}
        self._matched = Counter[str]()
        """Rows that a list names, by the plain form of their question."""

    def add(self, table: pa.Table, types: Sequence[NoiseType]) -> None:
        self.rows.update(zip(table.column("kind").to_pylist(), types, strict=True))
        self.outcomes.update(_list_outcomes(table, types, self._published))
        earlier_types = table.column("unadjudicated").to_pylist()
        if any(earlier_types):
            self._rulings.update(zip(earlier_types, types, strict=True))
            self._outcomes_before.update(_list_outcomes(table, earlier_types, self._published))
        if self.lists:
            questions = map(plain, table.column("question").to_pylist())
            self._matched.update(question for question in questions if question in self._listed)

    @property
    def adjudication(self) -> Adjudication | None:
        """The effect of adjudication; None if no model was asked."""
        if not self._rulings:
            return None
        before = measure_agreement(self._outcomes_before) if self._outcomes_before else None
        changes = {f"{old} to {new}": rows for (old, new), rows in sorted(self._rulings.items()) if old != new}
        return Adjudication(changes, before)

    @property
    def listed(self) -> ListCounts | None:
        """Counts of the rows that the lists name; None without lists."""
        return ListCounts(tuple(map(self._use, self.lists)), self._matched.total()) if self.lists else None

    def unmatched(self, questions: QuestionList) -> list[str]:
        """Return the distinct questions of a list that no row matches."""
        return [text for text in dict.fromkeys(questions.texts) if plain(text) not in self._matched]

    def _use(self, questions: QuestionList) -> ListMatches:
        lacking = len(self.unmatched(questions))
        return ListMatches(questions.name, questions.sha256, len(set(questions.texts)) - lacking, lacking)


def _list_outcomes(table: pa.Table, types: Sequence[str], published: Mapping[str, bool] | None) -> Iterator[Outcome]:
    truths: Iterable[bool | None] = table.column("known_noise").to_pylist()
    if published is not None:
        truths = map(published.get, table.column("id").to_pylist())
    for is_noise, type_, confidence in zip(truths, types, table.column("confidence").to_pylist(), strict=True):
        if is_noise is not None:
            yield is_noise, type_, confidence
