"""Bounds of the elements of an array, as far as the graph determines them.

Rounding is monotone, so bounds that are floats themselves, such as 0 and 1, also hold for the computed
values: 1 − σ(x) and 1 − tanh(x)² are never negative. Bounds say nothing about elements that are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, isnan, prod
from typing import Any

import sympy

from symad.core.graph import Node, op_of, topological
from symad.facts.functions import fact
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.softmax import Softmax
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Eye, Input, Iota, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow

Range = tuple[float, float]

ANY: Range = (-inf, inf)
POSITIVE: Range = (0.0, inf)
UNIT: Range = (0.0, 1.0)
SYMMETRIC: Range = (-1.0, 1.0)


def ranges(outputs: Iterable[Node]) -> dict[Node, Range]:
    """Bounds of the elements of all nodes that the outputs depend on."""
    found: dict[Node, Range] = {}
    for node in topological(outputs):
        rule = RULES.get(type(node.op))
        low, high = rule(node, [found[a] for a in node.args]) if rule else ANY
        found[node] = (-inf if isnan(low) else low, inf if isnan(high) else high)
    return found


def hull(parts: Iterable[Range]) -> Range:
    """The smallest range that contains all the given ranges."""
    lows, highs = zip(*parts, strict=True)
    return min(lows), max(highs)


def times(one: Range, other: Range) -> Range:
    """The range of products; 0 times anything is 0."""
    return hull((p, p) for p in (a * b if a and b else 0.0 for a in one for b in other))


def input_range(node: Node, args: list[Range]) -> Range:
    """The range that the assumptions on the symbol imply."""
    symbol = symbol_of(node)
    low = 0.0 if getattr(symbol, "is_nonnegative", None) else -inf
    return low, 0.0 if getattr(symbol, "is_nonpositive", None) else inf


def constant_range(node: Node, args: list[Range]) -> Range:
    """The number; if it is not a float, all numbers of its sign."""
    value = op_of(node, Constant).value
    number = float(value)
    if number == value:
        return number, number
    return (0.0, inf) if value > 0 else (-inf, 0.0)


def array_constant_range(node: Node, args: list[Range]) -> Range:
    """The smallest and the largest element."""
    array = op_of(node, ArrayConstant).array
    return (float(array.min()), float(array.max())) if array.size else UNIT


def sum_range(node: Node, args: list[Range]) -> Range:
    """The sum of the arguments' ranges."""
    signs = op_of(node, Add).signs
    bounds = [r if s == 1 else (-r[1], -r[0]) for s, r in zip(signs, args, strict=True)]
    return sum(b[0] for b in bounds), sum(b[1] for b in bounds)


def product_range(node: Node, args: list[Range]) -> Range:
    """The product of the arguments' ranges; an even number of equal factors is at least 0."""
    powers = op_of(node, Mul).powers
    factors: dict[tuple[Node, int], int] = {}
    for arg, power in zip(node.args, powers, strict=True):
        factors[arg, power] = factors.get((arg, power), 0) + 1
    known = dict(zip(node.args, args, strict=True))
    total: Range = (1.0, 1.0)
    for (arg, power), count in factors.items():
        bounds = known[arg] if power == 1 else reciprocal(known[arg])
        total = times(total, powered(bounds, count))
    return total


def powered(bounds: Range, exponent: int) -> Range:
    """The range of a power with a positive integer exponent."""
    ends = [float(b) ** exponent if abs(b) < inf else (b if exponent % 2 else inf) for b in bounds]
    if exponent % 2:
        return ends[0], ends[1]
    return (0.0 if bounds[0] <= 0 <= bounds[1] else min(ends)), max(ends)


def reciprocal(bounds: Range) -> Range:
    """The range of 1/x."""
    low, high = bounds
    if low >= 0 and high > 0:
        return 1 / high, 1 / low if low else inf
    if high <= 0 and low < 0:
        return 1 / high if high else -inf, 1 / low
    return ANY


def power_range(node: Node, args: list[Range]) -> Range:
    """Powers of numbers that are not negative, and even powers, are not negative."""
    exponent: Any = getattr(node.args[1].op, "value", None)
    if isinstance(exponent, int) and 0 < exponent <= 8:
        return powered(args[0], exponent)
    return POSITIVE if args[0][0] >= 0 else ANY


def function_range(node: Node, args: list[Range]) -> Range:
    """The known range of the function; for Max and Min the extremes of the arguments' bounds."""
    head = op_of(node, Apply).head
    if head in (sympy.Max, sympy.Min):
        choose = max if head is sympy.Max else min
        return choose(r[0] for r in args), choose(r[1] for r in args)
    if head is sympy.log and args[0][0] >= 1:
        return POSITIVE
    return fact(head).range


def contraction_range(node: Node, args: list[Range]) -> Range:
    """The range of a sum of products, by the number of its terms; an array times itself gives squares."""
    op = op_of(node, Einsum)
    total: Range = (1.0, 1.0)
    seen: dict[tuple[Node, tuple[int, ...]], int] = {}
    for arg, labels in zip(node.args, op.inputs, strict=True):
        seen[arg, labels] = seen.get((arg, labels), 0) + 1
    known = dict(zip(node.args, args, strict=True))
    for (arg, _), count in seen.items():
        total = times(total, powered(known[arg], count))
    dims = {
        x: d
        for labels, a in zip(op.inputs, node.args, strict=True)
        for x, d in zip(labels, a.shape, strict=True)
    }
    lengths = [d for x, d in dims.items() if x not in op.output]
    terms = float(prod(lengths)) if all(isinstance(d, int) for d in lengths) else inf
    return times(total, (0.0 if terms == inf else terms, terms))


def same_elements(node: Node, args: list[Range]) -> Range:
    """The range of the argument: elements are only moved."""
    return hull(args)


def with_zeros(node: Node, args: list[Range]) -> Range:
    """The range of the argument and 0: elements are moved, and zeros are added."""
    return hull([*args, (0.0, 0.0)])


RULES: dict[type, Callable[[Node, list[Range]], Range]] = {
    Input: input_range,
    Constant: constant_range,
    ArrayConstant: array_constant_range,
    Dimension: lambda node, args: POSITIVE,
    Iota: lambda node, args: POSITIVE,
    Eye: lambda node, args: UNIT,
    Add: sum_range,
    Mul: product_range,
    Pow: power_range,
    Apply: function_range,
    Softmax: lambda node, args: UNIT,
    Einsum: contraction_range,
    Broadcast: same_elements,
    Reshape: same_elements,
    Slice: same_elements,
    Concatenate: same_elements,
    Stack: same_elements,
    Gather: lambda node, args: args[0],
    Pad: with_zeros,
}
