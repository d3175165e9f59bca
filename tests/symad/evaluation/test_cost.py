"""Operation counts and live memory, against counts made by hand."""

from itertools import pairwise

import pytest
import sympy

import symad
from symad.core.graph import Graph
from symad.cost import live_memory, schedule
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import inner, matmul, matrix_transpose, sum_all
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import array_constant, constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, select

x, y = sympy.symbols("x y", real=True)
m, n, k, d = sympy.symbols("m n k d", integer=True, positive=True)


def matrix(name, rows, columns):
    return input_node(sympy.MatrixSymbol(name, rows, columns), (rows, columns))


def chain(length):
    node = start = input_node(x)
    for _ in range(length):
        node = apply(sympy.sin, node)
    return Graph((start,), (node,))


def test_scalar_operations_count_one_each():
    assert symad.flops(sympy.sin(x) * y + 2) == 3
    assert symad.flops(x + x**2) == 2
    assert symad.flops(x / y - sympy.Max(x, y)) == 3


def test_a_common_subexpression_counts_once():
    s = sympy.sin(x)
    assert symad.flops([s + 1, s + 2]) == 3


def test_a_product_of_matrices_counts_2mnk():
    a, b = matrix("A", m, k), matrix("B", k, n)
    assert symad.flops(Graph((a, b), (matmul(a, b),))) == 2 * m * n * k
    assert symad.flops(Graph((a,), (matrix_transpose(a),))) == 0


def test_scores_of_attention():
    q, key, v = matrix("Q", n, d), matrix("K", n, d), matrix("V", n, d)
    scores = matmul(q, matrix_transpose(key))
    g = Graph((q, key, v), (matmul(apply(sympy.exp, scores), v),))
    assert symad.flops(g) == 4 * n**2 * d + n**2


def test_a_gradient_by_reverse_mode_costs_a_few_evaluations():
    a = matrix("A", n, n)
    g = Graph((a,), (sum_all(apply(sympy.tanh, matmul(a, a))),))
    ratio = sympy.limit(symad.flops(symad.gradient(g)) / symad.flops(g), n, sympy.oo)
    assert ratio == 3  # one product forwards, two backwards


def test_memory_of_a_chain_by_hand():
    assert live_memory(chain(3)) == [8, 16, 16, 16]
    assert symad.memory(chain(3)) == 16


def test_forward_mode_needs_constant_memory_and_reverse_mode_linear():
    forward = [symad.memory(symad.pushforward(chain(length))) for length in (10, 20, 40)]
    reverse = [symad.memory(symad.gradient(chain(length))) for length in (10, 20, 40)]
    assert len(set(forward)) == 1
    assert reverse[1] - reverse[0] == 10 * 8
    assert reverse[2] - reverse[1] == 20 * 8


def test_the_curve_of_reverse_mode_rises_then_falls():
    curve = live_memory(symad.gradient(chain(30)))
    peak = curve.index(max(curve))
    assert all(a <= b for a, b in pairwise(curve[: peak + 1]))
    assert all(a >= b for a, b in pairwise(curve[peak:]))
    assert curve[0] < max(curve) / 5
    assert curve[-1] < max(curve) / 5


def test_symbolic_memory_is_the_largest_of_all_steps():
    a, b = matrix("A", m, k), matrix("B", k, n)
    product = Graph((a, b), (matmul(a, b),))
    assert symad.memory(product) == 8 * (m * k + k * n + m * n)
    assert symad.memory(Graph((a,), (inner(a, a),))) == 8 * m * k + 8
    assert symad.memory(Graph((a,), (sum_all(mul(a, a)),))) == 16 * m * k


def test_where_no_step_dominates_the_answer_is_a_maximum():
    a = matrix("A", m, 1)
    wide = broadcast_to(reshape(sum_all(a), (1, 1)), (1, n))
    peak = symad.memory(Graph((a,), (apply(sympy.sin, wide),)))
    assert peak == sympy.Max(8 * m + 8, 8 * n + 8)


def test_views_own_no_memory():
    a = matrix("A", 3, 4)
    views = Graph((a,), (reshape(matrix_transpose(a), (12,)),))
    assert live_memory(views) == [96] * 3


def test_literals_are_free_and_arrays_and_truth_values_are_not():
    a = matrix("A", 2, 2)
    table = array_constant([[1.0, 2.0], [3.0, 4.0]])
    g = Graph((a,), (select(compare("<", a, table), a, constant(0)),))
    assert symad.memory(g) == 32 + 32 + 4 + 32 - 32  # the table is read for the last time before


def test_the_schedule_computes_arguments_first():
    g = symad.gradient(sympy.sin(x * y) * sympy.exp(x) + sympy.sqrt(y))
    order = schedule(g)
    assert set(order) == set(g.nodes)
    position = {node: k for k, node in enumerate(order)}
    assert all(position[a] < position[node] for node in order for a in node.args)


@pytest.mark.parametrize("mode", ["forward-over-reverse", "forward-over-forward"])
def test_hessian_costs_are_numbers(mode):
    h = symad.hessian(sympy.sin(x * y) * sympy.exp(x), mode=mode)
    assert symad.flops(h).is_Integer
    assert symad.memory(h).is_Integer


@pytest.mark.thorough
def test_long_graphs_are_counted_without_recursion():
    node = start = input_node(x)
    for _ in range(20_000):
        node = add(apply(sympy.sin, node), start)
    g = Graph((start,), (node,))
    assert symad.flops(g) == 40_000
    assert symad.memory(g) == 24
