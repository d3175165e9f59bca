"""Constants in printed code are rounded once, however they are computed."""

import mpmath
import pytest
import sympy

from symad.numeric import lower

x = sympy.Symbol("x")
R = sympy.Rational
CONSTANTS = [
    sympy.log(R(12, 5)) - R(9, 10),
    sympy.sqrt(2) * sympy.sqrt(3) - R(2449489742783178, 10**15),
    sympy.exp(R(1, 3)) * sympy.log(2) - R(967, 1000),
    sympy.exp(800) / (1 + sympy.exp(801)),
    sympy.tanh(R(4, 5)) - sympy.sin(R(7, 10)) - R(1, 50),
    sympy.pi * sympy.E - R(853973422267, 10**11),
    (1 + sympy.sqrt(2)) ** 9 - 2786,
]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("number", CONSTANTS, ids=str)
def test_a_constant_is_rounded_once(number, backend):
    code = lower(x + number, backend=backend, inputs=[x])
    with mpmath.workdps(60):
        exact = mpmath.mpf(number.evalf(50))
    assert code(0.0) == float(exact)
