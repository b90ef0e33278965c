"""Tables in plain text, as commands print them."""

from collections.abc import Sequence

from safe_stepwise.store.terminal import printable


def table(rows: Sequence[Sequence[object]]) -> str:
    """Rows as aligned text, the first as header; numbers to the right.

    >>> print(table([("split", "rows"), ("train", 2000)]))
    split   rows
    -----  -----
    train  2,000
    """
    texts = [[f"{c:,}" if isinstance(c, int) else printable(str(c)) for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [isinstance(c, int | float) for c in rows[-1]]
    lines = [
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in texts
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
