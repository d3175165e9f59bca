"""Rows by index in CuPy code: positions, gathers and scattered sums, with one check for all indices.

An index from outside is checked by the kernel that reads it: a wrong index counts as 0 from there on, and its
site is written to a flag. The flag is host memory that the device writes to, so that reading it needs no
waiting; it is read when a call begins and when it ends. Indices that are known to be in range when the code
is written (constants, ranges, results of other checks) are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Any

from symad.core.dims import Dim
from symad.gpu import module_text
from symad.gpu.cupy_library import OnDevice
from symad.gpu.passes.known_rows import fits
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.settings import current
from symad.numeric.program.expressions import Compute, Expression
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.target import Level, Text, Texts
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.positions import Positions

CHECKED = '''def _rows(kernel, indices, lengths, site, flag):
    """Row numbers in axes of these lengths; a wrong index leaves ``site`` or one of the next in the flag."""
    rows = cp.empty(cp.broadcast(*indices).shape, dtype=cp.int64)
    if rows.size:
        if 0 in lengths:
            raise IndexError(f"there is no index into axes of lengths {lengths}")
        kernel(*indices, *lengths, cp.int32(site), rows, flag)
    return rows
'''

FLAG = '''@lru_cache(maxsize=None)
def _flag(device):
    """Eight bytes of the host, where kernels leave the length and 2**48 times the place of a wrong index."""
    memory = cp.cuda.alloc_pinned_memory(8)  # the device has it under the same address
    seen = np.frombuffer(memory, np.int64, 1)
    seen[0] = 0
    owned = cp.cuda.UnownedMemory(memory.ptr, 8, memory, device)
    atexit.register(_check_indices, device)
    return seen, cp.ndarray(1, cp.int64, cp.cuda.MemoryPointer(owned, 0))
'''

REPORT = '''def _report(seen):
    """Raise the error of a wrong index that this or an earlier call has met so far, without a wait."""
    site, length = divmod(int(seen[0]), 2**48)
    if site:
        seen[0] = 0
        error, from_end, place = _SITES[site - 1]
        if error == "ValueError":
            raise ValueError(place)
        first = -length if from_end else 0
        raise IndexError(f"an index is not an integer in {first}..{length - 1}: {place} has length {length}")
'''

CHECK = '''def _check_indices(device=None):
    """Wait for a device, by default the current one, and raise the error of a wrong index that it met."""
    device = cp.cuda.Device().id if device is None else device
    with cp.cuda.Device(device):
        cp.cuda.runtime.deviceSynchronize()
    _report(_flag(device)[0])
'''

SEGMENT_SUM = '''def _segment_sum(keys, updates, rows, columns):
    """result[r] = Σ updates[j] over the j with keys[j] = r, in a fixed order; (len(keys), columns)."""
    result = cp.zeros((rows, columns), dtype=updates.dtype)
    count = len(keys)
    if count and result.size:
        real, bits, element = {
            "float64": ("double", 64, "Fp64"), "float32": ("float", 32, "Fp32"),
            "float16": ("float", 16, "Fp16"), "bfloat16": ("float", 16, "Bf16"),
        }[updates.dtype.name]
        wide = 32 if columns > 1 else 1
        source = f"#define SYMAD_REAL {real}\\n#define SYMAD_ELEMENT_BITS {bits}\\n" + _PRIMS_H
        source += f"typedef {element} E;\\nconstexpr int COLUMNS = {wide};\\n" + _SEGMENT_SUM_CU
        keys, updates = cp.ascontiguousarray(keys), cp.ascontiguousarray(updates)
        sizes, name, blocks = (cp.int64(count), cp.int64(columns)), "segment_sum", min(rows, count)
        if count <= $most:
            args, name, blocks = (keys, updates, result, *sizes), "segment_sum_unsorted", count
        else:
            args = keys, cp.argsort(keys), updates, result, *sizes, cp.int32(rows <= count)  # a stable sort
        grid, shared = (blocks, min(-(-columns//wide), 65535)), 256*(8 if bits == 64 else 4)
        _module(source).get_function(name)(grid, (256,), args, shared_mem=shared)
    return result
'''

MAX_UNSORTED = 4096
"""Up to this many entries are compared in pairs, in one kernel instead of three (estimated launch costs).

