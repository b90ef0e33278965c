"""A small encoder as a verifier: it reads a step beside excerpts of its passages, and labels it.

Spec: ``encoder:MODEL[@REVISION]``, a Hub id or a local folder of a model that ``train_encoder`` made: a Transformers
model for sequence classification whose labels are those of the taxonomy. It reads the question, the step, the steps
before it and the sentences that `encoding` chooses, in one pass of a few hundred tokens. The probability of *Correct*
is the score. It writes no words: the diagnosis of an error is the passage checker's, where that finds the same error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from safe_stepwise.checking.passage_checker import judge_last
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.transformers import Row, Runner, TransformersEngine, load_classifier
from safe_stepwise.engines.weights import Model, Weights
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import GUIDANCE, ROLE
from safe_stepwise.players.encoding import LABELS, VERSION, VERSION_KEY, encode_pair, render_pair
from safe_stepwise.players.symbolic import is_listed
from safe_stepwise.records import Feedback, Passage, Usage
from safe_stepwise.steps import format_step
from safe_stepwise.store.code import code_digest
from safe_stepwise.taxonomy import CORRECT


class EncoderEngine(TransformersEngine):
    """An engine of an encoder; the constructor looks for the model, and the first call loads it."""

    kind = "encoder"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.identity = {**self.identity, "encoding": VERSION, "words": code_digest(judge_last.__module__)}

    def _load(self, weights: Weights, device: str, dtype: str) -> Runner:
        tokenizer, model = load_classifier(weights, "AutoModelForSequenceClassification", dtype)
        names = tuple(name for _, name in sorted(model.config.id2label.items()))
        if names != LABELS:
            raise UserError(f"{weights}: labels {', '.join(names)}; name a model that train_encoder made")
        if (version := getattr(model.config, VERSION_KEY, None)) != VERSION:
            raise UserError(
                f"{weights}: learnt version {version} of how a step is encoded, not {VERSION}; train again"
            )
        context = min(tokenizer.model_max_length, model.config.max_position_embeddings)
        return _LabelRunner(tokenizer, model.to(device).eval(), context)


@dataclass(slots=True)
class _LabelRow(Row):
    """A step as tokens; ``probabilities`` are those (0-1) of `LABELS`, once it was read."""

    inputs: dict[str, list[int]] = field(default_factory=dict)
    probabilities: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _LabelRunner:
    """A loaded encoder, which labels batches of steps."""

    tokenizer: Any
    model: Any
    context: int

    def row(self, request: Request) -> Row | EngineError:
        scene = request.scene
        if request.role != ROLE or not isinstance(scene, Scene) or scene.step is None:
            return EngineError(f"encoder judges steps alone: it has no role {request.role!r}")
        previous, pages = [format_step(step) for step in scene.previous], scene.question.passages
        if scene.numbers is not None:  # a passage that the prompt leaves out keeps its number, but is not read
            pages = tuple(page if n in scene.numbers else Passage("", ("",)) for n, page in enumerate(pages, 1))
        pair = render_pair(scene.question.question, pages, previous, format_step(scene.step))
        inputs = encode_pair(self.tokenizer, pair, self.context)
        return _LabelRow(request, inputs["input_ids"], 0, inputs=inputs)

    def run(self, rows: Sequence[_LabelRow]) -> None:
        import torch

        if not rows:
            return
        inputs = self.tokenizer.pad([row.inputs for row in rows], return_tensors="pt").to(self.model.device)
        with torch.inference_mode():
            probabilities = self.model(**inputs).logits.float().softmax(dim=-1).tolist()
        for row, shares in zip(rows, probabilities, strict=True):
            row.probabilities, row.is_finished = shares, True

    def completion(self, row: _LabelRow) -> Completion:
        listed = [label for label in LABELS if is_listed(row.request, label)]
        probabilities = {label: row.probabilities[LABELS.index(label)] for label in listed}
        label = max(probabilities, key=probabilities.__getitem__)
        scene = row.request.scene
        assert isinstance(scene, Scene)
        feedback = Feedback(CORRECT, "", "") if label == CORRECT else Feedback(label, _explain(scene, label), GUIDANCE)
        score = probabilities[CORRECT] / sum(probabilities.values())
        return Completion(format_feedback(feedback), Usage(prompt=len(row.prompt)), score=score)


def _explain(scene: Scene, label: str) -> str:
    """Return the passage checker's reason for a label, or a plain word where it finds another or none."""
    q, step = scene.question, scene.step
    assert step is not None
    checked = judge_last(q.question, q.passages, scene.previous, step, scene.searches)
    return f"{checked.reason}." if checked.label == label else "A small model that gives no reasons labelled it so."
