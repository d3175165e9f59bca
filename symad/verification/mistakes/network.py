"""The chain rule at some points: what flows along each edge of a graph, and what a change of it does.

In reverse mode the flow of a node is its cotangent, in forward mode its tangent. An edge multiplies the flow
of its source by a matrix and adds it to that of its target. The derivative is the flow of the last nodes: the
inputs in reverse mode, the outputs in forward mode. It is linear in the flow of every node, so that a change
δ of one flow changes it by ``effect[node] δ``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from symad.core.graph import Node, topological
from symad.numbers.values import unchecked
from symad.ops.arrays.reduction import Extreme
from symad.transforms.branch_masks import use_conditions
from symad.transforms.guards import masks_entering
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.local import Edge, edge_of, lengths

MAX_NUMBERS = 4_000_000
"""The maximum number of elements of all matrices together."""

MAX_EDGES = 1_500
"""The maximum number of edges of a graph whose mistakes are named."""

NOTHING = 1e-11
"""A flow that is smaller than this, relative to those next to it, is the remainder of a cancellation."""

Factors = Mapping[Node, float]
Matrices = Mapping[Edge, Array]
NONE: Matrices = {}


class TooManyEdges(Exception):
    """A graph has more edges than are looked at."""


@dataclass(eq=False)
class ChainNetwork:
    """The chain rule from ``first`` to ``last`` nodes at some points; arrays have an axis for the points."""

    forward: bool
    first: Sequence[Node]
    last: Sequence[Node]
    order: Sequence[Node]
    """All nodes, sources before targets."""
    edges: Mapping[Node, Sequence[Edge]]
    """By source."""
    values: Sequence[Mapping[Node, Array]]
    """The values of all nodes at each point."""
    seeds: Sequence[Sequence[Array]]
    """At each point the flows that enter at the first nodes."""
    matrix: dict[Edge, Array] = field(default_factory=dict)
    flow: dict[Node, Array] = field(default_factory=dict)
    effect: dict[Node, Array] = field(default_factory=dict)
    touching: dict[Node, list[Edge]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        every = [e for part in self.edges.values() for e in part]
        sizes = (e.source_size if e.is_diagonal else e.source_size * e.target_size for e in every)
        if len(self.values) * sum(sizes) > MAX_NUMBERS:
            raise TooManyEdges
        for edge in every:
            here = [{leaf: v[n] for leaf, n in edge.leaves.items()} for v in self.values]
            self.matrix[edge] = np.stack([edge.matrix(values) for values in here])
            for node in (edge.source, edge.target):
                self.touching.setdefault(node, []).append(edge)
        self._propagate()

    def _propagate(self) -> None:
        """The flows, and the effects of their changes."""
        self.flow, self.effect = self.run(), {}
        count, widths = len(self.values), [int(np.prod(lengths(n))) for n in self.last]
        total, start = sum(widths), 0
        for node, width in zip(self.last, widths, strict=True):
            own = np.zeros((count, total, width))
            own[:, start : start + width] = np.eye(width)
            self.effect[node] = self.effect[node] + own if node in self.effect else own
            start += width
        for source in reversed(self.order):
            for edge in self.edges.get(source, ()):
                if edge.target in self.effect:
                    more = _times_effect(self.effect[edge.target], self.matrix[edge], edge)
                    self.effect[source] = self.effect[source] + more if source in self.effect else more

    @property
    def counts(self) -> frozenset[int]:
        """How many elements are summed in each sum of the function and of its derivative."""
        pairs = [(e.source_size, e.target_size) for part in self.edges.values() for e in part]
        return frozenset(max(p) // min(p) for p in pairs if min(p) and not max(p) % min(p)) - {1}

    def leave_out_shifts(self) -> None:
        """Leave out a maximum of which the result does not depend, subtracted so that nothing overflows."""
        for node in self.order:
            if isinstance(node.op, Extreme) and node in self.flow and node in self.effect:
                flow, effect = self.flow[node], self.effect[node]
                others = [abs(self.flow[e.owner]).max() for e in self.edges_of(node) if e.owner in self.flow]
                if abs(flow).max() <= NOTHING * max(others, default=1.0) or not abs(effect).max():
                    for edge in self.edges_of(node):
                        self.matrix[edge] = 0 * self.matrix[edge]
        self._propagate()

    def edges_of(self, node: Node) -> list[Edge]:
        """The edges to and from a node."""
        return self.touching.get(node, [])

    @property
    def result(self) -> Array:
        """The derivative: the flows of the last nodes, flat, at each point."""
        return self.collected(self.flow)

    def collected(self, flow: Mapping[Node, Array]) -> Array:
        """The flows of the last nodes, flat, one after the other."""
        count = len(self.values)
        parts = [flow.get(n, np.zeros((count, int(np.prod(lengths(n)))))) for n in self.last]
        return np.concatenate(parts, axis=1)

    def run(self, factors: Factors | None = None, matrices: Matrices = NONE) -> dict[Node, Array]:
        """The flows, with those of some nodes multiplied by factors, and other matrices of some edges."""
        factors, flow = factors or {}, dict[Node, Array]()
        for k, node in enumerate(self.first):
            seed = np.stack([np.asarray(s[k], dtype=float).ravel() for s in self.seeds])
            flow[node] = flow[node] + seed if node in flow else seed
        for source in self.order:
            if source not in flow:
                continue
            if source in factors:
                flow[source] = flow[source] * factors[source]
            for edge in self.edges.get(source, ()):
                more = along(matrices.get(edge, self.matrix[edge]), flow[source])
                flow[edge.target] = flow[edge.target] + more if edge.target in flow else more
        return flow

    def changed(self, node: Node, delta: Array) -> Array:
        """How a change of the flow of a node changes the derivative; ``delta`` has the points first."""
        if node not in self.effect:
            return np.zeros((len(self.values), sum(int(np.prod(lengths(n))) for n in self.last)))
        return np.einsum("pwa,pa->pw", self.effect[node], delta)

    def along(self, edge: Edge) -> Array:
        """What flows along an edge."""
        return along(self.matrix[edge], self.flow[edge.source])

    def value(self, node: Node) -> Array:
        """The values of a node at all points, flat."""
        return np.stack([np.asarray(v[node], dtype=float).ravel() for v in self.values])


def along(matrix: Array, flow: Array) -> Array:
    """A matrix, or a diagonal, times a flow, point by point."""
    return matrix * flow if matrix.ndim == 2 else np.einsum("pts,ps->pt", matrix, flow)


def _times_effect(effect: Array, matrix: Array, edge: Edge) -> Array:
    return effect * matrix[:, None, :] if edge.is_diagonal else effect @ matrix


def network_of(
    outputs: Sequence[Node],
    wrt: Sequence[Node],
    seeds: Sequence[Sequence[Array]],
    points: Sequence[Mapping[Node, Array]],
    forward: bool,
) -> ChainNetwork:
    """The chain rule of a graph without fused ops.

    Args:
        outputs: of the function.
        wrt: the inputs by which it is differentiated.
        seeds: at each point the tangents of these inputs (forward), or the cotangents of the outputs.
        points: values of all inputs.
        forward: the direction.

    Raises:
        TooLarge: it has too many edges.
    """
    order = topological(outputs)
    active = set(wrt)
    for node in order:
        if not active.isdisjoint(node.args):
            active.add(node)
    pairs = [(n, k) for n in order if n in active for k, a in enumerate(n.args) if a in active]
    if len(pairs) > MAX_EDGES:
        raise TooManyEdges
    conditions = use_conditions(order, outputs)
    edges: dict[Node, list[Edge]] = {}
    for node, k in pairs:
        condition = conditions.get(node)
        masked = condition is not None and masks_entering(condition, node)
        edge = edge_of(node, k, condition if masked else None, forward)
        if edge is not None:
            edges.setdefault(edge.source, []).append(edge)
    wanted = list(dict.fromkeys([*order, *conditions.values(), *wrt]))
    values = [dict(zip(wanted, unchecked(wanted, point), strict=True)) for point in points]
    ends = (wrt, outputs) if forward else (outputs, wrt)
    along_order = [n for n in order if n in active]
    return ChainNetwork(forward, *ends, along_order if forward else along_order[::-1], edges, values, seeds)
