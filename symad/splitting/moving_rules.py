"""The states of ops that move elements, of matrix ops, recurrences and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import sympy

from symad.core.dims import Dim, same_dim, size, times
from symad.core.graph import Node
from symad.derivatives.implicit import Root
from symad.higher_order.affine_scan import AffineScan
from symad.higher_order.checkpointed_chain import ChainOp, ChainTangent, Kept, arguments, plain
from symad.higher_order.scan import Scan
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.random import FoldIn, Uniform
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import fresh_input
from symad.ops.linalg.cholesky import Triangle, TriangularSolve
from symad.ops.linalg.solve_det import MatrixOp, Solve
from symad.ops.sparse.csr import CompressedRows
from symad.splitting.rules import added, is_zero, multiplied
from symad.splitting.states import (
    SAME,
    WEIGHTED,
    Length,
    RowPositions,
    Rows,
    Same,
    Split,
    State,
    States,
    Total,
    axis_after_reshape,
    has,
    split_axes,
    splitting,
    state_by,
    states_of,
)
from symad.transforms.tangents import push


def moved(state: State, to: Mapping[int, int]) -> State | None:
    """The state after axes have moved; None if an axis that it names is removed."""
    if isinstance(state, WEIGHTED) and state.weight is not None:
        kept = state.weight.moved(to)
        if kept is None:
            return None
        state = replace(state, weight=kept)
    if isinstance(state, (Rows, RowPositions)):
        return replace(state, axis=to[state.axis]) if state.axis in to else None
    return state


# ---- moving elements ----------------------------------------------------------------------------


@splitting.dispatch
def broadcast_splitting(op: Broadcast, y: Node, states: States, n: Length) -> Split:
    """The state with its axes moved; a value repeated along the split axis becomes `Rows`."""
    state = moved(states[0], dict(enumerate(op.axes)))
    new = [k for k in split_axes(op.shape, n) if k not in op.axes]
    if not new:
        return state
    return Rows(new[0], state.weight) if isinstance(state, Same) and len(new) == 1 else None


@splitting.dispatch
def reshape_splitting(op: Reshape, y: Node, states: States, n: Length) -> Split:
    """Rows stay rows if the number of elements before their axis does not change."""
    before, state = y.args[0].shape, states[0]
    to: dict[int, int] = {}
    for axis in range(len(before)):
        found = axis_after_reshape(before, op.shape, axis)
        if found is not None:
            to[axis] = found
    if isinstance(state, (Rows, RowPositions)):
        lead = axis_after_reshape(before, op.shape, state.axis, exactly=False)
        if lead is None:
            return None
        to[state.axis] = lead
    return moved(state, to)


def _kept_axes(whole: Callable[[int], bool], rank: int) -> dict[int, int]:
    return {k: k for k in range(rank) if whole(k)}


@splitting.dispatch
def slice_splitting(op: Slice, y: Node, states: States, n: Length) -> Split:
    """A slice of every row keeps the state; a slice along the split axis has no rule."""
    before = y.args[0].shape
    if any(has(start, n) for start in op.start):
        return None

    def whole(k: int) -> bool:
        return op.start[k] == 0 and op.step[k] == 1 and same_dim(op.count[k], before[k])

    return moved(states[0], _kept_axes(whole, len(before)))


@splitting.dispatch
def pad_splitting(op: Pad, y: Node, states: States, n: Length) -> Split:
    """Padding of every row keeps the state, except log Σ exp: its value for zeros is not zero."""
    before = y.args[0].shape
    if isinstance(states[0], RowPositions) or getattr(states[0], "kind", "") == "logsumexp":
        return None
    if any(has(start, n) for start in op.start):
        return None

    def whole(k: int) -> bool:
        return op.start[k] == 0 and op.step[k] == 1 and same_dim(op.shape[k], before[k])

    return moved(states[0], _kept_axes(whole, len(before)))


@splitting.dispatch
def concatenate_splitting(op: Concatenate, y: Node, states: States, n: Length) -> Split:
    """The common state of the arguments; None along the axis of rows, where parts would be interleaved."""
    state = _together(y, states)
    gone = state is not None and not _keeps(state, op.axis)
    return None if gone else state


def _together(y: Node, states: tuple[State, ...]) -> State | None:
    """The state of several values joined in one array."""
    if len(set(states)) == 1 and not isinstance(states[0], RowPositions):
        return states[0]
    return added(y.args, states)


def _keeps(state: State, axis: int) -> bool:
    weight = getattr(state, "weight", None)
    return not (isinstance(state, Rows) and state.axis == axis) and (
        weight is None or axis not in weight.place
    )


@splitting.dispatch
def stack_splitting(op: Stack, y: Node, states: States, n: Length) -> Split:
    """The common state of the arguments, with axes behind the new one moved by one."""
    state = _together(y, states)
    rank = len(y.shape) - 1
    return None if state is None else moved(state, {k: k + (k >= op.axis) for k in range(rank)})


@splitting.dispatch
def gather_splitting(op: Gather, y: Node, states: States, n: Length) -> Split:
    """The state of the indices if the table is the same on every part, or of the table if the indices are."""
    (table, indices), lead = states, len(y.args[1].shape)
    if table == SAME:
        return indices if isinstance(indices, Rows) and indices.weight is None else None
    if isinstance(indices, RowPositions):  # the concatenated tables of all rows
        rows = isinstance(table, Rows) and table.axis == 0 and _reads(indices, y.args[0].shape[0], n)
        to = {k: lead + k - 1 for k in range(1, len(y.args[0].shape))}
        return moved(table, {0: indices.axis, **to}) if rows else None
    if indices != SAME:
        return None
    return moved(table, {k: lead + k - 1 for k in range(1, len(y.args[0].shape))})


def _reads(positions: RowPositions, length: Dim, n: Dim) -> bool:
    """True if the positions advance with the rows through an axis: length = n stride."""
    return same_dim(length, times(n, positions.stride))


@splitting.dispatch
def scatter_add_splitting(op: ScatterAdd, y: Node, states: States, n: Length) -> Split:
    """Rows that are added into one table are a sum: the tables of the parts add up."""
    (indices, updates), lead = states, len(y.args[0].shape)
    to = {k: 1 + k - lead for k in range(lead, len(y.args[1].shape))}
    if indices == SAME:
        return moved(updates, to)
    if isinstance(indices, RowPositions):
        rows = isinstance(updates, Rows) and updates.axis == 0 and indices.axis == 0
        return moved(updates, {0: 0, **to}) if rows and _reads(indices, op.size, n) else None
    if not isinstance(indices, Rows) or indices.weight is not None:
        return None
    if has(op.size, n) or not isinstance(updates, (Rows, Same)):
        return None
    if isinstance(updates, Rows) and updates.axis != indices.axis:
        return None
    return moved(Total("sum", updates.weight), to)


@splitting.dispatch
def positions_splitting(op: Positions, y: Node, states: States, n: Length) -> Split:
    """The number of a row among all rows combined with further indices, whose sizes multiply the stride."""
    axes: set[int] = set()
    stride: Dim = 0
    for k, (arg, state) in enumerate(zip(y.args, states, strict=True)):
        counts = isinstance(state, RowPositions)
        if has(op.shape[k], n) != counts or (k > 0 and counts):
            return None
        if isinstance(state, (Rows, RowPositions)):
            if getattr(state, "weight", None) is not None:
                return None
            axes.add(state.axis + len(y.shape) - len(arg.shape))
        elif state != SAME:
            return None
        if isinstance(state, RowPositions):
            stride = times(state.stride, size(op.shape[k + 1 :]))
    if len(axes) != 1:
        return None
    return RowPositions(axes.pop(), stride) if stride != 0 else Rows(axes.pop())


@splitting.dispatch
def sorting_positions_splitting(op: SortingPositions, y: Node, states: States, n: Length) -> Split:
    """`Rows` along any axis but the last: each line of the last axis is sorted separately."""
    return _lines(states, len(y.shape) - 1)


def _lines(states: tuple[State, ...], rank: int) -> State | None:
    """The state `Rows` along one of the first ``rank`` axes, which are a stack; None for other states."""
    distinct = {s for s in states if s != SAME}
    good = len(distinct) == 1 and all(
        isinstance(s, Rows) and s.weight is None and s.axis < rank for s in distinct
    )
    return next(iter(distinct)) if good else None


@splitting.dispatch
def compressed_rows_splitting(op: CompressedRows, y: Node, states: States, n: Length) -> Split:
    """The state of a sum: a sparse matrix is linear in its entries."""
    state = added(y.args, states)
    return state if isinstance(state, (Same, Total)) and _is_sum(state) else None


def _is_sum(state: State) -> bool:
    weight = getattr(state, "weight", None)
    return getattr(state, "kind", "sum") == "sum" and (weight is None or not weight.place)


# ---- matrices -----------------------------------------------------------------------------------


@splitting.dispatch
def matrix_splitting(op: MatrixOp, y: Node, states: States, n: Length) -> Split:
    """`Rows` along an axis of the stack: each matrix is processed separately."""
    return _lines(states, min(rank for arg in y.args if (rank := len(arg.shape)) >= 2) - 2)


def _in_columns(y: Node, states: tuple[State, ...], n: sympy.Symbol) -> State | None:
    """The state of the right-hand sides: a solution is linear in them, column by column."""
    matrix, right = states
    rank = len(y.shape)
    if matrix != SAME:
        return _lines(states, rank - 2)
    if isinstance(right, Rows) and right.axis == rank - 2:
        return None
    weight = getattr(right, "weight", None)
    placed = weight is not None and rank - 2 in weight.place
    return None if placed or getattr(right, "kind", "sum") != "sum" else right


@splitting.dispatch
def solve_splitting(op: Solve, y: Node, states: States, n: Length) -> Split:
    return _in_columns(y, states, n)


@splitting.dispatch
def triangular_solve_splitting(op: TriangularSolve, y: Node, states: States, n: Length) -> Split:
    return _in_columns(y, states, n)


@splitting.dispatch
def triangle_splitting(op: Triangle, y: Node, states: States, n: Length) -> Split:
    """Sums keep their state, since a triangle is linear; `Rows` only along an axis of the stack."""
    (state,) = states
    if isinstance(state, Rows):
        return _lines(states, len(y.shape) - 2)
    return state if getattr(state, "kind", "sum") == "sum" else None


# ---- recurrences and roots ----------------------------------------------------------------------


@splitting.dispatch
def scan_splitting(op: Scan, y: Node, states: States, n: Length) -> Split:
    return None if has(y.shape[0], n) else _history(op, y, states, n)


@splitting.dispatch
def kept_splitting(op: Kept, y: Node, states: States, n: Length) -> Split:
    """The state of a recurrence's carried values, of which some are kept."""
    return None if has(y.shape[0], n) else _history(op, y, states, n)


