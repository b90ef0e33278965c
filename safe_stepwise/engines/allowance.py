"""What a user gives some roles beside what their prompts say.

Room for a reply, time to think, worked examples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from safe_stepwise.engines.base import Effort, Request


@dataclass(frozen=True, slots=True)
class Allowance:
    """Tokens a reply may have, reasoning effort, examples to go by; hashable and picklable.

    Each by role; roles that are not named keep what their requests say. Examples are texts, which
    go behind the instructions (`prompts.examples`); None: nothing was said of any.
    """

    max_tokens: tuple[tuple[str, int], ...] = ()
    effort: tuple[tuple[str, Effort], ...] = ()
    examples: tuple[tuple[str, str], ...] | None = None

    @classmethod
    def of(
        cls,
        max_tokens: Mapping[str, int] | None = None,
        effort: Mapping[str, Effort] | None = None,
        examples: Mapping[str, str] | None = None,
    ) -> Allowance:
        """That of some roles, in whatever order they come.

        >>> Allowance.of({"path": 4096}, {"path": "low", "judge": "high"}).plain
        {'max_tokens': 'path 4096', 'reasoning_effort': 'judge high, path low'}
        """
        return cls(
            tuple(sorted((max_tokens or {}).items())),
            tuple(sorted((effort or {}).items())),
            None if examples is None else tuple(sorted(examples.items())),
        )

    def showing(self, examples: Mapping[str, str]) -> Allowance:
        """The same with these examples, by role, and no others."""
        return replace(self, examples=tuple(sorted(examples.items())))

    def __bool__(self) -> bool:
        return bool(self.max_tokens or self.effort or self.examples)

    def only(self, roles: Collection[str]) -> Allowance:
        """What of it concerns these roles."""
        return Allowance(
            tuple(one for one in self.max_tokens if one[0] in roles),
            tuple(one for one in self.effort if one[0] in roles),
            self.examples and tuple(one for one in self.examples if one[0] in roles),
        )

    def limits(self, role: str) -> bool:
        """Whether it says how long a role's replies may be, or how hard it thinks."""
        return any(name == role for name, _ in (*self.max_tokens, *self.effort))

    def applied(self, request: Request) -> Request:
        """A request as it is asked under it.

        >>> Allowance.of({"judge": 99}).applied(Request((), role="judge")).sampling.max_tokens
        99
        """
        if shown := dict(self.examples or ()).get(request.role):
            first, *others = request.messages
            first = replace(first, content=f"{first.content}\n\n{shown}")
            request = replace(request, messages=(first, *others))
        if not self.limits(request.role):
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
        shown = [(role, hashlib.sha256(text.encode()).hexdigest()[:8]) for role, text in self.examples or ()]
        given = {"max_tokens": self.max_tokens, "reasoning_effort": self.effort, "examples": shown}
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

    @property
    def shown(self) -> str:
        """What it adds to the name of a teacher, whose prompts are told there.

        >>> Allowance.of(examples={"path": "An example."}).shown
        ', examples path 25ed5198'
        """
        examples = self.plain.get("examples")
        return f", examples {examples}" if examples else ""


AS_PROMPTED = Allowance()
"""Nothing beside what requests say."""
