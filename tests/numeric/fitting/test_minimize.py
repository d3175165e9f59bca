"""Minimizers reach published minima; their parts follow the published algorithms; failures are reported."""

from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import EvaluationError, ShapeError, TraceError
from symad.numeric import least_squares, minimize
from symad.numeric.solvers.minimize import METHODS
from symad.numeric.solvers.newton import steihaug
from symad.numeric.solvers.newton_directions import modified_cholesky
from tests.known.more_garbow_hillstrom import PROBLEMS
from tests.numeric.fitting.reached import reached

LARGE = {"19 Osborne 2 n=11", "20 Watson n=9", "24 penalty II n=10"}
NOT_REACHED = {
    "newton": {"18 Biggs EXP6 n=6"},  # a flat valley towards infinity
    "newton-cg": {"10 Meyer n=3"},  # unknowns from 10⁻² to 10⁴, and no preconditioner
    "trust-exact": set(),
    "l-bfgs": {"3 Powell badly scaled n=2", "6 Jennrich and Sampson n=2", "10 Meyer n=3"},
}


def case(problem):
    return pytest.param(problem, id=str(problem), marks=[pytest.mark.slow] if str(problem) in LARGE else [])


@pytest.mark.sample(28)
@pytest.mark.parametrize("problem", [case(p) for p in PROBLEMS])
@pytest.mark.parametrize("method", ["newton", "newton-cg", "l-bfgs"])
def test_published_minima(method, problem):
    f = symad.trace(problem.objective, problem.unknowns)
    found = minimize(f, problem.start, method=method, tolerance=1e-11, iterations=2000)
    if str(problem) in NOT_REACHED[method]:
        assert not found.converged
        with pytest.raises(ArithmeticError, match="no minimum"):
            found.checked()
    else:
        assert reached(found.value, problem, f(*problem.start))
        assert found.value == pytest.approx(float(f(*found.x)))


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.number in (1, 4, 7, 8, 12, 17, 18)], ids=str)
def test_the_exact_trust_region(problem):
    f = symad.trace(problem.objective, problem.unknowns)
    found = minimize(f, problem.start, method="trust-exact", iterations=2000)
    assert reached(found.value, problem, f(*problem.start))


@pytest.mark.parametrize("problem", [case(p) for p in PROBLEMS])
def test_least_squares_reaches_published_minima(problem):
    r = symad.trace(problem.residuals, problem.unknowns)
    found = least_squares(r, problem.start)
    start = np.square(r(*problem.start)).sum()
    assert found.converged
    assert reached(2 * found.value, problem, start)
    assert np.allclose(found.residuals, r(*found.x), rtol=1e-12)


SMALL = [p for p in PROBLEMS if str(p) not in LARGE and p.number not in (3, 12, 13, 22, 24)][::2]


@pytest.mark.parametrize("problem", SMALL, ids=str)
@pytest.mark.parametrize("solver", ["sparse", "products"])
def test_solvers_without_a_dense_jacobian(solver, problem):
    r = symad.trace(problem.residuals, problem.unknowns)
    found = least_squares(r, problem.start, solver=solver)
    assert found.converged
    assert reached(2 * found.value, problem, np.square(r(*problem.start)).sum())


# ---- parts ---------------------------------------------------------------------------------------


def test_modified_cholesky_leaves_positive_definite_matrices_alone():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(5, 5))
    for h in (a @ a.T + np.eye(5), np.diag([1e-8, 1.0, 1e8])):
        (factor, _), scale, shift = modified_cholesky(h)
        lower = np.tril(factor) * scale[:, None]
        assert shift == 0
        assert np.allclose(lower @ lower.T, h, rtol=1e-12)


