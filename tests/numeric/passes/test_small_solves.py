"""Systems of two to four equations in NumPy code: residuals at pivots of all sizes; what LAPACK raises."""

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower

SIZES = [(n, k) for n in (2, 3, 4, 5) for k in (1, 2, 3)]


def matrices(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Rows of different sizes, a first pivot of 0, small first columns, permutations, triangles."""
    base = rng.normal(size=(n, n))
    scaled, small, zero = base * 10.0 ** rng.integers(-8, 8, size=(n, 1)), base.copy(), base.copy()
    small[:, 0] *= 1e-9
    zero[0, 0] = 0
    exchanged, triangle = np.eye(n)[rng.permutation(n)] * 3, np.tril(base) + np.eye(n)
    return [base, scaled, small, zero, exchanged, triangle, base * 1e15]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_residuals(n: int, k: int, dtype: str) -> None:
    """|A x − b| is within rounding of |A| |x| + |b| in each component, as with LAPACK's pivots."""
    solve = lower(symad.trace(np.linalg.solve, [(n, n), (n, k)]), dtype=dtype)
    assert ("_solve_" in solve.source) == (n * n * (n + k) <= 80)
    rng = np.random.default_rng(10 * n + k)
    for a in matrices(n, rng):
        a, b = (v.astype(dtype).astype(float) for v in (a, rng.normal(size=(n, k))))
        before = a.copy(), b.copy()
        x = solve(a.astype(dtype), b.astype(dtype))
        assert x.dtype == dtype
        assert np.array_equal(a, before[0]) and np.array_equal(b, before[1])
        allowed = 60 * np.finfo(dtype).eps * (np.abs(a) @ np.abs(x.astype(float)) + np.abs(b))
        assert np.all(np.abs(a @ x.astype(float) - b) <= allowed)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_singular_matrices_raise_what_lapack_raises(n: int) -> None:
    solve = lower(symad.trace(np.linalg.solve, [(n, n), (n,)]))
    for a in (np.zeros((n, n)), np.ones((n, n))):
        with pytest.raises(np.linalg.LinAlgError):
            solve(a, np.ones(n))
    assert np.isnan(solve(np.full((n, n), np.nan), np.ones(n))).all()


@pytest.mark.parametrize("n", [2, 3])
def test_inverses_slopes_and_loops(n: int) -> None:
    rng = np.random.default_rng(n)
    a, steps = rng.normal(size=(n, n)), rng.normal(size=(5, n, n)) + 3 * np.eye(n)
    inverse = lower(symad.trace(np.linalg.inv, [(n, n)]))
    np.testing.assert_allclose(inverse(a) @ a, np.eye(n), atol=1e-13)
    slope = lower(symad.gradient(symad.trace(lambda a: np.sum(np.linalg.inv(a)), [(n, n)])))
    right = -np.linalg.inv(a).T @ np.ones((n, n)) @ np.linalg.inv(a).T
    np.testing.assert_allclose(slope(a), right, rtol=1e-11)
    step = [(n,), (5, n, n)]
    fold = symad.trace(lambda h, w: functions.fold(lambda h, v: np.linalg.solve(v, h), h, w), step)
    kernel, h = lower(fold), np.ones(n)
    assert "_solve_" in kernel.source and "_solve_" not in lower(fold, style="plain").source
    for w in steps:
        h = np.linalg.solve(w, h)
    np.testing.assert_allclose(kernel(np.ones(n), steps), h, rtol=1e-12)


def test_stacks_of_matrices_are_solved_by_one_call() -> None:
    stack = lower(symad.trace(np.linalg.solve, [(7, 2, 2), (7, 2, 1)]))
    assert "np.linalg.solve" in stack.source
