"""The stages that train verifier adapters, the generator of steps and the proposer of relation paths."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from builders.steps.earlier_build import find_steps
from builders.steps.probes import label_by_probes
from builders.verified.lookup import add_annotations
from cards.models import License, license_of_base, model_card, proposer_card
from evaluators.verifier.command import QUALITY as QUALITY_FILE
from evaluators.verifier.command import Options, run_verifiers
from releases import report
from releases.manifest import OWN_ADAPTER, OWN_SET, AdapterEntry, Manifest
from releases.paths_manifest import PathsManifest
from releases.reading import RecipeEntry
from releases.stage import CostEstimate, Forecast, M, Release, Stage, StageResult, check_player
from safe_stepwise.engines.weights import Model, find_adapter, find_model
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.store import names, progress
from safe_stepwise.store.files import write_atomically
from trainers import checkpoints, config
from trainers.models import find_base, need_libraries
from trainers.record import RECORD
from trainers.run import train

QUALITY = Path(names.REPORT) / "verifier"


@dataclass(frozen=True)
class TrainingStage(Stage[M], Generic[M]):
    """Release stage: train a model or an adapter and write its card; continue from an earlier run's checkpoint."""

    trains = True

    @property
    def folder(self) -> Path:
        return self.release.output / self.name

    @property
    def model(self) -> Path:
        """The folder that an engine loads: that of the adapter, or of the wholly tuned model."""
        return self.folder / names.TUNED if self.recipe.tuning == "full" else self.folder

    @property
    @abstractmethod
    def recipe(self) -> config.Recipe:
        """The recipe with the release's rows as its dataset; raises ``UserError`` for a bad recipe."""

    @abstractmethod
    def finish(self, record: Any) -> None:
        """Measure the trained model if the manifest says how, and write its card."""

    def check(self) -> None:
        """Raise ``UserError`` if libraries or the base model are missing, before hours of work."""
        need_libraries(self.recipe)
        find_base(self.recipe.base_model)

    def make(self) -> StageResult:
        record = train(self.recipe, resume=True, warn=progress.note)
        self.finish(record)
        return StageResult(f"{self.folder}: {record['run']['steps']:,} steps, loss {record['curve'][-1]['loss']:.4f}")

    def cost(self, name: str, rows: int, forecast: Forecast, kind: str = "training") -> CostEstimate:
        """Return the cost of training on ``rows`` rows for all epochs, by the tokens of a ``kind`` of row."""
        tokens = rows * self.recipe.epochs * forecast.expectations[kind]["tokens_per_row"]
        return CostEstimate(f"{name} {self.recipe.base_model}", rows, trained=round(tokens))

    @property
    def license(self) -> License | None:
        """The base model's licence, None if it states none."""
        return license_of_base(self.recipe.base_model)

    def write_readme(self, card: str) -> None:
        write_atomically(self.folder / names.README, card.encode())


def _rows_of(training: TrainingStage[Manifest], sets: Sequence[str]) -> int:
    """Return the sum of the training rows of verifier sets; ``sets`` names the parts that make them."""
    entries = training.release.manifest.sets
    counts = (round(entries[name].rows * (1 - entries[name].share_of_test)) for name in sets if name in entries)
    return sum(min(rows, training.recipe.filters.rows or rows) for rows in counts)


