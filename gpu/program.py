"""Array graphs as CuPy modules: the statements of the NumPy printer, with fused kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from symad.dims import dim_symbols, format_shape
from symad.errors import LoweringError
from symad.gpu.fusion import fuse
from symad.gpu.printers import random, rows, sparse  # noqa: F401  (register their answers)
from symad.gpu.printers.arrays import HELPERS
from symad.gpu.printers.attention import attention_lines
from symad.gpu.printers.kernels import Kernels
from symad.gpu.printers.library import CUPY, HALVES
from symad.gpu.printers.pair_sum import has_kernels, pair_lines
from symad.gpu.printers.row_groups import row_lines
from symad.graph import Graph, Node, topological
from symad.numeric.array_program import ArrayPrinter, _shape_checks
from symad.numeric.fusion.chains import Fused, on_host
from symad.numeric.fusion.rows import RowGroup
from symad.numeric.releasing import release
from symad.numeric.row_numbers import only_indices
from symad.numeric.text import docstring, module_header, one_line, pack_text
from symad.ops.attention import AttentionOp
from symad.ops.linalg import MatrixOp
from symad.ops.pair_sum import PairOp, PairSum, PairSumCotangent
from symad.ops.recurrence import Scan
from symad.ops.root import Root
from symad.ops.sources import ArrayConstant

ARRAY = '''def _array(name, value, dtype, rank, shape):
    if isinstance(value, cp.ndarray) or hasattr(value, "__cuda_array_interface__"):
        array = cp.asarray(value)
    elif rank == 0 and hasattr(value, "__float__"):
        return cp.asarray(float(value), dtype=dtype)
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        array = cp.from_dlpack(value)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise TypeError(
            f"{name} is a {kind}, but this code runs on the GPU and takes CuPy arrays: "
            f"pass cupy.asarray({name}), or lower with backend='numpy'"
        )
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    if array.ndim != rank:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
    if array.device.id != cp.cuda.Device().id:
        raise ValueError(
            f"{name} is on device {array.device.id}, but device {cp.cuda.Device().id} is current: "
            f"copy it there, or call within cupy.cuda.Device({array.device.id})"
        )
    return array if dtype is None else array.astype(dtype, copy=False)
'''


class CuPyPrinter(ArrayPrinter):
    """The state of one module for CuPy: besides names and constants, its kernels."""

    def __init__(self, graph: Graph, dtype: str) -> None:
        """Print for a floating-point type."""
        super().__init__(graph, CUPY, dtype)
        self.kernels = Kernels(dtype)
        self.host: set[Node] = set()
        self.indices = only_indices(graph.output_nodes)
        self.accumulator = "float32" if dtype in HALVES else dtype
        self.type_text = f"cp.{dtype}"

    def prepared(self, graph: Graph) -> Graph:
        """A graph that becomes a function inside of this one, fused as the module's own."""
        return fuse(super().prepared(graph))

    def statements(self, outputs: Sequence[Node]) -> list[str]:
        """The statements that compute some nodes; what is known on the host is noted first."""
        self.host |= on_host(topological(outputs))
        return super().statements(outputs)

    def statement(self, node: Node) -> list[str]:
        """The statements of one node; the results of one kernel come together."""
        if isinstance(node.op, Fused):
            return self._fused(node, node.op)
        if isinstance(node.op, Scan):
            return self._scan(node)
        if isinstance(node.op, RowGroup):
            return row_lines(node.op, node, self)
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
        """Add a helper function, in CuPy's version where there is one."""
        source = HELPERS.get(name, source)
        for module in ("cupyx.scipy.linalg", "cupyx"):
            if f"{module}." in source:
                self.imports.add(f"import {module}")
                break
        self.imports.discard("import scipy.linalg")
        return super().helper(name, source)

    def on_device(self, node: Node) -> list[str]:
        """The arguments of a kernel; one that has numbers only gets an array, so it has a size."""
        texts = [self.text[a] for a in node.args]
        if all(a in self.host for a in node.args):
            texts[0] = self.array_text(node.args[0])
        return texts

    def array_text(self, node: Node) -> str:
        """The value as an array, also where it is a number on the host."""
        text = self.text[node]
        return f"cp.asarray({text}, dtype={self.type_text})" if node in self.host else text

    def _fused(self, node: Node, op: Fused) -> list[str]:
        values = [Node.of(Fused(op.body, k), node.args) for k in range(len(op.body.output_nodes))]
        (line,) = super().statement(node)
        call = line.partition(" = ")[2]
        for value in values:
            if value is not node:
                self.text[value] = self.value_name()
        return [f"{', '.join(self.text[v] for v in values)} = {call}"]

    def _scan(self, node: Node) -> list[str]:
        """A scan whose initial state and constants are arrays."""
        lines, before, types = [], dict(self.text), dict(self.kernels.types)
        for local, arg in zip(node.op.body.input_nodes, node.args, strict=True):  # type: ignore[attr-defined]
            self.kernels.types[local] = self.kernels.type_of(arg)
        for arg in node.args:
            if arg in self.host:
                name = self.value_name()
                lines.append(f"{name} = {self.array_text(arg)}")
                self.text[arg] = name
        lines += _written_in_place(super().statement(node))
        before[node] = self.text[node]
        self.text, self.kernels.types = before, types
        return lines

    def _widened(self, node: Node) -> list[str]:
        """Linear algebra in float32, for which alone LAPACK's kernels on the device exist."""
        before = dict(self.text)
        for arg in node.args:
            if arg not in self.host:
                self.text[arg] = f"{before[arg]}.astype(cp.float32)"
        lines = super().statement(node)
        lines[-1] += f".astype({self.type_text})"
        before[node] = self.text[node]
        self.text = before
        return lines


