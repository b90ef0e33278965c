"""Evaluate the answers to questions over a knowledge graph: run all proposers, score them, and write the results.

The written trajectories and questions have the form of `evaluators.outcomes`, which the viewer reads;
``exact_match`` is whether the first answer is right, by the headline rule.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill as folded
from typing import Any

import safe_stepwise
from evaluators.comparison.systems import VARIANT
from evaluators.deliberation.measuring import RESAMPLES, ScoredCase, compare_runs, measure, score_case
from evaluators.deliberation.options import Options, engines_of
from evaluators.deliberation.proposing import PROPOSER, Proposer, answer_case, make_proposers
from evaluators.deliberation.questions import GraphQuestion, QuestionRows, QuestionSet
from evaluators.deliberation.scorers import HEADLINE, METRICS, TITLES
from evaluators.outcomes import Outcome, QuestionRecord
from evaluators.run.runner import Task, Work, run_tasks
from safe_stepwise import prompts
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import path_deliberating, path_proposing
from safe_stepwise.methods.deliberation import Knowledge
from safe_stepwise.open import Opener, check_spec
from safe_stepwise.records import Trajectory, identity
from safe_stepwise.store.code import code_digest, modules_of
from safe_stepwise.store.figures import png
from safe_stepwise.store.files import json_bytes, lock_folder, remove_folder, write_atomically, write_lines
from safe_stepwise.store.names import JOURNAL, QUESTIONS, REJECTS, RESULTS, TRAJECTORIES, marked
from safe_stepwise.store.progress import note
from safe_stepwise.store.published_tables import published
from safe_stepwise.store.tables import fill, format_cell, percent, text_table

PAGE, FIGURE = "deliberation.md", "hits_by_hop.png"
FILES = (JOURNAL, TRAJECTORIES, QUESTIONS, RESULTS, PAGE, FIGURE)
"""The files of an evaluation, beside those of rejected rows."""
GRAPH = ".graph"
"""A folder that holds a large graph until the end."""
_LEARNING = ("train", "labels")
"""Conditions that apply only to proposers that learn from a set."""
_METRIC_TITLES = dict(zip(METRICS, ("H", "H@1", "F1"), strict=True))
Record = Mapping[str, Any]
_PALETTE = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#777777")
PlacedCase = tuple[GraphQuestion, Knowledge]
"""A question with the knowledge of its graph."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An evaluation's plan: questions, proposers and players."""

    options: Options
    questions: QuestionSet
    contenders: Mapping[str, Proposer]
    """The proposers, by the name of the run."""
    players: Mapping[str, Client]
    """The verifying model, by its role ``generator``; empty if no model verifies."""

    @property
    def clients(self) -> list[Client]:
        clients = (*(proposer.client for proposer in self.contenders.values()), *self.players.values())
        return [*{id(client): client for client in clients if client is not None}.values()]

    @property
    def names(self) -> dict[str, str]:
        return {role: client.name for role, client in self.players.items()}

    @property
    def loop_options(self) -> dict[str, Any]:
        """The loop's options and its roles' allowance, as records have them."""
        allowed = [client.allowance.plain for client in self.players.values()]
        return {**asdict(self.options.loop), **allowed[0]} if allowed else {}

    @property
    def code(self) -> str:
        """The digest of the code that makes trajectories."""
        engines = [client.engine for client in self.clients]
        graphs = ("safe_stepwise.graphs.knowledge", "evaluators.deliberation.proposing")
        return code_digest(*graphs, *modules_of(engines))

    def system(self, name: str) -> dict[str, Any]:
        """Return a run's players and conditions as records have them; ``--train`` is none of a trained model."""
        proposer = self.contenders[name]
        clients = [c for c in (proposer.client, *self.players.values()) if c is not None]
        conditions = {**self.options.conditions, **self.questions.learnt_from}
        if proposer.client is not None:
            conditions = {key: value for key, value in conditions.items() if key not in _LEARNING}
        return {
            "players": {**self.names, PROPOSER: proposer.name},
            "conditions": {**conditions, VARIANT: name},
            "simulated": any(client.engine.simulated for client in clients),
        }

    def task(self, proposer: Proposer) -> Task[PlacedCase, list[ScoredCase]]:
        generator = next((dict(client.engine.identity) for client in self.players.values()), None)
        loop = [generator, self.loop_options, prompts.digest(*map(prompts.load, path_deliberating.PROMPTS))]
        key = identity([proposer.identity, *loop, self.questions.graph, self.code])

        def items() -> Iterable[PlacedCase]:
            return zip(self.questions.cases, self.questions.knowledge(), strict=True)

        async def answer(placed: PlacedCase) -> Trajectory:
            return await answer_case(*placed, proposer, self.players, self.options.loop)

        async def finish(trajectories: Sequence[Trajectory]) -> list[ScoredCase]:
            return [score_case(*pair) for pair in zip(self.questions.cases, trajectories, strict=True)]

        return Task(key, items, answer, finish)


