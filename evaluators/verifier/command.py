"""Measure verifiers on labelled steps, with baselines beside them, and write the results."""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from evaluators.comparison.significance import CONFIDENCE
from evaluators.run.runner import VerdictReply, Verdicts, collect_verdicts, encode_lines, render_run_usage
from evaluators.verifier import calibration, chains, quality, reveal, step_set
from evaluators.verifier.quality import RESAMPLES, ROW_MEASURES, UNPARSED, JudgedStep
from evaluators.verifier.step_set import Prefix, RequestOptions, StepCase
from safe_stepwise.commands.options import ModelOptions
from safe_stepwise.commands.values import Choice, Count, Name
from safe_stepwise.engines.base import Engine, Request
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.errors import UserError, require_modules
from safe_stepwise.feedback import parse_feedback
from safe_stepwise.formats import FORMATS
from safe_stepwise.methods import learnt_prompts, prompt_sets
from safe_stepwise.open import Opener
from safe_stepwise.records import FAILED, Question, Step, VerdictOrder
from safe_stepwise.steps import format_step
from safe_stepwise.store import figures, files, progress, tables
from safe_stepwise.store.agreement import title_of
from safe_stepwise.store.names import STEP_CONFIGS, TEST, TRAIN, marked
from safe_stepwise.taxonomy import CORRECT, DROPPABLE, Category, category, labels

QUALITY, PAGE, CONFUSION = "verifier_quality.json", "verifier_quality.md", "confusion.png"
VERDICTS, PREFIXES = "verdicts", "prefixes"
OWNED = (*(QUALITY, PAGE, CONFUSION, f"{VERDICTS}.jsonl", f"{PREFIXES}.jsonl", calibration.RELIABILITY), *chains.FILES)
"""The files of an evaluation; each baseline adds files like the last two."""
FindSteps = Callable[[str, str, Sequence[str]], tuple[Path, str, str | None]]
"""`builders.steps.earlier_build.find_steps`."""
QuestionsByText = Callable[[Path, Collection[str]], Mapping[str, Question]]
"""`builders.verified.lookup.questions_by_text`."""
ProbeSteps = Callable[
    [Sequence[tuple[Question, Sequence[Step], str]], Sequence[tuple[Question, Sequence[Step]]]],
    Mapping[str, Sequence[str]],
]
"""`builders.steps.probes.label_by_probes`."""
AddAnnotations = Callable[[Sequence[Question], Path], list[Question]]
"""`builders.verified.lookup.add_annotations`."""
MEASURES = ("accuracy", "macro_f1", "error_precision", "error_recall", "error_f1", "first_error_f1")
"""The measures in the page's table of verifiers."""
Confusion = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ModelOptions):
    """The command's options: ``steps`` (a folder or Hub dataset at a revision), or a ``file`` of labelled chains."""

    verifier: str
    output: Path
    steps: str | None = None
    file: Path | None = None
    benchmark: Annotated[str, Name((*FORMATS, reveal.NAME))] | None = None
    judges: Path | None = None
    baseline: Sequence[str] = ()
    verified: Path | None = None
    split: str = TEST
    incomplete_evidence: bool = False
    drop_category: Annotated[Category, Choice({name: name for name in DROPPABLE})] | None = None
    prompts: prompt_sets.PromptsName | None = None
    verdict_order: VerdictOrder | None = None
    verifier_evidence: prompt_sets.EvidenceChoice | None = None
    limit: Count | None = None
    scores: bool = False
    probes: bool = False
    in_flight: Count = 64
    seed: int = 0

    @property
    def specs(self) -> tuple[str, ...]:
        """The specs of all engines, the verifier first."""
        return (self.verifier, *self.baseline)

    def setting(self, opener: Callable[[str], Engine]) -> RequestOptions:
        """Return the setting of all requests.

        Raises ``UserError`` for a spec that can't be read or lacks the annotations that it needs,
        for adapters that learnt other prompts, and for examples that say more than the prompt.
        """
        engines = [opener(spec) for spec in self.specs]
        symbolic = [spec for spec in self.specs if spec.partition(":")[0] == "symbolic"]
        if symbolic and self.verified is None:
            raise UserError(
                f"{symbolic[0]} reasons over annotations, which the steps do not hold: add --verified "
                "with the folder that they were made of"
            )
        dropped = learnt_prompts.dropped_category(engines, self.drop_category)
        learnt_prompts.check_examples(dropped, self.allowance)
        learnt = learnt_prompts.adopt_learnt_prompts(self, engines)
        prompt_set = prompt_sets.PromptSet.from_choices(learnt.prompts, learnt.verdict_order, learnt.verifier_evidence)
        return RequestOptions(self.incomplete_evidence, dropped, prompt_set, self.scores)


