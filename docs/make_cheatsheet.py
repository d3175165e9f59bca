"""The cheat sheet as one page to print: the tables of docs/cheatsheet.md as a PDF, A4 across.

Run ``python docs/make_cheatsheet.py OUT.pdf``; building the site does so by itself. Needs matplotlib.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = 2
WIDTH, HEIGHT, MARGIN = 11.69, 8.27, 0.35
"""Of the page, in inches."""

SIZE, LINE = 7.4, 0.136
"""The size of letters in points, and the distance of lines in inches."""

LEFT, RIGHT = 47, 42
"""Characters of code and of explanation in one line of a column."""


@dataclass(frozen=True)
class Row:
    """One line of a table: code and what it is; a heading has no explanation."""

    code: list[str]
    text: list[str]
    heading: bool = False

    @property
    def lines(self) -> float:
        """Its height in lines."""
        return max(len(self.code), len(self.text)) + (0.7 if self.heading else 0.25)


def rows_of(markdown: str) -> list[Row]:
    """The rows of all tables."""
    made = []
    lines = markdown.splitlines()
    for k, line in enumerate(lines):
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        code, text = plain(cells[0]), plain(" · ".join(cells[1:]))
        heading = k + 1 < len(lines) and bool(lines[k + 1]) and set(lines[k + 1]) <= set("|-: ")
        made.append(Row(textwrap.wrap(code, LEFT), [] if heading else textwrap.wrap(text, RIGHT), heading))
    return made


def plain(cell: str) -> str:
    """A cell without marks: code quotes, links, backslashes before bars."""
    cell = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    return cell.replace("`", "").replace("\\|", "|").replace("**", "")


def columns_of(rows: list[Row]) -> list[list[Row]]:
    """Rows in columns of one height; a heading is not the last of its column.

    Raises:
        ValueError: they do not fit on the page.
    """
    room = (HEIGHT - 2 * MARGIN - 0.4) / LINE
    made: list[list[Row]] = [[]]
    used = 0.0
    for k, row in enumerate(rows):
        following = rows[k + 1].lines if row.heading and k + 1 < len(rows) else 0
        needed = row.lines + following
        if used + needed > room:
            made.append([])
            used = 0.0
        made[-1].append(row)
        used += row.lines
    if len(made) > COLUMNS:
        raise ValueError(f"the cheat sheet needs {len(made)} columns; one page has {COLUMNS}")
    return made


def write(path: Any) -> None:
    """Write the PDF."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    markdown = (HERE / "cheatsheet.md").read_text(encoding="utf-8")
    figure = Figure(figsize=(WIDTH, HEIGHT))
    corner = MARGIN / WIDTH, 1 - MARGIN / HEIGHT
    figure.text(*corner, "symad: cheat sheet", fontsize=11, weight="bold", va="top")
    each = (WIDTH - 2 * MARGIN) / COLUMNS
    for number, column in enumerate(columns_of(rows_of(markdown))):
        x, y = MARGIN + number * each, HEIGHT - MARGIN - 0.4
        for row in column:
            y -= LINE * (0.45 if row.heading else 0)
            for k, line in enumerate(row.code):
                figure.text(
                    x / WIDTH, (y - k * LINE) / HEIGHT, line.replace("$", r"\$"), fontsize=SIZE + row.heading,
                    family="sans-serif" if row.heading else "monospace",
                    weight="bold" if row.heading else "normal", color="#1f5fa8" if row.heading else "black",
                )  # fmt: skip
            for k, line in enumerate(row.text):
                at = (x + 0.56 * each) / WIDTH, (y - k * LINE) / HEIGHT
                figure.text(*at, line.replace("$", r"\$"), fontsize=SIZE)
            y -= LINE * (row.lines - (0.45 if row.heading else 0))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasPdf(figure).print_pdf(
        str(path), metadata={"CreationDate": None, "Title": "symad: cheat sheet"}
    )


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else "cheatsheet.pdf")
