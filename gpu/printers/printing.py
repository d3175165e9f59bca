"""The writer of CuPy modules, and the questions how ops are written there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from symad.core.dims import Dim
from symad.core.graph import Graph, Node, Op, topological
from symad.core.questions import question
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp
from symad.gpu.cupy_library import FAST_CUPY, HALVES, IMPORT, imports, type_text
from symad.gpu.passes.fusion import Sums, fuse
from symad.gpu.passes.integers import index_arguments, integer_inputs, integer_nodes, wide_constants
from symad.gpu.printers.helpers import HELPERS, IMPORTS, PRODUCTS
from symad.gpu.printers.kernels import Kernels
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import on_host
from symad.numeric.fusion.nest import Nest
from symad.numeric.numpy_arrays.expressions import defined
from symad.numeric.numpy_arrays.statements import kernel_lines
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.passes import prepare
from symad.numeric.passes.bodies import body_of
from symad.numeric.pipelines import ProgramPass, device_program, functions
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in
from symad.numeric.program.statements import Assign
from symad.numeric.scheduling.plans import Plans, number_of
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.constants import constant_text
from symad.numeric.targets.statements import Lines
from symad.numeric.targets.target import Level, MatrixProduct
from symad.numeric.targets.target import Text as Expressed
from symad.numeric.targets.writer import Writer
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import Source, constant_value
from symad.ops.elementwise.selection import Condition

Piece = tuple[tuple[int, ...], tuple[Dim, ...]] | None
"""The part of an array that a view shows: axes with a fixed position, and the positions; None for all."""

if TYPE_CHECKING:
    import numpy as np

Text: TypeAlias = "str"
Texts: TypeAlias = "tuple[str, ...]"


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
    """The state of one module for CuPy: names and constants, and also its kernels.

    Each value is printed from its node, on which the types of arrays depend.
    """

    library = IMPORT

    def __init__(self, graph: Graph, dtype: str, roles: Roles) -> None:
        """Print for a floating-point type."""
        super().__init__(graph, dtype, CuPyPlans(passes, roles), FAST_CUPY)
        self.kernels = Kernels(dtype)
        self.texts: dict[Node, str] = {}
        """The texts of the nodes of the body being printed."""
        self.computed: dict[int, Node] = {}
        """The results of the statement being printed, by their numbers."""
        self.read: set[Node] = set()
        """All of these results."""
        self.values: dict[Node, Value] = {}
        self.made_here: tuple[Assign, ...] = ()
        self.found: Expression | None = None
        self.slots: dict[Node, str] = {}
        """For a node, the text of the array that it is written to."""
        self.rows_known: dict[tuple[str, ...], tuple[dict[Node, str], str]] = {}
        """Checked row numbers, by the names of the arrays that they were checked in."""
        self.sources: dict[str, str] = {}
        """The names of kernel sources, by their text."""
        self.pieces: dict[Node, list[Piece]] = {}
        """The parts of arrays that are results, by the node of the array."""
        self.host: set[Node] = set()
        self.defaults: set[Node] = set()
        """The arguments of attention ops that nothing else reads."""
        self.sites: list[tuple[str, bool, str]] = []
        """Places where kernels check indices: the error, whether negative indices are allowed, the axis."""
        self.flag = ""
        self.results = graph.output_nodes if dtype in HALVES else ()
        """The results, which keep their types."""
        self.as_given: set[Node] = set()
        """The inputs that are read in the type in which they are given."""
        self.accumulator = "float32" if dtype in HALVES else dtype
        self.imports |= imports(dtype)
        for node in integer_inputs(graph):
            self.kernels.types[node] = "int64"

    @contextmanager
    def entered(self, given: Iterable[Value]) -> Iterator[None]:
        """See `ArrayWriter.entered`. The types of what a loop is given are those of the values outside."""
        values = [*given]
        nodes = self.plans.nodes
        around = self.texts, self.defaults, self.computed, self.read, dict(self.kernels.types)
        self.kernels.types |= {nodes[v]: self.kinds[v] for v in values if v in nodes and self.kinds.get(v)}
        self.texts = {nodes[v]: self.named[v] for v in values if v in nodes}
        self.begin(next(self.plans.outputs[v] for v in values if v in self.plans.outputs))
        yield
        self.texts, self.defaults, self.computed, self.read, self.kernels.types = around

    def begin(self, outputs: Sequence[Node]) -> None:
        """Record what is known on the host, and the types of integers, before a body is printed."""
        order = topological(outputs)
        self.host |= on_host(order)
        others = {a for n in order if not isinstance(n.op, AttentionOp) for a in n.args} | {*outputs}
        self.defaults = {a for n in order if isinstance(n.op, AttentionOp) for a in n.args} - others
        types = self.kernels.types
        known = {node: types.get(node) == "int64" for node in self.texts}
        types |= dict.fromkeys(integer_nodes(outputs, known, self.results), "int64")
        if self.dtype in HALVES:
            types |= dict.fromkeys(wide_constants(outputs), self.accumulator)

    def written(self, made: Sequence[Assign]) -> list[str]:
        """The lines of an assignment, or of all results of one kernel."""
        nodes = {one.value: self.plans.nodes[one.value] for one in made}
        self.values, self.made_here = {node: value for value, node in nodes.items()}, tuple(made)
        self.computed = {number_of(op_in(one.expression)): nodes[one.value] for one in made}
        self.read = {*nodes.values()}
        given = ((nodes[one.value], one.over) for one in made if one.over in self.rooms)
        self.slots = {node: self.named[over] for node, over in given if over is not None}
        lines = []
        for one in made:
            node = nodes[one.value]
            self.at, self.found = one.value, one.expression
            if node not in self.texts:
                lines += self.statement(node)
            self.named[one.value] = self.texts[node]
            self.stems.setdefault(one.value, one.value.stem)
        for one in made:
            node = nodes[one.value]
            place = self.slots.get(node)
            if place is not None and self.texts[node] != place:
                lines.append(self.copied(one.value, one.over, self.texts[node]))
                self.texts[node] = place
        return lines

    def statement(self, node: Node) -> list[str]:
        """The statements of one node; arguments of a type other than the program's are converted first."""
        foreign = self._foreign(node)
        alone = isinstance(node.op, ElementwiseOp) and has_c_form(node)
        if alone and (foreign or self._is_laid_out_anew(node)):
            return self._kernel(node)
        return self._converted(node, foreign) if foreign else self.own(node)

    def own(self, node: Node) -> list[str]:
        """The statements of a node whose arguments have its type."""
        if self._is_default(node):
            self.texts[node] = f"cp.full({self.dims(node.shape)}, 0, dtype={self.type_text})"
            return []
        made: list[str] = own_lines(node.op, node, self)
        return made

    def expression(self, node: Node) -> str:
        """The expression of a node, from the texts of its arguments."""
        made: str = emit(node.op, node, tuple(self.texts.get(a, "") for a in node.args), self)
        return made

    def by_rule(self, node: Node) -> str:
        """The text of a node by the rule for NumPy; that of a source is an atom."""
        args = tuple(map(self._read_again, node.args))
        called = self.found.functions if isinstance(self.found, Compute) else ()
        made = self.text(Compute(node.op, args, node.shape, called))
        return made.inside(Level.ATOM) if isinstance(node.op, Source) else made.text

    def _read_again(self, node: Node) -> Expression:
        """An argument as the rule for NumPy reads it; a slice without a statement is inside of it."""
        if node.op.literal:
            return Compute(node.op, (), node.shape)
        if node not in self.texts:
            return Compute(node.op, tuple(map(self._read_again, node.args)), node.shape)
        value = Value("", node.shape)
        self.named[value], self.plans.nodes[value] = self.texts[node], node
        return Read(value)

    def assigned(self, node: Node) -> list[str]:
        """The statement that assigns a node's expression to its name, and those that it needs."""
        expression = self.expression(node)
        needed, self.before = self.before, []
        if node.op.stored or node.op.literal:
            self.texts[node] = expression
            return needed
        if node in self.slots and isinstance(node.op, (Concatenate, Stack)):
            self.texts[node] = self.slots[node]  # it is assembled there
            return [*needed, expression]
        self.texts[node] = self.name_of(node)
        return [*needed, f"{self.texts[node]} = {expression}"]

    def name_of(self, node: Node) -> str:
        """A fresh name for a result of the statement being printed."""
        value = self.values.get(node)
        return self.name_for(value) if value is not None else self.fresh()

    def name_for(self, value: Value) -> str:
        """See `ArrayWriter.name_for`."""
        name = super().name_for(value)
        if value in self.plans.nodes:
            self.texts[self.plans.nodes[value]] = name
        return name

    def kind(self, expression: Expression) -> str:
        """See `ArrayWriter.kind`."""
        node = self.node_of(expression)
        return self.kernels.type_of(node) if node is not None else ""

    def node_of(self, expression: Expression) -> Node | None:
        """The node of a value or of a constant; None for others."""
        if isinstance(expression, Read):
            return self.plans.nodes.get(expression.value)
        return Node.of(expression.op, ()) if isinstance(expression, Compute) and not expression.args else None

    def sum_over(self, node: Compute, arg: Expressed, axes: tuple[int, ...]) -> Expressed | MatrixProduct:
        """See `ArrayWriter.sum_over`; a sum is one kernel."""
        return Writer.sum_over(self, node, arg, axes)

    def typed(self, expression: Expression) -> str:
        """See `ArrayWriter.typed`; numbers become device arrays, which a function's body expects."""
        text, node = self.operand(expression), self.node_of(expression)
        return f"cp.asarray({text}, dtype={self.type_text})" if node in self.host else text

    def defined_by(self, stands_for: Node, node: Node) -> str:
        """The text of a node that stands for another one, whose statements come before."""
        return defined(stands_for, node, self)

    def result_names(self, numbers: Iterable[int], computed: Mapping[int, Value] | None = None) -> list[str]:
        """See `ArrayWriter.result_names`; the numbers are those of ``self.computed``."""
        named = {k: self.name_of(self.computed[k]) for k in numbers if k in self.computed}
        self.texts |= {self.computed[k]: name for k, name in named.items()}
        return [named.get(k, "_") for k in numbers]

    def _is_default(self, node: Node) -> bool:
        """Whether a node is an array of zeros that attention alone reads, which has a case for it."""
        zeros = isinstance(node.op, Broadcast) and constant_value(node.args[0]) == 0
        return zeros and node in self.defaults

    def _is_laid_out_anew(self, node: Node) -> bool:
        """Whether an operator of CuPy would keep the memory order of a permuted argument."""
        whole = any(self.kernels.type_of(a) == "int64" for a in (node, *node.args))
        views = (Einsum, Slice, Reshape)
        return not whole and any(isinstance(a.op, views) and len(a.shape) > 2 for a in node.args)

    def by_function(self, node: Node) -> list[str]:
        """The statements of a node by a function of the module, as for NumPy."""
        lines = kernel_lines(node.op, self, self.made_here)
        self.texts |= {here: self.named[value] for here, value in self.values.items() if value in self.named}
        return [*lines]

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

    def on_device(self, node: Node) -> list[str]:
        """The arguments of a kernel; if all are numbers, one becomes an array, which gives it a size."""
        texts = [self.texts[a] for a in node.args]
        if all(a in self.host for a in node.args):
            texts[0] = self.array_text(node.args[0])
        return texts

    def array_text(self, node: Node) -> str:
        """The value as an array, even if it is a number on the host."""
        text = self.texts[node]
        return f"cp.asarray({text}, dtype={self.type_of(node)})" if node in self.host else text

    def type_of(self, node: Node) -> str:
        """The type of the array that holds a node's value, as text."""
        return type_text(self.kernels.type_of(node))

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

    def constant_source(self, text: str) -> str:
        """The name of a module-level string that holds the source of kernels."""
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

    def _foreign(self, node: Node) -> list[Node]:
        """The arguments whose type differs from the result's, and which must be converted explicitly."""
        if isinstance(node.op, (Nest, AttentionOp, PairOp, Sums)):
            return []
        numbers = index_arguments(node)
        made, found = self.kernels.type_of(node), []
        for k, arg in enumerate(node.args):
            if self.is_foreign(arg) and self.kernels.type_of(arg) != made and k not in numbers:
                found.append(arg)
        return found

    def is_foreign(self, node: Node) -> bool:
        """Whether a node is an array of integers, or of the wider floats of half precisions."""
        kind = "" if node in self.host else self.kernels.type_of(node)
        return kind == "int64" or kind == self.accumulator != self.dtype

    def _converted(self, node: Node, foreign: Sequence[Node]) -> list[str]:
        """The statements of a node, after its arguments are converted to the program's type."""
        before, types = dict(self.texts), dict(self.kernels.types)
        for arg in foreign:
            self.texts[arg] = f"{before[arg]}.astype({self.type_text})"
            self.kernels.types[arg] = self.dtype
        lines = self.own(node)
        before[node] = self.texts[node]
        self.texts, self.kernels.types = before, types
        kind = self.kernels.type_of(node) if isinstance(node.op, Condition) else self.dtype
        self.kernels.types.setdefault(node, kind)
        return lines

    def _kernel(self, node: Node) -> list[str]:
        """One elementwise node as a kernel, which accepts arguments of any type."""
        args = tuple(dict.fromkeys(node.args))
        kernel = self.kernels.elementwise(body_of(node), [self.kernels.type_of(a) for a in args])
        texts = [self.array_text(a) for a in args]
        self.texts[node] = self.name_of(node)
        return [f"{self.texts[node]} = {kernel}({', '.join(texts)})"]


@question
def emit(op: Op, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """The expression that computes ``node`` from the texts of its arguments."""


@emit.dispatch
def by_target(op: Op, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """NumPy's rule."""
    return printer.by_rule(node)


@question
def own_lines(op: Op, node: Node, printer: CuPyWriter) -> Any:
    """The statements of a node whose arguments have its type."""


@own_lines.dispatch
def one_line_each(op: Op, node: Node, printer: CuPyWriter) -> Lines:
    """By default, one assignment."""
    return printer.assigned(node)
