"""The public address of `safe_stepwise.commands.register`."""

from safe_stepwise.commands.ending import run
from safe_stepwise.commands.register import main, register, registered, remove, source

__all__ = ("main", "register", "registered", "remove", "source")

if __name__ == "__main__":
    run(main)
