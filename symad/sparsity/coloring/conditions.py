"""The conditions that colorings satisfy, and the errors that name a pair which violates them.

Columns of one color share no row, and rows of one color no column. A star coloring is proper and has no
two-colored path on four vertices, so that every two colors induce a forest of stars and the entry of an edge
stands alone in a product. An acyclic coloring is proper and has no two-colored cycle: every two colors
induce a forest. Of both sides' colors each entry can be read from a row product or from a column product.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from symad.sparsity.patterns.pattern import BoolArray, ColoringError, IntArray, Pattern

Sides: TypeAlias = "tuple[IntArray, IntArray]"
"""Row colors (m,) and column colors (n,), from 1; 0 for unused."""


def alone_in_row(pattern: Pattern, colors: IntArray) -> BoolArray:
    """For every stored entry (i, j): true if no other column of color ``colors[j]`` is in row i."""
    keys = pattern.rows * (int(colors.max(initial=0)) + 1) + colors[pattern.indices]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] == 1)


def readable(pattern: Pattern, sides: Sides) -> tuple[BoolArray, BoolArray]:
    """For every stored entry: true if a row product determines it; true if a column product does."""
    row_colors, column_colors = sides
    by_column = (column_colors[pattern.indices] > 0) & alone_in_row(pattern, column_colors)
    alone = np.empty(pattern.nnz, bool)
    alone[pattern.transposing_order] = alone_in_row(pattern.transposed, row_colors)
    return (row_colors[pattern.rows] > 0) & alone, by_column


def is_proper(graph: Pattern, colors: IntArray) -> bool:
    """True if adjacent vertices have different colors."""
    return bool((colors[graph.rows] != colors[graph.indices]).all())


def is_star_coloring(graph: Pattern, colors: IntArray) -> bool:
    """True if colors (n,) are proper and no path on four vertices has only two of them."""
    return not _inside_two_colored_paths(graph, colors).any()


def _inside_two_colored_paths(graph: Pattern, colors: IntArray) -> BoolArray:
    """For every edge (v, w), true if its ends have one color or if it is in the middle of such a path.

    It is in the middle when v has another neighbor colored like w, and w another one colored like v.
    """
    alone = alone_in_row(graph, colors)
    # In a symmetric pattern the transposing order maps each entry (v, w) to (w, v).
    return (colors[graph.rows] == colors[graph.indices]) | ~(alone | alone[graph.transposing_order])


def is_acyclic_coloring(graph: Pattern, colors: IntArray) -> bool:
    """True if colors (n,) are proper and no cycle has only two of them."""
    return not _beside_two_colored_cycles(graph, colors).any()


def _beside_two_colored_cycles(graph: Pattern, colors: IntArray) -> BoolArray:
    """For every edge, true if its ends have one color or if its two-colored component has a cycle.

    A vertex is copied once for every color among its neighbors, and the edges between two colors
    join the copies for that pair. The copies form a forest exactly when each component has one edge
    less than vertices.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    u, v = graph.rows, graph.indices
    equal = colors[u] == colors[v]
    if equal.any() or not len(u):
        return equal
    copies, end = np.unique(u * (int(colors.max()) + 1) + colors[v], return_inverse=True)
    other = end[graph.transposing_order]  # the copy of the other end
    links = coo_array((np.ones(len(u), bool), (end, other)), shape=(len(copies), len(copies)))
    count, component = connected_components(links, directed=False)
    edges = np.bincount(component[end], minlength=count) // 2  # each is stored in both directions
    return np.asarray((edges >= np.bincount(component, minlength=count))[component[end]])


# ---- errors --------------------------------------------------------------------------------------


def check_columns(pattern: Pattern, colors: IntArray, what: str, other: str) -> None:
    """Raise when two columns of one color have an entry in one row."""
    shared = ~alone_in_row(pattern, colors)
    if shared.any():
        i, j = _entry(pattern, shared)
        raise ColoringError(
            f"{what} {j} and {_mate(pattern, i, j, colors)} have the same color {colors[j]}, but both have "
            f"an entry in {other} {i}"
        )


def check_star(graph: Pattern, colors: IntArray) -> None:
    """Raise when an edge has one color or a path on four vertices two."""
    bad = _inside_two_colored_paths(graph, colors)
    if bad.any():
        v, w = _edge(graph, bad, colors)
        before, after = _mate(graph, v, w, colors), _mate(graph, w, v, colors)
        raise ColoringError(
            f"not a star coloring: the path {before} – {v} – {w} – {after} has only the colors "
            f"{colors[v]} and {colors[w]}, so the entry ({v}, {w}) cannot be read directly"
        )


def check_acyclic(graph: Pattern, colors: IntArray) -> None:
    """Raise when an edge has one color or a cycle two."""
    bad = _beside_two_colored_cycles(graph, colors)
    if bad.any():
        v, w = _edge(graph, bad, colors)
        raise ColoringError(
            f"not an acyclic coloring: vertices {v} and {w} are joined to a cycle with only the colors "
            f"{colors[v]} and {colors[w]}"
        )


def check_bidirectional(pattern: Pattern, sides: Sides) -> None:
    """Raise when an entry can be read neither from a row product nor from a column product."""
    by_row, by_column = readable(pattern, sides)
    lost = ~(by_row | by_column)
    if lost.any():
        i, j = _entry(pattern, lost)
        raise ColoringError(
            f"entry ({i}, {j}) cannot be read: {_hidden('column', pattern, i, j, sides[1])}, and "
            f"{_hidden('row', pattern.transposed, j, i, sides[0])}"
        )


def _entry(pattern: Pattern, chosen: BoolArray) -> tuple[int, int]:
    """The first stored entry that is chosen."""
    k = int(np.argmax(chosen))
    return int(pattern.rows[k]), int(pattern.indices[k])


def _mate(pattern: Pattern, i: int, j: int, colors: IntArray) -> int:
    """Another column of row i with the color of column j."""
    return next(q for q in pattern.in_row(i).tolist() if q != j and colors[q] == colors[j])


def _edge(graph: Pattern, chosen: BoolArray, colors: IntArray) -> tuple[int, int]:
    """The first edge that is chosen; an error if its ends have one color."""
    v, w = _entry(graph, chosen)
    if colors[v] == colors[w]:
        raise ColoringError(f"vertices {v} and {w} have the same color {colors[v]}, but are adjacent")
    return v, w


def _hidden(what: str, pattern: Pattern, i: int, j: int, colors: IntArray) -> str:
    if colors[j] == 0:
        return f"{what} {j} has no color"
    return f"{what} {j} shares its color {colors[j]} with {what} {_mate(pattern, i, j, colors)}"
