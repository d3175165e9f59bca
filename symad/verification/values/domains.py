"""Where nodes have values: what must be positive there, and which have one wherever their arguments do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, Op, topological
from symad.evaluation.intervals import Interval
from symad.facts.functions import Facts, fact
from symad.ops.basic.arithmetic import Mul, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.eigen import eigenvalues
from symad.ops.linalg.solve_det import LogDeterminant, determinant
from symad.verification.terms.linear_terms import number
from symad.verification.values.ranges import ranges


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
        elif isinstance(node.op, Apply) and len(node.args) == 1:
            row = fact(node.op.head)
            inside = _inside(row, node.args[0])
            found += [] if inside is None else [Margin(node, inside, row.closed)]
        elif isinstance(node.op, Cholesky):
            found.append(Margin(node, eigenvalues(node.args[0])))
        elif isinstance(node.op, LogDeterminant):
            found.append(Margin(node, determinant(node.args[0])))
    return found


def _inside(row: Facts, a: Node) -> Node | None:
    """What is positive inside the domain of a function of ``a``; None if it has values everywhere."""
    if row.above is not None:
        return sub(a, constant(row.above)) if row.above else a
    if row.size_below is not None:
        return sub(constant(row.size_below), apply(sympy.Abs, a))
    return None if row.size_above is None else sub(apply(sympy.Abs, a), constant(row.size_above))


def may_lack_values(node: Node) -> bool:
    """Whether a node may have no value although its arguments have."""
    op: Op = node.op
    if isinstance(op, Apply):
        return not fact(op.head).total
    if isinstance(op, Mul):
        return -1 in op.powers
    if isinstance(op, Pow):
        exponent = constant_value(node.args[1])
        return not (isinstance(exponent, int) and exponent >= 0)
    return not (op.total or op.finite_slopes)


def divisors(node: Node) -> list[int]:
    """The arguments of a node that has no value where one of them is 0."""
    op = node.op
    if isinstance(op, Mul):
        return [k for k, power in enumerate(op.powers) if power == -1]
    if isinstance(op, Apply):
        return [len(node.args) - 1] if fact(op.head).pole_at_zero else []
    return [0] if isinstance(op, Pow) else []


def nowhere(outputs: Sequence[Node], box: Mapping[Node, Interval]) -> list[Node]:
    """The nodes below some outputs that have no value while the inputs lie in a box, by intervals."""
    wanted = [m for m in margins(topological(outputs)) if m.always]
    known = ranges([m.inside for m in wanted], box) if wanted else {}
    return [m.of for m in wanted if known and _is_outside(known[m.inside], m.closed)]


def _is_outside(values: Number, closed: bool) -> bool:
    every = np.asarray(values, dtype=object).ravel()
    return all(bool(v.high < 0 if closed else v.high <= 0) for v in every) and len(every) > 0
