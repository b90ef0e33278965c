"""Written chains, readers' labels, and the rules against them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.errors import UserError
from studies.calibration.human import (
    ChainReading,
    JudgedChain,
    Label,
    WrittenChain,
    bare_chain,
    compare_with_readers,
    read_chains,
    read_labels,
    render_page,
    score_label,
)

CHAIN = {"id": "c1", "benchmark": "b", "question_id": "q", "steps": ["Ana wed Ors."], "answer": "O"}
LABELS: list[Label] = ["faithful", "unfaithful"]


def written(folder: Path, *rows: object) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
    return file


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", ", line 1: .*a chain has id"),
        ({**CHAIN, "steps": "Ana wed Ors."}, "steps is not a list"),
        ({key: value for key, value in CHAIN.items() if key != "answer"}, "answer is not there"),
    ],
)
def test_a_chain_that_is_none_is_named_by_its_line(tmp_path: Path, row: object, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_chains(written(tmp_path, row))


def test_an_id_twice_and_no_row_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=", line 2: id 'c1' came before"):
        read_chains(written(tmp_path, CHAIN, CHAIN))
    with pytest.raises(UserError, match="is empty"):
        read_chains(written(tmp_path))
    with pytest.raises(UserError, match="cannot be read"):
        read_chains(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": "c1", "label": "right"}], "label is not one of faithful, unfaithful"),
        ([{"id": "c2", "label": "faithful"}], "no label for chain 'c1'"),
        ([{"id": i, "label": "faithful"} for i in ("c1", "c2")], "'c2' is no chain's id"),
    ],
)
def test_labels_must_be_of_these_chains(tmp_path: Path, rows: list[object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_labels(written(tmp_path, *rows), [WrittenChain(**CHAIN)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "kept", "numbers"),
    [
        (["1. Ana wed Ors.", "2) He is old.", "So the answer is Ors."], 2, (1, 2)),
        (["Step 1: Ana wed Ors.", "Therefore, the final answer is: Ors"], 1, (1,)),
        (["So the answer is Ors. He was born in Oru."], 1, (1,)),
        (["The answer to this riddle, Ana said, was known; it is Ors."], 1, (1,)),
        (["", "Ana wed Ors."], 1, (2,)),
    ],
)
def test_the_step_that_only_answers_is_none(steps: list[str], kept: int, numbers: tuple[int, ...]) -> None:
    chain = bare_chain(WrittenChain("c", "b", "q", steps, "Ors"))
    assert (len(chain.steps), chain.numbers) == (kept, numbers)
    assert not any(step[:1].isdigit() or step.startswith("Step") for step in chain.steps)


@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_text_can_be_told(steps: list[str]) -> None:
    chain = bare_chain(WrittenChain("c", "b", "q", steps, ""))
    assert len(chain.steps) == len(chain.numbers) <= len(steps)
    assert all(step.strip() for step in chain.steps)


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, "unjudgeable"]))))
def test_scores_are_those_of_sklearn(rows: list[tuple[Label, str]]) -> None:
    from sklearn.metrics import precision_recall_fscore_support

    labels = {str(n): label for n, (label, _) in enumerate(rows)}
    verdicts = {str(n): verdict for n, (_, verdict) in enumerate(rows)}
    for label in LABELS:
        found = score_label(verdicts, labels, label)
        mine = [found[name] or 0.0 for name in ("precision", "recall", "f1")]
        if rows:
            pairs = [*zip(*rows, strict=True)]
            theirs = precision_recall_fscore_support(*pairs, labels=[label], average="macro", zero_division=0)
            assert mine == pytest.approx(theirs[:3], abs=1e-4)


def test_results_hold_no_text(tmp_path: Path) -> None:
    chains = [WrittenChain(f"c{n}", "b", "q", ["A secret step."], "A secret") for n in range(4)]
    one = {c.id: ChainReading(c.id, LABELS[n % 2], None if n % 2 == 0 else 1) for n, c in enumerate(chains)}
    other = {**one, "c3": ChainReading("c3", "faithful")}
    verdicts = [JudgedChain("house", c.id, LABELS[n % 2], "", n % 2 or None) for n, c in enumerate(chains)]
    found = compare_with_readers(chains, (one, other), verdicts, "We wrote them.")
    assert (found["chains"], found["agreed"], found["kappa"]) == (4, 3, 0.5)
    rule = found["rules"]["house"]
    assert [one["f1"] for one in rule["scores"]["both readers"]] == [1.0, 1.0]
    assert rule["first_bad"] == {"chains": 1, "found": 1}
    text = json.dumps(found) + render_page(found)
    assert "secret" not in text
    assert "| the paper, Table 4 | unfaithful | – | 0.861 | 0.960 | 0.908 | – | – |" in text
