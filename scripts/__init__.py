"""The command lines: ``safe-stepwise NAME --help``."""

import sys
from importlib.util import find_spec

for library in ("datasets", "jinja2", "networkx", "sentencex", "tenacity", "tqdm", "yaml"):
    if find_spec(library) is None:
        print(
            f"error: {sys.executable} lacks {library}: run `make demo` once, then use "
            ".venv/bin/python (or `. .venv/bin/activate`)",
            file=sys.stderr,
        )
        raise SystemExit(2)
