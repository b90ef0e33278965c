"""What a hostile or a clumsy user gives to any command: one line, at once."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from safe_stepwise.commands.main import CHECKOUT_COMMANDS, PACKAGE_COMMANDS, group
from safe_stepwise.commands.values import LARGEST, ByRole, Commas, Number, Place
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.errors import UserError
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.metric.input import read_column
from safe_stepwise.store import boundary, files
from safe_stepwise.store.parquet import read_rows

ROOT = Path(__file__).parents[2]


def options() -> Iterator[tuple[str, click.Parameter]]:
    """Each option and argument of each command, by the command's name."""

    def below(command: click.Command, name: str) -> Iterator[tuple[str, click.Parameter]]:
        with click.Context(command) as ctx:
            yield from ((name, param) for param in command.get_params(ctx))
        for inner in command.commands.values() if isinstance(command, click.Group) else ():
            yield from below(inner, f"{name} {inner.name}")

    with click.Context(group) as ctx:
        for name in (*PACKAGE_COMMANDS, *CHECKOUT_COMMANDS):
            command = group.get_command(ctx, name)
            assert command is not None
            yield from below(command, name)


@pytest.fixture
def specials(tmp_path: Path) -> dict[str, str]:
    """Paths by what they are: none is a file, and to read the first and last never ends."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)  # its address may have 108 bytes
        server.bind("socket")
        os.chdir(here)
    (tmp_path / "link").symlink_to("pipe")
    return {"a named pipe": str(tmp_path / "pipe"), "a socket": str(tmp_path / "socket"), "a device": "/dev/zero"} | {
        "a named pipe, linked": str(tmp_path / "link")
    }


def test_every_whole_number_of_every_command_is_bounded() -> None:
    kinds = (Number, Commas)
    numbers = [
        (name, param, kind)
        for name, param in options()
        for kind in [param.type.value if isinstance(param.type, ByRole) else param.type]
        if isinstance(kind, kinds) and not getattr(kind, "names", ())
    ]
    assert len(numbers) > 90
    assert not [(name, param) for name, param in options() if isinstance(param.type, click.types.IntParamType)]
    for name, param, _ in numbers:
        is_amount = getattr(param.type, "kind", None) is float
        for text in ("-5", "nan", "", "9" * 5_000, *(() if is_amount else ("9" * 23, "1e400"))):
            with pytest.raises((click.BadParameter, UserError)) as caught, click.Context(group) as ctx:
                param.type.convert(text, param, ctx)
            assert len(str(caught.value)) < 200, (name, param, text)


def test_a_large_number_says_how_large_one_may_be() -> None:
    with pytest.raises(UserError, match=f"--seed: '9{{23}}' is too large: at most {LARGEST:,}"):
        command("evaluate_stepwise")(["--seed", "9" * 23])
    with pytest.raises(UserError, match="argument --seed: '-5' is not a whole number from 0 on"):
        command("evaluate_stepwise")(["--seed=-5"])


def command(name: str) -> Any:
    with click.Context(group) as ctx:
        return group.get_command(ctx, name)


def test_no_path_of_any_command_leads_to_what_never_ends(specials: dict[str, str]) -> None:
    places = [(name, param) for name, param in options() if isinstance(param.type, click.Path)]
    assert len(places) > 80
    for name, param in places:
        assert isinstance(param.type, Place), (name, param)
        for kind, path in specials.items():
            with pytest.raises(click.BadParameter, match=f"is {kind.partition(',')[0]}, not a file"):
                param.type.convert(path, param, None)
        for path in (os.devnull, "/dev/stdin", "/dev/fd/0", str(ROOT), __file__):
            assert param.type.convert(path, param, None) == Path(path)


READERS: dict[str, Callable[[Path], Any]] = {
    "JSON": boundary.read_json,
    "an object": boundary.read_object,
    "YAML": boundary.read_yaml,
    "lines": lambda path: list(files.read_lines(path, bytes, "line", "mend it")),
    "a digest": files.sha256_of,
    "a copy": lambda path: files.copy_file(path, path.with_name("copied")),
    "replies": MockEngine.read,
    "a corpus": lambda path: Corpus.open(path, path.parent),
    "Parquet": lambda path: list(read_rows(path, dict)),
    "an output": lambda path: files.lock_folder(path.parent, owned=(path.name,)).__enter__(),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_waits_for_what_never_ends(reader: str, specials: dict[str, str]) -> None:
    for kind, path in specials.items():
        if path.startswith("/dev") and reader in ("an output", "a copy"):
            continue
        with pytest.raises((UserError, OSError)) as caught:
            READERS[reader](Path(path))
        said = str(caught.value)
        assert "\n" not in said
        assert kind.partition(",")[0] in said or "a link" in said


def test_what_the_shell_opened_is_read(tmp_path: Path) -> None:
    row = b'{"id":"a","question":"Q?","passages":["x"],"steps":["Step 1: x (Attribution)"]}\n'
    ran = subprocess.run(
        [sys.executable, "-m", "safe_stepwise.commands.main", "check", "/dev/stdin"],
        input=row,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.startswith(b"a: Q?")


def test_a_line_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1 << 10)
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"{}\n" + b"x" * 2_000)
    with pytest.raises(UserError, match="line 2: has more than 1,024 bytes; mend it"):
        list(files.read_lines(file, bytes, "line", "mend it"))


ROW = {
    "id": "a",
    "question": "In which country is Oru?",
    "answer": "Marn",
    "passages": [{"title": "Oru", "text": "Oru is a town in Marn."}],
    "evidence": [{"head": "Oru", "relation": "country", "tail": "Marn"}],
}
STEP = "Step 1: Oru is a town in Marn. (Attribution)"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("line", "changes", "told"),
    [
        ("check", {"steps": [STEP] * 100_000}, "line 1: steps has 100000 entries, at most 500 are read"),
        ("check", {"steps": [STEP, "x" * 20_000]}, "line 1: step 2 has 20000 characters, at most 10000 are read"),
        ("check", {"steps": [STEP], "evidence": ROW["evidence"] * 5_000}, "evidence has 5000 entries, at most 50"),
        ("answer --passages", {"evidence": ROW["evidence"] * 5_000}, "evidence has 5000 entries, at most 50"),
        ("answer --passages", {"question": None}, "line 1: lacks a question"),
        ("answer --question Who? --passages", {"question": None}, "in the words of one of them"),
        ("answer --question Who? --passages", {"question": 3}, "in the words of one of them"),
        ("answer --question Who? --passages", {}, "has 1 rows; give --question in the words of one of them"),
    ],
)
def test_what_no_row_has_is_refused(line: str, changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROW | changes))
    name, *more = line.split()
    players = ["--generator", "symbolic", "--verifier", "symbolic"] if name == "answer" else []
    with pytest.raises(UserError, match=re.escape(told)) as caught:
        command(name)([*more, str(file), *players])
    assert len(str(caught.value)) < 400


def test_chains_of_the_metric_are_bounded_too() -> None:
    with pytest.raises(UserError, match=r"steps\[1\]: steps has 501 entries, at most 500 are read"):
        read_column([[STEP] * 500, [STEP] * 501], "steps")


@pytest.mark.parametrize(
    ("shell", "status", "told"),
    [
        ("check FILE | head -1", 0, ""),
        ("check FILE | head -1; exit ${PIPESTATUS[0]}", 141, ""),
        ("check MISSING 2> /dev/full | true; exit ${PIPESTATUS[0]}", 2, ""),
        ("check FILE > /dev/full", 2, "error: the output cannot be written: No space left on device\n"),
        ("check --help > /dev/full", 2, "error: the output cannot be written: No space left on device\n"),
        ("check FILE >&-", 0, ""),
        ("check FILE > /dev/full 2> /dev/full", 2, ""),
        ("check MISSING 2> /dev/full", 2, ""),
    ],
)
def test_an_output_that_takes_no_more_ends_without_a_traceback(
    shell: str, status: int, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([json.dumps(ROW | {"steps": [STEP]})] * 500))
    line = f"{sys.executable} -m safe_stepwise.commands.main {shell.replace('FILE', str(file))}"
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False, env=buffered)
    assert (ran.returncode, ran.stderr) == (status, told)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        *(
            ({"prediction": value, "references": ["a"]}, "prediction is neither a text nor null")
            for value in (5, True, ["a"], {})
        ),
        *(
            ({"prediction": "a", "references": value}, "references is neither a text nor a list of texts")
            for value in (5, True, {"a": 1}, [None], [["a"]], [1.5])
        ),
        ({"prediction": "a", "answer": 7}, "answer is neither a text nor a list of texts"),
        ({"prediction": "a", "answer": "a", "aliases": {"b": 1}}, "aliases is neither a text nor a list of texts"),
        *(
            ({"prediction": "a", "references": ["a"], "question": value}, "question is neither a text nor null")
            for value in (5, False, ["q"], {})
        ),
        ({"prediction": "\ud800", "references": ["a"]}, "holds half of a surrogate pair"),
        ({"prediction": "a", "references": ["a\udc00"]}, "holds half of a surrogate pair"),
        ({"prediction": "a", "references": []}, "lacks its references"),
        ({"references": ["a"]}, "lacks its prediction"),
    ],
)
def test_what_score_cannot_score_is_told_with_its_place(row: dict[str, Any], told: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    good = {"id": "q0", "prediction": None, "references": ["a"], "question": None}
    file.write_text("\n".join(map(json.dumps, [good, {"id": "q\n7"} | row])))
    with pytest.raises(UserError) as caught:
        command("score")([str(file), "--benchmark", "musique"])
    said = str(caught.value)
    assert said.startswith(f"{file}, line 2 (id q 7): ")
    assert told in said
    assert "\n" not in said
