"""Sweeps, Monte Carlo and colors in parallel: against loops, known integrals and dense derivatives."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import EvaluationError, ShapeError
from symad.numeric import lower
from symad.numeric.scale import SplitError, minimize, monte_carlo, sparse_hessian, sparse_jacobian, sweep

a, b, x = sp.symbols("a b x", real=True)


def trajectory(rate, start, force):
    """Fifty Euler steps of y' = −rate y + force."""

    def step(y, u):
        return y + 0.1 * (u - rate * y)

    return functions.scan(step, start, force)


def test_a_sweep_is_the_loop_over_its_values():
    graph = symad.trace(trajectory, [(), (2,), (50, 2)])
    rng = np.random.default_rng(0)
    rates, starts, force = rng.uniform(0.1, 2, 23), rng.standard_normal((23, 2)), rng.standard_normal((50, 2))
    found = sweep(graph, {"rate": rates, "start": starts}, {"force": force}, rows=5, threads=2)
    one = lower(graph)
    for k in range(23):
        np.testing.assert_allclose(found[k], one(rates[k], starts[k], force), rtol=1e-12)
    alone = sweep(graph, {"rate": rates, "start": starts}, {"force": force}, rows=5, threads=1)
    assert np.array_equal(found, alone)


def test_a_sweep_over_scalar_code_in_c_runs_in_threads():
    f = sp.sin(a * x) * sp.exp(-b * x**2)
    values = {"a": np.linspace(0, 3, 1001), "x": np.linspace(-1, 1, 1001)}
    found = sweep(symad.gradient(f, (a, b)), values, {"b": 0.5}, backend="c", threads=2)
    expected = values["x"] * np.cos(values["a"] * values["x"]) * np.exp(-0.5 * values["x"] ** 2)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("values", "shared", "message"),
    [
        ({"z": [1.0]}, {"a": 1.0, "x": 1.0}, "no input is called z"),
        ({"x": [1.0]}, {}, "no value of a"),
        ({}, {"a": 1.0, "x": 1.0}, "values is empty"),
    ],
)
def test_names_of_a_sweep_that_do_not_fit_are_named(values, shared, message):
    with pytest.raises(EvaluationError, match=message):
        sweep(a * x, values, shared)
    with pytest.raises(ShapeError, match=r"not a \(2,\), x \(3,\)"):
        sweep(a * x, {"a": [1.0, 2.0], "x": [1.0, 2.0, 3.0]})


@pytest.mark.thorough
def test_monte_carlo_integrates_and_does_not_depend_on_the_parts():
    """E (a + z)² = a² + 1 for normal z; E exp(u) = e − 1 for uniform u."""
    z, u = sp.IndexedBase("z", shape=(3,)), sp.Symbol("u", real=True)
    graph = symad.trace(lambda z, u, a: np.stack([((a + z) ** 2).mean(), np.exp(u)]), [z, u, a])
    draws, shared = {"z": "normal", "u": "uniform"}, {"a": 0.7}
    found = monte_carlo(graph, draws, 20_000, shared, seed=5, threads=2)
    exact = np.array([0.7**2 + 1, np.e - 1])
    assert np.all(np.abs(found.mean - exact) < 4 * found.error)
    spread = np.array([np.sqrt((2 + 4 * 0.7**2) / 3), np.sqrt((np.e**2 - 1) / 2 - (np.e - 1) ** 2)])
    np.testing.assert_allclose(found.error, spread / np.sqrt(20_000), rtol=0.03)
    again = monte_carlo(graph, draws, 20_000, shared, seed=5, threads=1)
    assert np.array_equal(found.mean, again.mean) and np.array_equal(found.error, again.error)
    other = monte_carlo(graph, draws, 20_000, shared, seed=5, rows=333)
    np.testing.assert_allclose(other.mean, found.mean, rtol=1e-12)
    assert not np.allclose(monte_carlo(graph, draws, 20_000, shared, seed=6).mean, found.mean, rtol=1e-6)


def test_samples_are_those_of_their_own_streams():
    """Sample i draws randn(fold_in(fold_in(key, i), 0)), whatever part it is in."""
    key = functions.key(11)
    numbers = [functions.randn(functions.fold_in(functions.fold_in(key, i), 0), ()) for i in range(40)]
    found = monte_carlo(2 * x, {"x": "normal"}, 40, seed=11, rows=7)
    np.testing.assert_allclose(found.mean, 2 * np.mean(numbers), rtol=1e-13)
    np.testing.assert_allclose(found.error, 2 * np.std(numbers, ddof=1) / np.sqrt(40), rtol=1e-12)


def test_draws_that_do_not_exist_are_named():
    with pytest.raises(EvaluationError, match="x='cauchy': draws are 'normal', 'uniform'"):
        monte_carlo(x, {"x": "cauchy"}, 10)
    with pytest.raises(EvaluationError, match="two samples at least"):
        monte_carlo(x, {"x": "normal"}, 1)
    with pytest.raises(EvaluationError, match="no value of a"):
        monte_carlo(a * x, {"x": "normal"}, 10)


