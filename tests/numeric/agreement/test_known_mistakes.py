"""Regression tests: each past mistake by the program that showed it, on every backend.

The expected numbers are worked out by hand, by NumPy on plain arrays, by SciPy or by mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy as sp

import symad
from symad import functions
from symad.errors import EvaluationError, ShapeError
from symad.functions import sigmoid, softmax
from symad.numeric import lower
from tests.gpu.cupy_agreement import agree

x, y, z = sp.symbols("x y z", real=True)
FORMS = ["graph", "numpy", "plain", "c", "runs"]
ARRAY_FORMS = ["graph", "numpy", "plain", "c"]
every = pytest.mark.parametrize("form", FORMS)
arrays = pytest.mark.parametrize("form", ARRAY_FORMS)


def made(graph: Any, form: str) -> Callable[..., Any]:
    """A graph as it is, or as code."""
    if form == "graph":
        return graph
    return lower(graph, style="plain") if form == "plain" else lower(graph, form)


def both(f: Any, shapes: Any, form: str) -> Callable[..., Any]:
    """Value and gradients of a traced function."""
    return made(symad.value_and_gradient(symad.trace(f, shapes)), form)


@every
def test_wrt_leaves_the_order_of_arguments(form: str) -> None:
    """The inputs of a derivative were ordered by wrt, and x10 came before x2."""
    assert made(symad.gradient(x**2 * y, y), form)(2.0, 3.0) == 4.0
    x2, x10 = sp.symbols("x2 x10", real=True)
    assert list(made(symad.gradient(x10 - x2**2), form)(3.0, 5.0)) == [-6.0, 1.0]


@every
def test_many_pieces_hide_what_they_do_not_take(form: str) -> None:
    """Conditions of more than eight pieces were forgotten, so that log 0 of an untaken piece gave NaN."""
    chain = sp.Piecewise(*[(k * sp.log(x), x > k) for k in range(9, 0, -1)], (0, True))
    assert made(symad.gradient(chain, x), form)(0.0) == 0.0
    total = sum(sp.Piecewise((sp.log(x - k), x > k), (0, True)) for k in range(9))
    found = made(symad.value_and_gradient(total, x), form)(0.5)
    np.testing.assert_allclose(found, [np.log(0.5), 2.0])


@pytest.mark.sample(2)
@arrays
def test_dimensions_may_have_the_names_of_our_own(form: str) -> None:
    """Passes named the axes that they cut "columns" and "rows", as users name theirs."""
    n, d = (sp.Symbol(name, integer=True, positive=True) for name in ("columns", "rows"))
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 12)), rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    row = (np.exp(-(a[:, 1:] ** 2)) + np.sin(a[:, :-1])).sum(1)
    found = both(lambda X: (np.exp(-(X[:, 1:] ** 2)) + np.sin(X[:, :-1])).sum(1).prod(), [(n, 12)], form)(a)
    np.testing.assert_allclose(found[0], row.prod())
    kernel = lambda A, B: np.exp(-((A[:, None, :] - B[None]) ** 2).sum(-1)).sum()  # noqa: E731
    value, slope, _ = both(kernel, [(5, d), (4, d)], form)(b, c)
    weights = np.exp(-((b[:, None] - c) ** 2).sum(-1))
    np.testing.assert_allclose(value, weights.sum())
    np.testing.assert_allclose(slope, -2 * (weights[..., None] * (b[:, None] - c)).sum(1))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", ["numpy", "plain", "c"])
def test_small_gates_of_loops_keep_their_digits(backend: str, dtype: str) -> None:
    """u σ(h) in a loop was rewritten in its printed text, so that σ(−20) became 0 in single precision."""
    options = {"style": "plain"} if backend == "plain" else {"backend": backend}
    small = float(1 / (1 + mpmath.exp(20)))
    for step, u, right in ((lambda h, u: u * sigmoid(h), 1e9, 1e9 * small),
                           (lambda h, u: u / sigmoid(h), 1e-9, 1e-9 / small)):  # fmt: skip
        loop = symad.trace(lambda h, us, s=step: functions.scan(s, h, us), [(1,), (1, 1)])
        found = lower(loop, dtype=dtype, **options)(np.array([-20.0]), np.array([[u]]))
        np.testing.assert_allclose(found, [[right]], rtol=1e-5)


@pytest.mark.sample(2)
@arrays
def test_masks_of_infinities_lower(form: str) -> None:
    """Constants printed inf and nan as names that the module did not have."""
    mask = np.triu(np.full((4, 4), -np.inf), 1)
    q = np.arange(16.0).reshape(4, 4) / 16
    attend = lambda q, k, v: (softmax(q @ k.T / 2 + mask, axis=-1) @ v).sum()  # noqa: E731
    value, *slopes = both(attend, [(4, 4)] * 3, form)(q, q, q)
    np.testing.assert_allclose(value, (scipy.special.softmax(q @ q.T / 2 + mask, axis=-1) @ q).sum())
    assert all(np.isfinite(s).all() for s in slopes)


@arrays
def test_logistic_quotients_do_not_overflow(form: str) -> None:
    """1/(1 + e⁻ᶻ) and z/(1 + e⁻ᶻ) by hand were NaN at −900 in compiled code."""
    points = np.array([-900.0, 900.0])
    value, slope = both(lambda z: (1 / (1 + np.exp(-z))).sum(), [(2,)], form)(points)
    assert value == 1.0 and slope.tolist() == [0.0, 0.0]
    value, slope = both(lambda z: (z / (1 + np.exp(-z))).sum(), [(2,)], form)(points)
    assert value == 900.0 and slope.tolist() == [0.0, 1.0]


@arrays
def test_log1p_of_an_exponential_is_stable(form: str) -> None:
    """log1p(eᵘ) was inf at 800, unlike log(1 + eᵘ); single precision on the GPU had NaN slopes below −88."""
    points = np.array([800.0, -800.0, 0.0])
    value, slope = both(lambda u: np.log1p(np.exp(u)).sum(), [(3,)], form)(points)
    np.testing.assert_allclose(value, 800 + np.log(2))
    np.testing.assert_allclose(slope, [1.0, 0.0, 0.5])


def test_log1p_of_an_exponential_is_stable_in_single_precision_on_a_device() -> None:
    """Below −88 eᵘ is subnormal or 0 in float32."""
    graph = symad.value_and_gradient(symad.trace(lambda u: np.log1p(np.exp(u)).sum(), [(3,)]))
    agree(graph, [np.array([80.0, -90.0, -200.0])], "float32", 1e-5)


@arrays
def test_log_softmax_and_distances_by_hand_are_stable(form: str) -> None:
    """log(softmax(z)) and z − log Σ eᶻ at ±1000, and roots of sums of squares at equal points, were NaN."""
    points = np.array([-1000.0, 1000.0, 0.0])
    for f in (lambda z: np.log(softmax(z))[0], lambda z: (z - np.log(np.exp(z).sum(-1)))[0]):
        value, slope = both(f, [(3,)], form)(points)
        np.testing.assert_allclose([value, *slope], [-2000.0, 1.0, -1.0, 0.0])

    def matern(a: Any, b: Any) -> Any:
        r = np.sqrt(3 * ((a - b) ** 2).sum(-1))
        return ((1 + r) * np.exp(-r)).sum()

    value, *slopes = both(matern, [(2, 3)] * 2, form)(np.ones((2, 3)), np.ones((2, 3)))
    assert value == 2.0 and not np.any(slopes)


@every
def test_poles_have_the_values_of_ieee(form: str) -> None:
    """ψ₁ raised ZeroDivisionError at 0 and −1, and so did the second derivative of log Γ."""
    kernel = made(symad.trace(sp.polygamma(1, x)), form)
    assert kernel(0.0) == kernel(-1.0) == np.inf
    assert np.isposinf(made(symad.hessian(sp.loggamma(x), x), form)(0.0)).all()


@arrays
def test_softmax_runs_over_the_last_axis(form: str) -> None:
    """Without an axis it ran over the whole matrix."""
    Q, K = sp.MatrixSymbol("Q", 2, 3), sp.MatrixSymbol("K", 4, 3)
    q, k = np.arange(6.0).reshape(2, 3) / 6, np.arange(12.0).reshape(4, 3) / 7
    found = made(symad.trace(softmax(Q * K.T)), form)(Q=q, K=k)
    np.testing.assert_allclose(found, scipy.special.softmax(q @ k.T, axis=-1))


@arrays
def test_roots_of_one_by_one_matrices(form: str) -> None:
    """A 1×1 matrix is a scalar, also under a root: |x − a| and its slope."""
    X, A = sp.MatrixSymbol("x", 3, 1), sp.MatrixSymbol("a", 3, 1)
    point = np.array([[3.0], [4.0], [0.0]])
    length = symad.value_and_gradient(((X - A).T * (X - A)) ** sp.Rational(1, 2), [X])
    value, slope = made(length, form)(x=point, a=np.zeros((3, 1)))
    assert value == 5.0
    np.testing.assert_allclose(slope, point / 5)


@every
def test_an_inner_parameter_may_have_the_name_of_an_outer_value(form: str) -> None:
    """Inputs were told apart by name and shape: d/dx x · d(x z)/dz came out as 12, right is 2x = 6."""

    def f(x: Any) -> Any:
        z = x
        return z * symad.gradient(symad.trace(lambda x: z * x, [()]))(x)

    slope = made(symad.gradient(symad.trace(f, [()])), form)(3.0)
    assert slope == 6.0


@every
def test_functions_are_found_by_name_and_number_of_arguments(form: str) -> None:
    """E(φ | m) on arrays called SciPy's function of one argument, with m as its ``out``."""
    points = np.array([0.3, 0.7]), np.array([0.5, 0.2])
    found = made(symad.trace(sp.elliptic_e(x, y)), form)(*points)
    np.testing.assert_allclose(found, [float(mpmath.ellipe(a, m)) for a, m in zip(*points, strict=True)])
    slope = made(symad.gradient(sp.elliptic_f(x, y)), form)(0.3, 0.5)[0]
    assert slope == pytest.approx(1 / np.sqrt(1 - 0.5 * np.sin(0.3) ** 2))


