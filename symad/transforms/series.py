"""Power series of nodes: coefficients by a rule for each op, or by pushforwards for ops without a rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from symad.core.graph import ZERO, Node, Tangent, topological
from symad.core.nodes import Op
from symad.core.questions import jvp, series
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, fresh_input
from symad.transforms.at_zero import zeros_like

Key = tuple[Node, int]


class _Missing(Exception):
    """A coefficient has to be computed first."""

    def __init__(self, key: Key) -> None:
        self.key = key


class Coefficients:
    """The coefficients of nodes as power series, computed on demand.

    ``coefficients(y, k)`` is y_k, a node or `ZERO`; a rule uses those of its arguments up to k, of its
    own value below k, and of all nodes of its answer.
    """

    def __init__(self, order: int, given: Mapping[Node, Sequence[Tangent]]) -> None:
        """``given`` has x_1, ..., x_order of the nodes that depend on t."""
        self.order = order
        self.known: dict[Key, Tangent] = {}
        self.moves: dict[Node, bool] = {}
        self.velocities: dict[Node, Node] = {}  # x -> the node that stands for ẋ
        self.sources: dict[Node, Node] = {}  # the inverse of velocities
        self.virtual: set[Node] = set()  # nodes that contain such a node: they stand for another value
        self.slopes: dict[Node, Tangent] = {}
        self.derived: set[Node] = set()
        self.scans: dict[tuple[Node, int], Node] = {}
        for node, parts in given.items():
            self.moves[node] = True
            self.known |= {(node, k): part for k, part in enumerate((node, *parts))}

    @staticmethod
    def along(x: Node, order: int, fixed: Iterable[Node] = ()) -> Coefficients:
        """Those of functions of x in powers of the change of x, the same for all its elements.

        ``fixed``: nodes that are known not to depend on x.
        """
        made = Coefficients(order, {x: [broadcast_to(constant(1), x.shape), *[ZERO] * (order - 1)]})
        made.moves |= dict.fromkeys(fixed, False)
        return made

    def of(self, node: Node, k: int) -> Tangent:
        """A coefficient with all that it needs."""
        self.compute([(node, k)])
        return self(node, k)

    def __call__(self, node: Node, k: int) -> Tangent:
        """The coefficient y_k."""
        if not self._classified(node):
            return node if k == 0 else ZERO
        if k == 0 and node not in self.virtual:
            return node
        if (node, k) not in self.known:
            raise _Missing((node, k))
        return self.known[node, k]

    def dot(self, y: Node) -> Tangent:
        """ẏ as a graph in y, its arguments and nodes that stand for their velocities."""
        if y not in self.slopes:
            moving = [isinstance(self(x, 1), Node) for x in y.args]
            tangents = tuple(self._velocity(x) if m else ZERO for x, m in zip(y.args, moving, strict=True))
            made = jvp(y.op, y, tangents) if any(moving) else ZERO
            self.slopes[y] = made
            if isinstance(made, Node):
                self.derived.update(topological([made]))
        return self.slopes[y]

    def _velocity(self, x: Node) -> Node:
        if x not in self.velocities:
            made = fresh_input(x.shape)
            self.velocities[x], self.sources[made] = made, x
            self.moves[made] = True
            self.virtual.add(made)
        return self.velocities[x]

    def _classified(self, root: Node) -> bool:
        """True if a node depends on t."""
        if root not in self.moves:
            for node in topological([root], self.moves):
                self.moves[node] = any(self.moves[a] for a in node.args)
                if any(a in self.virtual for a in node.args):
                    self.virtual.add(node)
        return self.moves[root]

    def compute(self, goals: Iterable[Key]) -> None:
        """Compute these coefficients and all that they need, without recursion."""
        stack = list(goals)
        while stack:
            node, k = key = stack[-1]
            try:
                if key not in self.known and self._classified(node):
                    self.known[key] = self._made(node, k)
                stack.pop()
            except _Missing as missing:
                stack.append(missing.key)

    def _made(self, node: Node, k: int) -> Tangent:
        source = self.sources.get(node)
        if source is not None:
            return _scaled(k + 1, self(source, k + 1))
        if k == 0:
            if node not in self.virtual:
                return node
            values = [(self(a, 0), a) for a in node.args]
            return Node.of(node.op, tuple([v if isinstance(v, Node) else zeros_like(a) for v, a in values]))
        self(node, k - 1)
        for a in node.args:
            self(a, k)
        made: Tangent = series(node.op, node, k, self)
        return made


def _scaled(factor: Fraction | int, value: Tangent) -> Tangent:
    return mul(constant(factor), value) if isinstance(value, Node) else ZERO


@series.dispatch
def series_by_pushforward(op: Op, y: Node, k: int, coefficient: Any) -> Tangent:
    """y_k = (ẏ)_{k−1}/k, as by nested pushforwards; for linear ops the tangent of the coefficients."""
    from symad.core.questions import definition

    if op.linear:
        parts = tuple(coefficient(a, k) for a in y.args)
        return jvp(op, y, parts) if any(isinstance(p, Node) for p in parts) else ZERO
    defined = definition(op, y)
    if defined is not None:
        return coefficient(defined, k)
    y_dot = coefficient.dot(y)
    return _scaled(Fraction(1, k), coefficient(y_dot, k - 1)) if isinstance(y_dot, Node) else ZERO
