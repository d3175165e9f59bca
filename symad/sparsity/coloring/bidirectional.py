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

from collections.abc import Callable, Iterator

import numpy as np

from symad.sparsity.coloring.conditions import Sides, readable
from symad.sparsity.coloring.greedy import first_fit
from symad.sparsity.coloring.orders import compact
from symad.sparsity.patterns.pattern import BoolArray, IntArray, Pattern

MAX_THRESHOLDS = 64
"""Peeling tries at most this many thresholds on each side."""

ColorColumns = Callable[[Pattern], IntArray]


def bipartite_graph(pattern: Pattern) -> Pattern:
    """The adjacency graph of [0 Aᵀ; A 0]: the n columns first, then the m rows."""
    m, n = pattern.shape
    rows, columns = pattern.rows + n, pattern.indices
    return Pattern.from_entries(
        (m + n, m + n), np.concatenate([rows, columns]), np.concatenate([columns, rows])
    )


# ---- peeling -------------------------------------------------------------------------------------


def peelings(pattern: Pattern, count: Callable[[], int], thorough: ColorColumns) -> Iterator[Sides]:
    """First fast colorings for all thresholds, then the best of them colored thoroughly.

    ``count``: the number of colors of the best coloring so far.
    """
    best: tuple[Pattern, int] | None = None
    for tall in (pattern, pattern.transposed):
        for threshold in _thresholds(tall):
            before = count()
            if _least_products(tall, threshold) >= before:
                continue
            yield _peeled(tall, threshold, pattern, _first_fit)
            if count() < before:
                best = tall, threshold
    if best is not None:
        yield _peeled(*best, pattern, thorough)


def _first_fit(pattern: Pattern) -> IntArray:
    return first_fit(pattern, np.arange(pattern.shape[1]))


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


def _peeled(tall: Pattern, threshold: int, pattern: Pattern, coloring: ColorColumns) -> Sides:
    """Colors for the rows of ``tall`` fuller than the threshold, and for its columns without these.

    ``tall`` is the pattern or its transpose; the colors are those of the pattern's rows and columns.
    """
    peeled = (tall.row_degrees > threshold)[tall.rows]
    full, rest = tall.selected(peeled).transposed, tall.selected(~peeled)
    rows, columns = (_from_one(coloring(part), part.column_degrees > 0) for part in (full, rest))
    return (rows, columns) if tall is pattern else (columns, rows)


def _from_one(colors: IntArray, used: BoolArray) -> IntArray:
    """The colors renumbered from 1, 0 for the unused columns."""
    made = np.zeros(len(colors), np.int64)
    made[used] = compact(colors[used]) + 1
    return made


# ---- fewer colors --------------------------------------------------------------------------------


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
