"""Nodes of array code as a program with one statement for each node, in a given order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from symad.core.graph import Node, Op, Structure
from symad.core.interning import field_names
from symad.fused.pair_sum import unread
from symad.numeric.program.expressions import Compute, Expression, Read, Value, zeros
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Together
from symad.ops.basic.sources import ArrayConstant, Constant


def number_of(op: Op | None) -> int:
    """The number of a result among those of its op; 0 for ops with one result."""
    return getattr(op, op.several[0]) if op is not None and op.several else 0


def _kernel_of(op: Op) -> tuple[object, ...]:
    """What the results of one loop or kernel have in common."""
    return type(op), *(getattr(op, name) for name in field_names(type(op)) if name not in op.several)


@dataclass(frozen=True)
class NodeBlock:
    """A program of nodes, with the value of each node."""

    program: Program
    values: dict[Node, Value]
    nodes: dict[Value, Node]


def block_of(
    order: Sequence[Node],
    outputs: Iterable[Node],
    given: Collection[Node] | Mapping[Node, Value] = (),
    structure: Structure | None = None,
    stems: Callable[[Node], str] = lambda node: "",
) -> NodeBlock:
    """The program of some nodes. The results of one loop or kernel are one `Together` statement.

    Args:
        order: the nodes, each after its arguments.
        outputs: the nodes that are results.
        given: nodes that have values already, perhaps with these values.
        structure: the structure of the results.
        stems: the name stem of a node.
    """
    known: dict[Node, Expression] = {}
    values: dict[Node, Value] = {}
    inputs: list[Value] = []
    statements: list[list[Assign]] = []
    together: dict[tuple[object, ...], list[Assign]] = {}
    inside = given if isinstance(given, Mapping) else {}
    for node in order:
        value = values[node] = inside.get(node) or Value(stems(node), node.shape)
        if node in given:
            inputs.append(value)
            known[node] = Read(value)
            continue
        args = [known[a] for a in node.args]
        for position in unread(node.op):
            args[position] = zeros(args[position].shape)
        expression = Compute(node.op, tuple(args), node.shape)
        known[node] = expression if isinstance(node.op, (Constant, ArrayConstant)) else Read(value)
        assign = Assign(value, expression)
        group = together.setdefault((*_kernel_of(node.op), node.args), []) if node.op.several else []
        if not group:
            statements.append(group)
        group.append(assign)
    results = tuple([known[output] for output in outputs])
    made = tuple([group[0] if len(group) == 1 else Together(tuple(group)) for group in statements])
    program = Program("", tuple(inputs), made, results, structure)
    return NodeBlock(program, values, {value: node for node, value in values.items()})
