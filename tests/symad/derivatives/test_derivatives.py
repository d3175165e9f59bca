"""Derivatives of scalar expressions in every mode, against SymPy's own diff at 30 digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES

x, y, z = sp.symbols("x y z", real=True)
SYMBOLS = (x, y, z)
POINT = {x: sp.Rational(7, 5), y: sp.Rational(4, 5), z: sp.Rational(11, 10)}

EXPRESSIONS = [
    x * y * z + x**3 / y - 2 * z,
    sp.sin(x * y) * sp.exp(-x / 3) + sp.sqrt(x**2 + y**2) / z,
    sp.tanh(x - y) ** 3 * sp.log(z + x),
    x**y + y**z + z ** (x * y),
    (x + 2 * y) ** sp.Rational(3, 2) / (z**2 + 1) ** 2,
    sp.atan2(y, x) * sp.asinh(z) + sp.acos(y / 3),
    sp.erf(x * y) + sp.gamma(z) + sp.loggamma(x),
    sp.besselj(2, x * y) + sp.bessely(0, z),
    sp.Piecewise((x**2 * y, x > y), (sp.sin(z), True)) * z,
    sp.Max(x, y * z) * sp.Min(x, z) + sp.Abs(y - x),
    sp.cosh(x) / sp.sinh(y) + sp.sec(z / 3) * sp.cot(x),
    sp.Heaviside(x - y) * x**2 + sp.sign(z) * y,
    sp.floor(x) * y**2 + sp.Mod(z, 1) * x,
    sp.exp(sp.sin(sp.cos(x * y) + z)) / (1 + sp.exp(-x)),
    x**2 * y**2 * z**2 * (x + y) * (y + z) / (x * z),
    sp.LambertW(x) * sp.Si(y) + sp.airyai(z),
]


def exact(expression: sp.Expr) -> float:
    return float(sp.N(expression.subs(POINT), 30))


def locally_smooth(e: sp.Expr) -> sp.Expr:
    """The expression around the point: steps are constants there, extremes their largest argument."""

    def chosen(arguments: tuple[sp.Expr, ...], sign: int) -> sp.Expr:
        return max(arguments, key=lambda a: sign * exact(a))

    e = e.replace(sp.Mod, lambda a, b: a - b * sp.floor(a / b))
    for head in (sp.floor, sp.sign, sp.Heaviside):
        e = e.replace(head, lambda *a, head=head: head(a[0].subs(POINT)))
    e = e.replace(sp.Abs, lambda a: a * sp.sign(a.subs(POINT)))
    e = e.replace(sp.Max, lambda *a: chosen(a, 1))
    return e.replace(sp.Min, lambda *a: chosen(a, -1))


def point() -> list[float]:
    return [float(POINT[s]) for s in SYMBOLS]


@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_gradient_is_sympys(e: sp.Expr, mode: str) -> None:
    expected = [exact(locally_smooth(e).diff(s)) for s in SYMBOLS]
    assert np.allclose(
        symad.gradient(e, SYMBOLS, mode=mode)(*point()), expected, rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_hessian_is_sympys(e: sp.Expr, mode: str) -> None:
    smooth = locally_smooth(e)
    expected = [[exact(smooth.diff(a).diff(b)) for b in SYMBOLS] for a in SYMBOLS]
    assert np.allclose(
        symad.hessian(e, SYMBOLS, mode=mode)(*point()), expected, rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("mode", [m for m in MODES if m != "forward-over-forward"])
def test_hessian_vector_products_are_hessian_times_vector(mode: str) -> None:
    e = EXPRESSIONS[1]
    v = [0.3, -1.2, 0.7]
    expected = symad.hessian(e, SYMBOLS)(*point()) @ v
    assert np.allclose(symad.hvp(e, SYMBOLS, mode=mode)(*point(), *v), expected, rtol=1e-13)


def test_forward_over_forward_gives_no_product() -> None:
    with pytest.raises(symad.errors.DerivativeError, match="uᵀHv"):
        symad.hvp(x**2, mode="forward-over-forward")


def test_exact_rational_derivatives() -> None:
    e = x**3 / y + x * y**2
    values = symad.gradient(e, (x, y))(Fraction(1, 3), Fraction(2, 7))
    assert values == (
        Fraction(1, 3) ** 2 * 3 / Fraction(2, 7) + Fraction(2, 7) ** 2,
        -(Fraction(1, 3) ** 3) / Fraction(2, 7) ** 2 + 2 * Fraction(1, 3) * Fraction(2, 7),
    )


def test_third_derivatives_by_composing() -> None:
    third = symad.gradient(symad.gradient(symad.gradient(sp.exp(2 * x) * x, x), x), x)
    assert float(third(0.3)) == pytest.approx(exact_third(), rel=1e-13)


def exact_third() -> float:
    return float(sp.N((sp.exp(2 * x) * x).diff(x, 3).subs(x, sp.Rational(3, 10)), 30))


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobian_of_a_matrix_flattens_by_rows(mode: str) -> None:
    m = sp.Matrix([[x * y, sp.sin(z)], [x + z, y**2]])
    expected = np.array(
        sp.Matrix(m.reshape(4, 1)).jacobian(SYMBOLS).subs(POINT).evalf(30).tolist(), dtype=float
    )
    graph = symad.jacobian(m, SYMBOLS, mode=mode)
    assert graph(*point()).shape == (4, 3)
    assert np.allclose(graph(*point()), expected, rtol=1e-14)


def test_the_choice_of_mode_is_reported() -> None:
    assert "reverse" in symad.jacobian(x * y * z).report
    assert "forward" in symad.jacobian([x, x**2, x**3, x**4], x).report


def test_pushforward_and_pullback_are_adjoint() -> None:
    m = sp.Matrix([x * y, sp.sin(x) / z])
    v, w = [0.2, -0.4, 1.5], np.array([[0.7], [-0.3]])
    y_dot = symad.pushforward(m, SYMBOLS)(*point(), *v)[1]
    x_bar = symad.pullback(m, SYMBOLS)(*point(), w)[1:]
    assert np.vdot(w, y_dot) == pytest.approx(np.dot(x_bar, v), rel=1e-14)


def test_value_and_gradient_is_flat() -> None:
    assert symad.value_and_gradient(x**2 * y, (x, y))(3.0, 2.0) == (18.0, 12.0, 9.0)


def test_structure_of_outputs() -> None:
    g = symad.trace({"a": x, "b": [y, sp.Matrix([[x, y]])]})
    value = g(1.0, 2.0)
    assert list(value) == ["a", "b"]
    assert value["b"][0] == 2.0
    assert value["b"][1].shape == (1, 2)


def test_bare_wrt_gives_a_bare_value() -> None:
    assert symad.gradient(x * y, x)(2.0, 5.0) == 5.0
    assert symad.gradient(x * y, [x])(2.0, 5.0) == (5.0,)


def test_wrt_that_does_not_occur_has_zero_derivative() -> None:
    assert symad.gradient(x**2, (x, z))(3.0, 1.0) == (6.0, 0.0)


def test_inputs_stand_in_natural_order_whatever_wrt_is() -> None:
    assert symad.trace(z + x * y).inputs == (x, y, z)
    assert symad.gradient(z + x * y, z).inputs == (x, y, z)
    many = sp.symbols("x:12", real=True)
    assert symad.trace(sp.Add(*many)).inputs == many
    assert symad.trace([sp.MatrixSymbol("B", 2, 2), many[10], many[2]]).inputs[1:] == (many[2], many[10])


# ---- the non-smooth policy -----------------------------------------------------------------------


def test_ties_in_max_split_evenly() -> None:
    assert symad.gradient(sp.Max(x, y, z), SYMBOLS)(1.0, 1.0, 1.0) == pytest.approx(
        (1 / 3, 1 / 3, 1 / 3)
    )
    assert symad.gradient(sp.Max(x, y, z), SYMBOLS)(2.0, 2.0, 1.0) == (0.5, 0.5, 0.0)


def test_absolute_value_has_slope_zero_at_zero() -> None:
    assert symad.gradient(sp.Abs(x), x)(0.0) == 0.0


def test_steps_have_derivative_zero() -> None:
    e = sp.Heaviside(x) + sp.sign(x) + sp.floor(x) + sp.ceiling(x)
    assert symad.gradient(e, x)(0.0) == 0.0
    assert symad.hessian(e, x)(0.5) == 0.0


@pytest.mark.parametrize(
    "branch",
    [sp.sqrt(sp.log(x)), 1 / (x * sp.log(x)), sp.acos(1 / x), sp.log(sp.sqrt(x - 1)) * x],
    ids=str,
)
@pytest.mark.parametrize("mode", MODES)
def test_untaken_branches_never_leak(branch: sp.Expr, mode: str) -> None:
    e = sp.Piecewise((branch, x > 1), (x**2, True))
    assert symad.gradient(e, x)(0.0) == 0.0
    assert symad.hessian(e, x, mode=mode)(0.0) == 2.0
    assert symad.gradient(e, x)(Fraction(0)) == 0
    taken = float(sp.N(branch.diff(x, 2).subs(x, 2), 30))
    assert symad.hessian(e, x, mode=mode)(2.0) == pytest.approx(taken, rel=1e-12)


def test_powers_at_zero_give_the_limits() -> None:
    gradient = symad.gradient(x**y, (x, y))
    assert gradient(0.0, 2.0) == (0.0, 0.0)
    assert gradient(0.0, 1.0) == (1.0, 0.0)
    assert symad.gradient(x**3, x)(0.0) == 0.0
    assert symad.gradient(sp.sqrt(x), x)(0.0) == np.inf


# ---- size ----------------------------------------------------------------------------------------


def test_products_differentiate_in_linear_time() -> None:
    xs = sp.symbols("x0:300")
    gradient = symad.gradient(sp.Mul(*xs), xs)
    assert len(gradient.nodes) < 5 * 300
    values = np.linspace(0.9, 1.1, 300)
    assert np.allclose(gradient(*values), np.prod(values) / values, rtol=1e-12)
    values[7] = 0.0
    assert gradient(*values)[7] == pytest.approx(np.prod(np.delete(values, 7)), rel=1e-12)


def test_shared_dags_stay_shared() -> None:
    f = x
    for _ in range(30):
        f = sp.sin(f) * f + f
    gradient = symad.gradient(f, x)
    assert len(gradient.nodes) < 400
    step = symad.trace(sp.sin(x) * x + x)
    value, slope = 0.1, 1.0
    for _ in range(30):
        slope *= float(np.cos(value) * value + np.sin(value) + 1)
        value = float(step(value))
    assert float(gradient(0.1)) == pytest.approx(slope, rel=1e-10)


@pytest.mark.thorough
def test_deep_chains_do_not_recurse() -> None:
    with sp.evaluate(False):
        f = x
        for _ in range(5_000):
            f = sp.Add(sp.sin(f, evaluate=False), 1, evaluate=False)
    gradient = symad.gradient(f, x)
    assert np.isfinite(gradient(0.3))


def test_sums_of_many_terms() -> None:
    xs = sp.symbols("x0:2000")
    gradient = symad.gradient(sp.Add(*[s**2 for s in xs]), xs)
    assert np.array_equal(gradient(*np.arange(2000.0)), 2 * np.arange(2000.0))


# ---- evaluation ----------------------------------------------------------------------------------


def test_round_trip_is_the_same_graph() -> None:
    for e in EXPRESSIONS:
        graph = symad.trace(e)
        assert symad.trace(symad.to_sympy(graph)) is graph


def test_batches_lead() -> None:
    g = symad.hessian(x * y**2, (x, y))
    batch = g(np.array([1.0, 2.0, 3.0]), 2.0)
    assert batch.shape == (3, 2, 2)
    assert np.array_equal(batch[2], [[0, 4], [4, 6]])


def test_symbolic_values() -> None:
    assert sp.expand(symad.gradient(x**2 * y, x)(x + 1, y) - 2 * (x + 1) * y) == 0


def test_integers_are_promoted() -> None:
    assert symad.trace(x / y)(1, 2) == 0.5


@pytest.mark.parametrize("bad", ["text", 1j, None, np.array(["a"]), np.array([1j])])
def test_values_that_are_no_real_numbers(bad: object) -> None:
    with pytest.raises(symad.errors.EvaluationError, match="x was given"):
        symad.trace(x**2)(bad)


def test_missing_values_are_named() -> None:
    with pytest.raises(symad.errors.EvaluationError, match="missing: y, z"):
        symad.trace(x * y * z)(1.0)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (sp.Integral(sp.Function("h")(x), (x, 0, y)), "depends on the index x"),
        (sp.Integral(sp.exp(x**2), x), "has no bounds"),
        (sp.Derivative(sp.Function("h")(x) * x, x), "unevaluated Derivative"),
        (x + sp.oo * y, "oo"),
        (sp.Add(x, sp.nan, evaluate=False), "nan"),
        (sp.Add(x, sp.zoo, evaluate=False), "zoo"),
        (sp.I * x, "imaginary"),
    ],
)
def test_expressions_without_real_values(expression: sp.Expr, message: str) -> None:
    with pytest.raises(symad.errors.TraceError, match=message):
        symad.trace(expression)


def test_non_scalar_functions_have_no_gradient() -> None:
    with pytest.raises(symad.errors.DerivativeError, match="scalar"):
        symad.gradient([x, y], x)
    with pytest.raises(symad.errors.DerivativeError, match="scalar"):
        symad.hessian(sp.Matrix([x, y]), x)


def test_piecewise_without_default_is_nan_where_no_branch_holds() -> None:
    g = symad.trace(sp.Piecewise((x, x > 1)))
    assert g(2.0) == 2.0
    assert np.isnan(g(0.0))


class Cube(sp.Function):
    """A user's own function with its derivative."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return 3 * self.args[0] ** 2


