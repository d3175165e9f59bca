"""Contractions as the products that BLAS computes fastest: Gram products, and products of matrices.

Σ_b A_bi s_b A_bj with s ≥ 0 is BᵀB with B = √s A, which takes half the work of a product.

NumPy computes ``B.T @ B`` by the BLAS routine syrk, one triangle only, if both operands are one array.
Hessians of generalized linear models and Gauss-Newton matrices have this form. That s ≥ 0 follows from the
graph (`value_ranges`), for example for the variance σ(1 − σ) of a logistic model.

The value changes by rounding only.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from symad.core.dims import size
from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.evaluation.value_ranges import value_ranges
from symad.numeric.passes.rewriting import rewrite
from symad.ops.basic.arithmetic import Add, Mul, mul, neg, signed_product
from symad.ops.basic.contraction import Einsum, contract, permute
from symad.ops.basic.shaping import Broadcast, Reshape, broadcast_axes
from symad.ops.basic.sources import constant
from symad.ops.elementwise.powers import sqrt

if TYPE_CHECKING:
    from symad.core.dims import Shape


MIN_TERMS = 1024
"""The number of terms from which a sum takes more time than scaling its result does.

With OpenBLAS 0.3, the scaled Gram product of 32 columns takes 1.3 to 1.7 times as long up to 512 terms, and
0.7 to 0.8 from 1,024 terms on; with backend "c" 1.0 to 1.1 (bench_thresholds.py, "gram").
"""

MAX_NARROW = 8
"""Gram products of at most this many columns take longer than matrix products.

