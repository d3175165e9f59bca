"""Proofs by exact normal form, within a budget of time, terms and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.evaluation.number_domains import Undefined
from symad.ops.arrays.sources import Constant, Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky
from symad.transforms.values import unchecked
from symad.verification.budget import Meter, OutOfBudget
from symad.verification.proof.quotient_domain import algebra_of
from symad.verification.proof.quotients import Quotient
from symad.verification.proof.rational_functions import MOST_GENERATORS, Algebra
from symad.verification.random_fields.prime_fields import Array
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.by_elements import by_elements
from symad.verification.rewriting.positive_domains import has_loose_domains
from symad.verification.rewriting.rewrite import rewrite

TOO_MANY = "inputs and functions are more than an exact normal form can take"


def prove(left: Node, right: Node, meter: Meter) -> tuple[Array, str]:
    """Which elements of two nodes of one shape are equal by exact normal form, and why not more are.

    Dimensions must be numbers. An element not proved equal may still be equal. Elements with domains of
    their own are proved one by one.
    """
    equal, reason, loose = _together(left, right, meter)
    sides = by_elements((left, right)) if loose and left.shape and not equal.all() else None
    if sides is None:
        return equal, reason
    flat, reason = equal.ravel().copy(), ""
    for k in np.flatnonzero(~flat):
        found, why, _ = _together(sides[0][k], sides[1][k], meter)
        flat[k], reason = bool(found), reason or why
    return flat.reshape(left.shape), reason


def _together(left: Node, right: Node, meter: Meter) -> tuple[Array, str, bool]:
    """What is proved in one algebra, why not more, and whether the elements' domains differ."""
    a, b = rewrite([left, right], Basis())
    if a is b:
        return np.ones(left.shape, dtype=bool), "", False
    nothing, loose = np.zeros(left.shape, dtype=bool), has_loose_domains((a, b))
    needed = generators_needed([a, b])
    if needed > MOST_GENERATORS:
        return nothing, f"{needed} {TOO_MANY} ({MOST_GENERATORS})", loose
    algebra = algebra_of(needed, meter, meter.budget.terms)
    algebra.loose = loose
    try:
        values = _values([a, b], algebra)
    except OutOfBudget as problem:
        return nothing, f"the exact normal form is too large: {problem}", loose
    except (SymadError, ArithmeticError, TypeError, ValueError) as problem:
        return nothing, f"no exact normal form: {problem}", loose
    return *_equal_elements(*values), loose


def _values(outputs: Sequence[Node], algebra: Algebra) -> list[Array]:
    """The outputs as exact quotients."""
    point: dict[Node, Number] = {_anchor(): algebra.rational(1)}
    for node in topological(outputs):
        if isinstance(node.op, Input):
            numbers = np.empty(node.shape, dtype=object)
            for index in np.ndindex(node.shape):
                numbers[index] = algebra.generator()
            point[node] = numbers if node.shape else numbers[()]
    return [np.asarray(v, dtype=object) for v in unchecked(outputs, point)]


def _anchor() -> Node:
    """A node with an exact number, so that constants become exact numbers too."""
    return Node.of(Constant(sympy.Catalan, "symbol"))


def _equal_elements(left: Array, right: Array) -> tuple[Array, str]:
    equal = np.zeros(left.shape, dtype=bool)
    reason = ""
    for index in np.ndindex(left.shape):
        try:
            equal[index] = _is_equal(left[index], right[index])
        except OutOfBudget as problem:
            reason = f"the exact normal form is too large: {problem}"
    return equal, reason


def _is_equal(a: Any, b: Any) -> bool:
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return False
    if isinstance(b, Quotient) and not isinstance(a, Quotient):
        a, b = b, a
    return bool(a == b)


def generators_needed(outputs: Sequence[Node]) -> int:
    """An upper bound on the number of independent inputs and functions, elementwise."""
    total = 0
    for node in topological(outputs):
        count = int(np.prod(node.shape)) if node.shape else 1
        if isinstance(node.op, Input) or _is_root(node):
            total += count
        elif isinstance(node.op, Apply):
            total += count * (4 if node.op.head in (sympy.cos, sympy.sin, sympy.exp) else 1)
        elif isinstance(node.op, Cholesky):
            total += count
        elif isinstance(node.op, Constant) and isinstance(node.op.value, sympy.NumberSymbol):
            total += 1
    return total


def _is_root(node: Node) -> bool:
    return isinstance(node.op, Pow) and not isinstance(constant_value(node.args[1]), int)
