"""Color counts on known matrices: optima proved elsewhere, and what plain greedy coloring needs.

The optima of small cases were proved by SAT, those of whole families by counting or by theorems
(bands; 5-point grids: G. Fertin, A. Raspaud, B. Reed, J. Graph Theory 47 (2004) 163). ``most`` is
the best count of first-fit in the orders natural, largest first, smallest last, incidence degree.
"""

import pytest

from symad.sparsity import acyclic, bidirectional, color, column, star
from tests.sparsity.cases import (
    band,
    block_bidiagonal,
    block_diagonal,
    bordered,
    brusselator,
    cycle,
    edges_of,
    entries_of,
    five_point,
    nine_point,
    ring,
)
from tests.sparsity.coloring_definitions import (
    acyclic_fault,
    bidirectional_fault,
    column_fault,
    star_fault,
)

OPTIMAL_COLUMNS = [
    ("diagonal", band(12, 0), 1),
    ("tridiagonal", band(30, 1), 3),
    ("band 2", band(30, 2), 5),
    ("band 3", band(30, 3), 7),
    ("band 5", band(60, 5), 11),
    ("cycle 5", cycle(5), 5),
    ("cycle 6", cycle(6), 3),
    ("cycle 9", cycle(9), 3),
    ("block diagonal", block_diagonal(7, 4), 4),
    ("block bidiagonal", block_bidiagonal(6, 3), 6),
    ("arrow", bordered(15, 0, 1), 15),
    ("bordered band", bordered(20, 2, 2), 20),
    *[(f"5-point {n}", five_point(n), 5) for n in (4, 5, 6, 7, 8, 13, 20)],
    *[(f"5-point periodic {n}", five_point(n, periodic=True), 5) for n in (5, 10, 20)],
    *[(f"5-point periodic {n}", five_point(n, periodic=True), 6) for n in (6, 16)],
    *[(f"9-point {n}", nine_point(n), 9) for n in (4, 5, 6, 15)],
    *[(f"Brusselator {n}", brusselator(n), 6) for n in (6, 12, 18)],
    *[(f"Brusselator {n}", brusselator(n), 7) for n in (7, 9)],
    ("ring of 61, 5 a row", ring(61, 2), 6),  # 12 blocks of 5 and 6
    ("ring of 1000, 21 a row", ring(1000, 10), 22),
]


@pytest.mark.sample(16, without=("5-point 20",))
@pytest.mark.parametrize(
    ("matrix", "optimum"), [c[1:] for c in OPTIMAL_COLUMNS], ids=[c[0] for c in OPTIMAL_COLUMNS]
)
def test_columns_at_the_optimum(matrix, optimum):
    found = column(matrix)
    assert found.num_colors == optimum
    assert found.lower_bound <= optimum
    if matrix.nnz < 2000:
        assert column_fault(entries_of(matrix), found.colors.tolist()) is None


@pytest.mark.parametrize(
    ("matrix", "least", "most"),
    [
        (five_point(17, periodic=True), 6, 7),
        (brusselator(5), 7, 9),
        (brusselator(10), 7, 8),
        (brusselator(8), 7, 8),
        (brusselator(32), 7, 10),  # plain greedy needs 12
    ],
    ids=[
        "5-point periodic 17",
        "Brusselator 5",
        "Brusselator 10",
        "Brusselator 8",
        "Brusselator 32",
    ],
)
def test_columns_between_the_bounds(matrix, least, most):
    found = column(matrix)
    assert least <= found.num_colors <= most
    assert found.lower_bound <= most


def test_the_brusselator_does_better_than_the_target_by_a_closed_form():
    assert column(brusselator(32)).num_colors == 8


