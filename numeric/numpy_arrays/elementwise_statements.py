"""Elementwise statements as calls of NumPy's functions, each with the array that it writes into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy

from symad.core.graph import Node
from symad.numeric.expressions.numbers import literal
from symad.numeric.numpy_arrays.elementwise_helpers import (
    CLEAR,
    ERFC,
    LIMIT,
    SECH,
    SIGMOID,
    SILU,
    SOFTPLUS,
    WITHOUT_OUT,
)
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.printing import InPlacePrinting
from symad.numeric.numpy_arrays.texts import Name
from symad.numeric.passes.memory_layout.memory_spans import Cleared
from symad.numeric.program.expressions import Compute, Expression, Read, op_in
from symad.numeric.program_passes.lines.repeats import is_indicator, is_repeated
from symad.numeric.program_passes.memory.allocation import ufunc_name
from symad.numeric.targets.arrays import ALONG_AXES
from symad.ops.arrays.softmax import (
    ExponentialOp,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.sympy_functions.scalar_functions import relu, sigmoid, silu, softplus

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


@dataclass(frozen=True)
class Step:
    """``function(*args)``, written into the array ``out``, or into a new array if ``out`` is None."""

    function: str
    args: tuple[str, ...]
    out: str | None = None

    def text(self, np_: str) -> str:
        """The call as an expression; ``out`` is its last argument if there is one."""
        symbol = INFIX.get(self.function)
        if symbol and self.out is None:
            return f"{self.args[0]} {symbol} {self.args[1]}" if symbol in "+-" else symbol.join(self.args)
        name = self.function if "." in self.function or self.function[0] == "_" else f"{np_}.{self.function}"
        if self.function == "negative" and self.out is None:
            return f"-{self.args[0]}"
        # NumPy deprecates a positional ``out`` of maximum and minimum: it could be meant as an operand
        keyword = "out=" if self.function in ("maximum", "minimum", "fmin") else ""
        return f"{name}({', '.join([*self.args, *([keyword + self.out] if self.out else [])])})"

    def line(self, name: str, np_: str) -> str:
        """The statement that assigns the result to ``name``."""
        symbol = INFIX.get(self.function)
        if symbol and self.out == self.args[0]:
            return f"{self.out} {symbol}= {self.args[1]}"
        if self.out is None or self.out != name:
            return f"{name} = {self.text(np_)}"
        return self.text(np_)


Call = tuple[str, tuple[str, ...]]
"""The name of a function and the texts of its arguments."""
Rule = Callable[[Compute, "InPlacePrinting"], "Call | None"]


def call_of(expression: Expression, printer: InPlacePrinting) -> Call | None:
    """The call that computes an expression; None if no function of `RULES` does."""
    rule = RULES.get(type(expression.op)) if isinstance(expression, Compute) and expression.shape else None
    return None if rule is None else rule(expression, printer)  # type: ignore[arg-type]  # a `Compute`


def operand(expression: Expression, printer: InPlacePrinting) -> str:
    """The text of an operand that NumPy broadcasts."""
    if not expression.shape:
        return str(printer.number(_number(expression, printer), expression))
    if not isinstance(expression, Compute) or not is_repeated(expression):
        return str(printer.text_of(expression))
    text, op = str(printer.text_of(expression.args[0])), expression.op
    if not isinstance(op, Broadcast):
        return f"{text}.astype({printer.type_text})"
    rank = len(expression.shape)
    if op.axes == tuple(range(rank - len(op.axes), rank)):
        return text
    return f"{text}[{', '.join(':' if k in op.axes else 'None' for k in range(rank))}]"


def _factor(expression: Expression, power: int, printer: InPlacePrinting) -> str:
    """The text of a factor; NumPy multiplies by a boolean array as by 1 and 0."""
    if power == 1 and isinstance(expression, Compute) and expression.shape and is_indicator(expression):
        return str(printer.text_of(expression.args[0]))
    return operand(expression, printer)


# ---- statements ----------------------------------------------------------------------------------


def step_lines(node: Node, printer: Any) -> list[str] | None:
    """The statements of an elementwise node, in place where the program says so; None for other nodes.

    The name that `stem` suggests is reserved only if a statement uses it, see `_take`.
    """
    group = printer.placed.steps[node]
    if type(op_in(group[0].expression)) not in RULES:
        return None
    serial, slot = printer.serial, printer.slots.get(node)
    stem = printer.stem(node)
    named = Name(printer.names.free(stem), serial + 1, stem) if stem else None
    fresh: str = named or printer.value_name()
    over = group[0].over  # for a part of an array, `slots` has the text
    target = None if over is None or over in printer.placed.parts else printer.text_of(Read(over))
    made: list[Step] = []
    for each in group:
        call = call_of(each.expression, printer)
        if call is None:
            printer.serial = serial
            return None
        made.append(Step(*call, target))
        target = target or fresh
        printer.placed.texts[each.value] = target
    if made[-1].function in WITHOUT_OUT:
        slot = None
    name = fresh
    if slot is not None:
        made[-1], name = Step(made[-1].function, made[-1].args, slot), slot
    elif made[0].out is not None:
        name, printer.serial = made[0].out, serial
    elif made[0].function not in WITHOUT_OUT and group[0].kept:
        first = replace(made[0], out=new_text(node.shape, printer))
        printer.text[node] = name
        _take(named if name is named else None, printer)
        return [f"{name} = {first.text(printer.np)}", *(step.line(name, printer.np) for step in made[1:])]
    printer.text[node] = name
    _take(named if name is named or (fresh is named and len(made) > 1) else None, printer)
    begun = made[0].out or (fresh if len(made) > 1 else name)
    return [made[0].line(begun, printer.np), *(step.line(name, printer.np) for step in made[1:])]


def _take(name: Name | None, printer: InPlacePrinting) -> None:
    """Reserve a name that is used now."""
    if name is not None:
        printer.names.taken.add(name)
        printer.serial = max(printer.serial, name.number)


# ---- numbers -------------------------------------------------------------------------------------


def _number(expression: Expression, printer: InPlacePrinting) -> str:
    """The text of a number. A sum or product of numbers is evaluated before it is combined with arrays."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, (Add, Mul)):
        return str(printer.text_of(expression))
    texts = [str(printer.text_of(a)) for a in expression.args]
    if isinstance(expression.op, Add):
        return f"({_signed(expression.op.signs, texts)})"
    return _multiplied(expression, expression.op.powers, texts, printer)


