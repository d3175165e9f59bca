"""Functions for models: values against SciPy and mpmath, derivatives against SymPy and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy
from sympy import Function, IndexedBase, Matrix, MatrixSymbol, latex, symbols
from sympy.matrices.expressions.matexpr import MatrixElement

import symad
from symad import functions
from symad.core.graph import Graph
from symad.core.questions import definition
from symad.errors import DerivativeError, ShapeError, TraceError
from symad.functions import (
    expm1,
    gelu,
    hypot,
    log1p,
    log_softmax,
    logaddexp,
    logsumexp,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    stop_gradient,
    xlogy,
)
from symad.numeric import lower
from symad.ops.arrays import softmax as fused

x, y = symbols("x y", real=True)
n, m = symbols("n m", integer=True, positive=True)
X, Y = MatrixSymbol("X", 3, 4), MatrixSymbol("Y", n, m)
rng = np.random.default_rng(2)
POINT = rng.normal(size=(3, 4))

DEFINITIONS = {
    sigmoid: lambda t: 1 / (1 + mpmath.exp(-t)),
    softplus: lambda t: mpmath.log(1 + mpmath.exp(t)),
    relu: lambda t: max(t, mpmath.mpf(0)),
    silu: lambda t: t / (1 + mpmath.exp(-t)),
    gelu: lambda t: t * mpmath.ncdf(t),
    stop_gradient: lambda t: t,
    log1p: lambda t: mpmath.log(1 + t),
    expm1: lambda t: mpmath.exp(t) - 1,
}
PAIRS = {
    xlogy: lambda a, b: a * mpmath.log(b),
    logaddexp: lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)),
    hypot: lambda a, b: mpmath.sqrt(a * a + b * b),
}
HOSTILE = {
    sigmoid: [-700.0, -40.0, -1e-9, 0.3, 40.0, 800.0],
    softplus: [-700.0, -40.0, 1e-12, 3.0, 40.0, 800.0],
    relu: [-3.0, 1e-300, 5.0],
    silu: [-700.0, -40.0, 1e-12, 2.0, 800.0],
    gelu: [-30.0, -5.0, 1e-12, 2.0, 30.0],
    stop_gradient: [-2.5],
    log1p: [-0.5, 1e-18, 3.0],
    expm1: [-40.0, 1e-18, 3.0],
}


# ---- scalar functions ---------------------------------------------------------------------------


@pytest.mark.parametrize("head", DEFINITIONS, ids=lambda head: head.__name__)
def test_values_are_accurate_at_hostile_points(head):
    graph = symad.trace(head(x))
    for point in HOSTILE[head]:
        with mpmath.workdps(400):
            exact = DEFINITIONS[head](mpmath.mpf(point))
            slope = mpmath.diff(DEFINITIONS[head], mpmath.mpf(point))
            condition = abs(float(point * slope / exact)) if exact else 1.0
        bound = 4 * np.finfo(float).eps * (1 + condition)
        assert graph(point) == pytest.approx(float(exact), rel=bound, abs=0)


@pytest.mark.parametrize("head", DEFINITIONS, ids=lambda head: head.__name__)
def test_values_in_high_precision(head):
    with mpmath.workdps(60):
        point = mpmath.mpf("0.7312")
        found = symad.trace(head(x))(point)
        assert abs(found - DEFINITIONS[head](point)) < mpmath.mpf(10) ** -55


@pytest.mark.parametrize("head", [h for h in DEFINITIONS if h is not stop_gradient], ids=lambda h: h.__name__)
def test_derivatives_up_to_the_third(head):
    graph = symad.trace(head(x))
    for order in (1, 2, 3):
        graph = symad.gradient(graph, wrt=x)
        for point in (-0.8, 0.4, 2.1):
            with mpmath.workdps(40):
                exact = float(mpmath.diff(DEFINITIONS[head], mpmath.mpf(point), order))
            assert graph(point) == pytest.approx(exact, rel=1e-11, abs=1e-13)
            by_sympy = sympy.diff(head(x), x, order).subs(x, sympy.Float(point, 40)).evalf(20)
            assert float(by_sympy) == pytest.approx(exact, rel=1e-11, abs=1e-13)


@pytest.mark.sample(2)
@pytest.mark.parametrize("head", [sigmoid, softplus, silu, gelu], ids=lambda h: h.__name__)
def test_derivatives_are_accurate_far_from_zero(head):
    graph = symad.gradient(symad.trace(head(x)), wrt=x)
    for point in (-30.0, -9.0, 9.0, 30.0):
        with mpmath.workdps(400):
            exact = mpmath.diff(DEFINITIONS[head], mpmath.mpf(point))
            curvature = mpmath.diff(DEFINITIONS[head], mpmath.mpf(point), 2)
            condition = abs(float(point * curvature / exact))
        bound = 8 * np.finfo(float).eps * (1 + condition)
        saturated = 1e-16 if head is sigmoid and point > 0 else 0  # y (1 − y), by choice
        assert graph(point) == pytest.approx(float(exact), rel=bound, abs=saturated)


@pytest.mark.parametrize("head", PAIRS, ids=lambda head: head.__name__)
def test_functions_of_two_arguments(head):
    graph = symad.trace(head(x, y), inputs=[x, y])
    a, b = 0.7, 1.9
    with mpmath.workdps(40):
        value = float(PAIRS[head](mpmath.mpf(a), mpmath.mpf(b)))
        slopes = [
            float(mpmath.diff(PAIRS[head], (mpmath.mpf(a), mpmath.mpf(b)), o)) for o in ((1, 0), (0, 1))
        ]
        second = float(mpmath.diff(PAIRS[head], (mpmath.mpf(a), mpmath.mpf(b)), (1, 1)))
    assert graph(a, b) == pytest.approx(value, rel=1e-14)
    assert symad.gradient(graph)(a, b) == pytest.approx(slopes, rel=1e-13)
    assert symad.hessian(graph)(a, b)[0, 1] == pytest.approx(second, rel=1e-11)


def test_limits():
    assert symad.trace(xlogy(x, y), inputs=[x, y])(0.0, 0.0) == 0.0
    assert xlogy(0, y) == 0
    assert symad.gradient(symad.trace(relu(x)), wrt=x)(0.0) == 0.0
    assert np.array_equal(symad.gradient(symad.trace(hypot(x, y)))(0.0, 0.0), [0.0, 0.0])
    big = symad.gradient(symad.trace(logaddexp(x, y), inputs=[x, y]))(1000.0, 999.0)
    assert big == pytest.approx([1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(1.0))], rel=1e-14)


def test_stop_gradient():
    graph = symad.trace(stop_gradient(x) * x**2)
    assert graph(3.0) == 27.0
    assert symad.gradient(graph, wrt=x)(3.0) == 18.0
    assert stop_gradient(x).diff(x) == 0
    assert symad.stop_gradient is stop_gradient
    matrix = symad.trace((stop_gradient(X).T * X).applyfunc(sympy.sin), inputs=[X])
    assert symad.jacobian(matrix)(POINT).shape == (16, 12)
    proxy = symad.trace(lambda v: np.sum(stop_gradient(v) * v), [(3,)])
    assert np.array_equal(symad.gradient(proxy, wrt=0)(np.array([1.0, 2.0, 3.0])), [1.0, 2.0, 3.0])


def test_scalar_functions_print_and_rewrite():
    assert str(sigmoid(x + 1)) == "sigmoid(x + 1)"
    assert latex(softplus(x)) == r"\operatorname{softplus}{\left(x \right)}"
    assert sigmoid(x).rewrite(sympy.exp) == 1 / (1 + sympy.exp(-x))
    assert sympy.expand_func(relu(x)) == sympy.Max(0, x)
    assert sigmoid(sympy.Float(0.5, 30)).evalf(30) == (1 / (1 + sympy.exp(-sympy.Float(0.5, 30)))).evalf(30)
    assert sigmoid(x).is_real


def test_scalar_functions_in_ordinary_expressions():
    graph = symad.trace(sympy.log(1 + sigmoid(x * y) ** 2) - softplus(y) / gelu(x), inputs=[x, y])
    a, b = 0.4, -0.7
    s = scipy.special.expit(a * b)
    expected = np.log(1 + s * s) - np.logaddexp(0, b) / (a * scipy.special.ndtr(a))
    assert graph(a, b) == pytest.approx(expected, rel=1e-14)


ELEMENTWISE = [sigmoid, softplus, relu, silu, gelu, stop_gradient, log1p, expm1]


@pytest.mark.parametrize("head", ELEMENTWISE, ids=lambda head: head.__name__)
def test_scalar_functions_are_elementwise_on_arrays(head):
    values = np.abs(POINT)
    with mpmath.workdps(40):
        expected = np.vectorize(lambda t: float(DEFINITIONS[head](mpmath.mpf(t))))(values)
    np.testing.assert_allclose(head(values), expected, rtol=1e-14)
    np.testing.assert_allclose(symad.trace(head, [(3, 4)])(values), expected, rtol=1e-14)
    np.testing.assert_allclose(symad.trace(head(X))(values), expected, rtol=1e-14)
    explicit = symad.trace(head(Matrix([[x, y]])), inputs=[x, y])
    np.testing.assert_allclose(explicit(values[0, 0], values[0, 1]), expected[:1, :2], rtol=1e-14)


def test_functions_of_two_arguments_take_arrays():
    a, b = np.abs(POINT), np.abs(POINT[::-1])
    np.testing.assert_allclose(xlogy(a, b), a * np.log(b))
    np.testing.assert_allclose(symad.trace(logaddexp, [(3, 4), (3, 4)])(a, b), np.logaddexp(a, b))
    with pytest.raises(TraceError, match="xlogy of 2 arguments"):
        xlogy(X, X)


# ---- softmax and its kin ------------------------------------------------------------------------

REFERENCES = {
    softmax: scipy.special.softmax,
    log_softmax: scipy.special.log_softmax,
    logsumexp: scipy.special.logsumexp,
}


@pytest.mark.parametrize("head", REFERENCES, ids=lambda head: head.__name__)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_softmax_values_on_everything(head, axis):
    expected = REFERENCES[head](POINT, axis=axis)
    np.testing.assert_allclose(head(POINT, axis), expected, rtol=1e-14)
    np.testing.assert_allclose(symad.trace(lambda a: head(a, axis), [(3, 4)])(POINT), expected, rtol=1e-14)
    matrix = symad.trace(head(X, axis))(POINT)
    np.testing.assert_allclose(np.ravel(matrix), np.ravel(expected), rtol=1e-14)
    generic = symad.trace(head(Y, axis))(POINT)
    np.testing.assert_allclose(np.ravel(generic), np.ravel(expected), rtol=1e-14)


def test_softmax_does_not_overflow():
    big = np.array([[1000.0, 1001.0, -1e5, 999.0], [-2000.0] * 4, [0.0, 0.0, 0.0, -np.inf]])
    for head, reference in REFERENCES.items():
        found = symad.trace(lambda a, head=head: head(a, 1), [(3, 4)])(big)
        np.testing.assert_allclose(found, reference(big, axis=1), rtol=1e-14)


def test_keepdims_and_several_axes():
    t = rng.normal(size=(2, 3, 4))
    for axis in ((0, 2), 1, None):
        graph = symad.trace(lambda a, axis=axis: logsumexp(a, axis, keepdims=True), [t.shape])
        np.testing.assert_allclose(graph(t), scipy.special.logsumexp(t, axis=axis, keepdims=True))
    graph = symad.trace(lambda a: softmax(a, (0, 2)), [t.shape])
    np.testing.assert_allclose(graph(t), scipy.special.softmax(t, axis=(0, 2)))


@pytest.mark.thorough
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_derivatives_of_softmax_equal_those_of_entries(axis):
    z = Matrix(2, 3, symbols("z:6", real=True))
    point = [0.3, -0.2, 0.9, 1.4, -0.6, 0.1]
    plain = {
        softmax: lambda a: np.exp(a) / np.sum(np.exp(a), axis=axis, keepdims=True),
        log_softmax: lambda a: a - np.log(np.sum(np.exp(a), axis=axis, keepdims=True)),
        logsumexp: lambda a: np.log(np.sum(np.exp(a), axis=axis)),
    }
    weights = rng.normal(size=(2, 3))
    for head, formula in plain.items():
        f = symad.trace(
            lambda a, head=head: np.sum(
                weights * head(a, axis) if head is not logsumexp else head(a, axis) ** 2
            ),
            [(2, 3)],
        )
        entries = np.array(z.tolist(), dtype=object)
        symbolic = np.sum(
            weights * _formula(head, entries, axis)
            if head is not logsumexp
            else _formula(head, entries, axis) ** 2
        )
        substitution = dict(zip(z, point, strict=True))
        gradient = [float(symbolic.diff(v).subs(substitution)) for v in z]
        hessian = [[float(symbolic.diff(v, w).subs(substitution)) for w in z] for v in z]
        at = np.reshape(point, (2, 3))
        assert f(at) == pytest.approx(float(symbolic.subs(substitution)), rel=1e-13)
        np.testing.assert_allclose(np.ravel(symad.gradient(f, wrt=0)(at)), gradient, rtol=1e-11, atol=1e-14)
        for mode in (
            "forward-over-reverse",
            "forward-over-forward",
            "reverse-over-forward",
            "reverse-over-reverse",
        ):
            np.testing.assert_allclose(symad.hessian(f, mode=mode)(at), hessian, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(formula(at), np.array(_formula(head, at, axis), dtype=float))


def _formula(head, a, axis):
    """The definitions, entry by entry, on numbers or symbols."""
    exponentials = np.vectorize(sympy.exp, otypes=[object])(a)
    total = np.sum(exponentials, axis=axis, keepdims=True)
    logs = np.vectorize(sympy.log, otypes=[object])(total)
    if head is softmax:
        return exponentials / total
    return a - logs if head is log_softmax else np.squeeze(logs, axis=axis)


@pytest.mark.parametrize("make", [fused.softmax, fused.log_softmax, fused.logsumexp])
def test_fused_ops_equal_their_definitions(make):
    (node,) = symad.trace(lambda a: a * 1.5, [(3, 4)]).outputs
    y_ = make(node, (1,))
    inputs = symad.trace(lambda a: a, [(3, 4)]).input_nodes
    fast, slow = Graph(inputs, (y_,)), Graph(inputs, (definition(y_.op, y_),))
    np.testing.assert_allclose(fast(POINT), slow(POINT), rtol=1e-14)
    np.testing.assert_allclose(
        symad.jacobian(fast)(POINT), symad.jacobian(slow)(POINT), rtol=1e-12, atol=1e-16
    )


def test_softmax_exactly_and_in_high_precision():
    with mpmath.workdps(50):
        point = np.array([[mpmath.mpf(1) / 3, mpmath.mpf(2)]], dtype=object)
        found = symad.trace(lambda a: softmax(a), [(1, 2)])(point)
        e = [mpmath.exp(v) for v in point[0]]
        assert abs(found[0, 0] - e[0] / (e[0] + e[1])) < mpmath.mpf(10) ** -48


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_runs_over_the_last_axis_unless_told_otherwise(name):
    ours, theirs = getattr(functions, name), getattr(scipy.special, name)
    t, z = rng.normal(size=(2, 3, 4)), rng.normal(size=3)
    assert np.array_equal(ours(t), theirs(t, axis=-1))
    for f, axis in ((ours, -1), (lambda a: ours(a, None), None), (lambda a: ours(a, axis=None), None)):
        graph = symad.trace(f, [t.shape])
        for call in (graph, lower(graph), lower(graph, backend="c")):
            np.testing.assert_allclose(call(t), theirs(t, axis=axis), rtol=1e-13)
    q, k, v = (rng.normal(size=s) for s in ((2, 3), (4, 3), (4, 2)))
    Q, K, V = (MatrixSymbol(c, *a.shape) for c, a in (("Q", q), ("K", k), ("V", v)))
    attention = symad.trace(ours(Q * K.T) * V, inputs=[Q, K, V])
    np.testing.assert_allclose(attention(q, k, v), theirs(q @ k.T, axis=-1) @ v, rtol=1e-13)
    column = MatrixSymbol("z", 3, 1)  # a matrix with one column is a vector
    np.testing.assert_allclose(symad.trace(ours(column))(z[:, None])[:, 0], theirs(z), rtol=1e-13)
    np.testing.assert_allclose(symad.trace(ours([x, y]))(0.3, 0.4)[:, 0], theirs([0.3, 0.4]), rtol=1e-13)


def test_softmax_over_a_batch():
    t = rng.normal(size=(5, 3, 4))
    batched = symad.vmap(symad.trace(lambda a: softmax(a, 1), [(3, 4)]))
    np.testing.assert_allclose(batched(t), scipy.special.softmax(t, axis=2))


# ---- matrix expressions -------------------------------------------------------------------------


def test_shapes_follow_substitution():
    expression = softmax(Y, 1)
    assert expression.shape == (n, m)
    assert expression.subs({n: 2, m: 5}).shape == (2, 5)
    assert logsumexp(Y, 0).shape == (1, m)
    assert logsumexp(Y, 1).subs({n: 2, m: 5}).shape == (2, 1)
    assert logsumexp(Y).is_Matrix is not True


def test_matrix_functions_print():
    assert str(softmax(X)) == "softmax(X, axis=1)"
    assert str(softmax(X, None)) == "softmax(X, axis=None)"
    assert str(log_softmax(X, 1)) == "log_softmax(X, axis=1)"
    assert str(logsumexp(X)) == "logsumexp(X)"
    assert latex(softmax(X, None)) == r"\operatorname{softmax}_{\text{all}}\left(X\right)"
    assert latex(softmax(X, 1)) == r"\operatorname{softmax}_{\text{rows}}\left(X\right)"
    assert str(functions.lookup(Y, [0, 1])) == "lookup(Y, Matrix([\n[0],\n[1]]))"


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_entries_are_the_definitions(axis):
    for head, reference in REFERENCES.items():
        expected = np.reshape(
            reference(POINT, axis=axis, **({"keepdims": True} if head is logsumexp else {})), -1
        )
        if head is logsumexp and axis is None:
            entries = [head(X).rewrite(sympy.exp)]
        else:
            entries = list(head(X, axis).as_explicit())
        values = {X[i, j]: POINT[i, j] for i in range(3) for j in range(4)}
        np.testing.assert_allclose([float(e.xreplace(values)) for e in entries], expected, rtol=1e-12)
    entry = softmax(Y, 1)[0, 1]
    assert entry.has(sympy.Sum)
    concrete = entry.subs({n: 3, m: 4}).doit()
    values = {e: POINT[int(e.i), int(e.j)] for e in concrete.atoms(MatrixElement)}
    expected = scipy.special.softmax(POINT, axis=1)[0, 1]
    assert float(concrete.xreplace(values)) == pytest.approx(expected)


def test_entries_of_matrix_functions_are_traced():
    graph = symad.trace(softmax(Y, 1)[0, 1], inputs=[Y])
    assert graph(POINT) == pytest.approx(scipy.special.softmax(POINT, axis=1)[0, 1])


def test_matrix_functions_inside_of_matrix_expressions():
    Q, K, V = MatrixSymbol("Q", n, 2), MatrixSymbol("K", m, 2), MatrixSymbol("V", m, 3)
    attention = softmax(Q * K.T / 2, 1) * V
    assert attention.shape == (n, 3)
    q, k, v = rng.normal(size=(4, 2)), rng.normal(size=(5, 2)), rng.normal(size=(5, 3))
    graph = symad.trace(attention, inputs=[Q, K, V])
    np.testing.assert_allclose(graph(q, k, v), scipy.special.softmax(q @ k.T / 2, axis=1) @ v, rtol=1e-13)
    loss = logsumexp(Q * K.T) + sympy.Trace(Q.T * Q)
    assert symad.trace(loss, inputs=[Q, K])(q, k) == pytest.approx(
        scipy.special.logsumexp(q @ k.T) + np.sum(q * q), rel=1e-13
    )


def test_scalars_in_lists_are_columns():
    assert symad.trace(logsumexp([x, y]), inputs=[x, y])(0.3, 0.4) == pytest.approx(np.logaddexp(0.3, 0.4))
    np.testing.assert_allclose(
        symad.trace(softmax(Matrix([x, y])), inputs=[x, y])(0.3, 0.4)[:, 0], scipy.special.softmax([0.3, 0.4])
    )


def test_logsumexp_of_a_matrix_differentiates_in_sympy():
    derivative = logsumexp([x, y**2]).diff(y)
    expected = 2 * y * sympy.exp(y**2) / (sympy.exp(x) + sympy.exp(y**2))
    assert sympy.simplify(derivative - expected) == 0


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenate(axis):
    a, b = POINT[:, :3], POINT[:, 1:]
    expected = np.concatenate([a, b], axis=axis)
    P, Q = MatrixSymbol("P", n, m), MatrixSymbol("Q", n, m)
    assert np.array_equal(symad.trace(functions.concatenate([P, Q], axis), inputs=[P, Q])(a, b), expected)
    assert np.array_equal(
        symad.trace(lambda p, q: functions.concatenate([p, q], axis), [a.shape, b.shape])(a, b), expected
    )
    assert np.array_equal(functions.concatenate([a, b], axis), expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_stack(axis):
    p, q = MatrixSymbol("p", n, 1), MatrixSymbol("q", n, 1)
    a, b = POINT[:, :1], POINT[:, 1:2]
    expected = np.stack([a[:, 0], b[:, 0]], axis=axis)
    assert np.array_equal(symad.trace(functions.stack([p, q], axis), inputs=[p, q])(a, b), expected)
    assert np.array_equal(functions.stack([a[:, 0], b[:, 0]], axis), expected)
    graph = symad.trace(lambda u, v: functions.stack([u, v], axis), [(3,), (3,)])
    assert np.array_equal(graph(a[:, 0], b[:, 0]), expected)
    assert np.array_equal(symad.trace(functions.stack([x, y]), inputs=[x, y])(1.0, 2.0), [1.0, 2.0])


def test_stack_of_matrices_is_refused():
    with pytest.raises(ShapeError, match="three axes"):
        functions.stack([X, X])


def test_lookup():
    table, indices = rng.normal(size=(6, 2)), np.array([4, 0, 4])
    expected = table[indices]
    T, rows = MatrixSymbol("T", m, 2), MatrixSymbol("I", n, 1)
    base = IndexedBase("b", shape=(n,))
    graph = symad.trace(functions.lookup(T, rows), inputs=[T, rows])
    assert np.array_equal(graph(table, indices[:, None]), expected)
    assert np.array_equal(symad.trace(functions.lookup(T, base), inputs=[T, base])(table, indices), expected)
    assert np.array_equal(symad.trace(functions.lookup(T, [4, 0, 4]))(table), expected)
    assert np.array_equal(symad.trace(functions.lookup, [(6, 2), (3,)])(table, indices), expected)
    assert np.array_equal(functions.lookup(table, indices), expected)
    assert functions.lookup(T, rows).shape == (n, 2)
    assert functions.lookup(T, [4, 0])[1, 1] == T[0, 1]


def test_the_derivative_of_lookup_adds_into_the_used_rows():
    T, base = MatrixSymbol("T", m, 2), IndexedBase("b", shape=(n,))
    loss = sympy.Trace(functions.lookup(T, base).T * functions.lookup(T, base))
    table, indices = rng.normal(size=(6, 2)), np.array([4, 0, 4])
    gradient = symad.gradient(symad.trace(loss, inputs=[T, base]), wrt=T)(table, indices)
    expected = np.zeros((6, 2))
    for row in indices:
        expected[row] += 2 * table[row]
    np.testing.assert_allclose(gradient, expected)


def test_bad_arguments_are_told():
    with pytest.raises(TraceError, match="not a matrix"):
        softmax(x)
    with pytest.raises(ShapeError, match="axes 0 and 1"):
        softmax(X, 2)
    with pytest.raises(ShapeError, match="indices"):
        functions.lookup(X, x)
    with pytest.raises(ShapeError, match="row or column"):
        functions.lookup(X, X)
    with pytest.raises(ShapeError, match=r"axis=5 is no axis of an array of shape \(3,\)"):
        symad.trace(lambda a: softmax(a, 5), [(3,)])


# ---- functions that SymPy does not know ----------------------------------------------------------


def test_a_registered_function_is_computed_and_differentiated():
    cube = symad.register_function("third_power", lambda t: t**3, derivatives=[lambda t: 3 * t**2])
    graph = symad.trace(sympy.sin(cube(x)) + cube(x * y), inputs=[x, y])
    a, b = 0.7, 1.1
    assert graph(a, b) == pytest.approx(np.sin(a**3) + (a * b) ** 3)
    assert symad.gradient(graph)(a, b) == pytest.approx(
        [np.cos(a**3) * 3 * a**2 + 3 * (a * b) ** 2 * b, 3 * (a * b) ** 2 * a]
    )
    assert symad.hessian(graph)(a, b)[1, 1] == pytest.approx(6 * a * b * a * a)
    assert cube(x).diff(x) == 3 * x**2
    np.testing.assert_allclose(symad.trace(lambda v: cube(v), [(3,)])(np.array([1.0, 2.0, 3.0])), [1, 8, 27])


def test_an_undefined_function_can_be_registered():
    f = Function("f_registered")
    with pytest.raises(TraceError, match="register_function"):
        symad.trace(f(x), inputs=[x])
    with pytest.raises(DerivativeError, match="register_function"):
        symad.gradient(f(x) * x, x)
    symad.register_function(
        f,
        lambda a, b: np.sin(a) * b,
        derivatives=[lambda a, b: np.cos(a) * b, lambda a, b: sympy.sin(a)],
        mpmath=lambda a, b: mpmath.sin(a) * b,
    )
    graph = symad.trace(Function("f_registered")(x, y), inputs=[x, y])
    assert graph(0.3, 2.0) == pytest.approx(np.sin(0.3) * 2)
    assert symad.gradient(graph)(0.3, 2.0) == pytest.approx([np.cos(0.3) * 2, np.sin(0.3)])
    assert symad.hessian(graph)(0.3, 2.0)[0] == pytest.approx([-np.sin(0.3) * 2, np.cos(0.3)])
    assert "fdiff" not in vars(f)  # the class stays as it was given
    assert f(x, y).diff(y) == sympy.Derivative(f(x, y), y)
    assert symad.check(f(x, y) * y, [x, y]).status == "measured"  # the rules were sampled, not proved
    with mpmath.workdps(30):
        assert abs(graph(mpmath.mpf("0.3"), mpmath.mpf(2)) - 2 * mpmath.sin(mpmath.mpf("0.3"))) < 1e-28


def test_a_derivative_may_be_a_registered_function_or_unknown():
    slope = symad.register_function("g_slope", lambda t: np.exp(-(t**2)))
    g = symad.register_function(
        "g",
        lambda t, k: scipy.special.erf(t) * np.sqrt(np.pi) / 2 + 0 * k,
        derivatives=[lambda t, k: slope(t), None],
    )
    graph = symad.trace(g(x, y), inputs=[x, y])
    assert symad.gradient(graph, wrt=x)(0.4, 1.0) == pytest.approx(np.exp(-0.16))
    with pytest.raises(DerivativeError, match="the derivative of g in argument 2 of 2"):
        symad.gradient(graph, wrt=y)
    with pytest.raises(DerivativeError, match="g_slope"):
        symad.hessian(graph, wrt=[x])


def test_registering_nonsense_is_refused():
    with pytest.raises(TraceError, match="function class or a name"):
        symad.register_function(3, np.sin)
    with pytest.raises(TraceError, match="not callable"):
        symad.register_function("h", 3)
