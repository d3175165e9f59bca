"""Decides which nodes are finite, and which are positive, at all real inputs, from their structure alone.

log(max(x, 0)) is −∞ for all x < 0, so that −∞ < log(max(x, 0)) is not a tautology. A node that is not known
to be finite may be infinite on an open set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import sympy

from symad.core.graph import Node, topological
from symad.functions import relu, sigmoid, softplus
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.verification.values.domains import may_lack_values

POSITIVE = {sympy.exp, sympy.cosh, sympy.sech, sigmoid, softplus}
"""Functions that are positive at all real arguments."""

NOT_NEGATIVE = {sympy.Abs, relu}
"""Functions that are nowhere negative."""

OF_POSITIVE = {sympy.log, sympy.loggamma, sympy.gamma}
"""Functions that are finite at all positive arguments."""

KEEPING = (Broadcast, Reshape, Slice, Stack, Concatenate)
"""Ops whose elements are elements of their arguments."""

ANY, AT_LEAST_0, ABOVE_0 = range(3)
"""The known facts about the sign of all elements."""


def is_finite(node: Node) -> bool:
    """True if every element has a finite value at all real inputs."""
    return sign_where_finite(node) is not None


def sign_where_finite(node: Node) -> int | None:
    """The sign of all elements as far as it is known; None if one may have no finite value at real inputs."""
    signs: dict[Node, int] = {}
    for n in topological([node]):
        if not all(a in signs for a in n.args) or _is_infinite(n):
            continue
        args = [signs[a] for a in n.args]
        if not may_lack_values(n) or _fits(n, args):
            signs[n] = _sign(n, args)
    return signs.get(node)


def _is_infinite(n: Node) -> bool:
    """True for a constant with an infinite element or one that is not a number."""
    if isinstance(n.op, ArrayConstant):
        return not np.all(np.isfinite(n.op.array))
    if not isinstance(n.op, Constant) or isinstance(n.op.value, bool):
        return False
    return not sympy.sympify(n.op.value, strict=True).is_finite


def _fits(n: Node, args: Sequence[int]) -> bool:
    """True if an op that is not defined everywhere has a value at all finite arguments of these signs."""
    if isinstance(n.op, Mul):
        return all(sign == ABOVE_0 for sign, power in zip(args, n.op.powers, strict=True) if power < 0)
    of_positive = isinstance(n.op, Pow) or (isinstance(n.op, Apply) and n.op.head in OF_POSITIVE)
    return of_positive and args[0] == ABOVE_0


def _sign(n: Node, args: Sequence[int]) -> int:
    """The sign of a finite node, from those of its arguments."""
    op = n.op
    if isinstance(op, Input):
        return _sign_of(op.symbol)
    if isinstance(op, Dimension):
        return _sign_of(sympy.sympify(op.expression, strict=True))
    if isinstance(op, Constant):
        return ANY if isinstance(op.value, bool) or op.value < 0 else ABOVE_0 if op.value > 0 else AT_LEAST_0
    if isinstance(op, ArrayConstant):
        least = op.array.min(initial=np.inf)
        return ABOVE_0 if least > 0 else AT_LEAST_0 if least == 0 else ANY
    if isinstance(op, Apply) and op.head in (sympy.Max, sympy.Min):
        return max(args) if op.head is sympy.Max else min(args)
    if isinstance(op, Apply):
        return ABOVE_0 if op.head in POSITIVE else AT_LEAST_0 if op.head in NOT_NEGATIVE else ANY
    if isinstance(op, Add):
        return ANY if -1 in op.signs or ANY in args else max(args)
    if isinstance(op, Pow):
        exponent = constant_value(n.args[1])
        return max(args[0], AT_LEAST_0) if type(exponent) is int and exponent % 2 == 0 else args[0]
    if isinstance(op, Select):
        return min(args[1:])
    if isinstance(op, Mul):
        return _sign_of_product(n.args, args)
    if isinstance(op, Einsum) and not any(0 in a.shape for a in n.args):  # a sum of nothing is 0
        return _sign_of_product(list(zip(n.args, op.inputs, strict=True)), args)
    return min(args) if isinstance(op, KEEPING) else ANY


def _sign_of_product(factors: Sequence[object], signs: Sequence[int]) -> int:
    """The sign of a product; a factor that occurs an even number of times is a square."""
    times = Counter(factors)
    squares = (factor for factor in factors if times[factor] % 2 == 0)
    known = dict.fromkeys(squares, AT_LEAST_0)
    return min(max(sign, known.get(f, ANY)) for f, sign in zip(factors, signs, strict=True))


def _sign_of(symbol: sympy.Expr) -> int:
    return ABOVE_0 if symbol.is_positive else AT_LEAST_0 if symbol.is_nonnegative else ANY
