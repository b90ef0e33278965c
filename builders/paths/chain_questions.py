"""Read questions over a graph, each with all its gold paths, for methods that reason without passages.

The paper of direct evaluation finds the gold paths in the subgraph of a question's query: all walks from a topic to an
answer (arXiv 2402.11199, Appendix A). Here, gold relation paths (`Questions.find_gold_paths`) take the query's place;
those of GrailQA are read from it.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from builders.paths.questions import Questions
from builders.paths.sources import to_question
from safe_stepwise.errors import UserError
from safe_stepwise.records import QuestionSet, identity
from safe_stepwise.store import names


def read(
    kb: Path | None,
    source: str,
    benchmarks: Sequence[str],
    split: str | None,
    limit: int | None,
    *_: Any,
    **rules: Any,
) -> QuestionSet:
    """Read the first ``limit`` questions as `evaluation_questions.read` does; ``kb`` is the graph if rows bring none.

    A question without a gold path is kept, as its answer still counts. All options but ``skip`` are ignored.
    """
    if len(benchmarks) != 1:
        raise UserError("questions over a graph are of one benchmark: name it, as --benchmark metaqa")
    split = split or names.TEST
    rows = Questions(benchmarks[0], [source], split, kb, keeps_rejects=rules.get("skip", False))
    gold_paths, _origin = rows.find_gold_paths({}, range(len(rows.questions))[:limit])
    triples = islice(zip(rows.questions, rows.graphs(), gold_paths, strict=False), limit)
    questions = tuple(to_question(*triple) for triple in triples)
    skipped = tuple(line.decode() for line in rows.rejects)
    return QuestionSet(questions, Path(source).name, identity(rows.description), split, skipped, tuple(rows.rejects))
