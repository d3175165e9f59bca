"""Derivatives where a branch that is undefined is not taken are those of the branch that is used alone."""

import numpy as np
import pytest

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower
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


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(10, 1010, 40))
def test_a_thousand_programs(first: int) -> None:
    for seed in range(first, first + 40):
        agree(program(seed))
