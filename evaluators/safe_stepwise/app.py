"""The Space's web page (gradio): read traces of the release, score answers."""

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "0")  # a visitor's text goes nowhere else
HERE = Path(__file__).resolve().parent
ROWS = [["the Vel", "Vel; River Vel"], ["no", "yes"]]
TRACES = HERE / "traces"
MOST_ROWS, MOST_TEXT = 200, 1_000
AT_ONCE, WAITING = 4, 32
ABOUT = "Multi-hop answers, written one step at a time and verified before the next."


def score_rows(rows: list[list[str]], benchmark: str) -> str:
    """Score rows (an answer, and accepted answers between semicolons); return the scores or an error as text."""
    from safe_stepwise.errors import UserError
    from safe_stepwise.metric.compute import answers_given

    filled = [row[:2] for row in rows if any(str(cell or "").strip() for cell in row)]
    if len(filled) > MOST_ROWS or any(len(str(cell)) > MOST_TEXT for row in filled for cell in row):
        return f"that is too much: {MOST_ROWS} rows at most, {MOST_TEXT:,} characters in each cell"
    predictions = [str(answer or "") for answer, _ in filled]
    references = [[name.strip() for name in str(names or "").split(";") if name.strip()] for _, names in filled]
    try:
        results = answers_given(predictions, references, benchmark=benchmark)
    except UserError as error:
        return str(error)
    scores = f"exact match {results['exact_match']:.3f}, F1 {results['f1']:.3f}"
    return f"{scores} over {len(filled)} answers"


def build_page() -> Any:
    import gradio

    from safe_stepwise.commands.transcript import STYLE

    with gradio.Blocks(title="safe_stepwise") as blocks:
        gradio.HTML(f"<style>{STYLE}</style>", padding=False)
        gradio.Markdown(f"# safe_stepwise\n{ABOUT}")
        if TRACES.is_dir():
            with gradio.Tab("Traces of the release"):
                _add_traces(gradio)
        with gradio.Tab("Scores"):
            _add_scores(gradio)
        with gradio.Tab("The metric"):
            gradio.Markdown((HERE / "README.md").read_text(encoding="utf-8").split("---", 2)[-1])
    return blocks.queue(max_size=WAITING, default_concurrency_limit=AT_ONCE)


def _add_traces(gradio: Any) -> None:
    from itertools import islice

    from safe_stepwise.commands.transcript import read_traces, render_trace

    traces = [*islice(read_traces(TRACES), MOST_ROWS)]
    names = [
        (f"{trace.question or trace.trajectory.question_id} [{trace.trajectory.method}]", number)
        for number, trace in enumerate(traces)
    ]
    chosen = gradio.Dropdown(names, value=0, label="question and method")
    result = gradio.HTML(render_trace(traces[0]))
    chosen.change(lambda number: render_trace(traces[number]), chosen, result, api_name="trace")


def _add_scores(gradio: Any) -> None:
    from safe_stepwise.scoring import BENCHMARKS

    gradio.Markdown("Exact match and F1 as each benchmark's official scorer computes them.")
    table = gradio.Dataframe(
        value=ROWS, headers=["answer", "accepted answers; between semicolons"], type="array", interactive=True
    )
    benchmark = gradio.Dropdown(list(BENCHMARKS), value="musique", label="benchmark")
    result = gradio.Textbox(label="scores", interactive=False)
    gradio.Button("Score").click(score_rows, [table, benchmark], result, api_name="scored")


def main() -> None:
    """Launch the page."""
    # In a checkout the package is elsewhere, and safe_stepwise.py in this folder would be imported for it.
    if not (HERE / "safe_stepwise").is_dir():
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    build_page().launch(show_error=False, max_file_size="1kb")


if __name__ == "__main__":
    main()
