"""Measure verifiers on chains whose steps people labelled (`safe_stepwise.formats`), beside other judges' verdicts.

A label is right (1), neutral (0) or wrong (-1). A verifier says right by `Correct`, and wrong by any error type; a
reply without a valid verdict says nothing, and is never right. The measures, from 0 to 1:

- ``step_accuracy``: share of the labelled steps whose label was said exactly; no verifier of ours says neutral.
- ``error_precision``, ``error_recall``, ``error_f1``: of finding the wrong ones among steps with text (a neutral step
  counts as right); ``search_...``: the same of steps that only search.
- ``first_error_accuracy``: share of chains whose first wrong step was found, or that have none and were passed;
  ``first_error_f1``: the harmonic mean of this share among chains with a wrong step, and among those without
  (ProcessBench, `quality.TrajectoryVerdicts`).

The intervals are percentiles of a bootstrap over questions, as a question may have several chains.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.comparison.significance import CONFIDENCE, Matrix, pooled_intervals, pooled_measures
from evaluators.run.runner import Verdicts
from evaluators.verifier import reveal
from evaluators.verifier.calibration import ScoredStep, known_scores, render_reliability
from evaluators.verifier.quality import RESAMPLES, UNPARSED, TrajectoryVerdicts, harmonic_mean
from evaluators.verifier.step_set import RequestOptions
from safe_stepwise.checking.passage_checker import read_free_step
from safe_stepwise.commands.reading import read_chains
from safe_stepwise.engines.base import Request
from safe_stepwise.errors import UserError
from safe_stepwise.formats.agentprocessbench import JudgeRow
from safe_stepwise.formats.chains import RIGHT, WRONG, Chain, ChainStep
from safe_stepwise.formats.claims import QUESTION as NO_QUESTION
from safe_stepwise.language.text import normal_words
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.methods.verifier import request_verdict
from safe_stepwise.records import FAILED, Question, Step
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store.boundary import parse_json, read
from safe_stepwise.store.files import json_bytes, read_lines
from safe_stepwise.store.names import marked
from safe_stepwise.store.tables import Column, Sheet, count, fill, interval, table_of, text_table
from safe_stepwise.store.terminal import printable
from safe_stepwise.taxonomy import CORRECT

StepPlace = tuple[str, int]
"""A chain's id, and the place of a step in it, from 0."""
StepVerdicts = Mapping[StepPlace, int | None]
"""What a judge said of steps: a label, or None for no verdict."""
FILES = CHAIN_QUALITY, CHAIN_CSV, CHAIN_PAGE = ("chain_quality.json", "chain_quality.csv", "chain_quality.md")
OVERLAP = 0.5
"""The overlap baseline calls a step wrong if a smaller share of its content words stands in what it knew."""
_WRONG = "Unsupported"
"""The error type that stands for any."""
_STEP_MARK = re.compile(r"\A\W{0,4}step \d{1,4}\W{0,3}[:.)]\W{0,3}", re.IGNORECASE)
_COLUMNS = ("labelled", "exact", "hits", "wrong", "flagged", "search_hits", "search_wrong", "search_flagged")
_CHAINS = ("erroneous", "erroneous_found", "correct", "correct_passed")
_SHOWN = ("step_accuracy", "first_error_accuracy", "error_precision", "error_recall", "error_f1", "search_f1")


@dataclass(frozen=True, slots=True)
class ChainJudge:
    """A judge's verdicts on steps; ``tokens`` are those of `Verdicts.tokens`, None of a judge that was not asked."""

    name: str
    role: str
    verdicts: StepVerdicts
    simulated: bool = False
    tokens: Mapping[str, Any] | None = None


def grammatical(step: ChainStep, number: int) -> Step:
    """Return a step of a chain in our grammar, as `check` reads it; a text that is no step becomes an Attribution."""
    with suppress(StepError):
        return replace(read_free_step(step.shown_text, number), number=number)
    text = _STEP_MARK.sub("", step.shown_text)
    with suppress(StepError):
        form = Step(number, text, "Attribution")
        format_step(form)
        return form
    return Step(number, re.sub(r"[()#\ud800-\udfff]", " ", text).strip() or "-", "Attribution")


def read_labelled(file: Path, format: str, limit: int | None) -> list[Chain]:
    """Read the chains of a file, or the first ``limit``; raises ``UserError`` for a bad row, or no labelled step."""
    chains = dict[str, Chain]()
    rows = reveal.read_table(file) if format == reveal.NAME else read_chains(file, format)
    for place, chain in islice(rows, limit):
        if chain.id in chains and len(chain.id) == 64:  # the digest of a row without id, of which there are two
            chain = replace(chain, id=f"{chain.id}-{len(chains)}")
        if chain.id in chains:
            raise UserError(f"{place}: the id {printable(chain.id)!r} stands twice; give each chain its own")
        chains[chain.id] = chain
    if not any(step.label is not None for chain in chains.values() for step in chain.steps):
        raise UserError(f"{file}: none of its steps has a label")
    return [*chains.values()]


