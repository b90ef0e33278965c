"""A tiny set of relation paths, made up, in the shape that `scripts.build_paths` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from safe_stepwise.methods.path_proposing import completion_of, propose_request

NAME = "dp-songs-paths"
WORDS = {
    ("sung_by",): "who sings {}",
    ("~sung_by",): "what does {} sing",
    ("sung_by", "born_in"): "where was the singer of {} born",
    ("written_by", "~written_by"): "what else did the writer of {} write",
}
WRONG = {"truncation": lambda path: path[:1], "wrong_relation": lambda path: (*path, "sung_by")}


def write_set(folder: Path, questions: int = 12, tested: int = 4) -> Path:
    """The set's folder; the last ``tested`` questions are its test split."""
    sft: list[dict[str, Any]] = []
    kto: list[dict[str, Any]] = []
    for number in range(questions):
        path, words = list(WORDS.items())[number % len(WORDS)]
        asked = _asked(number, words)
        sft.append({"id": f"p{number}", **asked, **_said(path), "rank": 0})
        kto.append({"id": f"k{number}", **asked, **_said(path), "label": True, "kind": "positive"})
        for kind, spoil in WRONG.items():
            wrong = {**_said(spoil(path)), "label": False, "kind": kind}
            if spoil(path) != path:
                kto.append({"id": f"k{number}-{kind}", **asked, **wrong})
    train = questions - tested
    for config, rows in (("prompt_completion", sft), ("kto", kto)):
        for name in (config, f"{config}_by_template"):
            for split, kept in (("train", range(train)), ("test", range(train, questions))):
                _write(folder / NAME / "data" / name, split, rows, kept)
    return folder / NAME


def _asked(number: int, words: str) -> dict[str, Any]:
    topic = f"Song {number}"
    request = propose_request(words.format(f"[{topic}]"), topic)
    prompt = [{"role": m.role, "content": m.content} for m in request.messages]
    return {"question_id": f"q{number}", "hops": 1, "prompt": prompt}


def _said(path: tuple[str, ...]) -> dict[str, Any]:
    return {"completion": [{"role": "assistant", "content": completion_of(path)}]}


def _write(folder: Path, split: str, rows: list[dict[str, Any]], kept: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"q{number}" for number in kept}
    table = pa.Table.from_pylist([row for row in rows if row["question_id"] in wanted])
    pq.write_table(table, folder / f"{split}-00000-of-00001.parquet")
