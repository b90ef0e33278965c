"""Audits of what people judged: nothing but a look, as cards have told of them."""

from dataclasses import dataclass

from cards.datasets import Audit
from evaluators.audit.report import check_rows, read_scores
from releases.manifest import REFINEMENT, Manifest
from releases.stage import Made, Stage
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import DATASETS, STEPS


@dataclass(frozen=True)
class Audits(Stage[Manifest]):
    """The audits of a manifest, which have to be of the release's own rows."""

    part = key = "audits"

    @property
    def needs(self) -> list[str]:
        of_steps = any(audit.of == STEPS for audit in self.release.manifest.audits)
        return [DATASETS, *(["verifier_steps"] if of_steps else [])]

    follows = REFINEMENT

    def make(self) -> Made:
        manifest = self.release.manifest
        audits = read_audits(manifest)
        for entry in manifest.audits:
            check_rows(audits[entry.of].scores, entry.file, self.release.datasets)
        lines = [f"audit of {of}: {a.scores['rows']:,} rows, all of this release" for of, a in audits.items()]
        return Made("\n".join(lines), {f"audit-{of}": {"sha256": a.sha256} for of, a in audits.items()})


def read_audits(manifest: Manifest) -> dict[str, Audit]:
    """The scores that a manifest names, by what was judged.

    Raises ``UserError`` for a file that can't be read or holds something else.
    """
    audits = {}
    for entry in manifest.audits:
        scores = read_scores(entry.file, entry.of)  # names a file that is not there
        audits[entry.of] = Audit(entry.file.name, sha256_of(entry.file), scores)
    return audits
