"""ARX against statsmodels' AutoReg; the ARMA likelihood against statsmodels and torch, with certificates."""

import mpmath
import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.models.layers.parameters import trace_model
from symad.models.sequences import arma
from symad.models.sequences.arx import ARX, free_running
from symad.numeric import lower

sm = pytest.importorskip("statsmodels.api")
SUNSPOTS = sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()[:120]
CO2 = np.log(sm.datasets.co2.load_pandas().data["co2"].dropna().to_numpy()[:300:4])
rng = np.random.default_rng(0)


def autoreg(y, lags, u=None):
    from statsmodels.tsa.ar_model import AutoReg

    return AutoReg(y, lags=list(lags), exog=u, trend="c").fit()


@pytest.mark.parametrize("lags", [(1, 2, 9), (1, 12)])
def test_least_squares_forecasts_and_intervals_are_those_of_statsmodels(lags):
    u = rng.normal(size=(len(SUNSPOTS), 2))
    y = SUNSPOTS + u @ [3.0, -5.0]
    model, reference = ARX(lags, inputs=2), autoreg(y, lags, u)
    p, variance = model.fit(y, u)
    const, *rest = reference.params
    np.testing.assert_allclose([p["c"], *p["w"], *p["v"]], [const, *rest], rtol=1e-10)
    assert abs(variance - reference.sigma2) < 1e-10 * variance
    later = rng.normal(size=(20, 2))
    predicted = reference.get_prediction(len(y), len(y) + 19, exog_oos=later)
    np.testing.assert_allclose(model.forecast(p, y, 20, later), predicted.predicted_mean, rtol=1e-10)
    low, high = model.intervals(p, variance, y, 20, later, level=0.9)
    expected = np.asarray(predicted.conf_int(alpha=0.1))
    np.testing.assert_allclose(np.stack([low, high], 1), expected, rtol=1e-10)


def test_at_the_fit_the_slope_is_zero_and_forecasts_have_derivatives():
    model = ARX((1, 2, 9))
    p, _ = model.fit(SUNSPOTS)
    graph = trace_model(model.loss, model.shapes, SUNSPOTS.shape)
    slopes = lower(symad.gradient(graph, list(p)))(*p.values(), SUNSPOTS)
    assert max(np.abs(s).max() for s in slopes) < 1e-8
    run = trace_model(lambda p, y: model.forecast(p, y, 5), model.shapes, SUNSPOTS.shape)
    J = lower(symad.jacobian(run, ["w"]))(*p.values(), SUNSPOTS)

    def ahead(w):
        y = [mpmath.mpf(v) for v in SUNSPOTS]
        for _ in range(5):
            y.append(p["c"] + sum(c * y[-lag] for c, lag in zip(w, (1, 2, 9), strict=True)))
        return y[-5:]

    with mpmath.workdps(50):
        w, h = [mpmath.mpf(v) for v in p["w"]], mpmath.mpf(10) ** -20
        for k in range(3):
            up, down = (ahead([v + s * h * (i == k) for i, v in enumerate(w)]) for s in (1, -1))
            slopes = [float((a - b) / (2 * h)) for a, b in zip(up, down, strict=True)]
            np.testing.assert_allclose(J[:, k], slopes, rtol=1e-10)


def test_worked_numbers():
    """y_t = y_{t−1} + y_{t−2}: Fibonacci's numbers; the errors of w = 1 grow as √h."""
    made = ARX((1, 2), constant=False).forecast({"w": np.ones(2)}, np.array([5.0, 8.0]), 4)
    assert made.tolist() == [13, 21, 34, 55]
    spread = ARX((1,), constant=False).deviations({"w": np.ones(1)}, 4.0, 3)
    np.testing.assert_allclose(spread, 2 * np.sqrt([1, 2, 3]), rtol=1e-15)


def test_a_nonlinear_model_runs_freely():
    """The logistic map, whose slope along the path is Π 4 (1 − 2 y_t)."""
    graph = symad.trace(lambda w, n: free_running(lambda y, x: 4 * y[0] * (1 - y[0]), w, n), [(1,), (6,)])
    y, path = 0.3, []
    for _ in range(6):
        y = 4 * y * (1 - y)
        path.append(y)
    np.testing.assert_allclose(lower(graph)(np.array([0.3]), np.zeros(6)), path, rtol=1e-12)
    slope = symad.jacobian(graph, [0])(np.array([0.3]), np.zeros(6))[-1, 0]
    assert slope == pytest.approx(np.prod([4 * (1 - 2 * v) for v in (0.3, *path[:-1])]), rel=1e-12)


