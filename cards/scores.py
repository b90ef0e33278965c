"""The measures of a published model, for its card and the header for the Hub.

All figures are those of ``results.json`` and ``verifier_quality.json``. These name a model with a digest of its
files, so that no other model's scores can get on its card.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cards.pages import Record, line
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import option_values, options_type
from safe_stepwise.metric.judge import JUDGED
from safe_stepwise.store import names
from safe_stepwise.store.agreement import MEASURES, title_of

METRICS = {"exact_match": "Exact match", "f1": "F1", "accuracy": "Accuracy by the judge"}
"""Titles of the metrics of answers in the loop."""
PATH_METRICS = {"hits_at_1": "Hits@1", "hit": "Hit", "f1": "F1"}
"""Titles of the metrics of answers over a knowledge graph."""
_BASELINE_MEASURES = ("accuracy", "macro_f1", "error_f1", "first_error_f1")
"""Measures on which a baseline that is as good gets a line of its own."""


def judge_of(settings: Record) -> str | None:
    """Name an evaluation's judge with its settings that differ from our defaults, as these change the measure.

    >>> judge_of({"judge": "openai:m", "judge_without_question": True})
    'openai:m (judge without question)'
    """
    details = [f"{n} {settings[n]}".removesuffix(" True") for n in JUDGED if settings.get(n)]
    suffix = f" ({', '.join(details)})".replace("_", " ") if details else ""
    return f"{settings['judge']}{suffix}" if settings["judge"] else None


@dataclass(frozen=True)
class Loop:
    """An evaluation of the loop in which the model took part."""

    place: str
    """The folder of its report in the release."""
    results: Record
    weights: str
    """The model's name in the results: ``NAME@DIGEST``."""
    is_first: bool = False
    """Whether this evaluation was made for the model, and not for another table."""
    kind: str = "adapter"
    """The kind of model: an adapter, or a wholly tuned model."""

    @property
    def systems(self) -> Sequence[Record]:
        """All compared systems, with baselines."""
        systems: Sequence[Record] = self.results["comparison"]["systems"]
        return systems

    @cached_property
    def own_systems(self) -> list[Record]:
        """The systems in which the model plays."""
        return [system for system in self.systems if self.is_own(system)]

    @property
    def changed_evidence(self) -> list[str]:
        """The conditions under which evidence differs from that of the samples, in words."""
        settings = self.results["settings"]
        evidence = {"drop_gold": settings.get("drop_gold"), "corpus": settings.get("corpus")}
        conditions = (evidence, *(system.get("conditions") or {} for system in self.systems))
        changed = [name for values in conditions for name, value in values.items() if value]
        return list(dict.fromkeys(n.replace("_", " ") for n in changed if n not in JUDGED))

    @property
    def judge(self) -> str | None:
        """The judge with its settings, None without one."""
        return judge_of(self.results["settings"])

    @property
    def has_scores(self) -> bool:
        """Whether its scores are on the card: those of its own evaluation, and of unchanged loops."""
        changes_judge = any(self.results["settings"].get(name) for name in JUDGED)
        return self.is_first or not (self.changed_evidence or changes_judge or any(map(self.options, self.systems)))

    def options(self, system: Record) -> str:
        """Return the options of a system that differ from its method's defaults.

        >>> Loop("report", {}, "").options({"method": "safe", "options": {"max_steps": 2}})
        'max_steps=2'
        """
        method = METHODS.get(system["method"])
        defaults = option_values(options_type(method)()) if method else {}
        changed = [f"{n}={value}" for n, value in system["options"].items() if defaults.get(n) != value]
        return ", ".join(changed)

    @property
    def margins(self) -> list[tuple[Record, Record, list[Record | None]]]:
        """The model's system, a compared system, and the test of their difference for each metric.

        The tests compare means over the benchmarks.
        """
        tests: dict[tuple[str, str], dict[str, Record]] = {}
        for test in self.results["comparison"]["differences"]:
            if test["benchmark"] is None and self.is_own(test["first"]):
                tests.setdefault((str(test["first"]), str(test["second"])), {})[test["metric"]] = test
        pairs = ((next(iter(by_metric.values())), by_metric) for by_metric in tests.values())
        return [(t["first"], t["second"], [by_metric.get(n) for n in METRICS]) for t, by_metric in pairs]

    def is_own(self, system: Record) -> bool:
        """Return whether the model plays in a system."""
        return any(map(self._names_it, system["players"].values()))

    def player_title(self, player: str) -> str:
        """Return a player's name for the card."""
        return f"this {self.kind}" if self._names_it(player) else player

    def _names_it(self, player: object) -> bool:
        mark = "+" if self.kind == "adapter" else ":"
        return f"{mark}{self.weights}" in str(player)

    def answering(self, system: Record) -> str:
        """Return the player of the answering role."""
        return self.player_title(str(system["players"][answering_role(system)]))

    def title(self, system: Record) -> str:
        """Return the title of a system's method."""
        name = str(system["method"])
        return METHODS[name].title if name in METHODS else name

    def cell(self, system: Record, benchmark: str) -> str:
        """Return scores with half their 95% interval: EM, F1 and accuracy, from 0 to 1."""
        scores = system["average"] if benchmark == "average" else system["benchmarks"].get(benchmark, {})
        estimates = [scores.get(name) for name in METRICS]
        margins = [e and f"{e['value']:.3f} ±{(e['high'] - e['low']) / 2:.3f}" for e in estimates]
        return " / ".join(margin or "-" for margin in margins)

    def failed(self, system: Record) -> int:
        """Count the questions that a failed request ended, which count as wrong."""
        return sum(scores["failed"] for scores in system["benchmarks"].values())


