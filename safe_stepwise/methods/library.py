"""The passages of a question as an environment: a passage is brought, words are looked up in it.

What a ReAct model observes (Yao et al., 2022). It never changes, so what an action brings depends
on the actions before it alone.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from safe_stepwise.records import Passage

NEAR = 5
"""Titles that are named where no passage fits."""
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    "a an and are at by did do does for from had has have he her his how in is it its of on or she "
    "that the their they this to was were what when where which who whom whose with".split()
)


@dataclass(frozen=True, slots=True)
class Library:
    """Passages, the one that was brought last (from 1), and where looking up goes on in it.

    ``evidence``: sentences are shown with their numbers, from 0.
    """

    passages: tuple[Passage, ...]
    evidence: bool = False
    at: int = 0
    words: str = ""
    seen: int = 0

    def search(self, words: str) -> tuple[str, "Library"]:
        """The passage of that title, else the one that shares most words with the query.

        Words of a title count for more than those of the text, rare ones for more than common
        ones; of several passages alike in that the first comes.

        >>> oru = Passage("Oru (town)", ("Oru lies on the Vel.", "Marn is near."))
        >>> library = Library((Passage("Vel", ("A river.",)), oru))
        >>> library.search("oru")[0]
        'Passage 2, Oru (town): Oru lies on the Vel. Marn is near.'
        >>> library.search("Isk")[0]
        'No passage is about that. There are: Vel; Oru (town).'
        """
        found = self._titled(words) or self._best(words)
        if not found:
            titles = "; ".join(page.title for page in self.passages[:NEAR])
            more = "; ..." if len(self.passages) > NEAR else ""
            return f"No passage is about that. There are: {titles}{more}.", self
        page = self.passages[found - 1]
        told = f"Passage {found}, {page.title}: {self._shown(range(len(page.sentences)), page)}"
        return told, replace(self, at=found, words="", seen=0)

    def look_up(self, words: str) -> tuple[str, "Library"]:
        """The next sentence with all of some words in the passage that was brought last.

        >>> oru = Passage("Oru", ("Oru lies on the Vel.", "Marn is near.", "The Vel is long."))
        >>> _, library = Library((oru,)).search("Oru")
        >>> told, library = library.look_up("vel")
        >>> told, library.look_up("Vel")[0]
        ('1 of 2: Oru lies on the Vel.', '2 of 2: The Vel is long.')
        """
        if not self.at:
            return "No passage was brought yet: search for one first.", self
        page, sought = self.passages[self.at - 1], _terms(words)
        known = [n for n, text in enumerate(page.sentences) if sought and sought <= _terms(text)]
        seen = self.seen if sought == _terms(self.words) else 0
        if seen >= len(known):
            what = "more of these words" if known else "sentence with these words"
            return f"Passage {self.at} has no {what}.", self
        told = f"{seen + 1} of {len(known)}: {self._shown(known[seen : seen + 1], page)}"
        return told, replace(self, words=words, seen=seen + 1)

    def _shown(self, numbers: Sequence[int], page: Passage) -> str:
        texts = [(n, page.sentences[n].strip()) for n in numbers]
        return " ".join(f"[{n}] {text}" if self.evidence else text for n, text in texts)

    def _titled(self, words: str) -> int:
        """The passage of that title, though what stands in brackets behind it be missing."""
        sought = _plain(words)
        titles = [(n, page.title) for n, page in enumerate(self.passages, 1)]
        for form in (_plain, lambda title: _plain(title.partition(" (")[0])):
            if numbers := [n for n, title in titles if sought and form(title) == sought]:
                # Titles may repeat: who asks again is brought the next one.
                later = [n for n in numbers if n > self.at]
                return later[0] if self.at in numbers and later else numbers[0]
        return 0

    def _best(self, words: str) -> int:
        sought = _terms(words)
        titles = [_terms(page.title) for page in self.passages]
        texts = [_terms(page.text) for page in self.passages]
        held = Counter(term for one in zip(titles, texts, strict=True) for term in one[0] | one[1])
        # Summed exactly: a set's order, and so a rounding, differs from run to run.
        worth = [
            math.fsum((2 * (term in title) + (term in text)) / (held[term] or 1) for term in sought)
            for title, text in zip(titles, texts, strict=True)
        ]
        best = max(worth, default=0.0)
        return worth.index(best) + 1 if best > 0 else 0


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _terms(text: str) -> frozenset[str]:
    """The words of a text that say something; all of them where none does."""
    words = frozenset(_plain(text).split())
    return words - _COMMON or words
