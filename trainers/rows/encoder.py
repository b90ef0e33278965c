"""The training rows of an encoder, which labels a step instead of writing a verdict: the steps of a verifier's set.

Each row is a pair of texts (`players.encoding.render_pair`) and its label. The rows come in *views*, one after the
other, as a curriculum. A ``sentence`` is one of a passage, as it is or changed (`rows.sentences`). A ``claim`` is what
an attribution step says beside what it cites, without the question and the steps before it. A ``step`` is all that the
encoder reads once it judges. One row::

    {"id": "5c0e.../claim", "prompt": ["Step 2: According to Passage 2, ...", "Passage 2. Oru: ..."],
     "completion": "Contradictory", "view": "claim"}
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from safe_stepwise.players.encoding import LABELS, excerpt_passages, render_pair
from safe_stepwise.records import identity
from safe_stepwise.store import names
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.codec import passage_of
from safe_stepwise.taxonomy import CORRECT
from trainers.config import SENTENCE, STEP, VIEWS, EncoderRecipe, Filters, View
from trainers.rows.base import BadRow, DatasetSource, Row, RowKind, kind_of
from trainers.rows.sentences import make_claims
from trainers.rows.verifier import LABEL_COLUMNS, read_steps

_CLAIM_LABELS = (CORRECT, "Contradictory", "Unsupported", "Information Miss")
"""The labels that need nothing but the step and what it cites."""
_COLUMNS = ("question", "passages", "previous_steps", "current_step", "step_kind")


@dataclass(frozen=True)
class EncoderRows(RowKind):
    """The rows of an encoder, in the order of the recipe's views."""

    recipe: EncoderRecipe
    classes = LABELS
    rendered_by = ""  # by none: an encoder reads the set's steps, not its prompts
    recorded_prompts = {"role": "encoder"}  # noqa: RUF012  (the kind's own, as its labels)

    def open(self, dataset: str, split: str, filters: Filters) -> tuple[DatasetSource, list[Row]]:
        source, rows = super().open(dataset, split, filters)
        views = self.recipe.views if split == names.TRAIN else (STEP,)
        return source, [pair for view in views for pair in self._render(rows, view)]

    def _render(self, rows: Sequence[Row], view: View) -> Iterator[Row]:
        if view != SENTENCE:
            yield from _render_view(rows, view)
            return
        passages = [passage_of(page) for row in rows for page in row["passages"]]
        for step, excerpt, label in dict.fromkeys(make_claims(passages, self.recipe.sentences, self.recipe.seed)):
            id_ = f"{identity([step, excerpt])[:32]}/{SENTENCE}"
            yield {"id": id_, "prompt": [step, excerpt], "completion": label, "view": SENTENCE}

    def rows(self, dataset: str, split: str, filters: Filters) -> tuple[DatasetSource, list[Row]]:
        return read_steps(dataset, split, filters, (*LABEL_COLUMNS, *_COLUMNS))

    def questions(self, dataset: str, split: str) -> dict[str, tuple[str, str]]:
        _, rows = read_steps(dataset, split, Filters())
        return {f"{row['id']}/{view}": (row["benchmark"], row["question_id"]) for view in VIEWS for row in rows}

    def check(self, completion: str) -> None:
        if completion not in LABELS:
            raise BadRow(f"has the label {completion!r}, which an encoder does not know")

    def prompt_digest(self) -> str:
        return code_digest(render_pair.__module__)


def _render_view(rows: Iterable[Row], view: View) -> Iterator[Row]:
    """Yield steps in a view, without those whose label needs more than the view has."""
    for row in rows:
        passages = [*map(passage_of, row["passages"])]
        previous, step, label = row["previous_steps"], row["current_step"], row["error_type"]
        if view == STEP:
            pair = render_pair(row["question"], passages, previous, step)
        elif row["step_kind"] == "Attribution" and label in _CLAIM_LABELS:
            pair = step, "\n".join(excerpt_passages(passages, step, not previous))
        else:
            continue
        yield {"id": f"{row['id']}/{view}", "prompt": [*pair], "completion": label, "view": view}


@kind_of.register
def _(recipe: EncoderRecipe) -> RowKind:
    return EncoderRows(recipe)
