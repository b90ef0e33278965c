"""The metric's Space as it is published: with the package that it needs, from the same checkout."""

import shutil
import tomllib
from pathlib import Path

from releases.parts import Made
from safe_stepwise.store.names import METRIC, SPACE

PACKAGE, PROJECT, SETUP, LICENSE = "safe_stepwise", "pyproject.toml", "setup.py", "LICENSE"
_IGNORED = shutil.ignore_patterns("__pycache__", ".*")


def copy_space(checkout: Path, output: Path) -> Made:
    """Make the Space's folder.

    No server installs the package for it: whoever took its name on PyPI would run code in every
    Space. Hugging Face installs ``requirements.txt`` before any other file of a Space is there, so
    that names what the package itself stands on, and the package lies beside the app.
    """
    folder = output / SPACE
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkout / "evaluators" / METRIC, folder, ignore=_IGNORED)
    shutil.copytree(checkout / PACKAGE, folder / PACKAGE, ignore=_IGNORED)
    for name in (PROJECT, SETUP, LICENSE):  # so that pip installs the package from the Space
        shutil.copyfile(checkout / name, folder / name)
    project = tomllib.loads((checkout / PROJECT).read_text(encoding="utf-8"))["project"]
    wanted = "".join(f"{line}\n" for line in sorted(project["dependencies"]))
    (folder / "requirements.txt").write_text(wanted, encoding="utf-8")
    return Made()
