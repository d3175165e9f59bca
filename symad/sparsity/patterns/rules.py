"""The rules by which linear ops propagate dependencies: `symad.core.questions.sparsity`.

Only linear ops need rules, since detection runs on linearized graphs. An op without a rule is treated by its
definition, and an op without a definition as dense, which is always correct but may have too many entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.graph import Node, Op, topological
from symad.core.questions import definition, evaluate, sparsity
from symad.higher_order.scan import Scan
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.basic.arithmetic import ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.elementwise.selection import Condition, Select
from symad.ops.linalg.cholesky import Triangle, TriangularSolve
from symad.ops.linalg.solve_det import Solve
from symad.sparsity.patterns.dependence import (
    keep_rows,
    link_matrix,
    nothing,
    seeds,
    select_rows,
    stacked,
    through,
    union,
)
from symad.sparsity.patterns.pattern import BoolArray, IntArray, Pattern
from symad.sparsity.patterns.structural_zeros import constant_of, may_be_nonzero, may_be_true

Patterns = Any
"""For each argument its `Pattern`, or None; plum dispatches on a plain class."""

MAX_LINKS = 20_000_000
"""The maximum size up to which a contraction with zeros in its other operands is resolved by element."""


def size_of(node: Node) -> int:
    """The number of elements of a node of known shape."""
    return int(np.prod(node.shape, dtype=np.int64))


def propagate(outputs: list[Node], known: dict[Node, Pattern | None], inputs: int) -> list[Pattern | None]:
    """The dependencies of some nodes, from those of others (None: no dependencies)."""
    found = dict(known)
    for node in topological(outputs):
        if node in found:
            continue
        patterns = tuple([found[arg] for arg in node.args])
        found[node] = sparsity(node.op, node, patterns) if any(p is not None for p in patterns) else None
    return [found[output] for output in outputs]


@sparsity.dispatch
def general_sparsity(op: Op, y: Node, patterns: Patterns) -> Pattern | None:
    """The rule of an op's definition; without one, every element depends on all inputs of all arguments."""
    meaning = definition(op, y)
    inputs = next(p.shape[1] for p in patterns if p is not None)
    if meaning is not None:
        (found,) = propagate([meaning], dict(zip(y.args, patterns, strict=True)), inputs)
        return found
    present = np.unique(np.concatenate([p.indices for p in patterns if p is not None]))
    size = size_of(y)
    indptr = np.arange(size + 1) * len(present)
    return Pattern((size, inputs), indptr, np.tile(present, size))


# ---- elementwise --------------------------------------------------------------------------------


def _spread(pattern: Pattern, arg: Node, y: Node) -> Pattern:
    """The pattern of an argument without axes, repeated for every element."""
    if arg.shape or not y.shape:
        return pattern
    return select_rows(pattern, np.zeros(size_of(y), np.int64))


def _of_any(y: Node, patterns: Patterns) -> Pattern:
    """Each element depends on all inputs on which this element of any argument depends."""
    return union([_spread(p, arg, y) for p, arg in zip(patterns, y.args, strict=True) if p is not None])


@sparsity.dispatch
def elementwise_sparsity(op: ElementwiseOp, y: Node, patterns: Patterns) -> Pattern:
    return _of_any(y, patterns)


@sparsity.dispatch
def mul_sparsity(op: Mul, y: Node, patterns: Patterns) -> Pattern:
    """Rows in which a factor is zero for every input are empty.

    Inside a recurrence, if all elements of the state are seeded at once, several factors may depend on the
    seeds.
    """
    result = _of_any(y, patterns)
    for i, (power, arg) in enumerate(zip(op.powers, y.args, strict=True)):
        if patterns[i] is None and power == 1:
            kept = may_be_nonzero(arg)
            if kept is not None:
                result = keep_rows(result, kept if arg.shape else np.repeat(kept, size_of(y)))
    return result


@sparsity.dispatch
def select_sparsity(op: Select, y: Node, patterns: Patterns) -> Pattern:
    """Each branch only where the condition may select it."""
    condition = y.args[0]
    chosen = []
    for pattern, arg, kept in zip(patterns[1:], y.args[1:], may_be_true(condition), strict=True):
        if pattern is not None:
            if kept is not None and not condition.shape:
                kept = np.repeat(kept, size_of(y))
            chosen.append(keep_rows(_spread(pattern, arg, y), kept))
    return union(chosen) if chosen else _constant(y, patterns)


@sparsity.dispatch
def condition_sparsity(op: Condition, y: Node, patterns: Patterns) -> Pattern:
    """A truth value has no derivative."""
    return _constant(y, patterns)


def _constant(y: Node, patterns: Patterns) -> Pattern:
    return nothing(size_of(y), next(p.shape[1] for p in patterns if p is not None))


