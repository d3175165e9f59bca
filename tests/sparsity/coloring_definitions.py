"""Slow, literal definitions of the five kinds of coloring: oracles for the fast algorithms.

Each function iterates over rows, vertices or paths with Python sets, shares no code with the
algorithms it tests, and returns None for a valid coloring, otherwise a tuple with a conflict.
``entries`` is a set of pairs (i, j), ``edges`` one of pairs in both directions and without loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Entries: TypeAlias = "set[tuple[int, int]]"
Colors: TypeAlias = "Sequence[int] | Mapping[int, int]"


def column_fault(entries: Entries, colors: Colors) -> tuple[int, int, int] | None:
    """Structurally orthogonal columns: no two columns of one color have an entry in one row.

    Returns:
        (row, column, column) at fault.
    """
    for i, j in sorted(entries):
        for other_i, k in sorted(entries):
            if other_i == i and j < k and colors[j] == colors[k]:
                return i, j, k
    return None


def row_fault(entries: Entries, colors: Colors) -> tuple[int, int, int] | None:
    """Structurally orthogonal rows: no two rows of one color have an entry in one column.

    Returns:
        (column, row, row) at fault.
    """
    return column_fault({(j, i) for i, j in entries}, colors)


def proper_fault(edges: Entries, colors: Colors) -> tuple[int, int] | None:
    """Proper: adjacent vertices have different colors. Returns an edge at fault."""
    return next(((v, w) for v, w in sorted(edges) if colors[v] == colors[w]), None)


def star_fault(edges: Entries, colors: Colors) -> tuple[int, ...] | None:
    """Star: proper, and every path on four vertices has at least three colors.

    Returns:
        The edge or the path at fault.
    """
    near = _neighbors(edges)
    for v, w in sorted(edges):
        for u in near[v] - {w}:
            for x in near[w] - {v, u}:
                if len({colors[u], colors[v], colors[w], colors[x]}) < 3:
                    return u, v, w, x
    return proper_fault(edges, colors)


def acyclic_fault(edges: Entries, colors: Colors) -> tuple[int, ...] | None:
    """Acyclic: proper, and the vertices of any two colors induce a forest.

    Returns:
        The edge at fault, or the vertices of the two-colored components that remain when leaves are removed
        repeatedly.
    """
    fault = proper_fault(edges, colors)
    if fault is not None:
        return fault
    for a, b in sorted({tuple(sorted((colors[v], colors[w]))) for v, w in edges}):
        near = _neighbors({e for e in edges if {colors[e[0]], colors[e[1]]} == {a, b}})
        while True:
            leaves = [v for v, around in near.items() if len(around) <= 1]
            if not leaves:
                break
            for v in leaves:
                for w in near.pop(v):
                    near[w].discard(v)
        if near:
            return tuple(sorted(near))
    return None


def bidirectional_fault(
    entries: Entries, row_colors: Colors, column_colors: Colors
) -> tuple[int, int] | None:
    """Direct recovery of every entry, from a row product or from a column product; 0 is no color.

    Returns:
        An entry that can be read from neither.
    """
    for i, j in sorted(entries):
        in_row = [k for r, k in entries if r == i and k != j]
        in_column = [k for k, c in entries if c == j and k != i]
        from_column = column_colors[j] and all(column_colors[k] != column_colors[j] for k in in_row)
        from_row = row_colors[i] and all(row_colors[k] != row_colors[i] for k in in_column)
        if not (from_column or from_row):
            return i, j
    return None


def _neighbors(edges: Entries) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {}
    for v, w in edges:
        near.setdefault(v, set()).add(w)
        near.setdefault(w, set()).add(v)
    return near
