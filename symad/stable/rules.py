"""Stable rewrites: expressions that lose digits, or overflow, are replaced by equal ones that do not.

Each rule takes one node and its arguments and returns a better node or None. Sources:
Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 1.7 and 1.14; Blanchard,
Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021), algorithm 3.1.
"""

from __future__ import annotations

import sys
from fractions import Fraction

import sympy
from sympy.codegen.cfunctions import log1p

from symad.core.contents import fields_of, inner_graphs
from symad.core.graph import Graph, Node, Op, rebuild
from symad.core.questions import MaybeNode, Nodes, question
from symad.ops.arrays.softmax import ExponentialOp
from symad.ops.basic.arithmetic import (
    Add,
    ElementwiseOp,
    Mul,
    mul,
    signed_product,
    signed_sum,
)
from symad.ops.basic.sources import Constant, Source, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.stable.exponentials import of_exponentials
from symad.stable.overflows import within_range
from symad.stable.removable import without_cancellation
from symad.stable.rows import Rows
from symad.stable.shifts import without_shift


def stabilize(graph: Graph) -> Graph:
    """The graph with every rule applied, arguments first."""
    bodies: dict[Graph, Graph] = {}
    rows = Rows(last=True)

    def better_node(node: Node, args: Nodes) -> Node:
        return _stable_node(node, args, bodies, rows)

    made = rebuild(graph, {n: n for n in graph.input_nodes}, better_node)
    return within_range(Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report))


def _stable_node(node: Node, args: Nodes, bodies: dict[Graph, Graph], rows: Rows) -> Node:
    if not isinstance(node.op, (ElementwiseOp, Source)):
        inner = inner_graphs(node.op)
        for body in inner:
            if body not in bodies:
                bodies[body] = stabilize(body)
        if inner:
            changed = [bodies[v] if isinstance(v, Graph) else v for v in fields_of(node.op)]
            return Node.of(type(node.op)(*changed), args)
    better = stable(node.op, args)
    if better is None:
        better = node if args == node.args else Node.of(node.op, args)
    better = rows.better(better)
    if type(node.op) is Add:
        return without_cancellation(node, better) or better
    return better


@question
def stable(op: Op, args: Nodes) -> MaybeNode:
    """A numerically better node for ``op(*args)``, or None."""


@stable.dispatch
def keep(op: Op, args: Nodes) -> MaybeNode:
    """None: an op without a rule is not changed."""
    return None


def _terms(node: Node) -> list[tuple[int, Node]]:
    return list(zip(node.op.signs, node.args, strict=True)) if isinstance(node.op, Add) else [(1, node)]


@stable.dispatch
def stable_apply(op: Apply, args: Nodes) -> MaybeNode:
    """log(1 + x), and logarithms of exponentials."""
    made = of_exponentials(op, args, last=True)
    if made is not None or op.head is not sympy.log:
        return made
    (inside,) = args
    terms = _terms(inside)
    for k, (sign, term) in enumerate(terms):
        if len(terms) > 1 and sign == 1 and constant_value(term) == 1:
            return apply(log1p, signed_sum(terms[:k] + terms[k + 1 :]))
    return None


@stable.dispatch
def stable_add(op: Add, args: Nodes) -> MaybeNode:
    """Differences of logarithms; numbers beyond the floats."""
    made = of_exponentials(op, args)
    if made is not None:
        return made
    return _beyond_the_floats(list(zip(op.signs, args, strict=True)))


def _beyond_the_floats(terms: list[tuple[int, Node]]) -> Node | None:
    """N + Σ x = N (1 + Σ x/N) for an exact N larger than all floats: a later quotient may be finite again."""
    for k, (sign, term) in enumerate(terms):
        if _is_huge(term) and len(terms) > 1:
            value = constant_value(term)
            small, rest = constant(1 / Fraction(sign * value)), terms[:k] + terms[k + 1 :]
            one = (1, constant(1))
            part = signed_sum([one, *((s, mul(small, t)) for s, t in rest)])
            return Node.of(Mul((1, 1)), (constant(sign * value), part))  # one number, so that it may cancel
    return None


def _is_huge(node: Node) -> bool:
    if type(node.op) is not Constant:
        return False
    value = node.op.value
    return isinstance(value, (int, Fraction)) and not -MAX_FLOAT <= value <= MAX_FLOAT


MAX_FLOAT = int(sys.float_info.max)


@stable.dispatch
def stable_mul(op: Mul, args: Nodes) -> MaybeNode:
    """Quotients of exponentials; numbers beyond the floats."""
    inner = [part for factor in args if isinstance(factor.op, Mul) for part in factor.args]
    if any([part for part in inner if _is_huge(part)]):
        return signed_product(_flat(list(zip(op.powers, args, strict=True)), 1))
    return of_exponentials(op, args)


@stable.dispatch
def stable_softmax(op: ExponentialOp, args: Nodes) -> MaybeNode:
    """Softmax and log-softmax without a shift."""
    return without_shift(op, args)


def _flat(factors: list[tuple[int, Node]], depth: int) -> list[tuple[int, Node]]:
    """The factors of products among some factors, and of products in them."""
    found: list[tuple[int, Node]] = []
    for power_, factor in factors:
        inner = list(zip(factor.op.powers, factor.args, strict=True)) if isinstance(factor.op, Mul) else []
        flat = _flat([(power_ * p, f) for p, f in inner], depth - 1) if depth else []
        found.extend(flat or [(power_, factor)])
    return found
