"""The engine of a model of entailment, with a small cross-encoder that is trained here, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.verified.teachers.adjudicating import ADJUDICATE
from safe_stepwise.engines.base import Completion, EngineError, Message, Pair, Request
from safe_stepwise.engines.entailment import EntailmentEngine, MiniCheckEngine
from safe_stepwise.engines.weights import Model
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import parse_feedback
from safe_stepwise.methods.verifier import request_verdict
from safe_stepwise.records import Passage, Question, Step
from scripts import build_verified
from tests.models.small_sets import as_pair_tokenizer

pytest.importorskip("torch", reason="no torch here: `make test-vllm` runs the model tests")

Run = Callable[[Any], Any]
PLACES = ("Oru", "Tesk", "Marn", "Vel")
POSITIONS = 40
FAR = "here is far . "


def claim(place: str, premise: str) -> Request:
    return replace(Request((Message("user", "?"),)), pair=Pair(premise, f"Ana lives in {place}", "yes", "no", "?"))


def write_model(folder: Path, labels: tuple[str, ...]) -> Path:
    """A BERT of one layer that has learnt whether the place of the hypothesis stands in the premise."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PLACES, "Ana", "lives", "in", "is", "far", "from", "here", "."]
    plain = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = as_pair_tokenizer(plain)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=POSITIONS, id2label=dict(enumerate(labels)), hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    pairs = [
        (f"{FAR * n}Ana lives in {place}", f"Ana lives in {asked}", int(place == asked))
        for n in range(3) for place in PLACES for asked in PLACES
    ]  # fmt: skip
    batch = tokenizer([p for p, _, _ in pairs], [h for _, h, _ in pairs], padding=True, return_tensors="pt")
    target = torch.tensor([label for *_, label in pairs])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(300):
        loss = torch.nn.functional.cross_entropy(model(**batch).logits, target, torch.tensor([1.0, 3.0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss < 1e-2:
            break
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    return write_model(tmp_path_factory.mktemp("nli"), ("contradiction", "Entailment"))


def stated(replies: list[Completion]) -> list[str]:
    return [reply.text for reply in replies]


def test_it_judges_pairs_in_a_batch_and_long_premises_in_parts(folder: Path, run: Run) -> None:
    engine = EntailmentEngine(Model(str(folder)))
    assert engine.name.startswith("nli:")
    short = [claim(place, "Ana lives in Marn") for place in PLACES]
    assert stated(run(engine.generate(short))) == ["no", "no", "yes", "no"]
    # The premise does not fit; only its last part says it.
    long = claim("Vel", FAR * 30 + "Ana lives in Vel")
    (reply,) = run(engine.generate([long]))
    assert stated([reply]) == ["yes"]
    runner = engine._shared.runner
    parts = [
        runner.tokenizer.decode(part).split(" [SEP]")[0].split() for part in runner.row(long).windows["input_ids"]
    ]
    assert reply.usage.prompt == sum(map(len, runner.row(long).windows["input_ids"])) > 120
    assert max(map(len, parts)) < POSITIONS
    # Each part begins within the one before, and together they are the premise.
    words, end = (FAR * 30 + "Ana lives in Vel").split(), 0
    for part in parts:
        start = end - (POSITIONS - 2) // 8 if end else 0
        assert part[1:] == words[start : start + len(part) - 1]
        end = start + len(part) - 1
    assert end == len(words)
    run(engine.close())


def test_control_tokens_of_a_passage_are_words(folder: Path, run: Run) -> None:
    engine = EntailmentEngine(Model(str(folder)))
    run(engine.check())
    row = engine._shared.runner.row(claim("Oru", "[SEP] Ana lives in Oru [SEP] [CLS]"))
    (tokens,) = row.windows["input_ids"]
    assert [tokens.count(number) for number in (2, 3)] == [1, 2]
    run(engine.close())


def test_it_writes_no_text(folder: Path, run: Run) -> None:
    engine = EntailmentEngine(Model(str(folder)))
    too_long = claim("Oru " * POSITIONS, "Ana lives in Marn")
    replies = run(engine.generate([Request((Message("user", "Hi"),)), too_long, claim("Oru", "Ana lives in Oru")]))
    assert [type(reply) for reply in replies] == [EngineError, EngineError, Completion]
    assert "--adjudicate" in str(replies[0])
    run(engine.close())


def test_a_model_without_the_label_is_one_line(tmp_path: Path, run: Run) -> None:
    engine = EntailmentEngine(Model(str(write_model(tmp_path, ("negative", "positive")))))
    with pytest.raises(UserError, match="labels pairs negative, positive; name a model with the label entailment"):
        run(engine.check())


def test_a_classifier_of_minicheck_supports_by_its_second_label(tmp_path: Path, run: Run) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    engine = MiniCheckEngine(Model(str(write_model(tmp_path, ("LABEL_0", "LABEL_1")))))
    assert engine.name.startswith("minicheck:")
    asked = [replace(claim(place, "Ana lives in Marn"), labels=("Correct", "Unsupported")) for place in PLACES]
    replies = run(engine.generate(asked))
    run(engine.close())
    assert stated(replies) == ["?", "?", "yes", "?"]
    assert replies[2].score > 0.5 > replies[0].score
    config = BertConfig.from_pretrained(tmp_path, num_labels=3)
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="labels pairs label_0, label_1, label_2; a model of MiniCheck has two labels"):
        run(MiniCheckEngine(Model(str(tmp_path))).check())


def test_a_score_is_the_probability_of_entailment(folder: Path, run: Run) -> None:
    engine = EntailmentEngine(Model(str(folder)))
    asked = [replace(claim(place, "Ana lives in Oru"), labels=("Correct", "Unsupported")) for place in PLACES]
    replies = run(engine.generate([*asked, claim("Oru", "Ana lives in Oru")]))
    run(engine.close())
    scores = [reply.score for reply in replies]
    assert scores[0] > 0.5 > max(scores[1:4])
    assert scores[4] is None, "nobody asked"


def test_it_verifies_steps(folder: Path, run: Run) -> None:
    engine = EntailmentEngine(Model(str(folder)))
    question = Question("q", "b", "", "Where lives Ana?", "Oru", passages=(Passage("", ("Ana lives in Oru",)),))
    steps = [Step(1, f"Ana lives in {place}", "Attribution") for place in ("Oru", "Vel")]
    steps += [Step(1, "Ana lives in Vel", "Logical"), Step(1, "####ANSWER: Vel", "Final Answer")]
    replies = run(engine.generate([request_verdict(question, [], step) for step in steps]))
    verdicts = [parse_feedback(reply.text) for reply in replies]
    assert [verdict.error_type for verdict in verdicts[:3]] == ["Correct", "Contradictory", "Logical Fallacy"]
    assert verdicts[3].error_type in ("Correct", "Wrong Conclusion")
    assert [bool(verdict.guidance) for verdict in verdicts[:3]] == [False, True, True]
    run(engine.close())


def test_it_rules_on_what_annotations_doubt(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--benchmark", "synthetic", "--input", "rows=40,seed=3,noise=0.3", "--split", "train"]
    arguments += ["--teacher", "annotations", "--adjudicate", f"nli:{folder}"]
    build_verified.main([*arguments, "--cache", str(tmp_path / "replies"), "--output", str(tmp_path / "out")])
    out = capsys.readouterr().out
    assert f"{ADJUDICATE.role} " in out
    assert "labels that the model changed" in out
    card = (tmp_path / "out" / "safe-verified-multihop" / "README.md").read_text()
    assert "A model ruled on the facts that the annotations doubt" in card
    assert f"doubts ruled by nli:{folder.name}@" in card
