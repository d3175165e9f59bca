"""Lower bounds on the number of colors: by counting, by cliques, by search on a small subgraph."""

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
        candidates = graph.in_row(v)
        candidates = candidates[position[candidates] < position[v]]
        size = 1
        while len(candidates):
            w = candidates[np.argmax(position[candidates])]
            size += 1
            candidates = np.intersect1d(candidates, graph.in_row(w), assume_unique=True)
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


# ---- proved lower bounds on star colorings, by exhaustive search on a small subgraph -------------

# A graph needs at least as many colors as an induced subgraph. A ball of 36 vertices proves that 5-point
# grids need 5 star colors and bands of half-width k ≤ 4 need 2k + 1, in some milliseconds.


BALL, SMALL_BALL = 36, 20
"""The number of vertices of the subgraph."""

PATIENT = 1000
"""The number of vertices from which a second subgraph is tried, its vertices by number."""

STEPS = 20_000
"""The maximum number of attempts to color a vertex in one search."""


def local_star_bound(graph: Pattern, low: int, high: int) -> int:
    """A proved lower bound on the star colors, between ``low`` (known) and ``high``."""
    if low >= high or graph.nnz == 0:
        return low
    center = middle_vertex(graph)
    balls = [nearest(graph, center, BALL)]
    if graph.shape[0] > PATIENT:
        balls.append(np.sort(nearest(graph, center, SMALL_BALL)))
    for near in balls:
        low = _least_possible(induced(graph, near).lists(), low, high)
    return low


def _least_possible(neighbors: list[list[int]], low: int, high: int) -> int:
    """The smallest number of colors from ``low`` on that is not proved impossible."""
    steps = STEPS
    while low < high:
        possible, used = _star_colorable(neighbors, low, steps)
        steps -= used
        if possible is not False:
            break
        low += 1
    return low


def middle_vertex(graph: Pattern) -> int:
    """A vertex of maximum degree whose number is near the middle."""
    fullest = np.flatnonzero(graph.row_degrees == graph.row_degrees.max())
    n = graph.shape[0]
    side = int(np.sqrt(n))  # half a side further, so as not to start at the edge of a square grid
    return int(fullest[np.argmin(np.abs(fullest - (n // 2 + side // 2)))])


def nearest(graph: Pattern, center: int, size: int) -> IntArray:
    """The vertices nearest to one, in breadth-first order."""
    near = {center}
    waiting = [center]
    for v in waiting:
        for w in graph.in_row(v).tolist():
            if len(near) < size and w not in near:
                near.add(w)
                waiting.append(w)
    return np.array(waiting, np.int64)


def induced(graph: Pattern, vertices: IntArray) -> Pattern:
    """The graph of some vertices, numbered in this order, and the edges between them."""
    number = {v: k for k, v in enumerate(vertices.tolist())}
    edges = [(k, number[w]) for v, k in number.items() for w in graph.in_row(v).tolist() if w in number]
    ends = np.array(edges, np.int64).reshape(-1, 2)
    return Pattern.from_entries((len(vertices),) * 2, ends[:, 0], ends[:, 1])


def _star_colorable(neighbors: list[list[int]], p: int, most: int) -> tuple[bool | None, int]:
    """True if p star colors suffice for a small graph (None: not known after ``most`` steps), and steps.

    Backtracking over the vertices in their order; a new color is always the next unused one, because colors
    are interchangeable.
    """
    n = len(neighbors)
    color, next_color, used = [-1] * n, [0] * (n + 1), [0] * (n + 1)
    k = steps = 0
    while 0 <= k < n:
        steps += 1
        if steps > most:
            return None, steps
        color[k] = -1
        c = next_color[k]
        if c >= min(p, used[k] + 1):
            k -= 1
            continue
        next_color[k] = c + 1
        if _fits(neighbors, color, k, c):
            color[k] = c
            used[k + 1] = max(used[k], c + 1)
            k += 1
            next_color[k] = 0
    return k == n, steps


def _fits(neighbors: list[list[int]], color: list[int], v: int, c: int) -> bool:
    """True if giving v the color c makes no edge of one color and no two-colored path of four."""
    near = [color[w] for w in neighbors[v]]
    if c in near:
        return False
    for w, a in zip(neighbors[v], near, strict=True):
        if a < 0:
            continue
        inner = near.count(a) > 1
        ends = [x for x in neighbors[w] if x != v and color[x] == c]
        # v is inside the path z v w x, or v is the end of v w x y.
        if (inner and ends) or any(sum(color[y] == a for y in neighbors[x]) > 1 for x in ends):
            return False
    return True
