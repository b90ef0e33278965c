"""Where a probe's questions and paths come from, in the form of the verified builds' records."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from builders.paths import metaqa
from builders.steps.questions import OF_A_BUILD
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import sha256_of

R4C = {
    "benchmark": "r4c",
    "license": "cc0-1.0",
    "homepage": "https://naoya-i.github.io/r4c/",
    "citation": """\
@inproceedings{inoue2020r4c,
  title = {{R4C}: A Benchmark for Evaluating {RC} Systems to Get the Right Answer for the Right
           Reason},
  author = {Inoue, Naoya and Stenetorp, Pontus and Inui, Kentaro},
  booktitle = {Proceedings of ACL},
  year = {2020}
}""",
}
METAQA = {
    "benchmark": metaqa.NAME,
    "license": metaqa.LICENSE,
    "homepage": metaqa.HOMEPAGE,
    "citation": metaqa.CITATION,
}


class Files(Protocol):
    """The files of a build beside the verified set."""

    @property
    def films(self) -> Path | None: ...
    @property
    def questions(self) -> Path | None: ...
    @property
    def derivations(self) -> Path | None: ...
    @property
    def version(self) -> str: ...


def origins(builds: Sequence[Mapping[str, Any]], files: Files) -> list[dict[str, Any]]:
    """The records of all sources; raises ``UserError`` for a file that can't be read."""
    found = [{name: build[name] for name in OF_A_BUILD} for build in builds]
    if files.derivations is not None:
        found.append(_of_files(R4C, files.version, files.derivations))
    if files.films is not None and files.questions is not None:
        found.append(_of_files(METAQA, files.version, files.films, files.questions))
    return found


def _of_files(known: Mapping[str, str], version: str, *files: Path) -> dict[str, Any]:
    try:
        digests = {file.name: sha256_of(file) for file in files}
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror})") from None
    return {
        **known,
        "split": "",
        "version": version,
        "source": {"files": digests, "synthetic": False},
        "teacher": "annotations",
        "simulated": False,
        "verified": 0,
        "digest": "",
        "code_sha256": "",
    }
