"""Entries of a sparse derivative without seeds: scalar expressions, or terms of a stencil."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symad.conditions import use_conditions
from symad.forward import push, push_along
from symad.graph import Node
from symad.ops.shaping import ScatterAdd, concatenate, flatten, gather, slice_axis, stack
from symad.ops.sources import array_constant, constant
from symad.reverse import fresh_seed
from symad.seeding import Descent, scalar_parts
from symad.sparsity.pattern import IntArray, Pattern
from symad.sparsity.rules import size_of
from symad.sparsity.terms import Term, stencil_terms

Entries = tuple[Pattern, list[tuple[Node, IntArray]], str]
"""The pattern, the nodes of its entries with their positions, and what to report."""


def seedless_entries(outputs: Sequence[Node], wrt: Sequence[Node]) -> Entries | None:
    """∂outputs/∂wrt entry by entry; None where the graph is neither of scalars nor a stencil."""
    parts = scalar_parts(outputs)
    if parts is not None and not any(x.shape for x in wrt):
        descent = Descent(parts, wrt)
        if descent.worth_unrolling():
            return _scalar_entries(descent)
    return _stencil_entries(outputs, wrt)


def _scalar_entries(descent: Descent) -> Entries:
    """One pushforward of a folded unit seed for each input, through its heirs only."""
    conditions = use_conditions(descent.order, descent.outputs)
    rows_of: dict[Node, list[int]] = {}
    for i, output in enumerate(descent.outputs):
        rows_of.setdefault(output, []).append(i)
    rows, columns, nodes = [], [], []
    for j, w in enumerate(descent.wrt):
        order = _heirs(descent, w)
        dots = push_along(order, {w: constant(1)}, conditions)
        for node in order:
            if node in dots:
                for i in rows_of.get(node, ()):
                    rows.append(i)
                    columns.append(j)
                    nodes.append(dots[node])
    shape = (len(descent.outputs), len(descent.wrt))
    pattern = Pattern.from_entries(shape, rows, columns)
    report = f"sparse {shape[0]}×{shape[1]}, {pattern.nnz} entries, each an expression of its own"
    if not nodes:
        return pattern, [], report
    return pattern, [(stack(nodes), _positions(pattern, np.array(rows), np.array(columns)))], report


def _heirs(descent: Descent, w: Node) -> list[Node]:
    """The nodes that depend on an input, arguments first."""
    heirs = {w} if w in descent.rank else set()
    waiting = list(heirs)
    while waiting:
        for user in descent.users[waiting.pop()]:
            if user not in heirs:
                heirs.add(user)
                waiting.append(user)
    return sorted(heirs, key=descent.rank.__getitem__)


def _positions(pattern: Pattern, rows: IntArray, columns: IntArray) -> IntArray:
    """Where entries stand among the stored ones."""
    n = pattern.shape[1]
    return np.searchsorted(pattern.rows * n + pattern.indices, rows * n + columns)


def _stencil_entries(outputs: Sequence[Node], wrt: Sequence[Node]) -> Entries | None:
    placeholders = [fresh_seed(x) for x in wrt]
    tangents = push(outputs, dict(zip(wrt, placeholders, strict=True)))
    terms = stencil_terms(tangents, placeholders)
    if terms is None:
        return None
    rows, columns, nodes = [], [], []
    first = 0
    for output, own in zip(outputs, terms, strict=True):
        for term in own:
            picked = np.flatnonzero(term.picks >= 0)
            rows.append(first + picked)
            columns.append(term.picks[picked])
            nodes.append(_chosen(term, picked))
        first += size_of(output)
    shape = (first, sum(map(size_of, wrt)))
    report = f"sparse {shape[0]}×{shape[1]}, {len(nodes)} diagonals without seeds"
    if not nodes:
        return Pattern.from_entries(shape, [], []), [], report
    pattern = Pattern.from_entries(shape, np.concatenate(rows), np.concatenate(columns))
    places = [_positions(pattern, r, c) for r, c in zip(rows, columns, strict=True)]
    if sum(map(len, places)) == pattern.nnz:
        return pattern, list(zip(nodes, places, strict=True)), report
    # Some entries are sums over several terms.
    where = array_constant(np.concatenate(places))
    total = Node.of(ScatterAdd(pattern.nnz), (where, concatenate(nodes)))
    return pattern, [(total, np.arange(pattern.nnz))], report


def _chosen(term: Term, picked: IntArray) -> Node:
    """The elements of a term's value at some flat positions."""
    flat = flatten(term.value)
    step = int(picked[1] - picked[0]) if len(picked) > 1 else 1
    first = int(picked[0])
    if np.array_equal(picked, np.arange(first, int(picked[-1]) + 1, step)):
        return slice_axis(flat, 0, first, len(picked), step)
    return gather(flat, array_constant(picked))
