"""Scalar SymPy expressions: their derivatives with symad's conventions, exact integers, and their walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from symad.errors import DerivativeError


class Share(sp.Function):
    """share(a, m, a_1, ..., a_k) = [a = m] / #{l : a_l = m}, with m the extremum of a_1..a_k.

    The derivative of an n-ary maximum or minimum with respect to the argument a: a k-way tie gives
    1/k to each. It is locally constant, so its own derivative is 0.
    """

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return 0: the share is constant wherever it is differentiable."""
        return sp.S.Zero


class _Maximum(sp.Function):
    """Max with `Share` as its derivative (SymPy's own gives a Heaviside per pair)."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return Share(self.args[argindex - 1], self, *self.args)


class _SharedMinimum(sp.Function):
    """Min with `Share` as its derivative."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return Share(self.args[argindex - 1], self, *self.args)


class _PiecewiseConstant(sp.Function):
    """A piecewise constant function (kind, argument): sign, floor, ceiling or Heaviside."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.S.Zero


_STEPS = {0: sp.sign, 1: sp.floor, 2: sp.ceiling, 3: sp.Heaviside}


def derivative(expr: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """∂expr/∂symbol for real values, with symad's conventions at kinks.

    A k-way tie in Max or Min gives 1/k to each argument; sign, floor, ceiling and Heaviside have
    derivative 0, so that DiracDelta never appears.

    Raises:
        DerivativeError: SymPy does not know the derivative of a function in ``expr``.
    """
    if not expr.has(symbol):
        return sp.S.Zero
    guarded = _swap(expr, {sp.Max: _Maximum, sp.Min: _SharedMinimum})
    for kind, step in _STEPS.items():
        guarded = guarded.replace(step, lambda *a, _kind=kind: _PiecewiseConstant(_kind, a[0]))
    result = guarded.diff(symbol)
    unknown = result.atoms(sp.Derivative, sp.Subs)
    if unknown:
        raise DerivativeError(
            f"the derivative of {expr} with respect to {symbol} contains {unknown.pop()}; "
            "give the function an fdiff method"
        )
    result = result.replace(_PiecewiseConstant, lambda kind, a: _STEPS[int(kind)](a))
    return _swap(result, {_Maximum: sp.Max, _SharedMinimum: sp.Min})


def _swap(expr: sp.Expr, classes: Mapping[type, type]) -> sp.Expr:
    for old, new in classes.items():
        expr = expr.replace(old, lambda *a, _new=new: _new(*a))
    return expr


class FloorDivide(sp.Function):
    """⌊a / n⌋ for an integer expression a and a positive integer n, in integer arithmetic."""

    is_integer = True

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return 0: the quotient is piecewise constant."""
        return sp.S.Zero


def exact_integers(expr: sp.Basic) -> sp.Basic:
    """The same expression without fractions of integers, whose rounding could cross an integer.

    ⌊i/3⌋ becomes `FloorDivide` (i, 3), and i/3 ≤ j becomes i − 3j ≤ 0.
    """

    def floors(step: sp.Expr) -> sp.Expr:
        sign = -1 if isinstance(step, sp.ceiling) else 1
        numerator, n = sp.fraction(sp.together(sign * step.args[0]))
        if n == 1 or not (n.is_Integer and numerator.is_integer):
            return step
        return sign * FloorDivide(sp.expand(numerator), n)

    def comparison(relation: sp.Basic) -> sp.Basic:
        difference = sp.together(relation.lhs - relation.rhs)
        numerator, n = sp.fraction(difference)
        if n == 1 or not (n.is_Integer and numerator.is_integer):
            return relation
        return relation.func(sp.expand(numerator), 0)

    expr = expr.replace(lambda e: isinstance(e, (sp.floor, sp.ceiling)), floors)
    return expr.replace(lambda e: isinstance(e, sp.core.relational.Relational), comparison)


def children(expr: sp.Basic) -> tuple[sp.Basic, ...]:
    """The operands of a node; a Piecewise gives value_1, condition_1, value_2, ... flat."""
    if isinstance(expr, sp.Piecewise):
        return tuple(part for pair in expr.args for part in pair.args)
    return tuple(expr.args)


def rebuild(expr: sp.Basic, operands: Sequence[sp.Basic]) -> sp.Basic:
    """The node with other operands, given as `children` gives them."""
    if isinstance(expr, sp.Piecewise):
        return sp.Piecewise(*zip(operands[::2], operands[1::2], strict=True))
    return expr.func(*operands)


def topological(exprs: Sequence[sp.Basic]) -> list[sp.Basic]:
    """Every distinct subexpression of ``exprs``, operands before users, without recursion."""
    seen: set[sp.Basic] = set()
    order: list[sp.Basic] = []
    stack = [(e, False) for e in reversed(exprs)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            order.append(expr)
        elif expr not in seen:
            seen.add(expr)
            stack.append((expr, True))
            stack.extend((c, False) for c in reversed(children(expr)) if c not in seen)
    return list(dict.fromkeys(order))


def constant(expr: sp.Basic) -> bool | float | None:
    """The Python number of a SymPy number or truth value, else None."""
    if expr is sp.true or expr is sp.false:
        return bool(expr)
    if isinstance(expr, sp.Integer):
        return int(expr)
    if isinstance(expr, (sp.Number, sp.NumberSymbol)):  # infinities included
        return float(expr)
    return None
