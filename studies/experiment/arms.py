"""The arms of an experiment: who verified, what that brought, and by how much it is better."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.comparison.significance import Estimate
from evaluators.comparison.systems import System
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import VERIFIER
from safe_stepwise.store.names import marked

Record = Mapping[str, Any]
NAMES = {"no_verification": "no verification", "self_verification": "self-verification"}
PLAIN = NAMES["no_verification"]
LEARNED, CHECKER, CHANCE = "SAFE, learned verifier", "SAFE, graph checker", "SAFE, by chance"
_CHECKER = re.compile(r"symbolic:error_rate=0\.0,seed=\d+ \(simulated\)")
"""The player without mistakes; with any other setting it is another verifier."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the systems of ``results.json``."""

    name: str
    run: Record
    """Of ``runs``: ``players``, ``options``, ``simulated``, and in ``all`` what it came to."""
    system: Record
    """Of ``comparison``: its scores in ``average`` with their intervals."""
    earned: Record | None
    """Of ``faithfulness``: its answers by EM and our checker's rule; None if nobody judged them."""

    @property
    def key(self) -> System:
        return _key(self.run)

    @property
    def label(self) -> str:
        return marked(self.name, self.run["simulated"])

    @property
    def em(self) -> Estimate:
        return Estimate(**self.system["average"]["exact_match"])

    @property
    def retries(self) -> int:
        return int(self.run["options"].get("max_retries", 0))

    @property
    def rejected(self) -> float | None:
        """The share (0-1) of tries at a step that were rejected; None where nobody judged."""
        found = self.run["all"]
        return self._of_judged(sum(found["error_types"].values()) + found["unread"])

    @property
    def unread(self) -> float | None:
        """The share (0-1) of tries whose verdict could not be read, which rejects them, too."""
        return self._of_judged(self.run["all"]["unread"])

    @property
    def both(self) -> float | None:
        """The share (0-1) of questions that were answered rightly and by a faithful chain."""
        if self.earned is None:
            return None
        return float(self.earned["right"]["faithful"]) / float(self.run["all"]["questions"])

    def _of_judged(self, tries: int) -> float | None:
        judged = self.run["all"]["calls"].get(VERIFIER, 0)
        return tries / judged if judged else None


@dataclass(frozen=True, slots=True)
class Gain:
    """Of exact match (0-1): how much, McNemar's p, and p by Holm among all that are tested."""

    estimate: Estimate
    p: float
    p_holm: float

    def turned(self) -> "Gain":
        """The other's.

        >>> Gain(Estimate(0.1, -0.1, 0.3), 0.2, 0.4).turned().estimate
        Estimate(value=-0.1, low=-0.3, high=0.1)
        """
        one = self.estimate
        return Gain(Estimate(-one.value, -one.high, -one.low), self.p, self.p_holm)


Gains = Mapping[tuple[System, System], Gain]
"""The first's over the second's; each pair stands there both ways."""


def arms(results: Record) -> list[Arm]:
    """The arms in the order of the run; the first verifier that was named is the learned one."""
    first = next((r["players"][VERIFIER] for r in results["runs"] if VERIFIER in r["players"]), "")
    earned = {_key(one): one for one in results.get("faithfulness", {}).get("systems", ())}
    systems = {_key(one): one for one in results["comparison"]["systems"]}
    return [
        Arm(_name(run, first), run, systems[_key(run)], _faithful(earned.get(_key(run)))) for run in results["runs"]
    ]


def one_of(found: Sequence[Arm], name: str, **options: Any) -> Arm | None:
    """The arm of that name, of several the one with these options; None if there is none."""
    fitting = [
        arm for arm in found if arm.name == name and all(arm.run["options"].get(k) == v for k, v in options.items())
    ]
    return fitting[0] if fitting else None


def _name(run: Record, first: str) -> str:
    verifier = run["players"].get(VERIFIER)
    if verifier is None:
        return NAMES.get(run["method"], str(run["method"]))
    if verifier == first:
        return LEARNED
    if _CHECKER.fullmatch(verifier):
        return CHECKER
    return CHANCE if verifier.startswith("chance:") else f"SAFE, {verifier}"


def _key(system: Record) -> System:
    told = (system[name] for name in ("method", "players", "options", "conditions"))
    return System.of(*told)


def _faithful(system: Record | None) -> Record | None:
    if system is None:
        return None
    found: Record = system["all"]["rules"]["house"]["answers"]["exact_match"]
    return found


def check(results: Record, place: str) -> None:
    """Raise ``UserError`` for results that are no experiment's."""
    names = {arm.name for arm in arms(results)}
    if lacking := {PLAIN, LEARNED} - names:
        raise UserError(
            f"{place}: has no {' and no '.join(sorted(lacking))}; evaluate no_verification and safe with one generator"
        )
