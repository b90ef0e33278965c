"""Adapters that judge steps: the release's own, and those of its blocks; each trained, measured, told of on a card."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.steps.first import find_steps
from builders.verified.lookup import annotated
from cards.models import license_of_base, model_card
from evaluators.verifier.command import Options, run_verifiers
from releases import report
from releases.manifest import OWN_ADAPTER, OWN_SET, AdapterEntry, Manifest
from releases.settings import check_player
from releases.stage import Cost, Forecast, Release
from releases.training import Training, price_training
from safe_stepwise.engines.weights import Model, find_adapter, find_model
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.store.names import ADAPTER, BLOCKS, DATASETS, REPORT, RESULTS, STEPS_RECORD, VERIFIER_STEPS
from trainers.checkpoints import read_json
from trainers.config import VerifierRecipe
from trainers.record import RECORD

QUALITY = Path(REPORT) / "verifier"


@dataclass(frozen=True)
class Adapter(Training[Manifest]):
    """An adapter: what it learns, and the folder that has it and its reports."""

    entry: AdapterEntry
    home: Path
    """The release's folder, or one of a block."""
    steps: Path
    plus: Path | None = None

    @classmethod
    def own(cls, release: Release[Manifest]) -> "Adapter":
        """The release's own."""
        entry = release.manifest.adapter
        assert entry is not None
        return cls(release, ADAPTER, entry, release.output, release.datasets / VERIFIER_STEPS)

    @classmethod
    def of_block(cls, release: Release[Manifest], name: str) -> "Iterator[Adapter]":
        """Those of a block: of its own set, or of the release's, or of both."""
        block, home = release.manifest.blocks[name], release.output / BLOCKS / name
        steps, plus = release.datasets / VERIFIER_STEPS, None
        if block.verifier_steps is not None:
            own = home / DATASETS / VERIFIER_STEPS
            steps, plus = (steps, own) if block.verifier_steps.unverifiable else (own, None)
        for key, entry in block.adapters.items():
            yield cls(release, name, entry, home / key, steps, plus)

    @classmethod
    def named_in(cls, release: Release[Any]) -> "Iterator[Adapter]":
        """The release's own, and those of its blocks."""
        if release.manifest.adapter is not None:
            yield cls.own(release)
        for name in release.manifest.blocks:
            yield from cls.of_block(release, name)

    @property
    def needs(self) -> list[str]:
        block = self.release.manifest.blocks.get(self.name)
        return [DATASETS, *([OWN_SET] if block is None or block.learns_steps else [])]

    @property
    def folder(self) -> Path:
        return self.home / ADAPTER

    @property
    def recipe(self) -> VerifierRecipe:
        plus = {} if self.plus is None else {"plus": [str(self.plus)]}
        return self.entry.read(VerifierRecipe, dataset=str(self.steps), output=str(self.folder), **plus)

    def validate(self) -> None:
        if self.entry.verifier is not None:
            where = ADAPTER if self.name == ADAPTER else f"blocks.{self.name}.adapters.{self.home.name}"
            check_player(self.entry.verifier, f"{where}.verifier", (OWN_ADAPTER,))

    def price(self, forecast: Forecast) -> Iterator[Cost]:
        """What it learns: a set of its block, the release's, or both."""
        is_own = self.name == ADAPTER
        sets = ([OWN_SET] if OWN_SET in self.needs else []) + ([] if is_own else [self.name])
        name = "adapter of" if is_own else f"adapter {self.home.name} of"
        yield price_training(self.release.manifest, sets, self.recipe, name, forecast)

    def finish(self, record: Any) -> None:
        spec = self.entry.verifier
        if spec is not None:
            options = Options(
                str(self.release.datasets),
                spec.replace(OWN_ADAPTER, str(self.model)),
                self.home / QUALITY,
                cache=self.release.options.cache,
                timeout=self.release.options.timeout,
                allowance=self.release.manifest.allowance.only([ROLE]),
                incomplete_evidence=self.recipe.incomplete_evidence,
                drop_category=self.recipe.filters.unasked,
            )
            print(run_verifiers(options, find_steps, annotated))
        self.write_card()

    def write_card(self) -> None:
        """The card of an adapter that is there, with all that has been measured of it so far."""
        folder, output = self.folder, self.release.output
        if not (folder / RECORD).is_file():
            return
        about: dict[str, Any] = {
            "version": self.release.manifest.version,
            "license": license_of_base(self.recipe.base_model),
            "steps": read_json(self.steps / STEPS_RECORD),
            "loops": self._results(),
            "first": (self.home / REPORT).relative_to(output).as_posix(),
        }
        record, quality = read_json(folder / RECORD), None
        if self.entry.verifier is not None:
            quality = read_json(self.home / QUALITY / "verifier_quality.json")
        if self.model != folder:
            weights = find_model(Model(str(self.model)))
        else:
            about["config"] = read_json(folder / "adapter_config.json")
            weights = find_adapter(Model(str(folder)))
        text = model_card(record, quality, weights=str(weights), **about)
        self.write_readme(text)

    def _results(self) -> dict[str, Any]:
        """What the evaluations of the release, or of a block with this adapter, came to, by place."""
        output = self.release.output
        places = report.folders(output) if self.home == output else [self.home / REPORT]
        files = {place.relative_to(output).as_posix(): place / RESULTS for place in places}
        return {place: read_json(file) for place, file in files.items() if file.is_file()}
