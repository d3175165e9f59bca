"""Scalar functions written out by their definitions: those that symad adds to SymPy's, and rows of facts."""

from __future__ import annotations

from functools import cache

import sympy

from symad.core.graph import Node
from symad.facts.functions import fact
from symad.ops.basic.sources import input_node
from symad.sympy_functions.scalar_functions import ScalarFunction
from symad.tracing.from_sympy.scalars import trace_scalar


def is_defined(head: type[sympy.Basic]) -> bool:
    """Whether a function has a definition in other functions."""
    return fact(head).definition is not None or (isinstance(head, type) and issubclass(head, ScalarFunction))


@cache
def definition_of(head: type[sympy.Basic], count: int) -> tuple[tuple[Node, ...], Node]:
    """A function's definition as a graph of fresh inputs."""
    symbols = [sympy.Dummy(f"x{k}", real=True) for k in range(count)]
    define = fact(head).definition or head.definition
    meaning = sympy.sympify(define(*symbols), strict=True)
    return tuple(map(input_node, symbols)), trace_scalar(meaning)
