"""What is in no split, kept beside a build's datasets: rejected rows, list entries without a row.

Both files are shared by the builds of a folder; a build replaces the lines of its benchmark and
split.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from builders.verified.collect import Build
from builders.verified.question_lists import QuestionList
from builders.verified.tally import Tally
from builders.work import publishing
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REJECTS, UNMATCHED
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.store.shapes import shaped

FILES = (REJECTS, UNMATCHED)


def of_others(plan: Build) -> dict[str, list[bytes]]:
    """The lines of each file that are not of this benchmark and split, which stay.

    Raises ``UserError`` for a line that does not say what it is of.
    """
    return {name: _of_others(plan, name) for name in FILES}


def publish(plan: Build, kept: Mapping[str, Sequence[bytes]], lists: Sequence[QuestionList], tally: Tally) -> None:
    """Write both files: the lines that are ``kept``, then those of this build."""
    new = {REJECTS: (plan.work / REJECTS).read_bytes(), UNMATCHED: b"".join(_unmatched(plan, lists, tally))}
    for name in FILES:
        publishing.publish_lines(plan.output / name, b"".join([*kept[name], new[name]]))


def _unmatched(plan: Build, lists: Sequence[QuestionList], tally: Tally) -> Iterable[bytes]:
    for one in lists:
        for text in tally.unmatched(one):
            place = {"benchmark": plan.benchmark, "split": plan.split, "list": one.name}
            line = json.dumps({**place, "question": text}, ensure_ascii=False)
            yield f"{line}\n".encode("utf-8", "backslashreplace")


def _of_others(plan: Build, name: str) -> list[bytes]:
    file, kept = plan.output / name, []
    lines = file.read_bytes().split(b"\n") if file.exists() else []
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        try:
            row = shaped(parse_json(line), Mapping[str, Any])
            ours = (row["benchmark"], row["split"]) == (plan.benchmark, plan.split)
        except (ValueError, KeyError) as error:
            raise UserError(f"{file}:{number}: is not of a build ({error}); mend the line or remove it") from None
        if not ours:
            kept.append(line + b"\n")
    return kept
