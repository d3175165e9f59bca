"""Functions written by other functions: tan by sin and cos, tanh by exp, Abs and maxima by sign, ...

Those that are formulas of others wherever they have values have these as facts. A rule with a condition, or
one that looks at its arguments, is a function registered by `aliased`. At fixed numbers some functions are
exact numbers: binomial(4, [0, 1, 2]) is [1, 4, 6]. SymPy computes such a value when an expression with
numbers is made; of an array of indices nobody has. The arguments are bounded, because SymPy's work cannot
be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import sympy

from symad.core.graph import Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.evaluation.scalar_definitions import definition_of, is_defined
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.arithmetic import Mul, add, div, mul, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import (
    exponential,
    logarithm,
    sign,
    sine_and_cosine,
    step,
    steps,
)
from symad.verification.rewriting.identities.infinities import is_constant
from symad.verification.terms.discontinuities import Rounded, jumps
from symad.verification.terms.exact_steps import exact_values
from symad.verification.terms.linear_terms import number, through
from symad.verification.values.constant_exponents import is_never_whole

# ---- the largest of several values, by signs of their differences --------------------------------

MAX_COMPARED_ARGUMENTS = 6
"""The maximum number of arguments of an extreme that are compared: whether one is never below another."""


def largest(args: Sequence[Node], basis: Basis) -> tuple[Node, list[Node]]:
    """The maximum, one argument after the other, and an indicator for each that none is larger.

    Arguments that another one exceeds everywhere never win.
    """
    kept = _undominated(args, basis)
    best, winning = _largest([args[k] for k in kept], basis)
    indicators = dict(zip(kept, winning, strict=True))
    return best, [indicators.get(k, constant(0)) for k in range(len(args))]


def _undominated(args: Sequence[Node], basis: Basis) -> list[int]:
    """The positions of the arguments that are not known to be below another one."""
    if not 2 < len(args) <= MAX_COMPARED_ARGUMENTS:
        return list(range(len(args)))
    below = {k for k, a in enumerate(args) for b in args if constant_value(sign(sub(a, b), basis)) == -1}
    return [k for k in range(len(args)) if k not in below]


def _largest(args: Sequence[Node], basis: Basis) -> tuple[Node, list[Node]]:
    one = constant(1)
    best, reaches, exceeds = args[0], [one], [one]
    for arg in args[1:]:
        gap = sub(arg, best)
        reach, exceed, beat = steps(gap, (1, 0, Fraction(1, 2)), basis)
        reaches.append(reach)
        exceeds.append(exceed)
        best = add(best, mul(beat, gap))
    indicators, rest = [], one
    for reach, exceed in zip(reversed(reaches), reversed(exceeds), strict=True):
        indicators.append(mul(reach, rest))
        rest = mul(rest, sub(one, exceed))
    return best, indicators[::-1]


def elementwise_extreme(args: Nodes, kind: str, y: Node, basis: Basis) -> Node:
    """Max or Min of several arguments."""
    turned = args if kind == "max" else tuple(sub(constant(0), a) for a in args)
    best, indicators = largest(turned, basis)
    basis.winners[y] = dict(zip(y.args, indicators, strict=True))
    if len(indicators) == 2:
        basis.opponents |= {(indicators[0], indicators[1]), (indicators[1], indicators[0])}
    return broadcast_to(best if kind == "max" else sub(constant(0), best), y.shape)


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


ALIASES |= {
    sympy.exp: lambda args, basis: exponential(args[0], basis),
    sympy.sin: lambda args, basis: sine_and_cosine(args[0], basis)[1],
    sympy.cos: lambda args, basis: sine_and_cosine(args[0], basis)[0],
    sympy.sign: lambda args, basis: sign(args[0], basis),
}


@aliased(sympy.log)
def log_alias(args: Nodes, basis: Basis) -> Node:
    """With a second argument, its base."""
    over = logarithm(args[0], basis)
    return div(over, logarithm(args[1], basis)) if len(args) == 2 else over


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


# ---- functions at fixed numbers as exact numbers -------------------------------------------------

COUNTING = (
    sympy.factorial, sympy.binomial, sympy.gamma, sympy.fibonacci, sympy.lucas, sympy.catalan, sympy.harmonic,
    sympy.polygamma,
)  # fmt: skip
"""Functions that are rational, or sums of a few known constants, at integers that are not negative."""

ROUNDING = (sympy.floor, sympy.ceiling, sympy.Mod)
"""Functions that are rational at all fractions."""

MAX_ELEMENTS, MAX_ARGUMENT = 256, 256
"""The maximum numbers of elements, and of numerators and denominators of arguments."""


def at_numbers(node: Node) -> Node | None:
    """A function of fixed numbers as an array of exact numbers; None if it is not one."""
    head = op_of(node, Apply).head
    known = exact_values(node.args, MAX_ELEMENTS) if head in COUNTING + ROUNDING else None
    if known is None or 0 in node.shape:
        return None
    columns = [np.broadcast_to(v, node.shape).ravel().tolist() for v in known]
    found = [_value(head, tuple(map(Fraction, arguments))) for arguments in zip(*columns, strict=True)]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    return pack_scalars(parts, node.shape) if node.shape else parts[0]


def _value(head: type[sympy.Basic], arguments: Sequence[Fraction]) -> Node | None:
    small = all(max(abs(v.numerator), v.denominator) <= MAX_ARGUMENT for v in arguments)
    if not small or (head not in ROUNDING and any(v < 0 for v in arguments)):
        return None
    if head is sympy.polygamma and arguments[0]:
        return None
    return _closed(head(*[sympy.Rational(v.numerator, v.denominator) for v in arguments]))


def _closed(value: sympy.Basic) -> Node | None:
    """A number as SymPy writes it: sums and products of fractions and known constants."""
    if isinstance(value, (sympy.Rational, sympy.NumberSymbol)):
        return constant(value)
    args = [part for part in map(_closed, value.args) if part is not None]
    if len(args) < len(value.args) or not isinstance(value, (sympy.Add, sympy.Mul)):
        return None
    return (add if isinstance(value, sympy.Add) else mul)(*args)
