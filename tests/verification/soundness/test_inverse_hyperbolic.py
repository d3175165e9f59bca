"""Addition theorems of the inverse hyperbolic functions, and false statements that look like them."""

import mpmath
import pytest
from sympy import Piecewise, acosh, asinh, atanh, lambdify, sqrt, symbols

import symad

x, y, z = symbols("x y z", real=True)
p, q = symbols("p q", positive=True)
root_x, root_y, root_z = (sqrt(1 + v**2) for v in (x, y, z))

TRUE = {
    "a sum of atanh": (atanh(x) + atanh(y), atanh((x + y) / (1 + x * y))),
    "a difference of atanh": (atanh(x) - atanh(y), atanh((x - y) / (1 - x * y))),
    "twice atanh": (2 * atanh(x), atanh(2 * x / (1 + x**2))),
    "asinh by atanh": (asinh(x), atanh(x / root_x)),
    "a sum of asinh": (asinh(x) + asinh(y), asinh(x * root_y + y * root_x)),
    "a difference of asinh": (asinh(x) - asinh(y), asinh(x * root_y - y * root_x)),
    "twice asinh": (2 * asinh(x), asinh(2 * x * root_x)),
    "three asinh": (
        asinh(x) + asinh(y) + asinh(z),
        asinh(x * root_y * root_z + y * root_x * root_z + z * root_x * root_y + x * y * z),
    ),
    "asinh by acosh": (asinh(p), acosh(sqrt(p**2 + 1))),
    "a sum of acosh": (acosh(p) + acosh(q), acosh(p * q + sqrt((p**2 - 1) * (q**2 - 1)))),
}

FALSE = {
    "a sum of atanh, another denominator": (atanh(x) + atanh(y), atanh((x + y) / (1 - x * y)), (0.3, 0.4)),
    "a sum of asinh, another sign": (
        asinh(x) + asinh(y),
        asinh(x * root_y - y * root_x),
        (0.3, 0.4),
    ),
    "asinh by acosh, of either sign": (asinh(x) + 0 * y, acosh(sqrt(x**2 + 1)), (-0.3, 0.4)),
    "twice asinh by acosh": (2 * asinh(x), acosh(1 + 2 * x**2), (-0.3, 0.4)),
    "where acosh is not defined": (
        Piecewise((acosh(x), x > 1), (asinh(x) + y, True)),
        Piecewise((acosh(x), x > 1), (asinh(x) - y, True)),
        (-0.3, 0.4),
    ),
}


UNKNOWN = {"a sum of asinh", "a difference of asinh", "twice asinh", "three asinh", "a sum of acosh"}
"""Addition theorems of asinh and acosh: no rule writes these of an input as logarithms."""


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", TRUE)
def test_addition_theorems_are_accepted(name):
    left, right = TRUE[name]
    symbols_ = sorted(left.free_symbols, key=str)
    with mpmath.workdps(50):
        for shift in (mpmath.mpf("1.25"), mpmath.mpf("1.5")) if left.has(acosh) else (0.125, 0.25):
            values = [shift + k * mpmath.mpf("0.375") for k in range(len(symbols_))]
            a, b = (lambdify(symbols_, side, "mpmath")(*values) for side in (left, right))
            assert abs(a - b) < mpmath.mpf(10) ** -40  # the claim is true
    certificate = symad.equal(left, right, seed=1)
    if name in UNKNOWN:
        assert certificate.status == "undecided"
        return
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert certificate.bound < 2.0**-64


@pytest.mark.thorough
@pytest.mark.parametrize("name", FALSE)
def test_what_looks_alike_is_refuted(name):
    left, right, (at_x, at_y) = FALSE[name]
    values = [complex(side.subs({x: at_x, y: at_y})) for side in (left, right)]
    assert abs(values[0] - values[1]) > 1e-3
    assert symad.equal(left, right, seed=1).status == "refuted"
