"""What there is to know of a release's builds before they are made; no command itself."""

from builders.benchmarks import BENCHMARKS
from builders.verified.collect import Build, count, questions
from builders.verified.estimate import at_hand, estimate
from builders.verified.teachers.llm import LLMTeachers
from releases.planning import Source


def source_of(plan: Build) -> Source:
    """What there is to know of a build without making it."""
    asks = isinstance(plan.teacher, LLMTeachers)
    expected = BENCHMARKS[plan.benchmark].EXPECTED
    if not at_hand(plan):
        return Source(plan.source, None, asks, expected)
    work = None
    if isinstance(plan.teacher, LLMTeachers):
        roles = estimate(questions(plan), plan.teacher).values()
        work = {
            "calls": sum(role.calls for role in roles),
            "prompt": sum(role.prompt for role in roles),
            "reply": sum(role.completion for role in roles),
        }
    return Source(plan.source, count(plan), asks, expected, work)
