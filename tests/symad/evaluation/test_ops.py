"""Every op's rules, on the example nodes in the op's own file.

Tangents against central differences of the evaluated op at 50 digits; transposes against tangents by
the inner-product identity; the four Hessians against differences of the gradient and each other;
batches against Python loops; definitions against the ops that they define.
"""

import mpmath
import numpy as np
import pytest
import sympy
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad.core.graph import Graph, Node, TupleOf, topological
from symad.core.questions import batch, definition, evaluate, flops, jvp
from symad.derivatives.hessian import MODES
from symad.errors import ShapeError
from symad.op_examples import EXAMPLES
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.arrays.reduction import extreme, product
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import einsum, sum_all
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import Input, array_constant, eye, input_node
from symad.ops.elementwise.selection import Condition

DIGITS = 50


def _id(node):
    return f"{type(node.op).__name__}"


def _inputs(node):
    return tuple(m for m in topological([node]) if isinstance(m.op, Input))


NODES = [node for make in EXAMPLES.values() for node in make()]
SMOOTH = [
    node
    for node in NODES
    if _inputs(node) and not isinstance(node.op, Condition) and not Graph(_inputs(node), (node,)).dims
]


def graph_of(node):
    return Graph(_inputs(node), (node,))


def point_for(graph, seed=0, low=0.1, high=0.9):
    """Values in (0.1, 0.9): inside every example's domain, away from ties and jumps."""
    rng = np.random.default_rng(seed)
    return [_random(rng, m.shape, low, high) for m in graph.input_nodes]


def _random(rng, shape, low=-1.0, high=1.0):
    value = rng.uniform(low, high, shape)
    return value if shape else float(value)


def to_mp(value):
    if isinstance(value, np.ndarray):
        return np.frompyfunc(mpmath.mpf, 1, 1)(value)
    return mpmath.mpf(value)


def elements(value):
    return np.ravel(np.asarray(value, dtype=object)).tolist()


def inner_product(a, b):
    return mpmath.fsum(p * q for p, q in zip(elements(a), elements(b), strict=True))


def assert_same(got, expected, tolerance):
    """Relative to the largest element."""
    mine, theirs = elements(got), elements(expected)
    assert len(mine) == len(theirs)
    scale = max([1, *map(abs, theirs)])
    assert max((abs(p - q) for p, q in zip(mine, theirs, strict=True)), default=0) <= tolerance * scale


def moved(values, directions, step):
    return [v + step * d for v, d in zip(values, directions, strict=True)]


@pytest.mark.parametrize("node", SMOOTH, ids=_id)
def test_tangents_are_directional_derivatives(node):
    graph = graph_of(node)
    directions = point_for(graph, seed=1, low=-1)
    with mpmath.workdps(DIGITS):
        point, v = [to_mp(p) for p in point_for(graph)], [to_mp(d) for d in directions]
        step = mpmath.mpf("1e-15")
        up, down = graph(*moved(point, v, step)), graph(*moved(point, v, -step))
        expected = [(p - q) / (2 * step) for p, q in zip(elements(up), elements(down), strict=True)]
        _, tangent = symad.pushforward(graph)(*point, *v)
        assert_same(tangent, expected, 1e-25)


@pytest.mark.parametrize("node", SMOOTH, ids=_id)
def test_pullbacks_are_transposes(node):
    """⟨w, J v⟩ = ⟨Jᵀ w, v⟩ for random v and w."""
    graph = graph_of(node)
    rng = np.random.default_rng(2)
    with mpmath.workdps(DIGITS):
        point = [to_mp(p) for p in point_for(graph)]
        v = [to_mp(_random(rng, m.shape)) for m in graph.input_nodes]
        w = to_mp(_random(rng, node.shape))
        _, y_dot = symad.pushforward(graph)(*point, *v)
        _, *x_bars = symad.pullback(graph)(*point, w)
        left = inner_product(w, y_dot)
        right = mpmath.fsum(inner_product(x, d) for x, d in zip(x_bars, v, strict=True))
        assert abs(left - right) <= mpmath.mpf("1e-40") * (1 + abs(left))


def scalar_of(node):
    """A scalar function with curvature: Σ c y², c constant."""
    weights = np.random.default_rng(3).uniform(0.5, 1.5, node.shape)
    flat = reshape(node, (weights.size,))
    return Graph(_inputs(node), (sum_all(mul(array_constant(weights.ravel()), flat, flat)),))


