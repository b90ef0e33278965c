"""Read the rows of ``safe-verifier-steps`` that measure a verifier, and build their requests and trajectories.

Trajectories are made from the single rows of a question:

- An injected row is the last step of a trajectory whose earlier steps, all ideal, are its
  ``previous_steps``: the first error is that last step.
- An ideal row with its ``previous_steps`` is a trajectory without error, unless a longer ideal row of the question
  goes on from it. It ends where the longest chosen row ends, which need not be the final answer.
- Refined rows are in no trajectory: the steps that the loop accepted before them may be wrong.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from evaluators.verifier.quality import TWELVE, TrajectoryVerdicts
from safe_stepwise.engines.base import Request
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.verifier import prompt_digest, request_verdict
from safe_stepwise.records import Question, Step
from safe_stepwise.steps import parse_step
from safe_stepwise.store import boundary, codec, names, parquet
from safe_stepwise.store.files import sha256_of
from safe_stepwise.taxonomy import CORRECT, MISSING_EVIDENCE, Category

T = TypeVar("T")
_CLASSES = {"error_type": TWELVE, "origin": names.ORIGINS, "wording": names.WORDINGS}
COLUMNS = (*("id", "benchmark", "question_id", "question", "passages", "previous_steps"), *("current_step", *_CLASSES))


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The settings of a request for a verdict, as in `verifier_request`."""

    incomplete_evidence: bool = False
    """Whether the twelfth label is allowed, and its rows are included."""
    dropped: Category | None = None
    """The category whose labels are not allowed."""
    prompt_set: PromptSet = PAPER
    scored: bool = False
    """Whether to ask for the verifier's probability of Correct, too."""

    @property
    def prompt_sha256(self) -> str:
        """The digest of all that is fixed in a request."""
        return prompt_digest(self.incomplete_evidence, self.dropped, self.prompt_set)


AS_TRAINED = RequestOptions()


class Prefix(NamedTuple):
    """The identity of a request for a verdict: a question, its passages, and its steps up to the judged one."""

    benchmark: str
    question: str
    pages: tuple[tuple[str, str], ...]
    """Title and text of each passage."""
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class StepCase:
    """One row: a question, its steps, of which the last is judged, and the gold label."""

    id: str
    question: Question
    steps: tuple[Step, ...]
    gold: str
    origin: str
    wording: str
    """One of `names.WORDINGS`."""

    @property
    def prefixes(self) -> list[Prefix]:
        """The identities of the requests for a verdict on each step."""
        return [self.prefix._replace(steps=self.steps[:end]) for end in range(1, len(self.steps) + 1)]

    @property
    def prefix(self) -> Prefix:
        """The identity of the request for a verdict on the last step."""
        pages = tuple((page.title, page.text) for page in self.question.passages)
        return Prefix(self.question.benchmark, self.question.id, pages, self.steps)

    @property
    def is_trajectory(self) -> bool:
        """Whether every step before the last is right, so that the row makes a trajectory."""
        return self.origin in (names.IDEAL, names.INJECTED)


def describe_split(folder: Path, split: str, incomplete_evidence: bool = False) -> dict[str, Any]:
    """Describe a split: version, digests, the code that rendered its prompts; raise ``UserError`` without a set."""
    prefix = f"{names.STEPS}/"  # left out of the names of the main config's files
    files = {f"{file.parent.name}/{file.name}": file for file in _files(folder, split, incomplete_evidence)}
    try:
        digests = {name.removeprefix(prefix): sha256_of(file) for name, file in files.items()}
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror}); {parquet.ANEW}") from None
    record = folder / names.STEPS_RECORD
    statistics = boundary.read_file(dict[str, Any], record, "the record", parquet.ANEW) if record.is_file() else {}
    return {
        "version": statistics.get("version"),
        "simulated": bool(statistics.get("simulated")),
        "incomplete_evidence": incomplete_evidence,
        "sha256": digests,
        "rendered_by": statistics.get(names.RENDERED_BY[incomplete_evidence]),
    }


def split_files(folder: Path, split: str, config: str = names.STEPS) -> list[Path]:
    """Return the files of a split's rows; raises ``UserError`` if the folder is no verifier set."""
    if not (folder / "data" / names.STEPS).is_dir():
        raise UserError(
            f"{folder}: no {names.VERIFIER_STEPS} in it; build one with "
            "safe-stepwise build_verifier_steps, or name a Hub dataset as NAMESPACE/NAME@TAG"
        )
    return parquet.parquet_files(folder, config, split)


def _files(folder: Path, split: str, incomplete_evidence: bool) -> list[Path]:
    return [file for config in names.STEP_CONFIGS[incomplete_evidence] for file in split_files(folder, split, config)]


