"""The rows a verifier is trained on: ``prompt_completion`` of a safe-verifier-steps set.

For incomplete evidence, ``missing_evidence_prompt_completion``: the same rows, and those where a
passage is missing, under the prompt that allows for the twelfth label (SAFE v2, finding 5).

Source: ours (`safe-stepwise build_verifier_steps`), licence as its card says. One row::

    {"id": "5c0e...", "prompt": [{"role": "system", "content": "..."}, ...],
     "completion": [{"role": "assistant", "content": "{\"error_type\": \"Redundancy\", ...}"}]}

What an ablation filters by (error type, origin) stands in the configs of steps, under the same ids.
A category that is dropped from the prompt, too (SAFE v2, Table 4), is in none of its instructions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, format_feedback, parse_feedback
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.verifier import instructions, prompt_digest
from safe_stepwise.records import EVIDENCE_FIRST, LABEL_FIRST, Feedback, VerdictOrder
from safe_stepwise.store import names
from safe_stepwise.taxonomy import CORRECT, Category, category
from trainers.config import Filters, VerifierRecipe
from trainers.rows.base import ANEW, BadRow, Kind, Row, Source, find, kind_of, load

PLAIN_GUIDANCE = "Write this step again, without the error."
"""Guidance of a diagnosis-only verifier, as every error needs one that is not empty."""

_PLACE = (names.VERIFIER_STEPS, names.STEPS_RECORD)
_COLUMNS = ("id", "benchmark", "question_id", "error_type", "origin")
_LATER = ("context",)
"""Columns that sets of before do not have."""
_CLASSES = ("error_type", "origin", *_LATER)


@dataclass(frozen=True)
class VerifierRows(Kind):
    """The rows of a setting: of eleven labels, or of twelve; ``dropped`` is what filters leave out of the prompt."""

    incomplete_evidence: bool = False
    dropped: Category | None = None
    prompt_set: PromptSet = PAPER
    """By which the set's rows were rendered."""

    @property
    def rendered_by(self) -> str:  # type: ignore[override]
        return names.RENDERED_BY[self.incomplete_evidence]

    @property
    def recorded_prompts(self) -> Mapping[str, str]:  # type: ignore[override]
        return self.prompt_set.plain

    def open(self, dataset: str, split: str, filters: Filters) -> tuple[Source, list[Row]]:
        source, rows = super().open(dataset, split, filters)
        order = self.prompt_set.verdict_order
        if filters.unasked is not None:
            before = instructions(self.incomplete_evidence, prompt_set=self.prompt_set)
            if others := [row["id"] for row in rows if _instructed(row) != before]:
                raise UserError(
                    f"{dataset}: its prompts have other instructions than ours (row {others[0]}), so "
                    f"that no category can be taken out of them; {ANEW}"
                )
            without = instructions(self.incomplete_evidence, filters.unasked, self.prompt_set)
            rows = [instructed(row, without) for row in rows]
        if order == EVIDENCE_FIRST and filters.feedback == "guidance":
            raise UserError(
                f"{dataset}: filters.feedback: its verdicts begin with their evidence, which guidance "
                "alone leaves out; take a set with the label first"
            )
        return source, [with_feedback(row, filters.feedback, order) for row in rows]

    def rows(self, dataset: str, split: str, filters: Filters) -> tuple[Source, list[Row]]:
        source, place = find(dataset, *_PLACE)
        config = names.MISSING_PROMPT_COMPLETION if self.incomplete_evidence else names.PROMPT_COMPLETION
        if config not in source.about.get("files", (config,)):
            raise UserError(f"{dataset}: holds no {config}; {ANEW}, for incomplete_evidence")
        rows = list(load(dataset, place, source.revision, config, split))
        for row in rows[:1]:
            if not {"id", "prompt", "completion"} <= set(row):
                raise UserError(f"{dataset}: its {config} lacks id, prompt or completion")
        if filters.drop_category or filters.origins or not filters.twins:
            kept = {row["id"] for row in self._labels(dataset, source, place, split) if _stays(row, filters)}
            rows = [row for row in rows if row["id"] in kept]
        return source, rows

    def questions(self, dataset: str, split: str) -> dict[str, tuple[str, str]]:
        labels = self._labels(dataset, *find(dataset, *_PLACE), split)
        return {row["id"]: (row["benchmark"], row["question_id"]) for row in labels}

    def check(self, completion: str) -> None:
        try:
            parse_feedback(completion, incomplete_evidence=True)
        except FeedbackError as error:
            raise BadRow(f"has a completion that is no verdict, or is cut short ({error})") from None

    def prompt_digest(self) -> str:
        return prompt_digest(self.incomplete_evidence, self.dropped, self.prompt_set)

    def set_digest(self) -> str:
        return prompt_digest(self.incomplete_evidence, prompt_set=self.prompt_set)

    def _labels(self, dataset: str, source: Source, place: str, split: str) -> Iterator[Row]:
        """`_COLUMNS` of every row of a split, in words."""
        files = source.about.get("files")  # of the configs but the first, a set may have no rows
        first, *more = names.ASKED_OF[self.incomplete_evidence]
        for config in (first, *(c for c in more if files is None or files[c][split]["rows"])):
            whole = load(dataset, place, source.revision, config, split)
            found = whole.select_columns([name for name in (*_COLUMNS, *_LATER) if name in whole.features])
            named = {name: label for name, label in found.features.items() if name in _CLASSES}
            for row in found:
                yield {**row, **{name: label.int2str(row[name]) for name, label in named.items()}}


