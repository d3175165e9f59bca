"""The cost of a transformer, from traced graphs with symbolic sizes.

With H·d_k = H·d_v = d one layer on n tokens takes 4d²n + 2n²d + 2 d d_ff n multiply-adds; hence
O(H(d_k + d_v)n² + (H(d_k + d_v) + d_ff) d n) in general. One more token after T takes O(T d_k) per
head with a cache of keys and values, and O(T² d_k) without. Source: Vaswani et al. (2017), table 1.
"""

from __future__ import annotations

import sympy

from symad.core.graph import Graph
from symad.core.questions import flops
from symad.models.layers.gated import FeedForwardBlock
from symad.models.layers.parameters import trace_model
from symad.models.transformers.attention import MultiHead
from symad.ops.basic.contraction import Einsum


def multiply_adds(graph: Graph) -> sympy.Expr:
    """The multiply-adds of all contractions of a graph: half their operations."""
    total = sympy.S.Zero
    for node in graph.nodes:
        if isinstance(node.op, Einsum):
            total += sympy.sympify(flops(node.op, node), strict=True) / 2
    return sympy.expand(total)


def layer_cost() -> sympy.Expr:
    """The multiply-adds of one layer in the symbols n, d, H, d_k, d_v, d_ff, from its traced graph."""
    n, d, H, d_k, d_v, d_ff = sympy.symbols("n d H d_k d_v d_ff", integer=True, positive=True)
    heads, block = MultiHead(d, H, d_k, d_v), FeedForwardBlock(d, d_ff, "relu", bias=False)
    mixing = trace_model(lambda p, X: heads.apply(p, X), heads.shapes, (n, d))
    feeding = trace_model(lambda p, X: block.apply(p, X), block.shapes, (n, d))
    return sympy.expand(multiply_adds(mixing) + multiply_adds(feeding))
