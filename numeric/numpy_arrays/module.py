"""The module of an array graph: its arguments, converted and checked, its function and its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy

from symad.core.dims import format_shape
from symad.core.graph import Graph, Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.modules.module_text import module_header, one_line, returned, summary
from symad.numeric.modules.size_checks import doubtful, size_checks
from symad.numeric.numpy_arrays.owners import owner, repeats
from symad.numeric.numpy_arrays.printer import ArrayPrinter
from symad.numeric.pipelines import PassReport
from symad.numeric.scheduling.roles import NO_ROLES, Roles
from symad.numeric.targets.size_bindings import size_bindings
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input
from symad.ops.elementwise.selection import Select
from symad.ops.elementwise.undefined import Undefined

ARRAY = """def _array(name, value, dtype, rank, shape):
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    if array.ndim != rank:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
    array = array.astype(dtype, copy=False)
    return array if rank else array[()]
"""

CHECK = """def _check(name, array, shape):
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
"""


def print_array_module(
    graph: Graph,
    library: ArrayLibrary,
    dtype: str,
    printing: Callable[[Graph, ArrayLibrary, str], ArrayPrinter] = ArrayPrinter,
    roles: Roles = NO_ROLES,
    needed: Sequence[sympy.Expr] = (),
    report: list[PassReport] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The entry point's name, and the source of the module: its header, each helper, and the rest.

    Args:
        graph: a graph after all graph passes.
        library: the library of the arrays.
        dtype: the floating-point type.
        printing: the printer.
        roles: the names of results and values.
        needed: the sizes that must not be negative, see `needed_sizes`.
        report: a list to which each pass appends a line.
    """
    printer = printing(graph, library, dtype)
    printer.needed, printer.report = needed, report
    entry = printer.names.unique(graph.name)
    inputs = printer.begin(graph, roles)
    unpacking = _unpack_lines(graph, printer, inputs)
    printer.sizes.clear()
    body = printer.statements(graph.output_nodes)
    values = [_result(o, printer) for o in graph.output_nodes]
    result = returned(graph.structure, values)
    sizes = sorted(printer.sizes & graph.dims, key=str)
    known = ", ".join([*inputs, *(printer.symbols[s] for s in sizes)])
    if inputs:
        body.insert(0, f"{known} = _checked({', '.join(inputs)})")
    helpers = (f"{source.rstrip()}\n\n\n" for source in printer.helpers.values())
    lines = [
        *([*made, "", ""] if (made := printer.preliminaries()) else []),
        *([*_checked(inputs, unpacking, known), "", ""] if inputs else []),
        *printer.decorators(graph),
        f"def {entry}({', '.join(inputs)}):",
        f'    """{summary(graph, inputs, roles.labels)}."""',
        *(f"    {line}" if line else "" for line in body),
        f"    return {result}",
    ]
    del printer.writer  # it refers to the printer; without the cycle, all memory is freed at once
    header = "\n".join(module_header(graph, printer.imports)) + "\n"
    return entry, (header, *helpers, "\n".join(lines) + "\n")


def _checked(inputs: Sequence[str], unpacking: Sequence[str], known: str) -> list[str]:
    """The function that converts and checks the arguments; it returns the names in ``known``."""
    return [
        f"def _checked({', '.join(inputs)}):",
        '    """The arguments as arrays of the right shapes, and the dimensions that are read."""',
        *(f"    {line}" for line in unpacking),
        f"    return {known}",
    ]


def _result(output: Node, printer: ArrayPrinter) -> str:
    """The text of a result. It owns its memory: views of inputs, constants and other results are copied.

    Constants and dimensions are converted to the module's dtype.
    """
    text, op, made = printer.text[output], output.op, owner(output)
    if isinstance(op, Dimension) or (isinstance(op, Constant) and not isinstance(op.value, bool)):
        return f"{printer.type_text}({text})"
    shared = isinstance(made.op, (Input, ArrayConstant)) or (output.shape and made in printer.returned)
    printer.returned.add(made)
    if isinstance(op, (Select, Undefined)) and not output.shape:
        return f"{text}[()]"  # a number instead of an array without axes
    return f"{text}.copy()" if shared or repeats(output) else text


def _unpack_lines(graph: Graph, printer: ArrayPrinter, inputs: Sequence[str]) -> list[str]:
    """The lines that convert the inputs, bind the dimension symbols and check the shapes."""
    lines = []
    for name, node in zip(inputs, graph.input_nodes, strict=True):
        printer.text[node] = name
    for name, node, symbol in zip(inputs, graph.input_nodes, graph.inputs, strict=True):
        declared = one_line(format_shape(node.shape))
        dtype, rank, helper = printer.type_text, len(node.shape), printer.helper("_array", ARRAY)
        lines.append(f'{name} = {helper}({str(symbol)!r}, {name}, {dtype}, {rank}, "{declared}")')
    return lines + shape_checks(graph, printer, inputs)


def shape_checks(graph: Graph, printer: ArrayPrinter, inputs: Sequence[str]) -> list[str]:
    """The lines that bind each dimension symbol and compare all shapes.

    A symbol is bound by an axis of that length; a symbol without one, by a linear expression with it.
    """
    shapes = [node.shape for node in graph.input_nodes]
    lines = [
        f"{printer.symbols[b.symbol]} = {b.text(f'{inputs[b.argument]}.shape[{b.axis}]', printer)}"
        for b in size_bindings(shapes, sorted(graph.dims, key=str))
    ]
    for name, node, symbol in zip(inputs, graph.input_nodes, graph.inputs, strict=True):
        if node.shape:
            checked = printer.helper("_check", CHECK)
            lines.append(f"{checked}({str(symbol)!r}, {name}, {printer.dims(node.shape)})")
    sizes = (*printer.needed, *doubtful(node.shape for node in graph.nodes))
    return lines + size_checks(sizes, printer.bare)
