"""Values seen through reshapes and transpositions at the end of a graph.

A Jacobian is an array (outputs..., inputs...) whose axes were joined. Where two nodes join the axes of
their sources in the same way, they are equal if the sources are, whatever the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import Dim, same_dim, same_shape, size
from symad.core.graph import Node
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Reshape

Groups = list[list[int]]
"""For each axis of a value the axes of its source that were joined; those of length 1 are left out."""


def ungrouped(node: Node) -> tuple[Node, Groups]:
    """The source of a node behind reshapes that join axes and behind transpositions, and the groups."""
    groups: Groups = [[k] if dim != 1 else [] for k, dim in enumerate(node.shape)]
    while True:
        inner = _joined(node) if isinstance(node.op, Reshape) else _transposed(node)
        if inner is None:
            return node, groups
        groups = [[j for k in group for j in inner[k]] for group in groups]
        node = node.args[0]


def joined_alike(a: tuple[Node, Groups], b: tuple[Node, Groups]) -> bool:
    """Whether two values join axes of the same sizes in the same order."""
    return all(
        same_shape([a[0].shape[i] for i in left], [b[0].shape[j] for j in right])
        for left, right in zip(a[1], b[1], strict=True)
    )


def _transposed(node: Node) -> Groups | None:
    """The groups of a contraction that only permutes axes."""
    if not isinstance(node.op, Einsum) or len(node.args) != 1:
        return None
    labels, output = node.op.inputs[0], node.op.output
    if len(set(labels)) != len(labels) or sorted(labels) != sorted(output):
        return None
    shape = node.args[0].shape
    return [[labels.index(k)] if shape[labels.index(k)] != 1 else [] for k in output]


def _joined(node: Node) -> Groups | None:
    """The groups of a reshape that joins neighbouring axes; None for one that splits some."""
    old, groups, position = node.args[0].shape, Groups(), 0
    for dim in node.shape:
        group: list[int] = []
        while dim != 1 and position < len(old) and not same_dim(_product(old, group), dim):
            if old[position] != 1:
                group.append(position)
            position += 1
        if dim != 1 and not same_dim(_product(old, group), dim):
            return None
        groups.append(group)
    return groups if all(dim == 1 for dim in old[position:]) else None


def _product(shape: Sequence[Dim], axes: Sequence[int]) -> Dim:
    return size(tuple(shape[k] for k in axes))
