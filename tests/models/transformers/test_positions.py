"""Positions: worked numbers, the rotation proved, rotary and ALiBi properties, torch."""

import numpy as np
import pytest
import sympy

from symad.errors import ShapeError
from symad.models.transformers import positions
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


def test_worked_numbers():
    found = positions.sinusoidal(np.arange(4), 4, base=100)
    assert found.round(6).tolist() == [
        [0, 1, 0, 1],
        [0.841471, 0.540302, 0.099833, 0.995004],
        [0.909297, -0.416147, 0.198669, 0.980067],
        [0.141120, -0.989992, 0.295520, 0.955336],
    ]
    np.testing.assert_array_equal(positions.sinusoidal(4, 4, base=100), found)  # that many positions
    one = positions.sinusoidal(np.arange(2), 4)[1]
    assert one[:3].round(4).tolist() == [0.8415, 0.5403, 0.0100]
    assert one[3].round(5) == 0.99995


def test_worked_numbers_with_the_cosine_first():
    one = positions.cosine_first(np.arange(2), 4)[1]
    assert one[0].round(5) == 0.99995
    assert one[1].round(7) == 0.0099998
    assert one[2].round(9) == 0.999999995
    assert one[3].round(4) == 0.0001


@pytest.mark.parametrize("d", [2, 4, 6])
def test_a_shift_is_a_rotation_proved(d):
    t, delta = sympy.symbols("t Delta", real=True)
    base = sympy.Symbol("base", positive=True)
    shifted = positions.sinusoidal(t + delta, d, base)
    turned = positions.shift_matrix(delta, d, base) * sympy.Matrix(positions.sinusoidal(t, d, base))
    for a, b in zip(shifted, turned, strict=True):
        assert sympy.expand(sympy.expand_trig(sympy.expand(a)) - b) == 0
    R = positions.shift_matrix(delta, d, base)
    assert sympy.simplify(R * R.T) == sympy.eye(d)


def test_expressions_and_arrays_agree():
    exact = positions.sinusoidal(sympy.Integer(3), 6, sympy.Integer(50))
    found = positions.sinusoidal(np.array([3.0]), 6, 50)[0]
    np.testing.assert_allclose(found, [float(e) for e in exact], rtol=1e-15)


def test_rotary_scores_depend_on_the_distance_alone():
    q, k = rng.normal(size=(2, 1, 6))

    def score(t, s):
        turned = positions.rotate(q, np.array([t])), positions.rotate(k, np.array([s]))
        return float((turned[0] @ turned[1].T)[0, 0])

    for t, s in [(3, 1), (10, 8), (102, 100)]:
        assert np.isclose(score(t, s), score(2, 0), rtol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(positions.rotate(q, np.array([7]))), np.linalg.norm(q))
    assert np.isclose(score(5, 5), float((q @ k.T)[0, 0]))


def test_rotary_against_complex_numbers_in_torch():
    t = np.arange(5)

    def reference(torch, p, t):
        x = torch.complex(p["x"][:, :3], p["x"][:, 3:])
        rates = 10000.0 ** (-2 * torch.arange(3, dtype=torch.float64) / 6)
        turned = x * torch.exp(1j * t[:, None] * rates)
        return (turned.real**3).sum() + torch.sin(turned.imag).sum()

    def loss(p, t):
        y = positions.rotate(p["x"], t)
        return np.sum(y[:, :3] ** 3) + np.sum(np.sin(y[:, 3:]))

    agrees_with_torch(loss, {"x": (5, 6)}, reference, t)


def test_alibi():
    np.testing.assert_allclose(positions.alibi_slopes(8), [2.0**-k for k in range(1, 9)])
    bias = positions.alibi(2, np.arange(3), np.arange(3))
    np.testing.assert_allclose(bias[0], -np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) / 16)
    np.testing.assert_allclose(bias[1], bias[0] / 16)


def test_relative_bias_reads_the_clipped_distance():
    table = np.array([[10.0, 11, 12, 13, 14]])
    bias = positions.relative(table, np.arange(4), np.arange(4))[0]
    expected = [[12, 11, 10, 10], [13, 12, 11, 10], [14, 13, 12, 11], [14, 14, 13, 12]]
    np.testing.assert_array_equal(bias, expected)

    def reference(torch, p, t):
        distance = (t[:, None] - t[None, :]).clamp(-2, 2) + 2
        return torch.exp(p["table"][:, distance]).sum()

    agrees_with_torch(
        lambda p, t: np.sum(np.exp(positions.relative(p["table"], t, t))),
        {"table": (2, 5)}, reference, np.arange(4),
    )  # fmt: skip


def test_odd_widths_are_refused():
    with pytest.raises(ShapeError, match="d = 5 is not even"):
        positions.sinusoidal(np.arange(3), 5)
