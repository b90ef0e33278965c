"""The Space folder: its module through `evaluate.load` by path, bare name and Hub; its examples.

Each load runs in a new interpreter, whose caches are fresh: a module once loaded stays loaded.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from releases.publish.folder import walk
from releases.stages.space import copy_space
from safe_stepwise import __version__
from safe_stepwise.store.code import PACKAGES
from tests.memory.sitecustomize import PYTHONPATH
from tests.servers.hub_server import NAMESPACE, TOKEN, HubServer

ROOT = Path(__file__).resolve().parents[2]
SPACE = ROOT / "evaluators" / "safe_stepwise"

pytestmark = pytest.mark.skipif(find_spec("evaluate") is None, reason="evaluate is not installed")


def run(code: str, home: Path, cwd: Path | None = None, **settings: str) -> Any:
    """What ``code`` prints last, as JSON; the Hub can't be reached unless ``settings`` name one."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HOME": str(home / "hf"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HUB_DISABLE_XET": "1",
        "PYTHONPATH": PYTHONPATH,
        "SAFE_STEPWISE_CACHE": str(home / "replies.sqlite"),
        **settings,
    }
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd or home, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout.strip().splitlines()[-1])


PATH = """
import asyncio, json, sys
from pathlib import Path
import evaluate
from safe_stepwise.errors import UserError

metric = evaluate.load("evaluators/safe_stepwise")
lines = Path(DATA, "official_scorer_cases.jsonl").read_text().splitlines() if DATA else []
cases = [json.loads(line) for line in lines]
key = lambda case: (case["dataset"], case["exact_match"], round(case["f1"], 9))
wrong = []
for group in sorted({key(case) for case in cases}):
    rows = [case for case in cases if key(case) == group]
    found = metric.compute(
        predictions=[row["prediction"] for row in rows],
        references=[row["references"] for row in rows],
        benchmark=group[0],
    )
    scores = found.pop("exact_match"), found.pop("f1")
    assert found == {"accuracy": None, "unscored": 0}
    if max(abs(a - b) for a, b in zip(scores, group[1:])) > 2e-9:
        wrong.append(group)

refused = []
given = dict(predictions=["Oru"], references=[["Vel"]], benchmark="musique")
for change in (
    {"predictions": "Oru"}, {"predictions": None}, {"references": ["Vel"]}, {"benchmark": "squad"},
    {"references": [["Vel"], ["Oru"]]}, {"judge": "nobody"}, {"generator": "symbolic"},
    {"predictions": None, "references": None}, {"passages": [["Oru"]]},
):
    try:
        metric.compute(**{**given, **change})
    except UserError as error:
        refused.append(str(error))
leftover = [str(file) for file in Path.home().rglob("*.arrow")]

async def notebook():
    metric.add(prediction="the Vel", reference=["Vel"])
    metric.add(prediction=None, reference=["Oru"])
    return metric.compute(benchmark="musique", judge="symbolic", judge_repeats=2)

loop = evaluate.load("evaluators/safe_stepwise", "loop")
step = "Step 1: ####ANSWER: the Vel (Final Answer)"
Path.home().joinpath("replies.json").write_text(json.dumps({"replies": [{"reply": step}]}))
row = {"title": "Oru", "sentences": ["Oru lies on the Vel."], "is_gold": True}
loop.add(questions="Where is Oru?", passages=[row], reference=["Vel"])
made = loop.compute(generator=f"mock:{Path.home()}/replies.json", method="no_verification")
try:
    evaluate.load("evaluators/safe_stepwise", "lop")
except UserError as error:
    refused.append(str(error))
try:
    loop.compute(predictions=["Oru"], references=[["Vel"]])
except UserError as error:
    refused.append(str(error))
print(json.dumps([len(cases), wrong, refused, leftover, asyncio.run(notebook()), made]))
"""


