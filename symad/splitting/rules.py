"""The states of elementwise ops, contractions and reductions; see `symad.splitting.states`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy

from symad.core.dims import Dim, as_dim
from symad.core.graph import Node, Op, op_of
from symad.facts.functions import fact
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import LogSumExp, Softmax, TangentOp
from symad.ops.arrays.softmax import logsumexp as logsumexp_of
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp, reshape
from symad.ops.basic.sources import Constant, Dimension, Eye, Iota, constant_value, dimension
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Select
from symad.splitting.states import (
    SAME,
    SUM,
    WEIGHTED,
    Length,
    RowPositions,
    Rows,
    Same,
    Split,
    State,
    States,
    Total,
    Weight,
    by_definition,
    has,
    is_multiple,
    splitting,
)


@splitting.dispatch
def general_splitting(op: Op, y: Node, states: States, n: Length) -> Split:
    """The rule that follows from an op's definition; without a definition no rule is known."""
    return by_definition(y, states, n)


# ---- shared by several rules --------------------------------------------------------------------


def is_zero(node: Node) -> bool:
    """True if a node is 0 in every element; it is then a sum, a mean and rows at once."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part.op, ShapingOp) and part.args:
            pending.extend(part.args)
        else:
            value = constant_value(part)
            if value is None or value != 0:
                return False
    return True


def added(args: Sequence[Node], states: Sequence[State]) -> State | None:
    """The state of an op that is linear in all arguments jointly and symmetric in them, such as a sum.

    Σ_p (a_p + b_p) = Σ_p a_p + Σ_p b_p, and the same for rows; a summand that is the same on every part may
    be added to a mean of parts, since its weights add up to 1.
    """
    present = [s for a, s in zip(args, states, strict=True) if not is_zero(a)]
    if any(isinstance(s, RowPositions) for s in present):
        return None
    distinct = list(dict.fromkeys(s for s in present if s != SAME))
    if len(distinct) > 1:
        return None
    if not distinct:
        return SAME
    (state,) = distinct
    if isinstance(state, Total) and state.kind != "sum":
        return state if len(args) == 1 else None
    if SAME not in present:
        return state
    if isinstance(state, Rows):
        return state if state.weight is None else None
    return state if isinstance(state, Total) and state.weight is not None else None


def multiplied(states: Sequence[State]) -> State | None:
    """The state of an op that is linear in each argument, such as an elementwise product, without axes.

    (Σ_p a_p) c = Σ_p (a_p c); a weight may come from one factor.
    """
    moving = [s for s in states if s != SAME]
    if any(not isinstance(s, (Same, Rows, Total)) for s in moving):
        return None
    weights = [w for s in moving if (w := getattr(s, "weight", None)) is not None]
    totals = [s for s in moving if isinstance(s, Total)]
    rows = [s for s in moving if isinstance(s, Rows)]
    if len(weights) > 1 or len(totals) > 1 or (totals and rows) or any(t.kind != "sum" for t in totals):
        return None
    weight = weights[0] if weights else None
    if rows:
        return Rows(rows[0].axis, weight) if len({r.axis for r in rows}) == 1 else None
    return Total("sum", weight) if totals else Same(weight)


def is_length(node: Node, n: Dim) -> bool:
    """True if a node is a multiple of the length n, which is positive on every part."""
    return isinstance(node.op, Dimension) and is_multiple(node.op.expression, n)


# ---- sources ------------------------------------------------------------------------------------


@splitting.dispatch
def dimension_splitting(op: Dimension, y: Node, states: States, n: Length) -> Split:
    """n = Σ_p n_p."""
    if not has(op.expression, n):
        return SAME
    return SUM if is_multiple(op.expression, n) else None


@splitting.dispatch
def iota_splitting(op: Iota, y: Node, states: States, n: Length) -> Split:
    """The position of a row among all rows is its position in its part plus the rows before the part."""
    return RowPositions(0) if is_multiple(op.size, n) else None


@splitting.dispatch
def eye_splitting(op: Eye, y: Node, states: States, n: Length) -> Split:
    """None: a matrix over pairs of rows has no rule."""
    return None


# ---- elementwise --------------------------------------------------------------------------------


@splitting.dispatch
def elementwise_splitting(op: ElementwiseOp, y: Node, states: States, n: Length) -> Split:
    return _row_by_row(states)


def _row_by_row(states: Sequence[State]) -> State | None:
    """`Rows` if all arguments are rows along one axis or the same on every part; else None."""
    rows = {s for s in states if s != SAME}
    alike = len(rows) == 1 and all(isinstance(s, Rows) and s.weight is None for s in rows)
    return next(iter(rows)) if alike else None


@splitting.dispatch
def add_splitting(op: Add, y: Node, states: States, n: Length) -> Split:
    """A sum is linear; max(v_p + c) = max(v_p) + c, and log Σ exp(v_p + c) = log Σ exp(v_p) + c."""
    moving = [k for k, s in enumerate(states) if s != SAME]
    if len(moving) == 1:
        state = states[moving[0]]
        if isinstance(state, Total) and state.kind in ("maximum", "minimum", "logsumexp"):
            return _with_sign(op.signs[moving[0]], state.kind)
    if any(isinstance(s, RowPositions) for s in states):
        return _positions_added(op, states)
    return added(y.args, states)


def _positions_added(op: Add, states: Sequence[State]) -> State | None:
    """The sum of positions: strides are added; rows without a weight and constants do not change them."""
    moving = [(sign, s) for sign, s in zip(op.signs, states, strict=True) if s != SAME]
    if not all(isinstance(s, RowPositions) or (isinstance(s, Rows) and s.weight is None) for _, s in moving):
        return None
    axes = {s.axis for _, s in moving if isinstance(s, (Rows, RowPositions))}
    stride = sum(sign * s.stride for sign, s in moving if isinstance(s, RowPositions))
    return RowPositions(axes.pop(), as_dim(stride)) if len(axes) == 1 else None


def _with_sign(sign: int, kind: str) -> State | None:
    """The state of an extreme, or of log Σ exp, times ±1, plus a value that is the same on every part."""
    turned = kind if sign > 0 else {"maximum": "minimum", "minimum": "maximum"}.get(kind)
    return Total(turned) if turned else None


@splitting.dispatch
def mul_splitting(op: Mul, y: Node, states: States, n: Length) -> Split:
    """A product is linear in each factor; 1/n is (1/n_p) weighted by n_p/n, which turns sums into means."""
    factors: list[State] = []
    for power, arg, state in zip(op.powers, y.args, states, strict=True):
        if power == 1 or state == SAME or (isinstance(state, Rows) and state.weight is None):
            factors.append(state)
        elif is_length(arg, n):
            factors.append(Same(Weight(dimension(n))))
        else:
            return None
    if any(isinstance(s, RowPositions) for s in factors):
        return _positions_multiplied(op, y, factors)
    kinds = {getattr(s, "kind", None) for s in factors}
    if kinds == {"product"}:
        return Total("product")
    return multiplied(factors)


def _positions_multiplied(op: Mul, y: Node, states: Sequence[State]) -> State | None:
    """The product of positions and a known factor, which multiplies the stride."""
    if set(op.powers) != {1}:
        return None
    stride: Dim = 1
    axis = None
    for arg, state in zip(y.args, states, strict=True):
        if isinstance(state, RowPositions) and axis is None:
            stride, axis = stride * state.stride, state.axis
        elif state == SAME and arg.op.literal:
            known = arg.op.expression if isinstance(arg.op, Dimension) else op_of(arg, Constant).value
            stride = stride * known
        else:
            return None
    whole = axis is not None and (isinstance(stride, int) or getattr(stride, "is_integer", False))
    return RowPositions(axis, as_dim(stride)) if axis is not None and whole else None


@splitting.dispatch
def select_splitting(op: Select, y: Node, states: States, n: Length) -> Split:
    """A selection is linear in its branches if the condition depends on the same row."""
    condition, branches = states[0], states[1:]
    if condition != SAME and not (isinstance(condition, Rows) and condition.weight is None):
        return None
    state = added(y.args[1:], branches)
    if condition == SAME or state is None:
        return state
    if state == SAME:
        return condition
    if isinstance(state, Same):  # a scalar with a weight, selected row by row
        return Rows(condition.axis, state.weight) if isinstance(condition, Rows) else None
    return state if isinstance(state, Rows) and replace(state, weight=None) == condition else None


@splitting.dispatch
def apply_splitting(op: Apply, y: Node, states: States, n: Length) -> Split:
    """A function acts row by row; an increasing function preserves extremes; exp log Σ exp = Σ exp."""
    (state, *rest) = states
    if rest or not isinstance(state, Total):
        return _row_by_row(states)
    if state.kind in ("maximum", "minimum"):
        # not log: it may exist for the maximum, but not for that of a part
        return state if fact(op.head).monotone == 1 and fact(op.head).total else None
    if state.kind == "logsumexp" and op.head is sympy.exp:
        return SUM
    return None


# ---- contractions -------------------------------------------------------------------------------


@splitting.dispatch
def einsum_splitting(op: Einsum, y: Node, states: States, n: Length) -> Split:
    """A contraction is linear in each operand; a sum over the split axis is the sum of the parts' sums."""
    split: set[int] = set()
    named: list[State] = []
    for labels, state in zip(op.inputs, states, strict=True):
        split |= {labels[state.axis]} if isinstance(state, Rows) else set()
        named.append(_labeled(state, labels))
    if len(split) > 1:
        return None
    found = multiplied(named)
    if found is None:
        return None
    if split:
        (label,) = split
        if any(
            label in labels and not isinstance(s, Rows) for labels, s in zip(op.inputs, states, strict=True)
        ):
            return None
        if any(labels.count(label) > 1 for labels in op.inputs) or op.output.count(label) > 1:
            return None
        if label not in op.output:
            found = Total("sum", getattr(found, "weight", None))
    return _placed(found, op.output)


