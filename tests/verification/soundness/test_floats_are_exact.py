"""Floats in expressions are their exact binary values, also in the reference derivative.

SymPy rounds products of Floats to 15 digits, so its derivative of an expression with Floats is off by
1e-17; a checker that compares exactly must not call the right derivative wrong for it.
"""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions

ZERO = np.zeros(())


def test_products_of_floats_do_not_refute() -> None:
    a, b = sp.symbols("a b", real=True)
    f = ((sp.cos(a) + 0.7 * sp.cos(a + b) - 0.9) ** 2 + (sp.sin(a) + 0.7 * sp.sin(a + b) - 1.2) ** 2) / 2
    assert symad.check(f).status in ("proved", "tested")


@pytest.mark.parametrize(
    "f",
    [
        lambda v: functions.fold(lambda c, u: 0.3 * c + u, ZERO, v),
        lambda v: functions.fold(lambda c, u: 0.3 * c + u, ZERO, v, memory="sqrt"),
        lambda v: np.sum(functions.scan(lambda c, u: 0.7 * c + u, ZERO, v) ** 2),
        lambda v: functions.remat(lambda u: np.sum(0.3 * (0.7 * u)))(v),
        lambda v: functions.fold(lambda c, u: functions.remat(lambda a: 0.3 * (0.7 * a))(c) + u, ZERO, v),
    ],
)
def test_floats_in_bodies_are_exact_as_well(f) -> None:  # type: ignore[no-untyped-def]  # any function
    assert symad.check(f, inputs=[(3,)]).status in ("proved", "tested")


def test_a_float_is_not_the_decimal_it_is_written_as() -> None:
    a = sp.Symbol("a", real=True)
    assert symad.equal(0.1 * a, a * sp.Rational(0.1)).status == "proved"
    assert symad.equal(0.1 * a, a / 10).status == "refuted"


def test_floats_of_sympy_may_be_smaller_and_larger_than_all_of_python() -> None:
    x = sp.Symbol("x", real=True)
    small = sp.Float("1e-400")
    assert symad.equal(small * x, 0 * x).status == "refuted"
    assert symad.equal(small * x, 2 * small * x).status == "refuted"
    assert symad.equal(small + x, x).status not in ("proved", "tested", "measured")
    assert symad.equal(small * x, x * sp.Rational(small)).status in ("proved", "tested")
    large = sp.Float("1e400")
    assert symad.equal(large * x, x * sp.Rational(large)).status in ("proved", "tested")


@pytest.mark.parametrize("exponent", [1 / 3, 0.3])
def test_no_derivative_of_a_power_by_a_float_is_refuted(exponent: float) -> None:
    """The exponent e − 1 of the slope is no float: rounded, it would be that of another function."""
    power = sp.Symbol("x", real=True) ** 2 + 1
    assert symad.check(power**exponent, seed=1).status != "refuted"
