"""Every function symad can evaluate has the right derivative: against numerical differentiation, 50 digits.

This is the one place where derivatives are checked numerically. SymPy supplies the derivatives of scalar
functions, and SymPy's diff is also a reference of `symad.check`, so the table itself needs a check that
knows nothing of SymPy's derivatives: mpmath's values, differentiated by mpmath.
"""

from __future__ import annotations

import random
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad import functions
from symad.core.graph import Node
from symad.errors import DerivativeError
from symad.numbers.function_values import mpmath_function
from symad.numbers.numpy_names import NUMPY_NAMES
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.sympy_functions.elliptic_integral import elliptic_moment
from symad.sympy_functions.probability import (
    gammainc,
    gammaincc,
    ive,
    log_ndtr,
    normal_excess,
    normal_ratio,
    stdtr,
)
from symad.sympy_functions.scalar_functions import logcosh
from symad.sympy_functions.special_functions import (
    hyp0f1,
    hyp1f1,
    hyp2f1,
    owens_t,
    polylog_slope,
    spherical_in,
    voigt_dispersion,
    voigt_profile,
)
from symad.tracing.from_sympy.parameter_derivatives import COMPANIONS, PARAMETERS
from symad.tracing.from_sympy.partials import partial
from symad.verification.values.fifty_digits import evaluate_all

WIDE, UNIT, ABOVE, POSITIVE = (-3.0, 3.0), (-0.95, 0.95), (1.05, 4.0), (0.1, 4.0)

# For each function the ranges of its arguments; a tuple of ints stands for orders to choose from.
DOMAINS: dict[Any, tuple[Any, ...]] = {
    **dict.fromkeys(
        [sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.atan, sympy.asinh, sympy.exp],
        (WIDE,),
    ),
    **dict.fromkeys([sympy.tan, sympy.sec], ((-1.4, 1.4),)),
    **dict.fromkeys([sympy.cot, sympy.csc, sympy.csch, sympy.coth, sympy.acsch, sympy.acot], (POSITIVE,)),
    **dict.fromkeys([sympy.asin, sympy.acos, sympy.atanh, sympy.erfinv], (UNIT,)),
    **dict.fromkeys([sympy.acosh, sympy.asec, sympy.acsc, sympy.acoth], (ABOVE,)),
    **dict.fromkeys([sympy.log, cfunctions.log2, cfunctions.log10], (POSITIVE,)),
    **dict.fromkeys([sympy.sech, sympy.sinc, sympy.erf, sympy.erfc, sympy.erfi, cfunctions.expm1], (WIDE,)),
    **dict.fromkeys([cfunctions.exp2, sympy.Abs, sympy.sign, sympy.floor, sympy.ceiling], (WIDE,)),
    **dict.fromkeys([sympy.frac, sympy.Heaviside], (WIDE,)),
    cfunctions.log1p: ((-0.9, 4.0),),
    cfunctions.hypot: (WIDE, WIDE),
    logaddexp: (WIDE, WIDE),
    logcosh: (WIDE,),
    sympy.asech: ((0.05, 0.95),),
    sympy.atan2: (WIDE, WIDE),
    sympy.Mod: (WIDE, POSITIVE),
    sympy.Max: (WIDE, WIDE),
    sympy.Min: (WIDE, WIDE),
    **dict.fromkeys([sympy.gamma, sympy.loggamma, sympy.digamma, sympy.factorial], (POSITIVE,)),
    sympy.polygamma: ((0, 1, 2), POSITIVE),
    sympy.binomial: ((4.0, 7.0), (0.5, 3.0)),
    sympy.beta: (POSITIVE, POSITIVE),
    sympy.erfcinv: ((0.1, 1.9),),
    **dict.fromkeys([sympy.besselj, sympy.bessely, sympy.besseli, sympy.besselk], ((0, 1, 3), POSITIVE)),
    **dict.fromkeys([sympy.jn, sympy.yn], ((1, 2), POSITIVE)),
    **dict.fromkeys([sympy.airyai, sympy.airybi, sympy.airyaiprime, sympy.airybiprime], (WIDE,)),
    **dict.fromkeys([sympy.Ei, sympy.E1, sympy.Si, sympy.Ci, sympy.Shi, sympy.Chi], (POSITIVE,)),
    **dict.fromkeys([sympy.fresnels, sympy.fresnelc], (WIDE,)),
    sympy.LambertW: (POSITIVE,),
    sympy.zeta: ((2, 3), POSITIVE),
    elliptic_k: (UNIT,),
    **dict.fromkeys([elliptic_e, elliptic_f], ((-1.4, 1.4), UNIT)),
    elliptic_pi: ((-0.9, 0.9), (-1.4, 1.4), UNIT),
    elliptic_moment: ((0, 1, 2), (0, 1), (0, 1), (-0.9, 0.9), (-1.4, 1.4), UNIT),
    **dict.fromkeys([sympy.lowergamma, gammainc, gammaincc], (POSITIVE, POSITIVE)),
    **dict.fromkeys([sympy.uppergamma, sympy.expint], (WIDE, POSITIVE)),
    sympy.polylog: ((2, 3, -1), UNIT),
    **dict.fromkeys([sympy.betainc, sympy.betainc_regularized], (POSITIVE, POSITIVE, (0.1, 0.4), (0.5, 0.9))),
    ive: ((0, 1, 3), WIDE),
    **dict.fromkeys([log_ndtr, normal_ratio, normal_excess], (WIDE,)),
    stdtr: (POSITIVE, WIDE),
    **dict.fromkeys([sympy.legendre, sympy.chebyshevt, sympy.chebyshevu], ((2, 5), UNIT)),
    **dict.fromkeys([sympy.hermite, sympy.laguerre], ((2, 5), WIDE)),
    sympy.assoc_laguerre: ((2, 4), (0.5, 2.0), WIDE),
    sympy.assoc_legendre: ((2, 4), (0, 2), UNIT),
    sympy.gegenbauer: ((2, 4), (0.5, 2.0), UNIT),
    sympy.jacobi: ((2, 3), (0.5, 2.0), (0.5, 2.0), UNIT),
    **dict.fromkeys(
        [functions.sigmoid, functions.softplus, functions.relu, functions.silu, functions.gelu], (WIDE,)
    ),
    functions.xlogy: (POSITIVE, POSITIVE),
    hyp0f1: (POSITIVE, WIDE),
    hyp1f1: (WIDE, POSITIVE, WIDE),
    hyp2f1: (WIDE, WIDE, POSITIVE, (-0.9, 0.7)),
    owens_t: (WIDE, WIDE),
    spherical_in: ((0, 1, 3), WIDE),
    polylog_slope: ((1, 2), (0.5, 3.5), UNIT),
    **dict.fromkeys([voigt_profile, voigt_dispersion], (WIDE, POSITIVE, POSITIVE)),
}
DOMAINS |= {made: (((0, 1),) * len(PARAMETERS[head]) + DOMAINS[head]) for head, made in COMPANIONS.items()}

