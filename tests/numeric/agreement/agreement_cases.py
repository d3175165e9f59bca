"""Functions with hostile points, for every backend."""

from __future__ import annotations

from functools import cache

import sympy as sp

import symad
from symad.core.graph import Graph
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
