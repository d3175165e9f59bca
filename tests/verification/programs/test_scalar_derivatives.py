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

from symad import functions
from symad.core.graph import Node
from symad.errors import DerivativeError
from symad.facts.functions import float_names
from symad.numbers.function_values import mpmath_function
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.sympy_functions.elliptic_moments import elliptic_moment
from symad.sympy_functions.probability import (
    ive,
)
from symad.sympy_functions.special_functions import (
    polylog_slope,
    spherical_in,
)
from symad.tracing.from_sympy.parameter_derivatives import COMPANIONS, PARAMETERS
from symad.tracing.from_sympy.partials import partial
from symad.verification.values.fifty_digits import evaluate_all
from tests.verification.programs.domains import DOMAINS, points

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
    assert set(float_names()) - NOT_DIFFERENTIATED == set(DOMAINS)


@pytest.mark.sample(32, without=("polylog",))
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