@pytest.mark.sample(3)
@pytest.mark.parametrize("node", SMOOTH, ids=_id)
def test_the_four_hessians(node):
    """H v is the derivative of the gradient along a random v, to 25 digits; all modes give that H."""
    graph = scalar_of(node)
    gradient = symad.gradient(graph, graph.inputs)
    floats, directions = point_for(graph), point_for(graph, seed=1, low=-1)
    with mpmath.workdps(DIGITS):
        point, v = [to_mp(p) for p in floats], [to_mp(d) for d in directions]
        step = mpmath.mpf("1e-15")
        sides = [
            [e for part in gradient(*moved(point, v, s)) for e in elements(part)] for s in (step, -step)
        ]
        expected = [(p - q) / (2 * step) for p, q in zip(*sides, strict=True)]
        hessian = symad.hessian(graph)(*point)
        flat = np.array([e for d in v for e in elements(d)], dtype=object)
        assert_same(hessian @ flat, expected, 1e-25)
    wanted = hessian.astype(float)
    for mode in MODES:
        found = symad.hessian(graph, mode=mode)(*floats)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * max(1, np.abs(wanted).max()))


def _batchings(count):
    """All inputs batched, then each one alone."""
    alone = [tuple(0 if j == k else None for j in range(count)) for k in range(count)]
    return [(0,) * count, *(alone if count > 1 else [])]


@pytest.mark.sample(44)
@pytest.mark.parametrize("node", [n for n in NODES if _inputs(n) and not graph_of(n).dims], ids=_id)
def test_batches_are_loops(node):
    graph = graph_of(node)
    rng = np.random.default_rng(4)
    for axes in _batchings(len(graph.input_nodes)):
        single = [rng.uniform(0.1, 0.9, m.shape) for m in graph.input_nodes]
        several = [rng.uniform(0.1, 0.9, (3, *m.shape)) for m in graph.input_nodes]
        given = [
            s if axis == 0 else (o if o.shape else float(o))
            for s, o, axis in zip(several, single, axes, strict=True)
        ]
        expected = [
            graph(
                *[
                    _item(s[k]) if axis == 0 else _item(o)
                    for s, o, axis in zip(several, single, axes, strict=True)
                ]
            )
            for k in range(3)
        ]
        got = symad.vmap(graph, axes)(*given)
        np.testing.assert_allclose(
            np.asarray(got, dtype=float), np.asarray(expected, dtype=float), rtol=1e-12, atol=1e-14
        )


def _item(value):
    return value if np.ndim(value) else float(value)