def _labeled(state: State, labels: tuple[int, ...]) -> State:
    """The state with labels in place of axes."""
    if isinstance(state, WEIGHTED) and state.weight is not None:
        state = replace(state, weight=state.weight.moved(dict(enumerate(labels))))
    return replace(state, axis=labels[state.axis]) if isinstance(state, Rows) else state


def _placed(state: State, output: tuple[int, ...]) -> State | None:
    """The state with axes in place of labels; None if the output lacks one of them."""
    places = {label: k for k, label in enumerate(output)}
    if isinstance(state, Rows):
        state = replace(state, axis=places[state.axis])
    if not isinstance(state, WEIGHTED) or state.weight is None:
        return state
    moved = state.weight.moved(places)
    return None if moved is None else replace(state, weight=moved)


# ---- reductions ---------------------------------------------------------------------------------


def _reduced(state: State, axes: tuple[int, ...], rank: int, kind: str) -> State | None:
    """The state of a reduction over some axes, without weights."""
    if isinstance(state, Rows) and state.weight is None:
        if state.axis in axes:
            return Total(kind)
        return Rows(state.axis - sum(1 for k in axes if k < state.axis))
    return state if isinstance(state, Total) and state.kind == kind else None


@splitting.dispatch
def extreme_splitting(op: Extreme, y: Node, states: States, n: Length) -> Split:
    """The extreme of the parts' extremes."""
    kind = "maximum" if op.kind == "max" else "minimum"
    return _reduced(states[0], op.axes, len(y.args[0].shape), kind)


