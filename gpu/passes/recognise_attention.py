"""Attention recognised from the mathematics: softmax(c QKᵀ + bias) V, masked or not, and its gradients.

A pass from graph to graph that keeps the function. Written-out attention forms arrays over all pairs; as
the op `Attention` it is computed by tiles. Recognised is

    t = c q kᵀ [+ bias],   P = softmax([mask: t, −∞]) [0 in rows that see nothing],   o = P v,

with a mask that is known when code is printed or is a formula of positions, and backwards, where ō is the
cotangent of o,

    v̄ = Pᵀ ō,   t̄ = P ∘ (ō vᵀ − rowsum) masked alike,   s̄ = c t̄,   q̄ = s̄ k,   k̄ = s̄ᵀ q,

and t̄, summed over the axes along which the bias is repeated, for the bias. If anything else reads P or t̄,
nothing is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symad.core.dims import Shape
from symad.core.formula import Formula
from symad.core.graph import Graph, Node, op_of, rebuild
from symad.gpu.passes.mask_formulas import mask_formula
from symad.library.score_functions import LOOPS, I, J, Parameter, S, parameter_symbol
from symad.ops.arrays.contraction import Einsum, contract
from symad.ops.arrays.shaping import Broadcast, Reshape, broadcast_to, reshape
from symad.ops.arrays.sources import ArrayConstant, array_constant, constant, constant_value
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.selection import Select
from symad.ops.fused.attention import attention, in_part
from symad.ops.fused.attention_ops import Attention, AttentionCotangent
from symad.ops.fused.softmax import Softmax, SoftmaxTangent

WIDEST = 256
"""The largest head dim of the kernels; it must be a number when code is printed."""

BIAS = 3
"""The part of the cotangents that is the bias's, behind those of q, k and v."""

Labels = tuple[int, ...]
Users = dict[Node, list[Node]]


def recognised(graph: Graph) -> Graph:
    """The graph with every attention that is found as the op `Attention`."""
    users: Users = {node: [] for node in graph.nodes}
    for node in graph.nodes:
        for arg in dict.fromkeys(node.args):
            users[arg].append(node)
    replaced: dict[Node, Node] = {}
    for node in graph.nodes:
        if isinstance(node.op, Softmax) and node.op.axes == (len(node.shape) - 1,):
            found = _found(node, users, set(graph.output_nodes))
            replaced.update(found or {})
    if not replaced:
        return graph
    new: dict[Node, Node] = {}
    for node in graph.nodes:  # what stands for a node reads only nodes that come before it
        if node in replaced:
            (new[node],) = rebuild((replaced[node],), new)
        else:
            args = tuple(new[a] for a in node.args)
            new[node] = node if args == node.args else Node.of(node.op, args)
    outputs = tuple(new[o] for o in graph.output_nodes)
    return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)


@dataclass
class _Scores:
    """What a softmax is taken of. q (lead, N, d), k (lead, M, d); ``dense`` are nodes over all pairs."""

    q: Node
    k: Node
    scale: float
    shown: Node | None = None
    bias: Node | None = None


def _scores(node: Node) -> _Scores | None:
    """t = [mask:] c q kᵀ [+ bias], taken apart."""
    shown, bias, scale = None, None, 1.0
    if isinstance(node.op, Select) and constant_value(node.args[2]) == -np.inf:
        shown, node = node.args[0], node.args[1]
    if isinstance(node.op, Add) and len(node.args) == 2 and set(node.op.signs) == {1}:
        sides = [k for k in (0, 1) if _scaled(node.args[k]) is not None]
        if len(sides) != 1:
            return None
        node, bias = node.args[sides[0]], node.args[1 - sides[0]]
    taken = _scaled(node)
    if taken is None:
        return None
    node, scale = taken
    op, rank = node.op, len(node.shape)
    if not isinstance(op, Einsum) or len(node.args) != 2 or rank > 4:
        return None
    *lead, i, j = op.output
    summed = [x for x in op.inputs[0] if x in op.inputs[1] and x not in op.output]
    for first, second in ((0, 1), (1, 0)):
        rows, columns = op.inputs[first], op.inputs[second]
        fits = len(summed) == 1 and set(rows) == {*lead, i, *summed} and set(columns) == {*lead, j, *summed}
        if fits and len(rows) == len(columns) == rank:
            q = contract([rows], (*lead, i, *summed), node.args[first])
            k = contract([columns], (*lead, j, *summed), node.args[second])
            return _Scores(q, k, scale, shown, bias)
    return None


def _scaled(node: Node) -> tuple[Node, float] | None:
    """A contraction times a number."""
    if isinstance(node.op, Einsum):
        return (node, 1.0) if len(node.args) == 2 else None
    factor = _factor(node)
    if factor is None:
        return None
    inner, scale = factor
    return (inner, scale) if isinstance(inner.op, Einsum) and len(inner.args) == 2 else None