def chain_requests(
    chains: Sequence[Chain], setting: RequestOptions, annotated: Mapping[str, Question]
) -> dict[StepPlace, Request]:
    """Return the requests for verdicts on all steps; ``annotated`` are questions with annotations, by their text."""
    options = (setting.incomplete_evidence, setting.dropped, setting.prompt_set)
    requests = {}
    for chain in chains:
        steps = [grammatical(step, number) for number, step in enumerate(chain.steps, 1)]
        question = annotated.get(chain.question) or Question(chain.id, "", "", chain.question, "")
        searches = frozenset(number for number, step in enumerate(chain.steps, 1) if step.is_search)
        for place, step in enumerate(chain.steps):
            known = replace(question, passages=chain.known_to(step))
            requests[chain.id, place] = request_verdict(
                known, steps[:place], steps[place], *options, searches=searches, scored=setting.scored
            )
    return requests


def chain_judge_from(run: Verdicts) -> ChainJudge:
    """Make a judge of chains from a verifier's verdicts on their steps; unread replies give no label."""
    labels = {CORRECT: RIGHT, UNPARSED: None, FAILED: None}
    verdicts = {place: labels.get(reply.verdict, WRONG) for place, reply in run.replies.items()}
    return ChainJudge(run.name, run.role, verdicts, run.simulated, run.tokens())


def scored_steps(run: Verdicts, chains: Iterable[Chain]) -> Iterator[ScoredStep]:
    """Yield a verifier's scores of the labelled steps; a neutral step counts as right."""
    for chain in chains:
        for place, step in enumerate(chain.steps):
            if step.label is not None:
                yield ScoredStep(chain.question, run.replies[chain.id, place].score, step.label != WRONG)


def baselines(chains: Sequence[Chain]) -> list[ChainJudge]:
    """Return the judges that call every step right, and that count words."""
    places = [(chain, place) for chain in chains for place in range(len(chain.steps))]
    overlap = {(c.id, n): WRONG if _overlap(c, c.steps[n]) < OVERLAP else RIGHT for c, n in places}
    return [
        ChainJudge("always right", "baseline", {(chain.id, place): RIGHT for chain, place in places}),
        ChainJudge(f"word overlap, {OVERLAP:g} or more", "baseline", overlap),
    ]


def _overlap(chain: Chain, step: ChainStep) -> float:
    """Return the share of a step's content words that the question or a passage has that was known."""
    sources = (chain.question, *(f"{page.title} {page.text}" for page in chain.known_to(step)))
    content = set(normal_words(step.shown_text).split()) - word_list("stop_words")
    return len(content & set(normal_words(" ".join(sources)).split())) / max(1, len(content))


def read_judges(file: Path, chains: Sequence[Chain]) -> list[ChainJudge]:
    """Read other judges' verdicts (`JudgeRow` a line), by name; raise ``UserError`` unless each has every chain."""
    keys = {chain.id: [step.key for step in chain.steps] for chain in chains}
    by_judge: dict[str, dict[StepPlace, int | None]] = defaultdict(dict)

    def parse(line: bytes) -> JudgeRow:
        return read(JudgeRow, parse_json(line), "the row")

    for place, row in read_lines(file, parse, "judge's verdict", "give judge, query_index, sample_index, step_labels"):
        if row.id in keys:
            labels = row.step_labels or {}
            if unknown := set(labels) - set(keys[row.id]):
                raise UserError(f"{place}: step_labels has {printable(min(unknown))}, which is no step of {row.id}")
            if (row.id, 0) in by_judge[row.judge]:
                raise UserError(f"{place}: {printable(row.judge)} judges chain {row.id} twice; remove one")
            by_judge[row.judge] |= {(row.id, n): labels.get(key) for n, key in enumerate(keys[row.id])}
    for judge, verdicts in by_judge.items():
        if absent := set(keys) - {chain for chain, _ in verdicts}:
            raise UserError(f"{file}: {printable(judge)} judges {len(absent)} of the chains not, as {min(absent)}")
    if not by_judge:
        raise UserError(f"{file}: judges none of the chains")
    return [ChainJudge(name, "other judge", by_judge[name]) for name in sorted(by_judge)]


def _counts(chain: Chain, verdicts: StepVerdicts) -> list[int]:
    """Count a chain's steps and the verdicts on them, in the order of `_COLUMNS`, then those of `_CHAINS`."""
    labelled = [(s, s.label, verdicts[chain.id, n]) for n, s in enumerate(chain.steps) if s.label is not None]
    counts = [len(labelled), sum(label == verdict for _, label, verdict in labelled)]
    for is_search in (False, True):
        pairs = [
            (label == WRONG, verdict == WRONG) for step, label, verdict in labelled if step.is_search == is_search
        ]
        counts += [sum(map(all, pairs)), sum(wrong for wrong, _ in pairs), sum(flagged for _, flagged in pairs)]
    names = (UNPARSED if v is None else CORRECT if v != WRONG else _WRONG for _, _, v in labelled)
    first = next((n for n, (_, label, _) in enumerate(labelled, 1) if label == WRONG), None)
    is_found = TrajectoryVerdicts("", chain.id, first, tuple(names)).is_right
    has_error, is_correct = first is not None, first is None and bool(labelled)
    return [*counts, has_error, has_error and is_found, is_correct, is_correct and is_found]


