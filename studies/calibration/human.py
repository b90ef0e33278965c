"""Compare the rules of faithfulness with two human readers (arXiv 2402.11199, 5.3 and Table 4).

A chain is a line of JSON with ``id``, ``benchmark``, ``question_id``, ``steps`` and ``answer``. A label is a line of
JSON with ``id``, ``label`` (``faithful`` or ``unfaithful``) and, if a step is bad, ``first_bad`` (from 1). The
results, ``results.json`` and a page, hold ids, labels and verdicts, but no text of a chain or question.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from evaluators.comparison.significance import cohens_kappa
from safe_stepwise.checking.faithfulness.grounds import Chain, Grounds
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.errors import UserError
from safe_stepwise.store import agreement, boundary, files
from safe_stepwise.store.tables import NOTHING, Table, decimal, fill, format_cell
from studies.calibration.tables import ChainJudge

Label = Literal["faithful", "unfaithful"]
LABELS: tuple[Label, Label] = ("faithful", "unfaithful")
_NUMBERED = re.compile(r"^\s*(?:step\s+)?\d+\s*[.):]\s*", re.IGNORECASE)
_ANSWERS = re.compile(
    r"(?:so|thus|hence|therefore|finally)?[,\s]*(?:the|my)? ?(?:final )?answer\b.{0,40}?"
    r"(?:\bis\b|\bmust be\b|:)[^.;]*\.?",
    re.IGNORECASE,
)
"""A step that gives the answer and states nothing else."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WrittenChain:
    """A chain that somebody wrote."""

    id: str
    benchmark: str
    question_id: str
    steps: Sequence[str]
    answer: str


@dataclass(frozen=True, slots=True)
class ChainReading:
    """A reader's label of a chain; ``first_bad`` is None if no step is bad."""

    id: str
    label: Label
    first_bad: int | None = None


def read_chains(file: Path) -> list[WrittenChain]:
    """Read the chains of a file; raise ``UserError`` with file and line for a line that is no chain."""
    return [*_rows(file, WrittenChain, "chain", "a chain has id, benchmark, question_id, steps (texts) and answer")]


def read_labels(file: Path, chains: Iterable[WrittenChain]) -> dict[str, ChainReading]:
    """Read a reader's labels by chain; raise ``UserError`` for a bad line, and if a chain or a label has no other."""
    mend = "a label has id, label (faithful or unfaithful) and perhaps first_bad (from 1)"
    labels = {row.id: row for row in _rows(file, ChainReading, "label", mend)}
    ids = {chain.id for chain in chains}
    if lacking := sorted(ids - labels.keys()):
        raise UserError(f"{file}: no label for chain {lacking[0]!r} ({len(lacking)} lack one)")
    if strange := sorted(labels.keys() - ids):
        raise UserError(f"{file}: {strange[0]!r} is no chain's id; give the labels of these chains")
    return labels


def bare_chain(chain: WrittenChain) -> Chain:
    """Convert a written chain to one that can be judged: without numbers in the steps and steps that only answer.

    ``numbers`` of the result are the positions (from 1) of its steps in the written chain.

    >>> written = WrittenChain("c", "b", "q", ["1. Ana wed Ors.", "So the answer is Ors."], "Ors")
    >>> bare_chain(written).steps, bare_chain(written).numbers
    (('Ana wed Ors.',), (1,))
    """
    bare = [_NUMBERED.sub("", step).strip() for step in chain.steps]
    steps = [(n, step) for n, step in enumerate(bare, 1) if step and not _ANSWERS.fullmatch(step)]
    return Chain(tuple(step for _, step in steps), chain.answer, tuple(n for n, _ in steps))


def _rows(file: Path, kind: type[T], noun: str, mend: str) -> Iterator[T]:
    ids: set[str] = set()
    read = lambda line: boundary.read(kind, boundary.parse_json(line))  # noqa: E731
    for place, row in files.read_lines(file, read, noun, mend, blanks=True):
        id_ = row.id  # type: ignore[attr-defined]
        if id_ in ids:
            raise UserError(f"{place}: id {id_!r} came before; give each chain one id")
        ids.add(id_)
        yield row
    if not ids:
        raise UserError(f"{file}: is empty")


FILES = ("results.json", "results.md")
PAPER: Mapping[Label, tuple[float, float, float]] = {
    "faithful": (0.9542, 0.8388, 0.8928),
    "unfaithful": (0.8612, 0.9601, 0.9080),
}
"""Precision, recall and F1 as Table 4 prints them: 100 responses of ChatGPT on CWQ, two experts."""
Readings = tuple[Mapping[str, ChainReading], Mapping[str, ChainReading]]


@dataclass(frozen=True, slots=True)
class JudgedChain:
    """A judge's verdict on the chain ``id``: ``path`` is ``faithful``, ``unfaithful`` or ``unjudgeable``.

    ``first``: the first bad step, from 1 in the numbering of the written chain; None if no step is bad. ``fault``:
    what is wrong with that step, or with the chain as a whole; empty if nothing is.
    """

    judge: str
    id: str
    path: str
    fault: str
    first: int | None


