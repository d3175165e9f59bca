"""Patterns from every kind of matrix and graph, canonical and without losing stored zeros."""

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
import sympy

from symad.sparsity import PatternError, as_pattern, color
from symad.sparsity.patterns.pattern import Pattern
from tests.sparsity.cases import entries_of

DENSE = np.array([[0, 2, 0], [0, 0, 0], [5, 0, -1], [0, 0, 3]])
ENTRIES = {(0, 1), (2, 0), (2, 2), (3, 2)}


@pytest.mark.parametrize(
    "matrix",
    [
        DENSE,
        DENSE.tolist(),
        DENSE.astype(bool),
        DENSE * 1.5,
        sympy.Matrix(DENSE.tolist()),
        sympy.Matrix(DENSE.tolist()) * sympy.Symbol("x"),
        *[sp.csr_array(DENSE).asformat(f) for f in ("csr", "csc", "coo", "lil", "dok")],
        sp.csr_matrix(DENSE),
    ],
    ids=lambda m: getattr(m, "format", type(m).__name__),
)
def test_what_has_a_pattern(matrix):
    pattern = as_pattern(matrix)
    assert pattern.shape == (4, 3)
    assert pattern.nnz == 4
    assert entries_of(pattern.to_scipy()) == ENTRIES
    assert entries_of(pattern.transposed.to_scipy()) == {(j, i) for i, j in ENTRIES}


def test_entries_are_sorted_and_counted_once():
    pattern = Pattern.from_entries((2, 5), [1, 0, 1, 1, 0], [4, 2, 0, 4, 1])
    assert pattern.indptr.tolist() == [0, 2, 4]
    assert pattern.indices.tolist() == [1, 2, 0, 4]
    assert pattern.rows.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_stored_zeros_are_entries(form):
    if form == "dia":
        matrix = sp.dia_array((np.array([[1, 0, 3], [0, 0, 0]]), [0, 1]), shape=(3, 3))
        wanted = {(0, 0), (1, 1), (2, 2), (0, 1), (1, 2)}
    else:
        coo = sp.coo_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
        matrix = coo.asformat(form)
        wanted = {(0, 1), (1, 2)}
    assert entries_of(as_pattern(matrix).to_scipy()) == wanted
    assert color(matrix, "column").pattern.nnz == len(wanted)


def test_a_bipartite_graph_is_a_rectangular_matrix():
    graph = networkx.Graph()
    graph.add_nodes_from(["f", "g"], bipartite=0)
    graph.add_nodes_from(["x", "y", "z"], bipartite=1)
    graph.add_edges_from([("f", "x"), ("z", "f"), ("g", "y")])
    found = color(graph, "column")
    assert found.pattern.shape == (2, 3)
    assert found.by_label() == {"x": 0, "y": 0, "z": 1}
    assert color(graph, "row").by_label() == {"f": 0, "g": 0}
    rows, columns = color(graph, "bidirectional").by_label()
    assert set(rows) == {"f", "g"}
    assert set(columns) == {"x", "y", "z"}
    graph.add_edge("f", "g")
    with pytest.raises(PatternError, match="joins two nodes of one side"):
        color(graph, "column")


def test_any_other_graph_is_its_adjacency_matrix():
    graph = networkx.Graph([("a", "b"), ("b", "c"), ("c", "c")])
    assert entries_of(as_pattern(graph).to_scipy()) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)}
    directed = networkx.DiGraph([("a", "b"), ("b", "c")])
    assert entries_of(as_pattern(directed).to_scipy()) == {(0, 1), (1, 2)}


def test_symmetric_kinds_take_a_bipartite_graph_as_a_graph():
    found = color(networkx.complete_bipartite_graph(2, 3), "star")
    assert found.pattern.shape == (5, 5)
    assert found.num_colors == 3


def test_star_colorings_store_the_diagonal():
    found = color(networkx.path_graph(4), "star")
    assert found.pattern.nnz == 6 + 4
    matrix = np.diag([7, 0, 9, 1]) + np.diag([1, 2, 3], 1) + np.diag([1, 2, 3], -1)
    assert np.array_equal(found.decompress(found.compress(matrix)).toarray(), matrix)


@pytest.mark.parametrize("kind", ["star", "acyclic"])
def test_symmetric_kinds_need_symmetric_patterns(kind):
    with pytest.raises(PatternError, match=r"entry \(0, 2\) is stored and \(2, 0\) is not"):
        color([[1, 0, 1], [0, 1, 0], [0, 0, 1]], kind)
    with pytest.raises(PatternError, match="2×3 is not square"):
        color(np.ones((2, 3)), kind)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 0, 1], "not two-dimensional"),
        (3.0, "not two-dimensional"),
        ([[1, 0], [1]], "rows of equal length"),
        (sp.coo_array(np.ones(3)), "two axes"),
    ],
)
def test_what_has_no_pattern(given, message):
    with pytest.raises(PatternError, match=message):
        as_pattern(given)


def test_an_entry_outside_the_shape():
    with pytest.raises(PatternError, match=r"\(1, 5\) lies outside a pattern of shape 2×5"):
        Pattern.from_entries((2, 5), [0, 1], [4, 5])


def test_column_intersection():
    rng = np.random.default_rng(0)
    matrix = rng.random((7, 9)) < 0.3
    found = as_pattern(matrix).column_intersection()
    wanted = {(j, k) for j in range(9) for k in range(9) if j != k and (matrix[:, j] & matrix[:, k]).any()}
    assert entries_of(found.to_scipy()) == wanted
