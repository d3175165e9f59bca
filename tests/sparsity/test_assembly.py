"""The op whose value is a sparse matrix: its values, and the input that it refuses."""

import subprocess
import sys

import numpy as np
import pytest
import sympy

import symad
from symad.core.graph import Graph, Node
from symad.core.questions import definition, flops, transpose
from symad.errors import ShapeError
from symad.numeric import lower
from symad.ops.basic.sources import array_constant, input_node
from symad.ops.sparse.csr import compressed_rows
from symad.sparsity import Pattern, sparse_hessian

PATTERN = Pattern.from_entries((2, 3), [0, 0, 1], [0, 2, 1])


def example():
    a, b = (input_node(sympy.MatrixSymbol(name, k, 1), (k, 1)) for name, k in (("a", 2), ("b", 1)))
    node = compressed_rows(PATTERN.shape, PATTERN.indptr, PATTERN.indices, [(a, [0, 2]), (b, [1])])
    return Graph((a, b), (node,))


A, B = np.array([[1.0], [2.0]]), np.array([[3.0]])
DENSE = [[1, 0, 3], [0, 2, 0]]


def test_parts_go_to_their_places():
    value = example()(A, B)
    assert value.format == "csr"
    assert value.toarray().tolist() == DENSE


def test_the_definition_is_the_dense_matrix():
    graph = example()
    (node,) = graph.output_nodes
    dense = Graph(graph.input_nodes, (definition(node.op, node),))
    assert dense(A, B).tolist() == DENSE
    assert flops(node.op, node) == 0


def test_the_transpose_reads_the_entries():
    graph = example()
    (node,) = graph.output_nodes
    bar = array_constant(np.arange(6.0).reshape(2, 3))
    bars = transpose(node.op, node, bar, (True, True))
    a_bar, b_bar = Graph((), bars, symad.core.graph.TupleOf((None, None)))()
    assert a_bar.tolist() == [[0], [4]]
    assert b_bar.tolist() == [[2]]


def test_other_numbers_give_a_dense_array():
    a = sympy.symbols("a:3")
    value = example()(np.array([[a[0]], [a[1]]]), np.array([[a[2]]]))
    assert value.tolist() == [[a[0], 0, a[2]], [0, a[1], 0]]


def test_parts_that_meet_are_added_and_scalars_stand_everywhere():
    a = input_node(sympy.MatrixSymbol("a", 2, 1), (2, 1))
    c = input_node(sympy.Symbol("c", real=True))
    parts = [(a, [0, 2]), (c, [1, 2]), (c, [0])]
    node = compressed_rows(PATTERN.shape, PATTERN.indptr, PATTERN.indices, parts)
    graph = Graph((a, c), (node,))
    wanted = [[11, 0, 10], [0, 12, 0]]
    assert graph(A, 10.0).toarray().tolist() == wanted
    assert lower(graph)(A, 10.0).toarray().tolist() == wanted
    assert Graph((a, c), (definition(node.op, node),))(A, 10.0).tolist() == wanted
    bar = array_constant(np.arange(6.0).reshape(2, 3))
    bars = transpose(node.op, node, bar, (True, True, True))
    a_bar, c_bar, last = Graph((), bars, symad.core.graph.TupleOf((None, None, None)))()
    assert a_bar.tolist() == [[0], [4]]
    assert (c_bar, last) == (6, 0)
    several = symad.vmap(graph, in_axes=(None, 0))(A, np.array([10.0, 20.0]))
    assert several.tolist() == [wanted, [[21, 0, 20], [0, 22, 0]]]
    pushed = symad.pushforward(graph)(A, 10.0, A, 0.0)[1]
    assert pushed.tolist() == [[1, 0, 0], [0, 2, 0]]


def test_the_parts_must_fill_the_pattern():
    a = array_constant(np.zeros(2))
    for places, message in [
        ([0, 1], "do not fill the 3 stored entries"),
        ([0, 0], "several values for one stored entry"),
        ([1, 3], "outside of the 3 stored entries"),
    ]:
        with pytest.raises(ShapeError, match=message):
            compressed_rows((2, 3), PATTERN.indptr, PATTERN.indices, [(a, places)])
    node = example().output_nodes[0]
    with pytest.raises(ShapeError, match="were given for"):
        Node.of(node.op, node.args[::-1])


@pytest.mark.thorough
def test_a_saved_graph_is_known_in_another_process(tmp_path):
    sparse = sparse_hessian(symad.trace(lambda x: np.sum(x[1:] ** 2 * x[:-1]), [(5,)]))
    path = symad.save(sparse, tmp_path / "hessian.json")
    assert symad.load(path) is sparse
    code = f"import symad, numpy;print(symad.load({str(path)!r})(numpy.arange(5.0)).toarray().tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(sparse(np.arange(5.0)).toarray().tolist())
