"""Graphs, explanations and colorings as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from symad.core.graph import Graph
from symad.display.tables import Math, Table, text

if TYPE_CHECKING:
    from symad.sparsity.coloring.coloring import Coloring


def graph_html(graph: Graph) -> str:
    """The formula of a small graph, and its picture."""
    formula = graph._repr_latex_() or ""
    line = f"<p>{html.escape(repr(graph))}</p>"
    return f"<div>{line}{f'<p>{html.escape(formula)}</p>' if formula else ''}{graph._repr_svg_()}</div>"


def explanation_html(title: str, tables: Sequence[Table], code: str = "") -> str:
    """Tables with formulas as mathematics, and plain code."""
    parts = [f"<h3>{html.escape(title)}</h3>", *map(table_html, tables)]
    parts += [f"<pre>{html.escape(code)}</pre>"] if code else []
    return "\n".join(parts)


def table_html(table: Table) -> str:
    """A table, its title and its notes."""
    head = _row(table.headers, "th")
    body = "\n".join(_row(row, "td") for row in table.rows)
    notes = "".join(f"<p>{_cell(note)}</p>" for note in table.notes)
    title = html.escape(table.title)
    inner = f"<thead>\n{head}\n</thead>\n<tbody>\n{body}\n</tbody>"
    return f"<p><b>{title}</b></p>\n<table>\n{inner}\n</table>\n{notes}"


def _row(cells: Sequence[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_cell(cell)}</{tag}>' for cell in cells)}</tr>"


def _cell(cell: object) -> str:
    if isinstance(cell, Math):
        return html.escape(f"${cell.latex}$") if cell.latex else ""
    return html.escape(text(cell))


# ---- colorings ------------------------------------------------------------------------------------

CELL = 14
"""The size of one entry of a pattern in pixels."""

MAX_PICTURED_CELLS = 60
"""The maximum number of rows or columns of a pattern with a picture; larger ones show their one-line text."""

COLORS = (
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#eeca3b", "#b279a2", "#ff9da6", "#9d755d",
    "#bab0ac",
)  # fmt: skip


def coloring_svg(coloring: Coloring) -> str | None:
    """The pattern, each entry in the color of the product that determines it; None if it is large."""
    rows, columns = coloring.pattern.shape
    if max(rows, columns) > MAX_PICTURED_CELLS:
        return None
    pattern = coloring.pattern
    cells = [
        f'<rect x="{c * CELL + 1}" y="{r * CELL + 1}" width="{CELL - 2}" height="{CELL - 2}" '
        f'fill="{COLORS[number % len(COLORS)]}"><title>({r}, {c}): product {number + 1}</title></rect>'
        for r, c, number in zip(
            pattern.rows.tolist(), pattern.indices.tolist(), coloring.products.tolist(), strict=True
        )
    ]
    width, height = columns * CELL, rows * CELL
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><rect width="{width}" height="{height}" fill="#f4f4f4"/>'
        f"{''.join(cells)}</svg>"
    )


def coloring_html(coloring: Coloring) -> str:
    """The one-line text of a coloring, and its picture."""
    return f"<div><p>{html.escape(repr(coloring))}</p>{coloring_svg(coloring) or ''}</div>"
