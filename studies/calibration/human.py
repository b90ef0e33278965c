"""The rules against two readers (arXiv 2402.11199, 5.3 and Table 4): ``results.json`` and a page.

Both hold ids, labels and verdicts, and no text of a chain or question.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import cohens_kappa
from safe_stepwise.checking.faithfulness.chains import Grounds
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.store.files import write_files
from safe_stepwise.store.pages import fill
from safe_stepwise.store.tables import NOTHING, Table, decimal, shown
from studies.calibration.tables import Judge
from studies.calibration.written import LABELS, Label, Reading, Written, told

FILES = ("results.json", "results.md")
PAPER: Mapping[Label, tuple[float, float, float]] = {
    "faithful": (0.9542, 0.8388, 0.8928),
    "unfaithful": (0.8612, 0.9601, 0.9080),
}
"""Precision, recall and F1 as Table 4 prints them: 100 responses of ChatGPT on CWQ, two experts."""
Readings = tuple[Mapping[str, Reading], Mapping[str, Reading]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's word on a chain; ``first`` is the first bad step as the chain was written."""

    judge: str
    id: str
    path: str
    fault: str
    first: int | None


@dataclass(frozen=True, slots=True)
class Score:
    """How a judge does by one label; what it can't judge is neither right nor wrong, but missed."""

    label: Label
    chains: int
    precision: float | None
    recall: float | None
    f1: float | None


def judged(judges: Iterable[Judge], chains: Iterable[Written], grounds: Mapping[str, Grounds]) -> list[Judged]:
    """Every judge's verdict on every chain; ``grounds`` by the chain's id."""
    found = []
    chains = list(chains)
    for judge in judges:
        retrieval = RETRIEVALS[judge.retrieval] if judge.retrieval else None
        for chain in chains:
            one = told(chain)
            verdict = judge_chain(grounds[chain.id], one, judge.rule, retrieval)
            first = one.numbers[verdict.first - 1] if verdict.first else None
            found.append(Judged(judge.name, chain.id, verdict.path, verdict.fault, first))
    return found


def score(verdicts: Mapping[str, str], labels: Mapping[str, Label], label: Label) -> Score:
    """Precision, recall and F1 of one label, over the chains that are labelled.

    >>> score({"a": "faithful", "b": "unjudgeable"}, {"a": "faithful", "b": "faithful"}, "faithful")
    Score(label='faithful', chains=2, precision=1.0, recall=0.5, f1=0.6667)
    """
    meant = [id_ for id_, one in labels.items() if one == label]
    called = [id_ for id_ in labels if verdicts[id_] == label]
    hits = sum(verdicts[id_] == label for id_ in meant)
    precision = round(hits / len(called), 4) if called else None
    recall = round(hits / len(meant), 4) if meant else None
    both = len(called) + len(meant)
    return Score(label, len(meant), precision, recall, round(2 * hits / both, 4) if both else None)


def results(chains: Sequence[Written], readings: Readings, verdicts: Sequence[Judged], who: str) -> dict[str, Any]:
    """All numbers. Rules are held against the labels that both readers give, and each reader's."""
    first, second = ({id_: r.label for id_, r in reader.items()} for reader in readings)
    agreed = {id_: label for id_, label in first.items() if second[id_] == label}
    kappa = cohens_kappa([(first[chain.id], second[chain.id]) for chain in chains])
    rules = {}
    for name in dict.fromkeys(one.judge for one in verdicts):
        mine = {one.id: one for one in verdicts if one.judge == name}
        paths = {id_: one.path for id_, one in mine.items()}
        against = {"both readers": agreed, "reader 1": first, "reader 2": second}
        rules[name] = {
            "scores": {
                whom: [asdict(score(paths, labels, label)) for label in LABELS] for whom, labels in against.items()
            },
            "unjudgeable": sum(path == "unjudgeable" for path in paths.values()),
            "first_bad": _first_bad(agreed, readings, mine),
        }
    return {
        "who": who,
        "chains": len(chains),
        "agreed": len(agreed),
        "kappa": None if kappa is None else round(kappa, 4),
        "rules": rules,
        "paper": {label: dict(zip(("precision", "recall", "f1"), PAPER[label], strict=True))
                  for label in LABELS},
        "rows": [_row(chain, readings, verdicts) for chain in sorted(chains, key=lambda c: c.id)],
    }  # fmt: skip


def write(found: Mapping[str, Any], folder: Path) -> str:
    """Write ``results.json`` and ``results.md`` and return the page; same results, same bytes."""
    text = page(found)
    content = json.dumps(found, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    write_files(folder, FILES, dict(zip(FILES, (content.encode(), text.encode()), strict=True)))
    return text


def page(results: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    table: Table = [("rule", "label", "chains", "P", "R", "F1", "unjudgeable", "first bad step found")]
    for name, rule in results["rules"].items():
        for score in rule["scores"]["both readers"]:
            numbers = (shown(score[measure], decimal(3)) for measure in ("precision", "recall", "f1"))
            bad = "{found} of {chains}".format_map(rule["first_bad"]) if score["label"] == "unfaithful" else NOTHING
            table.append((name, score["label"], score["chains"], *numbers, rule["unjudgeable"], bad))
    for label in LABELS:
        table.append(("the paper, Table 4", label, NOTHING, *map(decimal(3), PAPER[label]), NOTHING, NOTHING))
    about = {name: results[name] for name in ("who", "chains", "agreed", "kappa")}
    folder = Path(__file__).parent / "templates"
    return fill(folder, "results.md.jinja", **about, scores=table, decimal=decimal(3))


def _first_bad(agreed: Mapping[str, Label], readings: Readings, mine: Mapping[str, Judged]) -> dict[str, int]:
    """Of the chains in which both readers name one first bad step, where a judge does so too."""
    one, other = readings
    named = [id_ for id_ in agreed if one[id_].first_bad == other[id_].first_bad is not None]
    return {"chains": len(named), "found": sum(mine[id_].first == one[id_].first_bad for id_ in named)}


def _row(chain: Written, readings: Readings, verdicts: Iterable[Judged]) -> dict[str, Any]:
    return {
        "id": chain.id,
        "benchmark": chain.benchmark,
        "question_id": chain.question_id,
        "readers": [{"label": reader[chain.id].label, "first_bad": reader[chain.id].first_bad} for reader in readings],
        "rules": {
            one.judge: {"path": one.path, "fault": one.fault, "first": one.first}
            for one in verdicts
            if one.id == chain.id
        },
    }
