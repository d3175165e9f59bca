"""Sums and products with indices, against SymPy's own expansion into explicit symbols."""

from fractions import Fraction

import numpy as np
import pytest
import sympy
from sympy import (
    Idx,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    MatrixSymbol,
    Piecewise,
    Product,
    Sum,
    exp,
    factorial,
    log,
    sin,
    sqrt,
    symbols,
    tanh,
)
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad.errors import EvaluationError, ShapeError, TraceError
from symad.ops.arrays.gathering import Gather
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Slice
from symad.ops.basic.sources import Eye
from symad.ops.elementwise.selection import Compare

i, j, k, q = symbols("i j k q", integer=True)
n, m = symbols("n m", integer=True, positive=True)
s = symbols("s", real=True)
x, y, u = IndexedBase("x"), IndexedBase("y"), IndexedBase("u")
A, B, C = IndexedBase("A"), IndexedBase("B"), IndexedBase("C")
xn = IndexedBase("x", shape=(n,))
An = IndexedBase("A", shape=(n, n))
N, M = 5, 3

CASES = {
    "quadratic form": Sum(A[i, j] * x[i] * x[j], (i, 0, n - 1), (j, 0, n - 1)),
    "nested": Sum(x[i] * Sum(A[i, j] * x[j], (j, 0, n - 1)), (i, 0, n - 1)),
    "least squares": Sum((Sum(A[i, j] * x[j], (j, 0, m - 1)) - y[i]) ** 2, (i, 0, n - 1)),
    "square of a sum": Sum(x[i], (i, 0, n - 1)) ** 2 * s,
    "differences": Sum((x[i + 1] - x[i]) ** 2, (i, 0, n - 2)),
    "second differences": Sum((x[i + 1] - 2 * x[i] + x[i - 1]) ** 2, (i, 1, n - 2)),
    "strides": Sum(x[2 * i] * y[2 * i + 1], (i, 0, 2)),
    "backwards": Sum(xn[i] * xn[n - 1 - i], (i, 0, n - 1)),
    "shifted by one": Sum(x[i] * y[i - 1], (i, 1, n)),
    "trace": Sum(An[i, i], (i, 0, n - 1)),
    "band": Sum(An[i, i + 1] * xn[i], (i, 0, n - 2)),
    "row": Sum(A[1, j] * A[j, 0], (j, 0, n - 1)),
    "trace of a product": Sum(A[i, j] * B[j, k] * C[k, i], (i, 0, n - 1), (j, 0, m - 1), (k, 0, n - 1)),
    "three axes": Sum(u[i, j, k] * x[i] * y[k], (i, 0, n - 1), (j, 0, 2), (k, 0, m - 1)),
    "functions": Sum(exp(x[i]) * sin(x[i] * s), (i, 0, n - 1)),
    "log sum exp": log(Sum(exp(x[i] * s), (i, 0, n - 1))),
    "softmax entry": exp(x[0]) / Sum(exp(x[i]), (i, 0, n - 1)),
    "pairs": Sum(exp(-((x[i] - x[j]) ** 2)), (i, 0, n - 1), (j, 0, n - 1)),
    "layer": Sum(y[i] * tanh(Sum(A[i, j] * x[j], (j, 0, n - 1))), (i, 0, m - 1)),
    "cubes": Sum(x[i] ** 3 + x[i] ** 2 + 1, (i, 0, n - 1)),
    "different ranks": Sum(A[i, j] * x[i] + y[j] + 2, (i, 0, n - 1), (j, 0, m - 1)),
    "quotients": Sum(x[i] / (1 + y[i] ** 2), (i, 0, n - 1)),
    "index as value": Sum(i * x[i] + (2 * i + 1) ** 2, (i, 0, n - 1)),
    "size as value": Sum(x[i], (i, 0, n - 1)) / n,
    "products": Product(1 + x[i] ** 2, (i, 0, n - 1)),
    "product of known length": Product(x[i], (i, 0, 4)),
    "product of sums": Product(Sum(A[i, j], (j, 0, n - 1)) + 2, (i, 0, n - 1)),
    "sum of products": Sum(Product(1 + A[i, j], (j, 0, 2)), (i, 0, n - 1)),
    "powers by products": Sum(Product(s, (j, 0, n - 1)) * x[i], (i, 0, n - 1)),
    "product over two": Product(1 + A[i, j] / 4, (i, 0, n - 1), (j, 0, 1)),
    "triangle": Sum(A[i, j] * x[i] * x[j], (j, 0, i), (i, 0, n - 1)),
    "strict triangle": Sum(Sum(An[i, j] ** 2, (j, i + 1, n - 1)), (i, 0, n - 2)),
    "triangle with more": Sum(A[i, k] * B[k, j], (k, 0, m - 1), (j, 0, i), (i, 0, n - 1)),
    "convolution": Sum(x[i - j] * y[j], (j, 0, i), (i, 0, n - 1)),
    "full convolution": Sum(x[i] * y[j] * u[i + j], (i, 0, n - 1), (j, 0, m - 1)),
    "triangular product": Sum(Product(x[j], (j, 0, i)), (i, 0, n - 1)),
    "cumulative": Sum(Sum(x[j], (j, 0, i)) ** 2, (i, 0, n - 1)),
    "delta": Sum(KroneckerDelta(i, j) * A[i, j], (i, 0, n - 1), (j, 0, n - 1)),
    "delta chain": Sum(
        KroneckerDelta(i, j) * KroneckerDelta(j, k) * x[i] * y[k],
        (i, 0, n - 1),
        (j, 0, n - 1),
        (k, 0, n - 1),
    ),
    "delta free": Sum(x[i] * Sum(KroneckerDelta(i, j) * y[j] * x[j], (j, 0, n - 1)), (i, 0, n - 1)),
    "delta shifted": Sum(KroneckerDelta(i, j + 1) * xn[i] * xn[j], (i, 0, n - 1), (j, 0, n - 1)),
    "delta excluded": Sum((1 - KroneckerDelta(i, j)) * x[i] * x[j], (i, 0, n - 1), (j, 0, n - 1)),
    "piecewise": Sum(Piecewise((xn[i] ** 2, i < 2), (xn[i], True)), (i, 0, n - 1)),
    "piecewise guard": Sum(Piecewise((xn[i - 1] * xn[i], i > 0), (0, True)), (i, 0, n - 1)),
    "piecewise guard above": Sum(Piecewise((xn[i + 1] ** 3, i < n - 1), (xn[0], True)), (i, 0, n - 1)),
    "elements": x[0] * x[2] + sin(x[1]),
    "element of a sum": Sum(A[2, j] * x[j], (j, 0, n - 1)) * x[3],
    "last": xn[n - 1] ** 2 + xn[n - 2],
    "sibling sums": Sum(x[i], (i, 0, n - 1)) * Sum(y[i], (i, 0, m - 1)),
    "flat index": Sum(u[m * i + j] * A[i, j], (i, 0, n - 1), (j, 0, m - 1)),
    "scalar inside": Sum(s * x[i] + s**2, (i, 0, n - 1)),
    "square root of a sum": sqrt(Sum(x[i] ** 2, (i, 0, n - 1))),
    "one term": Sum(x[i], (i, 2, 2)),
    "nothing": Sum(x[i], (i, 0, 3)) + Sum(y[i] ** 2, (i, 1, 0)) + y[0],
    "diagonal of three": Sum(u[i, i, i] * u[i, 0, i], (i, 0, n - 1)),
    "known size": Sum(x[i] * y[j], (i, 0, 3), (j, 0, 2)),
}


