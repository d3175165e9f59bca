"""First-fit colorings: each vertex in turn gets the minimum color that the condition of its kind leaves.

Columns of one color have no row in common, so the product of the matrix with their sum contains every one of
their entries: a partial distance-2 coloring of the bipartite graph of a pattern (A. R. Curtis, M. J. D.
Powell and J. K. Reid, J. Inst. Math. Appl. 13 (1974) 117; T. F. Coleman and J. J. Moré, SIAM J. Numer. Anal.
20 (1983) 187).

Star and acyclic colorings are proper; no path on four vertices, or no cycle, has only two colors (A. H.
Gebremedhin, A. Tarafdar, F. Manne and A. Pothen, New acyclic and star coloring algorithms with application
to computing Hessians, SIAM J. Sci. Comput. 29 (2007) 1042, algorithms 4.1 and 3.1).
"""

from __future__ import annotations

import numpy as np

from symad.sparsity.patterns.pattern import IntArray, Pattern


def first_fit(pattern: Pattern, order: IntArray) -> IntArray:
    """Each column in turn gets the minimum color free in all its rows: colors (n,) from 0.

    SciPy's compiled grouping computes the same for few colors, and is used if it exists.
    """
    fast = _grouped_by_scipy(pattern, order)
    return first_fit_bits(pattern, order) if fast is None else fast


def first_fit_bits(pattern: Pattern, order: IntArray) -> IntArray:
    """`first_fit` in Python: every row stores its colors as the bits of one integer."""
    rows_of = pattern.transposed.lists()
    used = [0] * pattern.shape[0]
    color = [0] * pattern.shape[1]
    for j in order.tolist():
        bits = 0
        for i in rows_of[j]:
            bits |= used[i]
        lowest = ~bits & (bits + 1)
        color[j] = lowest.bit_length() - 1
        for i in rows_of[j]:
            used[i] |= lowest
    return np.array(color, np.int64)


def _grouped_by_scipy(pattern: Pattern, order: IntArray) -> IntArray | None:
    """`first_fit` by ``scipy.optimize._group_columns``, which is private: None if it fails.

    It passes over all columns once for each color, so it is not used if there are many colors.
    """
    if not pattern.nnz or pattern.row_degrees.max() > 256:
        return None
    try:
        from scipy.optimize._group_columns import group_sparse
    except ImportError:
        return None
    m, n = pattern.shape
    by_column = pattern.transposed
    lengths = by_column.row_degrees[order]
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(lengths, out=indptr[1:])
    starts = np.repeat(by_column.indptr[order] - indptr[:-1], lengths)
    indices = by_column.indices[starts + np.arange(len(starts))].astype(np.int32)
    try:
        groups = np.asarray(group_sparse(m, n, indices, indptr), np.int64)
    except (TypeError, ValueError):
        return None
    colors = np.empty(n, np.int64)
    colors[order] = groups
    return colors


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
