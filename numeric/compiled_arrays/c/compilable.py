"""Which loops are compiled: those whose steps have known sizes, and only ops that `LoopText` writes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from symad.core.dims import Dim
from symad.core.graph import Graph, Node, topological
from symad.numeric.compiled_arrays.c.blas_calls import has_few_terms, matrix_product
from symad.numeric.compiled_arrays.c.small_systems import is_small_system
from symad.numeric.compiled_arrays.strided_arrays import Ints
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.nest import is_chain
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum, permutes
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Eye

MAX_WRITTEN = 256
"""The elements of a constant array that is written in C. Origin: a bound of the length of the text."""


def has_c_steps(body: Graph) -> bool:
    """Whether the steps of a loop can be written in C. What cannot, or not as fast, NumPy computes."""
    given = set(body.input_nodes)
    inner = (node for node in topological(body.output_nodes) if node not in given)
    return all(_are_known(node.shape) for node in given) and all(map(_is_written, inner))


def _is_written(node: Node) -> bool:
    op = node.op
    if not _are_known(node.shape):
        return False
    if isinstance(op, Slice):
        return _are_known((*op.start, *op.count))
    if isinstance(op, Pad):
        return _are_known(op.start)
    if isinstance(op, Einsum):
        shapes: list[Ints] = [tuple(map(int, a.shape)) for a in node.args]
        product = matrix_product(op.inputs, op.output, shapes)
        return permutes(op) or product is not None or has_few_terms(op.inputs, shapes)
    if is_chain(op) or (isinstance(op, ElementwiseOp) and has_c_form(node)):
        return all(a.shape in ((), node.shape) for a in node.args)
    if isinstance(op, ArrayConstant):
        return (
            op.array.size <= MAX_WRITTEN and op.array.dtype.kind in "fi" and bool(np.isfinite(op.array).all())
        )
    return isinstance(op, (Broadcast, Reshape, Stack, Concatenate, Constant, Eye)) or is_small_system(node)


def _are_known(sizes: Iterable[Dim]) -> bool:
    return all(isinstance(size, int) for size in sizes)
