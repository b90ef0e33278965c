"""Asking a verifier for its verdicts, through the response cache, with a progress bar."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.asking import Reply, ask_all, spent, tokens
from evaluators.verifier.quality import FAILED, UNPARSED, Judged, Quality, quality
from evaluators.verifier.step_set import Prefix, StepCase, walks
from safe_stepwise import prompts
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.taxonomy import CORRECT, Category


@dataclass(frozen=True, slots=True)
class VerifierRun:
    """One verifier's verdicts. ``name`` may be published; ``role`` is verifier or a baseline's."""

    name: str
    role: str
    simulated: bool
    replies: Mapping[Prefix, Reply]
    is_constant: bool = False
    """Whether it says one label of every step, without being asked."""

    def judged(self, cases: Sequence[StepCase]) -> list[Judged]:
        """The verdict on each row."""
        return [
            Judged(*(c.id, c.question.benchmark, c.question.id, c.gold), self.replies[c.asked].said, c.wording)
            for c in cases
        ]

    def quality(self, cases: Sequence[StepCase], seed: int = 0) -> Quality:
        """The measures of the verdicts on all rows and trajectories."""
        said = {asked: reply.said for asked, reply in self.replies.items()}
        return quality(self.judged(cases), walks(cases, said), seed=seed)

    def tokens(self) -> dict[str, Any]:
        """Tokens of all its requests, as `asking.tokens`."""
        return tokens([] if self.is_constant else self.replies.values())


def ask(
    specs: Sequence[str],
    client_of: Callable[[str], Client],
    asked: Mapping[Prefix, Request],
    incomplete_evidence: bool = False,
    dropped: Category | None = None,
) -> tuple[list[VerifierRun], list[str]]:
    """The verdicts of each engine, opened one after the other, and what was spent on them.

    The first is the verifier, the others are baselines; raises as `run_verifier`.
    """
    runs: list[VerifierRun] = []
    told: list[str] = []
    for number, spec in enumerate(specs):
        role = f"baseline {number}" if number else "verifier"
        client = client_of(spec)
        runs.append(run_verifier(client, role, asked, incomplete_evidence, dropped))
        told += spent(client, role)
    return runs, told


def constants(majority: str | None, asked: Mapping[Prefix, Request]) -> Iterator[VerifierRun]:
    """The baselines that ask nobody: train's most frequent label, and `Correct`."""
    if majority is not None:
        yield constant(majority, "majority class of train", asked)
    if majority != CORRECT:
        yield constant(CORRECT, "no error ever", asked)


def constant(label: str, role: str, asked: Mapping[Prefix, Request]) -> VerifierRun:
    """The baseline that says one label of every step."""
    replies = dict.fromkeys(asked, Reply(label))
    return VerifierRun(f"always {label}", role, False, replies, is_constant=True)


def run_verifier(
    client: Client,
    role: str,
    asked: Mapping[Prefix, Request],
    incomplete_evidence: bool = False,
    dropped: Category | None = None,
) -> VerifierRun:
    """The verdicts of a client's engine, which is closed afterwards.

    Missing Evidence is a verdict only where it was asked for with ``incomplete_evidence``, a label
    of a ``dropped`` category nowhere.
    What a run that was stopped had received is in the client's cache, and is not asked again.
    Raises ``UserError`` if the engine can't work, or answers none of its first requests.
    """
    found = ask_all(client, role, "step", list(asked.values()))
    pairs = zip(asked.items(), found, strict=True)
    setting = (incomplete_evidence, dropped)
    replies = {one: _reply(reply, request, *setting) for (one, request), reply in pairs}
    return VerifierRun(client.name, role, client.engine.simulated, replies)


def _reply(
    found: Completion | EngineError, request: Request, incomplete_evidence: bool, dropped: Category | None
) -> Reply:
    if isinstance(found, EngineError):
        return Reply(FAILED, reason=str(found))
    try:
        data = prompts.data_of(request)
        verdict = parse_feedback(found.text, incomplete_evidence, data, dropped)
        said, reason = verdict.error_type, ""
    except FeedbackError as error:
        said, reason = UNPARSED, str(error)
    return Reply(said, found.text, reason, found.usage)
