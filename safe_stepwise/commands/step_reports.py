"""What `check` says of a row: its steps with their labels and claims, as JSON, as text and as a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from safe_stepwise.checker import NO_STEP, SOUND, UNDECIDED, Finding, text_of
from safe_stepwise.records import Question
from safe_stepwise.store.page import render_page
from safe_stepwise.store.terminal import printable
from safe_stepwise.taxonomy import CORRECT

ANNOTATIONS, PASSAGES = "annotations", "passages"
_LONGEST_QUOTE = 120
"""The most characters of a quotation in the text output."""
_BY_GRAVITY = ("otherwise", "not found", "not read", "stated")
_TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True, slots=True)
class StepReport:
    """A step's text as it was given, its label, the fields of its feedback that are not empty, and its claims."""

    text: str
    label: str
    feedback: Mapping[str, Any]
    claims: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class RowReport:
    """The judgements on a row.

    ``judged_by``: `ANNOTATIONS` or `PASSAGES`; ``note``: why a row's annotations do not suffice, or "".
    """

    question: Question
    judged_by: str
    note: str
    steps: Sequence[StepReport]

    def as_object(self) -> dict[str, Any]:
        """Return the row's line of ``--json``."""
        steps = [
            {"step": s.text, "label": s.label, **s.feedback, "claims": [*map(_claim_object, s.claims)]}
            for s in self.steps
        ]
        note = {"note": self.note} if self.note else {}
        return {"id": self.question.id, "judged_by": self.judged_by, **note, "steps": steps}

    def lines(self) -> Iterator[str]:
        yield printable(f"{self.question.id}: {self.question.question}")
        if self.note:
            yield f"  judged by the passages alone: {printable(self.note)}"
        for step in self.steps:
            yield f"  {printable(step.text)}"
            yield f"    {step.label} {printable(step.feedback.get('diagnosis', ''))}".rstrip()
            for claim in step.claims:
                words = printable(step.text[slice(*claim.span)])
                yield f"      {claim.status}: “{words}” - {printable(_source_of(claim))}".removesuffix(" - ")


def _claim_object(claim: Finding) -> dict[str, Any]:
    """Return a claim as JSON has it: empty fields are left out, and a step before is named as such."""
    fields: dict[str, Any] = {"status": claim.status, "start": claim.span[0], "end": claim.span[1]}
    if claim.passage == 0 and claim.sentence is not None:
        fields["earlier_step"] = claim.sentence + 1
    elif claim.passage:
        fields |= {"passage": claim.passage, "sentence": claim.sentence, "quote": claim.quote}
    if claim.place:
        fields |= {"quote_start": claim.place[0], "quote_end": claim.place[1]}
    return {name: value for name, value in {**fields, "reason": claim.reason}.items() if value not in (None, "")}


def _source_of(claim: Finding) -> str:
    """Return the sentence that states a claim, or says otherwise; if there is none, why it is not accepted."""
    if claim.passage == 0 and claim.sentence is not None:
        return f"step {claim.sentence + 1}"
    if claim.quote:
        quote = claim.quote if len(claim.quote) <= _LONGEST_QUOTE else f"{claim.quote[:_LONGEST_QUOTE]}…"
        return f"Passage {claim.passage}: “{quote}”"
    return claim.reason


def render_reports(name: str, reports: Sequence[RowReport]) -> str:
    """Render the reports on a file's rows as one page of HTML."""
    return render_page(_TEMPLATES, name, ["page"], [_page_row(n, report) for n, report in enumerate(reports, 1)])


def _page_row(number: int, report: RowReport) -> dict[str, Any]:
    """Return what the page shows of a row; texts are cut into pieces, as a script counts characters otherwise."""
    quoted = {
        (c.passage, *c.place): f"row-{number}-passage-{c.passage}-sentence-{c.sentence}"
        for step in report.steps
        for c in step.claims
        if c.passage and c.place
    }
    passages = []
    for n, page in enumerate(report.question.passages, 1):
        spans = [((start, end), anchor) for (passage, start, end), anchor in quoted.items() if passage == n]
        passages.append({"title": page.title, "pieces": _cut(text_of(page), spans)})
    steps = [
        {
            "label": step.label,
            "tone": {SOUND: "good", CORRECT: "good", UNDECIDED: "warn", NO_STEP: "warn"}.get(step.label, "bad"),
            "reason": step.feedback.get("diagnosis", ""),
            "pieces": _cut(step.text, [(c.span, c.status) for c in _by_gravity(step.claims)]),
            "claims": [
                {
                    "status": c.status,
                    "words": step.text[slice(*c.span)],
                    "reason": "" if c.passage == 0 or c.place else c.reason,
                    "passage": c.passage or 0,
                    "step": c.sentence + 1 if c.passage == 0 and c.sentence is not None else 0,
                    "anchor": quoted[(c.passage, *c.place)] if c.passage and c.place else "",
                }
                for c in step.claims
            ],
        }
        for step in report.steps
    ]
    question = {"question": report.question.question, "judgedBy": report.judged_by, "note": report.note}
    return {**question, "passages": passages, "steps": steps}


def _by_gravity(claims: Sequence[Finding]) -> list[Finding]:
    return sorted(claims, key=lambda claim: _BY_GRAVITY.index(claim.status))


def _cut(text: str, spans: Sequence[tuple[tuple[int, int], str]]) -> list[tuple[str, str]]:
    """Cut a text into pieces, each with the mark of the first span that covers it, or "".

    >>> _cut("Ana left Oru.", [((9, 12), "not found"), ((0, 12), "stated"), ((0, 3), "stated")])
    [('Ana left ', 'stated'), ('Oru', 'not found'), ('.', '')]
    """
    edges = sorted({0, len(text), *(edge for span, _ in spans for edge in span)})
    marks = [
        (text[start:end], next((mark for (low, high), mark in spans if low <= start and end <= high), ""))
        for start, end in pairwise(edges)
    ]
    by_mark = ((mark, list(pieces)) for mark, pieces in groupby(marks, key=itemgetter(1)))
    return [("".join(piece for piece, _ in pieces), mark) for mark, pieces in by_mark]
