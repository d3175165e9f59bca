"""What the values of a graph are called in the name of a mistake: by the user, or by operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import isfinite, sqrt
from typing import Any

import sympy

from symad.core.following import following
from symad.core.graph import Graph, Node, Op, op_of, topological
from symad.core.nodes import Moved
from symad.core.variables import Variable
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Input
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.rewriting.rewrite import expand_definitions

DEPTH = 3
"""How many operations of a value without a name are told."""

MAX_DENOMINATOR, DECIMALS = 64, 3
CLOSE = 1e-5


def expanded(graph: Graph) -> tuple[tuple[Node, ...], dict[Node, str]]:
    """The outputs of a graph without fused ops, and the names of the user's variables among their nodes."""
    own: Sequence[Variable] = [v for v in graph.variables if v.scope is None]
    names = {v.node: v.name for v in own}
    with following(names) as stand_ins:
        outputs = expand_definitions(graph.output_nodes)
    order = {node: k for k, node in enumerate(topological(outputs))}
    told = {made: names[old] for made, old in stand_ins.items() if made in order}
    found = {node: told[node] for node in sorted(told, key=order.__getitem__)}
    for node in list(found):  # keepdims=True is a reshape of the value that is used
        while isinstance(node.op, Reshape) and node.args[0] not in found:
            (inner,) = node.args
            found[inner] = found[node]
            node = inner
    return outputs, found


class Words:
    """Names for nodes."""

    def __init__(self, names: Mapping[Node, str]) -> None:
        """``names`` are those of the user's variables; of several values of one name the first keeps it."""
        first: dict[str, Node] = {}
        for node, name in names.items():
            first.setdefault(name, node)
        self.names = {node: name for node, name in names.items() if _is_one(node, first[name])}
        self._known: dict[Node, str] = {}
        self.reciprocals = {n.args[0]: name for n, name in self.names.items() if _is_reciprocal(n)}

    def is_named(self, node: Node) -> bool:
        """Whether a node is a variable or an input, or has its elements."""
        while node.op.moves is Moved.IN_ORDER and node not in self.names:
            (node,) = node.args
        return node in self.names or node in self.reciprocals or isinstance(node.op, Input)

    def of(self, node: Node) -> str:
        """A node by its name or its operations, in one pair of quotation marks."""
        if node not in self._known:
            self._known[node] = _quoted(self._told(node, DEPTH))
        return self._known[node]

    def path(self, node: Node) -> str:
        """A node as that through which a path leads."""
        if node in self.reciprocals or argument_of_sigmoid(node) is not None:
            return without_reciprocal(self.of(node))
        return self.of(node)

    def distance(self, node: Node) -> float:
        """How far a node is from the names of the user, 0 for a name: the closest is told."""
        if self.is_named(node):
            return 0.0
        told = self.path(node)
        return 0.5 if told.startswith((MEAN, "`sigmoid")) else 1 + min(len(told), 99) / 100

    def _told(self, node: Node, depth: int) -> str:
        if node in self.names:
            return self.names[node]
        if isinstance(node.op, Input):
            return str(node.op.symbol)
        if isinstance(node.op, Constant):
            return _number(node.op.value)
        if node.op.moves is Moved.IN_ORDER:
            return self._told(node.args[0], depth)
        if isinstance(node.op, Slice):
            return f"{self._told(node.args[0], depth)}[{_part(node.op, node.args[0])}]"
        if node in self.reciprocals:
            return f"1/{self.reciprocals[node]}"
        inside = argument_of_sigmoid(node)
        if inside is not None:
            return f"1/sigmoid({_bare(self._told(inside, depth - 1))})" if depth else "…"
        averaged = self._averaged(node)
        if averaged is not None:
            return MEAN + self._told(averaged, depth - 1)
        if not depth:
            return "…"
        inner = [self._told(a, depth - 1) for a in node.args]
        rule = next((rule for kind, rule in RULES.items() if isinstance(node.op, kind)), _called)
        return rule(node.op, inner)

    def _averaged(self, node: Node) -> Node | None:
        """Of what a node is the mean, if it is one."""
        if not isinstance(node.op, Mul) or node.op.powers not in ((1, -1), (1, 1)):
            return None
        for total, count in (node.args, node.args[::-1] if node.op.powers == (1, 1) else node.args):
            value = count.op.value if isinstance(count.op, Constant) else None
            is_number = isinstance(value, (int, float, Fraction))
            if isinstance(total.op, Einsum) and len(total.args) == 1 and is_number:
                op = op_of(total, Einsum)
                size = 1
                for label, dim in zip(op.inputs[0], total.args[0].shape, strict=True):
                    size *= 1 if label in op.output else int(dim)
                if size > 1 and value == (size if node.op.powers == (1, -1) else 1 / Fraction(size)):
                    return total.args[0]
        return None


MEAN = "the mean of "


def _bare(told: str) -> str:
    """A formula without parentheses around all of it."""
    if not told.startswith("("):
        return told
    open_ = list(accumulate((c == "(") - (c == ")") for c in told))
    return told[1:-1] if open_.index(0) == len(told) - 1 else told


def _quoted(told: str) -> str:
    """A formula in quotation marks; numbers and English words have none."""
    if told.startswith(MEAN):
        return MEAN + _quoted(told.removeprefix(MEAN))
    is_formula = any(c.isalpha() for c in told) and told != ARRAY
    return f"`{_bare(told)}`" if is_formula else told


