"""Arrays and loops with branches that are not taken, in all modes, and as code."""

import warnings

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower
from symad.ops.basic.sources import constant_value
from symad.ops.elementwise.selection import Select
from tests.gpu.cupy_standin import installed
from tests.symad.derivatives.branches.arrays import CASES, cut_off

n = sp.Symbol("n", integer=True, positive=True)


def traced(name, size=None):
    f, point, slope, curvature = CASES[name]
    return symad.trace(f, [(size or len(point),)]), np.array(point), np.array(slope, float), curvature


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str, mode: str) -> None:
    f, point, slope, _ = traced(name)
    (found,) = np.atleast_2d(symad.gradient(f, mode=mode)(point))
    np.testing.assert_allclose(found, slope, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_hessians(name: str, mode: str) -> None:
    f, point, _, curvature = traced(name)
    np.testing.assert_allclose(symad.hessian(f, mode=mode)(point), curvature, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("mode", [m for m in MODES if m != "forward-over-forward"])
@pytest.mark.parametrize("name", CASES)
def test_products(name: str, mode: str) -> None:
    f, point, _, curvature = traced(name)
    v = np.arange(1.0, 1 + len(point))
    (found,) = np.atleast_2d(symad.hvp(f, mode=mode)(point, v))
    np.testing.assert_allclose(found, curvature @ v, rtol=1e-13, atol=1e-15)


def as_code(name, backend):
    f, point, slope, curvature = traced(name)
    options = {"style": "plain"} if backend == "plain" else {"backend": backend}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = np.atleast_2d(lower(symad.gradient(f), **options)(point))
        hessian = lower(symad.hessian(f), **options)(point)
    np.testing.assert_allclose(found, slope, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(hessian, curvature, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ["distances", "a clipped logarithm", "a root of a maximum", "a loop"])
def test_numpy_code(name: str) -> None:
    as_code(name, "numpy")


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "plain", "c"])
@pytest.mark.parametrize("name", CASES)
def test_code(name: str, backend: str) -> None:
    as_code(name, backend)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_cupy_code(name: str) -> None:
    f, point, slope, curvature = traced(name)
    with installed() as cp:
        found = lower(symad.gradient(f), backend="cupy")(cp.asarray(point))
        hessian = lower(symad.hessian(f), backend="cupy")(cp.asarray(point))
    np.testing.assert_allclose(found.get(), slope, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(hessian.get(), curvature, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "name", ["distances", "a clipped logarithm", "a root of a maximum", "the largest element"]
)
def test_symbolic_sizes(name: str) -> None:
    f, point, slope, _ = traced(name, n)
    (found,) = np.atleast_2d(symad.gradient(f)(point))
    np.testing.assert_allclose(found, slope, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("mode", MODES)
def test_a_potential_that_is_cut_off(mode: str) -> None:
    """Three points on a line at 0, 1 and 3: the first two interact. V = r⁻², V' = −2 r⁻³, V'' = 6 r⁻⁴."""
    f = symad.trace(cut_off, [(3, 2)])
    at = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    (gradient,) = np.atleast_3d(symad.gradient(f)(at)).reshape(1, 3, 2)
    np.testing.assert_allclose(gradient, [[2, 0], [-2, 0], [0, 0]], atol=1e-15)
    block = np.diag([6.0, -2.0])
    right = np.zeros((3, 2, 3, 2))
    right[0, :, 0], right[1, :, 1], right[0, :, 1], right[1, :, 0] = block, block, -block, -block
    np.testing.assert_allclose(symad.hessian(f, mode=mode)(at), right.reshape(6, 6), atol=1e-13)


def test_where_a_value_is_not_a_number_so_is_its_slope() -> None:
    f = symad.trace(lambda u: np.sqrt(np.maximum(np.log(u), 0)).sum(), [(2,)])
    with np.errstate(all="ignore"):
        found = np.ravel(symad.gradient(f)(np.array([-1.0, np.e**4])))
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1], 0.25 / np.e**4, rtol=1e-14)


def test_extremes_of_smooth_values_cost_no_masks() -> None:
    """A rectifier between layers has the nodes that it had before."""
    f = symad.trace(lambda W, x: np.tanh(W @ np.maximum(np.tanh(W @ x), 0)).sum(), [(3, 3), (3,)])
    selections = [node for node in symad.gradient(f).nodes if isinstance(node.op, Select)]
    assert selections
    assert all(constant_value(branch) in (0, 1) for node in selections for branch in node.args[1:])


@pytest.mark.parametrize("clipped", [lambda x: np.clip(x, -1, 1), lambda x: np.maximum(x, 0)])
def test_a_branch_beside_a_loop_over_it(clipped):
    """The condition on the elements of the loop's argument masks nothing of the loop's states."""

    def f(x):
        y = clipped(x)
        return np.sum(y / (1.5 + x**2)) + symad.functions.fold(lambda c, z: c + z.sum(), 0.0, y)

    graph = symad.trace(f, [(3, 4)])
    x = np.random.default_rng(0).normal(size=(3, 4)) * 2
    inside = (clipped(x) == x).astype(float)
    wanted = inside / (1.5 + x**2) - 2 * x * clipped(x) / (1.5 + x**2) ** 2 + inside
    np.testing.assert_allclose(symad.gradient(graph)(x), wanted, rtol=1e-13)
