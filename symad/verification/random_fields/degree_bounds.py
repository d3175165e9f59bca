"""How large the polynomials behind a graph are: exact degrees, and bounds on their coefficients.

All elements of a node are seen as N/D with polynomials in the inputs and in the random values of
functions, with integer coefficients and one D for all elements, kept as a product of known factors:
sums then take the least common multiple. `deg` bounds the total degree of each N, `bits` the log₂ of
the sum of the absolute values of its coefficients. Nothing is ever expanded; the numbers may be
astronomical, and are Python integers.

In an extension by roots r² = u, r counts as half of u (the degree of the norm of a polynomial in k
roots is 2^k times its own).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, prod

import numpy as np
import sympy

from symad.core.graph import Node, Op, topological
from symad.core.questions import question
from symad.ops.arrays.gathering import ScatterAdd
from symad.ops.arrays.reduction import Product
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import ArrayConstant, Constant, Input, Source, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.terms.discontinuities import SIGNS
from symad.verification.terms.linear_terms import order_of_root

MAX_DENOMINATOR_FACTORS = 300
"""The maximum number of factors of a denominator; more are merged: a coarser bound, in linear time."""


@dataclass(frozen=True)
class Growth:
    """Bounds on N, and the multiplicities of the factors of D."""

    deg: int
    bits: int
    under: Mapping[Hashable, int]
    under_deg: int = 0
    """The degree and bits of D."""
    under_bits: int = 0


NOTHING: Mapping[Hashable, int] = {}
CONSTANT = Growth(0, 0, NOTHING)
GENERATOR = Growth(1, 0, NOTHING)


@dataclass(eq=False)
class Growths:
    """The growth of all nodes of a run, and the sizes of denominator factors."""

    root_orders: Mapping[Node, int] = field(default_factory=dict)
    integers: Mapping[Node, np.ndarray | int] = field(default_factory=dict)
    exact_roots: bool = False
    turned: frozenset[Hashable] = frozenset()
    """The kinds of functions that were met at m and −m."""
    sizes: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    """Of each factor its degree and bits, over all its elements."""
    root_bits: int = 0
    """log₂ of the degree of the extension by the exact roots taken."""
    arguments: dict[Hashable, tuple[int, int, int]] = field(default_factory=dict)
    """Of each kind of function the number of its arguments, and their largest degree and bits."""
    found: dict[Node, Growth] = field(default_factory=dict)

    def alike(self, other: Growths) -> bool:
        """Whether two measurements are made under the same conditions."""
        return (
            self.integers is other.integers
            and self.exact_roots == other.exact_roots
            and self.turned == other.turned
        )

    def measure(self, outputs: Sequence[Node]) -> list[Growth]:
        """The growths of some nodes."""
        for node in topological(outputs):
            if node not in self.found:
                value = growth(node.op, node, tuple([self.found[a] for a in node.args]), self)
                self.found[node] = self._merged(node, value)
        return [self.found[o] for o in outputs]

    def _merged(self, node: Node, value: Growth) -> Growth:
        """A growth whose long denominator is replaced by one factor."""
        if len(value.under) <= MAX_DENOMINATOR_FACTORS:
            return value
        return self.over(("merged", node), value.under_deg, value.under_bits, value.deg, value.bits)

    def over(self, key: Hashable, under_deg: int, under_bits: int, deg: int, bits: int) -> Growth:
        """N of this degree and bits over one factor of the size given."""
        self.sizes[key] = (under_deg, under_bits)
        return Growth(deg, bits, {key: 1}, under_deg, under_bits)

    def add(self, terms: Sequence[Growth], count: int = 1) -> Growth:
        """The sum of terms, or of ``count`` products of each."""
        more = (count * len(terms) - 1).bit_length()
        first = terms[0]
        if all(t.under is first.under or t.under == first.under for t in terms):
            deg, bits = max(t.deg for t in terms), max(t.bits for t in terms)
            return Growth(deg, bits + more, first.under, first.under_deg, first.under_bits)
        under = dict(first.under)
        deg, bits = first.under_deg, first.under_bits
        for term in terms[1:]:
            for key, m in term.under.items():
                missing = m - under.get(key, 0)
                if missing > 0:
                    under[key] = m
                    size = self.sizes[key]
                    deg += missing * size[0]
                    bits += missing * size[1]
        return Growth(
            max(t.deg + deg - t.under_deg for t in terms),
            max(t.bits + bits - t.under_bits for t in terms) + more,
            under,
            deg,
            bits,
        )

    def mul(self, factors: Sequence[Growth]) -> Growth:
        """The product."""
        under: Mapping[Hashable, int] = NOTHING
        for f in factors:
            if f.under:
                under = _sum_of_counts(under, f.under) if under else f.under
        return Growth(
            sum([f.deg for f in factors]),
            sum([f.bits for f in factors]),
            under,
            sum([f.under_deg for f in factors]),
            sum([f.under_bits for f in factors]),
        )

    def power(self, g: Growth, k: int) -> Growth:
        """The k-th power."""
        under = {key: m * k for key, m in g.under.items()}
        return Growth(g.deg * k, g.bits * k, under, g.under_deg * k, g.under_bits * k)

    def invert(self, node: Node, count: int) -> Growth:
        """1/x for the node x of ``count`` elements: D Π_{e'≠e} N_e' / Π N_e'."""
        g = self.found[node]
        return self.over(
            ("over", node),
            count * g.deg,
            count * g.bits,
            g.under_deg + (count - 1) * g.deg,
            g.under_bits + (count - 1) * g.bits,
        )

    def met(self, kind: Hashable, count: int, arguments: Sequence[Growth]) -> None:
        """Count the arguments of a kind of function; distinct ones may collide."""
        old = self.arguments.get(kind, (0, 0, 0))
        deg = max((a.deg + a.under_deg for a in arguments), default=0)
        bits = max((a.bits + a.under_bits for a in arguments), default=0)
        self.arguments[kind] = (old[0] + count, max(old[1], deg), max(old[2], bits))


def _sum_of_counts(a: Mapping[Hashable, int], b: Mapping[Hashable, int]) -> Mapping[Hashable, int]:
    total = dict(a)
    for key, m in b.items():
        total[key] = total.get(key, 0) + m
    return total


def elements(node: Node) -> int:
    """The number of elements."""
    return prod(node.shape)


@question
def growth(op: Op, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    """The growth of ``y = op(...)``, from those of its arguments."""


@growth.dispatch
def opaque_growth(op: Op, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    """An op without relations: new variables."""
    all_.met(op, 1, args)
    return GENERATOR


@growth.dispatch
def source_growth(op: Source, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    return Growth(0, 40, NOTHING)  # indices and identities


@growth.dispatch
def input_growth(op: Input, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    if y in all_.integers:
        return Growth(0, int(np.max(np.abs(all_.integers[y]), initial=1)).bit_length(), NOTHING)
    return Growth(all_.root_orders.get(y, 1), 0, NOTHING)


@growth.dispatch
def constant_growth(op: Constant, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    value = op.value
    if isinstance(value, float) and value - value != 0:
        return CONSTANT
    if isinstance(value, sympy.Float):
        exact = sympy.Rational(value)
        value = Fraction(int(exact.p), int(exact.q))
    if isinstance(value, sympy.Basic):
        return GENERATOR
    return rational(Fraction(value), all_)


def rational(value: Fraction, all_: Growths) -> Growth:
    """n/d, where d is a power of two times a rest."""
    under: dict[Hashable, int] = {}
    twos = (value.denominator & -value.denominator).bit_length() - 1
    rest = value.denominator >> twos
    if twos:
        under.update({2: twos})
        all_.sizes[2] = (0, 1)
    if rest > 1:
        under[("int", rest)] = 1
        all_.sizes["int", rest] = (0, rest.bit_length())
    return Growth(
        0, abs(value.numerator).bit_length(), under, 0, twos + (rest.bit_length() if rest > 1 else 0)
    )


@growth.dispatch
def array_constant_growth(op: ArrayConstant, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    if op.array.dtype.kind != "f":
        return Growth(0, int(np.max(np.abs(op.array.astype(object)), initial=1)).bit_length(), NOTHING)
    finite = op.array[np.isfinite(op.array)].ravel().tolist()
    over = max((v.as_integer_ratio()[1] for v in finite), default=1)
    largest = max((abs(Fraction(v) * over) for v in finite), default=Fraction(1))
    all_.sizes[2] = (0, 1)
    twos = over.bit_length() - 1
    return Growth(0, int(largest).bit_length(), {2: twos}, 0, twos)


@growth.dispatch
def add_growth(op: Add, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    return all_.add(args)


@growth.dispatch
def mul_growth(op: Mul, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    factors = [g for p, g in zip(op.powers, args, strict=True) if p == 1]
    under = [all_.invert(a, elements(a)) for p, a in zip(op.powers, y.args, strict=True) if p == -1]
    return all_.mul([*factors, *under])


@growth.dispatch
def pow_growth(op: Pow, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    exponent = Fraction(constant_value(y.args[1]))
    if exponent.denominator == 1:
        return all_.power(args[0], int(exponent))
    if all_.exact_roots:
        all_.met(sympy.sign, elements(y), args[:1])  # of its argument, which may have to be positive
    order = order_of_root(y)
    all_.met(("power", exponent) if order is None else "root", elements(y), args[:1])
    return GENERATOR if order is None else root_growth(args[0], order, elements(y), all_)


def root_growth(g: Growth, order: int, count: int, all_: Growths) -> Growth:
    """A free value, or √(ND)/D for each doubling of the order."""
    if not all_.exact_roots:
        return GENERATOR
    while order % 2 == 0:
        all_.root_bits += count
        deg, bits = ceil((g.deg + g.under_deg) / 2), ceil((g.bits + g.under_bits) / 2) + 1
        g = replace(g, deg=deg, bits=bits)
        order //= 2
    all_.root_bits += count * (order - 1).bit_length()  # an odd root: an extension of that degree
    return g


@growth.dispatch
def product_growth(op: Product, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    return all_.power(args[0], y.args[0].shape[-1])


@growth.dispatch
def einsum_growth(op: Einsum, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    dims = {
        k: d
        for labels, a in zip(op.inputs, y.args, strict=True)
        for k, d in zip(labels, a.shape, strict=True)
    }
    count = prod([d for k, d in dims.items() if k not in op.output])
    product = all_.mul(args)
    return replace(product, bits=product.bits + max(count - 1, 0).bit_length())


@growth.dispatch
def apply_growth(op: Apply, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    """A new variable; cos and sin are rational in one."""
    kind = "rotation" if op.head in (sympy.sin, sympy.cos) else sympy.sign if op.head in SIGNS else op.head
    n = elements(y)
    all_.met(kind, n, args)
    if kind == "rotation":
        return all_.over((kind, y.args), 2 * n, n, 2 * n, 1 + n)
    value = GENERATOR
    if op.head is sympy.log and all_.exact_roots:
        all_.met(sympy.sign, n, args)  # of its argument, which may have to be positive
    if op.head is sympy.exp:
        if "exp" in all_.turned:
            value = all_.over((kind, y.args), n, 0, 1 + n, 0)
        all_.met("value of exp", n, [value])
    return value


@growth.dispatch
def select_growth(op: Select, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    c, a, b = args
    return all_.add([b, all_.mul([c, all_.add([a, b])])])


@growth.dispatch
def compare_growth(op: Compare, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    all_.met("zero", elements(y), args[:1])
    return CONSTANT


@growth.dispatch
def shaping_growth(op: ShapingOp, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    """The least common denominator of what is moved."""
    joined = all_.add(args)
    return replace(joined, bits=joined.bits - (len(args) - 1).bit_length())


@growth.dispatch
def scatter_add_growth(op: ScatterAdd, y: Node, args: tuple[Growth, ...], all_: Growths) -> Growth:
    return all_.add([args[1]], max(elements(y.args[0]), 1))
