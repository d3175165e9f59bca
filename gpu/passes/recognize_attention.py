"""Attention recognized from the mathematics, with its derivatives: softmax(c QKᵀ + bias) V, masked or not.

A pass from graph to graph that keeps the function. Attention written as formulas forms arrays over all pairs;
as ops of `symad.fused.attention` it is computed by tiles. The pass recognizes

    t = c q kᵀ [+ bias],   P = softmax([mask: t, −∞]) [0 in rows without visible keys],   o = P v,

with a mask that is known when code is printed or is a formula of positions; its gradients q̄, k̄, v̄ and that
of the bias, from the cotangent ō of o; and the tangents of o, q̄, k̄ and v̄ along q̇, k̇, v̇ and ō̇, from
which Hessian-vector products are made.

Derivatives are found by computing them: symad's rules are applied to o, and since equal nodes are one object,
the resulting nodes are those of the graph if ō and the tangents are chosen as in the graph. The candidates
for these are operands of products: ō and ō̇ stand beside v in ō vᵀ, q̇ beside k in q̇ kᵀ, k̇ beside q, and v̇
beside P. If anything else reads P or its derivatives, nothing is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from itertools import product as choices
from typing import Any

from symad.core.contents import readers
from symad.core.dims import Shape
from symad.core.graph import ZERO, Graph, Node, Tangent, op_of, rebuild, topological
from symad.fused.attention import in_part
from symad.fused.attention_ops import (
    Attention,
    AttentionCotangent,
    AttentionOp,
    AttentionSecond,
    AttentionTangent,
)
from symad.gpu.passes.written_attention import (
    Axes,
    LabeledNode,
    PairProduct,
    Scores,
    column_axes,
    four,
    mask_of,
    op_of_scores,
    outer,
    product,
    row_axes,
    scores_of,
)
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.softmax import Softmax
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import constant, constant_value, fresh_input
from symad.ops.elementwise.selection import Select
from symad.transforms.cotangents import pull
from symad.transforms.tangents import push

MAX_HEAD_DIM = 256
"""The largest head dim of the kernels; the head dim must be a number when code is printed.

Origin: `plan.MAX_HEAD_DIM`.
"""

MAX_GUESSES = 64
"""The most choices of ō and tangents that are tried for one P v; a gradient with one direction needs four.

