"""The scores of a published model, for its card and for the card's header, which the Hub reads.

All figures come from ``results.json`` and ``verifier_quality.json``. A *system* is a method with its players; a
*player* is the model in a role, such as ``vllm:BASE+NAME@DIGEST``. ``NAME@DIGEST`` is the published model's
*weights name*. It contains a digest of the model's files, so that no other model's scores get on its card.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cards.pages import Record, line
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS, base
from safe_stepwise.metric.judge import JUDGED
from safe_stepwise.store import names
from safe_stepwise.store.agreement import MEASURES, title_of

METRICS = {"exact_match": "Exact match", "f1": "F1", "accuracy": "Accuracy by the judge"}
"""Titles of the metrics of answers in the loop."""
PATH_METRICS = {"hits_at_1": "Hits@1", "hit": "Hit", "f1": "F1"}
"""Titles of the metrics of answers over a knowledge graph."""


def judge_of(settings: Record) -> str | None:
    """Return an evaluation's judge with its settings that differ from our defaults, None if it has no judge.

    >>> judge_of({"judge": "openai:m", "judge_without_question": True})
    'openai:m (judge without question)'
    """
    details = [f"{n} {settings[n]}".removesuffix(" True") for n in JUDGED if settings.get(n)]
    suffix = f" ({', '.join(details)})".replace("_", " ") if details else ""
    return f"{settings['judge']}{suffix}" if settings["judge"] else None


@dataclass(frozen=True)
class LoopScores:
    """An evaluation of the loop, with the name of a model that may play in it."""

    folder: str
    """The folder of its report in the release."""
    results: Record
    weights_name: str | None
    """The model's name in the results, ``NAME@DIGEST``; None for a model that plays in no system."""
    is_main: bool = False
    """Whether this evaluation was made for the model, and not for another table."""
    kind: str = "adapter"
    """The kind of model: ``adapter``, or ``model`` for a wholly tuned one."""

    @property
    def systems(self) -> Sequence[Record]:
        """All compared systems, including baselines."""
        return self.results["comparison"]["systems"]  # type: ignore[no-any-return]

    @cached_property
    def own_systems(self) -> list[Record]:
        return [system for system in self.systems if self.is_own(system)]

    @property
    def changed_conditions(self) -> list[str]:
        """The names of conditions that the evaluation or any system changes, without the judge's, in words."""
        settings = self.results["settings"]
        evidence = {"drop_gold": settings.get("drop_gold"), "corpus": settings.get("corpus")}
        conditions = (evidence, *(system.get("conditions") or {} for system in self.systems))
        changed = [name for values in conditions for name, value in values.items() if value]
        return list(dict.fromkeys(n.replace("_", " ") for n in changed if n not in JUDGED))

    @property
    def judge(self) -> str | None:
        """The judge with its changed settings, None if the evaluation has no judge."""
        return judge_of(self.results["settings"])

    def changed_options(self, system: Record) -> str:
        """Render the options of a system that differ from its method's defaults; empty if none does."""
        method = METHODS.get(system["method"])
        defaults = base.option_values(base.options_type(method)()) if method else {}
        return ", ".join(f"{n}={value}" for n, value in system["options"].items() if defaults.get(n) != value)

    def is_own(self, system: Record) -> bool:
        """Return whether the model plays in a system."""
        return any(map(self._is_model, system["players"].values()))

    def player_title(self, player: str) -> str:
        """Return a player's name for the card: ``this adapter``, or the player as it is."""
        return f"this {self.kind}" if self._is_model(player) else player

    def _is_model(self, player: object) -> bool:
        mark = "+" if self.kind == "adapter" else ":"
        return self.weights_name is not None and f"{mark}{self.weights_name}" in str(player)

    def answering_player(self, system: Record) -> str:
        """Return the card's name of the player in the answering role."""
        return self.player_title(str(system["players"][answering_role(system)]))

    def title(self, system: Record) -> str:
        name = str(system["method"])
        return METHODS[name].title if name in METHODS else name

    def cell(self, system: Record, benchmark: str) -> str:
        """Render a system's EM, F1 and accuracy on a benchmark or ``average``, each ± half its 95% interval."""
        scores = system["average"] if benchmark == "average" else system["benchmarks"].get(benchmark, {})
        estimates = [scores.get(name) for name in METRICS]
        texts = [e and f"{e['value']:.3f} ±{(e['high'] - e['low']) / 2:.3f}" for e in estimates]
        return " / ".join(text or "-" for text in texts)

    def failed_questions(self, system: Record) -> int:
        """Count the questions that ended with a failed request; these count as wrong."""
        return sum(scores["failed"] for scores in system["benchmarks"].values())


def answering_role(system: Record) -> str:
    method = METHODS.get(system["method"])
    return method.roles[0] if method else str(min(system["players"]))


