"""Batches of linear ops are linear: the ops of which derivatives consist can be batched, then transposed.

Rules of loops batch the tangents of their bodies, and the result is transposed as it is.
"""

import numpy as np
import pytest

from symad.core.graph import Graph, Node, topological
from symad.numbers.values import unchecked
from symad.op_examples import EXAMPLES
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import sum_all
from symad.ops.basic.sources import Input, fresh_input
from symad.ops.elementwise.selection import Condition
from symad.saving.saved_ops import load_all_ops
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import pull, transpose_linear
from symad.transforms.tangents import push

load_all_ops()

COUNT = 3


def inputs_of(node):
    return [n for n in topological([node]) if isinstance(n.op, Input)]


NODES = {f"{cls.__name__} {k}": n for cls, make in EXAMPLES.items() for k, n in enumerate(make())}
SMOOTH = [
    name
    for name, node in NODES.items()
    if inputs_of(node)
    and not isinstance(node.op, Condition)
    and not Graph(tuple(inputs_of(node)), (node,)).dims
]


def tangent(node, order):
    """The derivative of an order along as many directions, with its directions and other nodes."""
    points, along = inputs_of(node), []
    for _ in range(order):
        along.append([fresh_input(p.shape) for p in points])
        (node,) = push([node], dict(zip(points, along[-1], strict=True)))
        if not isinstance(node, Node):
            return None
    return node, along[-1], [*points, *(a for more in along[:-1] for a in more)]


def cotangent(node, order):
    """The gradient of ⟨bar, the derivative of an order⟩ by each input, with bar as the direction."""
    made = tangent(node, order) if order else (node, [], inputs_of(node))
    if made is None:
        return []
    value, along, others = made
    bar = fresh_input(value.shape)
    found = pull([value], [bar], inputs_of(node))
    return [(b, [bar], [*others, *along]) for b in found if isinstance(b, Node)]


def adjoint(value, directions, others):
    """⟨w, f(v)⟩ = ⟨fᵀ w, v⟩ for the batch f of a linear function, directions and others batched or not."""
    rng = np.random.default_rng(0)
    for of_directions, of_others in ((True, False), (True, True), (False, True)):
        replaced, shared = {}, {}
        for nodes, batched in ((directions, of_directions), (others, of_others)):
            for node in nodes:
                (replaced if batched else shared)[node] = fresh_input((COUNT,) * batched + node.shape)
        (y,) = batch_outputs([value], replaced, COUNT, shared)
        inputs = {**replaced, **shared}
        seeds = [inputs[d] for d in directions]
        w = fresh_input(y.shape)
        bars = transpose_linear([y], [w], seeds)
        at = {n: rng.uniform(0.1, 0.9, n.shape)[()] for n in (*inputs.values(), w)}
        pairs = [(b, s) for b, s in zip(bars, seeds, strict=True) if isinstance(b, Node)]
        forth, *back = unchecked([sum_all(mul(w, y)), *(sum_all(mul(b, s)) for b, s in pairs)], at)
        assert sum(back) == pytest.approx(forth, rel=1e-9, abs=1e-12)


LAST = pytest.mark.slow  # third derivatives


@pytest.mark.parametrize("order", [1, 2, pytest.param(3, marks=LAST)])
@pytest.mark.parametrize("name", SMOOTH)
def test_batches_of_tangents_are_transposed(name, order):
    made = tangent(NODES[name], order)
    if made is not None:
        adjoint(*made)


@pytest.mark.parametrize("order", [0, 1, pytest.param(2, marks=LAST)])
@pytest.mark.parametrize("name", SMOOTH)
def test_batches_of_cotangents_are_transposed(name, order):
    for made in cotangent(NODES[name], order):
        adjoint(*made)
