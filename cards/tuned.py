"""The card of a model that was tuned as a whole: README of a verifier, or of what writes steps.

What it tells stands in ``training.json`` (as ``scripts.train_verifier`` and
``scripts.train_generator`` write it), ``verifier_quality.json``, ``results.json`` of the release's
evaluations and the statistics of the verifier set. A figure that one of them lacks is an error,
never a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards import loop as looping
from cards.adapter import Data, check_set, data_of, measured_on
from cards.base_model import Base, License, tuned_header
from cards.cards import Record, sources_of
from cards.loop import Loop, read_loops
from cards.pages import fill, headed, line
from cards.quality import Quality, eval_results, read_quality
from safe_stepwise.errors import UserError
from safe_stepwise.store.measures import MEASURES, title_of
from safe_stepwise.store.names import REPORT, adapter_repo, generator_repo, known_version


@dataclass(frozen=True, slots=True)
class TunedCard:
    """All that the README says beside what stands in the records."""

    training: Record
    version: str
    base: Base
    license: License | None
    data: Data
    quality: Quality | None
    loops: Sequence[Loop]
    sources: tuple[Record, ...]
    simulated: bool

    kind = "model"

    @property
    def prompts(self) -> Mapping[str, str]:
        """What it is asked by, as far as that is not the paper's."""
        said: Mapping[str, str] = self.training.get("prompts", {})
        return said

    @property
    def is_generator(self) -> bool:
        """Whether it writes steps, and does not judge them."""
        return self.prompts.get("role") == "generator"

    @property
    def name(self) -> str:
        """What its repo is called."""
        return (generator_repo if self.is_generator else adapter_repo)(self.base.name)

    @property
    def told(self) -> list[Loop]:
        """The evaluations that give its scores."""
        return [loop for loop in self.loops if loop.is_told]

    @property
    def synthetic(self) -> bool:
        """Whether it is known that no row comes from a real benchmark."""
        known = bool(self.sources) and not self.training["dataset"]["plus"]
        return known and all(source["source"]["synthetic"] for source in self.sources)


def tuned(
    training: Record,
    quality: Record | None = None,
    *,
    version: str,
    license: License | None = None,
    steps: Record | None = None,
    published: str | None = None,
    loops: Mapping[str, Record] | None = None,
    weights: str = "",
    first: str = REPORT,
) -> str:
    """README of the model; the arguments are those of `cards.adapter.adapter`.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` for records of different runs,
    of an adapter, and for results that may go on no card.
    """
    known_version(version)
    if "model" not in training:
        raise UserError("training.json is that of an adapter, which has a card of its own")
    check_set(training, steps)
    measured = None if quality is None else read_quality(quality)
    builds = () if steps is None else steps["verified"]
    made = [training["dataset"], *training["dataset"]["plus"], *builds]
    played = [one["simulated"] for one in (*made, *([measured.steps] if measured else []))]
    card = TunedCard(
        training=training,
        version=version,
        base=Base.read(training),
        license=license,
        data=data_of(training, published),
        quality=measured,
        loops=read_loops(loops or {}, weights, first, TunedCard.kind),
        sources=sources_of(builds),
        simulated=any(played),
    )
    told = {"measures": MEASURES, "title_of": title_of, "measured_by": looping.METRICS.values()}
    return headed(_metadata(card), fill("tuned.md.jinja", card=card, **told))


def _metadata(card: TunedCard) -> Any:
    from huggingface_hub import ModelCardData

    role = "generator" if card.is_generator else "verifier"
    tags = ["multi-hop-question-answering", "step-by-step", role]
    tags += ["synthetic"] if any(s["source"]["synthetic"] for s in card.sources) else []
    tags += ["simulated"] if card.simulated else []
    found = looping.eval_results(card.told, card.version)
    if card.quality is not None:
        where = measured_on(card.quality, card.training, card.data)
        found += eval_results(card.quality, *where)
    extra: dict[str, Any] = {}
    if found:
        extra = {"eval_results": found, "model_name": card.name}
        extra["metrics"] = sorted({one.metric_type for one in found})
    return ModelCardData(
        **tuned_header(card.base, card.license),
        datasets=[card.data.published] if card.data.published else None,
        tags=[line(tag) for tag in tags],
        **extra,
    )