def run_on_chains(options: Options, questions_by_text: QuestionsByText) -> str:
    """Measure verifiers on the labelled chains of a file, write files, and return a summary; raises ``UserError``."""
    if options.file is None or options.benchmark is None or options.steps is not None:
        raise UserError("give --steps DIR, or --benchmark NAME with the FILE of its rows")
    opener = Opener(options.timeout)
    setting = options.setting(opener)
    labelled = chains.read_labelled(options.file, options.benchmark, options.limit)
    texts = {chain.question for chain in labelled}
    annotated = {} if options.verified is None else questions_by_text(options.verified, texts)
    others = [] if options.judges is None else chains.read_judges(options.judges, labelled)
    requests = chains.chain_requests(labelled, setting, annotated)
    with files.lock_folder(options.output, owned=OWNED), options.replies() as replies:
        runs, usage = _ask_all(options, opener, replies, requests, setting)
        judges = [*map(chains.chain_judge_from, runs), *chains.baselines(labelled), *others]
        measured = chains.measure_chains(options.file.name, labelled, judges, options.seed)
        measured["annotated"] = len(annotated)
        if options.scores:
            measured["calibration"] = _calibrate(runs, lambda run: chains.scored_steps(run, labelled))
        contents = chains.render_chains(measured)
        golds = {(chain.id, n): step.label for chain in labelled for n, step in enumerate(chain.steps)}
        for run in runs:
            lines = (run.line(place, chain=place[0], step=place[1] + 1, gold=gold) for place, gold in golds.items())
            contents[_verdict_file(run, run is runs[0])] = encode_lines(lines)
        files.write_files(options.output, contents, contents)
    return "\n".join([chains.render_summary(measured), "", str(options.output / chains.CHAIN_PAGE), "", *usage])


def _ask_all(
    options: Options,
    opener: Callable[[str], Engine],
    replies: ResponseCache,
    requests: Mapping[Any, Request],
    setting: RequestOptions,
) -> tuple[list[Verdicts], list[str]]:
    """Ask the verifier and the baselines; returns their verdicts, and lines on the requests."""
    runs, usage = list[Verdicts](), list[str]()
    for number, spec in enumerate(options.specs):
        role = f"baseline {number}" if number else "verifier"
        client = options.client(opener(spec), replies)
        runs.append(ask_verifier(client, role, requests, setting, is_first=not number))
        usage += render_run_usage(client, role)
    return runs, usage


def _calibrate(
    runs: Sequence[Verdicts], scored_steps: Callable[[Verdicts], Iterable[calibration.ScoredStep]]
) -> dict[str, Any]:
    """Measure the scores of each verifier by its name; print a note on one whose engine tells none."""
    measured = {}
    for run in runs:
        if not run.is_constant:
            measured[marked(run.name, run.simulated)] = measures = calibration.measure_calibration(scored_steps(run))
            if not measures["steps"]:
                progress.note(f"{run.name}: tells no probabilities, so its verdicts have no score")
    return measured


def _verdict_file(run: Verdicts, is_first: bool, kind: str = VERDICTS) -> str:
    return f"{kind}.jsonl" if is_first else f"{kind}.{run.role.replace(' ', '-')}.jsonl"


def run_verifiers(options: Options, find_steps: FindSteps, add_annotations: AddAnnotations, probe: ProbeSteps) -> str:
    """Measure verifiers on labelled steps, write files, and return a summary; raise ``UserError`` for bad input."""
    assert options.steps is not None
    if options.probes:
        require_modules("--probes", "scikit-learn", "build", "sklearn")
    opener = Opener(options.timeout)
    setting = options.setting(opener)
    incomplete = setting.incomplete_evidence
    folder, name, revision = find_steps(options.steps, options.split, STEP_CONFIGS[incomplete])
    about = step_set.describe_split(folder, options.split, incomplete)
    cases = step_set.read_cases(folder, options.split, options.limit, incomplete)
    if options.verified is not None:
        questions = add_annotations([case.question for case in cases], options.verified)
        cases = [replace(case, question=question) for case, question in zip(cases, questions, strict=True)]
    requests = step_set.build_requests(cases, setting)
    if about.pop("rendered_by") not in (None, replace(setting, dropped=None).prompt_sha256):
        progress.note("the set's prompts were rendered by other code; sent are this code's, as in the loop")
    examples = options.allowance.plain.get("examples")
    steps = {
        "name": name,
        "revision": revision,
        **about,
        "split": options.split,
        "limit": options.limit,
        "drop_category": setting.dropped,
        **setting.prompt_set.plain,
        "prompt_sha256": setting.prompt_sha256,
        "max_tokens": max(options.allowance.apply(r).sampling.max_tokens for r in requests.values()),
        **({"examples": examples} if examples else {}),
    }
    with files.lock_folder(options.output, owned=OWNED), options.replies() as replies:
        runs, usage = _ask_all(options, opener, replies, requests, setting)
        majority = step_set.find_majority_label(folder, incomplete_evidence=incomplete)
        runs += [make_constant(majority, "majority class of train", requests)] if majority is not None else []
        runs += [make_constant(CORRECT, "no error ever", requests)] if majority != CORRECT else []
        if options.probes:
            learnt = step_set.read_cases(folder, TRAIN, incomplete_evidence=incomplete)
            runs += _probe_runs(probe, learnt, cases, requests)
        measured = render_results(steps, cases, runs, options.seed)
        if options.scores:
            scored = calibration.ScoredStep
            measured["calibration"] = _calibrate(
                runs,
                lambda run: (scored(c.question.id, run.replies[c.prefix].score, c.gold == CORRECT) for c in cases),
            )
        contents = render_files(measured, cases, runs)
        earlier = (
            file.name for kind in (VERDICTS, PREFIXES) for file in options.output.glob(f"{kind}.baseline-*.jsonl")
        )
        files.write_files(options.output, {*earlier, *contents}, contents)
    return "\n".join([render_summary(measured), "", str(options.output / PAGE), "", *usage])


