"""Stable rewrites: forms that lose digits, or overflow, are replaced by equal ones that do not.

Each rule looks at one node and its arguments and answers with a better node or None. Sources:
Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 1.7 and 1.14; Blanchard,
Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021), algorithm 3.1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
from sympy.codegen.cfunctions import expm1, log1p
from sympy.codegen.numpy_nodes import logaddexp

from symad.graph import Graph, Node, Op, rebuild
from symad.ops.arithmetic import Add, Mul, add, div, mul, neg, signed_product, signed_sum, sub
from symad.ops.contraction import Einsum
from symad.ops.elementwise import Apply, apply
from symad.ops.powers import Pow, power
from symad.ops.shaping import Broadcast
from symad.ops.softmax import logsumexp, softmax
from symad.ops.sources import constant, constant_value
from symad.questions import Nodes, question
from symad.scalar_functions import sigmoid


def stabilize(graph: Graph) -> Graph:
    """The graph with every rule applied, arguments first."""
    made = rebuild(graph.output_nodes, {}, _stable_node)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _stable_node(node: Node, args: Nodes) -> Node:
    better = stable(node.op, args)
    if isinstance(better, Node):
        return better
    return node if args == node.args else Node.of(node.op, args)


@question
def stable(op: Op, args: Nodes) -> Any:
    """A numerically better node for ``op(*args)``, or None."""


@stable.dispatch
def keep(op: Op, args: Nodes) -> Any:
    """An op without a rule stays."""
    return None


def head_of(node: Node) -> Any:
    """The SymPy head of an `Apply` node, else None."""
    return node.op.head if isinstance(node.op, Apply) else None


def _terms(node: Node) -> list[tuple[int, Node]]:
    return list(zip(node.op.signs, node.args, strict=True)) if isinstance(node.op, Add) else [(1, node)]


@stable.dispatch
def stable_apply(op: Apply, args: Nodes) -> Any:
    """log(1 + x) and its kin: log1p, softplus, log σ(x) = −log(1 + exp(−x)), and log-sum-exp."""
    if op.head is not sympy.log:
        return None
    (inside,) = args
    if head_of(inside) is sigmoid:
        return neg(apply(logaddexp, constant(0), neg(inside.args[0])))
    twice = isinstance(inside.op, Mul) and inside.op.powers == (1, 1) and constant_value(inside.args[0]) == 2
    if twice and head_of(inside.args[1]) is sympy.cosh:  # exp(u) + exp(−u)
        (u,) = inside.args[1].args
        return apply(logaddexp, u, neg(u))
    if isinstance(inside.op, Add):
        return _log_of_sum(inside)
    if isinstance(inside.op, Einsum) and len(inside.args) == 1 and head_of(inside.args[0]) is sympy.exp:
        return _log_sum_exp(inside)
    return None


def _log_of_sum(inside: Node) -> Node | None:
    terms = _terms(inside)
    if len(terms) == 2 and all(sign == 1 for sign, _ in terms):
        exponents = [_exponent(term) for _, term in terms]
        if exponents[0] is not None and exponents[1] is not None:
            return apply(logaddexp, *(e for e in exponents if e is not None))
    for k, (sign, term) in enumerate(terms):
        if sign == 1 and constant_value(term) == 1:
            return apply(log1p, signed_sum(terms[:k] + terms[k + 1 :]))
    return None


def _exponent(term: Node) -> Node | None:
    """u where the term is exp(u), and 0 where it is 1."""
    if head_of(term) is sympy.exp:
        return term.args[0]
    return constant(0) if constant_value(term) == 1 else None


def _log_sum_exp(inside: Node) -> Node | None:
    """log Σ exp(x) over some axes as one op, which subtracts the largest x."""
    axes = _summed_axes(inside)
    return None if axes is None else logsumexp(inside.args[0].args[0], axes)


def _summed_axes(total: Node) -> tuple[int, ...] | None:
    """The axes of a plain sum over axes that keeps the others in order; None for anything else."""
    spec = total.op
    if not isinstance(spec, Einsum) or len(spec.inputs) != 1:
        return None
    (labels,) = spec.inputs
    kept = tuple(label for label in labels if label in spec.output)
    if len(set(labels)) != len(labels) or kept != spec.output:
        return None
    return tuple(k for k, label in enumerate(labels) if label not in spec.output)


@stable.dispatch
def stable_add(op: Add, args: Nodes) -> Any:
    """exp(x) − 1, 1 − cos(x), x² − y², exp(x) ± exp(−x)."""
    terms = list(zip(op.signs, args, strict=True))
    if len(terms) == 2 and op.signs[0] != op.signs[1]:
        plus, minus = (t for _, t in sorted(terms, key=lambda pair: -pair[0]))
        pair = _difference(plus, minus)
        if pair is not None:
            return pair
    if len(terms) == 2 and op.signs == (1, 1) and _is_reciprocal(*args):
        return mul(constant(2), apply(sympy.cosh, args[0].args[0]))
    return None


def _is_reciprocal(a: Node, b: Node) -> bool:
    """Whether two nodes are exp(u) and exp(−u)."""
    if head_of(a) is not sympy.exp or head_of(b) is not sympy.exp:
        return False
    u, v = a.args[0], b.args[0]
    return neg(u) is v or neg(v) is u


def _difference(plus: Node, minus: Node) -> Node | None:
    """A cancellation-free form of ``plus − minus``."""
    if head_of(plus) is sympy.exp and _is_reciprocal(plus, minus):
        return mul(constant(2), apply(sympy.sinh, plus.args[0]))
    if head_of(plus) is sympy.exp and constant_value(minus) == 1:
        return apply(expm1, plus.args[0])
    if constant_value(plus) == 1 and head_of(minus) is sympy.exp:
        return neg(apply(expm1, minus.args[0]))
    if constant_value(plus) == 1 and head_of(minus) is sympy.cos:
        half = div(minus.args[0], constant(2))
        return mul(constant(2), power(apply(sympy.sin, half), constant(2)))
    if _is_square(plus) and _is_square(minus):
        a, b = plus.args[0], minus.args[0]
        return mul(sub(a, b), add(a, b))
    if (_is_root(plus) and _is_root(minus)) or (_is_root(plus) and constant_value(minus) == 1):
        return _root_difference(plus, minus)
    return None


def _is_square(node: Node) -> bool:
    return isinstance(node.op, Pow) and constant_value(node.args[1]) == 2


def _is_root(node: Node) -> bool:
    return isinstance(node.op, Pow) and constant_value(node.args[1]) == Fraction(1, 2)


def _root_difference(plus: Node, minus: Node) -> Node | None:
    """√u − √v = (u − v)/(√u + √v) where u − v is simple: √(1 + x) − 1 = x/(√(1 + x) + 1)."""
    inside = minus.args[0] if _is_root(minus) else constant(1)
    terms = _terms(plus.args[0])
    for k, (sign, term) in enumerate(terms):
        if sign == 1 and term is inside and len(terms) > 1:
            return div(signed_sum(terms[:k] + terms[k + 1 :]), add(plus, minus))
    return None


@stable.dispatch
def stable_mul(op: Mul, args: Nodes) -> Any:
    """1/(1 + exp(u)) as σ(−u), which never overflows; exp(u)/(1 + exp(u)) likewise; sinh/cosh; softmax."""
    factors = list(zip(op.powers, args, strict=True))
    met = _tanh(factors)
    if met is not None:
        return met
    quotient = _softmax(factors)
    if quotient is not None:
        return quotient
    for k, (power_, factor) in enumerate(factors):
        u = _logistic_denominator(factor) if power_ == -1 else None
        if u is None:
            continue
        rest = factors[:k] + factors[k + 1 :]
        for j, (other, numerator) in enumerate(rest):
            if other == 1 and head_of(numerator) is sympy.exp and numerator.args[0] is u:
                return signed_product([*rest[:j], *rest[j + 1 :], (1, apply(sigmoid, u))])
        return signed_product([*rest, (1, apply(sigmoid, neg(u)))])
    return None


def _softmax(factors: list[tuple[int, Node]]) -> Node | None:
    """exp(x)/Σ exp(x), the sum repeated along its axes (or over all of them), as one op."""
    for k, (under, total) in enumerate(factors):
        inner = total.args[0] if isinstance(total.op, Broadcast) else total
        axes = _summed_axes(inner) if under == -1 else None
        if axes is None or head_of(inner.args[0]) is not sympy.exp:
            continue
        kept = tuple(a for a in range(len(inner.args[0].shape)) if a not in axes)
        if isinstance(total.op, Broadcast) and total.op.axes != kept:
            continue
        for j, (over, numerator) in enumerate(factors):
            if over == 1 and numerator is inner.args[0]:
                rest = [pair for i, pair in enumerate(factors) if i not in (j, k)]
                return signed_product([*rest, (1, softmax(numerator.args[0], axes))])
    return None


def _logistic_denominator(node: Node) -> Node | None:
    """u where the node is 1 + exp(u)."""
    if isinstance(node.op, Add) and node.op.signs == (1, 1) and constant_value(node.args[0]) == 1:
        return node.args[1].args[0] if head_of(node.args[1]) is sympy.exp else None
    return None


def _tanh(factors: list[tuple[int, Node]]) -> Node | None:
    """sinh(u)/cosh(u)^k as tanh(u)/cosh(u)^(k − 1), and (exp(u) − 1)/(1 + exp(u)) as tanh(u/2)."""
    parts = [a for _, f in factors for a in (f, *(f.args if isinstance(f.op, Mul) else ()))]
    if not any(head_of(a) in (sympy.sinh, expm1) for a in parts):
        return None
    factors = _flat(factors, 3)
    for k, (over, numerator) in enumerate(factors):
        head = head_of(numerator) if over == 1 else None
        if head not in (sympy.sinh, expm1):
            continue
        u = numerator.args[0]
        whole = apply(sympy.tanh, u if head is sympy.sinh else div(u, constant(2)))
        under = apply(sympy.cosh, u) if head is sympy.sinh else add(constant(1), apply(sympy.exp, u))
        for j, (power_, factor) in enumerate(factors):
            rest = _divided(factor, under) if power_ == -1 else None
            if rest is not None:
                left = [pair for i, pair in enumerate(factors) if i not in (j, k)]
                return signed_product([*left, (1, whole), (-1, rest)])
    return None


def _flat(factors: list[tuple[int, Node]], depth: int) -> list[tuple[int, Node]]:
    """The factors of products among some factors, and of products in them."""
    found: list[tuple[int, Node]] = []
    for power_, factor in factors:
        inner = list(zip(factor.op.powers, factor.args, strict=True)) if isinstance(factor.op, Mul) else []
        flat = _flat([(power_ * p, f) for p, f in inner], depth - 1) if depth else []
        found.extend(flat or [(power_, factor)])
    return found


def _divided(factor: Node, by: Node) -> Node | None:
    """``factor/by`` for the node itself or an integer power of it."""
    if factor is by:
        return constant(1)
    exponent = constant_value(factor.args[1]) if isinstance(factor.op, Pow) else None
    if isinstance(exponent, int) and exponent > 1 and factor.args[0] is by:
        return power(by, constant(exponent - 1))
    return None
