"""Proved lower bounds on star colorings, by exhaustive search on a small subgraph.

A graph needs at least as many colors as an induced subgraph. A ball of 36 vertices proves that
5-point grids need 5 star colors and bands of half-width k ≤ 4 need 2k + 1, in some milliseconds.
"""

from __future__ import annotations

import numpy as np

from symad.sparsity.patterns.pattern import IntArray, Pattern

BALL, SMALL_BALL = 36, 20
"""The number of vertices of the subgraph."""

PATIENT = 1000
"""The number of vertices from which several subgraphs are tried."""

STEPS = 20_000
"""The maximum number of attempts to color a vertex in one search."""


def local_star_bound(graph: Pattern, low: int, high: int) -> int:
    """A proved lower bound on the star colors, between ``low`` (known) and ``high``."""
    if low >= high or graph.nnz == 0:
        return low
    for size in (BALL, SMALL_BALL) if graph.shape[0] > PATIENT else (BALL,):
        near, around = neighborhood(graph, middle_vertex(graph), size)
        for order in (np.arange(len(near)), np.argsort(near)) if size == SMALL_BALL else (None,):
            neighbors = around.lists() if order is None else _renumbered(around, order)
            low = _least_possible(neighbors, low, high)
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


def _renumbered(graph: Pattern, order: IntArray) -> list[list[int]]:
    rank = np.argsort(order)
    neighbors = graph.lists()
    return [[int(rank[w]) for w in neighbors[v]] for v in order.tolist()]


def middle_vertex(graph: Pattern) -> int:
    """A vertex of maximum degree whose number is near the middle."""
    fullest = np.flatnonzero(graph.row_degrees == graph.row_degrees.max())
    n = graph.shape[0]
    side = int(np.sqrt(n))  # half a side further, so as not to start at the edge of a square grid
    return int(fullest[np.argmin(np.abs(fullest - (n // 2 + side // 2)))])


def neighborhood(graph: Pattern, center: int, size: int) -> tuple[IntArray, Pattern]:
    """The vertices nearest to one, in breadth-first order, and the graph they induce."""
    number = {center: 0}
    near = [center]
    for v in near:
        for w in graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist():
            if len(near) < size and w not in number:
                number[w] = len(near)
                near.append(w)
    edges = [
        (number[v], number[w])
        for v in near
        for w in graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()
        if w in number
    ]
    ends = np.array(edges, np.int64).reshape(-1, 2)
    around = Pattern.from_entries((len(near), len(near)), ends[:, 0], ends[:, 1])
    return np.array(near, np.int64), around


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