def run_deliberation(options: Options, rows_of: Callable[[Options, Path], QuestionRows]) -> str:
    """Evaluate all proposers, write the files, return the summary; raise ``UserError`` for bad options or files."""
    for spec in options.engines:
        check_spec(spec)
    rows = rows_of(options, options.output / GRAPH)
    opener = Opener(options.timeout)
    with lock_folder(options.output, "evaluation", (*FILES, REJECTS, GRAPH)), options.replies() as replies:
        questions = QuestionSet.choose(options, rows)
        (options.output / REJECTS).unlink(missing_ok=True)
        if rows.rejects:
            write_atomically(options.output / REJECTS, b"".join(rows.rejects))
            note(f"rows that can't be read, kept apart in {REJECTS} and not counted: {len(rows.rejects):,}")
        if questions.note:
            note(questions.note)
        # Faults of the files show before an engine lacks its extra.
        players = {"generator": options.client(opener(options.generator), replies)} if options.generator else {}
        clients = {spec: options.client(opener(spec), replies) for spec in engines_of(options.paths)}
        questions = questions.with_gold()
        proposing = make_proposers(options, questions.cases, questions.train, clients)
        text = _run_plan(Plan(options, questions, proposing, players))
        remove_folder(options.output / GRAPH)
        return text


def _run_plan(plan: Plan) -> str:
    options, output = plan.options, plan.options.output
    cases = plan.questions.cases
    work = Work(
        *("deliberation", "question", "questions"),
        questions=[[case.question, {t: list(paths) for t, paths in case.gold.items()}] for case in cases],
        tasks=[*map(plan.task, plan.contenders.values())],
        clients=plan.clients,
        output=output,
        at_once=options.at_once,
    )
    runs = dict(zip(plan.contenders, run_tasks(work), strict=True))
    (output / RESULTS).unlink(missing_ok=True)
    outcomes = (outcome for name, run in runs.items() for outcome in _outcomes(plan, name, run))
    write_lines(output / TRAJECTORIES, map(Outcome.to_json, outcomes))
    questions = (case.question for case in cases)
    records = (QuestionRecord(q.benchmark, q.id, q.question, tuple(sorted(q.answers)), ()) for q in questions)
    write_lines(output / QUESTIONS, map(QuestionRecord.to_json, records))
    results = _results(plan, runs)
    write_atomically(output / FIGURE, draw_figure(results["runs"]))
    write_atomically(output / PAGE, render_page(results).encode("utf-8", "backslashreplace"))
    write_atomically(output / RESULTS, json_bytes(results))
    return _summary_text(plan, results)


