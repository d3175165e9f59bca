"""The public functions: `color`, and one function for each kind of coloring."""

from __future__ import annotations

import numpy as np

from symad.core.escaping import not_one_of
from symad.sparsity.coloring.acyclic import color_trees
from symad.sparsity.coloring.bidirectional import color_both
from symad.sparsity.coloring.columns import color_columns
from symad.sparsity.coloring.given_coloring import Colors, given_coloring
from symad.sparsity.coloring.orders import OrderLike
from symad.sparsity.coloring.result import Coloring
from symad.sparsity.coloring.star import color_stars
from symad.sparsity.patterns.errors import ColoringError
from symad.sparsity.patterns.pattern import PatternLike, as_pattern

KINDS = ("column", "row", "star", "acyclic", "bidirectional")


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
    graph = matrix.adjacency() if symmetric else matrix
    if symmetric:
        matrix = matrix.with_diagonal()
    if colors is not None:
        return given_coloring(matrix, kind, colors)
    orders = None if order is None else tuple(order) if isinstance(order, tuple | list) else (order,)
    if orders is not None and all(isinstance(k, int | np.integer) for k in orders):
        orders = (np.asarray(orders),)
    if kind == "column":
        race = color_columns(matrix, orders, search=True)
    elif kind == "row":
        race = color_columns(matrix.transposed, orders, search=True)
    elif kind == "bidirectional":
        race = color_both(matrix, orders)
    else:
        race = (color_stars if kind == "star" else color_trees)(graph, orders)
    return Coloring(kind, matrix, race.colors, race.count, race.bound, race.winner)


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
