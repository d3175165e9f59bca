"""Acyclic coloring: proper, and no cycle has only two colors.

Then every two colors induce a forest, and all entries of a symmetric matrix follow from the
products with the color classes by substitution, from the leaves of its trees to their roots.

Source: A. H. Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, New acyclic and star coloring
algorithms with application to computing Hessians, SIAM J. Sci. Comput. 29 (2007) 1042, algorithm
3.1.
"""

from __future__ import annotations

import numpy as np

from symad.sparsity.coloring.closed_forms import lattice_coloring
from symad.sparsity.coloring.columns import try_more_orders
from symad.sparsity.coloring.lower_bounds import acyclic_bound
from symad.sparsity.coloring.orders import (
    OrderLike,
    Race,
    incidence_degree,
    is_perfect,
    order_name,
    order_named,
)
from symad.sparsity.coloring.star import color_stars
from symad.sparsity.patterns.pattern import IntArray, Pattern

ORDERS = ("natural", "largest_first", "smallest_last", "incidence_degree", "random")


def color_trees(graph: Pattern, orders: tuple[OrderLike, ...] | None) -> Race:
    """Acyclic colors (n,) from 0 of a graph; with ``orders`` None all methods are tried."""
    if orders is None:
        chordal = _color_chordal(graph)
        if chordal is not None:
            return chordal
    race = Race(acyclic_bound(graph))
    for order in ORDERS if orders is None else orders:
        if race.offer(order_name(order), first_fit_trees(graph, order_named(order)(graph))):
            return race
    if orders is None:
        _beyond_orders(graph, race)
    return race


def _color_chordal(graph: Pattern) -> Race | None:
    """An optimal coloring of a chordal graph.

    First-fit against a perfect elimination order takes as many colors as the largest clique has
    vertices. A proper coloring of a chordal graph is acyclic: a shortest two-colored cycle has a
    chord, which joins two vertices of different colors and leaves a shorter two-colored cycle.
    """
    order = incidence_degree(graph)
    if not is_perfect(graph, order):
        return None
    colors = first_fit_proper(graph, order)
    race = Race(int(colors.max(initial=-1)) + 1)
    race.offer("perfect elimination", colors)
    return race


def _beyond_orders(graph: Pattern, race: Race) -> None:
    found = lattice_coloring(graph, race.bound, race.count, is_acyclic_coloring, most=60)
    if race.offer("lattice", found):
        return
    stars = color_stars(graph, None)
    if race.offer(f"star coloring, {stars.winner}", stars.colors):
        return
    try_more_orders(graph, race, first_fit_trees)


def first_fit_proper(graph: Pattern, order: IntArray) -> IntArray:
    """Each vertex in turn gets the least color that no neighbor has: colors (n,) from 0."""
    neighbors = graph.lists()
    around = [0] * len(neighbors)
    color = [0] * len(neighbors)
    for v in order.tolist():
        lowest = ~around[v] & (around[v] + 1)
        color[v] = lowest.bit_length() - 1
        for w in neighbors[v]:
            around[w] |= lowest
    return np.array(color, np.int64)


def first_fit_trees(graph: Pattern, order: IntArray) -> IntArray:
    """Each vertex in turn gets the least color that keeps the coloring acyclic (algorithm 3.1).

    A color c is barred for v when a neighbor has it, or when two neighbors of v of one color are in
    the same tree of that color and c: v would close a cycle. ``tree[w][c]`` names the tree of the
    colors of w and c that contains w; trees that are connected are merged by union-find.
    """
    neighbors = graph.lists()
    n = len(neighbors)
    color = [-1] * n
    around = [0] * n
    tree: list[dict[int, int]] = [{} for _ in range(n)]
    parent: list[int] = []
    for v in order.tolist():
        by_color: dict[int, list[int]] = {}
        for w in neighbors[v]:
            if color[w] >= 0:
                by_color.setdefault(color[w], []).append(w)
        bits = around[v]
        for members in by_color.values():
            if len(members) > 1:
                bits |= _closing_colors(members, tree, parent)
        lowest = ~bits & (bits + 1)
        c = color[v] = lowest.bit_length() - 1
        for w in neighbors[v]:
            around[w] |= lowest
        for a, members in by_color.items():
            root = tree[v][a] = len(parent)
            parent.append(root)
            for w in members:
                parent[_find(parent, tree[w].setdefault(c, root))] = root
    return np.array(color, np.int64)


def _closing_colors(members: list[int], tree: list[dict[int, int]], parent: list[int]) -> int:
    """The colors, as bits, for which two of the equally colored members lie in one tree."""
    seen: dict[int, set[int]] = {}
    bits = 0
    for w in members:
        for c, name in tree[w].items():
            if bits >> c & 1:
                continue
            root = _find(parent, name)
            roots = seen.setdefault(c, set())
            if root in roots:
                bits |= 1 << c
            else:
                roots.add(root)
    return bits


def _find(parent: list[int], k: int) -> int:
    while parent[k] != k:
        parent[k] = parent[parent[k]]
        k = parent[k]
    return k


def is_acyclic_coloring(graph: Pattern, colors: IntArray) -> bool:
    """True if colors (n,) are proper and no cycle has only two of them."""
    return first_bad_pair(graph, colors) is None


def first_bad_pair(graph: Pattern, colors: IntArray) -> tuple[int, int] | None:
    """An edge whose ends have one color, or that lies in a component with a two-colored cycle.

    A vertex is copied once for every color among its neighbors, and the edges between two colors
    join the copies for that pair. The copies form a forest exactly when each component has one edge
    less than vertices.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    half = graph.rows < graph.indices
    u, v = graph.rows[half], graph.indices[half]
    if not len(u):
        return None
    equal = colors[u] == colors[v]
    if equal.any():
        k = int(np.argmax(equal))
        return int(u[k]), int(v[k])
    p = int(colors.max()) + 1
    ends = np.concatenate([u * p + colors[v], v * p + colors[u]])
    copies, ends = np.unique(ends, return_inverse=True)
    a, b = ends[: len(u)], ends[len(u) :]
    size = len(copies)
    links = coo_array((np.ones(len(u), bool), (a, b)), shape=(size, size))
    count, component = connected_components(links, directed=False)
    vertices = np.bincount(component, minlength=count)
    edges = np.bincount(component[a], minlength=count)
    cyclic = (edges >= vertices)[component[a]]
    if not cyclic.any():
        return None
    k = int(np.argmax(cyclic))
    return int(u[k]), int(v[k])
