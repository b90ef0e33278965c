"""What the loop scored with an adapter as verifier, as its card and the Hub tell it.

All figures are those of ``results.json``, as an evaluation wrote them. An adapter is known there by
its name with a digest of its files, so that no other one's scores can get on its card.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cards.pages import line
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.options import option_values
from safe_stepwise.metric.judge import JUDGED
from safe_stepwise.store.names import EVAL, TEST, VERIFIED

Record = Mapping[str, Any]
METRICS = {"exact_match": "Exact match", "f1": "F1", "accuracy": "Accuracy by the judge"}


def judge_of(settings: Record) -> str | None:
    """Who judged in an evaluation, and how, if not our way: that makes another measure of it.

    >>> judge_of({"judge": "openai:m", "judge_without_question": True})
    'openai:m (judge without question)'
    """
    how = [f"{n} {settings[n]}".removesuffix(" True") for n in JUDGED if settings.get(n)]
    said = f" ({', '.join(how)})".replace("_", " ") if how else ""
    return f"{settings['judge']}{said}" if settings["judge"] else None


@dataclass(frozen=True)
class Loop:
    """An evaluation in which the adapter took part."""

    place: str
    """The folder of its report in the release."""
    results: Record
    weights: str
    """The adapter's own name in it: ``NAME@DIGEST``."""
    is_first: bool = False
    """Whether it was evaluated for this adapter, and not for a table of its own."""
    kind: str = "adapter"
    """What it is: an adapter, or a model that was tuned as a whole."""

    @property
    def systems(self) -> Sequence[Record]:
        """All that were compared, baselines too."""
        found: Sequence[Record] = self.results["comparison"]["systems"]
        return found

    @cached_property
    def own(self) -> list[Record]:
        """Those in which the adapter played."""
        return [one for one in self.systems if self.is_own(one)]

    @property
    def lacks(self) -> list[str]:
        """In words what evidence was other than that of the samples."""
        settings = self.results["settings"]
        conditions = (one.get("conditions") or {} for one in self.systems)
        given = {"drop_gold": settings.get("drop_gold"), "corpus": settings.get("corpus")}
        found = [name for one in (given, *conditions) for name, value in one.items() if value]
        return list(dict.fromkeys(n.replace("_", " ") for n in found if n not in JUDGED))

    @property
    def judge(self) -> str | None:
        """Who judged, if anybody did, and how."""
        return judge_of(self.results["settings"])

    @property
    def is_told(self) -> bool:
        """Whether its scores stand on the card: its own, and those of the loop as it is."""
        otherwise = any(self.results["settings"].get(name) for name in JUDGED)
        other = self.lacks or otherwise or any(map(self.options, self.systems))
        return self.is_first or not other

    def options(self, system: Record) -> str:
        """The options of a system that its method has otherwise.

        >>> Loop("report", {}, "").options({"method": "safe", "options": {"max_steps": 2}})
        'max_steps=2'
        """
        method = METHODS.get(system["method"])
        defaults = option_values(options_type(method)()) if method else {}
        said = system["options"].items()
        other = [f"{name}={value}" for name, value in said if defaults.get(name) != value]
        return ", ".join(other)

    @property
    def benchmarks(self) -> list[str]:
        """Those that were asked, and their mean where there are several."""
        names = list(self.results["comparison"]["benchmarks"])
        return [*names, "average"] if len(names) > 1 else names

    @property
    def roles(self) -> list[str]:
        """Every role that anybody plays."""
        return list(dict.fromkeys(role for one in self.systems for role in one["players"]))

    @property
    def margins(self) -> list[tuple[Record, Record, list[Record | None]]]:
        """How much better the adapter's systems are than others: both, and a test a measure.

        Of the mean of the benchmarks.
        """
        found: dict[tuple[str, str], dict[str, Record]] = {}
        both: dict[tuple[str, str], tuple[Record, Record]] = {}
        for one in self.results["comparison"]["differences"]:
            if one["benchmark"] is None and self.is_own(one["first"]):
                key = str(one["first"]), str(one["second"])
                both[key] = one["first"], one["second"]
                found.setdefault(key, {})[one["metric"]] = one
        return [(*both[key], [of.get(name) for name in METRICS]) for key, of in found.items()]

    def is_own(self, system: Record) -> bool:
        """Whether the adapter plays in a system."""
        return any(map(self._names_it, system["players"].values()))

    def played(self, name: str) -> str:
        """A player as the card tells it."""
        return f"this {self.kind}" if self._names_it(name) else name

    def _names_it(self, player: object) -> bool:
        mark = "+" if self.kind == "adapter" else ":"
        return f"{mark}{self.weights}" in str(player)

    def answering(self, system: Record) -> str:
        """Who plays the role that answers."""
        players, method = system["players"], METHODS.get(system["method"])
        return self.played(str(players[method.roles[0] if method else min(players)]))

    def title(self, system: Record) -> str:
        """The name of a system's method."""
        name = str(system["method"])
        return METHODS[name].title if name in METHODS else name

    def cell(self, system: Record, benchmark: str) -> str:
        """Scores with half their 95% interval: EM, F1 and accuracy, from 0 to 1."""
        found = system["benchmarks"].get(benchmark, {})
        found = system["average"] if benchmark == "average" else found
        return " / ".join(_shown(found.get(name)) for name in METRICS)

    def failed(self, system: Record) -> int:
        """Questions that a failed request ended, which count as wrong."""
        return sum(found["failed"] for found in system["benchmarks"].values())


