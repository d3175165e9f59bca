"""Scalar graphs as one C99 file: the function, its workspace, its loop over points.

Programs are cut into functions of `CHUNK` statements, because compilers take more than linear time for long
functions; values that cross a cut go through a workspace array. Each piece is computed level by level (a
value's level is one more than the highest of its operands'): values of one level do not depend on each
other, so that the processor works on several at a time, and equal functions are evaluated in packs by
vector instructions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from symad.core.graph import Graph, Node, topological
from symad.numeric.modules.module_text import one_line
from symad.numeric.modules.names import identifier
from symad.numeric.passes.memory_layout.packed_entries import scalars_of
from symad.numeric.scalars.c_expressions import PACKED, c_form, c_literal, helper_source
from symad.ops.arrays.sources import Constant
from symad.ops.elementwise.apply import Apply

CHUNK = 1000
"""Statements in one C function."""

PACK, BLOCK = 4, 8
"""Calls of one function on one level become a pack from `PACK` on; packs are filled up to whole blocks."""


def output_scalars(graph: Graph) -> list[Node]:
    """The scalars of all outputs, flat."""
    return [scalar for output in graph.output_nodes for scalar in scalars_of(output)]


@dataclass(frozen=True)
class Statement:
    """One value, or a pack of values of one function."""

    nodes: tuple[Node, ...]
    function: str = ""
    """The name of the pack's function."""


def chunks(graph: Graph, outputs: Sequence[Node]) -> list[list[Statement]]:
    """The values of the outputs in pieces of `CHUNK`, each ordered by levels; at least one piece."""
    inputs = set(graph.input_nodes)
    order = [n for n in topological(outputs) if n not in inputs and not isinstance(n.op, Constant)]
    return [by_levels(order[k : k + CHUNK]) for k in range(0, len(order), CHUNK)] or [[]]


def by_levels(nodes: Sequence[Node]) -> list[Statement]:
    """Values level by level, and on each level by kind of function."""
    level: dict[Node, int] = {}
    rows: list[tuple[int, str, Node]] = []
    for node in nodes:
        level[node] = 1 + max((level.get(a, 0) for a in node.args), default=0)
        name = PACKED.get(node.op.head, "") if isinstance(node.op, Apply) else ""
        rows.append((level[node], name, node))
    found: list[Statement] = []
    for (_, name), group in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row[:2]):
        same = tuple(node for _, _, node in group)
        if name and len(same) >= PACK:
            found.append(Statement(same, name))
        else:
            found.extend(Statement((node,)) for node in same)
    return found


def print_c(graph: Graph) -> tuple[str, str]:
    """The C name of the function and the source of the file."""
    name = "symad_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in identifier(graph.name))
    outputs = output_scalars(graph)
    parts = chunks(graph, outputs)
    place = {n: k for k, part in enumerate(parts) for s in part for n in s.nodes}
    number = {n: k for k, n in enumerate(place)}
    crossing = _crossing(place)
    inputs = {n: f"x[{k}]" for k, n in enumerate(graph.input_nodes)}

    def text(node: Node, chunk: int) -> str:
        if node in inputs:
            return inputs[node]
        if isinstance(node.op, Constant):
            return c_literal(node.op.value)
        return f"v{number[node]}" if place[node] == chunk else f"w[{crossing[node]}]"

    bodies: list[list[str]] = []
    for chunk, part in enumerate(parts):
        body: list[str] = []
        for statement in part:
            if statement.function:
                body += _pack_lines(statement, [text(n.args[0], chunk) for n in statement.nodes], number)
            else:
                (node,) = statement.nodes
                value = c_form(node.op, node, tuple(text(a, chunk) for a in node.args))
                body.append(f"    const double v{number[node]} = {value};")
            body += [f"    w[{crossing[n]}] = v{number[n]};" for n in statement.nodes if n in crossing]
        bodies.append(body)
    for k, output in enumerate(outputs):
        chunk = place.get(output, len(parts) - 1)
        bodies[chunk].append(f"    y[{k}] = {text(output, chunk)};")
    return name, _file(graph, name, bodies, len(crossing), len(outputs))


def _pack_lines(pack: Statement, args: list[str], number: dict[Node, int]) -> list[str]:
    """The arguments in an array, the function of all of them, and the values by name."""
    first, count = number[pack.nodes[0]], len(pack.nodes)
    size = -(-count // BLOCK) * BLOCK
    filled = ", ".join([*args, *[args[0]] * (size - count)])
    return [
        f"    double p{first}[{size}] = {{{filled}}};",
        f"    {pack.function}_all(p{first}, {size});",
        *(f"    const double v{number[n]} = p{first}[{k}];" for k, n in enumerate(pack.nodes)),
    ]


def _crossing(place: dict[Node, int]) -> dict[Node, int]:
    """The values that a later chunk uses, numbered."""
    found: dict[Node, int] = {}
    for node, chunk in place.items():
        for arg in node.args:
            if arg in place and place[arg] != chunk:
                found.setdefault(arg, len(found))
    return found


def _file(graph: Graph, name: str, bodies: list[list[str]], workspace: int, outputs: int) -> str:
    signature = "const double *restrict x, double *restrict w, double *restrict y"
    text = "\n".join(line for body in bodies for line in body)
    parts = [
        f"/* {one_line(graph.name)}: x[{len(graph.input_nodes)}] -> y[{outputs}], generated by symad.",
        "   Inputs in order: " + ", ".join(one_line(s) for s in graph.inputs[:40]),
        "*/",
        "#include <math.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "#include <string.h>",
        "",
        helper_source(set(re.findall(r"\b([a-z]+)_(?:all)?\(", text))),
    ]
    for k, body in enumerate(bodies):
        parts += [f"static void part_{k}({signature})", "{", "    (void)x; (void)w; (void)y;", *body, "}", ""]
    calls = "\n".join(f"    part_{k}(x, w, y);" for k in range(len(bodies)))
    parts += [
        f"void {name}(const double *x, double *y)",
        "{",
        f"    double w[{max(workspace, 1)}];",
        calls,
        "}",
        "",
        f"void {name}_bound(const int64_t *frame)  /* the addresses of x and y */",
        "{",
        f"    {name}((const double *)(intptr_t)frame[0], (double *)(intptr_t)frame[1]);",
        "}",
        "",
        f"void {name}_batch(const double *x, double *y, size_t points)",
        "{",
        f"    for (size_t k = 0; k < points; ++k) {name}(x + k*{len(graph.input_nodes)}, y + k*{outputs});",
        "}",
    ]
    return "\n".join(parts) + "\n"
