"""Derivatives by parameters without a known formula: ∂γ(s, x)/∂s, ζ'(s), ∂₂F₁/∂a.

Each function f(p_1, ..., p_k, x) has a companion f^(m_1, ..., m_k), the mixed derivative of order m_j by
parameter p_j, whose orders are its first arguments. Its values come from numerical differentiation of f at
more than twice the requested digits. Its derivatives by parameters are companions again; the derivative by x
follows from the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import sympy
from sympy.core.function import ArgumentIndexError

from symad.core.arrays import Number
from symad.core.graph import Node, op_of, rebuild
from symad.core.questions import Tangent
from symad.errors import DerivativeError
from symad.facts.functions import state
from symad.numbers.number_domains import HighPrecision
from symad.ops.basic.sources import constant, constant_value, input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.sympy_functions.probability import gammainc, gammaincc, stdtr
from symad.sympy_functions.special_functions import (
    SpecialFunction,
    hyp0f1,
    hyp1f1,
    hyp2f1,
    polylog_slope,
)

PARAMETERS: dict[sympy.FunctionClass, tuple[int, ...]] = {
    sympy.lowergamma: (0,), sympy.uppergamma: (0,), gammainc: (0,), gammaincc: (0,), stdtr: (0,),
    sympy.betainc: (0, 1), sympy.betainc_regularized: (0, 1),
    sympy.zeta: (0,), sympy.polylog: (0,), polylog_slope: (1,), sympy.expint: (0,),
    hyp0f1: (0,), hyp1f1: (0, 1), hyp2f1: (0, 1, 2),
}  # fmt: skip
"""Functions that are analytic in arguments by which they have no closed derivative."""


class ParameterDerivative(SpecialFunction):
    """∂^(m_1 + ... + m_k) f/∂p_1^m_1 ... ∂p_k^m_k; the first k arguments are the orders."""

    of: type[sympy.Basic] | None = None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The companion of the next order, by a parameter."""
        positions = PARAMETERS[self.of]
        place = argindex - 1 - len(positions)
        if place not in positions:
            raise ArgumentIndexError(self, argindex)
        orders = list(self.args)
        orders[positions.index(place)] += 1
        return self.func(*orders)


def high_precision_value(head: type[sympy.Basic], values: Sequence[Any]) -> Number:
    """The derivative at mpmath numbers, to the working precision."""
    positions, domain = PARAMETERS[head], HighPrecision()
    orders, args = [int(v) for v in values[: len(positions)]], list(values[len(positions) :])

    def moved(*parameters: Number) -> Number:
        for place, value in zip(positions, parameters, strict=True):
            args[place] = value
        return domain.apply(head, *args)

    return mpmath.diff(moved, tuple(args[p] for p in positions), tuple(orders))


def _companion(head: type[sympy.Basic]) -> type[ParameterDerivative]:
    made = type(f"{head.__name__}_derivative", (ParameterDerivative,), {"of": head, "__module__": __name__})
    state(
        made,
        f"symad.special_derivatives.{made.__name__}",
        digits=lambda *values: high_precision_value(head, values),
    )
    return made


COMPANIONS: dict[type[sympy.Basic], type[ParameterDerivative]] = {
    head: _companion(head) for head in PARAMETERS
}
"""The derivatives of each function by its parameters."""


Partial = Callable[[Node, int], Tangent]
"""∂y/∂x_i of a node y = head(x_1, ...)."""


def by_parameter(y: Node, i: int, partial: Partial) -> Node | None:
    """∂y/∂x_i if x_i is a parameter, or y a derivative by parameters; None if there is a formula.

    ``partial`` provides the formulas.
    """
    head, args = op_of(y, Apply).head, y.args
    if i in PARAMETERS.get(head, ()):
        orders = [constant(int(place == i)) for place in PARAMETERS[head]]
        return apply(COMPANIONS[head], *orders, *args)
    if not (isinstance(head, type) and issubclass(head, ParameterDerivative)):
        return None
    positions = PARAMETERS[head.of]
    count = len(positions)
    if i < count:
        raise DerivativeError(f"{head.__name__} has no derivative by argument {i + 1}, the order of one")
    if i - count not in positions:
        return _along_argument(y, i - count, partial)
    orders = [
        constant(int(constant_value(order)) + int(place == i - count))
        for order, place in zip(args, positions, strict=False)
    ]
    return apply(head, *orders, *args[count:])


def _along_argument(y: Node, i: int, partial: Partial) -> Node:
    """∂/∂x_i of a derivative by parameters: the same derivative of the formula for ∂f/∂x_i."""
    from symad.transforms.tangents import dense, push

    head = op_of(y, Apply).head.of
    positions = PARAMETERS[head]
    orders, args = y.args[: len(positions)], y.args[len(positions) :]
    inputs = [input_node(sympy.Dummy(f"x{k}", real=True)) for k in range(len(args))]
    slope = partial(apply(head, *inputs), i)
    assert isinstance(slope, Node)
    for order, place in zip(orders, positions, strict=True):
        for _ in range(int(constant_value(order))):
            (tangent,) = push([slope], {inputs[place]: constant(1)})
            slope = dense(tangent, slope)
    return rebuild((slope,), dict(zip(inputs, args, strict=True)))[0]


def is_numerical(node: Node) -> bool:
    """True if a node is a derivative whose values come from numerical differentiation."""
    head = getattr(node.op, "head", None)
    return isinstance(head, type) and issubclass(head, ParameterDerivative)
