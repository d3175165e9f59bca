"""Pictures of patterns and colorings. They need matplotlib, the extra ``draw``.

Every function returns a matplotlib ``Figure`` and writes it to a path if one is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symad.core.arrays import Array
from symad.sparsity.coloring.color import color
from symad.sparsity.coloring.coloring import Coloring
from symad.sparsity.patterns.pattern import IntArray, as_pattern

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOUR_BY_FIVE = ((0, 1, 0, 1, 0), (0, 0, 0, 1, 1), (0, 1, 1, 0, 0), (1, 0, 1, 0, 0))
"""A 4×5 pattern for which two products suffice, by columns and by rows."""

MAX_LABELED_CELLS = 80
"""The maximum number of rows or columns of matrices with grid lines and numbers."""

MAX_LABELS = 30
"""The approximate maximum of numbered rows and columns."""

CELL = 0.36
"""The width of a cell of a drawn matrix, in inches: three digits of 9 points fit into it."""

UNUSED = (0.88, 0.88, 0.88)
"""The color of rows and columns without a product."""


def spy(coloring: Coloring, path: Path | str | None = None) -> Figure:
    """The pattern, with every stored entry in the color of the product that determines it.

    Strips at the top and at the left show the colors of the columns and rows.
    """
    figure = _figure(1, 1, (6.0, 6.0))
    (axes,) = figure.axes
    _draw_matrix(axes, coloring, _entry_colors(coloring))
    axes.set_title(_headline(coloring), fontsize=12)
    return _saved(figure, path)


def intersection_graph(
    coloring: Coloring, path: Path | str | None = None, places: Array | None = None
) -> Figure:
    """The graph of the coloring, with colored vertices.

    For "column" and "row": vertices are columns (rows), adjacent if some row (column) contains both.
    For "star" and "acyclic": the adjacency graph. For "bidirectional": the bipartite graph.

    Args:
        coloring: what is drawn.
        path: where it is written.
        places: coordinates of the vertices (N, 2), such as those of a grid with the spacing 1. Edges between
            points that are further apart than neighbors of the grid are bent, as others may lie on them.
    """
    figure = _figure(1, 1, (6.0, 6.0))
    (axes,) = figure.axes
    _draw_graph(axes, coloring, places)
    axes.set_title(_headline(coloring), fontsize=12)
    return _saved(figure, path)


def _draw_graph(axes: Axes, coloring: Coloring, places: Array | None = None) -> None:
    """The graph with vertices at given places, long edges bent; or at places of a layout."""
    import networkx

    graph, colors, names = _graph_of(coloring)
    G = networkx.empty_graph(graph.shape[0])
    G.add_edges_from(zip(graph.rows.tolist(), graph.indices.tolist(), strict=True))
    small, long = G.number_of_nodes() <= 64, []
    if places is not None:
        at = dict(enumerate(np.asarray(places, dtype=float)))
        long = [(a, b) for a, b in G.edges if np.abs(at[a] - at[b]).max() > 1.5]
        axes.set_aspect("equal")
    elif coloring.kind == "bidirectional":
        across = networkx.bipartite_layout(G, range(coloring.pattern.shape[1]))
        at = {v: (x, -y) for v, (x, y) in across.items()}  # the first ones on top
    else:
        ring = G.number_of_nodes() <= 12
        at = networkx.circular_layout(G) if ring else networkx.kamada_kawai_layout(G)
    short = [edge for edge in G.edges if edge not in set(long)]
    networkx.draw_networkx_edges(G, at, short, ax=axes, edge_color="0.6", width=1.0 if small else 0.4)
    networkx.draw_networkx_edges(
        G, at, long, ax=axes, edge_color="0.85", arrows=True, arrowstyle="-",
        connectionstyle="arc3,rad=0.35", width=0.7,
    )  # fmt: skip
    size = 560 if small else 60
    networkx.draw_networkx_nodes(G, at, ax=axes, node_color=colors, edgecolors="0.2", node_size=size)
    if small:
        networkx.draw_networkx_labels(G, at, dict(enumerate(names)), ax=axes, font_size=10)
    axes.set_axis_off()


def compression(coloring: Coloring, matrix: Array | None = None, path: Path | str | None = None) -> Figure:
    """A matrix, its compressed products, and the matrix recovered from them, side by side.

    Args:
        coloring: the coloring.
        matrix: values on the pattern; the numbers 1, 2, ... in reading order by default (mirrored for
            the symmetric kinds).
        path: the file for the picture.
    """
    values = _numbered(coloring) if matrix is None else np.asarray(matrix)
    compressed = coloring.compress(values)
    products = list(compressed) if coloring.kind == "bidirectional" else [compressed]
    products = [b for b in products if b.size]
    recovered = coloring.decompress(compressed).toarray()
    shades = _entry_colors(coloring)
    by_rows = [True] * bool(coloring.row_colors) + [False] * bool(coloring.column_colors)
    beside = [b.shape[1] for b, flag in zip(products, by_rows, strict=True) if not flag]
    under = [b.shape[0] for b, flag in zip(products, by_rows, strict=True) if flag]
    (m, n), gap = values.shape, 3
    lefts = np.cumsum([gap, n + gap, *(count + gap for count in beside)])
    tops = np.cumsum([gap, m + gap, *(count + gap for count in under)])
    figure = _figure(1, 2 + len(products), (CELL * (lefts[-1] + n + 1), CELL * (tops[-1] - gap + 2)))
    first, *middle, last = figure.axes
    for axes, shown, title, left in (
        (first, values, "matrix", gap),
        (last, recovered, "recovered", lefts[-1]),
    ):
        _draw_matrix(axes, coloring, shades, shown)
        axes.set_title(title, fontsize=12)
        _place(axes, left, gap)
    for axes, product, side, flag in zip(middle, products, _sides(coloring), by_rows, strict=True):
        _draw_product(axes, product, side, flag)
        _place(axes, *((gap, tops[1]) if flag else (lefts[1], gap)))
    return _saved(figure, path)


def _place(axes: Axes, left: float, top: float) -> None:
    """Put the first cell there, in cells from the left and the top of the figure: all cells have one size."""
    (x0, x1), (y1, y0) = axes.get_xlim(), axes.get_ylim()
    width, height = axes.figure.get_size_inches() / CELL
    axes.figure.set_layout_engine("none")
    corner = (left + 0.5 + x0) / width, 1 - (top + 0.5 + y1) / height
    axes.set_position((*corner, (x1 - x0) / width, (y1 - y0) / height))


def four_by_five(path: Path | str | None = None) -> Figure:
    """The 4×5 example: spy plots of both colorings, and the column intersection graph.

    Two JVPs with the seeds (1, 1, 0, 0, 1) and (0, 0, 1, 1, 0) give all entries, and so do two VJPs for
    the rows {1, 4} and {2, 3}.
    """
    columns, rows = color(FOUR_BY_FIVE, "column"), color(FOUR_BY_FIVE, "row")
    figure = _figure(1, 3, (10.0, 3.4))
    for axes, coloring, title in zip(
        figure.axes, (columns, rows), ("two column products", "two row products"), strict=False
    ):
        _draw_matrix(axes, coloring, _entry_colors(coloring))
        axes.set(title=title, xlim=(-1.4, 4.6), ylim=(3.6, -1.4))  # one size of cells
    axes = figure.axes[2]
    _draw_graph(axes, columns, np.array([(0, 1), (2, 1), (1, 0), (3, 0), (4, 1)]))  # one line for each color
    axes.margins(0.15, 0.8)
    axes.set(title="columns that share a row", adjustable="datalim")  # as high as the others
    return _saved(figure, path)


# ---- parts --------------------------------------------------------------------------------------


def _figure(rows: int, columns: int, size: tuple[float, float]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    figure.subplots(rows, columns)
    return figure


def _saved(figure: Figure, path: Path | str | None) -> Figure:
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _headline(coloring: Coloring) -> str:
    text = repr(coloring)[1:-1]
    return text.removeprefix("Coloring ").replace(": ", "\n", 1)


def palette(count: int) -> NDArray[np.float64]:
    """This number of distinct colors (count, 3), light enough for black numbers on them."""
    from matplotlib import colormaps

    if count <= 8:
        return np.asarray(colormaps["Set2"].colors)[:count]
    hue = np.arange(count) / count
    lightness = np.where(np.arange(count) % 2, 0.62, 0.85)
    wheel = np.asarray(colormaps["hsv"](hue))[:, :3]
    return 1 - (1 - wheel) * lightness[:, None] * 0.75


def _sides(coloring: Coloring) -> list[NDArray[np.float64]]:
    """The colors of the row products and of the column products, if there are any."""
    shades = palette(max(1, coloring.num_colors))
    rows, columns = shades[: coloring.row_colors], shades[coloring.row_colors :]
    return [side for side in (rows, columns) if len(side)]


def _strips(coloring: Coloring) -> tuple[Any, Any]:
    """The colors (m, 3) of the rows and (n, 3) of the columns; None for a side without colors."""
    shades = palette(max(1, coloring.num_colors))
    if coloring.kind == "bidirectional":
        listed = np.vstack([shades, UNUSED])
        rows, columns = coloring.colors
        shifted = np.where(columns > 0, columns - 1 + coloring.row_colors, len(shades))
        return listed[rows - 1], listed[shifted]
    own = shades[coloring.colors]
    return (own, None) if coloring.kind == "row" else (None, own)


def _entry_colors(coloring: Coloring) -> NDArray[np.float64]:
    """For each stored entry (nnz, 3) the color of the product that determines it."""
    return palette(max(1, coloring.num_colors))[coloring.products]


def _draw_matrix(
    axes: Axes, coloring: Coloring, shades: NDArray[np.float64], values: Array | None = None
) -> None:
    """The entries as cells, with strips of the row and column colors outside."""
    pattern = coloring.pattern
    m, n = pattern.shape
    rows, columns = _strips(coloring)
    near = -0.5 - 0.015 * max(m, n, 10)
    far = near - 0.03 * max(m, n, 14)
    if rows is not None:
        axes.imshow(rows[:, None], extent=(far, near, m - 0.5, -0.5), zorder=1)
    if columns is not None:
        axes.imshow(columns[None], extent=(-0.5, n - 0.5, near, far), zorder=1)
    _draw_entries(axes, (m, n), pattern.rows, pattern.indices, shades)
    axes.set_xlim(-0.6 if rows is None else far - 0.1, n - 0.4)
    axes.set_ylim(m - 0.4, -0.6 if columns is None else far - 0.1)
    _frame(axes, m, n)
    if max(m, n) <= MAX_LABELED_CELLS:
        for set_ticks, count in ((axes.set_xticks, n), (axes.set_yticks, m)):
            shown = range(0, count, 1 + count // MAX_LABELS)
            set_ticks(shown, [str(k + 1) for k in shown], fontsize=9)
        axes.tick_params(length=0)
        if values is not None:
            _write(axes, values, pattern.rows, pattern.indices)
    else:
        axes.set_xticks([])
        axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_entries(
    axes: Axes, shape: tuple[int, int], rows: IntArray, columns: IntArray, shades: NDArray[np.float64]
) -> None:
    """Cells, or dots if cells would be too small."""
    m, n = shape
    if max(m, n) > MAX_LABELED_CELLS:
        axes.scatter(columns, rows, c=shades, s=3.0, marker="s", linewidths=0, zorder=3)
        axes.set_aspect("equal")
        return
    picture = np.ones((m, n, 3))
    picture[rows, columns] = shades
    axes.imshow(picture, extent=(-0.5, n - 0.5, m - 0.5, -0.5), zorder=1)


def _frame(axes: Axes, m: int, n: int) -> None:
    if max(m, n) <= MAX_LABELED_CELLS:
        axes.hlines(np.arange(m + 1) - 0.5, -0.5, n - 0.5, colors="0.85", linewidth=0.6, zorder=2)
        axes.vlines(np.arange(n + 1) - 0.5, -0.5, m - 0.5, colors="0.85", linewidth=0.6, zorder=2)
    else:
        axes.plot([-0.5, n - 0.5, n - 0.5, -0.5, -0.5], [-0.5, -0.5, m - 0.5, m - 0.5, -0.5], "0.6")


def _write(
    axes: Axes, values: Array, rows: Sequence[int] | IntArray, columns: Sequence[int] | IntArray
) -> None:
    for i, j in zip(rows, columns, strict=True):
        axes.text(j, i, f"{values[i, j]:g}", ha="center", va="center", fontsize=9, zorder=3)


def _draw_product(axes: Axes, product: NDArray[np.int64], shades: NDArray[np.float64], by_rows: bool) -> None:
    """A product; products by rows have a color for each row, those by columns one for each column."""
    m, n = product.shape
    tint = np.broadcast_to(shades[:, None] if by_rows else shades[None], (m, n, 3))
    picture = np.where((product != 0)[..., None], tint, 0.4 * tint + 0.6)
    axes.imshow(picture, extent=(-0.5, n - 0.5, m - 0.5, -0.5), zorder=1)
    _frame(axes, m, n)
    if max(m, n) <= MAX_LABELED_CELLS:
        _write(axes, product, *np.nonzero(product))
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title("row products" if by_rows else "column\nproducts", fontsize=12)


def _numbered(coloring: Coloring) -> NDArray[np.int64]:
    pattern = coloring.pattern
    values = np.zeros(pattern.shape, np.int64)
    values[pattern.rows, pattern.indices] = np.arange(1, pattern.nnz + 1)
    if coloring.kind in ("star", "acyclic"):
        values = np.triu(values) + np.triu(values, 1).T
    return values


def _graph_of(coloring: Coloring) -> tuple[Any, Any, list[str]]:
    """The graph, the colors of its vertices and their names, numbered from 1."""
    from symad.sparsity.coloring.bidirectional import bipartite_graph

    pattern = coloring.pattern
    rows, columns = _strips(coloring)
    if coloring.kind == "bidirectional":
        m, n = pattern.shape
        names = [f"c{k + 1}" for k in range(n)] + [f"r{k + 1}" for k in range(m)]
        return bipartite_graph(pattern), np.vstack([columns, rows]), names
    own = rows if coloring.kind == "row" else columns
    if coloring.kind in ("star", "acyclic"):
        graph = as_pattern(pattern).adjacency()
    else:
        graph = (pattern.transposed if coloring.kind == "row" else pattern).column_intersection()
    return graph, own, [str(k + 1) for k in range(len(own))]
