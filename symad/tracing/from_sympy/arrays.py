"""Array expressions to nodes: SymPy's tensor products, contractions, diagonals and permutations.

A nest of PermuteDims, ArrayContraction and ArrayDiagonal over an ArrayTensorProduct is one
contraction of its factors: the tensor product is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import sympy
from sympy.tensor.array.expressions import (
    ArrayAdd,
    ArrayContraction,
    ArrayDiagonal,
    ArrayElementwiseApplyFunc,
    ArraySymbol,
    ArrayTensorProduct,
    PermuteDims,
    Reshape,
)
from sympy.tensor.array.expressions.array_expressions import (
    ArrayElement,
    OneArray,
    ZeroArray,
)

from symad.core.dims import Dim, as_shape, format_shape, same_dim
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import ShapeError
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.tracing.error_names import check_one_shape, describe
from symad.tracing.from_sympy.matrix_chain_order import is_ones
from symad.tracing.from_sympy.matrix_parts import element_at, index_operands
from symad.tracing.walk import Tracer, lift, operands

SYMBOL = 50
"""The number that is put for a dimension symbol when the order of a contraction is chosen."""


@operands.register(ArraySymbol)
@operands.register(ZeroArray)
@operands.register(OneArray)
def leaf_operands(expression: sympy.Expr, tracer: Tracer) -> tuple[()]:
    return ()


@operands.register(ArrayElement)
def element_operands(expression: ArrayElement, tracer: Tracer) -> tuple[sympy.Expr, ...]:
    return (expression.name, *index_operands(expression.indices, tracer))


@lift.register(ArrayElement)
def element_lift(expression: ArrayElement, args: Nodes, tracer: Tracer) -> Node:
    array, *values = args
    if len(expression.indices) != len(array.shape):
        raise ShapeError(
            f"{describe(expression)} has {len(expression.indices)} indices, but the array has "
            f"{len(array.shape)} axes"
        )
    return element_at(array, expression.indices, tuple(values), tracer)


@lift.register(ArrayAdd)
def add_lift(expression: ArrayAdd, args: Nodes, tracer: Tracer) -> Node:
    check_one_shape(expression, expression.args, args)
    return add(*args)


@operands.register(Reshape)
def reshape_operands(expression: Reshape, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return (expression.expr,)


@lift.register(Reshape)
def reshape_lift(expression: Reshape, args: Nodes, tracer: Tracer) -> Node:
    return reshape(args[0], as_shape(expression.shape))


@operands.register(ArrayElementwiseApplyFunc)
def applyfunc_operands(
    expression: ArrayElementwiseApplyFunc, tracer: Tracer
) -> tuple[sympy.Basic | sympy.Expr, ...]:
    return (expression.expr,)


# ---- contractions -------------------------------------------------------------------------------

_NEST = (ArrayContraction, ArrayDiagonal, PermuteDims)


@operands.register(ArrayTensorProduct)
@operands.register(ArrayContraction)
@operands.register(ArrayDiagonal)
@operands.register(PermuteDims)
def contraction_operands(expression: sympy.Basic, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    while isinstance(expression, _NEST):
        expression = expression.args[0]
    return expression.args if isinstance(expression, ArrayTensorProduct) else (expression,)


@lift.register(ArrayTensorProduct)
@lift.register(ArrayContraction)
@lift.register(ArrayDiagonal)
@lift.register(PermuteDims)
def contraction_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """One label for each axis of the factors; joined labels are contracted or diagonal."""
    scalars = [arg for arg in args if not arg.shape]
    arrays = [arg for arg in args if arg.shape]
    counts = np.cumsum([0, *(len(arg.shape) for arg in arrays)]).tolist()
    names = list(range(counts[-1]))
    output = _output_labels(expression, names)
    labels = [[names[k] for k in range(start, stop)] for start, stop in pairwise(counts)]
    if not arrays:
        return mul(*scalars)
    if len(arrays) == 1 and scalars and is_ones(arrays[0]):
        return broadcast_to(mul(*scalars), arrays[0].shape)  # c·OneArray
    return mul(*scalars, contract_in_order(labels, output, arrays))


def _output_labels(expression: sympy.Basic, names: list[int]) -> list[int]:
    """The labels of the axes of the value; ``names`` is updated for joined labels."""
    nest = []
    while isinstance(expression, _NEST):
        nest.append(expression)
        expression = expression.args[0]
    output = list(names)
    for layer in reversed(nest):
        if isinstance(layer, PermuteDims):
            output = [output[k] for k in layer.permutation.array_form]
            continue
        groups = [[int(k) for k in group] for group in layer.args[1:]]
        joined = [_join(names, output, group) for group in groups]
        taken = {k for group in groups for k in group}
        output = [name for k, name in enumerate(output) if k not in taken]
        if isinstance(layer, ArrayDiagonal):
            output += joined
    return output


def _join(names: list[int], output: list[int], group: Sequence[int]) -> int:
    """Give all axes of a group the label of the first."""
    first = output[group[0]]
    for position in group[1:]:
        old = output[position]
        names[:] = [first if name == old else name for name in names]
        output[:] = [first if name == old else name for name in output]
    return first


def contract_in_order(labels: Sequence[Sequence[int]], output: Sequence[int], args: Sequence[Node]) -> Node:
    """A contraction of many operands as a sequence of contractions of two, in a cheap order."""
    labels, args = [tuple(part) for part in labels], list(args)
    _check_sizes(labels, args)
    if len(args) <= 2:
        return contract(labels, output, *args)
    stand_ins = [np.broadcast_to(0.0, [_weight(dim) for dim in arg.shape]) for arg in args]
    interleaved = [item for pair in zip(stand_ins, labels, strict=True) for item in pair]
    path, _ = np.einsum_path(*interleaved, list(output), optimize="greedy")
    for step in path[1:]:
        chosen = sorted(step)
        rest = [k for k in range(len(args)) if k not in chosen]
        kept = {label for k in rest for label in labels[k]} | set(output)
        joined = [label for k in chosen for label in labels[k]]
        target = output if not rest else [label for label in dict.fromkeys(joined) if label in kept]
        made = contract([labels[k] for k in chosen], target, *[args[k] for k in chosen])
        labels = [*(labels[k] for k in rest), tuple(target)]
        args = [*(args[k] for k in rest), made]
    return args[0]


def _check_sizes(labels: Sequence[Sequence[int]], args: Sequence[Node]) -> None:
    sizes: dict[int, Dim] = {}
    for part, arg in zip(labels, args, strict=True):
        for label, dim in zip(part, arg.shape, strict=True):
            if not same_dim(sizes.setdefault(label, dim), dim):
                shapes = ", ".join(format_shape(a.shape) for a in args)
                raise ShapeError(
                    f"a contraction or diagonal of arrays of shapes {shapes} joins axes of sizes "
                    f"{sizes[label]} and {dim}"
                )


def _weight(dim: Dim) -> int:
    return dim if isinstance(dim, int) else max(int(dim.subs(dict.fromkeys(dim.free_symbols, SYMBOL))), 1)