def judge_chains(
    judges: Iterable[ChainJudge], chains: Iterable[WrittenChain], grounds: Mapping[str, Grounds]
) -> list[JudgedChain]:
    """Return the verdict of every judge on every chain; ``grounds`` are the gold paths and facts, by chain id."""
    verdicts = []
    chains = list(chains)
    for judge in judges:
        retrieval = RETRIEVALS[judge.retrieval] if judge.retrieval else None
        for chain in chains:
            bare = bare_chain(chain)
            verdict = judge_chain(grounds[chain.id], bare, judge.rule, retrieval)
            first = bare.numbers[verdict.first - 1] if verdict.first else None
            verdicts.append(JudgedChain(judge.name, chain.id, verdict.path, verdict.fault, first))
    return verdicts


def score_label(verdicts: Mapping[str, str], labels: Mapping[str, Label], label: Label) -> dict[str, Any]:
    """Return a judge's precision, recall and F1 on one label (0-1, None where undefined), and the chains that have it.

    ``verdicts`` and ``labels`` are by chain id; an ``unjudgeable`` chain counts as missed.

    >>> score_label({"a": "faithful", "b": "unjudgeable"}, {"a": "faithful", "b": "faithful"}, "faithful")
    {'label': 'faithful', 'chains': 2, 'precision': 1.0, 'recall': 0.5, 'f1': 0.6667}
    """
    labelled = [id_ for id_, its_label in labels.items() if its_label == label]
    hits, predicted = (sum(verdicts[id_] == label for id_ in ids) for ids in (labelled, labels))
    shares = agreement.Score(label, hits, len(labelled), predicted).shares
    rounded = {name: None if share is None else round(share, 4) for name, share in shares.items()}
    return {"label": label, "chains": len(labelled), **rounded}


def compare_with_readers(
    chains: Sequence[WrittenChain], readings: Readings, verdicts: Sequence[JudgedChain], readers: str
) -> dict[str, Any]:
    """Score every rule against the labels on which both readers agree, and against each reader's labels.

    ``readers`` says who labelled. The result is the content of ``results.json``; ``kappa`` (Cohen's) is None where
    undefined.
    """
    labels_1, labels_2 = ({id_: reading.label for id_, reading in reader.items()} for reader in readings)
    agreed = {id_: label for id_, label in labels_1.items() if labels_2[id_] == label}
    # The chains in which both readers name the same first bad step.
    same_fault = [n for n in agreed if readings[0][n].first_bad == readings[1][n].first_bad is not None]
    kappa = cohens_kappa([(labels_1[chain.id], labels_2[chain.id]) for chain in chains])
    rules = {}
    for name in dict.fromkeys(verdict.judge for verdict in verdicts):
        by_chain = {verdict.id: verdict for verdict in verdicts if verdict.judge == name}
        paths = {id_: verdict.path for id_, verdict in by_chain.items()}
        rules[name] = {
            "scores": {
                reference: [score_label(paths, labels, label) for label in LABELS]
                for reference, labels in {"both readers": agreed, "reader 1": labels_1, "reader 2": labels_2}.items()
            },
            "unjudgeable": sum(path == "unjudgeable" for path in paths.values()),
            "first_bad": {
                "chains": len(same_fault),
                "found": sum(by_chain[id_].first == readings[0][id_].first_bad for id_ in same_fault),
            },
        }
    return {
        "who": readers,
        "chains": len(chains),
        "agreed": len(agreed),
        "kappa": None if kappa is None else round(kappa, 4),
        "rules": rules,
        "paper": {label: dict(zip(("precision", "recall", "f1"), PAPER[label], strict=True))
                  for label in LABELS},
        "rows": [_row(chain, readings, verdicts) for chain in sorted(chains, key=lambda c: c.id)],
    }  # fmt: skip


def write_results(results: Mapping[str, Any], folder: Path) -> str:
    """Write ``results.json`` and ``results.md`` into a folder, byte for byte reproducible; return the page's text."""
    text = render_page(results)
    files.write_files(folder, FILES, dict(zip(FILES, (files.json_bytes(results), text.encode()), strict=True)))
    return text


def render_page(results: Mapping[str, Any]) -> str:
    table: Table = [("rule", "label", "chains", "P", "R", "F1", "unjudgeable", "first bad step found")]
    for name, rule in results["rules"].items():
        for score in rule["scores"]["both readers"]:
            numbers = (format_cell(score[measure], decimal(3)) for measure in ("precision", "recall", "f1"))
            bad = "{found} of {chains}".format_map(rule["first_bad"]) if score["label"] == "unfaithful" else NOTHING
            table.append((name, score["label"], score["chains"], *numbers, rule["unjudgeable"], bad))
    for label in LABELS:
        table.append(("the paper, Table 4", label, NOTHING, *map(decimal(3), PAPER[label]), NOTHING, NOTHING))
    counts = {name: results[name] for name in ("who", "chains", "agreed", "kappa")}
    folder = Path(__file__).parent / "templates"
    return fill(folder, "results.md.jinja", **counts, scores=table, decimal=decimal(3))


def _row(chain: WrittenChain, readings: Readings, verdicts: Iterable[JudgedChain]) -> dict[str, Any]:
    judged = (verdict for verdict in verdicts if verdict.id == chain.id)
    return {
        "id": chain.id,
        "benchmark": chain.benchmark,
        "question_id": chain.question_id,
        "readers": [{"label": reader[chain.id].label, "first_bad": reader[chain.id].first_bad} for reader in readings],
        "rules": {v.judge: {"path": v.path, "fault": v.fault, "first": v.first} for v in judged},
    }
