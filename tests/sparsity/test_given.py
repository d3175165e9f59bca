"""Colorings supplied by a user: accepted when valid, refused with a conflicting pair otherwise."""

import networkx
import numpy as np
import pytest

from symad.sparsity import ColoringError, color
from tests.sparsity.cases import band, bordered, edges_of, entries_of, five_point, random_integers
from tests.sparsity.coloring_definitions import (
    acyclic_fault,
    bidirectional_fault,
    column_fault,
    star_fault,
)

FOUR_BY_FIVE = [[0, 1, 0, 1, 0], [0, 0, 0, 1, 1], [0, 1, 1, 0, 0], [1, 0, 1, 0, 0]]


@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_a_valid_coloring_is_taken_as_it_is(kind):
    matrix = five_point(4)
    best = color(matrix, kind)
    again = color(matrix, kind, colors=best.colors)
    assert again.num_colors == best.num_colors
    assert again.method == "given"
    values = matrix.toarray().astype(int)
    assert np.array_equal(again.decompress(again.compress(values)).toarray(), values)


def test_colors_are_renumbered_without_gaps():
    found = color(FOUR_BY_FIVE, "column", colors=[10, 10, 7, 7, 10])
    assert found.colors.tolist() == [1, 1, 0, 0, 1]
    assert found.num_colors == 2


def test_a_networkx_coloring_as_a_dict():
    graph = networkx.path_graph(["a", "b", "c", "d", "e"])
    found = color(graph, "acyclic", colors=networkx.greedy_color(graph))
    assert found.num_colors == 2
    with pytest.raises(ColoringError, match="no color for 'e'"):
        color(graph, "acyclic", colors={"a": 0, "b": 1, "c": 0, "d": 1})


@pytest.mark.parametrize(
    ("kind", "colors", "message"),
    [
        ("column", [0, 0, 1, 0, 1], "columns 1 and 3 have the same color 0, but both have an entry "
         "in row 0"),
        ("row", [0, 0, 1, 2], "rows 0 and 1 have the same color 0, but both have an entry in "
         "column 3"),
        ("bidirectional", ([0, 0, 0, 0], [1, 1, 2, 1, 2]), r"entry \(0, 1\) cannot be read: column "
         "1 shares its color 1 with column 3, and row 0 has no color"),
        ("bidirectional", ([1, 1, 0, 0], [1, 1, 2, 0, 2]), r"entry \(0, 3\) cannot be read: column "
         "3 has no color, and row 0 shares its color 1 with row 1"),
    ],
)  # fmt: skip
def test_the_error_names_a_conflicting_pair(kind, colors, message):
    with pytest.raises(ColoringError, match=message):
        color(FOUR_BY_FIVE, kind, colors=colors)


def test_the_errors_of_symmetric_kinds():
    path = networkx.path_graph(4)
    with pytest.raises(ColoringError, match="vertices 1 and 2 have the same color 1, but are adja"):
        color(path, "star", colors=[0, 1, 1, 0])
    with pytest.raises(ColoringError, match="path 0 – 1 – 2 – 3 has only the colors 1 and 0"):
        color(path, "star", colors=[0, 1, 0, 1])
    assert color(path, "acyclic", colors=[0, 1, 0, 1]).num_colors == 2
    with pytest.raises(ColoringError, match="cycle with only the colors 0 and 1"):
        color(networkx.cycle_graph(4), "acyclic", colors=[0, 1, 0, 1])


@pytest.mark.parametrize(
    ("kind", "colors", "message"),
    [
        ("column", [0, 1, 2], "5 integers from 0, not an array of shape"),
        ("column", [0, 1, 2, 3, -1], "5 integers from 0"),
        ("column", [0.0, 1.0, 2.0, 3.0, 4.0], "5 integers from 0"),
        ("bidirectional", 3, "a pair"),
    ],
)
def test_what_is_no_coloring_at_all(kind, colors, message):
    with pytest.raises(ColoringError, match=message):
        color(FOUR_BY_FIVE, kind, colors=colors)


def accepted(matrix, kind, colors):
    try:
        color(matrix, kind, colors=colors)
    except ColoringError:
        return False
    return True


@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_the_check_agrees_with_the_definition(kind):
    rng = np.random.default_rng(9)
    verdicts = set()
    for _ in range(300):
        matrix = band(5, 1) if rng.random() < 0.5 else bordered(5, 0, 1)
        if kind in ("column", "row", "bidirectional"):
            matrix = random_integers(rng, (5, 5), 0.35) != 0
            matrix = color(matrix, "column").pattern.to_scipy()
        colors = rng.integers(0, 3, 5)
        if kind == "bidirectional":
            colors = (rng.integers(0, 4, 5), rng.integers(0, 4, 5))
            fault = bidirectional_fault(entries_of(matrix), *colors)
        elif kind in ("star", "acyclic"):
            fault = (star_fault if kind == "star" else acyclic_fault)(edges_of(matrix), colors)
        else:
            entries = entries_of(matrix)
            entries = {(j, i) for i, j in entries} if kind == "row" else entries
            fault = column_fault(entries, colors)
        assert accepted(matrix, kind, colors) == (fault is None)
        verdicts.add(fault is None)
    assert verdicts == {True, False}
