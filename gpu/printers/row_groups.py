"""A region of rows as one kernel, with one warp per row."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Node
from symad.gpu.cupy_library import real_type
from symad.gpu.printers.printing import CuPyWriter
from symad.numeric.fusion.c_expressions import Body
from symad.numeric.fusion.row_statements import RowText
from symad.numeric.fusion.rows import RowGroup
from symad.numeric.targets.statements import Lines

CALL = """def _row_group(kernel, inputs, shapes, full, dtype, real):
    whole = [a.dtype == cp.int64 for a in inputs]
    inputs = [cp.ascontiguousarray(a if w else a.astype(real, copy=False)) for a, w in zip(inputs, whole)]
    outputs = [cp.empty(shape, dtype=real) for shape in shapes]
    rows, columns = math.prod(full[:-1]), full[-1]
    if rows*columns:
        sizes = cp.int64(rows), cp.int64(columns)
        kernel(((rows + 3)//4,), (128,), (*inputs, *outputs, *sizes))
    else:
        outputs = [cp.zeros_like(a) for a in outputs]
    return [a.astype(dtype, copy=False) for a in outputs]
"""


class WarpRows(RowText):
    """The CUDA text of one region: the lanes of a warp process a row together."""

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
        """See `RowText`."""
        return f"({self.c.real})x{position}[at]"

    def number(self, position: int, per_row: bool) -> str:
        """See `RowText`."""
        return f"({self.c.real})x{position}[{'row' if per_row else '0'}]"

    def over_row(self, lines: Sequence[str], sums: Sequence[str]) -> list[str]:
        """See `RowText`; the sums of the lanes are added at the end."""
        loop = [
            "  for (long long j = lane; j < columns; j += 32) {",
            "    const long long at = row * columns + j;",
            *(f"    {line}" for line in lines),
            "  }",
        ]
        if not sums:
            return loop
        added = [f"    {name} += __shfl_xor_sync(0xffffffffu, {name}, step);" for name in sums]
        return [*loop, "  for (int step = 16; step > 0; step /= 2) {", *added, "  }"]

    def store(self, position: int, value: str, per_row: bool) -> str:
        """See `RowText`."""
        return f"if (lane == 0) y{position}[row] = {value};" if per_row else f"y{position}[at] = {value};"


def row_lines(op: RowGroup, node: Node, printer: CuPyWriter) -> Lines:
    """The statement that computes all results of a region."""
    types = [printer.kernels.type_of(a) for a in node.args]
    values = [Node.of(RowGroup(op.body, k, op.full), node.args) for k in range(len(op.body.output_nodes))]
    source = WarpRows(op.body, op.full, Body(real_type(printer.dtype))).source("row_group", types)
    kernel = printer.kernels.raw("row_group", source)
    printer.imports.add("import math")
    helper = printer.helper("_row_group", CALL)
    arrays = ", ".join(printer.array_text(a) for a in node.args)
    shapes = ", ".join(printer.dims(v.shape) for v in values)
    names = ", ".join(printer.result_names(range(len(values))))
    names = f"{names}," if len(values) == 1 else names
    made = f"{printer.type_text}, cp.{printer.accumulator}"
    return [f"{names} = {helper}({kernel}, [{arrays}], [{shapes}], {printer.dims(op.full)}, {made})"]
