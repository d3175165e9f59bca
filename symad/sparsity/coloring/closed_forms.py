"""Closed forms: colorings of bands, grids and stencils by homomorphisms.

When the vertices of a graph are the points of a box in Z^d, numbered row-major, and the graph is a
stencil (the differences of adjacent points are few), a homomorphism h from Z^d to a finite abelian
group with h(δ) ≠ 0 for every difference δ is a proper coloring: the color of a point is h(point).
So (i + 2j) mod 5 colors the columns of a 5-point stencil, (i + 3j) mod 9 or (i mod 3, j mod 3)
those of a 9-point one. Wrapped differences of periodic grids are just further differences.

The grid is not an input: strides are found from the differences of adjacent vertex numbers, and
the groups tried are Z_p and Z_s × Z_t with st = p, for p from the lower bound upwards. Differences
are collected from a sample of the vertices; every coloring is checked on the whole graph before
use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from symad.sparsity.coloring.lower_bounds import induced, middle_vertex, nearest
from symad.sparsity.patterns.pattern import IntArray, Pattern

MAX_OFFSETS = 250
"""A graph with more differences of vertex numbers than this, or than n/2, is not a stencil."""

MAX_STRIDE_CHOICES = 16
"""At most this many choices of strides are tried."""

WORK = 20_000_000
"""At most this many values of homomorphisms on differences are computed in one search."""

SAMPLE = 2000
"""The approximate number of vertices in the sample for the differences."""

NEAR = 150
"""Vertices of the neighborhood on which candidates are judged first."""

Matrix = NDArray[np.int64]


Judge = Callable[[Pattern, IntArray], bool]
"""A function that returns true if the colors of a graph are acceptable."""


def lattice_coloring(graph: Pattern, low: int, high: int, is_good: Judge, most: int) -> IntArray | None:
    """A good coloring of a stencil graph with at least ``low`` and less than ``high`` colors.

    The result has the minimum number of colors for which some homomorphism is good; None if there is none.
    Each candidate is tested on the neighborhood of a vertex first, and then on the whole graph.

    Args:
        graph: symmetric, without diagonal.
        low: the least number of colors to try.
        high: fewer colors than this.
        is_good: the test; it is not called for colors that are not proper.
        most: candidates for each group and each interpretation of the vertex numbers as points.
    """
    if not graph.nnz:
        return None  # one color suffices
    near = nearest(graph, middle_vertex(graph), NEAR)
    around = induced(graph, near)
    for colors in lattice_colorings(graph, low, high, most):
        if is_good(around, colors[near]) and is_good(graph, colors):
            return colors
    return None


def cyclic_blocks(graph: Pattern) -> IntArray:
    """The optimal coloring of a band that is closed to a ring, proper for every graph.

    If adjacent numbers differ by at most w around the ring, the n vertices are cut into ⌊n/(w+1)⌋ blocks
    of nearly equal length, and the color is the position in the block: vertices of one color are at least
    w + 1 apart. If every vertex is adjacent to all within w, fewer colors are impossible, as a class has at
    most ⌊n/(w+1)⌋ vertices.
    """
    n = graph.shape[0]
    apart = np.abs(graph.rows - graph.indices)
    reach = int(np.minimum(apart, n - apart).max(initial=0))
    blocks = max(1, n // (reach + 1))
    first = -(-np.arange(blocks + 1) * n // blocks)
    return np.arange(n) - np.repeat(first[:-1], np.diff(first))


def lattice_colorings(graph: Pattern, low: int, high: int, most: int) -> Iterator[IntArray]:
    """Candidates, proper on the sampled vertices, fewest colors first.

    At most ``most`` for each group and each interpretation of the vertex numbers as points.
    """
    readings = list(_readings(graph)) if low < high else []
    work = WORK
    for p in range(max(low, 2), high):
        for (points, differences), (s, t) in product(readings, _factorizations(p)):
            work -= p ** points.shape[1] * len(differences)
            if work < 0:
                return
            for first, second in _proper_maps(differences, s, t, most):
                yield (points @ first) % s * t + (points @ second) % t


def _readings(graph: Pattern) -> Iterator[tuple[Matrix, Matrix]]:
    """Vertex numbers interpreted as points (n, d) of a box, with the differences (k, d) of each case."""
    n = graph.shape[0]
    rows, columns = _sample(graph)
    offsets = np.unique(np.abs(columns - rows))
    if not 0 < len(offsets) <= min(MAX_OFFSETS, n // 2):
        return
    strides = [s for s in offsets.tolist() if 1 < s < n and n % s == 0]
    # The last coordinate is the slowest; three strides describe a grid in space or fields on a
    # plane.
    chains: list[tuple[int, ...]] = [(1, s, t) for s in strides for t in strides if s < t and t % s == 0]
    chains += [(1, s) for s in strides]
    for chain in [*chains[: MAX_STRIDE_CHOICES - 1], (1,)]:
        points = _points(n, chain)
        yield points, _distinct([at[columns] - at[rows] for at in points.T])


def _distinct(steps: Sequence[IntArray]) -> Matrix:
    """The different steps (k, d), from the lists of each coordinate."""
    low = [int(step.min(initial=0)) for step in steps]
    extent = tuple(int(step.max(initial=0)) - least + 1 for step, least in zip(steps, low, strict=True))
    from_low = tuple(step - least for step, least in zip(steps, low, strict=True))
    keys = np.unique(np.ravel_multi_index(from_low, extent))
    return np.stack(np.unravel_index(keys, extent), axis=1) + low


def _sample(graph: Pattern) -> tuple[IntArray, IntArray]:
    """The edges (row, column), row < column, of vertices at both ends and evenly in between."""
    n = graph.shape[0]
    step = max(1, n // SAMPLE) | 1  # odd, so that a column of a grid with even sides is not skipped
    near_ends = np.concatenate([np.arange(min(n, SAMPLE // 8)), np.arange(max(0, n - SAMPLE // 8), n)])
    chosen = np.union1d(np.arange(0, n, step), near_ends)
    degrees = graph.row_degrees[chosen]
    rows = np.repeat(chosen, degrees)
    starts = np.repeat(graph.indptr[chosen] - np.cumsum(degrees) + degrees, degrees)
    columns = graph.indices[starts + np.arange(len(rows))]
    return np.minimum(rows, columns), np.maximum(rows, columns)


def _points(n: int, strides: tuple[int, ...]) -> Matrix:
    """The coordinates of 0, ..., n − 1 for ascending strides, each dividing the next."""
    number = np.arange(n)
    ends = (*strides[1:], n)
    return np.stack([number % end // s for s, end in zip(strides, ends, strict=True)]).T


def _factorizations(p: int) -> list[tuple[int, int]]:
    """Groups of order p with at most two generators: Z_p, then Z_s × Z_t with s t = p."""
    return [(p, 1)] + [(p // t, t) for t in range(2, p) if p % t == 0 and t * t <= p]


def _proper_maps(differences: Matrix, s: int, t: int, most: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Coefficient vectors of maps to Z_s and to Z_t that together send no difference to 0."""
    d = differences.shape[1]
    first, second = _vectors(s, d), _vectors(t, d)
    with np.errstate(invalid="ignore"):  # some BLAS set the flag on lanes that are not used
        in_kernels = _kernel(first, differences, s) @ _kernel(second, differences, t).T
    for k, (a, b) in enumerate(zip(*np.nonzero(in_kernels == 0), strict=True)):
        if k == most:
            return
        yield first[a], second[b]


def _vectors(p: int, d: int) -> Matrix:
    return np.array(list(product(range(p), repeat=d)), np.int64)


def _kernel(vectors: Matrix, differences: Matrix, p: int) -> NDArray[np.float32]:
    """For each map (row) and each difference (column) 1 if the map sends it to 0, else 0."""
    return (vectors @ differences.T % p == 0).astype(np.float32)