def answering_role(system: Record) -> str:
    """Return the answering role of a system or a run."""
    method = METHODS.get(system["method"])
    return method.roles[0] if method else str(min(system["players"]))


def read_loops(results: Mapping[str, Record], weights: str, first: str, kind: str) -> list[Loop]:
    """Return the evaluations of a release in which a model takes part; ``results`` is by place.

    ``first`` is the place of the evaluation that was made for the model.
    """
    loops = [Loop(place, record, weights, place == first, kind) for place, record in results.items()]
    return [loop for loop in loops if loop.own_systems]


def loop_eval_results(loops: Sequence[Loop], version: str) -> list[Any]:
    """Return the model's scores as `huggingface_hub.EvalResult`, one for each benchmark and metric.

    Systems that are simulated, that have a failed question, or that saw other evidence than the samples' are left out.
    A setting of several evaluations is listed once.
    """
    results: dict[str, Any] = {}
    for loop in loops:
        for system in () if loop.changed_evidence else loop.own_systems:
            if not system["simulated"] and not loop.failed(system):
                for result in _system_results(loop, system, version):
                    key = f"{result.dataset_config} {result.metric_type} {result.metric_args}"
                    results.setdefault(key, result)
    return list(results.values())


def _system_results(loop: Loop, system: Record, version: str) -> Iterator[Any]:
    from huggingface_hub import EvalResult

    players = {role: line(loop.player_title(name)) for role, name in system["players"].items()}
    settings = {**players, "method": system["method"], **system["options"]}
    judge = {"judge": line(loop.judge)}
    for benchmark, scores in system["benchmarks"].items():
        for metric, title in METRICS.items():
            if scores[metric] is not None:
                yield EvalResult(
                    task_type="question-answering",
                    task_name="Multi-hop question answering, step by step",
                    dataset_type=names.VERIFIED,
                    dataset_name=f"{names.VERIFIED}, {line(benchmark)}",
                    dataset_config=f"{line(benchmark)}{names.EVAL}",
                    dataset_split=names.TEST,
                    dataset_revision=version,
                    dataset_args={"questions": scores["questions"]},
                    metric_type=metric,
                    metric_name=title,
                    metric_value=round(scores[metric]["value"], 4),
                    metric_args={**settings, **(judge if metric == "accuracy" else {})},
                )


