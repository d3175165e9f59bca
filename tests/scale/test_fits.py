"""Fits part by part against scikit-learn, statsmodels, SciPy and the fits of all data at once."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import EvaluationError
from symad.numeric import least_squares as fit_all
from symad.numeric import minimize as minimize_all
from symad.numeric.scale import SplitError, columns, glm, least_squares, minimize
from tests.scale.problems import OVER, data, mean_logistic, traced

n = sp.Symbol("n", integer=True, positive=True)


@pytest.mark.parametrize("method", ["newton", "newton-cg", "l-bfgs", "trust-exact"])
def test_minimizers_reach_the_minimum_of_all_data(method):
    x, y, w = data(500)
    graph = traced(mean_logistic)
    found = minimize(graph, 0 * w, data={"X": x, "y": y}, over=OVER, method=method, rows=64).checked()
    expected = minimize_all(graph, 0 * w, data={"X": x, "y": y}, tolerance=1e-12).checked()
    np.testing.assert_allclose(found.x, expected.x, atol=2e-7)


@pytest.fixture(scope="module")
def cancer():
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x = x[:, :8]
    return (x - x.mean(axis=0)) / x.std(axis=0), y.astype(float)


def test_penalised_logistic_regression_is_that_of_scikit_learn(cancer):
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = cancer
    theirs = linear.LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000).fit(x, y)
    ours = glm(x, y, penalty=2.0, rows=100)
    assert ours.converged
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(ours.intercept, theirs.intercept_[0], rtol=1e-5)


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian"])
def test_coefficients_and_standard_errors_are_those_of_statsmodels(family, cancer):
    api = pytest.importorskip("statsmodels.api")
    x = cancer[0][:, [1, 4]]
    rng = np.random.default_rng(1)
    eta = 0.3 + x @ [0.7, -0.4]
    y = {
        "binomial": (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": rng.poisson(np.exp(eta)).astype(float),
        "gaussian": eta + rng.standard_normal(len(x)),
    }[family]
    kind = getattr(api.families, family.capitalize())
    theirs = api.GLM(y, api.add_constant(x, prepend=False), family=kind()).fit(tol=1e-14, maxiter=200)
    ours = glm(x, y[:, None], family, rows=77)
    np.testing.assert_allclose([*ours.coefficients, ours.intercept], theirs.params, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.standard_errors, theirs.bse, rtol=1e-6)
    without = glm(x, y, family, intercept=False, rows=77)
    theirs = api.GLM(y, x, family=kind()).fit(tol=1e-13, tol_criterion="params", maxiter=200)
    np.testing.assert_allclose(without.coefficients, theirs.params, rtol=1e-8, atol=1e-10)
    assert without.intercept == 0.0


def test_what_a_family_cannot_be_fitted_to_is_named():
    x, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 1, 0.0])
    with pytest.raises(EvaluationError, match="family='gamma' is not one of"):
        glm(x, y, "gamma")
    with pytest.raises(EvaluationError, match=r"a target of the binomial family is 2.0; it lies in \[0, 1\]"):
        glm(x, y * 2)
    with pytest.raises(EvaluationError, match=r"a target of the poisson family is -1.0"):
        glm(x, -y, "poisson")
    with pytest.raises(EvaluationError, match="penalty=-1"):
        glm(x, y, penalty=-1)
    with pytest.raises(symad.errors.ShapeError, match="axis 0 of y gives n = 5"):
        glm(x, y[1:])


def test_chunks_of_unknown_lengths_are_named_by_fits():
    da = pytest.importorskip("dask.array", reason="Dask is not installed: the extra scale")
    x, y, _ = data(40)
    lazy_x, labels = da.from_array(x, chunks=(20, -1)), (y[:, 0] > 0).astype(float)
    some = lazy_x[lazy_x[:, 0] > 0]
    with pytest.raises(symad.errors.ShapeError, match="X has chunks whose lengths Dask does not know"):
        glm(some, da.from_array(labels, chunks=20))
    for fit, f in ((minimize, mean_logistic), (least_squares, lambda x, y, w: (x @ w - y)[:, 0])):
        with pytest.raises(symad.errors.ShapeError, match="X has chunks whose lengths Dask does not know"):
            fit(traced(f), np.zeros((4, 1)), data={"X": some, "y": y}, over=OVER)


def decay(t, a, k, c):
    return a * np.exp(-k * t) + c


def residuals():
    t, z = (sp.IndexedBase(name, shape=(n,)) for name in "tz")
    a, k, c = sp.symbols("a k c", real=True)
    return symad.trace(lambda t, z, a, k, c: decay(t, a, k, c) - z, [t, z, a, k, c])


@pytest.mark.parametrize("method", ["levenberg-marquardt", "gauss-newton"])
def test_least_squares_by_parts_are_scipys(method):
    from scipy.optimize import curve_fit

    rng = np.random.default_rng(3)
    t = rng.uniform(0, 5, 400)
    z = decay(t, 2.0, 1.3, 0.5) + 0.05 * rng.standard_normal(400)
    found = least_squares(
        residuals(), [1.0, 1.0, 0.0], data={"t": t, "z": z}, over={"t": 0, "z": 0}, method=method, rows=37
    ).checked()
    best, covariance = curve_fit(decay, t, z, [1.0, 1.0, 0.0], xtol=1e-14, ftol=1e-14)
    np.testing.assert_allclose(found.x, best, rtol=1e-7)
    np.testing.assert_allclose(found.standard_errors(), np.sqrt(np.diag(covariance)), rtol=1e-5)
    whole = fit_all(residuals(), [1.0, 1.0, 0.0], data={"t": t, "z": z}, method=method)
    np.testing.assert_allclose(found.x, whole.x, rtol=1e-9)
    np.testing.assert_allclose(found.value, whole.value, rtol=1e-11)


def test_residuals_that_mix_rows_are_refused():
    t = sp.IndexedBase("t", shape=(n,))
    a = sp.Symbol("a", real=True)
    mixed = symad.trace(lambda t, a: a * t - t.mean(), [t, a])
    with pytest.raises(SplitError, match=r"mixes\s+the\s+parts"):
        least_squares(mixed, 1.0, data={"t": np.arange(9.0)}, over={"t": 0})
    summed = symad.trace(lambda t, a: np.stack([(a * t).sum(), a - 1]), [t, a])
    with pytest.raises(SplitError):
        least_squares(summed, 1.0, data={"t": np.arange(9.0)}, over={"t": 0})


@pytest.mark.thorough
def test_data_frames_and_parquet_files_are_fitted_by_their_partitions(tmp_path, cancer):
    frames = pytest.importorskip("dask.dataframe", reason="Dask is not installed: the extra scale")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pandas

    x, y = cancer
    names = [f"x{k}" for k in range(x.shape[1])]
    table = pandas.DataFrame(x, columns=names).assign(y=y.astype(int), label="b")
    frames.from_pandas(table, npartitions=4).to_parquet(tmp_path / "cancer")
    frame = frames.read_parquet(tmp_path / "cancer")
    a, b = columns(frame, names, "y")
    assert len(a.chunks[0]) > 1 and a.chunks[0] == b.chunks[0] and a.shape == x.shape
    found = glm(a, b, penalty=1.0, scheduler="threads")
    np.testing.assert_allclose(found.coefficients, glm(x, y, penalty=1.0).coefficients, rtol=1e-9)
    with pytest.raises(EvaluationError, match="no column z: it has x0"):
        columns(frame, ["x0", "z"])
    with pytest.raises(EvaluationError, match="the column label has the dtype"):
        columns(frame, "label")
    with pytest.raises(EvaluationError, match="not a ndarray"):
        columns(x, "x0")


STREAM = """
import resource
import numpy as np, dask.array as da
from symad.numeric.scale import glm

