"""The writer of CuPy modules: the types of arrays, what is known on the host, and the module's kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from symad.core.graph import Graph, Node, Op, topological
from symad.gpu.compile import KernelFile, kernel_text
from symad.gpu.cupy_library import CUPY, HALVES, IMPORT, imports, type_text
from symad.gpu.passes.fusion import fuse
from symad.gpu.passes.integers import integer_inputs, integer_nodes, wide_constants
from symad.gpu.printers.helpers import HELPERS, IMPORTS, PRODUCTS
from symad.gpu.printers.kernels import Kernels, output_type, verbatim
from symad.numeric.fusion.chains import on_host
from symad.numeric.fusion.nest import is_chain
from symad.numeric.numpy_arrays.expressions import by_definition
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.passes import prepare
from symad.numeric.pipelines import ProgramPass, device_program, functions
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.numeric.scheduling.plans import Plans
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.constants import constant_text
from symad.numeric.targets.target import MatrixProduct, Text
from symad.numeric.targets.writer import Writer
from symad.ops.arrays.gathering import ScatterAdd
from symad.ops.basic.contraction import permutes
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import ArrayConstant

if TYPE_CHECKING:
    import numpy as np


class CuPyPlans(Plans):
    """Programs in the order of their nodes."""

    def order(self, outputs: Sequence[Node]) -> list[Node]:
        """See `Plans.order`."""
        return topological(outputs)


def passes(plans: Plans, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
    """The passes on the program of a block, whose results are written to given places."""
    called = functions(plans.step, lambda graph: fuse(prepare(graph)))
    return device_program(plans, places, called)


class CuPyWriter(ArrayWriter):
    """The state of one module for CuPy: names and constants, and also its kernels."""

    library = IMPORT

    def __init__(self, graph: Graph, dtype: str, roles: Roles) -> None:
        """Print for a floating-point type."""
        super().__init__(graph, dtype, CuPyPlans(passes, roles), CUPY)
        self.kernels = Kernels(dtype)
        self.types: dict[Node, str] = dict.fromkeys(integer_inputs(graph), "int64")
        """The types of nodes that differ from the program's by what reads them: integers, wide constants."""
        self.rows_known: dict[tuple[str, ...], str] = {}
        """Checked row numbers in the body being written, by the names of the arrays they were checked in."""
        self.sources: dict[str, str] = {}
        """The names of kernel sources, by their text."""
        self.host: set[Node] = set()
        self.sites: list[tuple[str, bool, str]] = []
        """Places where kernels check indices: the error, whether negative indices are allowed, the axis."""
        self.flag = ""
        self.input_types: list[str] = []
        """The types of the inputs, as text."""
        self.results = graph.output_nodes if dtype in HALVES else ()
        """The results, which keep their types."""
        self.as_given: set[Node] = set()
        """The inputs that are read in the type in which they are given."""
        self.accumulator = "float32" if dtype in HALVES else dtype
        self.imports |= imports(dtype)

    @contextmanager
    def entered(self, given: Iterable[Value]) -> Iterator[None]:
        """See `ArrayWriter.entered`. The types of what a loop is given are those of the values outside."""
        values, nodes = [*given], self.plans.nodes
        known = {nodes[v]: self.kinds.get(v, "") for v in values if v in nodes}
        around = self.types, self.rows_known
        self.types = self.types | {node: kind for node, kind in known.items() if kind}
        self.rows_known = {}
        self.begin(next(self.plans.outputs[v] for v in values if v in self.plans.outputs), known)
        yield
        self.types, self.rows_known = around

    def begin(self, outputs: Sequence[Node], given: Iterable[Node]) -> None:
        """Record what is known on the host, and the types of integers, before a body is printed."""
        self.host |= on_host(topological(outputs))
        known = {node: self.types.get(node) == "int64" for node in given}
        self.types |= dict.fromkeys(integer_nodes(outputs, known, self.results), "int64")
        if self.dtype in HALVES:
            self.types |= dict.fromkeys(wide_constants(outputs), self.accumulator)

    # ---- what values are -------------------------------------------------------------------------

    def node_of(self, expression: Expression) -> Node | None:
        """The node of a value, of a constant, or of an op on such nodes; None for others."""
        if isinstance(expression, Read):
            return self.plans.nodes.get(expression.value)
        if not isinstance(expression, Compute):
            return None
        known = tuple([a for a in map(self.node_of, expression.args) if a is not None])
        return Node.of(expression.op, known) if len(known) == len(expression.args) else None

    def kind(self, expression: Expression) -> str:
        """See `ArrayWriter.kind`; the type is always known."""
        if not isinstance(expression, Compute):
            return super().kind(expression) or self.dtype
        op, node = expression.op, None if expression.args else Node.of(expression.op, ())
        if node in self.types:
            return self.types[node]
        if isinstance(op, ShapingOp) or permutes(op):
            return self.kind(expression.args[isinstance(op, ScatterAdd)])  # a scatter moves its updates
        if isinstance(op, ArrayConstant):
            return "bool" if op.array.dtype.kind == "b" else self.dtype
        return output_type(op.body.output_nodes[op.index].op if is_chain(op) else op, self.dtype)

    def note(self, value: Value, expression: Expression, over: Value | None = None) -> None:
        """See `ArrayWriter.note`."""
        node = self.plans.nodes.get(value)
        known = self.types.get(node) if node is not None else None
        self.kinds[value] = self.dtype if over is not None else known or self.kind(expression)

    def made_type(self) -> str:
        """The type of the value that is being written, as text."""
        assert self.at is not None
        return type_text(self.kinds[self.at])

    def on_host(self, expression: Expression) -> bool:
        """Whether an expression is a number that is known on the host."""
        return self.node_of(expression) in self.host

    def is_foreign(self, expression: Expression) -> bool:
        """Whether an array is one of integers, or of the wider floats of half precisions."""
        kind = "" if self.on_host(expression) else self.kind(expression)
        return kind == "int64" or kind == self.accumulator != self.dtype

    def read_as(self, expression: Expression, kind: str) -> Read:
        """An array, converted to a type where it is read."""
        value = Value("", expression.shape)
        self.named[value] = f"{self.operand(expression)}.astype({type_text(kind)})"
        self.kinds[value] = kind
        return Read(value)

    # ---- texts -----------------------------------------------------------------------------------

    def array_text(self, expression: Expression) -> str:
        """The value as an array, even if it is a number on the host."""
        text = self.operand(expression)
        kind = type_text(self.kind(expression))
        return f"cp.asarray({text}, dtype={kind})" if self.on_host(expression) else text

    def on_device(self, args: Sequence[Expression]) -> list[str]:
        """The arguments of a kernel; if all are numbers, one becomes an array, which gives it a size."""
        texts = [*map(self.operand, args)]
        if all(map(self.on_host, args)):
            texts[0] = self.array_text(args[0])
        return texts

    def typed(self, expression: Expression) -> str:
        """See `ArrayWriter.typed`; numbers become device arrays, which a function's body expects."""
        text = self.operand(expression)
        return f"cp.asarray({text}, dtype={self.type_text})" if self.on_host(expression) else text

    def sum_over(self, node: Compute, arg: Text, axes: tuple[int, ...]) -> Text | MatrixProduct:
        """See `ArrayWriter.sum_over`; a sum is one kernel."""
        return Writer.sum_over(self, node, arg, axes)

    def without_rule(self, op: Op) -> Text:
        """See `Writer.without_rule`; the op is written by its definition."""
        return by_definition(op, self)

    def helper(self, function: Callable[..., Any] | str, source: str = "") -> str:
        """See `ArrayWriter.helper`; CuPy's version, if the rule of an op is shared with NumPy."""
        if not isinstance(function, str):
            return super().helper(function)
        if function in IMPORTS:
            self.imports.add(IMPORTS[function])
        self.imports.discard("import scipy.linalg")
        if function in PRODUCTS and self.dtype in HALVES and source:
            return super().helper(function, source)  # in float32: finer than the results, also with TF32
        return super().helper(function, HELPERS.get(function, source))

    def input_type(self, position: int) -> str:
        """See `Writer.input_type`."""
        return self.input_types[position]

    def input_helper(self, position: int, usual: str) -> str:
        """See `Writer.input_helper`."""
        return self.helper("_whole") if self.input_types[position] == type_text("int64") else usual

    def flag_name(self) -> str:
        """The name of the array in which kernels record wrong indices."""
        if not self.flag:
            self.flag = self.names.unique("flag")
        return self.flag

    def constant(self, array: np.ndarray, dtype: str | None = None) -> str:
        """The name of a constant array, of the program's type or another."""
        if dtype is None or array.dtype.kind != "f":
            return super().constant(array)
        return self.shared(constant_text(array, dtype, self), "constant")

    def text_constant(self, name: str, text: str) -> str:
        """The name of a module-level string."""
        self.helpers.setdefault(name, f"{name} = {verbatim(text)}\n")
        return name

    def kernel_file(self, name: str) -> str:
        """The name of the string that holds a file of gpu/kernels, for all sources that contain it."""
        path = PurePath(name)
        return self.text_constant(f"_{path.stem}_{path.suffix[1:]}".upper(), kernel_text(name))

    def kernel_source(self, pieces: Sequence[str]) -> str:
        """An expression for the source of kernels: files of gpu/kernels are strings of their own."""
        parts = [self.kernel_file(p.name) if isinstance(p, KernelFile) else verbatim(p) for p in pieces]
        return " + ".join(parts)

    def constant_source(self, pieces: Sequence[str]) -> str:
        """The name of a module-level string that holds the source of kernels."""
        text = self.kernel_source(pieces)
        if text not in self.sources:
            self.sources[text] = f"_source_{len(self.sources) + 1}"
        return self.sources[text]

    @property
    def type_text(self) -> str:
        """See `Writer.type_text`."""
        return type_text(self.dtype)

    def needs(self) -> str:
        """See `Writer.needs`."""
        return "CuPy"

    def blocks(self) -> list[list[str]]:
        """See `Writer.blocks`: a function that makes the constants, once for each device, and the kernels."""
        sources = [[f"{name} = {source}"] for source, name in self.sources.items()]
        return [self._constants(), self.kernels.definitions("cp"), *sources]

    def _constants(self) -> list[str]:
        if not self.constants:
            return []
        self.imports.add("from functools import lru_cache")
        return [
            "@lru_cache(maxsize=None)",
            "def _constants(device):",
            '    """The constant arrays on a device, finished: any stream may read them."""',
            *(f"    {name} = {text}" for text, name in self.constants.items()),
            "    cp.cuda.get_current_stream().synchronize()",
            f"    return {', '.join(self.constants.values())},",
        ]

    def constants_lines(self) -> list[str]:
        """The statement that fetches the constants of the current device."""
        if not self.constants:
            return []
        return [f"{', '.join(self.constants.values())}, = _constants(cp.cuda.Device().id)"]