@splitting.dispatch
def chain_tangent_splitting(op: ChainTangent, y: Node, states: States, n: Length) -> Split:
    """Uses the tangent of the chain's definition, a `Scan`: a recurrence of c_dot beside the states c.

    The definition, one recurrence of (c, c_dot), would concatenate the rows of both.
    """
    points = tuple([fresh_input(a.shape) for a in y.args])
    args, _, dots = arguments(op, points)
    marked = [p for p, flag in zip(args, op.active, strict=True) if flag]
    (tangent,) = push([plain(op, args)], dict(zip(marked, dots, strict=True)))
    if not isinstance(tangent, Node):  # the body does not depend on the tangents
        return SAME
    return state_by(tangent, dict(zip(points, states, strict=True)), n)


def _history(op: Scan | ChainOp, y: Node, states: tuple[State, ...], n: sympy.Symbol) -> State | None:
    """`Rows` if the carried value is `Rows` in every step: initially, and after the body."""
    inner = [_in_step(s) if 1 <= k <= op.slices else s for k, s in enumerate(states)]
    if any(s is None for s in inner):
        return None
    for first in _first_states(y, inner):
        known = dict(zip(op.body.input_nodes, [first, *(s for s in inner[1:] if s is not None)], strict=True))
        (output,) = op.body.output_nodes
        if states_of([output], known, n)[output] == first:
            return moved(first, {k: k + 1 for k in range(len(y.shape) - 1)})
    return None