@pytest.mark.sample(2)
@arrays
def test_counts_and_deviations(form: str) -> None:
    """The norm of order 0 was inf; the slope of a deviation along an axis of length 1 was NaN."""
    count = made(symad.trace(lambda v: np.linalg.norm(v, ord=0), [(4,)]), form)
    assert count(np.array([0.0, 2.0, 0.0, -1.0])) == 2.0
    slope = made(symad.gradient(symad.trace(lambda a: np.std(a, axis=1).sum(), [(3, 1)])), form)(
        np.ones((3, 1))
    )
    assert not slope.any()


@every
def test_selections_between_symbols_are_numbers(form: str) -> None:
    """ITE(x, y, z) at (true, 5, 3) was True, as its branches were taken for conditions."""
    X, Y, Z = sp.symbols("x y z")
    kernel = made(symad.trace(sp.ITE(X, Y, Z)), form)
    assert (kernel(True, 5.0, 3.0), kernel(False, 5.0, 3.0)) == (5.0, 3.0)


@arrays
def test_empty_arrays_keep_their_shape(form: str) -> None:
    """np.array([]) was printed for a constant of shape (0, 2, 4)."""
    assert made(symad.trace(lambda a: np.zeros((0, 2, 4)) * a, [()]), form)(1.0).shape == (0, 2, 4)
    joined = symad.trace(lambda a: np.concatenate([a, np.zeros((0, 2, 4))]), [(1, 2, 4)])
    assert made(joined, form)(np.ones((1, 2, 4))).shape == (1, 2, 4)


