"""Matrices for the tests of colorings, built literally, entry by entry."""

from itertools import product

import numpy as np
from scipy.sparse import coo_array

FIVE = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
NINE = list(product((-1, 0, 1), repeat=2))


def from_entries(shape, entries):
    rows, columns = zip(*sorted(entries), strict=True)
    return coo_array((np.ones(len(rows), bool), (rows, columns)), shape=shape).tocsr()


def stencil(sides, offsets, periodic=False):
    """The pattern of a stencil on a box: point p depends on the points p + offset."""
    points = {point: k for k, point in enumerate(product(*map(range, sides)))}
    entries = set()
    for point, k in points.items():
        for offset in offsets:
            near = tuple(a + b for a, b in zip(point, offset, strict=True))
            if periodic:
                near = tuple(a % s for a, s in zip(near, sides, strict=True))
            if near in points:
                entries.add((k, points[near]))
    return from_entries((len(points), len(points)), entries)


def five_point(n, periodic=False):
    return stencil((n, n), FIVE, periodic)


def nine_point(n, periodic=False):
    return stencil((n, n), NINE, periodic)


def brusselator(n):
    """The Jacobian of the 2-D Brusselator on a periodic n×n grid, state (u, v): 6 entries a row.

    u' = 1 + u²v − 4.4 u + α Δu,  v' = 3.4 u − u²v + α Δv,  Δ the 5-point Laplacian.
    """
    laplacian = five_point(n, periodic=True).tocoo()
    cells = n * n
    entries = {(k, k + cells) for k in range(cells)} | {(k + cells, k) for k in range(cells)}
    for i, j in zip(laplacian.row.tolist(), laplacian.col.tolist(), strict=True):
        entries |= {(i, j), (i + cells, j + cells)}
    return from_entries((2 * cells, 2 * cells), entries)


def band(n, k):
    return from_entries((n, n), {(i, j) for i in range(n) for j in range(max(0, i - k), min(n, i + k + 1))})


def cycle(n):
    return from_entries((n, n), {(i, (i + d) % n) for i in range(n) for d in (-1, 0, 1)})


def ring(n, k):
    """A band of half-width k closed to a ring."""
    return from_entries((n, n), {(i, (i + d) % n) for i in range(n) for d in range(-k, k + 1)})


def bordered(n, k, b):
    """A band of half-width k (0 for a diagonal) with b full rows and columns first."""
    entries = {(i, j) for i in range(n) for j in range(n) if min(i, j) < b or abs(i - j) <= k}
    return from_entries((n, n), entries)


def block_diagonal(blocks, k):
    n = blocks * k
    return from_entries((n, n), {(i, j) for i in range(n) for j in range(n) if i // k == j // k})


def block_bidiagonal(blocks, d):
    """The residual Jacobian of a recurrence: block row t holds the blocks t − 1 and t."""
    n = blocks * d
    entries = {(i, j) for i in range(n) for j in range(n) if i // d - j // d in (0, 1)}
    return from_entries((n, n), entries)


def edges_of(matrix):
    """The off-diagonal entries as a set of pairs."""
    return {(i, j) for i, j in entries_of(matrix) if i != j}


def entries_of(matrix):
    """The stored entries as a set of pairs."""
    entries = matrix.tocoo()
    return set(zip(entries.row.tolist(), entries.col.tolist(), strict=True))


def random_integers(rng, shape, density, dense_rows=0, symmetric=False):
    """A matrix of integers, non-zero where an independent draw says so, with some full rows."""
    m, n = shape
    kept = rng.random((m, n)) < density
    if dense_rows:
        kept[rng.choice(m, dense_rows, replace=False)] = True
    values = np.where(kept, rng.integers(1, 100, shape) * rng.choice([-1, 1], shape), 0)
    if symmetric:
        values = np.triu(values)
        values = values + np.triu(values, 1).T
    return values
