"""Checks in generated code that symbolic sizes are large enough: no slice with fewer than no elements."""

from __future__ import annotations

from typing import Any

import sympy

from symad.core.graph import Graph


def size_checks(graph: Graph, printer: Any) -> list[str]:
    """A statement for every dimension that could be negative, such as T − 2; NumPy would cut silently."""
    doubtful = {
        dim: None
        for node in graph.nodes
        for dim in node.shape
        if isinstance(dim, sympy.Expr) and not dim.is_nonnegative
    }
    lines = []
    for dim in sorted(doubtful, key=str):
        names = sorted((printer.symbols[s] for s in dim.free_symbols), key=str)
        sizes = ", ".join(f"{name} = {{{name}}}" for name in names)
        lines += [
            f"if {printer.dim(dim)} < 0:",
            f'    raise ValueError(f"{dim} elements were asked for, but {sizes}: give longer arrays")',
        ]
    return lines
