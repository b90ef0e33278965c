"""The colour of each method, the same in every figure."""

from safe_stepwise.methods import METHODS

_PALETTE = (
    "#777777", "#ee7733", "#4477aa", "#aa3377", "#228833", "#66ccee", "#ccbb44", "#882255",
)  # fmt: skip
"""Of methods, in the order of their registry."""


def color_of(method: str) -> str:
    """A method's colour, the same in every figure."""
    known = list(METHODS)
    return _PALETTE[(known.index(method) if method in known else len(known)) % len(_PALETTE)]