Origin: not measured on a device.
"""

SCATTER_ADD = """def _scatter_add(rows, updates, size):
    rest = updates.shape[rows.ndim:]
    made = _segment_sum(rows.ravel(), updates, size, math.prod(rest))
    return made.reshape(size, *rest)
"""

ATOMIC = '''def _scatter_add_atomic(rows, updates, size):
    """By atomic additions: the bits vary from run to run."""
    wide = updates.astype(cp.float32) if updates.dtype.itemsize == 2 else updates
    result = cp.zeros((size, *updates.shape[rows.ndim:]), dtype=wide.dtype)
    cupyx.scatter_add(result, rows, wide)
    return result.astype(updates.dtype, copy=False)
'''


def report_helpers(printer: CuPyWriter) -> None:
    """Add the helpers that read the flag, and the words for all sites, which are known by now."""
    printer.imports |= {"import atexit", "import numpy as np", "from functools import lru_cache"}
    printer.helpers["_SITES"] = "_SITES = (\n" + "".join(f"    {site!r},\n" for site in printer.sites) + ")\n"
    for name, text in (("_flag", FLAG), ("_report", REPORT), ("_check_indices", CHECK)):
        printer.helpers[name] = text


def segment_sum(printer: CuPyWriter) -> str:
    """The helper that sums segments, with the text of its kernel."""
    printer.imports.add("from functools import lru_cache")
    printer.helper("_module", module_text.MODULE)
    for file in ("prims.h", "segment_sum.cu"):
        printer.kernel_file(file)
    most = 2**31 if current().capture else MAX_UNSORTED  # no sort can be recorded
    return str(printer.helper("_segment_sum", Template(SEGMENT_SUM).substitute(most=most)))


def rows_of(
    indices: Sequence[Expression],
    lengths: tuple[Dim, ...],
    from_end: bool,
    places: list[str],
    printer: CuPyWriter,
    error: type[Exception] = IndexError,
) -> str:
    """The row-major positions of some indices in axes of these lengths, checked if needed, by one kernel.

    ``places`` describe the axes in the errors of wrong indices; for another ``error``, they are its text.
    """
    texts = [printer.array_text(index) for index in indices]
    kinds = [*map(printer.kind, indices)]
    nodes = map(printer.node_of, indices)
    checked = [node is None or not fits(node, length) for node, length in zip(nodes, lengths, strict=True)]
    if len(indices) == 1 and not any(checked) and kinds == ["int64"]:
        return texts[0]
    kernel = _kernel(kinds, checked, from_end, printer)
    dims = [printer.atom(length) for length in lengths]
    if not any(checked):
        return f"{kernel}({', '.join([*texts, *dims])})"
    helper, flag = printer.helper("_rows", CHECKED), printer.flag_name()
    if (kernel, *texts, *dims) in printer.rows_known:
        return printer.rows_known[(kernel, *texts, *dims)]
    site = len(printer.sites) + 1
    printer.sites += [(error.__name__, from_end, place) for place in places]
    name = printer.value_name()
    call = f"{helper}({kernel}, ({', '.join(texts)},), ({', '.join(dims)},), {site}, {flag})"
    printer.before.append(f"{name} = {call}")
    printer.rows_known[(kernel, *texts, *dims)] = name
    return name


def _kernel(kinds: list[str], checked: list[bool], from_end: bool, printer: CuPyWriter) -> str:
    """The elementwise kernel of `rows_of`."""
    lines, position = [], ""
    for k, (kind, check) in enumerate(zip(kinds, checked, strict=True)):
        real = "double" if kind == "float64" else "float"
        whole = f"x{k}" if kind == "int64" else f"({real})x{k}"
        lines.append(f"long long r{k} = (long long){whole};")
        if check:
            broken = "" if kind == "int64" else f"({real})r{k} != {whole} || "
            low = f"-m{k}" if from_end else "0"
            wrong = f"r{k} = 0; flag[0] = ((long long)(site + {k}) << 48) | (m{k} & ((1LL << 48) - 1));"
            lines.append(f"if ({broken}r{k} < {low} || r{k} >= m{k}) {{ {wrong} }}")
            if from_end:
                lines.append(f"if (r{k} < 0) r{k} += m{k};")
        position = f"({position})*m{k} + r{k}" if position else f"r{k}"
    lines.append(f"row = {position};")
    inputs = [KernelParameter(kind, f"x{k}") for k, kind in enumerate(kinds)]
    inputs += [KernelParameter("int64", f"m{k}") for k in range(len(kinds))]
    outputs = [KernelParameter("int64", "row")]
    if any(checked):
        inputs.append(KernelParameter("int32", "site"))
        outputs.append(KernelParameter("int64", "flag", raw=True))
    return printer.kernels.named(ElementwiseKernel(tuple(inputs), tuple(outputs), tuple(lines)))


def _as_typed(text: str, writer: CuPyWriter) -> Text:
    """Integers, converted to the program's type if nothing reads them as integers."""
    return Text(text if writer.made_type() == "cp.int64" else f"{text}.astype({writer.type_text})")


