"""A key of ours is found however a stranger spells it; words are left alone."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.store.terminal import credentials, redact, redact_keys

KEY = 'key/with+odd="characters"&of=all%sorts'
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60)


@given(value=VALUES, before=st.text(max_size=9), after=st.text(max_size=9))
def test_every_spelling_is_found(value: str, before: str, after: str) -> None:
    spelled = [
        value,
        value.swapcase(),
        value[::-1],
        json.dumps(value)[1:-1],
        quote(value),
        quote(value, safe=""),
        value.encode().hex(),
        "".join(f"\\u{ord(one):04X}" for one in value),
        "".join(f"%{ord(one):02X}" for one in value),
        "".join(f"&#{ord(one)};" for one in value),
        "".join(f"&#x{ord(one):x};" for one in value),
        "".join(f"\\{one}" for one in value),
    ]
    for one in spelled:
        found = redact_keys(f"{before} {one} {after}", [value])
        assert one not in found, one
        assert "[redacted]" in found


@given(value=VALUES, user=st.text(max_size=9))
def test_basic_auth_and_other_base64_is_found(value: str, user: str) -> None:
    for coding in (base64.b64encode, base64.urlsafe_b64encode):
        coded = coding(f"{user}:{value}".encode()).decode()
        left = redact_keys(f"Authorization: Basic {coded}", [value])
        assert "[redacted]" in left
        # What remains of it says less than the user's name and one character more.
        bare = left.removeprefix("Authorization: Basic ").replace("[redacted]", "").rstrip("=")
        assert len(bare) <= 4 * (len(user.encode()) + 1) / 3 + 3


def test_words_are_left_alone() -> None:
    text = "Key: Constantinople1453; password=correcthorsebattery 20% \\u00e9 sk-short"
    assert redact_keys(text, [KEY]) == text
    assert redact(text) != text


def test_what_only_a_key_looks_like_is_found() -> None:
    assert redact_keys("so hf_" + "a" * 34 + ", he said", []) == "so [redacted], he said"


def test_a_credential_with_bytes_that_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"API_KEY": "abcdefgh\udcff"})
    assert "API_KEY" in credentials()
    assert redact("it was abcdefgh\udcff") == "it was [redacted]"


def test_a_credential_is_known_by_its_variable_and_is_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    value = "/abc+defghijk"  # base64 may begin with a slash
    here = {name: f"{value}{name}" for name in ("PGPASSWORD", "API_KEYS", "accesstoken", "DB_PASS")}
    others = {"SSL_KEY_FILE": str(tmp_path), "HOME_PAGE": value, "HF_TOKEN": ""}
    monkeypatch.setattr("os.environ", here | others)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hub-stored-token")
    assert credentials() == here | {"the Hub's token": "hub-stored-token"}
