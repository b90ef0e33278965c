"""What prompting methods come to beside an answer: form, finds, facts, kinds of failure."""

from typing import Literal, get_args

Failure = Literal["propagation", "lost", "format", "hallucination", "unanswered", "untold"]
"""Why a question is wrong, or right for the wrong reason (`prompting.measures.failure`)."""
FAILURES: tuple[Failure, ...] = get_args(Failure)