A23 = np.arange(6.0).reshape(2, 3)
READ = {
    "a list of unequal arrays": (lambda p: p[0].sum() + p[1].sum(), [A23, np.ones(4)], 19.0),
    "columns first": (lambda a: a.reshape((3, 2), order="F"), A23, A23.reshape((3, 2), order="F")),
    "flat, columns first": (lambda a: a.flatten("F"), A23, A23.flatten("F")),
    "padded axes by name": (lambda a: np.pad(a, {0: 1}), A23, np.pad(A23, ((1, 1), (0, 0)))),
    "an axis with itself": (lambda a: np.swapaxes(a, 0, 0), A23, A23),
    "SciPy's polygamma": (lambda a: scipy.special.polygamma(1, a), 0.5, np.pi**2 / 2),
}


@pytest.mark.parametrize("name", READ)
def test_calls_that_ended_in_errors_of_python(name: str) -> None:
    """Options, lists of arrays and functions whose answers raised TypeError or ValueError of Python's own."""
    f, value, right = READ[name]
    np.testing.assert_allclose(symad.trace(f, [value])(value), right)


@every
def test_harmonic_and_catalan_numbers(form: str) -> None:
    """Their forms of two arguments, and between the integers, ended in a TypeError."""
    assert made(symad.trace(sp.harmonic(x, 2)), form)(3.0) == pytest.approx(1 + 1 / 4 + 1 / 9)
    assert made(symad.trace(sp.catalan(x)), form)(3.0) == pytest.approx(5.0)


