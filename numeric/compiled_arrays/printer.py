"""Array graphs as NumPy modules whose chains and rows are compiled kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from symad.core.dims import Shape, same_shape
from symad.core.graph import Graph, Node, op_of
from symad.fused.pair_sum import PairSum, PairSumCotangent
from symad.numeric.compiled_arrays.c.blas_calls import GEMM
from symad.numeric.compiled_arrays.c.c_body import HEAD, LETTER, NAME, REAL, NativeBody, functions
from symad.numeric.compiled_arrays.c.chain_text import (
    by_rows_source,
    chain_source,
    result_type,
    sum_source,
)
from symad.numeric.compiled_arrays.c.compilable import has_c_steps
from symad.numeric.compiled_arrays.c.drivers import drivers
from symad.numeric.compiled_arrays.c.gather_text import gather_line
from symad.numeric.compiled_arrays.c.loop_text import LoopText
from symad.numeric.compiled_arrays.c.row_entry import Operand
from symad.numeric.compiled_arrays.c.row_text import region_source
from symad.numeric.compiled_arrays.c.softmax_text import softmax_signature, softmax_source
from symad.numeric.compiled_arrays.choose_kernels import fuse
from symad.numeric.compiled_arrays.pair_sums import pair_sum_lines
from symad.numeric.compiled_arrays.run.loop_calls import loop_call
from symad.numeric.compiler.c_templates import filled
from symad.numeric.fusion.chains import Fused, FusedSum
from symad.numeric.fusion.rows import RowGroup
from symad.numeric.numpy_arrays.elementwise_statements import operand
from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.owners import owner
from symad.numeric.numpy_arrays.texts import Name
from symad.numeric.passes.loop import loop_of
from symad.numeric.program.expressions import Compute, Expression, Value
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Statement
from symad.numeric.program_passes.lines.repeats import is_repeated
from symad.numeric.program_passes.loops.loop_layout import states_of
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.targets.target import MatrixProduct
from symad.ops.arrays.softmax import (
    ExponentialOp,
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.basic.shaping import Slice
from symad.ops.basic.sources import ArrayConstant
from symad.ops.sparse.csr import IntArray

if TYPE_CHECKING:
    from symad.numeric.backends import ArrayLibrary

SOFTMAX: dict[type, str] = {
    Softmax: "softmax",
    LogSoftmax: "log_softmax",
    LogSumExp: "log_sum_exp",
    SoftmaxTangent: "softmax_tangent",
    LogSoftmaxTangent: "log_softmax_tangent",
    LogSoftmaxCotangent: "log_softmax_cotangent",
}


MULTIPLY = "_multiply"
"""The name in generated code of the function that multiplies matrices."""

MIN_CHEAP_ROW = 2048
"""Elements of a row from which NumPy's overhead per row does not matter.

