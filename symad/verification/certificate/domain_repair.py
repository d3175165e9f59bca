"""The name of a mistake inside a formula, found by undoing it.

Every small edit that undoes a classic mistake (a sign, a transpose, an axis, a number) is tried at the
nodes that the reference does not have; nodes built alike are edited together, since a loop repeats its
mistake. If the edited formula has the values of the reference, the edit names the mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from symad.core.arrays import Array, Number
from symad.core.dims import same_shape
from symad.core.graph import Node, Op, op_of, rebuild, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import Add, Mul, mul, sub
from symad.ops.basic.contraction import Einsum, sum_axes
from symad.ops.basic.shaping import ShapingOp, broadcast_axes
from symad.ops.basic.sources import Constant, Input, constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.verification.values.point_set import as_floats

MAX_EVALUATED_NODES = 100_000
"""The maximum number of nodes that one search evaluates, in all edited formulas together."""

DEPTH = 4
"""How far below them nodes are compared that are edited together."""

REPAIRED = "wrong number"
"""How the name of a number begins that would repair a formula."""

Make = Callable[[Node, tuple[Node, ...]], Node]


def name_by_repair(a: Node, b: Node, points: Sequence[Mapping[Node, Number]]) -> str:
    """What is wrong with ``b``, if one edit makes it ``a`` at all points; else an empty text."""
    left, each = MAX_EVALUATED_NODES, len(topological([a, b]))
    floats = [{n: as_floats(v) for n, v in point.items()} for point in points[:2]]
    known = set(topological([a]))
    groups: dict[Hashable, list[Node]] = {}
    for node in topological([b]):
        if node not in known and not isinstance(node.op, Input):
            groups.setdefault(signature(node, DEPTH), []).append(node)
    for group in reversed(list(groups.values())):
        for name, make in _edits(group[0]):
            left -= each
            if left < 0:
                return ""
            if _mends(a, b, set(group), make, floats):
                return name
    return ""


def signature(node: Node, depth: int) -> Hashable:
    """What nodes have in common that come from one line of a program, whichever slices it takes."""
    own = type(node.op).__name__ if isinstance(node.op, ShapingOp) else node.op
    if not depth or not node.args:
        return type(node.op).__name__ if node.args else own, node.shape
    return own, node.shape, tuple(signature(x, depth - 1) for x in node.args)


def _edits(node: Node) -> Iterator[tuple[str, Make]]:
    """The edits that apply to a node, with the name of the mistake that each undoes."""
    op: Op = node.op
    if isinstance(op, Add) and len(node.args) > 1:
        for k, sign in enumerate(op.signs):
            signs = (*op.signs[:k], -sign, *op.signs[k + 1 :])
            yield f"wrong sign of {sketch(node.args[k])}", _with_op(Add(signs))
    if isinstance(op, Mul):
        for k in range(len(node.args)):
            yield f"extra factor {sketch(node.args[k])} in {sketch(node)}", _without(k)
        for k, p in enumerate(node.args):
            for axis in range(len(node.shape)) if p.args and same_shape(p.shape, node.shape) else ():
                yield f"forgotten path: through the sum in {sketch(p, 2)}", _less_its_mean(k, axis)
    if isinstance(op, Einsum):
        yield from _edits_of_contraction(node)
    value = op.value if isinstance(op, Constant) else None
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool) and value:
        for ratio in (Fraction(-1), Fraction(2), Fraction(1, 2)):
            yield f"{REPAIRED} {value}", _with_value(value * ratio)


def _edits_of_contraction(node: Node) -> Iterator[tuple[str, Make]]:
    """Another axis summed, or a square matrix transposed."""
    op: Any = node.op
    if len(op.inputs) == 1 and len(op.inputs[0]) == 2 and len(op.output) == 1:
        if node.args[0].shape[0] == node.args[0].shape[1]:
            other = tuple(x for x in op.inputs[0] if x not in op.output)
            yield f"wrong axis: the sum of {sketch(node.args[0])}", _with_op(Einsum(op.inputs, other))
        return
    for k, labels in enumerate(op.inputs):
        if len(labels) == 2 and node.args[k].shape[0] == node.args[k].shape[1]:
            turned = (*op.inputs[:k], labels[::-1], *op.inputs[k + 1 :])
            yield f"transposed: {sketch(node.args[k])}", _with_op(Einsum(turned, op.output))


def _with_op(op: Add | Einsum) -> Make:
    return lambda node, args: Node.of(op, args)


def _with_value(value: Fraction) -> Make:
    return lambda node, args: constant(value)


def _without(k: int) -> Make:
    def make(node: Node, args: tuple[Node, ...]) -> Node:
        op = op_of(node, Mul)
        powers = op.powers[:k] + op.powers[k + 1 :]
        return Node.of(Mul(powers), args[:k] + args[k + 1 :])

    return make


def _less_its_mean(k: int, axis: int) -> Make:
    """p ∘ t becomes p ∘ (t − Σ p t): the path through the sum by which p, such as a softmax, is divided."""

    def make(node: Node, args: tuple[Node, ...]) -> Node:
        product = Node.of(node.op, args)
        others = [j for j in range(len(node.shape)) if j != axis]
        mean = broadcast_axes(sum_axes(product, [axis]), node.shape, others)
        return sub(product, mul(args[k], mean))

    return make


def _mends(
    a: Node, b: Node, group: set[Node], make: Make, points: Sequence[Mapping[Node, Array | float]]
) -> bool:
    """Whether ``b`` with all nodes of a group edited has the values of ``a``."""

    def edited(node: Node, args: tuple[Node, ...]) -> Node:
        if node in group:
            return make(node, args)
        return node.over(args)

    try:
        (mended,) = rebuild([b], {}, edited)
        if mended.shape != a.shape:
            return False
        for point in points:
            u, v = (np.asarray(x, dtype=float) for x in unchecked((a, mended), point))
            if not np.all(np.isfinite(u) & np.isfinite(v)) or not np.allclose(u, v, rtol=1e-9, atol=1e-300):
                return False
    except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
        return False
    return bool(points)


def sketch(node: Node, depth: int = 3) -> str:
    """A node in a few words: its outermost operations, the rest left out."""
    op: Op = node.op
    if isinstance(op, Input):
        return str(op.symbol)
    if isinstance(op, Constant):
        return f"{op.value:.6g}" if isinstance(op.value, float) else str(op.value)
    if isinstance(op, Einsum) and len(node.args) == 1 and len(op.output) < len(op.inputs[0]):
        return f"Σ {sketch(node.args[0], depth)}"
    if isinstance(op, ShapingOp) or (isinstance(op, Einsum) and len(node.args) == 1):
        return sketch(node.args[0], depth) if node.args else type(op).__name__
    if not depth:
        return "…"
    return _joined(op, [sketch(x, depth - 1) for x in node.args])


def _joined(op: Op, args: list[str]) -> str:
    """An operation on sketches of its arguments."""
    if isinstance(op, Apply):
        return f"{op.head.__name__}({', '.join(args)})"
    if isinstance(op, Pow):
        return f"{args[0]}^{args[1]}"
    if isinstance(op, Add):
        terms = [("− " if s < 0 else "+ ") + x for s, x in zip(op.signs, args, strict=True)]
        return f"({' '.join(terms).removeprefix('+ ')})"
    if isinstance(op, Mul):
        return " ".join(("/ " if p < 0 else "") + x for p, x in zip(op.powers, args, strict=True))
    if isinstance(op, Einsum):
        return " · ".join(args)
    return f"{type(op).__name__}({', '.join(args)})"
