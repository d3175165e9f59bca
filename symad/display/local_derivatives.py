"""The derivatives of one elementary operation, as forward and reverse mode use them.

For y = f(a_1, ..., a_n) with Jacobian J and second derivative ∂²f these are the small programs

- tangent:   ẏ = J ȧ
- second:    ẏ_j = J ȧ_j,  ÿ = ȧ_i ∂²f ȧ_j + J ä
- bars:      ā = ȳ J
- dual_bars: ā = ȳ J and its derivative ȳ (∂²f ȧ) + ȳ' J          (forward over reverse)
- bars_dual: (r₁ J + r₂ (∂²f ȧ), r₂ J), the reverse of (y, ẏ)      (reverse over forward)
- bars_bars: r (∂²f ṙ) + ṡ J, the reverse of (y, ā)                (reverse over reverse)

Each is a composition of the library's two transformations on one node. Absent tangents are structural
zeros: they are omitted, never multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import sympy

from symad.core.arrays import Number
from symad.core.dims import Shape
from symad.core.graph import ZERO, Node, Op, Tangent, topological
from symad.core.questions import flops
from symad.cost import add_up
from symad.numbers.values import unchecked
from symad.ops.basic.sources import input_node
from symad.transforms.cotangents import pull
from symad.transforms.tangents import push

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
    y: Node,
    a: Sequence[Node],
    dots: Sequence[Tangent],
    y_bar: Sequence[Tangent],
    more: Sequence[Tangent],
) -> list[Tangent]:
    """The cotangents of the arguments, then their tangents."""
    a_bars = pull([y], y_bar, a)
    present = [b for b in a_bars if isinstance(b, Node)]
    moved = iter(push(present, {**_pairs(a, dots), **_pairs(y_bar, more)}))
    return [*a_bars, *(next(moved) if isinstance(b, Node) else ZERO for b in a_bars)]


def bars_dual(
    y: Node,
    a: Sequence[Node],
    dots: Sequence[Tangent],
    r1: Sequence[Tangent],
    r2: Sequence[Tangent],
) -> list[Tangent]:
    """The cotangents of the arguments, then those of their tangents: the reverse of (y, ẏ)."""
    (y_dot,) = push([y], _pairs(a, dots))
    of_args = pull([y, y_dot], [*r1, *r2], a) if isinstance(y_dot, Node) else pull([y], r1, a)
    every = [_placeholder(x.shape) for x in a]
    (linear,) = push([y], _pairs(a, every))
    of_dots = pull([linear], r2, every) if isinstance(linear, Node) else [ZERO for _ in a]
    return [*of_args, *of_dots]


def bars_bars(
    y: Node,
    a: Sequence[Node],
    r: Sequence[Tangent],
    r_dots: Sequence[Tangent],
    s_dot: Sequence[Tangent],
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
