"""Load a pushed release back from the Hub and compare it with what was pushed, before its repos get a tag.

`load_back` starts a process that runs this file as a module (`main`). Its caches are in an empty folder, so that
everything it opens comes from the Hub, at the pushed commits.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from releases.publish.folder import HUB_FILE, Artifact, walk
from releases.publish.hub import MIN_BYTES_PER_S, Hub, shorten
from safe_stepwise.errors import UserError
from safe_stepwise.store import files, names, progress, terminal
from trainers.models import CONFIG, MODEL_WEIGHTS, WEIGHTS

ROOT = Path(__file__).resolve().parents[2]
_PREFIX = "loaded back and compared: "


@dataclass(frozen=True)
class Pushed:
    """An artifact, and the commit that holds it on the Hub."""

    artifact: Artifact
    commit: str


def load_back(pushed: Sequence[Pushed], hub: Hub, token: str) -> list[str]:
    """Open every artifact at its commit and compare each file's SHA-256 with what was pushed.

    Returns a line about each artifact. Raises ``UserError`` for the first repo or file that differs or does not open,
    and when time is up: the wait of ``hub`` for each repo and for the start, and the transfer's time.
    """
    size = sum(file.size for item in pushed for file in item.artifact.files)
    seconds = hub.seconds * (1 + len(pushed)) + size / MIN_BYTES_PER_S
    requests = [
        {
            "kind": item.artifact.kind,
            "repo": item.artifact.repo,
            "commit": item.commit,
            "files": {file.path: file.sha256 for file in item.artifact.files},
        }
        for item in pushed
    ]
    with TemporaryDirectory(prefix="safe-stepwise-", ignore_cleanup_errors=True) as home:
        try:
            with progress.Wait(lambda waited: f"loading back from the Hub since {waited} s (at most {seconds:,.0f})"):
                process = subprocess.run(
                    [sys.executable, "-m", "releases.publish.load_back"],
                    input=json.dumps(requests),
                    env={**os.environ, **_environment(Path(home), hub.api.endpoint, token)},
                    cwd=home,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=seconds,
                )
        except subprocess.TimeoutExpired:
            raise _load_error(f"not done within {seconds:,.0f} s (see --timeout)") from None
    lines = [line for line in process.stdout.splitlines() if line.startswith(_PREFIX)]
    if process.returncode or len(lines) != len(pushed):
        message = (process.stderr.strip().splitlines() or ["no message"])[-1].replace(token, "***")
        raise _load_error(shorten(message))
    return [shorten(line.removeprefix(_PREFIX)) for line in lines]


def _load_error(cause: str) -> UserError:
    """Return the error for a release that was pushed but does not load back."""
    return UserError(
        f"pushed, but it does not load back, so it got no tag: {cause}; run the same command again once that is mended"
    )


def _environment(home: Path, endpoint: str, token: str) -> dict[str, str]:
    """Return the process's environment variables: empty caches in ``home``, the Hub's endpoint and token."""
    python_path = os.environ.get("PYTHONPATH")
    caches = ("HF_HUB_CACHE", "HF_DATASETS_CACHE", "HF_MODULES_CACHE", "HF_EVALUATE_CACHE")
    return {
        **{name: str(home / name.lower()) for name in caches},
        "HF_HOME": str(home),
        "HF_ENDPOINT": endpoint,
        "HF_TOKEN": token,
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_OFFLINE": "0",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *([python_path] if python_path else [])]),
    }


def main() -> None:
    """Open the artifacts that standard input names, and print a line about each."""
    for request in json.load(sys.stdin):
        compared = _compare(request)
        summary = {"dataset": _open_dataset, "space": _open_space, "model": _open_adapter}[request["kind"]](request)
        print(f"{_PREFIX}{request['repo']}@{request['commit'][:7]}: {compared} files, {summary}")


def _compare(request: Mapping[str, Any]) -> int:
    """Download a repo, compare its files with the pushed digests, and return their number."""
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(request["repo"], repo_type=request["kind"], revision=request["commit"]))
    digests = {name: files.sha256_of(folder / name) for name in walk(folder) if name != HUB_FILE}
    for name in sorted({*digests, *request["files"]}):
        if digests.get(name) != request["files"].get(name):
            raise SystemExit(f"{request['repo']}: {name} came back otherwise than it was pushed")
    return len(digests)


def _open_dataset(request: Mapping[str, Any]) -> str:
    from datasets import disable_progress_bars, get_dataset_config_names, load_dataset

    disable_progress_bars()
    name, commit = request["repo"], request["commit"]
    configs = get_dataset_config_names(name, revision=commit)
    datasets = (load_dataset(name, config, revision=commit) for config in configs)
    rows = sum(split.num_rows for dataset in datasets for split in dataset.values())
    return f"{len(configs)} configurations, {rows:,} rows"


def _open_space(request: Mapping[str, Any]) -> str:
    """Load the Space's metric with `evaluate.load`, in a process without our credentials."""
    from huggingface_hub import snapshot_download

    folder = snapshot_download(request["repo"], repo_type="space", revision=request["commit"], local_files_only=True)
    secrets = set(terminal.credentials().values())
    code = "import sys, evaluate; print(type(evaluate.load(sys.argv[1])).__name__)"
    process = subprocess.run(
        [sys.executable, "-c", code, str(Path(folder) / f"{names.METRIC}.py")],
        env={name: value for name, value in os.environ.items() if value.strip() not in secrets},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"{request['repo']}: {(process.stderr.strip().splitlines() or ['no message'])[-1]}")
    return f"evaluate.load gives {process.stdout.split()[-1]}"


def _open_adapter(request: Mapping[str, Any]) -> str:
    """Read the headers of the adapter's weights, as the base model may be larger than this machine's memory."""
    from huggingface_hub import HfApi, hf_hub_download

    name, commit = request["repo"], request["commit"]
    if MODEL_WEIGHTS in request["files"]:
        header = HfApi().parse_safetensors_file_metadata(name, MODEL_WEIGHTS, revision=commit)
        return f"{len(header.tensors)} tensors of a whole model"
    config_file = hf_hub_download(name, CONFIG, revision=commit)
    base = json.loads(Path(config_file).read_text())["base_model_name_or_path"]
    header = HfApi().parse_safetensors_file_metadata(name, WEIGHTS, revision=commit)
    return f"{len(header.tensors)} tensors for {base}"


if __name__ == "__main__":
    main()
