"""Contractions as the device computes them: two operands at a time, each label in both or in the result.

Every contraction is then a stack of matrix products, which cuBLAS computes in one call, or an elementwise
product whose sum is one kernel. This pass from graph to graph runs before chains are fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from symad.core.dims import Shape
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.numeric.passes.rewriting import rewritten
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import broadcast_axes

Labels = tuple[int, ...]


def two_at_a_time(outputs: Sequence[Node]) -> Nodes:
    """The outputs with contractions of this form only."""
    return rewritten(outputs, _written)


def _written(node: Node, args: Nodes) -> Node | None:
    op = node.op
    if not isinstance(op, Einsum) or len(args) < 2:
        return None
    terms = list(zip(op.inputs, args, strict=True))
    while True:
        terms = [_own_sums(k, terms, op.output) for k in range(len(terms))]
        if len(terms) <= 2:
            break
        first, second = min(
            combinations(range(len(terms)), 2), key=lambda pair: _rank(pair, terms, op.output)
        )
        rest = [term for k, term in enumerate(terms) if k not in (first, second)]
        left, right = terms[first], terms[second]
        kept = _kept(left[0] + right[0], [labels for labels, _ in rest], op.output)
        terms = [(kept, _product(left, right, kept)), *rest]
    return _product(terms[0], terms[1], op.output)


def _kept(labels: Labels, others: Sequence[Labels], output: Labels) -> Labels:
    """The labels that are read later, in order."""
    wanted = {*output, *(label for other in others for label in other)}
    return tuple(dict.fromkeys(label for label in labels if label in wanted))


def _own_sums(k: int, terms: Sequence[tuple[Labels, Node]], output: Labels) -> tuple[Labels, Node]:
    """An operand without repeated labels, summed over the labels that nothing else has."""
    labels, node = terms[k]
    kept = _kept(labels, [other for j, (other, _) in enumerate(terms) if j != k], output)
    return (labels, node) if kept == labels else (kept, contract([labels], kept, node))


def _rank(pair: tuple[int, int], terms: Sequence[tuple[Labels, Node]], output: Labels) -> tuple[int, int]:
    """A key for the choice of the first two operands: few axes in their product, many of them summed."""
    left, right = (set(terms[k][0]) for k in pair)
    rest = [labels for k, (labels, _) in enumerate(terms) if k not in pair]
    kept = _kept((*left, *right), rest, output)
    return len(kept), len(kept) - len(left | right)


def _product(left: tuple[Labels, Node], right: tuple[Labels, Node], output: Labels) -> Node:
    """A contraction of two operands; a sum of elementwise products if neither has a label of its own."""
    (first, a), (second, b) = left, right
    if set(first) | set(second) == set(output) and len(set(output)) == len(output):
        sizes = dict(zip((*first, *second), (*a.shape, *b.shape), strict=True))
        shape = tuple(sizes[label] for label in output)
        return mul(*(_spread(labels, node, output, shape) for labels, node in (left, right)))
    if set(first) != set(second) or set(first) == set(output):
        return contract([first, second], output, a, b)
    aligned = b if first == second else contract([second], first, b)
    return contract([first], output, mul(a, aligned))


def _spread(labels: Labels, node: Node, output: Labels, shape: Shape) -> Node:
    """An operand, broadcast along the labels that it lacks."""
    order = tuple(label for label in output if label in labels)
    axes = tuple(output.index(label) for label in order)
    return broadcast_axes(contract([labels], order, node), shape, axes)
