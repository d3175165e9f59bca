"""What a certificate takes on trust: listed, so that nobody has to guess."""

from __future__ import annotations

from collections.abc import Iterable

import sympy

from symad.core.contents import nodes_at_any_depth
from symad.core.graph import Graph
from symad.facts.functions import fact
from symad.ops.elementwise.apply import Apply

READING = "the reading of the input as a graph"
CHECKED = " (checked against 50-digit differentiation in symad's tests)"


def functions_in(graphs: Iterable[Graph]) -> list[sympy.FunctionClass]:
    """The scalar functions that graphs apply, in loops and fused ops, too; in order of their names."""
    outputs = (node for g in graphs for node in g.output_nodes)
    found = {n.op.head for n in nodes_at_any_depth(outputs) if isinstance(n.op, Apply)}
    return sorted(found, key=lambda head: getattr(head, "__name__", str(head)))


def trusted(*graphs: Graph, derivatives: bool = True) -> tuple[str, ...]:
    """What is assumed about graphs: the reading of the input, and the derivative of each function used."""
    result = [READING]
    if derivatives:
        result.extend(_derivative_text(head) for head in functions_in(graphs) if not fact(head).flat)
    return tuple(result)


def _derivative_text(head: type[sympy.Basic]) -> str:
    name = getattr(head, "__name__", str(head))
    if fact(head).floats:
        return f"the derivative of {name}{CHECKED}"
    return f"the derivative of {name} as its author defines it"
