"""Scalar graphs as straight-line Python: one statement per value, one body for floats and arrays.

The body is printed once and bound to two sets of functions: `math` for single points, which is the
fastest that Python can do, and NumPy for batches. `math` raises where IEEE arithmetic gives inf or
nan; such points go to the NumPy binding, so the results always have NumPy's semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symad.core.graph import Graph, Node, topological
from symad.numeric.backends import Backend
from symad.numeric.modules.module_text import docstring, module_header, pack_text
from symad.numeric.modules.names import Names
from symad.numeric.numpy_arrays.ops.constants import constant_text
from symad.numeric.numpy_arrays.ops.integers import integers_text
from symad.numeric.scalars.python_expressions import (
    SCALAR_FUNCTIONS,
    ScalarPrinter,
    count_uses,
    statement,
)
from symad.ops.arrays.shaping import Reshape
from symad.ops.arrays.sources import ArrayConstant, Constant, constant, constant_value
from symad.ops.arrays.stacking import Stack
from symad.ops.loops.remat import Remat
from symad.ops.sparse.csr import CompressedRows


def packed_entries(node: Node) -> tuple[Node, ...] | None:
    """The scalars of an output that is an array of scalars; None for other arrays."""
    inner = node.args[0] if isinstance(node.op, Reshape) else node
    if isinstance(inner.op, Stack) and not inner.args[0].shape:
        return inner.args
    return None


def sparse_entries(node: Node) -> tuple[Node, ...] | None:
    """The stored entries of a sparse output made of scalars, in order; None for other outputs."""
    op = node.op
    if not isinstance(op, CompressedRows) or len(node.args) != 1:
        return None
    (arg,), (places,) = node.args, op.places_of
    if not np.array_equal(places, np.arange(len(op.columns))):
        return None
    if isinstance(arg.op, ArrayConstant):
        return tuple(constant(value) for value in arg.op.array.ravel().tolist())
    return packed_entries(arg)


def is_scalar(graph: Graph) -> bool:
    """Whether all values are scalars, packed into arrays at the outputs only, and none is made by a part."""
    if any(node.shape for node in graph.input_nodes):
        return False
    roots: list[Node] = []
    for output in graph.output_nodes:
        if output.shape and not isinstance(output.op, ArrayConstant):
            entries = sparse_entries(output)
            entries = packed_entries(output) if entries is None else entries
            if entries is None:
                return False
            roots.extend(entries)
        elif not output.shape:
            roots.append(output)
    return not any(node.shape or isinstance(node.op, Remat) for node in topological(roots))


def print_scalar_module(
    graph: Graph, library: Backend, dtype: str, packed: bool
) -> tuple[str, str]:
    """The entry point's name and the source of the module."""
    names = Names(SCALAR_FUNCTIONS)
    entry = names.unique(graph.name)
    inputs = [names.of(symbol) for symbol in graph.inputs]
    printer = ScalarPrinter(names)
    body = _body_lines(graph, printer)
    imports, scalar_table, array_table, helpers = printer.tables()
    signature = ", ".join(inputs)
    lines = [
        *module_header(graph, imports),
        *helpers,
        *([*printer.constants, "", ""] if printer.constants else []),
        f"def _body({signature}):",
        *(f"    {line}" for line in body),
        "",
        "",
        "# One body, two bindings: plain floats by math, arrays and exceptional points by NumPy.",
        f"_at_point = types.FunctionType(_body.__code__, {scalar_table})",
        f"_at_batch = types.FunctionType(_body.__code__, {array_table})",
        "",
        "",
        *_entry_lines(graph, entry, inputs, dtype, packed),
    ]
    return entry, "\n".join(lines) + "\n"


def _body_lines(graph: Graph, printer: ScalarPrinter) -> list[str]:
    roots: list[Node] = []
    for output in graph.output_nodes:
        entries = sparse_entries(output) or packed_entries(output)
        roots.extend(entries or ((output,) if not output.shape else ()))
    lines: list[str] = []
    for node, symbol in zip(graph.input_nodes, graph.inputs, strict=True):
        printer.text[node] = printer.names.of(symbol)
    printer.uses = count_uses(roots)
    for node in topological(roots):
        if node not in printer.text:
            lines.extend(statement(node, printer))
    values = [_output_text(output, printer) for output in graph.output_nodes]
    return [*lines, f"return {pack_text(graph.structure, values)}"]


def _output_text(output: Node, printer: ScalarPrinter) -> str:
    if isinstance(output.op, CompressedRows):
        return _sparse_text(output, printer)
    entries = packed_entries(output)
    if entries is not None:
        filled = [
            k
            for k, e in enumerate(entries)
            if constant_value(e) != 0 or isinstance(constant_value(e), bool)
        ]
        if len(entries) > 64 and 2 * len(filled) < len(entries):
            where = printer.constant(f"np.array({filled}, dtype=np.intp)")
            items = "".join(f"{printer.text[entries[k]]}, " for k in filled)
            return f"{printer.use('pack_at')}(({items}), {where}, {tuple(output.shape)})"
        items = ", ".join(printer.text[e] for e in entries)
        return f"{printer.use('pack')}(({items},), {tuple(output.shape)})"
    if isinstance(output.op, ArrayConstant):
        kind = "bool" if output.op.array.dtype.kind == "b" else "np.float64"
        return f"{printer.use('array')}({printer.constant(constant_text(output.op.array, kind, printer))})"
    if isinstance(output.op, Constant):
        return printer.text[output]
    return printer.text[output]


