"""The scalar functions that symad adds to SymPy's, written out by their definitions."""

from __future__ import annotations

from functools import cache

import sympy

from symad.core.graph import Node
from symad.ops.basic.sources import input_node
from symad.tracing.from_sympy.scalars import trace_scalar


@cache
def definition_of(head: type[sympy.Basic], count: int) -> tuple[tuple[Node, ...], Node]:
    """A function's definition as a graph of fresh inputs."""
    symbols = [sympy.Dummy(f"x{k}", real=True) for k in range(count)]
    meaning = sympy.sympify(head.definition(*symbols), strict=True)
    return tuple(map(input_node, symbols)), trace_scalar(meaning)
