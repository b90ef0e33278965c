"""Verify a benchmark of your own: a file of questions with passages and answers."""

from dataclasses import dataclass
from typing import Annotated

from builders.verified.teachers.llm import EXTRACT, PATH
from cards.datasets import ANNOTATIONS
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store.names import VALIDATION, VERIFIED
from scripts import build_verified, view_labels
from scripts.cli import command, cores, run


@dataclass(frozen=True, kw_only=True)
class Options(build_verified.Options):
    benchmark: str = CUSTOM
    split: Annotated[str, build_verified.verifiable_split] = VALIDATION
    teacher: str = ANNOTATIONS
    keep_rejects: bool = True
    evaluation_passages: Annotated[int | None, build_verified.passages_limit] = None


def verify(options: Options) -> None:
    """Build a file's verified split and labels, and a page to read them; raise ``UserError`` for bad input."""
    build_verified.build_verified(options)
    if not options.estimate and (options.output / VERIFIED).is_dir():  # another machine may still be at work
        print(view_labels.view_labels(view_labels.Options(folder=options.output)))


main = command(verify, roles=build_verified.ROLES, example_roles=[EXTRACT.role, PATH.role], workers=cores())

if __name__ == "__main__":
    run(main)
