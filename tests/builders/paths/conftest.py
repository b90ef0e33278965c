"""Probes to look at: a synthetic one, and one of real rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from safe_stepwise.store.names import CORRUPTIONS
from scripts import build_path_probe, build_verified

ROWS = 60


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A verified set of made-up questions."""
    output = tmp_path_factory.mktemp("verified")
    options = "--benchmark synthetic --input rows=60,seed=4 --split train --teacher annotations"
    build_verified.main([*options.split(), "--workers", "1", "--output", str(output)])
    return output


@pytest.fixture(scope="session")
def verified(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A verified set of real rows, of HotpotQA those that have derivations."""
    output = tmp_path_factory.mktemp("real")
    derived = {json.loads(line)["id"] for line in lines(real_data / "r4c_derivations.jsonl")}
    for name in ("2wikimultihopqa", "musique", "hotpotqa"):
        rows = lines(real_data / f"{name}_dev.jsonl")
        if name == "hotpotqa":
            rows = (line for line in rows if json.loads(line)["_id"] in derived)
        file = output / f"{name}.jsonl"
        file.write_text("\n".join(islice(rows, ROWS)), encoding="utf-8")
        options = f"--benchmark {name} --input {file} --split train --teacher annotations"
        kept = ["--on-error", "keep", "--workers", "1", "--output", str(output / "out")]
        build_verified.main([*options.split(), *kept])
    return output / "out"


@pytest.fixture(scope="session")
def film_questions(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some questions of each number of hops."""
    every = [*lines(real_data / "metaqa_questions.jsonl")]
    file = tmp_path_factory.mktemp("films") / "questions.jsonl"
    file.write_text("\n".join(every[::25]), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def real(verified: Path, film_questions: Path, real_data: Path, tmp_path_factory: Any) -> Path:
    """The folder of a probe of real rows."""
    output: Path = tmp_path_factory.mktemp("probe")
    build_path_probe.main(
        [
            *("--verified", str(verified), "--output", str(output)),
            *("--derivations", str(real_data / "r4c_derivations.jsonl")),
            *("--kb", str(real_data / "metaqa_kb.txt.gz"), "--questions", str(film_questions)),
        ]
    )
    return output


def lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as content:
        yield from (line.strip() for line in content if line.strip())


def rows_in(output: Path, config: str = "path_probe") -> list[dict[str, Any]]:
    """All rows of a probe, with their split and the name of their kind."""
    rows = []
    for file in sorted((output / "safe-path-probe" / "data" / config).glob("*.parquet")):
        for row in pq.read_table(file).to_pylist():
            told = {"split": file.name.partition("-")[0]}
            if config == "path_probe":
                told["kind"] = CORRUPTIONS[row["corruption"]]
                told["told"] = tuple((t["head"], t["relation"], t["tail"]) for t in row["path"])
            rows.append({**row, **told})
    return rows