@splitting.dispatch
def product_splitting(op: Product, y: Node, states: States, n: Length) -> Split:
    """The product of the parts' products."""
    rank = len(y.args[0].shape)
    return _reduced(states[0], (rank - 1,), rank, "product")


@splitting.dispatch
def logsumexp_splitting(op: LogSumExp, y: Node, states: States, n: Length) -> Split:
    """log Σ_p exp of the parts' values."""
    return _reduced(states[0], op.axes, len(y.args[0].shape), "logsumexp")


@splitting.dispatch
def softmax_splitting(op: Softmax, y: Node, states: States, n: Length) -> Split:
    """Over the split axis, exp(x − L) = exp(x − L_p) exp(L_p − L): weighted rows, as in online softmax."""
    (state,) = states
    if not isinstance(state, Rows) or state.weight is not None:
        return None
    if state.axis not in op.axes:
        return state
    kept = tuple(k for k, dim in enumerate(y.shape) if k not in op.axes and dim != 1)
    total = reshape(logsumexp_of(y.args[0], op.axes), [y.shape[k] for k in kept])
    return Rows(state.axis, Weight(total, log=True, place=kept))


@splitting.dispatch
def softmax_tangent_splitting(op: TangentOp, y: Node, states: States, n: Length) -> Split:
    """The tangent is linear in its second argument, and acts row by row unless its sum runs over the rows."""
    state = multiplied(states)
    return state if isinstance(state, Rows) and state.axis not in op.axes and _same_axes(state, op) else None


def _same_axes(state: Rows, op: TangentOp) -> bool:
    return state.weight is None or not set(state.weight.place) & set(op.axes)
