"""Bidirectional coloring: some entries from row products, the others from column products.

Rows and columns get colors from 1, or 0 when no product is spent on them. Entry (i, j) can be read
directly when column j is the only one of its color, not 0, with an entry in row i, or row i the
only one of its color, not 0, with an entry in column j. Every stored entry has to be readable one
way or the other.

Two constructions compete. *Peeling* spends row products on the fullest rows and column products on
the rest, or the other way round, for every threshold. *Star bicoloring* is first-fit star coloring
of the bipartite graph of the pattern, the adjacency graph of [0 Aᵀ; A 0], with separate colors for
the two sides. Superfluous colors are then removed: an entry that can be read both ways is a choice
between two colors, so a minimum set of colors that determines all entries is a vertex cover.

Sources: T. F. Coleman and A. Verma, SIAM J. Sci. Comput. 19 (1998) 1210 (bidirectional
determination); A. H. Gebremedhin, F. Manne and A. Pothen, SIAM Review 47 (2005) 629, section 6
(star bicoloring); D. Kőnig, Mat. Fiz. Lapok 38 (1931) 116 (covers from matchings).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from symad.sparsity.coloring.acyclic import first_fit_proper
from symad.sparsity.coloring.columns import GRAPH_WORK, color_columns, first_fit
from symad.sparsity.coloring.lower_bounds import bidirectional_bound
from symad.sparsity.coloring.orders import OrderLike, Race, compact, order_name, order_named
from symad.sparsity.coloring.star import alone_in_row, first_fit_stars
from symad.sparsity.patterns.pattern import BoolArray, IntArray, Pattern

Sides: TypeAlias = "tuple[IntArray, IntArray]"
"""Row colors (m,) and column colors (n,), from 1; 0 for unused."""

ORDERS = ("natural", "largest_first", "smallest_last", "incidence_degree", "random")

MAX_THRESHOLDS = 64
"""Peeling tries at most this many thresholds on each side."""


def color_both(pattern: Pattern, orders: tuple[OrderLike, ...] | None) -> Race:
    """Colors of both sides; with ``orders`` None peeling and several star bicolorings are compared."""
    race = Race(bidirectional_bound(pattern))
    for name, sides in _candidates(pattern, orders, race):
        if race.offer(name, sides, product_count(sides)):
            break
    return race


def product_count(sides: Sides) -> int:
    """Row colors plus column colors, 0 not counted."""
    return int(sides[0].max(initial=0) + sides[1].max(initial=0))


def _candidates(
    pattern: Pattern, orders: tuple[OrderLike, ...] | None, race: Race
) -> Iterator[tuple[str, Sides]]:
    if orders is None:
        yield from _peelings(pattern, race)
    graph = bipartite_graph(pattern)
    for order in ORDERS if orders is None else orders:
        sides = star_bicoloring(pattern, graph, order_named(order)(graph))
        yield f"star bicoloring, {order_name(order)}", without_superfluous(pattern, sides)
    if orders is None:
        yield f"{race.winner}, recolored", _recolored(pattern, race.colors)


# Peeling


def _peelings(pattern: Pattern, race: Race) -> Iterator[tuple[str, Sides]]:
    """First fast colorings for all thresholds, then the best of them colored thoroughly."""
    best: tuple[Pattern, int, bool] | None = None
    for flipped, tall in enumerate((pattern, pattern.transposed)):
        for threshold in _thresholds(tall):
            if _least_products(tall, threshold) >= race.count:
                continue
            before = race.count
            yield "peeling", _flip(_peeled(tall, threshold, thorough=False), bool(flipped))
            if race.count < before:
                best = tall, threshold, bool(flipped)
    if best is not None:
        tall, threshold, swap = best
        yield "peeling", _flip(_peeled(tall, threshold, thorough=True), swap)


def _flip(sides: Sides, swap: bool) -> Sides:
    return (sides[1], sides[0]) if swap else sides


def _thresholds(pattern: Pattern) -> list[int]:
    """Row degrees above which rows are peeled off; the largest threshold peels no row, 0 every row."""
    degrees = np.unique(np.append(pattern.row_degrees, 0))
    if len(degrees) > MAX_THRESHOLDS:
        degrees = degrees[np.unique(np.linspace(0, len(degrees) - 1, MAX_THRESHOLDS).astype(int))]
    return [int(t) for t in degrees[::-1]]


def _least_products(pattern: Pattern, threshold: int) -> int:
    """A lower bound on the products when rows fuller than the threshold are peeled off."""
    peeled = (pattern.row_degrees > threshold)[pattern.rows]
    in_columns = np.bincount(pattern.indices[peeled], minlength=pattern.shape[1])
    return threshold + int(in_columns.max(initial=0))


def _peeled(pattern: Pattern, threshold: int, thorough: bool) -> Sides:
    """Row colors for the rows fuller than the threshold, column colors for the rest."""
    peeled = (pattern.row_degrees > threshold)[pattern.rows]
    rest, full = pattern.selected(~peeled), pattern.selected(peeled)
    return _used_columns(full.transposed, thorough), _used_columns(rest, thorough)


def _used_columns(pattern: Pattern, thorough: bool) -> IntArray:
    """Column colors from 1, 0 for the empty columns."""
    if thorough:
        found = color_columns(pattern, None).colors
        assert found is not None
    else:
        found = first_fit(pattern, np.arange(pattern.shape[1]))
    used = pattern.column_degrees > 0
    colors = np.zeros(pattern.shape[1], np.int64)
    colors[used] = compact(found[used]) + 1
    return colors


# Star bicoloring


def bipartite_graph(pattern: Pattern) -> Pattern:
    """The adjacency graph of [0 Aᵀ; A 0]: the n columns first, then the m rows."""
    m, n = pattern.shape
    rows, columns = pattern.rows + n, pattern.indices
    return Pattern.from_entries(
        (m + n, m + n), np.concatenate([rows, columns]), np.concatenate([columns, rows])
    )


def star_bicoloring(pattern: Pattern, graph: Pattern, order: IntArray) -> Sides:
    """First-fit star coloring of the bipartite graph, with separate colors for both sides."""
    n = pattern.shape[1]
    colors = first_fit_stars(graph, order, bipartite=True) + 1
    return colors[n:], colors[:n]


# What both share


def readable(pattern: Pattern, sides: Sides) -> tuple[BoolArray, BoolArray]:
    """For every stored entry: true if a row product determines it; true if a column product does."""
    row_colors, column_colors = sides
    by_column = (column_colors[pattern.indices] > 0) & alone_in_row(pattern, column_colors)
    flipped = pattern.transposed
    alone = np.empty(pattern.nnz, bool)
    alone[pattern.transposing_order] = alone_in_row(flipped, row_colors)
    return (row_colors[pattern.rows] > 0) & alone, by_column


def without_superfluous(pattern: Pattern, sides: Sides) -> Sides:
    """The same colors without those that no entry needs; a minimum set of them is kept."""
    by_row, by_column = readable(pattern, sides)
    row_of, column_of = sides[0][pattern.rows], sides[1][pattern.indices]
    kept_rows = set(np.unique(row_of[~by_column]).tolist())
    kept_columns = set(np.unique(column_of[~by_row]).tolist())
    pairs = np.unique(np.stack([row_of, column_of], axis=1)[by_row & by_column], axis=0)
    free = [(r, c) for r, c in pairs.tolist() if r not in kept_rows and c not in kept_columns]
    for side, color in _vertex_cover(free):
        (kept_rows if side == "row" else kept_columns).add(color)
    return _kept(sides[0], kept_rows), _kept(sides[1], kept_columns)


def _vertex_cover(pairs: list[tuple[int, int]]) -> set[tuple[str, int]]:
    """A minimum set of row and column colors that covers every pair."""
    if not pairs:
        return set()
    import networkx

    graph = networkx.Graph([(("row", r), ("column", c)) for r, c in pairs])
    top = {("row", r) for r, _ in pairs}
    matching = networkx.bipartite.hopcroft_karp_matching(graph, top)
    return set(networkx.bipartite.to_vertex_cover(graph, matching, top))


def _kept(colors: IntArray, kept: set[int]) -> IntArray:
    """The colors kept, renumbered from 1; the others become 0."""
    new = np.zeros(int(colors.max(initial=0)) + 1, np.int64)
    new[sorted(kept - {0})] = np.arange(1, len(kept - {0}) + 1)
    return new[colors]


def _recolored(pattern: Pattern, sides: Sides) -> Sides:
    """Assign each entry to the side that determines it now, and color either side again for its entries."""
    by_row, by_column = readable(pattern, sides)
    served = by_column & ~(by_row & (pattern.row_degrees > pattern.row_degrees.mean())[pattern.rows])
    columns = _serving_columns(pattern, served, sides[1])
    flipped = (~served)[pattern.transposing_order]
    rows = _serving_columns(pattern.transposed, flipped, sides[0])
    return without_superfluous(pattern, (rows, columns))


def _serving_columns(pattern: Pattern, served: BoolArray, old: IntArray) -> IntArray:
    """Column colors so that every served entry can be read; the other entries need not be.

    Two columns differ when one has a served and the other any entry in a row; a column without
    served entries gets 0 and affects no other.
    """
    n = pattern.shape[1]
    used = np.bincount(pattern.indices[served], minlength=n) > 0
    stored = pattern.selected(used[pattern.indices])
    wanted = pattern.selected(served)
    if int((wanted.row_degrees * stored.row_degrees).sum()) > GRAPH_WORK:
        return old
    product = wanted.transposed.to_scipy() @ stored.to_scipy()
    conflicts = Pattern.from_entries((n, n), *(product + product.T).nonzero())
    conflicts = conflicts.selected(conflicts.rows != conflicts.indices)
    colors = np.zeros(n, np.int64)
    found = [
        first_fit_proper(conflicts, order_named(name)(conflicts))
        for name in ("largest_first", "smallest_last", "saturation")
    ]
    best = min(found, key=lambda candidate: int(candidate[used].max(initial=-1)))
    colors[used] = compact(best[used]) + 1
    return colors
