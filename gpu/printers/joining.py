"""Concatenation in one kernel; for up to eight arrays CuPy launches one copy for each.

See cupy/_core/_routines_manipulation.pyx of 14.2.0, lines 745-775.
"""

from __future__ import annotations

from symad.core.graph import Node
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter
from symad.gpu.printers.printing import CuPyWriter, Text, Texts, emit
from symad.ops.arrays.stacking import Concatenate, Stack

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
