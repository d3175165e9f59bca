"""Norms whose powers overflow or underflow although the norm does not: the elements are scaled before.

    r = m (Σ w |u/m|^d)^(1/d)

for norms of all orders. The squares of 10^200 and of 10^−200 are no floats. m is max |u|, and for Euclidean
norms one of three powers of 2. Two or three numbers have hypot(u, v). Slopes are made of r and of ratios u/r
(`symad.ops.elementwise.radius`); where sums of squares are compared, or divided by each other, as in
(y² + z²)/(x² + y² + z²), it is by their norms. Other powers of such sums are powers of r. A positive constant
may be a term of a sum that is one number: √(x² + 1) is hypot(x, 1), and (x² + 1)^(1/3) is hypot(x, 1)^(2/3).
Of the elements of arrays, √(u² + 1) is the root: with np.hypot it takes twice as long.

Source: Blue (1978), "A portable Fortran program to find the Euclidean norm of a vector".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial, reduce
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
from symad.ops.elementwise.radius import Number, Part, is_size, powers_in
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
"""The ops that are rewritten: norms, and comparisons, selections and products that use them."""

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


@dataclass(frozen=True)
class _Norm:
    """q^(1/d) of a sum q of powers of one order d; a number w among its terms is the part w·1^d."""

    sum: Node
    parts: tuple[Part, ...]
    order: Number

    @property
    def root(self) -> Node:
        """q^(1/d) as it is."""
        return power(self.sum, constant(1 / Fraction(self.order)))

    @property
    def number(self) -> Number:
        """The number among the terms."""
        return sum(p.weight for p in self.parts if isinstance(p.node.op, Constant))


def _norm_of(q: Node, squares: bool = False) -> _Norm | None:
    """The norm whose power a sum is; with ``squares`` that of order 2 of powers of the elements."""
    found = powers_in(q, constants=not q.shape) or []
    orders: set[Number] = {p.exponent for p in found} - {0}
    if not orders or any(0 in p.node.shape for p in found):
        return None
    if any(isinstance(step.op, (Broadcast, Slice)) for p in found for step in p.path):
        return None
    if squares:
        if any(p.path or float(p.exponent) % 2 for p in found):
            return None
        found = [replace(p, node=power(p.node, constant(int(p.exponent) // 2))) for p in found]
        orders = {2}
    if len(orders) > 1:
        return None
    (d,) = orders
    return _Norm(q, tuple([replace(p, exponent=d) for p in found]), d)


def _as_power_of_norm(node: Node) -> tuple[_Norm, Number] | None:
    """r and k for a power q^p = r^k that may be a normal number where q is none."""
    p = constant_value(node.args[1]) if isinstance(node.op, Pow) else None
    if not isinstance(p, (Fraction, float)) or not -1 < p < 1:
        return None
    norm = _norm_of(node.args[0])
    if norm is not None and Fraction(norm.order) * Fraction(p) == 1:
        return norm, 1
    norm = _norm_of(node.args[0], squares=True)
    return None if norm is None else (norm, 2 * p)


def _roots_and_sums(nodes: Iterable[Node]) -> set[Node]:
    """The sums of powers whose roots are in a graph, or which divide one of the elements."""
    roots = {n.args[0] for n in nodes if _as_power_of_norm(n)}
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
    norms: set[Node] = field(default_factory=set)
    """The norms that were made."""

    def all_of(self, graph: Graph) -> Nodes:
        """The outputs of a graph with their norms scaled."""
        sums = _roots_and_sums(graph.nodes) if Pow in op_classes(graph) else set()
        if not sums and not any([inner_graphs(node.op) for node in graph.nodes]):
            return graph.output_nodes

        return rebuild(graph, {}, partial(self.scaled, sums))

    def scaled(self, sums: set[Node], node: Node, args: Nodes) -> Node:
        """A node with new arguments: a norm, or what compares or divides by sums of powers, in range."""
        op = node.op
        if type(op) not in TOUCHED:
            return self.untouched(node, args)
        if isinstance(op, Compare) and not sums.isdisjoint(map(_unsigned, args)):
            return self.compared(op, args) or Node.of(op, args)
        if isinstance(op, Mul) and -1 in op.powers and any(a in sums or self.of_root(a) for a in args):
            return self.divided(op, args)
        if isinstance(op, Select) and args[1] is constant(0) and args[0] is equal(args[2], args[1]):
            return args[2]
        made = node if args == node.args else Node.of(op, args)
        return self.power(made) or made

    def untouched(self, node: Node, args: Nodes) -> Node:
        """A node of another op with new arguments; bodies of loops, which are compiled whole, are scaled."""
        op = node.op
        if not isinstance(op, (ElementwiseOp, Source)):
            op = in_bodies(op, _Scaling(self.levels).all_of)
        return node if op is node.op and args == node.args else Node.of(op, args)

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
                if above is None or below is None or not _divides(above, below):
                    continue
                factors.remove(over)
                factors.remove(under)
                factors.append((1, power(div(above.norm, below.norm), constant(above.order))))
                factors.append((1, constant(above.sign * below.sign)))
                factors += [(-1, below.norm)] * int(below.order - above.order)
                break
        q = _divisor(op, args)
        known = None if q is None or (-1, q) not in factors else self.of_sum(q)
        if q is not None and known is not None:
            u = next(f for f in factors if f[0] == 1 and any(f[1] is p.node for p in powers_in(q) or []))
            factors = [f for f in factors if f not in (u, (-1, q))]
            factors += [(1, div(u[1], known.norm)), (-1, known.norm)]
        same = [f for _, f in factors] == list(args)
        return Node.of(op, args) if same else signed_product(factors)

    def of_root(self, node: Node) -> _PowerSum | None:
        """The norm and the exponent of r², r³, ... of one number r; None for other nodes."""
        k = constant_value(node.args[1]) if isinstance(node.op, Pow) and not node.shape else None
        known = isinstance(k, int) and k > 1 and node.args[0] in self.norms
        return _PowerSum(1, node.args[0], k) if known and k is not None else None

    def power(self, node: Node) -> Node | None:
        """q^p by the norm; None for other nodes."""
        found = _as_power_of_norm(node)
        r = None if found is None else self.norm(found[0])
        if found is None or r is None:
            return None
        self.norms.add(r)
        k = found[1]
        return div(constant(1), r) if k == -1 else power(r, constant(k))

    def of_sum(self, node: Node) -> _PowerSum | None:
        """The norm of a sum of powers of one degree, or of its negative; None for other nodes."""
        sign = 1
        if isinstance(node.op, Add) and set(node.op.signs) == {-1}:
            sign, node = -1, add(*node.args)
        known = self.of_root(node)
        if known is not None:
            return known
        found = _norm_of(node)
        made = None if found is None else self.norm(found)
        return None if found is None or made is None else _PowerSum(sign, made, found.order)

    def norm(self, norm: _Norm) -> Node | None:
        """The norm without powers that are no floats; None for those that are taken as they are."""
        known = norm.parts
        if 0 < norm.number < self.levels.low:
            return None
        if len(known) == 1 and not known[0].path:
            return mul(_root_of_weight(known[0], norm.order), _absolute(known[0].node))
        return self.of_sum_along_axes(norm) if any(p.path for p in known) else self.of_elements(norm)

    def of_elements(self, norm: _Norm) -> Node | None:
        """The norm of a few numbers, or of the elements of a few arrays."""
        known, few = norm.parts, _is_few(norm)
        if norm.order != 2:
            return _by_largest(norm)
        if len(known) <= 3 and few is not False:
            numbers_last = sorted(known, key=lambda p: isinstance(p.node.op, Constant))
            return reduce(
                lambda a, b: apply(hypot, a, b), [mul(_root_of_weight(p, 2), p.node) for p in numbers_last]
            )
        return self.by_levels(norm) if few else None

    def of_sum_along_axes(self, norm: _Norm) -> Node | None:
        """The norm of a vector, or the norms of rows."""
        d, few = norm.order, _is_few(norm)
        if d != 2:
            made = _by_largest(norm)
            return self.where_needed(norm, made) if d <= MAX_BY_MEAN else made
        return self.where_needed(norm, self.by_levels(norm), not few) if few or self.checked else None

    def where_needed(self, norm: _Norm, scaled: Node, many: bool = False) -> Node:
        """The root, and the scaled norm where the sum of powers is no normal number.

        Of ``many`` elements sums that are 0 are taken as they are: in distances of all pairs there are some.
        """
        if not self.checked:
            return scaled
        q = norm.sum
        checked = select(equal(q, constant(0)), broadcast_to(constant(1), q.shape), q) if many else q
        xs = [q, *_sources([p.node for p in norm.parts])]
        return fallback(checked, norm.root, scaled, xs, self.levels.low, self.levels.high)

    def by_levels(self, norm: _Norm) -> Node:
        """√q of squares; where q is no normal number, from elements times a power of 2.

        The three sums are independent of each other, so that one loop computes them.
        """
        square, levels = norm.sum, self.levels
        up, down = constant(2.0**levels.shift), constant(2.0**-levels.shift)
        large = mul(_again(norm, lambda p: mul(p.node, down)), up)
        made = select(compare("<", constant(levels.high), square), large, norm.root)
        if norm.number:
            return made
        small = mul(_again(norm, lambda p: mul(p.node, up)), down)
        return select(compare("<", square, constant(levels.low)), small, made)


@dataclass(frozen=True)
class _PowerSum:
    """A sum of powers, ``sign`` times the norm of this order to the power of the order."""

    sign: int
    norm: Node
    order: Number


def _divides(above: _PowerSum, below: _PowerSum) -> bool:
    """Whether a quotient is a power of the quotient of the norms, over powers of the lower one."""
    more = below.order - above.order
    return more == 0 or (more > 0 and more % 1 == 0 and not below.norm.shape)


def _is_few(norm: _Norm) -> bool | None:
    """Whether norms are one, or of no more than `MAX_IN_ROWS` elements; None if that is not known."""
    count = sum(size(p.node.shape) for p in norm.parts)
    if not norm.sum.shape:
        return True
    return count <= MAX_IN_ROWS if isinstance(count, int) else None


def _again(norm: _Norm, scaled: Callable[[Part], Node]) -> Node:
    """The norm of other elements."""
    terms = []
    for part in norm.parts:
        value = scaled(part)
        first = part.path[0].op if part.path else None
        if norm.order == 2 and isinstance(first, Einsum):
            labels = first.inputs[0]
            whole = replace(part, path=part.path[1:]).total(
                contract([labels, labels], first.output, value, value)
            )
        else:
            whole = part.total(power(value, constant(part.exponent)))
        terms.append(mul(constant(part.weight), whole))
    return power(add(*terms), norm.root.args[1])


def _by_largest(norm: _Norm) -> Node:
    """m (Σ w |u/m|^d)^(1/d) with the largest |u| as m; 1 where it is 0 or infinite."""
    largest = [_largest(p, norm.order) for p in norm.parts]
    m = largest[0] if len(largest) == 1 else apply(sympy.Max, *largest)
    known = logic("and", compare("<", constant(0), m), compare("<", m, constant(inf)))
    m = select(known, m, constant(1))
    return mul(m, _again(norm, lambda p: div(p.node, p.spread(m))))


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
    return node if is_size(node) or isinstance(node.op, Constant) else apply(sympy.Abs, node)


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