# ---- ARMA --------------------------------------------------------------------------------------------

PHI, THETA = np.array([1.2, -0.5]), np.array([0.4])


def graph_of(p, q, count):
    return symad.trace(arma.log_likelihood, [(p,), (q,), (), (), (count,)])


def reference(y, order, seasonal_order=(0, 0, 0, 0)):
    from statsmodels.tsa.arima.model import ARIMA

    return ARIMA(y, order=order, seasonal_order=seasonal_order, trend="c")


def exact_score(phi, theta, mean, variance, y):
    """The likelihood and its slopes by the filter and differences in 50 digits, written out once more."""

    def likelihood(v):
        phi_, theta_, mean_, variance_ = v[: len(phi)], v[len(phi) : -2], v[-2], v[-1]
        r = max(len(phi), len(theta) + 1)
        T = mpmath.matrix(r, r)
        R = mpmath.matrix([1, *theta_, *[0] * (r - 1 - len(theta))])
        for i in range(r):
            T[i, 0] = phi_[i] if i < len(phi) else 0
            if i:
                T[i - 1, i] = 1
        Q = variance_ * R * R.T
        pairs = [(i, j) for i in range(r) for j in range(r)]
        rows = [[(p == q) - T[p[0], q[0]] * T[p[1], q[1]] for q in pairs] for p in pairs]
        P = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([Q[p] for p in pairs]))
        P, a, total = _square(P, r), mpmath.matrix(r, 1), mpmath.mpf(0)
        for y_t in y:
            e, F = mpmath.mpf(y_t) - mean_ - a[0], P[0, 0]
            total -= (mpmath.log(2 * mpmath.pi * F) + e * e / F) / 2
            gain = P[:, 0] / F
            a, P = T * (a + gain * e), T * (P - gain * P[0, :]) * T.T + Q
        return total

    with mpmath.workdps(50):
        at, h = [mpmath.mpf(float(v)) for v in (*phi, *theta, mean, variance)], mpmath.mpf(10) ** -16

        def moved(k, s):
            return likelihood([v + s * h if i == k else v for i, v in enumerate(at)])

        slopes = [(moved(k, 1) - moved(k, -1)) / (2 * h) for k in range(len(at))]
        return float(likelihood(at)), np.array(slopes, dtype=float)


def _square(column, r):
    return mpmath.matrix([[column[i * r + j] for j in range(r)] for i in range(r)])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("phi", "theta"), [(PHI, THETA), (np.array([0.7]), np.zeros(0)), (np.zeros(0), np.array([0.3, 0.2]))]
)
def test_likelihood_and_score_are_exact_and_those_of_statsmodels(phi, theta):
    value, slopes = exact_score(phi, theta, 45.0, 230.0, SUNSPOTS)
    graph = symad.value_and_gradient(graph_of(len(phi), len(theta), len(SUNSPOTS)), [0, 1, 2, 3])
    for f in (graph, lower(graph), lower(graph, backend="c")):
        mine = np.concatenate([np.ravel(v) for v in f(phi, theta, 45.0, 230.0, SUNSPOTS)])
        np.testing.assert_allclose(mine, [value, *slopes], rtol=1e-10)
    model, at = reference(SUNSPOTS, (len(phi), 0, len(theta))), np.array([45.0, *phi, *theta, 230.0])
    assert abs(model.loglike(at) - value) < 1e-12 * abs(value)
    # Its default step is so small that rounding in its stationary covariance shows: 3e-8 in one slope of
    # ARMA(2, 1). With this one the errors of the step and of rounding are below 1e-10 of the largest slope.
    steps = 1j * np.diag(1e-5 * np.abs(at))
    theirs = [model.loglike(at + s, complex_step=True).imag / s.imag.max() for s in steps]
    order = [*range(1, len(at) - 1), 0, len(at) - 1]
    np.testing.assert_allclose(np.array(theirs)[order], slopes, rtol=0, atol=1e-10 * np.abs(slopes).max())


