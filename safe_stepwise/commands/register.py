"""``safe-stepwise register``: see `safe_stepwise.register`, which says it all."""

import click

from safe_stepwise import register as module


@click.command(
    "register", context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
)
@click.pass_context
def register(context: click.Context) -> None:
    """Make evaluate.load("safe_stepwise") find this package's metric by its bare name."""
    module.main(context.args)
