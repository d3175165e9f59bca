"""What the box of `lower(f, box=...)` decides: branches, maxima, conditions, signs, norms without scaling.

The stable forms of `symad.stable` have guards: log1p(d/v) where v > 0 and |d|/v is a float, a Taylor piece
where |x| < 1. Intervals of all nodes decide those that hold everywhere in the box, or nowhere. Others stay.
"""

from __future__ import annotations

import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.errors import LoweringError
from symad.evaluation.decided import Known, decided, taken, truth_of
from symad.evaluation.intervals import Interval, interval
from symad.evaluation.scaled_norms import LEVELS
from symad.evaluation.value_ranges import promised, value_ranges
from symad.facts.functions import fact
from symad.higher_order.remat import Fallback
from symad.numeric.box import Sides, current_box
from symad.ops.basic.arithmetic import Add, Mul, add, mul, neg, signed_product, signed_sum
from symad.ops.basic.sources import constant, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import sqrt
from symad.ops.elementwise.selection import Compare, Logic, Select, logic

ROUNDS = 3
"""A branch that is left out may narrow the values that decide another one."""


def decide(graph: Graph, dtype: str = "float64") -> Graph:
    """The graph without what the box of its inputs decides."""
    sides = {node: ends for node, ends in current_box().items() if node in set(graph.input_nodes)}
    if not sides:
        return graph
    box = _intervals(graph, sides)

    def rule(node: Node, args: Nodes, known: Known) -> Node | None:
        return taken(node, args, known) or _simpler(node, args, known, dtype)

    for _ in range(ROUNDS):
        made = decided(graph, value_ranges(graph.output_nodes, box), rule)
        if made is graph:
            break
        graph = made
    return graph


def _intervals(graph: Graph, sides: Sides) -> dict[Node, Interval]:
    ends = {node: [interval(e) for e in pair] for node, pair in sides.items()}
    return promised(graph.input_nodes) | {n: Interval(low.low, high.high) for n, (low, high) in ends.items()}


def _simpler(node: Node, args: Nodes, known: Known, dtype: str) -> Node | None:
    """A condition, an absolute value, a sign or a norm by the ranges; and what has one as its argument."""
    op = node.op
    if isinstance(op, (Compare, Logic)):
        truth = truth_of(known[node])
        return _left_open(node, args, known) if truth is None else constant(truth)
    if isinstance(op, Apply):
        inside = [known[a] for a in node.args]
        if op.head in (sympy.Abs, sympy.sign):
            return _by_sign(op.head, args[0], inside[0])
        return _root(args, inside, dtype) if op.head is hypot else None
    if isinstance(op, Fallback):
        sums = known[node.args[0]]
        return args[1] if sums.sure and op.low <= sums.low and sums.high <= op.high else None
    if args != node.args and isinstance(op, Add):
        return signed_sum(list(zip(op.signs, args, strict=True)))
    if args != node.args and isinstance(op, Mul):
        return signed_product(list(zip(op.powers, args, strict=True)))
    return None


def _left_open(node: Node, args: Nodes, known: Known) -> Node | None:
    """The parts of a conjunction or disjunction that are not decided."""
    open_ = [a for a, old in zip(args, node.args, strict=True) if truth_of(known[old]) is None]
    if not isinstance(node.op, Logic) or node.op.kind not in ("and", "or") or len(open_) == len(args):
        return None
    return logic(node.op.kind, *open_) if open_[1:] else open_[0]


def _by_sign(head: type[sympy.Basic], u: Node, inside: Interval) -> Node | None:
    """|u| or sign u of a number of one sign."""
    if not inside.sure or inside.low < 0 < inside.high:
        return None
    negative = bool(inside.low < 0)
    if head is sympy.Abs:
        return neg(u) if negative else u
    return constant(-1 if negative else 1) if inside.smallest else None


def _root(args: Nodes, inside: list[Interval], dtype: str) -> Node | None:
    """√(u² + v²) for hypot(u, v), if no square overflows and the larger one is a normal number."""
    levels = LEVELS.get(dtype)
    largest, least = max(v.largest for v in inside), max(v.smallest for v in inside)
    if levels is None or largest * largest > levels.high or least * least < levels.low:
        return None
    return sqrt(add(*[mul(a, a) for a in args]))


def exact_difference(u: Node, v: Node) -> bool:
    """Whether u − v of two inputs in the box may cancel: it is rounded once, within a factor 2 not at all.

    Source: Sterbenz, "Floating-Point Computation" (1974), theorem 4.3.1.
    """
    sides = current_box()
    if u not in sides or v not in sides:
        return False
    (a, b), (c, d) = sides[u], sides[v]
    return a <= 2 * d and c <= 2 * b


def check_domain(graph: Graph, sides: Sides) -> None:
    """Refuse a box in which a function of the graph has no value anywhere.

    Raises:
        LoweringError: the function, and the box.
    """
    known = value_ranges(graph.output_nodes, _intervals(graph, sides))
    needed, waiting = set[Node](), list(graph.output_nodes)
    while waiting:  # without the branches of selections, which may not be taken
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.args[:1] if isinstance(node.op, Select) else node.args
    for node in needed:
        if isinstance(node.op, Apply) and len(node.args) == 1:
            inside = known[node.args[0]]
            ball = inside.low.union(inside.high)
            if inside.low.is_finite() and inside.high.is_finite() and fact(node.op.head).outside(ball):
                told = ", ".join(f"{symbol_of(n)} in [{a:g}, {b:g}]" for n, (a, b) in sides.items())
                raise LoweringError(
                    f"{node.op.head.__name__} has no value anywhere for {told}: "
                    f"its argument lies between {float(inside.low):g} and {float(inside.high):g}"
                )
