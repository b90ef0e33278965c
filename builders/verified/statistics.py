"""What a build read and found, in the shape that ``statistics/*.json`` keeps."""

from collections.abc import Mapping
from dataclasses import dataclass

from builders.benchmarks.sources import InputSource
from builders.verified.questions import PASSAGES
from builders.work.plans import BuildRecord
from safe_stepwise.records import NoiseType
from safe_stepwise.store.agreement import Agreement

TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """The evaluation sample; ``left_out`` counts rows that cannot have as many passages."""

    size: int
    rows: int
    left_out: int
    passages: int = PASSAGES


@dataclass(frozen=True, slots=True)
class Kind:
    """Rows of one kind of question."""

    rows: int
    unverifiable: int


@dataclass(frozen=True, slots=True)
class Known:
    """Labels beside the labels that are known of a build's rows: how far the two agree."""

    by: str
    """`TRUTH` of made-up rows, or the name of a file of published labels."""
    digest: str
    """SHA-256 of the file (64 hex digits); empty of the truth, which the source has."""
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class ListUse:
    """A list of questions that labelled a build's rows: its entries, and what became of them.

    ``entries`` are those that are there again (``repeated``), those whose text a row of the build
    has (``matched``), and those that no row has (``unmatched``).
    """

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
    """Of ``rows``, those named only once blanks and Unicode are brought to one form."""
    shared: int
    """Texts that name more than one row."""
    pathless: int
    """Rows that no list names and the annotations doubt: verified, without a path."""


@dataclass(frozen=True, slots=True)
class Example:
    """A row of noise to show."""

    id: str
    noise_type: NoiseType
    question: str
    answer: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(BuildRecord):
    """What one build read and found; ``rows`` counts everything that was read."""

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
    kinds: Mapping[str, Kind]
    evaluation: SampleCounts | None
    license: str
    homepage: str
    citation: str
    caveat: str = ""
    """Builds of before have none; nor what follows."""
    min_confidence: float = 0.0
    known: Known | None = None
    """None where nothing is known of any row."""
    listed: Listed | None = None
    """None where no list labelled the rows."""
    examples: tuple[Example, ...] = ()
    """Rows of noise, of each type that there is; none where the questions are not published."""

    def __post_init__(self) -> None:
        parts = self.verified + sum(self.unverifiable.values()) + self.unparsed + self.rejected
        if parts != self.rows:
            raise AssertionError(f"{self.rows} rows in, {parts} accounted for")
