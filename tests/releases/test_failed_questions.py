"""No part of a release is locked whose questions failed, unless it is told to be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import safe_stepwise.open as opening
from releases.stages.evaluation import EvaluationStage
from releases.stages.training import AdapterStage
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import regenerate
from tests.scripts.test_evaluate_stepwise import contents
from tests.scripts.test_release_parts import MANIFEST, made
from tests.servers.stepper import chance


class Failing:
    """The symbolic player, of whose steps some requests fail."""

    share = 0.0

    def __init__(self, settings: str) -> None:
        self.inner: Any = SYMBOLIC(settings)
        self.name, self.identity, self.simulated = self.inner.name, self.inner.identity, True

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        replies = await self.inner.generate(requests)
        lost = [r.role == "generate" and chance(r.messages[-1].content) < self.share for r in requests]
        return [EngineError("it has died") if is_lost else reply for is_lost, reply in zip(lost, replies, strict=True)]

    async def check(self) -> None: ...

    async def close(self) -> None: ...


SYMBOLIC = opening.KINDS["symbolic"].open


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(opening.KINDS, "symbolic", opening.EngineKind("symbolic", Failing))  # type: ignore[arg-type]
    file = tmp_path / "small.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    return file


def test_a_part_with_failed_questions_is_not_locked_till_they_are_answered(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "share", 0.15)
    with pytest.raises(
        UserError, match=r"^evaluation: \d+ questions failed, so the part is not locked.*--keep-failed"
    ):
        made(manifest, tmp_path / "out", skip_training=True)
    assert not (tmp_path / "out" / LOCK).exists()
    monkeypatch.setattr(Failing, "share", 0.0)
    made(manifest, tmp_path / "out", skip_training=True)
    made(manifest, tmp_path / "clean" / "out", skip_training=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "clean" / "out")


def test_who_says_so_locks_it_as_it_is(manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failing, "share", 0.15)
    arguments = [str(manifest), "--output", str(tmp_path / "out"), "--cache", str(tmp_path / "replies.sqlite")]
    regenerate.main([*arguments, "--workers", "1", "--skip-training", "--keep-failed"])
    assert (tmp_path / "out" / LOCK).is_file()


@pytest.mark.parametrize("keep_failed", [False, True])
def test_any_stage_refuses_or_keeps(keep_failed: bool, manifest: Path, tmp_path: Path) -> None:
    options = regenerate.stage.Options(manifest=manifest, output=tmp_path / "out", keep_failed=keep_failed)
    stage = AdapterStage.of_release(regenerate.open_release(options))
    stage.refuse_failed(0)
    if keep_failed:
        stage.refuse_failed(3)
        return
    with pytest.raises(UserError, match="adapter: 3 questions failed"):
        stage.refuse_failed(3)


def test_how_models_are_called_reaches_an_evaluation(manifest: Path, tmp_path: Path) -> None:
    calls: dict[str, Any] = {"cache": tmp_path / "replies.sqlite", "in_flight": 3, "timeout": 7.0}
    options = regenerate.stage.Options(manifest=manifest, output=tmp_path / "out", **calls)
    (evaluation,) = EvaluationStage.from_manifest(regenerate.open_release(options))
    options = evaluation.options()
    assert {name: getattr(options, name) for name in calls} == calls
