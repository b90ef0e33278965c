"""docs/overview.svg: what is made of a benchmark, and how a question is answered with it."""

from __future__ import annotations

from tests.docs.drawing import LINE, WIDTH, box, picture

EDGE, GAP = 14, 26
WIDE = WIDTH - 2 * EDGE
Card = tuple[str, str, str]
"""Kind of the box, its name, what is said of it."""
MADE: list[list[Card]] = [
    [("plain", "Benchmark", "2WikiMultihopQA, MuSiQue, HotpotQA, or your own")],
    [("plain", "Small knowledge graphs", "check what a teacher says of each question")],
    [
        ("made", "Verified benchmarks", "questions with a path"),
        ("made", "Noise labels", "of every question, and why"),
    ],
    [("made", "Verifier set", "single steps with label, diagnosis and guidance; checked")],
    [("made", "Verifier", "an adapter, trained on them")],
]
ANSWERED: list[list[Card]] = [
    [("plain", "Question", "and its passages")],
    [("plain", "Generator", "writes one step")],
    [("plain", "Verifier", "ten error types, or Correct")],
    [
        ("bad", "An error", "diagnosis and guidance go back to the generator"),
        ("good", "Correct", "the generator writes the next step, or has answered"),
    ],
    [("made", "Answer", "EM, F1, accuracy by a judge; earned or not")],
]


def svg() -> str:
    """The picture."""
    parts: list[str] = []
    below = 8.0
    for heading, rows in (("Make a release", MADE), ("Answer and score", ANSWERED)):
        parts.append(f'<text class="name" x="{EDGE}" y="{below + LINE:g}">{heading}</text>')
        drawn, below = _flow(rows, below + LINE + 10)
        parts += drawn
    return picture(
        "What safe-stepwise makes, and how it is used",
        "A benchmark is verified against small knowledge graphs. Verified questions give labelled "
        "reasoning steps, these train a verifier, and the verifier checks every step of a "
        "generator: it goes on, or writes the step anew.",
        below,
        parts,
    )


def _flow(rows: list[list[Card]], below: float) -> tuple[list[str], float]:
    """Rows of boxes with arrows from each to the next, and where they end."""
    parts: list[str] = []
    for row in rows:
        if row is not rows[0]:
            x = WIDTH / 2
            shaft = f"M{x:g} {below - GAP + 3:g}V{below - 4:g}"
            head = "m-5 -6 5 6 5 -6"
            parts.append(f'<path d="{shaft}{head}" fill="none" stroke="#5b6770"/>')
        wide = (WIDE - (len(row) - 1) * 8) / len(row)
        texts = [(kind, [("name", name), ("said", said)]) for kind, name, said in row]
        height = max(box(0, 0, wide, kind, text)[1] for kind, text in texts)
        for place, (kind, text) in enumerate(texts):
            parts += box(EDGE + place * (wide + 8), below, wide, kind, text, height)[0]
        below += height + GAP
    return parts, below
