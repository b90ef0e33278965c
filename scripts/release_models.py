"""What makes the parts of a release beside its datasets: Space, adapters, evaluations; no command.

What a block trains and evaluates are several parts of one name, made one after the other.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.run.options import Options
from evaluators.traces import page
from releases.evaluations import MEASURED_RATE, OPTIONS, OWN_ADAPTER, OWN_GENERATOR, EvaluationEntry
from releases.manifest import Manifest
from releases.parts import Made, Part
from releases.space import copy_space, copy_traces
from safe_stepwise.store.files import remove_folder
from safe_stepwise.store.names import ADAPTER, BLOCKS, DATASETS, REPORT
from scripts.release_adapters import Training, own_training, trainings_of
from scripts.release_generator import generator_of, generator_parts
from scripts.release_rate import rejected
from scripts.release_training import trained, write_card

_SAME = ("limit", "drop_gold", "corpus", "as_published", "judge_without_question")
"""What an entry of a manifest calls as the command does."""
CHECKOUT = Path(__file__).parents[1]
Run = Callable[[EvaluationEntry, Path, Training | None], Made]
"""Evaluates into a folder's report, with an adapter if the entry takes one."""


def model_parts(
    manifest: Manifest,
    output: Path,
    cache: Path | None,
    evaluate: Callable[[Options], str],
    timeout: float | None = None,
) -> list[Part]:
    """The parts that a manifest names beside the datasets; they go on from replies in ``cache``.

    ``evaluate`` carries an evaluation out, and returns what there is to say; ``timeout`` is how
    long, in seconds, a call to a server may take.
    """

    def run(entry: EvaluationEntry, home: Path, training: Training | None) -> Made:
        options = _options(manifest, entry, output, home, training)
        asking: dict[str, Any] = {"cache": cache, "timeout": timeout}
        if entry.matched:
            rate = rejected(options, asking, evaluate)
            options["verifier"] = tuple(s.replace(MEASURED_RATE, rate) for s in options["verifier"])
        said = evaluate(Options(**options, **asking))
        page.show(home / REPORT)
        if training is not None:
            write_card(training)
        return Made(said)

    def train(name: str, training: Training) -> Part:
        return Part(name, partial(trained, training, cache, timeout), training.check)

    parts, own = [Part("space", partial(copy_space, CHECKOUT, output))], None
    parts += generator_parts(manifest, output)
    if manifest.adapter is not None:
        own = own_training(manifest, manifest.adapter, output)
        parts.append(train("adapter", own))
    if (entry := manifest.evaluation) is not None:
        parts.append(Part("evaluation", partial(run, entry, output, own), entry.check))
        shows = partial(copy_traces, output)
        parts.append(Part("space", shows, follows="evaluation"))
    for name in manifest.blocks:
        parts += _block(manifest, name, output, own, run, train)
    return parts


def _block(
    manifest: Manifest, name: str, output: Path, own: Training | None, run: Run, train: Callable[[str, Training], Part]
) -> Iterator[Part]:
    """Each adapter of a block and its evaluation; without any, one evaluation."""
    block = manifest.blocks[name]
    if not block.adapters and (entry := block.evaluation) is not None:
        yield Part(name, partial(run, entry, output / BLOCKS / name, own), entry.check)
    for training in trainings_of(manifest, name, block, output):
        yield train(name, training)
        if (entry := block.evaluation) is not None:
            yield Part(name, partial(run, entry, training.home, training), entry.check)


def _options(
    manifest: Manifest, entry: EvaluationEntry, output: Path, home: Path, training: Training | None
) -> dict[str, Any]:
    """The options of `evaluate_stepwise` that an entry of a manifest comes to."""
    adapter = str(output / ADAPTER if training is None else training.model)
    generator = str(generator_of(manifest, output)) if entry.needs_generator else ""

    def played(spec: str) -> str:
        return spec.replace(OWN_ADAPTER, adapter).replace(OWN_GENERATOR, generator)

    remove_folder(home / REPORT / REPORT)  # where tables went once
    return {
        "questions": str(output / DATASETS),
        "output": home / REPORT,
        "report": home / REPORT,
        "method": entry.methods,
        "generator": tuple(map(played, entry.generator)),
        "verifier": tuple(map(played, entry.verifier)),
        "judge": None if entry.judge is None else played(entry.judge),
        "seed": manifest.seed,
        "allowance": entry.allowed(manifest.allowance),
        "option": (f"verdict_order={entry.verdict_order}",) if entry.verdict_order else (),
        **{name: getattr(entry, name) for name in (*OPTIONS, *_SAME)},
    }
