"""What a command prints of a build: a template beside the build's modules, filled."""

from pathlib import Path
from typing import Any

from safe_stepwise.store.pages import environment
from safe_stepwise.store.tables import text_table


def summary(folder: Path, template: str, **values: Any) -> str:
    """A template of a folder in plain text; ``table`` in it sets rows as an aligned table."""
    return environment((folder,)).get_template(template).render(table=text_table, **values).removesuffix("\n")
