from __future__ import annotations

import pytest

from releases.publish.leaderboard import merge_card, metadata
from safe_stepwise.errors import UserError

OURS = "---\nlicense: mit\ntags:\n- verification\n---\n\n# Ours\n"


def test_nothing_to_keep_leaves_our_bytes_alone() -> None:
    theirs = "---\nlicense: apache-2.0\ntags: [verification]\nconfigs: []\n---\nOld.\n"
    assert merge_card(OURS, theirs, "hub") == OURS
    assert merge_card(OURS, "No metadata.\n", "hub") == OURS
    assert merge_card(OURS, "", "hub") == OURS


def test_what_was_added_is_kept_and_a_second_merge_changes_nothing() -> None:
    theirs = "---\ntags: mine\nextra:\n  deep: [1, ü]\nlicense_name: old\n---\nOld.\n"
    once = merge_card(OURS, theirs, "hub")
    assert metadata(once, "") == {"license": "mit", "tags": ["verification", "mine"], "extra": {"deep": [1, "ü"]}}
    assert once.endswith("---\n\n# Ours\n")
    assert merge_card(OURS, once, "hub") == once


def test_data_that_is_no_longer_simulated_is_not_called_so() -> None:
    theirs = "---\ntags: [synthetic, simulated, theirs]\n---\n"
    assert metadata(merge_card(OURS, theirs, "hub"), "")["tags"] == ["verification", "theirs"]


@pytest.mark.parametrize("block", ["a: [b", "- a\n- b"])
def test_metadata_that_cannot_be_read_is_not_overwritten(block: str) -> None:
    with pytest.raises(UserError, match="datasets/ns/x on the Hub: its metadata is no"):
        merge_card(OURS, f"---\n{block}\n---\n", "datasets/ns/x on the Hub")
