"""The columns of the path probe, and the way from rows to them."""

import json
from typing import Any

from builders.paths.rows import ProbeRow
from safe_stepwise.methods.paths import path_request
from safe_stepwise.store.names import CORRUPTIONS, PATH_LABELS, PROBED, PROMPT_COMPLETION

CONFIGS = (PROBED, PROMPT_COMPLETION)
Row = dict[str, Any]


def config_features(config: str) -> Any:
    """The `datasets.Features` of a config; `PROMPT_COMPLETION` is TRL's conversational form."""
    from datasets import ClassLabel, Features, List, Value

    text = Value("string")
    if config == PROMPT_COMPLETION:
        turns = List({"role": text, "content": text})
        return Features({"id": text, "prompt": turns, "completion": turns})
    return Features(
        {
            "id": text,
            "benchmark": text,
            "question_id": text,
            "question": text,
            "answer": text,
            "path": List({"head": text, "relation": text, "tail": text}),
            "label": ClassLabel(names=list(PATH_LABELS)),
            "corruption": ClassLabel(names=list(CORRUPTIONS)),
            "position": Value("int32"),
            "pair_id": text,
        }
    )


def row_of(config: str, row: ProbeRow) -> Row:
    """A row as a config has it; class labels as the numbers that `ClassLabel` stores."""
    asked = row.asked
    if config == PROMPT_COMPLETION:
        request = path_request(asked.question, asked.answer, row.path)
        verdict = "YES" if row.corruption == "valid" else "NO"
        said = json.dumps({"verdict": verdict})
        return {
            "id": row.id,
            "prompt": [{"role": turn.role, "content": turn.content} for turn in request.messages],
            "completion": [{"role": "assistant", "content": said}],
        }
    return {
        "id": row.id,
        "benchmark": asked.benchmark,
        "question_id": asked.id,
        "question": asked.question,
        "answer": asked.answer,
        "path": [{"head": t.head, "relation": t.relation, "tail": t.tail} for t in row.path],
        "label": PATH_LABELS.index("valid" if row.corruption == "valid" else "invalid"),
        "corruption": CORRUPTIONS.index(row.corruption),
        "position": row.position,
        "pair_id": row.pair_id,
    }
