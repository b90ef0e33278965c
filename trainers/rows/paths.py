"""The training rows of a proposer of relation paths, from a dp-BENCHMARK-paths set.

SFT learns ``prompt_completion``, weakly labelled paths; KTO learns ``kto``, right and wrong ones (Deliberation on
Priors, section 3.1). ``splits`` chooses whether train and test may not share a question, or not even a question's
template (the configs ``..._by_template``). The latter is the fair test for questions made from templates.

A reply names one path of a topic entity, or (``joint``) all of a question. A *deletion* is a wrong reply without a
path; a right reply always names one. For ``labels`` eq1 and for joint replies the right replies are rendered from the
config ``paths``, which has every shortest path. A wrong joint reply has the wrong path in place of its topic's paths.

Source: ours (`safe-stepwise build_paths`), licence as its card says. One row of ``kto``::

    {"id": "9d1c...", "question_id": "3hop-train-5", "hops": 3, "topic": "Oru", "label": false, "kind": "flipped",
     "prompt": [{"role": "system", "content": "Name the relations ..."}, ...],
     "completion": [{"role": "assistant", "content": "{\"path\": [\"~directed_by\"]}"}]}

and of ``prompt_completion``, where ``rank`` 0 is a question's first path of several::

    {"id": "5c0e...", "question_id": "3hop-train-5", "hops": 3, "rank": 0, "prompt": ..., ...}
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any

from safe_stepwise.engines.base import Request, conversation
from safe_stepwise.errors import UserError
from safe_stepwise.methods import path_proposing
from safe_stepwise.records import Candidate, identity
from safe_stepwise.store.grouping import grouped
from safe_stepwise.store.names import BY_TEMPLATE, PATHS, PATHS_RECORD, PATHS_SETS, PROMPT_COMPLETION
from safe_stepwise.store.names import KTO as KTO_ROWS
from trainers.config import PathFilters, PathRecipe
from trainers.rows.base import ANEW, BadRow, DatasetSource, Row, RowKind, find, kind_of, load, refuse

POSITIVE = "positive"
"""The kind of a right path."""
_NO_PATH = path_proposing.completion_of(())
_PATH_COLUMNS = ("question_id", "question", "topic", "topics", "path")
"""The columns of the config ``paths`` that replies are rendered from."""


@dataclass(frozen=True)
class PathRows(RowKind):
    """The rows of a method and splits, which `trainers.config.PathRecipe` explains, in the order of id hashes."""

    method: str
    splits: str
    labels: str = "filtered"
    joint: bool = False

    @property
    def labelled(self) -> bool:  # type: ignore[override]
        return self.method == "kto"

    @property
    def config(self) -> str:
        return self._name_config(KTO_ROWS if self.labelled else PROMPT_COMPLETION)

    def _name_config(self, rows: str) -> str:
        return rows + (BY_TEMPLATE if self.splits == "template" else "")

    def rows(self, dataset: str, split: str, filters: PathFilters) -> tuple[DatasetSource, list[Row]]:
        source, rows = self._load_all_rows(dataset, split)
        needed = {"id", "question_id", "prompt", "completion"} | ({"label", "kind"} if self.labelled else {"rank"})
        for row in rows[:1]:
            if missing := sorted(needed - set(row)):
                raise UserError(f"{dataset}: its {self.config} lacks {', '.join(missing)}; {ANEW}")
        kinds = {row["kind"] for row in rows if not row.get("label", True)}
        if unknown := sorted(set(filters.negatives) - kinds):
            available = ", ".join(sorted(kinds))
            raise UserError(f"{dataset}: filters.negatives: no {unknown[0]} in it, only {available}")
        pathless = [row["id"] for row in rows if row.get("label", True) and _reply_text(row) == _NO_PATH]
        refuse(dict.fromkeys(pathless, "is right, but names no path"), dataset, ANEW)
        shuffled = sorted(rows, key=lambda row: sha256(row["id"].encode()).digest())
        return source, [row for row in shuffled if _is_selected(row, filters)]

    def questions(self, dataset: str, split: str) -> dict[str, str]:
        return {row["id"]: row["question_id"] for row in self._load_all_rows(dataset, split)[1]}

    def check(self, completion: str) -> None:
        if self.labelled and not self.joint and completion == _NO_PATH:
            return  # a deletion
        try:
            (path_proposing.read_joint if self.joint else path_proposing.read_path)(completion)
        except ValueError as error:
            raise BadRow(f"has a completion that is no path, or is cut short ({error})") from None

    def prompt_digest(self) -> str:
        return path_proposing.prompt_digest(joint=self.joint)

    def set_digest(self) -> str:
        return path_proposing.prompt_digest()

    def _load_all_rows(self, dataset: str, split: str) -> tuple[DatasetSource, list[Row]]:
        """Load the rows before filtering; render the right replies if the set has them in another form."""
        source, loaded = self._load(dataset, split, self.config)
        to_name = getattr(loaded.features.get("kind"), "int2str", None)  # None if the column holds text
        rows: list[Row] = [{**row, "kind": to_name(row["kind"])} if to_name else row for row in loaded]
        if not self.joint and self.labels == "filtered":
            return source, rows
        paths = self._load(dataset, split, self._name_config(PATHS))[1]
        rule = "shortest" if self.labels == "eq1" else "best"
        chosen = (row for row in paths.select_columns([*_PATH_COLUMNS, rule]) if row[rule])
        right = grouped(chosen, itemgetter("question_id"))
        wrong = grouped((row for row in rows if not row.get("label", True)), itemgetter("question_id"))
        render = _render_joint if self.joint else _render_single
        return source, [row for id_, right_rows in right.items() for row in render(right_rows, wrong.get(id_, ()))]

    def _load(self, dataset: str, split: str, config: str) -> tuple[DatasetSource, Any]:
        """Load a config's rows of a split; ``dataset`` may also be a folder that holds the set of one benchmark."""
        folder = Path(dataset).expanduser()
        inner = sorted(folder.glob(f"{PATHS_SETS}/data")) if not (folder / "data").is_dir() else []
        if len(inner) > 1:
            names = ", ".join(path.parent.name for path in inner)
            raise UserError(f"{dataset}: holds several sets ({names}); name one of them")
        source, place = find(dataset, inner[0].parent.name if inner else PATHS_SETS, PATHS_RECORD)
        return source, load(dataset, place, source.revision, config, split)


