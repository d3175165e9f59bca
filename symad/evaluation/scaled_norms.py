"""Norms whose powers overflow or underflow although the norm does not: the elements are scaled before.

    r = m (Σ w |u/m|^d)^(1/d)

for norms of all orders. The squares of 10^200 and of 10^−200 are no floats. m is max |u|, and for Euclidean
norms one of three powers of 2. Two or three numbers have hypot(u, v). Slopes are made of r and of ratios u/r
(`symad.ops.elementwise.radius`); where sums of squares are compared, or divided by each other, as in
(y² + z²)/(x² + y² + z²), it is by their norms.

Source: Blue (1978), "A portable Fortran program to find the Euclidean norm of a vector".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import inf, isqrt

import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.contents import in_bodies, inner_graphs, op_classes
from symad.core.dims import size
from symad.core.graph import Graph, Node, rebuild, topological
from symad.core.questions import Nodes
from symad.higher_order.remat import fallback
from symad.ops.arrays.reduction import extreme
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, add, div, mul, signed_product
from symad.ops.basic.contraction import Einsum, contract, permute
from symad.ops.basic.shaping import Broadcast, Reshape, Slice, broadcast_to
from symad.ops.basic.sources import Constant, Source, constant, constant_value, dimension
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.radius import Number, Part, degree, is_size, order_of, parts, powers_in
from symad.ops.elementwise.selection import Compare, Select, compare, equal, logic, select

MAX_BY_MEAN = 4
"""The highest order for which powers of |u| over the mean are floats: of a million elements in float32.

Along an axis of unknown length, which may be empty, m is this mean.
"""

MAX_IN_ROWS = 4096
"""√(u² + v² + w²) of the elements of larger arrays is a root, whatever is below it; norms of their rows are 0
where they are smaller than the root of the least float.