@pytest.mark.parametrize("node", SMOOTH, ids=_id)
def test_batches_of_gradients(node):
    """The batch rules of the derivative's ops too."""
    graph = scalar_of(node)
    gradient = symad.gradient(graph, graph.inputs)
    rng = np.random.default_rng(5)
    points = [rng.uniform(0.1, 0.9, (2, *m.shape)) for m in gradient.input_nodes]
    got = symad.vmap(gradient)(*points)
    for k in range(2):
        expected = gradient(*[_item(p[k]) for p in points])
        for mine, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(mine[k], theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("node", NODES, ids=_id)
def test_values_have_the_shape_promised(node):
    graph = graph_of(node)
    if graph.dims or not all(isinstance(d, int) for d in node.shape) or "Dimension" in _id(node):
        pytest.skip("symbolic sizes")
    value = graph(*point_for(graph))
    assert np.shape(value) == node.shape


@pytest.mark.parametrize("node", NODES, ids=_id)
def test_definitions_have_the_same_value(node):
    meaning = definition(node.op, node)
    if meaning is None:
        pytest.skip("a primitive")
    graph = Graph(_inputs(node), (node, meaning), TupleOf((None, None)))
    with mpmath.workdps(DIGITS):
        fused, spelled_out = graph(*[to_mp(p) for p in point_for(graph)])
        assert_same(fused, spelled_out, 1e-40)


@pytest.mark.parametrize("node", NODES, ids=_id)
def test_operations_are_counted(node):
    count = sympy.sympify(flops(node.op, node))
    assert count.is_number is not False
    assert count == 0 or count.is_positive is not False


@pytest.mark.parametrize("question", [jvp, batch, evaluate, flops], ids=lambda q: q.__name__)
def test_examples_cover_every_op_that_has_rules(question):
    """An op that answers a question has examples, or derives from a class whose ops have."""
    known = tuple(EXAMPLES)
    answered = {m.signature.types[0] for m in question.generic.methods}
    left_out = [
        cls.__name__
        for cls in answered
        if not any(issubclass(example, cls) for example in known) and cls.__module__.startswith("symad.ops")
    ]
    # the value of the first is a scipy matrix, which tests/sparsity compares; the second stands in every
    # example of Chain, and has no derivative because its readers have it;
    # the last has no number, only a refusal
    assert set(left_out) <= {"CompressedRows", "EigenSystem", "Kept", "Captured"}


# ---- where the examples do not reach ------------------------------------------------------------


def test_ties_in_extremes_share_the_tangent():
    a = sympy.MatrixSymbol("A", 2, 3)
    node = input_node(a, (2, 3))
    tied = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    for kind, expected in (("max", [[0, 1 / 2, 1 / 2], [1 / 3] * 3]), ("min", [[1, 0, 0], [1 / 3] * 3])):
        graph = Graph((node,), (sum_all(extreme(kind, node, (1,))),))
        np.testing.assert_allclose(symad.gradient(graph)(tied), expected)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_gathers_and_scatters_with_batched_indices(axes):
    table, indices = ArraySymbol("T", (4, 3)), ArraySymbol("I", (2, 2))
    rows, places = input_node(table, (4, 3)), input_node(indices, (2, 2))
    updates = input_node(ArraySymbol("U", (2, 2, 3)), (2, 2, 3))
    rng = np.random.default_rng(0)
    index = rng.integers(0, 4, (5, 2, 2)).astype(float)
    for node, data in ((gather(rows, places), rows), (Node.of(ScatterAdd(4), (places, updates)), updates)):
        graph = Graph((data, places), (node,))
        values = rng.uniform(-1, 1, (5, *data.shape))
        given = [v if axis == 0 else v[0] for v, axis in zip((values, index), axes, strict=True)]
        got = symad.vmap(graph, axes)(*given)
        for k in range(5):
            one = [v[k] if axis == 0 else v for v, axis in zip(given, axes, strict=True)]
            np.testing.assert_allclose(got[k], graph(*one))


def test_repeated_indices_add_up():
    """The transpose of a gather adds where a row was taken twice."""
    node = input_node(ArraySymbol("T", (3, 2)), (3, 2))
    graph = Graph((node,), (sum_all(gather(node, array_constant(np.array([1, 1, 0])))),))
    assert np.array_equal(symad.gradient(graph)(np.ones((3, 2))), [[1, 1], [2, 2], [0, 0]])


def test_indices_out_of_range_are_named():
    node, places = input_node(ArraySymbol("T", (3, 2)), (3, 2)), input_node(ArraySymbol("I", (2,)), (2,))
    graph = Graph((node, places), (gather(node, places),))
    for wrong in (3, -1, 0.5):
        with pytest.raises(ShapeError, match=f"index {wrong}.* at position"):
            graph(np.ones((3, 2)), np.array([0, wrong]))


def test_products_of_zeros_have_exact_derivatives():
    """One zero: only its own derivative is left; two zeros: none is."""
    n = sympy.Symbol("n", integer=True, positive=True)
    for size in (4, n):
        node = input_node(ArraySymbol("v", (size,)), (size,))
        graph = Graph((node,), (product(node),))
        gradient, hessian = symad.gradient(graph), symad.hessian(graph)
        assert np.array_equal(gradient(np.array([2.0, 0, 3, 4])), [0, 24, 0, 0])
        assert np.array_equal(gradient(np.array([2.0, 0, 0, 4])), [0, 0, 0, 0])
        assert hessian(np.array([2.0, 0, 0, 4]))[1, 2] == 8


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("ii->i", [(3, 3)]),
        ("iij->j", [(3, 3, 2)]),
        ("iji->", [(3, 2, 3)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,kl->", [(2, 3), (2, 2)]),
        ("bij,bjk->bik", [(2, 3, 2), (2, 2, 3)]),
        ("ii,ij,j->i", [(3, 3), (3, 2), (2,)]),
        ("ij,ik,il->jkl", [(2, 2), (2, 3), (2, 2)]),
        ("i,i,i->", [(3,), (3,), (3,)]),
        ("i->i", [(3,)]),
    ],
)
def test_contractions_and_their_derivatives(spec, shapes):
    nodes = [input_node(ArraySymbol(f"x{k}", shape), shape) for k, shape in enumerate(shapes)]
    graph = Graph(tuple(nodes), (einsum(spec, *nodes),))
    rng = np.random.default_rng(0)
    values = [rng.uniform(-1, 1, shape) for shape in shapes]
    expected = np.einsum(spec, *values)
    np.testing.assert_allclose(graph(*values), expected, rtol=1e-13)
    # Linear in each operand: the tangent is the sum of the values with one operand replaced.
    dots = [rng.uniform(-1, 1, shape) for shape in shapes]
    tangent = sum(
        np.einsum(spec, *[d if j == k else v for j, (v, d) in enumerate(zip(values, dots, strict=True))])
        for k in range(len(shapes))
    )
    _, got = symad.pushforward(graph)(*values, *dots)
    np.testing.assert_allclose(got, tangent, rtol=1e-12)
    weights = rng.uniform(-1, 1, np.shape(expected))
    _, *bars = symad.pullback(graph)(*values, weights if weights.shape else float(weights))
    total = sum(np.vdot(bar, d) for bar, d in zip(bars, dots, strict=True))
    np.testing.assert_allclose(total, np.vdot(weights, tangent), rtol=1e-12)


def test_contractions_check_sizes_behind_identities():
    matrix = input_node(sympy.MatrixSymbol("A", 4, 2), (4, 2))
    with pytest.raises(ShapeError, match="sizes"):
        einsum("ij,jk->ik", eye(3), matrix)


@pytest.mark.parametrize("head", [sympy.Max, sympy.Min])
def test_extremes_of_one_value_in_high_precision(head):
    from symad.ops.elementwise.apply import apply

    x = input_node(sympy.Symbol("x", real=True))
    graph = Graph((x,), (apply(head, x),))
    assert graph(mpmath.mpf(3)) == 3
