"""An audit's page to judge a sample on; its scores to read, and as the file that a release may name."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.audit.judgements import ASKED, INSTEAD, LABEL, RIGHT, asked_of
from evaluators.audit.rows import Sample, rows
from evaluators.audit.score import Group, Scores, Share
from evaluators.pages.offline import page, write_file, write_page
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import plain, read_file
from safe_stepwise.store.files import json_bytes
from safe_stepwise.store.names import LABELS
from safe_stepwise.store.tables import Table, decimal, fill, shown
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
    write_file(output, json_bytes(asdict(scores)))


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


_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("judgements", "kept", "rows", "page")


def write_sample(sample: Sample, meanings: Mapping[str, str], output: Path) -> None:
    """Write a sample as one HTML page to judge it on, which loads nothing and sends nothing anywhere.

    ``meanings`` says what each label means. Same sample, same bytes. Raises ``UserError`` for a file that can't be
    written.
    """
    write_page(output, html(sample, meanings))


def html(sample: Sample, meanings: Mapping[str, str]) -> str:
    """The page on a sample."""
    return page(_TEMPLATES, f"{sample.of} {sample.sha256[:12]}", _SCRIPTS, page_data(sample, meanings))


def page_data(sample: Sample, meanings: Mapping[str, str]) -> dict[str, Any]:
    """All that the page holds, for JSON."""
    asked = ASKED[sample.of]
    keys = iter("123456789")
    return {
        "of": sample.of,
        "sample": sample.sha256,
        "meanings": dict(meanings),
        "asked": [
            {
                "name": one.name,
                "text": one.text,
                # Whatever has a key of its own; the other is a list to choose from.
                "answers": [
                    [answer, words, "" if one.name == INSTEAD else next(keys)] for answer, words in one.answers.items()
                ],
                "optional": one.name == INSTEAD,
            }
            for one in asked
        ],
        "rows": [
            {
                "benchmark": row.key[0],
                "id": row.key[1],
                "sha256": row.sha256,
                "stratum": row.stratum,
                "asks": [one.name for one in asked_of(sample.of, row.stratum)],
                "shown": row.shown,
            }
            for row in sample.rows
        ],
    }
