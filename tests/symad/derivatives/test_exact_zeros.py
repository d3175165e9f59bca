"""Entries of derivatives that no input reaches are 0 beside infinite ones, in every mode and backend."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower

FUNCTIONS = {
    "root beside an element": (
        lambda a: np.stack([a[0] ** 0.5, a[1], a[2]]),
        [[np.inf, 0, 0], [0, 1, 0], [0, 0, 1]],
    ),
    "roots": (lambda a: np.sqrt(a), np.where(np.eye(3), np.inf, 0)),
    "joined": (lambda a: np.concatenate([np.log(a[:1]), a[1:] * 2]), [[np.inf, 0, 0], [0, 2, 0], [0, 0, 2]]),
    "list": (lambda a: [np.sqrt(a[:2]), np.sum(a)], [[np.inf, 0, 0], [0, np.inf, 0], [1, 1, 1]]),
    "reciprocals": (lambda a: 1 / a, np.where(np.eye(3), -np.inf, 0)),
}
"""Functions of three numbers, and their Jacobians at 0."""


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians(name: str, mode: str) -> None:
    f, right = FUNCTIONS[name]
    jacobian = symad.jacobian(symad.trace(f, [(3,)]), mode=mode)
    for found in (jacobian, lower(jacobian), lower(jacobian, style="plain")):
        with np.errstate(all="ignore"):
            assert np.array_equal(found(np.zeros(3)), right)


@pytest.mark.parametrize("mode", MODES[:3])
def test_hessians(mode: str) -> None:
    f = symad.trace(lambda a: np.sum(a**1.5), [(3,)])
    hessian = symad.hessian(f, mode=mode)
    right = np.where(np.eye(3), np.inf, 0)
    for found in (hessian, lower(hessian)):
        with np.errstate(all="ignore"):
            assert np.array_equal(found(np.zeros(3)), right)


def test_scalars() -> None:
    a, b = sp.symbols("a b", real=True)
    for inputs in ([a, b], [[a, b]]):
        for backend in ("numpy", "runs"):
            jacobian = lower(symad.jacobian([a**0.5, b], inputs=inputs), backend=backend)
            found = jacobian(0.0, 1.0) if len(inputs) == 2 else jacobian(np.array([0.0, 1.0]))
            assert np.array_equal(found, [[np.inf, 0], [0, 1]])


def test_constant_masks_stay_where_a_factor_is_infinite() -> None:
    """0 · ∞ of a branch that is not taken is no 0."""
    taken = np.arange(3) == 0
    f = symad.trace(lambda a: np.where(taken, np.sqrt(a), a), [(3,)])
    for mode in ("forward", "reverse"):
        with np.errstate(all="ignore"):
            found = lower(symad.jacobian(f, mode=mode))(np.array([4.0, 0.0, -1.0]))
        assert np.array_equal(found, np.diag([0.25, 1, 1]))
