"""The arms of an experiment: who verified, what that brought, and by how much it is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.comparison.significance import Estimate
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import VERIFIER

Record = Mapping[str, Any]
NAMES = {"no_verification": "no verification", "self_verification": "self-verification"}
LEARNED, CHECKER, CHANCE = "SAFE, learned verifier", "SAFE, graph checker", "SAFE, by chance"


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the systems of ``results.json``."""

    name: str
    run: Record
    """What it scored and did."""
    system: Record
    """Its scores with their intervals."""
    earned: Record | None
    """How many of its right answers have a faithful chain, by our checker's rule."""

    @property
    def em(self) -> Estimate:
        """Exact match."""
        return Estimate(**self.system["average"]["exact_match"])

    @property
    def retries(self) -> int:
        """N."""
        return int(self.run["options"]["max_retries"])

    @property
    def rejected(self) -> float | None:
        """The share of tries at a step that were rejected; None where nobody judged."""
        found = self.run["all"]
        return self._of_judged(sum(found["error_types"].values()) + found["unread"])

    @property
    def unread(self) -> float | None:
        """The share of tries whose verdict could not be read, which rejects them, too."""
        return self._of_judged(self.run["all"]["unread"])

    @property
    def both(self) -> float | None:
        """The share of questions that were answered rightly and by a faithful chain."""
        if self.earned is None:
            return None
        return float(self.earned["right"]["faithful"]) / float(self.run["all"]["questions"])

    def _of_judged(self, tries: int) -> float | None:
        judged = self.run["all"]["calls"].get(VERIFIER, 0)
        return tries / judged if judged else None


def arms(results: Record) -> list[Arm]:
    """The arms in the order of the run; the first verifier that was named is the learned one."""
    first = next((r["players"][VERIFIER] for r in results["runs"] if VERIFIER in r["players"]), "")
    earned = {_key(one): one for one in results.get("faithfulness", {}).get("systems", ())}
    systems = {_key(one): one for one in results["comparison"]["systems"]}
    return [
        Arm(_name(run, first), run, systems[_key(run)], _faithful(earned.get(_key(run))))
        for run in results["runs"]
    ]


def one_of(found: Sequence[Arm], name: str, **options: Any) -> Arm | None:
    """The arm of that name, of several the one with these options; None if there is none."""
    fitting = [
        arm
        for arm in found
        if arm.name == name and all(arm.run["options"].get(k) == v for k, v in options.items())
    ]
    return fitting[0] if fitting else None


def gain(results: Record, one: Arm, other: Arm) -> tuple[Estimate, float, float] | None:
    """How much more ``one`` answers rightly: the difference, p, and p by Holm; None if untested."""
    for found in results["comparison"]["differences"]:
        keys = [_key(found["first"]), _key(found["second"])]
        if found["metric"] != "exact_match" or {*keys} != {_key(one.run), _key(other.run)}:
            continue
        sign = 1 if keys[0] == _key(one.run) else -1
        said = found["estimate"]
        low, high = sorted((sign * said["low"], sign * said["high"]))
        return Estimate(sign * said["value"], low, high), found["p"], found["p_holm"]
    return None


def _name(run: Record, first: str) -> str:
    verifier = run["players"].get(VERIFIER)
    if verifier is None:
        return NAMES.get(run["method"], str(run["method"]))
    if verifier == first:
        return LEARNED
    return CHANCE if str(verifier).startswith("chance:") else CHECKER


def _key(system: Record) -> str:
    parts = (system["method"], sorted(system["players"].items()), sorted(_told(system)))
    return repr(parts)


def _told(system: Record) -> list[tuple[str, str]]:
    return [(name, repr(value)) for name, value in system["options"].items()]


def _faithful(system: Record | None) -> Record | None:
    if system is None:
        return None
    found: Record = system["all"]["rules"]["house"]["answers"]["exact_match"]
    return found


def check(results: Record, place: str) -> None:
    """Raise ``UserError`` for results that are no experiment's."""
    names = {arm.name for arm in arms(results)}
    if lacking := {NAMES["no_verification"], LEARNED} - names:
        raise UserError(
            f"{place}: has no {' and no '.join(sorted(lacking))}; evaluate no_verification and "
            "safe with one generator"
        )
