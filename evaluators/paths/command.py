"""An engine's verdicts on relation paths, by one or several prompts: measured and written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import CONFIDENCE
from evaluators.paths.quality import PAPER, RESAMPLES, UNREADABLE, JudgedPath, measure_quality
from evaluators.run.runner import Verdicts, collect_verdicts, encode_lines, render_run_usage
from safe_stepwise import prompts
from safe_stepwise.commands.options import ModelOptions
from safe_stepwise.commands.values import Count
from safe_stepwise.engines.base import Request
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.methods.paths import STYLES, Style, path_request, prompt_of, read_verdict
from safe_stepwise.open import Opener
from safe_stepwise.records import Triple
from safe_stepwise.store import agreement, boundary, codec, files, published_tables, tables
from safe_stepwise.store.names import CORRUPTIONS, PATH_PROBE, PROBE_RECORD, PROBED, RESULTS, TEST, Corruption
from safe_stepwise.store.parquet import ANEW, dataset_folder, parquet_files, read_rows

COLUMNS = (*("id", "benchmark", "question_id", "question", "answer", "path", "corruption", "pair_id"),)
PAGE, VERDICTS = "paths.md", "verdicts"
OWNED = (RESULTS, PAGE, *(f"{VERDICTS}.{prompt}.jsonl" for prompt in STYLES))
"""The files of an evaluation."""
MEASURES = {"balanced": "balanced", "paper_mean": "the paper's mean", "accuracy": "accuracy"}
"""Measures in the first table, with their titles."""


@dataclass(frozen=True, slots=True)
class PathCase:
    """One row of the probe; ``gold`` is the valid path of its question, which only a simulated player uses."""

    id: str
    benchmark: str
    question_id: str
    question: str
    answer: str
    path: tuple[Triple, ...]
    corruption: Corruption
    pair_id: str
    gold: tuple[Triple, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the right verdict on the path is YES."""
        return self.corruption == "valid"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a verdict's record."""
        gold = "YES" if self.is_valid else "NO"
        names = ("id", "benchmark", "question_id", "corruption")
        return {**{name: getattr(self, name) for name in names}, "gold": gold}

    def request(self, prompt: Style) -> Request:
        return path_request(self.question, self.answer, self.path, prompt, self.gold)


def find_probe(folder: Path) -> Path:
    """Return the probe in a folder of `build_path_probe`; raise ``UserError`` if there is none."""
    dataset = dataset_folder(folder, PATH_PROBE)
    if dataset is None or not (dataset / "data" / PROBED).is_dir():
        raise UserError(
            f"{folder}: no {PATH_PROBE} in it; build one with safe-stepwise build_path_probe --output {folder}"
        )
    return dataset


def describe_probe(probe: Path, split: str) -> dict[str, Any]:
    """Describe a split of a probe: version, digests, whether it is simulated."""
    record = probe / PROBE_RECORD
    statistics = boundary.read_file(dict[str, Any], record, "the record", ANEW) if record.is_file() else {}
    return {
        "name": PATH_PROBE,
        "version": statistics.get("version"),
        "simulated": any(build.get("simulated") for build in statistics.get("verified", [])),
        "split": split,
        "sha256": {file.name: files.sha256_of(file) for file in parquet_files(probe, PROBED, split)},
    }


def read_cases(probe: Path, split: str, limit: int | None = None) -> list[PathCase]:
    """Read a split's rows, or the first ``limit`` (a random sample); raise ``UserError`` for none or other rows."""
    cases = [case for file in parquet_files(probe, PROBED, split) for case in read_rows(file, _make_case, COLUMNS)]
    if not cases:
        splits = sorted({file.name.split("-")[0] for file in parquet_files(probe, PROBED)})
        raise UserError(f"{probe}: its split {split!r} has no rows; choose --split from {', '.join(splits) or 'none'}")
    gold = {case.id: case.path for case in cases if case.is_valid}
    return [replace(case, gold=gold.get(case.pair_id, ())) for case in cases[:limit]]


