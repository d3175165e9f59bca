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

Signs = tuple[int, "frozenset[object] | None"]
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
    op = node.op
    if isinstance(op, Apply) and op.head in SIGNS:  # one more for each choice of those below
        signs = None if below[0] is None else below[0] | {node}
        return MANY if signs is None else len(signs), signs
    if not any(degrees):
        return NONE
    together = None if None in below else frozenset[object]().union(*(s for s in below if s is not None))
    if isinstance(op, (Add, Select)) or (isinstance(op, Mul) and -1 not in op.powers):
        many = sum(degrees) if isinstance(op, Mul) else max(degrees)
        return degrees[0] + max(degrees[1:]) if isinstance(op, Select) else many, together
    if isinstance(op, Einsum):
        moved = len(op.inputs) == 1 and sorted(op.inputs[0]) == sorted(op.output)
        return sum(degrees), _renamed(node, below) if moved else None
    if isinstance(op, ShapingOp) and not isinstance(op, (Gather, ScatterAdd)):
        return max(degrees), _renamed(node, below)
    if isinstance(op, ElementwiseOp) and not isinstance(op, (Compare, Logic)) and together is not None:
        return len(together), together
    return MANY, None


def _renamed(node: Node, below: Sequence[frozenset[object] | None]) -> frozenset[object] | None:
    """The signs by their places after a move: each element comes from one place of one argument."""
    if None in below:
        return None
    move = node.op, tuple(a.shape for a in node.args)
    names = [(k, name) for k, signs in enumerate(below) for name in signs or ()]
    if isinstance(node.op, Broadcast):
        return frozenset(_placed(node.op, name) for _, name in names)
    return frozenset((move, *name) for name in names)


def _placed(op: Broadcast, name: object) -> object:
    """The name of a sign that is broadcast: two broadcasts are one."""
    if isinstance(name, tuple) and name[0] is Broadcast:
        _, axes, name = name
        return Broadcast, tuple([op.axes[k] for k in axes]), name
    return Broadcast, op.axes, name