def _factor(node: Node) -> tuple[Node, float] | None:
    """A node times a number that is known."""
    if not isinstance(node.op, Mul) or len(node.args) != 2:
        return None
    for k in (0, 1):
        value, power = constant_value(node.args[1 - k]), node.op.powers
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and value != 0
        if number and power[k] == 1:
            return node.args[k], float(value) ** power[1 - k]
    return None


def _found(softmax: Node, users: Users, outputs: set[Node]) -> dict[Node, Node] | None:
    """What the nodes of one attention become."""
    scores = _scores(softmax.args[0])
    if scores is None:
        return None
    weights, alive = softmax, None
    masked = [u for u in users[softmax] if not isinstance(u.op, SoftmaxTangent)]
    if len(masked) == 1 and isinstance(masked[0].op, Select) and constant_value(masked[0].args[2]) == 0:
        weights, alive = masked[0], masked[0].args[0]
    mask = _mask(scores.shown, alive, softmax.shape)
    if mask is None and scores.shown is not None:
        mask = mask_formula(scores.shown, alive)
    if mask is None or weights in outputs or softmax in outputs:
        return None
    products = [u for u in users[weights] if not isinstance(u.op, SoftmaxTangent)]
    parts = [(node, *other) for node in products if (other := _other(node, weights)) is not None]
    forward = [(node, other) for node, other, summed in parts if summed == "j"]
    back = [(node, other) for node, other, summed in parts if summed == "i"]
    if len(forward) != 1 or len(back) > 1 or len(forward) + len(back) != len(products):
        return None
    (out, v), bars = forward[0], {other for _, other in back}
    if not all(isinstance(d, int) and 0 < d <= WIDEST for d in (scores.q.shape[-1], v.shape[-1])):
        return None
    gradients: dict[Node, int] = {node: 2 for node, _ in back}
    for tangent in (u for u in users[softmax] if isinstance(u.op, SoftmaxTangent)):
        found = _backward(tangent, scores, v, alive, users, outputs)
        if found is None or tangent.args[0] is not softmax:
            return None
        bars.add(found[0])
        gradients |= found[1]
    if len(bars) > 1:
        return None
    return _made(scores, mask, v, out, weights, next(iter(bars), None), gradients)


def _other(node: Node, dense: Node) -> tuple[Node, str] | None:
    """The other operand of a product with an array over pairs, (lead, i or j, own), and which is summed."""
    op, lead = node.op, len(dense.shape) - 2
    if not isinstance(op, Einsum) or len(node.args) != 2 or node.args[0] is node.args[1]:
        return None
    at = node.args.index(dense)
    labels, others = op.inputs[at], op.inputs[1 - at]
    i, j = labels[-2:]
    own = [x for x in others if x not in labels]
    summed = [x for x in (i, j) if x in others]
    if len(own) != 1 or len(summed) != 1 or len(set(labels)) < len(labels):
        return None
    kept = j if summed[0] == i else i
    wanted = (*labels[:lead], summed[0], own[0])
    if set(others) != set(wanted) or set(op.output) != {*labels[:lead], kept, own[0]}:
        return None
    return contract([others], wanted, node.args[1 - at]), "i" if summed[0] == i else "j"


def _backward(
    tangent: Node, scores: _Scores, v: Node, alive: Node | None, users: Users, outputs: set[Node]
) -> tuple[Node, dict[Node, int]] | None:
    """ō, and the nodes of q̄ (0) and k̄ (1), from s̄ = P ∘ (ō vᵀ − rowsum)."""
    inner = tangent.args[1]
    if alive is not None:
        if (
            not isinstance(inner.op, Select)
            or inner.args[0] is not alive
            or constant_value(inner.args[2]) != 0
        ):
            return None
        inner = inner.args[1]
    op, rank = inner.op, len(inner.shape)
    if not isinstance(op, Einsum) or len(inner.args) != 2:
        return None
    *lead, i, j = op.output
    summed = [x for x in op.inputs[0] if x in op.inputs[1] and x not in op.output]
    found = None
    for first, second in ((0, 1), (1, 0)):
        rows, columns = op.inputs[first], op.inputs[second]
        fits = len(summed) == 1 and set(rows) == {*lead, i, *summed} and set(columns) == {*lead, j, *summed}
        if fits and len(rows) == len(columns) == rank:
            values = contract([columns], (*lead, j, *summed), inner.args[second])
            if values is v:
                found = contract([rows], (*lead, i, *summed), inner.args[first])
    if found is None:
        return None
    gradients: dict[Node, int] = {}
    dense, scale = tangent, 1.0
    while True:
        if dense in outputs:
            return None
        if scale == 1.0:
            gradients |= {n: BIAS for n in users[dense] if _is_bias_gradient(n, dense, scores.bias)}
        readers = [node for node in users[dense] if node not in gradients]
        if len(readers) == 1 and isinstance(readers[0].op, Select):
            condition, kept, rest = readers[0].args
            if condition is not scores.shown or kept is not dense or constant_value(rest) != 0:
                return None
            dense = readers[0]
            continue
        factor = _factor(readers[0]) if len(readers) == 1 else None
        if factor is None or factor[0] is not dense:
            break
        dense, scale = readers[0], scale * factor[1]
    if readers and not np.isclose(scale, scores.scale, rtol=1e-12):
        return None
    for node in readers:
        operand = _other(node, dense)
        if operand is None:
            return None
        expected, part = (scores.k, 0) if operand[1] == "j" else (scores.q, 1)
        if operand[0] is not expected:
            return None
        gradients[node] = part
    return found, gradients


