"""Derivatives where a branch that is undefined is not taken are those of the branch that is used alone."""

from contextlib import nullcontext

import numpy as np
import pytest

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower
from tests.gpu.cupy_standin import installed
from tests.symad.derivatives.branches.programs import X, program

PRODUCTS = ("forward-over-reverse", "reverse-over-forward", "reverse-over-reverse")


def agree(program) -> None:
    """Value, gradients in both modes, four Hessians and the products, at all points."""
    f = symad.trace(program.f, X)
    gradients = [symad.gradient(f, X, mode=mode) for mode in ("reverse", "forward")]
    hessians = [symad.hessian(f, X, mode=mode) for mode in MODES]
    products = [symad.hvp(f, X, mode=mode) for mode in PRODUCTS]
    for point, expression in program.used:
        value, slope, curvature = program.right(point, expression)
        tolerance = {"rtol": 1e-11, "atol": 1e-11}
        np.testing.assert_allclose(f(*point), value, **tolerance)
        for gradient in gradients:
            np.testing.assert_allclose(gradient(*point), slope, **tolerance)
        for hessian in hessians:
            np.testing.assert_allclose(hessian(*point), curvature, **tolerance)
        for product in products:
            np.testing.assert_allclose(product(*point, 0.5, -2.0), curvature @ [0.5, -2.0], **tolerance)


@pytest.mark.parametrize("seed", range(10))
def test_a_sample_of_programs(seed: int) -> None:
    agree(program(seed))


def agree_as_code(program, backend: str) -> None:
    """The gradient and the Hessian as code."""
    options = {"style": "plain"} if backend == "plain" else {"backend": backend}
    f = symad.trace(program.f, X)
    gradient, hessian = (lower(d, **options) for d in (symad.gradient(f, X), symad.hessian(f, X)))
    for point, expression in program.used:
        _, slope, curvature = program.right(point, expression)
        np.testing.assert_allclose(gradient(*point), slope, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(hessian(*point), curvature, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("backend", ["numpy", "runs"])
@pytest.mark.parametrize("seed", [0, 3, 4])
def test_a_sample_as_code(seed: int, backend: str) -> None:
    agree_as_code(program(seed), backend)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "plain", "c", "runs"])
@pytest.mark.parametrize("first", [0, 20])
def test_programs_as_code(first: int, backend: str) -> None:
    for seed in range(first, first + 20):
        agree_as_code(program(seed), backend)


def agree_on_arrays(program, backend: str) -> None:
    """The gradient and the Hessian's product of a sum over points in arrays, as code."""
    options = {"style": "plain"} if backend == "plain" else {"backend": backend}
    points = program.used * 2
    each = symad.vmap(symad.trace(program.f, X))
    f = symad.trace(lambda u, v: np.sum(each(u, v)), [(len(points),), (len(points),)])
    right = [program.right(point, expression)[1:] for point, expression in points]
    with installed() if backend == "cupy" else nullcontext(np) as xp:
        at = [xp.asarray(values) for values in np.array([point for point, _ in points]).T]
        along = [xp.asarray(np.full(len(points), value)) for value in (0.5, -2.0)]
        slopes = lower(symad.gradient(f), **options)(*at)
        products = lower(symad.hvp(f), **options)(*at, *along)
    np.testing.assert_allclose(host(slopes), [s for s, _ in right], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(host(products), [c @ [0.5, -2.0] for _, c in right], rtol=1e-11, atol=1e-11)


def host(parts):
    return np.stack([part.get() if hasattr(part, "get") else part for part in parts], -1)


def test_a_sample_on_arrays() -> None:
    for seed in (1, 3, 9):
        agree_on_arrays(program(seed), "numpy")


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "plain", "c", "cupy"])
@pytest.mark.parametrize("first", [0, 10, 20])
def test_programs_on_arrays(first: int, backend: str) -> None:
    for seed in range(first, first + 10):
        agree_on_arrays(program(seed), backend)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(10, 1010, 40))
def test_a_thousand_programs(first: int) -> None:
    for seed in range(first, first + 40):
        agree(program(seed))