def test_users_functions_with_fdiff() -> None:
    graph = symad.gradient(Cube(x * y), (x, y))
    assert graph(2.0, 3.0) == (3 * 36.0 * 3.0, 3 * 36.0 * 2.0)


@pytest.mark.parametrize("family", [sp.legendre, sp.chebyshevt, sp.hermite, sp.laguerre])
def test_degrees_of_orthogonal_polynomials_have_no_derivative(family: type) -> None:
    """By x they have one, of any degree; by the degree none, and the message says what to do."""
    degree = sp.Symbol("degree", integer=True, nonnegative=True)
    slope = symad.gradient(family(degree, x), x)  # type: ignore[call-arg]
    for k in (1, 3, 4):
        expected = float(family(k, x).diff(x).subs(x, sp.Rational(3, 10)))  # type: ignore[call-arg]
        assert np.isclose(float(slope(k, 0.3)), expected, rtol=1e-12)
    with pytest.raises(symad.errors.DerivativeError, match=r"argument 1 of 2, such as a degree.*give wrt"):
        symad.gradient(family(degree, x))  # type: ignore[call-arg]


def test_powers_of_numbers_have_no_case_for_a_base_of_zero() -> None:
    """Comparisons of numbers are made once: d(2^x)/dx is 2^x log 2, without a selection."""
    graph = symad.gradient(sp.Integer(2) ** x, x)
    assert not any(type(node.op).__name__ in ("Compare", "Select") for node in graph.nodes)
    assert np.isclose(graph(1.5), 2**1.5 * np.log(2), rtol=1e-15)
