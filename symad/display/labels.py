"""Short labels of nodes for pictures, and the op families that determine their colors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

from symad.core.expressions import is_of_a_float
from symad.core.graph import Node, Op
from symad.core.nodes import Moved
from symad.display.reading import plain
from symad.display.typesetting.contractions import flips_of_product
from symad.display.typesetting.pieces import LatexAtom, Piece, write
from symad.display.typesetting.rules import typeset
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input, Source
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Condition, Logic, Select

SLOT = "·"
"""The placeholder for an argument in a label such as ``2 × ·``."""


@dataclass(frozen=True)
class Family:
    """A kind of operation, with its colors."""

    name: str
    fill: str
    line: str


INPUT = Family("input", "#d9f2d9", "#2e7d32")
CONSTANT = Family("constant", "#eeeeee", "#757575")
ELEMENTWISE = Family("elementwise", "#dbe9ff", "#1f5fbf")
CONTRACTION = Family("contraction, reduction", "#ffe3c2", "#c76a00")
CONDITION = Family("condition", "#fff6bf", "#a88a00")
SHAPING = Family("moves elements", "#ece4f7", "#6a3fa0")
OTHER = Family("linear algebra, other", "#ffd9dd", "#b3263a")


def family(node: Node) -> Family:
    """The family of a node's op."""
    op = node.op
    if isinstance(op, Source):
        return INPUT if isinstance(op, Input) else CONSTANT
    if isinstance(op, (Condition, Select)):
        return CONDITION
    if isinstance(op, (Add, Mul, Pow, Apply)):
        return ELEMENTWISE
    if isinstance(op, ShapingOp) or op.moves <= Moved.PADDED:
        return SHAPING
    return CONTRACTION if isinstance(op, (Extreme, Einsum)) else OTHER


def label(node: Node) -> str:
    """The operation of a node, in a few characters."""
    return _label(node.op, node)


def _number(node: Node) -> str | None:
    """The text of a literal; None for other nodes."""
    if isinstance(node.op, Constant):
        value = node.op.value
        value = float(value) if is_of_a_float(value) else value
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    return str(node.op.expression) if isinstance(node.op, Dimension) else None


def argument_order_shows(node: Node) -> bool:
    """True if a label distinguishes its arguments, so that edges must arrive in their order."""
    return label(node) not in {"+", "×", "and", "or", "xor", "max", "min"}


def slots(node: Node) -> list[Node]:
    """The arguments that get an edge, in the order in which the label shows them."""
    args = list(node.args)
    if isinstance(node.op, Mul):
        powers = dict(enumerate(node.op.powers))
        args = [args[k] for k in sorted(powers, key=lambda k: -powers[k])]
    return [arg for arg in args if not arg.op.literal]


@singledispatch
def _label(op: Op, node: Node) -> str:
    """The label of an op; by default its name."""
    return "".join(c if c.islower() else f" {c.lower()}" for c in type(op).__name__).strip()


@_label.register(Source)
def _source(op: Op, node: Node) -> str:
    return details(node)


@_label.register(ArrayConstant)
def _array(op: ArrayConstant, node: Node) -> str:
    values = op.array
    if not values.size or (values != values.flat[0]).any():
        return "constant"
    return {0: "zeros", 1: "ones"}.get(values.flat[0].item(), f"all {values.flat[0]:.4g}")


@_label.register(Slice)
def _slice(op: Slice, node: Node) -> str:
    """The subscripts as Python writes them."""
    parts = []
    for dim, start, count, step in zip(node.args[0].shape, op.start, op.count, op.step, strict=True):
        stop = start + count * step
        whole = start == 0 and count == dim and step == 1
        part = str(start) if count == 1 else f"{start}:{stop}" + (f":{step}" if step != 1 else "")
        parts.append(":" if whole else part)
    return f"[{', '.join(parts)}]"


@_label.register(Extreme)
def _extreme(op: Extreme, node: Node) -> str:
    whole = len(op.axes) == len(node.args[0].shape)
    return op.kind + ("" if whole else " axis " + ", ".join(map(str, op.axes)))


