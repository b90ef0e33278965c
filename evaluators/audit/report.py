"""Scores of an audit to read, and as the file that a release may name."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.audit.asked import ASKED, LABEL, RIGHT
from evaluators.audit.rows import rows
from evaluators.audit.score import Group, Scores, Share
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import plain, read_file
from safe_stepwise.store.files import write_lines
from safe_stepwise.store.names import LABELS
from safe_stepwise.store.pages import fill
from safe_stepwise.store.tables import Table, decimal, shown
from safe_stepwise.store.terminal import printable

_LABEL = ("rows", "label right", "95% interval")


def told(scores: Scores) -> str:
    """The scores as text: what was answered, per stratum, by whom, and the rows to look at."""
    fault, sound = ("noise", "sound") if scores.of == LABELS else ("an error", "Correct")
    shares = {
        f"labelled {fault}: the label is wrong": scores.false_alarms,
        f"labelled {sound}: the label is wrong": scores.missed,
        "rightly labelled noise: the passages lack evidence": scores.lacks_evidence,
    }
    answers = [(question, *of) for question, by_answer in scores.rates.items() for of in by_answer.items()]
    tables: list[Table] = [
        [("question", "answer", "rows", "share", "95% interval"), *((*about, *_cells(of)) for *about, of in answers)],
        [
            ("of the rows", "count", "of", "share", "95% interval"),
            *((name, share.hits, *_cells(share)) for name, share in shares.items() if share),
        ],
        *(_right(name, groups) for name, groups in scores.parts.items()),
        _right("stratum", scores.strata),
    ]
    if scores.agreement:
        heads = ("reviewer", "reviewer", "question", "rows", "equal", "Cohen's kappa")
        kappas = [shown(pair.kappa, decimal(3), "-") for pair in scores.agreement]
        pairs = [(p.one, p.other, p.question, p.rows, f"{p.share:.3f}") for p in scores.agreement]
        tables.append([heads, *((*pair, kappa) for pair, kappa in zip(pairs, kappas, strict=True))])
    return fill(Path(__file__).parent / "templates", "scores.txt.jinja", scores=scores, tables=tables).rstrip("\n")


def _cells(share: Share) -> tuple[object, ...]:
    return share.rows, f"{share.share:.3f}", f"{share.low:.3f} to {share.high:.3f}"


def _right(head: str, groups: tuple[Group, ...]) -> Table:
    rows = [(", ".join(g.names), *_cells(g.rates[LABEL][RIGHT])) for g in groups if LABEL in g.rates]
    return [(head, *_LABEL), *rows]


def write_scores(scores: Scores, output: Path) -> None:
    """Write the scores as JSON; raises ``UserError`` for a file that can't be written."""
    text = json.dumps(asdict(scores), indent=2, sort_keys=True, ensure_ascii=False)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_lines(output, [text])
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror}); choose another --output") from None


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