@dataclass(frozen=True)
class AdapterStage(TrainingStage[Manifest]):
    """Release stage: train a verifier adapter, the published one or one of a block."""

    entry: AdapterEntry
    home: Path
    """The folder that gets the adapter's folder and reports: the release's, or a folder of a block."""
    steps: Path
    """The folder of the verifier set on which it is trained."""
    plus: Path | None = None
    """The folder of a second set to train on."""

    @classmethod
    def of_release(cls, release: Release[Manifest]) -> "AdapterStage":
        """Return the training of the adapter that the release publishes."""
        entry = release.manifest.adapter
        assert entry is not None
        return cls(release, names.ADAPTER, entry, release.output, release.datasets / names.VERIFIER_STEPS)

    @classmethod
    def of_block(cls, release: Release[Manifest], name: str) -> "Iterator[AdapterStage]":
        """Yield the training of each adapter of block ``name``: on the block's set, the release's, or both."""
        block, home = release.manifest.blocks[name], release.output / names.BLOCKS / name
        steps, plus = release.datasets / names.VERIFIER_STEPS, None
        if block.verifier_steps is not None:
            block_set = home / names.DATASETS / names.VERIFIER_STEPS
            steps, plus = (steps, block_set) if block.verifier_steps.unverifiable else (block_set, None)
        for key, entry in block.adapters.items():
            yield cls(release, name, entry, home / key, steps, plus)

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> "Iterator[AdapterStage]":
        """Yield the trainings of the published adapter and of the blocks' adapters."""
        if release.manifest.adapter is not None:
            yield cls.of_release(release)
        for name in release.manifest.blocks:
            yield from cls.of_block(release, name)

    @property
    def needs(self) -> list[str]:
        block = self.release.manifest.blocks.get(self.name)
        return [names.DATASETS, *([OWN_SET] if block is None or block.learns_steps else [])]

    @property
    def folder(self) -> Path:
        return self.home / names.ADAPTER

    @property
    def recipe(self) -> config.VerifierRecipe | config.EncoderRecipe:
        plus = {} if self.plus is None else {"plus": [str(self.plus)]}
        return self.entry.read(self.entry.recipe_type(), dataset=str(self.steps), output=str(self.folder), **plus)

    def validate(self) -> None:
        if self.entry.verifier is not None:
            place = names.ADAPTER if self.name == names.ADAPTER else f"blocks.{self.name}.adapters.{self.home.name}"
            check_player(self.entry.verifier, f"{place}.verifier", (OWN_ADAPTER,))

    def price(self, forecast: Forecast) -> Iterator[CostEstimate]:
        """Yield the cost of training on the release's set, the block's, or both."""
        is_own = self.name == names.ADAPTER
        sets = ([OWN_SET] if OWN_SET in self.needs else []) + ([] if is_own else [self.name])
        name = "adapter of" if is_own else f"adapter {self.home.name} of"
        yield self.cost(name, _rows_of(self, sets), forecast)

    def finish(self, record: Any) -> None:
        if (spec := self.entry.verifier) is not None:
            options = Options(
                steps=str(self.release.datasets),
                verifier=spec.replace(OWN_ADAPTER, str(self.model)),
                output=self.home / QUALITY,
                **self.release.options.model_options,
                allowance=self.release.manifest.allowance.restrict([ROLE]),
                incomplete_evidence=self.recipe.incomplete_evidence,
                probes=isinstance(self.recipe, config.EncoderRecipe),  # who reads no more is worth no more
                drop_category=self.recipe.filters.dropped_category,
            )
            print(run_verifiers(options, find_steps, add_annotations, label_by_probes))
            verifiers = checkpoints.read_record(options.output / QUALITY_FILE)["verifiers"]
            self.refuse_failed(sum(verifier["failed"] for verifier in verifiers))
        self.write_card()

    def write_card(self) -> None:
        """Write the adapter's card with all measurements so far; do nothing if it is not trained yet."""
        folder, output = self.folder, self.release.output
        if not (folder / RECORD).is_file():
            return
        details: dict[str, Any] = {
            "version": self.release.manifest.version,
            "license": self.license,
            "steps": checkpoints.read_record(self.steps / names.STEPS_RECORD),
            "loops": self._read_results(),
            "main_folder": (self.home / names.REPORT).relative_to(output).as_posix(),
        }
        record, quality = checkpoints.read_record(folder / RECORD), None
        if self.entry.verifier is not None:
            quality = checkpoints.read_record(self.home / QUALITY / QUALITY_FILE)
        if self.model != folder:
            weights = find_model(Model(str(self.model)))
        else:
            details["config"] = checkpoints.read_record(folder / "adapter_config.json")
            weights = find_adapter(Model(str(folder)))
        self.write_readme(model_card(record, quality, weights_name=str(weights), **details))

    def _read_results(self) -> dict[str, Any]:
        """Read ``results.json`` of evaluations, by report folder: the adapter's, or all for the published adapter."""
        output = self.release.output
        folders = report.folders(output) if self.home == output else [self.home / names.REPORT]
        files = {folder.relative_to(output).as_posix(): folder / names.RESULTS for folder in folders}
        return {name: checkpoints.read_record(file) for name, file in files.items() if file.is_file()}


