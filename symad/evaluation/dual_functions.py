"""Functions on Dual numbers: slopes of SymPy heads, and NumPy's and SciPy's ufuncs by name."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Graph
from symad.errors import DerivativeError
from symad.facts.functions import fact, float_names
from symad.numbers import dual_domain  # noqa: F401  (registers the domain)
from symad.numbers.dual import ARITHMETIC, SLOPE, UFUNCS, Dual, Rule, dual, half, scaled
from symad.numbers.number_domains import (
    FLOATS,
    apply,
    compare,
    divide,
    domain_of,
    raise_to,
    select,
)
from symad.numbers.values import outputs_at
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.apply import SLOPES
from symad.ops.elementwise.apply import apply as apply_node
from symad.tracing.from_sympy.partials import sympy_partial
from symad.transforms.tangents import dense

# ---- slopes --------------------------------------------------------------------------------------


def slope(head: sympy.FunctionClass, i: int, primals: tuple[Number, ...], result: Number) -> Number:
    """∂head/∂x_i at the primals; ``result`` is the value of the function there.

    Raises:
        DerivativeError: neither SymPy nor the user defines the derivative.
    """
    if head in KINKS:
        return KINKS[head](i, primals, result)
    if fact(head).flat:
        return 0
    return outputs_at(_slope_graph(head, i, len(primals)), *primals)[0]


SLOPE.append(slope)


@cache
def _slope_graph(head: sympy.FunctionClass, i: int, count: int) -> Graph:
    """SymPy's derivative; for a function unknown to SymPy, the derivative that its user registered."""
    try:
        return Graph(*sympy_partial(head, i, (None,) * count))
    except DerivativeError:
        if head not in SLOPES:
            raise
    inputs = tuple(input_node(sympy.Dummy(f"x{k}", real=True)) for k in range(count))
    registered = SLOPES[head](apply_node(head, *inputs), inputs, i)
    return Graph(inputs, (dense(registered, inputs[i]),))


def _extreme_slope(i: int, primals: tuple[Number, ...], result: Number) -> Number:
    """1/k if argument i is one of k that attain the extreme, else 0."""
    attained: Any = compare("==", primals[i], result)
    if isinstance(attained, (bool, np.bool_)) and not attained:
        return 0  # the structural zero: slopes that are infinite do no harm
    hits = [select(compare("==", p, result), 1, 0) for p in primals]
    return select(attained, divide(1, reduce(operator.add, hits)), 0)


def _mod_slope(i: int, primals: tuple[float, ...], result: float) -> float:
    """Mod(a, b) = a − b floor(a/b)."""
    return -apply(sympy.floor, (divide(*primals),)) if i else 1


def _frac_slope(i: int, primals: tuple[Number, ...], result: Number) -> Number:
    return 1


def _heaviside_slope(i: int, primals: tuple[Number, ...], result: Number) -> Number:
    """0, and by the value at 0, which is the second argument, 1 where the first is 0."""
    return select(compare("==", primals[0], 0), 1, 0) if i else 0


def _abs_slope(i: int, primals: tuple[Number, ...], result: Number) -> Number:
    return apply(sympy.sign, primals)


KINKS: dict[sympy.FunctionClass, Callable[[int, tuple[Any, ...], Any], Any]] = {
    sympy.Max: _extreme_slope,
    sympy.Min: _extreme_slope,
    sympy.Mod: _mod_slope,
    sympy.frac: _frac_slope,
    sympy.Heaviside: _heaviside_slope,
    sympy.Abs: _abs_slope,
}
"""Functions with kinks or jumps, at which SymPy's derivative is wrong or missing."""


# ---- ufuncs --------------------------------------------------------------------------------------


def _head(head: type[sympy.Basic]) -> Rule:
    return lambda *values: apply(head, values)


def log1p(x: Any) -> Number:
    """log(1 + x), accurate for small x."""
    if isinstance(x, Dual):
        return dual(log1p(x.value), scaled(divide(1, 1 + x.value), x.tangent))
    return np.log1p(x) if domain_of((x,)) is FLOATS else apply(sympy.log, (1 + x,))


def expm1(x: Any) -> Number:
    """exp(x) − 1, accurate for small x."""
    if isinstance(x, Dual):
        return dual(expm1(x.value), scaled(apply(sympy.exp, (x.value,)), x.tangent))
    return np.expm1(x) if domain_of((x,)) is FLOATS else apply(sympy.exp, (x,)) - 1


def logaddexp(a: Number, b: Number) -> Number:
    """log(eᵃ + eᵇ), without overflow."""
    return apply(sympy.Max, (a, b)) + log1p(apply(sympy.exp, (-abs(a - b),)))


UFUNCS.update(
    {
        name.rpartition(".")[2]: _head(head)
        for head, name in float_names().items()
        if name.startswith(("numpy.", "scipy."))
    }
    | {
        "absolute": abs,
        "fabs": abs,
        "positive": operator.pos,
        "negative": operator.neg,
        "square": lambda x: x * x,
        "reciprocal": lambda x: divide(1, x),
        "sqrt": lambda x: raise_to(x, half(x)),
        "cbrt": lambda x: apply(sympy.sign, (x,)) * abs(x) ** (1 / 3),
        "exp2": lambda x: raise_to(2, x),
        "log2": lambda x: apply(sympy.log, (x,)) / math.log(2),
        "log10": lambda x: apply(sympy.log, (x,)) / math.log(10),
        "log1p": log1p,
        "expm1": expm1,
        "hypot": lambda x, y: raise_to(x * x + y * y, half(x)),
        "logaddexp": logaddexp,
        "degrees": lambda x: x * (180 / math.pi),
        "radians": lambda x: x * (math.pi / 180),
        "maximum": _head(sympy.Max),
        "minimum": _head(sympy.Min),
        "psi": _head(sympy.digamma),
        "gammaln": _head(sympy.loggamma),
    }
)
"""The rules of Dual numbers for NumPy's and SciPy's functions of these names."""

assert not UFUNCS.keys() & ARITHMETIC.keys()
