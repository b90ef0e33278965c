"""The evaluation of methods, put together of those who read questions, judge chains and write reports."""

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import read
from evaluators.comparison import report
from evaluators.faithfulness import command as faithfulness
from evaluators.faithfulness.tables import FILES as PAGES
from evaluators.run.command import Rooms, run_evaluation
from evaluators.run.options import Options


def evaluate_stepwise(options: Options) -> str:
    """Evaluate; returns the summary, and raises ``UserError`` for what the user can mend."""
    rooms = Rooms(
        read,
        {name: benchmark.SCORING for name, benchmark in BENCHMARKS.items()},
        lambda *asked: report.write(*asked).results,
        faithfulness.as_it_ends,
        faithfulness.OWNED,
        (*report.FILES, *PAGES),
    )
    return run_evaluation(options, rooms)
