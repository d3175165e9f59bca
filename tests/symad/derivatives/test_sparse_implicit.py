"""Implicit functions with sparse Jacobians: nonlinear Poisson problems against banded solves by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_banded

import symad
from symad.derivatives import implicit
from symad.derivatives.hessian import MODES
from symad.numeric import lower
from symad.ops.sparse.sparse_solve import SparseSolve


def poisson(n):
    """−u″ + c u³ = s on (0, 1), u = 0 at the ends; n inner points."""

    def equations(u, c, s):
        padded = np.pad(u, 1)
        return (2 * u - padded[2:] - padded[:-2]) * (n + 1) ** 2 + c * u**3 - s

    return symad.trace(equations, inputs=[(n,), (), ()])


def total(n, name="u"):
    solution = symad.implicit(poisson(n), name)
    return symad.trace(lambda c, s, start: np.sum(solution(c, s, start) ** 2), inputs=[(), (), (n,)])


def by_hand(n, c, s):
    """Newton with banded solves; then the adjoint equation."""
    h = (n + 1.0) ** 2
    u = np.zeros(n)

    def bands():
        return np.stack([np.full(n, -h), 2 * h + 3 * c * u**2, np.full(n, -h)])

    for _ in range(30):
        padded = np.pad(u, 1)
        u = u - solve_banded((1, 1), bands(), (2 * u - padded[2:] - padded[:-2]) * h + c * u**3 - s)
    adjoint = solve_banded((1, 1), bands(), 2 * u)  # the matrix is symmetric
    return u, -adjoint @ u**3, adjoint.sum()


def test_ten_thousand_unknowns():
    n = 10_000
    u, c_bar, s_bar = by_hand(n, 3.0, 40.0)
    solution = symad.implicit(poisson(n), "u")
    np.testing.assert_allclose(solution(3.0, 40.0, np.zeros(n)), u, rtol=1e-7)
    gradient = symad.gradient(total(n), wrt=["c", "s"])
    assert any(isinstance(node.op, SparseSolve) for node in gradient.nodes)
    for found in (gradient(3.0, 40.0, u), lower(gradient)(3.0, 40.0, u)):
        np.testing.assert_allclose(found, [c_bar, s_bar], rtol=1e-6)  # the condition number is 4·10⁷


@pytest.mark.thorough
def test_a_square_of_ten_thousand_unknowns():
    """−Δu + c u³ = 1: the derivative against a difference of solutions, along two meshes."""
    m = 101

    def equations(u, c):
        grid = u.reshape(m, m)
        p = np.pad(grid, 1)
        laplace = 4 * grid - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]
        return (laplace * (m + 1) ** 2 + c * grid**3 - 1).reshape(-1)

    solution = symad.implicit(symad.trace(equations, inputs=[(m * m,), ()]), "u")
    mean = lower(symad.trace(lambda c, start: np.mean(solution(c, start)), inputs=[(), (m * m,)]))
    value = lower(symad.gradient(symad.trace(lambda c, start: np.mean(solution(c, start)),
                                             inputs=[(), (m * m,)]), wrt="c"))  # fmt: skip
    start, step = np.zeros(m * m), 1e-2
    difference = (mean(20 + step, start) - mean(20 - step, start)) / (2 * step)
    assert float(value(20.0, start)) == pytest.approx(difference, rel=1e-6)
    centre = solution(0.0, start).max()
    assert centre == pytest.approx(0.0736713, rel=1e-4)  # the double sine series of −Δu = 1


@pytest.fixture
def dense(monkeypatch):
    """Switches the sparse path off inside."""

    def switch(off):
        implicit.sparse_slope.cache_clear()
        monkeypatch.setattr(implicit, "MIN_UNKNOWNS", 10**9 if off else 50)

    yield switch
    implicit.sparse_slope.cache_clear()


@pytest.mark.parametrize("mode", MODES)
def test_hessians_are_those_of_dense_solves(mode, dense):
    n = 60
    point = (3.0, 40.0, np.ones(n))
    dense(True)
    plain = symad.hessian(total(n), wrt=["c", "s"])
    assert not any(isinstance(node.op, SparseSolve) for node in plain.nodes)
    expected = np.array(plain(*point), float)
    dense(False)
    sparse = symad.hessian(total(n), wrt=["c", "s"], mode=mode)
    assert any(isinstance(node.op, SparseSolve) for node in sparse.nodes)
    np.testing.assert_allclose(np.array(sparse(*point), float), expected, rtol=1e-9)
    np.testing.assert_allclose(np.array(lower(sparse)(*point), float), expected, rtol=1e-9)


def test_many_parameters_at_once():
    """The Jacobian of the solution with respect to a whole source: right-hand sides share a factorisation."""
    n = 60

    def equations(u, s):
        padded = np.pad(u, 1)
        return (2 * u - padded[2:] - padded[:-2]) * (n + 1) ** 2 + u**3 - s

    solution = symad.implicit(symad.trace(equations, inputs=[(n,), (n,)]), "u")
    source = np.linspace(10, 20, n)
    u = solution(source, np.zeros(n))
    h = (n + 1.0) ** 2
    matrix = np.diag(2 * h + 3 * u**2) - h * np.eye(n, k=1) - h * np.eye(n, k=-1)
    for mode in ("forward", "reverse"):
        found = symad.jacobian(solution, "s", mode=mode)(source, u)
        np.testing.assert_allclose(found, np.linalg.inv(matrix), rtol=1e-9)


def test_a_singular_sparse_jacobian_is_told():
    n = 60
    graph = symad.trace(lambda u, s: u**2 - s, inputs=[(n,), ()])
    with pytest.raises(symad.errors.EvaluationError, match="Jacobian is singular"):
        symad.implicit(graph, "u")(1.0, np.zeros(n))
