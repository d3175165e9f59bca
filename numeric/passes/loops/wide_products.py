"""The product in every step includes the terms added to it: W h + U x + b = [W U b] [h; x; 1].

Otherwise the products U x + b of all steps form an array of their own, which every step reads and adds. With
x and 1 stored below h in one array the product of the step
includes them, and the gradients of W, U and b are one product with that array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.core.readers import readers
from symad.higher_order.scan import Local, backwards, outer_nodes
from symad.numeric.passes.loop import Loop, by_loop, has_loops, pieces
from symad.numeric.passes.loops.wide_gradients import Joined
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.contraction import Einsum, contract, permute
from symad.ops.basic.shaping import Broadcast, Slice, broadcast_to, reshape
from symad.ops.basic.sources import constant, fresh_input

Users = Mapping[Node, Sequence[Node]]

MIN_COLUMNS = 8
"""With fewer columns, a product takes about as long as reading its weights, as with one vector.

For states of 256 numbers, the wide product takes 1.04 times as long with 2 and 4 columns, 0.97 with 8; for
states of 64 numbers 0.84 with 2 and 4, 0.95 with 8 (bench_thresholds.py, "wide products").
"""


def widen_products(graph: Graph) -> Graph:
    """The graph with such products, and their gradients, as single products."""
    if not has_loops(graph):
        return graph
    outputs = graph.output_nodes
    tried: set[Node] = set()
    while (made := _one(outputs, tried)) is not None:
        outputs = made
    return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)


def _one(outputs: Nodes, tried: set[Node]) -> Nodes | None:
    """The outputs with one loop changed; None if no loop can be changed."""
    order = topological(outputs)
    users = readers(order)
    loops = [n for n in order if isinstance(n.op, Loop) and n not in tried]
    for group in by_loop(loops):
        tried |= set(group)
        wide = _wide(group, users, set(outputs))
        if wide is not None:
            made, joined = wide
            tried |= set(made.values())
            return joined.gradients(rebuild(outputs, made))
    return None


@dataclass(frozen=True)
class _Addend:
    """A sum in a body: a product w h with a state, plus an addend u x that is known at all steps."""

    node: Node
    product: Node
    state: int
    """The position of h among the states."""
    weights: Node
    """The weights w as a local constant, (rows of h, rows of the product)."""
    here: Node
    """The addend of one step, as an input of the body."""
    us: Nodes
    """The blocks of the weights u, each (rows of its x, rows of the product)."""
    xs: Nodes
    """The arrays (steps, rows, columns) that x consists of, and numbers that are the same everywhere."""


def _wide(
    group: Sequence[Node], users: Users, kept: set[Node]
) -> tuple[dict[Node, Node], Joined] | None:
    """The replacements of a loop's values, and its joined rows; None if no product can be widened."""
    op = op_of(group[0], Loop)
    args = group[0].args
    found = _addend(op, args, set(group), users, kept)
    if found is None:
        return None
    initial, xs, constants = pieces(op, args)
    local = pieces(op, op.body.input_nodes)
    states = [fresh_input(s.shape) for s in local[0]]
    replaced = dict(zip(local[0], states, strict=True)) | dict(zip(local[2], constants, strict=True))
    fresh = {given: fresh_input(given.shape) for given in local[1]}
    replaced |= fresh
    moving = {fresh[given]: x for given, x in zip(local[1], xs, strict=True)}
    below = []
    for x in found.xs:
        below.append(x if len(x.shape) == 2 else fresh_input(x.shape[1:]))
        if len(x.shape) > 2:
            moving[below[-1]] = x
    rows = concatenate([states[found.state], *below], 0)
    weights = concatenate([rebuild([found.weights], replaced)[0], *found.us], 0)
    product = contract(["kj", "kb"], "jb", weights, rows)
    rest = [
        (sign, term)
        for sign, term in zip(op_of(found.node, Add).signs, found.node.args, strict=True)
        if term not in (found.product, found.here)
    ]
    rest = [(sign, rebuild([term], replaced)[0]) for sign, term in rest]
    replaced[found.node] = signed_sum([(1, product), *rest])
    results = [*rebuild(op.body, replaced), rows]
    body, count, new = _closed(states, moving, results, initial)
    n, last = len(states), len(results) - 1
    made = {v: Node.of(Loop(body, count, op_of(v, Loop).k, n), new) for v in group}
    state = Node.of(Loop(body, count, found.state, n), new)
    return made, Joined(Node.of(Loop(body, count, last, n), new), state, found.xs)


