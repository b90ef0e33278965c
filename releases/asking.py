"""How a release asks the models that it names."""

from pathlib import Path
from typing import Any

from builders.verified.teachers import Teachers
from builders.verified.teachers.choice import known_teacher
from releases.stage import Release
from safe_stepwise.engines.base import Allowance


def open_teachers(release: Release[Any], spec: str, allowance: Allowance, lists: Path | None = None) -> Teachers:
    """The teachers of a spec; raises as `known_teacher`."""
    asking = {name: getattr(release.options, name) for name in ("cache", "in_flight", "timeout")}
    teachers = known_teacher(spec, **asking, allowance=allowance, lists=lists)
    release.opened.append(teachers)
    return teachers
