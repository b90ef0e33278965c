"""Judge the steps of FILE without a model: by the question's annotations, or by its passages alone.

With annotations, the graph-based checker labels each step in the order of the taxonomy. Without, the passages decide
(`checking.passage_checker`); a verifier may be asked about what they leave undecided. Either way each claim of a step
comes with the sentence that states it, or why it is not accepted.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from safe_stepwise.checker import NO_STEP, SOUND, UNDECIDED, Finding, judge_steps, read_written_step, text_of
from safe_stepwise.commands import reading, transcript
from safe_stepwise.commands.command import command
from safe_stepwise.commands.values import Name
from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import at_place
from safe_stepwise.formats.chains import ChainStep
from safe_stepwise.methods.learnt_prompts import adopt_learnt_prompts
from safe_stepwise.methods.limits import DEFAULT
from safe_stepwise.methods.loop import ask_verdict
from safe_stepwise.open import open_clients
from safe_stepwise.players.steps import strict_checker_of
from safe_stepwise.records import Question, Step, as_object
from safe_stepwise.scoring import BENCHMARKS
from safe_stepwise.steps import StepError, format_step, read_step
from safe_stepwise.store import boundary, sizes, thoughts
from safe_stepwise.store.event_loop import gather_all, wait_for
from safe_stepwise.store.page import check_output, render_page, write_page
from safe_stepwise.store.terminal import printable
from safe_stepwise.taxonomy import CORRECT

ANNOTATIONS, PASSAGES = "annotations", "passages"
_LONGEST_QUOTE = 120
"""The most characters of a quotation in the text output."""
_TEMPLATES = Path(__file__).with_name("templates")
FAILED = "failed"
Opinion = Mapping[str, Any]
"""A verifier's ``label`` of a step (or `FAILED`), ``diagnosis``, and ``score``: the probability (0-1) of *Correct*."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """A step's text as it was given, its label, the fields of its feedback that are not empty, and its claims.

    ``known_passages`` is the number of passages that were known when it was written; None: all.
    """

    text: str
    label: str
    feedback: Mapping[str, Any]
    claims: Sequence[Finding] = ()
    known_passages: int | None = None


@dataclass(frozen=True, slots=True)
class RowReport:
    """The judgements on a row, by `ANNOTATIONS` or `PASSAGES`; ``note``: why the annotations do not suffice, or ""."""

    question: Question
    judged_by: str
    note: str
    steps: Sequence[StepReport]
    opinions: Mapping[int, Opinion] = field(default_factory=dict)
    """What ``--verifier`` says of the undecided steps, by their number from 0."""

    def as_object(self) -> dict[str, Any]:
        """Return the row's line of ``--json``."""
        steps = [
            {
                "step": s.text,
                "label": s.label,
                **s.feedback,
                **({"verifier": self.opinions[n]} if n in self.opinions else {}),
                "claims": [*map(_claim_object, s.claims)],
            }
            for n, s in enumerate(self.steps)
        ]
        note = {"note": self.note} if self.note else {}
        return {"id": self.question.id, "judged_by": self.judged_by, **note, "steps": steps}

    def lines(self) -> Iterator[str]:
        yield printable(f"{self.question.id}: {self.question.question}")
        if self.note:
            yield f"  judged by the passages alone: {printable(self.note)}"
        for number, step in enumerate(self.steps):
            yield f"  {printable(step.text)}"
            yield f"    {step.label} {printable(step.feedback.get('diagnosis', ''))}".rstrip()
            if opinion := self.opinions.get(number):
                score = "" if opinion["score"] is None else f" (probability of Correct {opinion['score']:.2f})"
                yield printable(f"    the verifier: {opinion['label']}{score} {opinion['diagnosis']}".rstrip())
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
    """Render the reports on a file's rows, with their questions and passages, as one page of HTML."""
    data = [
        {
            **report.as_object(),
            "question": report.question.question,
            "passages": [{"title": page.title, "text": text_of(page)} for page in report.question.passages],
        }
        for report in reports
    ]
    return render_page(_TEMPLATES, name, ["page"], data)


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    benchmark: Annotated[str, Name(BENCHMARKS)] | None = None
    as_json: bool = False
    html: Path | None = None
    verifier: str | None = None


@command
def main(options: Options) -> None:
    """Print the label of each step of each row, and the number of each label; raises ``UserError`` for a bad row."""
    if options.html:
        check_output(options.html, reading.input_path(options.file))
    counts, reports = Counter[str](), list[RowReport]()
    with _open_verifier(options.verifier) as add_opinions:
        _check_rows(options, counts, reports, add_opinions)
    if options.html:
        write_page(options.html, render_reports(options.file.name, reports))
    if not options.as_json:
        print(", ".join(f"{label} {number}" for label, number in counts.most_common()))


