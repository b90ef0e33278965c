"""Refinement as a loop: a verifier is trained, where it errs is mined, and that joins its set.

That is SAFE v1's cycle of train, diagnose and augment (section 3.3), once or several times; the
adapter of the release is trained behind it. A round has a folder of its own, with its verifier set,
its adapter and what was mined; what is complete there is not made again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store.boundary import read_object
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import REPORT, STEPS_RECORD, VERIFIER_STEPS, WORK

PART = "refinement"
"""What the stage is called among the parts of a release."""
_BEGUN = "begun.json"


@dataclass(frozen=True, slots=True)
class Round:
    """The folder of a round, and the places in it."""

    folder: Path

    @property
    def built(self) -> Path:
        """Where its set is built."""
        return self.folder / "set"

    @property
    def steps(self) -> Path:
        """The verifier set itself."""
        return self.built / VERIFIER_STEPS

    @property
    def adapter(self) -> Path:
        """What is trained on it."""
        return self.folder / "adapter"

    @property
    def mined(self) -> Path:
        """What that adapter gets wrong."""
        return self.folder / "mined"


@dataclass(frozen=True, slots=True)
class Stage:
    """How the parts of a round are made; each goes on from where it was stopped.

    ``mined_of`` is the record with which mining ends, in its folder.
    """

    build: Callable[[Round, Path | None], object]
    """Builds the set, with the refined rows of a folder if there are any yet."""
    train: Callable[[Round], object]
    mine: Callable[[Round], str]
    """Returns what there is to say."""
    join: Callable[[Sequence[Path], Path], int]
    """Joins what rounds mined in a folder; returns how many rows that has."""
    mined_of: str


def refined_folder(output: Path) -> Path:
    """Where a release keeps what all rounds found."""
    return output / REPORT / PART


def work_of(output: Path) -> Path:
    """Where the rounds of a release under way lie."""
    return output / WORK / PART


def run(stage: Stage, rounds: int, output: Path, identity: Mapping[str, str]) -> tuple[int, str]:
    """Go round and round; returns how many refined rows there are, and what there is to say.

    Killed at any instant, the same call resumes. ``identity`` has a digest of each thing that the
    rounds are made of: raises ``UserError`` where the folder was begun with another.
    """
    work = work_of(output)
    _begin(work, identity)
    said, mined, joined = list[str](), list[Path](), None
    for number in range(1, rounds + 1):
        this = Round(work / f"round-{number}")
        if not (this.steps / STEPS_RECORD).is_file():
            stage.build(this, joined)
        stage.train(this)
        told = "mined by an earlier run"
        if not (this.mined / stage.mined_of).is_file():
            told = stage.mine(this)
        said.append(f"refinement, round {number}: {told}")
        mined.append(this.mined)
        joined = this.folder / "joined"
        stage.join(mined, joined)
    found = refined_folder(output)
    rows = stage.join(mined, found)
    return rows, "\n\n".join([*said, f"{found}: {rows:,} refined rows"])


def _begin(work: Path, identity: Mapping[str, str]) -> None:
    """Note what rounds are made of, or compare with what was noted."""
    noted = work / _BEGUN
    if noted.is_file():
        before = read_object(noted)
        for key in identity:
            if before.get(key) != identity[key]:
                raise UserError(
                    f"{work}: was begun with another {key}; use that one, choose another --output, "
                    "or delete that folder, and what was trained there with it"
                )
        return
    work.mkdir(parents=True, exist_ok=True)
    write_atomically(noted, canonical_json(identity).encode())
