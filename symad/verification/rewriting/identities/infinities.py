"""Infinities taken out of graphs: what a mask of −∞ before an exponential stands for.

A value that is ±∞ under a condition and finite elsewhere is followed through sums, moves, conditions and
maxima to the functions that have a limit there, as exp(−∞) = 0. What has no rule keeps its infinity,
and is undefined in every identity test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.core.graph import Node, Op, op_of, topological
from symad.core.nodes import Moved
from symad.evaluation.evaluate import run
from symad.evaluation.intervals import ZERO, Interval
from symad.evaluation.value_ranges import promised
from symad.facts.functions import fact
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme, extreme
from symad.ops.arrays.stacking import element, pack_scalars, stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import (
    ArrayConstant,
    Constant,
    Dimension,
    Eye,
    Iota,
    array_constant,
    constant,
    inputs_in,
)
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.selection import Compare, Select, compare, logic, select
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.signs import known_signs
from symad.verification.values.ranges import always_exist, ranges

MAX_MASKED_ELEMENTS = 1024
"""The maximum number of elements of a masked maximum that is rewritten."""


@dataclass(frozen=True)
class Masked:
    """``sign``·∞ where a condition holds, else finite."""

    sign: int
    where: Node
    finite: Node


def without_infinities(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """The outputs with infinities replaced by limits, as far as there are rules."""
    order = topological(outputs)
    if not any(_holds_infinity(n) for n in order):
        return tuple(outputs)
    made: dict[Node, Node] = {}
    masked: dict[Node, Masked] = {}
    for node in order:
        args = tuple([made[a] for a in node.args])
        parts = [masked.get(a) for a in node.args]
        found = _rule(node, args, parts)
        if isinstance(found, Masked) and _is_never(found.where):
            found = broadcast_to(found.finite, node.shape)
        if isinstance(found, Masked):
            masked[node] = replace(found, finite=broadcast_to(found.finite, node.shape))
            found = None
        elif found is not None:
            found = broadcast_to(found, node.shape)
        made[node] = found if found is not None else node.over(args)
    return tuple(made[o] for o in outputs)


def _holds_infinity(n: Node) -> bool:
    if isinstance(n.op, ArrayConstant):
        return n.op.array.dtype.kind == "f" and bool(np.isinf(n.op.array).any())
    return _infinite_sign(n) != 0 or _is_log_of_constant(n)


def _infinite_sign(n: Node) -> int:
    """±1 for the constants ±∞."""
    if not isinstance(n.op, Constant):
        return 0
    value = n.op.value
    if isinstance(value, float) and np.isinf(value):
        return 1 if value > 0 else -1
    return {sympy.oo: 1, -sympy.oo: -1}.get(value, 0) if isinstance(value, sympy.Basic) else 0


def _is_log_of_constant(n: Node) -> bool:
    return isinstance(n.op, Apply) and n.op.head is sympy.log and isinstance(n.args[0].op, ArrayConstant)


Parts = Sequence["Masked | None"]


def _rule(node: Node, args: Sequence[Node], parts: Parts) -> Masked | Node | None:
    """``node`` of rebuilt arguments, some of which may be masked; None where there is no rule."""
    op: Op = node.op
    if not node.args:
        return _source(node)
    if _is_log_of_constant(node):
        zero = _array(args[0]) == 0
        inside = array_constant(np.where(zero, 1.0, _array(args[0])))
        return Masked(-1, array_constant(zero), apply(sympy.log, inside))
    if not any(parts):
        return None
    if isinstance(op, Select):
        return _select(node, args, parts)
    if isinstance(op, Compare):
        return _compare(node, args, parts)
    if any(p is not None and p.sign != _sign_of(parts) for p in parts):
        return None
    return _of_one_sign(node, args, parts)


def _of_one_sign(node: Node, args: Sequence[Node], parts: Parts) -> Masked | Node | None:
    """What infinities of one sign make of an op that is no condition."""
    op: Op = node.op
    finite = tuple(a if p is None else p.finite for a, p in zip(args, parts, strict=True))
    if isinstance(op, Add):
        signs = {s * p.sign for s, p in zip(op.signs, parts, strict=True) if p is not None}
        return Masked(signs.pop(), _any_of(parts), Node.of(op, finite)) if len(signs) == 1 else None
    if isinstance(op, Mul):
        return _product(node, finite, parts)
    if isinstance(op, Apply):
        return _limit(node, finite, parts)
    if isinstance(op, Extreme):
        return _extreme(node, parts[0])
    if op.moves <= Moved.PADDED:
        return _moved(node, args, finite, parts)
    return None


def _limit(node: Node, finite: tuple[Node, ...], parts: Parts) -> Node | None:
    """A function of one argument, where that is infinite its limit."""
    (part, *more), op = parts, op_of(node, Apply)
    if part is None or more:
        return None
    limit = (fact(op.head).limits or (None, None))[part.sign > 0]
    known = isinstance(limit, int)
    return select(part.where, constant(limit), Node.of(op, finite)) if known else None


def _array(node: Node) -> Array:
    """The array of an array constant."""
    return op_of(node, ArrayConstant).array


def _source(node: Node) -> Masked | None:
    sign = _infinite_sign(node)
    if sign:
        return Masked(sign, constant(True), constant(0))
    if not _holds_infinity(node):
        return None
    array = _array(node)
    infinite = np.isinf(array)
    signs = set(np.sign(array[infinite]).tolist())
    if len(signs) > 1:
        return None
    return Masked(int(signs.pop()), array_constant(infinite), array_constant(np.where(infinite, 0.0, array)))


def _sign_of(parts: Parts) -> int:
    return next(p.sign for p in parts if p is not None)


def _any_of(parts: Parts) -> Node:
    wheres = [p.where for p in parts if p is not None]
    return logic("or", *wheres) if len(wheres) > 1 else wheres[0]


def _select(node: Node, args: Sequence[Node], parts: Parts) -> Masked | None:
    condition, *branches = args
    if parts[0] is not None or len({p.sign for p in parts if p is not None}) > 1:
        return None
    taken = [condition, logic("not", condition)]
    wheres = [logic("and", t, p.where) for t, p in zip(taken, parts[1:], strict=True) if p is not None]
    finite = [b if p is None else p.finite for b, p in zip(branches, parts[1:], strict=True)]
    where = logic("or", *wheres) if len(wheres) > 1 else wheres[0]
    return Masked(_sign_of(parts), where, select(condition, *finite))


def _compare(node: Node, args: Sequence[Node], parts: Parts) -> Node | None:
    """−∞ is below and different from what is finite."""
    a, b = parts
    masked = a or b
    if masked is None or (a is not None and b is not None):
        return None
    relation = op_of(node, Compare).relation
    below = (masked.sign < 0) == (a is not None)
    truth = {"<": below, "<=": below, "==": False, "!=": True}[relation]
    differs = _differs(args[1 if a is not None else 0], masked.sign)
    if differs is None:
        return None
    strict = relation in ("==", "!=") or (relation == "<") == below  # which equal infinities change
    if strict and differs is not ALWAYS:
        return _of_infinity(masked.where, differs if truth else logic("not", differs))
    finite = [x if p is None else p.finite for x, p in zip(args, parts, strict=True)]
    inside = compare(relation, *finite)
    outside = logic("not", masked.where)
    return logic("or", masked.where, inside) if truth else logic("and", outside, inside)


def _of_infinity(where: Node, truth: Node) -> Node | None:
    """The truth of a comparison with what is infinite everywhere; None where it is so somewhere alone."""
    if not (is_constant(where) and np.all(constant_truth(where))):
        return None
    return array_constant(constant_truth(truth)) if is_constant(truth) else truth


ALWAYS = constant(True)


def _differs(x: Node, sign: int) -> Node | None:
    """Where x is not sign·∞; None where that is not known. log u is −∞ where u is 0."""
    op = x.op
    if not any(map(_holds_infinity, topological([x]))) and always_exist([x]):
        return ALWAYS
    if _infinite_sign(x):
        return constant(_infinite_sign(x) != sign)
    if isinstance(op, Apply) and op.head is sympy.log and sign < 0:
        return _is_positive(x.args[0])
    if isinstance(op, Select):
        condition, *branches = x.args
        first, second = (_differs(branch, sign) for branch in branches)
        if first is None or second is None:
            return None
        return logic("or", logic("and", condition, first), logic("and", logic("not", condition), second))
    if op.moves <= Moved.SOME:
        inner, (arg,) = _differs(x.args[0], sign), x.args
        return inner if inner is None or inner is ALWAYS else Node.of(op, (broadcast_to(inner, arg.shape),))
    return None


def _is_positive(x: Node) -> Node:
    """Where x is positive: a sum of what is not negative is where one of its terms is."""
    op, bounds = x.op, _bounds(x)
    if bounds and all(ZERO.below(v) for v in bounds):
        return ALWAYS
    if bounds and all(v.low >= 0 for v in bounds):
        if isinstance(op, Select):
            condition, first, second = x.args[0], *map(_is_positive, x.args[1:])
            return logic("or", logic("and", condition, first), logic("and", logic("not", condition), second))
        if op.moves <= Moved.SOME:
            return Node.of(op, (broadcast_to(_is_positive(x.args[0]), x.args[0].shape),))
        if isinstance(op, Einsum) and len(x.args) == 1:
            one = select(broadcast_to(_is_positive(x.args[0]), x.args[0].shape), constant(1), constant(0))
            return compare("<", constant(0), Node.of(op, (one,)))
    return compare("<", constant(0), x)


def _bounds(x: Node) -> list[Interval]:
    """The intervals of all elements of a node that has values everywhere; none where that is not known."""
    inputs = inputs_in([x])
    found = np.asarray(ranges([x], promised(inputs)).get(x), dtype=object).ravel()
    each = [v for v in found if isinstance(v, Interval) and v.sure]
    return each if len(each) == len(found) and always_exist([x]) else []


def _product(node: Node, finite: tuple[Node, ...], parts: Parts) -> Masked | None:
    """One infinite factor times factors of known sign."""
    op = op_of(node, Mul)
    (position, *more) = [k for k, p in enumerate(parts) if p is not None]
    if more or op.powers[position] != 1:
        return None
    sign = _sign_of(parts)
    for k, factor in enumerate(finite):
        if k != position:
            sign *= known_signs([factor])[factor]
    return Masked(sign, _any_of(parts), Node.of(op, finite)) if sign else None


def _moved(node: Node, args: Sequence[Node], finite: tuple[Node, ...], parts: Parts) -> Masked:
    """The condition is moved as the elements are."""
    wheres: list[Node] = []
    for k, (arg, part) in enumerate(zip(node.args, parts, strict=True)):
        if part is not None:
            wheres.append(broadcast_to(part.where, arg.shape))
        elif isinstance(node.op, Gather):  # the indices
            wheres.append(args[k])
        else:
            wheres.append(broadcast_to(constant(False), arg.shape))
    inside = tuple(broadcast_to(f, a.shape) for f, a in zip(finite, node.args, strict=True))
    return Masked(_sign_of(parts), Node.of(node.op, tuple(wheres)), Node.of(node.op, inside))


def _extreme(node: Node, part: Masked | None) -> Node | None:
    """The maximum over what is not −∞, where the condition is known."""
    op: Any = node.op
    assert part is not None
    shape = tuple(int(d) for d in node.args[0].shape)
    if (op.kind == "max") == (part.sign > 0) or prod(shape) > MAX_MASKED_ELEMENTS:
        return None
    if not is_constant(part.where):
        return None
    where = np.broadcast_to(constant_truth(part.where), shape)
    finite = broadcast_to(part.finite, shape)
    kept = [k for k in range(len(shape)) if k not in op.axes]
    rows: list[Node] = []
    for outer in np.ndindex(*[shape[k] for k in kept]):
        inside = []
        for inner in np.ndindex(*[shape[k] for k in op.axes]):
            place = dict(zip(kept, outer, strict=True)) | dict(zip(op.axes, inner, strict=True))
            index = tuple(place[k] for k in range(len(shape)))
            if not where[index]:
                inside.append(element(finite, *index))
        if not inside:
            return None
        rows.append(extreme(op.kind, stack(inside)) if len(inside) > 1 else inside[0])
    return pack_scalars(rows, node.shape) if node.shape else rows[0]


# ---- conditions that depend on no input ---------------------------------------------------------


def _is_never(where: Node) -> bool:
    return is_constant(where) and not np.any(constant_truth(where))


def is_constant(y: Node) -> bool:
    """Whether nothing below depends on an input."""
    known = (Constant, ArrayConstant, Dimension, Eye, Iota)
    return all(n.args or isinstance(n.op, known) for n in topological([y]))


def constant_truth(y: Node) -> Array:
    """A condition between constants, decided with 50 digits."""
    anchor = Node.of(Constant(sympy.pi, "symbol"))
    with mpmath.workdps(50):
        (truth, _) = run([y, anchor], {anchor: +mpmath.pi})
    return np.asarray(truth).astype(bool)
