"""Array graphs as CuPy modules: the statements of the NumPy printer, with fused kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from symad.core.dims import dim_symbols, format_shape
from symad.core.graph import Graph, Node, topological
from symad.derivatives.root import Root
from symad.errors import LoweringError
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp, PairSum, PairSumCotangent
from symad.gpu.attention_kernels.printer import attention_lines, inputs_as_given
from symad.gpu.cupy_library import CUPY, HALVES
from symad.gpu.pairs.printer import has_kernels, pair_lines
from symad.gpu.passes.fusion import fuse
from symad.gpu.passes.integers import index_arguments, integer_inputs, integer_nodes, wide_constants
from symad.gpu.passes.joined_sums import Sums
from symad.gpu.passes.row_programs import RowProgram
from symad.gpu.passes.scaled_sums import SumThen
from symad.gpu.printers import arrays, indices, joining, products, random, rows, sparse  # noqa: F401  (register their answers)
from symad.gpu.printers.array_inputs import input_helpers, inputs_line
from symad.gpu.printers.helpers import HELPERS, IMPORTS
from symad.gpu.printers.indices import report_helpers
from symad.gpu.printers.joined_sums import sums_lines
from symad.gpu.printers.kernels import BOOLEAN, Kernels
from symad.gpu.printers.printing import Piece
from symad.gpu.printers.recurrences import recurrence_lines, row_program_lines
from symad.gpu.printers.results import flat_text, result_text
from symad.gpu.printers.row_groups import row_lines
from symad.gpu.recurrences.recurrence import Recurrence
from symad.gpu.settings import current
from symad.gpu.views import Take
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import Fused, FusedSum, on_host
from symad.numeric.fusion.rows import RowGroup
from symad.numeric.modules.module_text import docstring, module_header, one_line, pack_text
from symad.numeric.modules.size_checks import needed_sizes
from symad.numeric.numpy_arrays.module import shape_checks
from symad.numeric.numpy_arrays.plan import Plan
from symad.numeric.numpy_arrays.printer import ArrayPrinter
from symad.numeric.numpy_arrays.texts import Name
from symad.numeric.passes.bodies import body_of
from symad.numeric.pipelines import ProgramPass, loops_alone
from symad.numeric.program.expressions import Value
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Statement
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.constants import constant_text
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import constant_value, symbol_of
from symad.ops.linalg.solve_det import MatrixOp

if TYPE_CHECKING:
    import numpy as np


class CuPyPrinter(ArrayPrinter):
    """The state of one module for CuPy: names and constants, and also its kernels."""

    in_rows = False

    def __init__(self, graph: Graph, dtype: str) -> None:
        """Print for a floating-point type."""
        super().__init__(graph, CUPY, dtype)
        self.kernels = Kernels(dtype)
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
        self.as_given = inputs_as_given(graph) if dtype in HALVES and current().wide else set()
        """The inputs that are read in the type in which they are given."""
        self.accumulator = "float32" if dtype in HALVES else dtype
        self.imports |= CUPY.imports(dtype)
        for node in integer_inputs(graph):
            self.kernels.types[node] = "int64"

    def prepared(self, graph: Graph) -> Graph:
        """A graph that becomes a function inside this module, fused as the module's own graph is."""
        return fuse(super().prepared(graph))

    def lines_of(self, plan: Plan, rooms: Mapping[Value, Name]) -> list[str]:
        """The lines of a plan; values known on the host are recorded first."""
        outputs = plan.outputs
        order = topological(outputs)
        self.host |= on_host(order)
        others = {a for n in order if not isinstance(n.op, AttentionOp) for a in n.args} | {*outputs}
        around = self.defaults
        self.defaults = {a for n in order if isinstance(n.op, AttentionOp) for a in n.args} - others
        types = self.kernels.types
        known = {node: types.get(node) == "int64" for node in self.text}
        types |= dict.fromkeys(integer_nodes(outputs, known, self.results), "int64")
        if self.dtype in HALVES:
            types |= dict.fromkeys(wide_constants(outputs), self.accumulator)
        lines = super().lines_of(plan, rooms)
        self.defaults = around
        return lines

    def passes(self, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
        """See `ArrayPrinter.passes`."""
        return (*loops_alone(places, self.step), *super().passes(places))

    def opened(self, statement: Statement) -> list[str]:
        """See `ArrayPrinter.opened`. What a loop is given are arrays; its states have the program's type."""
        if not isinstance(statement, Loop):
            return super().opened(statement)
        lines, before = [], dict(self.text)
        outer = [*(c.initial for c in statement.carried), *(r.array for r in statement.rows)]
        for k, expression in enumerate([*outer, *(f.expression for f in statement.fixed)]):
            node = self.node_of(expression)
            if node is not None and node in self.host:
                name = self.value_name()
                lines.append(f"{name} = {self.array_text(node)}")
                self.text[node] = name
            elif node is not None and k < len(statement.carried) and self._is_foreign(node):
                self.text[node] = f"{self.text[node]}.astype({self.type_text})"
        lines += super().opened(statement)
        self.text |= before
        return lines

    @contextmanager
    def knowing(self, given: Mapping[Node, Node]) -> Iterator[None]:
        """See `ArrayPrinter.knowing`: inputs have the types of the nodes outside."""
        around = dict(self.kernels.types)
        self.kernels.types |= {node: self.kernels.type_of(other) for node, other in given.items()}
        yield
        self.kernels.types = around

    def statement(self, node: Node) -> list[str]:
        """The statements of one node; arguments of a type other than the program's are converted first."""
        foreign = self._foreign(node)
        alone = isinstance(node.op, ElementwiseOp) and has_c_form(node)
        if alone and (foreign or self._is_laid_out_anew(node)):
            return self._kernel(node)
        if foreign:
            return self._converted(node, foreign)
        return self._own(node)

    def assignment(self, node: Node, expression: str) -> str:
        """See `ArrayPrinter.assignment`; an array that is assembled in its place has the place's name."""
        if node not in self.slots or not isinstance(node.op, (Concatenate, Stack)):
            return super().assignment(node, expression)
        self.text[node] = self.slots[node]
        return expression

    def _is_default(self, node: Node) -> bool:
        """Whether a node is an array of zeros that attention alone reads, which has a case for it."""
        zeros = isinstance(node.op, Broadcast) and constant_value(node.args[0]) == 0
        return zeros and node in self.defaults

    def _is_laid_out_anew(self, node: Node) -> bool:
        """Whether an operator of CuPy would keep the memory order of a permuted argument."""
        whole = any(self.kernels.type_of(a) == "int64" for a in (node, *node.args))
        views = (Einsum, Take, Reshape)
        return not whole and any(isinstance(a.op, views) and len(a.shape) > 2 for a in node.args)

    def _own(self, node: Node) -> list[str]:
        """The statements of a node; all results of one kernel are computed by one statement."""
        if isinstance(node.op, Fused):
            return self._fused(node, node.op)
        if isinstance(node.op, RowGroup):
            return row_lines(node.op, node, self)
        if self._is_default(node):
            self.text[node] = f"cp.full({self.dims(node.shape)}, 0, dtype={self.type_text})"
            return []
        if isinstance(node.op, Sums):
            return sums_lines(node.op, node, self)
        if isinstance(node.op, RowProgram):
            return row_program_lines(node.op, node, self)
        if isinstance(node.op, Recurrence):
            return recurrence_lines(node.op, node, self)
        if isinstance(node.op, AttentionOp):
            return attention_lines(node.op, node, self)
        if isinstance(node.op, (PairSum, PairSumCotangent)) and has_kernels(node.op, node, self.dtype):
            return pair_lines(node.op, node, self)
        if isinstance(node.op, Root) and self.dtype in HALVES:
            raise LoweringError(f"implicit needs float32 or float64: {self.dtype} cannot converge")
        if isinstance(node.op, MatrixOp) and self.dtype in HALVES:
            return self._widened(node)
        return super().statement(node)

    def helper(self, name: str, source: str) -> str:
        """Add a helper function; in CuPy's version if the printer of an op is shared with NumPy."""
        if name in IMPORTS:
            self.imports.add(IMPORTS[name])
        self.imports.discard("import scipy.linalg")
        return super().helper(name, HELPERS.get(name, source))

    def on_device(self, node: Node) -> list[str]:
        """The arguments of a kernel; if all are numbers, one becomes an array, which gives it a size."""
        texts = [self.text[a] for a in node.args]
        if all(a in self.host for a in node.args):
            texts[0] = self.array_text(node.args[0])
        return texts

    def numbers_typed(self, nodes: Sequence[Node], texts: Sequence[str]) -> list[str]:
        """The arguments of a function, with numbers as device arrays, which the function's body expects."""
        typed = f"cp.asarray({{}}, dtype={self.type_text})"
        return [typed.format(t) if n in self.host else t for n, t in zip(nodes, texts, strict=True)]

    def array_text(self, node: Node) -> str:
        """The value as an array, even if it is a number on the host."""
        text = self.text[node]
        return f"cp.asarray({text}, dtype={self.type_of(node)})" if node in self.host else text

    def type_of(self, node: Node) -> str:
        """The type of the array that holds a node's value, as text."""
        return CUPY.type_text(self.kernels.type_of(node))

    def flag_name(self) -> str:
        """The name of the array in which kernels record wrong indices."""
        if not self.flag:
            self.flag = self.names.unique("flag")
        return self.flag

    def constant_array(self, array: np.ndarray, dtype: str | None = None) -> Name:
        """The name of a constant array, of the program's type or another."""
        if dtype is None or array.dtype.kind != "f":
            return super().constant_array(array)
        return self.constant_text(constant_text(array, dtype, self))

    def constant_source(self, text: str) -> str:
        """The name of a module-level string that holds the source of kernels."""
        if text not in self.sources:
            self.sources[text] = f"_source_{len(self.sources) + 1}"
        return self.sources[text]

    def preliminaries(self) -> list[str]:
        """The function that makes the constants, once for each device."""
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
        if isinstance(node.op, (Fused, FusedSum, SumThen, RowGroup, AttentionOp, PairOp, Sums)):
            return []
        numbers = index_arguments(node)
        made, found = self.kernels.type_of(node), []
        for k, arg in enumerate(node.args):
            if self._is_foreign(arg) and self.kernels.type_of(arg) != made and k not in numbers:
                found.append(arg)
        return found

    def _is_foreign(self, node: Node) -> bool:
        """Whether a node is an array of integers, or of the wider floats of half precisions."""
        kind = "" if node in self.host else self.kernels.type_of(node)
        return kind == "int64" or kind == self.accumulator != self.dtype

    def _converted(self, node: Node, foreign: Sequence[Node]) -> list[str]:
        """The statements of a node, after its arguments are converted to the program's type."""
        before, types = dict(self.text), dict(self.kernels.types)
        for arg in foreign:
            self.text[arg] = f"{before[arg]}.astype({self.type_text})"
            self.kernels.types[arg] = self.dtype
        lines = self._own(node)
        before[node] = self.text[node]
        self.text, self.kernels.types = before, types
        kind = self.kernels.type_of(node) if isinstance(node.op, BOOLEAN) else self.dtype
        self.kernels.types.setdefault(node, kind)
        return lines

    def _kernel(self, node: Node) -> list[str]:
        """One elementwise node as a kernel, which accepts arguments of any type."""
        args = tuple(dict.fromkeys(node.args))
        kernel = self.kernels.elementwise(body_of(node), [self.kernels.type_of(a) for a in args])
        texts = [self.array_text(a) for a in args]
        self.text[node] = self.value_name()
        return [f"{self.text[node]} = {kernel}({', '.join(texts)})"]

    def _fused(self, node: Node, op: Fused) -> list[str]:
        call = self.expression(node)
        for value in self.computed.values():
            self.text[value] = self.name_for(value)
        names = {k: self.text[value] for k, value in self.computed.items()}
        return [f"{', '.join(names.get(k, '_') for k in range(len(op.body.output_nodes)))} = {call}"]

    def _widened(self, node: Node) -> list[str]:
        """Linear algebra in float32: for half precisions the device libraries have no LAPACK routines."""
        before = dict(self.text)
        for arg in node.args:
            if arg not in self.host:
                self.text[arg] = f"{before[arg]}.astype(cp.float32)"
        lines = super().statement(node)
        lines[-1] += f".astype({self.type_text})"
        before[node] = self.text[node]
        self.text = before
        return lines


def print_cupy_module(graph: Graph, dtype: str, packed: bool, roles: Roles) -> tuple[str, str]:
    """The entry point's name and the source of the module."""
    fused = fuse(graph)
    printer = CuPyPrinter(fused, dtype)
    entry = printer.names.unique(graph.name)
    printer.needed = needed_sizes(graph)
    inputs = printer.begin(fused, roles)
    for name, node in zip(inputs, fused.input_nodes, strict=True):
        printer.text[node] = name
    writes = _packed_entry_lines if packed else _entry_lines
    entry_lines = writes(fused, printer, inputs)
    body = printer.statements(fused.output_nodes)
    if printer.sites:
        report_helpers(printer)
        seen = printer.names.unique("seen")
        entry_lines[:0] = [f"{seen}, {printer.flag} = _flag(cp.cuda.Device().id)", f"_report({seen})"]
        body.append("_check_indices()" if current().wait else f"_report({seen})")
    values = [result_text(o, printer) for o in fused.output_nodes]
    result = flat_text(values) if packed else pack_text(fused.structure, values)
    signature = "packed" if packed else ", ".join(inputs)
    if packed and dim_symbols([d for node in fused.input_nodes for d in node.shape]):
        signature += "".join(f", {printer.symbols[s]}" for s in sorted(fused.dims, key=str))
    made = printer.preliminaries()
    entry_lines = [*printer.constants_lines(), *entry_lines]
    lines = [
        *_helper_lines(printer),
        *([*made, "", ""] if made else []),
        *([*kernels, "", ""] if (kernels := printer.kernels.definitions("cp")) else []),
        *(line for text, name in printer.sources.items() for line in [f"{name} = {text}", "", ""]),
        f"def {entry}({signature}):",
        *docstring(graph, packed),
        *(f"    {line}" if line else "" for line in [*entry_lines, *body]),
        f"    return {result}",
    ]
    return entry, "\n".join([*module_header(graph, printer.imports), *lines, ""])


def _helper_lines(printer: ArrayPrinter) -> list[str]:
    return [line for source in printer.helpers.values() for line in (source.rstrip(), "", "")]


def _entry_lines(graph: Graph, printer: CuPyPrinter, inputs: Sequence[str]) -> list[str]:
    """The lines that convert the inputs, bind the dimension symbols, and check the shapes."""
    _with_input_helpers(graph, printer)
    given = []
    for name, node in zip(inputs, graph.input_nodes, strict=True):
        declared, rank = one_line(format_shape(node.shape)), str(len(node.shape))
        kind = "None" if node in printer.as_given else printer.type_of(node)
        given.append((name, kind, rank, declared))
    titles = [one_line(str(symbol_of(node))) for node in graph.input_nodes]
    return inputs_line(given, titles) + shape_checks(graph, printer, inputs)


def _with_input_helpers(graph: Graph, printer: CuPyPrinter) -> None:
    whole = any(printer.kernels.type_of(node) == "int64" for node in graph.input_nodes)
    for name, text in input_helpers(whole).items() if graph.inputs else ():
        printer.helper(name, text)


def _packed_entry_lines(graph: Graph, printer: CuPyPrinter, inputs: Sequence[str]) -> list[str]:
    """The lines that split one flat vector into inputs; with row numbers it may have a wider type."""
    any_type = any(printer.kernels.type_of(node) == "int64" for node in graph.input_nodes)
    _with_input_helpers(graph, printer)
    pieces, offset = [], "0"
    for name, node in zip(inputs, graph.input_nodes, strict=True):
        count = "*".join([f"({printer.dim(d)})" for d in node.shape]) or "1"
        end = f"{offset} + {count}"
        piece = f"packed[{offset}:{end}].reshape({printer.dims(node.shape)})"
        if any_type:
            piece = f'_typed("{name}", {piece}, {printer.type_of(node)})'
        pieces.append(f"{name} = {piece}")
        offset = end
    kind = "None" if any_type else printer.type_text
    return [
        *inputs_line([("packed", kind, "1", "(size,)")]),
        f"size = {offset}",
        "if packed.shape != (size,):",
        '    raise ValueError(f"packed must have {size} elements, not shape {packed.shape}")',
        *pieces,
    ]
