"""How long the formulas of a graph become when it is evaluated on symbols.

A value is a tree of symbols: what occurs twice in it is written twice, so that h_t = tanh(W h_{t−1}) with n
features has n^t terms. The estimate counts the symbols of one element without making it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from symad.core.dims import size
from symad.core.graph import Node, topological
from symad.core.questions import flops
from symad.higher_order.scan import Scan
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum


def formula_sizes(outputs: Sequence[Node], given: Mapping[Node, float]) -> dict[Node, float]:
    """About how many symbols one element of each node has, from those of some nodes; 0 for numbers."""
    sizes = dict(given)
    for node in topological(outputs):
        if node not in sizes:
            sizes[node] = _size(node, [sizes[a] for a in node.args])
    return sizes


def _size(node: Node, parts: list[float]) -> float:
    if not any(parts):
        return 0
    if isinstance(node.op, Scan):
        return _last_state(node, node.op, parts)
    return _summands(node) * sum(parts)


def _summands(node: Node) -> float:
    """How many elements of each argument one element is made of."""
    if isinstance(node.op, ElementwiseOp):
        return 1
    if isinstance(node.op, Einsum):
        lengths = {
            k: d
            for labels, a in zip(node.op.inputs, node.args, strict=True)
            for k, d in zip(labels, a.shape, strict=True)
        }
        return math.prod(float(d) for k, d in lengths.items() if k not in node.op.output)
    return max(1.0, float(flops(node.op, node)) / max(1.0, float(size(node.shape))))


def _last_state(node: Node, op: Scan, parts: list[float]) -> float:
    state, *others = parts
    inputs, (output,) = op.body.input_nodes, op.body.output_nodes
    for _ in range(int(node.shape[0])):
        before = state
        state = formula_sizes([output], dict(zip(inputs, (before, *others), strict=True)))[output]
        if state == before:  # also at infinity
            break
    return state
