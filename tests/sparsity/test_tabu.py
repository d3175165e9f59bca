"""Local search for fewer colors: proper, deterministic, never worse."""

import networkx
import numpy as np
import pytest

from symad.sparsity import as_pattern
from symad.sparsity.coloring.tabu import MIN_VERTICES, fewer_colors

GRAPHS = {
    # graph, its chromatic number
    "odd cycle": (networkx.cycle_graph(51), 3),
    "Mycielski 6": (networkx.mycielski_graph(6), 6),
    "even cycle": (networkx.cycle_graph(50), 2),
    "queens 7": (
        networkx.Graph(
            ((a, b), (c, d))
            for a in range(7) for b in range(7) for c in range(7) for d in range(7)
            if (a, b) < (c, d) and (a == c or b == d or abs(a - c) == abs(b - d))
        ),
        7,
    ),
}  # fmt: skip


def adjacency(graph):
    return as_pattern(networkx.convert_node_labels_to_integers(graph, ordering="sorted")).adjacency()


@pytest.mark.parametrize("name", GRAPHS)
def test_from_one_color_each_to_few(name):
    graph, chromatic = GRAPHS[name]
    pattern = adjacency(graph)
    n = pattern.shape[0]
    assert n >= MIN_VERTICES
    start = np.arange(n)
    found = fewer_colors(pattern, start, 1)
    assert (found[pattern.rows] != found[pattern.indices]).all()
    assert set(found.tolist()) == set(range(found.max() + 1))
    assert chromatic <= found.max() + 1 <= chromatic + 1
    assert np.array_equal(found, fewer_colors(pattern, start, 1))


def test_the_bound_ends_the_search_and_other_sizes_are_left_alone():
    pattern = adjacency(networkx.cycle_graph(60))
    six = np.arange(60) % 6
    assert fewer_colors(pattern, six, 5).max() + 1 == 5
    small = adjacency(networkx.cycle_graph(10))
    assert fewer_colors(small, np.arange(10), 1).tolist() == list(range(10))
