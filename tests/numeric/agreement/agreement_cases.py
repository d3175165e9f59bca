"""Functions with hostile points, for every backend."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp

import symad
from symad.core.graph import Graph
from symad.numeric.compiler.c_header import layout_of
from symad.numeric.passes import prepare
from symad.numeric.scalars.lower_c import print_c
from symad.numeric.targets.c_functions import NotInC
from tests.numeric.agreement.function_cases import BINARY, NUMPY, SYMPY
from tests.numeric.agreement.special_cases import ALSO_BINARY, ALSO_NUMPY, ALSO_NUMPY_PAIRS, SPECIAL

BY_SYMPY = SYMPY | BINARY | SPECIAL | ALSO_BINARY
PAIRED = BINARY | ALSO_BINARY | ALSO_NUMPY_PAIRS
CASES = BY_SYMPY | NUMPY | ALSO_NUMPY | ALSO_NUMPY_PAIRS


def arity(name: str) -> int:
    return 2 if name in PAIRED else 1


def written(name: str) -> Graph:
    """The function of scalars as a graph."""
    xs, function = list(sp.symbols(f"x0:{arity(name)}", real=True)), CASES[name].function
    return symad.trace(function(*xs) if name in BY_SYMPY else function, inputs=xs)


@cache
def scalar_graph(name: str) -> Graph:
    """Value and derivatives, as a tuple."""
    value = written(name)
    first = [symad.gradient(value, wrt=k) for k in range(arity(name))]
    if arity(name) == 1:
        return symad.join(value, first[0], symad.gradient(first[0], wrt=0))
    second = [symad.gradient(first[0], wrt=k) for k in (0, 1)] + [symad.gradient(first[1], wrt=1)]
    return symad.join(value, *first, *second)


def orders(count: int) -> list[tuple[int, ...]]:
    """The numbers of derivatives by each argument."""
    return [(0,), (1,), (2,)] if count == 1 else [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]


@cache
def in_c(name: str) -> bool:
    try:
        graph = prepare(scalar_graph(name))
        print_c(graph, layout_of(graph.input_nodes, graph), "f")
    except NotInC:
        return False
    return True


TOGETHER = 12
"""Functions in one kernel: each is also computed at the points of all others, some of which take long."""


def groups(names: list[str], backend: str) -> list[list[str]]:
    """Functions of one arity; those that C lacks by themselves, as a kernel with one of them is NumPy's."""
    parts: dict[Any, list[str]] = {}
    for name in names:
        parts.setdefault((arity(name), backend[0] in "cr" and in_c(name)), []).append(name)
    return [part[k : k + TOGETHER] for part in parts.values() for k in range(0, len(part), TOGETHER)]
