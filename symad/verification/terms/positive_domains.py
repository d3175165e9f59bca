"""What must be positive wherever a claim says something: the region on which a relation may be used.

An element is a claim of its own, about the points at which both of its sides are defined. A root or a
logarithm that each of these elements takes, in whole and not in a branch only, has a positive argument
there. Nothing follows from a root in another element, in a branch that may not be taken, or under a
condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import sympy

from symad.core.graph import Node, topological
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select
from symad.verification.terms.discontinuities import LooseSign, WeakSign
from symad.verification.terms.signs import known_signs

STEPS = {sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, WeakSign, LooseSign}
"""Functions that conditions become: what stands below them only decides a branch."""

Pairs = Sequence[tuple[Node, Node]]


def taken(output: Node) -> frozenset[Node]:
    """The nodes of which every element is needed by every element of ``output``."""
    some: set[Node] = {output}
    whole: set[Node] = {output} if _size(output) == 1 else set()
    for node in reversed(topological([output])):
        if node not in some or 0 in node.shape:
            continue
        if node in whole and isinstance(node.op, (Stack, Concatenate)):
            some.update(node.args)
            whole.update(node.args)
        for arg in _needed(node):
            some.add(arg)
            if _size(arg) == 1 or _is_reduced(node, arg) or (node in whole and _covers(node)):
                whole.add(arg)
    return frozenset(whole)


def _size(node: Node) -> int:
    return prod(int(d) for d in node.shape)


def _needed(node: Node) -> tuple[Node, ...]:
    """The arguments of which each element of a node needs at least one element."""
    op = node.op
    if isinstance(op, Select):
        return node.args[1:] if node.args[1] is node.args[2] else ()
    if isinstance(op, Condition) or (isinstance(op, Apply) and op.head in STEPS):
        return ()
    if isinstance(op, Gather):
        return node.args[:1]
    if isinstance(op, (ElementwiseOp, Einsum, Extreme, Product, Broadcast, Reshape, Slice)):
        return node.args
    return ()


def _is_reduced(node: Node, arg: Node) -> bool:
    """Whether each element of a node needs all elements of an argument."""
    op = node.op
    if isinstance(op, Einsum):
        at = [labels for labels, a in zip(op.inputs, node.args, strict=True) if a is arg]
        return any(not set(labels) & set(op.output) and len(set(labels)) == len(labels) for labels in at)
    return isinstance(op, Extreme) and len(op.axes) == len(arg.shape)


def _covers(node: Node) -> bool:
    """Whether all elements together need all elements of the arguments."""
    op = node.op
    if isinstance(op, Einsum):
        return all(len(set(labels)) == len(labels) for labels in op.inputs)
    return not isinstance(op, (Slice, Gather))


def positive_arguments(pairs: Pairs) -> frozenset[Node]:
    """The nodes that are positive wherever an element of one of the pairs is defined on both sides."""
    found: frozenset[Node] | None = None
    for left, right in pairs:
        here = frozenset(n.args[0] for n in taken(left) | taken(right) if is_partial(n))
        found = here if found is None else found & here
    return found or frozenset()


def is_partial(node: Node) -> bool:
    """Whether a node is a root or a logarithm, defined for positive arguments only."""
    if isinstance(node.op, Pow):
        value = constant_value(node.args[1])
        return isinstance(value, (float, Fraction)) and Fraction(value).denominator > 1
    return isinstance(node.op, Apply) and node.op.head is sympy.log


def has_loose_domains(pair: tuple[Node, Node]) -> bool:
    """Whether some element of a pair may be defined where a root or logarithm of the pair is not."""
    positive = positive_arguments([pair])
    loose = [n.args[0] for n in topological(pair) if is_partial(n) and n.args[0] not in positive]
    signs = known_signs(loose)
    return any(signs[a] != 1 for a in loose)
