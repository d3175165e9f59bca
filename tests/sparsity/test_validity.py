"""Every kind on random matrices: valid by definition, exact round trip, above the lower bound."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from symad.sparsity import ORDERS, color
from tests.sparsity.cases import random_integers
from tests.sparsity.coloring_definitions import (
    acyclic_fault,
    bidirectional_fault,
    column_fault,
    row_fault,
    star_fault,
)

SHAPES = [(10, 20), (20, 10), (20, 20), (1, 7), (7, 1)]
LARGE = [(60, 120), (120, 60), (70, 70)]
DENSITIES = [0.0, 0.05, 0.1, 0.2, 0.5]


def entries(matrix):
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(matrix), strict=True)}


def fault(kind, matrix, colors):
    if kind == "column":
        return column_fault(entries(matrix), colors.tolist())
    if kind == "row":
        return row_fault(entries(matrix), colors.tolist())
    if kind == "bidirectional":
        return bidirectional_fault(entries(matrix), colors[0].tolist(), colors[1].tolist())
    edges = {(i, j) for i, j in entries(matrix) if i != j}
    return (star_fault if kind == "star" else acyclic_fault)(edges, colors.tolist())


def matrices(kind, shapes, densities, seed):
    symmetric = kind in ("star", "acyclic")
    rng = np.random.default_rng(seed)
    for m, n in shapes:
        for density in densities:
            for dense_rows in (0, 1):
                shape = (n, n) if symmetric else (m, n)
                yield random_integers(rng, shape, density, dense_rows, symmetric)


def check(kind, matrix, order=None, judged=True):
    found = color(matrix, kind, order)
    if judged:
        assert fault(kind, matrix, found.colors) is None
    assert found.lower_bound <= found.num_colors
    given = csr_array(matrix)
    for compressed in (found.compress(matrix), found.compress(given)):
        back = found.decompress(compressed)
        assert back.dtype == np.int64
        assert np.array_equal(back.toarray(), matrix)
    if kind == "acyclic":
        back = found.decompress(found.compress(matrix), method="prefix")
        assert np.array_equal(back.toarray(), matrix)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_random_matrices(kind):
    for matrix in matrices(kind, SHAPES, DENSITIES, seed=1):
        check(kind, matrix)


@pytest.mark.parametrize("order", [name for name in ORDERS if name != "perfect_elimination"])
@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_random_matrices_in_every_order(kind, order):
    for matrix in matrices(kind, [(15, 18)], [0.1, 0.3], seed=2):
        assert check(kind, matrix, order).num_colors >= color(matrix, kind).num_colors


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_larger_random_matrices_round_trip(kind):
    # A matrix that comes back exactly with random entries is colored well enough; the literal
    # definitions would take minutes here; the judge of every coloring (conftest) is faster.
    for matrix in matrices(kind, LARGE, [0.02, 0.1, 0.5], seed=3):
        check(kind, matrix, judged=False)


@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_rows_and_columns_without_entries(kind):
    matrix = np.zeros((9, 9), int)
    matrix[2, 5] = matrix[5, 2] = 3
    matrix[5, 5] = -4
    check(kind, matrix)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (4, 6)])
@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_matrices_without_entries(kind, shape):
    if kind in ("star", "acyclic"):
        shape = (shape[1], shape[1])
    found = check(kind, np.zeros(shape, int), judged=False)
    side = {"row": shape[0], "bidirectional": 0}.get(kind, shape[1])
    assert found.num_colors == min(side, 1)


@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_disconnected_blocks_reuse_the_colors_of_one(kind):
    block = np.array([[1, 2, 0], [2, 3, 4], [0, 4, 5]])
    one = check(kind, block).num_colors
    assert check(kind, np.kron(np.eye(6, dtype=int), block)).num_colors == one


@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_colors_are_the_same_every_time_and_numbered_without_gaps(kind):
    rng = np.random.default_rng(5)
    matrix = random_integers(rng, (30, 30), 0.1, symmetric=True)
    first, second = color(matrix, kind), color(matrix, kind)
    sides = first.colors if kind == "bidirectional" else [first.colors]
    again = second.colors if kind == "bidirectional" else [second.colors]
    used = 0
    for one, other in zip(sides, again, strict=True):
        assert np.array_equal(one, other)
        numbers = set(one.tolist())
        if kind == "bidirectional":
            assert numbers - {0} == set(range(1, len(numbers - {0}) + 1))
            used += len(numbers - {0})
        else:
            assert numbers == set(range(len(numbers)))
            used += len(numbers)
    assert first.num_colors == used


@pytest.mark.thorough
def test_kinds_are_ordered_acyclic_star_column():
    rng = np.random.default_rng(6)
    for density in (0.05, 0.1, 0.3):
        matrix = random_integers(rng, (40, 40), density, symmetric=True)
        np.fill_diagonal(matrix, 1)
        counts = [color(matrix, kind).num_colors for kind in ("acyclic", "star", "column")]
        assert counts == sorted(counts)
