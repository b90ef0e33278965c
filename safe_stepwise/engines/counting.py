"""Tokens of players that count none: what a server with a prefix cache would have been sent."""

from dataclasses import replace

from safe_stepwise.engines.base import NO_USAGE, Completion, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import PrefixCache, prompt_tokens, tokens_of
from safe_stepwise.records import Usage


class Counted(Client):
    """A client for one question, which counts where a simulated engine does not.

    Tokens are `mock`'s words and punctuation, and so is the prefix cache, of which each question
    has its own, with the instructions in it that all questions share: how many questions are under
    way, in what order, and whether a run was stopped in between, changes no number.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client.engine)
        self._client = client
        self._prefixes = PrefixCache()
        self._instructions: set[str] = set()

    async def ask(self, request: Request) -> Completion:
        """The completion of one request; raises as the client does."""
        reply = await self._client.ask(request)
        if reply.usage != NO_USAGE or not self.engine.simulated:
            return reply
        sent = self._client.allowance.applied(request)
        return replace(reply, usage=self._usage(sent, reply.text))

    def _usage(self, request: Request, text: str) -> Usage:
        first = request.messages[0]
        if first.role == "system" and first.content not in self._instructions:
            self._instructions.add(first.content)
            self._prefixes.take(prompt_tokens(replace(request, messages=(first,)))[:-1])
        prompt, said = prompt_tokens(request), tokens_of(text)
        return Usage(len(prompt), self._prefixes.take(prompt, said), len(said))