def without_reciprocal(told: str) -> str:
    """``x`` for ``1/x``, in quotation marks."""
    return told.replace("`1/", "`", 1)


def _listed(arguments: Sequence[str]) -> str:
    return ", ".join(map(_bare, arguments))


ARRAY = "an array of numbers"


def _number(value: object) -> str:
    return f"{float(value):.6g}" if isinstance(value, float) else str(value)


def _part(op: Slice, whole: Node) -> str:
    """The elements of a slice, as NumPy writes them."""
    told = []
    for start, count, step, size in zip(op.start, op.count, op.step, whole.shape, strict=True):
        stop = start + (count - 1) * step + (1 if step > 0 else -1)
        ends = f"{start}:{stop if stop >= 0 else ''}" if count != size or step != 1 else ":"
        told.append(f"{start}" if count == 1 else f"{ends}:{step}" if step != 1 else ends)
    return ", ".join(told)


Rule = Callable[[Any, list[str]], str]
"""An op and the words of its arguments."""


def _einsum(op: Einsum, inner: list[str]) -> str:
    if len(inner) > 1:
        return " · ".join(inner)
    return f"Σ {inner[0]}" if len(op.output) < len(op.inputs[0]) else inner[0]


def _power(op: Op, inner: list[str]) -> str:
    base = _bare(inner[0])
    return f"√({base})" if inner[1] == "1/2" else f"{base if base.isidentifier() else f'({base})'}^{inner[1]}"


def _sum(op: Add, inner: list[str]) -> str:
    terms = [("− " if s < 0 else "+ ") + x for s, x in zip(op.signs, inner, strict=True)]
    return f"({' '.join(terms).removeprefix('+ ')})"


def _product(op: Mul, inner: list[str]) -> str:
    factors = [_factor(p, x) for p, x in zip(op.powers, inner, strict=True)]
    return " ".join(sorted(factors, key=lambda x: x.startswith("/ ")))


def _called(op: Op, inner: list[str]) -> str:
    return f"{type(op).__name__}({_listed(inner)})"


RULES: dict[type[Op], Rule] = {
    Einsum: _einsum,
    Pow: _power,
    Add: _sum,
    Mul: _product,
    ArrayConstant: lambda op, inner: ARRAY,
    Compare: lambda op, inner: f"{inner[0]} {op.relation} {inner[1]}",
    Select: lambda op, inner: f"where({_listed(inner)})",
    Extreme: lambda op, inner: f"{op.kind} {inner[0]}",
    Apply: lambda op, inner: f"{op.head.__name__}({_listed(inner)})",
}


def _is_one(node: Node, other: Node) -> bool:
    """Whether two nodes have the same elements in the same order."""
    while node.op.moves is Moved.IN_ORDER:
        (node,) = node.args
    while other.op.moves is Moved.IN_ORDER:
        (other,) = other.args
    return node is other


def _factor(power: int, told: str) -> str:
    """A factor of a product, or a divisor; 1/(1/x) is x."""
    if power < 0 and told.startswith("1/"):
        return told.removeprefix("1/")
    return f"/ {told}" if power < 0 else told


def _is_reciprocal(node: Node) -> bool:
    return isinstance(node.op, Mul) and node.op.powers == (-1,)


def base_of(node: Node) -> Node:
    """The node whose elements a node repeats, up to signs and reciprocals; sums and products may use it."""
    while (
        node.op.moves is Moved.IN_ORDER
        or _is_reciprocal(node)
        or (isinstance(node.op, Add) and node.op.signs == (-1,))
    ):
        (node,) = node.args
    return node


def argument_of_sigmoid(node: Node) -> Node | None:
    """z of 1 + exp(−z), of which sigmoid(z) is the reciprocal; None for other nodes."""
    if not isinstance(node.op, Add) or node.op.signs != (1, 1):
        return None
    for one, power in (node.args, node.args[::-1]):
        if isinstance(one.op, Constant) and one.op.value == 1:
            while power.op.moves is Moved.IN_ORDER:
                (power,) = power.args
            if isinstance(power.op, Apply) and power.op.head is sympy.exp:
                inner = power.args[0]
                if isinstance(inner.op, Add) and inner.op.signs == (-1,):
                    return inner.args[0]
    return None


def factor_of(scale: float) -> str:
    """The factor that is missing where a part counts ``scale`` times; empty if it is no simple number."""
    if not isfinite(scale) or abs(scale) < CLOSE:
        return ""
    wanted = 1 / scale
    simple = Fraction(wanted).limit_denominator(MAX_DENOMINATOR)
    if simple and abs(float(simple) - wanted) <= CLOSE * abs(wanted):
        return str(simple)
    square = Fraction(wanted * wanted).limit_denominator(MAX_DENOMINATOR)
    if square and abs(sqrt(square) - abs(wanted)) <= CLOSE * abs(wanted):
        sign = "−" if wanted < 0 else ""
        return f"{sign}√{square}" if square.denominator == 1 else f"{sign}√({square})"
    decimal = round(scale, DECIMALS)
    return f"1/{decimal:g}" if abs(decimal - scale) <= CLOSE * abs(scale) else ""
