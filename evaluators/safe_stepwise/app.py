"""The Space's page: answers typed in, scored by exact match and F1."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROWS = [["the Vel", "Vel; River Vel"], ["no", "yes"]]


def scored(rows: list[list[str]], benchmark: str) -> str:
    """The scores of rows (answer, accepted answers between semicolons) as text; or what is wrong.

    >>> print(scored(ROWS, "musique"))
    exact match 0.500, F1 0.500 over 2 answers
    """
    from safe_stepwise.errors import UserError
    from safe_stepwise.metric.compute import answers_given

    filled = [row for row in rows if any(str(cell or "").strip() for cell in row)]
    predictions = [str(answer or "") for answer, _ in filled]
    references = [
        [name.strip() for name in str(names or "").split(";") if name.strip()]
        for _, names in filled
    ]
    try:
        found = answers_given(predictions, references, benchmark=benchmark)
    except UserError as error:
        return str(error)
    scores = f"exact match {found['exact_match']:.3f}, F1 {found['f1']:.3f}"
    return f"{scores} over {len(filled)} answers"


def page() -> Any:
    """The page, for gradio to launch."""
    import gradio

    from safe_stepwise.scoring import BENCHMARKS

    with gradio.Blocks(title="safe_stepwise") as blocks:
        gradio.Markdown(
            "# safe_stepwise\nExact match and F1 as each benchmark's official scorer computes them."
            " The judge and the loop need engines: `evaluate.load` them where you have some."
        )
        table = gradio.Dataframe(
            value=ROWS,
            headers=["answer", "accepted answers; between semicolons"],
            type="array",
            interactive=True,
        )
        benchmark = gradio.Dropdown(list(BENCHMARKS), value="musique", label="benchmark")
        result = gradio.Textbox(label="scores", interactive=False)
        gradio.Button("Score").click(scored, [table, benchmark], result)
        readme = (HERE / "README.md").read_text(encoding="utf-8")
        gradio.Markdown(readme.split("---", 2)[-1])
    return blocks


def main() -> None:
    """Launch the page."""
    # In a checkout, where the package is elsewhere, safe_stepwise.py in here would pass for it.
    if not (HERE / "safe_stepwise").is_dir():
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    page().launch()


if __name__ == "__main__":
    main()
