"""Vertex orders for greedy coloring, each deterministic.

Every order takes either a graph as a `Pattern` (symmetric, no diagonal) and returns a permutation
of its vertices, or a NetworkX graph, with NetworkX's own signature ``strategy(G, colors)``, and
returns the list of its nodes; so each can be given to ``nx.greedy_color(G, strategy=...)``.

Sources: D. W. Matula and L. L. Beck, J. ACM 30 (1983) 417 (smallest last); T. F. Coleman and
J. J. Moré, SIAM J. Numer. Anal. 20 (1983) 187 (incidence degree); D. Brélaz, Comm. ACM 22 (1979)
251 (saturation); R. E. Tarjan and M. Yannakakis, SIAM J. Comput. 13 (1984) 566 (perfect
elimination).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from symad.sparsity.patterns.pattern import ColoringError, IntArray, Pattern, PatternError, as_pattern

if TYPE_CHECKING:
    import networkx as nx


Order: TypeAlias = "Callable[..., Any]"
"""A function that orders the vertices of a pattern, or the nodes of a NetworkX graph."""

OrderLike: TypeAlias = "str | Callable[..., Any] | Sequence[int] | IntArray"
"""An order by its name, a strategy of NetworkX, or the vertices in order."""


def _order(rule: Callable[[Pattern], IntArray]) -> Order:
    """An order on patterns that also accepts NetworkX graphs, as a NetworkX strategy."""

    @wraps(rule)
    def order(graph: Pattern | nx.Graph[Hashable], colors: object = None) -> Any:
        if isinstance(graph, Pattern):
            return rule(graph)
        nodes = list(graph)
        literal = as_pattern(graph, bipartite=False)
        adjacency = literal.selected(literal.rows != literal.indices)
        return [nodes[k] for k in rule(adjacency).tolist()]

    return order


@_order
def natural(graph: Pattern) -> IntArray:
    """The vertices in the order of their numbers: optimal for bands."""
    return np.arange(graph.shape[0])


@_order
def largest_first(graph: Pattern) -> IntArray:
    """The vertices by descending degree; ties by number."""
    return np.argsort(-graph.row_degrees, kind="stable")


@_order
def smallest_last(graph: Pattern) -> IntArray:
    """A vertex of minimum degree comes last, then likewise in the graph without it.

    First-fit in this order needs at most one color more than the degeneracy of the graph. Linear time.
    """
    return _in_buckets(graph, graph.row_degrees.tolist(), -1)[::-1]


@_order
def incidence_degree(graph: Pattern) -> IntArray:
    """Next comes a vertex with the most neighbors already ordered (maximum cardinality search)."""
    return _in_buckets(graph, [0] * graph.shape[0], 1)


def _in_buckets(graph: Pattern, keys: list[int], step: int) -> IntArray:
    """Next comes a vertex of the smallest (step −1) or largest (step 1) key; its neighbors' keys then change.

    They change by ``step``. Keys stay between 0 and the maximum degree; each has a bucket of vertices.
    """
    n, neighbors = graph.shape[0], graph.lists()
    last = int(graph.row_degrees.max(initial=0))
    buckets: list[list[int]] = [[] for _ in range(last + 1)]
    for v in reversed(range(n)):
        buckets[keys[v]].append(v)
    placed = bytearray(n)
    order: list[int] = []
    at = 0
    while len(order) < n:
        while not buckets[at]:
            at -= step
        v = buckets[at].pop()
        if placed[v] or keys[v] != at:
            continue  # a stale entry: v has moved to another bucket since
        placed[v] = 1
        order.append(v)
        for w in neighbors[v]:
            if not placed[w]:
                keys[w] += step
                buckets[keys[w]].append(w)
        at = min(max(at + step, 0), last)
    return np.array(order, np.int64)


@_order
def saturation(graph: Pattern) -> IntArray:
    """Next comes a vertex whose neighbors have the most colors under first-fit (DSATUR).

    Ties go to the larger degree, then to the smaller number. A heap makes this
    O((n + edges) log n), where NetworkX's ``saturation_largest_first`` takes O(n · edges).
    """
    n = graph.shape[0]
    neighbors = graph.lists()
    rank = np.empty(n, np.int64)
    rank[np.argsort(-graph.row_degrees, kind="stable")] = np.arange(n)
    tie = rank.tolist()
    by_tie = np.argsort(rank).tolist()
    seen = [0] * n  # colors of the neighbors, as bits
    color = [-1] * n
    order: list[int] = []
    # One integer is compared faster than a tuple: saturation first, then the rank for ties.
    heap = list(range(n))
    heapify(heap)
    while heap:
        key = heappop(heap)
        v = by_tie[key % n]
        if color[v] >= 0:
            continue
        bits = seen[v]
        lowest = ~bits & (bits + 1)
        color[v] = lowest.bit_length() - 1
        order.append(v)
        for w in neighbors[v]:
            if color[w] < 0 and not seen[w] & lowest:
                seen[w] |= lowest
                heappush(heap, tie[w] - n * seen[w].bit_count())
    return np.array(order, np.int64)


@_order
def random(graph: Pattern) -> IntArray:
    """A random order with a fixed seed, always the same."""
    return np.random.default_rng(0).permutation(graph.shape[0])


@_order
def perfect_elimination(graph: Pattern) -> IntArray:
    """The reverse of a perfect elimination order: first-fit in it is optimal on a chordal graph.

    Raises:
        PatternError: the graph has a chordless cycle of four or more vertices.
    """
    order = incidence_degree(graph)
    if not is_perfect(graph, order):
        raise PatternError(
            "only chordal graphs have a perfect elimination order: this graph has a cycle of four or more "
            "vertices without a chord; use another order"
        )
    return order


def is_perfect(graph: Pattern, order: IntArray) -> bool:
    """True if the earlier neighbors of every vertex are pairwise adjacent.

    Linear time (Tarjan and Yannakakis, test for zero fill-in): it suffices that the earlier
    neighbors of v, other than the last of them, u, are neighbors of u.
    """
    n = graph.shape[0]
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    u, v = position[graph.indices], position[graph.rows]
    earlier = u < v
    u, v = u[earlier], v[earlier]
    last = np.full(n, -1)
    np.maximum.at(last, v, u)
    others = u != last[v]
    wanted = last[v[others]] * n + u[others]
    return bool(np.isin(wanted, v * n + u).all())


ORDERS: dict[str, Order] = {
    "natural": natural,
    "largest_first": largest_first,
    "smallest_last": smallest_last,
    "incidence_degree": incidence_degree,
    "saturation": saturation,
    "random": random,
    "perfect_elimination": perfect_elimination,
}
"""The orders by name."""


def ordered(graph: Pattern, order: OrderLike) -> IntArray:
    """The vertices of a graph in an order given by its name, as a NetworkX strategy, or explicitly.

    Raises:
        ColoringError: the name is unknown, or the order is no permutation of the vertices.
    """
    if isinstance(order, str):
        if order not in ORDERS:
            raise ColoringError(f"order={order!r} is not one of {', '.join(ORDERS)}")
        return np.asarray(ORDERS[order](graph))
    if callable(order):
        if order in ORDERS.values():
            return np.asarray(order(graph))
        import networkx

        G = networkx.empty_graph(graph.shape[0])
        G.add_edges_from(zip(graph.rows.tolist(), graph.indices.tolist(), strict=True))
        return np.array(list(networkx.greedy_color(G, order)), np.int64)  # the nodes as they are colored
    n, given = graph.shape[0], np.asarray(order)
    if given.shape != (n,) or not np.array_equal(np.sort(given), np.arange(n)):
        raise ColoringError(
            f"order is neither a name nor a permutation of the {n} vertices: an array of shape "
            f"{given.shape} was given"
        )
    return given.astype(np.int64)


def order_name(order: OrderLike) -> str:
    """The name of an order in reports."""
    return order if isinstance(order, str) else getattr(order, "__name__", "given order")


def compact(colors: IntArray) -> IntArray:
    """The same classes, numbered from 0 without gaps in the order of the old numbers."""
    return np.unique(colors, return_inverse=True)[1].reshape(colors.shape).astype(np.int64)
