"""Where nodes have values: what must be positive there, and which have one wherever their arguments do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from sympy.codegen.cfunctions import log1p

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.random import RandomOp
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import ExponentialOp
from symad.ops.basic.arithmetic import Add, Mul, add, sub
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import Source, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select
from symad.ops.linalg.cholesky import Cholesky, Triangle
from symad.ops.linalg.eigen import eigenvalues
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, determinant
from symad.ops.sparse.csr import CompressedRows
from symad.verification.terms.discontinuities import KINKED
from symad.verification.terms.linear_terms import number
from symad.verification.values.intervals import ENTIRE, MONOTONE, Interval
from symad.verification.values.ranges import ranges

TOTAL = (ENTIRE | set(MONOTONE) | KINKED) - {sympy.log, log1p, sympy.Mod}
"""Functions that have a value at every real number."""

MARGINS: dict[type[sympy.Basic], tuple[bool, Callable[[Node], Node]]] = {
    sympy.log: (False, lambda a: a),
    log1p: (False, lambda a: add(a, constant(1))),
    sympy.asin: (True, lambda a: sub(constant(1), apply(sympy.Abs, a))),
    sympy.acos: (True, lambda a: sub(constant(1), apply(sympy.Abs, a))),
    sympy.atanh: (False, lambda a: sub(constant(1), apply(sympy.Abs, a))),
    sympy.acosh: (True, lambda a: sub(a, constant(1))),
    sympy.acoth: (False, lambda a: sub(apply(sympy.Abs, a), constant(1))),
    sympy.asec: (True, lambda a: sub(apply(sympy.Abs, a), constant(1))),
    sympy.acsc: (True, lambda a: sub(apply(sympy.Abs, a), constant(1))),
    sympy.loggamma: (False, lambda a: a),
}
"""For each function that is not defined everywhere, whether its boundary belongs to the domain, and what is
positive inside."""


@dataclass(frozen=True)
class Margin:
    """What must be positive for a node to have a value on an open set."""

    of: Node
    inside: Node
    closed: bool = False
    """Whether it has a value where that is 0, too."""
    always: bool = True
    """Whether this holds whatever other arguments are: x^y has values for x < 0 where y is an integer."""


def margins(nodes: Sequence[Node]) -> list[Margin]:
    """The conditions under which nodes have values, as far as they are known."""
    found = []
    for node in nodes:
        if isinstance(node.op, Pow):
            base, exponent = node.args[0], number(node.args[1])
            if exponent is None or exponent.denominator > 1:
                found.append(Margin(node, base, True, exponent is not None))
        elif isinstance(node.op, Apply) and node.op.head in MARGINS and len(node.args) == 1:
            closed, inside = MARGINS[node.op.head]
            found.append(Margin(node, inside(node.args[0]), closed))
        elif isinstance(node.op, Cholesky):
            found.append(Margin(node, eigenvalues(node.args[0])))
        elif isinstance(node.op, LogDeterminant):
            found.append(Margin(node, determinant(node.args[0])))
    return found


TOTAL_OPS = (
    Source, ShapingOp, Add, Einsum, Extreme, Product, Condition, Select, ExponentialOp, Triangle, Determinant,
    DeterminantSign, Adjugate, AdjugateTangent, RandomOp, CompressedRows, Positions, SortingPositions,
)  # fmt: skip
"""Ops that have values wherever their arguments have."""


def may_lack_values(node: Node) -> bool:
    """Whether a node may have no value although its arguments have."""
    op = node.op
    if isinstance(op, Apply):
        return op.head not in TOTAL
    if isinstance(op, Mul):
        return -1 in op.powers
    if isinstance(op, Pow):
        exponent = constant_value(node.args[1])
        return not (isinstance(exponent, int) and exponent >= 0)
    return not isinstance(op, TOTAL_OPS)


POLES = {
    sympy.log, sympy.loggamma, sympy.gamma, sympy.digamma, sympy.cot, sympy.csc, sympy.coth, sympy.csch,
    sympy.acoth, sympy.asec, sympy.acsc, sympy.Ci, sympy.Chi, sympy.expint, sympy.bessely, sympy.besselk,
}  # fmt: skip
"""Functions that have no value where the last argument is 0."""


def divisors(node: Node) -> list[int]:
    """The arguments of a node that has no value where one of them is 0."""
    op = node.op
    if isinstance(op, Mul):
        return [k for k, power in enumerate(op.powers) if power == -1]
    if isinstance(op, Apply):
        return [len(node.args) - 1] if op.head in POLES else []
    return [0] if isinstance(op, Pow) else []


def nowhere(outputs: Sequence[Node], box: Mapping[Node, Interval]) -> list[Node]:
    """The nodes below some outputs that have no value while the inputs lie in a box, by intervals."""
    wanted = [m for m in margins(topological(outputs)) if m.always]
    known = ranges([m.inside for m in wanted], box) if wanted else {}
    return [m.of for m in wanted if known and _is_outside(known[m.inside], m.closed)]


def _is_outside(values: Number, closed: bool) -> bool:
    every = np.asarray(values, dtype=object).ravel()
    return all(bool(v.high < 0 if closed else v.high <= 0) for v in every) and len(every) > 0
