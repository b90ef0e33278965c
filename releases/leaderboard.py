"""An adapter's scores where the Hub reads them: `.eval_results/*.yaml`, and the tasks they name.

The Hub shows on a model's page what YAML files in its folder ``.eval_results`` say, a file for each
way of measuring, and gathers the scores on the page of the dataset whose ``eval.yaml`` defines the
tasks, once Hugging Face has listed that as a benchmark (https://huggingface.co/docs/hub/eval-results;
`huggingface_hub.EvalResultEntry`). ``model-index`` in the card's header is the older form, and is
still shown. It is the source of what is made here, when the namespace is known at last: one figure,
two spellings. A task has one value, so each benchmark's sample is a task for each measure.

``eval.yaml`` names no ``evaluation_framework``: the Hub has a list of these, and not ours on it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from releases.folder import Artifact, LocalFile, Release
from releases.readme import metadata
from safe_stepwise.records import identity
from safe_stepwise.store.names import ADAPTER, DATASETS, README, VERIFIED

SCORES, TASKS = ".eval_results", "eval.yaml"
"""What the Hub looks for in a model's and in a dataset's repo."""
HUB = "https://huggingface.co"
_TITLE = "Verified multi-hop question answering (SAFE)"
_ABOUT = (
    "Multi-hop questions of which every hop was checked against the gold passages, ten passages a "
    "question. A task is one measure on one benchmark's sample, from 0 to 1: exact match and F1 as "
    "the benchmark's official scorer has them, accuracy by a judge that is named with the score."
)


def listed(release: Release, namespace: str) -> Release:
    """A release with those files, made of the card of its adapter, if that has scores."""
    by_folder = {artifact.folder: artifact for artifact in release.artifacts}
    adapter, dataset = by_folder.get(ADAPTER), f"{DATASETS}/{VERIFIED}"
    if adapter is None or adapter.card is None or dataset not in by_folder:
        return release
    card, where = adapter.card.read().decode("utf-8", "replace"), f"{ADAPTER}/{README}"
    results = loop_results(card, where)
    made = {
        ADAPTER: adapter_files(results, namespace, release.version),
        dataset: dataset_files(results),
    }

    def more(artifact: Artifact) -> Artifact:
        contents = made.get(artifact.folder, {}).items()
        added = [LocalFile(path, text, len(text), where) for path, text in contents]
        return replace(artifact, files=(*artifact.files, *added))

    return replace(release, artifacts=tuple(map(more, release.artifacts)))


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
            task_id=_task(one),
            value=one.metric_value,
            source_url=f"{HUB}/datasets/{dataset}/tree/{version}",
            source_name="Reports and traces",
            notes=", ".join(f"{name} {value}" for name, value in (one.metric_args or {}).items()),
        )
        ways.setdefault(_way(one.metric_args or {}), []).append(entry)
    return {
        f"{SCORES}/{name}.yaml": _dumped(eval_result_entries_to_yaml(entries))
        for name, entries in ways.items()
    }


def dataset_files(results: Sequence[Any]) -> dict[str, bytes]:
    """The tasks that ``results`` are of, for the repo of the verified benchmarks."""
    tasks = {
        _task(one): {"id": _task(one), "config": one.dataset_config, "split": one.dataset_split}
        for one in results
    }
    if not tasks:
        return {}
    about = {"name": _TITLE, "description": _ABOUT, "tasks": [*tasks.values()]}
    return {TASKS: _dumped(about)}


def _task(one: Any) -> str:
    return f"{one.dataset_config}_{one.metric_type}"


def _way(how: Mapping[str, Any]) -> str:
    """A file's name for players, method and options; a judge is of some measures only."""
    told = {name: value for name, value in how.items() if name != "judge"}
    said = re.sub(r"[^a-z0-9]+", "-", f"{how.get('method')} {how.get('generator')}".lower())
    return f"{said.strip('-')[:60]}-{identity(told)[:8]}"


def _dumped(value: object) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100).encode()
