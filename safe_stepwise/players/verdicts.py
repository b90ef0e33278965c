"""A player's verdict in the form that its request asks for: which labels, and what comes first.

Who is asked for the evidence first quotes what the step names, as a verifier's training rows do:
by words alone, so that those who know nothing can do it, too.
"""

import json

from safe_stepwise.engines.base import Request
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import EVIDENCE_FIRST, LABEL_FIRST, Feedback


def is_listed(request: Request, label: str) -> bool:
    """Whether a label is one to choose from, as all are but those of a dropped category."""
    return request.schema is None or json.dumps(label) in request.schema.text


def as_asked(verdict: Feedback, request: Request, scene: Scene) -> str:
    """The reply that gives a verdict; raises FeedbackError for one that is not valid."""
    if request.schema is None or '"evidence"' not in request.schema.text or scene.step is None:
        return format_feedback(verdict, LABEL_FIRST)
    q = scene.question
    said = with_evidence(verdict, q.question, q.passages, scene.previous, scene.step)
    return format_feedback(said, EVIDENCE_FIRST)
