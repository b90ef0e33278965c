from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from releases.publish.folder import read_release
from releases.publish.hub import Hub, connect
from releases.publish.load_back import Pushed
from releases.publish.push import Publisher, plan_release, push
from safe_stepwise.errors import UserError
from safe_stepwise.store import progress
from tests.releases.conftest import CARD, lock, write
from tests.servers.hub_server import NAMESPACE, TOKEN, Fault, How, HubServer
from tests.servers.hub_store import Blob

KINDS = {
    ("dataset", f"{NAMESPACE}/safe-noise-labels"),
    ("model", f"{NAMESPACE}/safe-verifier-Tiny-1B"),
    ("space", f"{NAMESPACE}/safe_stepwise"),
}


def publish(root: Path, hub: HubServer, private: bool = False, seconds: float = 60) -> None:
    """The command without its checks; loading back compares with what the server holds."""

    def loaded(pushed: Sequence[Pushed], asked: Hub, token: str) -> list[str]:
        assert (asked.api.endpoint, token) == (hub.url, TOKEN)
        for item in pushed:
            held = hub.repo(item.artifact.kind, item.artifact.repo).commits[item.commit].files
            ours = {file.path: file.sha256 for file in item.artifact.files}
            assert {p: b.sha256 for p, b in held.items() if p != ".gitattributes"} == ours
        return []

    there, release = Hub(HfApi(endpoint=hub.url), seconds), read_release(root, NAMESPACE)
    publisher = Publisher(there, TOKEN, NAMESPACE, private, lambda _: None, loaded)
    push(publisher, release, plan_release(there, release))


def state(hub: HubServer) -> object:
    """What is on the Hub, but for the names of commits."""
    repos = {
        key: ([c.title for c in repo.history(repo.head)], repo.head.files, sorted(repo.tags))
        for key, repo in hub.store.repos.items()
    }
    tagged = {key: set(repo.tags.values()) for key, repo in hub.store.repos.items()}
    assert all(tagged[key] <= {repo.head.oid} for key, repo in hub.store.repos.items())
    return repos


@pytest.fixture
def done(small: Path, hub: HubServer) -> object:
    """The state after a push that nothing disturbed, and the Hub empty again."""
    publish(small, hub)
    reached = state(hub)
    hub.reset()
    return reached


def test_a_push_writes_each_repo_once_and_a_second_one_nothing(small: Path, hub: HubServer) -> None:
    publish(small, hub)
    assert set(hub.store.repos) == KINDS
    for repo in hub.store.repos.values():
        assert [c.title for c in repo.history(repo.head)] == ["Release v0.1.0", "initial commit"]
        assert repo.tags == {"v0.1.0": repo.head.oid}
    written = len(hub.written())
    publish(small, hub)
    assert len(hub.written()) == written


HOWS: dict[str, tuple[How, ...]] = {
    "create": ("500", "lost"),
    "preupload": ("500",),
    "lfs-batch": ("500",),
    "lfs-put": ("drop",),
    "lfs-verify": ("500",),
    "commit": ("500", "lost"),
    "tag": ("drop", "lost"),
}
TIMES = {"create": 3, "preupload": 3, "commit": 3, "tag": 3}
POINTS = [(kind, nth, how) for kind, hows in HOWS.items() for nth in range(1, TIMES.get(kind, 1) + 1) for how in hows]


@pytest.mark.parametrize(("kind", "nth", "how"), POINTS)
def test_an_interrupted_push_is_completed_by_the_next(
    kind: str, nth: int, how: How, small: Path, hub: HubServer, done: object
) -> None:
    down = Fault(kind, nth, how, times=1000)
    with hub.failing(down), pytest.raises(UserError, match="run the same command again"):
        publish(small, hub)
    assert down.seen >= nth
    tags_before_all_is_there = kind in ("create", "preupload", "lfs-batch", "lfs-put", "commit")
    if tags_before_all_is_there:
        assert not any(repo.tags for repo in hub.store.repos.values())
    publish(small, hub)
    assert state(hub) == done
    written = len(hub.written())
    publish(small, hub)
    assert len(hub.written()) == written


