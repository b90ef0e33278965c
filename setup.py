"""Makes README.md the long description on PyPI, with absolute links; pyproject.toml has all other metadata.

Links to files of the repository become absolute, below ``Repository`` of ``[project.urls]``. Without that address only
the link's text stays. As a hook of mkdocs this module does the same with the documentation's links out of docs/.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
AWAY = re.compile(r"(!?)\[([^\]]*)\]\(\.\./([^)\s]+)\)")


def read_repository() -> str | None:
    """Return the repository's address in pyproject.toml; None if it names none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    path: str | None = project.get("urls", {}).get("Repository")
    return path


def make_links_absolute(text: str, link: re.Pattern[str], address: str | None) -> str:
    """Return Markdown in which the links that ``link`` matches are absolute; without an address, only their texts.

    >>> make_links_absolute("[verify](docs/verify.md) ![a trace](docs/trace.svg)", LINK, "https://x.org/r")
    '[verify](https://x.org/r/blob/main/docs/verify.md) ![a trace](https://x.org/r/raw/main/docs/trace.svg)'
    >>> make_links_absolute("[verify](docs/verify.md), [arXiv](https://arxiv.org)", LINK, None)
    'verify, [arXiv](https://arxiv.org)'
    """

    def absolute(path: re.Match[str]) -> str:
        image, words, path = path.groups()
        if address is None:
            return f"*{words}*" if image else words
        kind = "raw" if image else "blob"
        return f"{image}[{words}]({address.rstrip('/')}/{kind}/main/{path})"

    return link.sub(absolute, text)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """mkdocs hook: return a page's Markdown with the links out of docs/ made absolute."""
    return make_links_absolute(markdown, AWAY, read_repository())


if __name__ == "__main__":
    from setuptools import setup
    from setuptools.command.build_py import build_py

    class WithMetric(build_py):
        """Copies the metric's module from the folder of the Space into the package's data."""

        def run(self) -> None:
            super().run()
            if not self.editable_mode:
                places = (ROOT / "evaluators" / "safe_stepwise", ROOT)  # a checkout; the Space itself
                module = next(place / "safe_stepwise.py" for place in places if (place / "safe_stepwise.py").is_file())
                target = Path(self.build_lib, "safe_stepwise", "metric", "space", "safe_stepwise.py.txt")
                self.mkpath(str(target.parent))
                self.copy_file(str(module), str(target))

    readme = (ROOT / "README.md").read_text("utf-8")
    setup(
        long_description=make_links_absolute(readme, LINK, read_repository()),
        long_description_content_type="text/markdown",
        cmdclass={"build_py": WithMetric},
    )
