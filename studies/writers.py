"""Show the articles of the synthetic world's writers, and score how well their rows are labelled without a model."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from builders.synthetic import Spec, generate, to_row
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from studies.labels.agreement import build_score_rows, score_noise_types

HEADER = ("writer", "noise", "true", "found", "precision", "recall", "F1")


def score_writers(specs: Iterable[Spec]) -> tuple[list[tuple[object, ...]], list[Mapping[str, Any]]]:
    """Score the labels of each writer's rows: return table rows under `HEADER`, and wrongly labelled questions."""
    rows: list[tuple[object, ...]] = []
    misread: list[Mapping[str, Any]] = []
    teacher = AnnotationsTeacher()
    for spec in specs:
        true, labelled = {}, {}
        for question, truth in generate(spec):
            label = asyncio.run(verify(question, teacher))
            true[question.id], labelled[question.id] = truth, label.noise_type
            if truth != label.noise_type:
                verdict = {"writer": spec.writer, "label": label.noise_type, "explanation": label.explanation}
                misread.append({**to_row(question, truth), **verdict})
        rows += [(spec.writer, *row) for row in build_score_rows(score_noise_types(true, labelled))]
    return rows, misread


def list_articles(spec: Spec, count: int) -> list[str]:
    """List ``count`` distinct gold articles of sound rows, each with its title on the first line."""
    sound = generate(Spec(count, spec.seed, 0.0, spec.writer))
    return list(dict.fromkeys(f"{p.title}\n{p.text}" for question, _ in sound for _, p in question.gold))[:count]