def loops_with_model(
    results: Mapping[str, Record], weights_name: str | None, main_folder: str, kind: str
) -> list[LoopScores]:
    """Return the evaluations, by report folder, in which a model of a kind plays; none without ``weights_name``."""
    loops = [LoopScores(name, record, weights_name, name == main_folder, kind) for name, record in results.items()]
    return [loop for loop in loops if loop.own_systems]


def loop_eval_results(loops: Sequence[LoopScores], version: str) -> list[Any]:
    """Return the model's scores as `huggingface_hub.EvalResult`, one for each benchmark and metric.

    Evaluations with changed conditions, and systems that are simulated or failed, are left out.
    """
    scored = ((loop, system) for loop in loops if not loop.changed_conditions for system in loop.own_systems)
    return [
        result
        for loop, system in scored
        if not system["simulated"] and not loop.failed_questions(system)
        for result in _system_results(loop, system, version)
    ]


def _system_results(loop: LoopScores, system: Record, version: str) -> Iterator[Any]:
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
    """A verifier's quality and that of baselines, as ``verifier_quality.json`` has them."""

    steps: Record
    """The rows' dataset and the settings of the requests."""
    bootstrap: Record
    adapter: Record
    baselines: Sequence[Record]
    agreement: Sequence[tuple[str, Record]]
    """The agreement of each baseline, by title, with the adapter."""

    @classmethod
    def read(cls, record: Record) -> "Quality":
        """Read ``verifier_quality.json``; raise ``UserError`` for a simulated verifier or failed requests."""
        adapter, *baselines = record["verifiers"]
        if adapter["simulated"]:
            raise UserError(f"{adapter['name']}: simulated results go on no model card")
        if failed := adapter["failed"]:
            raise UserError(f"{adapter['name']}: {failed:,} requests failed; run evaluate_verifier again first")
        titles = {baseline["role"]: title_of(baseline) for baseline in baselines}
        pairs = [(titles[pair["b"]], pair) for pair in record["agreement"] if pair["a"] == adapter["role"]]
        return cls(record["steps"], record["bootstrap"], adapter, baselines, pairs)

    def lead(self, baseline: Record, measure: str) -> float | None:
        """Return the adapter's value of a measure minus a baseline's, None if either value is missing."""
        value, baseline_value = self.adapter["measures"][measure], baseline["measures"][measure]
        return None if value is None or baseline_value is None else value - baseline_value

    def eval_results(self, dataset: str, revision: str | None) -> list[Any]:
        """Return the adapter's measures on a verifier set as `huggingface_hub.EvalResult`, without None."""
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
class DeliberationScores:
    """An evaluation of answers over a knowledge graph; ``folder`` is that of its report in the release."""

    folder: str
    results: Record
    weights_name: str | None = None
    """The adapter's name in the runs, ``NAME@DIGEST``; None for a page that marks no run as an adapter's own."""

    @property
    def mode(self) -> str:
        """A phrase that says whether proposals are constrained to the graph."""
        is_constrained = self.results["settings"]["constrained"]
        return "held to the paths of the graph" if is_constrained else "free to name any path"

    @property
    def hops(self) -> list[str]:
        """The numbers of hops that questions have, as the results write them: ``"1"``, ``"2"``."""
        return list(self.results["runs"][0]["by_hop"])

    def is_own(self, run: Record) -> bool:
        """Return whether the adapter proposes in a run; False if ``weights_name`` is None."""
        return self.weights_name is not None and self.weights_name in run["players"]["proposer"]

    @property
    def own_run(self) -> Record:
        """The first run in which the adapter proposes; there has to be one."""
        return next(run for run in self.results["runs"] if self.is_own(run))

    @property
    def counts(self) -> bool:
        """Whether the adapter's own run counts: it was not simulated and no request failed."""
        return not self.own_run["simulated"] and not self.own_run["failed"]

    def eval_results(self, dataset: str) -> list[Any]:
        """Return the adapter's scores by hop as `huggingface_hub.EvalResult`; none unless its run `counts`."""
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
            for hop in (self.hops if self.counts else ())
            for metric, title in PATH_METRICS.items()
        ]


def deliberations_of_adapter(results: Mapping[str, Record], weights_name: str | None) -> list[DeliberationScores]:
    """Return an adapter's evaluations by folder; raise ``UserError`` for one in which it does not propose."""
    evaluations = [DeliberationScores(name, record, weights_name) for name, record in results.items()]
    for evaluation in evaluations:
        if not any(map(evaluation.is_own, evaluation.results["runs"])):
            adapter = weights_name or "the adapter, whose name is not known"
            raise UserError(f"{evaluation.folder}: no run of it is of {adapter}; evaluate the adapter that is there")
    return evaluations
