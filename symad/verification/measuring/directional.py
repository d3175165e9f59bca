"""Derivatives along directions: what is equal for every direction is equal.

For large inputs the identity ⟨∇f, v⟩ = ḟ(v), with v a free input, says as much as all entries of the
gradient together, and costs two evaluations instead of one for each entry. Likewise ⟨w, J v⟩ for
Jacobians and uᵀ H v for Hessians.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Node
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import inner
from symad.ops.basic.sources import constant, input_node
from symad.tracing.wrt import symbol_like
from symad.transforms.cotangents import gradient_nodes, pull
from symad.transforms.tangents import dense, push


def directions(nodes: Sequence[Node], suffix: str, taken: set[str]) -> tuple[Node, ...]:
    """Free inputs of the shapes of some nodes."""
    return tuple(
        input_node(symbol_like(f"{getattr(n.op, 'symbol', 'y')}_{suffix}", n.shape, taken), n.shape)
        for n in nodes
    )


def pairing(a: Sequence[Node], b: Sequence[Node]) -> Node:
    """Σ ⟨a_k, b_k⟩."""
    return add(*[inner(x, y) if x.shape else mul(x, y) for x, y in zip(a, b, strict=True)])


ONE = (constant(1),)
"""The weight of the one output of a scalar function: ⟨w, J v⟩ is ⟨∇f, v⟩."""


def bilinear_forward(
    outputs: Sequence[Node], wrt: Sequence[Node], v: Sequence[Node], w: Sequence[Node] = ONE
) -> Node:
    """⟨w, J v⟩, by forward mode."""
    pushed = push(outputs, dict(zip(wrt, v, strict=True)))
    return pairing([dense(t, y) for t, y in zip(pushed, outputs, strict=True)], w)


def bilinear_reverse(
    outputs: Sequence[Node], wrt: Sequence[Node], v: Sequence[Node], w: Sequence[Node] = ONE
) -> Node:
    """⟨Jᵀ w, v⟩, by reverse mode."""
    pulled = pull(outputs, w, wrt)
    return pairing([dense(t, x) for t, x in zip(pulled, wrt, strict=True)], v)


def curvatures(value: Node, wrt: Sequence[Node], u: Sequence[Node], v: Sequence[Node]) -> dict[str, Node]:
    """uᵀ H v in the four modes, by name."""
    first = bilinear_forward([value], wrt, v)
    gradient = _gradient(value, wrt)
    over = push(gradient, dict(zip(wrt, v, strict=True)))
    back = pull(gradient, v, wrt)
    return {
        "forward-over-reverse": pairing([dense(t, x) for t, x in zip(over, wrt, strict=True)], u),
        "reverse-over-forward": pairing(_gradient(first, wrt), u),
        "reverse-over-reverse": pairing([dense(t, x) for t, x in zip(back, wrt, strict=True)], u),
        "forward-over-forward": bilinear_forward([first], wrt, u),
    }


def _gradient(value: Node, wrt: Sequence[Node]) -> list[Node]:
    return [dense(b, x) for b, x in zip(gradient_nodes(value, wrt), wrt, strict=True)]
