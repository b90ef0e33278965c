"""A process reward model as a verifier: a head of two labels over tokens, which scores each step at its end.

Spec: ``prm:MODEL[@REVISION]``, a Hub id or a local folder of a Transformers model for token classification, as TRL's
``PRMTrainer`` published them: after the prompt, each step ends in a line break, where label 1 means that it is right.
The prompt is the passages and the question. A step is called Correct from a probability of 0.5 on, and that
probability is its score. It writes no words, so that diagnosis and guidance are always the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.chat import escape_control
from safe_stepwise.engines.transformers import Row, Runner, TransformersEngine, load_classifier
from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import render_premise
from safe_stepwise.records import Usage

SEPARATOR = "\n"
"""What ends a step, TRL's default."""
_RIGHT, _LABELS = 1, 2


class ProcessRewardEngine(TransformersEngine):
    """An engine of a process reward model; the constructor looks for the model, and the first call loads it."""

    kind = "prm"

    def _load(self, weights: Weights, device: str, dtype: str) -> Runner:
        tokenizer, model = load_classifier(weights, "AutoModelForTokenClassification", dtype)
        if model.config.num_labels != _LABELS:
            raise UserError(f"{weights}: has {model.config.num_labels} labels; a reward model of steps has two")
        return _StepRunner(tokenizer, model.to(device).eval(), model.config.get_text_config().max_position_embeddings)


@dataclass(slots=True)
class _StepRow(Row):
    """A step after its prompt; ``right`` is the probability (0-1) that it is right, once it was read."""

    right: float = 0.0


@dataclass(frozen=True, slots=True)
class _StepRunner:
    """A loaded reward model, which scores the last of each row's steps."""

    tokenizer: Any
    model: Any
    context: int

    def row(self, request: Request) -> Row | EngineError:
        scene = request.scene
        if request.pair is None or not isinstance(scene, Scene) or scene.step is None:
            return EngineError(f"prm: judges steps alone: it has no role {request.role!r}")
        prompt = f"{render_premise(scene.prompt_passages)}\n{scene.question.question}{SEPARATOR}"
        # Each part by itself, as TRL does: no token reaches over the end of a step.
        pieces = [prompt, *(f"{step.text}{SEPARATOR}" for step in (*scene.previous, scene.step))]
        texts = (escape_control(piece, self.tokenizer.all_special_tokens) for piece in pieces)
        ids = [token for text in texts for token in self.tokenizer(text, add_special_tokens=False)["input_ids"]]
        if len(ids) > self.context:
            return EngineError(f"the prompt has {len(ids):,} tokens, the context holds {self.context:,}")
        return _StepRow(request, ids, 0)

    def run(self, rows: Sequence[_StepRow]) -> None:
        import torch

        for row in rows:
            with torch.inference_mode():
                logits = self.model(torch.tensor([row.prompt], device=self.model.device)).logits[0, -1]
            row.right, row.is_finished = float(logits.float().softmax(-1)[_RIGHT]), True

    def completion(self, row: _StepRow) -> Completion:
        pair = row.request.pair
        assert pair is not None
        text = pair.stated if row.right >= 1 / 2 else pair.absent
        return Completion(text, Usage(prompt=len(row.prompt)), score=row.right if row.request.labels else None)
