"""Functions written by other functions: tan by sin and cos, tanh by exp, Abs by sign, ...

Those that are formulas of others wherever they have values have these as facts. A rule with a condition, or
one that looks at its arguments, is a function registered by `aliased`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import sympy

from symad.core.graph import Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.evaluation.scalar_definitions import definition_of, is_defined
from symad.ops.basic.arithmetic import Mul, div, mul, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import (
    exponential,
    logarithm,
    sign,
    sine_and_cosine,
    step,
)
from symad.verification.rewriting.identities.extremes import elementwise_extreme
from symad.verification.rewriting.identities.infinities import is_constant
from symad.verification.terms.discontinuities import Rounded, jumps
from symad.verification.terms.linear_terms import number, through
from symad.verification.values.constant_exponents import is_never_whole

Alias = Callable[[Nodes, Basis], Node]

INVERSE = {sympy.acosh: sympy.cosh, sympy.asinh: sympy.sinh, sympy.atanh: sympy.tanh}

ALIASES: dict[sympy.FunctionClass, Alias] = {}
"""For each head its rewriting, true at every real point; others may add theirs."""


BY_LOGARITHMS = {sympy.asinh, sympy.acosh, sympy.atanh}
"""Those defined by logarithms, where these are taken apart: sums of one logarithm are those of products."""


def alias(node: Node, args: Nodes, basis: Basis) -> Node:
    """A function node in the basis, from its arguments in the basis."""
    head = op_of(node, Apply).head
    if head in (sympy.Max, sympy.Min):
        return elementwise_extreme(args, "max" if head is sympy.Max else "min", node, basis)
    inner = node.args[0]
    if INVERSE.get(head) is getattr(inner.op, "head", head):  # acosh(cosh u) = |u|, asinh(sinh u) = u
        u = basis.rewritten(inner.args[0])
        return broadcast_to(mul(sign(u, basis), u) if head is sympy.acosh else u, node.shape)
    rule = ALIASES.get(head)
    if rule is not None:
        return broadcast_to(rule(args, basis), node.shape)
    if is_defined(head) and (basis.split or head not in BY_LOGARITHMS):
        return broadcast_to(_by_definition(head, args, basis), node.shape)
    if len(args) == 1:
        return through(args[0], lambda inner: apply(head, inner))
    return apply(head, *args)


def _by_definition(head: sympy.FunctionClass, args: Nodes, basis: Basis) -> Node:
    """The definition of a function; of one moved argument the definition first, then the move."""

    def expanded(*parts: Node) -> Node:
        inputs, meaning = definition_of(head, len(parts))
        (made,) = rebuild((meaning,), dict(zip(inputs, parts, strict=True)))
        return basis.rewritten(made)

    return through(args[0], expanded) if len(args) == 1 else expanded(*args)


def aliased(*heads: type[sympy.Basic]) -> Callable[[Alias], Alias]:
    """Register the rewriting of some heads."""

    def register(rule: Alias) -> Alias:
        for head in heads:
            ALIASES[head] = rule
        return rule

    return register


# ---- functions with rules -----------------------------------------------------------------------


@aliased(sympy.exp)
def exp_alias(args: Nodes, basis: Basis) -> Node:
    return exponential(args[0], basis)


@aliased(sympy.log)
def log_alias(args: Nodes, basis: Basis) -> Node:
    """With a second argument, its base."""
    over = logarithm(args[0], basis)
    return div(over, logarithm(args[1], basis)) if len(args) == 2 else over


@aliased(sympy.sin)
def sin_alias(args: Nodes, basis: Basis) -> Node:
    return sine_and_cosine(args[0], basis)[1]


@aliased(sympy.cos)
def cos_alias(args: Nodes, basis: Basis) -> Node:
    return sine_and_cosine(args[0], basis)[0]


@aliased(sympy.atan)
def atan_alias(args: Nodes, basis: Basis) -> Node:
    """Of a number over u, sign·π/2 − atan of the reciprocal."""

    def of(x: Node) -> Node:
        if not _is_reciprocal(x):
            return apply(sympy.atan, x)
        quarter = div(constant(sympy.pi), constant(2))
        return sub(mul(sign(x, basis), quarter), apply(sympy.atan, div(constant(1), x)))

    return through(args[0], of)


def _is_reciprocal(x: Node) -> bool:
    """Whether a node is a number divided by something."""
    if isinstance(x.op, Pow):
        exponent = number(x.args[1])
        return exponent is not None and exponent < 0
    if not isinstance(x.op, Mul):
        return False
    under = [a for p, a in zip(x.op.powers, x.args, strict=True) if p == -1 and number(a) is None]
    over = [a for p, a in zip(x.op.powers, x.args, strict=True) if p == 1 and number(a) is None]
    return bool(under) and all(map(_is_reciprocal, over))


# ---- signs and steps ----------------------------------------------------------------------------


@aliased(sympy.sign)
def sign_alias(args: Nodes, basis: Basis) -> Node:
    return sign(args[0], basis)


@aliased(sympy.Heaviside)
def heaviside_alias(args: Nodes, basis: Basis) -> Node:
    """With a second argument, the value at 0."""
    at_zero = number(args[1]) if len(args) == 2 else Fraction(1, 2)
    if at_zero is None:
        return apply(sympy.Heaviside, *args)
    return step(args[0], at_zero, basis)


@aliased(sympy.floor)
def floor_alias(args: Nodes, basis: Basis) -> Node:
    """⌊x⌋ + 1/2 is odd, but at integers: of what may be one on an open set ⌊x⌋ stays as it is."""

    def of(x: Node) -> Node:
        if jumps(x) or is_constant(x) or not is_never_whole(x):
            return apply(sympy.floor, x)
        return sub(apply(Rounded, x), constant(Fraction(1, 2)))

    return through(args[0], of)
