"""A sample as one HTML page to judge it on, which loads nothing and sends nothing anywhere."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.audit.asked import ASKED, INSTEAD, asked_of
from evaluators.audit.rows import Sample
from evaluators.pages.offline import page, write_page

_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("judgements", "kept", "rows", "page")


def write(sample: Sample, meanings: Mapping[str, str], output: Path) -> None:
    """Write the page; ``meanings`` says what each label means.

    Same sample, same bytes. Raises ``UserError`` for a file that can't be written.
    """
    write_page(output, html(sample, meanings))


def html(sample: Sample, meanings: Mapping[str, str]) -> str:
    """The page on a sample."""
    return page(_TEMPLATES, f"{sample.of} {sample.sha256[:12]}", _SCRIPTS, shown(sample, meanings))


def shown(sample: Sample, meanings: Mapping[str, str]) -> dict[str, Any]:
    """All that the page holds, for JSON."""
    asked = ASKED[sample.of]
    keys = iter("123456789")
    return {
        "of": sample.of,
        "sample": sample.sha256,
        "meanings": dict(meanings),
        "asked": [
            {
                "name": one.name,
                "text": one.text,
                # Whatever has a key of its own; the other is a list to choose from.
                "answers": [
                    [answer, words, "" if one.name == INSTEAD else next(keys)] for answer, words in one.answers.items()
                ],
                "optional": one.name == INSTEAD,
            }
            for one in asked
        ],
        "rows": [
            {
                "benchmark": row.key[0],
                "id": row.key[1],
                "sha256": row.sha256,
                "stratum": row.stratum,
                "asks": [one.name for one in asked_of(sample.of, row.stratum)],
                "shown": row.shown,
            }
            for row in sample.rows
        ],
    }
