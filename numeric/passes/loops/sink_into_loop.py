"""Elementwise work for all steps at once moves into the loop that alone reads its result.

Arrays over all steps are written to memory and read again, while the values of one step stay in the cache.
In NumPy code this pays if the arrays over all steps leave the cache, and if the arrays of one step are large
compared with the cost of starting an operation. In a compiled loop it always pays, because the operands of a
step are in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from symad.core.contents import holds, readers
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.higher_order.scan import Local, LoopOp, backwards
from symad.numeric.passes.blocking.row_blocks import elements
from symad.numeric.passes.bodies import by_loop, loop_of, with_body
from symad.numeric.passes.rewriting import with_results
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Broadcast, Slice, broadcast_axes, slice_axes
from symad.ops.basic.sources import Constant, fresh_input, iota

MIN_STEP = 2**10
"""Elements of one step from which an operation per step costs less than its share of one on all steps.

With 2**21 elements in all, work in the steps takes 2.3 times as long at 2**6 elements of a step, 1.4 at
2**8, 1.04 to 1.1 at 2**10, 0.98 at 2**12, 0.9 at 2**14 (bench_thresholds.py, "sink, a step").
"""

MIN_TOTAL = 2**20
"""Elements of all arrays together from which they are assumed not to stay in the cache.

