"""The SymPy forms of the ops of `symad.ops.elementwise`."""

from __future__ import annotations

import sympy

from symad.core.graph import Node
from symad.core.questions import Form, Forms, sympy_form
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import constant_value, is_exact
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import LOGIC, RELATIONS, Compare, Logic, Select
from symad.ops.elementwise.undefined import Undefined, elements_of
from symad.tracing.into_sympy.forms import array_add, array_apply, array_mul, array_pow, array_select


@sympy_form.dispatch
def apply_sympy(op: Apply, y: Node, forms: Forms) -> Form:
    return array_apply(y.shape, op.head, forms)


@sympy_form.dispatch
def add_sympy(op: Add, y: Node, forms: Forms) -> Form:
    return array_add(y.shape, op.signs, forms)


@sympy_form.dispatch
def mul_sympy(op: Mul, y: Node, forms: Forms) -> Form:
    """Integer factors of numerator and denominator become one rational coefficient in front."""
    coefficient = sympy.S.One
    powers, factors = [], []
    for power_, arg, form in zip(op.powers, y.args, forms, strict=True):
        if is_exact(constant_value(arg)) and form != 0:
            coefficient *= form**power_
        else:
            powers.append(power_)
            factors.append(form)
    return array_mul(y.shape, coefficient, powers, factors)


@sympy_form.dispatch
def pow_sympy(op: Pow, y: Node, forms: Forms) -> Form:
    return array_pow(y.shape, forms[0], forms[1])


@sympy_form.dispatch
def compare_sympy(op: Compare, y: Node, forms: Forms) -> Form:
    return array_apply(y.shape, RELATIONS[op.relation], forms)


@sympy_form.dispatch
def logic_sympy(op: Logic, y: Node, forms: Forms) -> Form:
    return array_apply(y.shape, LOGIC[op.kind], forms)


@sympy_form.dispatch
def select_sympy(op: Select, y: Node, forms: Forms) -> Form:
    """Nested selections in the last branch become one Piecewise."""
    condition, a, b = forms
    return array_select(y.shape, condition, a, sympy.nan if isinstance(y.args[2].op, Undefined) else b)


@sympy_form.dispatch
def undefined_sympy(op: Undefined, y: Node, forms: Forms) -> Form:
    """A Piecewise with value 0 if its conditions contain all its inputs; otherwise the op is wrapped."""
    if set(y.args[1:]) != set(elements_of(y.args[0])):
        return None
    return array_select(y.shape, forms[0], sympy.S.Zero, sympy.nan)
