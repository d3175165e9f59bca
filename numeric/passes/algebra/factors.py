"""Numbers and signs move out of products, out of sums of equal multiples and out of slices, into one factor.

Derivatives are full of constant factors: 2·(100·(2·u)) is one product with 400, and (2u/2v)·(−w) is
−(u/v)·w. Each node is treated as c·b with a number c: the nodes that read it work on b, and c·b is computed
only where its value is needed. Products of the same factors in a different order are computed once.

Where three or more quotients of arrays have one denominator, they become products with its reciprocal,
because a division costs several products. This changes only the last digit, unless the reciprocal overflows.

The value changes by rounding only.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from symad.core.dims import same_dim, size
from symad.core.graph import Graph, Node, op_of
from symad.core.questions import Nodes
from symad.numeric.passes.algebra.sums_of_products import MAX_FACTOR, MAX_INTEGER, MIN_FACTOR
from symad.numeric.passes.rewriting import rewrite, with_results
from symad.ops.basic.arithmetic import Add, Mul, div, mul, signed_product, signed_sum
from symad.ops.basic.shaping import Reshape, Slice
from symad.ops.basic.sources import Constant, constant, constant_value, is_exact
from symad.ops.elementwise.powers import power as power_of

Number = int | Fraction | float

MIN_QUOTIENTS = 3
"""From this many quotients by one array on, they become products with its reciprocal.

