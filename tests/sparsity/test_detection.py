"""Detected patterns: never too small, tight where the structure allows, zeros known from constants."""

import numpy as np
import pytest
import sympy

import symad
from symad import functions
from symad.errors import ShapeError
from symad.sparsity import hessian_sparsity, jacobian_sparsity
from tests.counting import calls
from tests.sparsity.cases import band, brusselator, entries_of, five_point


def numerically(graph, point, trials=3):
    """Which entries of the Jacobian differ from zero at random points, by the dense Jacobian."""
    dense = symad.jacobian(graph)
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(trials):
        values = [rng.uniform(0.2, 0.8, np.shape(v)) if np.ndim(v) else rng.uniform() for v in point]
        found = found | (np.asarray(dense(*values)) != 0)
    return found


def brusselator_rates(u, v):
    def laplacian(w):
        return sum(np.roll(w, s, a) for s in (1, -1) for a in (0, 1)) - 4 * w

    return 1 + u**2 * v - 4.4 * u + 10 * laplacian(u), 3.4 * u - u**2 * v + 10 * laplacian(v)


def heat(u):
    inner = u[2:] - 2 * u[1:-1] + u[:-2]
    return np.concatenate([u[:1], inner, u[-1:]])


def recurrence(h, x, a):
    return functions.scan(lambda c, v: np.tanh(a * c + v), h, x)[0]


L = np.tril(np.ones((5, 5)))

# name, function, example inputs: the pattern is exactly what is non-zero at random points
TIGHT = {
    "elementwise": (lambda x, y: np.sin(x) * y + 3, [np.ones((2, 3)), np.ones((2, 3))]),
    "broadcast": (lambda x, y: x[:, None] * y, [np.ones(3), np.ones((3, 4))]),
    "scalar": (lambda x, a: a * x[::2], [np.ones(5), 1.0]),
    "slices": (lambda x: x[3:0:-1] ** 2, [np.ones(6)]),
    "concatenate": (lambda x, y: np.concatenate([x * x, y[:1], x]), [np.ones(3), np.ones(2)]),
    "stack": (lambda x, y: np.stack([x, y * x]), [np.ones(3), np.ones(3)]),
    "roll": (lambda x: np.roll(x, 1) * x, [np.ones(5)]),
    "transpose": (lambda x: x.T * 2.0, [np.ones((2, 3))]),
    "matmul": (lambda x, y: x @ y, [np.ones((2, 3)), np.ones((3, 4))]),
    "sum": (lambda x: np.sum(x**2, axis=1), [np.ones((3, 4))]),
    "constant matrix": (lambda x: L @ x**2, [np.ones(5)]),
    "mask": (lambda x: np.tril(np.ones((4, 4))) * np.outer(x, x), [np.ones(4)]),
    "product": (lambda x: np.prod(x, axis=1), [np.ones((2, 3))]),
    "softmax": (lambda x: functions.softmax(x, axis=1), [np.ones((3, 4))]),
    "solve": (lambda a, b: np.linalg.solve(a + 4 * np.eye(3), b), [np.ones((3, 3)), np.ones(3)]),
    "heat": (heat, [np.ones(7)]),
}


@pytest.mark.parametrize("name", TIGHT)
def test_patterns_are_what_random_points_show(name):
    f, point = TIGHT[name]
    graph = symad.trace(f, point)
    found = jacobian_sparsity(graph)
    assert found.dtype == bool
    assert np.array_equal(found.toarray(), numerically(graph, point))


def test_the_brusselator():
    graph = symad.trace(brusselator_rates, [(6, 6), (6, 6)])
    found = jacobian_sparsity(graph)
    assert entries_of(found) == entries_of(brusselator(6))


def test_wrt_selects_and_orders_the_columns():
    graph = symad.trace(lambda x, y: x * y[0], [np.ones(3), np.ones(2)])
    both = jacobian_sparsity(graph).toarray()
    swapped = jacobian_sparsity(graph, [1, 0]).toarray()
    assert np.array_equal(swapped, both[:, [3, 4, 0, 1, 2]])
    assert np.array_equal(jacobian_sparsity(graph, 1).toarray(), both[:, 3:])


