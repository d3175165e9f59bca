"""Array graphs as NumPy modules whose chains and rows are compiled kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from symad.core.dims import Shape, same_shape
from symad.core.graph import Graph, Node
from symad.fused.pair_sum import PairOp
from symad.numeric.compiled_arrays.c.blas_calls import GEMM
from symad.numeric.compiled_arrays.c.c_body import HEAD, LETTER, NAME, REAL, NativeBody, functions as c_functions
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
from symad.numeric.compiled_arrays.c.row_text import region_source
from symad.numeric.compiled_arrays.c.softmax_text import softmax_signature, softmax_source
from symad.numeric.compiled_arrays.choose_kernels import fuse
from symad.numeric.compiled_arrays.pair_sums import pair_sum_lines
from symad.numeric.compiled_arrays.run.loop_calls import loop_call
from symad.numeric.compiler.c_templates import filled
from symad.numeric.fusion.chains import Fused, FusedSum
from symad.numeric.fusion.rows import RowGroup
from symad.numeric.numpy_arrays.elementwise_statements import operand
from symad.numeric.numpy_arrays.kernels import pair_lines
from symad.numeric.numpy_arrays.loop_statements import loop_of_rows
from symad.numeric.numpy_arrays.lower import ending_passes
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.plans import Plans
from symad.numeric.numpy_arrays.statements import kernel_lines
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.passes import prepare
from symad.numeric.passes.loop import loop_of
from symad.numeric.pipelines import ProgramPass, functions, in_place
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Assign
from symad.numeric.program_passes.lines.repeats import is_repeated
from symad.numeric.program_passes.loops.loop_layout import states_of
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.scheduling.blocks import number_of
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.statements import Lines, lines
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


def _is_part(array: Expression, writer: ArrayWriter) -> bool:
    """Whether an array is a view whose rows do not follow each other in memory."""
    while isinstance(array, Read) and isinstance(made := writer.made.get(array.value), Compute):
        if isinstance(made.op, Slice):
            return not same_shape(made.shape[1:], made.args[0].shape[1:])
        if not is_view(made):
            return False
        array = made.args[0]
    return False


def _ends_in_one(value: Value, full: Shape) -> bool:
    """Whether a result of a region has one number for each row, on an axis of length 1."""
    return len(value.shape) == len(full) and not same_shape(value.shape, full)


def _tuple(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed) + ("," if len(listed) == 1 else "")


class NativeWriter(ArrayWriter):
    """The state of one module: that of NumPy's writer, and the texts of the kernels."""

    def __init__(self, graph: Graph, library: ArrayLibrary, dtype: str, roles: Roles) -> None:
        """See `ArrayWriter`."""
        super().__init__(graph, library, dtype, Plans(partial(passes, dtype), roles))
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
        return "\n".join([HEAD, gemm, drivers(kernels), c_functions(self.bodies, self.real), kernels])

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

    def multiplication(self) -> str:
        """See `ArrayWriter.multiplication`."""
        self.multiplies = True
        self.imports.add("from symad.numeric.compiled_arrays.blas import product_function")
        return MULTIPLY

    def product_text(self, product: MatrixProduct) -> str:
        """See `ArrayWriter.product_text`."""
        return f"{self.multiplication()}({product.left}, {product.right}){product.after}"

    def taken_line(self, values: str, index: IntArray, entries: str) -> str:
        """See `ArrayWriter.taken_line`."""
        return gather_line(values, index, entries, self)

    def types(self, args: Sequence[Expression]) -> list[str]:
        """NumPy's types of operands."""
        return [self.kind(a) or self.dtype for a in args]

    def room(self, made: Assign, lines: list[str], ends: bool = False) -> str | None:
        """The place of a result: a given array, with ``ends`` an operand that is not read again, or kept memory.

        A statement that makes memory is added to ``lines``. None: the kernel makes a new array.
        """
        if made.over in self.rooms:
            return self.keep_name(made.value, made.over)
        if ends and made.over is not None and self.named[made.over].isidentifier():
            return self.keep_name(made.value, made.over)
        if not made.kept:
            return None
        name = self.name_for(made.value)
        lines.append(f"{name} = {new_text(made.value.shape, self)}")
        return name

    def call(self, name: str, args: Sequence[str], made: Sequence[Assign | None], places: Sequence[str | None]) -> str:
        """The statement that computes some values in their places; None stands for results that are not read."""
        names = []
        for one, place in zip(made, places, strict=True):
            if one is not None:
                self.note(one.value, one.expression, one.over)
            names.append("_" if place or one is None else self.name_for(one.value))
        given = [*args, *(p or "None" for p in places)] if any(places) else [*args]
        text = f"{name}({', '.join(given)})"
        return text if all(places) else f"{', '.join(names)} = {text}"


