"""Samples and judgements made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluators.audit.rows import AuditRow, AuditSample
from evaluators.audit.score import FORM_QUESTIONS

NOISE, SOUND = ("musique", "wrong_answer"), ("musique", "none")
STEP = ("musique", "Contradictory", "injected")


def label_row(id_: str, text: str = "Oru", stratum: tuple[str, ...] = NOISE) -> AuditRow:
    """A row of labels of which every text that others wrote is ``text``."""
    triple = {"head": text, "relation": text, "tail": text, "passage": 1, "sentence": 0}
    shown = {
        "question": text,
        "answers": [text, text],
        "passages": [
            {"title": text, "sentences": [text, text], "gold": True, "supporting": [1]},
            {"title": text, "sentences": [text], "gold": False, "supporting": []},
        ],
        "evidence": [[text, text, text]],
        "decomposition": [[text, text, 1]],
        "label": stratum[1],
        "confidence": 0.9,
        "explanation": f"{text} stands in passage 2.",
        "path": [triple],
        "graph": [triple],
        "teacher": text,
    }
    return AuditRow((stratum[0], id_), stratum, shown)


def step_row(id_: str, text: str = "Oru", stratum: tuple[str, ...] = STEP) -> AuditRow:
    """Likewise of steps."""
    shown = {
        "question": text,
        "current_step": text,
        "diagnosis": f"{text} contradicts Passage 1.",
        "guidance": text,
        "teacher": text,
        "passages": [{"title": text, "text": text}],
        "previous_steps": [text],
        "label": stratum[1],
        "category": "Attribution",
        "origin": stratum[2],
        "query": text,
    }
    return AuditRow((stratum[0], id_), stratum, shown)


def sample(*rows: AuditRow) -> AuditSample:
    of = "labels" if len(rows[0].stratum) == 2 else "steps"
    return AuditSample(of, rows, {})  # type: ignore[arg-type]


def said(id_: str, reviewer: str = "ann", of: str = "labels", **changes: Any) -> dict[str, Any]:
    """A line of an export, of a row of noise where nothing else is said."""
    stratum = NOISE if of == "labels" else STEP
    return {
        "of": of,
        "sample": "ab" * 32,
        "benchmark": "musique",
        "id": id_,
        "sha256": "cd" * 32,
        "stratum": list(stratum),
        "reviewer": reviewer,
        **{asked.name: None for asked in FORM_QUESTIONS.get(of, ())},
        "note": "",
        **changes,
    }


def exported(file: Path, lines: Sequence[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file
