"""Derivatives where a branch that is undefined is not taken are those of the branch that is used alone."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
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


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(10, 1010, 40))
def test_a_thousand_programs(first: int) -> None:
    for seed in range(first, first + 40):
        agree(program(seed))
