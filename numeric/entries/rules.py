"""Rules for writing out ops: the nodes of a value's entries, from those of the arguments' entries.

By default an op is evaluated on arrays of `NodeNumber`. The rules here are for ops that NumPy computes by
looking at values which are not known yet, such as an index, and for sums that read better as one sum than as
a chain of additions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from symad.core.arrays import ArrayLike
from symad.core.graph import Node, Op
from symad.core.questions import Array, Values, definition, evaluate, question
from symad.derivatives.implicit import Root
from symad.errors import LoweringError
from symad.evaluation.node_numbers import NodeNumber, as_nodes, as_numbers
from symad.higher_order.scan import Scan
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.random import RandomOp
from symad.ops.arrays.softmax import LogSoftmaxCotangent, LogSoftmaxTangent, Softmax, SoftmaxTangent
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, add, mul, signed_product, signed_sum
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import constant, constant_value, fresh_input
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Compare, Logic, Select, compare, equal, indicator, logic, select
from symad.ops.elementwise.undefined import Undefined
from symad.ops.linalg.eigen import EigenSystem
from symad.ops.sparse.sparse_solve import SparseSolve

NAN = constant(float("nan"))


class Evaluator(Protocol):
    """Writes out the nodes inside of an op: the body of a loop, or a definition."""

    def values(self, outputs: Sequence[Node], point: Mapping[Node, Array]) -> list[Array]:
        """The values of some nodes as arrays of `NodeNumber`, given those of the nodes in ``point``."""


@question
def entries(op: Op, y: Node, values: Values, inside: Evaluator) -> Any:
    """The value of ``y = op(*y.args)`` as an array of `NodeNumber`, from the arguments' arrays."""


@entries.dispatch
def by_evaluation(op: Op, y: Node, values: Values, inside: Evaluator) -> Array:
    """The op's own evaluation, on arrays of `NodeNumber`."""
    return evaluate(op, values)


# ---- elementwise --------------------------------------------------------------------------------


def _add(op: Add, *nodes: Node) -> Node:
    return signed_sum(zip(op.signs, nodes, strict=True))


def _mul(op: Mul, *nodes: Node) -> Node:
    return signed_product(zip(op.powers, nodes, strict=True))


MAKERS: dict[type[ElementwiseOp], Callable[..., Node]] = {
    Add: _add,
    Mul: _mul,
    Pow: lambda op, *nodes: power(*nodes),
    Apply: lambda op, *nodes: apply(op.head, *nodes),
    Compare: lambda op, *nodes: compare(op.relation, *nodes),
    Logic: lambda op, *nodes: logic(op.kind, *nodes),
    Select: lambda op, *nodes: select(*nodes),
}
"""The functions that make elementwise nodes; they fold constants."""


@entries.dispatch
def elementwise_entries(op: ElementwiseOp, y: Node, values: Values, inside: Evaluator) -> Array:
    """The op, applied to each entry."""
    make = MAKERS.get(type(op))
    if make is None:
        return evaluate(op, values)
    columns = [np.broadcast_to(np.asarray(v, dtype=object), y.shape).ravel().tolist() for v in values]
    made = np.empty(len(columns[0]), dtype=object)
    made[:] = [NodeNumber(make(op, *(v.node for v in row))) for row in zip(*columns, strict=True)]
    return made.reshape(y.shape)[()]


@entries.dispatch
def undefined_entries(op: Undefined, y: Node, values: Values, inside: Evaluator) -> Array:
    return by_definition(op, y, values, inside)


# ---- sums of products ---------------------------------------------------------------------------


@entries.dispatch
def einsum_entries(op: Einsum, y: Node, values: Values, inside: Evaluator) -> Array:
    """One sum for each entry, over the products that are not known to be 0."""
    labels = sorted({label for part in op.inputs for label in part})
    kept = [*op.output, *(label for label in labels if label not in op.output)]
    lengths: dict[int, int] = {}
    views = []
    for part, value in zip(op.inputs, values, strict=True):
        array = np.asarray(value, dtype=object)
        lengths.update(zip(part, array.shape, strict=True))
        distinct = [label for label in kept if label in part]
        diagonal = np.einsum(array, list(part), distinct)
        views.append((diagonal, [label in part for label in kept]))
    whole = tuple(lengths[label] for label in kept)
    rank = len(op.output)
    flat = int(np.prod(whole[:rank])), int(np.prod(whole[rank:]))
    columns = [_spread(array, there, whole).reshape(flat).tolist() for array, there in views]
    made = np.empty(len(columns[0]), dtype=object)
    made[:] = [NodeNumber(_sum_of_products(row)) for row in zip(*columns, strict=True)]
    return made.reshape(whole[:rank])[()]


