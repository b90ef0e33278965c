"""Two labellings, compared: precision, recall, F1; of noise labels, and of a checker's verdicts."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import clean, read
from safe_stepwise.records import NOISE_TYPES, Question
from safe_stepwise.store.agreement import SOUND, Score
from safe_stepwise.store.tables import decimal, shown
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

Key = TypeVar("Key", bound=Hashable)

Pairs = Counter[tuple[str, str | None]]
"""How often an error was meant and one found, None where the checker abstained."""


def agreement(true: Mapping[Key, bool], found: Mapping[Key, bool], name: str) -> Score:
    """The score of ``found`` against ``true`` on the rows that both label.

    >>> agreement({1: True, 2: False, 3: True}, {1: True, 2: True}, "unverifiable")
    Score(name='unverifiable', both=1, true=1, found=2)
    """
    shared = [key for key in true if key in found]
    both = sum(true[key] and found[key] for key in shared)
    return Score(name, both, sum(true[k] for k in shared), sum(found[k] for k in shared))


def by_noise_type(true: Mapping[Key, str], found: Mapping[Key, str]) -> list[Score]:
    """Scores of being unverifiable and of each noise type that occurs.

    >>> [s.name for s in by_noise_type({1: "none", 2: "wrong_answer"}, {1: "none", 2: "none"})]
    ['unverifiable', 'none', 'wrong_answer']
    """

    def score(name: str, is_one: Callable[[str], bool]) -> Score:
        one, other = ({key: is_one(t) for key, t in types.items()} for types in (true, found))
        return agreement(one, other, name)

    unverifiable = score("unverifiable", lambda type_: type_ not in SOUND)
    scores = [score(name, name.__eq__) for name in NOISE_TYPES]
    return [unverifiable, *(score for score in scores if score.true or score.found)]


def noise_types(labeled: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Noise type by split and id of an opened config ``B_labeled``."""
    return {
        (split, id_): rows.features["noise_type"].int2str(number)
        for split, rows in labeled.items()
        for id_, number in zip(rows["id"], rows["noise_type"], strict=True)
    }


def score_rows(scores: Sequence[Score]) -> list[tuple[object, ...]]:
    """Scores as rows of a table: name, true, found, precision, recall, F1 ("-" where undefined)."""
    shares = ([shown(share, decimal(3), "-") for share in score.shares.values()] for score in scores)
    return [(score.name, score.true, score.found, *row) for score, row in zip(scores, shares, strict=True)]


def lacks_entities(question: Question) -> bool:
    """The baseline that looks at names alone: an annotated entity stands in no gold passage.

    The answer of a yes/no question is no entity.
    """
    texts = [read(passage) for _, passage in question.gold]
    names = [name for triple in question.evidence for name in (triple.head, triple.tail)]
    names += [hop.answer for hop in question.decomposition]
    if question.answer.lower() not in ("yes", "no"):
        names.append(question.answer)
    return any(
        not any(
            f" {clean(name)} " in f" {clean(text.title)} " or first_mention(text, name) is not None for text in texts
        )
        for name in names
    )


def checker_rows(benchmark: str, pairs: Pairs) -> list[tuple[object, ...]]:
    """Rows of a table with their header: each error type, then all of them."""
    rows: list[tuple[object, ...]] = [(benchmark, "errors", "precision", "recall", "abstains")]
    for entry in ERROR_TYPES:
        meant = sum(n for (one, _), n in pairs.items() if one == entry.name)
        found = sum(n for (_, one), n in pairs.items() if one == entry.name)
        rows.append(_row(Score(entry.name, pairs[entry.name, entry.name], meant, found), pairs))
    both = sum(n for (meant_, found_), n in pairs.items() if meant_ == found_)
    some = sum(n for (_, one), n in pairs.items() if one not in (None, CORRECT))
    return [*rows, _row(Score("all", both, sum(pairs.values()), some), pairs)]


def _row(score: Score, pairs: Pairs) -> tuple[object, ...]:
    silent = sum(n for (m, f), n in pairs.items() if f is None and score.name in (m, "all"))
    return (score.name, score.true, f"{score.precision:.3f}", f"{score.recall:.3f}", silent)


def told_of_ideal(ideal: Counter[str | None]) -> str:
    """How many ideal steps were called wrong."""
    false = sum(count for found, count in ideal.items() if found not in (CORRECT, None))
    return f"ideal steps: {sum(ideal.values()):,}, called wrong: {false}"
