"""What is measured of a verifier: written by its evaluation, read by its card."""

from collections.abc import Mapping
from typing import Any

from safe_stepwise.store.names import marked

MEASURES: Mapping[str, tuple[str, str]] = {
    "accuracy": ("accuracy", "Error-type accuracy"),
    "macro_f1": ("f1", "Error-type macro F1"),
    "error_precision": ("precision", "Error detection precision"),
    "error_recall": ("recall", "Error detection recall"),
    "error_f1": ("f1", "Error detection F1"),
    "first_error_erroneous": ("accuracy", "First error found (erroneous trajectories)"),
    "first_error_correct": ("accuracy", "None flagged (correct trajectories)"),
    "first_error_f1": ("f1", "First-error localisation F1 (ProcessBench)"),
    "parse_rate": ("accuracy", "Readable replies"),
}
"""Each measure's type, as a model card names it, and its title."""


def title_of(verifier: Mapping[str, Any]) -> str:
    """The name of a verifier that was measured, marked if it only plays a model."""
    return marked(str(verifier["name"]), bool(verifier["simulated"]))
