"""Generates rows of the synthetic benchmark: multi-hop questions about a fictional world, with known noise.

Row i depends only on (seed, split, noise rate, i) and on its block's world, so any worker can make any range; each
article draws its writer (``writers/``), unless the spec names one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from click import BadParameter

from builders.synthetic import noise
from builders.synthetic.articles import write_article
from builders.synthetic.creation import make_world
from builders.synthetic.passages import to_question
from builders.synthetic.questions import STYLES, plan
from builders.synthetic.small import MAX_PASSAGES, MIN_PASSAGES, make_row, name_filter
from builders.synthetic.world import NAME, Namer, pick, pick_weighted
from builders.synthetic.writers import names, writer
from safe_stepwise.commands.values import NATURAL, Number, digits
from safe_stepwise.errors import UserError
from safe_stepwise.records import NoiseType, Question
from safe_stepwise.store import codec

BLOCK = 200
"""Rows that share one world."""
MAX_ROWS = 10_000_000
"""Rows of a spec at most; a larger number is a typing mistake, and its build would not end."""


@dataclass(frozen=True)
class Spec:
    """What to generate: rows, seed, share of noise (0 to 1), and the ``writer`` of all articles (any if empty)."""

    rows: int
    seed: int = 0
    noise: float = 0.12
    writer: str = ""


@dataclass(frozen=True)
class SmallSpec(Spec):
    """The spec of a small world: rows of ``passages`` passages, each of one sentence (see `small`)."""

    passages: int = 5


_NUMBERS = {
    "rows": Number(digits, f"a whole number from 1 to {MAX_ROWS:,}", 1, MAX_ROWS),
    "seed": NATURAL,
    "noise": Number(float, "a share from 0 to 1", 0, 1),
    "passages": Number(digits, f"from {MIN_PASSAGES} to {MAX_PASSAGES} (a small world)", MIN_PASSAGES, MAX_PASSAGES),
}
"""The types of a spec's numbers."""
_SPEC_FORM = "write it like rows=20000,seed=7,noise=0.12"


def parse_spec(text: str) -> Spec:
    """Parse the text that ``--input`` gives for this benchmark; raise UserError when it can't be read.

    >>> parse_spec("rows=20000,seed=7")
    Spec(rows=20000, seed=7, noise=0.12, writer='')
    """
    values: dict[str, Any] = {}
    for setting in text.split(","):
        name, _, value = (piece.strip() for piece in setting.partition("="))
        try:
            if name in values:
                raise BadParameter("is given twice")
            values[name] = writer(value).name if name == "writer" else _NUMBERS[name].convert(value, None, None)
        except (KeyError, BadParameter) as error:
            problem = error.message if isinstance(error, BadParameter) else "is not a setting"
            raise UserError(f"synthetic spec {text!r}: {name}: {problem}: {_SPEC_FORM}") from None
    if "rows" not in values:
        raise UserError(f"synthetic spec {text!r}: names no number of rows: {_SPEC_FORM}")
    return SmallSpec(**values) if "passages" in values else Spec(**values)


def generate(
    spec: Spec, start: int = 0, stop: int | None = None, split: str = "validation"
) -> Iterator[tuple[Question, NoiseType]]:
    """Generate rows ``start`` to ``stop`` (excluded), the same in every range, each with its true noise type.

    >>> spec = Spec(rows=300, seed=1)
    >>> [q.id for q, _ in generate(spec, 199, 201)]
    ['synthetic-validation-1-199', 'synthetic-validation-1-200']
    """
    stop = spec.rows if stop is None else min(stop, spec.rows)
    authors = [writer(name) for name in ([spec.writer] if spec.writer else names())]
    small = spec if isinstance(spec, SmallSpec) else None
    write = partial(write_article, authors, is_short=small is not None)
    block, shares = None, {name: share for name, (share, _) in noise.NOISE.items()}
    for i in range(start, stop):
        if i // BLOCK != block:
            block = i // BLOCK
            chance = Random(f"{spec.seed}:{split}:{block}")
            world = make_world(chance, write, Namer(chance, name_filter(split), plain=True) if small else None)
        rng = Random(f"{spec.seed}:{split}:{spec.noise}:{i}")
        truth = pick_weighted(rng, shares) if rng.random() < spec.noise else "none"
        distractors = None
        if small:
            draft, distractors = make_row(world, rng, truth, small.passages)
        else:
            style = pick(rng, STYLES)
            while not noise.spoil(draft := plan(world, rng, truth, style)):  # until a draft can carry the noise
                pass
        yield to_question(draft, f"{NAME}-{split}-{spec.seed}-{i}", split, distractors), truth


def to_row(question: Question, truth: NoiseType) -> dict[str, Any]:
    """Make the plain JSON object of a row with its truth; `builders.benchmarks.synthetic.parse` reads it back."""
    return {**codec.question_row(question), "truth": truth}