On 2**14 elements, with a sine in each, two take 0.99 of the time, three 0.97, six 0.95 (bench_thresholds.py,
"quotients").
"""


def gather_factors(graph: Graph) -> Graph:
    """The graph with every rule of this file applied."""
    return share_reciprocals(with_results(graph, _FactorGathering().outputs(graph)))


def number_of(node: Node) -> Number | None:
    """The value of a constant node that can be a factor; None for other nodes."""
    value = constant_value(node)
    if is_exact(value):
        short = max(abs(value.numerator), value.denominator) <= MAX_INTEGER
        return value if value and short else None
    if isinstance(value, float) and MIN_FACTOR < abs(value) < MAX_FACTOR:
        return value
    return None


class _FactorGathering:
    """One run over a graph: the factor c and the rest b of each node."""

    def __init__(self) -> None:
        self.split: dict[Node, tuple[Number, Node]] = {}
        self.products: dict[frozenset[tuple[tuple[int, Node], int]], Node] = {}

    def outputs(self, graph: Graph) -> Nodes:
        """The output nodes, computed with gathered factors."""
        for node in graph.nodes:
            self.split[node] = self.parted(node)
        return tuple(self.whole(node) for node in graph.output_nodes)

    def whole(self, node: Node) -> Node:
        """c·b, computed."""
        return self.times(node, self.split[node][0])

    def times(self, node: Node, factor: Number) -> Node:
        """The rest b of a node times a factor; an array is multiplied before it is turned around."""
        base = self.split[node][1]
        if factor == 1:
            return base
        if isinstance(node.op, (Slice, Reshape)) and same_dim(size(node.shape), size(node.args[0].shape)):
            return Node.of(node.op, (self.times(node.args[0], factor),))
        if factor < 0 and factor != -1 and base.shape and Fraction(factor).denominator == 1:
            return Node.of(Mul((1, 1)), (constant(factor), base))  # one product; −(|c|·b) would be two steps
        return mul(constant(factor), base)

    def parted(self, node: Node) -> tuple[Number, Node]:
        """The factor c and the rest b of a node c·b."""
        if isinstance(node.op, Mul):
            return self.product(node)
        if isinstance(node.op, Add):
            return self.sum(node)
        if isinstance(node.op, (Slice, Reshape)):
            factor, base = self.split[node.args[0]]
            return factor, Node.of(node.op, (base,))
        if not node.args:
            return 1, node
        args = tuple(self.whole(a) for a in node.args)
        return 1, node.over(args)

    def product(self, node: Node) -> tuple[Number, Node]:
        """Π (c_i b_i)^p_i = (Π c_i^p_i) Π b_i^p_i."""
        factor: Number = 1
        rest: list[tuple[int, Node]] = []
        for power, arg in zip(op_of(node, Mul).powers, node.args, strict=True):
            number, base = self.split[arg]
            own = number_of(base) if isinstance(base.op, Constant) else None
            if own is None and number == 1:
                rest.append((power, base))
                continue
            if own is not None:
                number = number * own
            exact = Fraction(factor) if isinstance(factor, int) else factor
            joined = exact * number if power == 1 else exact / number
            if isinstance(joined, float) and not MIN_FACTOR < abs(joined) < MAX_FACTOR:
                base = self.whole(arg)
                own = None
            else:
                factor = joined
            if own is None:
                rest.append((power, base))
        if not rest or not _fits(factor):
            args = tuple(self.whole(a) for a in node.args)
            return 1, Node.of(node.op, args)
        if node.shape and factor != 1:
            factor, rest = _by_scalar(factor, rest)
        rest = _with_squares(rest)
        made = signed_product(rest)
        if made.shape != node.shape:  # the only factor with axes was a broadcast number
            return 1, Node.of(node.op, tuple(self.whole(a) for a in node.args))
        return factor, self.products.setdefault(frozenset(Counter(rest).items()), made)

    def sum(self, node: Node) -> tuple[Number, Node]:
        """Σ ± c_i b_i, or c Σ ± b_i where all c_i are c or −c."""
        parts = [self.split[a] for a in node.args]
        if all([c == 1 for c, _ in parts]):
            signs = op_of(node, Add).signs
            if all([sign < 0 for sign in signs]):
                return -1, signed_sum([(1, b) for _, b in parts])
            return 1, signed_sum([(sign, b) for sign, (_, b) in zip(signs, parts, strict=True)])
        common: Number = _size(parts[0][0])
        if any(_size(c) != common or isinstance(b.op, Constant) for c, b in parts):
            common = 1
        terms = []
        for sign, arg, (c, _) in zip(op_of(node, Add).signs, node.args, parts, strict=True):
            terms.append((sign if c > 0 else -sign, self.times(arg, _size(c) / common)))
        if all(sign < 0 for sign, _ in terms):
            return -common, signed_sum((-sign, b) for sign, b in terms)
        return common, signed_sum(terms)


def _size(factor: Number) -> Number:
    return factor if factor > 0 else -factor


def _fits(factor: Number) -> bool:
    if isinstance(factor, float):
        return True
    return max(abs(factor.numerator), factor.denominator) <= MAX_INTEGER


def share_reciprocals(graph: Graph) -> Graph:
    """The graph with several quotients by one array as products with its reciprocal."""
    under: Counter[Node] = Counter()
    for node in graph.nodes:
        if isinstance(node.op, Mul) and node.shape:
            under.update({a for p, a in zip(node.op.powers, node.args, strict=True) if p == -1 and a.shape})
    shared = {node for node, count in under.items() if count >= MIN_QUOTIENTS}
    if not shared:
        return graph
    reciprocal: dict[Node, Node] = {}

    def better(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Mul):
            pairs = [
                (1, reciprocal[old]) if power == -1 and old in shared else (power, new)
                for power, old, new in zip(node.op.powers, node.args, args, strict=True)
            ]
            powers, factors = zip(*pairs, strict=True)
            # Not made by `signed_product`, which would make a quotient again.
            made = factors[0] if powers == (1,) else Node.of(Mul(powers), factors)
        else:
            made = node.over(args)
        if node in shared:
            reciprocal[node] = div(constant(1), made)
        return made

    return rewrite(graph, better)


def _by_scalar(factor: Number, factors: list[tuple[int, Node]]) -> tuple[Number, list[tuple[int, Node]]]:
    """A number and a scalar are multiplied first, so that the array is multiplied once."""
    scalar = next((k for k, (power, base) in enumerate(factors) if power == 1 and not base.shape), None)
    if scalar is None:
        return factor, factors
    product = mul(constant(factor), factors[scalar][1])
    return 1, [*factors[:scalar], (1, product), *factors[scalar + 1 :]]


def _with_squares(factors: list[tuple[int, Node]]) -> list[tuple[int, Node]]:
    """The factors, with squares for those that occur twice: they may be computed already."""
    twice = [pair for pair, count in Counter(factors).items() if count == 2 and pair[0] == 1]
    squares = [(1, power_of(base, constant(2))) for _, base in twice]
    return [*squares, *(pair for pair in factors if pair not in twice)] if twice else factors
