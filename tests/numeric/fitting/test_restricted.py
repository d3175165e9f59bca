"""Minima under bounds and constraints, against published solutions, and standard errors."""

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import symad
from symad.errors import EvaluationError
from symad.numeric import least_squares, minimize

x = sp.symbols("x1:5", real=True)
x1, x2, x3, x4 = x
p, q = sp.symbols("p q", real=True)

# Hock and Schittkowski, "Test Examples for Nonlinear Programming Codes" (1981): by number the function, the
# start, the bounds, the constraints, the solution.
PROBLEMS = {
    4: ((x1 + 1) ** 3 / 3 + x2, [1.125, 0.125], [(1, None), (0, None)], None, [1, 0]),
    6: ((1 - x1) ** 2, [-1.2, 1.0], None, sp.Eq(10 * (x2 - x1**2), 0), [1, 1]),
    7: (sp.log(1 + x1**2) - x2, [2.0, 2.0], None, sp.Eq((1 + x1**2) ** 2 + x2**2, 4), [0, 3**0.5]),
    21: (x1**2 / 100 + x2**2 - 100, [-1.0, -1.0], [(2, 50), (-50, 50)], 10 * x1 - x2 >= 10, [2, 0]),
    28: (
        (x1 + x2) ** 2 + (x2 + x3) ** 2, [-4.0, 1, 1], None, sp.Eq(x1 + 2 * x2 + 3 * x3, 1),
        [0.5, -0.5, 0.5],
    ),
    35: (
        9 - 8 * x1 - 6 * x2 - 4 * x3 + 2 * x1**2 + 2 * x2**2 + x3**2 + 2 * x1 * x2 + 2 * x1 * x3,
        [0.5, 0.5, 0.5], [(0, None)] * 3, [x1 + x2 + 2 * x3 <= 3], [4 / 3, 7 / 9, 4 / 9],
    ),
    43: (
        x1**2 + x2**2 + 2 * x3**2 + x4**2 - 5 * x1 - 5 * x2 - 21 * x3 + 7 * x4,
        [0.0, 0, 0, 0], None,
        [
            8 - x1**2 - x2**2 - x3**2 - x4**2 - x1 + x2 - x3 + x4 >= 0,
            10 - x1**2 - 2 * x2**2 - x3**2 - 2 * x4**2 + x1 + x4 >= 0,
            5 - 2 * x1**2 - x2**2 - x3**2 - 2 * x1 + x2 + x4 >= 0,
        ],
        [0, 1, 2, -1],
    ),
    71: (
        x1 * x4 * (x1 + x2 + x3) + x3, [1.0, 5, 5, 1], [(1, 5)] * 4,
        [x1 * x2 * x3 * x4 >= 25, sp.Eq(x1**2 + x2**2 + x3**2 + x4**2, 40)],
        [1, 4.7429994, 3.8211503, 1.3794082],
    ),
}  # fmt: skip


@pytest.mark.parametrize("method", [None, "slsqp"])
@pytest.mark.parametrize("number", PROBLEMS)
def test_problems_of_hock_and_schittkowski(number, method):
    f, start, bounds, constraints, solution = PROBLEMS[number]
    inputs = x[: len(start)]
    found = minimize(f, start, bounds=bounds, constraints=constraints, method=method, inputs=inputs).checked()
    np.testing.assert_allclose(found.x, solution, rtol=1e-7, atol=2e-7)
    assert found.slope < 1e-5 and found.history[-1].value == found.value


@pytest.mark.thorough
@pytest.mark.parametrize("number", PROBLEMS)
def test_the_trust_region_finds_the_same(number):
    f, start, bounds, constraints, solution = PROBLEMS[number]
    given = {"bounds": bounds, "constraints": constraints, "inputs": x[: len(start)]}
    found = minimize(f, start, method="trust-constr", **given).checked()
    np.testing.assert_allclose(found.x, solution, rtol=1e-6, atol=1e-6)


ROSENBROCK = (1 - x1) ** 2 + 100 * (x2 - x1**2) ** 2
LIMIT = NonlinearConstraint(x1**2 + x2**2, -np.inf, 0.5)