def explicit(expression, sizes):
    """The literal sums and products, with a symbol for each element."""
    done = written_out(expression.subs(sizes))
    elements = {}
    for element in done.atoms(Indexed):
        key = (str(element.base.label), tuple(int(p) for p in element.indices))
        elements[element] = elements_symbol(key)
    return done.xreplace(elements)


def written_out(expression):
    """Every Sum and Product as the Add or Mul of its terms, outermost index first."""
    if isinstance(expression, (Sum, Product)):
        *inner, (index, low, high) = expression.limits
        body = expression.func(expression.function, *inner) if inner else expression.function
        terms = [written_out(body.subs(index, value)) for value in range(int(low), int(high) + 1)]
        return (sympy.Add if isinstance(expression, Sum) else sympy.Mul)(*terms)
    return expression.func(*map(written_out, expression.args)) if expression.args else expression


def elements_symbol(key):
    return sympy.Symbol(f"{key[0]}_{'_'.join(map(str, key[1]))}", real=True)


def point_of(graph, sizes, seed=3):
    """Random values for the inputs of a graph, and for the symbols of their elements."""
    rng = np.random.default_rng(seed)
    values, substitution = [], {}
    for node, symbol in zip(graph.input_nodes, graph.inputs, strict=True):
        shape = tuple(int(sympy.sympify(d).subs(sizes)) for d in node.shape)
        value = rng.uniform(0.3, 0.9, shape)
        values.append(value if shape else float(value))
        if shape:
            for position in np.ndindex(shape):
                substitution[elements_symbol((str(symbol), position))] = float(value[position])
        else:
            substitution[symbol] = float(value)
    return values, substitution


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_equal_explicit_ones(name):
    expression, sizes = CASES[name], {n: N, m: M}
    graph = symad.trace(expression)
    values, substitution = point_of(graph, sizes)
    reference = explicit(expression, sizes)
    assert graph(*values) == pytest.approx(float(reference.subs(substitution)), rel=1e-12)
    gradients = symad.gradient(graph, graph.inputs)(*values)
    for symbol, gradient, value in zip(graph.inputs, gradients, values, strict=True):
        assert np.shape(gradient) == np.shape(value)
        for position in np.ndindex(np.shape(value)):
            element = elements_symbol((str(symbol), position)) if position else symbol
            expected = float(reference.diff(element).subs(substitution))
            found = gradient[position] if position else gradient
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-13), (symbol, position)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name", ["differences", "triangle", "convolution", "log sum exp", "delta shifted", "products"]
)
def test_hessians_equal_explicit_ones(name):
    sizes = {n: 4, m: 2}
    graph = symad.trace(CASES[name])
    values, substitution = point_of(graph, sizes)
    reference = explicit(CASES[name], sizes)
    elements = []
    for symbol, value in zip(graph.inputs, values, strict=True):
        elements += [elements_symbol((str(symbol), p)) if p else symbol for p in np.ndindex(np.shape(value))]
    expected = [[float(reference.diff(a, b).subs(substitution)) for b in elements] for a in elements]
    np.testing.assert_allclose(symad.hessian(graph)(*values), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_values_on_fractions_equal_explicit_ones(name):
    """Exact numbers find every wrong element; functions that are not rational are left out."""
    graph = symad.trace(CASES[name])
    sizes = {n: 4, m: 2}
    values, substitution = point_of(graph, sizes)
    exact = [np.vectorize(_simple, otypes=[object])(v) if np.shape(v) else _simple(v) for v in values]
    try:
        found = graph(*exact)
    except EvaluationError:
        pytest.skip("not rational")
    rational = {s: sympy.Rational(_simple(v)) for s, v in substitution.items()}
    assert found == Fraction(str(explicit(CASES[name], sizes).subs(rational)))


def _simple(value):
    return Fraction(value).limit_denominator(20)


@pytest.mark.parametrize("name", CASES)
def test_the_way_to_sympy_and_back(name):
    graph = symad.trace(CASES[name])
    assert symad.trace(symad.to_sympy(graph), inputs=graph.inputs) is graph


def test_one_trace_serves_all_sizes():
    graph = symad.trace(CASES["quadratic form"])
    for size in (1, 2, 7):
        a, v = np.random.default_rng(size).normal(size=(2, size, size))
        assert graph(a, v[0]) == pytest.approx(v[0] @ a @ v[0], rel=1e-12)


# ---- arrays stay arrays -------------------------------------------------------------------------


def ops(expression):
    return [node.op for node in symad.trace(expression).nodes]


def test_sums_of_products_are_contractions():
    quadratic = ops(CASES["quadratic form"])
    assert [type(op) for op in quadratic].count(Einsum) == 2
    assert len(quadratic) == 4
    assert len(ops(CASES["trace of a product"])) == 5


def test_contractions_take_the_cheap_order():
    chain = Sum(
        A[i, j] * B[j, k] * C[k, q] * x[q],
        (i, 0, n - 1),
        (j, 0, n - 1),
        (k, 0, n - 1),
        (q, 0, n - 1),
    )
    assert sympy.degree(symad.flops(chain), n) == 2


def test_affine_indices_are_slices():
    nodes = ops(CASES["second differences"])
    assert sum(isinstance(op, Slice) for op in nodes) == 3
    assert not any(isinstance(op, Gather) for op in nodes)


def test_equal_ranges_under_a_delta_are_one_index():
    for name in ("delta", "delta chain", "delta free"):
        assert not any(isinstance(op, (Eye, Compare)) for op in ops(CASES[name]))
    assert sympy.degree(symad.flops(CASES["delta free"]), n) == 1


def test_the_number_of_nodes_does_not_grow_with_the_size():
    small, large = (len(ops(Sum((x[i + 1] - x[i]) ** 2, (i, 0, size)))) for size in (5, 5000))
    assert small == large


# ---- plain scalars ------------------------------------------------------------------------------


def test_series_of_scalars():
    series = Sum(s**k / factorial(k), (k, 0, 10))
    graph = symad.trace(series)
    exact = series.doit()
    for point in (0.7, -1.3, 0.0):
        assert graph(point) == pytest.approx(float(exact.subs(s, point)), rel=1e-14)
        assert symad.gradient(graph)(point) == pytest.approx(
            float(exact.diff(s).subs(s, point)), rel=1e-13
        )


def test_products_of_scalars():
    product = Product(1 + s / k, (k, 1, 6))
    graph = symad.trace(product)
    assert graph(0.3) == pytest.approx(float(product.doit().subs(s, 0.3)), rel=1e-14)


def test_scalar_sums_up_to_a_dimension():
    expression = Sum(s**k * k, (k, 0, n - 1)) + Sum(xn[i], (i, 0, n - 1))
    graph = symad.trace(expression)
    assert [str(v) for v in graph.inputs] == ["s", "x"]
    values = np.array([1.0, 2.0, 4.0])
    assert graph(0.5, values) == pytest.approx(0.5 + 2 * 0.25 + 7.0)


def test_sums_inside_of_ordinary_expressions():
    expression = sin(s * Sum(x[i], (i, 0, 2))) / (1 + exp(-Sum(x[i] ** 2, (i, 0, 2))))
    v = np.array([0.2, 0.5, -0.1])
    assert symad.trace(expression)(0.4, v) == pytest.approx(np.sin(0.4 * v.sum()) / (1 + np.exp(-(v @ v))))


# ---- other arrays -------------------------------------------------------------------------------


def test_gathered_positions():
    table, positions = IndexedBase("t", shape=(m, n)), IndexedBase("p", shape=(n,))
    rows = np.random.default_rng(0).normal(size=(4, 3))
    p = np.array([2.0, 0.0, 3.0])
    graph = symad.trace(Sum(table[positions[i], i] * i, (i, 0, n - 1)), inputs=[table, positions])
    assert graph(rows, p) == pytest.approx(sum(rows[int(p[q]), q] * q for q in range(3)))
    gradient = symad.gradient(graph, wrt=table)(rows, p)
    expected = np.zeros((4, 3))
    for q in range(3):
        expected[int(p[q]), q] = q
    assert np.array_equal(gradient, expected)
    vector = IndexedBase("v", shape=(m,))
    graph = symad.trace(Sum(vector[positions[i]] ** 2, (i, 0, n - 1)), inputs=[vector, positions])
    assert graph(np.array([1.0, 2.0, 3.0, 4.0]), p) == 9.0 + 1.0 + 16.0
    graph = symad.trace(vector[positions[1]] + Sum(positions[i], (i, 0, n - 1)), inputs=[vector, positions])
    assert graph(np.array([1.0, 2.0, 3.0, 4.0]), p) == 6.0


def test_elements_of_matrices_and_arrays():
    X, Y, T = MatrixSymbol("X", n, m), MatrixSymbol("Y", m, n), ArraySymbol("T", (n, m))
    a, b, t = (np.random.default_rng(q).normal(size=d) for q, d in enumerate([(4, 2), (2, 4), (4, 2)]))
    trace = Sum((X * Y)[i, i], (i, 0, n - 1))
    assert symad.trace(trace, inputs=[X, Y])(a, b) == pytest.approx(np.trace(a @ b))
    frobenius = Sum(X[i, j] * T[i, j], (i, 0, n - 1), (j, 0, m - 1))
    assert symad.trace(frobenius, inputs=[X, T])(a, t) == pytest.approx(np.sum(a * t))
    assert symad.trace((X * Y)[0, 1], inputs=[X, Y])(a, b) == pytest.approx((a @ b)[0, 1])


def test_sums_of_matrices_with_known_bounds():
    X = MatrixSymbol("X", 2, 2)
    a = np.array([[0.1, 0.2], [0.3, -0.4]])
    graph = symad.trace(Sum(X**k / factorial(k), (k, 0, 3)))
    np.testing.assert_allclose(graph(a), np.eye(2) + a + a @ a / 2 + a @ a @ a / 6)


def test_indices_with_ranges():
    p = Idx("p", n)
    graph = symad.trace(Sum(xn[p] ** 2, p))
    assert graph(np.array([1.0, 2.0, 3.0])) == 14.0
    r = Idx("r", (1, 2))
    assert symad.trace(Sum(x[r] * r, r))(np.array([5.0, 7.0, 11.0])) == 29.0


def test_bases_of_known_shape_and_given_order():
    c = IndexedBase("c", shape=(3,))
    graph = symad.trace(Sum(c[i] * x[i], (i, 0, 2)), inputs=[x, c])
    assert graph.inputs == (x, c)
    assert [node.shape for node in graph.input_nodes] == [(3,), (3,)]


def test_shapes_follow_from_the_ranges():
    graph = symad.trace(Sum((x[i + 1] - x[i]) ** 2 + y[2 * i], (i, 0, n - 2)) + A[3, 1])
    assert [node.shape for node in graph.input_nodes] == [(4, 2), (n,), (2 * n - 3,)]
    assert symad.trace(x[0] * x[4]).input_nodes[0].shape == (5,)


@pytest.mark.thorough
def test_deep_bodies():
    body = x[i]
    for _ in range(300):
        body = sympy.Add(sympy.Mul(body, sympy.Rational(1, 2), evaluate=False), x[i], evaluate=False)
    value = symad.trace(Sum(body, (i, 0, 2)))(np.ones(3))
    assert value == pytest.approx(6.0)


# ---- errors -------------------------------------------------------------------------------------


def refused(expression, match, **options):
    with pytest.raises((TraceError, ShapeError), match=match):
        symad.trace(expression, **options)


def test_reused_indices_are_refused():
    c = IndexedBase("c")
    refused(Sum(c[i] * x[i], (i, 1, n)) * x[i], "i is the index of .* is also free")
    refused(Sum(x[i], (i, 0, n - 1)) + i, "i is the index of .* is also free")
    refused(Sum(x[i] * Sum(y[i], (i, 0, n - 1)), (i, 0, n - 1)), "the index i of .* is bound twice")
    refused(Sum(A[i, i], (i, 0, 2), (i, 0, 3)), "the index i of .* is bound twice")


def test_free_indices_are_refused():
    refused(x[i] * y[i], "the index i of .* is free; sum over it")
    p = Idx("p", 3)
    refused(x[p] * y[p], "the index p of .* is free; sum over it")
    refused(Sum(A[i, j], (i, 0, 2)), "the index j of .* is free")


def test_positions_out_of_range_are_refused():
    three = IndexedBase("x", shape=(3,))
    refused(three[5], r"x\[5\] reads position 5 of axis 0, which has length 3")
    refused(three[-1], r"x\[-1\] reads position -1")
    refused(Sum(three[i], (i, 0, 3)), r"x\[i\] reads position 0\.\.3")
    refused(Sum(xn[i], (i, 1, n)), r"x\[i\] reads position 1\.\.n of axis 0, which has length n")
    refused(Sum(xn[i - 1], (i, 0, n - 1)), r"reads position -1\.\.n - 2")
    graph = symad.trace(xn[3] + Sum(xn[i], (i, 0, n - 1)))
    with pytest.raises(ShapeError, match="3"):
        graph(np.ones(2))


def test_undecided_shapes_are_refused():
    refused(Sum(x[i], (i, 0, n - 1)) * Sum(x[j], (j, 0, m - 1)) * y[0], "the shape of x .*shape=")
    refused(symbols("z"), "the shape of x .*shape=", inputs=[symbols("z"), x])


def test_bounds_must_be_known():
    refused(Sum(s**k / factorial(k), (k, 0, sympy.oo)), "no finite bounds")
    refused(Sum(xn[i] * Sum(xn[j], (j, 0, i**2)), (i, 0, n - 1)), "not affine")
    refused(Sum(s**k, (k, 5, 2)), "runs backwards")


def test_wrong_numbers_of_indices():
    refused(x[0] + x[0, 1], "the shape of x")
    refused(Sum(MatrixSymbol("X", n, n), (i, 0, n - 1)), "sums matrices")
