"""Solves and inverses inside of compiled loops are eliminations in C: against NumPy, step by step."""

import numpy as np
import pytest

import symad
from symad import functions as F
from symad.numeric import lower
from symad.numeric.compiled_arrays.c.small_systems import MAX_UNKNOWNS
from symad.numeric.compiler.c_compiler import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

LARGER = [pytest.param(n, marks=pytest.mark.thorough) for n in (1, 2, MAX_UNKNOWNS)]
STEPS = np.array([0.5, -1.0, 2.0, 0.25])

BODIES = {
    "solve": lambda h, x, A: np.linalg.solve(A + x * h[0] ** 2 * np.eye(len(h)), h) + x,
    "inverse": lambda h, x, A: np.linalg.inv(A * x + h[0] / 8 * np.eye(len(h))) @ h + h[::-1],
    "transposed": lambda h, x, A: np.linalg.solve(A.T, h) * x + np.linalg.solve(A, h),
    "several right sides": lambda h, x, A: np.sum(np.linalg.solve(A, np.stack([h, x * h, h**2], -1)), -1) / 4,
}


def matrix(n: int, seed: int = 0) -> np.ndarray:
    """A well-conditioned matrix that needs pivots: its largest elements are not on the diagonal."""
    rng = np.random.default_rng(seed)
    return np.roll(3 * np.eye(n), 1, 1) + 0.3 * rng.normal(size=(n, n))


def compiled(body, n: int, derive=lambda f: f, dtype="float64"):
    f = symad.trace(lambda h, A, xs: F.fold(lambda h, x: body(h, x, A), h, xs), [(n,), (n, n), (len(STEPS),)])
    kernel = lower(derive(f), "c", dtype=dtype)
    assert "symad_solve(" in kernel.source
    return kernel


def loop(body, h, A):
    for x in STEPS:
        h = body(h, x, A)
    return h


@pytest.mark.parametrize("n", [3, *LARGER])
@pytest.mark.parametrize("name", BODIES)
def test_values(name: str, n: int) -> None:
    h, A = np.linspace(0.5, 1, n), matrix(n)
    np.testing.assert_allclose(compiled(BODIES[name], n)(h, A, STEPS), loop(BODIES[name], h, A), rtol=1e-11)


@pytest.mark.thorough
@pytest.mark.parametrize("name", BODIES)
def test_gradients(name: str) -> None:
    """Against central differences of the loop."""
    h, A = np.linspace(0.5, 1, 3), matrix(3)
    total = lambda f: symad.gradient(symad.trace(lambda *a: np.sum(np.sin(f(*a))), list(f.inputs)), [0, 1])  # noqa: E731
    by_h, by_A = compiled(BODIES[name], 3, total)(h, A, STEPS)
    value = lambda h, A: np.sum(np.sin(loop(BODIES[name], h, A)))  # noqa: E731
    for found, k in ((by_h, 0), (by_A, 1)):
        for place in np.ndindex(found.shape):
            step = np.zeros(found.shape)
            step[place] = 1e-5
            up, down = ([h, A], [h, A])
            up[k], down[k] = up[k] + step, down[k] - step
            assert found[place] == pytest.approx((value(*up) - value(*down)) / 2e-5, rel=1e-6, abs=1e-8)


def test_single_precision() -> None:
    h, A = np.linspace(0.5, 1, 3), matrix(3)
    found = compiled(BODIES["solve"], 3, dtype="float32")(h, A, STEPS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, loop(BODIES["solve"], h, A), rtol=2e-5)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_singular_matrices_are_an_error(backend: str) -> None:
    """As in NumPy; a matrix of NaN gives NaN, and what is singular for LAPACK is singular here."""
    f = symad.trace(
        lambda h, A, xs: F.fold(lambda h, x: np.linalg.solve(A * x, h), h, xs), [(2,), (2, 2), (3,)]
    )
    kernel = lower(f, backend)
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert np.isfinite(kernel(np.ones(2), A, np.ones(3))).all()
    for singular, xs in ((A, np.array([1.0, 0.0, 1.0])), (np.array([[1.0, 2.0], [2.0, 4.0]]), np.ones(3))):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            kernel(np.ones(2), singular, xs)
    assert np.isnan(kernel(np.ones(2), A, np.array([1.0, np.nan, 1.0]))).all()
    assert np.isfinite(kernel(np.ones(2), A, np.ones(3))).all()


def test_large_systems_are_left_to_lapack() -> None:
    n = MAX_UNKNOWNS + 1
    f = symad.trace(
        lambda h, A, xs: F.fold(lambda h, x: np.linalg.solve(A, h * x), h, xs), [(n,), (n, n), (3,)]
    )
    assert "np.linalg.solve" in lower(f, "c").source