def _written_in_place(lines: Sequence[str]) -> list[str]:
    """The statements of a loop, its new state put together where it is kept."""
    found: list[str] = []
    for line in lines:
        kept = re.fullmatch(r"( +)(v\d+\[t\d+\]) = (v\d+)", line)
        made = kept and re.fullmatch(
            rf" +{kept[3]} = (cp\.(?:stack|concatenate)\(.*, axis=\d+)\)", found[-1]
        )
        if kept and made:
            found[-1] = f"{kept[1]}{made[1]}, out={kept[2]})"
        else:
            found.append(line)
    return found


def print_cupy_module(graph: Graph, dtype: str, packed: bool) -> tuple[str, str]:
    """The entry point's name and the source of the module."""
    fused = fuse(graph)
    printer = CuPyPrinter(fused, dtype)
    entry = printer.names.unique(graph.name)
    inputs = [printer.symbols[symbol] for symbol in graph.inputs]
    for name, node in zip(inputs, fused.input_nodes, strict=True):
        printer.text[node] = name
    door = _packed_door(fused, printer, inputs) if packed else _door(fused, printer, inputs)
    body = printer.statements(fused.output_nodes)
    values = [_result(o, printer) for o in fused.output_nodes]
    result = _flat(values) if packed else pack_text(fused.structure, values)
    signature = "packed" if packed else ", ".join(inputs)
    if packed and dim_symbols([d for node in fused.input_nodes for d in node.shape]):
        signature += "".join(f", {printer.symbols[s]}" for s in sorted(fused.dims, key=str))
    lines = [
        *_helper_lines(printer),
        *([*made, "", ""] if (made := printer.preliminaries()) else []),
        *([*printer.kernels.definitions("cp"), "", ""] if printer.kernels.names else []),
        f"def {entry}({signature}):",
        *docstring(graph, packed),
        *(f"    {line}" for line in [*door, *release(body, result)]),
        f"    return {result}",
    ]
    return entry, finish([*module_header(graph, printer.imports), *lines], dtype)


def finish(lines: Sequence[str], dtype: str) -> str:
    """The lines as a file; bfloat16 is the one type that CuPy takes from another module."""
    source = "\n".join(lines) + "\n"
    if dtype == "bfloat16":
        source = source.replace("cp.bfloat16", "ml_dtypes.bfloat16")
        source = source.replace("\nimport cupy as cp\n", "\nimport cupy as cp\nimport ml_dtypes\n")
    return source


def _helper_lines(printer: ArrayPrinter) -> list[str]:
    return [
        line
        for source in printer.helpers.values()
        for line in [*source.rstrip().split("\n"), "", ""]
    ]


def _result(node: Node, printer: CuPyPrinter) -> str:
    """An output as an array of its own."""
    if isinstance(node.op, (AttentionOp, PairOp)) and node in printer.kernels.types:  # log-sum-exps
        return f"{printer.text[node]}.astype({printer.type_text}, copy=False)"
    if isinstance(node.op, ArrayConstant):
        return f"{printer.text[node]}.copy()"
    return printer.array_text(node)


def _flat(values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"cp.ravel({values[0]})"
    return f"cp.concatenate([{', '.join(f'cp.ravel({v})' for v in values)}])"


def _door(graph: Graph, printer: CuPyPrinter, inputs: Sequence[str]) -> list[str]:
    """Convert the inputs, bind the dimension symbols, check the shapes."""
    helper, lines = printer.helper("_array", ARRAY), []
    for name, node in zip(inputs, graph.input_nodes, strict=True):
        declared, rank = one_line(format_shape(node.shape)), len(node.shape)
        kind = "None" if node in printer.indices else printer.type_text
        call = f'{helper}("{name}", {name}, {kind}, {rank}, "{declared}")'
        lines.append(f"{name} = {call}")
    return lines + _shape_checks(graph, printer, inputs)


def _packed_door(graph: Graph, printer: CuPyPrinter, inputs: Sequence[str]) -> list[str]:
    """Cut one flat vector into the inputs."""
    helper, pieces, offset = printer.helper("_array", ARRAY), [], "0"
    for name, node in zip(inputs, graph.input_nodes, strict=True):
        count = "*".join([f"({printer.dim(d)})" for d in node.shape]) or "1"
        end = f"{offset} + {count}"
        pieces.append(f"{name} = packed[{offset}:{end}].reshape({printer.dims(node.shape)})")
        offset = end
    return [
        f'packed = {helper}("packed", packed, {printer.type_text}, 1, "(size,)")',
        f"size = {offset}",
        "if packed.shape != (size,):",
        '    raise ValueError(f"packed must have {size} elements, not shape {packed.shape}")',
        *pieces,
    ]
