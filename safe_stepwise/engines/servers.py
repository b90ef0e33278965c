"""The engine for several servers that serve the same model: ``openai:MODEL@http://A/v1,http://B/v1[?SWITCHES]``.

Requests that begin with the same words go to the same server, chosen by a rendezvous hash, so that its prefix cache
has them. A server that has many more calls under way than another one is passed over. After a transient error, the
next server is asked, and the failed server is left alone for a while. A server that lacks the model or refuses the key
is not asked again.
"""

import hashlib
import math
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from safe_stepwise.engines.base import Completion, Engine, EngineError, Relay, Request
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.errors import UserError
from safe_stepwise.store.progress import note

EXAMPLE = "openai:MODEL@http://a:8000/v1,http://b:8000/v1"
PREFIX_CHARS = 500
"""Length of the beginning of the user's turn (its passages) by which a request's server is chosen."""
MORE_CALLS = 64
"""Number of calls that a server may have under way beyond the idlest server's."""
REST_S = 30.0
"""Seconds for which a failed server is left alone while another answers."""
_ADDRESS = re.compile(r"https?://[^\s,;?@]+", re.IGNORECASE)
_ADDRESSES = re.compile(r"@(https?://[^\s,?]+[,;][^\s?]*)(\?\S*)?$", re.IGNORECASE)


def read_servers(spec: str) -> Engine:
    """Make the engine of ``MODEL[@ADDRESS[,ADDRESS...]][?SWITCHES]``; raise ``UserError`` for anything else."""
    if (match := _ADDRESSES.search(spec)) is None:
        return OpenAIEngine.read(spec)
    model, switches = spec[: match.start()], match[2] or ""
    addresses = dict.fromkeys(address.rstrip("/") for address in match[1].split(","))
    if wrong := [address for address in addresses if not _ADDRESS.fullmatch(address)]:
        raise UserError(f"openai:{spec}: {wrong[0]!r} is not a server's address; write {EXAMPLE}")
    servers = [OpenAIEngine.read(f"{model}@{address}{switches}") for address in addresses]
    return servers[0] if len(servers) == 1 else ServersEngine(servers)


class ServersEngine(Relay):
    """An engine that shares its requests among ``servers``."""

    def __init__(self, servers: Sequence[OpenAIEngine]) -> None:
        self.stages = self.servers = tuple(servers)
        self.name, self.simulated = servers[0].name, servers[0].simulated
        addresses = sorted(str(server.base_url) for server in servers)
        self.identity: Mapping[str, Any] = {**servers[0].identity, "base_url": ",".join(addresses)}
        self._calls = dict.fromkeys(self.servers, 0)
        self._rests_until = dict.fromkeys(self.servers, 0.0)

    async def check(self) -> None:
        """Raise ``UserError`` if no server works; print a note on each that does not."""
        errors = []
        for server in self.servers:
            try:
                await server.check()
            except UserError as error:
                errors.append(error)
                self._set_aside(server, math.inf)
        if len(errors) == len(self.servers):
            raise UserError("; ".join(map(str, errors)))
        for problem in errors:
            note(f"{problem}; the other servers are asked")

    async def answer(self, request: Request) -> Completion | EngineError:
        reply: Completion | EngineError = EngineError("no server is left", transient=True)
        refusal: UserError | None = None
        for server in self._order_servers(request):
            self._calls[server] += 1
            try:
                (reply,) = await server.generate([request])
            except UserError as error:  # about the key or the account
                refusal = error
                self._set_aside(server, math.inf)
                continue
            finally:
                self._calls[server] -= 1
            is_absent = isinstance(reply, EngineError) and str(reply).startswith("HTTP 404")
            if not isinstance(reply, EngineError) or not (reply.transient or is_absent):
                return reply
            self._set_aside(server, math.inf if is_absent else REST_S)
        if refusal is not None and all(rest_end == math.inf for rest_end in self._rests_until.values()):
            raise refusal
        return reply

    def _order_servers(self, request: Request) -> list[OpenAIEngine]:
        """Return the servers in the order in which a request tries them."""
        prefix = "".join(turn.content for turn in request.messages if turn.role == "user")[:PREFIX_CHARS]

        def weight(server: OpenAIEngine) -> bytes:
            return hashlib.sha256(f"{server.base_url}\0{prefix}".encode("utf-8", "surrogatepass")).digest()

        time_s, idlest = time.monotonic(), min(self._calls.values())
        busy = {s for s in self.servers if self._calls[s] > idlest + MORE_CALLS}
        return sorted(self.servers, key=lambda s: (self._rests_until[s] > time_s, s in busy, weight(s)))

    def _set_aside(self, server: OpenAIEngine, seconds: float) -> None:
        self._rests_until[server] = max(self._rests_until[server], time.monotonic() + seconds)