@_label.register(Input)
def _input(op: Input, node: Node) -> str:
    return str(op.symbol)


@_label.register(Add)
def _add(op: Add, node: Node) -> str:
    numbers = [_number(a) for a in node.args]
    if not any(numbers) and all(sign == 1 for sign in op.signs):
        return "+"
    if not any(numbers) and op.signs == (1, -1):
        return "−"
    terms = [(sign, n or SLOT) for sign, n in zip(op.signs, numbers, strict=True)]
    text = " ".join(("+ " if sign == 1 else "− ") + term for sign, term in terms)
    return text.removeprefix("+ ")


@_label.register(Mul)
def _mul(op: Mul, node: Node) -> str:
    numbers = [_number(a) for a in node.args]
    if not any(numbers) and all(power == 1 for power in op.powers):
        return "×"
    if not any(numbers) and sum(op.powers) == 0 and len(op.powers) == 2:
        return "÷"
    over = [n or SLOT for p, n in zip(op.powers, numbers, strict=True) if p == 1]
    under = [n or SLOT for p, n in zip(op.powers, numbers, strict=True) if p == -1]
    return " × ".join(over or ["1"]) + "".join(f" ÷ {n}" for n in under)


SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@_label.register(Pow)
def _pow(op: Pow, node: Node) -> str:
    base, exponent = node.args
    value = exponent.op.value if isinstance(exponent.op, Constant) else None
    if value == Fraction(1, 2):
        return "√" + (_number(base) or SLOT)
    if isinstance(value, int):
        return (_number(base) or SLOT) + str(value).translate(SUPERSCRIPTS)
    return f"{_number(base) or SLOT} ^ {_number(exponent) or SLOT}"


@_label.register(Apply)
def _apply(op: Apply, node: Node) -> str:
    name = str(op.head.__name__)
    numbers = [_number(a) for a in node.args]
    if not any(numbers):
        return name.lower() if name in {"Max", "Min"} else name
    return f"{name}({', '.join(n or SLOT for n in numbers)})"


@_label.register(Compare)
def _compare(op: Compare, node: Node) -> str:
    signs = {"<=": "≤", "==": "=", "!=": "≠"}
    left, right = (_number(a) or SLOT for a in node.args)
    sign = signs.get(op.relation, op.relation)
    return sign if left == right == SLOT else f"{left} {sign} {right}"


@_label.register(Logic)
def _logic(op: Logic, node: Node) -> str:
    return op.kind


@_label.register(Select)
def _select(op: Select, node: Node) -> str:
    yes, no = (_number(a) or SLOT for a in node.args[1:])
    return f"if · then {yes} else {no}"


@_label.register(Einsum)
def _einsum(op: Einsum, node: Node) -> str:
    if len(node.args) == 2:
        flips = flips_of_product(op)
        if flips is not None:
            return {(False, False): "@", (True, False): "·ᵀ @ ·", (False, True): "· @ ·ᵀ"}.get(
                flips, "·ᵀ @ ·ᵀ"
            )
        if op.inputs[0] == op.inputs[1] and not op.output:
            return "Σ · × ·"
    if len(node.args) == 1 and set(op.inputs[0]) == set(op.output):
        if len(op.inputs[0]) > len(op.output):
            return "diagonal"
        return "transpose" if len(op.output) == 2 else "permute"
    if len(node.args) == 1 and len(set(op.inputs[0])) == len(op.inputs[0]):
        gone = [k for k, axis in enumerate(op.inputs[0]) if axis not in op.output]
        return "Σ" if not op.output else "Σ axis " + ", ".join(map(str, gone))
    return "trace" if op.spec == "ii->" else op.spec.replace("->", " → ")


def details(node: Node) -> str:
    """The formula of a node in terms of arguments a, b, c, ...; for tooltips."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    names: list[Piece] = [
        typeset(a.op, a, ()) if a.op.literal else LatexAtom(next(letters, f"a_{{{k}}}"))
        for k, a in enumerate(node.args)
    ]
    return plain(write(typeset(node.op, node, names)))
