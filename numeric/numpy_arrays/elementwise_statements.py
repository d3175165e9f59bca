"""Elementwise nodes as NumPy steps, each with the array it writes into."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy

from symad.core.graph import Node, op_of
from symad.library.scalar_functions import relu, sigmoid, silu, softplus
from symad.numeric.numpy_arrays.elementwise_helpers import (
    CLEAR,
    ERFC,
    LIMIT,
    SECH,
    SIGMOID,
    SILU,
    SOFTMAX_TANGENT,
    SOFTPLUS,
)
from symad.numeric.passes.memory_layout.memory_spans import Cleared
from symad.numeric.program_passes.memory import ufunc_name
from symad.numeric.targets import helpers
from symad.ops.arrays.sources import constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.ops.fused.softmax import Softmax, SoftmaxTangent

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


@dataclass(frozen=True)
class Step:
    """``function(*args)`` into the array ``out``; None for a new one."""

    function: str
    args: tuple[str, ...]
    out: str | None = None

    def text(self, np_: str) -> str:
        """The expression, with a third argument if it writes into an array."""
        symbol = INFIX.get(self.function)
        if symbol and self.out is None:
            return f"{self.args[0]} {symbol} {self.args[1]}" if symbol in "+-" else symbol.join(self.args)
        name = self.function if "." in self.function or self.function[0] == "_" else f"{np_}.{self.function}"
        if self.function == "negative" and self.out is None:
            return f"-{self.args[0]}"
        # NumPy takes the third positional argument of these two for one more operand
        keyword = "out=" if self.function in ("maximum", "minimum", "fmin") else ""
        return f"{name}({', '.join([*self.args, *([keyword + self.out] if self.out else [])])})"

    def line(self, name: str, np_: str) -> str:
        """The statement that makes ``name``."""
        symbol = INFIX.get(self.function)
        if symbol and self.out == self.args[0]:
            return f"{self.out} {symbol}= {self.args[1]}"
        if self.out is None or self.out != name:
            return f"{name} = {self.text(np_)}"
        return self.text(np_)


Steps = Sequence[Step]
Term = tuple[int, str, "Node | None"]
"""A sign or power, the text, and the node; None for a number."""
Writer = Callable[[Node, Any], "list[Step] | None"]


def into(steps: Steps, slot: str) -> list[Step]:
    """The steps, the last of which writes into ``slot``."""
    return [*steps[:-1], replace(steps[-1], out=slot)]


# ---- sums and products ---------------------------------------------------------------------------


def sum_steps(node: Node, printer: Any) -> list[Step] | None:
    """Σ ± terms: numbers first joined to one, then one step for each further term."""
    op: Any = node.op
    arrays = [(s, a) for s, a in zip(op.signs, node.args, strict=True) if a.shape]
    scalars = [(s, a) for s, a in zip(op.signs, node.args, strict=True) if not a.shape]
    numbers = [(s, printer.text[a]) for s, a in scalars]
    terms: list[Term] = [(s, printer.operand(a), a) for s, a in arrays]
    if numbers:
        sign, text = numbers[0] if len(numbers) == 1 else (1, f"({_signed(numbers)})")
        terms.append((sign, printer.number(text, [a for _, a in scalars]), None))
    return _chain(node, terms, printer, ("add", "subtract", "negative"))


def _signed(numbers: Sequence[tuple[int, str]]) -> str:
    text = ""
    for sign, number in numbers:
        text += (" + " if sign == 1 else " - ") + number if text else ("" if sign == 1 else "-") + number
    return text


def product_steps(node: Node, printer: Any) -> list[Step] | None:
    """Π factors^±1: numbers first joined to one, then one step for each further factor."""
    op: Any = node.op
    pairs = list(zip(op.powers, node.args, strict=True))
    scalars = [a for a in node.args if not a.shape]
    numbers = [(p, printer.text[a]) for p, a in pairs if not a.shape]
    factors: list[Term] = [
        (p, printer.factor(a) if p == 1 else printer.operand(a), a) for p, a in pairs if a.shape
    ]
    if len(numbers) == 1:
        factors.append((numbers[0][0], printer.number(numbers[0][1], scalars), None))
    elif numbers:
        factors.append((1, printer.number(_joined(pairs, numbers, printer), scalars), None))
    return _chain(node, factors, printer, ("multiply", "divide", "reciprocal"))


def _joined(pairs: Sequence[tuple[int, Node]], numbers: Sequence[tuple[int, str]], printer: Any) -> str:
    """The product of some numbers^±1: NumPy divides by 0, but its own numbers are of double precision."""
    over = "*".join([t for p, t in numbers if p == 1] or ["1"])
    under = "*".join([t for p, t in numbers if p == -1])
    if not under:
        return f"({over})" if "*" in over else over
    values = [(p, constant_value(a)) for p, a in pairs if not a.shape]
    text = f"{printer.np}.true_divide({over}, {under})"
    if any(value is None for _, value in values):
        return text
    zero = any(p == -1 and value == 0 for p, value in values)
    return f"{printer.type_text}({text})" if zero else f"({over}/({under}))"


def _chain(
    node: Node,
    terms: Sequence[Term],
    printer: Any,
    names: tuple[str, str, str],
) -> list[Step] | None:
    """A sum or product of terms t with their signs or powers ±1, first into an operand that ends."""
    direct, inverse, alone = names
    rest = list(terms)
    ending = [t for t in rest if t[2] is not None and printer.ends(t[2], node)]
    first = max(ending, key=lambda t: t[0], default=None)
    out: str | None = printer.text[first[2]] if first else None
    if first is None:
        first = _start(node, rest, printer)
        if first is None:
            return None
    rest.remove(first)
    steps: list[Step] = []
    sign, text, _ = first
    if sign == -1:
        partner = next((t for t in rest if t[0] == 1), None)
        if partner is None:
            steps.append(Step(alone, (text,), out))
        else:
            rest.remove(partner)
            steps.append(Step(inverse, (partner[1], text), out))
    elif not rest:
        return None
    else:
        partner = _partner(node, first, rest, printer)
        rest.remove(partner)
        steps.append(Step(direct if partner[0] == 1 else inverse, (text, partner[1]), out))
    target = out or printer.fresh
    for sign, text, _ in rest:
        steps.append(Step(direct if sign == 1 else inverse, (target, text), target))
    return steps


def _start(node: Node, terms: Sequence[Term], printer: Any) -> Term | None:
    """A term to begin a new array with: one of full shape, or the first of two that fill it."""
    whole = [t for t in terms if t[2] is not None and not printer.is_lean(t[2])]
    if whole:
        return next((t for t in whole if t[0] == 1), whole[0])
    lean = [t for t in terms if t[2] is not None and t[0] == 1]
    if len(lean) > 1 and _covers(node, lean[0], lean[1]):
        return lean[0]
    return None


def _partner(
    node: Node,
    first: Term,
    rest: Sequence[Term],
    printer: Any,
) -> Term:
    """The second term: after a lean one the one that fills the shape with it."""
    if first[2] is None or not printer.is_lean(first[2]):
        return rest[0]
    return next(t for t in rest if t[2] is not None and _covers(node, first, t))


def _covers(node: Node, one: Term, other: Term) -> bool:
    axes: set[int] = set()
    for _, _, term in (one, other):
        if term is not None:
            axes |= set(getattr(term.op, "axes", ()))
    return axes == set(range(len(node.shape)))


# ---- functions -----------------------------------------------------------------------------------


def power_steps(node: Node, printer: Any) -> list[Step] | None:
    """Squares and square roots."""
    exponent = constant_value(node.args[1])
    base = node.args[0]
    if not base.shape or printer.is_lean(base):
        return None
    text = printer.text[base]
    out = text if printer.ends(base, node) else None
    if exponent == 2:
        return [Step("multiply", (text, text), out)]
    if exponent == sympy.Rational(1, 2):
        return [Step("sqrt", (text,), out)]
    return None


def function_steps(node: Node, printer: Any) -> list[Step] | None:
    """Functions of one array; maxima and minima."""
    head = op_of(node, Apply).head
    if head in (sympy.Max, sympy.Min):
        return _extreme(node, "maximum" if head is sympy.Max else "minimum", printer)
    if len(node.args) != 1 or printer.is_lean(node.args[0]):
        return None
    (arg,) = node.args
    text = printer.text[arg]
    out = text if printer.ends(arg, node) else None
    if head is relu:
        return [Step("maximum", (text, printer.number("0")), out)]
    if head in (sigmoid, silu):
        printer.helper("_sigmoid", SIGMOID)
        if head is sigmoid:
            return [Step("_sigmoid", (text,), out)]
        return [Step(printer.helper("_silu", SILU), (text,))]
    if head is softplus:
        return [Step(printer.helper("_softplus", SOFTPLUS), (text,))]
    if head is sympy.sech:
        return [Step(printer.helper("_sech", SECH), (text,), out)]
    if head is sympy.erfc and printer.dtype == "float32":
        return [Step(printer.helper("_erfc", ERFC), (text,))]
    name = ufunc_name(head)
    if name is None:
        return None
    if "." in name:
        printer.imports.add("import scipy.special")
    return [Step(name, (text,), out)]


def cleared_steps(node: Node, printer: Any) -> list[Step] | None:
    """A span of memory with zeros in its gaps."""
    (flat,) = node.args
    text = printer.text[flat]
    gaps: Any = node.op.gaps  # type: ignore[attr-defined]
    helper = printer.helper("_clear", CLEAR)
    return [Step(helper, (text, str(gaps)), text if printer.ends(flat, node) else None)]


def select_steps(node: Node, printer: Any) -> list[Step] | None:
    """Scores where a repeated mask holds, and −∞ elsewhere, for a softmax: the smaller of them and ±∞.

    A score that is hidden does not matter, whatever it is: of a number and NaN, ``fmin`` takes the number.
    """
    mask, scores, low = node.args
    users = printer.users.get(node, [])
    for_softmax = bool(users) and all(isinstance(user.op, Softmax) for user in users)
    plain = bool(scores.shape) and not printer.is_lean(scores)
    if constant_value(low) != -math.inf or not (for_softmax and plain and printer.is_lean(mask)):
        return None
    text = printer.text[scores]
    limit = f"{printer.helper('_limit', LIMIT)}({printer.operand(mask)}, {printer.type_text})"
    return [Step("fmin", (text, limit), text if printer.ends(scores, node) else None)]


def softmax_steps(node: Node, printer: Any) -> list[Step] | None:
    """A softmax over some axes."""
    (arg,) = node.args
    op: Any = node.op
    if printer.is_lean(arg):
        return None
    text = printer.text[arg]
    softmax = printer.writer.helper(helpers._softmax)
    return [Step(softmax, (text, str(op.axes)), text if printer.ends(arg, node) else None)]


def softmax_tangent_steps(node: Node, printer: Any) -> list[Step] | None:
    """The derivative of a softmax p along t, into t."""
    p, t = node.args
    op: Any = node.op
    if printer.is_lean(p) or printer.is_lean(t):
        return None
    printer.helper("_softmax_tangent", SOFTMAX_TANGENT)
    out = printer.text[t] if p is not t and printer.ends(t, node) else None
    return [Step("_softmax_tangent", (printer.text[p], printer.text[t], str(op.axes)), out)]


def _extreme(node: Node, name: str, printer: Any) -> list[Step] | None:
    ending = next((a for a in node.args if a.shape and printer.ends(a, node)), None)
    first = ending or next((a for a in node.args if a.shape and not printer.is_lean(a)), None)
    if first is None:
        return None
    rest = list(node.args)
    rest.remove(first)
    out = printer.text[first] if ending else None
    target = out or printer.fresh
    steps = [Step(name, (printer.text[first], printer.operand(rest[0])), out)]
    steps += [Step(name, (target, printer.operand(a)), target) for a in rest[1:]]
    return steps


WRITERS: dict[type, Writer] = {
    Add: sum_steps,
    Mul: product_steps,
    Pow: power_steps,
    Apply: function_steps,
    Cleared: cleared_steps,
    Select: select_steps,
    Softmax: softmax_steps,
    SoftmaxTangent: softmax_tangent_steps,
}
"""Ops that are written as steps."""


def is_indicator(node: Node) -> bool:
    """Whether the node is 1 where a condition holds, and 0 elsewhere."""
    return (
        isinstance(node.op, Select)
        and constant_value(node.args[1]) == 1
        and constant_value(node.args[2]) == 0
    )
