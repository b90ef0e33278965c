"""What makes the steps of the verifier set, by the spec that ``--teacher`` takes."""

from __future__ import annotations

from pathlib import Path

from builders.steps.chunks import Maker
from builders.verified.teachers.llm import IN_FLIGHT, LLMTeachers
from safe_stepwise.errors import UserError
from scripts.teacher import known_teacher


def known_maker(
    spec: str,
    seed: int = 0,
    cache: Path | None = None,
    in_flight: int = IN_FLIGHT,
    *,
    unverifiable: bool = False,
    where: str = "--teacher",
) -> Maker:
    """The maker of a spec; raises ``UserError`` for one that there is not.

    Specs, ``cache`` and ``in_flight`` are those of `scripts.teacher`. ``unverifiable`` questions
    want a model, which is taken at its word.
    """
    teachers = known_teacher(spec, cache, in_flight, where=where)
    # Imported here, as they load the vocabulary of templates.
    from builders.steps.making import AnnotationsMaker
    from builders.steps.model import ModelMaker

    symbolic = spec.partition(":")[0] == "symbolic"
    if unverifiable and (symbolic or not isinstance(teachers, LLMTeachers)):
        raise UserError(
            f"{where} {spec}: an unverifiable question has no path to write steps of; name a "
            "model, as openai:MODEL@http://HOST:8000/v1"
        )
    if not isinstance(teachers, LLMTeachers):
        return AnnotationsMaker(seed)
    if symbolic:
        raise UserError(
            f"{where} {spec!r}: it writes no steps; use annotations, which needs no model either"
        )
    return ModelMaker(teachers.spec, teachers.cache, seed, in_flight, unverifiable=unverifiable)
