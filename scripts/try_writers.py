"""Read what the synthetic world's writers write, or see how well their rows are labelled.

python -m scripts.try_writers                                    # scores by writer
python -m scripts.try_writers --writer dense --samples 20        # articles to read
"""

import asyncio
from collections.abc import Iterator, Sequence

from builders.synthetic import Spec, generate, to_row
from builders.synthetic.writers import names, writer
from builders.verified.lookup import Labelled
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from evaluators.labels.agreement import by_noise_type, score_rows
from safe_stepwise.records import NoiseType, canonical_json
from safe_stepwise.store.files import named_by_user, write_lines
from safe_stepwise.store.tables import table
from scripts.cli import COUNT, FILE, SEED, command, run, share

HEADER = ("writer", "noise", "true", "found", "precision", "recall", "F1")


def main(arguments: Sequence[str]) -> None:
    """Print the articles or the scores; raises ``UserError`` for what the user can mend."""
    parser = command("try_writers", "Read the synthetic world's writers, or score their labels.")
    add = parser.add_argument
    add("--writer", metavar="NAME", help="only this one (default: each)")
    add("--samples", **COUNT, help="print so many gold articles of each instead")
    add("--rows", **COUNT, default=3_000, help="rows of each (default 3,000)")
    add("--noise", type=share, default=0.3, metavar="RATE", help="share of noise (default 0.3)")
    add("--seed", **SEED, help="of the rows (default 0)")
    add("--misread", **FILE, help="write the rows here whose label is not the truth, as JSONL")
    options = parser.parse_args(arguments)
    chosen = [writer(options.writer).name] if options.writer else names()
    specs = [Spec(options.rows, options.seed, options.noise, name) for name in chosen]
    if options.samples:
        print("\n\n".join(text for spec in specs for text in samples(spec, options.samples)))
        return
    rows, misread = [], []
    for spec in specs:
        found = list(labels(spec))
        true, ours = ({q.id: t for (q, _), t in found}, {q.id: k.noise_type for (q, k), _ in found})
        rows += [(spec.writer, *row) for row in score_rows(by_noise_type(true, ours))]
        misread += [
            {**to_row(q, t), "writer": spec.writer, "label": k.noise_type, "explanation": k.explanation}
            for (q, k), t in found
            if t != k.noise_type
        ]
    print(table([HEADER, *rows]))
    if options.misread:
        with named_by_user(options.misread):
            write_lines(options.misread, map(canonical_json, misread))
        print(f"{len(misread)} rows in {options.misread}")


def labels(spec: Spec) -> Iterator[tuple[Labelled, NoiseType]]:
    """A spec's questions, what is found without a model, and the truth."""
    teacher = AnnotationsTeacher()
    for question, truth in generate(spec):
        yield (question, asyncio.run(verify(question, teacher))), truth


def samples(spec: Spec, count: int) -> list[str]:
    """Gold articles of sound rows, each once, with their titles."""
    sound = generate(Spec(count, spec.seed, 0.0, spec.writer))
    told = {p.title: f"{p.title}\n{p.text}" for question, _ in sound for _, p in question.gold}
    return list(told.values())[:count]


if __name__ == "__main__":
    run(main)