def _sparse_text(output: Node, printer: ScalarPrinter) -> str:
    op: Any = output.op
    printer.imports |= {"import copy", "from scipy.sparse import csr_array"}
    names = []
    for what, array in (("columns", op.columns), ("rows", op.rows)):
        names.append(f"_{what}_{len(printer.constants) + 1}")
        text = integers_text(array, "np.int32", printer) or f"np.array({array.tolist()}, dtype=np.int32)"
        printer.constants += [f"{names[-1]} = {text}", f"{names[-1]}.flags.writeable = False"]
    entries = sparse_entries(output) or ()
    zeros = f"np.zeros({len(entries)})"
    structure = printer.constant(f"csr_array(({zeros}, {', '.join(names)}), shape={tuple(op.shape)})")
    printer.constants.append(f"_{structure}.has_canonical_format = True")
    items = "".join(f"{printer.text[e]}, " for e in entries)
    return f"{printer.use('sparse')}(({items}), {structure})"


def _entry_lines(
    graph: Graph, entry: str, inputs: Sequence[str], dtype: str, packed: bool
) -> list[str]:
    point = dtype == "float64"
    call = ", ".join(inputs)
    ranks = tuple(len(output.shape) for output in graph.output_nodes)
    lines = []
    if packed:
        lines += [
            f"def {entry}(x):",
            *docstring(graph, packed=True),
            f"    x = np.asarray(x, dtype=np.{dtype})",
            f"    if x.shape != ({len(inputs)},):",
            f'        raise ValueError(f"x must have shape ({len(inputs)},), not {{x.shape}}")',
            *(
                [
                    "    values = x.tolist()",
                    "    try:",
                    "        return _at_point(*values)",
                    "    except (ArithmeticError, ValueError):",
                    "        return _call(values)",
                ]
                if point
                else ["    return _call(list(x))"]
            ),
        ]
        return [*_call_lines(graph, dtype, ranks), *lines]
    lines += [f"def {entry}({call}):", *docstring(graph, packed=False)]
    if not inputs:
        return [*lines, "    return _at_point()"]
    lines += (
        [f"    return _call(({call},))"]
        if not point
        else [
            f"    if {_all_floats(inputs)}:",
            "        try:",
            f"            return _at_point({call})",
            "        except (ArithmeticError, ValueError):",
            "            pass",
            f"    return _call(({call},))",
        ]
    )
    return [*_call_lines(graph, dtype, ranks), *lines]


def _all_floats(inputs: Sequence[str]) -> str:
    if len(inputs) <= 12:
        return " is ".join([*(f"type({name})" for name in inputs), "float"])
    return "{" + ", ".join(f"type({name})" for name in inputs) + "} == {float}"


def _call_lines(graph: Graph, dtype: str, ranks: tuple[int, ...]) -> list[str]:
    """The general path: checked conversion, then one point by math or everything by NumPy."""
    point = [
        "    if all(v.ndim == 0 for v in arrays):",
        "        try:",
        "            return _at_point(*[float(v) for v in arrays])",
        "        except (ArithmeticError, ValueError):",
        "            pass",
    ]
    return [
        f"_NAMES = {tuple(map(str, graph.inputs))!r}",
        "",
        "",
        "def _batched(result, batch, ranks, made):",
        "    if isinstance(result, dict):",
        "        return {key: _batched(part, batch, ranks, made) for key, part in result.items()}",
        "    if isinstance(result, tuple):",
        "        return tuple(_batched(part, batch, ranks, made) for part in result)",
        "    array = np.asarray(result.toarray() if hasattr(result, 'toarray') else result)",
        "    shape = batch + array.shape[array.ndim - next(ranks):]",
        "    if array.shape != shape or id(array) in made:  # no two results share memory",
        "        array = np.broadcast_to(array, shape).copy()",
        "    return made.setdefault(id(array), array)",
        "",
        "",
        "def _call(values):",
        "    arrays = [np.asarray(v) for v in values]",
        "    for name, array in zip(_NAMES, arrays):",
        '        if array.dtype.kind not in "fiub":',
        '            raise TypeError(f"{name} must hold real numbers, not {array.dtype}")',
        *(point if dtype == "float64" else []),
        "    batch = np.broadcast_shapes(*[array.shape for array in arrays])",
        '    with np.errstate(all="ignore"):',
        f"        result = _at_batch(*[array.astype(np.{dtype})[()] for array in arrays])",
        f"    return _batched(result, batch, iter({ranks}), {{}}) if batch else result",
        "",
        "",
    ]