def read_cases(
    folder: Path, split: str, limit: int | None = None, incomplete_evidence: bool = False
) -> list[StepCase]:
    """Read the rows of a split, or the first ``limit`` of them (a random sample: the set is shuffled).

    ``incomplete_evidence`` reads the rows of several configs, and samples by their ids. Raises ``UserError`` for a
    folder without such rows, or with rows of another form.
    """
    files = _files(folder, split, incomplete_evidence)
    all_cases: Iterator[StepCase] = chain.from_iterable(read_step_rows(file, COLUMNS, _case) for file in files)
    if incomplete_evidence and limit is not None:
        all_cases = iter(sorted(all_cases, key=lambda case: case.id))  # ids are hashes, so sorting by them shuffles
    cases = [*islice(all_cases, limit)]
    if incomplete_evidence and not any(case.gold == MISSING_EVIDENCE for case in cases):
        raise UserError(
            f"{folder}: none of its {split} rows lacks evidence; take more rows, or leave out --incomplete-evidence"
        )
    if not cases:
        splits = ", ".join(sorted({f.name.split("-")[0] for f in split_files(folder, "*")})) or "none"
        raise UserError(f"{folder}: its split {split!r} has no rows; choose --split from {splits}")
    return cases


def find_majority_label(folder: Path, split: str = names.TRAIN, incomplete_evidence: bool = False) -> str | None:
    """Return the most frequent label of a split, the first of the taxonomy among equals; None without rows."""
    read = lambda row: codec.class_of(row, "error_type", TWELVE)  # noqa: E731
    files = _files(folder, split, incomplete_evidence)
    counts = Counter(label for file in files for label in read_step_rows(file, ("error_type",), read))
    return max(filter(counts.__contains__, TWELVE), key=counts.__getitem__, default=None)


def build_requests(cases: Iterable[StepCase], setting: RequestOptions = AS_TRAINED) -> dict[Prefix, Request]:
    """Return the requests for all verdicts that the measures need, each once, as the loop makes them.

    Requests are about the rows and about the steps before them in trajectories, many of which are
    rows, too. They go question by question, shorter ones first, so that a prefix cache holds.
    """
    settings = (setting.incomplete_evidence, setting.dropped, setting.prompt_set)
    by_question: dict[Any, dict[Prefix, Question]] = {}
    for case in cases:
        prefixes = by_question.setdefault(case.prefix[:3], {})
        for prefix in case.prefixes if case.is_trajectory else [case.prefix]:
            prefixes.setdefault(prefix, case.question)
    return {
        prefix: request_verdict(question, prefix.steps[:-1], prefix.steps[-1], *settings, scored=setting.scored)
        for prefixes in by_question.values()
        for prefix, question in sorted(prefixes.items(), key=lambda item: len(item[0].steps))
    }


def build_trajectories(cases: Sequence[StepCase], verdicts: Mapping[Prefix, str]) -> list[TrajectoryVerdicts]:
    """Return the rows' trajectories (see the module) with ``verdicts``, which has one for each of `build_requests`."""
    ideal = [case for case in cases if case.origin == names.IDEAL]
    continued = {prefix for case in ideal for prefix in case.prefixes[:-1]}
    trajectories = []
    for case in cases:
        if case.is_trajectory and not (case.origin == names.IDEAL and case.prefix in continued):
            first_error = None if case.gold == CORRECT else len(case.steps)
            steps = tuple(verdicts[prefix] for prefix in case.prefixes)
            trajectories.append(TrajectoryVerdicts(*case.prefix[:2], first_error, steps))
    return trajectories


def _case(row: Mapping[str, Any]) -> StepCase:
    pages = tuple(map(codec.passage_of, row["passages"]))
    question = Question(row["question_id"], row["benchmark"], "", row["question"], "", passages=pages)
    steps = tuple(map(parse_step, (*row["previous_steps"], row["current_step"])))
    classes = (codec.class_of(row, column, labels) for column, labels in _CLASSES.items())
    return boundary.read(StepCase, StepCase(row["id"], question, steps, *classes), "the row")


def read_step_rows(
    file: Path,
    columns: Sequence[str],
    read: Callable[[Mapping[str, Any]], T],
    condition: Callable[[Any], Any] | None = None,
) -> Iterator[T]:
    """Read a file's rows as `parquet.read_rows`; raise ``UserError``, too, for columns that lack or other labels."""
    try:
        schema = pq.read_schema(file)
        metadata = boundary.parse_json((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = metadata.get("info", {}).get("features", {})
        class_names = {name: list(features.get(name, {}).get("names", _CLASSES[name])) for name in _CLASSES}
    except (OSError, ValueError, AttributeError, TypeError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{file}: cannot be read ({reason}); {parquet.ANEW}") from None
    if lacking := sorted(set(columns) - set(schema.names)):
        raise UserError(f"{file}: no rows of {names.VERIFIER_STEPS} (no column {lacking[0]})")
    for column, expected in _CLASSES.items():
        # A config of eleven labels has all of the twelve but the last.
        if column in columns and class_names[column] != [*expected[: len(class_names[column])]]:
            raise UserError(f"{file}: its {column} has other names than this version knows")
    return parquet.read_rows(file, read, columns, condition)
