"""A card's page: a filled template, safe values, and the YAML header on top."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safe_stepwise.store import boundary, tables
from safe_stepwise.store.tables import cell as cell
from safe_stepwise.store.tables import line as line
from safe_stepwise.taxonomy import ERROR_TYPES

Record = Mapping[str, Any]
"""The parsed content of a JSON file that a run wrote."""
WORDS: Mapping[str, Mapping[str, str]] = boundary.parse_yaml(Path(__file__).with_name("words.yaml").read_bytes())
"""Texts for the names in records, by group and name; templates see them as ``words``."""
_TEMPLATES = Path(__file__).parent / "templates"
_PLAIN = frozenset(" .,;:?!'\"/-")
_PLAIN_ARGUMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


def fill(template: str, /, **values: Any) -> str:
    """Fill a template of ``cards/templates`` and return the text; raise ``KeyError`` for a missing figure."""
    tables.environment((_TEMPLATES,)).filters |= _FILTERS
    return tables.fill(_TEMPLATES, template, words=WORDS, errors=len(ERROR_TYPES), **values)


def add_header(data: Any, body: str) -> str:
    """Return a README: the `huggingface_hub.CardData` ``data`` as a YAML header, then the body."""
    return f"---\n{data.to_yaml().rstrip()}\n---\n\n{body}"


def escape_html(text: str) -> str:
    r"""Escape a row's text for HTML within Markdown, so that it shows as it is and cannot end its element.

    >>> escape_html("a <b>\n\n# c | `d` [e](f)")
    'a &#60;b&#62;&#10;&#10;&#35; c &#124; &#96;d&#96; &#91;e&#93;&#40;f&#41;'
    """
    return "".join(c if c.isalnum() or c in _PLAIN else f"&#{ord(c)};" for c in text)


_FILTERS: dict[str, Callable[..., str]] = {
    "shown": escape_html,
    "decimal": lambda value: "-" if value is None else f"{+value:.3f}",
    "percent": lambda value: "-" if value is None else f"{100 * value:.1f}%",
    "spelled": lambda number: {10: "ten", 11: "eleven", 12: "twelve"}.get(number, str(number)),
}


def hub_id(name: object) -> str | None:
    """Return a name if it is a Hub id ``NAMESPACE/NAME`` that is safe in a command line, else None.

    >>> hub_id("Qwen/Qwen3-8B"), hub_id("my-folder"), hub_id("a/b; rm -r")
    ('Qwen/Qwen3-8B', None, None)
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    text = str(name)
    try:
        validate_repo_id(text)
    except HFValidationError:
        return None
    # The Hub also allows a dash in front, which a shell would read as an option.
    return text if text.count("/") == 1 and _PLAIN_ARGUMENT.fullmatch(text) else None


def metadata(readme: str) -> dict[str, Any]:
    """Parse the YAML header of a README's text; return an empty dictionary if it has none."""
    from huggingface_hub import RepoCard

    data: Any = RepoCard(readme, ignore_metadata_errors=True).data
    return dict(data.to_dict())
