"""Arrays of numbers, and logarithms of |det A|, in terms for which the checker has rules at index symbols.

A claim about functions of matrices is proved for whole matrices. There an array of numbers that is c on the
diagonal and d elsewhere is read as d + (c − d) I; and log |det A|, which is evaluated as the log determinant
of A with its first row times the sign of det A, as log(det(A)²)/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import sympy

from symad.core.graph import Node, rebuild, topological
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import ArrayConstant, constant, eye
from symad.ops.elementwise.apply import apply
from symad.ops.linalg.slogdet import DeterminantSign, log_absolute_determinant
from symad.ops.linalg.solve_det import LogDeterminant, determinant

NUMBERS = "arrays of numbers that are c on the diagonal and d elsewhere are d + (c − d) I"
SIGNED = "log |det A| is log(det(A)²)/2"


def read(nodes: Sequence[Node]) -> tuple[list[Node], set[str]]:
    """The nodes in these terms, and what that assumes."""
    assumed = set[str]()

    def reading(node: Node, args: tuple[Node, ...]) -> Node:
        new = node if args == node.args else Node.of(node.op, args)
        made, why = _array(new), NUMBERS
        if made is None:
            made, why = _signed(new), SIGNED
        if made is None:
            return new
        assumed.add(why)
        return made

    return list(rebuild(nodes, {}, reading)), assumed


def _array(node: Node) -> Node | None:
    """A square array of numbers by the identity matrix; None for any other node."""
    if not isinstance(node.op, ArrayConstant) or len(node.shape) != 2 or len({*node.shape}) > 1:
        return None
    array, n = node.op.array, node.op.shape[0]
    if n < 2 or array.dtype.kind not in "if" or not np.isfinite(array).all():
        return None
    on, off = array[0, 0], array[0, 1]
    if not np.array_equal(array, np.where(np.eye(n), on, off)):
        return None
    ends = [Fraction(x.item()) for x in (off, on)]
    scaled = mul(constant(ends[1] - ends[0]), eye(n))
    return add(broadcast_to(constant(ends[0]), node.shape), scaled) if ends[0] else scaled


def _signed(node: Node) -> Node | None:
    """log(det(A)²)/2 for the log determinant of A with its first row times the sign of det A."""
    if not isinstance(node.op, LogDeterminant):
        return None
    for sign in topological(node.args):
        if isinstance(sign.op, DeterminantSign) and log_absolute_determinant(sign.args[0]) is node:
            det = determinant(sign.args[0])
            return mul(constant(Fraction(1, 2)), apply(sympy.log, mul(det, det)))
    return None