def _closed(
    states: Sequence[Node], moving: Mapping[Node, Node], results: Sequence[Node], initial: Nodes
) -> tuple[Graph, int, Nodes]:
    """A traced body as a graph of local inputs, its number of step inputs, and all arguments."""
    needed = set(topological(results))
    used = [x for x in moving if x in needed]
    constants = outer_nodes([*states, *used], results)
    sources = [*states, *used, *constants]
    local = [Node.of(Local(k, node.shape)) for k, node in enumerate(sources)]
    made = rebuild(results, dict(zip(sources, local, strict=True)))
    return Graph(tuple(local), made), len(used), (*initial, *(moving[x] for x in used), *constants)


def _addend(op: Loop, args: Nodes, group: set[Node], users: Users, kept: set[Node]) -> _Addend | None:
    """The first sum of a body that can be computed as a wide product; None if there is none."""
    states, moving, fixed = pieces(op, op.body.input_nodes)
    inner: dict[Node, int] = {}
    order = op.body.nodes
    for node in order:
        for arg in node.args:
            inner[arg] = inner.get(arg, 0) + 1
    for node in op.body.output_nodes:
        inner[node] = inner.get(node, 0) + 1
    for node in order:
        if not isinstance(node.op, Add) or len(node.shape) != 2:
            continue
        plain = [a for sign, a in zip(node.op.signs, node.args, strict=True) if sign == 1 and inner[a] == 1]
        for product in plain:
            parts = _product(product, states, fixed)
            for here in plain:
                if parts is None or here not in moving or here.shape != node.shape:
                    continue
                outer = args[op.states + moving.index(here)]
                split = _split(outer, group, users, kept)
                if split is None:
                    continue
                state, weights = parts
                us, xs = split
                if _pays(weights, us, node):
                    return _Addend(node, product, state, weights, here, us, xs)
    return None


def _pays(weights: Node, us: Sequence[Node], total: Node) -> bool:
    """Whether the wide product costs less: it has many columns, and not many more rows than before."""
    before, *more = (w.shape[0] for w in (weights, *us))
    columns = total.shape[1]
    if not all(isinstance(d, int) for d in (before, *more, columns)):
        return False
    return bool(sum(more) <= before + 1 and columns >= MIN_COLUMNS)


def _product(node: Node, states: Nodes, fixed: Nodes) -> tuple[int, Node] | None:
    """The position of the state h in Σ_k w_kj h_kb, and w with axes (k, j); None for other nodes."""
    op = node.op
    if not isinstance(op, Einsum) or len(op.inputs) != 2:
        return None
    for one, other in ((0, 1), (1, 0)):
        w, h = node.args[one], node.args[other]
        if w in fixed and h in states and len(w.shape) == len(h.shape) == 2:
            k, b = op.inputs[other]
            j = op.output[0]
            if {*op.inputs[one]} == {k, j} and op.output == (j, b) and len({k, j, b}) == 3:
                axes = (op.inputs[one].index(k), op.inputs[one].index(j))
                return states.index(h), permute(w, axes)
    return None


def _split(
    node: Node, group: set[Node], users: Users, kept: set[Node]
) -> tuple[Nodes, Nodes] | None:
    """The blocks of u with axes (k, j) and of x in Σ_k u_kj x_tkb, if one loop alone reads that sum."""
    turned = isinstance(node.op, Slice) and backwards(node) is node.args[0]
    inner = node.args[0] if turned else node
    product, bias = _without_bias(inner)
    if any(n in kept or set(users[n]) - {product, inner, node} - group for n in (product, inner, node)):
        return None
    op = product.op
    if not isinstance(op, Einsum) or len(op.inputs) != 2 or len(set(op.output)) != 3:
        return None
    t, j, b = op.output
    for one, other in ((0, 1), (1, 0)):
        weights, x = op.inputs[one], op.inputs[other]
        k = next((label for label in weights if label != j), j)
        if sorted(weights) != sorted((k, j)) or sorted(x) != sorted((t, k, b)):
            continue
        u = permute(product.args[one], (weights.index(k), weights.index(j)))
        block = permute(product.args[other], (x.index(t), x.index(k), x.index(b)))
        block = backwards(block) if turned else block
        if bias is None:
            return (u,), (block,)
        return (u, reshape(bias, (1, *bias.shape))), (block, broadcast_to(constant(1), (1, node.shape[2])))
    return None


def _without_bias(total: Node) -> tuple[Node, Node | None]:
    """The product in a sum of a product and a bias, and the bias."""
    if isinstance(total.op, Add) and len(total.args) == 2 and set(total.op.signs) == {1}:
        for product, repeated in (total.args, total.args[::-1]):
            axes = getattr(repeated.op, "axes", ())
            arg = repeated.args[0] if repeated.args else repeated
            while isinstance(repeated.op, Broadcast) and isinstance(arg.op, Broadcast) and arg.op.axes:
                axes, arg = tuple(axes[k] for k in arg.op.axes), arg.args[0]
            if isinstance(repeated.op, Broadcast) and axes == (1,):
                return product, arg
    return total, None
