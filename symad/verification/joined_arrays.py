"""Claims about arrays of symbolic size that are joined from pieces: proved piece by piece, or left whole.

[a, b] = [c, d] follows from a = c and b = d. A sum of arrays that are padded with zeros, each where the
others are 0, is joined, too. An input that is read in pieces without common elements is one input for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import sympy

from symad.core.dims import Dim, same_dim, same_shape
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.ops.arrays.stacking import Concatenate
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.shaping import Pad, Slice
from symad.ops.basic.sources import Input, input_node, symbol_of
from symad.verification.budget import Budget
from symad.verification.certificate.certificate import Comparison
from symad.verification.depending import depending
from symad.verification.large_arrays import one_by_one
from symad.verification.proof.with_proofs import Replayed, has_symbolic_sizes
from symad.verification.values.find_values import may_lack_values

ASSUMED = "arrays that are joined are equal if their pieces are"

MAX_PIECES = 16
"""The maximum number of pieces of one array."""


def piece_by_piece(comparison: Comparison, budget: Budget) -> list[Comparison]:
    """The comparison, or comparisons of its outputs and of the pieces of those that are proved by pieces."""
    if not has_symbolic_sizes(comparison):
        return [comparison]
    nodes = (*comparison.left.output_nodes, *comparison.right.output_nodes)
    function = comparison.derivative.function if comparison.derivative else ()
    if not any(isinstance(n.op, Concatenate) for n in topological(nodes)) or depending(
        function, may_lack_values
    ):
        return [comparison]
    alone = one_by_one(comparison, always=True)
    found = [_proved_pieces(part, budget) for part in alone]
    if not any(found):
        return [comparison]
    return [part for whole, parts in zip(alone, found, strict=True) for part in parts or [whole]]


def _proved_pieces(comparison: Comparison, budget: Budget) -> list[Comparison]:
    """The pieces of a comparison of one output, if the checker accepts a proof of each."""
    (a,), (b,) = comparison.left.output_nodes, comparison.right.output_nodes
    made = []
    for place, left, right in _pieces(a, b):
        sides = _with_inputs_apart(left, right)
        known = dict.fromkeys((*comparison.left.input_nodes, *comparison.right.input_nodes))
        inputs = tuple(known | dict.fromkeys(n for n in topological(sides) if isinstance(n.op, Input)))
        graphs = [Graph(inputs, (side,)) for side in sides]
        name = f"{comparison.names[0]}[{', '.join(place)}]"
        assumes = (*comparison.assumes, ASSUMED)
        made.append(
            replace(
                comparison, left=graphs[0], right=graphs[1], names=(name,), assumes=assumes, derivative=None
            )
        )
    if not 1 < len(made) <= MAX_PIECES or not all(map(has_symbolic_sizes, made)):
        return []
    goals = [(k, 0, 0) for k in range(len(made))]
    found = Replayed(made, budget)
    found.for_all_sizes(goals)
    return made if found.goals.issuperset(goals) else []


def _pieces(a: Node, b: Node) -> Iterator[tuple[list[str], Node, Node]]:
    """The pieces of two arrays that are joined in the same way, with their ranges in the whole."""
    starts: list[Dim] = [0] * len(a.shape)
    waiting = [(starts, a, b)]
    while waiting:
        at, left, right = waiting.pop(0)
        one, other = _joined(left), _joined(right)
        if one is None or other is None or one[0] != other[0] or not _alike(one[1], other[1]):
            yield [f"{s}:{s + d}" for s, d in zip(at, left.shape, strict=True)], left, right
            continue
        axis, offset = one[0], at[one[0]]
        for p, q in zip(one[1], other[1], strict=True):
            waiting.append(([*at[:axis], offset, *at[axis + 1 :]], p, q))
            offset = offset + p.shape[axis]


def _alike(left: Sequence[Node], right: Sequence[Node]) -> bool:
    return len(left) == len(right) and all(
        same_shape(p.shape, q.shape) for p, q in zip(left, right, strict=True)
    )


def _joined(node: Node) -> tuple[int, Sequence[Node]] | None:
    """The axis along which a node is joined, and the pieces; None if it is not."""
    if isinstance(node.op, Concatenate):
        return node.op.axis, node.args
    if not isinstance(node.op, Add) or set(node.op.signs) != {1} or len(node.args) < 2:
        return None
    if not all(isinstance(arg.op, Pad) and set(arg.op.step) == {1} for arg in node.args):
        return None
    moved = {
        k
        for arg in node.args
        for k, (start, d) in enumerate(zip(op_of(arg, Pad).start, arg.args[0].shape, strict=True))
        if start != 0 or not same_dim(d, node.shape[k])
    }
    if len(moved) != 1:
        return None
    (axis,) = moved
    rest, end, pieces = list(node.args), sympy.Integer(0), list[Node]()
    while rest:  # each begins where the one before it ends
        following = [arg for arg in rest if same_dim(op_of(arg, Pad).start[axis], end)]
        if len(following) != 1:
            return None
        pieces.append(following[0].args[0])
        rest.remove(following[0])
        end = end + pieces[-1].shape[axis]
    return (axis, pieces) if same_dim(end, node.shape[axis]) else None


# ---- inputs -------------------------------------------------------------------------------------


def _with_inputs_apart(*outputs: Node) -> tuple[Node, ...]:
    """The nodes with a new input for each slice of an input that is read in slices alone, and apart."""
    order = topological(outputs)
    read: dict[Node, list[Node]] = {}
    whole = {arg for n in order if not isinstance(n.op, Slice) for arg in n.args} | set(outputs)
    for node in order:
        if isinstance(node.op, Slice) and isinstance(node.args[0].op, Input):
            read.setdefault(node.args[0], []).append(node)
    names, new = [str(symbol_of(n)) for n in order if isinstance(n.op, Input)], dict[Node, Node]()
    for source, slices in read.items():
        alone = names.count(str(symbol_of(source))) == 1 and source not in whole
        if alone and all(_are_apart(p, q) for p in slices for q in slices if p is not q):
            made = {node: _symbol(source, node) for node in slices}
            if set(names).isdisjoint(map(str, made.values())):
                new |= {node: input_node(symbol, node.shape) for node, symbol in made.items()}
    return tuple(rebuild(outputs, new))


def _symbol(source: Node, piece: Node) -> sympy.Basic:
    op, symbol = op_of(piece, Slice), symbol_of(source)
    ranges = ", ".join(f"{a}:{a + d}" for a, d in zip(op.start, piece.shape, strict=True))
    return sympy.Symbol(f"{symbol}[{ranges}]", real=True)


def _are_apart(one: Node, other: Node) -> bool:
    """Whether two slices have no element in common."""
    p, q = op_of(one, Slice), op_of(other, Slice)
    if set(p.step) != {1} or set(q.step) != {1}:
        return False
    ends = zip(p.start, one.shape, q.start, other.shape, strict=True)
    return any(_at_most(a + m, b) or _at_most(b + n, a) for a, m, b, n in ends)


def _at_most(a: Dim, b: Dim) -> bool:
    """Whether one size is at most another, for all sizes."""
    return bool(sympy.expand(b - a).is_nonnegative) if isinstance(b - a, sympy.Basic) else bool(b >= a)