rows, width, chunk = {rows}, 25, 10_000
rng = da.random.default_rng(0)
x = rng.standard_normal((rows, width), chunks=(chunk, -1))
truth = np.linspace(-1, 1, width)
y = (rng.random(rows, chunks=chunk) < 1 / (1 + da.exp(-(x @ truth)))).astype(float)
glm(x[:20_000], y[:20_000], scheduler="synchronous")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = glm(x, y, scheduler="synchronous")
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(int(found.converged), np.abs(found.coefficients - truth).max(), grown, x.nbytes)
"""


@pytest.mark.slow
def test_two_hundred_megabytes_stream_in_a_tenth_of_it():
    import subprocess
    import sys

    pytest.importorskip("dask.array", reason="Dask is not installed: the extra scale")
    done = subprocess.run(
        [sys.executable, "-c", STREAM.format(rows=1_000_000)], capture_output=True, text=True
    )
    converged, error, grown, size = map(float, done.stdout.split())
    assert size == 200e6 and converged == 1
    assert error < 0.02
    assert grown < size / 10


def test_fits_take_python_functions_with_their_inputs():
    rows = sp.Symbol("rows", integer=True, positive=True)
    rng = np.random.default_rng(8)
    x = rng.standard_normal((60, 2))
    y = x @ [1.5, -0.5] + 0.1 * rng.standard_normal(60)
    inputs = [sp.IndexedBase("x", shape=(rows, 2)), sp.IndexedBase("y", shape=(rows,)), (2,)]
    options = {"data": {"x": x, "y": y}, "over": {"x": 0, "y": 0}, "inputs": inputs, "rows": 16}
    expected = np.linalg.lstsq(x, y, rcond=None)[0]
    fitted = least_squares(lambda x, y, w: x @ w - y, np.zeros(2), **options).checked()
    np.testing.assert_allclose(fitted.x, expected, rtol=1e-10)
    least = minimize(lambda x, y, w: ((x @ w - y) ** 2).sum(), np.zeros(2), **options).checked()
    np.testing.assert_allclose(least.x, expected, rtol=1e-10)


def test_a_step_is_one_pass_and_what_two_arrays_share_is_read_once():
    """Columns of one table, read by 4 chunks: the check of the targets, the steps, the last refinement."""
    da = pytest.importorskip("dask.array", reason="Dask is not installed: the extra scale")
    rng = np.random.default_rng(9)
    table = rng.standard_normal((80, 3))
    table[:, 2] = (table[:, 0] + rng.standard_normal(80) > 0).astype(float)
    reads = []

    def read(block, block_info=None):
        if block_info:
            reads.append(block_info[None]["chunk-location"][0])
        return table[:0] if not block_info else table[20 * reads[-1] : 20 * reads[-1] + 20]

    whole = da.zeros((80, 3), chunks=(20, -1)).map_blocks(read, dtype=float, meta=table[:0])
    model = glm(whole[:, :2], whole[:, 2], scheduler="synchronous")
    assert len(reads) == 4 * (1 + model.fit.evaluations + 1)
    expected = glm(table[:, :2], table[:, 2])
    np.testing.assert_allclose(model.coefficients, expected.coefficients, rtol=1e-12)
