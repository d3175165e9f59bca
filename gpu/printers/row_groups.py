"""A nest over rows as one kernel, with one warp per row; half precisions are computed in float32."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Node
from symad.gpu.cupy_library import real_type
from symad.gpu.printers.printing import CuPyWriter
from symad.numeric.fusion.c_expressions import KernelBody
from symad.numeric.fusion.nest import Nest
from symad.numeric.fusion.nest_loops import NestText, RowLoop, joined
from symad.numeric.targets.statements import Lines

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


def row_lines(op: Nest, node: Node, printer: CuPyWriter) -> Lines:
    """The statement that computes all results of a nest."""
    names = ", ".join(printer.result_names(range(len(op.body.output_nodes))))
    call = rows_text(op, node.args, [printer.array_text(a) for a in node.args], printer)
    return [f"{names}{',' * (len(op.body.output_nodes) == 1)} = {call}"]


def rows_text(nest: Nest, args: Sequence[Node], texts: Sequence[str], printer: CuPyWriter) -> str:
    """The call that computes the list of all results of a nest, whose axes are the last ones."""
    types = [printer.kernels.type_of(a) for a in args]
    source = WarpRows(nest, KernelBody(real_type(printer.dtype))).source("row_group", types)
    kernel = printer.kernels.raw("row_group", source)
    printer.imports.add("import math")
    helper = printer.helper("_row_group", CALL)
    shapes = ", ".join(printer.dims(o.shape) for o in nest.body.output_nodes)
    cut = len(nest.full) - len(nest.axes)
    sizes = f"{printer.dims(nest.full[:cut])}, {printer.dims(nest.full[cut:])}"
    made = f"{sizes}, {printer.type_text}, cp.{printer.accumulator}"
    return f"{helper}({kernel}, [{', '.join(texts)}], [{shapes}], {made})"
