"""A cascade of verifiers: each decides what it is sure of, and the last one the rest.

Spec: ``cascade:A,B[@THRESHOLD]``, of two or more specs of verifiers, as in ``cascade:checker,openai:MODEL@http://...``.
A verdict is sure if its label's probability, by its score, is ``THRESHOLD`` or more (0.5 to 1, default 0.9).
`checker` is sure of the errors that it proves: what it finds stated may still be redundant, or lead nowhere. One that
tells no score decides nothing, unless it is the last.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from safe_stepwise.engines.base import Completion, Engine, EngineError, Relay, Request
from safe_stepwise.engines.dialect import OPTIONAL
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.methods.verifier import ROLE, read_label
from safe_stepwise.records import Usage
from safe_stepwise.taxonomy import CORRECT, labels

EXAMPLE = "cascade:checker,openai:MODEL@http://localhost:8000/v1"
THRESHOLD = 0.9
_LABELS = (CORRECT, *(label for label in labels(incomplete_evidence=True) if label != CORRECT))
_CONTINUES = re.compile(r"https?://|[^:@]*=")
T = TypeVar("T")


class CascadeEngine(Relay):
    """The engine of a cascade; ``stages`` are asked in order, for each request only as far as needed."""

    def __init__(self, stages: Sequence[Engine], threshold: float = THRESHOLD) -> None:
        self.stages, self.threshold = tuple(stages), threshold
        self.simulated = any(stage.simulated for stage in stages)
        self.name = f"cascade:{','.join(stage.name for stage in stages)}@{threshold:g}"
        self.identity: Mapping[str, Any] = {
            "engine": "cascade",
            "stages": [dict(stage.identity) for stage in stages],
            "threshold": threshold,
        }

    async def answer(self, request: Request) -> Completion | EngineError:
        if request.role != ROLE:
            return EngineError(f"cascade judges steps alone: it has no role {request.role!r}")
        scored = request if request.labels else replace(request, labels=_LABELS)
        spent = Usage()
        for stage in self.stages[:-1]:
            (reply,) = await stage.generate([scored])
            if isinstance(reply, EngineError) and reply.transient:
                return reply
            if isinstance(reply, EngineError):  # it can't judge this one
                continue
            spent += reply.usage
            if self._is_sure(request, reply):
                return replace(reply, usage=spent, score=reply.score if request.labels else None)
        (reply,) = await self.stages[-1].generate([request])
        return reply if isinstance(reply, EngineError) else replace(reply, usage=spent + reply.usage)

    def _is_sure(self, request: Request, reply: Completion) -> bool:
        label = read_label(request, reply)
        if reply.score is None or not label:
            return False
        return (reply.score if label == CORRECT else 1 - reply.score) >= self.threshold


def read_cascade(setting: str, open_stage: Callable[[str], T]) -> tuple[list[T], float]:
    """Read ``A,B[@THRESHOLD]``, and open each stage by its spec; raise ``UserError`` for anything else.

    A comma does not open another spec before a setting (``seed=3``), an address, or a further field of ``without=``.

    >>> read_cascade("checker,symbolic:error_rate=0.1,seed=3@0.8", str)
    (['checker', 'symbolic:error_rate=0.1,seed=3'], 0.8)
    """
    body, mark, number = setting.rpartition("@")
    threshold = _threshold(number) if mark else None
    specs: list[str] = []
    for piece in map(str.strip, (body if threshold is not None else setting).split(",")):
        if specs and (_CONTINUES.match(piece) or (piece in OPTIONAL and "without=" in specs[-1])):
            specs[-1] += f",{piece}"
        else:
            specs.append(piece)
    if len(specs) < 2 or not all(specs):
        raise UserError(f"cascade:{setting}: name two verifiers or more, as in {EXAMPLE}")
    if any(spec.startswith("cascade") for spec in specs):
        raise UserError(f"cascade:{setting}: a cascade in a cascade; name all its verifiers in one")
    stages = []
    for spec in specs:
        with at_place(f"cascade: {spec}"):
            stages.append(open_stage(spec))
    return stages, THRESHOLD if threshold is None else threshold


def _threshold(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0.5 <= number <= 1 else None  # another number is a revision
