"""`lower(expr, inputs=args)` takes what `lambdify(args, expr)` takes: arguments, values, results.

The cases follow the subjects of SymPy's own tests of lambdify for the modules numpy and scipy, over the real
numbers. The references are SymPy's exact values to 30 digits, or direct calls of NumPy and SciPy. The last
tests list, by category, the calls that are refused.
"""

import inspect
import keyword
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special as sc
import sympy as sp
from sympy.codegen import cfunctions as cf
from sympy.codegen import numpy_nodes as nn
from sympy.codegen.scipy_nodes import cosm1, powm1
from sympy.matrices.expressions.dotproduct import DotProduct
from sympy.physics.mechanics import dynamicsymbols
from sympy.tensor.array.expressions import ArraySymbol
from sympy.utilities.lambdify import implemented_function, lambdify
from sympy.vector import CoordSys3D

import symad
from symad.numeric import lower

w, x, y, z, t = sp.symbols("w x y z t")
n, k = sp.symbols("n k", integer=True)
A, B = sp.MatrixSymbol("A", 2, 2), sp.MatrixSymbol("B", 2, 1)
M, v = np.array([[4.0, 1.0], [2.0, 3.0]]), np.array([[1.0], [-2.0]])
q = dynamicsymbols("q")
u = sp.IndexedBase("u", shape=(5,))
Ak = ArraySymbol("Ak", (2, 2))
f = sp.Function("f")
b = sp.IndexedBase("b")
N = CoordSys3D("N")