NOT_DIFFERENTIATED = {functions.stop_gradient}
"""stop_gradient is the identity with derivative 0 on purpose."""

UNKNOWN = {
    (sympy.polygamma, 0), (sympy.besselj, 0), (sympy.bessely, 0), (sympy.besseli, 0), (sympy.besselk, 0),
    (sympy.jn, 0), (sympy.yn, 0), (sympy.legendre, 0), (sympy.chebyshevt, 0),
    (ive, 0), (spherical_in, 0), (polylog_slope, 0), (COMPANIONS[polylog_slope], 1),
    (sympy.chebyshevu, 0), (sympy.hermite, 0),
    (sympy.laguerre, 0), *((elliptic_moment, k) for k in range(3)), (sympy.gegenbauer, 0), (sympy.jacobi, 0),
    (sympy.assoc_laguerre, 0), (sympy.assoc_legendre, 0), (sympy.assoc_legendre, 1),
    *((made, k) for head, made in COMPANIONS.items() for k in range(len(PARAMETERS[head]))),
}  # fmt: skip
"""Orders, by which nothing is differentiated."""

FINITE_SUMS = {(sympy.assoc_laguerre, 1), (sympy.gegenbauer, 1), (sympy.jacobi, 1), (sympy.jacobi, 2)}
"""SymPy gives these derivatives as sums over a symbolic number of terms, which are not read."""

CASES = [(head, i) for head, domain in DOMAINS.items() for i in range(len(domain))]


def name(case: Any) -> str:
    return case.__name__ if hasattr(case, "__name__") else str(case)


def test_the_table_is_complete() -> None:
    assert set(NUMPY_NAMES) - NOT_DIFFERENTIATED == set(DOMAINS)


def points(domain: tuple[Any, ...], rng: random.Random) -> list[Any]:
    """Arguments: ints for orders, else rationals with small denominators."""
    found = []
    for part in domain:
        if all(isinstance(p, int) for p in part):
            found.append(rng.choice(part))
        else:
            found.append(mpmath.mpf(rng.randrange(int(part[0] * 97), int(part[1] * 97) + 1)) / 97)
    return found


@pytest.mark.parametrize(("head", "i"), CASES, ids=name)
def test_partial_derivative(head: Any, i: int) -> None:
    rng = random.Random(f"{head.__name__} {i}")
    inputs = [input_node(sympy.Symbol(f"x{k}", real=True)) for k in range(len(DOMAINS[head]))]
    if (head, i) in UNKNOWN | FINITE_SUMS:
        with pytest.raises(DerivativeError, match=getattr(head, "of", head).__name__):
            partial(apply(head, *inputs), i)
        return
    function = mpmath_function(head)
    for _ in range(5):
        values = points(DOMAINS[head], rng)
        args = [constant(v) if isinstance(v, int) else n for v, n in zip(values, inputs, strict=True)]
        slope = partial(apply(head, *args), i)
        with mpmath.workdps(50):
            expected = mpmath.diff(lambda t, v=values: function(*v[:i], t, *v[i + 1 :]), values[i])
            point = {n: v for v, n in zip(values, args, strict=True) if not isinstance(v, int)}
            found = value_of(slope, point)
            bound = mpmath.mpf(10) ** -18 * max(abs(expected), 1)
            assert abs(found - expected) <= bound, (values, found, expected)


def value_of(slope: Any, point: dict[Node, Any]) -> Any:
    """A derivative at a point; structural zeros are 0."""
    if not isinstance(slope, Node):
        return mpmath.mpf(0)
    return np.asarray(evaluate_all([slope], point, 50)[0])[()]
