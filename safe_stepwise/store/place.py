"""Where the package stands: in a checkout, which has every command, or installed from a wheel.

What an error advises has to be right in either place.
"""

from pathlib import Path

_ABOVE = Path(__file__).resolve().parents[2]


def checkout() -> Path | None:
    """The root of the checkout that this package is imported from; None in a wheel.

    >>> root = checkout()
    >>> root is None or (root / "scripts" / "cli.py").is_file()
    True
    """
    return _ABOVE if (_ABOVE / "scripts" / "cli.py").is_file() else None


def install(extra: str) -> str:
    """The command that installs an extra here."""
    named = f".[{extra}]" if checkout() else f"safe-stepwise[{extra}]"
    return f"pip install {'-e ' if checkout() else ''}'{named}'"


def start_server(model: str) -> str:
    """How a server for a model is started here."""
    if checkout():
        return f"start one with `scripts/serve.sh {model}`"
    return f"start one with `vllm serve {model}`, or `safe-stepwise stand-in` to try things out"
