"""The entries of a sparse derivative: gathered from compressed products, or computed without seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symad.core.graph import Node
from symad.errors import DerivativeError
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.arrays.stacking import concatenate, stack
from symad.ops.basic.arithmetic import sub
from symad.ops.basic.shaping import flatten
from symad.ops.basic.sources import array_constant
from symad.sparsity.coloring.coloring import Coloring
from symad.sparsity.patterns.pattern import IntArray, Pattern
from symad.sparsity.patterns.rules import size_of
from symad.sparsity.recovery.early_slices import chosen
from symad.sparsity.recovery.stencil_terms import stencil_terms
from symad.transforms.cotangents import fresh_seed
from symad.transforms.jacobians import Descent, scalar_parts
from symad.transforms.tangents import push

MAX_TREE_DEPTH = 200
"""The maximum depth of trees for substitution; deeper ones would make a graph of too many nodes."""

Parts = list[tuple[Node, IntArray]]
"""Nodes of entries (k,), and the positions (k,) of these among the stored ones."""

Entries = tuple[Pattern, Parts, str]
"""The pattern, its entries, and the report."""


# ---- from compressed products -----------------------------------------------------------------------


def recovered(products: Sequence[Node], coloring: Coloring) -> Node:
    """The stored entries (nnz,), in CSR order, from the products, which are stored by lanes."""
    if not products:
        return array_constant(np.zeros(coloring.pattern.nnz))
    flat = concatenate([flatten(product) for product in products])
    if coloring.kind == "acyclic":
        return _substituted(flat, coloring)
    return gather(flat, array_constant(_in_lanes(coloring.positions, coloring)))


def _in_lanes(positions: IntArray, coloring: Coloring) -> IntArray:
    """Positions in column products that are stored by lanes, (q, M), instead of as A S (M, q)."""
    m, n = coloring.pattern.shape
    rows, columns = coloring.row_colors * n, coloring.column_colors
    if not columns:
        return positions
    i, c = np.divmod(positions - rows, columns)
    return np.where(positions < rows, positions, rows + c * m + i)


def _substituted(flat: Node, coloring: Coloring) -> Node:
    """The entries along the trees of an acyclic coloring, from the leaves to the roots."""
    trees = coloring.trees
    if len(trees.levels) > MAX_TREE_DEPTH:
        raise DerivativeError(
            f"the trees of this acyclic coloring are {len(trees.levels)} levels deep, too many to "
            "write the substitution out; use a star coloring"
        )
    x = gather(flat, array_constant(_in_lanes(trees.reads, coloring)))
    for level in trees.levels:
        moved = gather(x, array_constant(level.nodes))
        carried = Node.of(ScatterAdd(x.shape[0]), (array_constant(level.parents), moved))
        x = sub(x, carried)
    diagonal = gather(flat, array_constant(_in_lanes(trees.diagonal, coloring)))
    return gather(concatenate([x, diagonal]), array_constant(trees.entries))


# ---- without seeds -------------------------------------------------------------------------------


def seedless_entries(outputs: Sequence[Node], wrt: Sequence[Node], symmetric: bool = False) -> Entries | None:
    """∂outputs/∂wrt entry by entry; None if the graph neither consists of scalars nor is a stencil.

    For a ``symmetric`` matrix only the upper triangle is computed, and used for both triangles.
    """
    parts = scalar_parts(outputs)
    if parts is not None and not any(x.shape for x in wrt):
        descent = Descent(parts, wrt)
        if descent.worth_unrolling():
            return _scalar_entries(descent, symmetric)
    return _stencil_entries(outputs, wrt, symmetric)


def _scalar_entries(descent: Descent, symmetric: bool) -> Entries:
    """One pushforward of a folded unit seed for each input, through its dependent nodes only."""
    rows_of: dict[Node, list[int]] = {}
    for i, output in enumerate(descent.outputs):
        rows_of.setdefault(output, []).append(i)
    found: dict[tuple[int, int], Node] = {}
    for j, column in enumerate(descent.columns()):
        for node, dot in column.items():
            if isinstance(dot, Node):
                found |= {(i, j): dot for i in rows_of[node]}
    shape = (len(descent.outputs), len(descent.wrt))
    places = np.array(list(found), np.int64).reshape(-1, 2)
    pattern = Pattern.from_entries(shape, places[:, 0], places[:, 1])
    report = f"sparse {shape[0]}×{shape[1]}, {pattern.nnz} entries, each an expression of its own"
    if not found:
        return pattern, [], report
    half = symmetric and pattern.first_asymmetry() is None
    stored = zip(pattern.rows.tolist(), pattern.indices.tolist(), strict=True)
    entries = [found[(j, i) if half and i > j else (i, j)] for i, j in stored]
    return pattern, [(stack(entries), np.arange(pattern.nnz))], report


def _positions(pattern: Pattern, rows: IntArray, columns: IntArray) -> IntArray:
    """The positions of entries among the stored ones."""
    n = pattern.shape[1]
    return np.searchsorted(pattern.rows * n + pattern.indices, rows * n + columns)


def _on_both_sides(pattern: Pattern, entries: Sequence[tuple[Node, IntArray, IntArray]], half: bool) -> Parts:
    """Entries (values, rows, columns) with their positions; mirrored too, if they are one half."""
    parts: Parts = [(values, _positions(pattern, i, j)) for values, i, j in entries]
    if not half:
        return parts
    for values, i, j in entries:
        above = np.flatnonzero(i != j)
        if len(above):
            mirrored = _positions(pattern, j[above], i[above])
            same = len(above) == len(i) or not values.shape
            parts.append((values if same else chosen(flatten(values), above), mirrored))
    return parts


def _stencil_entries(outputs: Sequence[Node], wrt: Sequence[Node], symmetric: bool) -> Entries | None:
    placeholders = [fresh_seed(x) for x in wrt]
    tangents = push(outputs, dict(zip(wrt, placeholders, strict=True)))
    terms = stencil_terms(tangents, placeholders)
    if terms is None:
        return None
    found: list[tuple[Node, IntArray, IntArray]] = []
    first = 0
    for output, own in zip(outputs, terms, strict=True):
        found += [(term.value, first + np.arange(size_of(output)), term.picks) for term in own]
        first += size_of(output)
    shape = (first, sum(map(size_of, wrt)))
    if not found:
        return Pattern.from_entries(shape, [], []), [], f"sparse {shape[0]}×{shape[1]}, no entries"
    rows, columns = (np.concatenate([part[k] for part in found]) for k in (1, 2))
    pattern = Pattern.from_entries(shape, rows[columns >= 0], columns[columns >= 0])
    half = symmetric and pattern.first_asymmetry() is None
    entries = []
    for value, i, j in found:
        kept = np.flatnonzero((j >= 0) & (i <= j) if half else j >= 0)
        if len(kept):
            entries.append((chosen(value, kept), i[kept], j[kept]))
    arrays = f"{len(found)} array{'s' * (len(found) != 1)}"
    report = f"sparse {shape[0]}×{shape[1]}, {pattern.nnz} entries in {arrays}, without seeds"
    return pattern, _on_both_sides(pattern, entries, half), report
