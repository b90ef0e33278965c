"""Who plays in a release, by an engine's spec."""

import re
from collections.abc import Collection

from releases.manifest import MEASURED_RATE, OWN_ADAPTER, OWN_GENERATOR
from safe_stepwise.errors import UserError
from safe_stepwise.open import check_spec

_PLACEHOLDER = re.compile(r"\{\w*\}")


def check_player(spec: str, where: str, trained: Collection[str]) -> None:
    """Raise ``UserError`` for a spec of no engine, and of a model that is not trained here."""
    meant = spec.replace(MEASURED_RATE, "0") if where.endswith(".verifier") else spec
    for placeholder, what in ((OWN_ADAPTER, "an adapter"), (OWN_GENERATOR, "a generator")):
        if placeholder in spec and placeholder not in trained:
            key = what.partition(" ")[2]
            raise UserError(f"{where}: {placeholder} stands for {what}; add {key} to the manifest")
        meant = meant.replace(placeholder, "trained")
    if strange := _PLACEHOLDER.search(meant):
        names = f"{OWN_ADAPTER}, {OWN_GENERATOR} or, of a verifier, {MEASURED_RATE}"
        raise UserError(f"{where}: {strange[0]} stands for nothing; write {names}")
    try:
        check_spec(meant)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
