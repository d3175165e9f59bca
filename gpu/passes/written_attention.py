"""Attention as formulas: softmax(c QKᵀ + bias) V taken apart, and the op that replaces it.

Arrays over all pairs have axes (lead, i, j), with i for queries and j for keys, numbered 0, ..., r − 1.
Number r is the axis over which ⟨q_i, k_j⟩ is summed, or the components of v and o. The axes of q are put in
the order (lead, i, r), those of k and v in the order (lead, j, r).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from symad.core.dims import Shape
from symad.core.expressions import Formula
from symad.core.graph import Node, op_of
from symad.fused.attention import attention
from symad.fused.score_functions import LOOPS, I, J, Parameter, S, parameter_symbol
from symad.gpu.passes.mask_formulas import mask_array, mask_formula
from symad.ops.arrays.reduction import extreme, keep_axes
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.arithmetic import sub as minus
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import Broadcast, Reshape, broadcast_to, reshape
from symad.ops.basic.sources import ArrayConstant, array_constant, constant, constant_value, inputs_in
from symad.ops.elementwise.selection import Select, compare, indicator, select

Axes = tuple[int, ...]


class LabeledNode(NamedTuple):
    """A node with the meaning of its axes."""

    node: Node
    axes: Axes

    def along(self, axes: Axes) -> Node:
        """The node with its axes in this order."""
        return contract([self.axes], axes, self.node)


def outer(node: Node) -> tuple[LabeledNode, LabeledNode] | None:
    """The operands of Σ_d a_id b_jd over pairs (lead, i, j), queries first; None for other nodes."""
    op, rank = node.op, len(node.shape)
    if not isinstance(op, Einsum) or len(node.args) != 2:
        return None
    number = {x: k for k, x in enumerate(op.output)}
    summed = [x for x in op.inputs[0] if x in op.inputs[1] and x not in number]
    if rank < 2 or len(number) != rank or len(summed) != 1:
        return None
    number[summed[0]] = rank
    if not all(x in number for labels in op.inputs for x in labels):
        return None
    sides = [
        LabeledNode(a, tuple(number[x] for x in labels))
        for a, labels in zip(node.args, op.inputs, strict=True)
    ]
    for row, column in (sides, sides[::-1]):
        if _are(row.axes, rank, rank - 2) and _are(column.axes, rank, rank - 1):
            return row, column
    return None


@dataclass(frozen=True)
class PairProduct:
    """Σ_j D_ij b_j or Σ_i D_ij b_i of an array over pairs."""

    node: Node
    operand: LabeledNode
    axes: Axes
    over_keys: bool


def product(node: Node, dense: Node) -> PairProduct | None:
    """A node as a product of an array over pairs with an array of rows; None for other nodes."""
    op, rank = node.op, len(dense.shape)
    if not isinstance(op, Einsum) or len(node.args) != 2 or node.args[0] is node.args[1]:
        return None
    at = node.args.index(dense)
    number = {x: k for k, x in enumerate(op.inputs[at])}
    others = op.inputs[1 - at]
    own = [x for x in others if x not in number]
    if len(number) != rank or len(own) != 1:
        return None
    number[own[0]] = rank
    if not all(x in number for x in op.output):
        return None
    operand = LabeledNode(node.args[1 - at], tuple(number[x] for x in others))
    axes = tuple(number[x] for x in op.output)
    for summed, kept in ((rank - 1, rank - 2), (rank - 2, rank - 1)):
        if _are(operand.axes, rank, summed) and _are(axes, rank, kept):
            return PairProduct(node, operand, axes, summed == rank - 1)
    return None


def _are(axes: Axes, rank: int, own: int) -> bool:
    """Whether axes are those of pairs without one of the last two, plus the axis of components."""
    return len(axes) == rank and {*axes} == {*range(rank - 2), own, rank}


def row_axes(rank: int) -> Axes:
    """The axes of queries."""
    return (*range(rank - 1), rank)


def column_axes(rank: int) -> Axes:
    """The axes of keys and values."""
    return (*range(rank - 2), rank - 1, rank)


@dataclass(frozen=True)
class Scores:
    """The argument of a softmax: [shown:] scale · node [+ bias], where the node is q kᵀ."""

    node: Node
    q: LabeledNode
    k: LabeledNode
    scale: float
    shown: Node | None = None
    bias: Node | None = None

    @property
    def bias_operand(self) -> tuple[Node, Axes] | None:
        """The bias without the axes along which it is broadcast, and its remaining axes."""
        if self.bias is None:
            return None
        if isinstance(self.bias.op, Broadcast):
            return self.bias.args[0], self.bias.op.axes
        return self.bias, tuple(range(len(self.bias.shape)))


def scores_of(node: Node) -> Scores | None:
    """t = [mask:] c q kᵀ [+ bias], taken apart; None for other nodes."""
    shown, bias = None, None
    if isinstance(node.op, Select) and constant_value(node.args[2]) == -np.inf:
        shown, node = node.args[0], node.args[1]
    if isinstance(node.op, Add) and len(node.args) == 2 and set(node.op.signs) == {1}:
        sides = [k for k in (0, 1) if _scaled(node.args[k]) is not None]
        if len(sides) != 1:
            return None
        node, bias = node.args[sides[0]], node.args[1 - sides[0]]
    taken = _scaled(node)
    if taken is None or len(node.shape) > 4:
        return None
    found = outer(taken[0])
    return None if found is None else Scores(taken[0], *found, taken[1], shown, bias)


def _scaled(node: Node) -> tuple[Node, float] | None:
    """A contraction and the number that multiplies it; None for other nodes."""
    if isinstance(node.op, Einsum):
        return (node, 1.0) if len(node.args) == 2 else None
    factor = _factor(node)
    if factor is None:
        return None
    inner, scale = factor
    return (inner, scale) if isinstance(inner.op, Einsum) and len(inner.args) == 2 else None


def _factor(node: Node) -> tuple[Node, float] | None:
    """A node and the known number that multiplies it; None for other nodes."""
    if not isinstance(node.op, Mul) or len(node.args) != 2:
        return None
    for k in (0, 1):
        value, power = constant_value(node.args[1 - k]), node.op.powers
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and value != 0
        if number and power[k] == 1:
            return node.args[k], float(value) ** power[1 - k]
    return None


def mask_of(shown: Node | None, alive: Node | None, shape: Shape) -> Any:
    """The visible pairs: an array (N, M), a formula of positions, a node with its axes, or True.

    None if the mask is none of these.
    """
    known = _mask(shown, alive, shape)
    if known is not None or shown is None:
        return known
    formula = mask_formula(shown, alive)
    return mask_array(shown, alive) if formula is None else formula


def _mask(shown: Node | None, alive: Node | None, shape: Shape) -> Any:
    """The visible pairs, (N, M), or True; None if they are not known, or rows are treated differently."""
    if shown is None:
        return None if alive is not None else True
    rank = len(shape)
    pairs = _constant(shown, (rank - 2, rank - 1))
    if pairs is None:
        return None
    if alive is None:
        return pairs if pairs.any(axis=1).all() else None  # a softmax over no keys is not 0
    rows = _constant(alive, (rank - 2,))
    if rows is None:
        return None
    seen = pairs & rows.reshape(-1, 1)
    return seen if (seen.any(axis=1) == rows.ravel()).all() else None


def _constant(node: Node, axes: tuple[int, ...]) -> Any:
    """A Boolean constant that is broadcast along all axes except these; None for other nodes."""
    if len(node.shape) > len(axes):
        if not isinstance(node.op, Broadcast) or node.op.axes != axes:
            return None
        (node,) = node.args
    shape = node.shape
    while isinstance(node.op, Reshape):
        (node,) = node.args
    known = isinstance(node.op, ArrayConstant) and node.op.array.dtype.kind == "b"
    return op_of(node, ArrayConstant).array.reshape(shape) if known else None


def four(node: Node) -> Node:
    """The node, with two leading axes."""
    return reshape(node, (*(1,) * (4 - len(node.shape)), *node.shape))


def _from_highest(bias: Node, axes: Axes, last: int) -> Node:
    """The bias minus the maximum of each row, which does not change the softmax; rows of −∞ stay.

    In the backward pass the weights are exp(t − L). If a bias of −10⁹ hides a whole row, L would have no
    digits left for log Σ exp. Formulas of positions are not changed.
    """
    if last not in axes:
        return broadcast_to(constant(0), bias.shape)
    place, source = axes.index(last), bias
    while isinstance(source.op, Reshape):
        (source,) = source.args
    if isinstance(source.op, ArrayConstant) and source.op.array.dtype.kind in "fi":
        array = source.op.array.reshape(bias.shape)
        most = array.max(axis=place, keepdims=True)
        return array_constant(array - np.where(np.isfinite(most), most, 0))
    if not inputs_in([bias]):
        return bias
    highest = extreme("max", bias, (place,))
    finite = select(compare("<", constant(-np.inf), highest), highest, constant(0))
    return minus(bias, keep_axes(finite, bias.shape, (place,)))


def op_of_scores(scores: Scores, mask: Any, v: LabeledNode) -> tuple[Node, Node]:
    """(o, L) by the op, with axes (batch, heads, positions, components)."""
    rank = len(scores.node.shape)
    formula, allowed, parameters, arrays = S, sp.true, [], []

    def read(name: str, node: Node, axes: Axes, integer: bool) -> sp.Expr:
        parameters.append(Parameter(name, len(axes), integer))
        arrays.append(node)
        symbol = parameter_symbol(parameters[-1])
        return symbol[tuple(LOOPS[4 - rank + k] for k in axes)] if axes else symbol

    if scores.bias_operand is not None:
        bias, axes = scores.bias_operand
        formula += read("bias", _from_highest(bias, axes, rank - 1), axes, integer=False)
    if isinstance(mask, sp.Basic):
        allowed = mask
    elif isinstance(mask, tuple):
        allowed = sp.Ne(read("seen", indicator(mask[0]), mask[1], integer=True), 0)
    elif mask is not True:
        if (mask == (np.tri(*mask.shape) > 0)).all():
            allowed = J <= I
        else:
            seen = array_constant(mask.astype(np.int64))
            allowed = sp.Ne(read("seen", seen, (rank - 2, rank - 1), integer=True), 0)
    q, k = four(scores.q.along(row_axes(rank))), four(scores.k.along(column_axes(rank)))
    return attention(
        q, k, four(v.along(column_axes(rank))), arrays, Formula(formula), Formula(allowed),
        tuple(parameters), scores.scale,
    )  # fmt: skip
