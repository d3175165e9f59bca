"""A region of rows as one kernel: a warp a row, one loop over the row for every level of sums.

Loop p adds up the sums whose terms need the sums of the loops before; a last loop writes. Elementwise
values are computed again in every loop that needs them, from arrays that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from symad.gpu.printers.library import real_type
from symad.graph import Graph, Node, topological
from symad.numeric.fusion.c_text import Body, c_form
from symad.numeric.fusion.rows import RowGroup, is_row_sum, repeats_columns, repeats_rows
from symad.ops.recurrence import Local
from symad.ops.selection import Condition
from symad.ops.shaping import Broadcast, Reshape
from symad.ops.sources import Constant

CALL = '''def _row_group(kernel, inputs, shapes, full, dtype, real):
    inputs = [cp.ascontiguousarray(a.astype(real, copy=False)) for a in inputs]
    outputs = [cp.empty(shape, dtype=real) for shape in shapes]
    rows, columns = math.prod(full[:-1]), full[-1]
    if rows*columns:
        sizes = cp.int64(rows), cp.int64(columns)
        kernel(((rows + 3)//4,), (128,), (*inputs, *outputs, *sizes))
    else:
        outputs = [cp.zeros_like(a) for a in outputs]
    return [a.astype(dtype, copy=False) for a in outputs]
'''


class RowText:
    """The CUDA text of one region."""

    def __init__(self, body: Graph, full: Any, dtype: str) -> None:
        """Note the order of the nodes and the level of each."""
        self.body, self.full = body, full
        self.c = Body(real_type(dtype))
        self.order = topological(body.output_nodes)
        self.level: dict[Node, int] = {}
        for node in self.order:
            deepest = max((self.level[a] for a in node.args), default=0)
            self.level[node] = deepest + is_row_sum(node, full)
        self.text: dict[Node, str] = {}
        self.lines: list[str] = []
        self.serial = 0

    def per_row(self, node: Node) -> bool:
        """Whether the value is one number a row, or a scalar."""
        return len(node.shape) < len(self.full) or (node.shape[-1] == 1 != self.full[-1])

    def source(self, name: str) -> str:
        """The kernel."""
        real = self.c.real
        inputs = [f"const {real} *x{k}" for k in range(len(self.body.input_nodes))]
        results = [f"{real} *y{k}" for k in range(len(self.body.output_nodes))]
        self._rows(0)
        depth = max(self.level.values())
        for level in range(depth):
            self._sums(level)
            self._rows(level + 1)
        self._write()
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

    def _name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def _leaf(self, node: Node) -> str | None:
        """Text of constants and of numbers per row among the inputs."""
        if isinstance(node.op, Constant):
            value = node.op.value
            return str(value).lower() if isinstance(value, bool) else self.c.literal(value)
        if isinstance(node.op, Local):
            return f"x{node.op.position}[{'row' if node.shape else '0'}]"
        return None

    def _rows(self, level: int) -> None:
        """Values per row that are known after so many loops."""
        for node in self.order:
            if self.level[node] != level or node in self.text or not self.per_row(node):
                continue
            leaf = self._leaf(node)
            if leaf is not None:
                self.text[node] = leaf
            elif isinstance(node.op, (Reshape, Broadcast)):
                self.text[node] = self.text[node.args[0]]
            elif not is_row_sum(node, self.full):
                self.text[node] = self._name("r")
                self.lines.append(f"  {self._statement(node, self.text)}")

    def _statement(self, node: Node, text: dict[Node, str]) -> str:
        form = c_form(node.op, node, tuple(text[a] for a in node.args), self.c)
        kind = "bool" if isinstance(node.op, Condition) else self.c.real
        return f"const {kind} {text[node]} = {form};"

    def _loop(self, wanted: Iterable[Node]) -> tuple[list[str], dict[Node, str]]:
        """Statements for elements of a row, and their texts."""
        text, lines = dict(self.text), []
        for node in self._needed(wanted):
            if isinstance(node.op, Local):
                text[node] = self._name("a")
                lines.append(f"const {self.c.real} {text[node]} = x{node.op.position}[at];")
            elif repeats_columns(node, self.full) and isinstance(node.args[0].op, Local):
                text[node] = self._name("a")
                source = f"x{node.args[0].op.position}[j]"
                lines.append(f"const {self.c.real} {text[node]} = {source};")
            elif repeats_rows(node, self.full) or isinstance(node.op, Broadcast):
                text[node] = text[node.args[0]]
            else:
                leaf = self._leaf(node)
                text[node] = leaf if leaf is not None else self._name("w")
                if leaf is None:
                    lines.append(self._statement(node, text))
        return lines, text

    def _needed(self, wanted: Iterable[Node]) -> list[Node]:
        """The nodes without a text that others are computed from, in order."""
        needed, stack = set(), list(wanted)
        while stack:
            node = stack.pop()
            if node not in needed and node not in self.text:
                needed.add(node)
                stack.extend(node.args)
        columns = {n.args[0] for n in needed if repeats_columns(n, self.full)}
        return [n for n in self.order if n in needed and n not in columns]

    def _over_row(self, lines: Sequence[str]) -> None:
        self.lines.append("  for (long long j = lane; j < columns; j += 32) {")
        self.lines.append("    const long long at = row * columns + j;")
        self.lines += [f"    {line}" for line in lines]
        self.lines.append("  }")

    def _sums(self, level: int) -> None:
        """The loop that adds up the sums whose terms are known at a level."""
        sums = [n for n in self.order if is_row_sum(n, self.full) and self.level[n] == level + 1]
        lines, text = self._loop(a for n in sums for a in n.args)
        for node in sums:
            self.text[node] = self._name("s")
            self.lines.append(f"  {self.c.real} {self.text[node]} = 0;")
            lines.append(f"{self.text[node]} += {' * '.join(text[a] for a in node.args)};")
        self._over_row(lines)
        self.lines.append("  for (int step = 16; step > 0; step /= 2) {")
        for node in sums:
            name = self.text[node]
            self.lines.append(f"    {name} += __shfl_xor_sync(0xffffffffu, {name}, step);")
        self.lines.append("  }")

    def _write(self) -> None:
        """The last loop, and one number a row by the first lane."""
        outputs = list(enumerate(self.body.output_nodes))
        whole = [(k, n) for k, n in outputs if not self.per_row(n)]
        if whole:
            lines, text = self._loop(n for _, n in whole)
            self._over_row([*lines, *(f"y{k}[at] = {text[n]};" for k, n in whole)])
        for k, node in outputs:
            if self.per_row(node):
                self.lines.append(f"  if (lane == 0) y{k}[row] = {self.text[node]};")


def row_lines(op: RowGroup, node: Node, printer: Any) -> list[str]:
    """The statement that computes all results of a region."""
    values = [Node.of(RowGroup(op.body, op.full, k), node.args) for k in range(len(op.body.output_nodes))]
    source = RowText(op.body, op.full, printer.dtype).source("row_group")
    kernel = printer.kernels.raw("row_group", source)
    printer.imports.add("import math")
    helper = printer.helper("_row_group", CALL)
    arrays = ", ".join(printer.array_text(a) for a in node.args)
    shapes = ", ".join(printer.dims(v.shape) for v in values)
    for value in values:
        printer.text[value] = printer.value_name()
    names = ", ".join(printer.text[v] for v in values)
    names = f"{names}," if len(values) == 1 else names
    types = f"{printer.type_text}, cp.{printer.accumulator}"
    return [f"{names} = {helper}({kernel}, [{arrays}], [{shapes}], {printer.dims(op.full)}, {types})"]
