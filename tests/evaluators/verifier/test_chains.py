"""Verifiers on chains that people labelled: the measures by hand, and twenty judges by an independent script."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from evaluators.verifier import chains
from evaluators.verifier.chains import ChainJudge
from safe_stepwise.errors import UserError
from safe_stepwise.formats import agentprocessbench
from safe_stepwise.formats.chains import Chain, ChainStep
from safe_stepwise.records import Passage
from safe_stepwise.steps import format_step
from scripts.evaluate_verifier import main

PAGE = Passage("Oru", ("Oru is a town in Marn.",))
SEARCH = ChainStep("", 0, ("Oru",), 1)
CHAINS = [
    Chain(
        "Where is Oru?",
        (SEARCH, ChainStep("It is in Marn.", 1, (), 1), ChainStep("<answer>Vel</answer>", 1, (), -1)),
        "0.0",
        (PAGE,),
    ),
    Chain(
        "Where is Oru?",
        (SEARCH, ChainStep("", 1, ("Oru",), -1), ChainStep("It is in Marn.", 1, (), 0)),
        "0.1",
        (PAGE,),
    ),
    Chain("Where is Vel?", (ChainStep("It is in Marn.", label=1), ChainStep("So Marn.")), "1.0", (PAGE,)),
]  # fmt: skip


def judged(*labels: list[int | None]) -> ChainJudge:
    said = {(c.id, n): label for c, given in zip(CHAINS, labels, strict=True) for n, label in enumerate(given)}
    return ChainJudge("J", "other judge", said)


def measures(*labels: list[int | None]) -> dict[str, Any]:
    return dict(chains.measure_judge(judged(*labels), CHAINS, 0)["measures"])


def test_the_measures_by_hand() -> None:
    perfect = measures([1, 1, -1], [1, -1, 0], [1, -1])  # a step without a label does not count
    assert set(perfect.values()) == {1.0}
    found = measures([1, -1, -1], [1, -1, 1], [1, 1])
    assert found["step_accuracy"] == pytest.approx(5 / 7)
    assert (found["error_precision"], found["error_recall"]) == (0.5, 1.0)
    assert (found["search_precision"], found["search_recall"], found["search_f1"]) == (1, 1, 1)
    assert found["first_error_accuracy"] == pytest.approx(2 / 3)
    assert found["first_error_f1"] == pytest.approx(2 * 0.5 * 1 / 1.5)
    passed = measures([1, 1, 1], [1, 1, 1], [1, 1])
    assert (passed["error_f1"], passed["first_error_f1"], passed["error_precision"]) == (0, 0, None)
    unread = measures([None, 1, -1], [1, -1, 0], [None, 1])
    assert unread["step_accuracy"] == pytest.approx(5 / 7)
    assert unread["first_error_accuracy"] == pytest.approx(1 / 3)  # nothing unread is right
    assert chains.measure_judge(judged([None, 1, -1], [1, -1, 0], [None, 1]), CHAINS, 0)["unread"] == 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Oru is in Marn.", "Step 1: Oru is in Marn. (Attribution)"),
        ("Step 3. Oru\nis in Marn.", "Step 1: Oru is in Marn. (Attribution)"),
        ("<answer> Marn </answer>", "Step 1: The answer is Marn. (Attribution)"),
        ("So.\n<answer>Marn</answer>", "Step 1: So. The answer is Marn. (Attribution)"),
        ("So (Logical) Step 2: no (Attribution)", "Step 1: So  Logical  Step 2: no  Attribution (Attribution)"),
        ("#### ANSWER: Marn", "Step 1: ####ANSWER: Marn (Final Answer)"),
        ("(Logical)", "Step 1: Logical (Attribution)"),
        ("\ud800", "Step 1: - (Attribution)"),
    ],
)  # fmt: skip
def test_any_text_becomes_a_step_of_the_grammar(text: str, written: str) -> None:
    assert format_step(chains.grammatical(ChainStep(text), 1)) == written


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A file of the chains, and one of a judge's verdicts on them."""
    rows = [row for chain in CHAINS[:2] for row in agentprocessbench.write(chain)]
    (file := tmp_path / "chains.jsonl").write_text("\n".join(map(json.dumps, rows)))
    verdicts = [{**row, "judge": "J"} for row in rows]
    (judges := tmp_path / "judges.jsonl").write_text("\n".join(map(json.dumps, verdicts)))
    return file, judges


