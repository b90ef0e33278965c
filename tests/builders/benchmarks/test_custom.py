"""A benchmark of one's own: any usual form of rows, and a card that says nothing but what is of the file."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset

from builders.benchmarks.custom import Terms, describe
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify as judge
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.store.names import NOISE_LABELS, REJECTS, RESULTS, VERIFIED, VERIFIER_STEPS
from safe_stepwise.store.rows import own_columns
from scripts import build_verified, build_verifier_steps, evaluate_stepwise, verify

PAGES = {
    "Dune Rain": ["Dune Rain is a 1954 film.", "It was directed by Ors Velt."],
    "Ors Velt": ["Ors Velt was a director.", "Ors Velt was born in Oru."],
    "Salt Clock": ["The Salt Clock is a novel.", "It was written by Ana Vorr."],
}
TEXTS = {title: " ".join(sentences) for title, sentences in PAGES.items()}
ASKED = (
    ("Where was the director of Dune Rain born?", "Oru", ("Dune Rain", "Ors Velt")),
    ("Who wrote the novel Salt Clock?", "Ana Vorr", ("Salt Clock",)),
    ("Who wrote the novel Salt Clock in verse?", "Ilse Bram", ("Salt Clock",)),
)


def lines(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def strings(folder: Path) -> Path:
    return lines(
        folder / "mine.jsonl", [{"question": q, "answer": a, "contexts": [*TEXTS.values()]} for q, a, _ in ASKED]
    )


def dicts(folder: Path) -> Path:
    rows = [
        {
            "qid": n,
            "query": question,
            "answers": [answer, answer.upper()],
            "documents": [{"title": t, "text": x, "is_relevant": t in gold} for t, x in TEXTS.items()],
        }
        for n, (question, answer, gold) in enumerate(ASKED)
    ]
    (folder / "mine.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return folder / "mine.json"


def hotpot_like(folder: Path) -> Path:
    rows = [
        {
            "_id": f"q{n}",
            "question": question,
            "answer": answer,
            "context": [[title, sentences] for title, sentences in PAGES.items()],
            "supporting_facts": [[title, 1] for title in gold],
        }
        for n, (question, answer, gold) in enumerate(ASKED)
    ]
    return lines(folder / "mine.jsonl", rows)


def squad_like(folder: Path) -> Path:
    rows = [
        {
            "id": f"q{n}",
            "title": gold[0],
            "context": " ".join(TEXTS[title] for title in gold),
            "question": question,
            "answers": {"text": [answer], "answer_start": [0]},
        }
        for n, (question, answer, gold) in enumerate(ASKED)
    ]
    return lines(folder / "mine.jsonl", rows)


def table(folder: Path) -> Path:
    with (folder / "mine.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "Ground truth", "context_1", "context_2", "context_3"])
        writer.writerows([question, answer, *TEXTS.values()] for question, answer, _ in ASKED)
    renamed = (folder / "mine.csv").read_text(encoding="utf-8").replace("Ground truth", "ground truth", 1)
    (folder / "mine.csv").write_text(renamed, encoding="utf-8")
    return folder / "mine.csv"


def parquet(folder: Path) -> Path:
    rows = [
        {
            "question": question,
            "answer": answer,
            "passages": {"title": [*TEXTS], "text": [*TEXTS.values()]},
            "gold_ids": [[*TEXTS].index(title) for title in gold],
        }
        for question, answer, gold in ASKED
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "mine.parquet")
    return folder / "mine.parquet"


SHAPES = (strings, dicts, hotpot_like, squad_like, table, parquet)
BORROWED = re.compile(r"HotpotQA|MuSiQue|2Wiki|Wikipedia|cc-by|CC BY|yang2018|SAFE papers|authors' published", re.I)


@pytest.mark.parametrize("write", SHAPES)
def test_a_file_is_verified_and_its_card_says_nothing_of_others(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    verify.main([str(write(tmp_path)), "--output", str(output), "--workers=1"])
    shown = capsys.readouterr().out
    assert re.search(r"question +(question|query|Question)\n", shown)
    labeled = load_dataset(str(output / VERIFIED), "mine_labeled", split="validation", cache_dir=str(tmp_path / "c"))
    assert [labeled.features["noise_type"].int2str(n) for n in labeled["noise_type"]] == [
        *("none", "none"),
        "missing_evidence",
    ]
    assert labeled["answer"] == [answer for _, answer, _ in ASKED]
    assert len(set(labeled["id"])) == 3
    assert labeled[0]["passages"][0]["title"] == "Dune Rain"
    sample = load_dataset(str(output / VERIFIED), "mine_eval", split="test", cache_dir=str(tmp_path / "c"))
    assert sample.num_rows == 2
    for dataset in (VERIFIED, NOISE_LABELS):
        card = (output / dataset / "README.md").read_text(encoding="utf-8")
        assert yaml.safe_load(card.split("---")[1])["license"] == "unknown"
        assert BORROWED.findall(card.replace("another benchmark", "")) == []
        assert "| mine | `unknown` | unknown |" in card
        assert "Its licence is unknown" in card
        assert "- mine annotates no triples." in card


_OF_OTHERS = ("generator", "report/", "Multi-hop questions", "made-up-", "name its version", "No new version")


@pytest.mark.parametrize("has_all", [True, False])
def test_a_card_says_only_what_is_so_of_the_file(has_all: bool, tmp_path: Path) -> None:
    row: dict[str, Any] = {"question": ASKED[0][0], "answer": "Oru", "contexts": [*TEXTS.values()][:2]}
    if has_all:
        row["contexts"] = [{"title": title, "sentences": PAGES[title]} for title in ("Dune Rain", "Ors Velt")]
        row["triples"] = [["Dune Rain", "director", "Ors Velt"], ["Ors Velt", "place of birth", "Oru"]]
    file = lines(tmp_path / "mine.jsonl", [row])
    verify.main([str(file), "--output", str(tmp_path / "out"), "--workers=1"])
    for dataset in (VERIFIED, NOISE_LABELS):
        card = (tmp_path / "out" / dataset / "README.md").read_text(encoding="utf-8").partition("\n# ")[2]
        assert [words for words in _OF_OTHERS if words in card] == []
        for words in ("came as one text", "without a title", "annotates no triples", "no\nlink", "no link leads"):
            assert not (has_all and words in card), words
        assert has_all or "came as one text" in card
    verify.main([str(file), "--output", str(tmp_path / "2"), "--workers=1", "--version=v0.2.0"])
    card = (tmp_path / "2" / VERIFIED / "README.md").read_text(encoding="utf-8")
    assert "name its version: `safe-verified-multihop` v0.2.0" in card


def test_what_the_user_says_is_on_the_card(tmp_path: Path) -> None:
    (tmp_path / "cite.bib").write_text("@misc{mine, title = {Mine}}", encoding="utf-8")
    terms = ["--name=films.v2", "--license=mit", "--homepage=https://example.org", f"--citation={tmp_path}/cite.bib"]
    verify.main([str(dicts(tmp_path)), *terms, "--output", str(tmp_path / "out"), "--workers=1"])
    verify.main([str(strings(tmp_path)), "--name=other", "--output", str(tmp_path / "out"), "--workers=1"])
    card = (tmp_path / "out" / VERIFIED / "README.md").read_text(encoding="utf-8")
    assert "| films.v2 | `mit` | https://example.org |" in card
    assert "| other | `unknown` | unknown |" in card
    assert "@misc{mine, title = {Mine}}" in card
    assert yaml.safe_load(card.split("---")[1])["license"] == ["mit", "unknown"]


def test_fields_name_what_is_not_found(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "odd.jsonl", [{"Frage": q, "Antwort": a, "contexts": [*TEXTS.values()]} for q, a, _ in ASKED]
    )
    with pytest.raises(
        UserError, match=r"no column is known to hold question and answer\. It has Frage, Antwort, contexts; "
    ):
        describe(str(file), "validation", Terms())
    fields = tmp_path / "fields.yaml"
    fields.write_text("question: Frage\nanswer: Antwort\n", encoding="utf-8")
    own = describe(str(file), "validation", Terms(fields=fields))
    assert own.columns == {"question": ("Frage",), "answer": ("Antwort",), "passages": ("contexts",)}
    fields.write_text("question: Frege\nanswer: Antwort\n", encoding="utf-8")
    with pytest.raises(UserError, match="no row has the column 'Frege'"):
        describe(str(file), "validation", Terms(fields=fields))
    fields.write_text("qestion: Frage\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"the field 'qestion' is not known; did you mean question\?"):
        describe(str(file), "validation", Terms(fields=fields))


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (Terms(name="My QA"), "--name 'My QA': write up to 60 letters"),
        (Terms(name="mine_eval"), "--name 'mine_eval'"),
        (Terms(name="../mine"), "--name '../mine'"),
        (Terms(name="musique"), "is that of a benchmark known here"),
        (Terms(license="CC BY 4.0"), "--license 'CC BY 4.0': write a Hub licence id"),
        (Terms(homepage="javascript:alert(1)"), "--homepage 'javascript:alert(1)': write an address"),
    ],
)
def test_bad_terms_are_refused(tmp_path: Path, terms: Terms, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        describe(str(strings(tmp_path)), "validation", terms)


def test_a_citation_stays_in_its_block(tmp_path: Path) -> None:
    (tmp_path / "cit.bib").write_text("@misc{mine}\n```\n<script>alert(1)</script>\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"cit\.bib: has ```"):
        describe(str(strings(tmp_path)), "validation", Terms(citation=tmp_path / "cit.bib"))


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("question,answer,answer,context\na?,b,c,d b\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"mine\.csv:1: names the column 'answer' twice"):
        describe(str(tmp_path / "mine.csv"), "validation", Terms())


def test_a_row_without_passages_is_rejected_and_the_others_are_judged(tmp_path: Path) -> None:
    rows = [{"question": q, "answer": a, "contexts": [*TEXTS.values()]} for q, a, _ in ASKED]
    file = lines(tmp_path / "mine.jsonl", [*rows, {"question": "Who?", "answer": "Ana Vorr"}])
    verify.main([str(file), "--output", str(tmp_path / "out"), "--workers=1"])
    rejects = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text("utf-8").splitlines()]
    assert [(reject["location"], reject["reason"]) for reject in rejects] == [
        ("mine.jsonl:4", "missing field 'passages'")
    ]


@pytest.mark.parametrize("pages", [[], "", None])
def test_a_file_whose_passages_are_empty_is_told_so(pages: Any, tmp_path: Path) -> None:
    file = lines(tmp_path / "mine.jsonl", [{"question": "Who?", "answer": "Ana Vorr", "passages": pages}])
    with pytest.raises(UserError, match=r"mine\.jsonl: the column 'passages' is empty in all rows that were read$"):
        describe(str(file), "validation", Terms())
    file = lines(tmp_path / "mine.jsonl", [{"Frage": "Who?", "answer": "Ana Vorr", "passages": pages}])
    with pytest.raises(UserError, match=r"hold question\. It has Frage, .*; the column 'passages' is empty"):
        describe(str(file), "validation", Terms())


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Which of Dune Rain and Salt Clock is the longest?", "Salt Clock", "undecided"),
        ("Which came first, Dune Rain or Salt Clock?", "Dune Rain", "undecided"),
        ("Which of Dune Rain and Salt Clock was published first?", "Salt Clock", "wrong_answer"),
        ("How many copies of Salt Clock were sold?", 12450, "none"),
    ],
)
def test_a_choice_or_a_number_of_a_file_without_triples(
    question: str, answer: Any, expected: str, tmp_path: Path
) -> None:
    pages = ["Dune Rain was published in 1901.", "Salt Clock was published in 1954. It sold 12,450 copies."]
    contexts = [{"title": page[:10].strip(), "text": page} for page in pages]
    rows = [{"question": question, "answer": answer, "contexts": contexts}]
    own = describe(str(lines(tmp_path / "mine.jsonl", rows)), "validation", Terms())
    question_of_row = own.parse(rows[0], "validation")
    assert asyncio.run(judge(question_of_row, AnnotationsTeacher())).noise_type == expected


def test_a_yes_that_compares_nothing_is_undecided(tmp_path: Path) -> None:
    row = {
        "question": "Was Ors Velt born in Lom?",
        "answer": "yes",
        "contexts": [TEXTS["Dune Rain"], TEXTS["Ors Velt"]],
    }
    file = lines(
        tmp_path / "mine.jsonl", [row, {"question": ASKED[0][0], "answer": "Oru", "contexts": [*TEXTS.values()]}]
    )
    verify.main([str(file), "--output", str(tmp_path / "out"), "--workers=1"])
    folder = str(tmp_path / "out" / VERIFIED)
    labeled = load_dataset(folder, "mine_labeled", split="validation", cache_dir=str(tmp_path / "c"))
    assert [labeled.features["noise_type"].int2str(n) for n in labeled["noise_type"]] == ["undecided", "none"]


def test_terms_go_with_an_own_benchmark_alone(tmp_path: Path) -> None:
    what = ["--benchmark=musique", "--name=mine", f"--input={strings(tmp_path)}", "--split=train"]
    with pytest.raises(UserError, match="--name: describes a benchmark of your own; give it with --benchmark custom"):
        build_verified.main([*what, "--teacher=annotations", f"--output={tmp_path}/out"])


@pytest.mark.parametrize(
    ("facts", "gold"),
    [
        ([["Dune Rain", 1], ["Ors Velt", 1]], {0, 1}),
        ([{"title": "Ors Velt", "sent_id": 0}], {1}),
        ({"title": ["Ors Velt", "Salt Clock"], "sent_id": [0, 0]}, {1, 2}),
        (["Salt Clock"], {2}),
        ([0, 2], {0, 2}),
        ([[1, 0]], {1}),
        ('[["Ors Velt", 0]]', {1}),
        (["Ors Velt was born in Oru."], {1}),
    ],
)
def test_supporting_facts_mark_the_gold_passages(facts: Any, gold: set[int]) -> None:
    row = {"question": "?", "answer": "!", "passages": [{"title": t, "text": x} for t, x in TEXTS.items()]}
    passages = own_columns({**row, "supporting_facts": facts})["passages"]
    assert {n for n, passage in enumerate(passages) if passage.get("is_gold")} == gold


@pytest.mark.parametrize("facts", [[3], [-1], ["Grey Meadow"], [[7, 0]]])
def test_a_fact_of_no_passage_is_refused(facts: Any) -> None:
    row = {"question": "?", "answer": "!", "passages": [*TEXTS.values()], "supporting_facts": facts}
    with pytest.raises(RowError, match=r"supporting fact 1 names .*: no title, number"):
        own_columns(row)


def test_a_mapping_of_titles_and_hops_by_index_are_read() -> None:
    row = own_columns({"question": "?", "answers": ["a", 7], "context": TEXTS})
    assert [page["title"] for page in row["passages"]] == [*TEXTS]
    assert row["references"] == ["a", "7"]
    paragraphs = [{"idx": 5, "title": "Oru", "paragraph_text": "Oru.", "is_supporting": True}]
    hops = [{"question": "Where?", "answer": "Oru", "paragraph_support_idx": 5}]
    own = own_columns({"question": "?", "answer": "Oru", "paragraphs": paragraphs, "question_decomposition": hops})
    assert own["decomposition"] == [{"question": "Where?", "answer": "Oru", "passage": 1}]


SQUAD: dict[str, Any] = {
    "version": "1.1",
    "data": [
        {
            "title": title,
            "paragraphs": [
                {
                    "context": TEXTS[title],
                    "qas": [
                        {"id": f"q{n}", "question": q, "answers": [{"text": a, "answer_start": 0}] * 2}
                        for n, (q, a, gold) in enumerate(ASKED)
                        if gold[-1] == title
                    ],
                }
            ],
        }
        for title in PAGES
    ],
}


def rejected(output: Path) -> list[tuple[str, str | None, str]]:
    content = (output / REJECTS).read_text(encoding="utf-8")
    return [(row["location"], row["id"], row["reason"]) for row in map(json.loads, content.splitlines())]


@pytest.mark.parametrize("indent", [None, 2])
def test_the_file_of_squad_is_read_as_it_is(indent: int | None, tmp_path: Path) -> None:
    (file := tmp_path / "mine.json").write_text(json.dumps(SQUAD, indent=indent), encoding="utf-8")
    verify.main([str(file), "--output", str(tmp_path / "out"), "--workers=1"])
    labeled = load_dataset(
        str(tmp_path / "out" / VERIFIED), "mine_labeled", split="validation", cache_dir=str(tmp_path)
    )
    assert labeled["id"] == ["q0", "q1", "q2"]
    assert labeled["aliases"] == [[], [], []]  # an answer that stands twice is one
    assert labeled[0]["passages"][0]["title"] == "Ors Velt"
    bad = {"id": 7, "question": "Who?", "answers": [], "is_impossible": True}
    damaged = {"data": [*SQUAD["data"], {"paragraphs": [{"context": "x", "qas": [bad, 5]}, 3]}, None]}
    file.write_text(json.dumps(damaged), encoding="utf-8")
    verify.main([str(file), "--output", str(tmp_path / "out"), "--workers=1"])
    no_object = "not a JSON object: a row is an object with named fields"
    assert rejected(tmp_path / "out") == [
        ("mine.json:data[3].paragraphs[0].qas[0]", "7", "it has no answer: what counts as right has to be known"),
        ("mine.json:data[3].paragraphs[0].qas[1]", None, no_object),
        ("mine.json:data[3].paragraphs[1].qas[0]", None, no_object),
        ("mine.json:data[4].paragraphs[0].qas[0]", None, no_object),
    ]


def test_a_row_a_line_may_have_the_first_key_of_squad(tmp_path: Path) -> None:
    rows = [{"data": [1], "question": q, "answer": a, "contexts": [*TEXTS.values()]} for q, a, _ in ASKED]
    for number, file in enumerate((lines(tmp_path / "many.jsonl", rows), lines(tmp_path / "one.jsonl", rows[:1]))):
        verify.main([str(file), "--output", str(tmp_path / str(number)), "--workers=1"])
        assert not (tmp_path / str(number) / REJECTS).exists()


def test_a_bad_row_of_a_table_is_one_reject_with_its_line(tmp_path: Path) -> None:
    good = table(tmp_path).read_bytes()
    bad = (
        b'Who? a,b,c,d,e,f\r\n"Who" is it,x,y\r\n"Who is\r\nit" now,x\r\nWh\xff?,Oru,Oru.\r\n\r\nWho is it?,,Oru.\r\n'
    )
    (tmp_path / "mine.csv").write_bytes(good + bad)
    verify.main([str(tmp_path / "mine.csv"), "--output", str(tmp_path / "out"), "--workers=1"])
    assert rejected(tmp_path / "out") == [
        ("mine.csv:5", None, "has 6 cells, more than the 5 columns"),
        ("mine.csv:6", None, "no CSV: ',' expected after '\"'"),
        ("mine.csv:8", None, "no CSV: ',' expected after '\"' (lines 7 to 8)"),
        ("mine.csv:9", None, "not UTF-8"),
        ("mine.csv:11", None, "it has no answer: what counts as right has to be known"),
    ]
    (tmp_path / "mine.csv").write_bytes(good + b'"Who is it?,Oru,Oru.\r\n' + bad[:9])
    with pytest.raises(UserError, match=r"mine.csv:5: a quotation mark opens here or below, and none closes it"):
        verify.main([str(tmp_path / "mine.csv"), "--output", str(tmp_path / "no"), "--workers=1"])
    (tmp_path / "mine.csv").write_bytes(good + bad)
    options = ["--benchmark=custom", f"--input={tmp_path}/mine.csv", "--split=train", "--teacher=annotations"]
    with pytest.raises(UserError, match=r"mine.csv:5: has 6 cells, .*; mend the row, or run with --on-error keep"):
        build_verified.main([*options, f"--output={tmp_path / 'stops'}", "--workers=1"])


def test_the_sample_has_every_row_however_many_passages_are_gold(tmp_path: Path) -> None:
    rest = [f"Placeholder {n} is a village." for n in range(12)]
    rows = [{"question": q, "answer": a, "contexts": [*TEXTS.values(), *rest]} for q, a, _ in ASKED]
    file = lines(tmp_path / "mine.jsonl", rows)
    verify.main([str(file), "--output", str(tmp_path / "out"), "--workers=1"])
    sample = load_dataset(str(tmp_path / "out" / VERIFIED), "mine_eval", split="test", cache_dir=str(tmp_path / "c"))
    assert [len(passages) for passages in sample["passages"]] == [15, 15]  # nothing says which are gold
    card = (tmp_path / "out" / VERIFIED / "README.md").read_text(encoding="utf-8")
    assert "with at most 15 passages each" in card
    verify.main([str(file), "--evaluation-passages=10", "--output", str(tmp_path / "ten"), "--workers=1"])
    card = (tmp_path / "ten" / VERIFIED / "README.md").read_text(encoding="utf-8")
    assert "excludes 2 verified rows because they cannot have at most 10 passages" in card


def test_steps_and_scores_are_made_of_it(tmp_path: Path) -> None:
    films, towns = (
        ("Dune Rain", "Glass Hour", "Low Harbour", "Grey Meadow"),
        ("Oru", "Brelstad", "Korwick", "Talmouth"),
    )
    rows = []
    for n, (film, town) in enumerate(zip(films, towns, strict=True)):
        person = f"Tomek Vel{'abcd'[n]}in"
        texts = {film: f"{film} is a film. It was directed by {person}.", person: f"{person} was born in {town}."}
        rest = {f"{other} (village)": f"{other} is a village." for other in towns if other != town}
        rows.append({
            "question": f"Where was the director of {film} born?", "answer": town, "passages": {**texts, **rest},
            "triples": [[film, "director", person], [person, "place of birth", town]], "supporting": [film, person],
        })  # fmt: skip
    file, output = lines(tmp_path / "films.jsonl", rows), tmp_path / "out"
    verify.main([str(file), "--split=train", "--output", str(output), "--workers=1"])
    steps = ["--verified", str(output), "--output", str(output), "--rows=12", "--teacher=annotations", "--workers=1"]
    build_verifier_steps.main(steps)
    card = (output / VERIFIER_STEPS / "README.md").read_text(encoding="utf-8")
    assert "| films | `unknown` | unknown |" in card
    assert BORROWED.findall(card) == []
    verify.main([str(file), "--output", str(tmp_path / "sample"), "--workers=1"])
    players = "--generator=symbolic --verifier=symbolic --judge=symbolic --method=safe".split()
    cache = ["--cache", str(tmp_path / "replies.sqlite")]
    for number, questions in enumerate(([str(tmp_path / "sample")], [str(file), "--benchmark=films"])):
        folder = tmp_path / f"results-{number}"
        evaluate_stepwise.main(["--questions", *questions, *players, "--output", str(folder), *cache])
        scores = json.loads((folder / RESULTS).read_bytes())["runs"][0]["benchmarks"]
        assert scores["films"]["f1"] == 1.0


def test_gold_marks_that_come_late_are_rejected_not_overwritten(tmp_path: Path) -> None:
    pages = [{"title": title, "text": text} for title, text in TEXTS.items()]
    rows: list[dict[str, Any]] = [{"question": q, "answer": a, "passages": pages} for q, a, _ in ASKED]
    file = lines(tmp_path / "late.jsonl", [rows[0]] * 100)
    benchmark = describe(str(file), "validation", Terms())
    assert all(page.is_gold for page in benchmark.parse(rows[1], "validation").passages)
    marked = {**rows[1], "passages": [{**pages[0], "is_gold": True}, *pages[1:]]}
    with pytest.raises(RowError, match="marks gold passages, but none of the first 100 rows does"):
        benchmark.parse(marked, "validation")
