"""Chains in other tools' formats: nothing is lost that both have, and a damaged row costs one line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.commands.main import carry_out
from safe_stepwise.errors import UserError
from safe_stepwise.formats import FORMATS
from safe_stepwise.formats.chains import Chain, ChainStep, check_chain
from safe_stepwise.records import Passage
from tests.sizes import size

WORDS = (
    st.text(st.sampled_from("abc é7.,-'\"<>{}[]()#:\\/\nки馬"), min_size=1, max_size=24).map(str.strip).filter(bool)
)
LINES = WORDS.map(lambda text: " ".join(text.split()))
QUERIES = st.lists(LINES, max_size=2, unique=True).map(tuple)
PAGES = st.lists(st.builds(lambda t, s: Passage(t.strip('" '), (s,)), LINES, LINES), max_size=3, unique=True)


@st.composite
def chains(draw: Any, labels: Sequence[Any] = (1, 0, -1, None), texts: Any = WORDS) -> Chain:
    pages = tuple(draw(PAGES))
    numbers = sorted(draw(st.lists(st.integers(0, len(pages)), min_size=1, max_size=4)))
    steps = tuple(ChainStep(draw(texts), known, draw(QUERIES), draw(st.sampled_from(labels))) for known in numbers)
    chain = Chain(draw(LINES), steps, draw(LINES), pages, tuple(draw(st.lists(LINES, max_size=2))), draw(LINES))
    return replace(chain, is_right=draw(st.sampled_from((True, False, None))), model=draw(st.sampled_from(("", "M"))))


def there_and_back(name: str, chain: Chain) -> Chain:
    (row,) = FORMATS[name].write(chain)
    return FORMATS[name].read(json.loads(json.dumps(row)))


@given(chains())
def test_our_own_rows_lose_nothing(chain: Chain) -> None:
    assert there_and_back("steps", chain) == chain


@given(chains())
def test_chats_keep_what_was_written_sought_and_known(chain: Chain) -> None:
    for name in ("openai", "agentprocessbench"):
        back = there_and_back(name, chain)
        last = max(step.known_passages or 0 for step in chain.steps)
        assert (back.question, back.references) == (chain.question, chain.references)
        assert (back.prediction, back.is_right) == (chain.prediction, chain.is_right)
        assert [page.text for page in back.passages] == [page.text for page in chain.passages[:last]]
        for step, copied in zip(chain.steps, back.steps, strict=True):
            label = None if name == "openai" else step.label
            assert replace(copied, key="") == replace(step, label=label)


@given(chains(texts=LINES.filter(lambda text: "<" not in text and "(" not in text)))
def test_search_r1_keeps_text_searches_and_passages(chain: Chain) -> None:
    pages = tuple(p for p in chain.passages if not set("<()") & set(p.title + p.text))
    steps = tuple(replace(s, known_passages=min(s.known_passages or 0, len(pages)), label=None) for s in chain.steps)
    steps = tuple(replace(s, searches=tuple(q for q in s.searches if "<" not in q)) for s in steps)
    chain = replace(chain, passages=pages, steps=steps)
    back = there_and_back("search-r1", chain)
    assert [p.text for p in back.passages] == [p.text for p in pages[: max(s.known_passages or 0 for s in steps)]]
    # Steps between two results are one turn.
    turns = {s.known_passages: [o for o in steps if o.known_passages == s.known_passages] for s in steps}
    assert [s.known_passages for s in back.steps] == [*turns]
    for turn, step in zip(turns.values(), back.steps, strict=True):
        assert step.text.split() == " ".join(s.text for s in turn).split()
        assert step.searches == tuple(q for s in turn for q in s.searches)


@given(chains(labels=(1, -1), texts=LINES))
def test_step_labels_survive_where_each_step_has_one(chain: Chain) -> None:
    texts = [step.shown_text for step in chain.steps]
    for name in ("prm", "trl-stepwise"):
        if name == "prm" and any("ки" in text for text in (chain.question, *texts)):
            with pytest.raises(ValueError, match="which marks a step"):
                list(FORMATS[name].write(chain))
            continue
        back = there_and_back(name, chain)
        assert back.question == chain.question
        assert [(s.text, s.label) for s in back.steps] == [(s.shown_text, s.label) for s in chain.steps]
    if not any("ки" in text for text in (chain.question, *texts)):  # Math-Shepherd's own label is the text itself
        (row,) = FORMATS["prm"].write(chain)
        by_text = FORMATS["prm"].read({"input": row["input"], "label": row["label"]})
        assert [step.label for step in by_text.steps] == [step.label for step in chain.steps]


@given(chains(labels=(1, -1)))
def test_processbench_keeps_the_first_wrong_step(chain: Chain) -> None:
    back = there_and_back("processbench", chain)
    labels = [step.label for step in chain.steps]
    end = labels.index(-1) + 1 if -1 in labels else len(labels)
    assert [s.label for s in back.steps] == [*labels[:end], *[None] * (len(labels) - end)]
    assert (back.id, back.model, back.is_right) == (chain.id, chain.model, chain.is_right)
    assert [step.text for step in back.steps] == [step.shown_text for step in chain.steps]


@given(chains(labels=(1, 0, -1)))
def test_claims_are_about_what_was_known(chain: Chain) -> None:
    rows = list(FORMATS["claims"].write(chain))
    assert [row["claim"] for row in rows] == [step.shown_text for step in chain.steps]
    for row, step in zip(rows, chain.steps, strict=True):
        assert all(page.text in row["doc"] for page in chain.known_to(step))
        (claim,) = FORMATS["claims"].read(row).steps
        assert claim.label == (-1 if step.label == -1 else 1)


def test_a_chain_of_thought_is_split_at_its_numbers() -> None:
    read = FORMATS["plain"].read
    row = {"question": "Where is Oru?", "passages": ["Oru is in Marn."], "response": ""}
    numbered = "<think>Hm.</think>**Step 1:** Oru is in Marn.\n**Step 2:** So the answer is Marn."
    assert [s.text for s in read({**row, "response": numbered}).steps] == ["Oru is in Marn.", "So the answer is Marn."]
    assert [s.text for s in read({**row, "response": "Oru is in Marn. It is old."}).steps] == [
        "Oru is in Marn.",
        "It is old.",
    ]


@pytest.mark.parametrize(
    ("result", "pages"),
    [
        ("[1] Oru: It is old.", [("", "[1] Oru: It is old.")]),
        ('{"error": null, "results": [{"title": "Oru", "content": "It is old."}]}', [("Oru", "It is old.")]),
        ('{"organic": [{"title": "Oru", "snippet": "It is old."}]}', [("Oru", "It is old.")]),
        ('{"documents": ["It is old.", "It is far."]}', [("", "It is old."), ("", "It is far.")]),
        ('{"name": "Ana", "manager": "Edo"}', [("", '{"name": "Ana", "manager": "Edo"}')]),
        ('{"error": "no index"}', []),
        ("1954", [("", "1954")]),
        ("[]", []),
        (" ", []),
    ],
)
def test_no_result_of_a_tool_is_lost(result: str, pages: list[tuple[str, str]]) -> None:
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "s", "arguments": '{"q": "Oru"}'}}]}
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "Is it old?"}]},
        call,
        {"role": "tool", "content": result},
    ]
    chain = FORMATS["openai"].read({"messages": [*turns, {"role": "assistant", "content": "Yes."}]})
    assert chain.question == "Is it old?"
    assert [(page.title, page.text) for page in chain.passages] == pages
    assert [(step.shown_text, step.known_passages) for step in chain.steps] == [
        ("Search: Oru", 0),
        ("Yes.", len(pages)),
    ]


def test_search_r1s_own_habits_are_read() -> None:
    complaint = (
        "My previous action is invalid. To search, put the query between <search> and </search>. Let me try again."
    )
    response = (
        "<|im_start|>user\nUse <search> query </search>.<|im_end|>\n<|im_start|>assistant\n<think>Look.</think>\n"
        f'{complaint}<search>Oru</search><information>Seen.\nDoc 1(Title: "Oru (town)") It is old.\nDoc 2(Title: Vel) '
        "It is far.</information><think>Oru is old.</think><answer>old</answer>"
    )
    chain = FORMATS["search-r1"].read({"question": "Is it old?", "response": response, "golden_answers": ["old"]})
    assert [(p.title, p.text) for p in chain.passages] == [
        ("", "Seen."),
        ("Oru (town)", "It is old."),
        ("Vel", "It is far."),
    ]
    assert [(s.shown_text, s.searches) for s in chain.steps] == [
        ("Look.", ("Oru",)),
        ("Oru is old. The answer is old.", ()),
    ]
    assert (chain.prediction, chain.references) == ("old", ("old",))


def test_labels_without_a_step_and_steps_without_a_label_are_not_lost_in_silence() -> None:
    (row,) = FORMATS["agentprocessbench"].write(CHAIN)
    with pytest.raises(ValueError, match=r"step_labels\[0\]: that message is no step"):
        FORMATS["agentprocessbench"].read({**row, "step_labels": {**row["step_labels"], "0": -1}})
    half = replace(CHAIN, steps=(ChainStep("a", label=1), ChainStep("b"), ChainStep("c", label=-1)))
    assert [*FORMATS["processbench"].write(half)] == []
    with pytest.raises(ValueError, match=r"no such key; did you mean label\?"):
        FORMATS["steps"].read({"question": "q", "steps": [{"text": "a", "lable": 1}]})


CHAIN = Chain(
    "Where is Oru?",
    (ChainStep("", 0, ("Oru",), 1), ChainStep("Oru is in Marn.", 1, (), -1)),
    "0.1",
    (Passage("Oru", ("Oru is in Vel.",)),),
    ("Vel",),
    "Marn",
    False,
)


def damaged(row: Mapping[str, Any], chance: random.Random) -> Any:
    """Return a row with one of its values, at any depth, replaced, cut or removed."""
    content = json.loads(json.dumps(row))
    place = content
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        inner = place[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.7:
            place = inner
            continue
        place[key] = chance.choice([None, 3, -1, "", "x", [], {}, [None], {"a": [1]}, True, 1e300, "\x00", "ки"])
        if chance.random() < 0.3:
            del place[key]
        return content


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_costs_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = replace(CHAIN, steps=CHAIN.steps[1:]) if name == "claims" else CHAIN
    (row,) = FORMATS[name].write(chain)
    chance = random.Random(name)
    faults = []
    for _ in range(size(1_000, 120)):
        line = json.dumps(damaged(row, chance))
        if chance.random() < 0.1:
            line = line[: chance.randrange(1, len(line))]
        (file := tmp_path / "rows.jsonl").write_text(f"{json.dumps(row)}\n{line}\n")
        try:
            carry_out(["import", str(file), "--format", name, "--output", str(tmp_path / "out.jsonl")])
        except UserError as error:
            faults.append(error.line)
        capsys.readouterr()
    assert faults
    assert [fault for fault in faults if f"{file}, line 2" not in fault or len(fault) > 1_000] == []


def test_what_is_imported_can_be_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = FORMATS["agentprocessbench"].write(CHAIN)
    (file := tmp_path / "rows.jsonl").write_text(json.dumps(row))
    carry_out(["import", str(file), "--format", "agentprocessbench", "--output", str(tmp_path / "chains.jsonl")])
    assert "1 chains of 2 steps, 1 of them bare searches; labels: right 1, neutral 0, wrong 1, none 0" in (
        capsys.readouterr().out
    )
    carry_out(["check", str(tmp_path / "chains.jsonl"), "--json"])
    (report,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert [step["label"] for step in report["steps"]] == ["search", "Contradictory"]
    carry_out(["export", str(tmp_path / "chains.jsonl"), "--format", "trl-stepwise", "--output", str(tmp_path / "t")])
    assert json.loads((tmp_path / "t").read_text()) == {
        "prompt": "Where is Oru?",
        "completions": ["Search: Oru", "Oru is in Marn."],
        "labels": [True, False],
    }


def test_a_step_is_judged_by_what_it_knew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [{"text": "Oru is in Vel.", "known_passages": known} for known in (0, 1)]
    row = {"question": "Where is Oru?", "passages": [{"title": "Oru", "text": "Oru is in Vel."}], "steps": steps}
    (file := tmp_path / "rows.jsonl").write_text(json.dumps(row))
    carry_out(["check", str(file), "--json"])
    labels = [step["label"] for step in json.loads(capsys.readouterr().out)["steps"]]
    assert labels == ["undecided", "sound"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"question": " "}, "its question is empty"),
        ({"steps": ()}, "it has no steps"),
        ({"steps": (ChainStep(" "),)}, "step 1 is empty"),
        ({"steps": (ChainStep("a", 2),)}, "step 1 knows 2 passages of 1"),
    ],
)
def test_a_chain_that_is_not_valid_says_why(changed: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_chain(replace(CHAIN, **changed))
    with pytest.raises(ValueError, match="it knows -1 passages"):
        ChainStep("a", -1)


def test_export_counts_what_lacks_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write: Callable[[Chain], Any] = FORMATS["steps"].write
    bare = replace(CHAIN, id="2", steps=(ChainStep("Oru is in Marn."),))
    rows = [row for chain in (CHAIN, bare) for row in write(chain)]
    (file := tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    carry_out(["export", str(file), "--format", "prm", "--output", str(tmp_path / "out")])
    assert "1 rows of 2 chains; 1 have not the labels that prm needs" in capsys.readouterr().out
    file.write_text(json.dumps(rows[1]))
    with pytest.raises(UserError, match="no chain has the labels that prm needs"):
        carry_out(["export", str(file), "--format", "prm", "--output", str(tmp_path / "out")])
