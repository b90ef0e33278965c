"""Which weights a name means: a Hub id at a commit, or a local folder by what is in it.

An engine's identity has to change when its weights do, and only then. So a branch or tag is
resolved to its commit, and a folder is known by a digest of its files rather than by its path or
its times: a copy on another machine is the same model, a retrained one is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.engines.folders import SMALL, digest
from safe_stepwise.engines.packages import PACKAGE, unpacked
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import TRAINING, TUNED
from safe_stepwise.store.secrets import redacted


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
    """The adapter that is meant, all of its files being here.

    Raises ``UserError`` if there is none.
    """
    found = _find(adapter, (*SMALL, "*.safetensors", "*.bin"))
    if (found.folder / "adapter_config.json").is_file():
        return found
    raise UserError(f"{adapter.name}: holds no adapter_config.json: no PEFT adapter")


def _find(model: Model, patterns: Sequence[str]) -> Weights:
    packaged = model.name.startswith(PACKAGE)
    folder = unpacked(model.name) if packaged else Path(model.name).expanduser()
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
    text = redacted(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
