"""Functions that return one value several times: every row of their Jacobians is there, in every mode."""

import numpy as np
import pytest

import symad
from symad.numeric import lower

X = np.arange(5.0)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobians_of_repeated_scalars(mode):
    f = symad.trace(lambda x: (np.sum(x**2), np.sum(np.sin(x)), np.sum(x**2)), [(5,)])
    wanted = np.stack([2 * X, np.cos(X), 2 * X])
    made = symad.jacobian(f, mode=mode)
    np.testing.assert_allclose(made(X), wanted, rtol=1e-15)
    np.testing.assert_allclose(lower(made)(X), wanted, rtol=1e-15)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobians_of_repeated_arrays(mode):
    f = symad.trace(lambda a, b: (a + b, a * b, a + b), [(3,), (3,)])
    a, b, one = np.arange(3.0), np.array([2.0, 3.0, 5.0]), np.eye(3)
    wanted = np.block([[one, one], [np.diag(b), np.diag(a)], [one, one]])
    np.testing.assert_allclose(symad.jacobian(f, mode=mode)(a, b), wanted, rtol=1e-15)


def test_a_right_jacobian_is_proved_and_a_wrong_one_refuted():
    f = symad.trace(lambda x: (np.sum(x**2),) * 2, [(5,)])

    def verdict(rows):
        return symad.verify(f, "x", jacobian=symad.trace(rows, [(5,)]), hostile=False).status

    assert verdict(lambda x: np.stack([2 * x, 2 * x])) == "proved"
    assert verdict(lambda x: np.stack([0 * x, 4 * x])) == "refuted"
