"""Graphs cut at the arguments of roots: there, fresh variables stand for what is computed.

Derivatives of a norm use u, √u and 1/√u side by side, and hold for any u: that u is a sum of squares does
not matter. So u is replaced by r^k with a fresh r, the same for equal u, and its root is r. No root in an
extension of the field is needed, nor one of a root of a root.

Why that is sound: what is equal for all values of a variable w = r^k is equal for w = u(x) wherever roots of
u(x) are defined; and where an element has no such root it is a function of w alone, equal for all w. No root
of a product is related to others here, so nothing is said about signs. What needs to know what u is, such as
(√(x + 1))² − 1 = x, is only not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, lcm

from symad.core.graph import Node, topological
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import Input, constant_value
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky

MAX_JOINT_ORDER = 12
"""The maximum order of the one power that stands for roots of several orders together."""

MAX_CUT_ROWS = 12
"""The maximum number of rows of a matrix that is cut: the degree of the last pivot is 2 to this power."""


@dataclass(frozen=True)
class Cuts:
    """Where graphs are cut."""

    nodes: frozenset[Node] = frozenset()
    """The arguments of roots, before they are broadcast or reshaped."""
    orders: tuple[int, ...] = ()
    """Of which orders roots are taken."""
    matrices: frozenset[Node] = frozenset()
    """The matrices of which Cholesky factors are taken."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.orders)

    @property
    def power(self) -> int:
        """k of r^k."""
        return lcm(*self.orders)


NO_CUTS = Cuts()


def cuts_at_radicands(outputs: Sequence[Node]) -> Cuts:
    """The arguments of roots that are computed from inputs; none if there are roots of too many orders."""
    order = topological(outputs)
    varies: set[Node] = set()
    for node in order:
        if isinstance(node.op, Input) or not varies.isdisjoint(node.args):
            varies.add(node)
    found, matrices, orders = set[Node](), set[Node](), set[int]()
    for node in order:
        if isinstance(node.op, Cholesky) and node.args[0] in varies and node.shape[-1] <= MAX_CUT_ROWS:
            matrices.add(node.args[0])
            orders.add(2)
        if _order(node) > 1:
            base = node.args[0]
            while isinstance(base.op, (Broadcast, Reshape)):
                base = base.args[0]
            if base in varies and not isinstance(base.op, Input):
                found.add(base)
                orders.add(_order(node))
    if lcm(*orders) > MAX_JOINT_ORDER:
        return NO_CUTS
    return Cuts(frozenset(found), tuple(sorted(orders)), frozenset(matrices))


def has_roots_of_sums(outputs: Sequence[Node]) -> bool:
    """Whether a root is taken of a sum, plain or by a contraction."""
    return any(_order(n) > 1 and isinstance(n.args[0].op, (Add, Einsum)) for n in topological(outputs))


def _order(node: Node) -> int:
    """n of a power k/n; 1 for other nodes."""
    value = constant_value(node.args[1]) if isinstance(node.op, Pow) else None
    return Fraction(value).denominator if isinstance(value, (float, Fraction)) and isfinite(value) else 1
