"""Fusion keeps the values of random graphs, in which ops that cannot be fused stand between the chains."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph
from symad.gpu.passes.fusion import fuse
from symad.gpu.passes.known_rows import filled
from symad.numeric.fusion.nest import Nest
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import matmul, sum_axes
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, select
from tests.gpu.cupy_agreement import agree

SIZE = 3


def random_graph(seed, steps):
    """A graph of elementwise nodes, products, sums with broadcasts, and selections."""
    rng = np.random.default_rng(seed)
    square = (SIZE, SIZE)
    inputs = [input_node(sp.MatrixSymbol(name, *square), square) for name in "AB"]
    scalar = input_node(sp.Symbol("s", real=True))
    nodes = list(inputs)

    def pick():
        return nodes[max(0, len(nodes) - 1 - int(rng.integers(6)))]

    makers = [
        lambda: add(pick(), pick()),
        lambda: mul(pick(), scalar, constant(0.5)),
        lambda: apply(sp.tanh, pick()),
        lambda: apply(sp.sin, mul(pick(), pick())),
        lambda: power(apply(sp.cos, pick()), constant(2)),
        lambda: apply(sp.tanh, matmul(pick(), pick())),
        lambda: broadcast_axes(sum_axes(apply(sp.sin, pick()), (1,)), square, (0,)),
        lambda: select(compare("<", pick(), pick()), pick(), apply(sp.atan, pick())),
        lambda: broadcast_axes(apply(sp.exp, mul(scalar, constant(-1))), square, ()),
    ]
    for _ in range(steps):
        nodes.append(makers[rng.integers(len(makers))]())
    return Graph((*inputs, scalar), (nodes[-1], nodes[-4], sum_axes(nodes[-2], (0,))))


def values(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(SIZE, SIZE)), rng.normal(size=(SIZE, SIZE)), 0.3]


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_keep_their_values(seed):
    agree(random_graph(seed, 12 + 2 * seed), values(seed), rtol=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_fused_graphs_are_acyclic_and_smaller(seed):
    graph = random_graph(seed, 60)
    fused = fuse(graph)  # a cycle between kernels would raise
    kernels = {(n.op.body, n.args) for n in fused.nodes if isinstance(n.op, Nest)}
    assert 0 < len(kernels) < len(graph.nodes) / 2
    assert [o.shape for o in fused.outputs] == [o.shape for o in graph.outputs]


def test_gradients_of_long_chains_are_few_kernels():
    graph = symad.value_and_gradient(
        symad.trace(lambda a: np.sum(np.tanh(np.sin(a) * np.exp(-(a**2)) + a)), [(5, 4)])
    )
    fused = fuse(graph)
    kernels = {(n.op.body, n.args) for n in fused.nodes if isinstance(n.op, Nest)}
    assert len(kernels) == 1  # value and slope of each element together


def test_numbers_are_looked_for_once_in_shared_values():
    """u ← u² + u doubles the paths to the first value in each step; a search of all paths would not end."""
    u = input_node(sp.MatrixSymbol("u", SIZE, 1), (SIZE, 1))
    for _ in range(60):
        u = add(mul(u, u), u)
    assert filled(u) is None
    assert filled(add(broadcast_axes(constant(2), (3,), ()), broadcast_axes(constant(5), (3,), ()))) == 7
