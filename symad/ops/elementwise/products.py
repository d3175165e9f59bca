"""The product rule; products with gamma functions have slopes that overflow only where they do.

For a product y with a factor Γ(u), the slope is y Σ f'/f over the factors whose slope is a multiple of
themselves, Γ' = Γ ψ, exp' = exp: it is again a product with y, and no sum of such products is multiplied by
another factor. Derivatives of every order are then y times sums of ψ, and y is computed once, by logarithms
where it must be (`symad.stable.overflows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import sympy

from symad.core.graph import ZERO, Node
from symad.core.interning import WeakMemo
from symad.core.questions import Tangent, Tangents, jvp
from symad.ops.basic.arithmetic import (
    SINGLE,
    Add,
    Mul,
    add_tangents,
    div,
    mul,
    neg,
    signed_product,
    signed_sum,
    tangent_of_shape,
)
from symad.ops.basic.sources import Constant, constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Select, select

GAMMAS = (sympy.gamma, sympy.factorial, sympy.binomial, sympy.beta)
"""Functions that overflow before products do that hold them."""

MIN_EXPONENT = 64
"""Powers with a smaller number as exponent overflow for few values of the base."""

DEPTH = 6
"""Factors that are nested deeper are not looked for."""


@jvp.dispatch
def mul_jvp(op: Mul, y: Node, tangents: Tangents) -> Tangent:
    """Product rule. For y = n/d: y_dot = (n_dot − y d_dot)/d; otherwise by the other factors' products."""
    if _is_steep(y):
        return tangent_of_shape(_steep_tangent(op, y, tangents), y.shape)
    terms: list[Tangent] = []
    others = _products_of_others(op, y) if len(y.args) > 2 else None
    for i, tangent in enumerate(tangents):
        if not isinstance(tangent, Node):
            continue
        if op.powers[i] == -1:
            # d(1/x) = −y/x, in terms of the value y, so that nothing is computed twice
            terms.append(neg(signed_product(((1, y), (1, tangent), (-1, y.args[i])))))
        elif others is None:
            rest = [(op.powers[j], y.args[j]) for j in range(len(y.args)) if j != i]
            terms.append(signed_product([*rest, (1, tangent)]))
        else:
            terms.append(mul(others[i], tangent))
    return tangent_of_shape(add_tangents(terms), y.shape)


_OTHERS: WeakMemo[Node, list[Node]] = WeakMemo()


def _products_of_others(op: Mul, y: Node) -> list[Node]:
    """For each factor the product of all the others, in 3k products, from prefixes and suffixes."""
    known = _OTHERS.get(y)
    if known is not None:
        return known
    factors = list(zip(op.powers, y.args, strict=True))
    before = [constant(1)]
    for k, arg in factors[:-1]:
        before.append(signed_product(((1, before[-1]), (k, arg))))
    after = constant(1)
    others = []
    for k in reversed(range(len(factors))):
        others.append(mul(before[k], after))
        power_, arg = factors[k]
        after = signed_product(((power_, arg), (1, after)))
    _OTHERS[y] = others[::-1]
    return _OTHERS[y]


# ---- products with gamma functions ----------------------------------------------------------------


_STEEP: WeakMemo[Node, bool] = WeakMemo()


def _is_steep(y: Node) -> bool:
    """Whether a product holds a gamma function or a large number; products in it have been asked before."""
    bases = [a.args[0] if type(a.op) is Pow else a for a in y.args]
    found = any([_STEEP.get(a) is not None or is_gamma(a) or is_large(a) for a in bases])
    if found:
        _STEEP[y] = True
    return found


def is_gamma(node: Node) -> bool:
    """Whether a node is a gamma function."""
    return type(node.op) is Apply and node.op.head in GAMMAS


def is_large(node: Node) -> bool:
    """Whether a node is an exact number that is no float in single precision, or whose reciprocal is none."""
    value = constant_value(node) if type(node.op) is Constant else None
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        return False
    return max(abs(value.numerator), value.denominator) > SINGLE


def _steep_tangent(op: Mul, y: Node, tangents: Tangents) -> Tangent:
    """y Σ f_dot/f, and for factors whose slope is no multiple of themselves f_dot times the others."""
    factors = list(zip(op.powers, y.args, strict=True))
    rates: list[tuple[int, Node]] = []
    rest: list[tuple[int, Node]] = []
    for k, (sign_of_f, f) in enumerate(factors):
        tangent = tangents[k]
        for sign, term in _terms(tangent) if isinstance(tangent, Node) else ():
            rate = _over(term, f, DEPTH)
            if rate is None and sign_of_f == 1:
                rest.append((sign, signed_product([*factors[:k], (1, term), *factors[k + 1 :]])))
            else:
                rates.append((sign * sign_of_f, rate or div(term, f)))
    terms = [(1, mul(y, signed_sum(rates)))] if rates else []
    return signed_sum([*terms, *rest]) if terms or rest else ZERO


def _terms(node: Node) -> Iterator[tuple[int, Node]]:
    """The terms of a sum that grows, and of such sums in products and in selections of 0."""
    if isinstance(node.op, Add) and _is_growing(node):
        for sign, arg in zip(node.op.signs, node.args, strict=True):
            yield from ((sign * s, term) for s, term in _terms(arg))
        return
    for k in _factors(node):
        parts = list(_terms(node.args[k])) if _is_growing(node.args[k]) else []
        if len(parts) > 1:
            for sign, part in parts:
                made = node.over((*node.args[:k], part, *node.args[k + 1 :]))
                yield from ((sign * s, term) for s, term in _terms(made))
            return
    yield 1, node


def _over(term: Node, f: Node, depth: int) -> Node | None:
    """The quotient of a product and a factor in it; None without such."""
    if term is f:
        return constant(1)
    n = constant_value(f.args[1]) if isinstance(f.op, Pow) else None
    if isinstance(n, int):
        once = _over(term, f.args[0], depth)
        return None if once is None else _over(once, power(f.args[0], constant(n - 1)), depth)
    for k in _factors(term) if depth else ():
        rate = _over(term.args[k], f, depth - 1)
        if rate is not None:
            args = [*term.args[:k], rate, *term.args[k + 1 :]]
            if isinstance(term.op, Mul):
                return signed_product(zip(term.op.powers, args, strict=True))
            return select(*args)
    return None


def _factors(node: Node) -> list[int]:
    """The positions of the factors of a product; of a selection, that of a branch beside which there is 0."""
    if isinstance(node.op, Mul):
        return [k for k, sign in enumerate(node.op.powers) if sign == 1]
    zeros = [constant_value(a) == 0 for a in node.args[1:]] if isinstance(node.op, Select) else []
    return [k for k, other in enumerate(zeros[::-1], 1) if other]


_GROWING: WeakMemo[Node, bool] = WeakMemo()


def _is_growing(node: Node) -> bool:
    """See `_grows`; products of many factors ask it of each of them again and again."""
    known = _GROWING.get(node)
    if known is None:
        known = _GROWING[node] = _grows(node, DEPTH)
    return known


def _grows(node: Node, depth: int) -> bool:
    """Whether a node holds an exponential, a power with a variable exponent or a gamma function."""
    op = node.op
    if isinstance(op, Pow):
        exponent = constant_value(node.args[1])
        steep = exponent is None or (isinstance(exponent, int) and exponent >= MIN_EXPONENT)
        return steep or _grows(node.args[0], depth)
    if isinstance(op, Apply):
        return op.head is sympy.exp or is_gamma(node)
    return depth > 0 and isinstance(op, (Add, Mul, Select)) and any(_grows(a, depth - 1) for a in node.args)
