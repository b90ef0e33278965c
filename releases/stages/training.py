"""What a release trains: what judges steps, what writes them, what proposes relation paths; each with its card."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from builders.steps.first import find_steps
from builders.verified.lookup import annotated
from cards.models import License, license_of_base, model_card, proposer_card
from evaluators.verifier.command import QUALITY as QUALITY_FILE
from evaluators.verifier.command import Options, run_verifiers
from releases import report
from releases.manifest import OWN_ADAPTER, OWN_SET, AdapterEntry, Manifest
from releases.paths_manifest import PathsManifest
from releases.reading import RecipeEntry
from releases.settings import check_player
from releases.stage import Cost, Forecast, M, Release, Result, Stage
from safe_stepwise.commands.ending import warn
from safe_stepwise.engines.weights import Model, find_adapter, find_model
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.store import names
from safe_stepwise.store.files import write_atomically
from trainers.checkpoints import read_json
from trainers.config import GeneratorRecipe, PathRecipe, Recipe, VerifierRecipe
from trainers.models import find_base, need_libraries
from trainers.record import RECORD
from trainers.run import train


@dataclass(frozen=True)
class Training(Stage[M], Generic[M]):
    """A stage that trains; it goes on where it was stopped."""

    trains = True

    @property
    def folder(self) -> Path:
        """Where it goes."""
        return self.release.output / self.name

    @property
    def model(self) -> Path:
        """What an engine loads: the adapter, or the model that was tuned as a whole."""
        return self.folder / names.TUNED if self.recipe.tuning == "full" else self.folder

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """The recipe on the release's rows; raises ``UserError`` for one that is none."""

    @abstractmethod
    def finish(self, record: Any) -> None:
        """Measure what was trained, and tell of it on its card."""

    def check(self) -> None:
        """Raise ``UserError`` if libraries or the base model are missing, before hours of work."""
        need_libraries(self.recipe)
        find_base(self.recipe.base_model)

    def make(self) -> Result:
        """Train, and finish what was trained."""
        record = train(self.recipe, resume=True, warn=warn)
        self.finish(record)
        return Result(f"{self.folder}: {record['run']['steps']:,} steps, loss {record['curve'][-1]['loss']:.4f}")

    def cost(self, name: str, rows: int, forecast: Forecast, part: str = "training") -> Cost:
        """What training on so many rows takes, by what the forecast expects of a row in a part."""
        recipe = self.recipe
        trained = round(rows * recipe.epochs * forecast.expected[part]["tokens_per_row"])
        return Cost(f"{name} {recipe.base_model}", rows, trained=trained)

    @property
    def license(self) -> License | None:
        """The base model's."""
        return license_of_base(self.recipe.base_model)

    def write_readme(self, card: str) -> None:
        """Put a card beside what was trained."""
        write_atomically(self.folder / names.README, card.encode())


def _rows_of(training: Training[Manifest], sets: Sequence[str]) -> int:
    """The rows of verifier sets, by their parts, that are trained on."""
    entries = training.release.manifest.sets
    counts = (round(entries[name].rows * (1 - entries[name].share_of_test)) for name in sets if name in entries)
    return sum(min(rows, training.recipe.filters.rows or rows) for rows in counts)


QUALITY = Path(names.REPORT) / "verifier"


@dataclass(frozen=True)
class Adapter(Training[Manifest]):
    """An adapter: what it learns, and the folder that has it and its reports."""

    entry: AdapterEntry
    home: Path
    """The release's folder, or one of a block."""
    steps: Path
    plus: Path | None = None

    @classmethod
    def of_release(cls, release: Release[Manifest]) -> "Adapter":
        """The release's own."""
        entry = release.manifest.adapter
        assert entry is not None
        return cls(release, names.ADAPTER, entry, release.output, release.datasets / names.VERIFIER_STEPS)

    @classmethod
    def of_block(cls, release: Release[Manifest], name: str) -> "Iterator[Adapter]":
        """Those of a block: of its own set, or of the release's, or of both."""
        block, home = release.manifest.blocks[name], release.output / names.BLOCKS / name
        steps, plus = release.datasets / names.VERIFIER_STEPS, None
        if block.verifier_steps is not None:
            block_set = home / names.DATASETS / names.VERIFIER_STEPS
            steps, plus = (steps, block_set) if block.verifier_steps.unverifiable else (block_set, None)
        for key, entry in block.adapters.items():
            yield cls(release, name, entry, home / key, steps, plus)

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> "Iterator[Adapter]":
        """The release's own, and those of its blocks."""
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
    def recipe(self) -> VerifierRecipe:
        plus = {} if self.plus is None else {"plus": [str(self.plus)]}
        return self.entry.read(VerifierRecipe, dataset=str(self.steps), output=str(self.folder), **plus)

    def validate(self) -> None:
        if self.entry.verifier is not None:
            place = names.ADAPTER if self.name == names.ADAPTER else f"blocks.{self.name}.adapters.{self.home.name}"
            check_player(self.entry.verifier, f"{place}.verifier", (OWN_ADAPTER,))

    def price(self, forecast: Forecast) -> Iterator[Cost]:
        """What it learns: a set of its block, the release's, or both."""
        is_own = self.name == names.ADAPTER
        sets = ([OWN_SET] if OWN_SET in self.needs else []) + ([] if is_own else [self.name])
        name = "adapter of" if is_own else f"adapter {self.home.name} of"
        yield self.cost(name, _rows_of(self, sets), forecast)

    def finish(self, record: Any) -> None:
        spec = self.entry.verifier
        if spec is not None:
            options = Options(
                steps=str(self.release.datasets),
                verifier=spec.replace(OWN_ADAPTER, str(self.model)),
                output=self.home / QUALITY,
                cache=self.release.options.cache,
                timeout=self.release.options.timeout,
                allowance=self.release.manifest.allowance.only([ROLE]),
                incomplete_evidence=self.recipe.incomplete_evidence,
                drop_category=self.recipe.filters.dropped_category,
            )
            print(run_verifiers(options, find_steps, annotated))
            verifiers = read_json(options.output / QUALITY_FILE)["verifiers"]
            self.refuse_failed(sum(verifier["failed"] for verifier in verifiers))
        self.write_card()

    def write_card(self) -> None:
        """The card of an adapter that is there, with all that has been measured of it so far."""
        folder, output = self.folder, self.release.output
        if not (folder / RECORD).is_file():
            return
        details: dict[str, Any] = {
            "version": self.release.manifest.version,
            "license": self.license,
            "steps": read_json(self.steps / names.STEPS_RECORD),
            "loops": self._results(),
            "first": (self.home / names.REPORT).relative_to(output).as_posix(),
        }
        record, quality = read_json(folder / RECORD), None
        if self.entry.verifier is not None:
            quality = read_json(self.home / QUALITY / QUALITY_FILE)
        if self.model != folder:
            weights = find_model(Model(str(self.model)))
        else:
            details["config"] = read_json(folder / "adapter_config.json")
            weights = find_adapter(Model(str(folder)))
        text = model_card(record, quality, weights=str(weights), **details)
        self.write_readme(text)

    def _results(self) -> dict[str, Any]:
        """What the evaluations of the release, or of a block with this adapter, came to, by place."""
        output = self.release.output
        places = report.folders(output) if self.home == output else [self.home / names.REPORT]
        files = {place.relative_to(output).as_posix(): place / names.RESULTS for place in places}
        return {place: read_json(file) for place, file in files.items() if file.is_file()}


