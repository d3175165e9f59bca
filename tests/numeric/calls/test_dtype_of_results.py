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
}


@pytest.mark.parametrize("backend", ["numpy", "runs"])
def test_one_vector_for_several_numbers_is_refused_with_advice(backend: str) -> None:
    """As scipy.optimize.minimize(lower(f), x0) calls it."""
    kernel = lower(x * y, backend)
    with pytest.raises(TypeError, match=r"takes 2 values \(x, y\), but 1 were given; .*packed=True"):
        kernel(np.zeros(2))
    with pytest.raises(TypeError, match=r"takes 2 values \(x, y\), but 3 were given"):
        kernel(1.0, 2.0, 3.0)


def leaves(result):
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("style", ["fast", "plain"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision(name: str, style: str) -> None:
    f = FUNCTIONS[name]
    inputs = None if isinstance(f, symad.Graph) else [x, y]
    kernel = lower(f, inputs=inputs, dtype="float32", style=style)
    wide = lower(f, inputs=inputs)
    points = np.array([0.5, -2.0, 3.0])
    for at in ((1.5, -2.5), (1, 2), (np.float32(2), np.float64(3)), (points, points[::-1])):
        for found, right in zip(leaves(kernel(*at)), leaves(wide(*at)), strict=True):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, right, rtol=1e-6)
    packed = lower(f, inputs=inputs, dtype="float32", style=style, packed=True)
    assert all(leaf.dtype == np.float32 for leaf in leaves(packed(np.array([1.5, -2.5]))))
