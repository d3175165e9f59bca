"""Every coloring made in these tests is checked against the definition of its kind."""

from collections import Counter

import networkx
import pytest

from symad.sparsity import Coloring
from tests.sparsity.coloring_definitions import (
    acyclic_fault,
    bidirectional_fault,
    column_fault,
    proper_fault,
    row_fault,
    star_fault,
)

LITERAL = 250
"""Patterns with at most this many entries are also checked by the definitions, in quadratic time."""


def is_good(found):
    """True if a coloring is valid for its kind; in linear time, without code of the package."""
    entries = list(zip(found.pattern.rows.tolist(), found.pattern.indices.tolist(), strict=True))
    edges = {(i, j) for i, j in entries if i != j}
    if found.kind == "bidirectional":
        of_row, of_column = (c.tolist() for c in found.colors)
        in_row = Counter((i, of_column[j]) for i, j in entries)
        in_column = Counter((of_row[i], j) for i, j in entries)
        return all(
            (of_column[j] and in_row[i, of_column[j]] == 1) or (of_row[i] and in_column[of_row[i], j] == 1)
            for i, j in entries
        )
    colors = found.colors.tolist()
    if found.kind == "column":
        return len({(i, colors[j]) for i, j in entries}) == len(entries)
    if found.kind == "row":
        return len({(colors[i], j) for i, j in entries}) == len(entries)
    if proper_fault(edges, colors) is not None:
        return False
    if found.kind == "star":  # the vertices of any two colors are stars: no edge has other edges at both ends
        near = Counter((v, colors[w]) for v, w in edges)
        return all(near[v, colors[w]] == 1 or near[w, colors[v]] == 1 for v, w in edges)
    trees = networkx.utils.UnionFind()
    for i, j in edges:
        if i < j:
            pair = frozenset((colors[i], colors[j]))
            if trees[pair, i] == trees[pair, j]:
                return False
            trees.union((pair, i), (pair, j))
    return True


def literal_fault(found):
    """The fault found by the literal definition, which is slow."""
    entries = set(zip(found.pattern.rows.tolist(), found.pattern.indices.tolist(), strict=True))
    edges = {(i, j) for i, j in entries if i != j}
    if found.kind == "bidirectional":
        return bidirectional_fault(entries, found.colors[0].tolist(), found.colors[1].tolist())
    judge = {"column": column_fault, "row": row_fault, "star": star_fault, "acyclic": acyclic_fault}
    return judge[found.kind](entries if found.kind in ("column", "row") else edges, found.colors.tolist())


@pytest.fixture(autouse=True)
def every_coloring_is_judged(monkeypatch):
    """Checks every coloring that the package makes, in the module that makes colorings."""

    def judged(*args):
        found = Coloring(*args)
        assert is_good(found), f"{found!r} is not valid"
        if found.pattern.nnz <= LITERAL:
            assert literal_fault(found) is None
        return found

    monkeypatch.setattr("symad.sparsity.coloring.color.Coloring", judged)
