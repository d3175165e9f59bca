"""Powers and functions of elements in index notation.

A function of one argument is an atom with the axes that its argument has. exp is split into the
exponentials of single networks, exp(Σ c N) = Π exp(N)^c; |u| = √u²; powers of products multiply
exponents, and from sums the common factor of all terms is taken out first; log of what is taken out is
known. An extreme along axes is an atom with the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import sympy

from symad.core.dims import Shape
from symad.core.graph import Node
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import Mul
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.verification.budget import OutOfBudget
from symad.verification.proof.index_networks import BOUND, DELTA, UNIT, Atom, Form, Network, Networks
from symad.verification.proof.index_notation import Forms, Written, index_form
from symad.verification.terms.linear_terms import number


@index_form.dispatch
def mul_index_form(op: Mul, y: Node, args: Forms, networks: Networks) -> Written:
    factors = [
        form if p == 1 else power_form(form, arg.shape, Fraction(-1), networks)
        for p, form, arg in zip(op.powers, args, y.args, strict=True)
    ]
    return product_form(factors, [arg.shape for arg in y.args], y.shape, networks)


def product_form(forms: Sequence[Form], shapes: Sequence[Shape], shape: Shape, networks: Networks) -> Form:
    """The elementwise product of arrays of one shape, or of these with scalars."""
    labels = [range(len(shape)) if own else () for own in shapes]
    return networks.contract(list(zip(forms, labels, strict=True)), range(len(shape)), dict(enumerate(shape)))


# ---- powers -------------------------------------------------------------------------------------


@index_form.dispatch
def pow_index_form(op: Pow, y: Node, args: Forms, networks: Networks) -> Written:
    exponent = number(y.args[1])
    if exponent is None:
        raise OutOfBudget("a power with a variable exponent has no form for all sizes")
    return power_form(args[0], y.args[0].shape, exponent, networks)


def power_form(form: Form, shape: Shape, exponent: Fraction, networks: Networks) -> Form:
    """Elementwise: a product of factors has its exponents multiplied, a sum becomes an atom."""
    if not form:
        raise OutOfBudget("a power of zero")
    whole = exponent.denominator == 1
    if len(form) == 1 and not form[0][1].dims and (whole or form[0][0] == 1):
        coefficient, network = form[0]
        if whole or (len(network.factors) == 1 and network.factors[0][2] == 1):
            factors = [(atom, at, e * exponent) for atom, at, e in network.factors]
            if all(atom != DELTA for atom, _, _ in factors):
                scale = coefficient ** int(exponent) if whole else Fraction(1)
                return networks.simplify(scale, factors, {})
    scale, common, rest = _common_factor(form, whole)
    known = networks.known([(-c, network) for c, network in rest], shape) if whole else None
    if known is not None and networks.known(rest, shape) is None:
        scale, rest = -scale, [(-c, network) for c, network in rest]
    atom = networks.atom("power", rest, shape, exponent)
    outside = [(a, at, e * exponent) for (a, at), e in common.items()]
    factor = networks.simplify(scale ** int(exponent) if whole else Fraction(1), outside, {})
    return product_form([factor, atom], [shape, shape], shape, networks)


def _common_factor(
    form: Form, whole: bool
) -> tuple[Fraction, dict[tuple[Atom, tuple[int, ...]], Fraction], Form]:
    """What all terms share, numbers and powers of factors, and the rest; only positive ones for roots."""
    powers = [
        {(a, at): e for a, at, e in network.factors if _is_outside(a, at, whole)} for _, network in form
    ]
    common = {key: min(p.get(key, Fraction(0)) for p in powers) for key in {k for p in powers for k in p}}
    common = {key: e for key, e in common.items() if e}
    scale = _content([c for c, _ in form]) if whole else Fraction(1)
    rest = [(c / scale, Network(_divided(network, common), network.dims)) for c, network in form]
    return scale, common, rest


def _is_outside(atom: Any, at: tuple[int, ...], whole: bool) -> bool:
    """Whether a factor may be taken out of a power of a sum."""
    return atom != DELTA and all(i < BOUND for i in at) and (whole or atom[0] == "exp")


def _content(numbers: Sequence[Fraction]) -> Fraction:
    return Fraction(gcd(*[c.numerator for c in numbers]), lcm(*[c.denominator for c in numbers]))


def _divided(
    network: Network, common: Mapping[tuple[Any, tuple[int, ...]], Fraction]
) -> tuple[tuple[Any, tuple[int, ...], Fraction], ...]:
    exponents = {(a, at): e for a, at, e in network.factors}
    for key, e in common.items():
        exponents[key] = exponents.get(key, Fraction(0)) - e
    return tuple((a, at, e) for (a, at), e in exponents.items() if e)


# ---- functions ----------------------------------------------------------------------------------


@index_form.dispatch
def apply_index_form(op: Apply, y: Node, args: Forms, networks: Networks) -> Written:
    """exp by terms, |u| and sign u by √u²; any other function of one argument is an atom."""
    if len(args) != 1:
        raise OutOfBudget(f"{op.head.__name__} of several arguments has no form for all sizes")
    (form,), shape = args, y.args[0].shape
    if op.head is sympy.exp:
        parts = [networks.atom("exp", [(Fraction(1), network)], shape, c) for c, network in form]
        one = networks.constant(1)
        return product_form([one, *parts], [(), *[shape] * len(parts)], shape, networks)
    if op.head in (sympy.Abs, sympy.sign):
        square = product_form([form, form], [shape, shape], shape, networks)
        half = Fraction(1 if op.head is sympy.Abs else -1, 2)
        root = networks.atom("power", square, shape, half)
        return root if op.head is sympy.Abs else product_form([form, root], [shape, shape], shape, networks)
    if op.head is sympy.log:
        return _log_form(form, shape, networks)
    return networks.atom(("function", op.head), form, shape)


def _log_form(form: Form, shape: Shape, networks: Networks) -> Form:
    """log(Π exp(u)^e · rest) = Σ e u + log(rest): of Σ exp(z_i − m) it is log Σ exp(z_i) − m."""
    _, common, rest = _common_factor(form, whole=False)
    exponents = [
        (e, networks.permuted(networks.named[atom[1]][1], at))
        for (atom, at), e in common.items()
        if isinstance(atom, tuple)  # each is ("exp", the name of u)
    ]
    inner = [] if rest == networks.constant(1) else networks.atom(("function", sympy.log), rest, shape)
    return networks.add([*exponents, (Fraction(1), inner)])


@index_form.dispatch
def extreme_index_form(op: Extreme, y: Node, args: Forms, networks: Networks) -> Written:
    """An atom with the axes that are kept, named after the whole array and the axes that disappear."""
    shape = y.args[0].shape
    number, order = networks.name(args[0], shape)
    kept = sorted((order[k], k) for k in range(len(shape)) if k not in op.axes)
    place = [k for k in range(len(shape)) if k not in op.axes]
    gone = tuple(sorted(order[k] for k in op.axes))
    at = tuple(UNIT if shape[k] == 1 else place.index(k) for _, k in kept)
    return networks.simplify(Fraction(1), [(("extreme", op.kind, gone, number), at, Fraction(1))], {})
