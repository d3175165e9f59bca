"""Fewer colors by local search: a coloring with conflicts is repaired, one vertex at a time.

Source: A. Hertz and D. de Werra, Using tabu search techniques for graph coloring, Computing 39 (1987) 345;
with the table of conflicts and the tenure 0.6 |conflicts| + random(10) of P. Galinier and J.-K. Hao, Hybrid
evolutionary algorithms for graph coloring, J. Combinatorial Optimization 3 (1999) 379.
"""

from __future__ import annotations

import numpy as np

from symad.sparsity.coloring.orders import compact
from symad.sparsity.patterns.pattern import IntArray, Pattern

MIN_VERTICES, MAX_VERTICES = 40, 600
"""The fewest and the most vertices of a graph that is searched."""

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
        near = graph.in_row(v)
        old = int(colors[v])
        table[near, old] -= 1
        table[near, c] += 1
        colors[v] = c
        barred[v, old] = turn + int(0.6 * len(vertices)) + int(rng.integers(10))
        least = min(least, int(table[np.arange(n), colors].sum()))
    return None
