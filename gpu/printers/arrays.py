"""Ops that are written differently in CuPy than in NumPy.

Numbers known on the host (dimensions and arithmetic on them) stay Python numbers. Every other value is an
array on the device, including scalars, and no statement copies one back.
"""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import numpy as np
import sympy

from symad.core.graph import Graph
from symad.core.questions import definition
from symad.errors import LoweringError
from symad.gpu.cupy_library import HALVES, OnDevice, type_text
from symad.gpu.passes.fusion import fuse
from symad.gpu.passes.integers import WHOLE_HEADS
from symad.gpu.passes.shared_products import Copied
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.printers.products import product_helper
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.higher_order.affine_scan import AffineScan
from symad.numeric.fusion.nest import Nest, total_of
from symad.numeric.numpy_arrays.expressions import defined
from symad.numeric.passes import prepare
from symad.numeric.program.expressions import Compute, literal
from symad.numeric.targets.linear_algebra import write_call
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.sizes import dimension
from symad.numeric.targets.target import Level, Text, Texts
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Dimension, Iota
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.sparse.csr import CompressedRows
from symad.ops.sparse.sparse_solve import SparseSolve
from symad.sympy_functions.probability import gammainc, gammaincc, log_ndtr, normal_excess, normal_ratio

Products: TypeAlias = MatrixPowerDerivative | Adjugate | AdjugateTangent
"""Ops whose helpers multiply matrices."""

MAX_EXACT = 1 << 16
"""Ranges of at most this many numbers are computed once for each device, not in every call.

Origin: it bounds the memory that stays on the device, 512 KiB; not measured on a device.
"""

SPECIAL: dict[type[sympy.Basic], str] = {
    sympy.gamma: "gamma({})",
    sympy.digamma: "digamma({})",
    sympy.polygamma: "polygamma({})",
    sympy.beta: "beta({})",
    sympy.erfinv: "erfinv({})",
    sympy.erfcinv: "erfcinv({})",
    sympy.zeta: "zeta({})",
    sympy.E1: "expn(1, {})",
    gammainc: "gammainc({})",
    gammaincc: "gammaincc({})",
    log_ndtr: "log_ndtr({})",
}
"""Functions of cupyx.scipy.special, for heads that no kernel body can call."""

NORMAL: dict[type[sympy.Basic], tuple[str, ...]] = {
    normal_ratio: ("_normal_ratio",),
    normal_excess: ("_normal_ratio", "_normal_excess"),
}
"""The helpers of some heads, each with the function itself last."""

BESSEL: dict[type[sympy.Basic], dict[int, str]] = {
    sympy.besselj: {0: "j0", 1: "j1"},
    sympy.bessely: {0: "y0", 1: "y1"},
    sympy.besseli: {0: "i0", 1: "i1"},
}


