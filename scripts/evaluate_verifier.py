"""Measure a verifier, and baselines, on the labelled steps of safe-verifier-steps, or of other people's chains."""

from dataclasses import replace

from builders.benchmarks.hub import HubSource, download
from builders.steps.earlier_build import find_steps
from builders.steps.probes import label_by_probes
from builders.verified.lookup import add_annotations, questions_by_text
from evaluators.verifier import reveal
from evaluators.verifier.command import Options, run_on_chains, run_verifiers
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import ROLE
from scripts.cli import command, run


def evaluate(options: Options) -> str:
    """Measure the verifier and return the summary; raise ``UserError`` for a mistake of the user."""
    if options.steps is None and options.probes:
        raise UserError("--probes learn from the train rows of a set: give --steps")
    if options.steps is None:
        return run_on_chains(_with_local_file(options), questions_by_text)
    return run_verifiers(options, find_steps, add_annotations, label_by_probes)


def _with_local_file(options: Options) -> Options:
    """Return options whose REVEAL table is a file: the one named, or one from the Hub (``google/reveal@COMMIT``)."""
    if options.benchmark != reveal.NAME or options.file is None or options.file.exists():
        return options
    hub = HubSource.read(str(options.file))
    if hub is None:
        return options
    folder, _commit = download(hub, [reveal.TABLE])
    return replace(options, file=folder / reveal.TABLE)


main = command(evaluate, roles=[ROLE], example_roles=[ROLE])

if __name__ == "__main__":
    run(main)
