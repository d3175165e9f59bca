"""Star coloring: proper, and no path on four vertices has only two colors.

Then every two colors induce a forest of stars, and the entry of an edge can be read directly off
the product of a symmetric matrix with the sum of one color class.

Source: A. H. Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, New acyclic and star coloring
algorithms with application to computing Hessians, SIAM J. Sci. Comput. 29 (2007) 1042, algorithm
4.1.
"""

from __future__ import annotations

import numpy as np

from symad.sparsity.coloring.closed_forms import lattice_coloring
from symad.sparsity.coloring.columns import color_columns, try_more_orders
from symad.sparsity.coloring.lower_bounds import local_star_bound, star_bound
from symad.sparsity.coloring.orders import OrderLike, Race, order_name, order_named
from symad.sparsity.patterns.pattern import BoolArray, IntArray, Pattern

ORDERS = ("natural", "largest_first", "smallest_last", "incidence_degree", "random")

SQUARE_WORK = 3_000_000
"""The maximum work for a distance-2 coloring, which is a star coloring too."""


def color_stars(graph: Pattern, orders: tuple[OrderLike, ...] | None) -> Race:
    """Star colors (n,) from 0 of a graph; with ``orders`` None all methods are tried."""
    race = Race(star_bound(graph))
    for k, order in enumerate(ORDERS if orders is None else orders):
        if race.offer(order_name(order), first_fit_stars(graph, order_named(order)(graph))):
            return race
        if k == 0:
            race.bound = local_star_bound(graph, race.bound, race.count)
            if race.done:
                return race
    if orders is None:
        _beyond_orders(graph, race)
    return race


def _beyond_orders(graph: Pattern, race: Race) -> None:
    found = lattice_coloring(graph, race.bound, race.count, is_star_coloring, most=60)
    if race.offer("lattice", found):
        return
    square = graph.with_diagonal()
    if square.intersection_work <= SQUARE_WORK:
        of_square = color_columns(square, None)
        if race.offer(f"{of_square.winner} on the square", of_square.colors):
            return
    try_more_orders(graph, race, first_fit_stars)


def first_fit_stars(graph: Pattern, order: IntArray, bipartite: bool = False) -> IntArray:
    """Each vertex in turn gets the minimum color that keeps the coloring a star coloring.

    The colors are those of algorithm 4.1 with the same order. A color c is barred for v

    - when a neighbor has it;
    - when a neighbor w has a neighbor of color c and v has another neighbor colored like w;
    - when a neighbor w has a neighbor x of color c that has another neighbor colored like w (x is
      then the hub of a star of the colors of w and x).

    Sets of colors are the bits of integers, kept for each vertex, so that coloring v takes work
    proportional to its degree and not to that of its neighbors.

    Args:
        graph: symmetric, without diagonal.
        order: a permutation of the vertices.
        bipartite: true if the graph is bipartite and the two sides have separate colors, so
            that neighbors never bar each other; colors are then numbered from 0 on either side.
    """
    neighbors = graph.lists()
    n = len(neighbors)
    color = [-1] * n
    around = [0] * n  # colors of the neighbors
    hubs = [0] * n  # colors of those neighbors that are hubs towards this vertex's color
    seen_once: list[dict[int, int]] = [{} for _ in range(n)]  # color -> its only neighbor, or -1
    for v in order.tolist():
        colored = [w for w in neighbors[v] if color[w] >= 0]
        only = seen_once[v]
        bits = 0 if bipartite else around[v]
        for w in colored:
            bits |= around[w] if only[color[w]] < 0 else hubs[w]
        lowest = ~bits & (bits + 1)
        c = color[v] = lowest.bit_length() - 1
        for w in colored:
            if only[color[w]] < 0:
                hubs[w] |= lowest  # v is a hub with two or more leaves of the color of w
        for w in neighbors[v]:
            first = seen_once[w].setdefault(c, v)
            if first == v:
                around[w] |= lowest
                continue
            seen_once[w][c] = -1
            if color[w] >= 0:  # w is a hub towards v, and now towards its first neighbor of color c
                hub = 1 << color[w]
                hubs[v] |= hub
                if first >= 0:
                    hubs[first] |= hub
    return np.array(color, np.int64)


def is_star_coloring(graph: Pattern, colors: IntArray) -> bool:
    """True if colors (n,) are proper and no path on four vertices has only two of them."""
    return first_bad_path(graph, colors) is None


def first_bad_path(graph: Pattern, colors: IntArray) -> tuple[int, int] | None:
    """An edge (v, w) with ends of equal color, or in the middle of a two-colored path; or None.

    An edge is in the middle of such a path when v has another neighbor colored like w, and w
    another one colored like v.
    """
    u, v = graph.rows, graph.indices
    alone = alone_in_row(graph, colors)
    # In a symmetric pattern the transposing order maps each entry (u, v) to (v, u).
    bad = (colors[u] == colors[v]) | ~(alone | alone[graph.transposing_order])
    if not bad.any():
        return None
    k = int(np.argmax(bad))
    return int(u[k]), int(v[k])


def alone_in_row(pattern: Pattern, colors: IntArray) -> BoolArray:
    """For every stored entry (i, j): true if no other column of color ``colors[j]`` is in row i."""
    keys = pattern.rows * (int(colors.max(initial=0)) + 1) + colors[pattern.indices]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] == 1)
