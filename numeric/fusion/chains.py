"""Elementwise chains as single kernels: a pass from graph to graph.

Elementwise nodes are grouped such that other kernels read as few results of a kernel as possible. All paths
between two members of a group stay inside the group, so that the groups can be put in an order. Each group
becomes nodes with the op `Nest`, one for each value that is read outside, all with one body. A printer
writes the body as one kernel with several results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from symad.core.contents import readers
from symad.core.dims import same_shape
from symad.core.graph import Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.levels import ChainGroup, GroupLevels
from symad.numeric.fusion.nest import Nest, New, in_units, is_chain, nests_of, summed_axes, with_sum
from symad.numeric.passes.bodies import body_of, read_once
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, broadcast_axes
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.powers import Pow

MAX_LEAVES, MAX_MEMBERS, MAX_RESULTS = 24, 300, 8
"""Limits of a kernel: arrays read, nodes computed, arrays written."""

Opened = Callable[[Node, Nodes], Node]
"""Makes a node over new arguments, and fuses the graph inside it, such as the body of a loop."""


def fuse_chains(
    outputs: Sequence[Node], opened: Opened, alone: Callable[[Node], bool] = lambda node: False
) -> Nodes:
    """Outputs with their chains fused.

    Args:
        outputs: the outputs of a graph.
        opened: see `Opened`.
        alone: whether a node is kept out of all groups.
    """
    return _Groups(outputs, alone).rebuilt(opened)


def on_host(nodes: Iterable[Node]) -> set[Node]:
    """The numbers known before any array is read: constants, dimensions, and arithmetic on them."""
    found: set[Node] = set()
    for node in nodes:
        known = node.op.literal
        if known or (isinstance(node.op, (Add, Mul, Pow)) and all(a in found for a in node.args)):
            found.add(node)
    return found


class _Groups:
    """The grouping of one graph, from the outputs backwards."""

    def __init__(self, outputs: Sequence[Node], alone: Callable[[Node], bool]) -> None:
        self.outputs = outputs
        self.alone = alone
        self.order = topological(outputs)
        self.users = readers(self.order)
        self.host = on_host(self.order)
        self.kept = set(outputs)
        self.of: dict[Node, ChainGroup] = {}
        self.levels = GroupLevels(self.users, self.of)
        for node in reversed(self.order):
            self._place(node)
            self.levels.add(node)
            if node in self.of:
                for other in self._siblings(node):
                    self._merge(self.of[node], other)
        self._split_shapeless()

    def _place(self, node: Node) -> None:
        """Put a node into the group of its users, or into a new one."""
        if node in self.host or not self._fusable(node):
            return
        users = self.users[node]
        groups = {id(self.of[u]): self.of[u] for u in users if u in self.of}
        inside = len(groups) == 1 and all(u in self.of for u in users)
        if inside and node not in self.kept:
            (group,) = groups.values()
            if self._fits(node, group):
                self._join(node, group)
                return
        if isinstance(node.op, Broadcast):
            return
        for group in groups.values() or self._siblings(node):
            exact = same_shape(node.shape, group.root.shape)
            room = group.results < MAX_RESULTS and exact and self._fits(node, group)
            if room and self.levels.lift(group, users):
                self._join(node, group)
                group.results += 1
                return
        self._join(node, ChainGroup(node))

    def _siblings(self, node: Node) -> list[ChainGroup]:
        """Some groups that read an array which the node also reads."""
        found: dict[int, ChainGroup] = {}
        for arg in node.args:
            if arg.shape and not isinstance(arg.op, Constant):
                near = (self.of[user] for user in self.users[arg][:16] if user in self.of)
                found |= {id(group): group for group in islice(near, 4)}
        return list(found.values())

    def _merge(self, group: ChainGroup, other: ChainGroup) -> None:
        """Merge two groups that read the same array, if their results have one shape."""
        if other is group or not same_shape(group.root.shape, other.root.shape):
            return
        members = group.members | other.members
        leaves = (group.leaves | other.leaves) - members
        small = len(leaves) <= MAX_LEAVES and len(members) < MAX_MEMBERS
        results = group.results + other.results
        if not small or results > MAX_RESULTS or not group.root.shape:
            return
        if not self.levels.merge(group, other):
            return
        group.members, group.leaves, group.results = members, leaves, results
        for node in other.members:
            self.of[node] = group

    def _fusable(self, node: Node) -> bool:
        if isinstance(node.op, Broadcast):
            return not node.args[0].shape and bool(self.users[node])
        known = isinstance(node.op, ElementwiseOp) and has_c_form(node) and not self.alone(node)
        return known and len(set(node.args)) <= MAX_LEAVES

    def _fits(self, node: Node, group: ChainGroup) -> bool:
        """Whether the kernel stays small, and the node has the shape of its results or is a scalar."""
        leaves = group.leaves - {node} | {a for a in node.args if not isinstance(a.op, Constant)}
        small = len(leaves) <= MAX_LEAVES and len(group.members) < MAX_MEMBERS
        return small and (not node.shape or same_shape(node.shape, group.root.shape))

    def _join(self, node: Node, group: ChainGroup) -> None:
        self.of[node] = group
        group.members.add(node)
        group.leaves.discard(node)
        group.leaves |= {a for a in node.args if a not in group.members and not isinstance(a.op, Constant)}

    def _split_shapeless(self) -> None:
        """Compute scalars outside of groups that only broadcast them, since such groups have no size."""
        for group in {id(g): g for g in self.of.values()}.values():
            shape_ = group.root.shape
            if shape_ and not any(same_shape(leaf.shape, shape_) for leaf in group.leaves):
                members = [node for node in self.order if node in group.members]
                for node in members:
                    del self.of[node]
                arrays = [node for node in members if node.shape and not isinstance(node.op, Broadcast)]
                for part in (arrays, [node for node in members if not node.shape]):
                    last: ChainGroup | None = None
                    for node in part:
                        last = last if last is not None and self._fits(node, last) else ChainGroup(node)
                        self._join(node, last)

    def rebuilt(self, opened: Opened) -> Nodes:
        """The outputs, with the groups as nests."""
        position = {node: k for k, node in enumerate(self.order)}

        def make(members: Sequence[Node], new: New) -> Mapping[Node, Node]:
            first = members[0]
            if len(members) == 1 and (first not in self.of or _is_plain(first)):
                return {first: opened(first, tuple(new[a] for a in first.args))}
            results, inside = [m for m in members if self._is_read(m)], set(members)
            read = dict.fromkeys(a for m in members for a in m.args if a not in inside)
            leaves = [a for a in read if not isinstance(a.op, Constant)]
            return nests_of(results, leaves, new, results[0].shape, ())

        unit_of = {node: position[group.root] for node, group in self.of.items()}
        return in_units(self.outputs, self.order, unit_of, make)

    def _is_read(self, node: Node) -> bool:
        """Whether a kernel must write a value: a result of the graph, or a value read by other kernels."""
        group = self.of[node]
        return node in self.kept or any(self.of.get(user) is not group for user in self.users[node])


def _is_plain(node: Node) -> bool:
    """Whether a node is a single operation, which one call of the array library computes as well."""
    arrays = [a for a in node.args if not a.op.literal]
    return isinstance(node.op, (Add, Mul)) and len(node.args) <= 2 and len(arrays) == len(node.args)


def fuse_sums(outputs: Sequence[Node], single: bool = False, last_axes: bool = False) -> Nodes:
    """Outputs with sums over chains that nothing else reads as one nest each; chains must be fused before.

    Args:
        outputs: the outputs of a graph.
        single: whether sums of one elementwise node are fused as well.
        last_axes: whether sums are fused only if they are over the last axes.
    """
    alone = read_once(outputs)

    def joined(node: Node, args: Nodes) -> Node | None:
        axes = summed_axes(node)
        if not axes or node.args[0] not in alone or (last_axes and axes[0] + len(axes) < len(args[0].shape)):
            return None
        (inner,) = args
        if is_chain(inner.op) and len(op_of(inner, Nest).body.output_nodes) == 1:
            return Node.of(with_sum(op_of(inner, Nest).body, axes), inner.args)
        if single and isinstance(inner.op, ElementwiseOp) and has_c_form(inner):
            return Node.of(with_sum(body_of(inner), axes), tuple(dict.fromkeys(inner.args)))
        return None

    return rebuild(outputs, {}, joined)


# ---- products ------------------------------------------------------------------------------------


def as_products(outputs: Sequence[Node]) -> Nodes:
    """The outputs with such contractions as products of (broadcast) arrays."""
    return rebuild(outputs, {}, _written)


def _written(node: Node, args: Nodes) -> Node | None:
    op = node.op
    if not isinstance(op, Einsum) or len(args) < 2 or not _is_product(op):
        return None
    return mul(*(_repeated(a, labels, op.output, node) for a, labels in zip(args, op.inputs, strict=True)))


def _is_product(op: Einsum) -> bool:
    """Whether no label is summed, none is repeated, and axes keep their order."""
    for labels in op.inputs:
        places = [op.output.index(label) for label in labels if label in op.output]
        if len(places) < len(labels) or places != sorted(set(places)):
            return False
    return any(tuple(labels) == tuple(op.output) for labels in op.inputs)


def _repeated(arg: Node, labels: Sequence[int], output: Sequence[int], made: Node) -> Node:
    if tuple(labels) == tuple(output):
        return arg
    return broadcast_axes(arg, made.shape, tuple(output.index(label) for label in labels))
