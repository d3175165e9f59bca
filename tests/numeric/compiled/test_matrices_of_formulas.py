"""Backend "c" for functions of numbers with matrices of formulas: written out in scalars, or in NumPy."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.scalars import lower_c

X = sp.symbols("x0:6", real=True)
M = sp.ImmutableMatrix(3, 3, lambda i, j: sp.cos(X[i] - X[j]) / (1 + abs(i - j)) + 3 * (i == j))
F = sp.ImmutableMatrix(3, 1, lambda i, _: sp.sin(X[i]) * X[i + 3] ** 2 - X[(i + 1) % 3])
POINT = np.array([0.3, -0.8, 1.1, 0.5, 0.9, -0.4])


def solution():
    """M⁻¹F, with the inverse as an operation on a matrix."""
    return sp.MatMul(sp.Inverse(M), F, evaluate=False)


def expected():
    """∂(M⁻¹F) = M⁻¹(∂F − ∂M M⁻¹F), each derivative by SymPy."""
    at = dict(zip(X, map(sp.Float, POINT), strict=True))

    def number(matrix):
        return np.array(sp.Matrix(matrix).subs(at).tolist(), dtype=float)

    inner = np.linalg.solve(number(M), number(F))
    columns = [np.linalg.solve(number(M), number(F.diff(x)) - number(M.diff(x)) @ inner) for x in X]
    return np.hstack(columns)


def test_a_jacobian_of_a_solution_is_one_compiled_function():
    kernel = lower(symad.jacobian(solution(), X), backend="c")
    assert kernel.native is not None and "double" in kernel.c_header
    np.testing.assert_allclose(kernel(*POINT), expected(), rtol=1e-12)
    batch = kernel(*np.stack([POINT, POINT], axis=1))
    np.testing.assert_allclose(batch, [expected()] * 2, rtol=1e-12)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("limits", [{"MAX_COMPILED": 10}, {"MAX_WRITTEN_OUT": 10}])
def test_long_ones_are_executed_without_compilation_or_stay_in_numpy(monkeypatch, limits, packed):
    for name, value in limits.items():
        monkeypatch.setattr(lower_c, name, value)
    kernel = lower(symad.jacobian(solution(), X), backend="c", packed=packed)
    assert (kernel.native is not None) == ("MAX_COMPILED" in limits)
    assert not kernel.c_source
    np.testing.assert_allclose(kernel(POINT) if packed else kernel(*POINT), expected(), rtol=1e-12)


@pytest.mark.thorough
def test_single_precision_has_arrays():
    kernel = lower(symad.jacobian(solution(), X), backend="c", dtype="float32")
    np.testing.assert_allclose(kernel(*POINT), expected(), rtol=2e-6, atol=1e-6)


def test_data_are_read_by_loops():
    data = np.linspace(0.0, 1.0, 500)
    kernel = lower(symad.trace(lambda a, b: np.sum(np.exp(a * data) * b), [(), ()]), backend="c")
    assert kernel.c_source.count("\n") < 300  # not 500 terms
    np.testing.assert_allclose(kernel(0.5, 2.0), 2 * np.exp(0.5 * data).sum(), rtol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [30, 80])
def test_sums_of_more_arrays_than_a_kernel_reads(count):
    f = symad.trace(lambda *arrays: np.sin(sum(arrays[1:], arrays[0]) * arrays[3]), [(5,)] * count)
    values = [np.full(5, 0.01 * k) for k in range(count)]
    wanted = np.sin(np.sum(values, axis=0) * values[3])
    np.testing.assert_allclose(lower(f, backend="c")(*values), wanted, rtol=1e-12)
    scaled = symad.trace(
        lambda *a: np.ones(4) * sum(np.sin(x) * (k + 1) for k, x in enumerate(a)), [()] * count
    )
    numbers = [0.01 * k for k in range(count)]
    wanted = np.ones(4) * sum((k + 1) * np.sin(x) for k, x in enumerate(numbers))
    np.testing.assert_allclose(lower(scaled, backend="c", dtype="float32")(*numbers), wanted, rtol=1e-5)


def matrix(*rows):
    return np.stack([np.stack(row) for row in rows])


SINGULAR = {
    "a solution": (lambda a, b: np.linalg.solve(matrix([a, b], [b, a]), np.array([1.0, 2.0])), 1.0, 1.0),
    "an entry that has a value": (
        lambda a, b: np.linalg.solve(matrix([a, 0 * a], [0 * a, b]), np.array([1.0, 2.0]))[1], 0.0, 2.0
    ),
    "a reciprocal": (lambda a, b: 1 / np.linalg.inv(matrix([a, b], [b, a])), 1.0, 1.0),
    "a negative pivot": (lambda a, b: np.linalg.cholesky(matrix([a, b], [b, a]))[0, 0], 1.0, 2.0),
    "a pivot of 0": (lambda a, b: np.linalg.cholesky(matrix([a, b], [b, a])), 1.0, 1.0),
    "a tuple": (lambda a, b: (a + b, np.linalg.inv(matrix([a, b], [b, a]))), 1.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", SINGULAR)
def test_singular_matrices_raise_as_in_numpy(name, packed, most, monkeypatch):
    """Elimination had infinite numbers there, and some results were finite: 1, -0, 2."""
    f, a, b = SINGULAR[name]
    if most is not None:
        monkeypatch.setattr(lower_c, "MAX_COMPILED", most)
    graph = symad.trace(f, [(), ()])
    kernel = lower(graph, backend="c", packed=packed)
    assert kernel.native is not None
    with pytest.raises(np.linalg.LinAlgError):
        graph(a, b)
    with pytest.raises(np.linalg.LinAlgError):
        kernel(np.array([a, b])) if packed else kernel(a, b)
    if packed:
        return
    with pytest.raises(np.linalg.LinAlgError):
        kernel(**dict(zip(kernel.__signature__.parameters, (a, b), strict=True)))
    first, second = (np.hstack([np.ravel(r) for r in (v if isinstance(v, tuple) else (v,))])
                     for v in (kernel(3.0, 1.0), graph(3.0, 1.0)))  # fmt: skip
    np.testing.assert_allclose(first, second, rtol=1e-14)


def test_points_of_a_batch_with_singular_matrices_are_nan():
    f, *_ = SINGULAR["an entry that has a value"]
    kernel = lower(symad.trace(f, [(), ()]), backend="c")
    np.testing.assert_array_equal(kernel(np.array([0.0, 1.0]), np.array([2.0, 2.0])), [np.nan, 1.0])


def test_arguments_that_are_nan_give_nan():
    f, *_ = SINGULAR["a solution"]
    assert np.isnan(lower(symad.trace(f, [(), ()]), backend="c")(np.nan, 1.0)).all()
