"""Evaluate the answers to questions over a knowledge graph: run all proposers, score them, and write the results.

The written trajectories and questions have the form of `evaluators.outcomes`, which the viewer reads;
``exact_match`` is whether the first answer is right, by the headline rule.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import safe_stepwise
from evaluators.comparison.systems import VARIANT
from evaluators.deliberation import PROPOSER
from evaluators.deliberation.analysing import ERRORS, analyse, average_repeats
from evaluators.deliberation.inducing import read_kinds
from evaluators.deliberation.measuring import RESAMPLES, ScoredCase, compare_runs, measure, score_case
from evaluators.deliberation.options import Options, engines_of
from evaluators.deliberation.proposing import Proposer, answer_case, make_proposers
from evaluators.deliberation.questions import Case, QuestionRows, QuestionSet
from evaluators.deliberation.scorers import HEADLINE, METRICS, TITLES
from evaluators.outcomes import Outcome, QuestionRecord
from evaluators.run.runner import Task, run_tasks
from safe_stepwise import prompts
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import deliberation, path_deliberating, path_proposing
from safe_stepwise.open import Opener, check_spec
from safe_stepwise.records import Trajectory, identity, kind_names
from safe_stepwise.store import files, progress, published_tables, tables
from safe_stepwise.store.code import code_digest, modules_of
from safe_stepwise.store.names import JOURNAL, QUESTIONS, REJECTS, RESULTS, TRAJECTORIES, marked

PAGE = "deliberation.md"
FILES = (JOURNAL, TRAJECTORIES, QUESTIONS, RESULTS, PAGE)
"""The files of an evaluation, beside those of rejected rows."""
_METRIC_TITLES = dict(zip(METRICS, ("H", "H@1", "F1"), strict=True))
Record = Mapping[str, Any]
PlacedCase = tuple[Case, deliberation.Knowledge]
"""A question with the knowledge of its graph."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An evaluation's plan: questions, proposers and players."""

    options: Options
    questions: QuestionSet
    proposers: Mapping[str, Proposer]
    """The proposers, by the names of their runs."""
    players: Mapping[str, Client]
    """The verifying model, by its role ``generator``; empty if no model verifies."""

    @property
    def clients(self) -> list[Client]:
        clients = (*(proposer.client for proposer in self.proposers.values()), *self.players.values())
        return [*{id(client): client for client in clients if client is not None}.values()]

    @property
    def names(self) -> dict[str, str]:
        return {role: client.name for role, client in self.players.items()}

    @property
    def loop_options(self) -> dict[str, Any]:
        """The loop's options and its roles' allowance, as records have them."""
        allowed = [client.allowance.plain for client in self.players.values()]
        kinds, loop = self.options.loop.kinds, asdict(self.options.loop)
        del loop["kinds"]
        if kinds:
            digest = identity([kinds, prompts.load(path_deliberating.INDUCED).digest])
            loop["kinds"] = f"{', '.join(kind.name for kind in kinds)}@{digest[:12]}"
        return {**loop, **allowed[0]} if allowed else {}

    @property
    def code(self) -> str:
        """The digest of the code that makes trajectories."""
        engines = [client.engine for client in self.clients]
        graphs = ("safe_stepwise.graphs.knowledge", "evaluators.deliberation.proposing")
        return code_digest(*graphs, *modules_of(engines))

    def system(self, name: str) -> dict[str, Any]:
        """Return a run's players and conditions as records have them; only baselines have those of ``--train``."""
        proposer = self.proposers[name]
        clients = [c for c in (proposer.client, *self.players.values()) if c is not None]
        conditions = {**self.options.conditions, **self.questions.learnt_from}
        if proposer.client is not None:
            conditions = {key: value for key, value in conditions.items() if key not in ("train", "labels")}
        return {
            "players": {**self.names, PROPOSER: proposer.name},
            "conditions": {**conditions, VARIANT: name},
            "simulated": any(c.engine.simulated for c in clients) or any(k.simulated for k in self.options.loop.kinds),
        }

    def task(self, proposer: Proposer) -> Task[PlacedCase, list[ScoredCase]]:
        generator = next((dict(client.engine.identity) for client in self.players.values()), None)
        loop = [generator, self.loop_options, prompts.digest(*map(prompts.load, path_deliberating.PROMPTS))]
        key = identity([proposer.identity, proposer.repeat, *loop, self.questions.graph_identity, self.code])

        def items() -> Iterable[PlacedCase]:
            return zip(self.questions.cases, self.questions.knowledge(), strict=True)

        async def answer(placed: PlacedCase) -> Trajectory:
            return await answer_case(*placed, proposer, self.players, self.options.loop)

        async def finish(trajectories: Sequence[Trajectory]) -> list[ScoredCase]:
            return [score_case(*pair) for pair in zip(self.questions.cases, trajectories, strict=True)]

        return Task(key, items, answer, finish)


