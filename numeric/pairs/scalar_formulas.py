"""Scores and pair functions as graphs of scalars, from which every target prints them.

Equal subexpressions are one node. Sums and products are grouped so that operands which change less often
stand together: compilers may not reorder floating-point operations, and then move these groups out of inner
loops. Exact numbers of a product become one factor in front.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import sympy as sp

from symad.core.graph import Node, rebuild, topological
from symad.core.questions import Nodes
from symad.errors import LoweringError
from symad.numbers.number_domains import as_float
from symad.numeric.pairs.stable_sympy import FloorDivide, Share
from symad.ops.basic.arithmetic import Add, Mul, add, div
from symad.ops.basic.sources import Constant, Input, constant, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select, equal, indicator, select
from symad.tracing.walk import Tracer, lift

CLOSED = (sp.Max, sp.Min, sp.Mod, sp.Abs, sp.sign)
"""Functions whose values at integers are integers of the same size."""

MAX_INTEGER_POWER = 4
"""Powers of integers up to this one are products of integers; higher ones could overflow.

Origin: the range of integers of 32 bits, for positions up to 200.
"""


@lift.register(Share)
def share_lift(expression: Share, args: Nodes, tracer: Tracer) -> Node:
    """1/k for each of the k arguments that are the extremum, 0 for the others."""
    value, extremum, *others = args
    ties = add(*(indicator(equal(other, extremum)) for other in others))
    return select(equal(value, extremum), div(constant(1), ties), constant(0))


@dataclass
class ScalarFormulas:
    """Traces scalar expressions of some symbols.

    Attributes:
        levels: how often a symbol changes: 0 (if it is not in the mapping) for never within a loop, larger
            numbers for inner loops.
        kinds: the type of each node: "int", "real" or "bool"; at first those of symbols that stand for
            conditions. Numbers are real, and are written as integers where they are combined with integers.
    """

    levels: Mapping[sp.Symbol, int] = field(default_factory=dict)
    kinds: dict[Node, str] = field(default_factory=dict)
    _known: dict[Node, int] = field(default_factory=dict)

    def traced(self, expressions: Sequence[sp.Basic]) -> list[Node]:
        """The nodes of some expressions.

        A Piecewise is NaN where no condition holds.
        """
        tracer = Tracer()
        for value in (sp.oo, -sp.oo, sp.nan):
            tracer.assume(value, constant(float(value)))
        return [*rebuild([tracer.trace(_complete(e)) for e in expressions], {}, self._noted)]

    def _noted(self, node: Node, args: Nodes) -> Node:
        """A node with new arguments; its kind and level are recorded."""
        made = self._made(node, args)
        self._note(made)
        return made

    def _note(self, node: Node) -> None:
        for part in (node, *node.args):  # a group is made together with its user
            if part not in self._known:
                for arg in part.args:
                    self._note(arg)
                symbol = part.op.symbol if isinstance(part.op, Input) else None
                own = self.levels.get(symbol, 0) if isinstance(symbol, sp.Symbol) else 0
                self._known[part] = max((self._known[a] for a in part.args), default=own)
                self.kinds.setdefault(part, self._kind(part))

    def _kind(self, node: Node) -> str:
        op, kinds = node.op, [self.kinds[a] for a in node.args]
        if isinstance(op, Input):
            return "int" if op.symbol.is_integer else "real"
        if isinstance(op, Condition) or (isinstance(op, Constant) and isinstance(op.value, bool)):
            return "bool"
        if isinstance(op, Apply) and op.head is FloorDivide:
            return "int"
        values = node.args[1:] if isinstance(op, Select) else node.args
        whole = all(self.kinds[v] == "int" or is_integer(v) for v in values)
        return "int" if _is_closed(node) and whole and "int" in kinds else "real"

    def _made(self, node: Node, args: Nodes) -> Node:
        op = node.op
        if isinstance(op, Add):
            return self._sum([*zip(op.signs, args, strict=True)])
        if isinstance(op, Mul):
            return self._product([*zip(op.powers, args, strict=True)])
        if isinstance(op, Pow) and not isinstance(args[1].op, Constant):
            return Node.of(op, (self._as_real(args[0]), args[1]))
        return node if args == node.args else Node.of(op, args)

    def _as_real(self, base: Node) -> Node:
        """The base of a power: libraries refuse negative powers of integers."""
        if isinstance(base.op, Constant):
            return constant(as_float(base.op.value))
        whole = self.kinds[base] == "int"
        return Node.of(Mul((1, 1)), (constant(1.0), base)) if whole else base

    def _by_level(self, parts: Sequence[tuple[int, Node]]) -> list[list[tuple[int, Node]]]:
        found: dict[int, list[tuple[int, Node]]] = {}
        for sign, arg in parts:
            found.setdefault(self._known[arg], []).append((sign, arg))
        return [found[level] for level in sorted(found)]

    def _sum(self, terms: Sequence[tuple[int, Node]]) -> Node:
        made: list[tuple[int, Node]] = []
        for group in self._by_level(terms):
            (sign, first), *rest = sorted([*made, *group], key=lambda term: -term[0])
            if sign == -1 and (opposite := _negated(first)) is not None:
                sign, first = 1, opposite
            whole = not rest and sign == 1
            signs = (sign, *(s for s, _ in rest))
            made = [(1, first if whole else Node.of(Add(signs), (first, *(a for _, a in rest))))]
        return made[0][1]

    def _product(self, factors: Sequence[tuple[int, Node]]) -> Node:
        number, others = Fraction(1), []
        for power, arg in factors:
            value = arg.op.value if isinstance(arg.op, Constant) else None
            if isinstance(value, (int, Fraction)) and not isinstance(value, bool) and (power == 1 or value):
                number *= Fraction(value) ** power
            else:
                others.append((power, arg))
        front: list[tuple[int, Node]] = []
        if number != 1 or not others:
            front = [(1, constant(number if number.denominator == 1 else as_float(number)))]
            self._note(front[0][1])
        made: list[tuple[int, Node]] = []
        for group in self._by_level([*front, *others]):
            powers, args = zip(*made, *group, strict=True)
            made = [(1, args[0] if powers == (1,) else Node.of(Mul(powers), args))]
        return made[0][1]


def _complete(expression: sp.Basic) -> sp.Basic:
    """The expression with a last branch NaN in every Piecewise that has no last branch."""
    return expression.replace(
        lambda e: isinstance(e, sp.Piecewise) and e.args[-1].cond != sp.true,
        lambda e: sp.Piecewise(*e.args, (sp.nan, True)),
    )


def check_known(nodes: Sequence[Node], known: Collection[Node]) -> None:
    """Check that the inputs of some nodes are known.

    Raises:
        LoweringError: one of them is not; it may be an undefined function.
    """
    for node in topological(nodes):
        if isinstance(node.op, Input) and node not in known:
            names = ", ".join(sorted(str(symbol_of(n)) for n in known if isinstance(n.op, Input)))
            raise LoweringError(f"unknown symbol {node.op.symbol}: the expression may use {names}")


def is_integer(node: Node) -> bool:
    """Whether a node is an integer number."""
    value = node.op.value if isinstance(node.op, Constant) else None
    return isinstance(value, int) and not isinstance(value, bool)


def _negated(node: Node) -> Node | None:
    """The negative of a number, or of a product that begins with one; None for others."""
    if isinstance(node.op, Constant) and not isinstance(node.op.value, sp.NumberSymbol):
        return constant(-node.op.value)
    if isinstance(node.op, Mul) and node.op.powers[0] == 1:
        first = _negated(node.args[0])
        return None if first is None else Node.of(node.op, (first, *node.args[1:]))
    return None


def _is_closed(node: Node) -> bool:
    """Whether an op makes an integer of integers."""
    op = node.op
    if isinstance(op, Pow) and isinstance(node.args[1].op, Constant):
        return node.args[1].op.value in range(1, MAX_INTEGER_POWER + 1)
    if isinstance(op, Apply):
        return op.head in CLOSED
    return isinstance(op, (Add, Select)) or (isinstance(op, Mul) and -1 not in op.powers)
