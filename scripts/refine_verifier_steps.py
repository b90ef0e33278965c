"""Find the steps on which a verifier errs, and write them as rows to train it further on."""

from dataclasses import dataclass, replace

from builders.steps.refinement import ANNOTATIONS, Refinement, refine, summary
from safe_stepwise.commands.values import Count
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.errors import UserError
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.loop import GENERATE, VERIFY
from safe_stepwise.open import Opener
from scripts.cli import ModelOptions, command, roles_of, run


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions, Refinement):
    generator: str | None = None
    verifier: str | None = None
    teacher: str
    max_steps: Count = DEFAULT.max_steps
    max_retries: Count = DEFAULT.max_retries

    def __post_init__(self) -> None:
        """Raise ``UserError`` unless there are both players of the loop, or accepted steps of an earlier loop."""
        players = [name for name in ("generator", "verifier") if getattr(self, name) is not None]
        if self.accepted and (players or self.limit):
            option = f"--{players[0]}" if players else "--limit"
            raise UserError(f"{option} goes with the loop, which --accepted stands in for; see --help")
        if not self.accepted and len(players) < 2:
            raise UserError("give --generator and --verifier, or --accepted FILE; see --help")

    def player(self, name: str, replies: ResponseCache) -> Client | None:
        """Open the player or teacher of an option; raise ``UserError`` that names the option."""
        spec = getattr(self, name)
        if spec is None or (name == "teacher" and spec == ANNOTATIONS):
            return None
        try:
            return self.client(Opener(self.timeout)(spec), replies)
        except UserError as error:
            hint = "; or use annotations, which needs no model" if name == "teacher" else ""
            raise UserError(f"--{name}: {error}{hint}") from None


def refine_verifier_steps(options: Options) -> str:
    """Mine hard cases and return a summary; raise ``UserError`` for a mistake of the user."""
    plan = replace(options, limits=Limits(options.max_steps, options.max_retries), at_once=options.in_flight)
    with options.replies() as replies:
        clients = (options.player(name, replies) for name in ("generator", "verifier", "teacher"))
        return summary(plan, refine(plan, *clients))


main = command(refine_verifier_steps, roles=roles_of(GENERATE + VERIFY))

if __name__ == "__main__":
    run(main)
