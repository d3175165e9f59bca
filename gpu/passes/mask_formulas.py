"""Masks that are not known when code is printed: formulas of positions, for any lengths, and arrays."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from symad.core.graph import Node
from symad.core.nodes import Moved
from symad.fused.score_functions import I, J
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, reshape
from symad.ops.basic.sources import Iota, constant_value
from symad.ops.elementwise.selection import Compare, Logic, Select

RELATIONS = {"<": sp.Lt, "<=": sp.Le, ">": sp.Gt, ">=": sp.Ge, "==": sp.Eq, "!=": sp.Ne}
Index = tuple[sp.Expr, ...]


def mask_formula(shown: Node, alive: Node | None) -> sp.Basic | None:
    """The visible pairs as a formula of i and j; None if there is no such formula.

    Args:
        shown: the pairs that enter the softmax, (..., N, M).
        alive: the rows that are not set to 0 afterwards, (..., N, M), in the form "any of the mask's row".
            Without it, every row must have a visible key, which is proved by pairs (i, i) only.
    """
    rank = len(shown.shape)
    pairs = _repeated(shown, (rank - 2, rank - 1))
    if pairs is None or len(pairs.shape) != 2:
        return None
    if alive is None:
        formula = _formula(pairs, (I, J))
        square = pairs.shape[0] == pairs.shape[1]
        return formula if formula is not None and square and formula.subs(J, I) == sp.true else None
    mask = _mask_of(pairs, _bare(alive))
    return None if mask is None else _formula(mask, (I, J))


def mask_array(shown: Node, alive: Node | None) -> tuple[Node, tuple[int, ...]] | None:
    """A mask as an array of truth values, and its axes among (..., N, M); None if there is no such array.

    The mask has the form "mask or not rows", where ``alive`` are the rows with a visible key. Without
    ``alive``, a row without visible keys would be 0/0, and an array mask may have such a row.
    """
    if alive is None:
        return None
    (pairs, axes), (rows, kept) = _unrepeated(shown), _unrepeated(alive)
    whole, last = _flat(pairs), len(shown.shape) - 1
    if not isinstance(whole.op, Logic) or whole.op.kind != "or" or len(whole.args) != 2:
        return None
    shape = pairs.shape[:-1] if axes[-1:] == (last,) else pairs.shape
    if kept != tuple(k for k in axes if k != last) or rows.shape != shape or not axes:
        return None
    for mask, rest in (whole.args, whole.args[::-1]):
        row = tuple(range(len(rest.shape) - 1))
        if isinstance(rest.op, Broadcast):
            if rest.op.axes != row:
                continue
            (rest,) = rest.args
        hidden = _flat(rest)
        negated = isinstance(hidden.op, Logic) and hidden.op.kind == "not"
        known = negated and _flat(hidden.args[0]) is _flat(rows) and _is_any(_flat(rows), mask)
        if known and mask.shape == whole.shape:
            return reshape(mask, pairs.shape), axes
    return None


def _flat(node: Node) -> Node:
    """A node before it was reshaped."""
    while isinstance(node.op, Reshape):
        (node,) = node.args
    return node


def _unrepeated(node: Node) -> tuple[Node, tuple[int, ...]]:
    """A node before it was broadcast, and its axes in the broadcast result."""
    if isinstance(node.op, Broadcast):
        return node.args[0], node.op.axes
    return node, tuple(range(len(node.shape)))


def _mask_of(pairs: Node, rows: Node) -> Node | None:
    """The mask in "mask or not rows", if ``rows`` are the rows with a visible key; else None."""
    if not isinstance(pairs.op, Logic) or pairs.op.kind != "or" or len(pairs.args) != 2:
        return None
    for mask, rest in (pairs.args, pairs.args[::-1]):
        hidden = _bare(rest)
        negated = isinstance(hidden.op, Logic) and hidden.op.kind == "not" and _bare(hidden.args[0]) is rows
        if negated and _is_any(rows, mask):
            return mask
    return None


def _is_any(rows: Node, mask: Node) -> bool:
    """Whether rows = (Σ_j (1 where the mask is true, else 0) > 0), or the maximum over j equals 1."""
    if not isinstance(rows.op, Compare):
        return False
    first, second = rows.args
    if rows.op.relation == "<" and constant_value(first) == 0:
        over, is_over = second, _is_sum(second)
    elif rows.op.relation == "==" and constant_value(second) == 1:
        over = first
        last = (len(over.shape),)
        is_over = isinstance(over.op, Extreme) and over.op.kind == "max" and over.op.axes == last
    else:
        return False
    if not is_over:
        return False
    ones = over.args[0]
    values = [constant_value(a) for a in ones.args[1:]]
    return isinstance(ones.op, Select) and ones.args[0] is mask and values == [1, 0]


def _is_sum(node: Node) -> bool:
    """Whether a node is the sum of an array over its last axis."""
    op = node.op
    if not isinstance(op, Einsum) or len(op.inputs) != 1:
        return False
    (labels,) = op.inputs
    return len(set(labels)) == len(labels) and op.output == labels[:-1]


def _repeated(node: Node, axes: tuple[int, ...]) -> Node | None:
    """A node before it was broadcast along all axes except these; None for other nodes."""
    if len(node.shape) == len(axes):
        return node
    return node.args[0] if isinstance(node.op, Broadcast) and node.op.axes == axes else None


def _bare(node: Node) -> Node:
    """A node without broadcasts and axes of length 1."""
    while node.op.moves is Moved.IN_ORDER:
        (node,) = node.args
    return node


def _formula(node: Node, index: Index) -> sp.Basic | None:
    """The entry of a node at an index, as an expression of i, j and numbers; None if there is none."""
    op = node.op
    if isinstance(op, Iota):
        return index[0]
    if isinstance(op, Broadcast):
        return _formula(node.args[0], tuple(index[k] for k in op.axes))
    if isinstance(op, Reshape):
        moved = _before_reshape(node, index)
        return None if moved is None else _formula(node.args[0], moved)
    value = constant_value(node)
    if isinstance(value, int) and not isinstance(value, bool):
        return sp.Integer(value)
    if not isinstance(op, (Add, Mul, Compare, Logic)):
        return None
    parts = [_formula(arg, index if arg.shape else ()) for arg in node.args]
    known = [p for p in parts if p is not None]
    return _of_parts(op, known) if len(known) == len(parts) else None


def _before_reshape(node: Node, index: Index) -> Index | None:
    """The index in the argument of a reshape that adds and drops axes of length 1; None for others."""
    (arg,) = node.args
    if len([d for d in arg.shape if d != 1]) != len([d for d in node.shape if d != 1]):
        return None
    places = iter([k for k, size in zip(index, node.shape, strict=True) if size != 1])
    return tuple(sp.Integer(0) if d == 1 else next(places) for d in arg.shape)


def _of_parts(op: Add | Mul | Compare | Logic, known: Sequence[sp.Basic]) -> sp.Basic | None:
    """The formula of an op, from those of its arguments."""
    if isinstance(op, Add):
        return sp.Add(*(s * p for s, p in zip(op.signs, known, strict=True)))
    if isinstance(op, Mul):
        return sp.Mul(*known) if set(op.powers) == {1} else None
    if isinstance(op, Compare):
        return RELATIONS[op.relation](*known) if op.relation in RELATIONS else None
    return {"and": sp.And, "or": sp.Or, "not": sp.Not}[op.kind](*known)