def flat(value):
    """All numbers of a result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, sp.Tuple)):
        return np.concatenate([flat(part) for part in value]) if len(value) else np.zeros(0)
    if hasattr(value, "toarray"):
        value = value.toarray()
    return np.ravel(np.asarray(value, float))


# ---- arguments ------------------------------------------------------------------------------------

ARGUMENTS = {
    "none": (sp.Integer(1), [], (), 1),
    "a bare symbol": (2 * x, x, (1.5,), 3),
    "a list": (x - y, [x, y], (1, 2), -1),
    "in this order": (x - y, [y, x], (1, 2), 1),
    "one that does not occur": (x**2, [y, x], (7, 3), 9),
    "a vector": ([w, x], [[w, x]], ([91, 2],), [91, 2]),
    "two tuples": ([w, x, y, z], [(w, x), (y, z)], ((18, 12), (73, 4)), [18, 12, 73, 4]),
    "nested": ([w, x, y, z], [w, [[[x]], y], z], (10, [[[52]], 31], 44), [10, 52, 31, 44]),
    "a matrix": (x * y - z * w, [sp.Matrix([[x, y], [z, w]])], (np.array([[2, 3], [5, 7]]),), -29),
    "a dummy": (sp.Dummy("d"), None, (4.0,), 4),
    "q(t) and its derivative": (sp.sin(q) * q.diff(t), [q, q.diff(t)], (0.3, 2.0), 2 * np.sin(0.3)),
    "an undefined function": (2 * f(x) + x, [x, f(x)], (2.0, 3.0), 8),
    "a derivative": (sp.Derivative(f(x), x) ** 2, [sp.Derivative(f(x), x)], (3.0,), 9),
    "no identifier": (
        sp.Symbol("a b") + sp.Symbol("{c}_1"),
        [sp.Symbol("a b"), sp.Symbol("{c}_1")],
        (1, 2),
        3,
    ),
    "a matrix symbol": (A * B, [A, B], (M, v), M @ v),
    "an array symbol": (Ak[0, 1] + Ak[1, 0], [Ak], (M,), 3),
    "an index": (u[sp.Idx("i")] * x, [u, sp.Idx("i"), x], (np.arange(5.0), 3, 2.0), 6),
    "an index beside a sum": (
        sp.Sum(u[sp.Idx("j", (0, 4))], (sp.Idx("j", (0, 4)), 0, 4)) * u[sp.Idx("i")],
        [u, [sp.Idx("i")]], (np.arange(5.0), [3]), 30,
    ),
    "an expression": (2 * sp.sin(t) ** 2 + x, [sp.sin(t), x], (0.5, 1.0), 1.5),
    "coordinates of sympy.vector": (N.x**2 * N.y, [N.x, N.y], (3.0, 2.0), 18),
    "a base whose shape follows from the array": (b[n] * x, [b, n, x], (np.arange(4.0), 3, 2.0), 6),
    "an indexed base": (u[0] * u[4], [u], (np.arange(1.0, 6.0),), 5),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(case):
    expression, inputs, values, expected = ARGUMENTS[case]
    kernel = lower(expression, inputs=[expression] if inputs is None else inputs)
    np.testing.assert_allclose(flat(kernel(*values)), flat(expected), rtol=1e-15)


@pytest.mark.parametrize("name", keyword.kwlist)
def test_keywords_of_python_are_names(name):
    symbol = sp.Symbol(name)
    assert lower(symbol + 1, inputs=[symbol])(2.0) == 3.0


@pytest.mark.parametrize(
    ("inputs", "values"),
    [([], (-1,)), ([[w, x]], (1, 2)), ([(w, x), (y, z)], (3, 4)), ([x, y], (1,)), ([x], (1, 2))],
)
def test_wrong_numbers_of_arguments_are_errors(inputs, values):
    kernel = lower(sum(sp.flatten(inputs)) if inputs else sp.Integer(1), inputs=inputs)
    with pytest.raises((TypeError, symad.errors.SymadError)):
        kernel(*values)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_exact_numbers_are_values(backend):
    kernel = lower(sp.sin(x) + y, inputs=[[x, y]], backend=backend)
    for first in (sp.pi / 6, Fraction(1, 2), Decimal("0.5"), mpmath.mpf(0.5)):
        expected = np.sin(float(first)) + 2
        for given in ([first, 2], (first, sp.Integer(2)), np.array([first, 2], dtype=object)):
            assert kernel(given) == pytest.approx(expected, rel=1e-15)
    assert kernel(sp.Matrix([0, 2])) == kernel(np.array([0, 2], dtype=object)) == 2
    inverse = lower(A**-1, inputs=[A], backend=backend)(sp.Matrix([[1, 2], [0, sp.Rational(1, 2)]]))
    np.testing.assert_allclose(inverse, [[1, -4], [0, 2]], rtol=1e-15)
    assert lower(sp.atan(x), inputs=[x], backend=backend)(-sp.oo) == -np.pi / 2
    for value in (sp.I, x, x + 1, None, "1", 10**400):
        with pytest.raises(TypeError, match="real numbers"):
            kernel([value, 2])


COLUMN = sp.MatrixSymbol("X", 3, 1)


@pytest.mark.parametrize("options", [{}, {"style": "plain"}, {"backend": "c"}], ids=str)
def test_a_vector_is_taken_for_a_column(options):
    f = COLUMN.T * COLUMN + COLUMN[0, 0] * sp.Identity(1)
    kernel, column = lower(f, inputs=[COLUMN], **options), np.array([[1.0], [2.0], [3.0]])
    graph = symad.trace(f, inputs=[COLUMN])
    for given in (column, column[:, 0], [1.0, 2.0, 3.0], (1, 2, 3)):
        assert np.array_equal(kernel(given), [[15.0]]) and np.array_equal(graph(given), [[15.0]])
    for given in (column.T, np.ones(4), np.ones((3, 3)), [[1.0], [2.0, 3.0]]):
        with pytest.raises((ValueError, symad.errors.SymadError)):
            kernel(given)
        with pytest.raises((ValueError, symad.errors.SymadError)):
            graph(given)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_inspect_shows_the_source_of_a_kernel(backend):
    kernel = lower(sp.sin(x) * y, inputs=[x, y], backend=backend)
    assert "def f(" in inspect.getsource(kernel)
    assert list(inspect.signature(kernel).parameters) == ["x", "y"]


# ---- structures of results ------------------------------------------------------------------------

RESULTS = {
    "a list": [x, x * y],
    "a tuple": (x, sp.Integer(3)),
    "nested": ([x, [y]], x + y),
    "an empty tuple": ((), x),
    "a dict": {"p": x, "q": y**2},
    "a matrix": sp.Matrix([[x, x * y], [sp.sin(y) + 4, x**y]]),
    "a transpose": sp.Matrix([[x, y], [1, 2]]).T,
    "a sparse matrix": sp.SparseMatrix([[x, 0], [0, y]]),
    "an array": sp.Array([[x, y], [x * y, 1]]),
    "a derivative by an array": sp.derive_by_array(sp.Array([x * y, x]), (x, y)),
    "a matrix beside a list": (sp.Matrix([[x], [y]]), [x, y]),
    "a product of vectors": DotProduct(sp.Matrix([x, y]), sp.Matrix([1, 2])),
    "an identity": sp.Identity(3) * x,
    "zeros": sp.ZeroMatrix(2, 3),
    "a tuple of SymPy": sp.Tuple(x, y),
}


@pytest.mark.parametrize("case", RESULTS)
def test_results_have_the_numbers_that_lambdify_gives(case):
    expression = RESULTS[case]
    if isinstance(expression, dict):
        assert lower(expression, inputs=[x, y])(1.5, 2.0) == {"p": 1.5, "q": 4.0}
        return
    expected = lambdify([x, y], expression, "numpy")(1.5, 2.0)
    np.testing.assert_allclose(flat(lower(expression, inputs=[x, y])(1.5, 2.0)), flat(expected), rtol=1e-15)


MATRICES = {
    "inverse": (A**-1, (M, v), np.linalg.inv(M)),
    "inverse times": (A**-1 * B, (M, v), np.linalg.solve(M, v)),
    "transpose": (A.T * A, (M, v), M.T @ M),
    "power": (A**3, (M, v), M @ M @ M),
    "trace": (sp.Trace(A), (M, v), 7),
    "determinant": (sp.Determinant(A), (M, v), 10),
    "element": (A[0, 1] * B[1, 0], (M, v), -2),
    "blocks": (sp.BlockMatrix([[A, B]]), (M, v), np.hstack([M, v])),
    "elementwise": (sp.HadamardProduct(A, A), (M, v), M * M),
}


@pytest.mark.parametrize("case", MATRICES)
def test_matrix_expressions(case):
    expression, values, expected = MATRICES[case]
    np.testing.assert_allclose(flat(lower(expression, inputs=[A, B])(*values)), flat(expected), rtol=1e-14)


# ---- functions ------------------------------------------------------------------------------------

ONE = [
    sp.sin, sp.cos, sp.tan, sp.asin, sp.acos, sp.atan, sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.atanh, sp.exp,
    sp.log, sp.sqrt, sp.cbrt, sp.Abs, sp.sign, sp.floor, sp.ceiling, sp.frac, sp.sec, sp.csc, sp.cot, sp.sech,
    sp.csch, sp.coth, sp.acot, sp.asech, sp.acsch, sp.sinc, sp.Heaviside, sp.erf, sp.erfc, sp.erfi, sp.erfinv,
    sp.gamma, sp.loggamma, sp.digamma, sp.factorial, sp.Ei, sp.E1, sp.Si, sp.Ci, sp.Shi, sp.Chi,
    sp.fresnels, sp.fresnelc, sp.airyai, sp.airybi, sp.airyaiprime, sp.airybiprime, sp.LambertW, sp.li,
    sp.harmonic, sp.re, sp.im, sp.conjugate, sp.arg,
]  # fmt: skip


@pytest.mark.parametrize("head", ONE, ids=lambda h: h.__name__)
def test_functions_of_one_argument(head):
    kernel = lower(head(x) + sp.S.Zero * x, inputs=[x]) if head(x).has(x) else lower(head(x), inputs=[x])
    for point in (sp.Rational(7, 10), sp.Rational(1, 5)):
        exact = float(sp.N(head(point), 30))
        assert kernel(float(point)) == pytest.approx(exact, rel=5e-14, abs=5e-15)


TWO = [
    sp.atan2(x, y), x**y, sp.Mod(x, y), sp.besselj(x, y), sp.bessely(x, y), sp.besseli(x, y),
    sp.besselk(x, y), sp.beta(x, y), sp.RisingFactorial(x, y), sp.FallingFactorial(x, y),
    sp.binomial(x, y), sp.lowergamma(x, y),
    sp.uppergamma(x, y), sp.jn(2, x) * y, sp.yn(1, x) * y, sp.polygamma(2, x) + y, sp.expint(x, y),
    sp.betainc(x, y, sp.Rational(1, 10), sp.Rational(1, 2)), sp.zeta(x, y),
    sp.betainc_regularized(x, y, sp.Rational(1, 10), sp.Rational(1, 2)), sp.Max(x, y, 2), sp.Min(x, y, -2),
    sp.floor(y / x), sp.KroneckerDelta(x, x) * y, sp.exp(x + sp.UnevaluatedExpr(y)),
]  # fmt: skip


@pytest.mark.parametrize("expression", TWO, ids=str)
def test_functions_of_two_arguments(expression):
    a, b = sp.Rational(13, 10), sp.Rational(27, 10)
    exact = float(sp.N(expression.subs({x: a, y: b}).doit(), 30))
    assert lower(expression, inputs=[x, y])(1.3, 2.7) == pytest.approx(exact, rel=2e-13)


BY_HAND = {
    "expm1": (cf.expm1(x), np.expm1(1e-10), 1e-10),
    "log1p": (cf.log1p(x), np.log1p(1e-10), 1e-10),
    "exp2": (cf.exp2(x), 2**0.3, 0.3),
    "log2": (cf.log2(x), np.log2(0.3), 0.3),
    "log10": (cf.log10(x), np.log10(0.3), 0.3),
    "hypot": (cf.hypot(x, 4), 5, 3.0),
    "cosm1": (cosm1(x), sc.cosm1(1e-5), 1e-5),
    "powm1": (powm1(x, sp.Rational(1, 10**9)), np.expm1(1e-9 * np.log(1.7)), 1.7),
    "logaddexp": (nn.logaddexp(x, 2 * x), 800 + np.log1p(np.exp(-400)), 400.0),
    "logaddexp2": (nn.logaddexp2(x, 2 * x), np.logaddexp2(0.3, 0.6), 0.3),
    "maximum": (nn.maximum(x, 0), 0, -1.0),
    "minimum": (nn.minimum(x, 0), -1, -1.0),
    "isnan": (cf.isnan(x), True, np.nan),
    "isinf": (cf.isinf(x), True, -np.inf),
    "chebyshevt": (sp.chebyshevt(3, x), sc.eval_chebyt(3, 0.4), 0.4),
    "chebyshevu": (sp.chebyshevu(3, x), sc.eval_chebyu(3, 0.4), 0.4),
    "legendre": (sp.legendre(5, x), sc.eval_legendre(5, 0.4), 0.4),
    "hermite": (sp.hermite(4, x), sc.eval_hermite(4, 0.4), 0.4),
    "laguerre": (sp.laguerre(4, x), sc.eval_laguerre(4, 0.4), 0.4),
    "gegenbauer": (sp.gegenbauer(3, sp.Rational(5, 2), x), sc.eval_gegenbauer(3, 2.5, 0.4), 0.4),
    "jacobi": (sp.jacobi(3, 1, 2, x), sc.eval_jacobi(3, 1, 2, 0.4), 0.4),
    "erfcinv": (sp.erfcinv(x), sc.erfcinv(0.3), 0.3),
    "pi and e": (sp.pi * x + sp.E, 2 * np.pi + np.e, 2.0),
    "a rational": (sp.Rational(1, 3) * x, 1, 3.0),
    "a lambda": (sp.Lambda(y, y**2 + 1)(x), 10, 3.0),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_functions_of_codegen_and_polynomials(case):
    expression, expected, point = BY_HAND[case]
    assert lower(expression, inputs=[x])(point) == pytest.approx(expected, rel=1e-14, nan_ok=True)


@pytest.mark.parametrize("head", [sp.chebyshevt, sp.chebyshevu, sp.legendre, sp.hermite, sp.laguerre])
def test_polynomials_whose_degree_is_an_argument(head):
    exact = float(head(4, sp.Rational(2, 5)))
    assert lower(head(n, x), inputs=[n, x])(4, 0.4) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_bernoulli_numbers_by_their_index(backend):
    exact = [float(sp.bernoulli(k)) for k in range(31)]
    found = lower(sp.bernoulli(n), inputs=[n], backend=backend)(np.arange(31))
    np.testing.assert_allclose(found, exact, rtol=1e-14, atol=0)


# ---- conditions -----------------------------------------------------------------------------------


def test_piecewise_over_an_array():
    pieces = sp.Piecewise((x, x < 0), (x**2, x < 5), (1 / x, True))
    points = np.array([-2.0, -0.5, 0.0, 3.0, 7.0])
    np.testing.assert_allclose(lower(pieces, inputs=[x])(points), [-2, -0.5, 0, 9, 1 / 7], rtol=1e-15)


def test_piecewise_without_a_default_is_nan_and_evaluates_no_warning():
    kernel = lower(sp.Piecewise((sp.log(x), x > 0)), inputs=[x])
    with np.errstate(all="raise"):
        found = kernel(np.array([-1.0, 1.0]))
    assert np.isnan(found[0]) and found[1] == 0


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (sp.And(x, y), [True, False, False, False]), (sp.Or(x, y), [True, True, True, False]),
        (sp.Not(x), [False, False, True, True]), (sp.Xor(x, y), [False, True, True, False]),
        (sp.ITE(x, y, ~y), [True, False, False, True]), (sp.Equivalent(x, y), [True, False, False, True]),
        (sp.Implies(x, y), [True, False, True, True]),
    ],
    ids=str,
)  # fmt: skip
def test_logic(expression, expected):
    kernel = lower(sp.Piecewise((1, expression.subs({x: w > 0, y: z > 0})), (0, True)), inputs=[w, z])
    found = kernel(np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 1.0, -1.0]))
    assert found.astype(bool).tolist() == expected


def test_truth_values_and_relations():
    assert lower(sp.true, inputs=[])() and not lower(sp.false, inputs=[])()
    assert lower(x > y, inputs=[x, y])(2.0, 1.0) and not lower(sp.Eq(x, y), inputs=[x, y])(2.0, 1.0)


def test_division_by_zero_is_ieee():
    assert lower(1 / x, inputs=[x])(0.0) == np.inf
    kernel = lower(x / sp.sqrt(x**2 + y**2), inputs=[x, y])
    np.testing.assert_array_equal(kernel(np.array([0.0, 1.0]), np.array([0.0, 0.0])), [np.nan, 1.0])


# ---- sums, implementations, points ----------------------------------------------------------------


def test_sums():
    assert lower(sp.Sum(x**k, (k, 1, 4)), inputs=[x])(1.5) == pytest.approx(sum(1.5**j for j in range(1, 5)))
    double = sp.Sum(sp.Sum(x * n + k, (n, 1, 3)), (k, 1, 2))
    assert lower(double, inputs=[x])(1.5) == pytest.approx(
        sum(1.5 * i + j for i in (1, 2, 3) for j in (1, 2))
    )
    m = sp.Idx("m", 5)
    assert lower(sp.Sum(u[m] ** 2, (m, 0, 4)), inputs=[u])(np.arange(5.0)) == 30
    size = sp.Symbol("size", integer=True, positive=True)
    free = sp.IndexedBase("free", shape=(size,))
    kernel = lower(sp.Sum(free[k], (k, 0, size - 1)), inputs=[free])
    assert kernel(np.ones(3)) == 3 and kernel(np.ones(7)) == 7


def test_sums_over_arrays_whose_shape_follows_from_them():
    free, b = sp.IndexedBase("free"), np.array([[1.0, 2.0], [3.0, 4.0]])
    for first, second in ((x, y), (n, k), (sp.Idx("i", 2), sp.Idx("j", 2))):
        total = sp.Sum(free[first, second], (first, 0, 1), (second, 0, 1))
        assert lower(total, inputs=[free])(b) == 10


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_elements_at_places_that_are_arguments(backend):
    square = sp.IndexedBase("square", shape=(2, 3))
    values = np.arange(6.0).reshape(2, 3)
    element = lower(u[n + 1] ** 2 + n, backend=backend, inputs=[u, n])
    assert element(np.arange(5.0), 3) == 19
    with pytest.raises(IndexError):
        element(np.arange(5.0), 4)
    assert lower(square[n, k], backend=backend, inputs=[square, n, k])(values, 1, 2) == 5
    row = lower(sp.Sum(square[n, k], (k, 0, 2)), backend=backend, inputs=[square, n])
    assert row(values, 1) == 12
    slope = lower(symad.gradient(u[n] ** 2, u, inputs=[u, n]), backend=backend)
    np.testing.assert_array_equal(slope(np.arange(5.0), 3), [0, 0, 0, 6, 0])
    with pytest.raises(symad.errors.TraceError, match="free"):
        symad.trace(u[n])


def test_extremes_of_vectors_and_arrays():
    vectors = lower([nn.amin(x), nn.amax(y)], inputs=[x, y])
    assert vectors(np.array([2, 3, 4]), np.array([1, 5, 2, 0])) == (2, 5)
    square = sp.IndexedBase("square", shape=(2, 3))
    values = np.array([[0.0, 4.0, 8.0], [1.0, 5.0, 2.0]])
    found = lower([nn.amin(square, axis=0), nn.amax(square, axis=-1)], inputs=[square])(values)
    np.testing.assert_array_equal(found[0], [0, 4, 2])
    np.testing.assert_array_equal(found[1], [8, 5])
    both = lower([nn.amin(x, axis=0), nn.amax(x, axis=1), nn.amax(y, axis=-2)], inputs=[x, y])
    for result, expected in zip(both(values, values), ([0, 4, 2], [8, 5], [1, 5, 8]), strict=True):
        np.testing.assert_array_equal(result, expected)
    slope = lower(symad.gradient(nn.amin(x), x, inputs=[x]))
    np.testing.assert_array_equal(slope(np.array([3.0, 1.0, 2.0])), [0, 1, 0])


def test_implementations_in_python_are_traced_and_differentiated():
    shifted = implemented_function("shifted", lambda value: value + 100)
    waves = implemented_function("waves", lambda a, b: np.sin(a) * b)
    assert lower(shifted(x) * 2, inputs=[x])(1.0) == 202
    assert lower(waves(x, y), inputs=[x, y])(2.0, 3.0) == np.sin(2.0) * 3
    slope = symad.gradient(waves(x * y, y), (x, y), inputs=[x, y])(2.0, 3.0)
    np.testing.assert_allclose(slope, [9 * np.cos(6.0), np.sin(6.0) + 6 * np.cos(6.0)], rtol=1e-14)


def test_arrays_of_points_broadcast():
    rows, columns = np.linspace(0, 1, 4)[:, None], np.linspace(1, 2, 3)
    found = lower(sp.exp(x) * y, inputs=[x, y])(rows, columns)
    np.testing.assert_allclose(found, np.exp(rows) * columns, rtol=1e-15)
    np.testing.assert_allclose(lower([x, sp.Integer(1)], inputs=[x])(rows)[1], np.ones((4, 1)))


def test_what_is_not_evaluated_is_computed_in_its_order():
    p, q, r = sp.symbols("p q r", real=True)
    kernel = lower(sp.Abs(sp.exp(p + sp.UnevaluatedExpr(q + r))), inputs=[p, q, r])
    assert kernel(1.0, 1e18, -1e18) == pytest.approx(np.e, rel=1e-15)


def test_the_source_can_be_read():
    import inspect

    kernel = lower(sp.sin(x) * y, inputs=[x, y])
    assert "np.sin" in kernel.source and inspect.signature(kernel).parameters.keys() == {"x", "y"}


# ---- what is refused, by category -----------------------------------------------------------------

REFUSED = {
    "complex numbers": (sp.I * x, [x], "complex|real"),
    "integrals without bounds": (sp.Integral(sp.exp(-(x**2)), x), [x], "no bounds"),
    "limits": (sp.Limit(sp.sin(x) / x, x, 0), [x], "Limit"),
    "undefined functions without a meaning": (sp.Function("g")(x) + x, [x], "g"),
    "derivatives by an order": (sp.Derivative(sp.legendre(n, x), n), [n, x], "no derivative by argument 1"),
    "sums without end": (sp.Sum(x**k, (k, 0, sp.oo)), [x], "no finite bounds"),
    "arrays without a shape: IndexedBase(..., shape=)": (
        sp.IndexedBase("s"), [sp.IndexedBase("s")], "shape",
    ),
    "number sequences by their index": (sp.fibonacci(n), [n], "fibonacci"),
    "text": ("x + y", ["x", "y"], "x"),
    "sets": (sp.FiniteSet(x), [x], "FiniteSet|set"),
    "symbols that are no arguments": (x * y, [x], "depends on y, missing from"),
    "elements as arguments": (u[0] ** 2, [u[0]], "inputs are whole arrays"),
    "extremes of numbers": (nn.amin(x * y), [x, y], "is a number"),
    "extremes along axes that arrays do not have": (nn.amax(u, axis=1), [u], "none of number 1"),
}  # fmt: skip


@pytest.mark.parametrize("category", REFUSED)
def test_what_is_refused_names_what_and_why(category):
    expression, inputs, message = REFUSED[category]
    with pytest.raises(symad.errors.SymadError, match=message):
        lower(expression, inputs=inputs)
