"""An engine's verdicts on the rows of a probe, asked one way or several."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluators.asking import Reply, ask_all
from evaluators.paths.probe_set import PathCase, requests
from evaluators.paths.quality import FAILED, UNREADABLE, Judged, Quality, quality
from safe_stepwise import prompts
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.paths import Way, read_verdict
from safe_stepwise.store.replies import ReplyError


@dataclass(frozen=True, slots=True)
class PathRun:
    """One engine's verdicts in the order of the rows, each one of `quality.SAID`.

    ``name`` may be published.
    """

    name: str
    way: Way
    simulated: bool
    replies: tuple[Reply, ...]
    max_tokens: int

    def quality(self, cases: Sequence[PathCase], seed: int = 0) -> Quality:
        """The measures of the verdicts."""
        pairs = zip(cases, self.replies, strict=True)
        return quality([Judged(c.benchmark, c.question_id, c.corruption, r.said) for c, r in pairs], seed=seed)


def run(client: Client, cases: Sequence[PathCase], way: Way) -> PathRun:
    """The verdicts of a client's engine, which is closed afterwards; raises as `ask_all`."""
    asked = requests(cases, way)
    found = ask_all(client, way, "path", asked)
    replies = tuple(_reply(one, request) for one, request in zip(found, asked, strict=True))
    most = client.allowance.applied(asked[0]).sampling.max_tokens
    return PathRun(client.name, way, client.engine.simulated, replies, most)


def _reply(found: Completion | EngineError, request: Request) -> Reply:
    if isinstance(found, EngineError):
        return Reply(FAILED, reason=str(found))
    try:
        said, reason = str(read_verdict(found.text, prompts.data_of(request))), ""
    except ReplyError as error:
        said, reason = UNREADABLE, str(error)
    return Reply(said, found.text, reason, found.usage)