def ask_verifier(
    client: Client,
    role: str,
    requests: Mapping[Any, Request],
    setting: RequestOptions = step_set.AS_TRAINED,
    *,
    is_first: bool = True,
) -> Verdicts:
    """Collect the verdicts of a client's engine, which is closed afterwards; raises as `collect_verdicts`.

    Missing Evidence is a verdict only where it was asked for, a label of a dropped category nowhere.
    """

    def read(text: str, data: str) -> str:
        return parse_feedback(text, setting.incomplete_evidence, data, setting.dropped).error_type

    return collect_verdicts(client, role, "step", requests, read, UNPARSED, is_first=is_first)


def make_constant(label: str, role: str, requests: Mapping[Prefix, Request]) -> Verdicts:
    """Make the baseline that gives every step the same label, without requests."""
    return Verdicts(f"always {label}", role, False, dict.fromkeys(requests, VerdictReply(label)), is_constant=True)


def _probe_runs(
    probe: ProbeSteps, learnt: Sequence[StepCase], cases: Sequence[StepCase], requests: Mapping[Prefix, Request]
) -> list[Verdicts]:
    """Return the verdicts of two probes that learn from the set's train rows, without requests."""
    questions = {case.prefix[:3]: case.question for case in cases}
    unlabelled = [(questions[prefix[:3]], prefix.steps) for prefix in requests]
    labelled = probe([(case.question, case.steps, case.gold) for case in learnt], unlabelled)
    return [
        Verdicts(name, f"{name} of train", False, dict(zip(requests, map(VerdictReply, names), strict=True)), True)
        for name, names in labelled.items()
    ]


def judge_rows(run: Verdicts, cases: Sequence[StepCase]) -> list[JudgedStep]:
    return [
        JudgedStep(*(c.id, c.question.benchmark, c.question.id, c.gold), run.replies[c.prefix].verdict, c.wording)
        for c in cases
    ]


def quality_of(run: Verdicts, cases: Sequence[StepCase], seed: int = 0) -> dict[str, Any]:
    """Compute the measures of a run's verdicts on all rows and trajectories."""
    by_prefix = {prefix: reply.verdict for prefix, reply in run.replies.items()}
    return quality.measure_quality(judge_rows(run, cases), step_set.build_trajectories(cases, by_prefix), seed=seed)


def render_results(
    steps: Mapping[str, Any], cases: Sequence[StepCase], runs: Sequence[Verdicts], seed: int
) -> dict[str, Any]:
    """Return all measures as a JSON object, the verifier's first; ``steps`` describes the rows."""
    labels = [judge_rows(run, cases) for run in runs]
    return {
        "simulated": bool(steps["simulated"] or runs[0].simulated),
        "steps": dict(steps),
        "bootstrap": {"over": "questions", "resamples": RESAMPLES, "level": CONFIDENCE, "seed": seed},
        "verifiers": [
            {
                "name": run.name,
                "role": run.role,
                "simulated": run.simulated,
                **(measures := quality_of(run, cases, seed)),
                "types": [
                    {"name": s.name, "both": s.hits, "gold": s.gold, "said": s.predicted, **s.shares}
                    for s in measures["types"]
                ],
                "tokens": run.tokens(),
            }
            for run in runs
        ],
        "agreement": [
            {"a": runs[a].role, "b": runs[b].role, **quality.measure_agreement(labels[a], labels[b])}
            for a, b in itertools.combinations(range(len(runs)), 2)
            if not (runs[a].is_constant or runs[b].is_constant)
        ],
        "gains": [
            {"over": run.role, **quality.measure_gain(labels[0], labels[n], seed=seed)}
            for n, run in enumerate(runs[1:], 1)
        ],
    }


