"""The training rows of a verifier: ``prompt_completion`` of a safe-verifier-steps set.

For incomplete evidence they come from ``missing_evidence_prompt_completion``: the same rows, and rows that lack a
passage, with the prompt that allows the twelfth label (SAFE v2, finding 5). A *twin* is a row with the words of
another row, over other passages.

Source: ours (`safe-stepwise build_verifier_steps`), licence as its card says. One row::

    {"id": "5c0e...", "prompt": [{"role": "system", "content": "..."}, ...],
     "completion": [{"role": "assistant", "content": "{\"error_type\": \"Redundancy\", ...}"}]}

An ablation filters by columns of the steps' configs (error type, origin), which have the same ids. A category can
also be left out of the prompt's instructions (SAFE v2, Table 4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from safe_stepwise.engines.weights import loading
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, format_feedback, parse_feedback
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.verifier import instructions, prompt_digest
from safe_stepwise.records import EVIDENCE_FIRST, LABEL_FIRST, Feedback, VerdictOrder
from safe_stepwise.store import names
from safe_stepwise.taxonomy import CORRECT, Category, category
from trainers.config import Filters, VerifierRecipe
from trainers.rows.base import ANEW, BadRow, DatasetSource, Row, RowKind, find, kind_of, load

PLAIN_GUIDANCE = "Write this step again, without the error."
"""The guidance of a diagnosis-only verifier, as an error's guidance can't be empty."""

_DATASET = (names.VERIFIER_STEPS, names.STEPS_RECORD)
_LABELS = ("error_type", "origin", "context")
LABEL_COLUMNS = ("id", "benchmark", "question_id", *_LABELS)


@dataclass(frozen=True)
class VerifierRows(RowKind):
    """The rows of a verifier that knows eleven labels, or twelve (``incomplete_evidence``)."""

    incomplete_evidence: bool = False
    dropped_category: Category | None = None
    """The category that the prompt leaves out."""
    prompt_set: PromptSet = PAPER
    """The prompts that the set's rows were rendered by."""

    @property
    def rendered_by(self) -> str:  # type: ignore[override]
        return names.RENDERED_BY[self.incomplete_evidence]

    @property
    def recorded_prompts(self) -> Mapping[str, str]:  # type: ignore[override]
        return self.prompt_set.plain

    def open(self, dataset: str, split: str, filters: Filters) -> tuple[DatasetSource, list[Row]]:
        source, rows = super().open(dataset, split, filters)
        order = self.prompt_set.verdict_order
        if filters.dropped_category is not None:
            full, reduced = (
                {"role": "system", "content": instructions(self.incomplete_evidence, dropped, self.prompt_set)}
                for dropped in (None, filters.dropped_category)
            )
            if foreign := [row["id"] for row in rows if [*row["prompt"][:1]] != [full]]:
                raise UserError(
                    f"{dataset}: its prompts have other instructions than ours (row {foreign[0]}), so "
                    f"that no category can be taken out of them; {ANEW}"
                )
            rows = [{**row, "prompt": [reduced, *row["prompt"][1:]]} for row in rows]
        if order == EVIDENCE_FIRST and filters.feedback == "guidance":
            raise UserError(
                f"{dataset}: filters.feedback: its verdicts begin with their evidence, which guidance "
                "alone leaves out; take a set with the label first"
            )
        return source, [with_feedback(row, filters.feedback, order) for row in rows]

    def rows(self, dataset: str, split: str, filters: Filters) -> tuple[DatasetSource, list[Row]]:
        source, place = find(dataset, *_DATASET)
        config = names.MISSING_PROMPT_COMPLETION if self.incomplete_evidence else names.PROMPT_COMPLETION
        if config not in source.about.get("files", (config,)):
            raise UserError(f"{dataset}: holds no {config}; {ANEW}, for incomplete_evidence")
        rows = list(load(dataset, place, source.revision, config, split))
        for row in rows[:1]:
            if not {"id", "prompt", "completion"} <= set(row):
                raise UserError(f"{dataset}: its {config} lacks id, prompt or completion")
        if filters.drop_category or filters.origins or not filters.twins:
            _, steps = read_steps(dataset, split, filters, configs=names.STEP_CONFIGS[self.incomplete_evidence])
            ids = {row["id"] for row in steps}
            rows = [row for row in rows if row["id"] in ids]
        return source, rows

    def questions(self, dataset: str, split: str) -> dict[str, tuple[str, str]]:
        _, rows = read_steps(dataset, split, Filters(), configs=names.STEP_CONFIGS[self.incomplete_evidence])
        return {row["id"]: (row["benchmark"], row["question_id"]) for row in rows}

    def check(self, completion: str) -> None:
        try:
            parse_feedback(completion, incomplete_evidence=True)
        except FeedbackError as error:
            raise BadRow(f"has a completion that is no verdict, or is cut short ({error})") from None

    def prompt_digest(self) -> str:
        return prompt_digest(self.incomplete_evidence, self.dropped_category, self.prompt_set)

    def set_digest(self) -> str:
        return prompt_digest(self.incomplete_evidence, prompt_set=self.prompt_set)


