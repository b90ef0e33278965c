"""Measures how much of R4C's gold derivations our HotpotQA graphs and ideal trajectories cover."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from builders.steps.making import AnnotationsMaker
from builders.verified.lookup import SPLITS, verified_rows
from evaluators.derivations import Coverage, measure_coverage, read_derivations
from safe_stepwise.checking.plans import MAX_GOLD
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.records import Label, Question

HEADER = ("HotpotQA rows with a derivation", "rows", "passages", "triples", "whole")


def build_coverage_rows(folder: Path) -> list[tuple[object, ...]]:
    """Build rows under `HEADER`: the share of the derivations that graphs and trajectories cover."""
    derivations = read_derivations(folder / "r4c_derivations.jsonl")
    graphs: list[Coverage] = []
    trajectories: list[Coverage] = []
    questions = 0
    for stem, split in SPLITS.items():
        for question, label in verified_rows("hotpotqa", folder / f"hotpotqa_{stem}.jsonl", split, derivations.keys()):
            questions += 1
            if label.noise_type != "none":
                continue
            titles = [passage.title for passage in question.passages]
            triples = (
                (titles[(t.passage or 1) - 1], f"{t.head} {t.relation} {t.tail}") for t in label.knowledge_graph
            )
            graphs.append(measure_coverage(triples, derivations[question.id]))
            if steps := [(titles[number - 1], text) for number, text in _cited_sentences(question, label)]:
                trajectories.append(measure_coverage(steps, derivations[question.id]))
    return [("all", questions, "", "", ""), _row("graph", graphs), _row("ideal trajectory", trajectories)]


def _cited_sentences(question: Question, label: Label) -> Iterator[tuple[int, str]]:
    result = AnnotationsMaker().make(question, label)
    if len(question.gold) > MAX_GOLD:
        print(f"no ideal trajectory: {question.id}: {result.refused[0].reason}")
    for row in result.rows:
        if row.origin == "ideal" and row.step.kind == "Attribution":
            yield from ((number, row.step.text) for number in read_step(row.step.text).cited)


def _row(name: str, coverages: Sequence[Coverage]) -> tuple[object, ...]:
    columns = [(c.passages, c.triples, float(c.is_complete)) for c in coverages] or [(0.0, 0.0, 0.0)]
    return (name, len(coverages), *(f"{sum(column) / len(column):.3f}" for column in zip(*columns, strict=True)))
