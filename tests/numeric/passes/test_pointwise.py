"""Scalar formulas as printed NumPy code, and scalar derivatives, against evaluation in 30 digits."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.codegen import cfunctions as cf

from symad.core.graph import Graph
from symad.errors import DerivativeError, LoweringError
from symad.numeric.numpy_arrays import lower
from symad.numeric.numpy_arrays.pairs.formulas import ExpressionText
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.pairs.stable_sympy import derivative, exact_integers
from symad.numeric.scheduling.roles import NO_ROLES
from symad.ops.basic.sources import input_node
from tests.numeric.passes.digits import values

X, Y, Z = sp.symbols("x y z", real=True)
K, J = sp.symbols("k j", integer=True)


def written(expressions, symbols):
    """The statements of printed code, the texts of the expressions, and their values as a function."""
    inputs = tuple(input_node(s) for s in symbols)
    plans = lower.plans(lower.passes, "float64", NO_ROLES)
    printer = ArrayWriter(Graph(inputs, inputs), "float64", plans)
    names = {s: s.name for s in symbols}
    text = ExpressionText(printer, {*names.values()}, names, {})
    results = [str(made) for made in text.write(*expressions)]
    lines = [*text.lines, f"return {', '.join(results)},"]
    imports = ["import numpy as np", *sorted(printer.imports), *printer.helpers.values()]
    source = [*imports, f"def f({', '.join(names.values())}):", *(f"    {line}" for line in lines)]
    module = {}
    exec("\n".join(source), module)
    return text.lines, results, module["f"]


def program(expressions, symbols):
    """Printed code as a function."""
    return written(expressions, symbols)[2]


UNARY = {
    sp.exp: 0.7, sp.log: 0.7, sp.sin: 0.7, sp.cos: 0.7, sp.tan: 0.7, sp.asin: 0.7, sp.acos: 0.7,
    sp.atan: 0.7, sp.sinh: 0.7, sp.cosh: 0.7, sp.tanh: 0.7, sp.asinh: 0.7, sp.acosh: 1.7,
    sp.atanh: 0.7, sp.erf: 0.7, sp.erfc: 0.7, sp.gamma: 2.7, sp.loggamma: 2.7, sp.Abs: -0.7,
    sp.sign: -0.7, sp.floor: -0.7, sp.ceiling: 0.7, sp.Heaviside: 0.7, cf.exp2: 0.7,
    cf.expm1: 0.7, cf.log1p: 0.7, cf.log2: 0.7, cf.Sqrt: 0.7,
}  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_functions_of_one_argument(function):
    at = UNARY[function]
    (found,) = program([function(X)], [X])(np.array([at, at]))
    np.testing.assert_allclose(found, float(exact(function, at)), rtol=1e-14)


def exact(function, at):
    """The function to 30 digits; SymPy does not evaluate those made for code, mpmath does."""
    forms = {
        cf.exp2: lambda a: mpmath.mpf(2) ** a,
        cf.expm1: mpmath.expm1,
        cf.log1p: mpmath.log1p,
        cf.log2: lambda a: mpmath.log(a, 2),
        cf.Sqrt: mpmath.sqrt,
    }
    if function in forms:
        with mpmath.workdps(30):
            return forms[function](mpmath.mpf(at))
    return sp.N(function(sp.Float(at, 30)), 30)


MANY = [
    X * Y - Z / 3 + sp.pi,
    X**3 + Y**-2 + sp.sqrt(Z) + 1 / sp.sqrt(Z) + Z**X + Y ** sp.Rational(1, 3),
    sp.atan2(X, Y),
    sp.Mod(X, Y) + sp.Max(X, Y, Z) - sp.Min(X, Y, Z),
    sp.Piecewise((X, X < Y), (Y, Y < Z), (Z, True)),
    sp.Piecewise((1, (X < Y) & (Y < Z) | sp.Not(Z > X)), (2, sp.Ne(X, Y) ^ (Z >= Y)), (3, True)),
]


@pytest.mark.parametrize("expr", MANY, ids=str)
def test_expressions(expr):
    points = np.random.default_rng(0).uniform(0.2, 2, size=(3, 20))
    (found,) = program([expr], [X, Y, Z])(*points)
    (exact_values,) = values([expr], [X, Y, Z], points)
    np.testing.assert_allclose(np.broadcast_to(found, 20), exact_values, rtol=1e-13)


@pytest.mark.parametrize("kind", [sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge])
@pytest.mark.parametrize("join", [sp.And, sp.Or, sp.Xor, sp.Not])
def test_conditions(kind, join):
    x, y = np.meshgrid([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    condition = join(kind(X, Y)) if join is sp.Not else join(kind(X, Y), X > 2)
    (found,) = program([condition], [X, Y])(x, y)
    for a, b, result in zip(x.flat, y.flat, np.broadcast_to(found, x.shape).flat, strict=True):
        assert bool(condition.subs({X: a, Y: b})) == result


def test_shared_parts_are_computed_once_and_others_where_they_are_used():
    shared = sp.tanh(X * Y)
    lines, results, _ = written([shared + 1, shared**2, sp.sin(shared) / 3], [X, Y])
    assert lines == ["f1 = np.tanh(x*y)", "f2 = np.sin(f1)"]
    assert results == ["1 + f1", "f1*f1", "0.3333333333333333*f2"]


def test_integers_stay_exact():
    i, j = np.arange(-60, 60)[:, None], np.arange(1, 50)
    expr = exact_integers(sp.floor(K / 49) + sp.ceiling((K - J) / 3) + sp.Mod(K, 7))
    (found,) = program([expr], [K, J])(i, j)
    np.testing.assert_array_equal(found, i // 49 - (-(i - j) // 3) + i % 7)
    (found,) = program([exact_integers(K / 3 <= J / 7)], [K, J])(i, j)
    np.testing.assert_array_equal(found, 7 * i <= 3 * j)


def test_ties_share_the_derivative():
    (found,) = program([derivative(sp.Max(X, Y, Z), X)], [X, Y, Z])(
        np.array([2.0, 2.0, 2.0, 1.0]), np.array([1.0, 2.0, 2.0, 2.0]), np.array([1.0, 1.0, 2.0, 0])
    )
    np.testing.assert_allclose(found, [1, 1 / 2, 1 / 3, 0])
    (found,) = program([derivative(sp.Min(X, Y), Y)], [X, Y])(np.array([1.0, 3]), np.array([1.0, 2]))
    np.testing.assert_allclose(found, [1 / 2, 1])


def test_steps_have_derivative_zero():
    step = sp.sign(X) + sp.floor(X) + sp.ceiling(X) + sp.Heaviside(X)
    assert derivative(step * X, X).subs(X, sp.Rational(1, 2)) == 1 + 0 + 1 + 1
    assert derivative(derivative(sp.Abs(X) ** 3, X), X).has(sp.DiracDelta) is False
    second = derivative(derivative(sp.Max(X, Y) ** 2, X), X)
    (found,) = program([second], [X, Y])(np.array([3.0]), np.array([1.0]))
    np.testing.assert_allclose(found, 2)


def test_a_piecewise_is_nan_where_no_condition_holds():
    made = sp.Piecewise((X, X > 2), (0, X > 1))
    (found,) = program([made], [X])(np.array([3.0, 1.5, 0.5]))
    np.testing.assert_array_equal(found, [3, 0, np.nan])


def test_powers_of_integers_are_real():
    (found,) = program([K**-2 + 2 ** (K - J) + K**X], [K, J, X])(np.arange(1, 5), 3, 0.5)
    k = np.arange(1.0, 5)
    np.testing.assert_allclose(found, k**-2 + 2 ** (k - 3) + k**0.5, rtol=1e-15)


def test_errors():
    unknown = sp.Function("zap")
    with pytest.raises(LoweringError, match="zap"):
        program([unknown(X)], [X])
    with pytest.raises(DerivativeError, match="fdiff"):
        derivative(sp.Function("w")(X), X)