@write.dispatch
def nest_cupy(op: Nest, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    """The call of the kernel of a chain, whose results `nest_lines` names, or of one sum of a chain."""
    types = [*map(writer.kind, node.args)]
    arrays = ", ".join(writer.on_device(node.args))
    total = total_of(op)
    if total is None:
        return Text(f"{writer.kernels.elementwise(op.body, types)}({arrays})")
    every = len(op.axes) == len(op.full)
    return Text(f"{writer.kernels.sum(op, total, types)}({arrays}, axis={None if every else op.axes})")


@write.dispatch
def dimension_cupy(
    op: Dimension, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    return dimension(op.expression, writer)


@write.dispatch
def mul_cupy(op: Mul, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    over, under = (
        [f.inside(Level.ATOM) for p, f in zip(op.powers, args, strict=True) if p == q] for q in (1, -1)
    )
    top = "*".join(over) or "1"
    if not under:
        return Text(top, Level.PRODUCT)
    return Text(f"{top}/{under[0]}" if len(under) == 1 else f"{top}/({'*'.join(under)})", Level.PRODUCT)


@write.dispatch
def pow_cupy(op: Pow, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    return Text(f"{args[0].inside(Level.ATOM)}**{args[1].inside(Level.ATOM)}", Level.POWER)


@write.dispatch
def apply_cupy(op: Apply, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    """A function that only cupyx.scipy.special has; its arguments must be arrays of one dtype."""
    if op.head in WHOLE_HEADS:  # functions of integers, which are not computed in kernels
        name = f"cp.{WHOLE_HEADS[op.head]}"
        texts = [a.text for a in args]
        return Text(
            reduce(lambda a, b: f"{name}({a}, {b})", texts) if len(args) > 1 else f"{name}({texts[0]})"
        )
    writer.imports.add("import cupyx.scipy.special")
    dtype = f"cp.{writer.accumulator}"
    arrays = [f"cp.asarray({a}, dtype={dtype})" for a in args]
    if op.head in NORMAL:
        for helper in NORMAL[op.head]:
            writer.helper(helper, "")
        return Text(f"{NORMAL[op.head][-1]}({arrays[0]}).astype({writer.type_text}, copy=False)")
    form = SPECIAL.get(op.head)
    if form is None and op.head in BESSEL and literal(node.args[0]) in (0, 1):
        form, arrays = BESSEL[op.head][int(args[0].text)] + "({})", arrays[1:]
    if form is None:
        raise LoweringError(
            f"{op.head.__name__} has no CUDA or CuPy form; rewrite it, or use backend='numpy'"
        )
    if op.head is sympy.zeta and len(arrays) == 1:
        arrays.append(f"cp.asarray(1, dtype={dtype})")
    call = f"cupyx.scipy.special.{form.format(', '.join(arrays))}"
    return Text(f"{call}.astype({writer.type_text}, copy=False)")


@write.dispatch
def broadcast_cupy(
    op: Broadcast, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    shape = writer.dims(op.shape)
    if not node.args[0].shape and writer.on_host(node.args[0]):
        return Text(f"cp.full({shape}, {args[0]}, dtype={writer.made_type()})")
    text, rank = args[0].text, len(op.shape)
    if op.axes != tuple(range(rank - len(op.axes), rank)):
        text = (
            f"{args[0].inside(Level.ATOM)}[{', '.join(':' if k in op.axes else 'None' for k in range(rank))}]"
        )
    return Text(f"cp.broadcast_to({text}, {shape})")


@write.dispatch
def copied_cupy(op: Copied, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    return Text(f"cp.ascontiguousarray({args[0]})")


@write.dispatch
def iota_cupy(op: Iota, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    text = f"cp.arange({writer.atom(op.size)}, dtype={writer.made_type()})"
    known = isinstance(op.size, int) and op.size <= MAX_EXACT
    return Text(writer.shared(text, "constant") if known else text)


@write.dispatch
def array_constant_cupy(
    op: ArrayConstant, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    array, kind = op.array, writer.kind(node)
    if array.dtype.kind in "iu":
        array = array.astype(np.int64 if kind == "int64" else np.float64)
    return Text(writer.constant(array, type_text(kind)))


@write.dispatch
def select_cupy(op: Select, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    """Selections of integers; all others are in kernels."""
    text = f"cp.where({', '.join(map(str, args))})"
    numbers = all(not a.shape and writer.on_host(a) for a in node.args[1:])
    return Text(f"{text}.astype({writer.made_type()})" if numbers else text)


@write.dispatch
def affine_scan_cupy(
    op: AffineScan, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    _stacked(writer)
    return Text(f"{writer.helper('_affine_scan')}({args[0]}, {args[1]}, {op.matrices}, {op.backward})")


def _stacked(writer: CuPyWriter) -> None:
    """The helper that multiplies stacks of matrices, by cuBLAS with a stated type of sums."""
    product_helper(writer)
    writer.helper("_stacked")


@write.dispatch
def matrix_power_cupy(
    op: MatrixPower, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    exponent = args[1].text if writer.on_host(node.args[1]) else f"{args[1].inside(Level.ATOM)}.item()"
    if writer.dtype in HALVES:
        return Text(f"cp.linalg.matrix_power({args[0]}, int({exponent}))")
    _stacked(writer)
    return Text(f"{writer.helper('_matrix_power')}({args[0]}, int({exponent}))")


@write.dispatch
def products_cupy(op: Products, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    if writer.dtype not in HALVES:
        _stacked(writer)
    if isinstance(op, MatrixPowerDerivative) and writer.dtype not in HALVES:
        writer.helper("_matrix_power")
    return write_call(op, target, node, args, writer)


# ---- concatenation -------------------------------------------------------------------------------

# CuPy's own rules: cupy/_core/_routines_manipulation.pyx of 14.2.0, lines 745-775.


MAX_ARRAYS = 16
"""More arrays than this are left to CuPy, which then uses one kernel.

Origin: not measured on a device.
"""

JOINED = '''def _joined(kernel, arrays, axis, new=False, out=None):
    """The arrays one after another along an axis, or along a new one."""
    shape = list(arrays[0].shape)
    lengths = [1 if new else array.shape[axis] for array in arrays]
    shape[axis:axis + (not new)] = [sum(lengths)]
    out = cp.empty(shape, dtype=arrays[0].dtype) if out is None else out
    if out.size:
        kernel(*arrays, *lengths, sum(lengths), math.prod(shape[axis + 1:]), out, size=out.size)
    return out
'''


def _kernel(kinds: list[str], writer: CuPyWriter) -> str:
    """The elementwise kernel that copies; element i of the result is (row, at, rest)."""
    count = len(kinds)
    lines = [
        "const long long rest = i % inner, row = i / inner / total;",
        "const long long at = i / inner % total;",
    ]
    before: list[str] = []
    for k in range(count):
        test = f"if (at < {' + '.join([*before, f'm{k}'])}) " if k < count - 1 else ""
        place = " - ".join(["at", *before])
        lines.append(f"{'else ' * (k > 0)}{test}y[i] = x{k}[(row * m{k} + {place}) * inner + rest];")
        before.append(f"m{k}")
    inputs = [KernelParameter(kind, f"x{k}", raw=True) for k, kind in enumerate(kinds)]
    sizes = *(f"m{k}" for k in range(count)), "total", "inner"
    inputs += [KernelParameter("int64", name) for name in sizes]
    outputs = (KernelParameter(kinds[0], "y", raw=True),)
    return writer.kernels.named(ElementwiseKernel(tuple(inputs), outputs, tuple(lines)))


def joined(node: Compute, texts: list[str], axis: int, new: bool, writer: CuPyWriter) -> Text:
    """The call that joins arrays, in the place of the joined array if it has one."""
    kinds, arrays = [*map(writer.kind, node.args)], f"[{', '.join(texts)}]"
    out = f", out={writer.named[writer.over]}" if writer.over is not None else ""
    if len(texts) > MAX_ARRAYS or len({*kinds}) > 1:
        return Text(f"cp.{'stack' if new else 'concatenate'}({arrays}, axis={axis}{out})")
    writer.imports.add("import math")
    helper, tail = writer.helper("_joined", JOINED), ", new=True" if new else ""
    return Text(f"{helper}({_kernel(kinds, writer)}, {arrays}, {axis}{tail}{out})")


@write.dispatch
def concatenate_cupy(
    op: Concatenate, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    return joined(node, [a.text for a in args], op.axis, False, writer)


@write.dispatch
def stack_cupy(op: Stack, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    texts = [a.text for a in args]
    if not node.args[0].shape:
        texts = [f"cp.asarray({a}, dtype={writer.made_type()})" for a in texts]
    return joined(node, texts, op.axis, True, writer)


# ---- sparse matrices of fixed pattern: entries in one array, gathered into their places ----------


@write.dispatch
def compressed_rows_cupy(
    op: CompressedRows, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    """A ``cupyx.scipy.sparse.csr_matrix``, which has 32-bit indices and float32 or float64 entries."""
    if writer.dtype in HALVES:
        raise LoweringError(f"sparse matrices on a GPU hold float32 or float64, not {writer.dtype}")
    pieces, source = _pieces(op, node, writer)
    values, entries = writer.value_name("values"), writer.value_name("entries")
    if pieces:
        writer.before.append(f"{values} = cp.concatenate([{', '.join(pieces)}])")
        writer.before.append(f"{entries} = {values}[{writer.constant(source)}]")
    else:
        writer.before.append(f"{entries} = cp.zeros(0, dtype={writer.type_text})")
    for (places, _, adds), arg in zip(op.writes, node.args, strict=True):
        if adds:
            text = writer.array_text(arg)
            value = f"cp.ravel({text})" if len(arg.shape) > 1 else text
            writer.before.append(f"{entries}[{writer.constant(places)}] += {value}")
    columns, rows = (writer.constant(index) for index in (op.columns, op.rows))
    writer.imports.add("import cupyx.scipy.sparse")
    shape = writer.dims(op.shape)
    return Text(f"cupyx.scipy.sparse.csr_matrix(({entries}, {columns}, {rows}), shape={shape})")


def _pieces(op: CompressedRows, node: Compute, writer: CuPyWriter) -> tuple[list[str], np.ndarray]:
    """Flat arrays, and for each entry the position of its first value in them."""
    source = np.zeros(len(op.columns), np.int64)
    pieces: list[str] = []
    total = 0
    zero = -1
    for (places, gaps, adds), arg in zip(op.writes, node.args, strict=True):
        if adds:
            if len(gaps) and zero < 0:
                pieces.append(f"cp.zeros(1, dtype={writer.type_text})")
                zero, total = total, total + 1
            source[gaps] = zero
            continue
        text, count = writer.array_text(arg), len(places) if arg.shape else 1
        pieces.append(text if len(arg.shape) == 1 else f"cp.reshape({text}, ({count},))")
        source[places] = total + (np.arange(count) if arg.shape else 0)
        total += count
    return pieces, source


@write.dispatch
def sparse_solve_cupy(
    op: SparseSolve, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    """The solution of the dense system that defines the op."""
    assert writer.at is not None
    here = writer.plans.nodes[writer.at]
    (dense,) = fuse(prepare(Graph(here.args, (definition(op, here),)))).output_nodes
    return Text(defined(dense, here, writer))