def _signed(signs: Sequence[int], texts: Sequence[str]) -> str:
    text = ""
    for sign, number in zip(signs, texts, strict=True):
        text += (" + " if sign == 1 else " - ") + number if text else ("" if sign == 1 else "-") + number
    return text


def _multiplied(
    expression: Compute, powers: Sequence[int], texts: Sequence[str], printer: InPlacePrinting
) -> str:
    """The product of powers ±1 of some numbers.

    Python raises an error on division by 0, so ``true_divide`` divides by numbers that may be 0. Its result
    for constants is in double precision and is converted to the module's dtype.
    """
    over = "*".join([t for p, t in zip(powers, texts, strict=True) if p == 1] or ["1"])
    under = "*".join([t for p, t in zip(powers, texts, strict=True) if p == -1])
    if not under:
        return f"({over})" if "*" in over else over
    divisors = [literal(a) for p, a in zip(powers, expression.args, strict=True) if p == -1]
    if all(divisors):  # nonzero constants: the operator takes a third of the time of the function
        return f"({over}/({under}))"
    text = f"{printer.np}.true_divide({over}, {under})"
    return text if any(literal(a) is None for a in expression.args) else f"{printer.type_text}({text})"


# ---- functions -----------------------------------------------------------------------------------


def sum_call(expression: Compute, printer: InPlacePrinting) -> Call | None:
    """a + b, a − b or −a."""
    signs: tuple[int, ...] = expression.op.signs  # type: ignore[attr-defined]  # a sum's
    name = {(1, 1): "add", (1, -1): "subtract", (-1,): "negative"}.get(signs)
    return (name, tuple([operand(a, printer) for a in expression.args])) if name else None