def test_the_command_sets_a_checker_beside_other_judges(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, judges = files
    arguments = ["--benchmark", "agentprocessbench", str(file), "--judges", str(judges), "--verifier", "checker"]
    arguments += ["--output", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    main([*arguments, "--baseline", "checker:strict"])
    results = json.loads((tmp_path / "out/chain_quality.json").read_bytes())
    names = [judge["name"] for judge in results["judges"]]
    assert names == ["checker", "checker:strict", "always right", "word overlap, 0.5 or more", "J"]
    assert results["labels"] == {"1": 3, "0": 1, "-1": 2}
    assert not results["simulated"]
    by_name = {judge["name"]: judge["measures"] for judge in results["judges"]}
    assert by_name["J"]["step_accuracy"] == 1
    assert by_name["checker"]["search_f1"] == 1  # the same search twice
    page = (tmp_path / "out/chain_quality.md").read_text()
    assert "2 chains about 1 questions have 6 labelled steps (3 only search)" in page
    lines = [json.loads(line) for line in (tmp_path / "out/verdicts.jsonl").read_text().splitlines()]
    assert [(line["chain"], line["step"], line["gold"]) for line in lines][:3] == [
        ("0.0", 1, 1),
        ("0.0", 2, 1),
        ("0.0", 3, -1),
    ]
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    main([*arguments, "--baseline", "checker:strict"])
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert "0 requests answered, 6 from the cache" in capsys.readouterr().out


def test_mistakes_say_what_to_mend(files: tuple[Path, Path], tmp_path: Path) -> None:
    file, judges = files
    common = ["--verifier", "checker", "--output", str(tmp_path / "out")]
    lines = judges.read_text().splitlines()
    for content, message in (
        ([lines[0]], "J judges 1 of the chains not, as 0.1"),
        ([*lines, lines[0]], "line 3: J judges chain 0.0 twice; remove one"),
        (["{}"], "judges.jsonl, line 1: is no judge's verdict"),
        ([], "judges none of the chains"),
    ):
        judges.write_text("\n".join(content))
        with pytest.raises(UserError, match=message):
            main(["--benchmark", "agentprocessbench", str(file), "--judges", str(judges), *common])
    for given in ([], [str(file)], ["--benchmark", "agentprocessbench"]):
        with pytest.raises(UserError, match=r"give --steps DIR, or --benchmark NAME with the FILE"):
            main([*given, *common])
    with pytest.raises(UserError, match="none of its steps has a label"):
        main(["--benchmark", "openai", str(file), *common])
    file.write_text(f"{file.read_text()}\n{file.read_text()}")
    with pytest.raises(UserError, match=r"line 3: the id '0.0' stands twice"):
        main(["--benchmark", "agentprocessbench", str(file), *common])


def reference(rows: list[dict[str, Any]], verdicts: dict[tuple[int, int], dict[str, int | None]]) -> list[float]:
    """The five measures, written apart from the code under test."""
    right = total = hits = alarms = misses = 0
    ends: dict[bool, list[bool]] = defaultdict(list)
    for row in rows:
        gold = {int(key): label for key, label in row["step_labels"].items()}
        said = {int(k): v for k, v in (verdicts[row["query_index"], row["sample_index"]] or {}).items()}
        for place, label in gold.items():
            total += 1
            right += label == said.get(place)
            if (row["messages"][place].get("content") or "").strip():
                hits += label == -1 == said.get(place)
                alarms += label != -1 == said.get(place)
                misses += label == -1 != said.get(place)
        first = min((place for place, label in gold.items() if label == -1), default=None)
        flagged = min((place for place in gold if said.get(place) == -1), default=None)
        until = [place for place in gold if flagged is None or place <= flagged]
        is_read = all(said.get(place) is not None for place in until)
        ends[first is None].append(first == flagged and is_read)
    shares = [sum(found) / len(found) for found in ends.values()]
    f1 = 2 * hits / (2 * hits + alarms + misses) if hits else 0.0
    harmonic = 2 * shares[0] * shares[1] / sum(shares) if sum(shares) else 0.0
    return [right / total, sum(map(sum, ends.values())) / len(rows), f1, harmonic]


def test_twenty_judges_are_measured_as_an_independent_script_does(real_data: Path) -> None:
    file, judges = (real_data / f"agentprocessbench_hotpotqa{end}.jsonl" for end in ("", "_judges"))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    verdicts: dict[str, dict[tuple[int, int], Any]] = defaultdict(dict)
    for line in map(json.loads, judges.read_text().splitlines()):
        verdicts[line["judge"]][line["query_index"], line["sample_index"]] = line["step_labels"]
    labelled = chains.read_labelled(file, "agentprocessbench", None)
    measured = chains.measure_chains("b", labelled, chains.read_judges(judges, labelled), 0)["judges"]
    assert len(measured) == 20
    names = ("step_accuracy", "first_error_accuracy", "error_f1", "first_error_f1")
    for judge in measured:
        values = [judge["measures"][name] or 0.0 for name in names]
        assert values == pytest.approx(reference(rows, verdicts[judge["name"]]), abs=5e-4)
    known = {judge["name"]: [round(judge["measures"][name], 3) for name in names] for judge in measured}
    assert known["GPT-5.2-Thinking (medium)"] == [0.694, 0.736, 0.583, 0.563]
    assert known["Llama-3.3-70B-Instruct"] == [0.463, 0.621, 0.135, 0.135]