@pytest.mark.parametrize("h", [np.diag([1.0, -1.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((2, 2))])
def test_modified_cholesky_of_indefinite_matrices_is_positive_definite(h):
    (factor, _), scale, shift = modified_cholesky(h)
    lower = np.tril(factor) * scale[:, None]
    assert shift > 0
    assert np.linalg.eigvalsh(lower @ lower.T).min() > 0


def test_steihaug_against_the_exact_subproblem():
    """Inside the region it is Newton's step; outside at least as good as the Cauchy point; never beyond."""
    rng = np.random.default_rng(1)
    for k in range(20):
        a = rng.normal(size=(6, 6))
        h = a + a.T + (12 * np.eye(6) if k % 2 else 0)
        g = rng.normal(size=6)
        p, promised = steihaug(lambda d, h=h: h @ d, g, radius=0.5)
        assert np.linalg.norm(p) <= 0.5 * (1 + 1e-12)
        assert promised == pytest.approx(-(g @ p + p @ h @ p / 2))
        curvature = g @ h @ g
        length = 0.5 if curvature <= 0 else min(0.5, np.linalg.norm(g) ** 3 / curvature)
        cauchy = -length * g / np.linalg.norm(g)
        assert promised >= -(g @ cauchy + cauchy @ h @ cauchy / 2) * (1 - 1e-12)
        if k % 2:
            far, _ = steihaug(lambda d, h=h: h @ d, 1e-9 * g, radius=1e3)
            assert np.allclose(h @ far, -1e-9 * g, rtol=1e-3)


def test_newton_converges_quadratically():
    x, y = sp.symbols("x y", real=True)
    found = minimize(symad.trace((x - 1) ** 4 / 4 + (x - 1) ** 2 + sp.cosh(y) + x * y / 9, (x, y)), [3, 2])
    slopes = np.array([step.slope for step in found.history])
    near = slopes[(slopes < 0.1) & (slopes > 1e-7)]
    assert found.converged
    assert all(b <= 10 * a**2 for a, b in pairwise(near))


# ---- the interface ------------------------------------------------------------------------------


def ridge(w, X, y):
    return ((X @ w - y) ** 2).sum() / 2 + (w**2).sum() / 20


n, d = sp.symbols("n d", integer=True, positive=True)
RIDGE = symad.trace(ridge, [(d,), (n, d), (n,)])
RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(30, 4)), RNG.normal(size=30)


ONES, PAIR = np.ones((3, 2)), {"w": 1.0, "v": np.ones(2)}

AS_IN_SCIPY = {
    "an array": (lambda x: np.sum((x - [1, 2, 3]) ** 2), np.zeros(3), {}, [1, 2, 3]),
    "a list": (lambda x: (x[0] - 1) ** 2 + (x[1] - 2) ** 4 + x[1] ** 2, [0, 0], {}, [1, 1.16487765151863]),
    "a number": (lambda x: (x - 3) ** 2, 1.0, {}, 3),
    "several": (lambda a, b: (a - 1) ** 2 + np.sum((b - a) ** 2), [0, [0, 0]], {}, [1, 1, 1]),
    "names": (lambda a, b: (a - 1) ** 2 + np.sum((b - 2) ** 2), {"b": [0, 0], "a": 0}, {}, [2, 2, 1]),
    "data": (lambda x, A: np.sum((x @ A) ** 2) + np.sum((x - 1) ** 2), np.zeros(3), {"A": ONES}, [1 / 7] * 3),
    "a dict": (lambda p: (p["w"] - 3) ** 2 + np.sum(p["v"] ** 2), PAIR, {}, [3, 0, 0]),
    "options": (lambda x, power=4: np.sum((x - 1) ** power + (x - 1) ** 2), np.zeros(2), {}, [1, 1]),
}


@pytest.mark.parametrize("name", AS_IN_SCIPY)
def test_a_python_function_has_inputs_of_the_shapes_of_the_start(name):
    f, x0, data, minimum = AS_IN_SCIPY[name]
    found = minimize(f, x0, data=data).checked().x
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else [found]
    np.testing.assert_allclose(np.concatenate([np.ravel(p) for p in parts]), minimum, atol=1e-7)


def test_starts_that_fit_no_function_of_python():
    with pytest.raises(EvaluationError, match="f has the unknowns a, b, but x0 has 3 entries"):

        def f(a, b):
            return a + b

        minimize(f, [1.0, 2.0, 3.0])
    with pytest.raises(TraceError, match="a, c"):
        minimize(f, {"a": 1, "c": 2})


@pytest.mark.parametrize("method", METHODS)
def test_unknowns_and_data(method):
    expected = np.linalg.solve(X.T @ X + np.eye(4) / 10, X.T @ Y)
    found = minimize(RIDGE, {"w": np.zeros(4)}, data={"X": X, "y": Y}, method=method).checked()
    assert list(found.x) == ["w"]
    assert np.allclose(found.x["w"], expected, atol=1e-7)
    assert found.history[0].value == pytest.approx(float(Y @ Y / 2))
    assert found.iterations == len(found.history) - 1
    one = minimize(RIDGE, np.zeros(4), data={"X": X, "y": Y}, method=method)
    assert np.array_equal(one.x, found.x["w"])


def test_newton_cg_forms_no_hessian():
    """A chain of 20 000 unknowns: products alone; its optimality conditions hold."""
    u = sp.IndexedBase("u", shape=(n,))
    i = sp.Symbol("i", integer=True)
    f = sp.Sum((u[i + 1] - u[i]) ** 2 + u[i] ** 4 / 4 - u[i], (i, 0, n - 2)) + u[n - 1] ** 2
    found = minimize(symad.trace(f), np.zeros(20_000), method="newton-cg", tolerance=1e-9).checked()
    v = found.x
    inner = 2 * (2 * v[1:-1] - v[:-2] - v[2:]) + v[1:-1] ** 3 - 1
    assert np.abs(inner).max() < 1e-7
    assert found.products < 500


@pytest.mark.parametrize("method", [*METHODS, "levenberg-marquardt", "gauss-newton"])
def test_every_point_can_be_watched(method):
    x, y = sp.symbols("x y", real=True)
    rows, seen = [10 * (y - x**2), 1 - x], []
    if method in METHODS:
        objective = rows[0] ** 2 + rows[1] ** 2
        found = minimize(objective, {x: -1.2, y: 1.0}, method=method, watch=seen.append)
    else:
        found = least_squares(rows, {x: -1.2, y: 1.0}, method=method, watch=seen.append)
    assert seen[0] == {x: -1.2, y: 1.0}
    assert seen[-1] == pytest.approx(found.x)
    assert len(seen) == len(found.history)
    lengths = [np.hypot(b[x] - a[x], b[y] - a[y]) for a, b in pairwise(seen)]
    assert [step.length for step in found.history[1:]] == pytest.approx(lengths, abs=1e-15)


def test_bad_calls():
    x, y = sp.symbols("x y", real=True)
    with pytest.raises(EvaluationError, match="method='adam' is not one of 'newton', 'newton-cg'"):
        minimize(x**2, 1.0, method="adam")
    with pytest.raises(EvaluationError, match="unknowns x, y, but x0 has 1 entries"):
        minimize(x**2 + y, [1.0])
    with pytest.raises(EvaluationError, match="also needs values for y"):
        minimize(x**2 + y, {x: 1.0})
    with pytest.raises(EvaluationError, match="z: no input of f, which has x"):
        minimize(x**2, {x: 1.0}, data={"z": 3})
    with pytest.raises(EvaluationError, match="x: given in x0 and in data"):
        minimize(x**2, {x: 1.0}, data={x: 3})
    with pytest.raises(EvaluationError, match="least_squares"):
        minimize([x, y], [1.0, 2.0])
    with pytest.raises(TraceError, match="the start of x is 'a' of type str"):
        minimize(x**2, "a")
    with pytest.raises(EvaluationError, match="not finite"):
        minimize(sp.log(x), -1.0)
    with pytest.raises(EvaluationError, match="start of x is nan"):
        minimize(x**2, np.nan)
    with pytest.raises(EvaluationError, match="solver='qr' is not one of 'dense', 'sparse', 'products'"):
        least_squares([x], 1.0, solver="qr")
    with pytest.raises(EvaluationError, match="method='newton' is not one of"):
        least_squares([x], 1.0, method="newton")
    with pytest.raises(EvaluationError, match="residuals are not finite"):
        least_squares([sp.log(x)], -1.0)
    with pytest.raises(ShapeError, match="w"):
        minimize(RIDGE, np.zeros(3), data={"X": X, "y": Y})


@pytest.mark.parametrize("method", METHODS)
def test_outside_the_domain_of_a_matrix_function_f_is_infinite(method):
    """−log det of the symmetric part + ½|A|² has its minimum at the identity."""

    def f(a):
        factor = np.linalg.cholesky((a + a.T) / 2)
        return -2 * np.log(np.diagonal(factor)).sum() + (a * a).sum() / 2

    f = symad.trace(f, [(2, 2)])
    start = np.array([[30.0, 3.0], [3.0, 0.01]]) + np.diag([0, 0.5])
    found = minimize(f, start, method=method, iterations=200)
    if method == "l-bfgs":  # SciPy's line search gives up there, and this is told
        assert not found.converged
    else:
        assert np.allclose(found.x, np.eye(2), atol=1e-6)
    with pytest.raises(EvaluationError, match="not finite at the start"):
        minimize(f, -np.eye(2), method=method)


def test_what_has_no_minimum_is_not_converged():
    x = sp.Symbol("x", real=True)
    for method in METHODS:
        found = minimize(x + sp.atan(x), 1.0, method=method, iterations=30)
        assert not found.converged, method
    exponential = minimize(sp.exp(-x), 0.0, tolerance=0.0, iterations=20)
    assert not exponential.converged
    assert "iterations" in exponential.message


# ---- least squares -------------------------------------------------------------------------------


def test_gauss_newton_is_one_step_for_linear_residuals():
    found = least_squares(
        symad.trace(lambda w: X @ w - Y, [(4,)]), np.ones(4), method="gauss-newton"
    ).checked()
    assert np.allclose(found.x, np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-10)
    assert found.iterations <= 2


@pytest.mark.parametrize("solver", ["dense", "sparse", "products"])
def test_a_curve_with_certified_values(solver):
    """Thermistor data of Meyer: NIST's certified values (StRD, MGH10) of parameters and standard errors."""
    problem = next(p for p in PROBLEMS if p.name == "Meyer")
    found = least_squares(symad.trace(problem.residuals, problem.unknowns), problem.start, solver=solver)
    certified = [5.6096364710e-03, 6.1813463463e03, 3.4522363462e02]
    errors = [1.5687892471e-04, 2.3309021107e01, 7.8486103508e-01]
    rel = 1e-6 if solver != "products" else 1e-4  # without scaling by columns: fewer digits
    assert 2 * found.value == pytest.approx(8.7945855171e01, rel=1e-9 if solver != "products" else 1e-8)
    assert found.x == pytest.approx(certified, rel=rel)
    assert found.standard_errors() == pytest.approx(errors, rel=10 * rel)


def test_a_large_sparse_system():
    """Broyden's tridiagonal equations in 5000 unknowns: a Jacobian of three diagonals."""
    rows = symad.trace(
        lambda v: np.concatenate([
            (3 - 2 * v[:1]) * v[:1] - 2 * v[1:2] + 1,
            (3 - 2 * v[1:-1]) * v[1:-1] - v[:-2] - 2 * v[2:] + 1,
            (3 - 2 * v[-1:]) * v[-1:] - v[-2:-1] + 1,
        ]),
        [(5000,)],
    )  # fmt: skip
    found = least_squares(rows, -np.ones(5000), solver="sparse").checked()
    assert found.problem.sparse_jacobian(found.point).nnz == 3 * 5000 - 2
    assert np.abs(rows(found.x)).max() < 1e-10


def test_standard_errors_need_more_residuals_than_unknowns():
    a, b = sp.symbols("a b", real=True)
    square = least_squares(symad.trace([a - 1, b - 2], (a, b)), [0.0, 0.0])
    with pytest.raises(EvaluationError, match="2 × 2"):
        square.standard_errors()
