"""Which passages a verifier's prompt quotes by need: each once, before the first step that calls for it."""

from __future__ import annotations

import asyncio
import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.commands.reading import examples, own_row, parse_question
from safe_stepwise.commands.stand_in import QuestionIndex
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.base import option_values
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import run_question
from safe_stepwise.methods.passage_choice import choose_passages, name_left_out
from safe_stepwise.methods.prompt_sets import PAPER, PROMPTS, EvidenceChoice, PromptSet
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import ROLE, prompt_digest, request_verdict, verifier_request
from safe_stepwise.open import open_engine
from safe_stepwise.records import Passage, Question, Step

PAGES = (
    Passage("Dune Rain", ("Dune Rain is a 1960 film directed by Ors Velt.",)),
    Passage("Ors Velt", ("Ors Velt was a director who was born in Tesk.",)),
    Passage("Ors Velt (painter)", ("Ors Velt was a painter who was born in Ardle.",)),
    Passage("Marn", ("Marn is a town.",)),
    Passage("", ("It rained for weeks.",)),
)
STEPS = (
    Step(1, "According to Passage 1, Dune Rain was directed by Ors Velt.", "Attribution"),
    Step(2, "According to Passage 2, Ors Velt was born in Tesk.", "Attribution"),
    Step(3, "From Step 1 and Step 2, the director of Dune Rain was born in Tesk.", "Logical"),
    Step(4, "####ANSWER: Tesk", "Final Answer"),
)
CITED = PromptSet(verifier_evidence="cited")


def prompt(count: int, prompt_set: PromptSet = CITED) -> str:
    """The user's turn about one of the steps."""
    return (
        verifier_request("Q?", PAGES, STEPS[: count - 1], STEPS[count - 1], prompt_set=prompt_set).messages[1].content
    )


def numbers(text: str) -> list[int]:
    """The numbers of the quoted passages, in their order."""
    return [int(n) for n in re.findall(r'^Passage (\d+)(?: \("|: ")', text, re.MULTILINE)]


def test_a_step_brings_what_it_cites_and_a_rival_and_what_was_quoted_stays() -> None:
    assert [numbers(prompt(n)) for n in (1, 2, 3, 4)] == [[1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3]]
    assert "\n\nLeft out: Passages 3-5\n" in prompt(1)
    assert "\n\nLeft out: Passages 4-5\n" in prompt(4)


@pytest.mark.parametrize("choice", ["cited", "retrieved"])
def test_each_prompt_extends_the_one_before_up_to_its_last_lines(choice: EvidenceChoice) -> None:
    heads = [prompt(n, PromptSet(verifier_evidence=choice)).partition("\n\nLeft out: ")[0] for n in (1, 2, 3, 4)]
    assert all(after.startswith(f"{before}\n") for before, after in itertools.pairwise(heads))


def test_compact_prompts_quote_for_the_last_step_alone() -> None:
    compact = replace(CITED, name="compact")
    assert [numbers(prompt(n, compact)) for n in (1, 2, 3, 4)] == [[1, 2], [2, 3], [], []]
    assert "Left out: Passages 1-5" in prompt(3, compact)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ors Velt was born in Tesk. (Attribution)", 2),  # cites nothing
        ("According to Passage 77, Ors Velt was born in Tesk. (Attribution)", 2),  # or what does not exist
        ("According to Passage 0, Dune Rain is a film. (Attribution)", 1),
        ("####ANSWER: Ardle (Final Answer)", 3),  # with no step before it
    ],
)
def test_a_step_without_a_passage_at_hand_gets_what_retrieval_finds(text: str, expected: int) -> None:
    ((first, *_),) = choose_passages(PAGES, [f"Step 1: {text}"], "cited")
    assert first == expected


def test_retrieval_does_not_heed_citations_and_several_may_be_cited() -> None:
    step = "Step 1: Passages 4 and 5 say that Dune Rain is a 1960 film. (Attribution)"
    assert choose_passages(PAGES, [step], "retrieved")[0][0] == 1
    assert choose_passages(PAGES, [step], "cited")[0][:2] == (4, 5)


def test_no_passages_and_passages_without_words_are_no_fault() -> None:
    assert choose_passages((), [f"Step 1: {STEPS[0].text}"], "cited") == ((),)
    assert choose_passages((Passage("", ("",)),), ["Step 1: Oru is old. (Attribution)"], "retrieved") == ((),)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4), st.lists(st.text(max_size=20), max_size=4))
def test_whatever_a_step_says_each_passage_is_quoted_once_or_left_out(steps: list[str], texts: list[str]) -> None:
    pages = [Passage(text[:4], (text,)) for text in texts]
    turns = choose_passages(pages, steps, "cited")
    quoted = [number for turn in turns for number in turn]
    assert len(turns) == len(steps)
    assert len(quoted) == len(set(quoted))
    assert set(quoted) <= set(range(1, len(pages) + 1))
    assert (name_left_out(len(pages), turns) == "none") == (len(quoted) == len(pages))


def test_all_stays_as_it_was_and_each_choice_has_its_digest_and_identity() -> None:
    assert verifier_request("Q?", PAGES, [], STEPS[0]) == verifier_request("Q?", PAGES, [], STEPS[0], prompt_set=PAPER)
    choices: tuple[EvidenceChoice, ...] = ("all", "cited", "retrieved")
    assert len({prompt_digest(prompt_set=PromptSet(verifier_evidence=choice)) for choice in choices}) == 3
    assert "verifier_evidence" not in option_values(Limits())
    assert option_values(Limits(verifier_evidence="cited"))["verifier_evidence"] == "cited"
    with pytest.raises(ValueError, match="verifier_evidence is one of all, cited, retrieved"):
        Limits(verifier_evidence="some")  # type: ignore[arg-type]


def test_entailment_reads_what_the_prompt_quotes() -> None:
    question = Question("q", "b", "", "Q?", "", passages=PAGES)
    pair = request_verdict(question, [], STEPS[1], prompt_set=CITED).pair
    assert pair is not None
    assert "painter" in pair.premise
    assert "Marn" not in pair.premise


@pytest.mark.parametrize("name", PROMPTS)
def test_the_symbolic_loop_and_the_stand_in_do_not_depend_on_what_is_quoted(name: str) -> None:
    rows = [parse_question("example", own_row("example", row), None) for row in examples()][:2]
    index = QuestionIndex(rows)

    def run(choice: EvidenceChoice) -> list[object]:
        client = Client(open_engine("symbolic"))
        limits = Limits(prompts=name, verifier_evidence=choice)  # type: ignore[arg-type]
        return [asyncio.run(run_question(row, client, client, limits)).steps for row in rows]

    assert run("all") == run("cited") == run("retrieved")
    for row in rows:
        request = request_verdict(row, [], STEPS[0], prompt_set=PromptSet(name, verifier_evidence="cited"))  # type: ignore[arg-type]
        scene = index.scene(ROLE, request.messages[1].content)
        assert isinstance(scene, Scene)
        assert scene.question.passages == row.passages
