"""The ops that a saved graph may contain, with their fields and numbers of arguments."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import sympy

import symad.core.dims
from symad import fused, higher_order, ops
from symad.core.arrays import Number
from symad.core.dims import same_dim, size
from symad.core.graph import DIM_FIELDS, SHAPE, Node, Op
from symad.errors import SavingError
from symad.fused.attention_ops import (
    Attention,
    AttentionCotangent,
    AttentionOp,
    AttentionSecond,
    AttentionTangent,
)
from symad.fused.pair_sum import REDUCTIONS, PairOp, PairSum, PairSumCotangent, PairSumTangent, parts_of
from symad.fused.pair_sum import in_part as pairs_in_part
from symad.higher_order.checkpointed_chain import POLICIES, Chain, ChainOp, ChainTangent, Kept
from symad.higher_order.checkpointed_chain_pullback import ChainPullback
from symad.higher_order.scan import Scan
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions, is_name
from symad.ops.arrays.random import FoldIn, Uniform
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.softmax import (
    ExponentialOp,
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input, Source, constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import LOGIC, RELATIONS, Compare, Logic, Select
from symad.ops.linalg.cholesky import Cholesky, Triangle, TriangularSolve
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors
from symad.ops.linalg.solve_det import Determinant, Solve
from symad.saving.saved_limits import check_shape, shortened
from symad.tracing.proxies.wrapped import is_condition

SIZE_FIELDS = {"shape", "size", "count"}
"""Names of fields that are lengths of axes."""

NEVER = {"Seed", "Fresh", "Captured"}
"""Placeholders that exist only while a graph is being transformed."""


def read_op(op_class: type[Op], values: list[Any]) -> Op:
    """An op whose fields have the declared types and allowed values."""
    declared = fields(op_class)
    if len(values) != len(declared):
        raise SavingError(f"{len(values)} fields were given, but the op has {len(declared)}")
    hints = _hints(op_class)
    for field, value in zip(declared, values, strict=True):
        dims_wrong = field.name in DIM_FIELDS and not _are_dims(value)
        if dims_wrong or not _fits(value, hints[field.name]):
            raise SavingError(f"the field {field.name} = {shortened(value)} is not {field.type}")
        if field.name in SIZE_FIELDS:
            check_shape(value if isinstance(value, tuple) else (value,))
    if op_class is Constant:
        return _constant_op(*values)
    return op_class(*values)


def _constant_op(value: Number, kind: str) -> Op:
    op = constant(value).op
    if not isinstance(op, Constant) or op.kind != kind:
        raise SavingError(f"the constant {value!r} is not of the kind {kind!r}")
    return op


def check_op(op: Op, count: int) -> None:
    """Check conditions that the declared types do not express.

    Raises:
        SavingError: a field has a value that the op does not allow, or the op does not take
            ``count`` arguments.
    """
    if not ALLOWED.get(type(op), _anything)(op) or not _takes(op, count):
        raise SavingError(f"{op} of {count} arguments is not allowed")


def check_node(node: Node) -> None:
    """Check a field against the shapes of the arguments, where no shape rule does so.

    Raises:
        SavingError: an argument does not have an axis, sizes do not match, an input has another shape, or a
            condition is a number: proofs take it for 0 or 1, and evaluation any number but 0 for true.
    """
    conditions = node.args if isinstance(node.op, Logic) else node.args[: isinstance(node.op, Select)]
    if not all(map(is_condition, conditions)):
        raise SavingError(f"a condition of {node.op} is a number, not a truth value")
    if type(node.op) in FITTING and not FITTING[type(node.op)](node.op, node):
        raise SavingError(f"{node.op} does not fit arguments of the shapes {[a.shape for a in node.args]}")


@cache
def load_all_ops() -> None:
    """Import symad's own op families, so that a file may use any of them."""
    for package in (ops, higher_order, fused):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def classes() -> dict[str, type[Op]]:
    """The ops that a file may name: all that exist, symad's and those defined by its user."""
    load_all_ops()
    return _by_name(tuple(SHAPE))


