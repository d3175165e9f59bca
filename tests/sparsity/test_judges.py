"""Tests of the checks that all other tests here use: they must reject bad colorings."""

import networkx
import numpy as np
import pytest

from symad.sparsity import Coloring, as_pattern
from tests.sparsity.cases import band, bordered, five_point, random_integers
from tests.sparsity.conftest import is_good, literal_fault

KINDS = ["column", "row", "star", "acyclic", "bidirectional"]


def coloring(matrix, kind, colors):
    pattern = as_pattern(matrix)
    if kind in ("star", "acyclic"):
        pattern = pattern.with_diagonal()
    return Coloring(kind, pattern, colors, 3, 1, "drawn")


@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_judge_agrees_with_the_literal_one(kind):
    rng = np.random.default_rng(4)
    verdicts = []
    for _ in range(200):
        symmetric = kind in ("star", "acyclic")
        matrix = random_integers(rng, (6, 6), 0.3, symmetric=symmetric) != 0
        colors = rng.integers(0, 4, 6)
        if kind == "bidirectional":
            colors = rng.integers(0, 4, 6), rng.integers(0, 4, 6)
        made = coloring(matrix, kind, colors)
        verdicts.append(is_good(made))
        assert verdicts[-1] == (literal_fault(made) is None)
    assert 5 < sum(verdicts) < 195


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "matrix", [band(40, 2), five_point(6), bordered(20, 1, 1)], ids=["band", "grid", "border"]
)
def test_merging_two_colors_of_an_optimal_coloring_is_noticed(kind, matrix):
    from symad.sparsity import color

    best = color(matrix, kind)
    both = kind == "bidirectional"
    colors = (best.colors[0], np.minimum(best.colors[1], 1)) if both else np.maximum(best.colors, 1)
    worse = Coloring(kind, best.pattern, colors, best.num_colors, 1, "merged")
    merged = not all(np.array_equal(a, b) for a, b in zip(np.atleast_2d(*colors) if both else [colors],
                     best.colors if both else [best.colors], strict=True))  # fmt: skip
    if merged:
        assert is_good(worse) == (literal_fault(worse) is None)
        assert not is_good(worse)


def test_networkx_greedy_colorings_of_the_intersection_graph_are_good_for_columns():
    pattern = as_pattern(five_point(7))
    meeting = pattern.column_intersection()
    graph = networkx.empty_graph(49)
    graph.add_edges_from(zip(meeting.rows.tolist(), meeting.indices.tolist(), strict=True))
    found = networkx.greedy_color(graph)
    assert is_good(coloring(five_point(7), "column", np.array([found[v] for v in range(49)])))
