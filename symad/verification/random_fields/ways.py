"""The ways to compare graphs in random prime fields that can find something, by what the graphs contain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import sympy

from symad.core.graph import Node, topological
from symad.ops.basic.sources import Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.random_fields.runs import PairResult, Sampler
from symad.verification.terms.depending import depending
from symad.verification.terms.discontinuities import SIGNS

Way = Callable[[Sampler], "list[PairResult]"]


def ways_of(outputs: Sequence[Node]) -> list[tuple[str, Way]]:
    """The ways, after the free one, that can find something in these graphs."""
    found: list[tuple[str, Way]] = []
    nodes = topological(outputs)
    if any(is_root_or_sign(n) for n in nodes):
        found.extend([("scattered", Sampler.scattered), ("exact", Sampler.exact)])
    if any(has_domain(n) for n in nodes):
        found.append(("inside", Sampler.inside))
    return found


def has_domain(node: Node) -> bool:
    """Whether a node is defined for positive arguments only."""
    return (isinstance(node.op, Apply) and node.op.head is sympy.log) or (
        is_root_or_sign(node) and not isinstance(node.op, Apply)
    )


def has_exponents_with_signs(outputs: Sequence[Node]) -> bool:
    """Whether exponents or angles have another value in each region, which splitting them would hide."""
    order = topological(outputs)
    signed = depending(outputs, lambda n: isinstance(n.op, Apply) and n.op.head in SIGNS)
    heads = (sympy.exp, sympy.cos, sympy.sin)
    return any(isinstance(n.op, Apply) and n.op.head in heads and n.args[0] in signed for n in order)


def is_root_or_sign(node: Node) -> bool:
    """Whether a node has a value of its own in each region: a root, a factor of Cholesky's, or a sign."""
    if isinstance(node.op, Pow):
        value = constant_value(node.args[1])
        return isinstance(value, (float, Fraction))
    return isinstance(node.op, Cholesky) or (isinstance(node.op, Apply) and node.op.head in SIGNS)


def odd_parts(units: Sequence[Fraction]) -> tuple[int, ...]:
    """The odd primes that divide orders of roots."""
    orders = [unit.denominator for unit in units if unit.denominator <= 64]
    return tuple(sorted({int(q) for order in orders for q in sympy.primefactors(order) if q > 2}))


def root_inputs(outputs: Sequence[Node]) -> dict[Node, int]:
    """Inputs of which roots are taken, and that are promised to be positive: they are drawn as powers."""
    found: dict[Node, int] = {}
    for node in topological(outputs):
        base = node.args[0] if isinstance(node.op, Pow) else node
        if base is node or not isinstance(base.op, Input):
            continue
        value = constant_value(node.args[1])
        is_root = isinstance(value, Fraction) and value.numerator == 1 and value.denominator <= 64
        if is_root and getattr(base.op.symbol, "is_nonnegative", None):
            found[base] = value.denominator
    return found
