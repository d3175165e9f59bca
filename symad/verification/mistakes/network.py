"""The chain rule at some points: what flows along each edge of a graph, and what a change of it does.

In reverse mode the flow of a node is its cotangent, in forward mode its tangent. An edge multiplies the flow
of its source by a matrix and adds it to that of its target. The derivative is the flow of the last nodes: the
inputs in reverse mode, the outputs in forward mode. It is linear in the flow of every node, so that a change
δ of one flow changes it by ``effect[node] δ``. A changed derivative is the candidate if both agree to
rounding at all points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from symad.core.graph import Node, topological
from symad.numbers.values import unchecked
from symad.ops.arrays.reduction import Extreme
from symad.transforms.branch_masks import use_conditions
from symad.transforms.guards import masks_entering
from symad.verification.fields.prime_fields import Array
from symad.verification.mistakes.local import Edge, edge_of, lengths
from symad.verification.mistakes.words import factor_of

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


# ---- which changed derivative is the candidate ---------------------------------------------------


ROUNDINGS = 1024.0
"""The number of roundings of the largest value that both sides together may differ by."""

TOLD = 1000.0
"""A difference counts if it is at least this many times as large as its rounding error."""

ALIKE = 1e-6
"""The largest relative disagreement of two differences."""

MIN_NUMBERS = 4
"""The least number of elements and points at which there must be a difference: fewer say too little."""


@dataclass(frozen=True)
class Change:
    """A mistake, and how it changes the derivative.

    Args:
        rank: simple mistakes have small ones.
        words: its name; ``{}`` stands for what `scaled` finds.
        effect: the change of the derivative, points first; for `scaled` that by leaving a part out.
        scaled: whether the part may also have another factor: "sign" and "factor" get words of their own.
    """

    rank: tuple[float, ...]
    words: str
    effect: Array
    scaled: str = ""


@dataclass(frozen=True)
class Difference:
    """Candidate minus right derivative at some points, flat."""

    right: Array
    found: Array
    eps: float
    """The roundoff of the candidate's numbers."""
    parts: Sequence[slice]
    """Where each output lies."""
    counts: frozenset[int] = frozenset()
    """The numbers of elements of the sums in the function and its derivative."""

    def of(self, part: slice) -> Array:
        """The difference of one output."""
        return self.found[:, part] - self.right[:, part]

    def scale(self, part: slice) -> Array:
        """The largest values of one output at each point."""
        both = np.abs(np.concatenate([self.found[:, part], self.right[:, part]], axis=1))
        return both.max(axis=1, keepdims=True) if both.shape[1] else np.zeros((len(both), 1))

    def floor(self, part: slice) -> Array:
        """What roundings may do, at each point."""
        return ROUNDINGS * self.eps * self.scale(part)

    def shows(self, part: slice) -> bool:
        """Whether an output differs by enough, at enough points and in enough elements."""
        apart = np.abs(self.of(part)) > TOLD * self.floor(part)
        return int(apart.sum()) >= min(MIN_NUMBERS, len(apart)) and int(apart.any(axis=1).sum()) >= 2

    @property
    def right_points(self) -> Array:
        """The points at which all outputs agree with the right derivative."""
        right = [np.all(np.abs(self.of(part)) <= self.floor(part), axis=1) for part in self.parts]
        return np.logical_and.reduce(right)

    def agrees(self, part: slice, effect: Array) -> bool:
        """Whether a change explains one output."""
        wanted, made, allowed = self.of(part), effect[:, part], self.allowed[part.start, part.stop]
        if not np.all(np.abs(wanted[0] - made[0]) <= allowed[0]):  # most are sorted out here
            return False
        return bool(np.all(np.isfinite(made)) and np.all(np.abs(wanted - made) <= allowed))

    @cached_property
    def allowed(self) -> dict[tuple[int, int], Array]:
        """How far a change may be from the difference, at each point; by the ends of an output."""
        made = {}
        for part in self.parts:
            size = np.abs(self.of(part)).max(axis=1, keepdims=True, initial=0.0)
            made[part.start, part.stop] = ALIKE * size + self.floor(part)
        return made

    def may_be(self, effect: Array) -> bool:
        """Whether a change explains at least one output at the first point."""
        for part in self.parts:
            wanted, allowed = self.of(part)[0], self.allowed[part.start, part.stop][0]
            if np.any(np.abs(wanted) > allowed) and np.all(np.abs(wanted - effect[part]) <= allowed):
                return True
        return False


def name_in(change: Change, difference: Difference, wrong: Sequence[int], every: Sequence[int]) -> str:
    """The name of a change, if it explains the outputs ``wrong`` and leaves the others as they are."""
    parts = [difference.parts[k] for k in wrong]
    effect, words = change.effect, change.words
    if change.scaled:
        scale = _scale(change, difference, parts)
        effect = effect * (1 - scale)
        if abs(scale) > 1e-7:
            factor = factor_of(scale)
            if not factor:
                return ""
            what = "wrong sign" if factor == "-1" else f"missing factor {factor}"
            words = change.scaled.replace("{}", what, 1)  # names such as x_{1} may have braces, too
            many = factor.removeprefix("1/")
            if many.isdigit() and int(many) > 2 and int(many) in difference.counts:
                swapped = f"a sum of {many} elements in place of their mean"
                if not factor.startswith("1/"):
                    swapped = f"a mean of {many} elements in place of their sum"
                words += f" ({swapped}?)"
    if any(not difference.agrees(part, effect) for part in parts):
        return ""
    rest = [difference.parts[k] for k in every if k not in wrong]
    return words if all(difference.agrees(part, effect) for part in rest) else ""


def _scale(change: Change, difference: Difference, parts: Sequence[slice]) -> float:
    """How often a part counts in the candidate: 1 is right, 0 leaves it out; found by least squares."""
    wanted = np.concatenate([(difference.of(p) / (difference.scale(p) + 1e-300)).ravel() for p in parts])
    made = np.concatenate([(change.effect[:, p] / (difference.scale(p) + 1e-300)).ravel() for p in parts])
    square = float(made @ made)
    if not square or not np.isfinite(square):
        return 0.0
    scale = 1 - float(wanted @ made) / square
    return 0.0 if abs(scale) < 1e-7 else scale