def test_a_branch_that_moves_meanwhile_is_not_overwritten(small: Path, hub: HubServer) -> None:
    def move() -> None:
        repo = hub.repo("space", f"{NAMESPACE}/safe_stepwise")
        card = CARD.format("sdk: gradio\nhf_oauth: true\n").encode()
        repo.add("main", "by hand", "", {**repo.head.files, "README.md": Blob(card, False)})

    # The answer to its preupload arrives, but only after main has moved.
    with (
        hub.failing(Fault("preupload", 3, "late", then=move)),
        pytest.raises(UserError, match="somebody else changed it meanwhile"),
    ):
        publish(small, hub)
    publish(small, hub)
    repo = hub.repo("space", f"{NAMESPACE}/safe_stepwise")
    titles = [c.title for c in repo.history(repo.head)]
    assert titles == ["Release v0.1.0", "by hand", "initial commit"]
    assert b"hf_oauth: true" in repo.head.files["README.md"].content


def test_a_tag_is_never_moved(small: Path, hub: HubServer) -> None:
    publish(small, hub)
    before, written = state(hub), len(hub.written())
    write(small / "datasets" / "safe-noise-labels" / "more.txt", "other")
    lock(small)
    with pytest.raises(UserError, match=r"v0\.1\.0 is on the Hub with other content \(more\.txt"):
        publish(small, hub)
    assert (state(hub), len(hub.written())) == (before, written)


def test_a_version_follows_and_none_goes_back(small: Path, hub: HubServer) -> None:
    publish(small, hub)
    weights = small / "adapter" / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    write(small / "space" / "app.py", "import gradio\n")
    lock(small, "v0.2.0")
    publish(small, hub)
    (small / "space" / "app.py").unlink()
    lock(small, "v0.10.0")
    publish(small, hub)
    titles = {kind: [c.title for c in repo.history(repo.head)] for (kind, _), repo in hub.store.repos.items()}
    assert titles["dataset"] == ["Release v0.1.0", "initial commit"]
    assert titles["model"] == ["Release v0.2.0", "Release v0.1.0", "initial commit"]
    assert titles["space"][:2] == ["Release v0.10.0", "Release v0.2.0"]
    space = hub.repo("space", f"{NAMESPACE}/safe_stepwise")
    assert "app.py" not in space.head.files
    assert "app.py" in space.commits[space.tags["v0.2.0"]].files
    for repo in hub.store.repos.values():
        assert set(repo.tags) == {"v0.1.0", "v0.2.0", "v0.10.0"}
    lock(small, "v0.3.0")
    with pytest.raises(UserError, match=r"has v0\.10\.0 already, which is newer than v0\.3\.0"):
        publish(small, hub)


def test_what_others_added_to_a_card_survives(small: Path, hub: HubServer) -> None:
    publish(small, hub)
    repo = hub.repo("dataset", f"{NAMESPACE}/safe-noise-labels")
    theirs = b"---\nlicense: mit\ntags: [verification, mine, simulated]\ndoi: 10/1\n---\nTheirs.\n"
    repo.add("main", "by hand", "", {**repo.head.files, "README.md": Blob(theirs, False)})
    publish(small, hub)  # the tag stands, and main is theirs
    assert repo.head.title == "by hand"
    card = small / "datasets" / "safe-noise-labels" / "README.md"
    write(card, CARD.format("tags: [verification]\n") + "More.\n")
    lock(small, "v0.2.0")
    publish(small, hub)
    text = repo.head.files["README.md"].content.decode()
    assert "doi: 10/1" in text
    assert "- mine" in text
    assert "simulated" not in text
    assert "Theirs." not in text
    assert text.endswith("# Words\nMore.\n")
    written = len(hub.written())
    publish(small, hub)
    assert len(hub.written()) == written


