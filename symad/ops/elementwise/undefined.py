"""The missing values of a Piecewise: 0 where one of its conditions holds, NaN elsewhere.

A constant NaN would have derivative 0. But a function has no derivative where it has no value. So
every derivative by an input of a Piecewise, the inputs of its conditions included, is NaN there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.dims import Shape
from symad.core.graph import ZERO, Node, shape
from symad.core.questions import (
    Array,
    Count,
    Nodes,
    Tangent,
    Tangents,
    Values,
    definition,
    evaluate,
    flops,
    jvp,
)
from symad.ops.basic.arithmetic import ElementwiseOp, add_tangents, common_shape, mul, tangent_of_shape
from symad.ops.basic.sources import Constant, constant
from symad.ops.elementwise.selection import logic, select


@dataclass(frozen=True, eq=False)
class Undefined(ElementwiseOp):
    """undefined(c, x_1, ...): 0 where c holds, else NaN, as a function of the x_i."""


def undefined(conditions: Sequence[Node], values: Sequence[Node]) -> Node:
    """0 where a condition holds; NaN elsewhere, as a function of all inputs of conditions and values."""
    known = logic("or", *conditions)
    args = elements_of(known, *values)
    return Node.of(Undefined(), (known, *args)) if args else select(known, constant(0), NAN)


NAN = constant(float("nan"))


def elements_of(*nodes: Node) -> list[Node]:
    """The arguments from which elementwise ops compute the nodes, without constants."""
    found: dict[Node, None] = {}
    seen, waiting = set(nodes), [*nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node.op, ElementwiseOp):
            new = [a for a in node.args if a not in seen]
            seen.update(new)
            waiting += new
        elif not isinstance(node.op, Constant):
            found[node] = None
    return list(found)


@shape(Undefined)
def undefined_shape(op: Undefined, args: Nodes) -> Shape:
    return common_shape("a Piecewise", args)


@definition.dispatch
def undefined_definition(op: Undefined, y: Node) -> Node:
    from symad.ops.basic.shaping import broadcast_to

    return broadcast_to(select(y.args[0], constant(0), NAN), y.shape)


@jvp.dispatch
def undefined_jvp(op: Undefined, y: Node, tangents: Tangents) -> Tangent:
    """0 or NaN by each argument, like the value: the same op again."""
    total = add_tangents(tangents[1:])
    return tangent_of_shape(mul(y, total), y.shape) if isinstance(total, Node) else ZERO


@flops.dispatch
def undefined_flops(op: Undefined, y: Node) -> Count:
    return 0


@evaluate.dispatch
def undefined_evaluate(op: Undefined, values: Values) -> Array:
    """0 or NaN in the arguments' number type: exact ones are undefined, dual numbers have derivative NaN."""
    from symad.numbers.number_domains import domain_of
    from symad.numbers.number_domains import select as select_values

    total = sum(values[2:], values[1])
    nan = domain_of(values).number(float("nan"))
    return select_values(values[0], total * 0, total * nan)
