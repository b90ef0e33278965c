"""The pages and files of an audit: a sample to judge as HTML, its scores as text and as JSON for a release."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.audit.rows import AuditSample, select_rows
from evaluators.audit.score import FORM, INSTEAD, LABEL, RIGHT, Group, Scores, Share, questions_for
from safe_stepwise.errors import UserError
from safe_stepwise.store import files, terminal
from safe_stepwise.store.boundary import plain, read_file
from safe_stepwise.store.names import LABELS
from safe_stepwise.store.page import render_page, write_file, write_page
from safe_stepwise.store.tables import Table, decimal, fill, format_cell

_INTERVAL = "95% interval"


def render_scores(scores: Scores) -> str:
    """Render the scores as text: rates of answers, rates by stratum, agreement of reviewers, doubtful rows."""
    fault, sound = ("noise", "sound") if scores.of == LABELS else ("an error", "Correct")
    shares = {
        f"labelled {fault}: the label is wrong": scores.false_alarms,
        f"labelled {sound}: the label is wrong": scores.missed,
        "rightly labelled noise: the passages lack evidence": scores.lacks_evidence,
    }
    rates = [(question, *rate) for question, by_answer in scores.rates.items() for rate in by_answer.items()]
    tables: list[Table] = [
        [
            ("question", "answer", "rows", "share", "95% interval"),
            *((*keys, *_cells(share)) for *keys, share in rates),
        ],
        [
            ("of the rows", "count", "of", "share", _INTERVAL),
            *((name, share.hits, *_cells(share)) for name, share in shares.items() if share),
        ],
        *(_right(name, groups) for name, groups in scores.parts.items()),
        _right("stratum", scores.strata),
    ]
    if scores.agreement:
        heads = ("reviewer", "reviewer", "question", "rows", "equal", "Cohen's kappa")
        kappas = [format_cell(pair.kappa, decimal(3), "-") for pair in scores.agreement]
        pairs = [(p.one, p.other, p.question, p.rows, f"{p.share:.3f}") for p in scores.agreement]
        tables.append([heads, *((*pair, kappa) for pair, kappa in zip(pairs, kappas, strict=True))])
    return fill(_TEMPLATES, "scores.txt.jinja", scores=scores, tables=tables).rstrip("\n")


def _cells(share: Share) -> tuple[object, ...]:
    return share.rows, f"{share.share:.3f}", f"{share.low:.3f} to {share.high:.3f}"


def _right(title: str, groups: tuple[Group, ...]) -> Table:
    rows = [(", ".join(group.names), *_cells(group.rates[LABEL][RIGHT])) for group in groups if LABEL in group.rates]
    return [(title, "rows", "label right", _INTERVAL), *rows]


def write_scores(scores: Scores, output: Path) -> None:
    """Write the scores as JSON; raises ``UserError`` for a file that can't be written."""
    write_file(output, files.json_bytes(asdict(scores)))


_WRITE_ADVICE = "write it with safe-stepwise audit_labels score ... --output FILE"


def read_scores(file: Path, audited: str) -> dict[str, Any]:
    """Read a file of `report.write_scores` as plain JSON; raises ``UserError`` for any other file."""
    scores: dict[str, Any] = plain(read_file(Scores, file, "the record", _WRITE_ADVICE))
    keys = {question.name for questions in FORM.values() for question in questions}
    pairs = scores["agreement"]
    topics = {pair["question"] for pair in pairs} | set(scores["rates"])
    names = {pair[side] for pair in pairs for side in ("one", "other")}
    if not topics <= keys or not names <= set(scores["reviewers"]):
        raise UserError(f"{file}: speaks of questions or reviewers that it does not name; {_WRITE_ADVICE}")
    if scores["of"] != audited:
        raise UserError(f"{file}: has scores of {scores['of']}, not of {audited}; name it as such")
    return scores


def check_rows(scores: Mapping[str, Any], file: Path, folder: Path) -> None:
    """Raise ``UserError`` unless the folder holds every row of the scores as it was judged."""
    judged = {(benchmark, id_): sha256 for benchmark, id_, sha256 in scores["judged"]}
    present = select_rows(folder, scores["of"], judged)
    changed = [k for k, digest in judged.items() if k not in present or present[k].sha256 != digest]
    if changed:
        example = terminal.printable(" ".join(changed[0]))
        raise UserError(
            f"{file}: {len(changed):,} of the {len(judged):,} rows that were judged are not, or not "
            f"like that, in {folder} (the first: {example}); have a sample of these rows judged, or "
            "take the file out of the manifest"
        )


_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("judgements", "kept", "rows", "page")


def write_sample(sample: AuditSample, meanings: Mapping[str, str], output: Path) -> None:
    """Write a sample as one HTML page, with the labels' ``meanings``; raise ``UserError`` if it can't be written."""
    write_page(output, render_sample(sample, meanings))


def render_sample(sample: AuditSample, meanings: Mapping[str, str]) -> str:
    name, styles = f"{sample.audited} {sample.sha256[:12]}", ("row", "style")
    return render_page(_TEMPLATES, name, _SCRIPTS, page_data(sample, meanings), styles)


def page_data(sample: AuditSample, meanings: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of the page, for JSON."""
    questions = FORM[sample.audited]
    keys = iter("123456789")
    return {
        "of": sample.audited,
        "sample": sample.sha256,
        "meanings": dict(meanings),
        "asked": [
            {
                "name": question.name,
                "text": question.text,
                # Each answer has a key to press; a label to choose instead is picked from a list.
                "answers": [
                    [key, words, "" if question.name == INSTEAD else next(keys)]
                    for key, words in question.answers.items()
                ],
                "optional": question.name == INSTEAD,
            }
            for question in questions
        ],
        "rows": [
            {
                "benchmark": row.key[0],
                "id": row.key[1],
                "sha256": row.sha256,
                "stratum": row.stratum,
                "asks": [question.name for question in questions_for(sample.audited, row.stratum)],
                "shown": row.content,
            }
            for row in sample.rows
        ],
    }
