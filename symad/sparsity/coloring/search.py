"""The search for few colors: candidates of each kind, one after the other, until the lower bound is reached.

A kind has a lower bound and a generator of candidates, cheap ones first. Closed forms and first-fit in
several orders come before iterated greedy, which starts from the best coloring so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from symad.sparsity.coloring.bidirectional import bipartite_graph, peelings, without_superfluous
from symad.sparsity.coloring.closed_forms import cyclic_blocks, lattice_coloring
from symad.sparsity.coloring.conditions import is_acyclic_coloring, is_proper, is_star_coloring
from symad.sparsity.coloring.greedy import first_fit, first_fit_proper, first_fit_stars, first_fit_trees
from symad.sparsity.coloring.lower_bounds import (
    acyclic_bound,
    bidirectional_bound,
    column_bound,
    local_star_bound,
    star_bound,
)
from symad.sparsity.coloring.orders import OrderLike, incidence_degree, is_perfect, order_name, ordered
from symad.sparsity.coloring.tabu import fewer_colors
from symad.sparsity.patterns.pattern import IntArray, Pattern

FEW_ORDERS = ("natural", "largest_first", "smallest_last", "incidence_degree", "random")
"""The orders of star, acyclic and bidirectional colorings."""

GRAPH_WORK = 30_000_000
"""The maximum number of entries of a column intersection graph that is built."""

REORDERING_WORK = 40_000_000
"""The maximum number of entries visited by iterated greedy, over all its rounds."""

MORE_WORK = 300_000
"""The maximum number of entries visited by the extra orders for star and acyclic colorings."""

SQUARE_WORK = 3_000_000
"""The maximum work for a distance-2 coloring, which is a star coloring too."""


@dataclass
class Search:
    """The best coloring so far; of equal ones the first is kept, so that the result is deterministic."""

    least: Callable[[], int]
    colors: Any = None
    count: int = field(default=2**62)
    winner: str = ""

    @cached_property
    def bound(self) -> int:
        """No coloring has fewer colors: once it is reached no other coloring is tried."""
        return self.least()

    @property
    def done(self) -> bool:
        """True if no better coloring exists."""
        return self.count <= self.bound


Candidates: TypeAlias = "Iterator[tuple[str, Any]]"
Greedy: TypeAlias = "Callable[[Pattern, IntArray], Any]"
Orders: TypeAlias = "Sequence[OrderLike] | None"
"""None for all methods."""


def fewest_colors(kind: str, pattern: Pattern, orders: Orders = None) -> Search:
    """The best coloring of a kind.

    Args:
        kind: one of `KINDS`.
        pattern: whose columns are colored; for "star" and "acyclic" a graph: symmetric, without diagonal.
        orders: greedy coloring in just these orders; None tries all methods.
    """
    bound, candidates = KINDS[kind]
    search = Search(lambda: bound(pattern))
    for name, colors in candidates(pattern, search, orders):
        count = color_count(colors)
        if count < search.count:
            search.colors, search.count, search.winner = colors, count, name
        if search.done:
            break
    return search


def color_count(colors: Any) -> int:
    """The number of colors from 0 without gaps; of a pair, of both sides, from 1."""
    if isinstance(colors, tuple):
        return sum(int(side.max(initial=0)) for side in colors)
    return int(colors.max(initial=-1)) + 1


def _in_orders(pattern: Pattern, graph: Pattern, orders: Sequence[OrderLike], greedy: Greedy) -> Candidates:
    """Greedy colorings of a pattern in orders of the vertices of a graph."""
    for order in orders:
        yield order_name(order), greedy(pattern, ordered(graph, order))


def _by_class(pattern: Pattern, search: Search, greedy: Greedy, rounds: int) -> Candidates:
    """Iterated greedy: first-fit again, class by class, which never increases the number of colors.

    Source: J. C. Culberson, Iterated greedy graph coloring and the difficulty landscape, Technical
    Report 92-07, University of Alberta (1992).
    """
    colors, name = search.colors, f"{search.winner}, reordered"
    for k in range(rounds):
        colors = greedy(pattern, reordered_by_class(colors, k))
        yield name, colors


def reordered_by_class(colors: IntArray, k: int) -> IntArray:
    """The vertices class by class: for k = 0, 1, 2, ... last class first, largest, smallest, ..."""
    sizes = np.bincount(colors)
    key = (-np.arange(len(sizes)), -sizes, sizes)[k % 3]
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(key, kind="stable")] = np.arange(len(sizes))
    return np.argsort(rank[colors], kind="stable")


def _more_orders(graph: Pattern, search: Search, greedy: Greedy) -> Candidates:
    """A few rounds class by class from the best coloring so far, then shuffled orders."""
    rounds = MORE_WORK // max(1, graph.nnz)
    yield from _by_class(graph, search, greedy, min(6, rounds))
    for seed in range(min(12, rounds)):
        order = np.random.default_rng(seed).permutation(graph.shape[0])
        yield f"shuffled, seed {seed}", greedy(graph, order)


# ---- the candidates of each kind -----------------------------------------------------------------


def _columns(pattern: Pattern, search: Search, orders: Orders) -> Candidates:
    if orders is not None:
        yield from _in_orders(pattern, pattern.column_intersection(), orders, first_fit)
        return
    n = pattern.shape[1]
    yield "one color each", np.arange(n)
    yield "natural", first_fit(pattern, np.arange(n))
    if pattern.intersection_work <= GRAPH_WORK:
        yield from _by_intersections(pattern, pattern.column_intersection(), search)
    else:  # very full rows
        reach = np.zeros(n, np.int64)
        np.add.at(reach, pattern.indices, pattern.row_degrees[pattern.rows])
        yield "largest_first", first_fit(pattern, np.argsort(-reach, kind="stable"))
    rounds = min(40, REORDERING_WORK // max(1, pattern.nnz * search.count))
    yield from _by_class(pattern, search, first_fit, rounds)


def _by_intersections(pattern: Pattern, graph: Pattern, search: Search) -> Candidates:
    yield "cyclic blocks", cyclic_blocks(graph)
    lattice = lattice_coloring(graph, search.bound, search.count, is_proper, most=2)
    if lattice is not None:
        yield "lattice", lattice
    if search.winner != "lattice" or search.count > search.bound + 1:
        # for stencils vertex orders, which take twice as long, need more colors
        orders = ("largest_first", "smallest_last", "incidence_degree", "saturation")
        yield from _in_orders(pattern, graph, orders, first_fit)


def _searched_columns(pattern: Pattern, search: Search, orders: Orders) -> Candidates:
    """Also colorings of small graphs that no order finds."""
    yield from _columns(pattern, search, orders)
    if orders is None and pattern.intersection_work <= GRAPH_WORK:
        graph = pattern.column_intersection()
        yield "tabu search", fewer_colors(graph, search.colors, search.bound)


def _stars(graph: Pattern, search: Search, orders: Orders) -> Candidates:
    first, *others = FEW_ORDERS if orders is None else orders
    yield from _in_orders(graph, graph, [first], first_fit_stars)
    search.bound = local_star_bound(graph, search.bound, search.count)
    if search.done:
        return
    yield from _in_orders(graph, graph, others, first_fit_stars)
    if orders is not None:
        return
    lattice = lattice_coloring(graph, search.bound, search.count, is_star_coloring, most=60)
    if lattice is not None:
        yield "lattice", lattice
    square = graph.with_diagonal()
    if square.intersection_work <= SQUARE_WORK:
        of_square = fewest_colors("distance 2", square)
        yield f"{of_square.winner} on the square", of_square.colors
    yield from _more_orders(graph, search, first_fit_stars)


def _trees(graph: Pattern, search: Search, orders: Orders) -> Candidates:
    if orders is None:
        order = incidence_degree(graph)
        if is_perfect(graph, order):
            # First-fit takes as many colors as the largest clique has vertices. A proper coloring of a
            # chordal graph is acyclic: a shortest two-colored cycle has a chord, which joins two vertices
            # of different colors and leaves a shorter two-colored cycle.
            chordal = first_fit_proper(graph, order)
            search.bound = color_count(chordal)
            yield "perfect elimination", chordal
    yield from _in_orders(graph, graph, FEW_ORDERS if orders is None else orders, first_fit_trees)
    if orders is not None:
        return
    lattice = lattice_coloring(graph, search.bound, search.count, is_acyclic_coloring, most=60)
    if lattice is not None:
        yield "lattice", lattice
    stars = fewest_colors("star", graph)
    yield f"star coloring, {stars.winner}", stars.colors
    yield from _more_orders(graph, search, first_fit_trees)


def _both_sides(pattern: Pattern, search: Search, orders: Orders) -> Candidates:
    """Peeling and star bicolorings: first-fit star colorings of the bipartite graph, colored apart."""
    if orders is None:
        for sides in peelings(pattern, lambda: search.count, lambda p: fewest_colors("distance 2", p).colors):
            yield "peeling", sides
    graph, n = bipartite_graph(pattern), pattern.shape[1]
    for order in FEW_ORDERS if orders is None else orders:
        colors = first_fit_stars(graph, ordered(graph, order), bipartite=True) + 1
        sides = without_superfluous(pattern, (colors[n:], colors[:n]))
        yield f"star bicoloring, {order_name(order)}", sides


KINDS: dict[str, tuple[Callable[[Pattern], int], Callable[[Pattern, Search, Orders], Candidates]]] = {
    "column": (column_bound, _searched_columns),
    "distance 2": (column_bound, _columns),
    "star": (star_bound, _stars),
    "acyclic": (acyclic_bound, _trees),
    "bidirectional": (bidirectional_bound, _both_sides),
}
"""The lower bound of a kind, and its candidates."""