As a Gram product, a weighted product of 8,192 rows takes 1.3 times as long for 2 to 8 columns, 0.9 for 16 to
64 (bench_thresholds.py, "columns"). As a matrix product, one of 8 columns takes 0.9 of the time at 64 rows,
0.8 at 4,096, in NumPy and with backend "c" ("narrow").
"""

Labels = tuple[Any, ...]
Weight = tuple[int, Node, Labels]
"""The power ±1, an array, and the axes of the weighted array along which it lies."""


@dataclass(frozen=True)
class Weighted:
    """An array with named axes, times some weights."""

    base: Node
    labels: Labels
    weights: tuple[Weight, ...] = ()

    def inner(self) -> Weighted | None:
        """The same array with one weight, sign or transposition moved out of the base; None without one."""
        op = self.base.op
        if isinstance(op, Add) and op.signs == (-1,):
            return Weighted(self.base.args[0], self.labels, (*self.weights, (1, constant(-1), ())))
        if isinstance(op, Einsum) and len(set(op.output)) == len(op.output):
            whole = [k for k, part in enumerate(op.inputs) if sorted(part) == sorted(op.output)]
            names = dict(zip(op.output, self.labels, strict=True))
            if len(whole) != 1 or any(not set(part) <= set(op.output) for part in op.inputs):
                return None
            parts = [tuple(names[x] for x in part) for part in op.inputs]
            weights = [(1, a, parts[k]) for k, a in enumerate(self.base.args) if k != whole[0]]
            return Weighted(self.base.args[whole[0]], parts[whole[0]], (*self.weights, *weights))
        if not isinstance(op, Mul):
            return None
        pairs = list(zip(op.powers, self.base.args, strict=True))
        full = [(p, a) for p, a in pairs if a.shape and not isinstance(a.op, Broadcast)]
        if len(full) != 1 or full[0][0] == -1:
            return None
        numbers = [(p, a, ()) for p, a in pairs if not a.shape]
        repeated = [
            (p, a.args[0], tuple(self.labels[k] for k in a.op.axes))
            for p, a in pairs
            if isinstance(a.op, Broadcast)
        ]
        return Weighted(full[0][1], self.labels, (*self.weights, *numbers, *repeated))


def layers(node: Node, labels: Labels) -> list[Weighted]:
    """An array in all its weighted forms, from no weights to all of them moved out."""
    found = [Weighted(node, labels)]
    while (inner := found[-1].inner()) is not None:
        found.append(inner)
    return found


def share_grams(graph: Graph) -> Graph:
    """The graph with each weighted Gram product as a product of one array with itself."""
    return rewrite(graph, _gram, Einsum)


def _gram(node: Node, args: Nodes) -> Node | None:
    """A contraction as a Gram product, if it is one with weights of one sign."""
    op = node.op
    if not isinstance(op, Einsum) or len(args) != 2:
        return None
    chains = [layers(arg, part) for arg, part in zip(args, op.inputs, strict=True)]
    shared = [(a, b) for a in chains[0] for b in chains[1] if a.base is b.base]
    if not shared:
        return None
    one, other = shared[0]
    weights = [*one.weights, *other.weights]
    summed = [x for x in one.labels if x not in op.output]
    mirrored = all(x == y if x in summed else x != y for x, y in zip(one.labels, other.labels, strict=True))
    distinct = {*one.labels, *other.labels}
    if not weights or not mirrored or len(distinct) != len(op.output) + len(summed):
        return None
    if any(not set(labels) <= set(summed) for _, _, labels in weights) or _is_narrow(one, summed):
        return None
    return _rooted(one, other, weights, summed, op.output)


def _is_narrow(array: Weighted, summed: Sequence[int]) -> bool:
    """Whether an array has few columns."""
    columns = [d for x, d in zip(array.labels, array.base.shape, strict=True) if x not in summed]
    return all(isinstance(d, int) for d in columns) and prod(columns) <= MAX_NARROW


def _rooted(
    one: Weighted, other: Weighted, weights: Sequence[Weight], summed: Sequence[int], out: Labels
) -> Node | None:
    """The product with itself of the base times the root of all weights."""
    along = [x for x in one.labels if x in summed and any(x in labels for _, _, labels in weights)]
    lengths = tuple(d for x, d in zip(one.labels, one.base.shape, strict=True) if x in along)
    weight = signed_product([(p, _spread(a, labels, along, lengths)) for p, a, labels in weights])
    if not along:  # one number: scale the product instead, unless the sum is short
        terms = [d for x, d in zip(one.labels, one.base.shape, strict=True) if x in summed]
        if all(isinstance(d, int) for d in terms) and prod(terms) < MIN_TERMS:
            return None
        return mul(weight, contract([one.labels, other.labels], out, one.base, one.base))
    known = value_ranges([weight])[weight]
    if known.low < 0 < known.high:
        return None
    root = sqrt(weight if known.low >= 0 else neg(weight))
    axes = tuple(k for k, x in enumerate(one.labels) if x in along)
    base = mul(one.base, broadcast_axes(root, one.base.shape, axes))
    made = contract([one.labels, other.labels], out, base, base)
    return made if known.low >= 0 else neg(made)


def _spread(node: Node, labels: Labels, along: Sequence[Hashable], lengths: Shape) -> Node:
    """A weight broadcast along the axes that it lacks; numbers stay numbers."""
    if not labels:
        return node
    order = [x for x in along if x in labels]
    turned = permute(node, [labels.index(x) for x in order])
    return broadcast_axes(turned, lengths, tuple(along.index(x) for x in order))


# ---- contractions over several axes as one matrix product ----------------------------------------

# In Σ_tb x_tkb y_tjb no operand is a matrix (k, tb) or (tb, j) in memory. Each operand is written as a matrix
# with its own rows first, Σ_m X_km Y_jm. Gradients that share a cotangent y then also share its matrix Y, as
# does the sum Σ_tb y_tjb, in whatever order it is written: y is read once.


Axes = tuple[int, ...]


def flatten_products(graph: Graph) -> Graph:
    """The graph with contractions over several axes as matrix products."""
    if not any(map(_split, graph.nodes)):
        return graph
    flat: dict[tuple[Node, tuple[int, ...]], Node] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        found = _split(node)
        if found is None:
            return None
        matrices = []
        for (rows, summed, turned), arg in zip(found, args, strict=True):
            shape = (size(arg.shape[k] for k in rows), size(arg.shape[k] for k in summed))
            if turned:  # the operand is a matrix in memory already
                matrices.append(("mi", Node.of(Reshape(shape[::-1]), (arg,))))
            else:
                flat[arg, summed] = Node.of(Reshape(shape), (permute(arg, (*rows, *summed)),))
                matrices.append(("im", flat[arg, summed]))
        return _product(matrices, node)

    def shared(node: Node, args: Nodes) -> Node | None:
        total = _total(node)
        return contract(["im"], "i", flat[total]) if total in flat else None

    return rewrite(rewrite(graph, better), shared)


def _product(matrices: Sequence[tuple[str, Node]], node: Node) -> Node:
    """The product of two matrices."""
    (one, left), (other, right) = matrices
    product = contract([one, other.replace("i", "j")], "ij", left, right)
    return product if product.shape == node.shape else Node.of(Reshape(node.shape), (product,))


def _split(node: Node) -> list[tuple[Axes, Axes, bool]] | None:
    """For both operands: the axes of their rows, the summed axes, and whether the summed axes come first.

    None if both operands are matrices already.
    """
    op = node.op
    if not isinstance(op, Einsum) or len(op.inputs) != 2:
        return None
    left, right = op.inputs
    order = tuple(x for x in left if x in right)
    rows = [tuple(x for x in part if x not in order) for part in op.inputs]
    unique = len(set(left)) == len(left) and len(set(right)) == len(right)
    if not unique or len(order) < 2 or (*rows[0], *rows[1]) != op.output or not all(rows):
        return None
    as_it_is = [part in ((*own, *order), (*order, *own)) for part, own in zip(op.inputs, rows, strict=True)]
    if all(as_it_is):
        return None
    return [
        (tuple(part.index(x) for x in own), tuple(part.index(x) for x in order), part == (*order, *own))
        for part, own in zip(op.inputs, rows, strict=True)
    ]


def _total(node: Node) -> tuple[Node, Axes] | None:
    """The array under nested sums that leave one axis, and its summed axes; None for other nodes."""
    if len(node.shape) != 1:
        return None
    left = None
    while isinstance(node.op, Einsum) and len(node.op.inputs) == 1:
        (labels,), out = node.op.inputs, node.op.output
        if len(set(labels)) != len(labels):
            return None
        left = labels.index(out[0 if left is None else left])
        (node,) = node.args
    if left is None:
        return None
    return node, tuple(k for k in range(len(node.shape)) if k != left)
