"""Invented names: every one is drawn syllable by syllable, and resemblance is chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from builders.synthetic.entities import one

_ONSETS = (
    "b", "br", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "kr", "kv", "l", "m", "n", "p", "pl",
    "qu", "r", "s", "sk", "st", "sv", "t", "th", "tr", "v", "vr", "w", "y", "z", "š",
)  # fmt: skip
_VOWELS = ("a", "e", "i", "o", "u", "a", "e", "o", "ae", "ei", "é", "ö", "á")
_CODAS = ("l", "n", "r", "s", "m", "v", "d", "k", "lm", "rn", "st", "nd", "rv", "x", "th", "sk")
_OPEN = tuple(o + v for o in _ONSETS for v in _VOWELS)
_CLOSED = tuple(o + v + c for o in _ONSETS for v in _VOWELS[:8] for c in _CODAS)
_MALE = ("an", "or", "ek", "is", "o", "emund", "ar", "vin", "ius", "ric")
_FEMALE = ("a", "ela", "ine", "itha", "ora", "ya", "isse", "una", "elle", "ia")
SURNAMES = ("in", "ard", "ett", "moor", "vell", "quist", "ov", "ander", "esk", "ane", "igo", "uhl")
TOWNS = ("stad", "wick", "mouth", "oru", "holm", "haven", "ville", "ona", "bridge", "imar", "feld")
COUNTRIES = (("ia", "ian"), ("land", "landic"), ("or", "orese"), ("istan", "istani"), ("o", "oan"))
REGIONS = ("Province", "County", "Region", "District")
_NOUNS = (
    "Lantern", "Orchard", "Harbour", "Winter", "Mirror", "Garden", "Ferry", "Clock", "Bridge",
    "Widow", "Letter", "Stranger", "Island", "Well", "Piano", "Sparrow", "Quarry", "Wedding",
)  # fmt: skip
FILM_TITLES = (
    "The {n} of {a}", "{a} and the {n}", "Return to {a}", "{a} {b}", "The {n} in {a}", "{a}",
    "The Last {n} of {a}", "Goodbye, {a}", "{a}'s {n}", "The {a} {n}",
)  # fmt: skip
SONG_TITLES = ("Sing for {a}", "{a} in Blue", "Oh {a}", "The {n} and {a}", "{a} Road", "Dear {a}")
ALBUM_TITLES = ("The {a} Sessions", "Songs from {a}", "{a} {n}", "Live in {a}", "{n} for {a}")
BOOK_TITLES = ("The {n} of {a}", "A History of {a}", "{a}: A Life", "The {a} {n}", "{a}'s {n}")


class Namer:
    """Draws names, never the same word twice in a world."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.used: set[str] = set()

    def word(self, endings: Sequence[str], long: bool = False) -> str:
        while True:
            rng = self.rng
            stem = one(rng, _OPEN) + one(rng, _CLOSED) if long else one(rng, _CLOSED)
            word = (stem + one(rng, endings)).capitalize()
            # A first half that two words share would let stem matching take one for the other.
            if len(word) > 4 and word[:5] not in self.used:
                self.used.add(word[:5])
                return word

    def given(self, female: bool) -> str:
        return (one(self.rng, _CLOSED) + one(self.rng, _FEMALE if female else _MALE)).capitalize()

    def title(self, patterns: Sequence[str]) -> str:
        pattern = one(self.rng, patterns)
        second = self.word(("",), long=True) if "{b}" in pattern else ""
        return pattern.format(
            a=self.word(("", "a", "o"), long=True), b=second, n=one(self.rng, _NOUNS)
        )
