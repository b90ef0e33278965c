"""Induce kinds of constraint from questions over a graph, beside the five of Deliberation on Priors."""

from builders.paths.questions import Questions
from evaluators.deliberation.inducing import PROMPT, Options, induce_kinds
from scripts.cli import command, roles_of, run


def induce(options: Options) -> str:
    """Write the kinds and return a summary; raise ``UserError`` for a mistake of the user."""
    rows = Questions(options.benchmark, options.questions, options.split, options.kb, 1, keeps_rejects=True)
    return induce_kinds(options, rows)


main = command(induce, roles=roles_of([PROMPT]))

if __name__ == "__main__":
    run(main)
