"""The writer of NumPy modules whose chains, rows and loops are compiled kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from symad.core.graph import Graph, Node
from symad.numeric.compiled_arrays.c.blas_calls import GEMM
from symad.numeric.compiled_arrays.c.c_body import HEAD, LETTER, NAME, REAL, NativeBody
from symad.numeric.compiled_arrays.c.c_body import functions as c_functions
from symad.numeric.compiled_arrays.c.drivers import SIGNATURE, drivers, gather_source
from symad.numeric.compiled_arrays.c.loop_text import LoopText
from symad.numeric.compiled_arrays.c.nest_text import result_type
from symad.numeric.compiled_arrays.choose_kernels import fuse, has_c_steps
from symad.numeric.compiler.c_compiler import FULL, level
from symad.numeric.compiler.c_templates import filled
from symad.numeric.fusion.nest import is_chain
from symad.numeric.numpy_arrays import lower
from symad.numeric.numpy_arrays.lower import NumPyWriter
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.passes import prepare
from symad.numeric.passes.bodies import loop_of
from symad.numeric.pipelines import ProgramPass, array_program, functions
from symad.numeric.program.expressions import Expression, Value
from symad.numeric.program.statements import Assign
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.scheduling.plans import Plans
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.target import MatrixProduct
from symad.ops.basic.sources import ArrayConstant
from symad.ops.sparse.csr import IntArray

MULTIPLY = "_multiply"
"""The name in generated code of the function that multiplies matrices."""


def _tuple(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed) + ("," if len(listed) == 1 else "")


class NativeWriter(NumPyWriter):
    """The state of one module: that of NumPy's writer, and the texts of the kernels."""

    def __init__(self, graph: Graph, dtype: str, roles: Roles) -> None:
        """See `ArrayWriter`."""
        super().__init__(graph, dtype, lower.plans(passes, dtype, roles))
        self.kernels: dict[str, tuple[str, str, str]] = {}
        """The name, types and signature of each kernel, by its text with the name left out."""
        self.bodies: list[NativeBody] = []
        self.loops: dict[str, str] = {}
        """The name of each loop, by its text with the name left out."""
        self.uses_products = False
        self.multiplies = False

    @property
    def real(self) -> str:
        """The name of the floating-point type in C."""
        return REAL[self.dtype]

    def decorators(self) -> list[str]:
        """A decorator that hides warnings: vector code computes both branches of a selection, with flags."""
        if not self.kernels and not self.loops:
            return super().decorators()
        return [f'@{self.np}.errstate(all="ignore")']

    def blocks(self) -> list[list[str]]:
        """See `Writer.blocks`: the constants, and the kernels."""
        (lines,) = super().blocks()
        if self.multiplies:
            lines.append(f'{MULTIPLY} = product_function("{self.dtype}")')
        quick = f", optimize={level()}" if level() < FULL else ""
        if self.kernels or self.loops:
            lines.append(f'KERNELS = r"""{self.c_source}"""')
        if self.kernels:
            made = _tuple(f"_{name}" for name, _, _ in self.kernels.values())
            declared = [f"    {declaration!r}," for declaration in self.kernels.values()]
            lines += [f"{made} = compiled(KERNELS, [", *declared, f"]{quick})"]
        if self.loops:
            made = _tuple(f"_{name}" for name in self.loops.values())
            lines.append(f"{made} = compiled_loops(KERNELS, {list(self.loops.values())!r}{quick})")
        return [lines]

    @cached_property
    def c_source(self) -> str:
        """The C file with all kernels, once all are known."""
        named = {text: name for text, (name, _, _) in self.kernels.items()} | self.loops
        texts = [filled(text, {"name": name}.__getitem__) for text, name in named.items()]
        gemm = filled(GEMM, {"real": self.real}.__getitem__) if self.uses_products else ""
        kernels = "\n".join(texts)
        return "\n".join([HEAD, gemm, drivers(kernels), c_functions(self.bodies, self.real), kernels])

    def kernel(self, text: str, body: NativeBody, types: str, signature: str = "") -> str:
        """The name of a kernel; equal texts share one."""
        if text not in self.kernels:
            self.kernels[text] = f"kernel_{len(self.kernels) + 1}", types, signature
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
        """See `ArrayWriter.taken_line`; the positions have 32 bits."""
        places, letter = self.constant(index.astype(np.int32)), LETTER[self.dtype]
        text = gather_source(NAME, self.real)
        name = self.kernel(text, NativeBody(self.real), f"{letter}i->{letter}", SIGNATURE)
        return f"{name}({values}, {places}, {entries})"

    def types(self, args: Sequence[Expression]) -> list[str]:
        """NumPy's types of operands."""
        return [self.kind(a) or self.dtype for a in args]

    def room(self, made: Assign, lines: list[str], ends: bool = False) -> str | None:
        """The place of a result: a given array, kept memory, or with ``ends`` an operand not read again.

        A statement that makes memory is added to ``lines``. None: the kernel makes a new array.
        """
        if made.over in self.rooms:
            return self.keep_name(made.value, made.over)
        if ends and made.over is not None and self.is_name(self.named[made.over]):
            return self.keep_name(made.value, made.over)
        if not made.kept:
            return None
        name = self.name_for(made.value)
        lines.append(f"{name} = {new_text(made.value.shape, self)}")
        return name

    def call(
        self, name: str, args: Sequence[str], made: Sequence[Assign | None], places: Sequence[str | None]
    ) -> str:
        """The statement that computes values in their places; None stands for results that are not read."""
        names = []
        for one, place in zip(made, places, strict=True):
            if one is not None:
                self.note(one.value, one.expression, one.over)
            names.append("_" if place or one is None else self.name_for(one.value))
        given = [*args, *(p or "None" for p in places)] if any(places) else [*args]
        text = f"{name}({', '.join(given)})"
        return text if all(places) else f"{', '.join(names)} = {text}"


def passes(dtype: str, plans: Plans, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
    """The passes on the program of a block; entries of sparse matrices are gathered, which C does faster."""

    def compiles(value: Value) -> bool:
        """Whether the loop that computes a value is one function: of one state, over arrays of the dtype."""
        node = plans.nodes[value]
        op = loop_of(node)
        plain = all(_type_of(a, dtype, plans) == dtype for a in node.args)
        return plain and op.states == 1 and has_c_steps(op.body)

    called = functions(plans.step, lambda graph: fuse(prepare(graph), dtype), sparse=True)
    return array_program(dtype, plans, places, called, True, compiles)


def _type_of(node: Node, dtype: str, plans: Plans) -> str:
    """NumPy's type of an array of the program."""
    while is_view(node):
        node = node.args[0]
    if is_chain(node.op):
        return result_type(node.op.body.output_nodes[node.op.index], dtype)
    if isinstance(node.op, ArrayConstant):
        whole = np.dtype(node.op.dtype).kind in "iu" and node.op in plans.numbers
        return "bool" if np.dtype(node.op.dtype).kind == "b" else "int64" if whole else dtype
    return result_type(node, dtype)
