"""Makes what the Hub and Inspect read: a card's metadata, tasks (`eval.yaml`), an adapter's scores (`.eval_results`).

The Hub shows the scores of the YAML files in a model's folder ``.eval_results`` on the model's page. It lists them on
the page of the dataset whose ``eval.yaml`` defines the tasks, too, once Hugging Face has listed that dataset as a
benchmark (https://huggingface.co/docs/hub/eval-results; `huggingface_hub.EvalResultEntry`). The scores are those of
``model-index`` in the card's header, the older form. The files of scores are made when the namespace is known. A task
has one value, so each benchmark's sample is a task for each measure.

With ``eval.yaml``, ``inspect eval hf/NAMESPACE/NAME`` asks a model each row's prompt (column ``input``). Its tasks
have the fields of `inspect_ai._eval.task.hf.HFTask`. The notes of a score name the loop's method and players.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from releases.publish.folder import Artifact, FinishedRelease, LocalFile
from safe_stepwise.errors import UserError
from safe_stepwise.records import identity
from safe_stepwise.store import boundary, terminal
from safe_stepwise.store.names import ADAPTER, EVAL, INPUT, README, VERIFIED

OWNED_KEYS = frozenset(
    "language license license_name license_link size_categories task_categories task_ids "
    "pretty_name configs dataset_info annotations_creators source_datasets base_model "
    "base_model_relation library_name pipeline_tag model-index datasets metrics "
    "title emoji colorFrom colorTo sdk sdk_version python_version app_file pinned".split()
)
"""The keys of metadata that our cards decide: an older value on the Hub is dropped, even if ours has none."""
OWNED_TAGS = frozenset(("synthetic", "simulated"))
"""The tags that our cards decide."""


def metadata(text: str, place: str) -> dict[str, Any]:
    """Read the YAML header of a card; raise ``UserError`` that names ``place`` if it can't be read.

    >>> metadata("---\\nlicense: mit\\n---\\n# Words", "README.md")
    {'license': 'mit'}
    """
    block, _ = _split_card(text)
    try:
        data = boundary.parse_yaml(block.encode()) if block is not None else {}
    except ValueError as error:
        line = terminal.sanitize(error)
        raise UserError(f"{place}: its metadata is no YAML: {line}; mend it there") from None
    if not isinstance(data or {}, dict):
        raise UserError(f"{place}: its metadata is no mapping of keys to values; mend it there")
    return data or {}


def merge_card(card: str, remote_card: str, place: str) -> str:
    """Return our card with the Hub's further tags and keys (but `OWNED_KEYS`), or as it is if there are none.

    >>> theirs = "---\\ndoi: x\\ntags: [b]\\n---\\nOld."
    >>> print(merge_card("---\\ntags: [a]\\n---\\nNew.", theirs, "hub"))
    ---
    tags:
    - a
    - b
    doi: x
    ---
    New.
    """
    local, remote = metadata(card, "our card"), metadata(remote_card, place)
    foreign = {k: v for k, v in remote.items() if k not in local and k not in OWNED_KEYS}
    tags = [t for t in _as_list(remote.get("tags")) if t not in OWNED_TAGS]
    added = [tag for tag in tags if tag not in _as_list(local.get("tags"))]
    foreign.pop("tags", None)
    if not foreign and not added:
        return card
    combined = {**local, **foreign}
    if added:
        combined["tags"] = [*_as_list(local.get("tags")), *added]
    return f"---\n{_dump_yaml(combined).decode()}---\n{_split_card(card)[1]}"


def check_card(artifact: Artifact) -> Any:
    """Parse an artifact's card with `huggingface_hub`; raise ``UserError`` if it is missing or bad."""
    from huggingface_hub import DatasetCard, ModelCard, SpaceCard

    place = f"{artifact.folder}/README.md"
    if artifact.card is None:
        raise UserError(f"{place}: missing; a repo is not published without its card")
    try:
        text = artifact.card.read().decode()
    except UnicodeDecodeError:
        raise UserError(f"{place}: not UTF-8 text") from None
    data = metadata(text, place)
    if not data or not _split_card(text)[1].strip():
        raise UserError(f"{place}: a card needs metadata (---) and words below it")
    if artifact.kind == "space" and not data.get("sdk"):
        raise UserError(f"{place}: a Space needs its sdk in the metadata, as: sdk: gradio")
    cards = {"dataset": DatasetCard, "model": ModelCard, "space": SpaceCard}
    try:
        return cards[artifact.kind](text)
    except (ValueError, TypeError, KeyError) as error:
        line = terminal.printable(str(error))
        raise UserError(f"{place}: can't be read as a card: {line}") from None


def _split_card(text: str) -> tuple[str | None, str]:
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    if (match := REGEX_YAML_BLOCK.search(text)) is None:
        return None, text
    return match[2], text[match.end() :]


def _as_list(tags: Any) -> list[Any]:
    return list(tags) if isinstance(tags, list) else [tags] if tags else []


