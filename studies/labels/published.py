"""Noise labels beside published ones: how well they agree, and the rows on which they differ."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.records import Label, Question
from safe_stepwise.store.agreement import Seen, agreement_of
from safe_stepwise.store.files import named_by_user, write_lines
from safe_stepwise.store.terminal import printable
from studies.labels.agreement import agreement, lacks_entities, score_rows

Labelled = tuple[Question, Label]
HEADER = ("benchmark", "labels", "rows", "published", "found", "precision", "recall", "F1")
CALIBRATION = ("benchmark", "confidence", "noise", "confirmed", "sound", "confirmed")


def comparison(
    labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool], said: Callable[[str], object] = print
) -> list[tuple[object, ...]]:
    """Table rows: for each benchmark our labels, and the names-only baseline.

    ``said`` hears of each benchmark without a published label; raises ``UserError`` if none has.
    """
    rows: list[tuple[object, ...]] = []
    if not any(question.id in published for found in labelled.values() for question, _ in found):
        raise UserError("no id of the labelled rows is in the published labels: other rows?")
    for name, found in labelled.items():
        ours = {question.id: label.unverifiable for question, label in found}
        names = {question.id: lacks_entities(question) for question, _ in found}
        shared = sum(id_ in published for id_ in ours)
        if not shared:
            said(f"left out: {name}: none of its ids is in the published labels")
            continue
        for what, labels in (("verification", ours), ("names alone", names)):
            _, *scores = score_rows([agreement(published, labels, what)])[0]
            rows.append((name, what, shared, *scores))
    return rows


def calibration(labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool]) -> list[tuple[object, ...]]:
    """Table rows: of our labels of about one confidence, the share that the published confirm."""
    rows: list[tuple[object, ...]] = []
    for name, found in labelled.items():
        seen: Counter[Seen] = Counter(
            (published[question.id], label.noise_type, label.confidence)
            for question, label in found
            if question.id in published
        )
        for b in agreement_of(seen).calibration:
            noise, sound = _share(b.noise_confirmed, b.noise), _share(b.sound_confirmed, b.sound)
            rows.append((name, b.confidence, b.noise, noise, b.sound, sound))
    return rows


def _share(part: int, rows: int) -> str:
    return f"{part / rows:.3f}" if rows else "-"


def kept_back(id_: str) -> bool:
    """Whether a question is of the half that nobody reads while checks are made (by its id)."""
    return sha256(id_.encode()).digest()[0] % 2 == 1


def halves(labelled: Mapping[str, Sequence[Labelled]]) -> dict[str, list[Labelled]]:
    """Rows of each benchmark that may be read, and those that are kept back."""
    return {
        f"{name}, {half}": [row for row in rows if kept_back(row[0].id) is back]
        for name, rows in labelled.items()
        for half, back in (("read", False), ("kept back", True))
    }


def disagreements(
    labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool]
) -> list[tuple[Question, Label]]:
    """The rows that we call unverifiable and others do not, or the other way round."""
    return [
        (question, label)
        for rows in labelled.values()
        for question, label in rows
        if published.get(question.id, label.unverifiable) != label.unverifiable
    ]


def listed(differ: Sequence[Labelled], show: int) -> str:
    """Disagreements to read, the first ``show`` of each side."""
    lines = []
    for ours, title in ((False, "published as noise only"), (True, "found as noise only")):
        rows = [(question, label) for question, label in differ if label.unverifiable is ours]
        first = f" (the first {show})" if 0 < show < len(rows) else ""
        lines.append(f"\n{title}: {len(rows)}{first}")
        for q, label in rows[:show]:
            lines.append("  " + printable(f"{q.benchmark} {q.id}: {q.question} -> {q.answer}"))
            lines.append("      " + printable(f"{label.noise_type}: {label.explanation}"))
    return "\n".join(lines)


def write_disagreements(differ: Sequence[Labelled], path: Path) -> None:
    """One JSON object a row on which the labels differ; ``UserError`` if it can't be written."""
    rows = (
        {
            "benchmark": question.benchmark,
            "id": question.id,
            "question": question.question,
            "answer": question.answer,
            "published_unverifiable": not label.unverifiable,
            "noise_type": label.noise_type,
            "explanation": label.explanation,
        }
        for question, label in differ
    )
    with named_by_user(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
