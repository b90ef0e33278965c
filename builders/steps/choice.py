"""What makes the steps of the verifier set, by the teacher that is named."""

from __future__ import annotations

from builders.steps.chunks import Maker
from builders.steps.making import AnnotationsMaker
from builders.steps.model import ModelMaker
from builders.verified.teachers import Teachers
from builders.verified.teachers.llm import LLMTeachers
from safe_stepwise.errors import UserError


def known_maker(
    teachers: Teachers, seed: int = 0, *, unverifiable: bool = False, where: str = "--teacher"
) -> Maker:
    """The maker of steps that goes with teachers of benchmarks.

    Raises ``UserError``, which begins with ``where``, if there is none: ``unverifiable`` questions
    want a model, which is taken at its word, and a symbolic one writes no steps.
    """
    spec = teachers.spec if isinstance(teachers, LLMTeachers) else "annotations"
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
    return ModelMaker(teachers, seed, unverifiable=unverifiable)
