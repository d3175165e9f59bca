"""The public functions: `color`, and one function for each kind; a user's coloring is checked first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from symad.core.identifiers import not_one_of
from symad.sparsity.coloring.coloring import Coloring
from symad.sparsity.coloring.conditions import check_acyclic, check_bidirectional, check_columns, check_star
from symad.sparsity.coloring.orders import OrderLike, compact
from symad.sparsity.coloring.search import KINDS as SEARCHES
from symad.sparsity.coloring.search import color_count, fewest_colors
from symad.sparsity.patterns.pattern import ColoringError, IntArray, Pattern, PatternLike, as_pattern

KINDS = ("column", "row", "star", "acyclic", "bidirectional")

Colors: TypeAlias = "Sequence[int] | IntArray | Mapping[Hashable, int]"
"""The color of each row or column, in order or by its label."""


def checked_colors(kind: str, matrix: Pattern, graph: Pattern, given: Any) -> Any:
    """The user's colors, renumbered without gaps.

    Raises:
        ColoringError: wrong length, negative colors, or the condition of the kind is violated; the message
            names a conflicting pair of rows or columns.
    """
    if kind == "bidirectional":
        try:
            of_rows, of_columns = given
        except (TypeError, ValueError):
            raise ColoringError(
                "colors of a bidirectional coloring are a pair (row colors, column colors), not "
                f"{type(given).__name__}"
            ) from None
        rows = _as_colors(of_rows, matrix.shape[0], matrix.row_labels, "row")
        columns = _as_colors(of_columns, matrix.shape[1], matrix.column_labels, "column")
        sides = tuple(compact(np.append(side, 0))[:-1] for side in (rows, columns))  # 0 stays 0
        check_bidirectional(matrix, (sides[0], sides[1]))
        return sides
    colors = compact(_as_colors(given, graph.shape[1], graph.column_labels, kind))
    if kind in ("column", "row"):
        check_columns(graph, colors, f"{kind}s", "row" if kind == "column" else "column")
    else:
        (check_star if kind == "star" else check_acyclic)(graph, colors)
    return colors


def _as_colors(colors: Colors, size: int, labels: tuple[Hashable, ...] | None, what: str) -> IntArray:
    if isinstance(colors, Mapping):
        names = range(size) if labels is None else labels
        missing = [name for name in names if name not in colors]
        if missing:
            raise ColoringError(f"the coloring given has no color for {missing[0]!r}")
        colors = [colors[name] for name in names]
    array = np.asarray(colors)
    if array.shape != (size,) or array.dtype.kind not in "iu" or (array < 0).any():
        if size == 0 and array.size == 0:
            return np.zeros(0, np.int64)
        raise ColoringError(
            f"{what} colors are {size} integers from 0, not an array of shape {array.shape} and "
            f"dtype {array.dtype}"
        )
    return array.astype(np.int64)


def color(
    pattern: PatternLike,
    kind: str = "column",
    order: OrderLike | None = None,
    colors: Colors | tuple[Colors, Colors] | None = None,
) -> Coloring:
    """Color a sparsity pattern, so that few products determine all its entries.

    - "column": columns of one color share no row; a Jacobian from JVPs.
    - "row": rows of one color share no column; a Jacobian from VJPs.
    - "star": a symmetric matrix from fewer products, its entries read directly.
    - "acyclic": a symmetric matrix from fewer still, its entries found by substitution.
    - "bidirectional": rows and columns together, read directly; for matrices with some full rows
      and columns.

    "star" and "acyclic" need a symmetric pattern (and symmetric values to be useful) and treat the
    diagonal as present. Colors are numbered from 0, for "bidirectional" from 1 with 0 for unused.

    Args:
        pattern: a scipy.sparse matrix of any format, a dense matrix, or a NetworkX graph; see
            `symad.sparsity.as_pattern`.
        kind: one of the five.
        order: None tries closed forms and several orders and keeps the best. Otherwise one of
            `symad.sparsity.ORDERS` by name, a NetworkX strategy, a permutation of the vertices, or
            a tuple of such: greedy coloring in just these orders. The vertices are the columns, for
            "row" the rows, for "bidirectional" the columns followed by the rows.
        colors: a coloring to use instead, which is checked: an array, or a dict from the nodes of the
            graph; for "bidirectional" a pair (row colors, column colors).

    Returns:
        A `Coloring`: its ``colors``, ``num_colors``, ``lower_bound``, ``compress`` and
        ``decompress``.

    Raises:
        PatternError: not a pattern, or not a symmetric one for "star" and "acyclic".
        ColoringError: unknown kind or order; ``colors`` violates the condition of its kind; the message
            names a conflicting pair.

    Example:
        >>> import numpy as np, symad
        >>> symad.color(np.tri(4) - np.tri(4, k=-2), kind="column").num_colors
        2
    """
    if kind not in KINDS:
        raise ColoringError(not_one_of("kind", kind, KINDS))
    symmetric = kind in ("star", "acyclic")
    matrix = as_pattern(pattern, bipartite=not symmetric)
    graph = matrix.adjacency() if symmetric else matrix.transposed if kind == "row" else matrix
    if symmetric:
        matrix = matrix.with_diagonal()
    searched = "column" if kind == "row" else kind
    if colors is not None:
        own = checked_colors(kind, matrix, graph, colors)
        bound, _ = SEARCHES[searched]
        return Coloring(kind, matrix, own, color_count(own), bound(graph), "given")
    orders = None if order is None else tuple(order) if isinstance(order, tuple | list) else (order,)
    if orders is not None and all(isinstance(k, int | np.integer) for k in orders):
        orders = (np.asarray(orders),)
    found = fewest_colors(searched, graph, orders)
    return Coloring(kind, matrix, found.colors, found.count, found.bound, found.winner)


def column(pattern: PatternLike, order: OrderLike | None = None) -> Coloring:
    """Column groups that share no row (partial distance-2 coloring); `color` of kind "column"."""
    return color(pattern, "column", order)


def row(pattern: PatternLike, order: OrderLike | None = None) -> Coloring:
    """Row groups that share no column (partial distance-2 coloring); `color` of kind "row"."""
    return color(pattern, "row", order)


def star(pattern: PatternLike, order: OrderLike | None = None) -> Coloring:
    """Proper coloring without two-colored paths on four vertices; `color` of kind "star"."""
    return color(pattern, "star", order)


def acyclic(pattern: PatternLike, order: OrderLike | None = None) -> Coloring:
    """Proper coloring without two-colored cycles; `color` of kind "acyclic"."""
    return color(pattern, "acyclic", order)


def bidirectional(pattern: PatternLike, order: OrderLike | None = None) -> Coloring:
    """Rows and columns together, read directly; `color` of kind "bidirectional"."""
    return color(pattern, "bidirectional", order)