def _check_rows(
    options: Options, counts: Counter[str], reports: list[RowReport], add_opinions: Callable[[RowReport], RowReport]
) -> None:
    """Print each row's report, count its labels, and keep it for a page; ``add_opinions`` asks the verifier."""
    for place, row in reading.read_rows(options.file):
        row = reading.own_row(place, row)
        if isinstance(row.get("steps"), list) and any(isinstance(step, Mapping) for step in row["steps"]):
            row["passages"] = row.get("passages") or [""]  # an imported chain may have none
        reading.check_columns(place, row, "question", "passages", "steps")
        with at_place(place, ValueError):
            steps = [
                boundary.read(str | ChainStep, step, f"step {n}", exact=True) for n, step in enumerate(row["steps"], 1)
            ]
            texts = [step if isinstance(step, str) else step.shown_text for step in steps]
            sizes.check_steps(texts)
        known_passages = [None if isinstance(step, str) else step.known_passages for step in steps]
        searches = {n for n, step in enumerate(steps) if isinstance(step, ChainStep) and step.is_search}
        report = add_opinions(
            report_row(reading.parse_question(place, row, options.benchmark), texts, known_passages, searches)
        )
        counts.update(step.label for step in report.steps)
        if options.html:
            reports.append(report)
        lines = [transcript.ascii_json(report.as_object())] if options.as_json else report.lines()
        print(*lines, sep="\n")


@contextmanager
def _open_verifier(spec: str | None) -> Iterator[Callable[[RowReport], RowReport]]:
    """Return a function that adds a verifier's opinions on undecided steps to a report, or none without a spec."""
    if spec is None:
        yield lambda report: report
        return
    stack = AsyncExitStack()
    client = wait_for(stack.enter_async_context(open_clients({"--verifier": spec})))["--verifier"]
    try:
        yield lambda report: replace(report, opinions=wait_for(_ask_verifier(client, report)))
    finally:
        wait_for(stack.aclose())


async def _ask_verifier(client: Client, report: RowReport) -> dict[int, Opinion]:
    """Return the verifier's opinion of each undecided step, which it gets with the steps before that are no errors."""
    limits = adopt_learnt_prompts(DEFAULT, [client.engine], client)
    steps: dict[int, Step] = {}
    for number, reported in enumerate(report.steps):
        with suppress(StepError):
            steps[number] = read_written_step(reported.text, len(steps) + 1)
    labels = [step.label for step in report.steps]
    accepted = [number for number in steps if labels[number] in (SOUND, CORRECT, UNDECIDED)]

    async def request_opinion(number: int) -> Opinion:
        pages = report.question.passages[: report.steps[number].known_passages]
        previous = [steps[n] for n in accepted if n < number]
        try:
            question = replace(report.question, passages=pages)
            feedback, _ = await ask_verdict(client, question, previous, steps[number], limits, scored=True)
        except EngineError as error:
            return {"label": FAILED, "diagnosis": str(error), "score": None}
        return {"label": feedback.error_type, "diagnosis": feedback.diagnosis, "score": feedback.score}

    undecided = [number for number in steps if labels[number] == UNDECIDED]
    return dict(zip(undecided, await gather_all(map(request_opinion, undecided)), strict=True))


def report_row(
    question: Question, texts: Sequence[str], known_passages: Sequence[int | None] = (), searches: Collection[int] = ()
) -> RowReport:
    """Judge a chain's steps by annotations, else by passages; the last two arguments are those of `judge_steps`."""
    verdicts = judge_steps(question.question, question.passages, texts, known_passages, searches)
    try:
        labels = _labels_by_annotations(question, texts)
        judged_by, note = ANNOTATIONS, ""
    except EngineError as error:
        labels = [(v.label, {"diagnosis": v.reason} if v.reason else {}) for v in verdicts]
        judged_by, note = PASSAGES, str(error) if question.is_annotated else ""
    counts = known_passages or [None] * len(texts)
    judged = zip(texts, labels, verdicts, counts, strict=True)
    steps = [StepReport(text, *label, verdict.claims, number) for text, label, verdict, number in judged]
    return RowReport(question, judged_by, note, steps)


def label_steps(question: Question, texts: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Label the steps of a chain; returns for each its label, and the fields of its feedback that are not empty."""
    return [(step.label, step.feedback) for step in report_row(question, texts).steps]


def _labels_by_annotations(question: Question, texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Label the steps of a chain by the graph-based checker; raises ``EngineError`` if it has no plan."""
    if not question.answer.strip():
        raise EngineError("the row has no answer")
    checker = strict_checker_of(question)
    labels: list[tuple[str, dict[str, Any]]] = []
    previous: list[Step] = []
    for text in texts:
        try:
            step = read_step(thoughts.split_thought(text).text)
            format_step(step)
        except StepError as error:
            labels.append((NO_STEP, {"diagnosis": str(error)}))
            continue
        feedback = checker.check(tuple(previous), step)
        values = {} if feedback is None else as_object(feedback)
        labels.append((values.pop("error_type", UNDECIDED), {name: value for name, value in values.items() if value}))
        previous.append(step)
    return labels
