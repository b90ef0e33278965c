"""Ideal trajectories and graphs against people's derivations (R4C, Inoue et al. 2020).

R4C gives, for a HotpotQA question, three annotators' derivations: triples with the sentence of the
passage they were read from. A trajectory agrees as far as its steps cite those passages and name
both ends of those triples.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.checking.step_reading import content_words, read_step
from safe_stepwise.errors import UserError
from safe_stepwise.records import Label, Question, Step
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.store.shapes import shaped

HEADER = ("HotpotQA rows with a derivation", "rows", "passages", "triples", "whole")

Derivation = Sequence[tuple[str, int, tuple[str, str, str]]]
"""(title, sentence from 0, (head, relation, tail))."""
_MOST = 0.5
"""Share of the content words of a triple's end that a text must hold to speak of it."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a derivation something covers, each from 0 to 1 (best of the annotators)."""

    passages: float
    triples: float

    @property
    def whole(self) -> bool:
        """Whether every triple of one annotator's derivation is covered."""
        return self.triples == 1.0


def coverage(told: Mapping[str, str], derivations: Sequence[Derivation]) -> Coverage:
    """What texts by title cover of the derivation they agree with most.

    >>> one, other = ("Oru", "lies on", "the Vel"), ("Vel", "is", "a river")
    >>> coverage({"Oru": "Oru lies on the Vel."}, [[("Oru", 0, one), ("Vel", 1, other)]])
    Coverage(passages=0.5, triples=0.5)
    """
    found = [_covered(told, derivation) for derivation in derivations if derivation]
    return max(found, key=lambda c: (c.triples, c.passages), default=Coverage(0.0, 0.0))


def _covered(told: Mapping[str, str], derivation: Derivation) -> Coverage:
    titles = {title for title, _, _ in derivation}
    spoken = [_speaks(told.get(title, ""), title, triple) for title, _, triple in derivation]
    return Coverage(sum(title in told for title in titles) / len(titles), sum(spoken) / len(spoken))


def _speaks(text: str, title: str, triple: tuple[str, str, str]) -> bool:
    """Whether a text names both ends of a triple; the title stands for the passage's subject."""
    if not text:
        return False
    said = content_words(f"{title} {text}")
    ends = [content_words(end) for end in (triple[0], triple[2])]
    return all(not end or len(end & said) / len(end) >= _MOST for end in ends)


def summary(found: Sequence[Coverage], measure: Callable[[Coverage], float] = lambda c: c.triples) -> float:
    """The mean of a measure over questions, 0 where there are none."""
    return sum(map(measure, found)) / len(found) if found else 0.0


def measured(
    rows: Iterable[tuple[Question, Label]],
    derivations: Mapping[str, Sequence[Derivation]],
    ideal: Callable[[Question, Label], Iterable[Step]],
) -> list[tuple[object, ...]]:
    """Rows of a table: what graphs and trajectories cover, of all rows and of those they have.

    ``ideal`` gives the steps of a question's ideal trajectory, none if there is no such.
    """
    graphs: list[Coverage] = []
    steps: list[Coverage] = []
    seen = 0
    for question, label in rows:
        seen += 1
        gold = derivations[question.id]
        if label.noise_type == "none":
            graphs.append(coverage(_told(question, _by_graph(label)), gold))
            if told := _told(question, _by_steps(ideal(question, label))):
                steps.append(coverage(told, gold))
    return [("all", seen, "", "", ""), _row("graph", graphs), _row("ideal trajectory", steps)]


def read_derivations(file: Path) -> dict[str, list[Derivation]]:
    """Derivations by question id; ``UserError`` where the file is missing or no R4C file."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        raise UserError(f"{file}: not found; give the folder that holds it with --data") from None
    found: dict[str, list[Derivation]] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line)
            found[row["id"]] = shaped(row["derivations"], list[Derivation], "derivations")
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{file}:{number}: not one of R4C's derivations ({error!r}); get the file anew") from None
    return found


def _told(question: Question, texts: Iterable[tuple[int, str]]) -> dict[str, str]:
    """Texts by the title of the passage whose number stands with them, those of one joined."""
    told: dict[str, str] = {}
    for number, text in texts:
        title = question.passages[number - 1].title
        told[title] = f"{told.get(title, '')} {text}"
    return told


def _by_graph(label: Label) -> Iterator[tuple[int, str]]:
    return ((t.passage or 1, f"{t.head} {t.relation} {t.tail}") for t in label.knowledge_graph)


def _by_steps(steps: Iterable[Step]) -> Iterator[tuple[int, str]]:
    reading = (step for step in steps if step.kind == "Attribution")
    return ((number, s.text) for s in reading for number in read_step(s.text).cited)


def _row(name: str, found: Sequence[Coverage]) -> tuple[object, ...]:
    measures = (lambda c: c.passages, lambda c: c.triples, lambda c: float(c.whole))
    return (name, len(found), *(f"{summary(found, measure):.3f}" for measure in measures))
