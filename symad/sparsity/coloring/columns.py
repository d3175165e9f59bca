"""Column coloring: a partial distance-2 coloring of the bipartite graph of a pattern.

Columns of one color have no row in common, so the product of the matrix with their sum contains every
one of their entries (A. R. Curtis, M. J. D. Powell and J. K. Reid, J. Inst. Math. Appl. 13
(1974) 117; T. F. Coleman and J. J. Moré, SIAM J. Numer. Anal. 20 (1983) 187).

Fewer colors by local search: a coloring with conflicts is repaired, one vertex at a time. Source: A. Hertz
and D. de Werra, Using tabu search techniques for graph coloring, Computing 39 (1987) 345; with the table of
conflicts and the tenure 0.6 |conflicts| + random(10) of P. Galinier and J.-K. Hao, Hybrid evolutionary
algorithms for graph coloring, J. Combinatorial Optimization 3 (1999) 379.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.sparsity.coloring.closed_forms import cyclic_blocks, is_proper, lattice_coloring
from symad.sparsity.coloring.lower_bounds import column_bound
from symad.sparsity.coloring.orders import (
    OrderLike,
    Race,
    compact,
    order_name,
    order_named,
    saturation_colors,
    shuffled,
)
from symad.sparsity.patterns.pattern import IntArray, Pattern

GRAPH_WORK = 30_000_000
"""The maximum number of entries of a column intersection graph that is built."""

REORDERING_WORK = 40_000_000
"""The maximum number of entries visited by iterated greedy, over all its rounds."""

MORE_WORK = 300_000
"""The maximum number of entries visited by the extra orders for star and acyclic colorings."""


def color_columns(pattern: Pattern, orders: tuple[OrderLike, ...] | None, search: bool = False) -> Race:
    """Colors (n,) from 0 for the columns; with ``orders`` None all methods are tried.

    ``search``: if true, small graphs are also searched for colorings that no order finds.
    """
    race = Race(column_bound(pattern))
    if orders is not None:
        graph = pattern.column_intersection()
        for order in orders:
            race.offer(order_name(order), first_fit(pattern, order_named(order)(graph)))
        return race
    if race.offer("one color each", np.arange(pattern.shape[1])):
        return race
    if race.offer("natural", first_fit(pattern, np.arange(pattern.shape[1]))):
        return race
    if pattern.intersection_work > GRAPH_WORK:
        _without_graph(pattern, race)
    else:
        _with_graph(pattern, race)
        if search and not race.done:
            found = fewer_colors(pattern.column_intersection(), compact(race.colors), race.bound)
            race.offer("tabu search", found)
    return race


def _with_graph(pattern: Pattern, race: Race) -> None:
    graph = pattern.column_intersection()
    if race.offer("cyclic blocks", cyclic_blocks(graph)):
        return
    if race.offer("lattice", lattice_coloring(graph, race.bound, race.count, is_proper, most=2)):
        return
    if race.winner == "lattice" and race.count == race.bound + 1:
        _reordered(pattern, race)  # vertex orders, which take twice as long, need more colors for stencils
        return
    for name in ("largest_first", "smallest_last", "incidence_degree"):
        if race.offer(name, first_fit(pattern, order_named(name)(graph))):
            return
    if race.offer("saturation", saturation_colors(graph)):
        return
    _reordered(pattern, race)


def _without_graph(pattern: Pattern, race: Race) -> None:
    """Orders that need no intersection graph, for patterns with very full rows."""
    reach = np.zeros(pattern.shape[1], np.int64)
    np.add.at(reach, pattern.indices, pattern.row_degrees[pattern.rows])
    if race.offer("largest_first", first_fit(pattern, np.argsort(-reach, kind="stable"))):
        return
    _reordered(pattern, race)


def _reordered(pattern: Pattern, race: Race) -> None:
    """Iterated greedy: first-fit again, class by class, which never increases the number of colors.

    Source: J. C. Culberson, Iterated greedy graph coloring and the difficulty landscape, Technical
    Report 92-07, University of Alberta (1992).
    """
    assert race.colors is not None
    colors = race.colors
    name = f"{race.winner}, reordered"
    for k in range(min(40, REORDERING_WORK // max(1, pattern.nnz * race.count))):
        colors = first_fit(pattern, reordered_by_class(colors, k))
        if race.offer(name, colors):
            return


def reordered_by_class(colors: IntArray, k: int) -> IntArray:
    """The vertices class by class: for k = 0, 1, 2, ... last class first, largest, smallest, ..."""
    sizes = np.bincount(colors)
    key = (-np.arange(len(sizes)), -sizes, sizes)[k % 3]
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(key, kind="stable")] = np.arange(len(sizes))
    return np.argsort(rank[colors], kind="stable")


def try_more_orders(graph: Pattern, race: Race, greedy: Callable[[Pattern, IntArray], IntArray]) -> None:
    """A few rounds class by class from the best coloring so far, then shuffled orders."""
    colors, name = race.colors, f"{race.winner}, reordered"
    for k in range(min(6, MORE_WORK // max(1, graph.nnz))):
        colors = greedy(graph, reordered_by_class(colors, k))
        if race.offer(name, colors):
            return
    for seed in range(min(12, MORE_WORK // max(1, graph.nnz))):
        if race.offer(f"shuffled, seed {seed}", greedy(graph, shuffled(seed)(graph))):
            return


def first_fit(pattern: Pattern, order: IntArray) -> IntArray:
    """Each column in turn gets the minimum color free in all its rows: colors (n,) from 0.

    SciPy's compiled grouping computes the same for few colors, and is used if it exists.
    """
    fast = _grouped_by_scipy(pattern, order)
    return first_fit_bits(pattern, order) if fast is None else fast


def first_fit_bits(pattern: Pattern, order: IntArray) -> IntArray:
    """`first_fit` in Python: every row stores its colors as the bits of one integer."""
    rows_of = pattern.transposed.lists()
    used = [0] * pattern.shape[0]
    color = [0] * pattern.shape[1]
    for j in order.tolist():
        bits = 0
        for i in rows_of[j]:
            bits |= used[i]
        lowest = ~bits & (bits + 1)
        color[j] = lowest.bit_length() - 1
        for i in rows_of[j]:
            used[i] |= lowest
    return np.array(color, np.int64)


def _grouped_by_scipy(pattern: Pattern, order: IntArray) -> IntArray | None:
    """`first_fit` by ``scipy.optimize._group_columns``, which is private: None if it fails.

    It passes over all columns once for each color, so it is not used if there are many colors.
    """
    if not pattern.nnz or pattern.row_degrees.max() > 256:
        return None
    try:
        from scipy.optimize._group_columns import group_sparse
    except ImportError:
        return None
    m, n = pattern.shape
    by_column = pattern.transposed
    lengths = by_column.row_degrees[order]
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(lengths, out=indptr[1:])
    starts = np.repeat(by_column.indptr[order] - indptr[:-1], lengths)
    indices = by_column.indices[starts + np.arange(len(starts))].astype(np.int32)
    try:
        groups = np.asarray(group_sparse(m, n, indices, indptr), np.int64)
    except (TypeError, ValueError):
        return None
    colors = np.empty(n, np.int64)
    colors[order] = groups
    return colors


MIN_VERTICES, MAX_VERTICES = 40, 600
"""The maximum number of vertices of a graph that is searched."""

ROUNDS = 1000
"""The maximum number of moves for one number of colors."""


def fewer_colors(graph: Pattern, colors: IntArray, bound: int) -> IntArray:
    """A proper coloring with the fewest colors ≥ ``bound`` that the search finds; at worst ``colors``.

    Args:
        graph: symmetric, without diagonal.
        colors: a proper coloring (n,), numbered from 0 without gaps.
        bound: no fewer colors are tried.
    """
    if not MIN_VERTICES <= graph.shape[0] <= MAX_VERTICES:
        return colors
    while (p := int(colors.max()) + 1) > max(bound, 1):
        found = _repaired(graph, _without_smallest_class(graph, colors, p), p - 1)
        if found is None:
            break
        colors = compact(found)
    return colors


def _conflicts(graph: Pattern, colors: IntArray, p: int) -> IntArray:
    """The number of neighbors of each vertex with each color, (n, p)."""
    table = np.zeros((graph.shape[0], p), np.int64)
    np.add.at(table, (graph.rows, colors[graph.indices]), 1)
    return table


def _without_smallest_class(graph: Pattern, colors: IntArray, p: int) -> IntArray:
    """Each vertex of the smallest class moves to the class with the fewest conflicts."""
    smallest = int(np.argmin(np.bincount(colors, minlength=p)))
    last = np.where(colors == smallest, p - 1, np.where(colors == p - 1, smallest, colors))
    table = _conflicts(graph, last, p)[:, : p - 1]
    return np.where(last == p - 1, table.argmin(axis=1), last)


def _repaired(graph: Pattern, colors: IntArray, p: int) -> IntArray | None:
    """Tabu search for a proper coloring with p colors; None if it is not found."""
    n = graph.shape[0]
    rng = np.random.default_rng(0)
    colors = colors.copy()
    table = _conflicts(graph, colors, p)
    barred = np.zeros((n, p), np.int64)
    least = int(table[np.arange(n), colors].sum())
    for turn in range(1, ROUNDS):
        own = table[np.arange(n), colors]
        total = int(own.sum())
        if total == 0:
            return colors
        vertices = np.flatnonzero(own)
        change = table[vertices] - own[vertices, None]
        wins = total + 2 * change < least  # better than anything before: always allowed
        forbidden = (barred[vertices] > turn) & ~wins
        forbidden[np.arange(len(vertices)), colors[vertices]] = True
        worth = np.where(forbidden, n, change)
        best = np.flatnonzero(worth == worth.min())
        k, c = divmod(int(best[rng.integers(len(best))]), p)
        v = int(vertices[k])
        near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        old = int(colors[v])
        table[near, old] -= 1
        table[near, c] += 1
        colors[v] = c
        barred[v, old] = turn + int(0.6 * len(vertices)) + int(rng.integers(10))
        least = min(least, int(table[np.arange(n), colors].sum()))
    return None
