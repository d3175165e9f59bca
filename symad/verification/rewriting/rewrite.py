"""Graphs rewritten in a small basis, by identities that hold at every real point.

What remains is: sums, products and quotients, integer powers, contractions, moved elements, linear
solves and determinants; exp, log, sin, cos, sign and roots of atoms; selection by 0/1 indicators;
and functions without relations. Fused ops become their definitions; conditions become numbers,
[a < b] = (1 + sign(b − a))/2. No identity is used that needs a sign nobody promised: log(ab) is split
only if at most one factor may be negative.

Ties and boundaries are not respected: two sides are compared on an open dense set.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import prod

import numpy as np
import sympy

import symad.verification.rewriting.identities.special  # noqa: F401  (registers rules)
from symad.core.graph import Node, Op, op_of, rebuild, topological
from symad.core.nodes import Moved
from symad.core.questions import Nodes, definition, question
from symad.ops.arrays.reduction import Extreme
from symad.ops.arrays.stacking import stack, take
from symad.ops.basic.arithmetic import (
    Add,
    Mul,
    add,
    div,
    mul,
    signed_product,
    signed_sum,
    sub,
)
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import Broadcast, broadcast_axes, broadcast_to, reshape
from symad.ops.basic.sources import Constant, Dimension, array_constant, constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import exponential, is_zero, step
from symad.verification.rewriting.identities.functions import alias, at_numbers, largest
from symad.verification.rewriting.identities.infinities import constant_truth, is_constant, without_infinities
from symad.verification.rewriting.identities.powers import general_power
from symad.verification.terms.linear_terms import collect_roots, holds_exponential

PASSES = 8
"""Units of coefficients are found by repetition; more refinements than this are not followed."""


def rewrite(outputs: Sequence[Node], basis: Basis) -> tuple[Node, ...]:
    """The outputs in the basis. Graphs that are to be compared are rewritten together."""
    expanded = without_infinities(expand_definitions(outputs))
    basis.integers = frozenset(integer_inputs(topological(expanded)))
    made: dict[Node, Node] = {}
    for _ in range(PASSES):
        made = {}
        basis.rewrite = partial(_rewritten, basis=basis, made=made)
        for node in expanded:
            _rewritten(node, basis, made)
        live = _live(expanded, made)
        if live != expanded:
            expanded = live
            basis.start_units()
        elif basis.settled():
            break
    return tuple(_rewritten(o, basis, made) for o in expanded)


def _live(outputs: Sequence[Node], made: dict[Node, Node]) -> tuple[Node, ...]:
    """The outputs without branches that are taken nowhere: their roots would count in the units of roots.

    A derivative of √u has one for u = 0, with √√u in its second derivative.
    """

    def kept(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Select):
            condition = made[node.args[0]]
            while condition.op.moves is Moved.IN_ORDER:
                condition = condition.args[0]
            holds = constant_value(condition)
            if holds in (0, 1):
                return broadcast_to(args[1 if holds == 1 else 2], node.shape)
        return node.over(args)

    return rebuild(outputs, {}, kept)


def _rewritten(output: Node, basis: Basis, made: dict[Node, Node]) -> Node:
    """A node in the basis; ``made`` has what was rewritten before, and what is in the basis already."""
    stack = [output]
    while stack:
        node = stack[-1]
        if node in made:
            stack.pop()
            continue
        missing = [a for a in node.args if a not in made]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        value = in_basis(node.op, node, tuple([made[a] for a in node.args]), basis)
        made[node] = value
        made.setdefault(value, value)
    return made[output]


def expand_definitions(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """Fused ops replaced by their definitions, again and again until none is left."""
    current, new = tuple(outputs), rebuild(outputs, {}, _defined)
    while new != current:
        current, new = new, rebuild(new, {}, _defined)
    return current


def _defined(node: Node, args: Nodes) -> Node:
    new = node.over(args)
    meaning = definition(new.op, new)
    return new if meaning is None else meaning


@question
def in_basis(op: Op, y: Node, args: Nodes, basis: Basis) -> Node:
    """``y = op(...)`` in the basis, from its arguments in the basis."""


@in_basis.dispatch
def kept_in_basis(op: Op, y: Node, args: Nodes, basis: Basis) -> Node:
    return y if args == y.args else Node.of(op, args)


@in_basis.dispatch
def add_in_basis(op: Add, y: Node, args: Nodes, basis: Basis) -> Node:
    """As it is, but for sums of numbers, which may be the order of a function."""
    if all(isinstance(a.op, Constant) for a in args):
        return signed_sum(zip(op.signs, args, strict=True))
    return y if args == y.args else Node.of(op, args)


@in_basis.dispatch
def mul_in_basis(op: Mul, y: Node, args: Nodes, basis: Basis) -> Node:
    if all(isinstance(a.op, Constant) for a in args):
        return signed_product(zip(op.powers, args, strict=True))
    share = _share(list(zip(op.powers, args, strict=True)), basis)
    if share is not None:
        return broadcast_to(share, y.shape)
    whole = collect_roots(list(zip(op.powers, args, strict=True)))
    if whole is not None:
        return broadcast_to(whole, y.shape)
    return y if args == y.args else Node.of(op, args)


def _share(factors: list[tuple[int, Node]], basis: Basis) -> Node | None:
    """e/(e + f) = (1 + e − f)/2 where e and f say which of two arguments attains their extreme, as 1 or 0."""
    for total in [a for p, a in factors if p == -1 and isinstance(a.op, Add) and a.op.signs == (1, 1)]:
        for one, other in (total.args, total.args[::-1]):
            alike = all(isinstance(n.op, Select) and _is_indicator(n) for n in (one, other))
            if alike and (1, one) in factors and (one.args[0], other.args[0]) in basis.opponents:
                rest = [f for f in factors if f not in ((-1, total), (1, one))]
                share = add(constant(1), sub(one.args[0], other.args[0]))
                return signed_product([*rest, (1, share), (-1, constant(2))])
    return None


def _is_indicator(node: Node) -> bool:
    """Whether a selection is 1 where its condition holds, and 0 elsewhere."""
    return [constant_value(branch) for branch in node.args[1:]] == [1, 0]


@in_basis.dispatch
def einsum_in_basis(op: Einsum, y: Node, args: Nodes, basis: Basis) -> Node:
    """What is constant along the summed axes is taken out: Σ exp(x_i − m) = Σ exp(x_i) / exp(m)."""
    if len(args) == 1 and isinstance(args[0].op, Mul) and _is_plain_sum(op):
        labels = op.inputs[0]
        split = [
            (p, a, _constant_part(a, labels, op, y))
            for p, a in zip(args[0].op.powers, args[0].args, strict=True)
        ]
        inside = [(p, a) for p, a, out in split if out is None]
        if inside and len(inside) < len(split):
            summed = Node.of(op, (broadcast_to(signed_product(inside), args[0].shape),))
            return broadcast_to(
                signed_product([(1, summed), *((p, out) for p, _, out in split if out is not None)]), y.shape
            )
    return y if args == y.args else Node.of(op, args)


def _is_plain_sum(op: Einsum) -> bool:
    """Whether a contraction of one array only sums over some axes."""
    (labels,) = op.inputs
    return len(set(labels)) == len(labels) and [k for k in labels if k in op.output] == list(op.output)


def _constant_part(factor: Node, labels: tuple[int, ...], op: Einsum, y: Node) -> Node | None:
    """An exponential that does not vary along the summed axes, in the shape of the sum; None for others."""
    if isinstance(factor.op, Broadcast):
        inner, axes = factor.args[0], [labels[k] for k in factor.op.axes]
        if all(label in op.output for label in axes) and holds_exponential(inner):
            return broadcast_axes(inner, y.shape, tuple(op.output.index(label) for label in axes))
    return factor if factor.shape == () and holds_exponential(factor) else None


@in_basis.dispatch
def constant_in_basis(op: Constant, y: Node, args: Nodes, basis: Basis) -> Node:
    if isinstance(op.value, bool):
        return constant(int(op.value))
    if op.value is sympy.E:
        return exponential(constant(1), basis)
    if op.value is sympy.GoldenRatio:
        return div(add(constant(1), power(constant(5), constant(Fraction(1, 2)))), constant(2))
    return y


@in_basis.dispatch
def dimension_in_basis(op: Dimension, y: Node, args: Nodes, basis: Basis) -> Node:
    return constant(int(op.expression))


@in_basis.dispatch
def broadcast_in_basis(op: Broadcast, y: Node, args: Nodes, basis: Basis) -> Node:
    """One broadcast in place of one of another, so that equal ones are one node."""
    (inner,) = args
    if isinstance(inner.op, Broadcast):
        return broadcast_axes(inner.args[0], y.shape, [op.axes[k] for k in inner.op.axes])
    return y if args == y.args else Node.of(op, args)


@in_basis.dispatch
def apply_in_basis(op: Apply, y: Node, args: Nodes, basis: Basis) -> Node:
    known = at_numbers(y)
    return alias(y, args, basis) if known is None else known


@in_basis.dispatch
def pow_in_basis(op: Pow, y: Node, args: Nodes, basis: Basis) -> Node:
    base, exponent = args
    return broadcast_to(general_power(base, exponent, basis), y.shape)


# ---- conditions ---------------------------------------------------------------------------------


@in_basis.dispatch
def compare_in_basis(op: Compare, y: Node, args: Nodes, basis: Basis) -> Node:
    """[a < b] by the sign of b − a; where y = max(..., a, ...), [a == y] says that a wins, [a < y] not."""
    if is_constant(y):
        return array_constant(constant_truth(y).astype(np.int64))
    won, above = _winner(y.args, basis) or (None, False)
    if won is None and op.relation in ("<", "<="):
        return broadcast_to(step(sub(args[1], args[0]), int(op.relation == "<="), basis), y.shape)
    if won is None:
        won = is_zero(sub(*args), basis)
    won = broadcast_to(won, y.shape)
    lost = sub(constant(1), won)
    if op.relation in ("<", "<="):  # a ≤ y always, and y ≤ a where a wins
        never, always = (broadcast_to(constant(k), y.shape) for k in (0, 1))
        return (lost if above else never) if op.relation == "<" else (always if above else won)
    return won if op.relation == "==" else lost


@in_basis.dispatch
def logic_in_basis(op: Logic, y: Node, args: Nodes, basis: Basis) -> Node:
    """And is the product, or is 1 − Π(1 − c), not is 1 − c, xor is a + b − 2ab."""
    one = constant(1)
    if op.kind == "and":
        result = mul(*args)
    elif op.kind == "or":
        result = sub(one, mul(*[sub(one, c) for c in args]))
    elif op.kind == "not":
        result = sub(one, args[0])
    else:
        result = args[0]
        for c in args[1:]:
            result = sub(add(result, c), mul(constant(2), result, c))
    return broadcast_to(result, y.shape)


@in_basis.dispatch
def select_in_basis(op: Select, y: Node, args: Nodes, basis: Basis) -> Node:
    condition, *branches = args
    if constant_value(condition) in (0, 1):
        return broadcast_to(branches[0 if constant_value(condition) == 1 else 1], y.shape)
    if condition.shape and is_constant(condition):  # as the mask of a fixed pattern
        truth = constant_truth(condition)
        if truth.all() or not truth.any():
            return broadcast_to(branches[0 if truth.all() else 1], y.shape)
        condition = array_constant(truth.astype(np.int64))
    return Node.of(op, (condition, *branches))


# ---- extremes -----------------------------------------------------------------------------------


@in_basis.dispatch
def extreme_in_basis(op: Extreme, y: Node, args: Nodes, basis: Basis) -> Node:
    """The elements over the axes, compared one after the other."""
    (a,) = args
    rank = len(a.shape)
    kept = [k for k in range(rank) if k not in op.axes]
    moved = contract([range(rank)], [*op.axes, *kept], a)
    count = prod([a.shape[k] for k in op.axes])
    flat = reshape(moved, (count, *(a.shape[k] for k in kept)))
    parts = [take(flat, 0, k) for k in range(count)]
    turned = parts if op.kind == "max" else [sub(constant(0), p) for p in parts]
    best, indicators = largest(turned, basis)
    whole = stack([broadcast_to(i, parts[0].shape) for i in indicators])
    split = reshape(whole, (*(a.shape[k] for k in op.axes), *(a.shape[k] for k in kept)))
    order = [*op.axes, *kept]
    basis.winners[y] = contract([order], list(range(rank)), split)
    return best if op.kind == "max" else sub(constant(0), best)


def _winner(pair: Nodes, basis: Basis) -> tuple[Node, bool] | None:
    """The indicator of ``a == y`` where y is an extreme over a, and whether the second one is the larger."""
    for turned, (a, y) in enumerate((pair, pair[::-1])):
        source = y
        while source.op.moves is Moved.IN_ORDER and source not in basis.winners:
            source = source.args[0]
        found = basis.winners.get(source)
        if isinstance(found, dict):
            for arg, indicator in found.items():
                if arg is a:
                    return indicator, (op_of(source, Apply).head is sympy.Max) != turned
        elif found is not None and source.args[0] is a:
            return found, (op_of(source, Extreme).kind == "max") != turned
    return None