@dataclass(frozen=True)
class Generator(Training[Manifest]):
    """What learns to write steps from the release's verifier set."""

    default_name = key = names.GENERATOR
    needs = (names.DATASETS, OWN_SET)

    @property
    def steps(self) -> Path:
        """The verifier set that it learns."""
        return self.release.datasets / names.VERIFIER_STEPS

    @property
    def recipe(self) -> GeneratorRecipe:
        entry = self.release.manifest.generator
        assert entry is not None
        return entry.read(GeneratorRecipe, dataset=str(self.steps), output=str(self.folder))

    def check(self) -> None:
        if self.recipe.tuning != "full":
            raise UserError(f"{self.release.file}: generator: is kept as a model; set tuning: full")
        super().check()

    def price(self, forecast: Forecast) -> Iterator[Cost]:
        yield self.cost("generator of", _rows_of(self, [OWN_SET]), forecast)

    def finish(self, record: Any) -> None:
        steps, version = read_json(self.steps / names.STEPS_RECORD), self.release.manifest.version
        self.write_readme(model_card(record, version=version, license=self.license, steps=steps))


@dataclass(frozen=True)
class Proposer(Training[PathsManifest]):
    """A step of the training, by the folder of the release that its adapter goes to; the last one is published."""

    entry: RecipeEntry
    splits: str
    start: Path | None
    """The adapter that it goes on from."""
    kind = PathsManifest

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> "Iterator[Proposer]":
        """SFT and KTO in this order, as far as they are named."""
        if (adapter := release.manifest.adapter) is None:
            return
        start = None
        for name, entry in zip(
            [names.SFT, names.ADAPTER][-len(adapter.stages) :], adapter.stages.values(), strict=True
        ):
            yield cls(release, name, entry, adapter.splits, start)
            start = release.output / name

    @property
    def needs(self) -> list[str]:
        return [names.PATHS, *([] if self.start is None else [self.start.name])]

    @property
    def dataset(self) -> Path:
        """What it learns."""
        return self.release.datasets / names.paths_set(self.release.manifest.paths.benchmark)

    @property
    def recipe(self) -> PathRecipe:
        places = {"dataset": str(self.dataset), "output": str(self.folder), "splits": self.splits}
        start = {} if self.start is None else {"start": str(self.start)}
        return self.entry.read(PathRecipe, **places, **start)

    def price(self, forecast: Forecast) -> Iterator[Cost]:
        recipe = self.recipe
        rows = recipe.filters.rows or forecast.build_rows[0]
        yield self.cost(f"{recipe.method} of", rows, forecast, "paths")

    def finish(self, record: Any) -> None:
        if self.name == names.ADAPTER:
            write_card(self.release, {})


def write_card(release: Release[PathsManifest], results: Mapping[str, Any]) -> None:
    """The card of the adapter that is published; ``results`` are those of evaluations by their place."""
    steps = list(Proposer.from_manifest(release))
    published = steps[-1]
    text = proposer_card(
        [read_json(step.folder / RECORD) for step in steps],
        read_json(published.dataset / names.PATHS_RECORD),
        config=read_json(published.folder / "adapter_config.json"),
        version=release.manifest.version,
        license=published.license,
        results=results,
        weights=str(find_adapter(Model(str(published.folder)))),
    )
    published.write_readme(text)