Kernels that go over the rows themselves take 0.7 of the time up to 2048 elements, 0.93 to 0.99 at 8192
(bench_thresholds.py, "rows in C").
"""


def _is_part(node: Node) -> bool:
    """Whether an array is a view whose rows do not follow each other in memory."""
    while is_view(node) and not isinstance(node.op, Slice):
        node = node.args[0]
    return isinstance(node.op, Slice) and not same_shape(node.shape[1:], node.args[0].shape[1:])


def _ends_in_one(node: Node, full: Shape) -> bool:
    """Whether a result of a region has one number for each row, on an axis of length 1."""
    return len(node.shape) == len(full) and not same_shape(node.shape, full)


def _tuple(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed) + ("," if len(listed) == 1 else "")


class NativePrinter(InPlacePrinter):
    """The state of one module: that of NumPy's printer, and the texts of the kernels."""

    gathers = True  # a compiled gather is also faster than assignments to slices with steps

    def __init__(self, graph: Graph, library: ArrayLibrary, dtype: str) -> None:
        """See `InPlacePrinter`."""
        super().__init__(graph, library, dtype)
        self.kernels: dict[str, tuple[str, str, str]] = {}
        """The name, types and signature of each kernel, by its text with the name left out."""
        self.function_names: dict[str, str] = {}
        """The names of the functions in the kernels' texts."""
        self.bodies: list[NativeBody] = []
        self.loops: dict[str, str] = {}
        """The name of each loop, by its text with the name left out."""
        self.uses_products = False
        self.multiplies = False

    @property
    def real(self) -> str:
        """The name of the floating-point type in C."""
        return REAL[self.dtype]

    def prepared(self, graph: Graph) -> Graph:
        """See `ArrayPrinter.prepared`."""
        return fuse(super().prepared(graph), self.dtype)

    def decorators(self, graph: Graph) -> list[str]:
        """A decorator that hides warnings: vector code computes both branches of a selection, with flags."""
        if not self.kernels and not self.loops:
            return super().decorators(graph)
        return [f'@{self.np}.errstate(all="ignore")']

    def preliminaries(self) -> list[str]:
        """The lines that define the constants and the kernels."""
        lines = super().preliminaries()
        if self.multiplies:
            lines.append(f'{MULTIPLY} = product_function("{self.dtype}")')
        if self.kernels or self.loops:
            lines.append(f'KERNELS = r"""{self.c_source}"""')
        if self.kernels:
            made = _tuple(f"_{name}" for name, _, _ in self.kernels.values())
            declared = [f"    {declaration!r}," for declaration in self.kernels.values()]
            lines += [f"{made} = compiled(KERNELS, [", *declared, "])"]
        if self.loops:
            made = _tuple(f"_{name}" for name in self.loops.values())
            lines.append(f"{made} = compiled_loops(KERNELS, {list(self.loops.values())!r})")
        return lines

    @cached_property
    def c_source(self) -> str:
        """The C file with all kernels, once all are known."""
        named = self.function_names | self.loops
        texts = [filled(text, {"name": name}.__getitem__) for text, name in named.items()]
        gemm = filled(GEMM, {"real": self.real}.__getitem__) if self.uses_products else ""
        kernels = "\n".join(texts)
        return "\n".join([HEAD, gemm, drivers(kernels), functions(self.bodies, self.real), kernels])

    def kernel(self, text: str, body: NativeBody, types: str, signature: str = "", suffix: str = "") -> str:
        """The name of a kernel; equal texts share one. NumPy calls the C function with the suffix."""
        if text not in self.kernels:
            self.function_names[text] = f"kernel_{len(self.kernels) + 1}"
            self.kernels[text] = (f"{self.function_names[text]}{suffix}", types, signature)
            self.bodies.append(body)
            self.imports.add("from symad.numeric.compiled_arrays.ufuncs import compiled")
        return f"_{self.kernels[text][0]}"

    def loop(self, text: LoopText, source: str) -> str:
        """The name of a loop; equal texts share one."""
        if source not in self.loops:
            self.loops[source] = f"loop_{len(self.loops) + 1}"
            self.bodies += text.texts
            self.uses_products |= text.uses_products
            self.imports.add("from symad.numeric.compiled_arrays.run.loops import compiled_loops, run_loop")
        return f"_{self.loops[source]}"

    def product_text(self, product: MatrixProduct) -> str:
        """See `InPlacePrinter.product_text`."""
        self._with_products()
        return f"{MULTIPLY}({product.left}, {product.right}){product.after}"

    def product_into(self, product: MatrixProduct, place: str) -> str:
        """See `InPlacePrinter.product_into`."""
        self._with_products()
        return f"{MULTIPLY}({product.left}, {product.right}, {place})"

    def _with_products(self) -> None:
        self.multiplies = True
        self.imports.add("from symad.numeric.compiled_arrays.blas import product_function")

    def multiplication(self) -> str:
        """See `InPlacePrinter.multiplication`."""
        self._with_products()
        return MULTIPLY

    def compiles(self, value: Value) -> bool:
        """See `InPlacePrinter.compiles`: loops with one state, over arrays of the module's dtype."""
        node = self.block.nodes[value]
        op = loop_of(node)
        plain = all(self.type_of(a) == self.dtype for a in node.args)
        return plain and states_of(op) == 1 and has_c_steps(op.body)

    def opened(self, statement: Statement) -> list[str]:
        """See `ArrayPrinter.opened`; a compiled loop is one call."""
        if isinstance(statement, Loop) and statement.compiled:
            return loop_call(statement, self)
        return super().opened(statement)

    def statement(self, node: Node) -> list[str]:
        """The statements of one node; all results of a kernel are computed by one statement."""
        op = node.op
        if isinstance(op, Fused):
            return self._chain(node, op)
        if isinstance(op, FusedSum):
            return self._sum(node, op)
        if isinstance(op, RowGroup):
            return self._region(node, op)
        if type(op) in SOFTMAX and self._is_over_rows(node):
            return self._softmax(node)
        if isinstance(op, (PairSum, PairSumCotangent)):
            return pair_sum_lines(op, node, self) or super().statement(node)
        return super().statement(node)

    # ---- sparse matrices -------------------------------------------------------------------------

    def taken_line(self, values: str, index: IntArray, entries: str) -> str:
        """See `InPlacePrinter.taken_line`."""
        return gather_line(values, index, entries, self)

    # ---- chains ----------------------------------------------------------------------------------

    def _chain(self, node: Node, op: Fused) -> list[str]:
        results = op.body.output_nodes
        values = [self.computed.get(k) for k in range(len(results))]
        types, kinds = self._types(node.args), [result_type(r, self.dtype) for r in results]
        text, body = chain_source(NAME, op.body, types, kinds, self.real)
        letters = f"{''.join(LETTER[t] for t in types)}->{''.join(LETTER[k] for k in kinds)}"
        by_rows = self._is_by_rows(node)
        if by_rows:
            ranks = [2 if a.shape else 0 for a in (*node.args, *results)]
            text += by_rows_source(NAME, ranks)
            cores = ["(m,n)" if rank else "()" for rank in ranks]
            given, made = cores[: len(types)], cores[len(types) :]
            name = self.kernel(text, body, letters, f"{','.join(given)}->{','.join(made)}", "_rows")
        else:
            name = self.kernel(text, body, letters)
        args = [operand(a, self) for a in self._operands(node)]
        opened, outs = self._places(values, kinds, not by_rows)
        return [*opened, self._call(name, args, values, outs)]

    def _operands(self, node: Node) -> tuple[Expression, ...]:
        """The expressions that the statement of a node reads."""
        expression = self.placed.steps[node][0].expression
        assert isinstance(expression, Compute)
        return expression.args

    def _is_by_rows(self, node: Node) -> bool:
        """Whether operands are parts of arrays with short rows, and none is broadcast along an axis."""
        if len(node.shape) < 2 or not isinstance(node.shape[-1], int) or node.shape[-1] > MIN_CHEAP_ROW:
            return False
        arrays = [a for a in node.args if a.shape]
        whole = all(same_shape(a.shape, node.shape) for a in arrays)
        whole = whole and not any(is_repeated(a) for a in self._operands(node))
        return whole and any(_is_part(a) for a in arrays)

    def _places(
        self, values: Sequence[Node | None], kinds: Sequence[str], over: bool = True
    ) -> tuple[list[str], list[str | None]]:
        """The place of each result: a slot, a box, an operand that is not read again, or a new array."""
        lines: list[str] = []
        places: list[str | None] = []
        for value, kind in zip(values, kinds, strict=True):
            if value is None:
                places.append(None)
                continue
            ending = self.text.get(self.over[value]) if over and value in self.over else None
            if value in self.slots:
                places.append(self.slots[value])
            elif kind == self.dtype and isinstance(ending, Name):  # the operand has an array of its own
                places.append(ending)
            elif kind == self.dtype and self.placed.kept(value):
                fresh = self.name_for(value)
                lines.append(f"{fresh} = {new_text(value.shape, self)}")
                places.append(fresh)
            else:
                places.append(None)
        return lines, places

    def _call(
        self, name: str, args: Sequence[str], values: Sequence[Node | None], places: Sequence[str | None]
    ) -> str:
        """The statement that computes some values in their places."""
        made = []
        for value, place in zip(values, places, strict=True):
            if value is not None:
                self.text[value] = place or self.name_for(value)
            made.append("_" if place or value is None else self.text[value])
        given = [*args, *(p or "None" for p in places)] if any(places) else [*args]
        call = f"{name}({', '.join(given)})"
        return call if all(places) else f"{', '.join(made)} = {call}"

    # ---- sums ------------------------------------------------------------------------------------

    def _sum(self, node: Node, op: FusedSum) -> list[str]:
        types = self._types(node.args)
        text, body = sum_source(NAME, op.body, types, self.real)
        cores = ["(n)" if a.shape else "()" for a in node.args]
        letters = f"{''.join(LETTER[t] for t in types)}->{LETTER[self.dtype]}"
        name = self.kernel(text, body, letters, f"{','.join(cores)}->()")
        full = op.body.output_nodes[0].shape
        merged = len(op.axes) if len(op.axes) > 1 else 0
        args = []
        for a in node.args:
            if merged and a.shape:
                lead = [self.dim(d) for d in full[: len(full) - merged]]
                args.append(f"{self.text[a]}.reshape({', '.join([*lead, '-1'])})")
            else:
                args.append(self.text[a])
        slot = self.slots.get(node)
        if slot is not None and node.shape:
            self.text[node] = slot
            return [f"{name}({', '.join([*args, slot])})"]
        self.text[node] = self.name_for(node)
        return [f"{self.text[node]} = {name}({', '.join(args)})"]

    # ---- rows ------------------------------------------------------------------------------------

    def _region(self, node: Node, op: RowGroup) -> list[str]:
        results = op.body.output_nodes
        values = [self.computed.get(k) for k in range(len(results))]
        text, signature, operands, body = region_source(NAME, op.body, op.full, self.real)
        letter = LETTER[self.dtype]
        name = self.kernel(text, body, f"{letter * len(operands)}->{letter * len(results)}", signature)
        lines: list[str] = []
        args = [self._row_operand(node.args[o.position], o, op) for o in operands]
        places: list[str | None] = []
        ends = {v for v in self.computed.values() if _ends_in_one(v, op.full)}
        for value in values:
            here = value if value not in ends else None
            flat = here is not None and (len(here.shape) == len(op.full) or here.shape == op.full[:-1])
            places.append(self._room(here, lines) if here is not None and flat else None)
        lines.append(self._call(name, args, values, places))
        return [*lines, *(f"{self.text[v]} = {self.text[v]}[..., None]" for v in values if v in ends)]

    def _row_operand(self, arg: Node, operand: Operand, op: RowGroup) -> str:
        text = self.text[arg]
        if not operand.is_row and len(arg.shape) == len(op.full):
            return f"{text}[..., 0]"
        return text

    def _is_over_rows(self, node: Node) -> bool:
        rank = len(node.args[0].shape)
        return bool(op_of(node, ExponentialOp).axes == (rank - 1,))

    def _softmax(self, node: Node) -> list[str]:
        kind = SOFTMAX[type(node.op)]
        text, body = softmax_source(kind, NAME, self.real)
        letter = LETTER[self.dtype]
        name = self.kernel(text, body, f"{letter * len(node.args)}->{letter}", softmax_signature(kind))
        lines: list[str] = []
        args = [self.text[a] for a in node.args]
        place = self._room(node, lines) if node.shape else None
        return [*lines, self._call(name, args, [node], [place])]

    def _room(self, value: Node, lines: list[str]) -> str | None:
        """The place of a value: a slot, or reused memory, for which a statement is added to ``lines``."""
        if value in self.slots or not self.placed.kept(value):
            return self.slots.get(value)
        fresh = self.name_for(value)
        lines.append(f"{fresh} = {new_text(value.shape, self)}")
        return fresh

    # ---- types -----------------------------------------------------------------------------------

    def _types(self, args: Sequence[Node]) -> list[str]:
        return [self.type_of(a) for a in args]

    def type_of(self, node: Node) -> str:
        """NumPy's type of an operand; a part of an array of numbers has the type of that array."""
        if node in self.floats:
            return self.dtype
        op = node.op
        if isinstance(op, Fused):
            return result_type(op.body.output_nodes[op.index], self.dtype)
        if isinstance(op, ArrayConstant):
            kind = np.dtype(op.dtype).kind
            if kind in "iu" and node not in self.row_numbers:
                return self.dtype  # it is read as numbers, and therefore written as numbers
            return {"b": "bool", "i": "int64", "u": "int64"}.get(kind, self.dtype)
        made = owner(node)
        return self.type_of(made) if made is not node else result_type(node, self.dtype)
