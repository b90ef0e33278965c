"""The command that measures verdicts on paths: a built probe, a real server, resumption."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.methods.paths import STYLES
from scripts import build_path_probe, build_verified
from scripts.evaluate_paths import main
from tests.servers.killed import asked_again, killed
from tests.servers.openai_server import MockServer

FILES = {"results.json", "paths.md", "verdicts.zero_shot.jsonl"}


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small probe."""
    output = tmp_path_factory.mktemp("built")
    options = "--benchmark synthetic --input rows=60,seed=5 --split train --teacher annotations"
    build_verified.main([*options.split(), "--workers", "1", "--output", str(output)])
    build_path_probe.main(["--verified", str(output), "--output", str(output)])
    return output


@pytest.fixture(scope="module")
def gold(probe: Path) -> dict[str, str]:
    """The right reply by what is asked, from the prompts as they are published."""
    folder = probe / "safe-path-probe" / "data" / "prompt_completion"
    return {
        row["prompt"][-1]["content"]: row["completion"][0]["content"]
        for file in folder.glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    }


def right(gold: Mapping[str, str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda body: gold[body["messages"][-1]["content"]]


def arguments(probe: Path, output: Path, engine: str, *more: str) -> list[str]:
    where = ["--probe", str(probe), "--output", str(output), "--engine", engine]
    cache = ["--cache", str(output.with_suffix(".sqlite")), "--split", "train"]
    return [*where, *cache, *more]


def read(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "results.json").read_bytes())
    return found


def content(output: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in output.iterdir()}


def test_the_player_is_always_right(probe: Path, tmp_path: Path) -> None:
    ways = [option for way in STYLES for option in ("--prompt", way)]
    main(arguments(probe, tmp_path / "out", "symbolic", *ways))
    found = read(tmp_path / "out")
    assert [run["prompt"] for run in found["runs"]] == [*STYLES]
    for run in found["runs"]:
        assert set(run["measures"].values()) == {1.0}
        assert {kind["accuracy"] for kind in run["kinds"].values()} == {1.0}
    assert found["simulated"] is True
    assert "> **Simulated**" in (tmp_path / "out" / "paths.md").read_text()


def test_a_player_that_errs(probe: Path, tmp_path: Path) -> None:
    main(arguments(probe, tmp_path / "out", "symbolic:error_rate=0.3,seed=2"))
    (run,) = read(tmp_path / "out")["runs"]
    low, high = run["intervals"]["accuracy"]
    assert low <= 0.7 <= high


def test_a_constant_no_is_balanced_at_a_half(probe: Path, tmp_path: Path) -> None:
    script = tmp_path / "no.json"
    script.write_text(json.dumps({"replies": [], "default": '{"verdict": "NO"}'}))
    main(arguments(probe, tmp_path / "out", f"mock:{script}"))
    (run,) = read(tmp_path / "out")["runs"]
    assert run["measures"]["balanced"] == 0.5
    assert run["measures"]["paper_mean"] == 0.75
    assert run["intervals"]["balanced"] == [0.5, 0.5]


def test_a_served_model(probe: Path, gold: dict[str, str], tmp_path: Path) -> None:
    with MockServer(right(gold)) as server:
        main(arguments(probe, tmp_path / "out", server.spec))
    found = read(tmp_path / "out")
    (run,) = found["runs"]
    assert set(run["measures"].values()) == {1.0}
    assert found["simulated"] is False
    assert run["tokens"]["requests"] == run["rows"] == sum(server.answered.values())
    assert set(content(tmp_path / "out")) == FILES
    assert "imulated" not in (tmp_path / "out" / "paths.md").read_text()


def test_prose_is_read_by_its_verdict(probe: Path, gold: dict[str, str], tmp_path: Path) -> None:
    def reply(body: Mapping[str, Any]) -> str:
        verdict = json.loads(right(gold)(body))["verdict"]
        return {"NO": "I know these. Step 1 is false. NO"}.get(verdict, "I know nothing of it.")

    with MockServer(reply) as server:
        main(arguments(probe, tmp_path / "out", server.spec))
    (run,) = read(tmp_path / "out")["runs"]
    valid = run["kinds"].pop("valid")
    assert valid["accuracy"] is None
    assert valid["unreadable"] == valid["rows"] == run["said"]["unreadable"]
    assert {kind["accuracy"] for kind in run["kinds"].values()} == {1.0}
    assert run["measures"]["balanced"] is None
    assert run["measures"]["least"] == 0.5
    lines = (tmp_path / "out" / "verdicts.zero_shot.jsonl").read_text().splitlines()
    reasons = [one["reason"] for one in map(json.loads, lines) if one["said"] == "unreadable"]
    assert set(reasons) == {"it gives no verdict"}


def test_a_killed_run_goes_on(probe: Path, gold: dict[str, str], tmp_path: Path) -> None:
    in_flight = 2
    with MockServer(right(gold), last=20) as server:
        how = ["--in-flight", str(in_flight), "--limit", "60"]
        options = arguments(probe, tmp_path / "out", server.spec, *how)
        killed(server, "evaluate_paths", options)
        assert not (tmp_path / "out" / "results.json").exists()
        main(options)
        assert asked_again(server) <= in_flight
        main(arguments(probe, tmp_path / "whole", server.spec, *how))
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert read(tmp_path / "out")["runs"][0]["rows"] == 60


def test_what_an_earlier_run_wrote_goes(probe: Path, tmp_path: Path) -> None:
    way = ["--prompt", "few_shot", "--limit", "9"]
    main(arguments(probe, tmp_path / "out", "symbolic", *way))
    assert "verdicts.few_shot.jsonl" in content(tmp_path / "out")
    main(arguments(probe, tmp_path / "out", "symbolic", "--limit", "9"))
    assert set(content(tmp_path / "out")) == FILES


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--probe", "nowhere"], "no safe-path-probe in it"),
        (["--split", "dev"], "'dev' has no rows; choose --split from test, train, validation"),
        (["--engine", "opnai:x"], "did you mean openai:x"),
        (["--prompt", "zeroshot"], "zero_shot"),
        (["--limit", "0"], "from 1 on"),
    ],
)
def test_mistakes_are_one_line(probe: Path, tmp_path: Path, options: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        main([*arguments(probe, tmp_path / "out", "symbolic"), *options])


def test_a_damaged_row_is_named(probe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "safe-path-probe" / "data" / "path_probe"
    folder.mkdir(parents=True)
    (source,) = (probe / "safe-path-probe" / "data" / "path_probe").glob("train-*.parquet")
    rows = pq.read_table(source).slice(0, 3)
    at = rows.schema.get_field_index("corruption")
    broken = rows.set_column(at, rows.schema.field("corruption"), [[0, 77, 0]])
    pq.write_table(broken, folder / source.name)
    with pytest.raises(UserError, match=rows["id"][1].as_py()):
        main(arguments(tmp_path, tmp_path / "out", "symbolic"))
