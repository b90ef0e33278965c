"""Scores of an audit to read, and as the file that a release may name."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.audit.asked import ASKED, LABEL, RIGHT
from evaluators.audit.rows import rows
from evaluators.audit.score import Group, Rates, Scores, Share
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import plain, read_file
from safe_stepwise.store.files import write_lines
from safe_stepwise.store.names import LABELS
from safe_stepwise.store.tables import table
from safe_stepwise.store.terminal import printable

_SHOWN = 20
"""Rows to look at that are listed; the file has all."""


def told(scores: Scores) -> str:
    """The scores as text: what was answered, per stratum, by whom, and the rows to look at."""
    names = ", ".join(map(printable, scores.reviewers))
    parts = [
        f"{scores.rows:,} rows of {scores.of} judged, {scores.judgements:,} judgements by {names}",
        table([("question", "answer", "rows", "share", "95% interval"), *_answers(scores.rates)]),
        table([("of the rows", "count", "of", "share", "95% interval"), *_named(scores)]),
        *(table([(name, *_LABEL), *_right(groups)]) for name, groups in scores.parts.items()),
        table([("stratum", *_LABEL), *_right(scores.strata)]),
    ]
    if scores.agreement:
        heads = ("reviewer", "reviewer", "question", "rows", "equal", "Cohen's kappa")
        pairs = [(p.one, p.other, p.question, p.rows, f"{p.share:.3f}", _number(p.kappa)) for p in scores.agreement]
        parts.append(table([heads, *pairs]))
    if scores.doubts:
        parts.append(_doubts(scores))
    return "\n\n".join(parts)


def write_scores(scores: Scores, output: Path) -> None:
    """Write the scores as JSON; raises ``UserError`` for a file that can't be written."""
    text = json.dumps(asdict(scores), indent=2, sort_keys=True, ensure_ascii=False)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_lines(output, [text])
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror}); choose another --output") from None


_LABEL = ("rows", "label right", "95% interval")


def _answers(rates: Rates) -> Iterator[tuple[object, ...]]:
    for question, answers in rates.items():
        for answer, share in answers.items():
            yield question, answer, share.rows, _number(share.share), _interval(share)


def _named(scores: Scores) -> Iterator[tuple[object, ...]]:
    fault, sound = ("noise", "sound") if scores.of == LABELS else ("an error", "Correct")
    for name, share in (
        (f"labelled {fault}: the label is wrong", scores.false_alarms),
        (f"labelled {sound}: the label is wrong", scores.missed),
        ("rightly labelled noise: the passages lack evidence", scores.lacks_evidence),
    ):
        if share:
            yield name, share.hits, share.rows, _number(share.share), _interval(share)


def _right(groups: tuple[Group, ...]) -> Iterator[tuple[object, ...]]:
    for group in groups:
        if LABEL in group.rates:
            share = group.rates[LABEL][RIGHT]
            yield ", ".join(group.names), share.rows, _number(share.share), _interval(share)


def _doubts(scores: Scores) -> str:
    lines = [f"to look at ({len(scores.doubts):,} rows; --output FILE has all, with notes):"]
    for doubt in scores.doubts[:_SHOWN]:
        wrong = [f"wrong says {', '.join(doubt.wrong)}"] if doubt.wrong else []
        differ = [f"they differ on {', '.join(doubt.disagree)}"] if doubt.disagree else []
        said = "; ".join((*wrong, *differ))
        lines.append(f"  {printable(f'{doubt.benchmark} {doubt.id}: {said}')}")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(share: Share) -> str:
    return f"{share.low:.3f} to {share.high:.3f}"


_MAKE = "write it with safe-stepwise audit_labels score ... --output FILE"


def read_scores(file: Path, of: str) -> dict[str, Any]:
    """What `report.write_scores` wrote, as JSON has it; raises ``UserError`` for another file."""
    scores: dict[str, Any] = plain(read_file(Scores, file, "the record", _MAKE))
    asked = {one.name for questions in ASKED.values() for one in questions}
    pairs = scores["agreement"]
    strange = {pair["question"] for pair in pairs} | set(scores["rates"])
    names = {pair[who] for pair in pairs for who in ("one", "other")}
    if not strange <= asked or not names <= set(scores["reviewers"]):
        raise UserError(f"{file}: speaks of questions or reviewers that it does not name; {_MAKE}")
    if scores["of"] != of:
        raise UserError(f"{file}: has scores of {scores['of']}, not of {of}; name it as such")
    return scores


def check_rows(scores: Mapping[str, Any], file: Path, folder: Path) -> None:
    """Raise ``UserError`` unless the folder holds every row of the scores as it was judged."""
    judged = {(benchmark, id_): sha256 for benchmark, id_, sha256 in scores["judged"]}
    found = rows(folder, scores["of"], judged)
    other = [k for k, digest in judged.items() if k not in found or found[k].sha256 != digest]
    if other:
        named = printable(" ".join(other[0]))
        raise UserError(
            f"{file}: {len(other):,} of the {len(judged):,} rows that were judged are not, or not "
            f"like that, in {folder} (the first: {named}); have a sample of these rows judged, or "
            "take the file out of the manifest"
        )
