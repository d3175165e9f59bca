"""1/(1 + exp(u)) as one function, σ(−u), for backends with a σ that is accurate everywhere.

Its derivatives contain exp(u) σ(−u)², with sums and other factors between: exp(u) overflows where σ(−u) is
zero, and the product would be NaN. Since exp(u) σ(−u) = σ(u), each pair of factors σ(−u) and exp(u) is
replaced.
"""

from __future__ import annotations

import sympy

from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, Mul, neg, signed_product, signed_sum
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.stable.normal_forms import head_of
from symad.sympy_functions.scalar_functions import sigmoid

DEPTH = 4
"""The maximum depth of sums and products in which a factor is searched, and of powers that are expanded."""


def with_logistic(graph: Graph) -> Graph:
    """The graph with σ in place of its quotients."""
    heads = {head_of(node) for node in graph.nodes}
    if sympy.exp not in heads or not (sigmoid in heads or any(map(_is_logistic, graph.nodes))):
        return graph
    made = rebuild(graph, {}, _logistic_node)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _logistic_node(node: Node, args: Nodes) -> Node:
    if isinstance(node.op, Mul):
        factors = list(zip(node.op.powers, args, strict=True))
        if -1 in node.op.powers:
            factors = [f for pair in factors for f in _quotients(*pair)]
        met = _meet(factors)
        if met is not None:
            return met
        if [factor for _, factor in factors] != list(args):
            return signed_product(factors)
    return node if args == node.args else Node.of(node.op, args)


def _quotients(power: int, factor: Node) -> list[tuple[int, Node]]:
    """σ(−u) for the divisor 1 + exp(u), repeated for its small powers; other factors unchanged."""
    exponent = constant_value(factor.args[1]) if isinstance(factor.op, Pow) else 1
    base = factor.args[0] if isinstance(factor.op, Pow) else factor
    few = power == -1 and isinstance(exponent, int) and 1 <= exponent <= DEPTH
    if few and _is_logistic(base):
        return [(1, apply(sigmoid, neg(base.args[1].args[0])))] * int(exponent)
    return [(power, factor)]


def _is_logistic(node: Node) -> bool:
    """True if a node is 1 + exp(u)."""
    one_more = isinstance(node.op, Add) and node.op.signs == (1, 1) and constant_value(node.args[0]) == 1
    return one_more and head_of(node.args[1]) is sympy.exp


def _meet(factors: list[tuple[int, Node]]) -> Node | None:
    """Π factors with σ(u) in place of a pair exp(u), σ(−u); None if there is no such pair."""
    for k, (power, factor) in enumerate(factors):
        if power != 1 or not isinstance(factor.op, (Mul, Apply)):
            continue
        for exponential in _exponentials(factor, DEPTH):
            u = exponential.args[0]
            partner = apply(sigmoid, neg(u))
            for j, (other_power, other) in enumerate(factors):
                rest = without(other, partner, DEPTH) if other_power == 1 and j != k else None
                kept = without(factor, exponential, DEPTH) if rest is not None else None
                if rest is not None and kept is not None:
                    left = [pair for i, pair in enumerate(factors) if i not in (j, k)]
                    pairs = [(1, apply(sigmoid, u)), (1, kept), (1, rest), *left]
                    return _meet(pairs) or signed_product(pairs)
    return None


def _exponentials(node: Node, depth: int) -> list[Node]:
    """The exponentials among the factors of a product, and of products in it."""
    if head_of(node) is sympy.exp:
        return [node]
    if depth == 0 or not isinstance(node.op, Mul):
        return []
    factors = zip(node.op.powers, node.args, strict=True)
    parts = [a for p, a in factors if p == 1 and isinstance(a.op, (Mul, Apply))]
    return [e for part in parts for e in _exponentials(part, depth - 1)]


def without(node: Node, factor: Node, depth: int) -> Node | None:
    """``node/factor`` if the factor occurs in a product, or in every term of a sum; None otherwise."""
    if node is factor:
        return constant(1)
    if depth == 0:
        return None
    if isinstance(node.op, Mul):
        pairs = list(zip(node.op.powers, node.args, strict=True))
        for k, (power, part) in enumerate(pairs):
            rest = without(part, factor, depth - 1) if power == 1 else None
            if rest is not None:
                return signed_product([*pairs[:k], (1, rest), *pairs[k + 1 :]])
    if isinstance(node.op, Add):
        terms = [without(part, factor, depth - 1) for part in node.args]
        kept = [t for t in terms if t is not None]
        return signed_sum(list(zip(node.op.signs, kept, strict=True))) if len(kept) == len(terms) else None
    return None
