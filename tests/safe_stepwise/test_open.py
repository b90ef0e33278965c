from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from safe_stepwise import errors
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.engines.weights import Model
from safe_stepwise.errors import UserError
from safe_stepwise.open import KINDS, check_spec, open_engine
from safe_stepwise.players.symbolic import SymbolicEngine


def test_a_server_with_and_without_address() -> None:
    engine = open_engine("openai:openai/gpt-oss-120b@http://localhost:8000/v1")
    assert isinstance(engine, OpenAIEngine)
    assert (engine.model, engine.base_url) == ("openai/gpt-oss-120b", "http://localhost:8000/v1")
    assert engine.name == "openai:openai/gpt-oss-120b"
    tagged = open_engine("openai:base@v2@http://h/v1")
    assert isinstance(tagged, OpenAIEngine)
    assert tagged.model == "base@v2"


def test_symbolic_settings() -> None:
    engine = open_engine("symbolic:error_rate=0.25,seed=9")
    assert isinstance(engine, SymbolicEngine)
    assert (engine.rates.error_rate, engine.seed) == (0.25, 9)
    assert engine.simulated


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", "names no engine"),
        ("gpt-4", "names no engine"),
        ("opena:x", "did you mean openai:x?"),
        ("VLLM:x", "did you mean vllm:x?"),
        ("openai:", "openai:gpt-oss-120b@http://localhost:8000/v1"),
        ("vllm", "vllm:Qwen/Qwen3-8B"),
        ("openai:@http://host/v1", "names no model"),
        ("openai:http://host/v1", "names no model"),
        ("vllm:base@", "NAME@REVISION"),
        ("transformers:base+", "NAME@REVISION"),
        ("openai:x@localhost:8000/v1", "lacks http://; write openai:x@http://localhost:8000/v1"),
        ("openai:x@localhost", "lacks http://"),
        ("openai:x@10.0.0.7/v1", "lacks http://"),
        ("openai:ns/x@v2@gpu-3:8000", "write openai:ns/x@v2@http://gpu-3:8000"),
        ("openai:x@api.example.org/v1/", "lacks http://"),
        ("symbolic:error_rate=2", "error_rate has to be from 0 to 1"),
        ("symbolic:error_rate=nan", "error_rate has to be from 0 to 1"),
        ("symbolic:error_rate=x", "error_rate has to be a number;"),
        ("symbolic:eror_rate=0.1", "no setting 'eror_rate'; write symbolic:error_rate=0.1"),
        ("mock:no/such/file.json", "no/such/file.json"),
    ],
)
def test_a_wrong_spec_says_how_to_write_it(spec: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        open_engine(spec)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_kind_is_shown_every_kind() -> None:
    with pytest.raises(UserError) as caught:
        open_engine("gpt-4")
    _, _, shown = str(caught.value).partition("write ")
    assert re.split(", | or ", shown) == [kind.example for kind in KINDS.values()]


@pytest.mark.parametrize("name", list(KINDS))
def test_a_kind_shows_a_spec_of_its_own(name: str) -> None:
    example = KINDS[name].example
    assert example.partition(":")[0] == name
    if name != "mock":  # of which there is no such file
        check_spec(example)


@pytest.mark.parametrize("kind", ["vllm", "transformers"])
def test_a_spec_is_checked_where_its_extra_is_missing(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda module: None)
    check_spec(f"{kind}:Qwen/Qwen3-8B+./adapter")
    with pytest.raises(UserError, match="NAME@REVISION"):
        check_spec(f"{kind}:Qwen/Qwen3-8B@")


ADDRESSES = st.text(max_size=8).map("m@http://{}".format)


@settings(deadline=None)
@given(st.sampled_from([*KINDS, "", "x"]), st.text(max_size=20) | ADDRESSES)
def test_any_spec_is_an_engine_or_one_line(kind: str, rest: str) -> None:
    assume("/" not in rest or kind not in ("mock", "vllm", "transformers"))
    assert opened(f"{kind}:{rest}")


@settings(deadline=None)
@given(st.text(st.characters(), max_size=20))
def test_any_text_is_an_engine_or_one_line(spec: str) -> None:
    assert opened(spec)


def opened(spec: str) -> object:
    """The engine, or the one line that says why there is none; no model is looked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors, "find_spec", lambda module: None)
        try:
            return open_engine(spec)
        except UserError as error:
            said = str(error)
    assert said.splitlines() == [said]
    return said


def test_a_spec_is_one_line() -> None:
    for spec in ("mock:a\nb", "symbolic:\r", "\n", "openai:m\x00"):
        with pytest.raises(UserError, match="more than one line") as caught:
            open_engine(spec)
        assert str(caught.value).splitlines() == [str(caught.value)]


def test_an_address_is_one_in_any_case() -> None:
    engine = open_engine("openai:m@HTTP://host/v1")
    assert isinstance(engine, OpenAIEngine)
    assert engine.base_url == "HTTP://host/v1"


@pytest.mark.parametrize("model", ["m@v1.0.0", "llama3:8b", "ns/m@refs/pr/1", "m@3f2a1bc"])
def test_a_revision_in_the_name_is_no_address(model: str) -> None:
    engine = open_engine(f"openai:{model}")
    assert isinstance(engine, OpenAIEngine)
    assert engine.model == model


@pytest.mark.parametrize(("kind", "extra"), [("vllm", "vllm"), ("transformers", "train")])
def test_a_missing_model_library_says_which(monkeypatch: pytest.MonkeyPatch, kind: str, extra: str) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda module: None)
    with pytest.raises(UserError, match=rf"pip install -e '\.\[{extra}\]'"):
        open_engine(f"{kind}:Qwen/Qwen3-8B")


def test_models_at_revisions() -> None:
    assert Model.read("ns/name@v1.0.0") == Model("ns/name", "v1.0.0")
    assert Model.read("./local folder") == Model("./local folder")
