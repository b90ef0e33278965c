"""Measures of prompting methods against the official scorers, written anew: code that shares nothing with ours."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.verified.evaluation_questions import read
from evaluators.comparison.systems import system_of
from evaluators.outcomes import grouped, read_outcomes
from evaluators.prompting.measures import measure_trajectory
from safe_stepwise.methods.prompting import PromptingOptions
from scripts import evaluate_stepwise
from tests import sizes
from tests.evaluators.prompting import official as files
from tests.makers.prompting import OTHER as PAGE
from tests.makers.prompting import outcome_of, question
from tests.safe_stepwise.methods.machines import Script

FILM = ("Dune Rain", ["It is a film.", " Dune Rain was directed by Ors Velt."])
MAN = ("Ors Velt", ["Ors Velt was born in Oru."])
OTHER = ("Low Tide", ["Low Tide is a film.", " It was shot in Kel."])
ASKED = "Where was the director of Dune Rain born?"
GOLD = [["Dune Rain", 1], ["Ors Velt", 0]]
TRIPLES = [["Dune Rain", "director", "Ors Velt"], ["Ors Velt", "place of birth", "Oru"]]
HOPS = [("Dune Rain >> director", "Ors Velt", 0), ("Where was #1 born?", "Oru", 1)]


def hotpotqa(id_: str) -> dict[str, Any]:
    return {"_id": id_, "question": f"{ASKED} ({id_})", "answer": "Oru", "type": "bridge",
            "level": "hard", "supporting_facts": GOLD, "context": [FILM, MAN, OTHER]}  # fmt: skip


def twowiki(id_: str) -> dict[str, Any]:
    own = {"type": "compositional", "evidences": TRIPLES}
    return {k: v for k, v in hotpotqa(id_).items() if k != "level"} | own


def musique(id_: str) -> dict[str, Any]:
    hops = [{"id": n, "question": q, "answer": a, "paragraph_support_idx": at}
            for n, (q, a, at) in enumerate(HOPS)]  # fmt: skip
    pages = [{"idx": n, "title": title, "paragraph_text": "".join(text), "is_supporting": n < 2}
             for n, (title, text) in enumerate((FILM, MAN, OTHER))]  # fmt: skip
    return {"id": id_, "question": f"{ASKED} ({id_})", "answer": "Oru", "answerable": True,
            "answer_aliases": ["Oru town"], "question_decomposition": hops,
            "paragraphs": pages}  # fmt: skip


ROWS = {"hotpotqa": hotpotqa, "2wikimultihopqa": twowiki, "musique": musique}


def said(answer: str, facts: list[list[int]], triples: list[list[str]]) -> str:
    known = {"supporting_facts": facts, "evidences": triples}
    return json.dumps({"answer": answer, "explain": "So it says.", **known})


def found(passage: int, answer: str, sentence: int, triple: list[str]) -> str:
    told = {"question": "So asked", "passage": passage, "answer": answer}
    return json.dumps({**told, "sentences": [sentence], "evidence": triple})


SIMPLE = '{"simple": true, "subquestion": null}'
SCRIPT = {
    "replies": [
        {"role": "direct", "contains": "(a)", "reply": said("Oru", [[1, 1], [2, 0]], TRIPLES)},
        {"role": "direct", "contains": "(b)",
         "reply": said("Oru by the Vel", [[1, 0], [2, 0], [3, 1]], TRIPLES[:1])},
        {"role": "direct", "contains": "(c)", "reply": "Well.\nAnswer: Oru"},
        {"role": "decompose", "contains": "(a)",
         "reply": '{"simple": false, "subquestion": "Who directed it?"}'},
        {"role": "decompose", "contains": "born there", "reply": SIMPLE},
        {"role": "decompose", "contains": "(b)", "reply": SIMPLE},
        {"role": "search", "contains": "born there",
         "reply": found(2, "Oru", 0, ["Ors Velt", "birthplace", "Oru"])},
        {"role": "search", "contains": "Who directed",
         "reply": found(1, "Ors Velt", 1, TRIPLES[0])},
        {"role": "search", "reply": found(2, "Oru", 0, ["Ors Velt", "birthplace", "Oru"])},
        {"role": "terminate",
         "reply": '{"question": "Who was born there?", "continue": true, "answer": null}'},
        {"role": "summarize", "reply": said("the Oru", [[2, 0]], TRIPLES[1:])},
    ],
    "default": "Nothing.",
}  # fmt: skip


@pytest.fixture(scope="module", params=[*ROWS])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A benchmark with three questions, and the folder that two methods of one answered in."""
    benchmark = request.param
    folder = tmp_path_factory.mktemp(benchmark)
    lines = [json.dumps(ROWS[benchmark](id_)) for id_ in "abc"]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "script.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    evaluate_stepwise.main(
        [f"--questions={folder / 'rows.jsonl'}", f"--benchmark={benchmark}", "--passages=all",
         "--method=direct", "--method=sg_fsm1", "--method=sg_fsm2", "--evidence",
         f"--generator=mock:{folder / 'script.json'}", f"--output={folder / 'out'}",
         f"--cache={folder / 'cache.sqlite'}"]
    )  # fmt: skip
    return benchmark, folder / "out"


