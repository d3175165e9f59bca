"""Which nodes are finite, and which positive, at all real inputs: by structure alone.

log(max(x, 0)) is −∞ for all x < 0, so that −∞ < log(max(x, 0)) is no tautology. What is not known to be
finite here may be infinite on an open set.
"""

from __future__ import annotations

import numpy as np
import sympy

from symad.core.graph import Node, topological
from symad.functions import sigmoid, softplus
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.shaping import Broadcast, Reshape, Slice
from symad.ops.arrays.sources import ArrayConstant, Constant, Dimension, Input
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.verification.measuring.find_values import may_lack_values

POSITIVE = {sympy.exp, sympy.cosh, sympy.sech, sigmoid, softplus}
"""Functions that are positive at all real arguments."""

OF_POSITIVE = {sympy.log, sympy.loggamma, sympy.gamma}
"""Functions that are finite at all positive arguments."""

KEEPING = (Einsum, Broadcast, Reshape, Slice, Stack, Concatenate)
"""Ops whose elements are elements of their arguments, or sums of products of them."""


def is_finite(node: Node) -> bool:
    """Whether every element has a finite value at all real inputs."""
    finite: set[Node] = set()
    positive: set[Node] = set()
    for n in topological([node]):
        if not all(a in finite for a in n.args):
            continue
        strict = all(a in positive for a in n.args)
        if _holds_finite_numbers(n) and (not may_lack_values(n) or (strict and _takes_positive(n))):
            finite.add(n)
            if _is_positive(n, positive):
                positive.add(n)
    return node in finite


def _holds_finite_numbers(n: Node) -> bool:
    """True but for constants that are infinite or no numbers."""
    if isinstance(n.op, ArrayConstant):
        return bool(np.all(np.isfinite(n.op.array)))
    if isinstance(n.op, Constant):
        return sympy.sympify(n.op.value, strict=True).is_finite is not False and n.op.value == n.op.value
    return True


def _takes_positive(n: Node) -> bool:
    """Whether an op that may lack values has one at all positive arguments."""
    return isinstance(n.op, (Mul, Pow)) or (isinstance(n.op, Apply) and n.op.head in OF_POSITIVE)


def _is_positive(n: Node, positive: set[Node]) -> bool:
    """Whether a finite node is positive, from which of its arguments are."""
    op, strict = n.op, all(a in positive for a in n.args)
    if isinstance(op, Input):
        return bool(getattr(op.symbol, "is_positive", None))
    if isinstance(op, Constant):
        return not isinstance(op.value, bool) and bool(op.value > 0)
    if isinstance(op, ArrayConstant):
        return op.array.dtype.kind != "b" and bool(np.all(op.array > 0))
    if isinstance(op, Dimension):
        return bool(sympy.sympify(op.expression, strict=True).is_positive)
    if isinstance(op, Apply):
        wins = op.head is sympy.Max and any(a in positive for a in n.args)
        return wins or op.head in POSITIVE or (op.head in (sympy.Max, sympy.Min) and strict)
    if isinstance(op, Add):
        return strict and -1 not in op.signs
    if isinstance(op, Pow):
        return n.args[0] in positive
    return strict and isinstance(op, (Mul, *KEEPING))
