from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from releases.publish.folder import LocalFile, read_release
from releases.publish.hub import Hub
from releases.publish.load_back import Pushed, load_back
from safe_stepwise.errors import UserError
from tests.servers.hub_server import NAMESPACE, TOKEN, HubServer
from tests.servers.hub_store import Blob, Repo


def test_files_must_come_back_as_they_were_pushed(small: Path, hub: HubServer) -> None:
    (adapter,) = (a for a in read_release(small, NAMESPACE).artifacts if a.kind == "model")
    repo = Repo("model", adapter.repo)
    hub.store.repos["model", adapter.repo] = repo
    held = {file.path: Blob(file.read(), False) for file in adapter.files}
    commit = repo.add("main", "pushed", "", held)
    (line,) = load_back([Pushed(adapter, commit.oid)], Hub(HfApi(endpoint=hub.url)), TOKEN)
    assert "3 files, " in line
    assert "1 tensors for some/Tiny-1B" in line
    other = tuple(LocalFile(f.path, b"other", 5) if f.path == "README.md" else f for f in adapter.files)
    pushed = Pushed(replace(adapter, files=other), commit.oid)
    with pytest.raises(UserError, match=r"README\.md came back otherwise than it was pushed"):
        load_back([pushed], Hub(HfApi(endpoint=hub.url)), TOKEN)