def _first_states(y: Node, inner: Sequence[State | None]) -> list[Rows]:
    """The possible states of the carried value in every step: its initial one; zeros may be weighted rows."""
    first = inner[0]
    if not isinstance(first, Rows):
        return []
    others = [Rows(first.axis, s.weight) for s in inner[1:] if isinstance(s, Rows) and s.weight is not None]
    return [first, *(dict.fromkeys(others) if is_zero(y.args[0]) else ())]


def _in_step(state: State) -> State | None:
    """The state of one step's input, from that of all steps; None if the axis of steps is split."""
    if isinstance(state, (Rows, RowPositions)) and state.axis == 0:
        return None
    weight = getattr(state, "weight", None)
    last = max([getattr(state, "axis", 0), *(weight.place if weight is not None else ())])
    return moved(state, {k: k - 1 for k in range(1, last + 1)})


@splitting.dispatch
def affine_scan_splitting(op: AffineScan, y: Node, states: States, n: Length) -> Split:
    """The state of the summand, in which the recurrence is linear; `Rows` along any axis except time."""
    rank = len(y.shape)
    if states[0] == SAME:
        state = states[1]
        last = {0, rank - 2} if op.matrices else {0}
        weight = getattr(state, "weight", None)
        touched = {state.axis} if isinstance(state, Rows) else set()
        touched |= set(weight.place) if weight is not None else set()
        return None if touched & last or getattr(state, "kind", "sum") != "sum" else state
    both = multiplied(states)
    free = range(1, rank - 2 if op.matrices else rank)
    return both if isinstance(both, Rows) and both.axis in free and both.weight is None else None


@splitting.dispatch
def root_splitting(op: Root, y: Node, states: States, n: Length) -> Split:
    """`Rows` along the batch axis, whose problems are independent."""
    shared = all(s == SAME or (flag and s == Rows(0)) for s, flag in zip(states, op.batched, strict=True))
    return Rows(0) if shared else None


# ---- random numbers -----------------------------------------------------------------------------


@splitting.dispatch
def uniform_splitting(op: Uniform, y: Node, states: States, n: Length) -> Split:
    """`Rows` along the axes of the keys; numbers of one stream depend on their position in it."""
    return None if any(has(d, n) for d in op.shape) else _lines(states, len(y.args[0].shape) - 1)


@splitting.dispatch
def fold_in_splitting(op: FoldIn, y: Node, states: States, n: Length) -> Split:
    """`Rows` along the axes of the keys and numbers."""
    return _lines(states, len(y.shape) - 1)