@dataclass(frozen=True, slots=True)
class Quality:
    """A verifier's measured quality beside baselines: parts of ``verifier_quality.json``, unchanged."""

    steps: Record
    """The rows' dataset and the settings of the requests."""
    bootstrap: Record
    adapter: Record
    baselines: Sequence[Record]
    agreement: Sequence[tuple[str, Record]]
    """The agreement of each baseline, by title, with the adapter."""

    @classmethod
    def read(cls, record: Record) -> "Quality":
        """Read the quality; raises ``KeyError`` for a missing figure, ``UserError`` for figures that no card may have.

        Those are figures of a simulated verifier, or with failed requests.
        """
        adapter, *baselines = record["verifiers"]
        if adapter["simulated"]:
            raise UserError(f"{adapter['name']}: simulated results go on no model card")
        if adapter["failed"]:
            raise UserError(
                f"{adapter['name']}: {adapter['failed']:,} requests failed; run evaluate_verifier again first"
            )
        titles = {baseline["role"]: title_of(baseline) for baseline in baselines}
        pairs = [(titles[pair["b"]], pair) for pair in record["agreement"] if pair["a"] == adapter["role"]]
        return cls(record["steps"], record["bootstrap"], adapter, baselines, pairs)

    @property
    def not_better(self) -> list[tuple[str, str, float]]:
        """The baselines and measures on which the adapter is not better: name, title, margin."""
        return [
            (title_of(baseline), MEASURES[name][1], margin)
            for baseline in self.baselines
            for name in _BASELINE_MEASURES
            if (margin := self.margin(baseline, name)) is not None and margin <= 0
        ]

    def margin(self, baseline: Record, measure: str) -> float | None:
        """Return the adapter's lead over a baseline, None where one was not measured."""
        value, baseline_value = self.adapter["measures"][measure], baseline["measures"][measure]
        return None if value is None or baseline_value is None else value - baseline_value

    def eval_results(self, dataset: str, revision: str | None) -> list[Any]:
        """Return the adapter's available measures as `huggingface_hub.EvalResult`."""
        from huggingface_hub import EvalResult

        return [
            EvalResult(
                task_type="text-classification",
                task_name="Step verification",
                dataset_type=dataset,
                dataset_name=names.VERIFIER_STEPS,
                dataset_config=names.STEPS,
                dataset_split=self.steps["split"],
                dataset_revision=revision,
                dataset_args={name: self.adapter[name] for name in ("rows", "questions")},
                metric_type=metric_type,
                metric_name=name,
                metric_value=round(value, 4),
            )
            for measure, (metric_type, name) in MEASURES.items()
            if (value := self.adapter["measures"][measure]) is not None
        ]


@dataclass(frozen=True, slots=True)
class Deliberation:
    """An evaluation of answers over a knowledge graph; ``place`` is its folder in the release."""

    place: str
    results: Record
    weights: str = ""
    """The name of the card's adapter in its runs, if it has one."""

    @property
    def mode(self) -> str:
        """Whether proposals are constrained to the graph, in words."""
        is_constrained = self.results["settings"]["constrained"]
        return "held to the paths of the graph" if is_constrained else "free to name any path"

    @property
    def hops(self) -> list[str]:
        """The numbers of hops that questions have."""
        return list(self.results["runs"][0]["by_hop"])

    def is_own(self, run: Record) -> bool:
        """Return whether the card's adapter proposes in a run."""
        return self.weights in run["players"]["proposer"]

    @property
    def own_run(self) -> Record:
        """The run of the adapter."""
        return next(run for run in self.results["runs"] if self.is_own(run))

    @property
    def is_result(self) -> bool:
        """Whether its scores count: nothing was simulated, and nothing failed."""
        return not self.own_run["simulated"] and not self.own_run["failed"]

    @property
    def not_better(self) -> list[tuple[str, str, float]]:
        """The runs and hops where another run is as good or better, with the margin in Hits@1."""
        rows = []
        for run in self.results["runs"]:
            for hop in self.hops if not self.is_own(run) else ():
                margin = self.own_run["by_hop"][hop]["hits_at_1"] - run["by_hop"][hop]["hits_at_1"]
                if margin <= 0:
                    rows.append((names.marked(str(run["name"]), run["simulated"]), hop, margin))
        return rows

    def eval_results(self, dataset: str) -> list[Any]:
        """Return the scores by hop as `huggingface_hub.EvalResult`; none where simulated or failed."""
        from huggingface_hub import EvalResult

        settings = self.results["settings"]
        return [
            EvalResult(
                task_type="question-answering",
                task_name="Question answering over a knowledge graph",
                dataset_type=dataset,
                dataset_name=dataset,
                dataset_config=f"{hop}-hop",
                dataset_split=settings["split"],
                dataset_args={"questions": self.own_run["by_hop"][hop]["questions"], "held_out": settings["held_out"]},
                metric_type=metric,
                metric_name=f"{title}, {self.mode}",
                metric_value=round(self.own_run["by_hop"][hop][metric], 4),
            )
            for hop in (self.hops if self.is_result else ())
            for metric, title in PATH_METRICS.items()
        ]


def read_deliberations(results: Mapping[str, Record], weights: str) -> list[Deliberation]:
    """Read evaluations by folder; raises ``UserError`` for an evaluation of another adapter."""
    evaluations = [Deliberation(place, record, weights) for place, record in results.items()]
    for evaluation in evaluations:
        if not any(map(evaluation.is_own, evaluation.results["runs"])):
            raise UserError(f"{evaluation.place}: no run of it is of {weights}; evaluate the adapter that is there")
    return evaluations
