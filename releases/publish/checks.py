"""The checks that a release has to pass before any of it leaves this machine.

A *question key* is a text that identifies a question in a set: its benchmark and id, or its text. Two splits leak if
they share a key.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from releases import report
from releases.lock import refuse_changes
from releases.publish.folder import Artifact, FinishedRelease, datasets_in
from releases.publish.hub import Hub, shorten
from releases.publish.leaderboard import check_card
from releases.publish.secrets import secret_in
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, files, names, parquet, terminal

_REGENERATE_ADVICE = "make the release again with safe-stepwise regenerate"
_LEAK_ADVICE = "build the release again, or take those rows out of train and say so in the card"
_QUESTION = ("id", "question", "passages")


def check_release(release: FinishedRelease, hub: Hub | None, on_file: Callable[[str], object]) -> None:
    """Check a release's questions, cards (also by the ``hub``), digests, secrets and leaks; raise ``UserError``.

    Secrets include the credentials of this process. ``on_file`` gets each path whose digest is compared.
    """
    _refuse_unverifiable(release)
    for artifact in release.artifacts:
        card = check_card(artifact)
        if hub is not None:
            _validate_on_hub(card, artifact, hub)
    check_digests(release, on_file)
    own_secrets = terminal.credentials()
    for artifact in release.artifacts:
        for file in artifact.files:
            if (secret := secret_in(file, own_secrets)) is not None:
                advice = f"take it out (and revoke it if it is real), then {_REGENERATE_ADVICE}"
                raise UserError(f"{file.origin}: holds {secret}; {advice}")
    check_leaks(release.root)


def _validate_on_hub(card: Any, artifact: Artifact, hub: Hub) -> None:
    """Raise ``UserError`` for a card that the Hub refuses, as for an unknown licence."""

    def find_fault() -> str | None:
        try:
            return card.validate(repo_type=artifact.kind)  # type: ignore[no-any-return]
        except ValueError as error:
            return str(error)

    card_path = f"{artifact.folder}/{names.README}"
    if (fault := hub.request(card_path, find_fault)) is not None:
        raise UserError(f"{card_path}: does not pass the Hub's check of cards: {shorten(fault)}")


def _refuse_unverifiable(release: FinishedRelease) -> None:
    """Raise ``UserError`` for a verifier set of unverifiable questions (not answerable from their passages)."""
    file = datasets_in(release.root) / names.VERIFIER_STEPS / names.STEPS_RECORD
    if file.is_file() and boundary.read_object(file).get("unverifiable"):
        raise UserError(
            f"{file}: nothing checked these steps, which were made with --unverifiable; such a set "
            "is for an ablation: take it out of the release"
        )


def check_digests(release: FinishedRelease, on_file: Callable[[str], object]) -> None:
    """Compare all files, or those they are generated from, with the lock; raise ``UserError`` for a difference."""
    locked, digests = release.lock["files"], dict[str, str]()
    for file in (file for artifact in release.artifacts for file in artifact.files):
        on_file(file.origin)
        is_generated = isinstance(file.content, bytes)
        digests[file.origin] = files.sha256_of(release.root / file.origin) if is_generated else file.sha256
    kept_here = {name: locked[name] for name in locked if name not in digests and (release.root / name).is_file()}
    refuse_changes(release.root, release.lock, kept_here | digests, _REGENERATE_ADVICE)


def check_leaks(root: Path) -> None:
    """Raise ``UserError`` for the first question that leaks from the test rows on disk into train rows or reports.

    - Verifier set: no row id and no question, by id or text, is in both splits; no evaluation question is in train.
    - Verified benchmarks: no evaluation question is in train, by id or by text and gold passages. (Questions made
      from a template may share their text.)
    - Relation paths: no question, by id or text, is in both splits; nor is a template, in configs split by template.
    - Path probe: no question, by id or text, is in both splits; no evaluation question, by id, is in train.

    Reports may only have questions of the evaluation samples, by id and text; any other also raises ``UserError``.
    """
    datasets = datasets_in(root)
    for folder in sorted(datasets.glob(names.PATHS_SETS)):
        for suffix in ("", names.BY_TEMPLATE):
            shared = _read_path_keys(folder, suffix, names.TRAIN) & _read_path_keys(folder, suffix, names.TEST)
            _refuse(shared, folder, "a template of test" if suffix else "a test question")
    benchmarks, steps, probe = (datasets / name for name in (names.VERIFIED, names.VERIFIER_STEPS, names.PATH_PROBE))
    probed, train = _read_probe_keys(probe, names.TRAIN), _read_step_keys(steps, names.TRAIN)
    _refuse(probed & _read_probe_keys(probe, names.TEST), probe, "a test question")
    _refuse(train & _read_step_keys(steps, names.TEST), steps, "a test question")
    _refuse(_read_row_ids(steps, names.TRAIN) & _read_row_ids(steps, names.TEST), steps, "a test row")
    samples: dict[str, set[tuple[str, str]]] = {}
    for folder in sorted((benchmarks / "data").glob(f"*{names.EVAL}")):
        benchmark = folder.name.removesuffix(names.EVAL)
        sample = [*_split(benchmarks, [folder.name], names.TEST, *_QUESTION)]
        samples[benchmark] = {(row["id"], row["question"]) for row in sample}
        keys = {key for row in sample for key in _question_keys(benchmark, row["id"], row["question"])}
        _refuse(train & keys, steps, f"a question of {folder.name}")
        _refuse(probed & {f"{benchmark} {row['id']}" for row in sample}, probe, f"a question of {folder.name}")
        _refuse_copies(benchmarks, benchmark, sample)
    if benchmarks.is_dir():
        _refuse_unsampled(root, samples)


def _refuse_copies(dataset: Path, benchmark: str, sample: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    ids, digests = {row["id"] for row in sample}, {_content_digest(row) for row in sample}
    columns = {"id": pa.array(sorted(ids), pa.string())}
    columns["question"] = pa.array(sorted({row["question"] for row in sample}), pa.string())

    def is_candidate(batch: Any) -> Any:  # spares 100,000 rows of ten passages from becoming Python objects
        return pc.or_(*(pc.is_in(batch.column(name), values) for name, values in columns.items()))

    for config in (benchmark, benchmark + names.LABELED):
        for file in parquet.parquet_files(dataset, config, names.TRAIN):
            for row in parquet.read_rows(file, dict, _QUESTION, is_candidate):
                if row["id"] in ids or _content_digest(row) in digests:
                    _refuse({row["id"]}, dataset, f"a question of {benchmark}{names.EVAL}")


def _refuse_unsampled(root: Path, samples: Mapping[str, set[tuple[str, str]]]) -> None:
    for folder in report.folders(root):
        packed = folder / f"{names.QUESTIONS}{report.PACKED}"
        lines = files.read_lines(packed, _identify, "question", _REGENERATE_ADVICE) if packed.is_file() else ()
        for _, (benchmark, question) in lines:
            if question not in samples.get(benchmark, set()):
                raise UserError(
                    f"{packed}: tells of a question that is in no evaluation sample of this "
                    f"release ({question[0]!r}); evaluate on the samples, or take the report out"
                )


def _identify(line: bytes) -> tuple[str, tuple[str, str]]:
    row = boundary.parse_json(line)
    return row["benchmark"], (row["id"], row["question"])


def _refuse(leaked: set[str], dataset: Path, noun: str) -> None:
    if leaked:
        key = min(leaked)
        suffix = f" and {len(leaked) - 1} more" if len(leaked) > 1 else ""
        raise UserError(f"{dataset}: {noun} is in train ({key!r}{suffix}); {_LEAK_ADVICE}")


def _read_step_keys(dataset: Path, split: str) -> set[str]:
    """Return the keys of the questions in a split of the verifier set, by id and by text."""
    rows = _split(dataset, names.STEP_CONFIGS[True], split, "benchmark", "question_id", "question")
    return {key for row in rows for key in _question_keys(row["benchmark"], row["question_id"], row["question"])}


def _read_row_ids(dataset: Path, split: str) -> set[str]:
    """Return the ids of the rows in a split of the verifier set, over all configs."""
    configs = (names.STEPS, names.PROMPT_COMPLETION, names.MISSING_PROMPT_COMPLETION, names.PREFERENCE, names.KTO)
    return {row["id"] for row in _split(dataset, configs, split, "id")}


def _read_probe_keys(dataset: Path, split: str) -> set[str]:
    """Return the keys of the questions in a split of the path probe, by id and by text, both with the benchmark."""
    rows = [*_split(dataset, (names.PROBED,), split, "benchmark", "question_id", "question")]
    # The suffix keeps a text from being taken for an id.
    texts = {f"{row['benchmark']} {row['question'].casefold()}?" for row in rows}
    return texts | {f"{row['benchmark']} {row['question_id']}" for row in rows}


def _read_path_keys(dataset: Path, suffix: str, split: str) -> set[str]:
    """Return keys of the questions in a split of relation paths: ids and texts or, with a ``suffix``, templates."""
    column = "template" if suffix else "question"
    configs = [config + suffix for config in (names.PATHS, names.PROMPT_COMPLETION, names.KTO)]
    rows = _split(dataset, configs, split, "question_id")
    texts = {row[column] for row in _split(dataset, [names.PATHS + suffix], split, column)}
    return texts | {f"question {row['question_id']}" for row in rows}


def _question_keys(benchmark: str, question_id: str, question: str) -> tuple[str, str]:
    return f"{benchmark} {question_id}", " ".join(question.casefold().split())


def _split(dataset: Path, configs: Iterable[str], split: str, *columns: str) -> Iterator[dict[str, Any]]:
    """Yield the given columns of all rows in a split of a dataset's configs."""
    for config in configs:
        for file in parquet.parquet_files(dataset, config, split):
            yield from parquet.read_rows(file, dict, columns)


def _content_digest(row: dict[str, Any]) -> bytes:
    gold = sorted(repr((p["title"], p["sentences"])) for p in row["passages"] if p["is_gold"])
    return hashlib.sha256(repr((row["question"], gold)).encode("utf-8", "replace")).digest()
