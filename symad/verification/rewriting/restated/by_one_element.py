"""Arrays of which each element is one function of the elements in its place: one of them stands for all.

f(x_i) = g(x_i) for all i follows from f(x) = g(x), and Σ f(x_i) = Σ g(x_i) from the same. The signs of one
element are few, those of an array are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Node, topological
from symad.ops.arrays.stacking import element
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import Input
from symad.verification.rewriting.rewrite import expand_definitions


def by_one_element(outputs: Sequence[Node]) -> list[Node] | None:
    """Two scalars: if they are equal, so are two arrays or sums. None where no element stands for all."""
    a, b = _inside(*expand_definitions(outputs))
    if not a.shape or 0 in a.shape:
        return None
    made: dict[Node, Node] = {}
    for node in topological([a, b]):
        found = _at_first(node, made, a) if node.shape else _scalar(node)
        if found is None:
            return None
        made[node] = found
    return [made[a], made[b]]


def _inside(a: Node, b: Node) -> tuple[Node, Node]:
    """What two sums, or products with the same factors, differ in: they are defined only where this is."""
    while a.op == b.op and (isinstance(a.op, (Add, Mul)) or _is_sum(a)) and len(a.args) == len(b.args):
        differing = [(p, q) for p, q in zip(a.args, b.args, strict=True) if p is not q]
        if len(differing) != 1 or differing[0][0].shape != differing[0][1].shape:
            break
        ((a, b),) = differing
    return a, b


def _is_sum(node: Node) -> bool:
    """Whether a node is the sum of the elements of an array over some of its axes."""
    if not isinstance(node.op, Einsum) or len(node.args) != 1:
        return False
    (labels,) = node.op.inputs
    return len(set(labels)) == len(labels)


def _scalar(node: Node) -> Node | None:
    return None if any(a.shape for a in node.args) else node


def _at_first(node: Node, made: dict[Node, Node], whole: Node) -> Node | None:
    """The first element of an array of the shape of the whole, from those of its arguments."""
    if node.shape != whole.shape:
        return None
    if isinstance(node.op, Input):
        return element(node, *[0 for _ in node.shape])
    args = tuple([made[a] for a in node.args])
    if isinstance(node.op, Broadcast):
        return None if node.args[0].shape else args[0]
    return Node.of(node.op, args) if isinstance(node.op, ElementwiseOp) else None
