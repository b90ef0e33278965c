"""All that a release must pass before anything of it leaves this machine."""

from collections.abc import Callable
from typing import Any

from releases.publish.folder import Artifact, Release
from releases.publish.hub import Hub, told
from releases.publish.leaks import check_leaks
from releases.publish.readme import check_card
from releases.publish.secrets import secret_in
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import read_object
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import DATASETS, LOCK, README, STEPS_RECORD, VERIFIER_STEPS
from safe_stepwise.store.terminal import credentials

_AGAIN = "make the release again with safe-stepwise regenerate"


def check_release(release: Release, hub: Hub | None, on_file: Callable[[str], None]) -> None:
    """Unchecked rows, cards, digests, secrets, leaks, in this order; the cheapest first.

    No credential of this process may be in a file either. The ``hub``, if there is one, is asked
    about the cards too. ``on_file`` hears of each file that is read. Raises UserError for the first
    fault.
    """
    _refuse_unchecked(release)
    for artifact in release.artifacts:
        card = check_card(artifact)
        if hub is not None:
            _ask_about(card, artifact, hub)
    check_digests(release, on_file)
    own = credentials()
    for artifact in release.artifacts:
        for file in artifact.files:
            secret = secret_in(file, own)
            if secret is not None:
                raise UserError(
                    f"{file.origin}: holds {secret}; take it out (and revoke it if it is real), then {_AGAIN}"
                )
    check_leaks(release.root)


def _ask_about(card: Any, artifact: Artifact, hub: Hub) -> None:
    """Licences and tags, which the Hub knows."""

    def complaint() -> str | None:
        try:
            return card.validate(repo_type=artifact.kind)  # type: ignore[no-any-return]
        except ValueError as error:
            return str(error)

    where = f"{artifact.folder}/{README}"
    if (said := hub.ask(where, complaint)) is not None:
        raise UserError(f"{where}: does not pass the Hub's check of cards: {told(said)}")


def _refuse_unchecked(release: Release) -> None:
    """Nobody is to take the rows of an ablation, which nothing checked, for the verifier set."""
    file = release.root / DATASETS / VERIFIER_STEPS / STEPS_RECORD
    if not file.is_file():
        return  # what has to be there, the lock says
    if read_object(file).get("unverifiable"):
        raise UserError(
            f"{file}: nothing checked these steps, which were made with --unverifiable; such a set "
            "is for an ablation: take it out of the release"
        )


def check_digests(release: Release, on_file: Callable[[str], None]) -> None:
    """Every file as locked, none too many, none gone. Raises UserError naming the first.

    What is made of a locked file on the way to the Hub counts as that file.
    """
    locked = release.lock["files"]
    for artifact in release.artifacts:
        for file in artifact.files:
            on_file(file.origin)
            if file.origin not in locked:
                raise UserError(f"{release.root / file.origin}: not in {LOCK}; {_AGAIN}")
            made = isinstance(file.content, bytes)
            digest = sha256_of(release.root / file.origin) if made else file.sha256
            if digest != locked[file.origin]:
                raise UserError(f"{release.root / file.origin}: differs from {LOCK}; {_AGAIN}")
    gone = sorted(name for name in locked if not (release.root / name).is_file())
    if gone:
        raise UserError(f"{release.root / gone[0]}: missing, though {LOCK} has it; {_AGAIN}")