@pytest.mark.parametrize(
    "constraint",
    [
        x1 + x2 <= 1,
        {"type": "ineq", "fun": lambda v: 1 - v[0] - v[1]},
        {"type": "ineq", "fun": lambda v, a: a - v.sum(), "args": (1.0,)},
        {"type": "ineq", "fun": 1 - x1 - x2},
        LinearConstraint([[1, 1]], ub=1),
        NonlinearConstraint(lambda v: np.sum(v), -np.inf, 1),
        NonlinearConstraint(symad.trace(x1 + x2), -np.inf, 1),
        [x1 + x2 <= 1, x1 + x2 >= -100, True],
    ],
    ids=range(8),
)
def test_every_form_of_a_constraint(constraint):
    found = minimize(ROSENBROCK, [-1.0, 2.0], constraints=constraint).checked()
    # on the line x2 = 1 - x1: f' = -2(1 - a) - 200 (1 - a - a²)(1 + 2a) = 0
    a = sp.Symbol("a")
    root = sp.nsolve(sp.diff((1 - a) ** 2 + 100 * (1 - a - a**2) ** 2, a), 0.6, prec=30)
    np.testing.assert_allclose(found.x, [float(root), 1 - float(root)], rtol=1e-8)


@pytest.mark.parametrize(
    "bounds",
    [
        [(None, 0.5), (None, None)],
        np.array([[-9, 0.5], [-9, 9]]),
        Bounds([-np.inf, -np.inf], [0.5, np.inf]),
        {x1: (None, 0.5)},
        {"x1": (None, 0.5), "x2": (-1, 1)},
    ],
    ids=range(5),
)
def test_every_form_of_bounds(bounds):
    found = minimize(ROSENBROCK, {"x1": -1.0, "x2": 2.0}, bounds=bounds).checked()
    assert found.x == pytest.approx({"x1": 0.5, "x2": 0.25}, rel=1e-9)