def render_files(results: Mapping[str, Any], cases: Sequence[StepCase], runs: Sequence[Verdicts]) -> dict[str, bytes]:
    """Render the files of an evaluation, and return them by name."""
    first, incomplete = results["verifiers"][0], results["steps"].get("incomplete_evidence", False)
    contents = {
        QUALITY: files.json_bytes(results, sort_keys=False),
        PAGE: render_page(results).encode(),
        CONFUSION: confusion_png(first["confusion"], title_of(first), incomplete),
    }
    contents |= calibration.render_reliability(results)
    rows = {case.prefix for case in cases}
    for run in runs:
        if not run.is_constant:
            row_lines = (_line(run, case.prefix, id=case.id, gold=case.gold) for case in cases)
            # Steps that only trajectories need.
            prefixes = (prefix for prefix in run.replies if prefix not in rows)
            prefix_lines = (_line(run, p, steps=[*map(format_step, p.steps)], gold=CORRECT) for p in prefixes)
            contents[_verdict_file(run, run is runs[0])] = encode_lines(row_lines)
            contents[_verdict_file(run, run is runs[0], PREFIXES)] = encode_lines(prefix_lines)
    return contents


def _line(run: Verdicts, prefix: Prefix, **about: Any) -> str:
    return run.line(prefix, **about, benchmark=prefix.benchmark, question_id=prefix.question)


def confusion_png(confusion: Confusion, title: str, incomplete_evidence: bool = False) -> bytes:
    """Draw the confusion matrix as PNG; each cell is shaded by its share of its row."""
    golds = labels(incomplete_evidence)
    columns = [*golds, UNPARSED, *[FAILED] * any(FAILED in c for c in confusion.values())]
    counts = [[confusion.get(gold, {}).get(outcome, 0) for outcome in columns] for gold in golds]
    shares = [[n / max(1, sum(row)) for n in row] for row in counts]

    def draw(axes: Any) -> None:
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for y, row in enumerate(counts):
            for x, n in enumerate(row):
                if n:
                    color = "white" if shares[y][x] > 0.5 else "black"
                    axes.text(x, y, f"{n:,}", ha="center", va="center", color=color, fontsize=8)
        axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", fontsize=8)
        axes.set_yticks(range(len(golds)), golds, fontsize=8)
        axes.set_xlabel("said")
        axes.set_ylabel("gold")
        # A name may hold what matplotlib would take for a formula.
        axes.set_title(title, fontsize=9, parse_math=False, wrap=True)

    return figures.png(lambda figure: draw(figure.add_subplot()), (8.4, 6.4))


def render_page(results: Mapping[str, Any]) -> str:
    verifiers, dropped = results["verifiers"], results["steps"].get("drop_category")
    golds = verifiers[0]["confusion"].items()
    return tables.fill(
        Path(__file__).parent / "templates",
        "verifier.md.jinja",
        **results,
        titles={name: _short(name) for name in MEASURES},
        row_titles={name: _short(name) for name in ROW_MEASURES},
        dropped=dropped,
        dropped_rows=sum(sum(counts.values()) for gold, counts in golds if category(gold) == dropped),
        is_symbolic=any(verifier["name"].startswith("symbolic:") for verifier in verifiers),
        categories={label["name"]: category(label["name"]) for label in verifiers[0]["types"]},
        agreement_table=render_agreement(results),
        calibrations=calibration.known_scores(results),
    )


def render_summary(results: Mapping[str, Any]) -> str:
    """Render a summary: a table of the measures, and the agreement of each pair of verifiers."""
    header = ("", "verifier", *(name.replace("first_error_f1", "first error") for name in MEASURES))
    rows = [
        (v["role"], title_of(v), *(_number(v["measures"][name]) for name in MEASURES)) for v in results["verifiers"]
    ]
    values = {"first": results["verifiers"][0], "agreement": render_agreement(results)}
    text = tables.fill(Path(__file__).parent / "templates", "summary.txt.jinja", **values).rstrip("\n")
    return f"{tables.text_table([header, *rows])}\n\n{text}"


def render_agreement(results: Mapping[str, Any]) -> tables.Table:
    names = {v["role"]: f"{v['role']}: {title_of(v)}" for v in results["verifiers"]}
    table: tables.Table = [("one", "other", "rows", "no verdict", "equal labels", "Cohen's kappa")]
    for pair in results["agreement"]:
        counts = [f"{pair[key]:,}" for key in ("rows", "left_out")]
        table.append(
            [names[pair["a"]], names[pair["b"]], *counts, *(_number(pair[key]) for key in ("share", "kappa"))]
        )
    return table


def _short(name: str) -> str:
    return name.replace("first_error_f1", "first error F1").replace("_", " ").replace("f1", "F1")


def _number(value: float | None) -> object:
    return tables.format_cell(value, tables.decimal(3))
