"""A small encoder learns to label steps, is killed and resumed to the same weights, and judges as a verifier."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import Completion, EngineError, Message, Request
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import parse_feedback
from safe_stepwise.methods.verifier import GUIDANCE, request_verdict
from safe_stepwise.open import open_engine
from safe_stepwise.players.encoding import LABELS, encode_pair
from safe_stepwise.records import Passage, Question, Step
from scripts import evaluate_verifier, regenerate
from tests.models.killing import killed
from tests.models.small_sets import as_pair_tokenizer, build_steps
from trainers import models
from trainers.config import EncoderRecipe, Filters, VerifierRecipe
from trainers.data import read_data
from trainers.models import find_base, load_tokenizer
from trainers.run import train

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytestmark = pytest.mark.usefixtures("one_thread")

Run = Callable[[Any], Any]
ORU = Passage("Oru", ("Oru lies on the Vel.", "It has a mill."))
QUESTION = Question("q", "own", "train", "On what does Oru lie?", "Vel", passages=(ORU,))
STEP = Step(1, "According to Passage 1, Oru lies on the Marn.", "Attribution")


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_steps(tmp_path_factory.mktemp("set"), 60, 120)


@pytest.fixture(scope="module")
def base(steps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers of random numbers, which knows the words of the steps."""
    import pyarrow.parquet as pq
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertConfig, BertModel

    (file,) = (steps / "data" / "steps").glob("train-*")
    texts = [text for row in pq.read_table(file).to_pylist() for text in (row["question"], row["current_step"])]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    plain = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    plain.normalizer, plain.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    plain.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=special))
    tokenizer = as_pair_tokenizer(plain)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=512, hidden_dropout_prob=0.1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("base")
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def recipe(steps: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> EncoderRecipe:
    return EncoderRecipe(
        base_model=str(base), dataset=str(steps), output=tmp_path_factory.mktemp("runs") / "whole", tuning="full",
        quantization="none", dtype="float32", views=("sentence", "claim", "step"), sentences=30, epochs=12,
        effective_batch=8, device_batch=4, learning_rate=2e-3, warmup=0.05, gradient_checkpointing=False, save_steps=2,
        held_out=8,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(recipe: EncoderRecipe) -> Any:
    """The record of a run that nothing interrupted."""
    return train(recipe)


def test_it_learns_labels_and_says_what_it_did(recipe: EncoderRecipe, whole: Any) -> None:
    losses = [point["loss"] for point in whole["curve"]]
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    assert {"loss_before", "loss_after", "accuracy_before", "accuracy_after"} < {*whole["held_out"]}
    assert (whole["recipe"]["views"], whole["prompts"]) == (["sentence", "claim", "step"], {"role": "encoder"})
    config = json.loads((recipe.output / "model" / "config.json").read_text())
    assert tuple(name for _, name in sorted(config["id2label"].items(), key=lambda item: int(item[0]))) == LABELS


def test_claims_are_learnt_before_steps_and_no_row_is_lost(recipe: EncoderRecipe, steps: Path) -> None:
    weights, _ = find_base(recipe.base_model)
    data = read_data(recipe, weights)
    views = [example.view for example in data.train]
    assert [*dict.fromkeys(views)] == ["sentence", "claim", "step"]
    assert views == sorted(views, key=recipe.views.index)
    labels = Counter(LABELS[example.class_number] for example in data.train if example.view == "sentence")
    assert labels["Correct"] == labels["Contradictory"] + labels["Unsupported"] == 30
    assert {example.view for example in data.held_out} == {"step"}
    whole_steps = read_data(replace(recipe, views=("step",)), weights)
    assert [e.id for e in whole_steps.train] == [e.id for e in data.train if e.view == "step"]
    few = read_data(replace(recipe, views=("step",), filters=Filters(rows=3)), weights)
    assert (len(few.train), few.held_out) == (3, data.held_out)  # what is measured on stays the same


def test_killed_and_resumed_it_ends_in_the_same_weights(recipe: EncoderRecipe, whole: Any, tmp_path: Path) -> None:
    short = replace(recipe, output=tmp_path / "short", epochs=1)
    straight = train(replace(short, output=tmp_path / "straight"))
    killed("train_encoder", short)
    resumed = train(short, resume=True)
    assert resumed["run"]["resumed_from_step"] >= 2
    assert (resumed["model"], resumed["curve"]) == (straight["model"], straight["curve"])
    with pytest.raises(UserError, match="was trained with another views"):
        train(replace(short, views=("step",)), resume=True)


def test_it_judges_by_its_labels_with_the_checkers_words(recipe: EncoderRecipe, whole: Any, run: Run) -> None:
    engine = open_engine(f"encoder:{recipe.output / 'model'}")
    request = request_verdict(QUESTION, [], STEP, scored=True)
    (reply, refusal) = run(engine.generate([request, Request((Message("user", "?"),))]))
    assert isinstance(refusal, EngineError)
    assert "judges steps alone" in str(refusal)
    assert isinstance(reply, Completion)
    assert reply.score is not None
    assert 0 <= reply.score <= 1
    verdict = parse_feedback(reply.text)
    assert verdict.error_type in LABELS
    assert verdict.guidance == ("" if verdict.error_type == "Correct" else GUIDANCE)
    run(engine.close())


def test_what_is_too_long_is_cut_and_marks_of_control_are_text(base: Path) -> None:
    tokenizer = load_tokenizer(find_base(str(base))[0])
    inputs = encode_pair(tokenizer, ("where [SEP] is oru ?", "oru " * 900), 64)
    assert len(inputs["input_ids"]) == 64
    assert inputs["input_ids"].count(tokenizer.sep_token_id) == 2
    short = encode_pair(tokenizer, ("according to passage born", "according to passage step"))
    marked = [
        tokenizer.decode([id_]) for id_, kind in zip(short["input_ids"], short["token_type_ids"], strict=True) if kind
    ]
    assert marked == ["born", "step"]


def test_evaluate_verifier_takes_it(recipe: EncoderRecipe, whole: Any, steps: Path, tmp_path: Path) -> None:
    evaluate_verifier.main(
        [
            "--steps", str(steps), "--verifier", f"encoder:{recipe.output / 'model'}", "--output", str(tmp_path / "q"),
            "--scores",
        ]
    )  # fmt: skip
    quality = json.loads((tmp_path / "q" / "verifier_quality.json").read_text())
    assert quality["verifiers"][0]["failed"] == 0


def test_a_release_measures_it_beside_probes_and_says_so_on_its_card(recipe: EncoderRecipe, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(
        f"{{base_model: {recipe.base_model}, tuning: full, quantization: none, dtype: float32, "
        "views: [sentence, step], sentences: 20, epochs: 1, effective_batch: 8, device_batch: 8, "
        "gradient_checkpointing: false, held_out: 8}"
    )
    (tmp_path / "release.yaml").write_text(
        "{version: v0.1.0, seed: 1, evaluation_size: 1, verifier_steps: {rows: 60, test_share: 0.3}, "
        "builds: [{benchmark: synthetic, input: 'rows=60,seed=1', split: train}, "
        "{benchmark: synthetic, input: 'rows=20,seed=2', split: validation}], "
        "adapter: {recipe: tiny.yaml, verifier: 'encoder:{adapter}'}}"
    )
    regenerate.main([str(tmp_path / "release.yaml"), "--output", str(tmp_path / "out"), "--only", "adapter"])
    card = (tmp_path / "out" / "adapter" / "README.md").read_text()
    assert "pipeline_tag" not in card
    assert "are not those of the training" not in card
    assert "It learnt these views of a step in turn: sentence, then step." in card
    assert "AutoModelForSequenceClassification" in card
    assert "overlap probe of train" in card
    assert "| accuracy on the same rows, before and after |" in card


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"views": ("claim",)}, "views: has to end with step"),
        ({"views": ("step", "step")}, "views: names one twice"),
        ({"sentences": 0}, "sentences: has to be 1 or more"),
        ({"filters": Filters(drop_category="Attribution")}, "views: sentence teaches errors of Attribution"),
        ({"tuning": "lora"}, "tuning: of an encoder is full"),
        ({"filters": Filters(feedback="guidance")}, "filters: feedback and drop_from_prompt"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(change: dict[str, Any], reason: str, recipe: EncoderRecipe) -> None:
    with pytest.raises(UserError, match=reason):
        replace(recipe, **change)


def test_another_model_is_no_encoder_of_steps(base: Path, run: Run) -> None:
    engine = open_engine(f"encoder:{base}")
    with pytest.raises(UserError, match="name a model that train_encoder made"):
        run(engine.check())


def test_it_needs_neither_trl_nor_peft(recipe: EncoderRecipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "find_spec", lambda name: None if name in ("trl", "peft") else object())
    models.need_libraries(recipe)
    with pytest.raises(UserError, match="training needs trl, peft"):
        models.need_libraries(VerifierRecipe(recipe.base_model, recipe.dataset, recipe.output, quantization="none"))
