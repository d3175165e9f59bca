"""The module of an array graph: its arguments, converted and checked, its function and its results."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from symad.core.contents import holds
from symad.core.graph import Graph, Node
from symad.higher_order.remat import Fallback
from symad.numeric.modules.module_text import frame, returned, summary
from symad.numeric.numpy_arrays import (  # noqa: F401  (register their answers)
    expressions,
    kernels,
    loop_statements,
)
from symad.numeric.numpy_arrays.statements import block_lines
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.passes.memory_layout.memory_spans import works_in_gaps
from symad.numeric.pipelines import PassReport
from symad.numeric.program.expressions import Compute, Expression, Index, Read, op_in
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.targets.arguments import arguments
from symad.numeric.targets.module import libraries
from symad.numeric.targets.sizes import doubtful
from symad.numeric.targets.statements import indented
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, constant_value
from symad.ops.elementwise.selection import Select
from symad.ops.elementwise.undefined import Undefined


def print_array_module(
    graph: Graph, writer: ArrayWriter, needed: Sequence[sympy.Expr], report: list[PassReport] | None
) -> tuple[str, tuple[str, ...]]:
    """The entry point's name, and the source of the module: its header, each helper, and the rest.

    Args:
        graph: a graph after all graph passes.
        writer: the writer of the module.
        needed: the sizes that must not be negative, see `needed_sizes`.
        report: a list to which each pass appends a line.
    """
    entry = writer.names.unique(graph.name)
    program = writer.plans.program(graph, report)
    writer.know(program)
    inputs = [writer.symbols[symbol] for symbol in graph.inputs]
    for value, name in zip(program.inputs, inputs, strict=True):
        writer.named[value] = writer.stems[value] = name
        writer.kinds[value] = writer.dtype
    results: list[str] = []

    def body() -> list[str]:
        lines = block_lines(program.statements, writer)
        results[:] = _results(program.results, {*program.inputs}, writer)
        return lines

    shapes = [node.shape for node in graph.input_nodes]
    sizes = (*needed, *doubtful(node.shape for node in graph.nodes))
    checked, lines = arguments(inputs, [*map(str, graph.inputs)], shapes, sizes, writer, body)
    outputs = [node.shape for node in graph.output_nodes]
    told = summary(writer.plans.roles.labels, outputs, graph.structure, zip(inputs, shapes, strict=True))
    function = [
        *writer.decorators(graph),
        f"def {entry}({', '.join(inputs)}):",
        *indented([told, *lines, f"return {returned(graph.structure, results)}"]),
    ]
    blocks = [writer.preliminaries(), checked, function]
    return entry, frame(graph.name, writer.imports, writer.helpers.values(), blocks, libraries(writer))


def warnings_off(graph: Graph, writer: ArrayWriter) -> list[str]:
    """The decorator that turns off NumPy's warnings where the values that cause them are not used."""
    if holds(graph, Fallback):
        return [f'@{writer.np}.errstate(all="ignore")  # of numbers that are scaled then']
    if holds(graph, Select) and any(isinstance(n.op, Select) and not _is_indicator(n) for n in graph.nodes):
        return [f'@{writer.np}.errstate(all="ignore")  # of branches that are not taken']
    if works_in_gaps(graph):
        return [f'@{writer.np}.errstate(all="ignore")  # of elements between those that are read']
    overflows = "_sigmoid" in writer.helpers  # exp overflows where the sigmoid is 0
    return [f'@{writer.np}.errstate(over="ignore")'] if overflows else []


def _is_indicator(node: Node) -> bool:
    """Whether a node is 1 where a condition holds and 0 elsewhere."""
    return [constant_value(a) for a in node.args[1:]] == [1, 0]


def _shown(expression: Expression, writer: ArrayWriter) -> tuple[Expression, bool]:
    """The expression that allocates the array, and whether views of it repeat elements."""
    repeats = False
    while True:
        if isinstance(expression, Read):
            over = writer.earlier.get(expression.value)
            made = Read(over) if over is not None else writer.made.get(expression.value, expression)
            if made is expression or (isinstance(made, Compute) and not is_view(made)):
                return expression, repeats
            expression = made
        elif isinstance(expression, Index):
            expression = expression.array
        elif isinstance(expression, Compute) and is_view(expression):
            repeats = repeats or isinstance(expression.op, Broadcast)
            (expression,) = expression.args
        else:
            return expression, repeats


def _results(results: Sequence[Expression], inputs: set[object], writer: ArrayWriter) -> list[str]:
    """The texts of the results. Each owns its memory: views of arguments, constants and others are copied."""
    returned_ones: set[Expression] = set()
    texts = []
    for result in results:
        made, repeats = _shown(result, writer)
        text = writer.text(result).text
        op = made.op if isinstance(made, Compute) else None
        source = writer.made.get(result.value, result) if isinstance(result, Read) else result
        number = isinstance(source, Compute) and isinstance(source.op, (Constant, Dimension))
        if number and not isinstance(getattr(op_in(source), "value", None), bool):
            texts.append(f"{writer.type_text}({text})")
            continue
        given = isinstance(op, ArrayConstant) or (isinstance(made, Read) and made.value in inputs)
        shared = given or (bool(result.shape) and made in returned_ones)
        returned_ones.add(made)
        boxed = not result.shape and isinstance(op_in(source), (Select, Undefined))
        texts.append(f"{text}[()]" if boxed else f"{text}.copy()" if shared or repeats else text)
    return texts
