"""Ideal trajectories and graphs against people's derivations (R4C, Inoue et al. 2020).

R4C gives, for a HotpotQA question, three annotators' derivations: triples with the sentence of the passage they were
read from. A trajectory agrees as far as its steps cite those passages and name both ends of those triples.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.checking.step_reading import content_words
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, files

Derivation = Sequence[tuple[str, int, tuple[str, str, str]]]
"""(title, sentence from 0, (head, relation, tail))."""
_MIN_SHARE = 0.5
"""Share of the content words of a triple's end that a text must hold to speak of it."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The shares of a derivation's passages and triples that a text covers, 0 to 1."""

    passages: float
    triples: float


def measure_coverage(statements: Iterable[tuple[str, str]], derivations: Sequence[Derivation]) -> Coverage:
    """Return how much of the derivation that they agree with most texts cover, each with its passage's title."""
    texts: dict[str, str] = {}
    for title, text in statements:
        texts[title] = f"{texts.get(title, '')} {text}"
    coverages = []
    for derivation in filter(None, derivations):
        titles = {title for title, _, _ in derivation}
        are_stated = [_states_ends(texts.get(title, ""), title, triple) for title, _, triple in derivation]
        shares = sum(title in texts for title in titles) / len(titles), sum(are_stated) / len(are_stated)
        coverages.append(Coverage(*shares))
    return max(coverages, key=lambda c: (c.triples, c.passages), default=Coverage(0.0, 0.0))


def _states_ends(text: str, title: str, triple: tuple[str, str, str]) -> bool:
    if not text:
        return False
    words = content_words(f"{title} {text}")
    ends = [content_words(end) for end in (triple[0], triple[2])]
    return all(not end or len(end & words) / len(end) >= _MIN_SHARE for end in ends)


def read_derivations(file: Path) -> dict[str, list[Derivation]]:
    """Read derivations by question id; raises ``UserError`` where the file is missing or no R4C file."""
    if not file.is_file():
        raise UserError(f"{file}: not found; give the folder that holds it with --data")

    def read(line: bytes) -> tuple[str, list[Derivation]]:
        row = boundary.parse_json(line)
        return boundary.read(str, row["id"], "id"), boundary.read(list[Derivation], row["derivations"], "derivations")

    return dict(row for _, row in files.read_lines(file, read, "derivation of R4C's", "get the file anew"))
