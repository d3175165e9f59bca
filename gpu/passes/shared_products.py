"""Products that share an operand become one: x W_1, x W_2, x W_3 = x [W_1 W_2 W_3], cut into three.

The queries, keys and values of attention are such products, and so are the gradients of their matrices, with
the common operand x. The cotangent of x is a sum of products, Σ_i a_i W_iᵀ, and becomes one product of the
stacks. In the stacks the summed axes come first and the new axis after them, so that every product is one
cuBLAS call without a copy of its operands. Arrays are stacked once, and a product is not cut into parts that
are stacked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from symad.core.dims import Shape
from symad.core.graph import Node, Op, op_of, rebuild, shape, topological
from symad.core.questions import Nodes, Values, definition, evaluate
from symad.fused.attention_ops import AttentionOp
from symad.ops.arrays.stacking import Stack, stack, take
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.contraction import Einsum, contract, permute
from symad.ops.basic.shaping import Reshape, Slice

NEW = -1
"""The label of the stacked axis."""

MIN_PRODUCTS = 3
"""The number of products from which a stack pays: stacking the operands is a launch too.

Origin: the number of launches; not measured on a device.
"""


@dataclass(frozen=True, eq=False)
class Copied(Op):
    """A copy of an array, with its elements in row-major order in memory."""


@shape(Copied)
def copied_shape(op: Copied, args: Nodes) -> Shape:
    """The shape of the argument."""
    return args[0].shape


@evaluate.dispatch
def copied_evaluate(op: Copied, values: Values) -> np.ndarray:
    """A copy."""
    return np.array(values[0])


@definition.dispatch
def copied_definition(op: Copied, y: Node) -> Node:
    """The array."""
    return y.args[0]


def shared_products(outputs: Sequence[Node]) -> Nodes:
    """The outputs with products that share an operand, and sums of such products, as one product each."""
    made = _Stacks(outputs)
    return _copied_once(rebuild(made.once(made.sums(made.apart(outputs))), {}, _laid_out))


@dataclass(frozen=True)
class _ProductGroup:
    """Products with one operand in common, at position ``common``."""

    members: tuple[Node, ...]
    common: int


@dataclass
class _Stacks:
    """The stacks of one graph: the operands in them, and the axes of the operands."""

    outputs: Sequence[Node]
    of: dict[Node, tuple[int, int]] = field(default_factory=dict)
    """For an operand, the stack that contains it and its place there."""
    made: list[tuple[Node, tuple[int, ...]]] = field(default_factory=list)
    """For a stack, the axes of an operand in it; NEW for the stacked axis."""

    def apart(self, outputs: Sequence[Node]) -> Nodes:
        """The outputs, with products of one operand with several others as one product."""
        groups = _groups(outputs)
        needs = {node: [*node.args] for node in topological(outputs)}
        for node, group in groups.items():
            needs[node] += [self._other(m, group) for m in group.members]
        try:
            order = [*TopologicalSorter(needs).static_order()]
        except CycleError:  # an operand is computed from a product of its own group
            return tuple(outputs)
        new: dict[Node, Node] = {}
        wholes: dict[_ProductGroup, Node] = {}
        for node in order:
            args = tuple(new[a] for a in node.args)
            if node not in groups:
                new[node] = node.over(args)
                whole = groups.get(node.args[0]) if isinstance(node.op, Stack) else None
                if whole is not None and node.args == whole.members:
                    new[node] = permute(wholes[whole], _moved(0, op_of(node, Stack).axis, len(node.shape)))
                continue
            group = groups[node]
            if group not in wholes:
                wholes[group] = self._product(group, args[group.common], new)
            new[node] = take(wholes[group], 0, group.members.index(node))
        return tuple(new[o] for o in outputs)

    def once(self, outputs: Sequence[Node]) -> Nodes:
        """The outputs with one stack of the same arrays in place of several along other axes."""
        chosen = {whole.args: whole for whole, _ in self.made if isinstance(whole.op, Stack)}

        def make(node: Node, args: Nodes) -> Node:
            op = node.op
            if isinstance(op, Einsum):
                return node if args == node.args else contract(op.inputs, op.output, *args)
            made = node.over(args)
            whole = chosen.setdefault(args, made) if isinstance(op, Stack) else made
            if whole is made:
                return made
            places = op_of(whole, Stack).axis, op_of(made, Stack).axis
            return permute(whole, _moved(*places, len(made.shape)))

        return rebuild(outputs, {}, make)

    def _other(self, member: Node, group: _ProductGroup) -> Node:
        return member.args[1 - group.common]

    def _product(self, group: _ProductGroup, common: Node, rebuilt: dict[Node, Node]) -> Node:
        """All products of a group as one: the stacked axis, then the axes of one product."""
        op = op_of(group.members[0], Einsum)
        labels, others = op.inputs[group.common], op.inputs[1 - group.common]
        summed = [x for x in others if x not in op.output]
        axes = [*summed, NEW, *(x for x in others if x in op.output)]
        place = tuple(NEW if x == NEW else others.index(x) for x in axes)
        operands = [rebuilt[self._other(m, group)] for m in group.members]
        whole = stack([permute(o, tuple(a for a in place if a != NEW)) for o in operands], len(summed))
        for k, operand in enumerate(operands):
            self.of[operand] = len(self.made), k
        self.made.append((whole, place))
        return contract([labels, axes], (NEW, *op.output), common, whole)

    def sums(self, outputs: Sequence[Node]) -> Nodes:
        """The outputs, with sums of products of stacked operands as one product."""
        users: dict[Node, int] = {}
        inner: set[Node] = set()
        for node in topological(outputs):
            for arg in node.args:
                users[arg] = users.get(arg, 0) + 1
                if isinstance(node.op, Add) and arg.shape == node.shape:
                    inner.add(arg)

        new: dict[Node, Node] = {}
        for node in topological(outputs):
            args = tuple(new[a] for a in node.args)
            new[node] = node.over(args)
            outer = isinstance(node.op, Add) and (node not in inner or users[node] > 1 or node in outputs)
            terms = _terms(node, users) if outer else []
            found = self._sum([term for sign, term in terms if sign == 1])
            if found is not None:
                product, members = found
                rest = [(sign, new[term]) for sign, term in terms if term not in members]
                new[node] = signed_sum([(1, rebuild((product,), new)[0]), *rest])
        return tuple(new[o] for o in outputs)

    def _sum(self, terms: Sequence[Node]) -> tuple[Node, list[Node]] | None:
        """One product for terms that multiply corresponding operands of two stacks; None if there is none."""
        pairs: dict[tuple[Einsum, int, int], dict[int, Node]] = {}
        for term in terms:
            op = term.op
            if isinstance(op, Einsum) and len(term.args) == 2 and all(a in self.of for a in term.args):
                (first, i), (second, j) = (self.of[a] for a in term.args)
                if i == j and first != second:
                    pairs.setdefault((op, first, second), {})[i] = term
        for (op, first, second), members in pairs.items():
            wholes = [self.made[first], self.made[second]]
            counts = {whole.shape[place.index(NEW)] for whole, place in wholes}
            if counts == {len(members)}:
                labels = [
                    tuple(NEW if a == NEW else inputs[a] for a in place)
                    for inputs, (_, place) in zip(op.inputs, wholes, strict=True)
                ]
                return contract(labels, op.output, *(w for w, _ in wholes)), list(members.values())
        return None


def _moved(start: int, end: int, rank: int) -> list[int]:
    """The axes of an array, with one of them moved to another place."""
    axes = [*range(rank)]
    axes.insert(end, axes.pop(start))
    return axes


def _terms(node: Node, users: dict[Node, int]) -> list[tuple[int, Node]]:
    """The terms of a sum, with nested sums that nothing else reads taken apart."""
    found, open_terms = [], [(1, node)]
    while open_terms:
        sign, term = open_terms.pop()
        if term is node or (isinstance(term.op, Add) and users[term] == 1 and term.shape == node.shape):
            signs = op_of(term, Add).signs
            open_terms += [(sign * own, arg) for own, arg in zip(signs, term.args, strict=True)][::-1]
        else:
            found.append((sign, term))
    return found


def _groups(outputs: Sequence[Node]) -> dict[Node, _ProductGroup]:
    """Groups of matrix products with a common operand and no axis that all operands have."""
    found: dict[Any, list[Node]] = {}
    for node in topological(outputs):
        op = node.op
        if not isinstance(op, Einsum) or len(node.args) != 2 or node.args[0] is node.args[1]:
            continue
        left, right = (set(labels) for labels in op.inputs)
        both = left & right
        if not both or both & set(op.output) or any(len(set(x)) < len(x) for x in op.inputs):
            continue
        if not all(len(part - both) for part in (left, right)):
            continue
        for k in (0, 1):
            found.setdefault((node.args[k], op, k, node.args[1 - k].shape), []).append(node)
    groups: dict[Node, _ProductGroup] = {}
    for (_, _, common, _), members in sorted(found.items(), key=lambda item: -len(item[1])):
        others = {m.args[1 - common] for m in members}
        enough = len(members) >= MIN_PRODUCTS and len(others) == len(members)
        if enough and not any(m in groups for m in members):
            groups |= dict.fromkeys(members, _ProductGroup(tuple(members), common))
    return groups


def _uses(outputs: Sequence[Node]) -> dict[Node, list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """For each operand of products the axes that each product keeps, and those that it sums."""
    uses: dict[Node, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for node in topological(outputs):
        op = node.op
        if isinstance(op, Einsum) and len(node.args) == 2 and node.args[0] is not node.args[1]:
            for arg, labels in zip(node.args, op.inputs, strict=True):
                own = tuple(k for k, x in enumerate(labels) if x in op.output)
                rest = tuple(k for k, x in enumerate(labels) if x not in op.output)
                uses.setdefault(arg, []).append((own, rest))
    return uses


def _copied_once(outputs: Sequence[Node]) -> Nodes:
    """The outputs with operands that several products would copy copied once, in an order that fits all."""
    replaced: dict[Node, Node] = {}
    for node, parts in _uses(outputs).items():
        order = (*parts[0][0], *parts[0][1])
        lists = [_adjacent(part, range(len(order))) for own in parts for part in own]
        wrong = sum(not (a and b) for a, b in zip(lists[::2], lists[1::2], strict=True))
        if wrong > 1 and all(_adjacent(part, order) for own in parts for part in own):
            back = tuple(order.index(k) for k in range(len(order)))
            replaced[node] = permute(Node.of(Copied(), (permute(node, order),)), back)
    new: dict[Node, Node] = {}
    for node in topological(outputs):
        args = tuple(new[a] for a in node.args)
        products = isinstance(node.op, Einsum) and len(node.args) == 2
        if products:
            args = tuple(rebuild((replaced[a],), new)[0] if a in replaced else new[a] for a in node.args)
            inputs, output = op_of(node, Einsum).inputs, op_of(node, Einsum).output
            new[node] = contract(inputs, output, *args)
        else:
            new[node] = node.over(args)
    return tuple(new[o] for o in outputs)


def _adjacent(axes: Sequence[int], order: Sequence[int]) -> bool:
    """Whether axes are adjacent in memory, in this order."""
    places = [[*order].index(axis) for axis in axes]
    return places == [*range(places[0], places[0] + len(places))] if places else True


def _laid_out(node: Node, args: Nodes) -> Node:
    """Attention over parts of one array, with one copy of the whole array instead of a copy of each part."""
    made = node.over(args)
    if not isinstance(node.op, AttentionOp):
        return made
    sources = [_stacked(a) for a in made.args[:3]]
    if sources[0] is None or any(s is not sources[0] for s in sources):
        return made
    whole = Node.of(Copied(), (sources[0],))
    replaced = {a: rebuild((a,), {sources[0]: whole})[0] for a in made.args[:3]}
    return Node.of(made.op, tuple(replaced.get(a, a) for a in made.args))


def _stacked(node: Node) -> Node | None:
    """The product of several operands of which an array is one part; None for other arrays."""
    while isinstance(node.op, (Reshape, Slice)):
        (node,) = node.args
    return node if isinstance(node.op, Einsum) and len(node.args) == 2 else None