def test_colors_in_parallel_give_the_sparse_derivatives():
    def chain(v, c):
        return c * np.sin(v[1:]) * v[:-1] ** 2

    graph = symad.trace(chain, [(12,), ()])
    v = np.random.default_rng(2).standard_normal(12)
    jacobian = sparse_jacobian(graph, "v", threads=2)
    found = jacobian(v, 1.5)
    expected = 1.5 * (
        np.diag(2 * np.sin(v[1:]) * v[:-1]) @ np.eye(11, 12)
        + np.diag(np.cos(v[1:]) * v[:-1] ** 2) @ np.eye(11, 12, 1)
    )
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-13, atol=1e-14)
    assert jacobian.coloring.num_colors == 2
    total = symad.trace(lambda v, c: chain(v, c).sum(), [(12,), ()])
    hessian = sparse_hessian(total, "v", threads=2)(v, 1.5)
    dense = lower(symad.hessian(total, "v"))(v, 1.5)
    np.testing.assert_allclose(hessian.toarray(), dense, rtol=1e-12, atol=1e-13)
    assert hessian.nnz < 50


def test_sweeps_and_colors_run_on_dask_with_the_same_bits():
    pytest.importorskip("dask.array", reason="Dask is not installed: the extra scale")
    rates = np.linspace(0.1, 2, 12)
    graph = symad.trace(trajectory, [(), (2,), (50, 2)])
    shared = {"start": [1.0, -1.0], "force": np.ones((50, 2))}
    assert np.array_equal(
        sweep(graph, {"rate": rates}, shared, rows=4),
        sweep(graph, {"rate": rates}, shared, rows=4, scheduler="threads"),
    )
    first = monte_carlo(x**2, {"x": "normal"}, 1000, rows=100)
    second = monte_carlo(x**2, {"x": "normal"}, 1000, rows=100, scheduler="threads")
    assert (first.mean, first.error) == (second.mean, second.error)


def coupled(rows, width):
    """Σ_i Σ_k (a_ik (v_{k+1} − v_k²)² + (1 − v_k)²)/n: neighbours alone meet."""
    n = sp.Symbol("n", integer=True, positive=True)
    inputs = [sp.IndexedBase("A", shape=(n, width - 1)), sp.IndexedBase("v", shape=(width,))]

    def f(a, v):
        return ((1 + a) * ((v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2)).sum() / a.shape[0]

    return symad.trace(f, inputs), np.random.default_rng(5).uniform(0, 1, (rows, width - 1))


def test_sparse_hessians_of_means_over_data():
    graph, table = coupled(37, 12)
    point = np.random.default_rng(6).standard_normal(12)
    hessian = sparse_hessian(graph, "v", {"A": 0}, rows=8)
    found = hessian(table, point)
    dense = lower(symad.hessian(graph, "v"))(table, point)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12, atol=1e-13)
    assert found.nnz == 34 and hessian.coloring.num_colors <= 3
    root = symad.trace(lambda a, v: np.sqrt(graph(a, v)), list(graph.inputs))
    with pytest.raises(SplitError):
        sparse_hessian(root, "v", {"A": 0})


def test_newtons_method_with_sparse_hessians_of_data():
    graph, table = coupled(50, 300)
    found = minimize(graph, np.full(300, 0.5), data={"A": table}, over={"A": 0}, rows=16).checked()
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)


def test_python_functions_take_inputs():
    """Sweeps, Monte Carlo, colors and expectations trace a Python function themselves."""
    from symad.numeric.sampling.expectation import expectation

    def f(rate, x):
        return np.exp(-rate * x)

    inputs = [(), ()]
    rates = np.linspace(0.0, 1.0, 9)
    np.testing.assert_allclose(
        sweep(f, {"rate": rates}, {"x": 2.0}, inputs=inputs), np.exp(-2 * rates), rtol=1e-14
    )
    drawn = monte_carlo(f, {"x": "uniform"}, 2000, {"rate": 0.5}, inputs=inputs)
    assert abs(drawn.mean - 2 * (1 - np.exp(-0.5))) < 4 * drawn.error
    samples = np.random.default_rng(3).uniform(size=50)
    found = expectation(f, {"x": samples}, {"rate": 0.5}, inputs=inputs)
    np.testing.assert_allclose(found.mean, np.exp(-0.5 * samples).mean(), rtol=1e-14)
    cubes = sparse_jacobian(lambda v: v**3, inputs=[(4,)])
    np.testing.assert_allclose(cubes(np.arange(4.0)).toarray(), np.diag(3 * np.arange(4.0) ** 2))
    sums = sparse_hessian(lambda v: (v**3).sum(), inputs=[(4,)])
    np.testing.assert_allclose(sums(np.arange(4.0)).toarray(), np.diag(6 * np.arange(4.0)))