def test_hessians():
    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    graph = symad.trace(rosenbrock, [(9,)])
    assert entries_of(hessian_sparsity(graph)) == entries_of(band(9, 1))

    def energy(u):
        return np.sum((u[1:] - u[:-1]) ** 4) + np.sum((u[:, 1:] - u[:, :-1]) ** 4)

    assert entries_of(hessian_sparsity(symad.trace(energy, [(5, 5)]))) == entries_of(five_point(5))


def test_hessians_of_scalar_expressions():
    x = sympy.symbols("x:8", real=True)
    f = sum((x[i + 1] - x[i] ** 2) ** 2 for i in range(7)) + x[0] * x[7]
    wanted = {(int(i), int(j)) for i, j in zip(*np.nonzero(sympy.hessian(f, x)), strict=True)}
    assert entries_of(hessian_sparsity(f, list(x))) == wanted
    assert hessian_sparsity(x[0] + 2 * x[1], list(x)).nnz == 0


def test_an_input_that_does_not_occur_has_an_empty_column():
    x, y = sympy.symbols("x y")
    found = jacobian_sparsity(sympy.Matrix([x**2, sympy.sin(x)]), [x, y])
    assert found.toarray().tolist() == [[True, False], [True, False]]


def test_a_pattern_holds_for_all_inputs_and_a_local_one_at_its_point():
    x, y = sympy.symbols("x y", real=True)
    f = sympy.Matrix([x * y, sympy.Piecewise((x, x > 1), (y, True))])
    assert jacobian_sparsity(f, [x, y]).toarray().all()
    at_two = jacobian_sparsity(f, [x, y], at=(2.0, 0.0)).toarray()
    assert at_two.tolist() == [[False, True], [True, False]]
    at_zero = jacobian_sparsity(f, [x, y], at=(0.0, 3.0)).toarray()
    assert at_zero.tolist() == [[True, False], [False, True]]


def test_recurrences_look_back_only():
    h = sympy.Symbol("h", real=True)

    def states(h, x):
        def step(c, v):
            return np.tanh(c + v)

        out = []
        for t in range(4):
            h = step(h, x[t])
            out.append(h)
        return np.stack(out)

    found = jacobian_sparsity(symad.trace(states, [h, np.ones(4)])).toarray()
    wanted = np.hstack([np.ones((4, 1), bool), np.tril(np.ones((4, 4), bool))])
    assert np.array_equal(found, wanted)


def test_the_scan_rule_agrees_with_the_steps_written_out():
    from symad.core.graph import Graph
    from symad.core.questions import definition
    from symad.higher_order.scan import scan
    from symad.ops.arrays.stacking import concatenate
    from symad.ops.basic.arithmetic import add, mul
    from symad.ops.basic.shaping import slice_axis
    from symad.ops.basic.sources import input_node
    from symad.ops.elementwise.apply import apply

    h = input_node(sympy.IndexedBase("h", shape=(3,)), (3,))
    x = input_node(sympy.MatrixSymbol("X", 5, 3), (5, 3))
    a = input_node(sympy.Symbol("a", real=True))

    def body(c, v):
        shifted = concatenate([slice_axis(c, 0, 1, 2), slice_axis(c, 0, 0, 1)])
        return add(mul(a, apply(sympy.tanh, shifted)), v)

    y = scan(body, h, [x])
    found = jacobian_sparsity(Graph((h, x, a), (y,))).toarray()
    steps = jacobian_sparsity(Graph((h, x, a), (definition(y.op, y),))).toarray()
    assert np.array_equal(found, steps)
    # Element k of state t comes from element k + t of h, and of each input since.
    wanted = np.zeros((15, 19), bool)
    for t in range(5):
        for k in range(3):
            wanted[3 * t + k, (k + t + 1) % 3] = True
            for s in range(t + 1):
                wanted[3 * t + k, 3 + 3 * s + (k + t - s) % 3] = True
            wanted[3 * t + k, 18] = True
    assert np.array_equal(found, wanted)