def test_bounds_of_arrays_and_a_start_outside():
    f = symad.trace(lambda w, b: np.sum((w - np.array([1.0, 2.0, 3.0])) ** 2) + (b - 1) ** 2, [(3,), ()])
    start = {"w": np.full(3, 9.0), "b": 9.0}
    for pair in [(None, [0.5, 5.0, 2.5]), (-10, np.array([0.5, 5.0, 2.5]))]:
        found = minimize(f, start, bounds={"w": pair}).checked()
        np.testing.assert_allclose(found.x["w"], [0.5, 2, 2.5], atol=1e-7)
    one = minimize(f, (np.zeros(3), 0.0), bounds=[(0, 2), (2, None)]).checked()  # a pair for each unknown
    np.testing.assert_allclose(one.x[0], [1, 2, 2], atol=1e-7)
    assert one.x[1] == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"constraints": x1 + x2 <= 1, "method": "newton"}, "'newton' takes no constraints; use 'slsqp'"),
        ({"bounds": [(0, 1)] * 2, "method": "newton-cg"}, "takes no bounds; use 'l-bfgs'"),
        ({"bounds": [(0, 1)] * 3}, "3 pairs for 2 unknowns with 2 elements"),
        ({"bounds": [(2, 1)] * 2}, "no value of x1 is between 2.0 and 1.0"),
        ({"bounds": {"q": (0, 1)}}, "q is none of the unknowns x1, x2"),
        ({"bounds": [(0, "a")] * 2}, "'a' is no number"),
        ({"bounds": [1, 2]}, "1 is no pair"),
        ({"constraints": sp.Symbol("z") > 1}, "number 0 is about z, but the inputs are x1, x2"),
        ({"constraints": "x < 1"}, "'x < 1' is none of"),
        ({"constraints": {"type": "eq", "fun": lambda v: 1 if v[0] > 0 else 2}}, "number 0, of the flat vec"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(options, told):
    with pytest.raises(EvaluationError) as caught:
        minimize(ROSENBROCK, [-1.0, 2.0], **options)
    assert told in str(caught.value)


def test_constraints_that_no_point_meets_are_no_minimum():
    found = minimize(ROSENBROCK, [-1.0, 2.0], constraints=[x1 + x2 <= 1, x1 + x2 >= 2])
    assert not found.converged and "violated by" in found.message


# ---- standard errors ------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (RNG.random(200) < 1 / (1 + np.exp(-X @ [1.0, -2.0, 0.5]))).astype(float)
LOGIT = symad.trace(
    lambda w, X, Y: np.sum(np.logaddexp(0, X @ w) - Y * (X @ w)), [(3,), (200, 3), (200,)]
)
DATA = {"X": X, "Y": Y}


@pytest.mark.thorough
def test_standard_errors_of_a_logistic_regression_are_those_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    theirs = api.Logit(Y, X).fit(disp=0)
    found = minimize(LOGIT, np.zeros(3), data=DATA).checked()
    np.testing.assert_allclose(found.x, theirs.params, rtol=1e-6)
    np.testing.assert_allclose(found.standard_errors(), theirs.bse, rtol=1e-6)


def information(w):
    p = 1 / (1 + np.exp(-X @ w))
    return X.T @ (X * (p * (1 - p))[:, None])


def test_standard_errors_along_a_constraint_are_those_of_the_reduced_problem():
    """w3 = -w1 - w2: with w = T u the covariance is T (Tᵀ I T)⁻¹ Tᵀ."""
    zero_sum = LinearConstraint(np.ones((1, 3)), 0, 0)
    found = minimize(LOGIT, np.zeros(3), data=DATA, constraints=zero_sum).checked()
    T = np.array([[1.0, 0], [0, 1], [-1, -1]])
    covariance = T @ np.linalg.inv(T.T @ information(found.x) @ T) @ T.T
    np.testing.assert_allclose(found.standard_errors(), np.sqrt(np.diag(covariance)), rtol=1e-8)


def test_standard_errors_along_a_curve_have_the_curvature_of_the_constraint():
    """On the circle v = r (cos t, sin t) the angle alone is free: s(v) = |v'(t)| / √f''(t)."""
    f = (x1 - 3) ** 2 + 2 * (x2 - 1) ** 2
    found = minimize(f, [1.0, 1.0], constraints=sp.Eq(x1**2 + x2**2, 4)).checked()
    t = sp.Symbol("t")
    along = f.subs({x1: 2 * sp.cos(t), x2: 2 * sp.sin(t)})
    at = float(np.arctan2(found.x[1], found.x[0]))
    spread = 1 / np.sqrt(float(along.diff(t, 2).subs(t, at)))
    wanted = np.abs([2 * np.sin(at), 2 * np.cos(at)]) * spread
    np.testing.assert_allclose(found.standard_errors(), wanted, rtol=1e-7)


def test_an_unknown_at_a_bound_has_no_standard_error():
    bounds = [(None, 0.8), (None, None), (None, None)]
    found = minimize(LOGIT, np.zeros(3), data=DATA, bounds=bounds).checked()
    inner = np.linalg.inv(information(found.x)[1:, 1:])
    np.testing.assert_allclose(found.standard_errors(), [np.nan, *np.sqrt(np.diag(inner))], rtol=1e-6)


def test_no_standard_errors_where_the_likelihood_is_flat():
    found = minimize((x1 + x2 - 1) ** 2, [0.5, 0.25])
    with pytest.raises(EvaluationError, match="does not change f"):
        found.standard_errors()


# ---- data that are not finite ---------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_data_that_are_not_finite_are_named(wrong):
    bad = X.copy()
    bad[3, 1] = wrong
    with pytest.raises(EvaluationError, match=rf"data: X is {wrong} at \(3, 1\); leave these out"):
        minimize(LOGIT, np.ones(3), data={"X": bad, "Y": Y})
    bad[5] = wrong
    with pytest.raises(EvaluationError, match="and not finite in 4 of 600 elements"):
        minimize(LOGIT, np.ones(3), data={"X": bad, "Y": Y})
    line = symad.trace(lambda w, X, Y: X @ w - Y, [(3,), (200, 3), (200,)])
    with pytest.raises(EvaluationError, match=r"the residuals are not finite.*X is"):
        least_squares(line, np.ones(3), data={"X": bad, "Y": Y})


def test_data_that_are_masked_may_hold_nan():
    def loss(w, Y):
        return np.sum(np.where(np.isnan(Y), 0.0, (Y - w) ** 2))

    found = minimize(symad.trace(loss, [(), (3,)]), 0.0, data={"Y": [1.0, np.nan, 3.0]}).checked()
    assert found.x == pytest.approx(2.0)
    with pytest.raises(EvaluationError, match="choose another x0"):
        minimize(sp.log(x1), -1.0)


GROUPED = [
    {"x": (0, 0.5)},
    {"x": [(0, 0.5), (None, 0.5)]},
    {"x": ([0, -3], [0.5, 0.5])},
    {"x": (None, np.array([0.5, 0.5]))},
    {p: (0, 0.5), q: (0, 0.5)},
]


@pytest.mark.parametrize("bounds", GROUPED)
def test_bounds_of_a_group(bounds):
    """By its name, also where a member has the same name, or by the symbols of its members."""
    f = (p - 1) ** 2 + (q - 2) ** 2
    for group in ("x", "q"):
        renamed = {group if k == "x" else k: pair for k, pair in bounds.items()}
        found = minimize(f, [0.0, 0.0], inputs={group: [p, q]}, bounds=renamed).checked()
        np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-9)