# ------------------------------------------------------------------- the scorers, written anew


def plain(text: str, articles: bool = True) -> str:
    kept = "".join(c for c in text.lower() if c not in set(string.punctuation))
    kept = re.sub(r"\b(a|an|the)\b", " ", kept) if articles else kept
    return " ".join(kept.split())


def tokens(said: str, gold: str, closed: bool) -> tuple[float, float, float]:
    one, two = plain(said), plain(gold)
    if closed and one != two and {one, two} & {"yes", "no", "noanswer"}:
        return float(one == two), 0, 0
    left, right = one.split(), two.split()
    same = sum(min(n, Counter(right)[word]) for word, n in Counter(left).items())
    return float(one == two), same / len(left) if same else 0, same / len(right) if same else 0


def sets(said: set[Any], gold: set[Any]) -> tuple[float, float, float]:
    both = len(said & gold)
    return float(said == gold), both / len(said) if said else 0, both / len(gold)


def harmonic(precision: float, recall: float) -> float:
    return 2 / (1 / precision + 1 / recall) if precision and recall else 0


def official(benchmark: str, folder: Path, name: str) -> dict[str, float]:
    """Means of what the official scorer prints, from the files alone."""
    if benchmark == "musique":
        return official_musique(folder, name)
    said = json.loads((folder / name / f"{benchmark}.json").read_text())
    rows = json.loads((folder / "gold" / f"{benchmark}.json").read_text())
    file = folder / "gold" / f"{benchmark}_id_aliases.json"
    lines = file.read_text().splitlines()
    aliases = {one["Q_id"]: one["aliases"] + one["demonyms"] for one in map(json.loads, lines)}
    sums: Counter[str] = Counter()
    for row in rows:
        key = row["_id"]
        golds = [row["answer"], *aliases.get(row["answer_id"], [])]
        each = [tokens(said["answer"][key], gold, True) for gold in golds]
        parts = {"": tuple(map(max, zip(*each, strict=True)))}
        facts = {(t, n) for t, n in said["sp"][key]}
        parts["sp_"] = sets(facts, {(t, n) for t, n in row["supporting_facts"]})
        if "evidence" in said:
            named = {tuple(plain(p, False) for p in t) for t in said["evidence"][key]}
            parts["evi_"] = sets(named, {tuple(plain(p, False) for p in t) for t in row["evidences"]})
        whole = (1.0, 1.0, 1.0)
        for part in parts.values():
            whole = tuple(a * b for a, b in zip(whole, part, strict=True))  # type: ignore[assignment]
        for prefix, (match, precision, recall) in {**parts, "joint_": whole}.items():
            sums[f"{prefix}em"] += match
            sums[f"{prefix}f1"] += harmonic(precision, recall)
    return {measure: total / len(rows) for measure, total in sums.items()}


def official_musique(folder: Path, name: str) -> dict[str, float]:
    said, gold = (
        [json.loads(line) for line in (folder / of / "musique.jsonl").read_text().splitlines()]
        for of in (name, "gold")
    )
    assert [row["id"] for row in said] == [row["id"] for row in gold]
    sums: Counter[str] = Counter()
    for one, row in zip(said, gold, strict=True):
        answers = [row["answer"], *row["answer_aliases"]]
        found = [tokens(one["predicted_answer"], answer, False) for answer in answers]
        sums["em"] += max(match for match, _, _ in found)
        sums["f1"] += max(harmonic(p, r) for _, p, r in found)
        wanted = {page["idx"] for page in row["paragraphs"] if page["is_supporting"]}
        _, precision, recall = sets(set(one["predicted_support_idxs"]), wanted)
        sums["support_f1"] += harmonic(precision, recall)
    return {measure: total / len(gold) for measure, total in sums.items()}


PARTS = {"sp_": "supporting_facts", "evi_": "evidence", "joint_": "joint"}


def test_official_scores_of_what_was_answered_are_those_of_the_results(run: Any) -> None:
    benchmark, output = run
    printed = check_official(benchmark, output, output.parent / "rows.jsonl")
    assert len(printed) == 3
    assert all(0 < value < 1 for scored in printed for measure, value in scored.items() if measure.endswith("f1"))


