"""Loop nests as inner loops of ufuncs: C text.

A kernel goes over rows, and over the elements of each. A nest of elementwise nodes alone is called for long
pieces of arrays, as one row each; one with sums for rows, as a generalized ufunc. NumPy iterates over arrays
of any layout; what is not contiguous is copied into short buffers first. Threads divide long arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.graph import Node, op_of
from symad.higher_order.scan import Local
from symad.numeric.compiled_arrays.c.c_body import C_TYPE, NativeBody
from symad.numeric.compiled_arrays.c.drivers import driven
from symad.numeric.fusion.nest import Nest, is_row_dot, repeats_columns
from symad.numeric.fusion.nest_loops import NestText, RowLoop, joined
from symad.ops.elementwise.selection import Condition

WAITING_LENGTH = 256
"""Elements whose results are delayed until the arguments of all sines are known."""


@dataclass(frozen=True)
class Operand:
    """An argument or result of a kernel."""

    name: str
    is_row: bool
    """True for the elements of a row, false for a single number."""
    position: int
    """The number of the input or result of the nest to which it belongs."""
    type: str
    """The type of its elements in C."""


@dataclass(frozen=True)
class KernelText:
    """The C functions of a nest: the kernel, and the one that NumPy calls."""

    text: str
    body: NativeBody
    inputs: Sequence[Operand]
    results: Sequence[Operand]
    by_rows: bool

    @property
    def signature(self) -> str:
        """The signature in NumPy's notation, such as (n),()->(n); empty for a kernel of elements."""
        sides = (",".join("(n)" if o.is_row else "()" for o in side) for side in (self.inputs, self.results))
        return "->".join(sides) if self.by_rows else ""


def result_type(node: Node, dtype: str) -> str:
    """NumPy's type of the value of a node of a body."""
    return "bool" if isinstance(node.op, Condition) else dtype


def computed_type(kind: str, real: str) -> str:
    """The type in C in which elements of one of NumPy's types are computed with."""
    return real if kind.startswith("float") or kind == "int64" else C_TYPE[kind]


class NativeNest(NestText):
    """The C text of one nest over rows."""

    skips = True

    def __init__(self, nest: Nest, real: str, types: Sequence[str], kinds: Sequence[str]) -> None:
        """See `kernel_source`."""
        super().__init__(nest, NativeBody(real))
        self.types, self.kinds = types, kinds

    def inputs(self) -> list[Operand]:
        """The arguments; one array may serve as rows, as one row for all, and as a number for each row."""
        dots = [n for n in self.order if is_row_dot(n, self.full)]
        columns = [n for n in self.order if repeats_columns(n, self.full)]
        repeated = {n.args[0] for n in columns} | {n.args[1] for n in dots}
        direct = {a for n in self.order if n not in columns and n not in dots for a in n.args}
        direct.update(self.body.output_nodes)
        found = []
        for local in self.body.input_nodes:
            k = op_of(local, Local).position
            kind = C_TYPE[self.types[k]]
            if not self.per_row(local):
                found.append(Operand(f"x{k}", True, k, kind))
                continue
            if local in repeated:
                found.append(Operand(f"c{k}", True, k, kind))
            if local in direct or local not in repeated:
                found.append(Operand(f"r{k}_", False, k, kind))
        return found

    def per_row(self, node: Node) -> bool:
        """See `NestText`; what is made of numbers alone is computed before the loop over elements, too."""
        number = not self.nest.axes and bool(self.full) and not node.shape
        return super().per_row(node) or (number and node not in self.body.output_nodes)

    def results(self) -> list[Operand]:
        """The results."""
        made = enumerate(self.body.output_nodes)
        return [Operand(f"y{k}", not self.per_row(n), k, C_TYPE[self.kinds[k]]) for k, n in made]

    def element(self, position: int) -> str:
        """See `NestText`."""
        return f"x{position}[j]"

    def column(self, position: int) -> str:
        """See `NestText`."""
        return f"c{position}[j]"

    def number(self, position: int, per_row: bool) -> str:
        """See `NestText`."""
        return f"r{position}_"

    def result(self, position: int) -> str:
        """See `NestText`."""
        return f"y{position}[j]"

    def kind(self, position: int) -> str:
        """See `NestText`."""
        return computed_type(self.types[position], self.c.real)

    def over_row(self, loop: RowLoop) -> list[str]:
        """See `NestText`; results wait where sines may need a second computation."""
        if loop.near == loop.lines:
            return vector_loop(loop, "columns", [f"y{k}[j] = {value};" for k, value in loop.stores])
        return self._waiting(loop)

    def store(self, position: int, value: str, per_row: bool) -> str:
        """See `NestText`."""
        return f"*y{position} = {value};"

    def _waiting(self, loop: RowLoop) -> list[str]:
        """Results of short pieces stay in buffers until all arguments of sines are known to be small enough.

        The results may overwrite the arguments, which a second computation would need.
        """
        real, buffers = self.c.real, dict.fromkeys(k for k, _ in loop.stores)
        kept = [f"t{k}[j - first] = {value};" for k, value in loop.stores]
        before = [f"const {real} before_{t.name} = {t.name};" for t in loop.totals]
        zeros = [f"{t.name} = 0;" for t in loop.totals if t.kind == "+"]
        return [
            f"for (ptrdiff_t first = 0; first < columns; first += {WAITING_LENGTH}) {{",
            f"  const ptrdiff_t most = first + {WAITING_LENGTH}, end = columns < most ? columns : most;",
            *(f"  {C_TYPE[self.kinds[k]]} t{k}[{WAITING_LENGTH}];" for k in buffers),
            *(f"  {line}" for line in (*before, *zeros)),
            "  symad_bits far = 0;",
            *vector_loop(loop, "end", kept, "first", near=True),
            "  if (far) {",
            *(f"  {line}" for line in zeros),
            *plain_loop(loop, "end", kept, "first"),
            "  }",
            *(f"  {joined(t.name, t.kind, f'before_{t.name}')}" for t in loop.totals),
            *(f"  memcpy(y{k} + first, t{k}, (end - first) * sizeof *t{k});" for k in buffers),
            "}",
        ]