SCORES, TASKS = ".eval_results", "eval.yaml"
"""The Hub's folder of scores in a model's repo, and its file of tasks in a dataset's repo."""
HUB = "https://huggingface.co"
_SCORERS = {"exact_match": "exact", "f1": "f1", "accuracy": "model_graded_qa"}
"""Inspect's names of our measures."""
_MEASURES = ("exact_match", "f1")
"""The measures that need no judge."""


def add_leaderboard_files(release: FinishedRelease, namespace: str) -> FinishedRelease:
    """Return the release with ``eval.yaml`` and ``.eval_results``, made from the headers of its cards."""
    cards = {
        artifact.folder: artifact.card.read().decode("utf-8", "replace")
        for artifact in release.artifacts
        if artifact.card is not None
    }
    dataset = next((artifact.folder for artifact in release.artifacts if artifact.folder.endswith(VERIFIED)), None)
    if dataset not in cards:
        return release
    results = loop_results(cards.get(ADAPTER, ""), f"{ADAPTER}/{README}")
    contents = {
        ADAPTER: adapter_files(results, namespace, release.version),
        dataset: dataset_files(samples(cards[dataset], f"{dataset}/{README}"), results),
    }

    def with_files(artifact: Artifact) -> Artifact:
        place = f"{artifact.folder}/{README}"
        files = [LocalFile(path, text, len(text), place) for path, text in contents.get(artifact.folder, {}).items()]
        return replace(artifact, files=(*artifact.files, *files))

    return replace(release, artifacts=tuple(map(with_files, release.artifacts)))


def samples(card: str, place: str) -> list[tuple[str, str]]:
    """List (config, split) of each sample in a card's header; raise ``UserError`` if it can't be read."""
    configs = metadata(card, place).get("configs")
    try:
        return [
            (config["config_name"], file["split"])
            for config in configs or ()
            if config["config_name"].endswith(EVAL)
            for file in config["data_files"]
        ]
    except (KeyError, TypeError, AttributeError):
        return []  # `check_card` raises for it


def loop_results(card: str, place: str) -> list[Any]:
    """List the `huggingface_hub.EvalResult` of benchmarks in a card's header; raise ``UserError`` for a bad one."""
    from huggingface_hub.repocard_data import model_index_to_eval_results

    index = metadata(card, place).get("model-index")
    try:
        evaluations = model_index_to_eval_results(index)[1] if index else []
    except (KeyError, TypeError, ValueError, AttributeError):
        return []  # `check_card` raises for it
    return [result for result in evaluations if result.dataset_type == VERIFIED and result.dataset_config]


def adapter_files(results: Sequence[Any], namespace: str, version: str) -> dict[str, bytes]:
    """Render the scores as YAML, one file for each set of players, method and options; return them by path."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    dataset = f"{namespace}/{VERIFIED}"
    groups: dict[str, list[Any]] = {}
    for result in results:
        entry = EvalResultEntry(
            dataset_id=dataset,
            task_id=f"{result.dataset_config}_{result.metric_type}",
            value=result.metric_value,
            source_url=f"{HUB}/datasets/{dataset}/tree/{version}",
            source_name="Reports and traces",
            notes=", ".join(f"{name} {value}" for name, value in (result.metric_args or {}).items()),
        )
        groups.setdefault(f"{SCORES}/{_file_name(result.metric_args or {})}.yaml", []).append(entry)
    return {path: _dump_yaml(eval_result_entries_to_yaml(entries)) for path, entries in groups.items()}


def dataset_files(places: Sequence[tuple[str, str]], results: Sequence[Any]) -> dict[str, bytes]:
    """Render ``eval.yaml`` with a task for each sample and measure, and each of the scores; no file without any."""
    metrics = [(config, split, measure) for config, split in places for measure in _MEASURES]
    metrics += [(result.dataset_config, result.dataset_split, result.metric_type) for result in results]
    if not metrics:
        return {}
    tasks = [
        {
            "id": f"{config}_{measure}",
            "config": config,
            "split": split,
            "field_spec": {"input": INPUT, "target": "answer"},
            "solvers": [{"name": "generate"}],
            "scorers": [{"name": _SCORERS[measure]}],
        }
        for config, split, measure in dict.fromkeys(metrics)
    ]
    header = yaml.safe_load(Path(__file__).with_name(TASKS).read_text(encoding="utf-8"))
    return {TASKS: _dump_yaml({**header, "tasks": tasks})}


def _file_name(arguments: Mapping[str, Any]) -> str:
    """Name a file by players, method and options, without the judge, which only some measures have."""
    identifying = {name: value for name, value in arguments.items() if name != "judge"}
    slug = re.sub(r"[^a-z0-9]+", "-", f"{arguments.get('method')} {arguments.get('generator')}".lower())
    return f"{slug.strip('-')[:60]}-{identity(identifying)[:8]}"


def _dump_yaml(value: object) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100).encode()