def _spread(array: Array, there: Sequence[bool], whole: tuple[int, ...]) -> np.ndarray:
    """An array broadcast along the axes that it lacks."""
    lengths = iter(array.shape)
    shape = [next(lengths) if flag else 1 for flag in there]
    return np.broadcast_to(array.reshape(shape), whole)


def _sum_of_products(operands: tuple[list[NodeNumber], ...]) -> Node:
    """Σ_k a_k b_k ..., of lists (a_k), (b_k), ..."""
    return add_all(mul(*(factor.node for factor in factors)) for factors in zip(*operands, strict=True))


def add_all(terms: Iterable[Node]) -> Node:
    """A sum that may have no terms."""
    present = [term for term in terms if constant_value(term) != 0]
    return add(*present) if present else constant(0)


# ---- ops that depend on values -------------------------------------------------------------------


def is_known(value: ArrayLike) -> bool:
    """Whether all entries are constants."""
    return all(constant_value(node) is not None for node in as_nodes(value))


@entries.dispatch
def gather_entries(op: Gather, y: Node, values: Values, inside: Evaluator) -> Array:
    """For an unknown index: the row whose number equals it, NaN if there is none."""
    table, indices = np.asarray(values[0], dtype=object), values[1]
    if is_known(indices):
        return evaluate(op, (table, indices))
    rows = table.reshape(len(table), -1)
    made = [[NodeNumber(_chosen(index, column)) for column in rows.T] for index in as_nodes(indices)]
    return np.array(made, dtype=object).reshape(y.shape)[()]


def _chosen(index: Node, column: Iterable[NodeNumber]) -> Node:
    """The entry at an index."""
    found = NAN
    for k, entry in reversed(list(enumerate(column))):
        found = select(equal(index, constant(k)), entry.node, found)
    return found


@entries.dispatch
def scatter_add_entries(op: ScatterAdd, y: Node, values: Values, inside: Evaluator) -> Array:
    """For unknown indices: in each row, the sum of the updates whose index is the row's number."""
    indices, updates = values
    if is_known(indices):
        return evaluate(op, (indices, np.asarray(updates, dtype=object)))
    places = as_nodes(indices)
    rows = np.asarray(updates, dtype=object).reshape(len(places), -1)
    made = [[NodeNumber(_at_place(places, k, column)) for column in rows.T] for k in range(int(op.size))]
    return np.array(made, dtype=object).reshape(y.shape)


def _at_place(places: Sequence[Node], k: int, updates: Iterable[NodeNumber]) -> Node:
    """The sum of the updates at place k."""
    pairs = zip(places, updates, strict=True)
    return add_all(select(equal(place, constant(k)), update.node, constant(0)) for place, update in pairs)


@entries.dispatch
def positions_entries(op: Positions, y: Node, values: Values, inside: Evaluator) -> Array:
    """For unknown indices: NaN if an index is out of the range of its axis."""
    if all(map(is_known, values)):
        return evaluate(op, values)
    whole: Any = 0
    for value, length in zip(values, op.shape, strict=True):
        from_start = np.empty(np.size(value), dtype=object)
        from_start[:] = [NodeNumber(_in_range(node, int(length), op.from_end)) for node in as_nodes(value)]
        whole = whole * int(length) + from_start.reshape(np.shape(value))
    return whole[()]


def _in_range(index: Node, length: int, from_end: bool) -> Node:
    """An index counted from the start; NaN if it is out of range."""
    zero, n = constant(0), constant(length)
    below = NAN
    if from_end:
        below = select(compare("<=", constant(-length), index), add(index, n), NAN)
    above = select(compare("<", index, n), index, NAN)
    return select(compare("<=", zero, index), above, below)


@entries.dispatch
def sorting_positions_entries(op: SortingPositions, y: Node, values: Values, inside: Evaluator) -> Array:
    """Position k holds the i with exactly k entries before it: n² comparisons; ties and NaN as in NumPy."""
    lanes = np.asarray(values[0], dtype=object).reshape(-1, int(y.shape[-1]))
    made = [list(map(NodeNumber, _sorted_positions(as_nodes(lane)))) for lane in lanes]
    return np.array(made, dtype=object).reshape(y.shape)


def _sorted_positions(x: Sequence[Node]) -> list[Node]:
    ranks = []
    for i, mine in enumerate(x):
        before = [logic("not", _less(mine, other)) for other in x[:i]]
        before += [_less(other, mine) for other in x[i + 1 :]]
        ranks.append(add_all(map(indicator, before)))
    places = [constant(k) for k in range(len(x))]
    return [
        add_all(select(equal(rank, k), place, constant(0)) for rank, place in zip(ranks, places, strict=True))
        for k in places
    ]


