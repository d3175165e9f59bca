"""Programs of low precision, with a state, or with masked results; and backward(ctx, y_bar) of one input.

None of them may be `measured` where it is wrong; each right one is.
"""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions

x = sp.Symbol("x", real=True)
F = x**3 - 2 * x


def slope(v):
    return 3 * v * v - 2


def verdict(program):
    return symad.verify(F, x, gradient=program, seed=1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_factors_are_seen_in_any_precision(dtype):
    right = verdict(lambda v: np.asarray(slope(v)).astype(dtype))
    assert right.status == "measured"
    for factor in (-1, 0, 0.5, 1.5, 2):
        wrong = verdict(lambda v, c=factor: np.asarray(c * slope(v)).astype(dtype))
        assert wrong.status == "refuted", (dtype, factor)


@pytest.mark.thorough
def test_what_half_precision_does_not_resolve_is_undecided():
    f = symad.trace(lambda a, b: np.sum(a @ b), [(3, 8), (8, 3)])

    def half(a, b, bar):
        ones = np.ones((3, 3)) * bar
        return (ones @ b.T).astype("f2"), (a.T @ ones).astype("f2")

    found = symad.verify(f, vjp=half)
    assert found.status in ("measured", "undecided")
    assert all(e.measured["would have seen"] <= 0.5 for e in found.entries if e.status == "measured")


@pytest.mark.parametrize("period", [2, 3, 4])
def test_a_program_with_a_state_is_not_measured(period):
    calls = [0]

    def sometimes(v):
        calls[0] += 1
        return slope(v) * (1 + (calls[0] % period == 0))

    found = verdict(sometimes)
    assert found.status in ("undecided", "refuted")
    assert "two calls" in str(found) or found.status == "refuted"


def test_random_programs_are_undecided():
    rng = np.random.default_rng(0)
    found = verdict(lambda v: slope(v) * (1 + 0.01 * rng.random()))
    assert found.status == "undecided"
    assert "two calls at the same point gave different values, at x = " in found.entries[0].reason


def test_lost_digits_are_no_random_values():
    naive = symad.verify(1 - sp.cos(x), x, value=lambda v: 1 - np.cos(v))
    assert naive.status == "measured"
    assert naive.losses


def test_masked_results_are_no_values():
    covered = verdict(lambda v: np.ma.array(slope(v), mask=True))
    assert covered.status == "undecided"
    assert "no value" in covered.entries[0].reason
    assert verdict(lambda v: np.ma.array(slope(v), mask=False)).status == "measured"


# ---- backward(ctx, y_bar) with one input ---------------------------------------------------------------

LABELS = np.array([0, 2, 1, 2])
ROWS = np.arange(4)


def cross_entropy(z):
    return -np.mean((z - functions.logsumexp(z, axis=-1, keepdims=True))[ROWS, LABELS])


def softmax(z, axis=-1):
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


BACKWARD = {
    "right": lambda p, z, bar: (p - np.eye(3)[LABELS]) / 4 * bar,
    "no mean": lambda p, z, bar: (p - np.eye(3)[LABELS]) * bar,
    "no cotangent": lambda p, z, bar: (p - np.eye(3)[LABELS]) / 4,
    "other axis": lambda p, z, bar: (softmax(z, 0) - np.eye(3)[LABELS]) / 4 * bar,
    "other labels": lambda p, z, bar: (p - np.eye(3)[[0, 0, 0, 0]]) / 4 * bar,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", BACKWARD)
def test_backward_of_one_input(name):
    def backward(ctx, bar):
        (z,) = ctx.saved_tensors
        return BACKWARD[name](softmax(z), z, bar)

    def plain(z, bar):
        return BACKWARD[name](softmax(z), z, bar)

    f = symad.trace(cross_entropy, [(4, 3)])
    for program in (backward, plain):
        assert symad.verify(f, vjp=program).status == ("measured" if name == "right" else "refuted")


@pytest.mark.parametrize("seed", [38, 138, 155])
def test_saturation_far_away_is_a_loss_of_digits(seed):
    """1 - t² is 0 where tanh is 1 to rounding, and x² (1 - t²) is not: no error of the formula."""
    x, y = sp.symbols("x y", real=True)

    def by_hand(x, y):
        t = np.tanh(x * y)
        return t + x * (1 - t * t) * y, x * x * (1 - t * t)

    found = symad.verify(sp.tanh(x * y) * x, (x, y), gradient=by_hand, seed=seed)
    assert found.status == "measured", found
    assert any(loss.word == "digits lost" for loss in found.losses)
