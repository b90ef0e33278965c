from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import MAX_YAML_BYTES, parse_yaml, read_object, read_yaml
from safe_stepwise.store.names import check_version
from tests import sizes

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
CHAIN = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
BAD = {
    "twice": (b"a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", "line 5: the key c is there twice"),
    "twice in a list": (b"- {x: 1, x: 2}", "line 1: the key x is there twice"),
    "deep": (b"[" * 100_000, "nested more than 100 deep"),
    "deep in blocks": (b"- " * 100_000, "nested more than 100 deep"),
    "deep by aliases": (CHAIN.encode(), "nested more than 100 deep"),
    "within itself": (b"a: &a [*a]", "nested more than 100 deep"),
    "a bomb": (BOMB.encode(), "more than 100,000 values, counting aliases"),
    "Latin-1": ("a: 1\nb: é".encode("latin-1"), "line 2: not UTF-8 text"),
    "UTF-16": ("a: 1".encode("utf-16"), "line 1: not UTF-8 text"),
    "controls": (b"a: \x1b[2J", "not YAML"),
    "no YAML": (b"a: [", "not YAML"),
    "two documents": (b"a: 1\n---\nb: 2\n", "not YAML"),
    "a value that its tag does not fit": (b"a: !!bool maybe", "not YAML"),
    "nor one of these": (b"a: [!!timestamp x, !!int '']", "not YAML"),
    "a list as key": (b"? [a]\n: b", "not YAML"),
    "a tag of Python": (b"!!python/object/apply:os.getcwd []", "not YAML"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_yaml_of_ours_is_one_line(name: str, tmp_path: Path) -> None:
    content, why = BAD[name]
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(UserError, match=why) as caught:
        read_yaml(file)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20
    assert str(caught.value).startswith(f"{file}: ")
    assert str(caught.value).isprintable()


def test_what_is_no_file_of_ours_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_yaml(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        read_yaml(tmp_path / "missing")
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(100 << 20)
    tracemalloc.start()
    with pytest.raises(UserError, match=f"has more than {MAX_YAML_BYTES:,} bytes"):
        read_yaml(large)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_aliases_and_merges_stay() -> None:
    text = "base: &b {x: 1, y: 2}\nother:\n  <<: *b\n  y: 3\nday: 2024-01-02\n"
    assert parse_yaml(text.encode()) == yaml.safe_load(text)
    assert parse_yaml(b"") is None


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(TREES)
@settings(max_examples=sizes.examples(100), deadline=None)
def test_yaml_is_what_pyyaml_reads(tree: object) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    assert parse_yaml(text.encode()) == yaml.safe_load(text)


@given(st.text(alphabet="ab:-[]{}&*!|> \n\t\"'#?,<%@", max_size=40).map(str.encode) | st.binary())
@settings(max_examples=sizes.examples(300), deadline=None)
def test_any_bytes_are_yaml_or_one_line(content: bytes) -> None:
    try:
        parse_yaml(content)
    except ValueError as error:
        said = str(error)
        assert said.isprintable()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": 1,\n "b": {"a": 1},\n "a": 2}', "the key 'a' stands twice"),
        (b'{"a": {"b": 1,\n "b": 2}}', "the key 'b' stands twice"),
        (b"[" * 100_000, "nested more than 100 deep"),
        (b'{"a": ' * 100_000, "nested more than 100 deep"),
        (b"[]", "does not hold a JSON object"),
        (b'{"a": NaN}', "not JSON"),
        (b"\xff", "not JSON"),
        (b"", "not JSON"),
    ],
)
def test_what_is_no_object_is_one_line(content: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(UserError, match=why) as caught:
        read_object(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert len(str(caught.value).splitlines()) == 1
    file.write_text(json.dumps({"a": [{"b": 1}, {"b": 1}]}))
    assert read_object(file) == {"a": [{"b": 1}, {"b": 1}]}


@pytest.mark.parametrize(
    "version", ["v٠.1.0", "v00.1.0", "v1.２.3", "v1.0", "1.0.0", "v1.0.0\n", "v1.0.0 ", "v1.0." + "1" * 5000]
)
def test_a_version_has_three_plain_numbers(version: str) -> None:
    with pytest.raises(UserError, match=r"write it as vMAJOR\.MINOR\.PATCH"):
        check_version(version)