def test_by_its_path_in_a_checkout(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    try:
        data = str(request.getfixturevalue("real_data"))
    except pytest.skip.Exception:
        data = ""  # the rest can be tested without
    code = f"DATA = {data!r}\n{PATH}"
    cases, wrong, refused, leftover, judged, made = run(code, tmp_path, cwd=ROOT)
    assert (cases >= 2_000, wrong, leftover) == (bool(data), [], [])
    assert len(refused) == 11
    assert all(len(line.splitlines()) == 1 for line in refused)
    assert "lop" in refused[-2]
    assert (judged["accuracy"], judged["exact_match"], judged["simulated"]) == (0.5, 0.5, True)
    assert judged["judge_agreement"]["unanimous"] == 1.0
    assert (made["exact_match"], made["calls_per_question"]) == (1.0, 1.0)


BARE = """
import contextlib, doctest, io, json, re, sys
from pathlib import Path
from safe_stepwise.register import main

main([])
import evaluate
failed = tried = 0
metrics = [evaluate.load("safe_stepwise", config) for config in ("default", "loop", "faithfulness")]
texts = [metric.inputs_description for metric in metrics]
fences = re.findall(r"```python\\n(>>> .*?)```", Path(README).read_text(), re.DOTALL)
names, said = {}, io.StringIO()
for number, text in enumerate([*texts, "\\n".join(fences)]):
    test = doctest.DocTestParser().get_doctest(text, names, f"text {number}", None, 0)
    result = doctest.DocTestRunner().run(test, out=said.write, clear_globs=False)
    failed, tried = failed + result.failed, tried + result.attempted
print(said.getvalue(), file=sys.stderr)
main(["--remove"])
print(json.dumps([failed, tried, len(fences)]))
sys.exit(failed)
"""


def test_by_its_bare_name_from_anywhere_as_its_examples_do(tmp_path: Path) -> None:
    code = f"README = {str(SPACE / 'README.md')!r}\n{BARE}"
    with HubServer() as hub:  # which has no such Space
        failed, tried, fences = run(code, tmp_path, HF_ENDPOINT=hub.url)
        assert any("evaluate-metric/safe_stepwise" in one.path for one in hub.asked)
    assert failed == 0
    assert tried > 15
    assert fences == 3
    assert not list((tmp_path / "hf").rglob("evaluate-metric--safe_stepwise/*/safe_stepwise.py"))


PUSH = """
import json
from huggingface_hub import HfApi
api = HfApi()
api.create_repo(REPO, repo_type="space", space_sdk="gradio")
commit = api.upload_folder(repo_id=REPO, repo_type="space", folder_path=SPACE)
api.create_tag(REPO, tag=f"v{VERSION}", repo_type="space", revision=commit.oid)
print(json.dumps(commit.oid))
"""
LOAD = """
import evaluate, json
metric = evaluate.load(REPO, revision=REVISION)
given = dict(predictions=["the Vel"], references=[["Vel"]], benchmark="musique")
print(json.dumps([metric.compute(**given), metric.compute.__doc__.count("benchmark (str)")]))
"""


def test_from_a_hub_by_its_tag(tmp_path: Path) -> None:
    repo = f"{NAMESPACE}/safe_stepwise"
    names = f"REPO, SPACE, VERSION = {repo!r}, {str(SPACE)!r}, {__version__!r}\n"
    (elsewhere := tmp_path / "elsewhere").mkdir()
    with HubServer() as hub:
        settings = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
        run(names + PUSH, tmp_path, **settings)
        asked = len(hub.asked)
        revision = f"REVISION = 'v{__version__}'\n"
        found, documented = run(names + revision + LOAD, elsewhere, **settings)
        assert any(f"v{__version__}/safe_stepwise.py" in one.path for one in hub.asked[asked:])
    assert found == {"exact_match": 1.0, "f1": 1.0, "accuracy": None, "unscored": 0}
    assert documented == 1


INSIDE = """
import json, sys
import evaluate
metric = evaluate.load("./safe_stepwise.py")
found = metric.compute(predictions=["the Vel"], references=[["Vel"]], benchmark="musique")
import safe_stepwise
import app
print(json.dumps([found["f1"], safe_stepwise.__file__, app.score_rows([["x", "y; x"]], "musique")]))
"""
OTHER = """
import json
import safe_stepwise
safe_stepwise.__version__ = "9.9.9"
import evaluate
try:
    evaluate.load("evaluators/safe_stepwise")
except ImportError as error:
    print(json.dumps(str(error)))
"""


def test_inside_its_own_folder_the_package_is_not_mistaken(tmp_path: Path) -> None:
    found, package, scored = run(INSIDE, tmp_path, cwd=SPACE, PYTHONDONTWRITEBYTECODE="1")
    assert found == 1.0
    assert Path(package) == ROOT / "safe_stepwise" / "__init__.py"
    assert scored == "exact match 1.000, F1 1.000 over 1 answers"


BARELY = """
import json
from safe_stepwise.register import register
register()
import evaluate
print(json.dumps(evaluate.load("safe_stepwise", "loop").config_name))
"""


def test_by_its_bare_name_where_no_hub_can_be_reached(tmp_path: Path) -> None:
    assert run(BARELY, tmp_path) == "loop"


def test_another_version_of_the_package_is_told_in_one_line(tmp_path: Path) -> None:
    told = run(OTHER, tmp_path, cwd=ROOT)
    assert f"of safe-stepwise {__version__}, installed is 9.9.9" in told
    assert "pip install git+https://huggingface.co/spaces/NAMESPACE/safe_stepwise " in told
    assert len(told.splitlines()) == 1


MISSING = """
import json, sys
import evaluate
sys.modules["safe_stepwise"] = None
try:
    evaluate.load(REPO, revision=REVISION)
except ImportError as error:
    print(json.dumps(str(error)))
"""


def test_nobody_is_told_to_install_a_package_that_is_not_ours(tmp_path: Path) -> None:
    repo = f"{NAMESPACE}/safe_stepwise"
    names = f"REPO, SPACE, VERSION = {repo!r}, {str(SPACE)!r}, {__version__!r}\n"
    with HubServer() as hub:
        settings = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
        run(names + PUSH, tmp_path, **settings)
        told = run(f"{names}REVISION = 'v{__version__}'\n{MISSING}", tmp_path, **settings)
    assert f"of safe-stepwise {__version__}, installed is nothing: pip install git+" in told
    assert f"https://huggingface.co/spaces/{repo} " in told
    assert len(told.splitlines()) == 1
    bare = re.compile(r"pip install ['\"]?safe[-_]stepwise")
    ours = (ROOT / name for name in (*PACKAGES, "docs", "Makefile", "pyproject.toml"))
    files = (file for path in ours for file in [path, *path.rglob("*")] if file.is_file())
    for file in files:
        assert not bare.search(file.read_text("utf-8", "replace")), file
    assert not bare.search(told)


def test_the_front_matter_is_a_spaces() -> None:
    text = (SPACE / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(text.split("---")[1])
    assert front["sdk"] == "gradio"
    assert (SPACE / front["app_file"]).is_file()
    assert re.fullmatch(r"\d+\.\d+\.\d+", front["sdk_version"])
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert len(front["short_description"]) <= 60  # what the Hub takes
    assert front["license"] == "apache-2.0"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The Space as a release has it."""
    copy_space(ROOT, tmp_path)
    return tmp_path / "space"


def test_the_space_brings_its_package_and_asks_for_what_others_have(published: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = (published / "requirements.txt").read_text("utf-8").splitlines()
    extras = project["optional-dependencies"]
    assert wanted == sorted({*project["dependencies"], *extras["metric"], *extras["openai"]})
    assert all("<" in line or "==" in line for line in wanted)
    assert "safe" not in " ".join(wanted)
    for file in (ROOT / "safe_stepwise").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            copy = published / file.relative_to(ROOT)
            assert copy.read_bytes() == file.read_bytes()
    front = yaml.safe_load((published / "README.md").read_text("utf-8").split("---")[1])
    least = SpecifierSet(project["requires-python"])
    assert front["python_version"] in least
    for name in ("README.md", "safe_stepwise.py"):
        versions = re.findall(r"\b\d+\.\d+\.\d+\b", (published / name).read_text("utf-8"))
        assert __version__ in versions


def test_the_space_has_the_same_bytes_each_time(published: Path, tmp_path: Path) -> None:
    copy_space(ROOT, tmp_path / "again")
    first, second = (
        {path: (folder / path).read_bytes() for path in walk(folder)}
        for folder in (published, tmp_path / "again" / "space")
    )
    assert first == second
    assert not any("__pycache__" in path for path in first)


ALONE = """
import json, sys
sys.path[:] = [entry for entry in sys.path if entry != ROOT]
import app
import safe_stepwise
print(json.dumps([app.score_rows(app.ROWS, "musique"), safe_stepwise.__file__]))
"""


def test_the_published_space_runs_on_its_own_package(published: Path, tmp_path: Path) -> None:
    code = f"ROOT = {str(ROOT)!r}\n{ALONE}"
    scored, package = run(code, tmp_path, cwd=published, PYTHONDONTWRITEBYTECODE="1")
    assert scored == "exact match 0.500, F1 0.500 over 2 answers"
    assert Path(package) == published / "safe_stepwise" / "__init__.py"


def test_the_page_answers(published: Path) -> None:
    """As the Hub runs it: from its own folder, by the gradio that its header names or a newer."""
    gradio = pytest.importorskip("gradio", reason="pip install gradio to open the Space's page")
    from gradio_client import Client

    header = yaml.safe_load((SPACE / "README.md").read_text().split("---")[1])
    assert gradio.__version__.split(".")[0] == header["sdk_version"].split(".")[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "0"}
    process = subprocess.Popen(
        [sys.executable, "app.py"], cwd=published, env={**os.environ, **told}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert "Running on" in next(line for line in process.stdout if line.strip())
        client = Client(f"http://127.0.0.1:{port}", verbose=False)
        rows = {"headers": ["", ""], "data": [["the Vel", "Vel; Oru"], ["no", "yes"]]}
        said = client.predict({**rows, "metadata": None}, "musique", api_name="/scored")
        assert said == "exact match 0.500, F1 0.500 over 2 answers"
        empty = {**rows, "data": [["", ""]], "metadata": None}
        nothing = client.predict(empty, "musique", api_name="/scored")
        assert nothing == "there are no predictions: give at least one"
    finally:
        process.terminate()
        process.wait(20)
