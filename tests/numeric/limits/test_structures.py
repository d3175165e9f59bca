"""Sparse and dense derivatives of every structure, on every backend, against NumPy's arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from tests.numeric.limits.structure_cases import case, run

BLOCK = 100
COUNT = 2000


def examined(numbers: range) -> None:
    """Runs some cases; no sparse matrix stores an entry that is zero for all inputs."""
    for number in numbers:
        made = case(number)
        try:
            extra = run(made)
        except Exception as error:
            raise AssertionError(f"case {number}, {made}") from error
        assert extra == 0, (number, made, extra)


@pytest.mark.parametrize("first", range(4))
def test_a_sample_of_structures(first) -> None:
    examined(range(first * 450, COUNT, 150))


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_structures(first) -> None:
    examined(range(first, first + BLOCK))


def test_rows_and_columns_with_equal_texts_share_one_constant() -> None:
    x, y, z = sp.symbols("x y z", real=True)
    kernel = lower(symad.jacobian((x - z) ** 2 / 10, (x, y, z), sparse=True))
    assert np.allclose(kernel(x=1.0, y=2.0, z=3.0).toarray(), [[-0.4, 0, 0.4]])
    two = lower([sp.diag(*[s * j + 1 for j in range(8)]) for s in (x, y)])
    first, second = two(1.0, 2.0)
    assert first.diagonal().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert second.diagonal().tolist() == [1, 3, 5, 7, 9, 11, 13, 15]


def test_constant_matrices_leave_only_their_own_entries() -> None:
    ring = np.eye(9) - np.roll(np.eye(9), 1, 1)
    f = symad.trace(lambda x: ring @ np.sin(x), [(9,)])
    point = np.linspace(-1, 1, 9)
    for mode in ("auto", "forward", "reverse", "mixed"):
        found = lower(symad.jacobian(f, mode=mode, sparse=True))(point)
        assert found.nnz == 18, mode
        np.testing.assert_allclose(found.toarray(), ring * np.cos(point), rtol=1e-15)


def test_power_flow_has_as_many_terms_as_a_bus_has_neighbours() -> None:
    """P_i = Σ_k V_i V_k (G_ik cos θ_ik + B_ik sin θ_ik): a Jacobian with the entries of the network only."""
    n = 14
    ring = np.eye(n, k=1) + np.eye(n, k=-1) + np.eye(n)
    g, b = 0.3 * ring, ring - 3 * np.eye(n)

    def power(v, t):
        c, s = v * np.cos(t), v * np.sin(t)
        return c * (g @ c - b @ s) + s * (g @ s + b @ c)

    f = symad.trace(power, [(n,), (n,)])
    v, t = np.linspace(0.9, 1.1, n), np.linspace(-0.2, 0.2, n)
    for mode in ("auto", "forward"):
        found = lower(symad.jacobian(f, mode=mode, sparse=True))(v, t)
        assert found.nnz == 2 * np.count_nonzero(ring), mode
        h = 1e-6
        for k in range(n):
            step = h * np.eye(n)[k]
            slope = (power(v + step, t) - power(v - step, t)) / (2 * h)
            np.testing.assert_allclose(found.toarray()[:, k], slope, atol=1e-8)
            slope = (power(v, t + step) - power(v, t - step)) / (2 * h)
            np.testing.assert_allclose(found.toarray()[:, n + k], slope, atol=1e-8)