@dataclass(frozen=True)
class GeneratorStage(TrainingStage[Manifest]):
    """Release stage: train a model to write steps, on the ideal steps of the release's verifier set."""

    default_name = key = names.GENERATOR
    needs = (names.DATASETS, OWN_SET)

    @property
    def steps(self) -> Path:
        """The folder of the verifier set on which it is trained."""
        return self.release.datasets / names.VERIFIER_STEPS

    @property
    def recipe(self) -> config.GeneratorRecipe:
        entry = self.release.manifest.generator
        assert entry is not None
        return entry.read(config.GeneratorRecipe, dataset=str(self.steps), output=str(self.folder))

    def check(self) -> None:
        if self.recipe.tuning != "full":
            raise UserError(f"{self.release.file}: generator: is kept as a model; set tuning: full")
        super().check()

    def price(self, forecast: Forecast) -> Iterator[CostEstimate]:
        yield self.cost("generator of", _rows_of(self, [OWN_SET]), forecast)

    def finish(self, record: Any) -> None:
        steps, version = checkpoints.read_record(self.steps / names.STEPS_RECORD), self.release.manifest.version
        self.write_readme(model_card(record, version=version, license=self.license, steps=steps))


@dataclass(frozen=True)
class ProposerStage(TrainingStage[PathsManifest]):
    """Release stage: train a proposer of paths by SFT or KTO; the adapter of the last method is published."""

    entry: RecipeEntry
    start: Path | None
    """The folder of the adapter from which training starts, None for a new one."""
    manifest_type = PathsManifest

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> "Iterator[ProposerStage]":
        """Yield SFT, then KTO if the manifest names it."""
        if (adapter := release.manifest.adapter) is None:
            return
        start, entries = None, adapter.stages.values()
        for name, entry in zip([names.SFT, names.ADAPTER][-len(entries) :], entries, strict=True):
            yield cls(release, name, entry, start)
            start = release.output / name

    @property
    def needs(self) -> list[str]:
        return [names.PATHS, *([] if self.start is None else [self.start.name])]

    @property
    def dataset(self) -> Path:
        """The folder of the set of relation paths on which it is trained."""
        return self.release.datasets / names.paths_set(self.release.manifest.paths.benchmark)

    @property
    def recipe(self) -> config.PathRecipe:
        options = {"dataset": str(self.dataset), "output": str(self.folder)}
        options |= {} if self.start is None else {"start": str(self.start)}
        return self.entry.read(config.PathRecipe, **options)

    def price(self, forecast: Forecast) -> Iterator[CostEstimate]:
        recipe = self.recipe
        rows = recipe.filters.rows or forecast.build_rows[0]
        yield self.cost(f"{recipe.method} of", rows, forecast, "paths")

    def finish(self, record: Any) -> None:
        if self.name == names.ADAPTER:
            write_card(self.release, {})


def write_card(release: Release[PathsManifest], results: Mapping[str, Any]) -> None:
    """Write the card of the published proposer; ``results`` has its evaluations' ``results.json`` by report folder."""
    trainings = list(ProposerStage.from_manifest(release))
    published = trainings[-1]
    text = proposer_card(
        [checkpoints.read_record(training.folder / RECORD) for training in trainings],
        checkpoints.read_record(published.dataset / names.PATHS_RECORD),
        config=checkpoints.read_record(published.folder / "adapter_config.json"),
        version=release.manifest.version,
        license=published.license,
        results=results,
        weights_name=str(find_adapter(Model(str(published.folder)))),
    )
    published.write_readme(text)
