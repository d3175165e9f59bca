"""Numbers for symbolic dimensions, at which what cannot be proved for all sizes is certified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from symad.core.graph import Graph, Node, topological

FIRST = (3, 2, 4, 5)
SECOND = (2, 3, 1, 4)
"""Two instances: different numbers for different symbols, so that axes are not taken for one another."""

Sizes = tuple[tuple[Any, tuple[int, ...]], ...]


def sizes_of(left: Graph, right: Graph) -> Sizes:
    """For each dimension symbol of two graphs the numbers it is given; empty if there are none."""
    symbols = sorted(left.dims | right.dims, key=sympy.default_sort_key)
    chosen = [
        {s: values[k % len(values)] + k // len(values) for k, s in enumerate(symbols)}
        for values in (FIRST, SECOND)
    ]
    possible = [c for c in chosen if _fits(left.output_nodes + right.output_nodes, c)]
    if not possible and symbols:
        possible = [{s: 6 + k for k, s in enumerate(symbols)}]
    return tuple((s, tuple(c[s] for c in possible)) for s in symbols)


FURTHER = (7, 5, 6, 8), (5, 6, 8, 7)
"""Sizes at which floats are asked, where the claim would be for two sizes only."""


def further_sizes(left: Graph, right: Graph) -> list[dict[sympy.Symbol, int]]:
    """Other choices of sizes."""
    symbols = sorted(left.dims | right.dims, key=sympy.default_sort_key)
    chosen = [{s: v[k % 4] + k // 4 for k, s in enumerate(symbols)} for v in FURTHER]
    return [c for c in chosen if symbols and _fits(left.output_nodes + right.output_nodes, c)]


def _fits(outputs: tuple[Node, ...], sizes: Mapping[sympy.Symbol, int]) -> bool:
    """Whether no dimension becomes negative or zero, and all slices stay inside."""
    try:
        bound = Graph((), outputs).at(sizes)
    except (ValueError, TypeError):
        return False
    return all(isinstance(d, int) and d > 0 for n in topological(bound.output_nodes) for d in n.shape)