# ---- moving elements ----------------------------------------------------------------------------


@sparsity.dispatch
def shaping_sparsity(op: ShapingOp, y: Node, patterns: Patterns) -> Pattern:
    """The op itself, applied to the numbers of the rows; 0 is the number of added elements."""
    present = [p for p in patterns if p is not None]
    numbers, first = [], 1
    for arg, pattern in zip(y.args, patterns, strict=True):
        count = size_of(arg)
        own = np.arange(first, first + count) if pattern is not None else np.zeros(count, np.int64)
        numbers.append(own.reshape(arg.shape))
        first += count if pattern is not None else 0
    rows = np.asarray(evaluate(op, tuple(numbers))).ravel() - 1
    return select_rows(stacked(present), rows)


@sparsity.dispatch
def gather_sparsity(op: Gather, y: Node, patterns: Patterns) -> Pattern:
    """The rows gathered; for unknown indices any row of the table."""
    if patterns[0] is None:
        return _constant(y, patterns)
    table, indices = y.args
    numbers = np.arange(size_of(table)).reshape(table.shape)
    chosen = constant_of(indices)
    if chosen is not None:
        return select_rows(patterns[0], evaluate(op, (numbers, chosen)).ravel())
    width = size_of(table) // max(1, int(table.shape[0]))
    column = np.arange(size_of(table)) % max(1, width)
    link = link_matrix((width, size_of(table)), column, numbers.ravel())
    return select_rows(through(link, patterns[0]), np.arange(size_of(y)) % max(1, width))


@sparsity.dispatch
def scatter_add_sparsity(op: ScatterAdd, y: Node, patterns: Patterns) -> Pattern:
    """Each row of the result unites the rows added to it; unknown indices reach every row."""
    if patterns[1] is None:
        return _constant(y, patterns)
    indices, updates = y.args
    width = size_of(y) // max(1, int(y.shape[0]))
    source = np.arange(size_of(updates))
    column = source % max(1, width)
    chosen = constant_of(indices)
    if chosen is not None:
        target = np.repeat(np.asarray(chosen, np.int64).ravel(), width) * width + column
        return through(link_matrix((size_of(y), size_of(updates)), target, source), patterns[1])
    link = link_matrix((width, size_of(updates)), column, source)
    return select_rows(through(link, patterns[1]), np.arange(size_of(y)) % max(1, width))


# ---- contractions -------------------------------------------------------------------------------


@sparsity.dispatch
def einsum_sparsity(op: Einsum, y: Node, patterns: Patterns) -> Pattern:
    """Dependence on the elements of the linear operand with a coefficient ≠ 0.

    Inside a recurrence, if all elements of the state are seeded at once, several operands may depend on the
    seeds.
    """
    moving = [i for i, p in enumerate(patterns) if p is not None]
    return union([_of_operand(op, y, patterns[k], k) for k in moving])


def _of_operand(op: Einsum, y: Node, pattern: Pattern, k: int) -> Pattern:
    dims = {
        label: int(dim)
        for labels, arg in zip(op.inputs, y.args, strict=True)
        for label, dim in zip(labels, arg.shape, strict=True)
    }
    others = [i for i in range(len(y.args)) if i != k]
    supports = {i: may_be_nonzero(y.args[i]) for i in others}
    known = {i: s.reshape(y.args[i].shape) for i, s in supports.items() if s is not None}
    own, out = op.inputs[k], op.output
    return _contracted(pattern, own, out, dims, [(op.inputs[i], known[i]) for i in known])


Labels = tuple[int, ...]


def _contracted(
    pattern: Pattern,
    own: Labels,
    out: Labels,
    dims: dict[int, int],
    coefficients: list[tuple[Labels, Any]],
) -> Pattern:
    """Dependencies of y[out] = Σ x[own] Π coefficients, where the coefficients are not zero."""
    grid = _label_grid(own, out, dims, coefficients)
    wanted = _count(out, dims)
    if grid is not None:
        link = link_matrix((wanted, pattern.shape[0]), _flat(grid, out, dims), _flat(grid, own, dims))
        return through(link, pattern)
    # Any coefficient may be nonzero: unite over the labels that are summed, then repeat.
    shared = tuple(label for label in dict.fromkeys(own) if label in out)
    inner = _full_grid(tuple(dict.fromkeys(own)), dims)
    link = link_matrix(
        (_count(shared, dims), pattern.shape[0]), _flat(inner, shared, dims), _flat(inner, own, dims)
    )
    united = through(link, pattern)
    return select_rows(united, _flat(_full_grid(out, dims), shared, dims))


