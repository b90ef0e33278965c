"""The card of ``safe-verifier-steps``: README and figures, from its statistics alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.cards import Config, SourceCard, common_license, render, sources_of
from cards.figures import positions_histogram, types_ring
from safe_stepwise.store.names import MISSING, README, STEPS, TEST, TRAIN, VERIFIER_STEPS
from safe_stepwise.taxonomy import TAXONOMY, category

_PLAIN = frozenset(" .,;:?!'\"/-")


@dataclass(frozen=True, slots=True)
class VerifiedBuild:
    """A build of verified questions that steps were made of."""

    benchmark: str
    split: str
    source: str
    digest: str
    verified: int
    teacher: str
    simulated: bool
    record: str
    """SHA-256 of the build's own statistics."""


@dataclass(frozen=True, slots=True)
class TypeRow:
    """One error type: its category, and rows by benchmark and by split."""

    name: str
    category: str
    by_benchmark: tuple[int, ...]
    train: int
    test: int


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """One row of the data; every text is escaped for a Markdown page."""

    id: str
    benchmark: str
    question: str
    passages: tuple[str, ...]
    previous_steps: tuple[str, ...]
    current_step: str
    error_type: str
    diagnosis: str
    guidance: str
    origin: str


@dataclass(frozen=True, slots=True)
class VerifierStepsCard:
    """All that the README says."""

    version: str
    rows: int
    questions: int
    teacher: str
    makes_believe: bool
    """Whether the steps' own teacher only plays a model."""
    unverifiable: bool
    """Whether nothing checked the steps, as their questions could not be verified."""
    seed: int
    test_share: float
    pool: int | None
    refined: Mapping[str, Any] | None
    """The file of the rows from refinement."""
    ideal_share: float
    splits: Mapping[str, Mapping[str, int]]
    benchmarks: Mapping[str, Mapping[str, int]]
    origins: Mapping[str, Mapping[str, int]]
    types: tuple[TypeRow, ...]
    missing_evidence: int
    trajectories: Mapping[str, Mapping[str, int]]
    refused: tuple[tuple[str, str, int], ...]
    """Error type, reason, number."""
    kept_out: Mapping[str, Mapping[str, int]]
    shortfalls: Mapping[str, Mapping[str, int]]
    groups: Mapping[str, int]
    lengths: Mapping[str, Any]
    examples: tuple[ExampleRow, ...]
    builds: tuple[VerifiedBuild, ...]
    sources: tuple[SourceCard, ...]
    configs: tuple[Config, ...]
    prompt: str
    libraries: Mapping[str, str]
    dataset_info: Sequence[Mapping[str, Any]]
    dataset: str = VERIFIER_STEPS

    @property
    def license(self) -> str:
        """The sources' licence where they agree, else ``other``."""
        return common_license(self.sources)

    @property
    def simulated(self) -> bool:
        """Whether any label of the questions comes from a teacher that only plays a model."""
        return any(build.simulated for build in self.builds)

    @property
    def synthetic(self) -> bool:
        """Whether nothing in it is from a real benchmark."""
        return all(source.synthetic for source in self.sources)


def files(
    statistics: Mapping[str, Any], dataset_info: Sequence[Mapping[str, Any]]
) -> dict[str, bytes]:
    """README.md and the images it shows, by file name.

    ``statistics`` is the record that ``statistics/verifier_steps.json`` holds. Raises ``KeyError``
    for a figure that is missing.
    """
    card = verifier_steps_card(statistics, dataset_info)
    readme = render(card, "verifier_steps.md.jinja", ["text-classification"], default=STEPS)
    types = Counter({row.name: row.train + row.test for row in card.types})
    return {
        README: readme.encode(),
        "images/types.png": types_ring(types),
        "images/positions.png": positions_histogram(statistics["positions"]),
    }


def verifier_steps_card(
    statistics: Mapping[str, Any], dataset_info: Sequence[Mapping[str, Any]]
) -> VerifierStepsCard:
    """The card of one build's statistics."""
    s = statistics
    return VerifierStepsCard(
        version=s["version"],
        rows=s["rows"],
        questions=s["questions"],
        teacher=s["teacher"],
        makes_believe=s["simulated"],
        unverifiable=s["unverifiable"],
        seed=s["seed"],
        test_share=s["test_share"],
        pool=s["pool"],
        refined=s["refined"],
        ideal_share=s["composition"]["ideal"],
        splits=s["splits"],
        benchmarks=s["benchmarks"],
        origins=s["origins"],
        types=_types(s["types"]),
        missing_evidence=sum(s["missing_evidence"].values()),
        trajectories=s["trajectories"],
        refused=tuple(
            (type_, reason, number)
            for type_, reasons in s["refused"].items()
            for reason, number in reasons.items()
        ),
        kept_out=s["kept_out"],
        shortfalls=s["shortfalls"],
        groups=s["groups"],
        lengths=s["lengths"],
        examples=tuple(_example(row) for row in s["examples"]),
        builds=tuple(_build(build) for build in s["verified"]),
        sources=sources_of(s["verified"]),
        configs=configs_of(s["files"]),
        prompt=s["prompt_sha256"],
        libraries=s["libraries"],
        dataset_info=dataset_info,
    )


def shown(text: str) -> str:
    r"""Text of a row as it stands, in HTML: no Markdown, no markup, no end of its place.

    >>> shown("a <b>\n\n# c | `d` [e](f)")
    'a &#60;b&#62;&#10;&#10;&#35; c &#124; &#96;d&#96; &#91;e&#93;&#40;f&#41;'
    """
    return "".join(c if c.isalnum() or c in _PLAIN else f"&#{ord(c)};" for c in text)


def _types(types: Mapping[str, Mapping[str, Mapping[str, int]]]) -> tuple[TypeRow, ...]:
    rows = []
    for entry in TAXONOMY:
        counts = [found.get(entry.name, {}) for found in types.values()]
        if any(counts):
            train, test = (sum(c.get(split, 0) for c in counts) for split in (TRAIN, TEST))
            by_benchmark = tuple(sum(c.values()) for c in counts)
            rows.append(TypeRow(entry.name, category(entry.name), by_benchmark, train, test))
    return tuple(rows)


def _example(row: Mapping[str, Any]) -> ExampleRow:
    return ExampleRow(
        id=row["id"],
        benchmark=row["benchmark"],
        question=shown(row["question"]),
        passages=tuple(shown(f"({p['title']}): {p['text']}") for p in row["passages"]),
        previous_steps=tuple(map(shown, row["previous_steps"])),
        current_step=shown(row["current_step"]),
        error_type=row["error_type"],
        diagnosis=shown(row["diagnosis"]),
        guidance=shown(row["guidance"]),
        origin=row["origin"],
    )


def _build(build: Mapping[str, Any]) -> VerifiedBuild:
    return VerifiedBuild(
        benchmark=build["benchmark"],
        split=build["split"],
        source=build["source"]["name"],
        digest=build["source"]["digest"],
        verified=build["verified"],
        teacher=build["teacher"],
        simulated=build["simulated"],
        record=build["digest"],
    )


def configs_of(files: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> tuple[Config, ...]:
    """Every config that has rows, the default first; ``files`` as the statistics hold them."""
    configs = []
    for name in sorted(files, key=lambda name: (name != STEPS, name == MISSING, name)):
        there = {split: part["rows"] for split, part in files[name].items() if part["rows"]}
        parts = tuple((split, there[split]) for split in (TRAIN, TEST) if split in there)
        if parts:
            configs.append(Config(name, parts))
    return tuple(configs)
