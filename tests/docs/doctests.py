"""For mkdocstrings (mkdocs.yml): examples of docstrings are shown as code, not as quotations."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Fences every example, up to the empty line that ends it."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Griffe calls this for each object that it has read."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