@cache
def _by_name(known: tuple[type[Op], ...]) -> dict[str, type[Op]]:
    return {cls.__name__: cls for cls in reversed(known) if cls.__name__ not in NEVER}


@cache
def _hints(op_class: type[Op]) -> dict[str, Any]:
    return get_type_hints(op_class, localns=vars(symad.core.dims))


def _fits(value: Any, hint: Any) -> bool:
    """True if a value has a declared type, as far as the declaration determines it."""
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        if not isinstance(value, tuple):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(_fits(item, parts[0]) for item in value)
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if hint is Any:
        return True
    if hint is int:
        return type(value) is int
    return isinstance(value, hint) if isinstance(hint, type) else True


def _are_dims(value: object) -> bool:
    """True if a value is a dimension or a tuple of them."""
    parts = value if isinstance(value, tuple) else (value,)
    return all(type(p) is int or isinstance(p, sympy.Expr) for p in parts)


def _signs(op: Any) -> bool:
    return set(op.signs) <= {1, -1}


def _powers(op: Any) -> bool:
    return set(op.powers) <= {1, -1}


def _relation(op: Any) -> bool:
    return op.relation in RELATIONS


def _logic(op: Any) -> bool:
    return op.kind in LOGIC


def _extreme(op: Any) -> bool:
    return op.kind in {"max", "min"}


def _array(op: Any) -> bool:
    """True if the dtype is real, and there are as many bytes as the shape needs."""
    dtype = np.dtype(op.dtype)
    count = int(np.prod(op.shape, dtype=object)) if op.shape else 0
    return dtype.kind in "biuf" and min(op.shape) >= 0 and count * dtype.itemsize == len(op.data)


def _dimension(op: Any) -> bool:
    return isinstance(op.expression, sympy.Expr)


def _positions(op: Any) -> bool:
    return is_name(op.what) and len(op.axes) == len(op.shape)


def _einsum(op: Einsum) -> bool:
    """True if output axes are different, and each is an axis of an argument."""
    given = {k for axes in op.inputs for k in axes}
    once = len(set(op.output)) == len(op.output)
    return once and set(op.output) <= given <= set(range(MAX_AXES))


def _slice(op: Slice) -> bool:
    return 0 not in op.step


def _part_of_attention(op: AttentionOp) -> bool:
    """True if the part exists: value and tangent have two, cotangents one for each real argument."""
    if isinstance(op, AttentionSecond):
        return op.part in (0, 1, 2)
    return op.part in (op.real if isinstance(op, AttentionCotangent) else (0, 1))


def _part_of_pairs(op: PairOp) -> bool:
    return op.reduce in REDUCTIONS and op.part in parts_of(op)


def _chain(op: ChainOp) -> bool:
    """True for a distance of at least one step, any number of slots, and no number for other policies."""
    fits = {"every": op.number >= 1, "binomial": op.number >= 0}.get(op.policy, op.number == 0)
    count = len(op.body.input_nodes)
    return op.policy in POLICIES and fits and len(getattr(op, "active", op.body.input_nodes)) == count


def _slices(op: ChainOp | Scan) -> bool:
    """True for the state and at least one array of steps."""
    return 1 <= op.slices < len(op.body.input_nodes)


def _axis_of_argument(op: Concatenate | Stack, node: Node) -> bool:
    return 0 <= op.axis < len(node.args[0].shape) + isinstance(op, Stack)


def _axes_of_argument(op: Extreme | ExponentialOp, node: Node) -> bool:
    return len(set(op.axes)) == len(op.axes) and all(0 <= k < len(node.args[0].shape) for k in op.axes)


def _axes_in_order(op: Broadcast, node: Node) -> bool:
    return all(0 <= a < b for a, b in pairwise((*op.axes, len(node.shape))))


def _as_many(op: Reshape, node: Node) -> bool:
    return bool(same_dim(size(node.args[0].shape), size(node.shape)))