def run_deliberation(options: Options, rows_of: Callable[[Options], QuestionRows]) -> str:
    """Evaluate all proposers, write the files, return the summary; raise ``UserError`` for bad options or files."""
    for spec in options.engines:
        check_spec(spec)
    if options.constraint_kinds:
        options = replace(options, loop=replace(options.loop, kinds=read_kinds(options.constraint_kinds)))
    rows = rows_of(options)
    opener = Opener(options.timeout)
    with files.lock_folder(options.output, "evaluation", (*FILES, REJECTS)), options.replies() as replies:
        questions = QuestionSet.choose(options, rows)
        (options.output / REJECTS).unlink(missing_ok=True)
        if rows.rejects:
            files.write_atomically(options.output / REJECTS, b"".join(rows.rejects))
            progress.note(f"rows that can't be read, kept apart in {REJECTS} and not counted: {len(rows.rejects):,}")
        if questions.note:
            progress.note(questions.note)
        # Faults of the files show before an engine lacks its extra.
        players = {"generator": options.client(opener(options.generator), replies)} if options.generator else {}
        clients = {spec: options.client(opener(spec), replies) for spec in engines_of(options.paths)}
        questions = questions.with_gold()
        proposers = make_proposers(options, questions.cases, questions.train, clients)
        return _run_plan(Plan(options, questions, proposers, players))


def _run_plan(plan: Plan) -> str:
    options, output = plan.options, plan.options.output
    cases = plan.questions.cases
    identities = [[case.question, {t: list(paths) for t, paths in case.gold_paths.items()}] for case in cases]
    tasks = [*map(plan.task, plan.proposers.values())]
    results_by_task = run_tasks(identities, tasks, plan.clients, output, options.at_once)
    runs = dict(zip(plan.proposers, results_by_task, strict=True))
    (output / RESULTS).unlink(missing_ok=True)
    outcomes = (outcome for name, run in runs.items() for outcome in _make_outcomes(plan, name, run))
    files.write_lines(output / TRAJECTORIES, map(Outcome.to_json, outcomes))
    questions = (case.question for case in cases)
    records = (QuestionRecord(q.benchmark, q.id, q.question, tuple(sorted(q.answers)), ()) for q in questions)
    files.write_lines(output / QUESTIONS, map(QuestionRecord.to_json, records))
    results = _make_results(plan, runs)
    files.write_atomically(output / PAGE, render_page(results).encode("utf-8", "backslashreplace"))
    files.write_atomically(output / RESULTS, files.json_bytes(results))
    lines = [render_summary(results)]
    if failed := sum(run["failed"] for run in results["runs"]):
        lines.append(
            f"questions that failed: {failed:,}; they count as wrong. Run the same command again: only they are asked"
        )
        lines += [f"the last that failed: {c.last_error}" for c in plan.clients if c.last_error][:1]
    if results["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    return "\n".join([*lines, "", *(str(output / name) for name in (RESULTS, PAGE))])


def _make_results(plan: Plan, runs: Mapping[str, Sequence[ScoredCase]]) -> dict[str, Any]:
    options, cases, kinds = plan.options, plan.questions.cases, kind_names(plan.options.loop.kinds)
    records = [
        {"name": name, **plan.system(name), **measure(run, options.seed), "analyses": analyse(run, kinds)}
        for name, run in runs.items()
    ]
    firsts = {name: run for name, run in runs.items() if not plan.proposers[name].repeat}
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
            "paths": [*plan.proposers],
            "generator": plan.names.get("generator"),
            "options": plan.loop_options,
            "seed": options.seed,
            "repeats": options.repeats,
            "resamples": RESAMPLES,
            "prompt_sha256": path_proposing.prompt_digest(joint=options.joint),
            "code_sha256": plan.code,
        },
        "runs": records,
        "differences": compare_runs(firsts, options.seed) if len(firsts) > 1 else [],
        "repeated": average_repeats(records, options.repeats),
    }


def _make_outcomes(plan: Plan, name: str, run: Sequence[ScoredCase]) -> Iterator[Outcome]:
    system = plan.system(name)
    for scored in run:
        question, score = scored.case.question, scored.scores[HEADLINE]
        yield Outcome(
            benchmark=question.benchmark,
            method=scored.trajectory.method,
            options=plan.loop_options,
            question_id=question.id,
            exact_match=score.hits_at_1,
            f1=score.f1 or 0.0,
            verdict=None,
            trajectory=scored.trajectory,
            measures={rule: asdict(rule_score) for rule, rule_score in scored.scores.items()},
            **system,
        )


def render_page(results: Record) -> str:
    settings = results["settings"]
    return tables.fill(
        Path(__file__).parent / "templates",
        "deliberation.md.jinja",
        **results,
        metrics=METRICS,
        titles=_METRIC_TITLES,
        rules=TITLES,
        kinds=[*results["runs"][0]["analyses"]["constraints"]["by_kind"]],
        errors=ERRORS,
        published=published_tables.published(),
        off=[name for name in ("introspection", "predefined", "feedback") if not settings["options"].get(name, 1)],
    )


def render_summary(results: Record) -> str:
    runs = results["runs"]
    hops = [*runs[0]["by_hop"]]
    header = ("paths", *_METRIC_TITLES.values(), *(f"H@1 {hop}-hop" for hop in hops), "exec.", "gold", "failed")
    rows = [
        (
            marked(run["name"], run["simulated"]),
            *(tables.format_cell(run[name], tables.percent) for name in METRICS),
            *(tables.format_cell(run["by_hop"][hop]["hits_at_1"], tables.percent) for hop in hops),
            *(tables.format_cell(run["paths"][name], tables.percent) for name in ("executable", "gold")),
            run["failed"],
        )
        for run in runs
    ]
    generator = results["settings"]["generator"]
    verification = f"verified by {generator}" if generator else "no model verifies"
    return f"{tables.text_table([header, *rows])}\n\n{runs[0]['questions']:,} questions; {verification}"