def passes(dtype: str, plans: Plans, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
    """The passes on the program of a block; compiled gathers are faster than assignments to slices with steps."""

    def compiles(value: Value) -> bool:
        """Whether the loop that computes a value is one function: of one state, over arrays of the dtype."""
        node = plans.nodes[value]
        op = loop_of(node)
        plain = all(_type_of(a, dtype, plans) == dtype for a in node.args)
        return plain and states_of(op) == 1 and has_c_steps(op.body)

    made = in_place(dtype, bool(plans.depth), places, True, plans.step, compiles)
    called = functions(plans.step, lambda graph: fuse(prepare(graph), dtype), sparse=True)
    return (*made, *ending_passes(dtype, plans, called))


def _type_of(node: Node, dtype: str, plans: Plans) -> str:
    """NumPy's type of an array of the program."""
    while is_view(node):
        node = node.args[0]
    if isinstance(node.op, Fused):
        return result_type(node.op.body.output_nodes[node.op.index], dtype)
    if isinstance(node.op, ArrayConstant):
        whole = np.dtype(node.op.dtype).kind in "iu" and node.op in plans.numbers
        return "bool" if np.dtype(node.op.dtype).kind == "b" else "int64" if whole else dtype
    return result_type(node, dtype)


def by_number(made: Sequence[Assign], count: int) -> list[Assign | None]:
    """The assignments of the results of a kernel in the order of their numbers; None for those not read."""
    found = {number_of(op_in(one.expression)): one for one in made}
    return [found.get(k) for k in range(count)]


# ---- chains --------------------------------------------------------------------------------------


@kernel_lines.dispatch
def chain_lines(op: Fused, writer: NativeWriter, made: tuple) -> Lines:
    """The call of an elementwise kernel."""
    args, results = made[0].expression.args, op.body.output_nodes
    types, kinds = writer.types(args), [result_type(r, writer.dtype) for r in results]
    text, body = chain_source(NAME, op.body, types, kinds, writer.real)
    letters = f"{''.join(LETTER[t] for t in types)}->{''.join(LETTER[k] for k in kinds)}"
    by_rows = _is_by_rows(made[0].expression, writer)
    if by_rows:
        ranks = [2 if a.shape else 0 for a in (*args, *results)]
        text += by_rows_source(NAME, ranks)
        cores = ["(m,n)" if rank else "()" for rank in ranks]
        signature = f"{','.join(cores[: len(types)])}->{','.join(cores[len(types) :])}"
        name = writer.kernel(text, body, letters, signature, "_rows")
    else:
        name = writer.kernel(text, body, letters)
    texts, lines = [operand(a, writer) for a in args], []
    values = by_number(made, len(results))
    places = [
        None if one is None or (kind != writer.dtype and one.over not in writer.rooms)
        else writer.room(one, lines, not by_rows)
        for one, kind in zip(values, kinds, strict=True)
    ]  # fmt: skip
    return [*lines, writer.call(name, texts, values, places)]


def _is_by_rows(found: Compute, writer: NativeWriter) -> bool:
    """Whether operands are parts of arrays with short rows, and none is broadcast along an axis."""
    last = found.shape[-1] if len(found.shape) > 1 else None
    if not isinstance(last, int) or last > MIN_CHEAP_ROW:
        return False
    arrays = [a for a in found.args if a.shape]
    whole = all(same_shape(a.shape, found.shape) and not is_repeated(a) for a in arrays)
    return whole and any(_is_part(a, writer) for a in arrays)


# ---- sums ----------------------------------------------------------------------------------------


@kernel_lines.dispatch
def sum_lines(op: FusedSum, writer: NativeWriter, made: tuple) -> Lines:
    """The call of a kernel that sums over the last axes."""
    (one,) = made
    given = one.expression.args
    types = writer.types(given)
    text, body = sum_source(NAME, op.body, types, writer.real)
    cores = ["(n)" if a.shape else "()" for a in given]
    letters = f"{''.join(LETTER[t] for t in types)}->{LETTER[writer.dtype]}"
    name = writer.kernel(text, body, letters, f"{','.join(cores)}->()")
    full = op.body.output_nodes[0].shape
    lead = ", ".join([*map(writer.dim, full[: len(full) - len(op.axes)]), "-1"])
    several = len(op.axes) > 1
    args = [f"{writer.operand(a)}.reshape({lead})" if several and a.shape else writer.operand(a) for a in given]
    place = writer.keep_name(one.value, one.over) if one.over in writer.rooms and one.value.shape else None
    return [writer.call(name, args, [one], [place])]


# ---- rows ----------------------------------------------------------------------------------------


@kernel_lines.dispatch
def region_lines(op: RowGroup, writer: NativeWriter, made: tuple) -> Lines:
    """The call of a kernel of a region of rows."""
    given, results, letter = made[0].expression.args, op.body.output_nodes, LETTER[writer.dtype]
    text, signature, operands, body = region_source(NAME, op.body, op.full, writer.real)
    name = writer.kernel(text, body, f"{letter * len(operands)}->{letter * len(results)}", signature)
    args = []
    for one in operands:
        arg = given[one.position]
        per_row = not one.is_row and len(arg.shape) == len(op.full)
        args.append(f"{writer.operand(arg)}[..., 0]" if per_row else writer.operand(arg))
    lines: list[str] = []
    places: list[str | None] = []
    values = by_number(made, len(results))
    ends = [one for one in values if one is not None and _ends_in_one(one.value, op.full)]
    for one in values:
        flat = one is not None and (len(one.value.shape) == len(op.full) or one.value.shape == op.full[:-1])
        places.append(writer.room(one, lines) if one is not None and flat and one not in ends else None)
    lines.append(writer.call(name, args, values, places))
    for one in ends:
        name = writer.named[one.value]
        lines.append(f"{name} = {name}[..., None]")
        lines += [writer.copied(one.value, one.over, name)] if one.over in writer.rooms else []
    return lines


@kernel_lines.dispatch
def softmax_lines(op: ExponentialOp, writer: NativeWriter, made: tuple) -> Lines:
    """The call of the kernel of a softmax, or of a derivative, over rows; None for other axes."""
    (one,) = made
    given = one.expression.args
    if type(op) not in SOFTMAX or op.axes != (len(given[0].shape) - 1,):
        return None
    kind, letter = SOFTMAX[type(op)], LETTER[writer.dtype]
    text, body = softmax_source(kind, NAME, writer.real)
    name = writer.kernel(text, body, f"{letter * len(given)}->{letter}", softmax_signature(kind))
    lines: list[str] = []
    args = [writer.operand(a) for a in given]
    place = writer.room(one, lines) if one.value.shape else None
    return [*lines, writer.call(name, args, [one], [place])]


@kernel_lines.dispatch
def compiled_pair_lines(op: PairOp, writer: NativeWriter, made: tuple) -> Lines:
    """The kernels of a sum over pairs where they are better than NumPy's blocks."""
    return pair_sum_lines(op, made, writer) or pair_lines(op, writer, made)


@lines.dispatch
def compiled_loop_lines(statement: Loop, writer: NativeWriter) -> Lines:
    """A compiled loop is one call."""
    return loop_call(statement, writer) if statement.compiled else loop_of_rows(statement, writer)
