"""Regions of rows: found in linear time, and never such that two of them wait for each other."""

import numpy as np
import pytest

import symad
from symad.core.graph import Graph
from symad.core.nodes import topological
from symad.numeric.fusion.nest import Nest
from symad.numeric.fusion.rows import _RowRegions, fuse_rows
from tests.counting import calls

ALL = (lambda node: False, (10**6, 10**6))


def chain(blocks, shapes=((5, 80),)):
    """Layer norms one after the other, in arrays of several shapes that also read each other's sums."""

    def f(*given):
        values = list(given)
        for k in range(blocks):
            at = k % len(values)
            a = values[at]
            centered = a - np.mean(a, axis=1, keepdims=True)
            scale = np.sqrt(np.mean(centered**2, axis=1, keepdims=True) + 0.1)
            values[at] = np.tanh(centered / scale) + k * a
            other = (at + 1) % len(values)
            values[other] = values[other] * (1 + np.sum(scale))
        return values[0]

    return symad.trace(f, list(shapes))


@pytest.mark.parametrize("shapes", [((5, 80),), ((5, 80), (4, 40)), ((5, 80), (4, 40), (3, 90))])
def test_the_work_grows_with_the_graph(shapes):
    small, large = (chain(blocks, shapes).output_nodes for blocks in (15, 60))
    size = [len(topological(nodes)) for nodes in (small, large)]
    assert len(_RowRegions(large, True, *ALL).kept()) >= 60 / len(shapes)
    work = [calls(lambda n=nodes: _RowRegions(n, True, *ALL)) for nodes in (small, large)]
    assert work[1] / work[0] <= 1.5 * size[1] / size[0]


def literal_order(found):
    """Whether regions can be computed one after the other: each node by itself, each region at once."""
    unit = {m: -1 - k for k, r in enumerate(found.regions) for m in r.members}
    waits = {}
    for k, node in enumerate(found.order):
        unit.setdefault(node, k)
        waits.setdefault(unit[node], set()).update({unit[a] for a in node.args} - {unit[node]})
    while ready := [u for u, before in waits.items() if not before & waits.keys()]:
        for u in ready:
            del waits[u]
    return not waits


STEPS = [
    lambda u, v, other: u - np.mean(u, axis=1, keepdims=True),
    lambda u, v, other: u / np.sqrt(1 + np.sum(v * v, axis=1, keepdims=True)),
    lambda u, v, other: u * v + 0.5 * u,
    lambda u, v, other: np.tanh(u) * (0.1 * np.sum(other)),
    lambda u, v, other: u + np.sum(u * v, axis=1)[:, None] * 0.1,
    lambda u, v, other: np.exp(-v * v) + u[:1],
]


@pytest.mark.parametrize("seed", range(12))
def test_regions_of_random_programs_do_not_wait_for_each_other(seed):
    rng = np.random.default_rng(seed)
    shapes = [(4, 40), (3, 50)]
    steps = rng.integers(6, size=40)
    picks = rng.integers(10**6, size=(40, 2))

    def f(a, b):
        values = {(4, 40): [a, np.sin(a)], (3, 50): [b, np.cos(b)]}
        for step, (first, second) in zip(steps, picks, strict=True):
            shape = shapes[first % 2]
            here = values[shape]
            u, v = here[-1 - first % min(4, len(here))], here[-1 - second % min(3, len(here))]
            other = values[shapes[1 - first % 2]][-1]
            here.append(STEPS[step](u, v, other) / 2)
        return values[(4, 40)][-1], values[(3, 50)][-1]

    graph = symad.trace(f, shapes)
    graph = Graph(graph.input_nodes, fuse_rows(graph.output_nodes), graph.structure)
    whole = symad.trace(f, shapes)
    assert literal_order(_RowRegions(whole.output_nodes, True, *ALL))
    point = [rng.normal(size=shape) for shape in shapes]
    for one, other in zip(graph(*point), whole(*point), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert any(isinstance(node.op, Nest) for node in graph.nodes)
