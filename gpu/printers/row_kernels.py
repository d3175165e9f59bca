"""Kernels over rows: nests, softmax and its kin, and several sums in one launch.

A nest is one kernel with one warp per row; half precisions are computed in float32. A row is read several
times and stays in the cache in between. Softmax over rows that are known to be long, or over axes that are
not the last ones, uses CuPy's reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symad.core.arrays import Array
from symad.gpu import module_text
from symad.gpu.compile import kernel_files
from symad.gpu.cupy_library import OnDevice, real_type
from symad.gpu.passes.fusion import Sums
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.recurrences.kernel_text import BITS, ELEMENT
from symad.numeric.fusion.c_expressions import KernelBody
from symad.numeric.fusion.nest import Nest, softmax_nest
from symad.numeric.fusion.nest_loops import NestText, RowLoop, joined
from symad.numeric.numpy_arrays.statements import Made, computed, kernel_lines, results_by_number
from symad.numeric.program.expressions import Compute, Expression
from symad.numeric.targets.arrays import ALONG_AXES
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.statements import Lines
from symad.numeric.targets.target import Text, Texts
from symad.ops.arrays.softmax import ExponentialOp

# ---- nests over rows -----------------------------------------------------------------------------


CALL = """def _row_group(kernel, inputs, shapes, lead, row, dtype, real):
    whole = [a.dtype == cp.int64 for a in inputs]
    inputs = [cp.ascontiguousarray(a if w else a.astype(real, copy=False)) for a, w in zip(inputs, whole)]
    outputs = [cp.empty(shape, dtype=real) for shape in shapes]
    rows, columns = math.prod(lead), math.prod(row)
    if rows*columns:
        sizes = cp.int64(rows), cp.int64(columns)
        kernel(((rows + 3)//4,), (128,), (*inputs, *outputs, *sizes))
    else:
        outputs = [cp.zeros_like(a) for a in outputs]
    return [a.astype(dtype, copy=False) for a in outputs]
"""


class WarpRows(NestText):
    """The CUDA text of one nest: the lanes of a warp process a row together."""

    def source(self, name: str, types: Sequence[str]) -> str:
        """The kernel for inputs of these types; integers are converted where they are read."""
        real = self.c.real
        kinds = ["long long" if kind == "int64" else real for kind in types]
        inputs = [f"const {kind} *x{k}" for k, kind in enumerate(kinds)]
        results = [f"{real} *y{k}" for k in range(len(self.body.output_nodes))]
        self.write()
        signature = ", ".join([*inputs, *results, "long long rows", "long long columns"])
        head = [
            f'extern "C" __global__ void {name}({signature}) {{',
            "  const long long row = blockIdx.x * 4LL + threadIdx.x / 32;",
            "  const int lane = threadIdx.x % 32;",
            "  if (row >= rows) return;",
        ]
        text = "\n".join([*head, *self.lines, "}"])
        preamble = self.c.preamble()
        return f"{preamble}\n{text}" if preamble else text

    def element(self, position: int) -> str:
        """See `NestText`."""
        return f"({self.c.real})x{position}[at]"

    def column(self, position: int) -> str:
        """See `NestText`."""
        return f"x{position}[j]"

    def number(self, position: int, per_row: bool) -> str:
        """See `NestText`."""
        return f"({self.c.real})x{position}[{'row' if per_row else '0'}]"

    def result(self, position: int) -> str:
        """See `NestText`."""
        return f"y{position}[at]"

    def over_row(self, loop: RowLoop) -> list[str]:
        """See `NestText`; the totals of the lanes are joined at the end."""
        stores = [f"y{k}[at] = {value};" for k, value in loop.stores]
        lines = [*loop.given, *loop.lines, *stores, *(total.line for total in loop.totals)]
        made = [
            "  for (long long j = lane; j < columns; j += 32) {",
            "    const long long at = row * columns + j;",
            *(f"    {line}" for line in lines),
            "  }",
        ]
        if not loop.totals:
            return made
        made.append("  for (int step = 16; step > 0; step /= 2) {")
        for total in loop.totals:
            other = f"other_{total.name}"
            made.append(
                f"    const {self.c.real} {other} = __shfl_xor_sync(0xffffffffu, {total.name}, step);"
            )
            made.append(f"    {joined(total.name, total.kind, other)}")
        return [*made, "  }"]

    def store(self, position: int, value: str, per_row: bool) -> str:
        """See `NestText`."""
        return f"if (lane == 0) y{position}[row] = {value};"


def row_lines(op: Nest, writer: CuPyWriter, made: Made) -> Lines:
    """The statement that computes all results of a nest."""
    names = ", ".join(writer.result_names(range(len(op.body.output_nodes)), results_by_number(made)))
    call = rows_text(op, computed(made).args, writer)
    return [f"{names}{',' * (len(op.body.output_nodes) == 1)} = {call}"]


def rows_text(nest: Nest, args: Sequence[Expression], printer: CuPyWriter) -> str:
    """The call that computes the list of all results of a nest, whose axes are the last ones."""
    types, texts = [*map(printer.kind, args)], map(printer.array_text, args)
    source = WarpRows(nest, KernelBody(real_type(printer.dtype))).source("row_group", types)
    kernel = printer.kernels.raw("row_group", source)
    printer.imports.add("import math")
    helper = printer.helper("_row_group", CALL)
    shapes = ", ".join(printer.dims(o.shape) for o in nest.body.output_nodes)
    cut = len(nest.full) - len(nest.axes)
    sizes = f"{printer.dims(nest.full[:cut])}, {printer.dims(nest.full[cut:])}"
    made = f"{sizes}, {printer.type_text}, cp.{printer.accumulator}"
    return f"{helper}({kernel}, [{', '.join(texts)}], [{shapes}], {made})"


# ---- softmax -------------------------------------------------------------------------------------

# Rows that are known to be long, and axes that are not the last ones, use CuPy's reductions.


MAX_ROW = 16384
"""Rows longer than this use CuPy's reductions, which assign many warps to one row.

Origin: not measured on a device.
"""


def by_library(
    function: Callable[..., Array], args: Texts, axes: tuple[int, ...], printer: CuPyWriter
) -> Text:
    """The call of a helper that uses CuPy's reductions, in float32 for the half precisions."""
    half = printer.accumulator != printer.dtype
    wide = [f"{a}.astype(cp.float32)" if half else a.text for a in args]
    call = f"{printer.helper(function)}({', '.join(wide)}, {axes})"
    return Text(f"{call}.astype({printer.type_text})" if half else call)


@write.dispatch
def exponential_cupy(
    op: ExponentialOp, target: OnDevice, node: Compute, args: Texts, writer: CuPyWriter
) -> Written:
    """The call of a row kernel where the axes are the last ones, else of the library's reductions."""
    full, axes = node.args[0].shape, op.axes
    last = axes == tuple(range(len(full) - len(axes), len(full)))
    if not last or any(isinstance(full[k], int) and (full[k] > MAX_ROW or not full[k]) for k in axes):
        return by_library(ALONG_AXES[type(op)], args, axes, writer)
    return Text(f"{rows_text(softmax_nest(type(op), full, axes), node.args, writer)}[0]")


MAX_TOGETHER = 24
"""The most arrays of one launch; a kernel has 4096 bytes of parameters.

Origin: the space of a kernel's parameters.
"""

RUN = '''def _sums(source, arrays, kept, dtype, size, most):
    """The sums of some arrays over all axes but those kept."""
    made = [cp.empty([a.shape[k] for k in axes], dtype=dtype) for a, axes in zip(arrays, kept)]
    table = np.zeros(most, dtype=[("at", np.int64, 17)])["at"]
    first, used = 0, 0
    for a, axes, result in zip(arrays, kept, made):
        others = [k for k in range(a.ndim) if k not in axes]
        length = math.prod(a.shape[k] for k in others)
        if not result.size:
            continue
        row = [a.data.ptr, result.data.ptr, first, result.size, length]
        for part in (axes, others):
            filler = [None]*(3 - len(part))
            row += [1 if k is None else a.shape[k] for k in (*filler, *part)]
            row += [0 if k is None else a.strides[k]//a.itemsize for k in (*filler, *part)]
        table[used] = row
        first += -(-result.size//32)
        used += 1
    if used:
        argument = np.zeros(1, dtype=[("at", np.int64, table.shape)])
        argument["at"][0] = table
        kernel = _module(source).get_function("sums")
        kernel((first,), (256,), (argument, cp.int32(used)), shared_mem=256*size)
    return made
'''


def sums_source(dtype: str) -> list[str]:
    """The kernel for an element type, in pieces."""
    head = f"#define SYMAD_REAL {real_type(dtype)}\n#define SYMAD_ELEMENT_BITS {BITS[dtype]}\n"
    middle = f"typedef {ELEMENT[dtype]} E;\nconstexpr int ARRAYS = {MAX_TOGETHER};\n"
    return [head, *kernel_files("prims.h"), middle, *kernel_files("sums.cu")]


@kernel_lines.dispatch
def sums_lines(op: Sums, printer: CuPyWriter, made: Made) -> Lines:
    """The statements that compute all sums, with a limited number in one launch."""
    source = printer.constant_source(sums_source(printer.dtype))
    printer.imports |= {"from functools import lru_cache", "import math", "import numpy as np"}
    printer.helper("_module", module_text.MODULE)
    printer.helpers.setdefault("_sums", RUN)
    lines, args, results = [], computed(made).args, results_by_number(made)
    size = 8 if printer.dtype == "float64" else 4
    for start in range(0, len(args), MAX_TOGETHER):
        some = range(start, min(start + MAX_TOGETHER, len(args)))
        names = ", ".join(printer.result_names(some, results)) + "," * (len(some) == 1)
        arrays = ", ".join(_typed(args[k], printer) for k in some)
        kept = ", ".join(str(op.kept[k]) for k in some)
        rest = f"{printer.type_text}, {size}, {MAX_TOGETHER}"
        lines.append(f"{names} = _sums({source}, [{arrays}], [{kept}], {rest})")
    return lines


def _typed(arg: Expression, printer: CuPyWriter) -> str:
    text = printer.array_text(arg)
    return text if printer.kind(arg) == printer.dtype else f"{text}.astype({printer.type_text})"
