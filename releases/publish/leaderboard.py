"""What the Hub and Inspect read: tasks (`eval.yaml`), and an adapter's scores (`.eval_results`).

The Hub shows on a model's page what YAML files in its folder ``.eval_results`` say, a file for each
way of measuring, and gathers the scores on the page of the dataset whose ``eval.yaml`` defines the
tasks, once Hugging Face has listed that as a benchmark (https://huggingface.co/docs/hub/eval-results;
`huggingface_hub.EvalResultEntry`). ``model-index`` in the card's header is the older form, and is
still shown. It is the source of what is made here, when the namespace is known at last: one figure,
two spellings. A task has one value, so each benchmark's sample is a task for each measure.

``eval.yaml`` is there whether or not an adapter is. By it ``inspect eval hf/NAMESPACE/NAME`` asks a
model for the answers at once, a prompt a row (column ``input``); its tasks have the shape
that Inspect demands (`inspect_ai._eval.task.hf.HFTask`). What SAFE's loop scored says so in notes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from releases.publish.folder import Artifact, LocalFile, Release
from releases.publish.readme import metadata
from safe_stepwise.records import identity
from safe_stepwise.store.names import ADAPTER, DATASETS, EVAL, INPUT, README, VERIFIED

SCORES, TASKS = ".eval_results", "eval.yaml"
"""What the Hub looks for in a model's and in a dataset's repo."""
HUB = "https://huggingface.co"
_SCORERS = {"exact_match": "exact", "f1": "f1", "accuracy": "model_graded_qa"}
"""What Inspect calls our measures."""
_ALWAYS = ("exact_match", "f1")
"""Those that need no judge."""


def listed(release: Release, namespace: str) -> Release:
    """A release with those files, made of the cards of its benchmarks and of its adapter."""
    cards = {
        artifact.folder: artifact.card.read().decode("utf-8", "replace")
        for artifact in release.artifacts
        if artifact.card is not None
    }
    dataset = f"{DATASETS}/{VERIFIED}"
    if dataset not in cards:
        return release
    results = loop_results(cards.get(ADAPTER, ""), f"{ADAPTER}/{README}")
    made = {
        ADAPTER: adapter_files(results, namespace, release.version),
        dataset: dataset_files(samples(cards[dataset], f"{dataset}/{README}"), results),
    }

    def with_files(artifact: Artifact) -> Artifact:
        where = f"{artifact.folder}/{README}"
        files = [LocalFile(path, text, len(text), where) for path, text in made.get(artifact.folder, {}).items()]
        return replace(artifact, files=(*artifact.files, *files))

    return replace(release, artifacts=tuple(map(with_files, release.artifacts)))


def samples(card: str, where: str) -> list[tuple[str, str]]:
    """Config and split of each evaluation sample that the header of the benchmarks' card has.

    Raises ``UserError`` for a header that can't be read; one of a strange shape has none.
    """
    configs = metadata(card, where).get("configs")
    try:
        return [
            (config["config_name"], file["split"])
            for config in configs or ()
            if config["config_name"].endswith(EVAL)
            for file in config["data_files"]
        ]
    except (KeyError, TypeError, AttributeError):
        return []  # which the check of cards complains about


def loop_results(card: str, where: str) -> list[Any]:
    """The scores on the verified benchmarks that a card's header has, as `EvalResult`.

    Raises ``UserError`` for a header that can't be read; one of a strange shape has no scores.
    """
    from huggingface_hub.repocard_data import model_index_to_eval_results

    index = metadata(card, where).get("model-index")
    try:
        found = model_index_to_eval_results(index)[1] if index else []
    except (KeyError, TypeError, ValueError, AttributeError):
        return []  # which the check of cards complains about
    return [one for one in found if one.dataset_type == VERIFIED and one.dataset_config]


def adapter_files(results: Sequence[Any], namespace: str, version: str) -> dict[str, bytes]:
    """A file for each way of measuring that ``results`` have, by its path in the adapter's repo."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    dataset = f"{namespace}/{VERIFIED}"
    ways: dict[str, list[Any]] = {}
    for one in results:
        entry = EvalResultEntry(
            dataset_id=dataset,
            task_id=f"{one.dataset_config}_{one.metric_type}",
            value=one.metric_value,
            source_url=f"{HUB}/datasets/{dataset}/tree/{version}",
            source_name="Reports and traces",
            notes=", ".join(f"{name} {value}" for name, value in (one.metric_args or {}).items()),
        )
        ways.setdefault(_way(one.metric_args or {}), []).append(entry)
    return {f"{SCORES}/{name}.yaml": _dumped(eval_result_entries_to_yaml(entries)) for name, entries in ways.items()}


def dataset_files(places: Sequence[tuple[str, str]], results: Sequence[Any]) -> dict[str, bytes]:
    """The tasks on samples (config, split), and those that ``results`` are of, for the benchmarks.

    Nothing where there are neither.
    """
    asked = [(config, split, measure) for config, split in places for measure in _ALWAYS]
    asked += [(one.dataset_config, one.dataset_split, one.metric_type) for one in results]
    if not asked:
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
        for config, split, measure in dict.fromkeys(asked)
    ]
    about = yaml.safe_load(Path(__file__).with_name(TASKS).read_text(encoding="utf-8"))
    return {TASKS: _dumped({**about, "tasks": tasks})}


def _way(how: Mapping[str, Any]) -> str:
    """A file's name for players, method and options; a judge is of some measures only."""
    told = {name: value for name, value in how.items() if name != "judge"}
    said = re.sub(r"[^a-z0-9]+", "-", f"{how.get('method')} {how.get('generator')}".lower())
    return f"{said.strip('-')[:60]}-{identity(told)[:8]}"


def _dumped(value: object) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100).encode()