# matrix, star optimum (None: not known), star at most, acyclic optimum, acyclic at most
SYMMETRIC = [
    ("diagonal", band(12, 0), 1, 1, 1, 1),
    ("tridiagonal", band(30, 1), 3, 3, 2, 2),
    ("band 2", band(30, 2), 5, 5, 3, 3),
    ("band 3", band(30, 3), 7, 7, 4, 4),
    ("band 5", band(60, 5), 11, 11, 6, 6),
    ("cycle 5", cycle(5), 4, 4, 3, 3),
    ("cycle 6", cycle(6), 3, 3, 3, 3),
    ("cycle 9", cycle(9), 3, 3, 3, 3),
    ("block diagonal", block_diagonal(7, 4), 4, 4, 4, 4),
    ("arrow", bordered(15, 0, 1), 2, 2, 2, 2),
    ("arrow of 2", bordered(12, 0, 2), 3, 3, 3, 3),
    ("bordered band", bordered(60, 5, 5), 16, 16, 11, 11),
    *[(f"5-point {n}", five_point(n), 5, 5, 3, 3) for n in (4, 5, 6, 8, 20)],
    ("5-point periodic 6", five_point(6, periodic=True), 5, 7, 4, 5),
    ("5-point periodic 7", five_point(7, periodic=True), 5, 7, 4, 5),
    ("5-point periodic 10", five_point(10, periodic=True), 5, 7, 4, 5),
    ("9-point 4", nine_point(4), 7, 11, 5, 6),
    ("9-point 8", nine_point(8), 8, 11, 5, 6),
    ("Brusselator 5", brusselator(5), 6, 9, 4, 5),
    ("Brusselator 6", brusselator(6), 6, 9, 4, 5),
    ("Brusselator 8", brusselator(8), 6, 9, 4, 5),
]


@pytest.mark.parametrize(
    ("matrix", "star_optimum", "star_most", "acyclic_optimum", "acyclic_most"),
    [c[1:] for c in SYMMETRIC],
    ids=[c[0] for c in SYMMETRIC],
)
def test_symmetric_matrices(matrix, star_optimum, star_most, acyclic_optimum, acyclic_most):
    direct, substituted = star(matrix), acyclic(matrix)
    assert star_optimum <= direct.num_colors <= star_most
    assert acyclic_optimum <= substituted.num_colors <= acyclic_most
    assert direct.lower_bound <= star_optimum
    assert substituted.lower_bound <= acyclic_optimum
    assert star_fault(edges_of(matrix), direct.colors.tolist()) is None
    assert acyclic_fault(edges_of(matrix), substituted.colors.tolist()) is None


@pytest.mark.parametrize("n", [5, 10, 30])
def test_star_bounds_prove_the_optimum_on_grids_and_narrow_bands(n):
    assert star(five_point(n)).optimal
    assert star(band(2 * n + 20, 3)).optimal


BOTH_SIDES = [
    ("arrow 10", bordered(10, 0, 1), (1, 2), 3),
    ("arrow of 2", bordered(12, 0, 2), (2, 3), 5),
    ("band 1, border 1", bordered(12, 1, 1), (1, 4), 5),
    ("band 5, border 5", bordered(400, 5, 5), (5, 16), 21),
]


@pytest.mark.parametrize(
    ("matrix", "sides", "optimum"), [c[1:] for c in BOTH_SIDES], ids=[c[0] for c in BOTH_SIDES]
)
def test_both_sides_at_the_optimum(matrix, sides, optimum):
    found = bidirectional(matrix)
    assert found.num_colors == optimum
    assert found.optimal
    assert sorted((found.row_colors, found.column_colors)) == sorted(sides)
    if matrix.nnz < 2000:
        row_colors, column_colors = found.colors
        assert bidirectional_fault(entries_of(matrix), row_colors, column_colors) is None


def test_peeling_beats_either_side_alone_by_far():
    matrix = bordered(10, 0, 1)
    assert color(matrix, "row").num_colors == color(matrix, "column").num_colors == 10


# The 4×5 pattern with non-zeros (row: columns) 1: 2, 4 · 2: 4, 5 · 3: 2, 3 · 4: 1, 3.
FOUR_BY_FIVE = [[0, 1, 0, 1, 0], [0, 0, 0, 1, 1], [0, 1, 1, 0, 0], [1, 0, 1, 0, 0]]


def test_the_4_by_5_pattern_takes_two_jvps_with_these_seeds():
    found = column(FOUR_BY_FIVE)
    assert found.num_colors == found.lower_bound == 2
    assert found.seeds(int).T.tolist() == [[1, 1, 0, 0, 1], [0, 0, 1, 1, 0]]


def test_the_4_by_5_pattern_takes_two_vjps_with_rows_1_4_and_2_3():
    found = color(FOUR_BY_FIVE, "row")
    assert found.num_colors == found.lower_bound == 2
    assert found.seeds(int).T.tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
