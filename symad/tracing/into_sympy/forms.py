"""SymPy forms of sums, products, powers and functions: for numbers here, for arrays in `arrays`."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from symad.core.dims import Shape
from symad.tracing.into_sympy import arrays
from symad.tracing.into_sympy.arrays import inverted


def array_add(shape: Shape, signs: Sequence[int], terms: Sequence[sympy.Basic]) -> sympy.Basic:
    """The signed sum of the terms."""
    if shape:
        return arrays.add(shape, signs, terms)
    signed = [_negated(term) if sign == -1 else term for sign, term in zip(signs, terms, strict=True)]
    return signed[0] if len(signed) == 1 else sympy.Add(*signed, evaluate=False)


def _negated(form: sympy.Basic) -> sympy.Basic:
    """−form without distributing over a sum."""
    if isinstance(form, sympy.Number):
        return -form
    if isinstance(form, sympy.Mul) and isinstance(form.args[0], sympy.Number):
        return sympy.Mul(-form.args[0], *form.args[1:], evaluate=False)
    if isinstance(form, sympy.Mul):
        return sympy.Mul(sympy.S.NegativeOne, *form.args, evaluate=False)
    return sympy.Mul(sympy.S.NegativeOne, form, evaluate=False)


def array_mul(
    shape: Shape, coefficient: sympy.Expr, powers: Sequence[int], factors: Sequence[sympy.Basic]
) -> sympy.Basic:
    """The product of factors to powers ±1, with a rational coefficient in front."""
    if shape:
        return arrays.mul(shape, coefficient, powers, factors)
    signed = [inverted(f) if power == -1 else f for power, f in zip(powers, factors, strict=True)]
    if coefficient != 1:
        signed.insert(0, coefficient)
    return signed[0] if len(signed) == 1 else sympy.Mul(*signed, evaluate=False)


def array_pow(shape: Shape, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Basic:
    """The power."""
    return arrays.pow(shape, base, exponent) if shape else sympy.Pow(base, exponent, evaluate=False)


def array_apply(shape: Shape, head: type[sympy.Basic], forms: Sequence[sympy.Basic]) -> sympy.Basic:
    """The function, unevaluated; functions of arrays are left to `elementwise_form`."""
    if shape:
        return None
    try:
        return head(*forms, evaluate=False) if not hasattr(head, "unranged") else head.unranged(*forms)
    except TypeError:  # a head that does not accept such an argument
        return head(*forms)


def array_select(shape: Shape, condition: sympy.Basic, a: sympy.Expr, b: sympy.Expr) -> sympy.Basic:
    """A Piecewise; one in the last branch is flattened into it.

    SymPy moves a Piecewise inside a condition outwards, also out of a Lambda, where this is wrong: such a
    selection is represented by its op.
    """
    if shape or condition.has(sympy.Piecewise):
        return None
    rest = list(b.args) if isinstance(b, sympy.Piecewise) else [(b, True)]
    if b is sympy.nan:
        rest = []
    return sympy.Piecewise((a, condition), *rest, evaluate=False)
