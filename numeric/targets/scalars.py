"""The one printer of scalar and elementwise expressions: the same rules for every target.

Targets differ only in names and in the spelling of powers, conditions and literals. Every rule receives the
texts of the arguments with their precedence levels, and writes parentheses exactly where the grammar needs
them. Sums and products keep the order of the graph, so that all targets round alike.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import sympy

from symad.core.arrays import Number
from symad.core.graph import Op
from symad.errors import LoweringError
from symad.numbers.number_domains import as_float
from symad.numeric.program.expressions import Compute, Expression, is_number, literal
from symad.numeric.targets.sizes import dimension
from symad.numeric.targets.target import C, Level, LibraryFunction, NumPy, Python, Target, Text, Texts
from symad.numeric.targets.writer import Writer
from symad.numeric.targets.writer import Written as Written
from symad.numeric.targets.writer import write as write
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant, Dimension
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select


@write.dispatch
def without_rule(op: Op, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    """The error for an op without a rule, unless the writer has one: graph passes remove such ops before."""
    return writer.without_rule(op)


# ---- numbers ------------------------------------------------------------------------------------


def number(value: Number, target: Target) -> Text:
    """A constant, exactly: ints and fractions as they are, floats by the shortest digits that round back."""
    if isinstance(value, bool):
        return Text(truth(value, target))
    if isinstance(value, Fraction) and target.writes_floats and Fraction(float(value)) == value:
        value = float(value)
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) < 2**53:
        over, under = (_integer(n, target) for n in (value.numerator, value.denominator))
        return Text(f"{over}/{under}", Level.PRODUCT)
    if isinstance(value, int) and abs(value) < 2**53:
        return Text(_integer(value, target), Level.SIGN if value < 0 else Level.ATOM)
    if isinstance(target, NumPy) and value in (sympy.pi, sympy.E):
        return Text(f"{target.np}.pi" if value == sympy.pi else f"{target.np}.e")
    digits = as_float(value)
    if math.isnan(digits):
        return Text(target.not_a_number)
    suffix = target.suffix if isinstance(target, C) else ""
    text = target.infinity if math.isinf(digits) else f"{abs(digits)!r}{suffix}"
    negative = math.copysign(1.0, digits) < 0
    return Text(f"-{text}", Level.SIGN) if negative else Text(text)


def _integer(value: int, target: Target) -> str:
    """An integer, written as a floating-point number if the target needs that."""
    suffix = target.suffix if isinstance(target, C) else ""
    return f"{value}.0{suffix}" if target.writes_floats else str(value)


def truth(value: bool, target: Target) -> str:
    """A truth value."""
    return str(int(value)) if isinstance(target, C) else str(value)


@write.dispatch
def write_constant(op: Constant, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    return number(op.value, target)


@write.dispatch
def write_dimension(op: Dimension, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    return dimension(op.expression, writer)


# ---- arithmetic ---------------------------------------------------------------------------------


@write.dispatch
def write_add(op: Add, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    first = args[0].inside(Level.SUM) if op.signs[0] == 1 else f"-{args[0].inside(Level.POWER)}"
    text = first
    for sign, arg in zip(op.signs[1:], args[1:], strict=True):
        text += (" + " if sign == 1 else " - ") + arg.inside(Level.PRODUCT)
    alone = len(args) == 1
    return Text(text, (Level.SIGN if op.signs[0] == -1 else args[0].level) if alone else Level.SUM)


@write.dispatch
def write_mul(op: Mul, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    """Factors, then divisors; a quotient of Python numbers alone must not raise if a divisor is 0."""
    pairs = list(zip(op.powers, args, strict=True))
    over, under = [a for p, a in pairs if p == 1], [a for p, a in pairs if p == -1]
    top = over[0].inside(Level.PRODUCT) if over else _integer(1, target)
    for factor in over[1:]:
        top += "*" + factor.inside(Level.SIGN)
    if under and isinstance(target, NumPy) and is_number(node, writer.made):
        top = f"{writer.type_text}({top})"
    if not under:
        return Text(top, Level.PRODUCT if len(over) > 1 else over[0].level)
    if len(under) == 1:
        return Text(f"{top}/{under[0].inside(Level.SIGN)}", Level.PRODUCT)
    return Text(f"{top}/({'*'.join(a.inside(Level.SIGN) for a in under)})", Level.PRODUCT)


HALF = Fraction(1, 2)


def exponent_of(node: Compute) -> Any:
    """The exponent of a power if it is a number, else None."""
    exponent = node.args[1]
    if isinstance(exponent, Compute) and isinstance(exponent.op, Constant):
        return exponent.op.value
    return None


@write.dispatch
def write_power_in_python(op: Pow, target: Python, node: Compute, args: Texts, writer: Writer) -> Written:
    if exponent_of(node) == HALF:
        library = target.np if isinstance(target, NumPy) else "math"
        return call(f"{library}.sqrt", node.args[:1], args[:1], writer)
    base = args[0].inside(Level.ATOM)
    if is_number(node.args[0], writer.made) and isinstance(target, NumPy):
        if writer.dtype == "float64" and not is_number(node.args[1]):
            return Text(f"{writer.np}.power({args[0]}, {args[1]})")
        base = f"{writer.type_text}({args[0]})"  # where NumPy gives nan, Python's numbers raise
    return Text(f"{base}**{args[1].inside(Level.SIGN)}", Level.POWER)


@write.dispatch
def write_power_in_c(op: Pow, target: C, node: Compute, args: Texts, writer: Writer) -> Written:
    """Small integer powers of names as products."""
    exponent, base = exponent_of(node), args[0].text
    form = POWERS_IN_C.get(exponent) if not isinstance(exponent, bool) else None
    if exponent == HALF or (form is not None and args[0].level is Level.ATOM):
        return Text(writer.filled(form or "", base), Level.PRODUCT)
    return Text(f"{writer.function(LibraryFunction('', 'pow'))}({args[0]}, {args[1]})")


POWERS_IN_C = {
    2: "$a*$a",
    3: "$a*$a*$a",
    4: "$a*$a*($a*$a)",
    HALF: "$sqrt($a)",
    3 * HALF: "$a*$sqrt($a)",
    -2: "1/($a*$a)",
}
"""Powers as templates; see `symad.numeric.targets.c_functions`."""


# ---- functions ----------------------------------------------------------------------------------


def call(function: str, nodes: tuple[Expression, ...], args: Texts, writer: Writer) -> Text:
    """A call; a NumPy function of Python numbers alone is given the precision."""
    texts = [a.text for a in args]
    numpy = isinstance(writer.target, NumPy) and writer.dtype != "float64"
    if numpy and nodes and all(map(is_number, nodes)):
        texts[0] = f"{writer.type_text}({texts[0]})"
    return Text(f"{function}({', '.join(texts)})")


@write.dispatch
def write_apply(op: Apply, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    return function_of(op, target, node, args, writer)


def function_of(op: Apply, target: Target, node: Compute, args: Texts, writer: Writer) -> Text:
    """The call of the target's function for a SymPy head.

    Raises:
        LoweringError: the target has no such function.
    """
    function = target.functions.get(op.head)
    if function is None and isinstance(target, Python):
        return call(writer.users_function(op.head), node.args, args, writer)
    if function is None:
        raise LoweringError(
            f"{op.head.__name__} has no form for target {target.name!r}; rewrite it, or register an "
            "implementation with symad.register_function, for backend 'numpy'"
        )
    name = writer.function(function)
    if isinstance(target, NumPy) and function.module == "symad.special" and writer.dtype != "float64":
        made = call(name, node.args, args, writer)  # some of these functions compute in double precision
        return Text(f"{target.np}.asarray({made}, {writer.type_text})")
    if op.head in (sympy.Max, sympy.Min) and len(args) != 2 and isinstance(target, C):
        text = args[0].text
        for arg in args[1:]:
            text = f"{name}({text}, {arg})"
        return Text(text)
    return call(name, node.args, args, writer)


@write.dispatch
def write_apply_in_c(op: Apply, target: C, node: Compute, args: Texts, writer: Writer) -> Written:
    """A function, or an expression of other functions."""
    form = target.forms.get(op.head)
    if form is None:
        return function_of(op, target, node, args, writer)
    return Text(writer.filled(form, args[0].inside(Level.ATOM)), Level.SUM)


@write.dispatch
def write_extreme_of_arrays(op: Apply, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """The general rule, but with NumPy's two-argument functions for Max and Min."""
    if op.head not in (sympy.Max, sympy.Min):
        return function_of(op, target, node, args, writer)
    name = f"{target.np}.{'maximum' if op.head is sympy.Max else 'minimum'}"
    text = args[0]
    for arg in args[1:]:
        text = call(name, node.args, (text, arg), writer)
    return text


