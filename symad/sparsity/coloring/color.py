"""The public functions: `color`, and one function for each kind; a user's coloring is checked first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from symad.core.identifiers import not_one_of
from symad.sparsity.coloring.acyclic import color_trees, first_bad_pair
from symad.sparsity.coloring.bidirectional import color_both, readable
from symad.sparsity.coloring.columns import color_columns
from symad.sparsity.coloring.lower_bounds import acyclic_bound, bidirectional_bound, column_bound, star_bound
from symad.sparsity.coloring.orders import OrderLike, color_count, compact
from symad.sparsity.coloring.result import Coloring
from symad.sparsity.coloring.star import alone_in_row, color_stars, first_bad_path
from symad.sparsity.patterns.pattern import ColoringError, IntArray, Pattern, PatternLike, as_pattern

# ---- colorings given by a user -------------------------------------------------------------------


METHOD = "given"

Colors: TypeAlias = "Sequence[int] | IntArray | Mapping[Hashable, int]"
"""The color of each row or column, in order or by its label."""


def given_coloring(pattern: Pattern, kind: str, colors: Any) -> Coloring:
    """A `Coloring` with the user's colors, renumbered without gaps.

    Raises:
        ColoringError: wrong length, negative colors, or the condition of the kind is violated; the message
            names a conflicting pair of rows or columns.
    """
    if kind == "bidirectional":
        return _given_both(pattern, colors)
    labels = pattern.row_labels if kind == "row" else pattern.column_labels
    side = pattern.shape[0] if kind == "row" else pattern.shape[1]
    array = compact(_as_colors(colors, side, labels, kind))
    if kind == "row":
        check_columns(pattern.transposed, array, "rows", "column")
        bound = column_bound(pattern.transposed)
    elif kind == "column":
        check_columns(pattern, array, "columns", "row")
        bound = column_bound(pattern)
    else:
        graph = pattern.selected(pattern.rows != pattern.indices)
        (check_star if kind == "star" else check_acyclic)(graph, array)
        bound = star_bound(graph) if kind == "star" else acyclic_bound(graph)
    return Coloring(kind, pattern, array, color_count(array), bound, METHOD)


def _given_both(pattern: Pattern, colors: Any) -> Coloring:
    try:
        given_rows, given_columns = colors
    except (TypeError, ValueError):
        raise ColoringError(
            "colors of a bidirectional coloring are a pair (row colors, column colors), not "
            f"{type(colors).__name__}"
        ) from None
    m, n = pattern.shape
    sides = (
        _compact_used(_as_colors(given_rows, m, pattern.row_labels, "row")),
        _compact_used(_as_colors(given_columns, n, pattern.column_labels, "column")),
    )
    check_bidirectional(pattern, *sides)
    count = int(sides[0].max(initial=0) + sides[1].max(initial=0))
    return Coloring("bidirectional", pattern, sides, count, bidirectional_bound(pattern), METHOD)


def _compact_used(colors: IntArray) -> IntArray:
    """Renumbered without gaps from 1, 0 staying 0."""
    return compact(np.append(colors, 0))[:-1]


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


def check_columns(pattern: Pattern, colors: IntArray, what: str, other: str) -> None:
    """Raise when two columns of one color have an entry in one row."""
    alone = alone_in_row(pattern, colors)
    if alone.all():
        return
    k = int(np.argmin(alone))
    i, j = int(pattern.rows[k]), int(pattern.indices[k])
    mates = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
    mate = next(int(q) for q in mates if q != j and colors[q] == colors[j])
    raise ColoringError(
        f"{what} {j} and {mate} have the same color {colors[j]}, but both have an entry in {other} {i}"
    )


def check_star(graph: Pattern, colors: IntArray) -> None:
    """Raise when an edge has one color or a path on four vertices two."""
    bad = first_bad_path(graph, colors)
    if bad is None:
        return
    v, w = bad
    _check_proper(v, w, colors)
    before = _another(graph, v, w, colors)
    after = _another(graph, w, v, colors)
    raise ColoringError(
        f"not a star coloring: the path {before} – {v} – {w} – {after} has only the colors "
        f"{colors[v]} and {colors[w]}, so the entry ({v}, {w}) cannot be read directly"
    )


def _another(graph: Pattern, v: int, w: int, colors: IntArray) -> int:
    """A neighbor of v other than w that is colored like w."""
    near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
    return next(int(x) for x in near if x != w and colors[x] == colors[w])


def check_acyclic(graph: Pattern, colors: IntArray) -> None:
    """Raise when an edge has one color or a cycle two."""
    bad = first_bad_pair(graph, colors)
    if bad is None:
        return
    v, w = bad
    _check_proper(v, w, colors)
    raise ColoringError(
        f"not an acyclic coloring: vertices {v} and {w} are joined to a cycle with only the colors "
        f"{colors[v]} and {colors[w]}"
    )


def _check_proper(v: int, w: int, colors: IntArray) -> None:
    if colors[v] == colors[w]:
        raise ColoringError(f"vertices {v} and {w} have the same color {colors[v]}, but are adjacent")


def check_bidirectional(pattern: Pattern, row_colors: IntArray, column_colors: IntArray) -> None:
    """Raise when an entry can be read neither from a row product nor from a column product."""
    by_row, by_column = readable(pattern, (row_colors, column_colors))
    lost = ~(by_row | by_column)
    if not lost.any():
        return
    k = int(np.argmax(lost))
    i, j = int(pattern.rows[k]), int(pattern.indices[k])
    in_row = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
    in_column = pattern.rows[pattern.indices == j]
    raise ColoringError(
        f"entry ({i}, {j}) cannot be read: {_hidden('column', j, in_row, column_colors)}, and "
        f"{_hidden('row', i, in_column, row_colors)}"
    )


def _hidden(what: str, k: int, candidates: IntArray, colors: IntArray) -> str:
    if colors[k] == 0:
        return f"{what} {k} has no color"
    mate = next(int(q) for q in candidates if q != k and colors[q] == colors[k])
    return f"{what} {k} shares its color {colors[k]} with {what} {mate}"


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
