"""Numbers for symbolic dimensions, at which what cannot be proved for all sizes is certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import sympy

from symad.core.graph import Graph, Node, topological
from symad.errors import SymadError
from symad.ops.linalg.solve_det import MatrixOp
from symad.verification.budget import operations
from symad.verification.values.find_values import have_values

FIRST = (3, 2, 4, 5)
SECOND = (2, 3, 1, 4)
"""Two instances: different numbers for different symbols, so that axes are not taken for one another."""

Sizes: TypeAlias = "tuple[tuple[sympy.Symbol, tuple[int, ...]], ...]"


EQUAL = (3, 3, 3, 3)
"""One number for all, where matrices are singular at those."""


def sizes_of(left: Graph, right: Graph) -> Sizes:
    """For each dimension symbol of two graphs the numbers it is given; empty if there are none.

    Of matrices (n, d), AᵀA has no inverse where n < d: sizes at which no value is found are left out.
    """
    symbols = tuple(sorted(left.dims | right.dims, key=sympy.default_sort_key))
    return _chosen(left.output_nodes + right.output_nodes, symbols) if symbols else ()


@lru_cache(64)
def _chosen(outputs: tuple[Node, ...], symbols: tuple[sympy.Symbol, ...]) -> Sizes:
    def fitting(*numbers: tuple[int, ...]) -> list[dict[sympy.Symbol, int]]:
        chosen = [{s: v[k % len(v)] + k // len(v) for k, s in enumerate(symbols)} for v in numbers]
        return [c for c in chosen if _fits(outputs, c)]

    possible = fitting(FIRST, SECOND) or [{s: 6 + k for k, s in enumerate(symbols)}]
    valued = _where_inverses_exist
    possible = valued(outputs, possible) or valued(outputs, fitting(EQUAL)) or possible
    return tuple((s, tuple(c[s] for c in possible)) for s in symbols)


def _where_inverses_exist(
    outputs: tuple[Node, ...], chosen: Sequence[dict[sympy.Symbol, int]]
) -> list[dict[sympy.Symbol, int]]:
    """The sizes at which all elements have values, if there are functions of matrices; otherwise all."""
    if not any(isinstance(n.op, MatrixOp) for n in topological(outputs)):
        return list(chosen)
    return [c for c in chosen if have_values(Graph((), outputs).at(c).output_nodes)]


ONE, THIRTIES = (1, 1, 1, 1), ((33, 34, 35, 36), (36, 35, 34, 33))
TENS, FEW = ((17, 18, 19, 20), (20, 19, 18, 17)), ((7, 5, 6, 8), (5, 6, 8, 7))
BESIDE = ((1, 3, 2, 4), (3, 1, 4, 2), (2, 4, 1, 3), (4, 2, 3, 1))
"""One symbol is 1, and those beside it are not: code that drops axes of length 1 is wrong there alone."""

FURTHER = *FEW, ONE, *BESIDE, *TENS
"""Sizes at which floats are asked, where the claim would be for two sizes only."""

MANY = *THIRTIES, *TENS, *FEW
"""Sizes beyond those of blocks, the largest first: code may be right for small arrays alone."""


def further_sizes(left: Graph, right: Graph) -> list[dict[sympy.Symbol, int]]:
    """Other choices of sizes."""
    symbols = sorted(left.dims | right.dims, key=sympy.default_sort_key)
    return _fitting(left.output_nodes + right.output_nodes, symbols, FURTHER)


def sizes_of_programs(
    outputs: tuple[Node, ...], symbols: Sequence[sympy.Symbol], most: float
) -> list[Chosen]:
    """Sizes 1, 1 for one symbol alone, and larger ones.

    Each is left out if the nodes have no values there or take more than ``most`` operations.
    """
    found = []
    beside = ((one,) for one in BESIDE[: len(symbols)] if len(symbols) > 1)
    for numbers in ((ONE,), *beside, MANY):
        chosen = _fitting(outputs, symbols, numbers)
        cheap = [c for c in chosen if operations(topological(Graph((), outputs).at(c).output_nodes)) <= most]
        found += _where_inverses_exist(outputs, cheap)[:1]
    return found


WIDE = tuple((n, 2, 3, 4) for n in (65, 257, 1025)), tuple((2, n, 3, 4) for n in (65, 257, 1025))
"""Sizes beyond 64, 256 and 1024, of one axis in turn: kernels take so many numbers at once."""


def sizes_beyond(outputs: tuple[Node, ...], symbols: Sequence[sympy.Symbol], most: float) -> list[Chosen]:
    """Large sizes of each of the first two axes, at which floats are computed by so many operations."""
    chosen = [c for numbers in WIDE[: len(symbols)] for c in _fitting(outputs, symbols, numbers)]
    return [c for c in chosen if operations(topological(Graph((), outputs).at(c).output_nodes)) <= most]


Chosen: TypeAlias = dict[sympy.Symbol, int]


def _fitting(
    outputs: tuple[Node, ...], symbols: Sequence[sympy.Symbol], numbers: Sequence[tuple[int, ...]]
) -> list[Chosen]:
    chosen = [{s: v[k % 4] + (v is not ONE) * (k // 4) for k, s in enumerate(symbols)} for v in numbers]
    return [c for c in chosen if symbols and _fits(outputs, c)]


def _fits(outputs: tuple[Node, ...], sizes: Mapping[sympy.Symbol, int]) -> bool:
    """Whether no dimension becomes negative or zero, and all slices stay inside."""
    try:
        bound = Graph((), outputs).at(sizes)
    except (ValueError, TypeError):
        return False
    return all(isinstance(d, int) and d > 0 for n in topological(bound.output_nodes) for d in n.shape)


LEAST = 4
"""The largest number that is tried as the least size."""


def guarded_sizes(outputs: Sequence[Node], sizes: Sizes) -> list[dict[sympy.Symbol, int]]:
    """The choices of sizes at which the guard looks: those chosen, and the least ones that are admitted."""
    chosen = [{s: v[k] for s, v in sizes} for k in range(len(sizes[0][1]))] if sizes else [{}]
    if not sizes:
        return chosen
    least = next(
        (c for n in range(LEAST) if _admitted(outputs, c := {s: _at_least(s, n) for s, _ in sizes})), None
    )
    return [*chosen, *([least] if least is not None and least not in chosen else [])]


def _at_least(symbol: sympy.Symbol, number: int) -> int:
    """A size that a symbol may have: 0 if it is not said to be positive."""
    return max(number, 1) if symbol.is_positive is not False and symbol.is_zero is False else number


def _admitted(outputs: Sequence[Node], sizes: Mapping[sympy.Symbol, int]) -> bool:
    """Whether arrays of these sizes exist; axes inside may be empty."""
    try:
        bound = Graph((), tuple(outputs)).at(sizes)
    except (SymadError, ValueError, TypeError):
        return False
    dims = [(n, d) for n in topological(bound.output_nodes) for d in n.shape]
    return all(isinstance(d, int) and d >= 0 for _, d in dims)