def _reads_what_it_says(op: Chain | ChainTangent | ChainPullback, node: Node) -> bool:
    """True if the kept states are those of this chain, as its definition assumes."""
    count = len(op.body.input_nodes)
    kept = node.args[count] if len(node.args) > count else node
    given, same = node.args[:count], (op.body, op.slices, op.policy, op.number, op.history)
    return kept.args == given and kept is Node.of(Kept(*same), given)


def _reads_its_sums(op: PairSumCotangent, node: Node) -> bool:
    """True if the given sums are those of its points, as its definition assumes."""
    inner, given = node.args[: op.inner], node.args[op.inner + 1 :]
    parts = (0, 1) if op.reduce == "softmax" else (0,)
    return given == tuple(pairs_in_part(op, PairSum, part, inner) for part in parts)


def _as_its_symbol(op: Input, node: Node) -> bool:
    """True if numeric lengths are as the symbol declares; symbolic ones may have been replaced since."""
    shape = getattr(op.symbol, "shape", None)
    if not isinstance(shape, (tuple, sympy.Tuple)):
        return True
    known = ((a, b) for a, b in zip(shape, node.shape, strict=False) if not getattr(a, "free_symbols", None))
    return len(shape) == len(node.shape) and all(same_dim(int(a), b) for a, b in known)


def _takes(op: Op, count: int) -> bool:
    """True if an op accepts this number of arguments, for ops with a fixed number."""
    if isinstance(op, (Add, Mul)):
        return count == len(op.signs if isinstance(op, Add) else op.powers)
    if isinstance(op, Apply):
        return count in getattr(op.head, "nargs", sympy.S.Naturals0)
    if isinstance(op, Einsum):
        return count == len(op.inputs)
    fixed = [number for kind, number in ARGUMENTS if isinstance(op, kind)]
    return not fixed or count == fixed[0]


ARGUMENTS: list[tuple[Any, int]] = [
    (Source, 0),
    ((Broadcast, Reshape, Slice, Pad, Extreme, Product, Triangle, Cholesky, Determinant, Uniform), 1),
    ((SortingPositions, EigenSystem), 1),
    ((EigenValues, EigenVectors), 2),
    ((Pow, Compare, Gather, ScatterAdd, Solve, TriangularSolve, FoldIn), 2),
    (Select, 3),
]
"""The numbers of arguments of some ops; for the others the shape rules determine them."""


def _anything(op: Op) -> bool:
    return True


MAX_AXES = 52
"""Letters for the axes of a contraction in NumPy's notation."""

ALLOWED: dict[type[Op], Callable[..., bool]] = {
    Einsum: _einsum,
    Slice: _slice,
    Add: _signs,
    Mul: _powers,
    Compare: _relation,
    Logic: _logic,
    Extreme: _extreme,
    ArrayConstant: _array,
    Dimension: _dimension,
    Positions: _positions,
    Scan: _slices,
    **dict.fromkeys((Attention, AttentionTangent, AttentionCotangent, AttentionSecond), _part_of_attention),
    **dict.fromkeys((PairSum, PairSumTangent, PairSumCotangent), _part_of_pairs),
    **dict.fromkeys((Kept, Chain, ChainTangent, ChainPullback), lambda op: _chain(op) and _slices(op)),
}
"""Checks of conditions that the declared types do not express."""

FITTING: dict[type[Op], Callable[..., bool]] = {
    Input: _as_its_symbol,
    Reshape: _as_many,
    Broadcast: _axes_in_order,
    **dict.fromkeys((Chain, ChainTangent, ChainPullback), _reads_what_it_says),
    PairSumCotangent: _reads_its_sums,
    **dict.fromkeys((Concatenate, Stack), _axis_of_argument),
    **dict.fromkeys(
        (Extreme, Softmax, LogSoftmax, LogSumExp, SoftmaxTangent, LogSoftmaxTangent, LogSoftmaxCotangent),
        _axes_of_argument,
    ),
}
"""Checks of fields against the arguments' shapes."""
