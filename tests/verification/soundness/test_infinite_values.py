"""−∞ < u holds where u is finite; it is no tautology if an op's value may be −∞ on an open set."""

import numpy as np
import pytest

import symad
from symad import functions


def chosen(u, relation="above"):
    """X where −∞ < u(x), else 2x."""
    if relation == "above":
        return symad.trace(lambda x: np.where(-np.inf < u(x), x, 2 * x), [()])
    return symad.trace(lambda x: np.where(u(x) == -np.inf, 2 * x, x), [()])


X = symad.trace(lambda x: 1 * x, [()])


@pytest.mark.parametrize("relation", ["above", "equal"])
@pytest.mark.parametrize("u", [
    lambda x: np.log(np.maximum(x, 0)),
    lambda x: np.log(np.maximum(x, 0) ** 2),
    lambda x: np.log(abs(np.maximum(x, 0))),
    lambda x: -1 / np.maximum(x, 0),
    lambda x: -(np.maximum(x, 0) ** -2.0),
    lambda x: 3 + np.log(np.where(x < 0, 0, 1)),
    lambda x: np.log(functions.relu(x) + functions.relu(x - 1)),
    lambda x: np.log1p(-np.where(x < 0, 1, 0)),
])  # fmt: skip
def test_what_may_be_infinite_on_an_open_set_is_not_proved_finite(u, relation):
    f = chosen(u, relation)
    with np.errstate(all="ignore"):
        assert f(-1.0) == -2 and f(2.0) == 2
    assert symad.equal(f, X).status not in ("proved", "tested")


@pytest.mark.parametrize("u", [
    lambda x: x,
    lambda x: np.log(np.exp(x) + 1),
    lambda x: functions.logsumexp(np.stack([x, 2 * x, np.sin(x)]), axis=0),
    lambda x: np.log(3.0) - x**2,
])  # fmt: skip
def test_what_is_finite_is_above_minus_infinity(u):
    assert symad.equal(chosen(u), X).status == "proved"


def test_what_intervals_show_to_be_finite_is_above_minus_infinity():
    """That max(x, 1) is positive is no rule of the checker."""
    f = chosen(lambda x: np.log(np.exp(x) / (1 + np.exp(-x)) + np.maximum(x, 1)))
    assert symad.equal(f, X).status == "tested"