def product_call(expression: Compute, printer: InPlacePrinting) -> Call | None:
    """a b, a/b or 1/a."""
    powers: tuple[int, ...] = expression.op.powers  # type: ignore[attr-defined]  # a product's
    name = {(1, 1): "multiply", (1, -1): "divide", (-1,): "reciprocal"}.get(powers)
    pairs = zip(powers, expression.args, strict=True)
    return (name, tuple([_factor(a, p, printer) for p, a in pairs])) if name else None


def power_call(expression: Compute, printer: InPlacePrinting) -> Call | None:
    """√a; squares are products already."""
    base, exponent = expression.args
    root = literal(exponent) == sympy.Rational(1, 2) and base.shape
    return ("sqrt", (operand(base, printer),)) if root else None


def function_call(expression: Compute, printer: InPlacePrinting) -> Call | None:
    """f(a); max(a, b) or min(a, b)."""
    head: sympy.FunctionClass = expression.op.head  # type: ignore[attr-defined]  # a function's
    args = tuple([operand(a, printer) for a in expression.args])
    if head in (sympy.Max, sympy.Min):
        return ("maximum" if head is sympy.Max else "minimum", args) if len(args) == 2 else None
    if len(args) != 1:
        return None
    if head is relu:
        return "maximum", (*args, printer.number("0"))
    if head in (sigmoid, silu):
        name = printer.helper("_sigmoid", SIGMOID)
        return (name if head is sigmoid else printer.helper("_silu", SILU)), args
    if head is softplus:
        return printer.helper("_softplus", SOFTPLUS), args
    if head is sympy.sech:
        return printer.helper("_sech", SECH), args
    if head is sympy.erfc and printer.dtype == "float32":
        return printer.helper("_erfc", ERFC), args
    found = ufunc_name(head)
    if found is None:
        return None
    if "." in found:
        printer.imports.add("import scipy.special")
    return found, args


def cleared_call(expression: Compute, printer: InPlacePrinting) -> Call:
    """A span of memory whose gaps are set to zero."""
    gaps = expression.op.gaps  # type: ignore[attr-defined]  # of `Cleared`
    return printer.helper("_clear", CLEAR), (operand(expression.args[0], printer), str(gaps))


def select_call(expression: Compute, printer: InPlacePrinting) -> Call | None:
    """The scores of a softmax under a broadcast mask, −∞ where the mask does not hold.

    This is the minimum of the scores and of a limit: ∞ where the mask holds, −∞ elsewhere. A masked score may
    be NaN, and ``fmin`` ignores NaN.
    """
    mask, scores, _ = expression.args
    if isinstance(mask, Read) or not is_repeated(mask):
        return None
    limit = f"{printer.helper('_limit', LIMIT)}({operand(mask, printer)}, {printer.type_text})"
    return "fmin", (operand(scores, printer), limit)


def softmax_call(expression: Compute, printer: InPlacePrinting) -> Call:
    """A softmax over some axes, a derivative of it or of its logarithm."""
    op = expression.op
    assert isinstance(op, ExponentialOp)
    given = [operand(a, printer) for a in expression.args]
    return printer.writer.helper(ALONG_AXES[type(op)]), (*given, str(op.axes))


RULES: dict[type, Rule] = {
    Add: sum_call,
    Mul: product_call,
    Pow: power_call,
    Apply: function_call,
    Cleared: cleared_call,
    Select: select_call,
    **dict.fromkeys((Softmax, SoftmaxTangent, LogSoftmaxTangent, LogSoftmaxCotangent), softmax_call),
}
"""The rules of the ops that are calls of functions of arrays."""
