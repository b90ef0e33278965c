"""What a user allows some roles beside what their prompts say: room for a reply, time to think."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from safe_stepwise.engines.base import Effort, Request


@dataclass(frozen=True, slots=True)
class Allowance:
    """Tokens a reply may have and reasoning effort, by role; hashable and picklable.

    Roles that are not named keep what their requests say.
    """

    max_tokens: tuple[tuple[str, int], ...] = ()
    effort: tuple[tuple[str, Effort], ...] = ()

    @classmethod
    def of(
        cls, max_tokens: Mapping[str, int] | None = None, effort: Mapping[str, Effort] | None = None
    ) -> Allowance:
        """That of some roles, in whatever order they come.

        >>> Allowance.of({"path": 4096}, {"path": "low", "judge": "high"}).plain
        {'max_tokens': 'path 4096', 'reasoning_effort': 'judge high, path low'}
        """
        return cls(tuple(sorted((max_tokens or {}).items())), tuple(sorted((effort or {}).items())))

    def __bool__(self) -> bool:
        return bool(self.max_tokens or self.effort)

    def only(self, roles: Collection[str]) -> Allowance:
        """What of it concerns these roles."""
        return Allowance(
            tuple(one for one in self.max_tokens if one[0] in roles),
            tuple(one for one in self.effort if one[0] in roles),
        )

    def names(self, role: str) -> bool:
        """Whether it says anything of a role."""
        return bool(self.only((role,)))

    def applied(self, request: Request) -> Request:
        """A request as it is asked under it.

        >>> Allowance.of({"judge": 99}).applied(Request((), role="judge")).sampling.max_tokens
        99
        """
        if not self.names(request.role):
            return request
        sampling = request.sampling
        return replace(
            request,
            sampling=replace(
                sampling,
                max_tokens=dict(self.max_tokens).get(request.role, sampling.max_tokens),
                effort=dict(self.effort).get(request.role, sampling.effort),
            ),
        )

    @property
    def plain(self) -> dict[str, str]:
        """For records and identities: nothing of what is not given."""
        given = {"max_tokens": self.max_tokens, "reasoning_effort": self.effort}
        told = {name: ", ".join(f"{r} {value}" for r, value in by) for name, by in given.items()}
        return {name: words for name, words in told.items() if words}

    @property
    def suffix(self) -> str:
        """What it adds to an engine's name: a model that thinks harder says other things.

        >>> Allowance.of({"path": 4096}, {"path": "low"}).suffix
        ' (reasoning effort: path low)'
        """
        effort = self.plain.get("reasoning_effort")
        return f" (reasoning effort: {effort})" if effort else ""


AS_PROMPTED = Allowance()
"""Nothing beside what requests say."""