@every
def test_absolute_values_of_lengths(form: str) -> None:
    """The slope of |hypot(a, 1)| subtracted two conditions, which NumPy refuses."""
    kernel = both(lambda a: np.abs(np.hypot(a, 1.0)), [()], form)
    np.testing.assert_allclose(kernel(0.3), [np.hypot(0.3, 1), 0.3 / np.hypot(0.3, 1)])


@arrays
def test_slopes_at_the_edges_of_formulas(form: str) -> None:
    """sinc at 0 and a⁰ at 0 had NaN for slopes."""
    for f in (lambda a: np.sinc(a).sum(), lambda a: (a**0.0).sum()):
        assert not both(f, [(2,)], form)(np.zeros(2))[1].any()


@every
def test_roots_and_logarithms_of_every_base(form: str) -> None:
    """Compiled code had no hypot, exp2, log2, log10 and cbrt."""
    f = symad.trace(
        lambda a, b: (np.hypot(a, b), np.exp2(a), np.log2(b), np.log10(b), np.cbrt(a)), [(), ()]
    )
    with mpmath.workdps(30):
        a, b = mpmath.mpf(0.3), mpmath.mpf(0.7)
        right = [mpmath.hypot(a, b), 2**a, mpmath.log(b, 2), mpmath.log10(b), mpmath.cbrt(a)]
    np.testing.assert_allclose(made(f, form)(0.3, 0.7), [float(v) for v in right], rtol=1e-15)


@every
def test_undefined_stays_undefined(form: str) -> None:
    """Where no piece holds, the value was NaN and derivatives were 0."""
    f = sp.Piecewise((x**2, x > 0))
    for graph in (symad.trace(f), symad.gradient(f, x), symad.hessian(f, x)):
        assert np.isnan(made(graph, form)(-1.0)).all()


@arrays
def test_masks_of_arrays_are_not_lost(form: str) -> None:
    """A masked element came in as the number below its mask."""
    with pytest.raises((EvaluationError, TypeError), match="a was given a masked array"):
        made(symad.trace(lambda a: a.sum(), [(2,)]), form)(np.ma.array([1.0, 1e40], mask=[False, True]))


@every
def test_quotients_of_integers_beyond_the_floats(form: str) -> None:
    """10⁴⁰⁰/10³⁹⁹ was inf/inf."""
    ten = sp.Mul(sp.Integer(10) ** 400, sp.Pow(sp.Integer(10) ** 399, -1, evaluate=False), evaluate=False)
    assert made(symad.trace(ten * x), form)(1.0) == 10.0


WRONG = {
    "shape": ((3, 2), float, "A"), "text": ((2, 3), str, "A"), "complex": ((2, 3), complex, "A"),
    "objects": ((2, 3), object, "A"),
}  # fmt: skip


@arrays
@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_named(name: str, form: str) -> None:
    """Errors of NumPy named no input, or "argument 1"."""
    shape, kind, named = WRONG[name]
    value = np.full(shape, object(), dtype=object) if kind is object else np.ones(shape).astype(kind)
    kernel = made(symad.trace(sp.MatrixSymbol("A", 2, 3) * sp.MatrixSymbol("B", 3, 2)), form)
    with pytest.raises((EvaluationError, ValueError, TypeError), match=rf"\b{named} (was|must)|of {named} "):
        kernel(value, np.ones((3, 2)))


def test_shapes_that_do_not_fit_are_told_in_words_of_the_user() -> None:
    """A pattern of unknown length ended in SymPy's words, products in NumPy's."""
    n = sp.Symbol("n", integer=True, positive=True)
    moving = symad.trace(lambda a: (a[1:] * a[:-1]).sum(), [(n,)])
    with pytest.raises(ShapeError, match="needs numbers for the dimensions n"):
        symad.hessian(moving, sparse=True)
    with pytest.raises(ShapeError, match=r"a \(2, 3\) and b \(2, 3\)"):
        symad.trace(lambda a, b: a @ b, [(2, 3), (2, 3)])


def test_sums_up_to_a_value() -> None:
    """A limit that is a symbol: Σ_{i ≤ n} x i = x n (n + 1)/2."""
    n, i = sp.Symbol("n", integer=True, positive=True), sp.Symbol("i", integer=True)
    kernel = lower(sp.Sum(x * i, (i, 1, n)))
    assert kernel(x=2.0, n=3.0) == 12.0
