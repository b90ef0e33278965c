"""Reads what ``terms.yaml`` says of each benchmark: licence, homepage and citation (BibTeX), for cards."""

from pathlib import Path
from typing import Any

from safe_stepwise.store.packaged import read_yaml

TERMS: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_suffix(".yaml"))


def terms_of(name: str) -> tuple[Any, ...]:
    """Return the licence, homepage, citation, caveat and expected cost (or None), for a benchmark's constants."""
    texts = (TERMS[name].get(field, "") for field in ("license", "homepage", "citation", "caveat"))
    return *texts, TERMS[name].get("expected")