def _measures(sums: Matrix) -> dict[str, Matrix]:
    n = {name: sums[..., place] for place, name in enumerate((*_COLUMNS, *_CHAINS))}
    with np.errstate(invalid="ignore", divide="ignore"):
        measures = {"step_accuracy": n["exact"] / n["labelled"]}
        for kind, prefix in (("error", ""), ("search", "search_")):
            hits, wrong, flagged = (n[f"{prefix}{name}"] for name in ("hits", "wrong", "flagged"))
            measures |= {f"{kind}_precision": hits / flagged, f"{kind}_recall": hits / wrong}
            measures[f"{kind}_f1"] = 2 * hits / (wrong + flagged)
        erroneous, correct = n["erroneous_found"] / n["erroneous"], n["correct_passed"] / n["correct"]
        found = n["erroneous_found"] + n["correct_passed"]
        measures["first_error_accuracy"] = found / (n["erroneous"] + n["correct"])
        measures["first_error_f1"] = harmonic_mean(erroneous, correct)
    return measures


def measure_judge(judge: ChainJudge, chains: Sequence[Chain], seed: int) -> dict[str, Any]:
    """Return a judge's measures with their intervals, as a JSON object."""
    by_question: dict[str, Matrix] = defaultdict(lambda: np.zeros(len(_COLUMNS) + len(_CHAINS)))
    for chain in chains:
        # Claims of a benchmark share a question that says nothing; what they share is a document.
        cluster = chain.question if chain.question != NO_QUESTION else chain.passages[0].text
        by_question[cluster] += _counts(chain, judge.verdicts)
    counts = np.stack([*by_question.values()])
    return {
        "name": judge.name,
        "role": judge.role,
        "simulated": judge.simulated,
        "unread": sum(
            judge.verdicts[c.id, n] is None for c in chains for n, s in enumerate(c.steps) if s.label is not None
        ),
        "measures": pooled_measures(counts, _measures),
        "intervals": pooled_intervals(counts, _measures, seed, RESAMPLES),
        **({} if judge.tokens is None else {"tokens": judge.tokens}),
    }


def measure_chains(name: str, chains: Sequence[Chain], judges: Iterable[ChainJudge], seed: int) -> dict[str, Any]:
    """Return all judges' measures, in the order of the judges, with what was measured on."""
    steps = [step for chain in chains for step in chain.steps if step.label is not None]
    judged = [measure_judge(judge, chains, seed) for judge in judges]
    return {
        "simulated": any(judge["simulated"] for judge in judged),
        "benchmark": name,
        "chains": len(chains),
        "questions": len({chain.question for chain in chains}),
        "steps": len(steps),
        "searches": sum(step.is_search for step in steps),
        "labels": {str(label): sum(step.label == label for step in steps) for label in (RIGHT, 0, WRONG)},
        "bootstrap": {"over": "questions", "resamples": RESAMPLES, "level": CONFIDENCE, "seed": seed},
        "judges": judged,
    }


def _estimate(name: str) -> Callable[[Mapping[str, Any]], tuple[float | None, Any]]:
    return lambda judge: (judge["measures"][name], judge["intervals"][name])


TABLE = (
    Column[Mapping[str, Any]]("judge", lambda judge: marked(judge["name"], judge["simulated"]), key="judge"),
    Column[Mapping[str, Any]]("role", itemgetter("role"), key="role"),
    *(Column(name.replace("_", " "), _estimate(name), interval, name) for name in (*_SHOWN, "first_error_f1")),
    Column[Mapping[str, Any]]("no verdict", itemgetter("unread"), count, "unread"),
)


def render_chains(results: Mapping[str, Any]) -> dict[str, bytes]:
    """Render the files of an evaluation on labelled chains: JSON, CSV, and a page."""
    sheet = Sheet(TABLE, results["judges"])
    values = {**results, "table": sheet.markdown, "calibrations": known_scores(results)}
    page = fill(Path(__file__).parent / "templates", "chains.md.jinja", **values)
    files = {CHAIN_QUALITY: json_bytes(results, sort_keys=False), CHAIN_CSV: sheet.csv, CHAIN_PAGE: page.encode()}
    return files | render_reliability(results)


def render_summary(results: Mapping[str, Any]) -> str:
    """Render the table of the judges as text."""
    return text_table(table_of(TABLE, results["judges"]))
