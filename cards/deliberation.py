"""What an evaluation of answers over a knowledge graph came to, as the proposer's card tells it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.cards import Record
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import marked

METRICS: Mapping[str, str] = {"hits_at_1": "Hits@1", "hit": "Hit", "f1": "F1"}


@dataclass(frozen=True, slots=True)
class Deliberation:
    """One evaluation in which the adapter took part; ``place`` is its folder in the release."""

    place: str
    results: Record
    weights: str
    """How its runs name the adapter."""

    @property
    def way(self) -> str:
        """How it was asked, in words."""
        held = self.results["settings"]["constrained"]
        return "held to the paths of the graph" if held else "free to name any path"

    @property
    def hops(self) -> list[str]:
        """The numbers of hops that questions have."""
        return list(self.results["runs"][0]["by_hop"])

    @property
    def runs(self) -> Sequence[Record]:
        """Every run, in its order."""
        runs: Sequence[Record] = self.results["runs"]
        return runs

    def is_own(self, run: Record) -> bool:
        """Whether the adapter of the card proposes."""
        return self.weights in run["players"]["proposer"]

    @property
    def own(self) -> Record:
        """The run of the adapter."""
        return next(run for run in self.runs if self.is_own(run))

    def title(self, run: Record) -> str:
        """The name of a run; it says so where no model stands behind it."""
        return marked(str(run["name"]), run["simulated"])

    @property
    def is_result(self) -> bool:
        """Whether it tells anything of the adapter: nothing was simulated, and nothing failed."""
        return not self.own["simulated"] and not self.own["failed"]

    @property
    def not_better(self) -> list[tuple[str, str, float]]:
        """Where another run is as good or better: the run, hops, and the margin in Hits@1."""
        found = []
        for run in self.runs:
            for hop in self.hops if not self.is_own(run) else ():
                margin = self.own["by_hop"][hop]["hits_at_1"] - run["by_hop"][hop]["hits_at_1"]
                if margin <= 0:
                    found.append((self.title(run), hop, margin))
        return found


def read_deliberations(results: Mapping[str, Record], weights: str) -> list[Deliberation]:
    """The evaluations by the folder of each; raises ``UserError`` for one of another adapter."""
    found = [Deliberation(place, one, weights) for place, one in results.items()]
    for one in found:
        if not any(map(one.is_own, one.runs)):
            raise UserError(f"{one.place}: no run of it is of {weights}; evaluate the adapter that is there")
    return found


def eval_results(found: Sequence[Deliberation], dataset: str) -> list[Any]:
    """The scores by hop as `huggingface_hub.EvalResult`; none of what was simulated or failed."""
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="question-answering",
            task_name="Question answering over a knowledge graph",
            dataset_type=dataset,
            dataset_name=dataset,
            dataset_config=f"{hop}-hop",
            dataset_split=one.results["settings"]["split"],
            dataset_args={
                "questions": one.own["by_hop"][hop]["questions"],
                "held_out": one.results["settings"]["held_out"],
            },
            metric_type=metric,
            metric_name=f"{title}, {one.way}",
            metric_value=round(one.own["by_hop"][hop][metric], 4),
        )
        for one in found
        if one.is_result
        for hop in one.hops
        for metric, title in METRICS.items()
    ]
