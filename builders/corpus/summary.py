"""What a corpus holds and how well it can be searched, for the one who built it."""

from collections.abc import Iterator

from builders.corpus.passages import CorpusBuild, CorpusStatistics
from builders.corpus.recall import Recall
from safe_stepwise.store.tables import table


def summary(plan: CorpusBuild, made: CorpusStatistics) -> str:
    """What was read, what is found again, where it is, how to search it."""
    header = ("benchmark", "split", "source", "rows", "unreadable", "new passages")
    rows = [(s.benchmark, s.split, s.source.name, s.rows, sum(s.rejected.values()), s.new) for s in made.sources]
    lines = [table([header, *rows]), ""]
    lines += [
        f"left out: rows of {s.source.name} that can't be read, the first: {s.first_rejected}"
        for s in made.sources
        if s.rejected
    ]
    lines += _recall(made.recall) if made.recall else []
    lines += [f"\n{plan.output}: {made.passages:,} passages", f"{plan.record}: all numbers"]
    search = f"safe-stepwise evaluate_stepwise --corpus {plan.output} --drop-gold ..."
    return "\n".join([*lines, "\nto search it:", search])


def _recall(found: Recall) -> Iterator[str]:
    share = "-" if found.share is None else f"{found.share:.3f}"
    yield (f"recall@{found.top} of a removed gold passage: {share} ({found.found:,} of {found.searched:,} questions)")
    if len(found.benchmarks) > 1:
        for name, counts in found.benchmarks.items():
            yield f"  {name}: {counts['found'] / counts['searched']:.3f} of {counts['searched']:,}"
    for reason, number in found.left_out.items():
        yield f"  nothing was removed of {number:,} questions: {reason}"
