"""On how many signs an element depends: where they are few, each lane may draw a region of its own.

A value is a polynomial in independent signs, of degree 1 in each. One that is not 0 for all signs is not 0
for a random choice of them with probability 2^−d at least, where d is its total degree: a sum of many
selections has the degree of one of them. Signs have names, so that the same sign, moved in the same way,
counts once.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Node, topological
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, ShapingOp
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.verification.terms.discontinuities import SIGNS

MANY = 1 << 10
"""A degree that stands for every larger one."""

Sign = tuple[tuple[int, ...], object]
"""A sign by its name, and the axes of an array along which its own axes lie."""

Signs = tuple[int, "frozenset[Sign] | None"]
"""The degree of one element, and the signs that it depends on; None if these are not few."""

NONE: Signs = (0, frozenset())


def sign_degree(outputs: Sequence[Node]) -> int:
    """The largest degree of an element of some nodes in the basis, in the signs that it depends on."""
    found: dict[Node, Signs] = {}
    for node in topological(outputs):
        degree, signs = _signs(node, [found[a] for a in node.args])
        found[node] = min(degree, MANY if signs is None else len(signs)), signs
    return max((found[o][0] for o in outputs), default=0)


def _signs(node: Node, parts: Sequence[Signs]) -> Signs:
    """The degree and the signs of a node, from those of its arguments."""
    degrees, below = [d for d, _ in parts], [s for _, s in parts]
    if isinstance(node.op, Apply) and node.op.head in SIGNS:  # one more for each choice of those below
        signs = None if below[0] is None else below[0] | {(_all_axes(node), node)}
        return (MANY, None) if signs is None else (len(signs), signs)
    if not any(degrees):
        return NONE
    if isinstance(node.op, (Compare, Logic, Gather, ScatterAdd)):
        return MANY, None
    if isinstance(node.op, ElementwiseOp):
        known = [s for s in below if s is not None]
        together = frozenset[Sign]().union(*known) if len(known) == len(below) else None
        return _degree(node, degrees, together), together
    if isinstance(node.op, Einsum):
        return sum(degrees), _contracted(node.op, below)
    if isinstance(node.op, ShapingOp):
        return max(degrees), _renamed(node, below)
    return MANY, None


def _degree(node: Node, degrees: Sequence[int], together: frozenset[Sign] | None) -> int:
    """The degree of an elementwise op: of a sum that of one term, of a function the number of its signs."""
    if isinstance(node.op, Add):
        return max(degrees)
    if isinstance(node.op, Select):
        return degrees[0] + max(degrees[1:])
    if isinstance(node.op, Mul):
        under = [d for p, d in zip(node.op.powers, degrees, strict=True) if p == -1]
        if not any(under):
            return sum(degrees)
    return MANY if together is None else len(together)


def _renamed(node: Node, below: Sequence[frozenset[Sign] | None]) -> frozenset[Sign] | None:
    """The signs by their places after a move: each element comes from one place of one argument."""
    if None in below:
        return None
    named = [(k, sign) for k, signs in enumerate(below) for sign in signs or ()]
    if isinstance(node.op, Broadcast):
        return frozenset((tuple([node.op.axes[k] for k in axes]), name) for _, (axes, name) in named)
    move = node.op, tuple(a.shape for a in node.args)
    return frozenset((_all_axes(node), (move, *sign)) for sign in named)


def _contracted(op: Einsum, below: Sequence[frozenset[Sign] | None]) -> frozenset[Sign] | None:
    """The signs that are the same in all terms of a sum; None where there are others."""
    found = set[Sign]()
    for labels, signs in zip(op.inputs, below, strict=True):
        for axes, name in signs if signs is not None else [((0,), None)]:
            if signs is None or any(labels[k] not in op.output for k in axes):
                return None
            found.add((tuple([op.output.index(labels[k]) for k in axes]), name))
    return frozenset(found)


def _all_axes(node: Node) -> tuple[int, ...]:
    return tuple(range(len(node.shape)))
