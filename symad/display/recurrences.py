"""The recurrences of forward and reverse mode, run literally on values, one operation at a time.

States s_k, tangents t_k, adjoints r_k, and the second-order quantities of the four Hessian modes.
At a fan-out contributions are added; a value used only under a condition passes derivatives on only
where the condition holds. This is slow and plain on purpose: the tables show these recurrences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import sympy

from symad.core.arrays import Number
from symad.core.dims import Dim, Shape, size
from symad.core.graph import ZERO, Node, Op, Tangent, topological
from symad.core.questions import flops
from symad.cost import add_up, byte_size
from symad.numbers.number_domains import select
from symad.numbers.values import unchecked
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.selection import Condition
from symad.transforms.branch_masks import use_conditions
from symad.transforms.cotangents import pull
from symad.transforms.tangents import push

# ---- the derivatives of one elementary operation, as forward and reverse mode use them -----------

# For y = f(a_1, ..., a_n) with Jacobian J and second derivative ∂²f:
#
#     tangent: ẏ = J ȧ
#     second: ẏ_j = J ȧ_j, ÿ = ȧ_i ∂²f ȧ_j + J ä
#     bars: ā = ȳ J
#     dual_bars: ā = ȳ J and ȳ (∂²f ȧ) + ȳ' J (forward over reverse)
#     bars_dual: (r₁ J + r₂ (∂²f ȧ), r₂ J), the reverse of (y, ẏ) (reverse over forward)
#     bars_bars: r (∂²f ṙ) + ṡ J, the reverse of (y, ā) (reverse over reverse)
#
# Each is a composition of the library's two transformations on one node. Absent tangents are structural
# zeros: they are omitted, never multiplied.


Group: TypeAlias = "list[Any]"
"""Values, one for each argument; None where a tangent is zero."""

Slots: TypeAlias = "tuple[Shape | Node, ...]"
"""For each argument its shape, or the node itself if it is a constant."""


@dataclass(frozen=True)
class LocalProgram:
    """Nodes that compute some derivatives of one operation from placeholders."""

    y: Node
    args: tuple[Node, ...]
    groups: tuple[tuple[Tangent, ...], ...]
    outputs: tuple[Tangent, ...]
    operations: sympy.Expr
    """Floating-point operations, without those of the operation itself."""

    def run(self, values: Sequence[Number], groups: Sequence[Group]) -> Group:
        """The outputs; None for structural zeros."""
        point = dict(zip(self.args, values, strict=True))
        for nodes, given in zip(self.groups, groups, strict=True):
            pairs = zip(nodes, given, strict=True)
            point.update({node: value for node, value in pairs if isinstance(node, Node)})
        found = iter(unchecked([o for o in self.outputs if isinstance(o, Node)], point))
        return [next(found) if isinstance(o, Node) else None for o in self.outputs]


def tangent(y: Node, a: Sequence[Node], dots: Sequence[Tangent]) -> list[Tangent]:
    """ẏ."""
    return push([y], _pairs(a, dots))


def second(
    y: Node, a: Sequence[Node], i: Sequence[Tangent], j: Sequence[Tangent], ij: Sequence[Tangent]
) -> list[Tangent]:
    """ẏ in direction j, and ÿ."""
    (y_i,) = push([y], _pairs(a, i))
    if not isinstance(y_i, Node):
        return [*push([y], _pairs(a, j)), ZERO]
    return push([y, y_i], {**_pairs(a, j), **_pairs(i, ij)})


def bars(y: Node, a: Sequence[Node], y_bar: Sequence[Tangent]) -> list[Tangent]:
    """The cotangents of the arguments."""
    return pull([y], y_bar, a)


def dual_bars(
    y: Node, a: Sequence[Node], dots: Sequence[Tangent], y_bar: Sequence[Tangent], more: Sequence[Tangent]
) -> list[Tangent]:
    """The cotangents of the arguments, then their tangents."""
    a_bars = pull([y], y_bar, a)
    present = [b for b in a_bars if isinstance(b, Node)]
    moved = iter(push(present, {**_pairs(a, dots), **_pairs(y_bar, more)}))
    return [*a_bars, *(next(moved) if isinstance(b, Node) else ZERO for b in a_bars)]


def bars_dual(
    y: Node, a: Sequence[Node], dots: Sequence[Tangent], r1: Sequence[Tangent], r2: Sequence[Tangent]
) -> list[Tangent]:
    """The cotangents of the arguments, then those of their tangents: the reverse of (y, ẏ)."""
    (y_dot,) = push([y], _pairs(a, dots))
    of_args = pull([y, y_dot], [*r1, *r2], a) if isinstance(y_dot, Node) else pull([y], r1, a)
    every = [_placeholder(x.shape) for x in a]
    (linear,) = push([y], _pairs(a, every))
    of_dots = pull([linear], r2, every) if isinstance(linear, Node) else [ZERO for _ in a]
    return [*of_args, *of_dots]


def bars_bars(
    y: Node, a: Sequence[Node], r: Sequence[Tangent], r_dots: Sequence[Tangent], s_dot: Sequence[Tangent]
) -> list[Tangent]:
    """The cotangents of the arguments from those of (ā, y): r (∂²f ṙ) + ṡ J."""
    a_bars = pull([y], r, a)
    pairs = [(b, d) for b, d in zip(a_bars, r_dots, strict=True) if isinstance(b, Node)]
    outputs = [y, *(b for b, _ in pairs)]
    return pull(outputs, [*s_dot, *(d for _, d in pairs)], a)


def _pairs(nodes: Sequence[Tangent], tangents: Sequence[Tangent]) -> dict[Node, Tangent]:
    pairs = zip(nodes, tangents, strict=True)
    return {n: t for n, t in pairs if isinstance(n, Node) and isinstance(t, Node)}


KINDS: dict[str, Callable[..., list[Tangent]]] = {
    "tangent": tangent,
    "second": second,
    "bars": bars,
    "dual_bars": dual_bars,
    "bars_dual": bars_dual,
    "bars_bars": bars_bars,
}
OF_VALUE = {"bars": (0,), "dual_bars": (1, 2), "bars_dual": (1, 2), "bars_bars": (0, 2)}
"""The groups of a program that belong to the value y; the others have one entry for each argument."""


@cache
def program(kind: str, op: Op, slots: Slots, present: tuple[tuple[bool, ...], ...]) -> LocalProgram:
    """The program of one kind for an operation; ``present`` is true for entries that are not zero."""
    args = tuple(s if isinstance(s, Node) else _placeholder(s) for s in slots)
    free = [a for a, s in zip(args, slots, strict=True) if not isinstance(s, Node)]
    y = Node.of(op, args)
    groups = []
    for position, flags in enumerate(present):
        like = [y] if position in OF_VALUE.get(kind, ()) else free
        groups.append(tuple(_placeholder(n.shape) if f else ZERO for n, f in zip(like, flags, strict=True)))
    outputs = tuple(KINDS[kind](y, free, *groups))
    new = set(topological([o for o in outputs if isinstance(o, Node)])) - set(topological([y]))
    return LocalProgram(y, tuple(free), tuple(groups), outputs, add_up(flops(n.op, n) for n in new))


def _placeholder(shape: Shape) -> Node:
    return input_node(sympy.Dummy(real=True), shape)


Values = dict[Node, Any]
"""A value for each node; a node that is missing has the value zero."""


class Recurrences:
    """A graph at a point: the states, and the sweeps over them.

    ``operations[node]`` is the number of operations of the last sweep at each node.
    """

    def __init__(self, output: Node | None, outputs: Sequence[Node], point: Mapping[Node, Number]) -> None:
        """Evaluate every node. ``output`` is the scalar to differentiate in reverse mode, if any."""
        self.output = output
        roots = list(outputs) if output is None else [*outputs, output]
        self.order = topological([*point, *roots])
        conditions = use_conditions(self.order, roots)
        guards = list(dict.fromkeys(conditions.values()))
        found = unchecked([*self.order, *guards], point)
        self.states: Values = dict(zip(self.order, found, strict=False))
        truths = dict(zip(guards, found[len(self.order) :], strict=True))
        self.guards = {node: truths[c] for node, c in conditions.items()}
        self.varying = depend_on(self.order, set(point))
        self.real = {n for n in self.varying if not isinstance(n.op, Condition)}
        self.operations: Counter[Node] = Counter()

    # ---- one operation ---------------------------------------------------------------------------

    def free(self, node: Node) -> list[Node]:
        """The arguments of a node that depend on inputs."""
        return [a for a in node.args if a in self.varying]

    def program(self, kind: str, node: Node, *groups: Group) -> LocalProgram:
        """The program of a node, for the entries of groups that are not None."""
        slots = tuple(a.shape if a in self.varying else a for a in node.args)
        present = tuple(tuple(v is not None for v in group) for group in groups)
        return program(kind, node.op, slots, present)

    def _step(self, kind: str, node: Node, *groups: Group) -> Group:
        found = self.program(kind, node, *groups)
        self.operations[node] += found.operations
        return found.run([self.states[a] for a in self.free(node)], groups)

    def _guarded(self, node: Node, group: Group) -> Group:
        """Tangents or cotangents of the arguments, zero where the node is not used."""
        if node not in self.guards:
            return group
        holds = self.guards[node]
        if isinstance(holds, bool) or getattr(holds, "ndim", None) == 0:
            return group if bool(holds) else [None] * len(group)
        return [None if v is None else select(holds, v, 0) for v in group]

    def _entering(self, node: Node, tangents: Values) -> Group:
        return self._guarded(node, [tangents.get(a) for a in self.free(node)])

    def _add(self, sums: Values, nodes: Sequence[Node], group: Group) -> None:
        """Accumulators start at 0 and add at every fan-out."""
        for node, value in zip(nodes, group, strict=True):
            if value is None:
                continue
            if node in sums:
                self.operations[node] += size(node.shape)
            sums[node] = sums[node] + value if node in sums else value

    def _seed(self, value: Number | None) -> Values:
        """The accumulators of a sweep at its start."""
        return {} if self.output is None or value is None else {self.output: value}

    def _inner(self) -> list[Node]:
        return [n for n in self.order if n.args and n in self.varying]

    # ---- sweeps ----------------------------------------------------------------------------------

    def forward(self, seeds: Values) -> Values:
        """t_k = Σ_p J_kp t_p, from the tangents of the inputs."""
        t = dict(seeds)
        for node in self._inner():
            entering = self._entering(node, t)
            if any(v is not None for v in entering):
                (t_k,) = self._step("tangent", node, entering)
                if t_k is not None:
                    t[node] = t_k
        return t

    def reverse(self, seed: Number) -> Values:
        """r_p = Σ_k r_k J_kp, from r = ``seed`` at the output."""
        r = self._seed(seed)
        for node in reversed(self._inner()):
            if node in r:
                bars = self._step("bars", node, [r[node]])
                self._add(r, self.free(node), self._guarded(node, bars))
        return r

    def forward_over_forward(self, seeds_i: Values, seeds_j: Values) -> tuple[Values, Values]:
        """(∂_j g_k, ∂_i∂_j g_k): ∂²g = H_kj ∂_i g + J ∂²g, tangents in direction j beside it."""
        t_i = self.forward(seeds_i)
        t_j: Values = dict(seeds_j)
        t_ij: Values = {}
        for node in self._inner():
            groups = [self._entering(node, t) for t in (t_i, t_j, t_ij)]
            if any(v is not None for group in groups for v in group):
                for t, value in zip((t_j, t_ij), self._step("second", node, *groups), strict=True):
                    if value is not None:
                        t[node] = value
        return t_j, t_ij

    def forward_over_reverse(self, seed: Number, t_j: Values) -> tuple[Values, Values]:
        """r_{k−1} = Dual(r¹ J_k, r¹ H_kj + r² J_k), seed Dual(1, 0)."""
        return self._pairs("dual_bars", self._seed(seed), self._seed(None), t_j)

    def reverse_over_forward(self, seed: Number, t_i: Values) -> tuple[Values, Values]:
        """The reverse of the dual program, seed (0, 1).

        r_{k−1} = ((r_k)₁ J_k + (r_k)₂ H_ki, (r_k)₂ J_k).
        """
        return self._pairs("bars_dual", self._seed(None), self._seed(seed), t_i)

    def _pairs(self, step: str, r1: Values, r2: Values, t: Values) -> tuple[Values, Values]:
        """The two adjoints of each state by a kind of step, from those of the outputs and the tangents."""
        for node in reversed(self._inner()):
            if node in r1 or node in r2:
                both = self._step(step, node, self._entering(node, t), [r1.get(node)], [r2.get(node)])
                free = self.free(node)
                for total, half in ((r1, both[: len(free)]), (r2, both[len(free) :])):
                    self._add(total, free, self._guarded(node, half))
        return r1, r2

    def reverse_over_reverse(self, r: Values, r_dot: Values) -> Values:
        """ṡ_{k−1} = r_k H_ki + ṡ_k J_k with ṡ = 0 at the end.

        ``r_dot`` are the tangents of the adjoints: ṙ_k = J_k ṙ_{k−1}, from the unit direction.
        """
        s_dot: Values = {}
        for node in reversed(self._inner()):
            if node in r or node in s_dot:
                groups = [[r.get(node)], self._entering(node, r_dot), [s_dot.get(node)]]
                bars = self._step("bars_bars", node, *groups)
                self._add(s_dot, self.free(node), self._guarded(node, bars))
        return s_dot

    # ---- costs -----------------------------------------------------------------------------------

    def stored(self, copies: int) -> dict[Node, Dim]:
        """Bytes at each step of a reverse sweep: all states up to it, and the adjoints in use.

        ``copies`` is the number of numbers stored for each state and for each adjoint.
        """
        rank = {node: k for k, node in enumerate(self.order)}
        last_use = dict(rank)
        for node in self.order:
            for arg in node.args:
                last_use[arg] = rank[node]
        states: Dim = 0
        curve: dict[Node, Dim] = {}
        for k, node in enumerate(self.order):
            states = states + byte_size(node)
            pending = [a for a in self.order[: k + 1] if a in self.real and last_use[a] >= k]
            curve[node] = (states + sum(byte_size(a) for a in pending)) * copies
        return curve


def depend_on(order: Sequence[Node], inputs: set[Node]) -> set[Node]:
    """The nodes that depend on an input."""
    found = set()
    for node in order:
        if node in inputs or any(a in found for a in node.args):
            found.add(node)
    return found