def _reply_text(row: Row) -> str:
    return "".join(turn["content"] for turn in row["completion"])


def _render_single(right: Sequence[Row], wrong: Sequence[Row]) -> Iterator[Row]:
    """Yield a question's right replies, then its wrong ones, except those that name a right path."""
    replies = {(row["topic"], path_proposing.completion_of(row["path"])): row for row in right}
    for (topic, reply), row in replies.items():
        yield _render_row(row, path_proposing.propose_request(row["question"], topic), reply, POSITIVE)
    yield from (row for row in wrong if (row["topic"], _reply_text(row)) not in replies)


def _render_joint(right: Sequence[Row], wrong: Sequence[Row]) -> Iterator[Row]:
    """Yield a question's right reply, then a reply for each wrong path, which replaces the paths of its topic."""
    first = right[0]
    request = path_proposing.joint_request(first["question"], first["topics"])
    candidates = [Candidate(row["topic"], tuple(row["path"])) for row in right]
    yield _render_row(first, request, path_proposing.joint_completion(candidates), POSITIVE)
    for row in wrong:
        path = tuple(json.loads(_reply_text(row))["path"])
        wrong_candidate = Candidate(row["topic"], path)
        remaining = [candidate for candidate in candidates if candidate.topic != row["topic"]]
        if wrong_candidate not in candidates and (remaining or path):
            reply = path_proposing.joint_completion([*remaining, *([wrong_candidate] if path else [])])
            yield _render_row(first, request, reply, row["kind"])


def _render_row(row: Row, request: Request, reply: str, kind: str) -> Row:
    id_ = identity([row["question_id"], row["topic"], reply, kind])[:16]
    columns = {"id": id_, "question_id": row["question_id"], "rank": 0, "label": kind == POSITIVE, "kind": kind}
    return {**columns, **conversation(request, reply)}


@kind_of.register
def _(recipe: PathRecipe) -> RowKind:
    return PathRows(recipe.method, recipe.splits, recipe.filters.labels, recipe.paths == "joint")


def _is_selected(row: Row, filters: PathFilters) -> bool:
    if "label" in row:
        return bool(row["label"]) or not filters.negatives or row["kind"] in filters.negatives
    return filters.paths is None or row["rank"] < filters.paths
