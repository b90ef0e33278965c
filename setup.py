"""The long description on PyPI: README.md, whose links lead somewhere there, too.

All else stands in pyproject.toml. Links to files of the repository become absolute, below
``Repository`` of ``[project.urls]``; as long as there is none, their words are left. The pages of
the documentation (mkdocs.yml, where this is a hook) do the same with links that leave docs/.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
AWAY = re.compile(r"(!?)\[([^\]]*)\]\(\.\./([^)\s]+)\)")


def repository() -> str | None:
    """The address of the repository, if pyproject.toml names one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    path: str | None = project.get("urls", {}).get("Repository")
    return path


def relinked(text: str, link: re.Pattern[str], address: str | None) -> str:
    """Markdown in which what ``link`` finds is absolute; without an address, words alone.

    >>> relinked("[verify](docs/verify.md) ![a trace](docs/trace.svg)", LINK, "https://x.org/r")
    '[verify](https://x.org/r/blob/main/docs/verify.md) ![a trace](https://x.org/r/raw/main/docs/trace.svg)'
    >>> relinked("[verify](docs/verify.md), [arXiv](https://arxiv.org)", LINK, None)
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
    """mkdocs calls this for every page."""
    return relinked(markdown, AWAY, repository())


if __name__ == "__main__":
    from setuptools import setup
    from setuptools.command.build_py import build_py

    class WithMetric(build_py):
        """Puts the metric's module, of which the Space's folder has the one copy, among the package's data."""

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
        long_description=relinked(readme, LINK, repository()),
        long_description_content_type="text/markdown",
        cmdclass={"build_py": WithMetric},
    )