VERIFIER = VerifierRows()


def prompts_of(dataset: str, said: PromptSet | None = None) -> PromptSet:
    """The prompts that a set's rows were rendered by.

    Raises ``UserError`` as `find` does, and where they are not those that are ``said``.
    """
    source, _ = find(dataset, *_PLACE)
    known = source.about.get("prompts") or {}
    try:
        own = PromptSet.of(known.get("prompts"), known.get("verdict_order"))
    except ValueError as error:
        raise UserError(f"{dataset}: {names.STEPS_RECORD}: {error}; {ANEW}") from None
    if said not in (None, own):
        options = " ".join(f"--{n.replace('_', '-')} {v}" for n, v in asdict(said).items())
        raise UserError(
            f"{dataset}: was rendered with other prompts than the recipe names; build it with "
            f"{options.replace('--name', '--prompts')}"
        )
    return own


@kind_of.register
def _(recipe: VerifierRecipe) -> Kind:
    said = (recipe.prompts, recipe.verdict_order)
    own = prompts_of(recipe.dataset, PromptSet.of(*said) if any(said) else None)
    return VerifierRows(recipe.incomplete_evidence, recipe.filters.unasked, own)


def instructed(row: Row, told: str) -> Row:
    """The row with these instructions in its prompt's first turn."""
    first, *others = row["prompt"]
    return {**row, "prompt": [{**first, "content": told}, *others]}


def _instructed(row: Row) -> str:
    first = row["prompt"][0] if row["prompt"] else {}
    return str(first.get("content", "")) if first.get("role") == "system" else ""


def with_feedback(row: Row, keep: str, order: VerdictOrder = LABEL_FIRST) -> Row:
    """The row with one field of its verdict blanked, in the wire format that the loop reads.

    ``keep`` is full, diagnosis or guidance.
    """
    if keep == "full":
        return row
    turn = row["completion"][0]
    found = parse_feedback(turn["content"], incomplete_evidence=True)
    plain = "" if found.error_type == CORRECT else PLAIN_GUIDANCE
    diagnosis, guidance = (found.diagnosis, plain) if keep == "diagnosis" else ("", found.guidance)
    verdict = Feedback(found.error_type, diagnosis, guidance, found.query)
    return {**row, "completion": [{**turn, "content": format_feedback(verdict, order)}]}


def _stays(row: Row, filters: Filters) -> bool:
    label = row["error_type"]
    dropped = label != CORRECT and category(label) == filters.drop_category
    if not filters.twins:
        dropped |= _context(row) != names.ORIGINAL
    return not dropped and (not filters.origins or row["origin"] in filters.origins)


def _context(row: Row) -> str:
    if "context" not in row:
        raise UserError(f"filters.twins: the set does not say which rows are twins; {ANEW}")
    return str(row["context"])
