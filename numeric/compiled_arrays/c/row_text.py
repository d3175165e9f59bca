"""Regions of rows as inner loops of generalized ufuncs: C text.

The core of such a ufunc is one row. NumPy iterates over the rows for any layout of the arrays; a row whose
elements are not contiguous is copied first.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import Shape, same_shape
from symad.core.graph import Graph, op_of
from symad.higher_order.scan import Local
from symad.numeric.compiled_arrays.c.c_body import NativeBody
from symad.numeric.compiled_arrays.c.row_entry import Operand, row_function, signature
from symad.numeric.fusion.row_statements import RowText
from symad.numeric.fusion.rows import is_row_dot, repeats_columns


class NativeRows(RowText):
    """The C text of one region."""

    def operands(self) -> list[Operand]:
        """The arguments; one array may serve as rows, as one row for all, and as a number for each row."""
        dots = [n for n in self.order if is_row_dot(n, self.full)]
        repeated = {n.args[0] for n in self.order if repeats_columns(n, self.full)}
        repeated |= {n.args[1] for n in dots}
        others = [n for n in self.order if not repeats_columns(n, self.full) and n not in dots]
        direct = {a for n in others for a in n.args}
        found = []
        for local in self.body.input_nodes:
            k = op_of(local, Local).position
            if same_shape(local.shape, self.full):
                found.append(Operand(f"x{k}", True, k, self.c.real))
                continue
            if local in repeated:
                found.append(Operand(f"c{k}", True, k, self.c.real))
            if local in direct or local in self.body.output_nodes or local not in repeated:
                found.append(Operand(f"r{k}_", False, k, self.c.real))
        return found

    def results(self) -> list[Operand]:
        """The results."""
        made = enumerate(self.body.output_nodes)
        return [Operand(f"y{k}", not self.per_row(n), k, self.c.real) for k, n in made]

    def source(self, name: str) -> str:
        """The row function, and the function that NumPy calls."""
        self.write()
        return "\n".join(row_function(name, self.operands(), self.results(), self.lines)) + "\n"

    def element(self, position: int) -> str:
        """See `RowText`."""
        return f"x{position}[j]"

    def column(self, position: int) -> str:
        """See `RowText`."""
        return f"c{position}[j]"

    def number(self, position: int, per_row: bool) -> str:
        """See `RowText`."""
        return f"r{position}_"

    def over_row(self, lines: Sequence[str], sums: Sequence[str]) -> list[str]:
        """See `RowText`."""
        pragma = f"#pragma omp simd reduction(+:{', '.join(sums)})" if sums else "#pragma omp simd"
        return [
            pragma,
            "  for (ptrdiff_t j = 0; j < columns; j++) {",
            *(f"    {line}" for line in lines),
            "  }",
        ]

    def store(self, position: int, value: str, per_row: bool) -> str:
        """See `RowText`."""
        return f"*y{position} = {value};" if per_row else f"y{position}[j] = {value};"


def region_source(
    name: str, body: Graph, full: Shape, real: str
) -> tuple[str, str, list[Operand], NativeBody]:
    """The text of a region, its signature, its operands, and its body."""
    rows = NativeRows(body, full, NativeBody(real))
    text = rows.source(name)
    assert isinstance(rows.c, NativeBody)
    assert all(isinstance(node.op, Local) for node in body.input_nodes)
    return text, signature(rows.operands(), rows.results()), rows.operands(), rows.c
