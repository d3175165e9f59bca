"""Powers whose exponents are no numbers: exp(e log b), but where e is an integer also for negative b.

x ** y is a real function for positive x only. With an integer n, x ** n is one for negative x too:

    b^n = σ exp(n log|b|),   σ = 1 for b > 0 and (−1)^n for b < 0,   (−1)^n = sign(cos(π n)).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite

import sympy

from symad.core.graph import Node, topological
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Add, Mul, add, mul, sub
from symad.ops.basic.shaping import ShapingOp, broadcast_to
from symad.ops.basic.sources import Dimension, Input, Iota, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select, select
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import exponential, logarithm, rational_power, sign
from symad.verification.terms.discontinuities import PowerOfJump, jumps
from symad.verification.terms.linear_terms import absolute, linear_terms, number
from symad.verification.values.constant_exponents import is_never_whole

CLOSED = {sympy.Abs, sympy.Max, sympy.Min, sympy.factorial, sympy.binomial}
"""Functions with integer values at integers."""


def general_power(base: Node, exponent: Node, basis: Basis) -> Node:
    """base ** exponent of nodes in the basis."""
    value = constant_value(exponent)
    if isinstance(value, (int, float, Fraction)) and isfinite(value):
        return rational_power(base, Fraction(value), basis)
    if isinstance(value, float):  # the power of an infinite exponent has no relations
        return apply(PowerOfJump, base, exponent)
    if isinstance(exponent.op, Select):
        condition, *branches = exponent.args
        return select(condition, *[general_power(base, b, basis) for b in branches])
    if constant_value(base) == 0 and basis.sign(exponent) == 1:
        return constant(0)
    if basis.may_vanish(base):  # 0 ** e has a value, log 0 has none
        return apply(PowerOfJump, base, exponent)
    if basis.sign(base) == 1 or (not jumps(exponent) and is_never_whole(exponent)):
        return exponential(mul(exponent, logarithm(base, basis)), basis)
    if not is_integer(exponent):
        return apply(PowerOfJump, base, exponent)
    size = exponential(mul(exponent, logarithm(absolute(base), basis)), basis)
    positive = mul(constant(Fraction(1, 2)), add(constant(1), sign(base, basis)))
    negative = mul(sub(constant(1), positive), parity(exponent))
    return mul(add(positive, negative), size)


def is_integer(node: Node) -> bool:
    """Whether all elements are integers, as far as structure tells."""
    found: dict[Node, bool] = {}
    for n in topological([node]):
        found[n] = _is_integer(n, [found[a] for a in n.args])
    return found[node]


def _is_integer(node: Node, parts: Sequence[bool]) -> bool:
    op = node.op
    if not node.args:
        return _is_integer_source(node)
    if isinstance(op, Apply):
        return fact(op.head).flat or (op.head in CLOSED and all(parts))
    if isinstance(op, Select):
        return all(parts[1:])
    if isinstance(op, Pow):
        k = number(node.args[1])
        return k is not None and k.denominator == 1 and k >= 0 and parts[0]
    closed = isinstance(op, (Add, ShapingOp)) or (isinstance(op, Mul) and -1 not in op.powers)
    return isinstance(op, Condition) or (closed and all(parts))


def _is_integer_source(node: Node) -> bool:
    if isinstance(node.op, Input):
        return bool(getattr(node.op.symbol, "is_integer", False))
    value = number(node)
    return isinstance(node.op, (Dimension, Iota)) or (value is not None and value.denominator == 1)


def parity(node: Node) -> Node:
    """(−1)^e of an integer e: the product of those of its terms with odd factors."""
    if isinstance(node.op, Select):
        condition, *branches = node.args
        return select(condition, *[parity(b) for b in branches])
    terms = linear_terms(node)
    if any(c.denominator > 1 or not is_integer(m) for c, m in terms):
        terms = [(Fraction(1), node)]
    odd = [m for c, m in terms if c % 2]
    return broadcast_to(mul(*[_parity_of_term(m) for m in odd]) if odd else constant(1), node.shape)


def _parity_of_term(m: Node) -> Node:
    value = number(m)
    if value is not None:
        return constant(-1 if value % 2 else 1)
    return apply(sympy.sign, apply(sympy.cos, mul(constant(sympy.pi), m)))