@pytest.mark.thorough
def test_the_hessian_is_that_of_torch():
    """By the covariance matrix of all numbers, without a filter: MA(∞) weights of a long series."""
    torch = pytest.importorskip("torch")
    y, at = SUNSPOTS[:12], np.array([*PHI, *THETA, 45.0, 230.0])

    def likelihood(v):
        phi, theta, mean, variance = v[:2], v[2:3], v[3], v[4]
        psi = [torch.ones((), dtype=torch.float64), theta[0] + phi[0]]
        for _ in range(150):
            psi.append(phi[0] * psi[-1] + phi[1] * psi[-2])
        psi = torch.stack(psi)
        gamma = torch.stack([(psi[: len(psi) - h] * psi[h:]).sum() for h in range(len(y))]) * variance
        t = torch.arange(len(y))
        normal = torch.distributions.MultivariateNormal(mean.expand(len(y)), gamma[(t[:, None] - t).abs()])
        return normal.log_prob(torch.tensor(y))

    graph = graph_of(2, 1, len(y))
    found = lower(symad.hessian(graph, [0, 1, 2, 3]))(PHI, THETA, 45.0, 230.0, y)
    point = torch.tensor(at)
    assert graph(PHI, THETA, 45.0, 230.0, y) == pytest.approx(likelihood(point).item(), rel=1e-12)
    expected = torch.autograd.functional.hessian(likelihood, point).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_forecasts_are_those_of_statsmodels():
    model = reference(SUNSPOTS, (2, 0, 1))
    result = model.smooth(np.array([45.0, *PHI, *THETA, 230.0]))
    forecast = result.get_forecast(8)
    mean, variance = arma.forecast(PHI, THETA, 45.0, 230.0, SUNSPOTS, 8)
    np.testing.assert_allclose(mean, forecast.predicted_mean, rtol=1e-10)
    np.testing.assert_allclose(variance, forecast.var_pred_mean, rtol=1e-10)


def test_a_seasonal_model_is_that_of_statsmodels():
    """(1, 0, 1)×(1, 0, 1) with a season of 4, on changes of CO₂."""
    y = 100 * np.diff(CO2)
    model = reference(y, (1, 0, 1), (1, 0, 1, 4))
    expected = model.loglike(np.array([0.05, 0.4, 0.2, 0.3, -0.1, 0.5]))
    phi = arma.seasonal(np.array([0.4]), np.array([0.3]), 4)
    theta = arma.seasonal(np.array([0.2]), np.array([-0.1]), 4, sign=1)
    assert abs(arma.log_likelihood(phi, theta, 0.05, 0.5, y) - expected) < 1e-10 * abs(expected)


@pytest.mark.thorough
def test_the_gradient_of_ar_1_is_certified():
    graph = symad.trace(
        lambda a, m, s, y: arma.log_likelihood(a[None], np.zeros(0), m, s, y),
        [*sympy.symbols("a m"), sympy.Symbol("s", positive=True), (2,)],
    )
    assert symad.check(graph).status in ("proved", "tested")


@pytest.mark.slow
def test_gradient_and_hessian_of_arma_1_1_are_certified():
    graph = symad.trace(
        lambda a, b, s, y: arma.log_likelihood(a[None], b[None], 0.0, s, y),
        [*sympy.symbols("a b"), sympy.Symbol("s", positive=True), (2,)],
    )
    certificate = symad.check(graph)
    assert certificate.status in ("proved", "tested"), certificate


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="growing"):
        ARX((2, 1))
    with pytest.raises(ShapeError, match="longer series"):
        ARX((1, 12)).fit(SUNSPOTS[:10])
    with pytest.raises(ShapeError, match="2 inputs"):
        ARX((1,), inputs=2).fit(SUNSPOTS)
    with pytest.raises(ShapeError, match="2 lags and inputs have the rank 1"):
        ARX((1,)).fit(np.ones(20))
    with pytest.raises(ShapeError, match="level=95"):
        ARX((1,)).intervals({"w": np.ones(1), "c": 0.0}, 1.0, SUNSPOTS, 3, level=95)
    with pytest.raises(ShapeError, match="series"):
        arma.log_likelihood(PHI, THETA, 0.0, 1.0, np.zeros((3, 2)))
