"""What comes from outside: read into the nouns that stand for it, or every fault in one line."""

import json
import math
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise import records
from safe_stepwise.errors import UserError
from safe_stepwise.records import (
    CONSTRAINT_KINDS,
    Candidate,
    Constraint,
    InducedKind,
    KGQuestion,
    Label,
    Question,
    Usage,
)
from safe_stepwise.store.boundary import plain, read, read_file
from tests import sizes

NOUNS = [noun for noun in vars(records).values() if is_dataclass(noun) and noun is not records.QuestionSet]
"""All that is written as JSON: rejected rows are bytes."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@dataclass(frozen=True)
class Shape:
    """One field of each kind."""

    name: str
    sizes: tuple[int, ...] = ()
    pair: tuple[str, int] | None = None
    share: float = 0.0
    state: Literal["on", "off"] | None = None
    folder: Path | None = None
    usage: Mapping[str, Usage] | None = None
    either: int | str = 0
    yes: bool = False
    names: Sequence[str] = ()
    kinds: frozenset[str] = frozenset()


def instances(noun: Any) -> st.SearchStrategy[Any]:
    """Any instance of a dataclass that its own validation allows."""
    given_fields = {name: values(hint) for name, hint in typing.get_type_hints(noun).items()}
    if noun is Label:
        given_fields["confidence"] = st.none() | st.floats(0, 1)
    if noun is KGQuestion:
        given_fields |= {"topics": st.just(("Oru",)), "answers": st.frozensets(st.text(min_size=1), max_size=2)}
    if noun is Constraint:
        given_fields["kind"] = st.sampled_from(CONSTRAINT_KINDS)
    if noun is InducedKind:
        given_fields |= {"name": st.from_regex(r"mood[a-z0-9_]{0,9}", fullmatch=True), "description": st.just("So.")}
    return st.builds(noun, **given_fields)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if is_dataclass(hint):
        return instances(hint)
    if hint is Any:
        return JSON
    if origin is tuple:
        return st.lists(values(inner[0]), max_size=2).map(tuple)
    if origin is frozenset:
        return st.frozensets(values(inner[0]), max_size=2)
    if origin is Mapping:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=2)
    if origin is Literal:
        return st.sampled_from(inner)
    if inner:
        return st.one_of([values(part) for part in inner])
    plain_values = {
        str: st.text(st.characters(), max_size=5),
        int: st.integers(-(2**63) + 1, 2**63 - 1),
        bool: st.booleans(),
        float: st.floats(-1e9, 1e9),
        type(None): st.none(),
    }
    return plain_values[hint]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
@settings(max_examples=sizes.examples(20), deadline=None)
@given(data=st.data())
def test_every_noun_comes_back_from_json_as_it_was(noun: Any, data: st.DataObject) -> None:
    value = data.draw(instances(noun))
    assert read(noun, json.loads(json.dumps(plain(value)))) == value


def test_half_a_character_is_kept() -> None:
    assert read(Candidate, {"topic": "\ud800", "path": []}).topic == "\ud800"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": 3}, "it.name is not a text"),
        ({"sizes": "12"}, "it.sizes is not a list"),
        ({"sizes": [1, "2"]}, "it.sizes[1] is not a whole number"),
        ({"sizes": [True]}, "it.sizes[0] is not a whole number"),
        ({"sizes": [1.0]}, "it.sizes[0] is not a whole number"),
        ({"sizes": [2**63]}, "it.sizes[0] is not a whole number"),
        ({"pair": ["a"]}, "it.pair is not a list of 2"),
        ({"pair": []}, "it.pair is not a list of 2"),
        ({"pair": ["a", 1, 2]}, "it.pair is not a list of 2"),
        ({"share": math.nan}, "it.share is not a number"),
        ({"share": -math.inf}, "it.share is not a number"),
        ({"share": True}, "it.share is not a number"),
        ({"share": "0.5"}, "it.share is not a number"),
        ({"state": "of"}, "it.state is not one of on, off"),
        ({"folder": 3}, "it.folder is not a path"),
        ({"usage": []}, "it.usage is not an object"),
        ({"usage": {"generator": 3}}, "it.usage.generator is not an object"),
        ({"usage": {"generator": {"prompt": "3"}}}, "it.usage.generator.prompt is not a whole number"),
        ({"usage": {3: {}}}, "a key of it.usage is not a text"),
        ({"either": 0.5}, "it.either is not a whole number or a text"),
        ({"yes": 1}, "it.yes is not true or false"),
        ({"names": "ab"}, "it.names is not a list"),
        ({"names": ["a", None]}, "it.names[1] is not a text"),
        ({"kinds": "ab"}, "it.kinds is not a list"),
        ({"share": None, "yes": None}, "it.share is not a number; it.yes is not true or false"),
    ],
)
def test_a_fault_says_its_place(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        read(Shape, {"name": "Oru", **changes})


def test_nothing_is_converted_but_lists_objects_and_paths() -> None:
    content = {"name": "a", "sizes": [1], "pair": ["b", 2], "folder": "c/d", "kinds": ["e"], "usage": {"f": {}}}
    shape = read(Shape, content)
    assert shape == Shape("a", (1,), ("b", 2), folder=Path("c/d"), kinds=frozenset("e"), usage={"f": Usage()})
    assert read(Shape, shape) == shape
    with pytest.raises(ValueError, match=r"^it\.sizes\[0\] is not a whole number$"):
        read(Shape, Shape("a", ("1",)))  # type: ignore[arg-type]


def test_a_whole_number_stays_one() -> None:
    assert json.dumps(plain(read(Shape, {"name": "a", "share": 1}))["share"]) == "1"


def test_all_that_is_lacking_is_told() -> None:
    with pytest.raises(ValueError, match=r"^row\.id is not there; row\.benchmark is not there; .*row\.answer is not"):
        read(Question, {}, "row")


def test_a_long_list_of_faults_ends() -> None:
    with pytest.raises(ValueError, match=r"counts\[19\] is not a text; and 980 more$"):
        read(tuple[str, ...], [None] * 1000, "counts")


def test_a_nouns_own_validation_is_told_with_its_place() -> None:
    label = {"noise_type": "none", "explanation": "", "reasoning_path": [], "knowledge_graph": [], "teacher": "t"}
    with pytest.raises(ValueError, match=r"^labels\[0\]: a confidence lies between 0 and 1, not at 2.0$"):
        read(tuple[Label, ...], [{**label, "confidence": 2.0}], "labels")


def test_keys_that_are_no_field_are_faults_if_the_reader_is_exact() -> None:
    content = {"usage": {"generator": {"promt": 1}}, "name": "a", "pairs": [], "zzz": 1}
    assert read(Shape, content).usage == {"generator": Usage()}
    keys = ", ".join(field.name for field in fields(Shape))
    faults = [
        "usage.generator.promt: no such key; did you mean prompt?",
        "pairs: no such key; did you mean pair?",
        f"zzz: no such key; keys: {keys}",
    ]
    with pytest.raises(ValueError, match=f"^{re.escape('; '.join(faults))}$"):
        read(Shape, content, "", exact=True)


def test_files_are_read_by_what_they_are_called(tmp_path: Path) -> None:
    for name, content in (
        ("a.yaml", "topic: Oru\npath: [river]\n"),
        ("a.json", '{"topic": "Oru", "path": ["river"]}'),
    ):
        (tmp_path / name).write_text(content)
        assert read_file(Candidate, tmp_path / name) == Candidate("Oru", ("river",))


def test_a_files_faults_name_it_and_say_how_to_mend_it(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    with pytest.raises(UserError, match=rf"^{file}: cannot be read \(No such file or directory\); remove it$"):
        read_file(Candidate, file, mend="remove it")
    file.write_text('{"topic": 3}')
    with pytest.raises(UserError, match=rf"^{file}: it.topic is not a text; it.path is not there$"):
        read_file(Candidate, file)
    file.write_text("{")
    with pytest.raises(UserError, match=rf"^{file}: Expecting"):
        read_file(Candidate, file)
