"""One spelling for what looks alike, so that no comparison fails by what no reader sees.

Texts that are shown, stored or scored stay as they are; `fold` is for what is compared.
"""

import html
import re
from functools import lru_cache

from safe_stepwise.language.vocabulary import load

MONTHS = "january february march april may june july august september october november december".split()

_LOOKALIKES = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full width
        **dict.fromkeys("’‘‛ʻʼʽʹˈ′´`ꞌ", "'"),
        **dict.fromkeys("‐‑⁃﹣", "-"),
        **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))), " "),
        # Soft hyphens, zero-width spaces and joiners, marks of direction, byte order marks.
        **dict.fromkeys("\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"),
        **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"),
    }
)  # fmt: skip
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)
# Between letters a hyphen; between numbers, or before a space, what parts a span or a clause.
_DASH_IN_WORD = re.compile(r"(?<=[^\W\d_])[–−‒](?=[^\W\d_])")
_MINUS = re.compile("[−‒]")
_ISO_DATE = re.compile(r"(?<!\d)(?<!\d[.-])([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(?![\d-])")
_INITIALS: dict[str, str] = load("words")["initials"]
_POINTS = re.compile(
    r"(?<![\w.'-])(?:"
    + "|".join(rf"{word}(?![\w-])|" + r"\. ?".join(word) + r"\.(?! ?[A-Z]\.)" for word in _INITIALS)
    + ")"
)


@lru_cache(maxsize=32768)
def fold(text: str) -> str:
    """A text with one spelling for entities of HTML, marks that look alike, dates of ISO 8601 and a few initials.

    What no reader sees is gone. Nothing is shorter or longer but for these.

    >>> fold("Hawaiʻi&#39;s so\\u00adcalled Smith−Jones, born 1917-04-03 in the U.S.")
    "Hawai'i's socalled Smith-Jones, born 3 April 1917 in the USA."
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if not text.isascii():
        text = _MINUS.sub("–", _DASH_IN_WORD.sub("-", text.translate(_LOOKALIKES)))
    elif "`" in text:
        text = text.replace("`", "'")
    if "-" in text:
        text = _ISO_DATE.sub(lambda date: f"{int(date[3])} {MONTHS[int(date[2]) - 1].title()} {date[1]}", text)
    return _POINTS.sub(_without_points, text)


def _without_points(initials: re.Match[str]) -> str:
    """The initials as they count; the last point stays where it may close a sentence, too."""
    plain = _INITIALS[re.sub("[. ]", "", initials[0])]
    closes = initials[0].endswith(".") and not initials.string[initials.end() :].strip(" \"')”")
    return f"{plain}." if closes else plain
