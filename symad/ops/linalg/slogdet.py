"""The sign of a determinant, and the logarithm of its absolute value, for any invertible matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.dims import Shape
from symad.core.graph import ZERO, Node, shape
from symad.core.questions import (
    Array,
    Count,
    Nodes,
    Tangent,
    Tangents,
    Values,
    definition,
    evaluate,
    flops,
    jvp,
)
from symad.numbers.number_domains import apply as apply_values
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import constant, iota
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import equal, select
from symad.ops.linalg.solve_det import Determinant, MatrixOp, determinant, log_determinant


@dataclass(frozen=True, eq=False)
class DeterminantSign(MatrixOp):
    """sign(det A) of A (..., n, n), also where det A under- or overflows; a step function."""

    total = True


def determinant_sign(a: Node) -> Node:
    """The sign of the determinant: −1, 0 or 1."""
    return Node.of(DeterminantSign(), (a,))


def log_absolute_determinant(a: Node) -> Node:
    """log |det A|: the log determinant of A with its first row times the sign of det A."""
    rank, n = len(a.shape), a.shape[-1]
    sign = broadcast_axes(determinant_sign(a), a.shape, tuple(range(rank - 2)))
    first = broadcast_axes(equal(iota(n), constant(0)), a.shape, (rank - 2,))
    return log_determinant(mul(a, select(first, sign, constant(1))))


@shape(DeterminantSign)
def determinant_sign_shape(op: DeterminantSign, args: Nodes) -> Shape:
    return determinant(args[0]).shape


@jvp.dispatch
def determinant_sign_jvp(op: DeterminantSign, y: Node, tangents: Tangents) -> Tangent:
    return ZERO


@flops.dispatch
def determinant_sign_flops(op: DeterminantSign, y: Node) -> Count:
    return flops(Determinant(), determinant(y.args[0]))


@definition.dispatch
def determinant_sign_definition(op: DeterminantSign, y: Node) -> Node:
    return apply(sympy.sign, determinant(y.args[0]))


@evaluate.dispatch
def determinant_sign_evaluate(op: DeterminantSign, values: Values) -> Array:
    if values[0].dtype == object:
        return apply_values(sympy.sign, (evaluate(Determinant(), values),))
    return np.linalg.slogdet(values[0])[0]
