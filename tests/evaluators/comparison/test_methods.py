"""Method × benchmark, machines and their edges, votes at equal cost, pairs whatever the options."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest

from evaluators.comparison.methods import Cost, measure_costs
from evaluators.comparison.report import Report, render_report
from evaluators.comparison.systems import System, pair_systems
from evaluators.outcomes import Outcome
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.sg_fsm import SINGLE_TURN
from safe_stepwise.records import Usage
from tests.browsing import BREAKOUTS
from tests.makers.outcomes import outcomes
from tests.makers.prompting import outcome_of, question
from tests.safe_stepwise.methods.machines import BAD, Script, find, verdict

SVG = "{http://www.w3.org/2000/svg}"
RIGHT, WRONG = (json.dumps({"answer": said, "explain": "So."}) for said in ("Oru", "Kel"))


def run(**changes: object) -> list[Outcome]:
    """Plain and stepwise methods on two benchmarks."""
    found: list[Outcome] = []
    for benchmark in ("2wikimultihopqa", "musique"):
        for n, reply in enumerate((RIGHT, WRONG)):
            asked = question(benchmark, f"q{n}")
            found.append(outcome_of("direct", Script(direct=[reply]), asked, **changes))
            for samples in (1, 3):
                script = Script(cot=[reply])
                found.append(outcome_of("cot", script, asked, samples=samples, **changes))
            broken = {"search": [BAD], "revise": [find(2, "Oru"), BAD]} if n else {}
            found.append(outcome_of("sg_fsm1", Script(**broken), asked, **changes))
            checked = {"verify": [verdict("Contradictory"), verdict("Correct")]}
            searched = [find(3, "Kel"), find(), find(2, "Oru")]
            guarded = Script(search=searched, **checked)
            found.append(outcome_of("sg_fsm_safe", guarded, asked, **changes))
    return found


@pytest.fixture(scope="module")
def made() -> Report:
    return render_report(run())


def table(made: Report, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(made.files[name].decode())))


def part(made: Report, title: str) -> list[list[str]]:
    """The rows of a table of ``methods.md``, its header first."""
    text = made.files["methods.md"].decode()
    lines = text.split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows if "---" not in row]


def test_methods_by_benchmark_and_what_tokens_bring_in(made: Report) -> None:
    rows = table(made, "methods.csv")
    assert [r["benchmark"] for r in rows[:3]] == ["2wikimultihopqa", "musique", "all"]
    assert len(rows) == 5 * 3
    found = [o for o in run() if o.method == "sg_fsm1" and o.benchmark == "musique"]
    used = [u for o in found for a in o.trajectory.attempts for u in a.usage.values()]
    computed = sum(u.prompt - u.cached for u in used)
    row = next(r for r in rows if r["method"] == "sg_fsm1" and r["benchmark"] == "musique")
    assert row["exact_match"] == "50.0"
    assert float(row["calls_per_question"]) == len(used) / 2
    assert float(row["computed_per_question"]) == pytest.approx(computed / 2, abs=0.05)
    assert float(row["right_per_1000_computed"]) == pytest.approx(1000 / computed, abs=1e-4)
    assert (row["format_first"], row["format_revised"]) == ("80.0", "10.0")
    assert row["failure_format"] == "50.0"
    # A method that says nothing of its way has no sub-answers, and its wrong answer is untold.
    row = next(r for r in rows if r["method"] == "direct")
    assert (row["sub_answer_recall"], row["failure_untold"]) == ("", "50.0")


def test_prompting_parts_are_told_and_left_out_where_nothing_has_them(made: Report) -> None:
    header, *rows = part(made, "Could the replies be read?")
    assert header[4:6] == ["at first try, %", "after revision, %"]
    assert len(rows) == 15
    assert len(part(made, "Why answers failed")) == 16
    assert {row[1].split(",")[0] for row in part(made, "Supporting facts, triples and sub-answers")[1:]} == {
        "SG-FSM1", "SG-FSM + SAFE",
    }  # fmt: skip
    loops = render_report(outcomes([1, 0], "no_verification")).files["methods.md"].decode()
    assert "##" not in loops
    assert "machines.svg" not in loops


def test_every_edge_is_counted_those_that_nothing_took_too(made: Report) -> None:
    rows = [r for r in table(made, "transitions.csv") if r["method"] == "sg_fsm1"]
    edges = {(r["state"], r["next_state"]): int(r["count"]) for r in rows}
    assert edges.keys() == set(SINGLE_TURN.edges)
    moves = [a for o in run() if o.method == "sg_fsm1" for a in o.trajectory.attempts]
    assert sum(edges.values()) == len(moves)
    assert (edges["q2", "q3"], edges["q3", "q4"], edges["q2", "q2"]) == (4, 2, 0)
    assert sum(float(r["percent"]) for r in rows) == pytest.approx(100, abs=1)
    told = {(row[1], row[2]): row[3] for row in part(made, "Transitions of the state machines")[1:]}
    assert told["SG-FSM1", "q2 Search → q3"] == "4"
    assert told["SG-FSM + SAFE", "g2 Judge find → q2"] == "4"


def test_the_drawing_has_every_state_and_every_count(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[Any]] = {}
    for name in ("edges", "labels", "edge_labels"):
        monkeypatch.setattr(
            nx, f"draw_networkx_{name}", lambda *given, _n=name, **_: drawn.setdefault(_n, []).append(given)
        )
    made = render_report(run())
    for method, labels in zip(("sg_fsm1", "sg_fsm_safe"), drawn["labels"], strict=True):
        machine = METHODS[method].machine  # type: ignore[attr-defined]
        assert {*machine.states, *machine.ends} == labels[2].keys()
    rows = [row for row in table(made, "transitions.csv") if row["state"] != row["next_state"]]
    counts = sorted(count for _, _, edge in drawn["edge_labels"] for count in edge.values())
    assert counts == sorted(row["count"] for row in rows if row["count"] != "0")
    assert len(drawn["edges"]) == len(rows)
    assert [edges[-1] for edges in drawn["edges"]].count("dashed") == len(rows) - len(counts)
    assert [state for state, label in drawn["labels"][0][2].items() if "again: 2" in label.replace("\n", " ")] == [
        "q3"
    ]


def test_the_page_tells_what_the_whole_run_was_asked_for() -> None:
    facts = {"supporting_facts": [[2, 0]], "evidences": [["a", "b", "c"]]}
    reply = json.dumps({**json.loads(RIGHT), **facts})
    asked = [outcome_of("direct", Script(direct=[reply]), evidence=True),
             outcome_of("cot", Script(cot=[reply]), evidence=True)]  # fmt: skip
    page = render_report(asked).files["methods.md"].decode()
    assert "\nevidence. Scores are percentages." in page
    assert "evidence. Percentages." not in render_report(run()).files["methods.md"].decode()


def test_unscored_answers_are_not_right_where_tokens_are_counted() -> None:
    found = [
        replace(outcome_of("direct", Script(direct=[RIGHT]), question(id_=f"q{n}")), verdict=said)
        for n, said in enumerate(("correct", "incorrect", "unscored", "unscored"))
    ]
    row = table(render_report(found), "methods.csv")[0]
    assert row["accuracy"] == "50.0"
    per_question = float(row["right_per_1000_computed"]) * float(row["computed_per_question"])
    assert per_question / 1000 == pytest.approx(1 / 4, abs=1e-3)


@pytest.mark.usefixtures("rendered")
@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names_are_text_in_every_part() -> None:
    name = " ".join([*BREAKOUTS, "]]>"]).replace("\ud800", "")
    found = [replace(o, players=dict.fromkeys(o.players, name)) for o in run()]
    first = found[3].trajectory
    strange = replace(first.attempts[0], state="<script>\ud800\0", next_state='"><svg onload=x>')
    odd = replace(found[3], method="odd", trajectory=replace(first, attempts=(strange, *first.attempts)))
    made = render_report([*found, odd])
    root = ElementTree.fromstring(made.files["machines.svg"])
    assert not {"script", "image", "a", "foreignObject", "text"} & {e.tag.removeprefix(SVG) for e in root.iter()}
    assert not [n for e in root.iter() for n in e.attrib if n.startswith("on")]
    for line in made.files["methods.md"].decode(errors="replace").splitlines():
        assert "<script" not in line.replace("\\<script", "")


def test_same_outcomes_same_bytes_in_any_order(made: Report) -> None:
    again = render_report(run())
    for name in ("methods.md", "methods.csv", "machines.svg", "transitions.csv"):
        assert again.files[name] == made.files[name]


# ------------------------------------------------------------------------------------- equal cost


def priced(found: Outcome, *usages: Usage) -> Outcome:
    attempts = tuple(
        replace(attempt, usage={"generator": usage})
        for attempt, usage in zip(found.trajectory.attempts, usages, strict=True)
    )
    return replace(found, trajectory=replace(found.trajectory, attempts=attempts))


def test_how_many_samples_a_machine_costs() -> None:
    vote = outcome_of("cot", Script(cot=[RIGHT]), samples=3)
    once = outcome_of("cot", Script(cot=[RIGHT]))
    machine = outcome_of("sg_fsm1", Script())
    first, further = Usage(500, 0, 100), Usage(500, 480, 100)
    found = [
        priced(vote, first, further, further),
        priced(once, first),
        priced(machine, *[Usage(300, 100, 50)] * len(machine.trajectory.attempts)),
    ]
    voting, single, stepwise = measure_costs(found)
    assert (voting.total, voting.first, voting.further) == (600 + 2 * 120, 600, 120)
    assert (single.total, single.further) == (600, 100)
    assert stepwise.total == 250 * 5
    assert (voting.samples, single.samples, stepwise.samples) == (3, 1, 0)
    # 600 + 5 · 120 = 1,200 ≤ 1,250; of the one that drew once 600 + 6 · 100.
    assert voting.samples_within(1250) == 6
    assert single.samples_within(1250) == 7
    assert (single.samples_within(600), single.samples_within(599)) == (1, 0)
    assert Cost(voting.system, 0, 0, 0).samples_within(9) == 1
    header, *rows = part(render_report(found), "Comparison at equal cost")
    assert header[-1] == "p, unadjusted"
    # The single reply has no row of its own beside a vote that tells what samples cost.
    assert [row[3:8] for row in rows] == [["CoT, samples=3", "840.0", "67.2", "6", "+0.0"]]
    alone = part(render_report(found[1:]), "Comparison at equal cost")[1:]
    assert [row[3:8] for row in alone] == [["CoT", "600.0", "48.0", "7", "+0.0"]]
    cheap = priced(machine, *[Usage(30, 0, 5)] * len(machine.trajectory.attempts))
    assert part(render_report([once, cheap]), "Comparison at equal cost")[1][6] == "\\< 1"


def test_questions_that_failed_make_nothing_cheaper() -> None:
    """The columns of the table are enough to compute its samples by hand."""
    first, further = Usage(500, 0, 100), Usage(500, 480, 100)
    found = []
    for n in range(4):
        asked = question("musique", f"q{n}")
        vote = priced(outcome_of("cot", Script(cot=[RIGHT]), asked, samples=3), first, further, further)
        machine = outcome_of("sg_fsm1", Script(), asked)
        machine = priced(machine, *[Usage(300, 100, 50)] * len(machine.trajectory.attempts))
        found += [broken(vote), broken(machine)] if n == 3 else [vote, machine]
    voting, stepwise = measure_costs(found)
    assert (voting.total, voting.first, voting.further, stepwise.total) == (840, 600, 120, 1250)
    assert part(render_report(found), "Comparison at equal cost")[1][6] == "6"
    assert measure_costs(found[6:]) == []


def broken(found: Outcome) -> Outcome:
    """The same, as if the last request had failed for good."""
    attempts = found.trajectory.attempts[:1]
    failed = replace(found.trajectory, attempts=attempts, answer="", stop_reason="failed")
    return replace(found, trajectory=failed, exact_match=0.0, f1=0.0)


def test_a_vote_that_was_asked_for_evidence_too_is_no_comparison_of_cost() -> None:
    facts = {"supporting_facts": [[2, 0]], "evidences": [["a", "b", "c"]]}
    script = Script(cot=[json.dumps({**json.loads(RIGHT), **facts})])
    found = [outcome_of("sg_fsm1", Script()), outcome_of("cot", script, evidence=True)]
    assert "Comparison at equal cost" not in render_report(found).files["methods.md"].decode()
    cited = [find(1, "Ors Velt", sentences=[1], evidence=["a", "b", "c"]),
             find(2, "Oru", sentences=[0], evidence=["a", "b", "c"])]  # fmt: skip
    alike = [outcome_of("sg_fsm1", Script(search=cited), evidence=True), found[1]]
    assert len(part(render_report(alike), "Comparison at equal cost")) == 2


def test_a_vote_that_was_shown_other_passages_is_no_comparison_of_cost() -> None:
    found = [outcome_of("sg_fsm1", Script()), outcome_of("cot", Script(cot=[RIGHT]))]
    assert len(part(render_report(found), "Comparison at equal cost")) == 2
    shown = [replace(found[0], conditions={"passages": "all"}), found[1]]
    assert "Comparison at equal cost" not in render_report(shown).files["methods.md"].decode()


def test_a_vote_and_nothing_else_is_no_comparison_of_cost() -> None:
    only = [o for o in run() if o.method in ("cot", "direct")]
    assert "Comparison at equal cost" not in render_report(only).files["methods.md"].decode()


# -------------------------------------------------------------------------------------------- pairs


def test_every_method_is_paired_with_every_other_whatever_its_options() -> None:
    kinds = {
        "direct": [{"evidence": False}],
        "cot": [{"samples": n, "evidence": False} for n in (1, 5, 20)],
        "react": [{"max_steps": 7}],
        "sg_fsm1": [{"iterations": n, "revisions": 2} for n in (3, 6)],
        "sg_fsm2": [{"iterations": 4, "revisions": 0, "evidence": True}],
        "sg_fsm_safe": [{"iterations": 5, "max_retries": 1, "on_exhausted": "drop"}],
        "safe": [{"max_steps": 10, "max_retries": 3}],
        "no_verification": [{"max_steps": 4}],
    }
    systems = [
        System.make(method, dict.fromkeys(METHODS[method].roles, "g"), options)
        for method, several in kinds.items()
        for options in several
    ]
    met = {frozenset((a.method, b.method)) for a, b in pair_systems(systems)}
    assert {frozenset(two) for two in combinations(kinds, 2)} <= met
    # One of a method with several options meets each of another that has none of them.
    votes = {dict(a.options)["samples"] for a, b in map(_cot_first, pair_systems(systems))
             if a.method == "cot" and b.method == "sg_fsm_safe"}  # fmt: skip
    assert votes == {1, 5, 20}


def _cot_first(pair: tuple[System, System]) -> tuple[System, System]:
    first, second = pair
    return (second, first) if second.method == "cot" else (first, second)


def test_pairs_are_tested_question_by_question(made: Report) -> None:
    rows = table(made, "tests.csv")
    met = {frozenset((r["method"], r["than_method"])) for r in rows if r["benchmark"] == "average"}
    methods = ("direct", "cot", "sg_fsm1", "sg_fsm_safe")
    assert {frozenset(two) for two in combinations(methods, 2)} <= met
    of = next(r for r in rows if {r["method"], r["than_method"]} == {"direct", "sg_fsm_safe"}
              and (r["benchmark"], r["metric"]) == ("musique", "exact_match"))  # fmt: skip
    assert (of["pairs"], of["unpaired"], of["delta"], of["test"]) == ("2", "0", "50.0", "mcnemar")