def _less(a: Node, b: Node) -> Node:
    """a < b, where NaN is larger than all numbers."""
    return logic("or", compare("<", a, b), logic("and", compare("==", a, a), compare("!=", b, b)))


# ---- loops and definitions ----------------------------------------------------------------------


@entries.dispatch
def scan_entries(op: Scan, y: Node, values: Values, inside: Evaluator) -> Array:
    """All steps, one after the other."""
    state, xs, constants = values[0], values[1 : 1 + op.slices], values[1 + op.slices :]
    history = np.empty(y.shape, dtype=object)
    for t in range(len(xs[0])):
        given = (state, *(x[t] for x in xs), *constants)
        (state,) = inside.values(op.body.output_nodes, dict(zip(op.body.input_nodes, given, strict=True)))
        history[t] = state
    return history


@entries.dispatch
def sparse_solve_entries(op: SparseSolve, y: Node, values: Values, inside: Evaluator) -> Array:
    return by_definition(op, y, values, inside)


def by_definition(op: Op, y: Node, values: Values, inside: Evaluator) -> Any:
    """The value of an op's definition on placeholders, since a definition may inspect its arguments' ops."""
    given = tuple(fresh_input(np.shape(value)) for value in values)
    meaning = definition(op, Node.of(op, given))
    return inside.values([meaning], dict(zip(given, values, strict=True)))[0]


# ---- ops that are not written out ----------------------------------------------------------------


PYTHON = "the Python file of lower(f, backend='c')"
"""The form of a function that has everything standalone C lacks; used in error messages."""


REFUSED: dict[type[Op], str] = {
    EigenSystem: "eigenvalues, eigenvectors or singular values, found by an iteration",
    Root: "the solution of an equation, found by an iteration",
    RandomOp: "random numbers, made by integer arithmetic",
}
"""What is computed by ops that cannot be written out."""


@entries.dispatch
def refused_entries(op: EigenSystem | Root | RandomOp, y: Node, values: Values, inside: Evaluator) -> Array:
    what = next(told for family, told in REFUSED.items() if isinstance(op, family))
    name = type(op).__name__
    raise LoweringError(f"{what} (the op {name}) cannot be written out in scalars; {PYTHON} has it")


# ---- slopes of softmax on entries, with sums over all the other entries --------------------------

# With P_i = Σ_{j≠i} p_j and Q_i = Σ_{j≠i} p_j t_j, t_i − Σ p t is t_i P_i − Q_i, and t_i − p_i Σ t is
# t_i P_i − p_i Σ_{j≠i} t_j. Sums over the others come from sums of the entries before and after each, in 3n
# additions.


ZERO = NodeNumber(constant(0))


def _others(a: Array, axes: tuple[int, ...]) -> Array:
    """For each entry the sum of all others along some axes."""
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(np.asarray(a), axes, last)
    rows = moved.reshape(*moved.shape[: moved.ndim - len(axes)], -1)
    made = np.empty_like(rows)
    for place in np.ndindex(rows.shape[:-1]):
        row, before, after = rows[place], [ZERO], ZERO
        for entry in row[:-1]:
            before.append(before[-1] + entry)
        for k in reversed(range(len(row))):
            made[(*place, k)] = before[k] + after
            after = row[k] + after
    found: Array = np.moveaxis(made.reshape(moved.shape), last, axes)
    return found


@entries.dispatch
def softmax_entries(op: Softmax, y: Node, values: Values, inside: Evaluator) -> Array:
    """exp(x)/Σ exp(x); a single share is exp(x − x), which does not overflow."""
    (x,) = map(np.asarray, values)
    whole: Array = x - x if all(x.shape[axis] == 1 for axis in op.axes) else x
    made: Array = evaluate(op, (whole,))
    return made


@entries.dispatch
def softmax_tangent_entries(
    op: SoftmaxTangent | LogSoftmaxTangent, y: Node, values: Values, inside: Evaluator
) -> Array:
    p, t = map(as_numbers, values)
    made: Array = t * _others(p, op.axes) - _others(p * t, op.axes)  # t − Σ p t
    return p * made if isinstance(op, SoftmaxTangent) else made


@entries.dispatch
def log_softmax_cotangent_entries(
    op: LogSoftmaxCotangent, y: Node, values: Values, inside: Evaluator
) -> Array:
    p, t = map(as_numbers, values)
    made: Array = t * _others(p, op.axes) - p * _others(t, op.axes)
    return made
