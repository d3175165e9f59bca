"""Difference quotients of a function by strict values: its derivative where a formula has no value.

A quotient counts if those to both sides, and those of a much shorter step, agree: at a kink or a jump they do
not. It is known to `TOLERANCE` only, and tells values apart that differ by more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from symad.core.claims import Derivative
from symad.core.graph import Node
from symad.numbers.ball_functions import to_mpmath
from symad.ops.basic.sources import symbol_of
from symad.verification.accept import Pair
from symad.verification.certificate.witness import digits_of
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.values.balls import VALUE, ball_values, precision

STEPS = (Fraction(1, 2**40), Fraction(1, 2**52))
BITS = 1200
TOLERANCE = arb(2) ** -20
"""The part of a quotient, or of 1, by which another value has to differ."""

Direction = Mapping[Node, Any]
"""For inputs by which a function is differentiated the rational components of a direction."""


@dataclass(frozen=True)
class SteadyQuotient:
    """A steady difference quotient."""

    value: arb

    def excludes(self, other: arb) -> bool:
        """Whether a number is certainly another one."""
        return bool(abs(self.value - other) > TOLERANCE * (1 + abs(self.value)))

    @property
    def text(self) -> str:
        """The digits that are known, as text."""
        with_digits = digits_of(to_mpmath(self.value))
        return f"{float(with_digits):.7g}"


@dataclass(frozen=True)
class DifferenceQuotients:
    """The difference quotients of the function that a pair is about, at a rational point."""

    pair: Pair
    point: Mapping[Node, Any]

    def of(self, index: tuple[int, ...]) -> SteadyQuotient | None:
        """The quotient that an element of the left side is claimed to be; None if it is not steady."""
        derivative = self.pair.comparison.derivative
        if derivative is None:
            return None
        ways = self._ways(derivative, index)
        if ways is None:
            return None
        along, weights = ways
        with precision(BITS):  # the differences are taken in this precision, too
            found = [self._along(along, weights, step) for step in STEPS]
            if found[0] is None or found[1] is None:
                return None
            (one, sides), (other, _) = found[0], found[1]
            size = 1 + abs(other)
            steady = abs(one - other) < TOLERANCE * size and sides < TOLERANCE * size
            return SteadyQuotient(other) if steady else None

    def _ways(self, d: Derivative, index: tuple[int, ...]) -> tuple[list[Direction], Any] | None:
        """The directions of differentiation, and the weights of the function's elements."""
        known = {symbol_of(n): n for n in self.point}
        x = [known[symbol_of(n)] for n in d.wrt if symbol_of(n) in known]
        v, w = ([self.point.get(known.get(symbol_of(n)) or n) for n in part] for part in (d.v, d.w))
        place, function = self.pair.place[1], self.pair.function
        if len(x) < len(d.wrt) or any(value is None for value in (*v, *w)):
            return None
        whole = w or [None] * len(function)

        def toward(direction: list[Any]) -> Direction:
            return dict(zip(x, direction, strict=True))

        match d.kind:
            case "gradient" | "pullback":
                return ([_unit(x[place], index)], whole) if place < len(x) else None
            case "jacobian":
                return [_unit_in(x, index[1])], _unit_of(function, index[0])
            case "hessian":
                return [_unit_in(x, index[0]), _unit_in(x, index[1])], whole
            case "pushforward":
                ones = [_unit_array(n, index) if k == place else _zeros(n) for k, n in enumerate(function)]
                return [toward(v)], ones
            case "slope":
                return [toward(v)], whole
            case "curvature":
                return [toward(v), toward(w)], [None] * len(function)
        return None

    def _along(self, along: list[Direction], weights: Any, step: Fraction) -> tuple[arb, arb] | None:
        """The quotient of a step, and by how much those to both sides differ; None where a value lacks."""
        h = arb(step.numerator) / step.denominator
        if len(along) == 1:
            near = [self._value([(along[0], k * step)], weights) for k in (-1, 0, 1)]
            if any(value is None for value in near):
                return None
            below, here, above = near
            return (above - below) / (2 * h), abs(above - 2 * here + below) / h
        one, other = along
        signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        corners = [self._value([(one, i * step), (other, j * step)], weights) for i, j in signs]
        if any(value is None for value in corners):
            return None
        a, b, c, e = corners
        return (a - b - c + e) / (4 * h * h), arb(0)

    def _value(self, moves: list[tuple[Direction, Fraction]], weights: Any) -> Any:
        """The weighted sum of the function's elements at a point that is moved; None without a value."""
        point = dict(self.point)
        for direction, step in moves:
            for node, part in direction.items():
                point[node] = point[node] + part * step
        values = ball_values(expand_definitions(self.pair.function), point, BITS)
        with precision(BITS):
            total = arb(0)
            for value, weight in zip(values, weights, strict=True):
                parts = np.ones(value.shape, dtype=object) if weight is None else np.asarray(weight)
                for ball, part in zip(value.ravel(), parts.ravel(), strict=True):
                    if part == 0:
                        continue
                    if ball.mark != VALUE or not ball.is_finite:
                        return None
                    total += ball.value * (arb(part.numerator) / part.denominator)
            return total


def _zeros(node: Node) -> Any:
    made = np.empty(tuple(map(int, node.shape)), dtype=object)
    made.fill(Fraction(0))
    return made


def _unit_array(node: Node, index: tuple[int, ...]) -> Any:
    made = _zeros(node)
    made[index] = Fraction(1)
    return made


def _unit(node: Node, index: tuple[int, ...]) -> Direction:
    """The direction of one element of an input."""
    made = _unit_array(node, index)
    return {node: made if node.shape else made[()]}


def _unit_in(nodes: list[Node], place: int) -> Direction:
    """The direction of one of all elements of some inputs."""
    for node in nodes:
        count = int(np.prod(node.shape)) if node.shape else 1
        if place < count:
            return _unit(
                node, tuple(int(k) for k in np.unravel_index(place, node.shape)) if node.shape else ()
            )
        place -= count
    raise IndexError(place)


def _unit_of(nodes: tuple[Node, ...], place: int) -> list[Any]:
    """The weights that take one of all elements of some nodes."""
    made = [_zeros(n) for n in nodes]
    for part in made:
        if place < part.size:
            part[np.unravel_index(place, part.shape) if part.shape else ()] = Fraction(1)
            return made
        place -= part.size
    raise IndexError(place)
