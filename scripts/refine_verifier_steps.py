"""Find the steps on which a verifier errs, and write them as rows to train it further on."""

from dataclasses import dataclass, replace

from builders.steps.refinement import ANNOTATIONS, Refinement, refine, summary
from safe_stepwise.commands.values import Count
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.errors import UserError
from safe_stepwise.methods import limits, loop
from safe_stepwise.open import Opener
from scripts.cli import ModelOptions, command, roles_of, run


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions, Refinement):
    generator: str
    verifier: str
    teacher: str
    max_steps: Count = limits.DEFAULT.max_steps
    max_retries: Count = limits.DEFAULT.max_retries

    def player(self, name: str, replies: ResponseCache) -> Client:
        """Open the player or teacher of an option; raise ``UserError`` that names the option."""
        spec = getattr(self, name)
        try:
            return self.client(Opener(self.timeout)(spec), replies)
        except UserError as error:
            hint = "; or use annotations, which needs no model" if name == "teacher" else ""
            raise UserError(f"--{name}: {error}{hint}") from None


def refine_verifier_steps(options: Options) -> str:
    """Mine hard cases and return a summary; raise ``UserError`` for a mistake of the user."""
    plan = replace(options, limits=limits.Limits(options.max_steps, options.max_retries), at_once=options.in_flight)
    with options.replies() as replies:
        generator, verifier = (options.player(name, replies) for name in ("generator", "verifier"))
        teacher = None if options.teacher == ANNOTATIONS else options.player("teacher", replies)
        return summary(plan, refine(plan, generator, verifier, teacher))


main = command(refine_verifier_steps, roles=roles_of(loop.GENERATE + loop.VERIFY))

if __name__ == "__main__":
    run(main)