Origin: it bounds the time of set-up.
"""

Users = dict[Node, list[Node]]
Pairs = list[tuple[LabeledNode, LabeledNode]]


def recognized(graph: Graph) -> Graph:
    """The graph with every attention found replaced by the op `Attention` or one of its derivatives."""
    shapes = {n.shape for n in graph.nodes if isinstance(n.op, Softmax)}
    if not shapes:
        return graph
    apart = _summed_apart(graph.output_nodes, shapes)
    nodes = topological(apart)
    softmaxes = [n for n in nodes if isinstance(n.op, Softmax) and n.op.axes == (len(n.shape) - 1,)]
    users: Users = readers(nodes)
    pairs: Pairs = [operands for node in nodes if (operands := outer(node)) is not None]
    found = {s: made for s in softmaxes if (made := _found(s, users, pairs))}
    while found:
        replaced = {node: made for each in found.values() for node, made in each.items()}
        written = _substituted(apart, replaced)
        if written is None:
            break
        outputs, kept = written
        read = [s for s in found if s in kept]
        if not read:
            return with_results(graph, outputs)
        for softmax in read:
            del found[softmax]
    return graph


def _summed_apart(outputs: Sequence[Node], shapes: set[Shape]) -> tuple[Node, ...]:
    """The outputs with sums of a sum of arrays over pairs split, as in the gradient of a shared bias."""

    def make(node: Node, args: tuple[Node, ...]) -> Node:
        op = node.op
        if isinstance(op, Einsum) and len(args) == 1 and args[0].shape in shapes:
            (total,) = args
            if isinstance(total.op, Add):
                return Node.of(total.op, tuple(Node.of(op, (a,)) for a in total.args))
        return Node.of(op, args)

    return rebuild(outputs, {}, make)


def _substituted(
    outputs: Sequence[Node], replaced: Mapping[Node, Node]
) -> tuple[tuple[Node, ...], set[Node]] | None:
    """The outputs with nodes replaced, also inside replacements, and the nodes that are still read.

    None if a replacement reads the node that it replaces.
    """
    new: dict[Node, Node] = {}
    waiting, begun = list(outputs), set[Node]()
    while waiting:
        node = waiting[-1]
        made = replaced.get(node, node)
        missing = [a for a in made.args if a not in new]
        if node in new:
            waiting.pop()
        elif not missing:
            new[waiting.pop()] = Node.of(made.op, tuple(new[a] for a in made.args))
        elif node in begun:
            return None
        else:
            begun.add(node)
            waiting += missing
    return tuple(new[o] for o in outputs), new.keys() - replaced.keys()


@dataclass(frozen=True)
class _Written:
    """One attention: the softmax, the weights (zero in rows without visible keys), and o."""

    scores: Scores
    mask: Any
    weights: Node
    out: PairProduct

    @property
    def v(self) -> LabeledNode:
        """The values."""
        return self.out.operand


@dataclass(frozen=True)
class _Guess:
    """A choice of nodes for ō and the tangents of q, k, v and ō; None means zero."""

    bar: LabeledNode | None
    dots: tuple[LabeledNode | None, ...]
    bar_dot: LabeledNode | None


def _found(softmax: Node, users: Users, pairs: Pairs) -> dict[Node, Node]:
    """The replacements of the nodes of one attention."""
    scores = scores_of(softmax.args[0])
    if scores is None:
        return {}
    weights, alive = softmax, None
    masked = [u for u in users[softmax] if isinstance(u.op, Select) and u.args[1] is softmax]
    if len(masked) == 1 and constant_value(masked[0].args[2]) == 0:
        weights, alive = masked[0], masked[0].args[0]
    mask = mask_of(scores.shown, alive, softmax.shape)
    if mask is None:
        return {}
    rank = len(weights.shape)
    products = [p for node in users[weights] if (p := product(node, weights)) is not None]
    replaced: dict[Node, Node] = {}
    for out in (p for p in products if p.over_keys):
        written = _Written(scores, mask, weights, out)
        widths = (scores.q.along(row_axes(rank)).shape[-1], out.operand.along(column_axes(rank)).shape[-1])
        if all(isinstance(d, int) and 0 < d <= MAX_HEAD_DIM for d in widths):
            for guess in islice(_guesses(written, products, pairs), MAX_GUESSES):
                for node, made in _derivatives(written, guess).items():
                    if node in users:
                        replaced.setdefault(node, made)
    return replaced


def _guesses(written: _Written, products: Sequence[PairProduct], pairs: Pairs) -> Iterator[_Guess]:
    """The choices of ō and the tangents that the products in the graph allow."""
    q, k, v = written.scores.q, written.scores.k, written.v
    q_dots = [row for row, column in pairs if column == k and row != q]
    k_dots = [column for row, column in pairs if row == q and column != k]
    v_dots = [p.operand for p in products if p.over_keys and p.operand != v]
    bars = [row for row, column in pairs if column == v and (row, column) != (q, k)]
    bars += [p.operand for p in products if not p.over_keys]
    for bar in _each(bars):
        others = [*_each([b for b in bars if b != bar]), None]
        for q_dot, k_dot, v_dot, bar_dot in choices(*map(_each, (q_dots, k_dots, v_dots)), others):
            yield _Guess(bar, (q_dot, k_dot, v_dot), bar_dot)


def _each(found: Sequence[LabeledNode]) -> list[LabeledNode | None]:
    """Each distinct operand; None, which means zero, if there is none."""
    return list(dict.fromkeys(found)) or [None]


def _derivatives(written: _Written, guess: _Guess) -> dict[Node, Node]:
    """The nodes of o, its gradients and their tangents by symad's rules, with the ops that replace them."""
    pairs = zip(_by_rules(written, guess), _by_ops(written, guess), strict=False)
    return {node: made for node, made in pairs if isinstance(node, Node)}


