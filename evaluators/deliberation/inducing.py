"""Induce kinds of constraint from questions, beside the five of Deliberation on Priors (its future work).

A model names the kinds in each batch of a sample. Questions that differ only in their topics count as one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from evaluators.deliberation.questions import QuestionRows
from evaluators.run.runner import VerdictReply, collect_verdicts, render_run_usage
from safe_stepwise import prompts
from safe_stepwise.commands.options import ModelOptions
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.methods import reading
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.open import Opener
from safe_stepwise.records import InducedKind, InducedKinds, canonical_json
from safe_stepwise.store import boundary, files, page, tables
from safe_stepwise.store.names import marked
from safe_stepwise.store.replies import ReplyError

PROMPT = "deliberation/induce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ModelOptions):
    """The options of `induce_kinds`: a sample of ``limit`` questions, ``batch`` of them in a request."""

    questions: tuple[str, ...]
    engine: str
    output: Path
    kb: Path | None = None
    benchmark: str = "metaqa"
    split: str = "train"
    limit: Count = 200
    batch: Count = 20
    min_batches: Count = 2
    seed: int = 0


def induce_kinds(options: Options, rows: QuestionRows) -> str:
    """Write the kinds of at least ``min_batches`` batches, and return a summary; raise ``UserError`` for bad input."""
    graph = () if options.kb is None else (options.kb,)
    page.check_output(options.output, *map(Path, options.questions), *graph, options.cache_file)
    questions = [*{masked(q.question, q.topics): q.question for q in rows.questions}.values()]
    sample = Random(options.seed).sample(questions, min(options.limit, len(questions)))
    batches = [sample[start : start + options.batch] for start in range(0, len(sample), options.batch)]
    if len(batches) < options.min_batches:
        raise UserError(f"--min-batches {options.min_batches}: there are only {len(batches)}; lower it, or --batch")
    prompt = prompts.load(PROMPT)
    requests = {n: prompt.request(prompt.messages(questions=batch)) for n, batch in enumerate(batches)}
    with options.replies() as replies:
        client = options.client(Opener(options.timeout)(options.engine), replies)
        verdicts = collect_verdicts(client, prompt.role, "batch", requests, _read_items, "unreadable")
    kinds, faults = _merge_kinds(verdicts.replies.values(), batches)
    if all(reply.reason for reply in verdicts.replies.values()):
        raise UserError(f"no reply could be read; {faults[0]}")
    sure = [replace(kind, simulated=verdicts.simulated) for kind in kinds if kind.batches >= options.min_batches]
    rare = [f"{kind.name}: only in {kind.batches} batches" for kind in kinds if kind.batches < options.min_batches]
    record = {
        "kinds": boundary.plain(sure),
        "left_out": [*rare, *faults],
        "engine": client.name,
        "simulated": verdicts.simulated,
        "prompt_sha256": prompt.digest,
        "sample": {**rows.description, "questions": len(sample), "batches": len(batches), "seed": options.seed},
    }
    page.write_file(options.output, files.json_bytes(record, sort_keys=False))
    table = [("kind", "batches", "description"), *((kind.name, kind.batches, kind.description) for kind in sure)]
    counts = f"{len(sample):,} questions in {len(batches):,} batches; left out: {len(rare):,} rare kinds, "
    counts += f"{len(faults):,} faulty kinds or replies, {rows.description['rejected']:,} unreadable rows"
    usage = render_run_usage(client, marked(prompt.role, verdicts.simulated), "name no kinds")
    return "\n".join([tables.text_table(table), "", counts, *usage, str(options.output)])


def _read_items(text: str, data: str) -> str:
    result = reading.read(text, {"kinds": reading.list_reader(lambda item, _: item)}, [data])
    if result.is_unreadable:
        raise ReplyError(result.problem)
    return canonical_json(result.value["kinds"])


def _merge_kinds(replies: Iterable[VerdictReply], batches: Sequence[Sequence[str]]) -> tuple[InducedKinds, list[str]]:
    """Return each kind as its first batch has it, with its number of batches; and what is left out, and why."""
    by_name, faults = dict[str, dict[int, InducedKind]](), list[str]()
    for number, (reply, batch) in enumerate(zip(replies, batches, strict=True), 1):
        faults += [f"batch {number}: {reply.reason}"] if reply.reason else []
        for item in [] if reply.reason else boundary.parse_json(reply.verdict):
            try:
                kind = _read_kind(item, batch)
                by_name.setdefault(kind.name, {}).setdefault(number, kind)
            except ValueError as error:
                faults.append(f"batch {number}: {error}")
    return tuple(replace(kinds[min(kinds)], batches=len(kinds)) for kinds in by_name.values()), faults


def _read_kind(item: Any, questions: Sequence[str]) -> InducedKind:
    fields = item if isinstance(item, dict) else {}
    words = reading.words(fields.get("name"), False).lower().replace("-", " ").split()
    number = reading.number_in(1, len(questions), "question")(fields.get("question"), True)
    return InducedKind("_".join(words), reading.words(fields.get("description"), False), questions[number - 1])


def read_kinds(file: Path) -> InducedKinds:
    """Read the kinds in a file of `induce_kinds`; raise ``UserError``, with the file, for any other file."""
    with at_place(f"{file} (make it by induce_kinds)", ValueError):
        kinds = boundary.read(InducedKinds, boundary.read_object(file).get("kinds"), "kinds")
        if repeated := [name for name, number in Counter(kind.name for kind in kinds).items() if number > 1]:
            raise ValueError(f"two kinds are called {min(repeated)}; leave one out")
        if not kinds:
            raise ValueError("it has no kinds: induce some from more questions, or run without the file")
    return kinds