def _make_case(row: Mapping[str, Any]) -> PathCase:
    corruption = codec.class_of(row, "corruption", CORRUPTIONS)
    triples = tuple(Triple(t["head"], t["relation"], t["tail"]) for t in row["path"])
    columns = {name: row[name] for name in COLUMNS} | {"path": triples, "corruption": corruption}
    return boundary.read(PathCase, PathCase(**columns), "the row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ModelOptions):
    """The options of `evaluate_paths`; ``prompt`` names the prompts to ask with, none for the first."""

    probe: Path
    engine: str
    output: Path
    prompt: Sequence[str] = ()
    split: str = TEST
    limit: Count | None = None
    in_flight: Count = 64
    seed: int = 0

    @property
    def prompt_names(self) -> list[Style]:
        """The prompts to use, without repeats; raise ``UserError`` for an unknown one."""
        chosen = [check_choice(prompt, STYLES, "--prompt") for prompt in self.prompt] or STYLES[:1]
        return [prompt for prompt in STYLES if prompt in chosen]


def run_paths(options: Options) -> str:
    """Measure an engine on the probe, write the files, and return a summary; raise ``UserError`` for bad input."""
    prompt_names, opener = options.prompt_names, Opener(options.timeout)
    opener(options.engine)
    probe = find_probe(options.probe)
    cases = read_cases(probe, options.split, options.limit)
    described = {**describe_probe(probe, options.split), "limit": options.limit}
    runs, spent = list[Verdicts](), list[str]()
    with files.lock_folder(options.output, owned=OWNED), options.replies() as replies:
        for prompt in prompt_names:
            client = options.client(opener(options.engine), replies)
            requests = {place: case.request(prompt) for place, case in enumerate(cases)}
            is_first = not runs
            runs.append(
                collect_verdicts(client, prompt, "path", requests, read_verdict, UNREADABLE, is_first=is_first)
            )
            spent += render_run_usage(client, prompt, "stand in no accuracy")
        samples = {name: options.allowance.apply(cases[0].request(name)) for name in prompt_names}
        limits = {name: request.sampling.max_tokens for name, request in samples.items()}
        measured = render_results(described, cases, runs, limits, options.seed)
        files.write_files(options.output, OWNED, render_files(measured, cases, runs))
    return "\n".join([render_summary(measured), "", str(options.output / PAGE), "", *spent])


def render_results(
    probe: Mapping[str, Any],
    cases: Sequence[PathCase],
    runs: Sequence[Verdicts],
    limits: Mapping[Style, int],
    seed: int,
) -> dict[str, Any]:
    """Return all measures; ``probe`` describes the rows, ``limits`` has the maximum tokens of a reply by prompt."""
    records = []
    for run, (prompt, limit) in zip(runs, limits.items(), strict=True):
        pairs = zip(cases, run.replies.values(), strict=True)
        judged = [JudgedPath(c.benchmark, c.question_id, c.corruption, reply.verdict) for c, reply in pairs]
        record = {
            "name": run.name,
            "prompt": prompt,
            "prompt_sha256": prompts.load(prompt_of(prompt)).digest,
            "max_tokens": limit,
            "simulated": run.simulated,
            **measure_quality(judged, seed=seed),
            "tokens": run.tokens(),
        }
        records.append(record)
    return {
        "simulated": bool(probe["simulated"] or any(run.simulated for run in runs)),
        "probe": dict(probe),
        "bootstrap": {"over": "questions", "resamples": RESAMPLES, "level": CONFIDENCE, "seed": seed},
        "runs": records,
    }


def render_files(results: Mapping[str, Any], cases: Sequence[PathCase], runs: Sequence[Verdicts]) -> dict[str, bytes]:
    """Render the files of an evaluation, and return them by name."""
    contents = {RESULTS: files.json_bytes(results, sort_keys=False), PAGE: render_page(results).encode()}
    for run in runs:
        lines = (run.line(place, **case.fields) for place, case in enumerate(cases))
        contents[f"{VERDICTS}.{run.role}.jsonl"] = encode_lines(lines)
    return contents


def render_page(results: Mapping[str, Any]) -> str:
    limits = sorted({run["max_tokens"] for run in results["runs"]})
    values = {"titles": MEASURES, "limits": limits, "ways": STYLES, "published": published()}
    return tables.fill(Path(__file__).parent / "templates", "paths.md.jinja", **results, **values)


def render_summary(results: Mapping[str, Any]) -> str:
    header = ("engine", "prompt", *MEASURES.values(), "unreadable", "failed")
    rows = [
        (
            *(agreement.title_of(run), run["prompt"]),
            *(tables.format_cell(run["measures"][name], tables.percent) for name in MEASURES),
            *(run["said"]["unreadable"], run["said"]["failed"]),
        )
        for run in results["runs"]
    ]
    first = results["runs"][0]
    return f"{tables.text_table([header, *rows])}\n\n{first['rows']:,} rows of {first['questions']:,} questions"


def published() -> dict[str, dict[str, str]]:
    """Render the published accuracies by model and prompt: Table 2's mean, and the balanced one of Table 6's."""
    by_model: dict[str, dict[str, str]] = {}
    for row in published_tables.published().path_judgements:
        wrong = [row["kinds"][kind] for kind in PAPER if kind != "valid"]
        balanced = (row["kinds"]["valid"] + sum(wrong) / len(wrong)) / 2
        by_model.setdefault(row["model"], {})[row["prompt"]] = f"{row['mean']:.2f} ({balanced:.2f})"
    return by_model