# ---- conditions ---------------------------------------------------------------------------------


@write.dispatch
def write_compare(op: Compare, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    left, right = (a.inside(Level.SUM) for a in args)
    return Text(f"{left} {op.relation} {right}", Level.COMPARISON)


@write.dispatch
def write_logic(op: Logic, target: Target, node: Compute, args: Texts, writer: Writer) -> Written:
    words = {"and": "&&", "or": "||", "xor": "!="} if isinstance(target, C) else {"xor": "!="}
    levels = {"and": Level.AND, "or": Level.OR, "xor": Level.COMPARISON}
    if op.kind == "not":
        word = "!" if isinstance(target, C) else "not "
        level = Level.SIGN if isinstance(target, C) else Level.NOT
        return Text(f"{word}{args[0].inside(level)}", level)
    level = levels[op.kind]
    word = words.get(op.kind, op.kind)
    text, least = args[0].inside(Level.ATOM if op.kind == "xor" else level), Level(level + 1)
    for arg in args[1:]:
        text = f"{text} {word} {arg.inside(least)}"
        text = f"({text})" if op.kind == "xor" else text
    return Text(text, Level.ATOM if op.kind == "xor" else level)


@write.dispatch
def write_logic_of_arrays(op: Logic, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    if op.kind == "not":
        return Text(f"{target.np}.logical_not({args[0]})")
    text = args[0].text
    for arg in args[1:]:
        text = f"{target.np}.logical_{op.kind}({text}, {arg})"
    return Text(text)


@write.dispatch
def write_select_in_python(op: Select, target: Python, node: Compute, args: Texts, writer: Writer) -> Written:
    yes, no = args[1].inside(Level.OR), args[2].inside(Level.CONDITION)
    return Text(f"{yes} if {args[0].inside(Level.OR)} else {no}", Level.CONDITION)


@write.dispatch
def write_select_in_c(op: Select, target: C, node: Compute, args: Texts, writer: Writer) -> Written:
    yes, no = args[1].inside(Level.OR), args[2].inside(Level.CONDITION)
    return Text(f"{args[0].inside(Level.OR)} ? {yes} : {no}", Level.CONDITION)


@write.dispatch
def write_select_of_arrays(op: Select, target: NumPy, node: Compute, args: Texts, writer: Writer) -> Written:
    """``np.where``; of numbers alone it makes integers or doubles, so that the type is stated."""
    text = f"{target.np}.where({', '.join(a.text for a in args)})"
    numbers = all(map(is_number, node.args[1:]))
    if [literal(value) for value in node.args[1:]] == [1, 0] and not is_number(node.args[0]):
        text = args[0].inside(Level.ATOM)
    return Text(f"{text}.astype({writer.type_text})" if numbers else text)
