"""Orders: their definitions checked literally, their use as NetworkX strategies, their errors."""

import networkx
import numpy as np
import pytest

from symad.sparsity import ORDERS, ColoringError, PatternError, color
from symad.sparsity.coloring import orders
from symad.sparsity.coloring.greedy import (
    first_fit,
    first_fit_bits,
    first_fit_proper,
    first_fit_stars,
    first_fit_trees,
)
from symad.sparsity.patterns.pattern import as_pattern
from tests.sparsity.cases import band, edges_of, five_point, random_integers
from tests.sparsity.coloring_definitions import acyclic_fault, star_fault

GRAPHS = {
    "random": networkx.gnp_random_graph(40, 0.15, seed=1),
    "dense": networkx.gnp_random_graph(25, 0.6, seed=2),
    "tree": networkx.random_labeled_tree(40, seed=3),
    "grid": networkx.grid_2d_graph(6, 7),
    "two components": networkx.disjoint_union(networkx.cycle_graph(5), networkx.complete_graph(4)),
    "empty": networkx.empty_graph(4),
}


def graph_pattern(graph):
    return as_pattern(networkx.convert_node_labels_to_integers(graph)).adjacency()


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("name", [name for name in ORDERS if name != "perfect_elimination"])
def test_every_order_is_a_networkx_strategy(name, graph):
    colors = networkx.greedy_color(graph, strategy=ORDERS[name])
    assert set(colors) == set(graph)
    assert all(colors[u] != colors[v] for u, v in graph.edges)
    ours = first_fit_proper(graph_pattern(graph), ORDERS[name](graph_pattern(graph)))
    assert [colors[node] for node in graph] == ours.tolist()


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_largest_first_descends(graph):
    degrees = [graph.degree[v] for v in orders.largest_first(graph)]
    assert degrees == sorted(degrees, reverse=True)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_smallest_last_removes_a_vertex_of_least_degree_each_time(graph):
    left = graph.copy()
    for v in reversed(orders.smallest_last(graph)):
        assert left.degree[v] == min(dict(left.degree).values())
        left.remove_node(v)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_incidence_degree_takes_a_vertex_with_most_ordered_neighbors(graph):
    placed = set()
    for v in orders.incidence_degree(graph):
        known = {w: len(placed & set(graph[w])) for w in set(graph) - placed}
        assert known[v] == max(known.values())
        placed.add(v)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_saturation_takes_a_vertex_that_sees_most_colors_and_of_those_the_fullest(graph):
    colors = {}
    for v in orders.saturation(graph):
        rank = {
            w: (len({colors[x] for x in graph[w] if x in colors}), graph.degree[w])
            for w in set(graph) - set(colors)
        }
        assert rank[v] == max(rank.values())
        near = {colors[x] for x in graph[v] if x in colors}
        colors[v] = next(c for c in range(len(graph)) if c not in near)


def test_random_orders_repeat():
    graph = GRAPHS["random"]
    assert orders.random(graph) == orders.random(graph)
    assert sorted(orders.random(graph)) == sorted(graph)


def test_perfect_elimination_colors_chordal_graphs_with_their_clique_number():
    rng = np.random.default_rng(0)
    for _ in range(5):
        # Subtrees of a path are intervals; their intersection graphs are chordal.
        intervals = np.sort(rng.integers(0, 30, (25, 2)), axis=1)
        graph = networkx.Graph()
        graph.add_nodes_from(range(25))
        graph.add_edges_from(
            (a, b)
            for a in range(25)
            for b in range(a)
            if intervals[a, 0] <= intervals[b, 1] and intervals[b, 0] <= intervals[a, 1]
        )
        cliques = max(len(clique) for clique in networkx.find_cliques(graph))
        colors = networkx.greedy_color(graph, strategy=orders.perfect_elimination)
        assert len(set(colors.values())) == cliques
        assert color(graph, "acyclic").num_colors == cliques


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_chordality_is_recognized(graph):
    pattern = graph_pattern(graph)
    assert orders.is_perfect(pattern, orders.incidence_degree(pattern)) == networkx.is_chordal(graph)


def test_perfect_elimination_needs_a_chordal_graph():
    with pytest.raises(PatternError, match="only chordal graphs"):
        orders.perfect_elimination(networkx.cycle_graph(5))
    with pytest.raises(PatternError, match="only chordal graphs"):
        color(networkx.cycle_graph(5), "acyclic", order="perfect_elimination")


@pytest.mark.parametrize("kind", ["column", "row", "star", "acyclic", "bidirectional"])
def test_networkx_strategies_serve_as_orders(kind):
    matrix = band(12, 1)
    bfs = networkx.coloring.strategy_connected_sequential_bfs
    saturation = networkx.coloring.strategy_saturation_largest_first
    for strategy in (bfs, saturation):
        found = color(matrix, kind, order=strategy)
        back = found.decompress(found.compress(matrix.astype(int)))
        assert np.array_equal(back.toarray(), matrix.toarray().astype(int))


def test_an_explicit_permutation_and_a_list_of_orders():
    matrix = five_point(6)
    forward = color(matrix, "column", order=np.arange(36))
    assert np.array_equal(forward.colors, color(matrix, "column", order="natural").colors)
    several = color(matrix, "column", order=["natural", "smallest_last", "saturation"])
    singles = [
        color(matrix, "column", order=name).num_colors for name in ("natural", "smallest_last", "saturation")
    ]
    assert several.num_colors == min(singles)


def test_unknown_orders_and_wrong_permutations():
    with pytest.raises(ColoringError, match=r"'largest' is not one of natural, largest_first"):
        color(band(5, 1), order="largest")
    with pytest.raises(ColoringError, match="permutation of the 5 vertices"):
        color(band(5, 1), order=[0, 1, 2, 3, 3])
    with pytest.raises(ColoringError, match="permutation of the 5 vertices"):
        color(band(5, 1), order=[0, 1])


# Greedy algorithms against their literal definitions


def literal_first_fit(order, fits):
    """Each vertex in turn gets the least color for which ``fits(colors so far)`` holds."""
    colors = {}
    for v in order:
        for c in range(len(order)):
            colors[v] = c
            if fits(colors):
                break
    return [colors[v] for v in range(len(order))]


@pytest.mark.parametrize("seed", range(6))
def test_first_fit_stars_and_trees_by_definition(seed):
    rng = np.random.default_rng(seed)
    matrix = as_pattern(random_integers(rng, (14, 14), [0.1, 0.2, 0.4][seed % 3], symmetric=True))
    graph = matrix.adjacency()
    edges = edges_of(graph.to_scipy())
    order = rng.permutation(14)

    def fits(fault):
        return lambda colors: fault({(v, w) for v, w in edges if v in colors and w in colors}, colors) is None

    assert first_fit_stars(graph, order).tolist() == literal_first_fit(order.tolist(), fits(star_fault))
    assert first_fit_trees(graph, order).tolist() == literal_first_fit(order.tolist(), fits(acyclic_fault))


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_grouping_and_its_fallback_agree(seed):
    rng = np.random.default_rng(seed)
    pattern = as_pattern(random_integers(rng, (60, 80), 0.04))
    order = rng.permutation(80)
    assert np.array_equal(first_fit(pattern, order), first_fit_bits(pattern, order))
