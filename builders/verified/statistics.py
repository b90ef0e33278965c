"""The statistics of a build, in the form of ``statistics/*.json``."""

import hashlib
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from builders.benchmarks.sources import InputSource
from builders.verified.questions import PASSAGES
from builders.verified.teachers.published import QuestionList, plain, plain_texts
from builders.work.parquet import SplitFiles
from safe_stepwise.records import NO_NOISE, NOISE_TYPES, NoiseType
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
    """The agreement of the annotations alone; None if no row has a reference label."""


@dataclass(frozen=True, slots=True)
class ListUse:
    """Counts of a list of questions; ``entries`` is the sum of repeated, matched and unmatched ones."""

    name: str
    digest: str
    """SHA-256 of the file (64 hex digits)."""
    entries: int
    repeated: int
    matched: int
    unmatched: int


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows that lists of questions call noise."""

    lists: tuple[ListUse, ...]
    rows: int
    loosely: int
    """Rows among ``rows`` that match only after blanks and Unicode are normalised."""
    shared: int
    """Texts that name more than one row."""
    pathless: int
    """Rows that no list names and the annotations doubt: verified, without a path."""


@dataclass(frozen=True, slots=True)
class NoiseExample:
    """A row with noise, as an example for the card."""

    id: str
    noise_type: NoiseType
    question: str
    answer: str
    explanation: str


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
    listed: Listed | None = None
    """None if no list labelled the rows."""
    examples: tuple[NoiseExample, ...] = ()
    """Rows of each type of noise; none if the questions are not published."""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The columns of a benchmark of the user's own, by field; empty for the benchmarks of this toolkit."""
    undecided: int = 0
    """Rows of which nothing was proved: neither verified nor noise."""
    adjudication: Adjudication | None = None
    """None if no model was asked about what the annotations doubt."""

    def __post_init__(self) -> None:
        accounted = self.verified + sum(self.unverifiable.values()) + self.unparsed + self.undecided + self.rejected
        if accounted != self.rows:
            raise AssertionError(f"{self.rows} rows in, {accounted} accounted for")


EXAMPLES = 3
"""Examples of noise that a build keeps at least, if it has as many."""


class Tally:
    """Counts over labelled rows; ``published`` are reference labels by id, ``lists`` those that labelled the rows."""

    def __init__(self, published: Mapping[str, bool] | None, lists: Sequence[QuestionList] = ()) -> None:
        self.rows = Counter[tuple[str, str]]()
        """By kind of question and noise type."""
        self.outcomes = Counter[Outcome]()
        self._unadjudicated = Counter[Outcome]()
        self._rulings = Counter[tuple[str, str]]()
        """Rows by noise type before and after a model ruled on them."""
        self._published = published
        self._least: dict[str, list[tuple[bytes, NoiseExample]]] = {}
        """By type of noise, the rows whose ids have the least digests."""
        self.lists, self._listed = lists, plain_texts(lists)
        self._named = Counter[str]()
        """Rows that a list names, by their question."""
        self._pathless = 0

    def add(self, table: pa.Table, types: Sequence[NoiseType]) -> None:
        self.rows.update(zip(table.column("kind").to_pylist(), types, strict=True))
        self.outcomes.update(_outcomes(table, types, self._published))
        earlier_types = table.column("unadjudicated").to_pylist()
        if any(earlier_types):
            self._rulings.update(zip(earlier_types, types, strict=True))
            self._unadjudicated.update(_outcomes(table, earlier_types, self._published))
        self._keep_examples(table, types)
        if self.lists:
            self._named.update(q for q in table.column("question").to_pylist() if plain(q) in self._listed)
            lengths = pc.list_value_length(table.column("reasoning_path")).to_pylist()
            self._pathless += sum(t == "none" and not steps for t, steps in zip(types, lengths, strict=True))

    @property
    def adjudication(self) -> Adjudication | None:
        """The effect of adjudication; None if no model was asked."""
        if not self._rulings:
            return None
        before = measure_agreement(self._unadjudicated) if self._unadjudicated else None
        changes = {f"{old} to {new}": rows for (old, new), rows in sorted(self._rulings.items()) if old != new}
        return Adjudication(changes, before)

    @property
    def examples(self) -> tuple[NoiseExample, ...]:
        """One row of each type of noise, then a next row of each until there are enough."""
        turns = sorted(
            (turn, NOISE_TYPES.index(row.noise_type), row)
            for rows in self._least.values()
            for turn, (_, row) in enumerate(rows)
        )
        return tuple(row for _, _, row in turns[: max(EXAMPLES, len(self._least))])

    @property
    def listed(self) -> Listed | None:
        """Counts of the rows that the lists name; None without lists."""
        if not self.lists:
            return None
        exact = {text for questions in self.lists for text in questions.texts}
        texts = self._plain_named()
        return Listed(
            lists=tuple(map(self._use, self.lists)),
            rows=texts.total(),
            loosely=sum(rows for question, rows in self._named.items() if question not in exact),
            shared=sum(rows > 1 for rows in texts.values()),
            pathless=self._pathless,
        )

    def unmatched(self, questions: QuestionList) -> list[str]:
        """Return the distinct questions of a list that no row matches."""
        row_counts = self._plain_named()
        return [text for text in dict.fromkeys(questions.texts) if plain(text) not in row_counts]

    def _plain_named(self) -> Counter[str]:
        """Return the rows that a list names, by the plain form of their question."""
        row_counts = Counter[str]()
        for question, rows in self._named.items():
            row_counts[plain(question)] += rows
        return row_counts

    def _use(self, questions: QuestionList) -> ListUse:
        entries, texts, lacking = len(questions.texts), len(set(questions.texts)), len(self.unmatched(questions))
        return ListUse(questions.name, questions.sha256, entries, entries - texts, texts - lacking, lacking)

    def _keep_examples(self, table: pa.Table, types: Sequence[NoiseType]) -> None:
        for row, (id_, type_) in enumerate(zip(table.column("id").to_pylist(), types, strict=True)):
            if type_ in NO_NOISE:
                continue
            digest = hashlib.sha256(id_.encode()).digest()
            rows = self._least.setdefault(type_, [])
            if len(rows) < EXAMPLES or digest < rows[-1][0]:
                texts = (table.column(name)[row].as_py() for name in ("question", "answer", "explanation"))
                insort(rows, (digest, NoiseExample(id_, type_, *texts)), key=itemgetter(0))
                del rows[EXAMPLES:]


def _outcomes(table: pa.Table, types: Sequence[str], published: Mapping[str, bool] | None) -> Iterator[Outcome]:
    """Yield (true noise, label, confidence) of each row whose true noise is known."""
    truths: Iterable[bool | None] = table.column("known_noise").to_pylist()
    if published is not None:
        truths = map(published.get, table.column("id").to_pylist())
    for is_noise, type_, confidence in zip(truths, types, table.column("confidence").to_pylist(), strict=True):
        if is_noise is not None:
            yield is_noise, type_, confidence