With 2**12 elements of a step, work in the steps takes 1.1 times as long at 2**16 elements in all, 0.95 to
1.0 from 2**18 on (bench_thresholds.py, "sink, all steps").
"""


def sink_large(graph: Graph) -> Graph:
    """The graph with elementwise work on large arrays over all steps moved into the loops that read it."""
    if not holds(graph, LoopOp):
        return graph
    return with_results(graph, sink(graph.output_nodes, _is_large, MIN_TOTAL))


def _is_large(node: Node) -> bool:
    return all(isinstance(d, int) for d in node.shape) and prod(node.shape[1:]) >= MIN_STEP


def sink(outputs: Sequence[Node], fits: Callable[[Node], bool], least: int = 0) -> Nodes:
    """The outputs with fitting elementwise nodes moved into loops, if they have ``least`` elements in all."""
    made = tuple(outputs)
    for _ in range(sum(isinstance(n.op, LoopOp) for n in topological(made))):
        changed = _one(made, fits, least)
        if changed is None:
            return made
        made = changed
    return made


def _one(outputs: Nodes, fits: Callable[[Node], bool], least: int) -> Nodes | None:
    """The outputs with one loop changed; None if no loop can be changed."""
    order = topological(outputs)
    users = readers(order)
    for group in by_loop(n for n in order if _has_one_state(n)):
        inside = _absorbed(group, order, users, set(outputs), fits)
        if inside and sum(map(elements, inside)) >= least:
            return rebuild(outputs, dict(zip(group, _with(group, inside), strict=True)))
    return None


def _has_one_state(node: Node) -> bool:
    """Whether a node is a value of a loop with one state; all loops have one until `split_states` has run."""
    return isinstance(node.op, LoopOp) and node.op.states == 1


def _absorbed(
    group: Sequence[Node],
    order: Sequence[Node],
    users: dict[Node, list[Node]],
    kept: set[Node],
    fits: Callable[[Node], bool],
) -> set[Node]:
    """The elementwise nodes that only the moving inputs of one loop depend on."""
    slices, args = loop_of(group[0]).slices, group[0].args
    initial, xs, constants = args[0], args[1 : 1 + slices], args[1 + slices :]
    others = {initial, *constants}
    reached, inside = set(xs) - others, set(group)
    found: set[Node] = set()
    for node in reversed(order):
        alone = node not in kept and node not in others and all(u in inside for u in users[node])
        if not (alone and node in reached and node.shape and node.shape[0] == xs[0].shape[0]):
            continue
        if isinstance(node.op, ElementwiseOp) and fits(node):
            found.add(node)
        elif not isinstance(node.op, Slice) or not _keeps_steps(node):
            continue
        inside.add(node)
        reached |= {a for a in node.args if a.shape}
    return found


def _keeps_steps(node: Node) -> bool:
    """Whether a slice takes all steps, forwards or backwards."""
    op = op_of(node, Slice)
    whole = node.shape[0] == node.args[0].shape[0]
    return whole and op.step[0] in (1, -1)


def _with(group: Sequence[Node], inside: set[Node]) -> list[Node]:
    """The values of the loop, with some of its moving inputs computed in its steps."""
    op, args = loop_of(group[0]), group[0].args
    initial, xs, constants = args[0], args[1 : 1 + op.slices], args[1 + op.slices :]
    maker = _Steps(inside, initial, constants)
    local = op.body.input_nodes
    replaced = {local[0]: maker.state}
    for here, x in zip(local[1 : 1 + op.slices], xs, strict=True):
        replaced[here] = maker.at_step(x, False)
    for here, constant in zip(local[1 + op.slices :], constants, strict=True):
        replaced[here] = maker.fixed(constant)
    if not maker.moving:  # only numbers are left, but an input must give the number of steps
        maker.moving[iota(xs[0].shape[0])] = fresh_input(())
    results = rebuild(op.body.output_nodes, replaced)
    inputs = [maker.state, *maker.moving.values(), *maker.still.values()]
    numbered = {node: Node.of(Local(k, node.shape)) for k, node in enumerate(inputs)}
    body = Graph(tuple(numbered.values()), rebuild(results, numbered))
    args = (initial, *maker.moving, *maker.still)
    ops = [n.op for n in group if isinstance(n.op, LoopOp)]
    return [Node.of(with_body(op, body, len(maker.moving)), args) for op in ops]


class _Steps:
    """The inputs of a new body, and the values computed from them at each step."""

    def __init__(self, inside: set[Node], initial: Node, constants: Sequence[Node]) -> None:
        self.inside = inside
        self.state = fresh_input(initial.shape)
        self.moving: dict[Node, Node] = {}
        self.still: dict[Node, Node] = {}
        self.seen: dict[tuple[Node, bool], Node] = {}
        for constant in constants:
            self.fixed(constant)

    def fixed(self, node: Node) -> Node:
        """The local input for an array that all steps read."""
        if isinstance(node.op, Constant):
            return node
        if isinstance(node.op, Broadcast):
            return broadcast_axes(self.fixed(node.args[0]), node.shape, node.op.axes)
        return self.still.setdefault(node, fresh_input(node.shape))

    def at_step(self, node: Node, turned: bool) -> Node:
        """One step of an array, counted from the end if ``turned``."""
        if (node, turned) not in self.seen:
            self.seen[node, turned] = self._at_step(node, turned)
        return self.seen[node, turned]

    def _at_step(self, node: Node, turned: bool) -> Node:
        op = node.op
        if node in self.inside:
            return Node.of(op, tuple(self._operand(a, turned) for a in node.args))
        if isinstance(op, Slice) and _keeps_steps(node):
            inner = self.at_step(node.args[0], turned ^ (op.step[0] == -1))
            return slice_axes(inner, op.start[1:], op.count[1:], op.step[1:])
        array = backwards(node) if turned else node
        return self.moving.setdefault(array, fresh_input(node.shape[1:]))

    def _operand(self, node: Node, turned: bool) -> Node:
        op = node.op
        if not node.shape:
            return self.fixed(node)
        if not isinstance(op, Broadcast):
            return self.at_step(node, turned)
        (arg,) = node.args
        rest = node.shape[1:]
        if 0 not in op.axes:
            return broadcast_axes(self.fixed(arg), rest, tuple(k - 1 for k in op.axes))
        return broadcast_axes(self.at_step(arg, turned), rest, tuple(k - 1 for k in op.axes if k))
