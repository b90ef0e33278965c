"""The gallery of the site: pages that the tool writes, as the build of the site makes and photographs them.

`python -m tests.docs.gallery` runs the commands and takes the pictures (`make docs` does); mkdocs, by way of
`tests.docs.written`, puts what it finds of them into the site. None of it is in git.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = Path("build") / "gallery"
SIZES = {"": (1280, 800), "-phone": (390, 844)}
"""The suffix of a picture's name, and the width and height of the window that it shows."""


@dataclass(frozen=True)
class Shown:
    """A page of the gallery: what it is, the commands that make it, and its place in `FOLDER`."""

    name: str
    text: str
    commands: tuple[str, ...]
    file: str

    @property
    def path(self) -> Path:
        return ROOT / FOLDER / self.file

    def picture(self, suffix: str) -> Path:
        return ROOT / FOLDER / f"{self.name}{suffix}.png"


BUILD = (
    "safe-stepwise build_verified --benchmark synthetic --input rows=30,seed=12,noise=0.15 --split validation "
    f"--teacher annotations --output {FOLDER}/verified"
)
EVALUATE = (
    f"safe-stepwise evaluate_stepwise --questions {FOLDER}/verified --method no_verification "
    "--method self_verification --method safe --generator symbolic:error_rate=0.3,seed=1 --verifier symbolic "
    f"--judge symbolic --output {FOLDER}/results --cache {FOLDER}/replies.sqlite"
)
PAGES = (
    Shown(
        "labels",
        "Each row of a benchmark with its label, the reason, the path from the question to the answer, and the "
        "passages; the decisive sentences are marked.",
        (f"safe-stepwise verify examples/own_benchmark.jsonl --output {FOLDER}/own",),
        "own/labels.html",
    ),
    Shown(
        "check",
        "Steps of reasoning, judged without a model: each claim beside the sentence that states or denies it.",
        (f"safe-stepwise check examples/reasoning.jsonl --html {FOLDER}/reasoning.html",),
        "reasoning.html",
    ),
    Shown(
        "traces",
        "How each question was answered, attempt by attempt, with the verifier's feedback. Generator and verifier are "
        "simulated here.",
        (BUILD, EVALUATE, f"safe-stepwise view_traces {FOLDER}/results"),
        "results/traces.html",
    ),
    Shown(
        "report",
        "The report of the same evaluation: scores with intervals, paired tests, costs, and whether right answers "
        "were earned. All of it is simulated.",
        (BUILD, EVALUATE),
        "results/report/report.html",
    ),
    Shown(
        "audit",
        "A sample of rows for people to judge. The page keeps the judgements in the browser, and exports them.",
        (
            f"safe-stepwise audit_labels sample --of labels --input {FOLDER}/own --rows 5 --seed 1 "
            f"--output {FOLDER}/audit.html",
        ),
        "audit.html",
    ),
)


def markdown() -> str:
    """The page of the site, with the pictures that there are."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Gallery\n\nEvery page is one HTML file that opens from disk, loads nothing and can be read on a phone."
    yield "The build of this site made them by the commands shown, and photographed them.\n"
    if not any(shown.picture("").is_file() for shown in PAGES):
        yield "There are no pictures here: `make docs` takes them where it has Chromium and Playwright.\n"
    for shown in PAGES:
        yield f"## {shown.name.capitalize()}\n\n{shown.text}\n"
        if shown.picture("").is_file():
            images = (
                f'<img src="gallery/{shown.picture(s).name}" alt="{shown.name}, {SIZES[s][0]} pixels wide">'
                for s in SIZES
            )
            yield f'<div class="shots">{"".join(images)}</div>\n\n[Open the page itself](gallery/{shown.name}.html)\n'
        yield "\n".join(["```bash", *shown.commands, "```\n"])


def files() -> Iterator[tuple[str, Path]]:
    """The gallery's pages and pictures by their addresses in the site."""
    for shown in PAGES:
        for suffix in SIZES:
            if shown.picture(suffix).is_file():
                yield f"gallery/{shown.picture(suffix).name}", shown.picture(suffix)
        if shown.picture("").is_file():
            yield f"gallery/{shown.name}.html", shown.path


def photograph(browser: Any, page: Path, pictures: dict[str, Path]) -> None:
    """Take a picture of the top of a page in each of `SIZES`."""
    for suffix, picture in pictures.items():
        width, height = SIZES[suffix]
        window = browser.new_page(viewport={"width": width, "height": height})
        window.goto(page.as_uri())
        window.screenshot(path=picture)
        window.close()


def make() -> str:
    """Make the pages and their pictures, and return how many; say why if there are none."""
    from tests.browsing import CHROMIUM, FLAGS

    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return "gallery: no pictures, as Playwright is missing ([dev])"
    if not CHROMIUM.exists():
        return f"gallery: no pictures, as there is no Chromium at {CHROMIUM} (set SAFE_STEPWISE_CHROMIUM)"
    shutil.rmtree(ROOT / FOLDER, ignore_errors=True)
    for command in dict.fromkeys(command for shown in PAGES for command in shown.commands):
        arguments = [sys.executable, "-m", "safe_stepwise.commands.main", *shlex.split(command)[1:]]
        subprocess.run(arguments, cwd=ROOT, check=True, capture_output=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        for shown in PAGES:
            photograph(browser, shown.path, {suffix: shown.picture(suffix) for suffix in SIZES})
        browser.close()
    return f"gallery: {len(PAGES)} pages in {FOLDER}"


if __name__ == "__main__":
    print(make())
