"""NumPy's tests and roundings on proxies: finite, close, nearest integers, piecewise functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Node
from symad.errors import TraceError
from symad.ops.basic.arithmetic import add, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, logic, select
from symad.tracing.from_numpy.registry import implements
from symad.tracing.proxies.array_protocol import UFUNCS
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import condition, number

INFINITE = constant(float("inf"))


def isinf(a: Node) -> Node:
    """|a| = ∞."""
    return compare("==", apply(sympy.Abs, a), INFINITE)


def isfinite(a: Node) -> Node:
    """|a| < ∞; NaN is not."""
    return compare("<", apply(sympy.Abs, a), INFINITE)


def rint(a: Node) -> Node:
    """The nearest integer, the even one of two: a step function."""
    below = apply(sympy.floor, a)
    above = add(below, constant(1))
    rest = sub(a, below)  # exact
    half = constant(0.5)
    even = compare("==", apply(sympy.Mod, below, constant(2)), constant(0))
    down = logic("or", compare("<", rest, half), logic("and", compare("==", rest, half), even))
    whole = select(down, below, above)
    return select(isfinite(a), whole, a)


UFUNCS.update({np.isinf: isinf, np.isfinite: isfinite, np.rint: rint})


@implements(np.round, np.around)
def round_(a: ArrayLike, decimals: int = 0) -> Proxy:
    """The nearest multiple of 10^(−decimals): a step function."""
    value: Any = Proxy(number(a))
    if not decimals:
        return np.rint(value)
    scale = 10.0 ** abs(int(decimals))
    return np.rint(value * scale) / scale if decimals > 0 else np.rint(value / scale) * scale


@implements(np.isposinf)
def isposinf(x: ArrayLike) -> Array:
    """True where x = ∞."""
    return Proxy(number(x)) == np.inf


@implements(np.isneginf)
def isneginf(x: ArrayLike) -> Array:
    """True where x = −∞."""
    return Proxy(number(x)) == -np.inf


@implements(np.isclose)
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> Array:
    """True where |a − b| ≤ atol + rtol |b|, or both are equal and infinite, or both NaN if ``equal_nan``."""
    x, y = (Proxy(number(v)) for v in (a, b))
    near = np.logical_and(np.abs(np.subtract(x, y)) <= atol + rtol * abs(y), np.isfinite(y))
    found = near | (x == y)
    return found | (np.isnan(x) & np.isnan(y)) if equal_nan else found


@implements(np.allclose)
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> np.bool_:
    """True if all elements are close."""
    return np.all(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> bool | np.bool_:
    """True if shapes and elements are equal."""
    x, y = (Proxy(number(v)) for v in (a1, a2))
    if x.shape != y.shape:
        return False
    same = x == y
    return np.all(same | (np.isnan(x) & np.isnan(y)) if equal_nan else same)


@implements(np.piecewise)
def piecewise(
    x: ArrayLike,
    condlist: Any,
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Functions of x, or numbers, under conditions; the last condition that holds counts, 0 if none holds.

    Each function is called with the whole of x and has to act elementwise. If there is one function
    more than conditions, it is for the remaining elements.

    Raises:
        TraceError: the numbers of conditions and functions do not match.
    """
    value: Any = Proxy(number(x))
    several = isinstance(condlist, (list, tuple))
    tests = [Proxy(condition(c)) for c in (condlist if several else [condlist])]
    if len(funclist) not in (len(tests), len(tests) + 1):
        raise TraceError(f"np.piecewise was given {len(tests)} conditions and {len(funclist)} functions")
    made = [f(value, *args, **kw) if callable(f) else f for f in funclist]
    found: Any = made[-1] if len(funclist) > len(tests) else 0
    for test, piece in zip(tests, made, strict=False):
        found = np.where(test, piece, found)
    return np.broadcast_to(found, value.shape)