def vector_loop(
    loop: RowLoop, end: str, stores: Sequence[str], first: str = "0", near: bool = False
) -> list[str]:
    """A loop over elements with vector instructions, with ``near`` by the branch-free statements."""
    names: dict[str, list[str]] = {}
    for total in loop.totals:
        names.setdefault(total.kind, []).append(total.name)
    if near:
        names["|"] = ["far"]
    reductions = [f" reduction({kind}:{','.join(found)})" for kind, found in names.items()]
    return [f"#pragma omp simd{''.join(reductions)}", *plain_loop(loop, end, stores, first, near)]


def plain_loop(
    loop: RowLoop, end: str, stores: Sequence[str], first: str = "0", near: bool = False
) -> list[str]:
    """A loop over elements."""
    lines = [*loop.given, *(loop.near if near else loop.lines), *stores, *(t.line for t in loop.totals)]
    head = f"  for (ptrdiff_t j = {first}; j < {end}; j++) {{"
    return [head, *(f"    {line}" for line in lines), "  }"]


def kernel_source(name: str, nest: Nest, types: Sequence[str], kinds: Sequence[str], real: str) -> KernelText:
    """The C text of a nest.

    Args:
        name: the name of the function that NumPy calls.
        nest: the nest; the axes of its rows are the last ones.
        types: NumPy's types of the inputs.
        kinds: NumPy's types of the results.
        real: the name of the floating-point type in C.
    """
    writer = NativeNest(nest, real, types, kinds)
    writer.write()
    inputs, results = writer.inputs(), writer.results()
    every, opened = [*inputs, *results], []
    for k, o in enumerate(every):
        const = "const " if k < len(inputs) else ""
        place = f"({const}{o.type} *)(at[{k}] + row * steps[{k}])"
        if k < len(inputs) and not o.is_row:
            opened.append(f"const {writer.kind(o.position)} {o.name} = *{place};")
        else:
            opened.append(f"{const}{o.type} *{o.name} = {place};")
    rows = "const ptrdiff_t rows, const ptrdiff_t columns, char *const *at, const ptrdiff_t *steps"
    sizes = [f"sizeof({o.type})" if o.is_row else "0" for o in every]
    lines = [
        f"SYMAD_ONCE void {name}_row({rows}) {{",
        "for (ptrdiff_t row = 0; row < rows; row++) {",
        *(f"  {line}" for line in opened),
        *writer.lines,
        "}",
        "}",
        *driven(name, bool(nest.axes), len(inputs), sizes),
    ]
    assert isinstance(writer.c, NativeBody)
    return KernelText("\n".join(lines) + "\n", writer.c, inputs, results, bool(nest.axes))
