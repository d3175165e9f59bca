"""Lower bounds on the number of colors."""

from __future__ import annotations

import numpy as np

from symad.sparsity.coloring.orders import smallest_last
from symad.sparsity.patterns.pattern import IntArray, Pattern


def column_bound(pattern: Pattern) -> int:
    """A lower bound for structurally orthogonal column groups of an m×n pattern.

    The larger of: the entries of the fullest row; and, for every t, the counting bound
    ⌈#{columns with at least t entries} / ⌊m/t⌋⌉, since the columns of one group share no row, so that
    one group has at most ⌊m/t⌋ columns of t or more entries.
    """
    m, n = pattern.shape
    if n == 0:
        return 0
    fullest = int(pattern.row_degrees.max(initial=0))
    degrees = np.sort(pattern.column_degrees)
    t, first = np.unique(degrees, return_index=True)
    t, first = t[t > 0], first[t > 0]
    counting = -(-(n - first) // (m // t)) if len(t) else np.zeros(1, np.int64)
    return max(1, fullest, int(counting.max()))


def acyclic_bound(graph: Pattern) -> int:
    """A lower bound for acyclic, hence also for star, colorings of a graph.

    The larger of: a clique found greedily; and the minimum p with (p − 1) n − p (p − 1)/2 ≥ edges for
    the graph and for every subgraph left by smallest-last removal: two color classes of sizes a and
    b induce a forest, which has at most a + b − 1 edges.
    """
    n = graph.shape[0]
    if n == 0:
        return 0
    order = smallest_last(graph)
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    # Edge k belongs to the first j vertices of the order when its later end comes before j.
    later = np.maximum(position[graph.rows], position[graph.indices])
    edges = np.cumsum(np.bincount(later, minlength=n)) // 2
    vertices = np.arange(1, n + 1)
    return max(_clique_size(graph, position), _forest_bound(vertices, edges))


def star_bound(graph: Pattern) -> int:
    """A lower bound for star colorings: `acyclic_bound`, or 3 if there is a path on four vertices."""
    bound = acyclic_bound(graph)
    degree = graph.row_degrees
    if bound >= 3:
        return bound
    # An edge whose ends both have another neighbor lies inside a path on four vertices, or inside a
    # triangle, which needs three colors as well.
    inner = (degree[graph.rows] >= 2) & (degree[graph.indices] >= 2)
    return 3 if inner.any() else bound


def _forest_bound(vertices: IntArray, edges: IntArray) -> int:
    """The minimum p with (p − 1) n − p (p − 1)/2 ≥ e, and its maximum over the pairs (n, e)."""
    p = 1
    while ((p - 1) * vertices - p * (p - 1) // 2 < edges)[vertices >= p].any():
        p += 1
    return p


def _clique_size(graph: Pattern, position: IntArray) -> int:
    """The largest of the cliques grown from each vertex among its neighbors earlier in the order.

    Only the vertices with the most earlier neighbors are tried, and each clique is grown greedily.
    """
    earlier = position[graph.indices] < position[graph.rows]
    count = np.bincount(graph.rows[earlier], minlength=graph.shape[0])
    best = 1
    for v in np.argsort(-count, kind="stable")[:64].tolist():
        if count[v] + 1 <= best:
            break
        start, stop = graph.indptr[v], graph.indptr[v + 1]
        candidates = graph.indices[start:stop]
        candidates = candidates[position[candidates] < position[v]]
        size = 1
        while len(candidates):
            w = candidates[np.argmax(position[candidates])]
            size += 1
            near = graph.indices[graph.indptr[w] : graph.indptr[w + 1]]
            candidates = np.intersect1d(candidates, near, assume_unique=True)
        best = max(best, size)
    return best


def bidirectional_bound(pattern: Pattern) -> int:
    """A lower bound on row colors plus column colors for direct recovery.

    p column products determine at most min(p, entries of row i) entries of row i directly, q row
    products at most min(q, entries of column j) of column j; both together have to determine all
    entries.
    """
    if pattern.nnz == 0:
        return 0
    by_columns = _recovered(pattern.row_degrees)
    by_rows = _recovered(pattern.column_degrees)
    q = np.arange(len(by_rows))
    p = np.searchsorted(by_columns, pattern.nnz - by_rows)  # the minimum p for the remaining entries
    return int((p + q).min())


def _recovered(degrees: IntArray) -> IntArray:
    """Σ_i min(p, degrees_i) for p = 0, 1, ..., max degree."""
    top = int(degrees.max(initial=0))
    at_least = np.cumsum(np.bincount(degrees, minlength=top + 1)[::-1])[::-1]
    return np.concatenate([[0], np.cumsum(at_least[1:])])
