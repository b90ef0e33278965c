"""The words of diagnoses and guidances: how many there are, and that each is sound English."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.wordings import WordingStyle, grammar, render
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Passage, Question, Triple
from safe_stepwise.steps import parse_step
from safe_stepwise.taxonomy import CORRECT

CODES = [(part, code) for part in ("diagnosis", "guidance") for code in load("verdicts")[part]]
WHOLE: tuple[WordingStyle, ...] = ("seen", "unseen")
BRIEF: tuple[WordingStyle, ...] = ("brief", "brief unseen")
FULL_CODES = [(*of, style) for of in CODES for style in WHOLE]
ALL = [(*of, style) for of in CODES for style in (*WHOLE, *BRIEF)]
ERRORS = [c for part, c in CODES if part == "diagnosis" and not c.startswith("sound")]
LEAST = {"diagnosis": 150, "guidance": 60}

SAID = (
    "Dune Rain was directed by Ors Velt Jr.",
    "“He was born in Lake Oru”",
    "the answer to “who leads Oru?” is Ana Vorr",
)
WHAT = ("the crosses of Oru", "where Ana Vorr was educated", "the answer to “who leads Oru?”")
OTHERS = {
    "step": 2,
    "steps": "Step 1 and Step 2",
    "passage": 3,
    "source": 4,
    "title": "Lake Oru",
    "entity": "Ana Vorr",
    "head": "Dune Rain",
    "tail": "Ors Velt",
    "things": "directors",
}
GIVEN_AWAY = {"value": "Edo Marsh", "claimed": "Ilka Brandt", "answer": "Kelvia"}
NEEDED = {
    "no_operation": (),
    "off_topic": ("passage",),
    "redundant": ("step",),
    "absent": ("claimed",),
    "contradicted": ("passage", "said", "missing", "claimed"),
    "not_in_passage": ("passage", "value", "what"),
    "not_stated": ("passage", "what"),
    "no_relation": ("head", "tail"),
    "false_comparison": ("steps",),
    "false_inference": ("steps",),
    "sound_fact": ("passage", "said"),
    "sound_derivation": ("steps",),
    "unearned_answer": ("missing",),
}
"""What a code is given at the least; those that are not here get all that they can take."""


def filling(n: int) -> dict[str, Any]:
    what = WHAT[n % len(WHAT)]
    told = {"said": SAID[n % len(SAID)], "quote": SAID[1], "what": what, "missing": what}
    return {**OTHERS, **GIVEN_AWAY, **told}


def drawn(part: str, code: str, style: WordingStyle, number: int = 200) -> Iterator[str]:
    for n in range(number):
        yield render(part, code, f"step {n}", style=style, **filling(n))


@cache
def skeletons(part: str, code: str, style: WordingStyle) -> frozenset[str]:
    """Every wording, what is filled in masked, and the quotation marks around it."""
    kinds = dict(grammar(part, code, style))
    joins = kinds.pop("join")
    found = set()
    for chosen in product(*(options for options in kinds.values())):
        for join, _ in joins:
            for kind, (clause, _) in zip(kinds, chosen, strict=True):
                join = re.sub(f"(?i){{{kind}}}", lambda _, clause=clause: clause, join)
            found.add(re.sub(r"“?{\w+}”?", "…", join))
    return frozenset(found)


@pytest.mark.parametrize(("part", "code", "style"), FULL_CODES)
def test_there_are_many_wordings(part: str, code: str, style: WordingStyle) -> None:
    assert len(skeletons(part, code, style)) >= LEAST[part]


@pytest.mark.parametrize(("part", "code"), CODES)
def test_seen_and_unseen_share_no_wording_and_no_part(part: str, code: str) -> None:
    for styles in (WHOLE, BRIEF):
        assert not skeletons(part, code, styles[0]) & skeletons(part, code, styles[1])
        seen, unseen = (grammar(part, code, style) for style in styles)
        for kind in seen:
            assert not set(seen[kind]) & set(unseen[kind])


@pytest.mark.parametrize(("part", "code", "style"), ALL)
def test_a_wording_is_whole_sentences(part: str, code: str, style: WordingStyle) -> None:
    for text in drawn(part, code, style):
        assert not re.search(r"[{}\[\]|]", text), text
        assert not re.search(r"\s\s|\.\.|\s[,.;:]|[,;:][,;:.]", text), text
        assert re.match(r"“?[A-Z]", text), text
        assert text.endswith((".", "”", ">")), text
        sentences = re.split(r"(?<=[^J][^r]\.) ", text)
        assert all(re.match(r"“?[A-Z]", sentence) for sentence in sentences), text


@pytest.mark.parametrize(("part", "code", "style"), ALL)
def test_no_verb_has_to_agree_with_what_is_filled_in(part: str, code: str, style: WordingStyle) -> None:
    verb = "is|are|was|were|has|have|does|do"
    for options in grammar(part, code, style).values():
        for option, _ in options:
            assert not re.search(rf"{{(what|missing|said)}} ({verb})\b", option), option
            assert not option.startswith("{steps}"), option


@pytest.mark.parametrize("style", [*WHOLE, *BRIEF])
@pytest.mark.parametrize("code", NEEDED)
def test_a_code_can_do_with_the_values_it_always_has(code: str, style: WordingStyle) -> None:
    for n in range(50):
        values = {name: filling(n)[name] if name in NEEDED[code] else None for name in filling(n)}
        assert "{" not in render("diagnosis", code, f"step {n}", style=style, **values)


def test_equal_inputs_give_equal_words_and_other_steps_others() -> None:
    for part, code, style in FULL_CODES:
        assert list(drawn(part, code, style, 9)) == list(drawn(part, code, style, 9))
        assert len(set(drawn(part, code, style, 60))) > 30


def test_who_does_not_ask_gets_the_seen_ones() -> None:
    for part, code in CODES:
        told = render(part, code, "a step", **filling(0))
        assert told == render(part, code, "a step", style="seen", **filling(0))


@given(st.text(), st.text(), st.sampled_from([*WHOLE, *BRIEF]))
def test_braces_of_a_value_are_never_filled(said: str, what: str, style: WordingStyle) -> None:
    """What stands in a passage may look like a place of ours, and stays as it is."""
    values = {"said": f"A{said}{{missing}} {{reason}}z", "missing": f"B{what}{{said}} {{claimed}}z"}
    plain = {name: " ".join(text.split()) for name, text in values.items()}
    for code in ("contradicted", "missed", "redundant", "bypassed"):
        told = render("diagnosis", code, said, style=style, **{**filling(0), **values})
        masked = {**filling(0), "said": "SAID", "missing": "MISSING"}
        template = render("diagnosis", code, said, style=style, **masked)
        pieces = re.split("(SAID|MISSING)", template)
        places = {"SAID": plain["said"], "MISSING": plain["missing"]}
        assert told == "".join(places.get(piece, piece) for piece in pieces)


def test_no_wording_is_everywhere() -> None:
    """The twenty commonest of 3,000 diagnoses, each kind as often as in a set, more or less."""
    common = ["sound_fact", "sound_derivation", "sound_answer", "wrong_answer", "unearned_answer"]
    codes = [code for part, code in CODES if part == "diagnosis"] + common * 2
    masks = dict.fromkeys(filling(0), "E")
    texts = [render("diagnosis", codes[n % len(codes)], f"step {n}", **masks) for n in range(3000)]
    counts = Counter(texts).most_common(20)
    assert sum(count for _, count in counts) <= 0.35 * len(texts)


def test_a_guidance_gives_nothing_away() -> None:
    for part, code, style in ALL:
        if part != "guidance":
            continue
        for options in grammar(part, code, style).values():
            assert all(not fields & GIVEN_AWAY.keys() for _, fields in options)
            assert all("said" not in fields and "quote" not in fields for _, fields in options)
        for text in drawn(part, code, style):
            assert not any(value in text for value in GIVEN_AWAY.values()), text


def test_an_error_denies_a_value_everywhere_only_where_that_is_meant() -> None:
    everywhere = re.compile(
        r"\b(?:no(?:ne of the)?|any(?: of the)?|neither) passages?\b|nowhere in the text"
        r"|nor any other|\bthe passages\b.*(?:\bnot\b|nothing|never)|in vain .* the passages"
    )
    meant = {"absent", "missing_evidence", "no_relation", "no_operation"}
    for code in ERRORS:
        for style in (*WHOLE, *BRIEF):
            for text in drawn("diagnosis", code, style):
                assert code in meant or not everywhere.search(text), text


# ------------------------------------------------------------------------------- of a real checker

PAGES = (
    Passage("Dune Rain", ("Dune Rain is a film directed by Ors Velt.",), True),
    Passage("Ors Velt", ("Ors Velt was born in Lake Oru.",), True),
    Passage("Harbour Light", ("Harbour Light is a novel by Edo Marsh.",), False),
)
HOPS = (Triple("Dune Rain", "director", "Ors Velt", 1, 0), Triple("Ors Velt", "place of birth", "Lake Oru", 2, 0))
DIRECTOR = "According to Passage 1, the director of Dune Rain is Ors Velt. (Attribution)"
BORN = "Passage 2 states that Ors Velt was born in Lake Oru. (Attribution)"
STEPS = (
    ((), DIRECTOR),
    ((), BORN),
    ((), "Passage 1 says that the director of Dune Rain is Edo Marsh. (Attribution)"),
    ((), "According to Passage 3, the director of Dune Rain is Ors Velt. (Attribution)"),
    ((), "Passage 1 says that the producer of Dune Rain is Ors Velt. (Attribution)"),
    ((), "Passage 1 does not say who the director of Dune Rain is. (Attribution)"),
    ((), "According to Passage 3, Harbour Light is a novel by Edo Marsh. (Attribution)"),
    ((), "Let us see what comes next. (Attribution)"),
    ((DIRECTOR,), DIRECTOR),
    ((DIRECTOR,), BORN),
    ((DIRECTOR,), "####ANSWER: Kelvia (Final Answer)"),
    ((DIRECTOR, BORN), "From Step 1 and Step 2, the answer is Ors Velt. (Logical)"),
    ((DIRECTOR, BORN), "From Step 1 and Step 2, the answer is Lake Oru. (Logical)"),
    ((DIRECTOR, BORN), "####ANSWER: Ors Velt (Final Answer)"),
    ((DIRECTOR, BORN), "####ANSWER: Lake Oru (Final Answer)"),
)


def checker(style: WordingStyle) -> Checker:
    asked = "Where was the director of Dune Rain born?"
    question = Question("q", "musique", "train", asked, "Lake Oru", passages=PAGES)
    return Checker(question, HOPS, HOPS, style)


@pytest.mark.parametrize("styles", [WHOLE, BRIEF])
@pytest.mark.parametrize(("previous", "text"), STEPS)
def test_a_checker_words_what_it_finds_anew_where_it_is_told_so(
    previous: tuple[str, ...], text: str, styles: tuple[WordingStyle, ...]
) -> None:
    before = [parse_step(f"Step {n}: {step}") for n, step in enumerate(previous, 1)]
    step = parse_step(f"Step {len(before) + 1}: {text}")
    seen, unseen = (checker(style).check(before, step) for style in styles)
    assert seen is not None
    assert unseen is not None
    assert seen.error_type == unseen.error_type
    assert seen.diagnosis != unseen.diagnosis
    assert seen.guidance != unseen.guidance
    for found in (seen, unseen):
        assert "{" not in found.diagnosis + found.guidance
        assert "Lake Oru" not in found.guidance
        if not before and found.error_type != CORRECT:
            assert "Ors Velt" not in found.guidance, "the value is given away"