def _label_grid(
    own: Labels, out: Labels, dims: dict[int, int], coefficients: list[tuple[Labels, Any]]
) -> dict[int, IntArray] | None:
    """Label values at which the known coefficients are not zero; None if there are too many."""
    labels = tuple(sorted({label for part, _ in coefficients for label in part}))
    rest = tuple(label for label in dict.fromkeys(own + out) if label not in labels)
    if not coefficients or _count(labels, dims) > MAX_LINKS:
        return None
    subscripts: list[Any] = []
    for part, support in coefficients:
        subscripts += [support.astype(np.float32), list(part)]
    there = np.nonzero(np.einsum(*subscripts, list(labels)))
    found = len(there[0]) if labels else 1
    if found * _count(rest, dims) > MAX_LINKS:
        return None
    outer = _full_grid(rest, dims)
    repeated = {label: np.tile(value, found) for label, value in outer.items()}
    grid = {label: np.repeat(value, _count(rest, dims)) for label, value in zip(labels, there, strict=True)}
    return {**grid, **repeated}


def _count(labels: Labels, dims: dict[int, int]) -> int:
    return int(np.prod([dims[label] for label in labels], dtype=np.int64))


def _full_grid(labels: Labels, dims: dict[int, int]) -> dict[int, IntArray]:
    """All values of some labels, flat, the last one fastest."""
    if not labels:
        return {}
    values = np.indices([dims[label] for label in labels]).reshape(len(labels), -1)
    return dict(zip(labels, values, strict=True))


def _flat(grid: dict[int, IntArray], labels: Labels, dims: dict[int, int]) -> IntArray:
    """Row-major positions in an array with these labels (which may repeat)."""
    length = len(next(iter(grid.values()))) if grid else 1
    position = np.zeros(length, np.int64)
    for label in labels:
        position = position * dims[label] + grid[label]
    return position


# ---- linear algebra -----------------------------------------------------------------------------


def _matrix_product(pattern: Pattern, b: Node, kept: BoolArray) -> Pattern:
    """Dependencies of a matrix (n, n), with zeros where not ``kept``, times b (..., n, k)."""
    rank = len(b.shape)
    lead, row, summed, column = tuple(range(rank - 2)), rank - 2, rank, rank - 1
    dims = dict(enumerate(map(int, b.shape))) | {summed: int(b.shape[-2])}
    own, out = (*lead, summed, column), (*lead, row, column)
    return _contracted(pattern, own, out, dims, [((row, summed), kept)])


@sparsity.dispatch
def solve_sparsity(op: Solve, y: Node, patterns: Patterns) -> Pattern:
    n = int(y.shape[-2])
    return _matrix_product(patterns[1], y, np.ones((n, n), bool))


@sparsity.dispatch
def triangular_solve_sparsity(op: TriangularSolve, y: Node, patterns: Patterns) -> Pattern:
    full = np.ones((int(y.shape[-2]),) * 2, bool)
    return _matrix_product(patterns[1], y, np.tril(full) if op.lower else np.triu(full))


@sparsity.dispatch
def triangle_sparsity(op: Triangle, y: Node, patterns: Patterns) -> Pattern:
    kept = np.tril(np.ones(y.shape[-2:], bool), 0 if op.diagonal else -1)
    return keep_rows(patterns[0], np.broadcast_to(kept, y.shape).ravel())


# ---- recurrences --------------------------------------------------------------------------------


@sparsity.dispatch
def scan_sparsity(op: Scan, y: Node, patterns: Patterns) -> Pattern:
    """D(c_t) = L_c D(c_{t−1}) ∪ L_x D(x_t) ∪ L_k D(k), the links L of the body found once."""
    local = op.body.input_nodes
    linked = [k for k, p in enumerate(patterns) if p is not None]
    if 0 not in linked:
        linked.insert(0, 0)  # the state depends on the seeds even if the first one does not
    widths = [size_of(local[k]) for k in linked]
    starts = np.concatenate([[0], np.cumsum(widths)])
    known: dict[Node, Pattern | None] = {node: None for node in local}
    for k, first, width in zip(linked, starts.tolist(), widths, strict=False):
        known[local[k]] = seeds(width, int(starts[-1]), first)
    (link,) = propagate(list(op.body.output_nodes), known, int(starts[-1]))
    inputs = next(p.shape[1] for p in patterns if p is not None)
    size = widths[0]
    if link is None:
        return nothing(size_of(y), inputs)
    whole = link.to_scipy()
    slices = range(1, 1 + op.slices)
    state = patterns[0] if patterns[0] is not None else nothing(size, inputs)
    history = []
    for t in range(int(y.shape[0])):
        below = [state]
        for k, width in zip(linked[1:], widths[1:], strict=True):
            if k in slices:
                below.append(select_rows(patterns[k], np.arange(t * width, (t + 1) * width)))
            else:
                below.append(patterns[k])
        state = through(whole, stacked(below))
        history.append(state)
    return stacked(history)
