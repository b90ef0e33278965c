"""Make evaluate.load("safe_stepwise") find this package's metric by its bare name.

``evaluate`` finds no metrics of installed packages. It looks for a bare name in ``./NAME/NAME.py``, among the Hub's
own Spaces (``evaluate-metric/NAME`` and two more), and last in its folder of modules that it has downloaded before.
This command puts the module into that folder.
"""

import os
import shutil
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from safe_stepwise import __version__
from safe_stepwise.commands.command import command
from safe_stepwise.errors import UserError, require_modules
from safe_stepwise.store.files import remove_folder, write_folder

NAME = "safe_stepwise"
FOLDER = f"metrics/evaluate-metric--{NAME}"


@dataclass(frozen=True, kw_only=True)
class Options:
    remove: bool = False


def source() -> str:
    """Read the text of the metric's module, as in the Space's folder."""
    return _shipped().read_text(encoding="utf-8")


def registered() -> list[Path]:
    """List the copies that ``evaluate`` would find; the first is the one that it would import."""
    return sorted(_folder().glob(f"{'[0-9a-f]' * 64}/{NAME}.py"), key=lambda file: file.stat().st_mtime, reverse=True)


def register() -> Path:
    """Copy the metric to where ``evaluate`` finds it, remove older copies, return the path; raises ``UserError``."""
    require_modules("register", "evaluate", "metric", "evaluate")
    from evaluate.loading import files_to_hash, init_dynamic_modules

    module = source()
    try:
        folder = Path(init_dynamic_modules(), FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        for level in (folder.parent, folder):
            (level / "__init__.py").touch()
        with resources.as_file(_shipped()) as file:
            target = folder / files_to_hash([str(file)])
        with write_folder(target) as staging:
            (staging / "__init__.py").touch()
            (staging / f"{NAME}.py").write_text(module, encoding="utf-8")
            for outdated in {target, *(copy.parent for copy in registered())}:
                remove_folder(outdated)
    except OSError as error:
        raise UserError(
            f"{error.filename}: cannot be written ({error.strerror}); set HF_MODULES_CACHE to a folder of your own"
        ) from None
    return Path(target, f"{NAME}.py")


def remove() -> int:
    """Remove all copies and return their number; raises ``UserError`` if that fails."""
    copies = registered()
    try:
        for copy in copies:
            shutil.rmtree(copy.parent)
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be removed ({error.strerror})") from None
    return len(copies)


@command
def main(options: Options) -> str:
    """Register or remove the metric's module, and return a line about the result."""
    # transformers, which evaluate imports, would warn twice that there is no torch.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    if options.remove:
        return f"removed from {_folder()}: {remove()}"
    return f'evaluate.load("{NAME}") now finds version {__version__}: {register()}'


def _shipped() -> Traversable:
    """Locate the module: a wheel holds it as text (``setup.py``), a checkout in the Space's folder."""
    package = resources.files("safe_stepwise")
    built = package.joinpath("metric", "space", f"{NAME}.py.txt")
    return built if built.is_file() else Path(str(package)).parent / "evaluators" / NAME / f"{NAME}.py"


def _folder() -> Path:
    from evaluate import config

    return Path(config.HF_MODULES_CACHE, config.MODULE_NAME_FOR_DYNAMIC_MODULES, FOLDER)
