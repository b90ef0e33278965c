"""Write the pages and files of an audit: a sample to judge as HTML, its scores as text and as JSON for a release."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.audit.rows import AuditSample, select_rows
from evaluators.audit.score import FORM_QUESTIONS, LABEL, PROPOSED_LABEL, RIGHT, Group, Scores, Share, questions_for
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, files, page, terminal
from safe_stepwise.store.names import LABELS
from safe_stepwise.store.tables import Table, decimal, fill, format_cell

_INTERVAL = "95% interval"
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("judgements", "kept", "rows", "page")
_WRITE_ADVICE = "write it with safe-stepwise audit_labels score ... --output FILE"


def render_scores(scores: Scores) -> str:
    """Render the scores as text: rates of answers, rates by kind of row, agreement of reviewers, doubtful rows."""
    fault, sound = ("noise", "sound") if scores.of == LABELS else ("an error", "Correct")
    shares = {
        f"labelled {fault}: the label is wrong": scores.false_alarms,
        f"labelled {sound}: the label is wrong": scores.missed,
        "rightly labelled noise: the passages lack evidence": scores.lacks_evidence,
    }
    rates = [(question, *rate) for question, by_answer in scores.rates.items() for rate in by_answer.items()]
    tables: list[Table] = [
        [
            ("question", "answer", "rows", "share", _INTERVAL),
            *((*keys, *_format_share(share)) for *keys, share in rates),
        ],
        [
            ("of the rows", "count", "of", "share", _INTERVAL),
            *((name, share.hits, *_format_share(share)) for name, share in shares.items() if share),
        ],
        *(_tabulate_right_labels(name, groups) for name, groups in scores.parts.items()),
    ]
    if scores.agreement:
        heads = ("reviewer", "reviewer", "question", "rows", "equal", "Cohen's kappa")
        kappa = partial(format_cell, form=decimal(3), missing="-")
        pairs = ((p.one, p.other, p.question, p.rows, f"{p.share:.3f}", kappa(p.kappa)) for p in scores.agreement)
        tables.append([heads, *pairs])
    return fill(_TEMPLATES, "scores.txt.jinja", scores=scores, tables=tables).rstrip("\n")


def _format_share(share: Share) -> tuple[object, ...]:
    return share.rows, f"{share.share:.3f}", f"{share.low:.3f} to {share.high:.3f}"


def _tabulate_right_labels(title: str, groups: tuple[Group, ...]) -> Table:
    rated = [(", ".join(group.names), group.rates[LABEL][RIGHT]) for group in groups if LABEL in group.rates]
    return [(title, "rows", "label right", _INTERVAL), *((names, *_format_share(share)) for names, share in rated)]


def write_scores(scores: Scores, output: Path) -> None:
    """Write the scores as JSON; raise ``UserError`` for a file that can't be written."""
    page.write_file(output, files.json_bytes(asdict(scores)))


def read_scores(file: Path, audited: str) -> dict[str, Any]:
    """Read a file of `write_scores` as plain JSON; raise ``UserError`` for other files and other ``audited`` sets."""
    scores: dict[str, Any] = boundary.plain(boundary.read_file(Scores, file, "the record", _WRITE_ADVICE))
    form_questions = {question.name for questions in FORM_QUESTIONS.values() for question in questions}
    pairs = scores["agreement"]
    questions = {pair["question"] for pair in pairs} | set(scores["rates"])
    reviewers = {pair[side] for pair in pairs for side in ("one", "other")}
    if not questions <= form_questions or not reviewers <= set(scores["reviewers"]):
        raise UserError(f"{file}: refers to unknown questions or reviewers; {_WRITE_ADVICE}")
    if scores["of"] != audited:
        raise UserError(f"{file}: has scores of {scores['of']}, not of {audited}; name it as such")
    return scores


def check_rows(scores: Mapping[str, Any], file: Path, folder: Path) -> None:
    """Raise ``UserError`` unless the folder holds every row of the scores as it was judged."""
    judged = {(benchmark, id_): sha256 for benchmark, id_, sha256 in scores["judged"]}
    present = select_rows(folder, scores["of"], judged)
    changed = [key for key, digest in judged.items() if key not in present or present[key].sha256 != digest]
    if changed:
        example = terminal.printable(" ".join(changed[0]))
        raise UserError(
            f"{file}: {len(changed):,} of the {len(judged):,} rows that were judged are not, or not "
            f"like that, in {folder} (the first: {example}); have a sample of these rows judged, or "
            "take the file out of the manifest"
        )


def render_sample(sample: AuditSample, meanings: Mapping[str, str]) -> str:
    """Render a sample as one HTML page, with the labels' definitions."""
    name, styles = f"{sample.audited} {sample.sha256[:12]}", ("row", "style")
    return page.render_page(_TEMPLATES, name, _SCRIPTS, page_data(sample, meanings), styles)


def page_data(sample: AuditSample, meanings: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of a sample's page, for JSON; its keys are those that the page's scripts read."""
    questions = FORM_QUESTIONS[sample.audited]
    keyboard_keys = iter("123456789")
    return {
        "of": sample.audited,
        "sample": sample.sha256,
        "meanings": dict(meanings),
        "asked": [
            {
                "name": question.name,
                "text": question.text,
                # Each answer has a key of the keyboard; a proposed label is picked from a list instead.
                "answers": [
                    [answer, words, "" if question.name == PROPOSED_LABEL else next(keyboard_keys)]
                    for answer, words in question.answers.items()
                ],
                "optional": question.name == PROPOSED_LABEL,
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
