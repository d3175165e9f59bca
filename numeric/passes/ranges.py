"""The passes that depend on the type of a module's numbers.

Factors that single precision cannot hold are divided into parts that it can. As one number, 1/40! is 0 in
float32, and so would be x⁴⁰/40! at x = 3, which is 1.5·10⁻²⁹. Makers of nodes divide numbers that are no
float64 in the same way (`symad.ops.basic.arithmetic`); the type of a module's numbers is known here only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import isfinite

import sympy

from symad.core.contents import in_bodies, inner_graphs, op_classes
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.evaluation.scaled_norms import norms_in_range
from symad.numeric.passes.in_box import decide
from symad.numeric.passes.rewriting import rewrite
from symad.numeric.stages import GraphPass
from symad.ops.basic.arithmetic import Add, Mul, neg
from symad.ops.basic.sources import Constant, constant, constant_value
from symad.ops.elementwise.powers import Pow

# ---- single precision ----------------------------------------------------------------------------


SMALLEST, LARGEST = Fraction(1, 2**126), Fraction(2**127)
"""Between these, numbers are normal in single precision: 1.2·10⁻³⁸ and 1.7·10³⁸."""

BITS = 60
"""Parts are powers of two up to this one: half of the range remains for the values between them."""

MAX_FACTORS = 8
"""Longer products are factors of other products as they are.

Origin: it bounds the steps of a product.
"""

Factors = list[tuple[int, Node]]


def in_single_range(graph: Graph) -> Graph:
    """The graph with products in which each number is normal in float32, also in the bodies of loops."""
    if not _has_wide(graph):
        return graph
    return rewrite(graph, _Dividing().node)


def _has_wide(graph: Graph) -> bool:
    """Whether a constant of the graph, or of a graph that an op holds, is outside of the range."""
    numbers = Constant in op_classes(graph) and any(map(_is_wide, map(_factor, graph.nodes)))
    return numbers or any(_has_wide(body) for node in graph.nodes for body in inner_graphs(node.op))


def _divided(outputs: Nodes | Graph) -> Nodes:
    return rebuild(outputs, {}, _Dividing().node)


@dataclass(frozen=True)
class _Factors:
    """number · Π factor^power; ``wide`` if a number in it was outside of the range."""

    number: Fraction
    others: Factors
    wide: bool


class _Dividing:
    """One run over a graph: what each product consists of.

    A product with a number outside of the range takes the factors of products that it reads, or that read it:
    (s/10⁴⁵)·x, as in derivatives, is finite where s/10⁴⁵ is 0, and so is (x·y)/10⁵⁰ where x·y overflows.
    """

    def __init__(self) -> None:
        self.products: dict[Node, _Factors] = {}

    def node(self, node: Node, args: Nodes) -> Node:
        """The node of these arguments, divided if it is a product with a number outside of the range."""
        op = in_bodies(node.op, _divided)
        made = node.over(args) if op is node.op else Node.of(op, args)
        if isinstance(op, Mul):
            found = self.joined(zip(op.powers, args, strict=True))
            made = _product(found.number, found.others) if found.wide else made
            if len(found.others) <= MAX_FACTORS:
                self.products[made] = found
        elif isinstance(op, Add) and op.signs == (-1,) and args[0] in self.products:
            inner = self.products[args[0]]
            self.products[made] = replace(inner, number=-inner.number)
        return made

    def joined(self, factors: Iterable[tuple[int, Node]]) -> _Factors:
        """Π factor^power, with the factors of its factors."""
        number, wide = Fraction(1), False
        others: Factors = []
        for power, factor in factors:
            value = _factor(factor)
            inner = self.products.get(factor)
            if value is not None:
                inner = _Factors(value, [], _is_wide(value))
            elif inner is None:
                inner = _Factors(Fraction(1), _roots(factor), False)
            number, wide = number * inner.number**power, wide or inner.wide
            others += [(power * p, f) for p, f in inner.others]
        return _Factors(number, others, wide)


def _product(number: Fraction, others: Factors) -> Node:
    """number · Π factor^power, where a part of the number follows each factor.

    x·y/10⁵⁰ is ((x·p)·y)·q: x·y may overflow, and so may the whole number times x. Parts are floats, because
    exact numbers are multiplied by later passes.
    """
    parts = _parts(abs(number))
    made = None if others and others[0][0] == 1 else next(parts, constant(1))
    for power, factor in others:
        made = factor if made is None else Node.of(Mul((1, power)), (made, factor))
        made = _times(made, next(parts, None))
    assert made is not None, "there is a factor or a number"
    for part in parts:
        made = _times(made, part)
    return neg(made) if number < 0 else made


def _times(product: Node, part: Node | None) -> Node:
    return product if part is None else Node.of(Mul((1, 1)), (product, part))


def _parts(number: Fraction) -> Iterator[Node]:
    """Factors of a positive number: equal powers of two, and what they leave; none for 1."""
    if number == 1:
        return
    bits = number.numerator.bit_length() - number.denominator.bit_length()
    count = 0 if SMALLEST <= number <= LARGEST else abs(bits) // BITS
    part = Fraction(2) ** (bits // (count + 1))
    for _ in range(count):
        yield constant(float(part))
    yield constant(float(number / part**count))


def _roots(node: Node) -> Factors:
    """x, x for x²; other nodes themselves."""
    square = isinstance(node.op, Pow) and constant_value(node.args[1]) == 2
    return [(1, node.args[0])] * 2 if square else [(1, node)]


def _factor(node: Node) -> Fraction | None:
    """The value of a constant that is a number other than 0, as it is; None for other nodes."""
    value = constant_value(node)
    if isinstance(value, sympy.Float):
        value = sympy.Rational(value) if value.is_finite else None
        value = None if value is None else Fraction(int(value.p), int(value.q))
    if type(value) not in (int, Fraction, float) or not value or not isfinite(value):
        return None
    return Fraction(value)


def _is_wide(value: Fraction | None) -> bool:
    return value is not None and not SMALLEST <= abs(value) <= LARGEST


def norms(dtype: str, checked: bool = True) -> tuple[GraphPass, ...]:
    """The passes for norms and for the box of the inputs; blocks of rows are made after them.

    ``checked``: whether sums of powers are looked at first, and scaled only where that is needed.
    """
    told = "no norm overflows unless its value does"
    decided = "nothing is computed, compared or guarded whose outcome the box of the inputs decides"
    return (
        GraphPass("norms", partial(norms_in_range, dtype=dtype, checked=checked), "stabilize", told),
        GraphPass("box", partial(decide, dtype=dtype), "norms", decided),
    )


def in_range(dtype: str) -> tuple[GraphPass, ...]:
    """The last graph passes for numbers of this type, on every backend: other passes join numbers."""
    told = "every number in a product is normal in single precision"
    return () if dtype == "float64" else (GraphPass("single range", in_single_range, "", told),)
