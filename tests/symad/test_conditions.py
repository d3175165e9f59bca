"""Values used under conditions: tangents are masked where they may be undefined, and only there."""

import numpy as np

import symad


def test_a_contraction_used_under_a_condition_on_its_elements():
    def masked(a, b):
        return np.where(np.tril(np.ones((2, 2))) > 0, a @ b, 0.0)

    a, b = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 0], [2, 1], [0, 3]])
    found = symad.jacobian(symad.trace(masked, [(2, 3), (3, 2)]), "a")(a, b)
    expected = np.zeros((2, 2, 2, 3))
    expected[0, 0, 0], expected[1, 0, 1], expected[1, 1, 1] = b[:, 0], b[:, 0], b[:, 1]
    np.testing.assert_array_equal(found, expected.reshape(4, 6))