def _summary_text(plan: Plan, results: Mapping[str, Any]) -> str:
    lines = [render_summary(results)]
    if failed := sum(run["failed"] for run in results["runs"]):
        lines.append(
            f"questions that failed: {failed:,}; they count as wrong. Run the same command again: only they are asked"
        )
        lines += [f"the last that failed: {c.last_error}" for c in plan.clients if c.last_error][:1]
    if results["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    return "\n".join([*lines, "", *(str(plan.options.output / name) for name in (RESULTS, PAGE))])


def _results(plan: Plan, runs: Mapping[str, Sequence[ScoredCase]]) -> dict[str, Any]:
    options, cases = plan.options, plan.questions.cases
    records = [{"name": name, **plan.system(name), **measure(run, options.seed)} for name, run in runs.items()]
    first, headline = records[0], (*METRICS, "questions", "failed")
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(record["simulated"] for record in records),
        "scorer": HEADLINE,
        **{name: first[name] for name in headline},
        "by_hop": {hop: {name: hop_record[name] for name in headline} for hop, hop_record in first["by_hop"].items()},
        "settings": {
            **plan.questions.description,
            "candidates": options.candidates_per_topic,
            "constrained": not options.free,
            "questions": len(cases),
            "questions_sha256": identity([identity(case.question) for case in cases]),
            "paths": [*plan.contenders],
            "generator": plan.names.get("generator"),
            "options": plan.loop_options,
            "seed": options.seed,
            "resamples": RESAMPLES,
            "prompt_sha256": path_proposing.prompt_digest(joint=options.joint),
            "code_sha256": plan.code,
        },
        "runs": records,
        "differences": compare_runs(runs, options.seed) if len(runs) > 1 else [],
    }


def _outcomes(plan: Plan, name: str, run: Sequence[ScoredCase]) -> Iterator[Outcome]:
    system = plan.system(name)
    for answer in run:
        question, score = answer.case.question, answer.scores[HEADLINE]
        yield Outcome(
            benchmark=question.benchmark,
            method=answer.trajectory.method,
            options=plan.loop_options,
            question_id=question.id,
            exact_match=score.hits_at_1,
            f1=score.f1 or 0.0,
            verdict=None,
            trajectory=answer.trajectory,
            measures={name: asdict(rule_score) for name, rule_score in answer.scores.items()},
            **system,
        )


def render_page(results: Record) -> str:
    settings = results["settings"]
    return fill(
        Path(__file__).parent / "templates",
        "deliberation.md.jinja",
        **results,
        metrics=METRICS,
        titles=_METRIC_TITLES,
        rules=TITLES,
        published=published(),
        off=[name for name in ("introspection", "predefined", "feedback") if not settings["options"].get(name, 1)],
    )


def render_summary(results: Record) -> str:
    runs = results["runs"]
    hops = [*runs[0]["by_hop"]]
    header = ("paths", *_METRIC_TITLES.values(), *(f"H@1 {hop}-hop" for hop in hops), "exec.", "gold", "failed")
    rows = [
        (
            marked(run["name"], run["simulated"]),
            *(format_cell(run[name], percent) for name in METRICS),
            *(format_cell(run["by_hop"][hop]["hits_at_1"], percent) for hop in hops),
            *(format_cell(run["paths"][name], percent) for name in ("executable", "gold")),
            run["failed"],
        )
        for run in runs
    ]
    generator = results["settings"]["generator"]
    verification = f"verified by {generator}" if generator else "no model verifies"
    return f"{text_table([header, *rows])}\n\n{runs[0]['questions']:,} questions; {verification}"


def draw_figure(runs: Sequence[Record]) -> bytes:
    """Draw Hits@1 with its interval as PNG, a bar for each run, by number of hops and for all questions."""
    hops = [*runs[0]["by_hop"]]
    labels = [*(f"{hop} hop{'s' if hop != '1' else ''}" for hop in hops), "all"]
    width = 0.8 / len(runs)

    def draw(canvas: Any) -> None:
        axes = canvas.add_subplot()
        for number, run in enumerate(runs):
            groups = [*(run["by_hop"][hop] for hop in hops), run]
            tops = [group["hits_at_1"] for group in groups]
            spans = zip(tops, (group["intervals"]["hits_at_1"] for group in groups), strict=True)
            below, above = zip(*((top - low, high - top) for top, (low, high) in spans), strict=True)
            positions = [place - 0.4 + width * (number + 0.5) for place in range(len(groups))]
            color = _PALETTE[number % len(_PALETTE)]
            axes.bar(positions, tops, width, color=color, label=folded(run["name"][:60], 30))
            axes.errorbar(positions, tops, (below, above), fmt="none", ecolor="#333333", capsize=2)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("Hits@1")
        axes.spines[["top", "right"]].set_visible(False)
        # Beside the bars, as it would cover some of them.
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))

    return png(draw, (7.2, 3.4))
