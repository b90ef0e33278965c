"""Listed replies as a trie of tokens: what may come next after what was said."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

_END = -1
"""Stands where a reply may end; no token has this number."""


class Trie:
    """Token sequences by their beginnings.

    >>> replies = Trie([[5, 7], [5, 8, 9], [5]])
    >>> [(sorted(following), whole) for following, whole in map(replies.after, ([], [5], [5, 8]))]
    [([5], False), ([7, 8], True), ([9], False)]
    """

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        """Raises ``ValueError`` for a sequence without a token, which is no reply."""
        self._root: dict[int, Any] = {}
        for sequence in sequences:
            if not sequence:
                raise ValueError("a reply to choose has no token")
            node = self._root
            for token in sequence:
                node = node.setdefault(token, {})
            node[_END] = {}

    def after(self, said: Iterable[int]) -> tuple[Collection[int], bool]:
        """The tokens that may follow, and whether what was said is a whole sequence.

        Raises ``KeyError`` for what is the beginning of none.
        """
        node = self._root
        for token in said:
            node = node[token]
        return [token for token in node if token != _END], _END in node
