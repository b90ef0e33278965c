"""Files of judgements, as the page exports them: a JSON object a line, a row of a reviewer each.

    {"of": "labels", "sample": "9f…", "benchmark": "musique", "id": "2hop__1", "sha256": "07…",
     "stratum": ["musique", "wrong_answer"], "reviewer": "ann", "label": "right", "type": "wrong",
     "explanation": "true", "lacks_evidence": null, "note": ""}

``sample`` and ``sha256`` identify the sample and what was shown of the row; a question that was
left open, or is not asked of the row, is null.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from evaluators.audit.rows import Key, Stratum
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.files import read_lines
from safe_stepwise.store.names import AUDITED, LABELS, STEPS, Audited
from safe_stepwise.store.terminal import printable
from safe_stepwise.taxonomy import CORRECT, labels

LABEL, TYPE, INSTEAD, LACKS = "label", "type", "instead", "lacks_evidence"
"""Questions that scores know by name."""
RIGHT, WRONG, YES = "right", "wrong", "yes"
SOUND: Mapping[str, str] = {LABELS: "none", STEPS: CORRECT}
"""What a row without a fault is labelled."""
PARTS: Mapping[str, tuple[str, ...]] = {
    LABELS: ("benchmark", "noise_type"),
    STEPS: ("benchmark", "error_type", "origin"),
}
"""What a stratum of a sample is made of; the second part is the row's label."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a reviewer: its key in a file, its text, and the words of each answer."""

    name: str
    text: str
    answers: Mapping[str, str]
    of_sound: bool = True
    """Whether it is asked of rows without a fault, too."""


def _plain(*answers: str) -> Mapping[str, str]:
    return {answer: answer for answer in answers}


_JUDGED = _plain(RIGHT, WRONG, "debatable")
ASKED: Mapping[str, tuple[Asked, ...]] = {
    LABELS: (
        Asked(LABEL, "Is the label right (noise, or sound)?", _JUDGED),
        Asked(TYPE, "Is the type of noise right?", _plain(RIGHT, WRONG), of_sound=False),
        Asked("explanation", "Is the explanation true?", _plain("true", "false")),
        Asked(LACKS, "Do the passages lack what the question needs?", _plain(YES, "no")),
    ),
    STEPS: (
        Asked(LABEL, "Is the step's label right?", _JUDGED),
        Asked("diagnosis", "Is the diagnosis true?", _plain("true", "false", "debatable")),
        Asked("guidance", "Is the guidance good?", {"good": "good", "reveals": "gives the answer away", "bad": "bad"}),
        Asked(INSTEAD, "Which label instead? (if you like)", _plain(*labels())),
    ),
}


def asked_of(of: Audited, stratum: Sequence[str]) -> tuple[Asked, ...]:
    """What is asked of a row of this stratum.

    >>> [asked.name for asked in asked_of("labels", ("musique", "none"))]
    ['label', 'explanation', 'lacks_evidence']
    """
    is_sound = stratum[1] == SOUND[of]
    return tuple(asked for asked in ASKED[of] if asked.of_sound or not is_sound)


_AGAIN = "export it from the page again, or mend the line"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one reviewer said of one row; ``answers`` has no question that was left open."""

    of: Audited
    sample: str
    benchmark: str
    id: str
    sha256: str
    stratum: Stratum
    reviewer: str
    answers: Mapping[str, str]
    note: str = ""

    @property
    def key(self) -> Key:
        return self.benchmark, self.id

    @property
    def row(self) -> tuple[str, Stratum]:
        """What has to be alike in all judgements of a row."""
        return self.sha256, self.stratum


_KEYS = [field.name for field in fields(Judgement) if field.name != "answers"]


def parse(line: str | bytes) -> Judgement:
    """The judgement of a line; raises ``ValueError``, and nothing else, for a line that is none."""
    said = boundary.read(Mapping[str, object], parse_json(line), "the line")
    of = said.get("of")
    if of not in AUDITED:
        raise ValueError(f"of is not one of {', '.join(AUDITED)}")
    names = [asked.name for asked in ASKED[of]]
    if lacking := [name for name in (*_KEYS, *names) if name not in said]:
        raise ValueError(f"it has no {lacking[0]}")
    if strange := sorted(set(said) - {*_KEYS, *names}):
        raise ValueError(f"{printable(strange[0])} is no key of it")
    stratum = tuple(boundary.read(list[str], said["stratum"], "stratum"))
    if len(stratum) != len(PARTS[of]) or stratum[0] != said["benchmark"]:
        raise ValueError(f"stratum is not {', '.join(PARTS[of])}")
    plain = {name: said[name] for name in _KEYS if name not in ("of", "stratum")}
    answers = _answers(of, stratum, {name: said[name] for name in names})
    found = Judgement(of=of, stratum=stratum, answers=answers, **plain)
    boundary.read(Judgement, found, "it")
    if not found.reviewer.strip():
        raise ValueError("reviewer is empty")
    return found


def _answers(of: Audited, stratum: Stratum, said: Mapping[str, object]) -> dict[str, str]:
    allowed = {asked.name: asked.answers for asked in asked_of(of, stratum)}
    found: dict[str, str] = {}
    for name, answer in said.items():
        if answer is None:
            continue
        if name not in allowed:
            raise ValueError(f"{name} is not asked of this row, so it has to be null")
        if not isinstance(answer, str) or answer not in allowed[name]:
            raise ValueError(f"{name} is not one of {', '.join(allowed[name])}, or null")
        found[name] = answer
    return found


def read(files: Iterable[Path]) -> list[Judgement]:
    """The judgements of files about one sample, in their order.

    Raises ``UserError`` with file and line for a line that is none, a row twice by one reviewer,
    and for files of different samples; with the file for one that is empty or can't be read, and
    if no question is answered in any.
    """
    found: dict[tuple[str, Key], tuple[Judgement, str]] = {}
    rows: dict[Key, tuple[str, Stratum]] = {}
    first: tuple[Judgement, str] | None = None
    for where, judgement in (one for file in files for one in _lines(file)):
        first = first or (judgement, where)
        if (judgement.of, judgement.sample) != (first[0].of, first[0].sample):
            raise UserError(f"{where}: judges another sample than {first[1]}; score the files of one sample at a time")
        key = judgement.reviewer, judgement.key
        if key in found:
            raise UserError(
                f"{where}: {printable(judgement.reviewer)!r} judged the row "
                f"{printable(judgement.id)!r} before, in {found[key][1]}; remove one of the two"
            )
        if rows.setdefault(judgement.key, judgement.row) != judgement.row:
            raise UserError(
                f"{where}: its row {printable(judgement.id)!r} has other content in an earlier line; {_AGAIN}"
            )
        found[key] = judgement, where
    judgements = [judgement for judgement, _ in found.values()]
    if first and not any(judgement.answers for judgement in judgements):
        raise UserError(f"{first[1]}: no question is answered there or anywhere else; judge rows")
    return judgements


def _lines(file: Path) -> list[tuple[str, Judgement]]:
    lines = list(read_lines(file, parse, "judgement", _AGAIN))
    if not lines:
        raise UserError(f"{file}: holds no judgement; export it from the page")
    return lines
