"""Tiny cases against exhaustive search over every assignment of p colors."""

from itertools import product

import networkx
import numpy as np
import pytest

from symad.sparsity import color
from symad.sparsity.coloring.lower_bounds import local_star_bound
from symad.sparsity.patterns.pattern import as_pattern
from tests.sparsity.cases import cycle, edges_of, entries_of, from_entries, random_integers
from tests.sparsity.coloring_definitions import (
    acyclic_fault,
    bidirectional_fault,
    column_fault,
    star_fault,
)


def optimum(fault, vertices):
    """The least p such that some assignment of p colors to the vertices has no fault."""
    for p in range(1, vertices + 1):
        # Colors are interchangeable: the first vertex has the first.
        if any(fault((0, *rest)) is None for rest in product(range(p), repeat=vertices - 1)):
            return p
    raise AssertionError("one color for each vertex is always enough")


def small_matrices():
    rng = np.random.default_rng(7)
    for density in (0.2, 0.4, 0.6):
        for _ in range(4):
            matrix = random_integers(rng, (6, 6), density, symmetric=True) != 0
            np.fill_diagonal(matrix, True)
            yield from_entries((6, 6), {tuple(map(int, e)) for e in np.argwhere(matrix)})


@pytest.mark.parametrize("kind", ["column", "star", "acyclic"])
def test_small_random_matrices(kind):
    for matrix in small_matrices():
        edges, entries = edges_of(matrix), entries_of(matrix)
        rules = {
            "column": lambda colors, entries=entries: column_fault(entries, colors),
            "star": lambda colors, edges=edges: star_fault(edges, colors),
            "acyclic": lambda colors, edges=edges: acyclic_fault(edges, colors),
        }
        best = optimum(rules[kind], 6)
        found = color(matrix, kind)
        assert found.lower_bound <= best <= found.num_colors <= best + 1


def test_the_star_bound_from_a_ball_is_the_optimum_of_a_small_connected_graph():
    for matrix in [*small_matrices(), cycle(5), cycle(6), cycle(7)]:
        n, edges = matrix.shape[0], edges_of(matrix)
        best = optimum(lambda colors, edges=edges: star_fault(edges, colors), n)
        found = local_star_bound(as_pattern(matrix).adjacency(), 1, n)
        assert found <= best
        if networkx.Graph(sorted(edges)).number_of_nodes() == n and networkx.is_connected(
            networkx.Graph(sorted(edges))
        ):
            assert found == best


def test_small_bidirectional_colorings():
    def colors(pair):
        return sum(len(set(side) - {0}) for side in pair)

    rng = np.random.default_rng(8)
    sides = list(product(range(4), repeat=4))
    fewest_first = sorted(product(sides, sides), key=colors)
    for _ in range(6):
        matrix = random_integers(rng, (4, 4), 0.45) != 0
        entries = {tuple(map(int, e)) for e in np.argwhere(matrix)}
        best = next(colors(pair) for pair in fewest_first if bidirectional_fault(entries, *pair) is None)
        found = color(matrix, "bidirectional")
        assert found.lower_bound <= best <= found.num_colors <= best + 1
