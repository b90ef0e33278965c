"""The engine for a model of entailment: a cross-encoder that decides whether a premise states a hypothesis.

Spec: ``nli:MODEL[@REVISION]``, a Hub id or a local folder of a Transformers model for sequence classification with a
label *entailment* and perhaps *contradiction*. It answers only requests with a ``pair``: rulings on labels
(``--adjudicate``) and verdicts on steps. A premise that is longer than the model's context is read in overlapping
parts: one part that entails is enough, or else one that contradicts.

``minicheck:MODEL`` is the same with a classifier of MiniCheck (Tang et al., 2024: its RoBERTa and DeBERTa models). Its
second label, which has no name, means that the claim is supported.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Pair, Request
from safe_stepwise.engines.chat import escape_control
from safe_stepwise.engines.transformers import Row, Runner, TransformersEngine, load_classifier
from safe_stepwise.engines.weights import Weights, error_line
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage

EXAMPLE, MINICHECK_EXAMPLE = "nli:./my-cross-encoder", "minicheck:lytang/MiniCheck-DeBERTa-v3-Large"
ENTAILMENT, CONTRADICTION = "entailment", "contradiction"
_OVERLAP_DIVISOR = 8
"""Two parts of a long premise share an eighth of the context, so that no fact is cut in two."""
_RESERVED_POSITIONS = 2
"""Positions that some encoders (RoBERTa) count but can't use."""


class EntailmentEngine(TransformersEngine):
    """An engine for a cross-encoder; the constructor looks for the model, and the first call loads it."""

    kind = "nli"

    def _load(self, weights: Weights, device: str, dtype: str) -> Runner:
        return _PairRunner.load(weights, device, dtype)


class MiniCheckEngine(EntailmentEngine):
    """The engine for a classifier of MiniCheck."""

    kind = "minicheck"

    def _load(self, weights: Weights, device: str, dtype: str) -> Runner:
        return _PairRunner.load(weights, device, dtype, {ENTAILMENT: 1})


@dataclass(slots=True)
class _PairRow(Row):
    """One pair of a batch: ``windows`` are the model inputs of its parts, ``reply`` is "" until it is judged."""

    windows: dict[str, list[list[int]]] = field(default_factory=dict)
    reply: str = ""
    entailed: float = 0.0
    """The highest probability (0-1) of entailment by one of the windows."""


@dataclass(frozen=True, slots=True)
class _PairRunner:
    """A loaded cross-encoder, which judges batches of pairs."""

    tokenizer: Any
    model: Any
    context: int
    labels: Mapping[str, int]
    """The number of each label, in lower case."""

    @classmethod
    def load(cls, weights: Weights, device: str, dtype: str, labels: Mapping[str, int] | None = None) -> "_PairRunner":
        tokenizer, model = load_classifier(weights, "AutoModelForSequenceClassification", dtype)
        names = {str(label).lower(): number for number, label in model.config.id2label.items()}
        if labels is None and ENTAILMENT not in names:
            raise UserError(f"{weights}: labels pairs {', '.join(names)}; name a model with the label {ENTAILMENT}")
        if labels is not None and len(names) != 2:
            raise UserError(f"{weights}: labels pairs {', '.join(names)}; a model of MiniCheck has two labels")
        context = min(tokenizer.model_max_length, model.config.max_position_embeddings - _RESERVED_POSITIONS)
        return cls(tokenizer, model.to(device).eval(), context, labels or names)

    def row(self, request: Request) -> Row | EngineError:
        """Make the row of a request; return an error if it has no pair, or if its hypothesis fills the context."""
        if request.pair is None:
            return EngineError("it judges claims beside passages, for --adjudicate and --verifier; it writes no text")
        try:
            windows = self.tokenizer(
                *(escape_control(text, self.tokenizer.all_special_tokens) for text in request.pair[:2]),
                truncation="only_first",
                max_length=self.context,
                stride=self.context // _OVERLAP_DIVISOR,
                return_overflowing_tokens=True,
            )
        except Exception as error:  # a tokenizer may raise anything
            return EngineError(f"the claim is too long ({error_line(error)})")
        names = [name for name in self.tokenizer.model_input_names if name in windows]
        return _PairRow(request, [], 0, windows={name: windows[name] for name in names})

    def run(self, rows: Sequence[_PairRow]) -> None:
        """Judge every part of every pair."""
        import torch

        for row in rows:
            batch = self.tokenizer.pad(row.windows, return_tensors="pt").to(self.model.device)
            with torch.inference_mode():
                logits = self.model(**batch).logits
            row.entailed = float(logits.float().softmax(dim=-1)[:, self.labels[ENTAILMENT]].max())
            row.reply = self._choose_reply(row.request.pair, set(logits.argmax(dim=-1).tolist()))
            row.is_finished = True

    def _choose_reply(self, pair: Pair | None, labels: Collection[int]) -> str:
        if pair is None:
            return ""
        is_denied = self.labels.get(CONTRADICTION) in labels
        return pair.stated if self.labels[ENTAILMENT] in labels else pair.denied if is_denied else pair.absent

    def completion(self, row: _PairRow) -> Completion:
        usage = Usage(prompt=sum(map(len, row.windows["input_ids"])))
        return Completion(row.reply, usage, score=row.entailed if row.request.labels else None)
