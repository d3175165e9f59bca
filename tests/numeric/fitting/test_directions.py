"""Newton's directions of dense, banded and sparse Hessians; minima of functions of many unknowns."""

import numpy as np
import pytest
import sympy as sp
from scipy.sparse import csr_array

import symad
from symad.errors import EvaluationError
from symad.numeric import minimize
from symad.numeric.solvers import newton_directions
from symad.numeric.solvers.minimize import l_bfgs
from symad.numeric.solvers.newton import Path
from symad.numeric.solvers.newton_directions import Directions, SparseFactors
from symad.numeric.solvers.solver_variables import Unknowns


def symmetric(kind, n, seed):
    """A symmetric matrix of few entries: in a band under a random order of the rows, or a grid."""
    rng = np.random.default_rng(seed)
    if kind == "band":
        h = sum(np.diag(rng.normal(size=n - k), k) for k in (1, 3))
    else:
        side = int(n**0.5)
        one = np.eye(side, k=1)
        h = np.kron(one, np.eye(side)) * rng.normal(size=(n, n)) + np.kron(np.eye(side), one)
    h = h + h.T + np.diag(rng.normal(size=n))
    order = rng.permutation(n)
    return h[order][:, order]


@pytest.mark.parametrize("narrow", [0, newton_directions.NARROW])  # by SuperLU, and in a band
@pytest.mark.parametrize("kind", ["band", "grid"])
@pytest.mark.parametrize("units", [False, True])
def test_directions_of_sparse_hessians(narrow, kind, units, monkeypatch):
    monkeypatch.setattr(newton_directions, "NARROW", narrow)
    n = 144
    found = Directions()
    pattern = csr_array(symmetric(kind, n, 0))
    for seed, more in ((0, 8.0), (0, 0.0), (0, -3.0), (0, 4.0)):
        h = symmetric(kind, n, seed) + more * np.eye(n)
        s = np.logspace(-4, 4, n) if units else np.ones(n)
        h, g = s[:, None] * h * s, s * np.random.default_rng(1).normal(size=n)
        sparse = csr_array((h[np.repeat(np.arange(n), np.diff(pattern.indptr)), pattern.indices],
                            pattern.indices, pattern.indptr), shape=(n, n))  # fmt: skip
        p, definite = found(sparse, g)
        assert definite == (np.linalg.eigvalsh(h / np.outer(s, s)).min() > 0)
        _, scale, shift = SparseFactors(sparse).modified(sparse)
        modified = h + shift * np.diag(scale**2)
        assert np.linalg.eigvalsh(modified / np.outer(scale, scale)).min() > 0
        assert np.allclose((modified @ p) / scale, -g / scale, rtol=1e-9, atol=1e-9 * abs(g / scale).max())
        assert np.allclose(p, Directions()(h, g)[0], rtol=1e-6, atol=1e-9 * abs(p).max())


def test_singular_matrices_are_shifted():
    for h in (np.zeros((4, 4)), np.ones((4, 4)), np.array([[0.0, 1.0], [1.0, 0.0]])):
        g = np.arange(1.0, 1 + len(h))
        p, definite = Directions()(csr_array(h + 0 * np.eye(len(h))), g) if h.any() else Directions()(h, g)
        assert not definite
        assert p @ g < 0


def wells(x):
    """Σ (x_i² − 1)²/4 + ½(x_{i+1} − x_i)²: indefinite around 0, minima at ±(1, 1, ...)."""
    return np.sum((x**2 - 1) ** 2) / 4 + np.sum((x[1:] - x[:-1]) ** 2) / 2


def test_newton_with_a_sparse_hessian():
    n = 5000
    start = 0.1 + 0.05 * np.sin(np.arange(n))
    graph = symad.trace(wells, [(n,)])
    found = minimize(graph, start).checked()
    assert np.allclose(found.x, 1, atol=1e-6)
    assert found.iterations < 30
    problem, _ = Unknowns.make(graph, start, None)
    hessian = problem.curvature(start)
    assert hessian.nnz == 3 * n - 2
    diagonal = 3 * start**2 - 1 + np.r_[1, np.full(n - 2, 2), 1]
    assert np.allclose(hessian.diagonal(), diagonal)
    small = minimize(symad.trace(wells, [(60,)]), start[:60]).checked()  # dense
    assert np.allclose(small.x, 1, atol=1e-6)


def test_newton_on_several_unknowns_and_sizes_given_by_the_start():
    def f(u, v, c):
        return np.sum(np.exp(u + v) - c * u) + np.sum(v**2 + u**2 / 2) + np.sum((u[1:] - u[:-1]) ** 2)

    n = sp.Symbol("n", integer=True, positive=True)
    graph = symad.trace(f, [(n,), (n,), (n,)])
    c = np.linspace(0.1, 0.9, 300)
    names = [str(s) for s in graph.inputs]
    start = {names[0]: np.full(300, 0.1), names[1]: np.zeros(300)}
    found = minimize(graph, start, data={names[2]: c}).checked()
    u, v = found.x.values()
    pull = np.zeros(300)
    pull[1:] += 2 * (u[1:] - u[:-1])
    pull[:-1] -= 2 * (u[1:] - u[:-1])
    assert np.abs(np.exp(u + v) - c + u + pull).max() < 1e-7
    assert np.abs(np.exp(u + v) + 2 * v).max() < 1e-7


def test_a_dense_hessian_of_many_unknowns_is_refused():
    n = 30_000
    graph = symad.trace(lambda x: np.exp(np.sum(x) / n) + np.sum(x**2), [(n,)])
    with pytest.raises(EvaluationError, match=r"30000² entries.*newton-cg"):
        minimize(graph, np.ones(n))
    assert minimize(graph, np.ones(n), method="newton-cg").converged


def test_l_bfgs_evaluates_every_point_once():
    problem, start = Unknowns.make(symad.trace(wells, [(50,)]), np.linspace(-2, 2, 50), None)
    inner, calls = problem.value_and_gradient, []

    def counted(x):
        calls.append(x.copy())
        return inner(x)

    vars(problem)["value_and_gradient"] = counted
    found = l_bfgs(Path(problem, start, 1e-8), 500)
    assert found.converged
    assert len(calls) <= found.evaluations + 1
    assert len(calls) < 2 * found.iterations