def check_official(benchmark: str, output: Path, rows: Path) -> list[dict[str, float]]:
    """What the official scorers print of each run, which is what its results say."""
    results, printed = json.loads((output / "results.json").read_text()), []
    by_system = grouped(read_outcomes(output), system_of)
    size = len(next(iter(by_system.values())))
    questions = {q.id: q for q in read(str(rows), [benchmark], limit=size, all_passages=True).questions}
    for one, outcomes in zip(results["runs"], by_system.values(), strict=True):
        assert {outcome.method for outcome in outcomes} == {one["method"]}
        folder = output.parent / f"official-{one['method']}"
        files.write("run", [(questions[outcome.question_id], outcome) for outcome in outcomes], folder)
        scored = official(benchmark, folder, "run")
        printed.append(scored)
        ours = one["benchmarks"][benchmark]
        assert scored["em"] == pytest.approx(ours["exact_match"])
        assert scored["f1"] == pytest.approx(ours["f1"])
        measured = ours["prompting"]
        if benchmark == "musique":
            assert scored["support_f1"] == pytest.approx(measured["supporting_passages"]["f1"])
        else:
            for prefix in (p for p in PARTS if f"{p}em" in scored):
                part = measured[PARTS[prefix]]
                assert scored[f"{prefix}em"] == pytest.approx(part["exact_match"])
                assert scored[f"{prefix}f1"] == pytest.approx(part["f1"])
            assert ("evi_f1" in scored) == (benchmark == "2wikimultihopqa")
    return printed


def test_other_wordings_of_an_answer_count_for_the_official_scorer_too(tmp_path: Path) -> None:
    asked = question(aliases=("Oru town",))
    reply = json.dumps({"answer": "Oru town", "explain": "So."})
    one = outcome_of("direct", Script(direct=[reply]), asked)
    assert one.exact_match == 1
    for given, expected in ((asked, 1), (question(), 0)):
        files.write("direct", [(given, one)], tmp_path / "p")
        assert official("2wikimultihopqa", tmp_path / "p", "direct")["em"] == expected


def test_a_passage_that_was_retrieved_costs_as_much_as_any_other(tmp_path: Path) -> None:
    asked = question("musique")
    trajectory = outcome_of("sg_fsm1", Script(), asked).trajectory
    last = max(n for n, a in enumerate(trajectory.attempts) if a.state == "q2")
    attempts = list(trajectory.attempts)
    read = attempts[last].read
    cited = {**read, "value": {**read["value"], "passage": 4}}
    attempts[last] = replace(attempts[last], read=cited)
    attempts[0] = replace(attempts[0], retrieved=(PAGE,))
    brought = replace(trajectory, attempts=tuple(attempts))
    one = replace(outcome_of("sg_fsm1", Script(), asked), trajectory=brought)
    files.write("sg_fsm1", [(asked, one)], tmp_path / "p")
    ours = measure_trajectory(asked, brought, PromptingOptions(), "musique")["supporting_passages"]
    assert ours["precision"] == 1 / 2
    assert official_musique(tmp_path / "p", "sg_fsm1")["support_f1"] == ours["f1"]


def test_salvaged_answers_are_counted_beside_strict_ones(run: Any) -> None:
    _, output = run
    salvaged = json.loads((output / "results.json").read_text())["runs"][0]["all"]["prompting"]
    assert (salvaged["strict"]["exact_match"], salvaged["salvaged"]["exact_match"]) == (1 / 3, 2 / 3)
    assert salvaged["format"]["counts"] == {"first": 2, "revised": 0, "salvaged": 1, "never": 0}


@pytest.mark.parametrize("benchmark", [*ROWS])
def test_real_rows_score_the_same(benchmark: str, real_data: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    evaluate_stepwise.main(
        [f"--questions={real_data / benchmark}_dev.jsonl", f"--benchmark={benchmark}",
         "--passages=all", f"--limit={sizes.size(25, 8)}", "--method=cot", "--method=react", "--method=sg_fsm1",
         "--method=sg_fsm2", "--method=sg_fsm_safe", "--evidence", "--verifier=symbolic",
         "--generator=symbolic:format=0.1,value=0.2,paragraph=0.1,lucky=0.1,seed=1",
         f"--output={output}", f"--cache={tmp_path / 'cache.sqlite'}"]
    )  # fmt: skip
    for one in check_official(benchmark, output, real_data / f"{benchmark}_dev.jsonl"):
        assert 0 < one["f1"] < 1
