"""What an engine says, before anyone keeps or prints it: without the keys that it was sent.

A server is a stranger. Whatever it says passes here, on its way through `client`: no engine has to
think of it, and none can forget it.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from safe_stepwise.engines.base import Completion, EngineError
from safe_stepwise.errors import UserError
from safe_stepwise.store.replies import LONGEST as LONGEST_REPLY
from safe_stepwise.store.secrets import keyless
from safe_stepwise.store.terminal import shown

LONGEST, LONGEST_ENDING = 300, 1000
"""Characters that are kept of a request's error, and of one that ends the run."""


def kept(completion: Completion, ours: Collection[str]) -> Completion:
    """A completion without ``ours``, our credentials, what only a key looks like, and excess."""
    # Beyond that no reader looks, and a hundred such replies would be waited for at a time.
    text = keyless(completion.text[: LONGEST_REPLY + 1], ours)
    return completion if text == completion.text else replace(completion, text=text)


@contextmanager
def fit_to_print() -> Iterator[None]:
    """Errors raised inside lose what looks like a credential, and become one line."""
    try:
        yield
    except (EngineError, UserError) as error:
        error.args = (fitted(error),)
        raise


def fitted(error: EngineError | UserError) -> str:
    """An error's text as one line without credentials, cut at its limit.

    >>> fitted(EngineError("Bearer abcdefgh12345678\\nis unknown"))
    'Bearer [redacted] is unknown'
    """
    text = shown(error)
    limit = LONGEST_ENDING if isinstance(error, UserError) else LONGEST
    return text if len(text) <= limit else text[: limit - 1] + "…"
