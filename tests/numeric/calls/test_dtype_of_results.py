"""Results of scalar kernels have the dtype that was asked for, also where they are made of numbers alone."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
step = sp.Piecewise((1, x > 0), (sp.Rational(1, 3), True))
FUNCTIONS = {
    "selection of numbers": step,
    "product with one": step * x,
    "function of one": sp.exp(step) + sp.sqrt(sp.pi * step),
    "number": sp.Integer(3),
    "list": [step, x, 3],
    "Heaviside": sp.Heaviside(x, sp.Rational(1, 2)) * y,
    "matrix": sp.Matrix([[step, x], [1, y]]),
    "gradient": symad.gradient(sp.Abs(x) + sp.Max(x, 2 * y), [x, y]),
    "Jacobian": symad.jacobian([sp.Abs(x), y * step], [x, y]),
    "constant gradient": symad.gradient(5 * x - y, [x, y]),
    "constant Jacobian": symad.jacobian([x + y, x - 3 * y], [x, y]),
    "constant Hessian": symad.hessian(x**2 + 3 * x * y, [x, y]),
    "constant vector": sp.Matrix([3, 0]),
    "sparse Jacobian": symad.jacobian([x**2, 3 * y, sp.Integer(2)], [x, y], sparse=True),
    "sparse Hessian": symad.hessian(x**2 - y**2, [x, y], sparse=True),
}


@pytest.mark.parametrize("backend", ["numpy", "runs"])
def test_one_vector_for_several_numbers_is_refused_with_advice(backend: str) -> None:
    """As scipy.optimize.minimize(lower(f), x0) calls it."""
    kernel = lower(x * y, backend)
    with pytest.raises(TypeError, match=r"takes 2 values \(x, y\), but 1 was given; .*packed=True"):
        kernel(np.zeros(2))
    with pytest.raises(TypeError, match=r"takes 2 values \(x, y\), but 3 were given"):
        kernel(1.0, 2.0, 3.0)


def leaves(result):
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


ONE_POINT = [name for name in FUNCTIONS if name.startswith(("constant", "sparse"))]
"""Functions that plain code evaluates at one point: their program has arrays."""


@pytest.mark.parametrize("backend", ["numpy", "plain", "c", "runs"])
@pytest.mark.parametrize("name", ONE_POINT)
def test_double_precision(name: str, backend: str) -> None:
    """Constant results are arrays of floats, not of integers, at a point, packed, and in batches."""
    f = FUNCTIONS[name]
    options = {"style": "plain"} if backend == "plain" else {"backend": backend}
    options |= {} if isinstance(f, symad.Graph) else {"inputs": [x, y]}
    points = np.array([0.5, -2.0])
    found = [*leaves(lower(f, **options)(1.5, 2)), *leaves(lower(f, packed=True, **options)(points))]
    found += [] if backend == "plain" else leaves(lower(f, **options)(points, points))
    assert all(isinstance(r, float) or r.dtype == np.float64 for r in found)


@pytest.mark.parametrize("style", ["fast", "plain"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision(name: str, style: str) -> None:
    f = FUNCTIONS[name]
    inputs = None if isinstance(f, symad.Graph) else [x, y]
    kernel = lower(f, inputs=inputs, dtype="float32", style=style)
    wide = lower(f, inputs=inputs)
    points = np.array([0.5, -2.0, 3.0])
    batch = () if style == "plain" and name in ONE_POINT else ((points, points[::-1]),)
    for at in ((1.5, -2.5), (1, 2), (np.float32(2), np.float64(3)), *batch):
        for found, right in zip(leaves(kernel(*at)), leaves(wide(*at)), strict=True):
            found, right = (r.toarray() if hasattr(r, "toarray") else r for r in (found, right))
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, right, rtol=1e-6)
    packed = lower(f, inputs=inputs, dtype="float32", style=style, packed=True)
    assert all(leaf.dtype == np.float32 for leaf in leaves(packed(np.array([1.5, -2.5]))))