def test_bounds_of_groups_that_do_not_fit():
    given = {"inputs": {"x": [p, q]}}
    for bounds, words in (
        ({"x": [(0, 1)] * 3}, r"x is an array of shape \(2,\)"),
        ({"x": 3}, "3 is no pair"),
        ({"x": (0, 1), p: (0, 1)}, "p is given twice"),
    ):
        with pytest.raises(EvaluationError, match=words):
            minimize(p * q, [0.0, 0.0], bounds=bounds, **given)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "SLSQP", "Newton-CG"])
def test_names_of_scipy(method):
    assert minimize((p - 1) ** 2 + q**2, [0.0, 1.0], method=method).checked().value < 1e-12


def test_least_squares_within_bounds():
    """The condition of optimality: the slope is 0 inside, and points outwards at a bound."""
    t = np.linspace(0, 1, 20)
    residuals = [p * sp.exp(-q * float(s)) - 2 * float(np.exp(-1.3 * s)) for s in t]
    found = least_squares(residuals, {"p": 1.0, "q": 0.5}, bounds={"q": (0, 1)}).checked()
    assert found.x["q"] == pytest.approx(1.0, abs=1e-9)
    basis = np.exp(-t)
    assert found.x["p"] == pytest.approx(basis @ (2 * np.exp(-1.3 * t)) / (basis @ basis), rel=1e-8)
    free = least_squares(residuals, {"p": 1.0, "q": 0.5}, bounds={"q": (0, 3)}).checked()
    np.testing.assert_allclose([free.x["p"], free.x["q"]], [2, 1.3], rtol=1e-7)
    with pytest.raises(EvaluationError, match="single value is no unknown"):
        least_squares(residuals, {"p": 1.0, "q": 0.5}, bounds={"q": (1, 1)})


def test_bounds_of_least_squares_as_scipy_takes_them():
    """(lower, upper); of two unknowns two pairs may be either and are refused."""
    residuals = [p - 3, q + 1]
    found = least_squares(residuals, [0.5, 0.5], bounds=(0, np.inf)).checked()
    np.testing.assert_allclose(found.x, [3, 0], atol=1e-8)
    r = sp.Symbol("r", real=True)
    found = least_squares([*residuals, r], [0.5, 0.5, 0.5], bounds=([0, 0, -1], [2, 1, 1])).checked()
    np.testing.assert_allclose(found.x, [2, 0, 0], atol=1e-8)
    with pytest.raises(EvaluationError, match=r"\(lower, upper\) or a pair for each"):
        least_squares(residuals, [0.5, 0.5], bounds=([0.0, 0.0], [5.0, 1.0]))


@pytest.mark.parametrize("start", [[3.0], (3.0,), np.array([3.0])])
@pytest.mark.parametrize("bounds", [None, [(0, 5)]])
def test_one_scalar_takes_a_list_of_its_value(start, bounds):
    """As SciPy's minimize does, and in the form of several scalars: x is a tuple."""
    x = sp.Symbol("x", real=True)
    found = minimize((x - 2) ** 2, start, bounds=bounds)
    assert found.converged and isinstance(found.x, tuple)
    assert found.x == pytest.approx((2.0,))


def test_values_that_are_not_finite_are_no_convergence():
    """SciPy's line search stops there, and calls that convergence."""
    x = sp.Symbol("x", real=True)
    for f, start, low in ((x * sp.sqrt(x) - x**2, 1.0, -5), (sp.log(x) * sp.sqrt(x - 1), 1.5, 0)):
        found = minimize(f, start, bounds=[(low, 5 if low == 0 else 0.5)])
        assert not found.converged
        assert "not finite at" in found.message and "CONVERGENCE" not in found.message
