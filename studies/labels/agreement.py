"""Score one labelling against another: the noise labels of rows, and a checker's verdicts on steps.

The first labelling is *predicted*, the second *gold*; a score has precision, recall and F1 (`store.agreement.Score`).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from safe_stepwise.records import NO_NOISE, NOISE_TYPES
from safe_stepwise.store.agreement import Score
from safe_stepwise.store.tables import decimal, format_cell
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

Key = TypeVar("Key", bound=Hashable)

Pairs = Counter[tuple[str, str | None]]
"""Counts of pairs of an injected error and the checker's verdict, which is None if the checker abstained."""


def score_agreement(gold: Mapping[Key, bool], predicted: Mapping[Key, bool], name: str) -> Score:
    """Score boolean ``predicted`` labels against ``gold`` ones (by row key), on the rows that both have."""
    shared = [key for key in gold if key in predicted]
    both_flagged = sum(gold[key] and predicted[key] for key in shared)
    return Score(name, both_flagged, sum(gold[k] for k in shared), sum(predicted[k] for k in shared))


def score_noise_types(gold: Mapping[Key, str], predicted: Mapping[Key, str]) -> list[Score]:
    """Score predicted noise types (by row key): *unverifiable* first, then each noise type that occurs."""

    def score(name: str, is_positive: Callable[[str], bool]) -> Score:
        flags = [{key: is_positive(t) for key, t in types.items()} for types in (gold, predicted)]
        return score_agreement(flags[0], flags[1], name)

    unverifiable = score("unverifiable", lambda type_: type_ not in NO_NOISE)
    scores = [score(name, name.__eq__) for name in NOISE_TYPES]
    return [unverifiable, *(score for score in scores if score.gold or score.predicted)]


def read_noise_types(labeled: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the noise type of each row, by split and id, of a config ``B_labeled`` that `datasets` loaded."""
    return {
        (split, id_): rows.features["noise_type"].int2str(number)
        for split, rows in labeled.items()
        for id_, number in zip(rows["id"], rows["noise_type"], strict=True)
    }


def build_score_rows(scores: Sequence[Score]) -> list[tuple[object, ...]]:
    """Build table rows of scores: name, gold and predicted labels, precision, recall, F1 ("-" if undefined)."""
    form = lambda share: format_cell(share, decimal(3), "-")  # noqa: E731
    return [(score.name, score.gold, score.predicted, *map(form, score.shares.values())) for score in scores]


def build_checker_table(benchmark: str, pairs: Pairs) -> list[tuple[object, ...]]:
    """Build a checker's table for a benchmark: a header, a row for each error type, and one for all errors."""
    rows: list[tuple[object, ...]] = [(benchmark, "errors", "precision", "recall", "abstains")]
    scores = []
    for entry in ERROR_TYPES:
        true = sum(n for (true_type, _), n in pairs.items() if true_type == entry.name)
        flagged = sum(n for (_, verdict), n in pairs.items() if verdict == entry.name)
        scores.append(Score(entry.name, pairs[entry.name, entry.name], true, flagged))
    correct = sum(n for (true_type, verdict), n in pairs.items() if true_type == verdict)
    all_flagged = sum(n for (_, verdict), n in pairs.items() if verdict not in (None, CORRECT))
    for score in (*scores, Score("all", correct, sum(pairs.values()), all_flagged)):
        silent = sum(n for (true_type, v), n in pairs.items() if v is None and score.name in (true_type, "all"))
        rows.append((score.name, score.gold, f"{score.precision:.3f}", f"{score.recall:.3f}", silent))
    return rows


def summarize_ideal(ideal: Counter[str | None]) -> str:
    """Say how many ideal steps the checker calls wrong; ``ideal`` counts its verdicts on them."""
    false = sum(count for verdict, count in ideal.items() if verdict not in (CORRECT, None))
    return f"ideal steps: {sum(ideal.values()):,}, called wrong: {false}"
