"""Labels: their order is a contract, their comparison is exact."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.taxonomy import CATEGORIES, ERROR_TYPES, TAXONOMY, category, check_order, labels, normalize_label

PROCEDURAL = ("Overthinking", "Off-topic", "Redundancy", "Inefficiency")
ATTRIBUTION = ("Contradictory", "Unsupported", "Information Miss", "Premature Attribution")


def test_order_of_checks() -> None:
    assert check_order("Attribution") == PROCEDURAL + ATTRIBUTION
    assert check_order("Logical") == (*PROCEDURAL, "Logical Fallacy")
    assert check_order("Final Answer") == ("Wrong Conclusion",)


def test_missing_evidence_comes_last_and_only_in_its_setting() -> None:
    assert check_order("Attribution", True) == (*PROCEDURAL, *ATTRIBUTION, "Missing Evidence")
    assert check_order("Logical", True) == (*PROCEDURAL, "Logical Fallacy", "Missing Evidence")
    assert check_order("Final Answer", True) == ("Wrong Conclusion",)


def test_unknown_kind() -> None:
    with pytest.raises(ValueError, match="unknown step kind 'logical'"):
        check_order("logical")  # type: ignore[arg-type]


def test_labels_count_ten_errors_then_correct_then_missing_evidence() -> None:
    assert len(ERROR_TYPES) == 10
    assert labels()[10:] == ("Correct",)
    assert labels(incomplete_evidence=True)[10:] == ("Correct", "Missing Evidence")


def test_categories() -> None:
    assert {category(name) for name in PROCEDURAL} == {"Procedural"}
    assert {category(name) for name in ATTRIBUTION} == {"Attribution"}
    assert category("Logical Fallacy") == "Logical"
    assert category("Wrong Conclusion") == "Final Answer"
    assert category("Correct") == "Correct"
    assert category("Missing Evidence") == "Missing Evidence"
    assert {entry.category for entry in TAXONOMY} == set(CATEGORIES)


@pytest.mark.parametrize("name", ["correct", "Incorrect", "", "Off topic"])
def test_category_takes_exact_names_only(name: str) -> None:
    with pytest.raises(ValueError, match="unknown error type"):
        category(name)


def test_every_entry_is_defined_in_words_of_its_own() -> None:
    definitions = [entry.definition for entry in TAXONOMY]
    assert len(set(definitions)) == len(TAXONOMY) == 12
    assert all(text.endswith(".") and len(text) > 40 for text in definitions)


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ("Correct", "Correct"),
        ("  CORRECT.\n", "Correct"),
        ("**Correct**", "Correct"),
        ("Correct!", "Correct"),
        ("`correct`", "Correct"),
        ("Correct (No Error)", "Correct"),
        ("correct (no error).", "Correct"),
        ("off topic", "Off-topic"),
        ("OFF_TOPIC", "Off-topic"),
        ("offtopic", "Off-topic"),
        ("Off‑Topic", "Off-topic"),
        ("“Premature-Attribution”", "Premature Attribution"),
        ("premature_attribution", "Premature Attribution"),
        ("PrematureAttribution", "Premature Attribution"),
        ("[Information  Miss]", "Information Miss"),
        ("missing\u00a0evidence", "Missing Evidence"),
        ("- Logical Fallacy:", "Logical Fallacy"),
    ],
)
def test_spellings_of_a_label(written: str, label: str) -> None:
    assert normalize_label(written) == label


@pytest.mark.parametrize(
    "written",
    [
        "",
        "   ",
        "**",
        "Incorrect",
        "In-correct",
        "not Correct",
        "Not correct.",
        "!Correct",
        "¬Correct",
        "~~Correct~~",
        "Correct?",
        "non-correct",
        "Correctness",
        "Correct, mostly",
        "Correct / Unsupported",
        "Correct (Error)",
        "Correct (No Error) Unsupported",
        "No Error",
        "Partially Unsupported",
        "Supported",
        "Logical",
        "Attribution",
        "Missing",
        "error_type: Correct",
        "Corect",
    ],
)
def test_what_is_no_label(written: str) -> None:
    assert normalize_label(written) is None


@settings(deadline=None)
@given(st.sampled_from(labels(True)), st.text(alphabet=" *_`\"'.:\n", max_size=5))
def test_decoration_never_changes_a_label(name: str, around: str) -> None:
    assert normalize_label(f"{around}{name.upper()}{around}") == name


@settings(deadline=None)
@given(st.sampled_from(labels(True)), st.text("abxyz019", min_size=1), st.booleans())
def test_letters_beside_a_label_make_it_no_label(name: str, more: str, before: bool) -> None:
    for joined in (" ", ""):
        assert normalize_label(more + joined + name if before else name + joined + more) is None


@settings(deadline=None)
@given(st.text())
def test_any_text_gives_a_label_or_none(text: str) -> None:
    assert normalize_label(text) in (None, *labels(True))


def test_long_input() -> None:
    for piece in ("-", "(", "̣́", "Correct "):
        assert normalize_label(piece * 100_000) is None
