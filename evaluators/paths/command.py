"""An engine's verdicts on relation paths, asked one way or several: measured, written down."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import CONFIDENCE
from evaluators.paths import probe_set
from evaluators.paths.probe_set import PathCase
from evaluators.paths.quality import PAPER, RESAMPLES, UNREADABLE, Judged, quality
from evaluators.run import verdicts
from evaluators.run.verdicts import Verdicts
from safe_stepwise import prompts
from safe_stepwise.commands.values import Count, Seconds
from safe_stepwise.engines import client as asking
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import Client, ResponseCache, default_cache
from safe_stepwise.errors import one_of
from safe_stepwise.methods.paths import WAYS, Way, prompt_of, read_verdict
from safe_stepwise.open import Opener
from safe_stepwise.store import published_tables
from safe_stepwise.store.agreement import title_of
from safe_stepwise.store.files import exclusive, json_bytes
from safe_stepwise.store.names import RESULTS, TEST
from safe_stepwise.store.pages import fill
from safe_stepwise.store.tables import percent, shown, text_table

PAGE, VERDICTS = "paths.md", "verdicts"
OWNED = (RESULTS, PAGE, *(f"{VERDICTS}.{way}.jsonl" for way in WAYS))
"""Files of an evaluation."""
IN_FLIGHT = 64
SHOWN = {"balanced": "balanced", "paper_mean": "the paper's mean", "accuracy": "accuracy"}
"""Measures in the first table, with their titles."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `evaluate_paths`, by their names; ``prompt`` are ways of asking."""

    probe: Path
    engine: str
    output: Path
    prompt: Sequence[str] = ()
    split: str = TEST
    limit: Count | None = None
    allowance: Allowance = AS_PROMPTED
    cache: Path | None = None
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    seed: int = 0

    @property
    def ways(self) -> list[Way]:
        """The ways of asking, each once; raises ``UserError`` for one that is not known."""
        named = [one_of(way, WAYS, "--prompt") for way in self.prompt] or WAYS[:1]
        return [way for way in WAYS if way in named]


def run_paths(options: Options) -> str:
    """Measure, write, and return what there is to say; raises ``UserError`` for what the user can mend."""
    ways, opener = options.ways, Opener(options.timeout)
    opener(options.engine)
    probe = probe_set.find_probe(options.probe)
    cases = probe_set.read_cases(probe, options.split, options.limit)
    about = {**probe_set.about(probe, options.split), "limit": options.limit}
    runs, spent = list[Verdicts](), list[str]()
    with exclusive(options.output, owned=OWNED), closing(ResponseCache(options.cache or default_cache())) as cache:
        for way in ways:
            client = Client(opener(options.engine), cache, options.in_flight, asking.TRIES, options.allowance)
            requests = {place: case.request(way) for place, case in enumerate(cases)}
            runs.append(verdicts.ask(client, way, "path", requests, read_verdict, UNREADABLE))
            spent += verdicts.spent(client, way, "stand in no accuracy")
        limits = {way: options.allowance.applied(cases[0].request(way)).sampling.max_tokens for way in ways}
        found = results(about, cases, runs, limits, options.seed)
        verdicts.write_files(options.output, files(found, cases, runs), OWNED)
    return "\n".join([summary(found), "", str(options.output / PAGE), "", *spent])


def results(
    probe: Mapping[str, Any], cases: Sequence[PathCase], runs: Sequence[Verdicts], limits: Mapping[Way, int], seed: int
) -> dict[str, Any]:
    """All that was measured; ``probe`` says what the rows are, ``limits`` how many tokens a reply could have."""
    records = []
    for run, (way, limit) in zip(runs, limits.items(), strict=True):
        pairs = zip(cases, run.replies.values(), strict=True)
        judged = [Judged(case.benchmark, case.question_id, case.corruption, reply.verdict) for case, reply in pairs]
        records.append(
            {
                "name": run.name,
                "prompt": way,
                "prompt_sha256": prompts.load(prompt_of(way)).digest,
                "max_tokens": limit,
                "simulated": run.simulated,
                **asdict(quality(judged, seed=seed)),
                "tokens": run.tokens(),
            }
        )
    return {
        "simulated": bool(probe["simulated"] or any(run.simulated for run in runs)),
        "probe": dict(probe),
        "bootstrap": {"over": "questions", "resamples": RESAMPLES, "level": CONFIDENCE, "seed": seed},
        "runs": records,
    }


def files(found: Mapping[str, Any], cases: Sequence[PathCase], runs: Sequence[Verdicts]) -> dict[str, bytes]:
    """The files of an evaluation by name."""
    made = {RESULTS: json_bytes(found, sort_keys=False), PAGE: page(found).encode()}
    for run in runs:
        lines = (run.line(place, **case.about) for place, case in enumerate(cases))
        made[f"{VERDICTS}.{run.role}.jsonl"] = verdicts.lines_bytes(lines)
    return made


def page(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    limits = sorted({run["max_tokens"] for run in found["runs"]})
    own = {"titles": SHOWN, "limits": limits, "ways": WAYS, "published": published()}
    return fill(Path(__file__).parent / "templates", "paths.md.jinja", **found, **own)


def summary(found: Mapping[str, Any]) -> str:
    """The results in short."""
    header = ("engine", "prompt", *SHOWN.values(), "unreadable", "failed")
    rows = [
        (
            *(title_of(run), run["prompt"]),
            *(shown(run["measures"][name], percent) for name in SHOWN),
            *(run["said"]["unreadable"], run["said"]["failed"]),
        )
        for run in found["runs"]
    ]
    first = found["runs"][0]
    return f"{text_table([header, *rows])}\n\n{first['rows']:,} rows of {first['questions']:,} questions"


def published() -> dict[str, dict[str, str]]:
    """By model and prompt Table 2's figure, and what Table 6 gives once the classes weigh alike."""
    by_model: dict[str, dict[str, str]] = {}
    for row in published_tables.published().path_judgements:
        wrong = [row.kinds[kind] for kind in PAPER if kind != "valid"]
        balanced = (row.kinds["valid"] + sum(wrong) / len(wrong)) / 2
        by_model.setdefault(row.model, {})[row.way] = f"{row.mean:.2f} ({balanced:.2f})"
    return by_model