def _is_bias_gradient(node: Node, dense: Node, bias: Node | None) -> bool:
    """Whether a node is the sum of t̄ over the axes along which the bias is repeated."""
    op = node.op
    if bias is None or not isinstance(bias.op, Broadcast):
        return False
    if not isinstance(op, Einsum) or len(node.args) != 1:
        return False
    (labels,) = op.inputs
    kept = tuple(labels[k] for k in bias.op.axes)
    return len(set(labels)) == len(dense.shape) and op.output == kept and bool(kept)


def _mask(shown: Node | None, alive: Node | None, shape: Shape) -> Any:
    """The pairs that take part, (N, M), or True; None if they are not known or rows are treated otherwise."""
    if shown is None:
        return None if alive is not None else True
    rank = len(shape)
    pairs = _constant(shown, (rank - 2, rank - 1))
    if pairs is None:
        return None
    if alive is None:
        return pairs if pairs.any(axis=1).all() else None  # a softmax of nothing is not 0
    rows = _constant(alive, (rank - 2,))
    if rows is None:
        return None
    seen = pairs & rows.reshape(-1, 1)
    return seen if (seen.any(axis=1) == rows.ravel()).all() else None


def _constant(node: Node, axes: tuple[int, ...]) -> Any:
    """A Boolean constant that is repeated along all axes but these."""
    if len(node.shape) > len(axes):
        if not isinstance(node.op, Broadcast) or node.op.axes != axes:
            return None
        (node,) = node.args
    shape = node.shape
    while isinstance(node.op, Reshape):
        (node,) = node.args
    known = isinstance(node.op, ArrayConstant) and node.op.array.dtype.kind == "b"
    return op_of(node, ArrayConstant).array.reshape(shape) if known else None


def _four(node: Node) -> Node:
    """With two leading axes."""
    return reshape(node, (*(1,) * (4 - len(node.shape)), *node.shape))


def _made(
    scores: _Scores,
    mask: Any,
    v: Node,
    out: Node,
    weights: Node,
    bar: Node | None,
    gradients: dict[Node, int],
) -> dict[Node, Node]:
    """The ops in place of the nodes."""
    formula, allowed, parameters, arrays = S, sp.true, [], []
    if scores.bias is not None:
        bias, axes = scores.bias, tuple(range(len(weights.shape)))
        if isinstance(bias.op, Broadcast):
            axes, (bias,) = bias.op.axes, bias.args
        parameters.append(Parameter("bias", len(axes), False))
        symbol, first = parameter_symbol(parameters[-1]), 4 - len(weights.shape)
        formula += symbol[tuple(LOOPS[first + k] for k in axes)] if axes else symbol
        arrays.append(bias)
    if isinstance(mask, sp.Basic):
        allowed = mask
    elif mask is not True:
        if (mask == (np.tri(*mask.shape) > 0)).all():
            allowed = J <= I
        else:
            parameters.append(Parameter("seen", 2, True))
            allowed = sp.Ne(parameter_symbol(parameters[-1])[I, J], 0)
            arrays.append(array_constant(mask.astype(np.int64)))
    o, lse = attention(
        _four(scores.q), _four(scores.k), _four(v), arrays, Formula(formula), Formula(allowed),
        tuple(parameters), scores.scale,
    )  # fmt: skip
    made = {out: _shaped(o, out, weights)}
    if bar is not None:
        zero = broadcast_to(constant(0), lse.shape)
        op, args = op_of(o, Attention), (*o.args, o, lse, _four(bar), zero)
        dense = {node: arg for node in gradients for arg in node.args if arg.shape == weights.shape}
        for node, part in gradients.items():
            if part == BIAS:
                made[node] = in_part(op, AttentionCotangent, BIAS, args)
                continue
            made[node] = _shaped(in_part(op, AttentionCotangent, part, args), node, dense[node])
    return made


def _shaped(value: Node, node: Node, dense: Node) -> Node:
    """A result (batch, heads, positions, columns) in the shape of the product that it replaces."""
    op = node.op
    assert isinstance(op, Einsum)
    labels = op.inputs[node.args.index(dense)]
    (own,) = (x for x in op.output if x not in labels)
    (kept,) = (x for x in labels[-2:] if x in op.output)
    order = (*labels[:-2], kept, own)
    return contract([order], op.output, reshape(value, (*value.shape[4 - len(order) :],)))
