"""The pullbacks of one attention op that are added are computed as one.

The output and the log-sum-exps of an attention op send their cotangents back separately: (ō, 0) and (0, L̄).
The pullback is linear in them, so the sum of its results is its result at (ō, L̄): one pass over the pairs
instead of two.
"""

from __future__ import annotations

from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.fused.attention_ops import AttentionCotangent
from symad.numeric.passes.rewriting import rewrite
from symad.ops.basic.arithmetic import Add, add
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import constant_value


def join_cotangents(graph: Graph) -> Graph:
    """The graph with sums of such pullbacks as one pullback."""
    return rewrite(graph, _joined, AttentionCotangent)


def _joined(node: Node, args: Nodes) -> Node | None:
    if not isinstance(node.op, Add):
        return None
    groups: dict[tuple[AttentionCotangent, Nodes], list[Node]] = {}
    for sign, term in zip(node.op.signs, args, strict=True):
        if sign == 1 and isinstance(term.op, AttentionCotangent):
            groups.setdefault((term.op, term.args[:-2]), []).append(term)
    joined = [terms for terms in groups.values() if len(terms) > 1]
    if not joined:
        return None
    taken = [term for terms in joined for term in terms]
    rest = [(s, t) for s, t in zip(node.op.signs, args, strict=True) if s != 1 or t not in taken]
    whole = [_sum(terms) for terms in joined]
    if not rest:
        return add(*whole)
    signs = tuple(s for s, _ in rest)
    return add(Node.of(Add(signs), tuple(t for _, t in rest)), *whole)


def _sum(terms: list[Node]) -> Node:
    first = terms[0]
    bars = [[t.args[k] for t in terms if not _is_zero(t.args[k])] for k in (-2, -1)]
    kept = [add(*b) if b else first.args[k] for k, b in zip((-2, -1), bars, strict=True)]
    return Node.of(first.op, (*first.args[:-2], *kept))


def _is_zero(node: Node) -> bool:
    return constant_value(node.args[0] if isinstance(node.op, Broadcast) else node) == 0
