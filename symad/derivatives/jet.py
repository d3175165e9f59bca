"""Taylor mode: derivatives of order 0, 1, ..., k along a line, without k nested pushforwards.

With x(t) = x + t v every value y of a graph is a power series y_0 + y_1 t + y_2 t² + ..., and y_j j! is the
directional derivative Dʲf(x)[v, ..., v]. A product is Cauchy's, y_k = Σ_j a_j b_{k−j}; a quotient, a root
and a linear solve are the same sums solved for y_k. All other ops follow from their pushforward: ẏ =
∂op(x, y) ẋ is a graph in x, y and ẋ, so that y_k = (ẏ)_{k−1}/k needs lower orders only. Functions whose
slopes are among themselves (exp, sin and cos, tanh, ...) cost O(k²) nodes in all, where nesting doubles
them with each order.

Sources: Griewank & Walther, "Evaluating Derivatives" (2008), section 13.2 and table 13.2; Bettencourt,
Johnson & Duvenaud, "Taylor-mode automatic differentiation for higher-order derivatives in JAX" (2019).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import factorial
from typing import Any

from symad.core.gc_pause import without_collecting
from symad.core.graph import ZERO, Graph, Node, Origin, Tangent, TupleOf, topological
from symad.core.questions import jvp, series
from symad.derivatives.forward import dense
from symad.derivatives.wrt import (
    input_names,
    packing_of,
    tangent_inputs,
    value_labels,
    value_part,
    with_directions,
)
from symad.derivatives.wrt import select as select_inputs
from symad.errors import DerivativeError
from symad.ops import series as _rules  # noqa: F401  (registers answers)
from symad.ops.arrays.sources import constant
from symad.ops.elementwise.arithmetic import mul
from symad.ops.loops.scan import fresh_input
from symad.stable import smooth
from symad.tracing import as_graph

Key = tuple[Node, int]


class _Missing(Exception):
    """A coefficient that has to be computed first."""

    def __init__(self, key: Key) -> None:
        self.key = key


class Coefficients:
    """The coefficients of nodes as power series, computed when they are asked for.

    ``coefficients(y, k)`` is y_k, a node or `ZERO`; a rule asks for those of its arguments up to k, of its
    own value below k, and of whatever it writes them in.
    """

    def __init__(self, order: int, given: Mapping[Node, Sequence[Tangent]]) -> None:
        """``given`` has x_1, ..., x_order of the nodes that move."""
        self.order = order
        self.known: dict[Key, Tangent] = {}
        self.moves: dict[Node, bool] = {}
        self.velocities: dict[Node, Node] = {}  # x -> the node that stands for ẋ
        self.sources: dict[Node, Node] = {}  # and back
        self.virtual: set[Node] = set()  # nodes that hold such a node: their value is not the node itself
        self.slopes: dict[Node, Tangent] = {}
        self.derived: set[Node] = set()
        self.scans: dict[tuple[Node, int], Node] = {}
        for node, parts in given.items():
            self.moves[node] = True
            self.known |= {(node, k): part for k, part in enumerate((node, *parts))}

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
        """Whether a node depends on what moves."""
        if root not in self.moves:
            for node in topological([root]):
                if node not in self.moves:
                    self.moves[node] = any(self.moves[a] for a in node.args)
                    if any(a in self.virtual for a in node.args):
                        self.virtual.add(node)
        return self.moves[root]

    def compute(self, goals: Iterable[Key]) -> None:
        """Compute these and what they need, without recursion."""
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
            return Node.of(node.op, tuple(dense(self(a, 0), a) for a in node.args))
        self(node, k - 1)
        for a in node.args:
            self(a, k)
        made: Tangent = series(node.op, node, k, self)
        return made


def _scaled(factor: Any, value: Tangent) -> Tangent:
    return mul(constant(factor), value) if isinstance(value, Node) else ZERO


@series.dispatch
def series_by_pushforward(op: Any, y: Node, k: int, coefficient: Any) -> Tangent:
    """y_k = (ẏ)_{k−1}/k, what nested pushforwards mean; of linear ops the tangent of the coefficients."""
    from symad.core.questions import definition

    if op.linear:
        parts = tuple(coefficient(a, k) for a in y.args)
        return jvp(op, y, parts) if any(isinstance(p, Node) for p in parts) else ZERO
    defined = definition(op, y)
    if defined is not None:
        return coefficient(defined, k)
    y_dot = coefficient.dot(y)
    return _scaled(Fraction(1, k), coefficient(y_dot, k - 1)) if isinstance(y_dot, Node) else ZERO


@without_collecting
def jet(f: Any, order: int, wrt: Any = None, inputs: Any = None) -> Graph:
    """Directional derivatives up to an order: (x..., x_dot...) -> (y, Df[x_dot], D²f[x_dot, x_dot], ...).

    They are the derivatives of t ↦ f(x + t x_dot) at t = 0: order + 1 values, each in the shapes and the
    structure of ``f``. ``wrt`` and ``inputs`` as in `pushforward`. Loops stay loops, whose state is joined by
    its coefficients; solutions of `implicit` have theirs by linear solves.

    Raises:
        DerivativeError: the order is no integer of at least 0.
    """
    if not isinstance(order, int) or isinstance(order, bool) or order < 0:
        raise DerivativeError(f"jet: the order {order!r} is not an integer of at least 0")
    graph = as_graph(f, wrt, inputs)
    selection = select_inputs(graph, wrt)
    nodes = selection.nodes
    dots = tangent_inputs(nodes, "dot", input_names(graph))
    outputs = smooth(graph.output_nodes, dict(zip(nodes, dots, strict=True)))
    given = {x: (v, *[ZERO] * (order - 1)) for x, v in zip(nodes, dots, strict=True)} if order else {}
    found = Coefficients(order, given)
    found.compute((y, k) for y in outputs for k in range(1, order + 1))
    made = list(graph.output_nodes)
    for k in range(1, order + 1):
        made += [dense(_scaled(factorial(k), found(y, k)), y) for y in outputs]
    values = value_labels(graph)
    labels = [f"{name}_{k}" if k else name for k in range(order + 1) for name in values]
    structure, name = TupleOf((graph.structure,) * (order + 1)), f"{graph.name}_jet"
    packing = packing_of(graph, selection, (value_part(graph),) * (order + 1), len(dots))
    origin = Origin(tuple(labels))
    return with_directions(graph, dots, selection, "dot", tuple(made), structure, name, origin, "", packing)