def read_steps(
    dataset: str,
    split: str,
    filters: Filters,
    columns: Sequence[str] = LABEL_COLUMNS,
    configs: Sequence[str] = names.STEP_CONFIGS[False],
) -> tuple[DatasetSource, list[Row]]:
    """Return the rows of a split's configs that pass the filters, labels as text; ``columns`` has `LABEL_COLUMNS`."""
    source, place = find(dataset, *_DATASET)
    files, selected = source.about.get("files"), list[Row]()
    first, *optional = configs  # only the first is sure to have rows
    for config in (first, *(c for c in optional if files is None or files[c][split]["rows"])):
        with loading(dataset, ANEW):
            rows = load(dataset, place, source.revision, config, split).select_columns([*columns])
        texts = {name: rows.features[name].int2str for name in _LABELS}
        labelled = ({**row, **{name: text(row[name]) for name, text in texts.items()}} for row in rows)
        selected += [row for row in labelled if _is_selected(row, filters)]
    return source, selected


VERIFIER = VerifierRows()


def read_prompts(dataset: str, expected: PromptSet | None = None) -> PromptSet:
    """Return the prompts of a set's rows; raise ``UserError`` as `find` does, and for other than ``expected`` ones."""
    source, _ = find(dataset, *_DATASET)
    recorded = source.about.get("prompts") or {}
    try:
        prompts = PromptSet.from_choices(*map(recorded.get, ("prompts", "verdict_order", "verifier_evidence")))
    except ValueError as error:
        raise UserError(f"{dataset}: {names.STEPS_RECORD}: {error}; {ANEW}") from None
    if expected not in (None, prompts):
        options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in asdict(expected).items())
        raise UserError(
            f"{dataset}: was rendered with other prompts than the recipe names; build it with "
            f"{options.replace('--name', '--prompts').replace('--verifier-', '--')}"
        )
    return prompts


@kind_of.register
def _(recipe: VerifierRecipe) -> RowKind:
    requested = (recipe.prompts, recipe.verdict_order, recipe.verifier_evidence)
    prompts = read_prompts(recipe.dataset, PromptSet.from_choices(*requested) if any(requested) else None)
    return VerifierRows(recipe.incomplete_evidence, recipe.filters.dropped_category, prompts)


def with_feedback(row: Row, fields: str, order: VerdictOrder = LABEL_FIRST) -> Row:
    """Return a row whose verdict, in the loop's form, has only the given ``fields``: full, diagnosis or guidance."""
    if fields == "full":
        return row
    turn = row["completion"][0]
    verdict = parse_feedback(turn["content"], incomplete_evidence=True)
    plain_guidance = "" if verdict.error_type == CORRECT else PLAIN_GUIDANCE
    diagnosis, guidance = (verdict.diagnosis, plain_guidance) if fields == "diagnosis" else ("", verdict.guidance)
    reduced = Feedback(verdict.error_type, diagnosis, guidance, verdict.query)
    return {**row, "completion": [{**turn, "content": format_feedback(reduced, order)}]}


def _is_selected(row: Row, filters: Filters) -> bool:
    if row["error_type"] != CORRECT and category(row["error_type"]) == filters.drop_category:
        return False
    is_twin = row["context"] != names.ORIGINAL
    return (filters.twins or not is_twin) and (not filters.origins or row["origin"] in filters.origins)
