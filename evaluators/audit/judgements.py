"""Files of judgements, as the page exports them: a JSON object a line, a row of a reviewer each.

    {"of": "labels", "sample": "9f…", "benchmark": "musique", "id": "2hop__1", "sha256": "07…",
     "stratum": ["musique", "wrong_answer"], "reviewer": "ann", "label": "right", "type": "wrong",
     "explanation": "true", "lacks_evidence": null, "note": ""}

``sample`` and ``sha256`` identify the sample and the content of the row that the page showed. A
question that the reviewer left open, or that does not apply to the row, is null.
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
"""Questions that scores look up by name."""
RIGHT, WRONG, YES = "right", "wrong", "yes"
SOUND: Mapping[str, str] = {LABELS: "none", STEPS: CORRECT}
"""The label of a row without a fault."""
STRATUM_FIELDS: Mapping[str, tuple[str, ...]] = {
    LABELS: ("benchmark", "noise_type"),
    STEPS: ("benchmark", "error_type", "origin"),
}
"""The fields of a row whose values are its stratum; the second is the row's label."""


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """A question to a reviewer: its key in a file, its text, and the words of each answer."""

    name: str
    text: str
    answers: Mapping[str, str]
    of_sound: bool = True
    """Whether the question applies to rows without a fault, too."""


def _plain(*answers: str) -> Mapping[str, str]:
    return {answer: answer for answer in answers}


_JUDGED = _plain(RIGHT, WRONG, "debatable")
FORM: Mapping[str, tuple[FormQuestion, ...]] = {
    LABELS: (
        FormQuestion(LABEL, "Is the label right (noise, or sound)?", _JUDGED),
        FormQuestion(TYPE, "Is the type of noise right?", _plain(RIGHT, WRONG), of_sound=False),
        FormQuestion("explanation", "Is the explanation true?", _plain("true", "false")),
        FormQuestion(LACKS, "Do the passages lack what the question needs?", _plain(YES, "no")),
    ),
    STEPS: (
        FormQuestion(LABEL, "Is the step's label right?", _JUDGED),
        FormQuestion("diagnosis", "Is the diagnosis true?", _plain("true", "false", "debatable")),
        FormQuestion(
            "guidance", "Is the guidance good?", {"good": "good", "reveals": "gives the answer away", "bad": "bad"}
        ),
        FormQuestion(INSTEAD, "Which label instead? (if you like)", _plain(*labels())),
    ),
}


def questions_for(audited: Audited, stratum: Sequence[str]) -> tuple[FormQuestion, ...]:
    """Return the questions to a reviewer that apply to a row of this stratum.

    >>> [q.name for q in questions_for("labels", ("musique", "none"))]
    ['label', 'explanation', 'lacks_evidence']
    """
    is_sound = stratum[1] == SOUND[audited]
    return tuple(q for q in FORM[audited] if q.of_sound or not is_sound)


_AGAIN = "export it from the page again, or mend the line"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One reviewer's answers about one row; ``answers`` lacks the questions that the reviewer left open."""

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
        """The digest and stratum, which must be equal in all judgements of a row."""
        return self.sha256, self.stratum


_KEYS = [field.name for field in fields(Judgement) if field.name != "answers"]


def parse(line: str | bytes) -> Judgement:
    """Parse one line; raises ``ValueError``, and nothing else, for a line that is no judgement."""
    record = boundary.read(Mapping[str, object], parse_json(line), "the line")
    audited = record.get("of")
    if audited not in AUDITED:
        raise ValueError(f"of is not one of {', '.join(AUDITED)}")
    names = [question.name for question in FORM[audited]]
    if lacking := [name for name in (*_KEYS, *names) if name not in record]:
        raise ValueError(f"it has no {lacking[0]}")
    if strange := sorted(set(record) - {*_KEYS, *names}):
        raise ValueError(f"{printable(strange[0])} is no key of it")
    stratum = tuple(boundary.read(list[str], record["stratum"], "stratum"))
    if len(stratum) != len(STRATUM_FIELDS[audited]) or stratum[0] != record["benchmark"]:
        raise ValueError(f"stratum is not {', '.join(STRATUM_FIELDS[audited])}")
    texts = {name: record[name] for name in _KEYS if name not in ("of", "stratum")}
    answers = _answers(audited, stratum, {name: record[name] for name in names})
    judgement = Judgement(of=audited, stratum=stratum, answers=answers, **texts)
    boundary.read(Judgement, judgement, "it")
    if not judgement.reviewer.strip():
        raise ValueError("reviewer is empty")
    return judgement


def _answers(audited: Audited, stratum: Stratum, replies: Mapping[str, object]) -> dict[str, str]:
    allowed = {question.name: question.answers for question in questions_for(audited, stratum)}
    answers: dict[str, str] = {}
    for name, answer in replies.items():
        if answer is None:
            continue
        if name not in allowed:
            raise ValueError(f"{name} is not asked of this row, so it has to be null")
        if not isinstance(answer, str) or answer not in allowed[name]:
            raise ValueError(f"{name} is not one of {', '.join(allowed[name])}, or null")
        answers[name] = answer
    return answers


def read(files: Iterable[Path]) -> list[Judgement]:
    """Read the judgements of files about one sample, in their order.

    Raises ``UserError`` with file and line for a line that is no judgement, for a row that one reviewer
    judged twice, and for files of different samples; with the file for an empty or unreadable one, and
    where no file answers a question.
    """
    places: dict[tuple[str, Key], tuple[Judgement, str]] = {}
    rows: dict[Key, tuple[str, Stratum]] = {}
    first: tuple[Judgement, str] | None = None
    for place, judgement in (entry for file in files for entry in _lines(file)):
        first = first or (judgement, place)
        if (judgement.of, judgement.sample) != (first[0].of, first[0].sample):
            raise UserError(f"{place}: judges another sample than {first[1]}; score the files of one sample at a time")
        key = judgement.reviewer, judgement.key
        if key in places:
            raise UserError(
                f"{place}: {printable(judgement.reviewer)!r} judged the row "
                f"{printable(judgement.id)!r} before, in {places[key][1]}; remove one of the two"
            )
        if rows.setdefault(judgement.key, judgement.row) != judgement.row:
            raise UserError(
                f"{place}: its row {printable(judgement.id)!r} has other content in an earlier line; {_AGAIN}"
            )
        places[key] = judgement, place
    judgements = [judgement for judgement, _ in places.values()]
    if first and not any(judgement.answers for judgement in judgements):
        raise UserError(f"{first[1]}: no question is answered there or anywhere else; judge rows")
    return judgements


def _lines(file: Path) -> list[tuple[str, Judgement]]:
    lines = list(read_lines(file, parse, "judgement", _AGAIN))
    if not lines:
        raise UserError(f"{file}: holds no judgement; export it from the page")
    return lines