def read_loops(results: Mapping[str, Record], weights: str, first: str, kind: str = "adapter") -> list[Loop]:
    """The evaluations of a release, by the place of each, in which an adapter took part.

    ``first`` is the place of the one that was made for it; ``kind`` is what it is, if none.
    """
    loops = [Loop(place, found, weights, place == first, kind) for place, found in results.items()]
    return [one for one in loops if one.own]


def eval_results(loops: Sequence[Loop], version: str) -> list[Any]:
    """The adapter's scores as `huggingface_hub.EvalResult`, one a benchmark and measure.

    None of a system that was simulated or of which a question failed, and none with other evidence
    than the samples': these are no scores on them. A setting that several evaluations have is told
    once.
    """
    found: dict[str, Any] = {}
    for loop in loops:
        if loop.lacks:
            continue
        for system in loop.own:
            if not system["simulated"] and not loop.failed(system):
                for one in _results(loop, system, version):
                    found.setdefault(f"{one.dataset_config} {one.metric_type} {one.metric_args}", one)
    return list(found.values())


def _results(loop: Loop, system: Record, version: str) -> Iterator[Any]:
    from huggingface_hub import EvalResult

    players = {role: line(loop.played(name)) for role, name in system["players"].items()}
    how = {**players, "method": system["method"], **system["options"]}
    judge = {"judge": line(loop.judge)}
    for benchmark, scores in system["benchmarks"].items():
        for metric, title in METRICS.items():
            if scores[metric] is not None:
                yield EvalResult(
                    task_type="question-answering",
                    task_name="Multi-hop question answering, step by step",
                    dataset_type=VERIFIED,
                    dataset_name=f"{VERIFIED}, {line(benchmark)}",
                    dataset_config=f"{line(benchmark)}{EVAL}",
                    dataset_split=TEST,
                    dataset_revision=version,
                    dataset_args={"questions": scores["questions"]},
                    metric_type=metric,
                    metric_name=title,
                    metric_value=round(scores[metric]["value"], 4),
                    metric_args={**how, **(judge if metric == "accuracy" else {})},
                )


def _shown(estimate: Record | None) -> str:
    if estimate is None:
        return "-"
    margin = (estimate["high"] - estimate["low"]) / 2
    return f"{estimate['value']:.3f} ±{margin:.3f}"
