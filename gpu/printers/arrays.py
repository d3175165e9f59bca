"""Ops that are written differently in CuPy than in NumPy.

Numbers known on the host (dimensions and arithmetic on them) stay Python numbers. Every other value is an
array on the device, including scalars, and no statement copies one back.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import sympy

from symad.core.graph import Graph, Node, topological
from symad.core.questions import definition
from symad.errors import LoweringError
from symad.gpu.cupy_library import HALVES
from symad.gpu.passes.fusion import fuse
from symad.gpu.passes.integers import WHOLE_HEADS
from symad.gpu.passes.shared_products import Copied
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter
from symad.gpu.printers.printing import CuPyWriter, Text, Texts, emit
from symad.gpu.printers.products import product_helper
from symad.higher_order.adjugate import Adjugate, AdjugateTangent
from symad.higher_order.affine_scan import AffineScan
from symad.numeric.fusion.chains import on_host
from symad.numeric.fusion.nest import Nest, total_of
from symad.numeric.passes import prepare
from symad.numeric.targets.linear_algebra import CALLS
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


@emit.dispatch
def nest_emit(op: Nest, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """The call of the kernel of a chain, whose results `nest_lines` names, or of one sum of a chain."""
    types = [printer.kernels.type_of(a) for a in node.args]
    arrays = ", ".join(printer.on_device(node))
    total = total_of(op)
    if total is None:
        return f"{printer.kernels.elementwise(op.body, types)}({arrays})"
    every = len(op.axes) == len(op.full)
    return f"{printer.kernels.sum(op, total, types)}({arrays}, axis={None if every else op.axes})"


@emit.dispatch
def dimension_cupy(op: Dimension, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    return str(printer.atom(op.expression))


@emit.dispatch
def mul_cupy(op: Mul, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    over = [a for p, a in zip(op.powers, args, strict=True) if p == 1]
    under = [a for p, a in zip(op.powers, args, strict=True) if p == -1]
    top = "*".join(over) if over else "1"
    if not under:
        return top
    return f"{top}/{under[0]}" if len(under) == 1 else f"{top}/({'*'.join(under)})"


@emit.dispatch
def pow_cupy(op: Pow, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    return f"{args[0]}**{args[1]}"


@emit.dispatch
def apply_cupy(op: Apply, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """A function that only cupyx.scipy.special has; its arguments must be arrays of one dtype."""
    if op.head in WHOLE_HEADS:  # functions of integers, which are not computed in kernels
        name = f"cp.{WHOLE_HEADS[op.head]}"
        return reduce(lambda a, b: f"{name}({a}, {b})", args) if len(args) > 1 else f"{name}({args[0]})"
    printer.imports.add("import cupyx.scipy.special")
    dtype = f"cp.{printer.accumulator}"
    arrays = [f"cp.asarray({a}, dtype={dtype})" for a in args]
    if op.head in NORMAL:
        for helper in NORMAL[op.head]:
            printer.helper(helper, "")
        return f"{NORMAL[op.head][-1]}({arrays[0]}).astype({printer.type_text}, copy=False)"
    form = SPECIAL.get(op.head)
    if form is None and op.head in BESSEL and args[0] in ("0", "1"):
        form, arrays = BESSEL[op.head][int(args[0])] + "({})", arrays[1:]
    if form is None:
        raise LoweringError(
            f"{op.head.__name__} has no CUDA or CuPy form; rewrite it, or use backend='numpy'"
        )
    if op.head is sympy.zeta and len(arrays) == 1:
        arrays.append(f"cp.asarray(1, dtype={dtype})")
    call = f"cupyx.scipy.special.{form.format(', '.join(arrays))}"
    return f"{call}.astype({printer.type_text}, copy=False)"


@emit.dispatch
def broadcast_cupy(op: Broadcast, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    (arg,) = node.args
    if not arg.shape and arg in on_host(topological([arg])):
        return f"cp.full({printer.dims(op.shape)}, {args[0]}, dtype={printer.type_of(node)})"
    rank = len(op.shape)
    if op.axes == tuple(range(rank - len(op.axes), rank)):
        return f"cp.broadcast_to({args[0]}, {printer.dims(op.shape)})"
    index = ", ".join(":" if k in op.axes else "None" for k in range(rank))
    return f"cp.broadcast_to({args[0]}[{index}], {printer.dims(op.shape)})"


@emit.dispatch
def copied_cupy(op: Copied, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    return f"cp.ascontiguousarray({args[0]})"


@emit.dispatch
def iota_cupy(op: Iota, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    text = f"cp.arange({printer.atom(op.size)}, dtype={printer.type_of(node)})"
    known = isinstance(op.size, int) and op.size <= MAX_EXACT
    return printer.shared(text, "constant") if known else text


@emit.dispatch
def array_constant_cupy(
    op: ArrayConstant, node: Node, args: Texts, printer: CuPyWriter
) -> Text:
    array = op.array
    if array.dtype.kind in "iu":
        array = array.astype(np.int64 if printer.kernels.type_of(node) == "int64" else np.float64)
    made: str = printer.constant(array, printer.type_of(node))
    return made


@emit.dispatch
def select_cupy(op: Select, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """Selections of integers; all others are in kernels."""
    text = f"cp.where({', '.join(args)})"
    numbers = all(not a.shape and a in printer.host for a in node.args[1:])
    return f"{text}.astype({printer.type_of(node)})" if numbers else text


@emit.dispatch
def affine_scan_cupy(op: AffineScan, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    _stacked(printer)
    return f"{printer.helper('_affine_scan', '')}({', '.join(args)}, {op.matrices}, {op.backward})"


def _stacked(printer: CuPyWriter) -> None:
    """The helper that multiplies stacks of matrices, by cuBLAS with a stated type of sums."""
    product_helper(printer)
    printer.helper("_stacked")


@emit.dispatch
def matrix_power_cupy(
    op: MatrixPower, node: Node, args: Texts, printer: CuPyWriter
) -> Text:
    known = node.args[1] in on_host(topological([node.args[1]]))
    exponent = args[1] if known else f"{args[1]}.item()"
    if printer.dtype in HALVES:
        return f"cp.linalg.matrix_power({args[0]}, int({exponent}))"
    _stacked(printer)
    return f"{printer.helper('_matrix_power')}({args[0]}, int({exponent}))"


@emit.dispatch
def products_cupy(
    op: MatrixPowerDerivative | Adjugate | AdjugateTangent, node: Node, args: Texts, printer: CuPyWriter
) -> Text:
    if printer.dtype not in HALVES:
        _stacked(printer)
    if isinstance(op, MatrixPowerDerivative) and printer.dtype not in HALVES:
        printer.helper("_matrix_power")
    return f"{printer.helper(CALLS[type(op)])}({', '.join(args)})"


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


def _kernel(kinds: list[str], printer: CuPyWriter) -> str:
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
    return printer.kernels.named(ElementwiseKernel(tuple(inputs), outputs, tuple(lines)))


def joined(node: Node, args: Texts, axis: int, new: bool, printer: CuPyWriter) -> str:
    """The call for one node."""
    kinds = [printer.kernels.type_of(arg) for arg in node.args]
    printer.imports.add("import math")
    helper = printer.helper("_joined", JOINED)
    tail = ", new=True" if new else ""
    return f"{helper}({_kernel(kinds, printer)}, [{', '.join(args)}], {axis}{tail}{_out(node, printer)})"


def _out(node: Node, printer: CuPyWriter) -> str:
    """The argument with the place of the joined array, if it has one."""
    return f", out={printer.slots[node]}" if node in printer.slots else ""


@emit.dispatch
def concatenate_cupy(op: Concatenate, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    if len(args) > MAX_ARRAYS or len({printer.kernels.type_of(arg) for arg in node.args}) > 1:
        return f"cp.concatenate([{', '.join(args)}], axis={op.axis}{_out(node, printer)})"
    return joined(node, args, op.axis, False, printer)


@emit.dispatch
def stack_cupy(op: Stack, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    if not node.args[0].shape:
        args = tuple(f"cp.asarray({a}, dtype={printer.type_of(node)})" for a in args)
    if len(args) > MAX_ARRAYS or len({printer.kernels.type_of(arg) for arg in node.args}) > 1:
        return f"cp.stack([{', '.join(args)}], axis={op.axis}{_out(node, printer)})"
    return joined(node, args, op.axis, True, printer)


# ---- sparse matrices of fixed pattern: entries in one array, gathered into their places ----------


@emit.dispatch
def compressed_rows_cupy(
    op: CompressedRows, node: Node, args: Texts, printer: CuPyWriter
) -> Text:
    """A ``cupyx.scipy.sparse.csr_matrix``, which has 32-bit indices and float32 or float64 entries."""
    if printer.dtype in HALVES:
        raise LoweringError(f"sparse matrices on a GPU hold float32 or float64, not {printer.dtype}")
    pieces, source = _pieces(op, node, printer)
    values, entries = printer.value_name("values"), printer.value_name("entries")
    if pieces:
        printer.before.append(f"{values} = cp.concatenate([{', '.join(pieces)}])")
        printer.before.append(f"{entries} = {values}[{printer.constant(source)}]")
    else:
        printer.before.append(f"{entries} = cp.zeros(0, dtype={printer.type_text})")
    for (places, _, adds), arg in zip(op.writes, node.args, strict=True):
        if adds:
            text = printer.array_text(arg)
            value = f"cp.ravel({text})" if len(arg.shape) > 1 else text
            printer.before.append(f"{entries}[{printer.constant(places)}] += {value}")
    columns, rows = (printer.constant(index) for index in (op.columns, op.rows))
    printer.imports.add("import cupyx.scipy.sparse")
    shape = printer.dims(op.shape)
    return f"cupyx.scipy.sparse.csr_matrix(({entries}, {columns}, {rows}), shape={shape})"


def _pieces(op: CompressedRows, node: Node, printer: CuPyWriter) -> tuple[list[str], np.ndarray]:
    """Flat arrays, and for each entry the position of its first value in them."""
    source = np.zeros(len(op.columns), np.int64)
    pieces: list[str] = []
    total = 0
    zero = -1
    for (places, gaps, adds), arg in zip(op.writes, node.args, strict=True):
        if adds:
            if len(gaps) and zero < 0:
                pieces.append(f"cp.zeros(1, dtype={printer.type_text})")
                zero, total = total, total + 1
            source[gaps] = zero
            continue
        text, count = printer.array_text(arg), len(places) if arg.shape else 1
        pieces.append(text if len(arg.shape) == 1 else f"cp.reshape({text}, ({count},))")
        source[places] = total + (np.arange(count) if arg.shape else 0)
        total += count
    return pieces, source


@emit.dispatch
def sparse_solve_cupy(op: SparseSolve, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """The solution of the dense system that defines the op."""
    (dense,) = fuse(prepare(Graph(node.args, (definition(op, node),)))).output_nodes
    return printer.defined_by(dense, node)
