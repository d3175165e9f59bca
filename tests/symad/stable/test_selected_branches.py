"""Branches by one condition: what one of them throws away is not evaluated, and both keep their digits."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import symad
import symad.functions as F
from symad.core.graph import Graph
from symad.ops.basic.arithmetic import Mul
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.stable import stabilize

N = sympy.Symbol("n", integer=True, positive=True)


def gradient_of(loss: Callable[..., Any]) -> Graph:
    """The stable gradient by v of a loss of logits v and labels y."""
    return stabilize(symad.gradient(symad.trace(loss, [(N,), (N,)]), wrt="v"))


def count(graph: Graph, kind: type) -> int:
    """The nodes of one kind."""
    return sum(isinstance(node.op, kind) for node in graph.nodes)


def chosen(v: Any, y: Any) -> Any:
    """The probability of the label."""
    return np.where(y > 0, F.sigmoid(v), F.sigmoid(-v))


def complement(v: Any, y: Any) -> Any:
    """The same by 1 − p."""
    return np.where(y > 0, F.sigmoid(v), 1 - F.sigmoid(v))


def by_tanh(v: Any, y: Any) -> Any:
    """The same by tanh."""
    return np.where(y > 0, 1 + np.tanh(v / 2), 1 + np.tanh(-v / 2)) / 2


LOSSES = {
    "chosen": (lambda v, y: -np.sum(np.log(chosen(v, y))), 1),
    "complement": (lambda v, y: -np.sum(np.log(complement(v, y))), 1),
    "tanh": (lambda v, y: -np.sum(np.log(by_tanh(v, y))), 2),
    "apart": (lambda v, y: -np.sum(np.where(y > 0, np.log(F.sigmoid(v)), np.log(F.sigmoid(-v)))), 2),
}
"""Binary cross-entropy in several notations, with the most functions in its gradient."""


@pytest.mark.parametrize("name", LOSSES)
def test_cross_entropy_is_right_at_large_logits_and_evaluates_few_functions(name: str) -> None:
    loss, functions = LOSSES[name]
    made = gradient_of(loss)
    assert count(made, Apply) <= functions and count(made, Select) <= 2
    v = np.array([-800.0, -40.0, -1.5, 0.0, 0.7, 38.0, 900.0] * 2)
    y = np.repeat([0.0, 1.0], 7)
    with mpmath.workdps(50):
        wanted = [
            float(-1 / (1 + mpmath.exp(a)) if b else 1 / (1 + mpmath.exp(-mpmath.mpf(a))))
            for a, b in zip(v, y, strict=True)
        ]
    np.testing.assert_allclose(made(v=v, y=y), wanted, rtol=1e-14, atol=0)


def test_focal_loss_evaluates_no_function_of_the_other_label() -> None:
    made = gradient_of(lambda v, y: -np.sum((1 - chosen(v, y)) ** 2 * np.log(chosen(v, y))))
    assert count(made, Apply) <= 3 and count(made, Select) <= 2
    v = np.array([-30.0, -2.0, 0.5, 3.0, 25.0] * 2)
    y = np.repeat([0.0, 1.0], 5)

    def value(a: Any, b: float) -> Any:
        p = 1 / (1 + mpmath.exp(-a if b else a))
        return -((1 - p) ** 2) * mpmath.log(p)

    with mpmath.workdps(60):
        wanted = [
            float(mpmath.diff(lambda a, b=b: value(a, b), mpmath.mpf(a))) for a, b in zip(v, y, strict=True)
        ]
    np.testing.assert_allclose(made(v=v, y=y), wanted, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("loss", "wanted", "selections"),
    [
        (
            lambda v, y: np.sum(np.where(np.abs(v - y) <= 1, (v - y) ** 2 / 2, np.abs(v - y) - 0.5)),
            lambda v, y: np.clip(v - y, -1, 1),
            1,
        ),
        (
            lambda v, y: np.sum(np.where(v > 0, v, y * v) ** 2) / 2,
            lambda v, y: v * np.where(v > 0, 1, y**2),
            1,
        ),
        (
            lambda v, y: np.sum(np.where(v > 0, np.log(v), np.log(1 - v))),
            lambda v, y: np.where(v > 0, 1 / v, -1 / (1 - v)),
            1,
        ),
        (
            lambda v, y: np.sum(np.where(y > 0, np.tanh(v), np.tanh(-v))),
            lambda v, y: np.where(y > 0, 1, -1) / np.cosh(v) ** 2,
            1,
        ),
    ],
    ids=["huber", "leaky", "logarithms", "odd"],
)
def test_masks_by_one_condition_are_one_selection(
    loss: Callable[..., Any], wanted: Callable[..., Any], selections: int
) -> None:
    made = gradient_of(loss)
    assert count(made, Select) <= selections
    v, y = np.array([-3.1, -0.4, 0.3, 2.5] * 2), np.repeat([0.1, -0.2], 4)
    np.testing.assert_allclose(made(v=v, y=y), wanted(v, y), rtol=1e-14)


def test_inner_guards_of_divisors_stay() -> None:
    """c ? a/(c ? b : 1) : 0 divides by no zero, also where the quotient is not selected."""
    graph = stabilize(symad.trace(lambda v, y: np.where(v > 0, y / np.where(v > 0, v, 1), 0), [(N,), (N,)]))
    with np.errstate(all="raise"):
        found = graph(v=np.array([0.0, 2.0]), y=np.array([1.0, 3.0]))
    np.testing.assert_array_equal(found, [0.0, 1.5])


def test_slopes_of_norms_divide_by_the_norm_or_one() -> None:
    """The divisor beside 0, 1 + √r, is 1: it serves slopes of slopes alone. Cotangents of 1 are no factor."""
    m = sympy.Symbol("m", integer=True, positive=True)
    norms = symad.trace(lambda v: np.sum(np.linalg.norm(v, axis=1, keepdims=True)), [(N, m)])
    made = stabilize(symad.gradient(norms))
    assert count(made, Pow) == 2 and count(made, Mul) == 1
    v = np.array([[3.0, 4.0], [0.0, 0.0], [-5.0, 12.0]])
    np.testing.assert_allclose(made(v=v), [[0.6, 0.8], [0, 0], [-5 / 13, 12 / 13]], rtol=1e-15)


@pytest.mark.thorough
def test_second_slopes_of_norms_keep_the_divisor_beside_zero() -> None:
    made = symad.hessian(symad.trace(lambda v: np.linalg.norm(v), [(2,)]))
    np.testing.assert_allclose(made(v=np.array([3.0, 4.0])), [[0.128, -0.096], [-0.096, 0.072]], rtol=1e-14)
    assert not np.isfinite(made(v=np.zeros(2))).all()


def test_slopes_of_piecewise_polynomials_have_a_mask_for_each_piece() -> None:
    """Masks times coefficients are no pairs of close values, however far apart the coefficients are."""
    x = sympy.Symbol("x", real=True)
    steps = sympy.Piecewise((3 * x, x < 1), (-50 * x, x < 2), (7 * x, True))
    assert count(stabilize(symad.gradient(steps, x)), Select) <= 3
    spline = sympy.interpolating_spline(3, x, range(7), [0, 1, 0, 2, 1, 3, -2])  # of four pieces
    slope = stabilize(symad.gradient(spline, x))
    assert count(slope, Select) <= 40
    points = (0.5, 1.25, 2.5, 3.75, 5.5)
    right = [float(sympy.diff(spline, x).subs(x, sympy.Float(at, 40))) for at in points]
    np.testing.assert_allclose([slope(at) for at in points], right, rtol=1e-13)