@write.dispatch
def positions_cupy(
    op: Positions, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    places = [f"axis {axis} of {op.what}" for axis in op.axes]
    return _as_typed(rows_of(node.args, op.shape, op.from_end, places, writer), writer)


def _row_numbers(indices: Expression, length: Dim, writer: CuPyWriter) -> str:
    return rows_of((indices,), (length,), False, ["the axis that is looked up"], writer)


@write.dispatch
def gather_cupy(op: Gather, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter) -> Written:
    table, indices = node.args
    rows = _row_numbers(indices, table.shape[0], writer)
    return Text(f"{args[0].inside(Level.ATOM)}[{rows}]")


@write.dispatch
def scatter_add_cupy(
    op: ScatterAdd, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    rows, count = _row_numbers(node.args[0], op.size, writer), writer.atom(op.size)
    if current().atomics:
        helper = writer.helper("_scatter_add_atomic", ATOMIC)
    else:
        segment_sum(writer)
        writer.imports.add("import math")
        helper = writer.helper("_scatter_add", SCATTER_ADD)
    return Text(f"{helper}({rows}, {args[1]}, {count})")


@write.dispatch
def sorting_positions_cupy(
    op: SortingPositions, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    """CuPy's sort is stable (cupy/_sorting/sort.py, line 94 of 13.6.0 and 14.2.0) and has no bfloat16."""
    wide = f"{args[0].inside(Level.ATOM)}.astype(cp.float32)" if writer.dtype == "bfloat16" else args[0]
    return _as_typed(f"cp.argsort({wide}, axis=-1)", writer)


# ---- sums of parameter cotangents: by layout if every place is read once, else by `_segment_sum` -

# In both cases every sum has one owner and a fixed order. On the CPU `numpy.add.reduceat` would do. CuPy's
# loses the digits of small values that follow large ones: it is a difference of cumulative sums
# (cupy/_core/_routines_indexing.pyx of 14.2.0, line 1255; 13.6.0: 1147).


def add_laid_out(total: Any, values: Any, places: Sequence[tuple[int | None, int]]) -> None:
    """Add values to ``total``, whose axes are axes k of the values, (k, 0), or positions c, (None, c)."""
    axes = [k for k, _ in places if k is not None]
    others = tuple(k for k in range(values.ndim) if k not in axes)
    values = values.sum(axis=others) if others else values
    values = values.transpose([sorted(axes).index(k) for k in axes])
    lengths = iter(values.shape)
    index, part = [], []
    for (axis, position), size in zip(places, total.shape, strict=True):
        length = 0 if axis is None else min(size, next(lengths))  # beyond it, all pairs are hidden
        index.append(slice(length) if axis is not None else position)
        part.extend([slice(length)] if axis is not None else [])
    view = total[(*index, ...)]
    view += values[(*part, ...)]