def _by_rules(written: _Written, guess: _Guess) -> list[Tangent]:
    """o, q̄, k̄, v̄ and the bias's gradient, then their tangents; these are nodes of the graph if it has them.

    They are derived with placeholders, so that q, k and v are distinct even if they are one array.
    """
    stands_for: dict[Node, Node] = {}

    def place(node: Node) -> Node:
        made = fresh_input(node.shape)
        stands_for[made] = node
        return made

    def laid(operand: LabeledNode | None, axes: Axes) -> Tangent:
        return ZERO if operand is None else contract([operand.axes], axes, place(operand.node))

    scores, out = written.scores, written.out
    wrt = [place(operand.node) for operand in (scores.q, scores.k, written.v)]
    op = op_of(scores.node, Einsum)
    product_of = (0, 1) if op.output[-2] in op.inputs[0] else (1, 0)
    known = {scores.node: Node.of(op, tuple(wrt[k] for k in product_of))}
    if scores.bias_operand is not None:
        wrt.append(place(scores.bias_operand[0]))
        known[scores.bias_operand[0]] = wrt[3]
    (weights,) = rebuild([written.weights], known)
    found = Node.of(out.node.op, tuple(weights if a is written.weights else wrt[2] for a in out.node.args))
    layouts = (scores.q.axes, scores.k.axes, written.v.axes)
    dots = dict(zip(wrt, map(laid, guess.dots, layouts), strict=False))
    bars: list[Tangent] = [ZERO] * len(wrt)
    if guess.bar is not None:
        bar = LabeledNode(place(guess.bar.node), guess.bar.axes)
        dots[bar.node] = laid(guess.bar_dot, bar.axes)
        bars = pull([found], [bar.along(out.axes)], wrt)
    values = [v for v in (found, *bars) if isinstance(v, Node)]
    moved = dict(zip(values, push(values, dots), strict=True))
    made = [found, *bars, *(moved.get(v, ZERO) if isinstance(v, Node) else ZERO for v in (found, *bars))]
    real = iter(rebuild([n for n in made if isinstance(n, Node)], stands_for))
    return [next(real) if isinstance(n, Node) else ZERO for n in made]


def _by_ops(written: _Written, guess: _Guess) -> list[Node]:
    """The values of `written`, computed by attention ops; the tangent of the bias's gradient is left out."""
    scores, v, out = written.scores, written.v, written.out
    rank = len(written.weights.shape)
    rows, columns = row_axes(rank), column_axes(rank)
    o, lse = op_of_scores(scores, written.mask, v)
    op, args = op_of(o, Attention), o.args

    def given(operand: LabeledNode | None, axes: Axes, like: Node) -> Node:
        return _zero(like) if operand is None else four(operand.along(axes))

    def back(made: Node, axes: Axes, layout: Axes) -> Node:
        return contract([axes], layout, reshape(made, made.shape[4 - rank :]))

    sides = zip(guess.dots, (rows, columns, columns), args[:3], strict=True)
    dots = [given(d, axes, a) for d, axes, a in sides]
    tangents = (*args, o, lse, *dots, *(_zero(args[r]) for r in op.real[3:]))
    o_dot, lse_dot = (in_part(op, AttentionTangent, part, tangents) for part in (0, 1))
    bars = (*args, o, lse, given(guess.bar, rows, o), _zero(lse))
    second = (*bars, *dots, o_dot, lse_dot, given(guess.bar_dot, rows, o), _zero(lse))
    layouts = ((rows, scores.q.axes), (columns, scores.k.axes), (columns, v.axes))

    def three(kind: type[AttentionOp], arguments: tuple[Node, ...]) -> list[Node]:
        return [back(in_part(op, kind, k, arguments), *layout) for k, layout in enumerate(layouts)]

    bias = [in_part(op, AttentionCotangent, 3, bars)] if scores.bias is not None else []
    return [
        back(o, rows, out.axes), *three(AttentionCotangent, bars), *bias,
        back(o_dot, rows, out.axes), *three(AttentionSecond, second),
    ]  # fmt: skip


def _zero(like: Node) -> Node:
    return broadcast_to(constant(0), like.shape)