def causal_attention(x, w):
    scores = np.where(np.tril(np.ones((4, 4))) > 0, (x @ w) @ x.T, -np.inf)
    return functions.softmax(scores, axis=1) @ x


def test_causality_shows_in_the_pattern():
    graph = symad.trace(causal_attention, [np.ones((4, 2)), np.ones((2, 2))])
    found = jacobian_sparsity(graph, 0).toarray().reshape(4, 2, 4, 2).any(axis=(1, 3))
    assert np.array_equal(found, np.tril(np.ones((4, 4), bool)))


def test_the_multiplicative_mask_is_not_causal():
    def leaking(x, w):
        return (functions.softmax((x @ w) @ x.T, axis=1) * np.tril(np.ones((4, 4)))) @ x

    graph = symad.trace(leaking, [np.ones((4, 2)), np.ones((2, 2))])
    found = jacobian_sparsity(graph, 0).toarray().reshape(4, 2, 4, 2).any(axis=(1, 3))
    assert found.all()


def test_gathers_with_known_and_with_unknown_indices():
    known = symad.trace(lambda c: functions.lookup(c, np.array([2, 0, 2])), [np.ones((4, 2))])
    found = jacobian_sparsity(known).toarray()
    assert np.array_equal(found, numerically(known, [np.ones((4, 2))]))
    unknown = symad.trace(lambda c, k: functions.lookup(c, k), [np.ones((4, 2)), np.ones(3)])
    found = jacobian_sparsity(unknown, 0).toarray()
    assert found.sum() == 3 * 2 * 4  # any row of the table, the same column


def test_symbolic_dimensions_need_numbers():
    n = sympy.Symbol("n", integer=True, positive=True)
    x = sympy.MatrixSymbol("x", n, 1)
    graph = symad.trace(x.T * x)
    with pytest.raises(ShapeError, match="needs numbers for the dimensions n of"):
        hessian_sparsity(graph)
    assert hessian_sparsity(graph.at({n: 3})).toarray().tolist() == np.eye(3, dtype=bool).tolist()


def test_patterns_of_array_graphs_take_no_step_for_an_element():
    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    work = []
    for n in (100, 10_000):
        graph = symad.trace(rosenbrock, [(n,)])
        assert hessian_sparsity(graph).nnz == 3 * n - 2
        work.append(calls(lambda graph=graph: hessian_sparsity(graph)))
    assert work[1] < 1.1 * work[0]


def example_nodes():
    """Every example of every op, with inputs of known shape; conditions as 1 and 0."""
    from symad.core.dims import is_concrete
    from symad.core.graph import Graph, topological
    from symad.op_examples import EXAMPLES
    from symad.ops.basic.sources import Input, constant
    from symad.ops.elementwise.selection import Condition, select
    from symad.saving.saved_ops import classes

    classes()  # loads all op families
    for op_class, make in sorted(EXAMPLES.items(), key=lambda item: item[0].__name__):
        for k, node in enumerate(make()):
            inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
            if isinstance(node.op, Condition):
                node = select(node, constant(1), constant(0))
            if inputs and all(is_concrete(n.shape) for n in (*inputs, node)):
                yield pytest.param(Graph(inputs, (node,)), id=f"{op_class.__name__} {k}")


@pytest.mark.parametrize("graph", list(example_nodes()))
def test_no_op_loses_a_dependency(graph):
    found = jacobian_sparsity(graph).toarray()
    rng = np.random.default_rng(1)
    dense = symad.jacobian(graph)
    for _ in range(2):
        point = [rng.uniform(0.1, 0.9, x.shape) if x.shape else 0.4 for x in graph.input_nodes]
        numeric = np.asarray(dense(*point))
        assert not (np.nan_to_num(numeric) != 0)[~found].any()
