"""Ops that a target cannot print, and functions whose parts a derivative computes, are written out.

Printers could replace ops by their definitions while they print, but then stable rewrites, fusion and the
liveness of arrays would not see the nodes of the definition. Functions of constants become numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from fractions import Fraction
from functools import cache

import mpmath
import sympy

from symad.core.arrays import Number
from symad.core.contents import holds, in_bodies
from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes, definition, evaluate
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp, PairSumTangent
from symad.higher_order.checkpointed_chain import ChainOp, ChainTangent
from symad.higher_order.remat import Remat
from symad.higher_order.scan import Scan
from symad.numbers.number_domains import HighPrecision
from symad.numeric.passes.rewriting import with_results
from symad.ops.basic.arithmetic import Add, Mul, div, mul, neg
from symad.ops.basic.sources import Constant, Dimension, Input, constant, constant_value, is_exact
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Compare, Logic, Select, select
from symad.ops.elementwise.undefined import Undefined
from symad.sympy_functions.scalar_functions import gelu, sigmoid, silu

WITHOUT_FORM = (PairSumTangent, ChainTangent, Undefined)
"""Ops that no target prints."""

FUSED = (AttentionOp, PairOp, ChainOp, Remat)
"""Ops that plain text shows by their definitions: fusing, tiling and recomputing are not mathematics."""

SCALAR_OPS = (Input, Constant, Add, Mul, Pow, Apply, Compare, Logic, Select)
"""Ops of numbers that every target can print."""


def write_definitions(graph: Graph) -> Graph:
    """The graph with fused ops that cannot be printed replaced by their definitions."""
    return written(graph, _lacks_form) if holds(graph, Dimension, *WITHOUT_FORM) else graph


def _lacks_form(node: Node) -> bool:
    """Whether a node is a fused op without a printed form, or a size that has become a number.

    Targets divide such sizes as integers.
    """
    op = node.op
    known = isinstance(op, Dimension) and isinstance(op.expression, int)
    return known or isinstance(op, WITHOUT_FORM)


def write_scalar_definitions(graph: Graph) -> Graph:
    """The graph with every number computed by `SCALAR_OPS`, as far as its ops have definitions."""
    return written(graph, lambda node: not node.shape and not isinstance(node.op, SCALAR_OPS))


def write_out(graph: Graph) -> Graph:
    """The graph with `FUSED` ops replaced by their definitions, also in the bodies of loops."""
    return written(graph, lambda node: isinstance(node.op, FUSED), inside=True)


def written(graph: Graph, without_form: Callable[[Node], bool], inside: bool = False) -> Graph:
    """The graph with some nodes replaced by their definitions, ``inside`` the bodies of loops too."""

    def outputs_of(graph: Graph) -> Nodes:
        return rebuild(graph, {}, make)

    def make(node: Node, args: Nodes) -> Node:
        op = in_bodies(node.op, outputs_of) if inside else node.op
        if op is node.op and args == node.args:
            made = node
        else:
            made = select(*args) if isinstance(op, Select) else Node.of(op, args)
        meaning = definition(made.op, made) if without_form(made) else None
        return rebuild((meaning,), {arg: arg for arg in args}, make)[0] if isinstance(meaning, Node) else made

    if not inside and not any(map(without_form, graph.nodes)):
        return graph
    return with_results(graph, outputs_of(graph))


# ---- functions whose parts are known -------------------------------------------------------------


ROOT = power(constant(2), constant(Fraction(1, 2)))
"""The square root of 2."""

HIGH_PRECISION = HighPrecision()


def expand(graph: Graph) -> Graph:
    """The graph with every rule applied, also in the bodies of scans; the graph itself if no rule applies."""
    acting = set(filter(_may_change, graph.nodes))
    return with_results(graph, _expanded(graph, acting)) if acting else graph


def _expanded(graph: Graph, acting: Collection[Node]) -> Nodes:
    """The outputs of a graph after the rules for some nodes, and for those whose arguments change."""
    known = cache(lambda: set(graph.nodes))  # computed on use: few graphs need it
    bodies: dict[Graph, Graph] = {}
    numbers: dict[Node, Number] = {}

    def better(node: Node, args: Nodes) -> Node:
        op = node.op
        if args == node.args and node not in acting:
            return node
        if isinstance(op, Scan):
            if op.body not in bodies:
                inner = _expanded(op.body, set(filter(_may_change, op.body.nodes)))
                bodies[op.body] = Graph(op.body.input_nodes, inner)
            return Node.of(Scan(bodies[op.body], op.slices), args)
        head = op.head if isinstance(op, Apply) and node.shape else None
        if head is silu and apply(sigmoid, node.args[0]) in known():
            return mul(args[0], apply(sigmoid, args[0]))
        if head is gelu and _tail(node.args[0], ROOT) in known():
            return mul(constant(Fraction(1, 2)), args[0], _tail(args[0], constant(math.sqrt(2))))
        if isinstance(op, (Add, Mul, Pow, Apply)) and not node.shape:
            number = _number(node, numbers)
            if number is not None:
                return constant(number)
            if isinstance(op, Add):
                node, args = _with_one_constant(node, args, numbers)
        return node.over(args)

    return rebuild(graph, {}, better)


def _may_change(node: Node) -> bool:
    """Whether a rule may replace the node, or the node that it becomes when its arguments are replaced."""
    op = node.op
    if isinstance(op, (Add, Mul, Pow, Apply)):
        if node.shape:
            return isinstance(op, Apply) and op.head in (silu, gelu)
        constants = sum([type(a.op) is Constant for a in node.args])
        return constants == len(node.args) or (constants > 1 and isinstance(op, Add))
    return isinstance(op, Scan)


def _tail(x: Node, root: Node) -> Node:
    """erfc(−x/√2), in the form in which the derivative of gelu contains it."""
    return apply(sympy.erfc, neg(div(x, root)))


def _with_one_constant(node: Node, args: Nodes, known: dict[Node, Number]) -> tuple[Node, Nodes]:
    """A sum whose constant terms are one: x + log(2) − 1/2 has one rounding, not two. Exact ones stay."""
    signs = op_of(node, Add).signs
    fixed = [k for k, arg in enumerate(node.args) if _is_number(arg, known)]
    if len(fixed) < 2 or all(is_exact(constant_value(args[k])) for k in fixed):
        return node, args
    part = Node.of(Add(tuple([signs[k] for k in fixed])), tuple([node.args[k] for k in fixed]))
    number = _number(part, known)
    if not number:
        return node, args
    first, rest = fixed[0], set(fixed[1:])
    new = [constant(number) if k == first else arg for k, arg in enumerate(args) if k not in rest]
    ones = [1 if k == first else sign for k, sign in enumerate(signs) if k not in rest]
    return Node.of(Add(tuple(ones)), tuple(new)), tuple(new)


DIGITS = 40
"""The digits with which functions of constants are computed; log(12/5) − 9/10 is rounded once, at the end."""


def _number(node: Node, known: dict[Node, Number]) -> float | None:
    """The value of a function of constants, which is ``known`` to many digits afterwards."""
    if not all([_is_number(a, known) for a in node.args]):
        return None
    values = [_digits(a, known) for a in node.args]
    try:
        with mpmath.workdps(DIGITS):
            value = known[node] = evaluate(node.op, tuple(values))
            return float(value) if math.isfinite(value) else None
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None


def _is_number(node: Node, known: dict[Node, Number]) -> bool:
    """Whether a node is a number, or a function of numbers."""
    return node in known or (type(node.op) is Constant and not isinstance(node.op.value, bool))


def _digits(node: Node, known: dict[Node, Number]) -> Number:
    """A number to many digits."""
    if node in known:
        return known[node]
    with mpmath.workdps(DIGITS):
        return HIGH_PRECISION.number(op_of(node, Constant).value)