Origin: NumPy's hypot takes 14 times as long for 100 000 elements; where some distances of all pairs of 200
points are 0, scaling takes three times as long as the distances.
"""


@dataclass(frozen=True)
class ScaleLevels:
    """Sums of squares below ``low`` or above ``high`` are computed again from elements times 2^±shift."""

    low: float
    high: float
    shift: int


TOUCHED = frozenset((Compare, Mul, Select, Pow))
"""The ops of norms, and of what compares or divides by them."""

MADE_AGAIN = (Add, Mul, Broadcast, Reshape, Slice)
"""Ops whose results are computed again rather than kept for a norm that may have to be scaled."""

LEVELS = {"float64": ScaleLevels(1e-280, 1e280, 600), "float32": ScaleLevels(1e-30, 1e30, 80)}
"""With these, squares of all normal numbers are normal, but for those too small to count."""


def norms_in_range(graph: Graph, dtype: str = "float64", checked: bool = True) -> Graph:
    """The graph with its norms scaled, also in the bodies of loops; other types have none.

    If ``checked``, norms outside of loops are scaled only where their sums of powers are no normal numbers.
    """
    if dtype not in LEVELS:
        return graph
    made = _Scaling(LEVELS[dtype], checked).all_of(graph)
    if made == graph.output_nodes:
        return graph
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _roots_and_sums(nodes: Iterable[Node]) -> set[Node]:
    """The sums of powers whose roots are in a graph, or which divide one of the elements."""
    roots = {n.args[0] for n in nodes if isinstance(n.op, Pow) and parts(n)}
    return roots | {q for n in nodes if isinstance(n.op, Mul) and (q := _divisor(n.op, n.args)) is not None}


def _divisor(op: Mul, args: Nodes) -> Node | None:
    """The sum of squares q of products with u/q for one of its elements u, as in the slopes of atan2."""
    if -1 not in op.powers:
        return None
    over = {a for sign, a in zip(op.powers, args, strict=True) if sign == 1}
    for q in [a for sign, a in zip(op.powers, args, strict=True) if sign == -1 and isinstance(a.op, Add)]:
        elements = powers_in(q) or []
        plain = all(p.exponent == 2 and not p.path for p in elements)
        if len(elements) > 1 and plain and any(p.node in over for p in elements):
            return q
    return None


@dataclass(frozen=True)
class _Scaling:
    """The rules for numbers of one type."""

    levels: ScaleLevels
    checked: bool = False

    def all_of(self, graph: Graph) -> Nodes:
        """The outputs of a graph with their norms scaled."""
        sums = _roots_and_sums(graph.nodes) if Pow in op_classes(graph) else set()
        if not sums and not any([inner_graphs(node.op) for node in graph.nodes]):
            return graph.output_nodes

        def scaled(node: Node, args: Nodes) -> Node:
            kind, op = type(node.op), node.op
            if kind not in TOUCHED:
                if not issubclass(kind, (ElementwiseOp, Source)):
                    op = in_bodies(op, _Scaling(self.levels).all_of)  # loops are compiled whole
                return node if op is node.op and args == node.args else Node.of(op, args)
            if isinstance(op, Compare) and not sums.isdisjoint(map(_unsigned, args)):
                return self.compared(op, args) or Node.of(op, args)
            if isinstance(op, Mul) and not sums.isdisjoint(args):
                return self.divided(op, args)
            if isinstance(op, Select) and args[1] is constant(0) and args[0] is equal(args[2], args[1]):
                return args[2]
            made = node if args == node.args else Node.of(op, args)
            return (self.norm(made) if isinstance(op, Pow) and parts(made) else None) or made

        return rebuild(graph, {}, scaled)

    def compared(self, op: Compare, args: Nodes) -> Node | None:
        """A comparison of two sums of powers, or of one with 0, by their norms."""
        first, second = [self.of_sum(_unsigned(a)) for a in args]
        if first is None:
            return None
        if second is not None and first.order == second.order and op.relation in ("<", "<=", "=="):
            return compare(op.relation, first.norm, second.norm)
        zero = op.relation == "==" and constant_value(args[1]) == 0
        return equal(first.norm, args[1]) if zero else None

    def divided(self, op: Mul, args: Nodes) -> Node:
        """A product in which quotients of two sums of powers are powers of quotients of their norms."""
        factors = list(zip(op.powers, args, strict=True))
        for under in [f for f in factors if f[0] == -1]:
            below = self.of_sum(under[1])
            for over in [f for f in factors if f[0] == 1] if below is not None else []:
                above = self.of_sum(over[1])
                if above is None or below is None or above.order != below.order:
                    continue
                factors.remove(over)
                factors.remove(under)
                factors.append((1, power(div(above.norm, below.norm), constant(below.order))))
                factors.append((1, constant(above.sign * below.sign)))
                break
        q = _divisor(op, args)
        known = None if q is None or (-1, q) not in factors else self.of_sum(q)
        if q is not None and known is not None:
            u = next(f for f in factors if f[0] == 1 and any(f[1] is p.node for p in powers_in(q) or []))
            factors = [f for f in factors if f not in (u, (-1, q))]
            factors += [(1, div(u[1], known.norm)), (-1, known.norm)]
        same = [f for _, f in factors] == list(args)
        return Node.of(op, args) if same else signed_product(factors)

    def of_sum(self, node: Node) -> _PowerSum | None:
        """The norm of a sum of powers of one degree, or of its negative; None for other nodes."""
        sign = 1
        if isinstance(node.op, Add) and set(node.op.signs) == {-1}:
            sign, node = -1, add(*node.args)
        d = degree(node)
        root = None if d is None else power(node, constant(1 / Fraction(d)))
        made = self.norm(root) if root is not None and parts(root) else None
        return None if made is None or d is None else _PowerSum(sign, made, d)

    def norm(self, radius: Node) -> Node | None:
        """The norm without powers that are no floats; None if its terms have several exponents, or none."""
        known, d = parts(radius), order_of(radius)
        if any(p.exponent != d or 0 in p.node.shape for p in known):
            return None
        if len(known) == 1 and not known[0].path:
            return mul(_root_of_weight(known[0], d), _absolute(known[0].node))
        return self.of_sum_along_axes(radius) if any(p.path for p in known) else self.of_elements(radius)

    def of_elements(self, radius: Node) -> Node | None:
        """The norm of a few numbers, or of the elements of a few arrays."""
        known, few = parts(radius), _is_few(radius)
        if order_of(radius) != 2:
            return _by_largest(radius)
        if len(known) <= 3 and few is not False:
            return reduce(
                lambda a, b: apply(hypot, a, b), [mul(_root_of_weight(p, 2), p.node) for p in known]
            )
        return self.by_levels(radius) if few else None

    def of_sum_along_axes(self, radius: Node) -> Node | None:
        """The norm of a vector, or the norms of rows."""
        d, few = order_of(radius), _is_few(radius)
        if d != 2:
            made = _by_largest(radius)
            return self.where_needed(radius, made) if d <= MAX_BY_MEAN else made
        return self.where_needed(radius, self.by_levels(radius), not few) if few or self.checked else None

    def where_needed(self, radius: Node, scaled: Node, many: bool = False) -> Node:
        """The root, and the scaled norm where the sum of powers is no normal number.

        Of ``many`` elements sums that are 0 are taken as they are: in distances of all pairs there are some.
        """
        if not self.checked:
            return scaled
        q, known = radius.args[0], parts(radius)
        checked = select(equal(q, constant(0)), broadcast_to(constant(1), q.shape), q) if many else q
        xs = [q, *_sources([p.node for p in known])]
        return fallback(checked, radius, scaled, xs, self.levels.low, self.levels.high)

    def by_levels(self, radius: Node) -> Node:
        """√q of squares; where q is no normal number, from elements times a power of 2.

        The three sums are independent of each other, so that one loop computes them.
        """
        square, levels = radius.args[0], self.levels
        up, down = constant(2.0**levels.shift), constant(2.0**-levels.shift)
        small = mul(_again(radius, lambda p: mul(p.node, up)), down)
        large = mul(_again(radius, lambda p: mul(p.node, down)), up)
        few, many = compare("<", square, constant(levels.low)), compare("<", constant(levels.high), square)
        return select(few, small, select(many, large, radius))


@dataclass(frozen=True)
class _PowerSum:
    """A sum of powers, ``sign`` times the norm of this order to the power of the order."""

    sign: int
    norm: Node
    order: Number


def _is_few(radius: Node) -> bool | None:
    """Whether norms are one, or of no more than `MAX_IN_ROWS` elements; None if that is not known."""
    count = sum(size(p.node.shape) for p in parts(radius))
    if not radius.shape:
        return True
    return count <= MAX_IN_ROWS if isinstance(count, int) else None


def _again(radius: Node, scaled: Callable[[Part], Node]) -> Node:
    """The norm of other elements."""
    terms = []
    for part in parts(radius):
        value = scaled(part)
        first = part.path[0].op if part.path else None
        if order_of(radius) == 2 and isinstance(first, Einsum):
            labels = first.inputs[0]
            whole = replace(part, path=part.path[1:]).total(
                contract([labels, labels], first.output, value, value)
            )
        else:
            whole = part.total(power(value, constant(part.exponent)))
        terms.append(mul(constant(part.weight), whole))
    return power(add(*terms), radius.args[1])


def _by_largest(radius: Node) -> Node:
    """m (Σ w |u/m|^d)^(1/d) with the largest |u| as m; 1 where it is 0 or infinite."""
    largest = [_largest(p, order_of(radius)) for p in parts(radius)]
    m = largest[0] if len(largest) == 1 else apply(sympy.Max, *largest)
    known = logic("and", compare("<", constant(0), m), compare("<", m, constant(inf)))
    m = select(known, m, constant(1))
    return mul(m, _again(radius, lambda p: div(p.node, p.spread(m))))


def _sources(elements: Iterable[Node]) -> list[Node]:
    """What elements are made of by a few sums and products, which need not be kept to be scaled."""
    below = {n for n in elements if isinstance(n.op, MADE_AGAIN)}
    for _ in range(2):
        below |= {a for n in below for a in n.args if isinstance(a.op, MADE_AGAIN)}
    read = [n for n in elements if n not in below]
    read += [a for n in topological(below) if n in below for a in n.args]
    return [n for n in dict.fromkeys(read) if n not in below and not isinstance(n.op, Constant)]


def _unsigned(node: Node) -> Node:
    """What is inside of an absolute value, and of negations."""
    if is_size(node) or (isinstance(node.op, Add) and len(node.args) == 1):
        return _unsigned(node.args[0])
    return node


def _root_of_weight(part: Part, d: Number) -> Node:
    """w^(1/d)."""
    root = isqrt(int(part.weight)) if part.weight >= 1 else 0
    exact = d == 2 and root**2 == part.weight
    return constant(root if exact else float(part.weight) ** float(1 / d))


def _absolute(node: Node) -> Node:
    return node if is_size(node) else apply(sympy.Abs, node)


def _largest(part: Part, d: Number) -> Node:
    """The largest |u| of those that are summed, in the shape of the norm."""
    value = _absolute(part.node)
    for step in part.path:
        if isinstance(step.op, Einsum):
            (labels,), output = step.op.inputs, step.op.output
            axes = [k for k, label in enumerate(labels) if label not in output]
            kept = [label for label in labels if label in output]
            count = size(value.shape[k] for k in axes)
            if isinstance(count, int) or d > MAX_BY_MEAN:
                value = permute(extreme("max", value, axes), [kept.index(label) for label in output])
            else:
                value = div(Node.of(step.op, (value,)), dimension(count))
        else:
            value = Node.of(step.op, (value,))
    return value