def test_private_repos_stay_so(small: Path, hub: HubServer) -> None:
    publish(small, hub, private=True)
    assert all(repo.private for repo in hub.store.repos.values())
    lock(small, "v0.2.0")
    publish(small, hub, private=True)
    hub.repo("space", f"{NAMESPACE}/safe_stepwise").private = False
    written = len(hub.written())
    lock(small, "v0.3.0")
    with pytest.raises(UserError, match=r"spaces/somebody/safe_stepwise: is public already"):
        publish(small, hub, private=True)
    assert len(hub.written()) == written


@pytest.mark.parametrize(("kind", "how"), [("refs", "500"), ("tree-of", "drop"), ("resolve", 403)])
def test_a_blip_is_not_taken_for_an_absence(kind: str, how: How, small: Path, hub: HubServer) -> None:
    publish(small, hub)
    before, written = state(hub), len(hub.written())
    lock(small, "v0.2.0")
    with hub.failing(Fault(kind, 1, how, times=1000)), pytest.raises(UserError):
        publish(small, hub)
    assert (state(hub), len(hub.written())) == (before, written)


def test_a_strangers_namespace_is_refused_before_any_upload(small: Path, hub: HubServer) -> None:
    hub.tokens[TOKEN] = "another"
    with pytest.raises(UserError, match="may not write there") as caught:
        publish(small, hub)
    assert len(str(caught.value).splitlines()) == 1
    assert [asked.kind for asked in hub.written()] == ["create"]
    assert TOKEN not in str(caught.value)


WAITS: list[tuple[str, How]] = [
    *((kind, "hang") for kind in ("refs", "create", "preupload", "lfs-put", "commit", "tag")),
    ("refs", "drip"),
]


@pytest.mark.parametrize(("kind", "how"), WAITS)
def test_a_hub_that_hangs_or_drips_is_given_up(kind: str, how: How, small: Path, hub: HubServer) -> None:
    with (
        hub.failing(Fault(kind, 1, how, times=1000)),
        pytest.raises(UserError, match=r"no answer within 0 s; see --timeout\); run the same") as e,
    ):
        publish(small, hub, seconds=0.3)
    assert len(str(e.value).splitlines()) == 1
    # The thread that was left behind is told 403, and ends.
    for thread in progress._abandoned:
        thread.join(20)
        assert not thread.is_alive()
    publish(small, hub)


def test_a_long_wait_is_told(
    small: Path, hub: HubServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.05)
    with hub.failing(Fault("refs", 1, "hang")), pytest.raises(UserError):
        publish(small, hub, seconds=1.5)
    said = capsys.readouterr().err
    assert "waiting for the Hub, about somebody/safe-noise-labels since" in said


def test_redirects_in_a_circle_are_not_followed_for_long(
    small: Path, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    there, release = connect(), read_release(small, NAMESPACE)
    circle = Fault("refs", 1, "loop", times=1000)
    with hub.failing(circle), pytest.raises(UserError, match="TooManyRedirects") as caught:
        plan_release(there, release)
    assert len(str(caught.value).splitlines()) == 1
    assert circle.seen <= 21  # as many as the client follows


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_is_asked_for_once(status: int, small: Path, hub: HubServer) -> None:
    refusing = Fault("refs", 1, status, times=1000)
    with hub.failing(refusing), pytest.raises(UserError):
        publish(small, hub)
    assert refusing.seen == 1


def test_what_the_hub_says_holds_no_key_and_steers_no_terminal(
    small: Path, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no pattern of any kind")
    keys = (TOKEN, "hf_" + "x" * 34, "no pattern of any kind")
    says = f"received {', '.join(keys)}\n\x1b[2J\u202eerror: all is well {'long ' * 1000}"
    with hub.failing(Fault("create", 1, 400, 1000, says=says)), pytest.raises(UserError) as caught:
        publish(small, hub)
    said = str(caught.value)
    assert said.count("[redacted]") == 3
    assert not any(key in said for key in keys)
    assert said.isprintable()
    assert len(said) < 600
