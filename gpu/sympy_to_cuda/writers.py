"""The C text of each kind of SymPy node, given that of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.codegen import cfunctions as cf
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom

from symad.errors import LoweringError
from symad.gpu.sympy_to_cuda.operands import ATOM, LOOSE, PRODUCT, SUM, UNARY, Part, Printer, is_negative
from symad.numeric.pairs.stable_sympy import FloorDivide, Share, children

# C name of each function of one or two real arguments; the float form ends in f.
FUNCTIONS: dict[type, str] = {
    sp.exp: "exp",
    sp.log: "log",
    sp.sin: "sin",
    sp.cos: "cos",
    sp.tan: "tan",
    sp.asin: "asin",
    sp.acos: "acos",
    sp.atan: "atan",
    sp.atan2: "atan2",
    sp.sinh: "sinh",
    sp.cosh: "cosh",
    sp.tanh: "tanh",
    sp.asinh: "asinh",
    sp.acosh: "acosh",
    sp.atanh: "atanh",
    sp.erf: "erf",
    sp.erfc: "erfc",
    sp.gamma: "tgamma",
    sp.loggamma: "lgamma",
    cf.exp2: "exp2",
    cf.expm1: "expm1",
    cf.log1p: "log1p",
    cf.log2: "log2",
    cf.Sqrt: "sqrt",
}

_COMPARISONS = {sp.Lt: "<", sp.Le: "<=", sp.Gt: ">", sp.Ge: ">=", sp.Eq: "==", sp.Ne: "!="}


def _number(printer: Printer, expr: sp.Basic) -> str:
    if isinstance(expr, BooleanAtom):
        return "true" if expr else "false"
    if is_negative(expr):
        printer.negative.add(expr)
    if isinstance(expr, sp.Integer):
        return str(int(expr))
    return printer.style.literal(float(expr))


def _symbol(printer: Printer, expr: sp.Basic) -> str:
    known = printer.variables[expr]
    printer.levels[expr] = known.level
    return known.text


def _add(printer: Printer, expr: sp.Basic) -> str:
    return _signed(printer, expr, printer.grouped(expr.args, SUM, printer.kind(expr)))


def _mul(printer: Printer, expr: sp.Basic) -> str:
    terms = list(expr.args)
    if terms[0] == -1:
        rest = printer.grouped(terms[1:], PRODUCT, printer.kind(expr))
        printer.negative.add(expr)
        return f"-({rest.text})" if rest.negative else f"-{rest.text}"
    return _signed(printer, expr, printer.grouped(terms, PRODUCT, printer.kind(expr)))


def _signed(printer: Printer, expr: sp.Basic, part: Part) -> str:
    """The text; the printer records whether it begins with a minus sign."""
    if part.negative:
        printer.negative.add(expr)
    return part.text


def _pow(printer: Printer, expr: sp.Basic) -> str:
    base, exponent = expr.args
    one = printer.style.literal(1.0)
    if isinstance(exponent, sp.Integer) and 0 < exponent <= 4:
        return " * ".join([printer.operand(base, printer.kind(expr))] * int(exponent))
    if isinstance(exponent, sp.Integer) and -4 <= exponent < 0:
        product = " * ".join([printer.operand(base, "real")] * -int(exponent))
        return f"{one} / ({product})" if exponent < -1 else f"{one} / {product}"
    if exponent in (sp.S.Half, -sp.S.Half):
        root = f"{printer.style.function('sqrt')}({printer.real(base)})"
        return root if exponent > 0 else f"{one} / {root}"
    return f"{printer.style.function('pow')}({printer.real(base)}, {printer.real(exponent)})"


def _extremum(printer: Printer, expr: sp.Basic) -> str:
    name = "max" if isinstance(expr, sp.Max) else "min"
    if printer.kind(expr) == "int":
        text = printer.text[expr.args[0]]
        for other in expr.args[1:]:
            text = f"symad_{name}({text}, {printer.text[other]})"
        return text
    function = printer.style.function(f"f{name}")
    text = printer.real(expr.args[0])
    for other in expr.args[1:]:
        text = f"{function}({text}, {printer.real(other)})"
    return text


def _absolute(printer: Printer, expr: sp.Basic) -> str:
    if printer.kind(expr) == "int":
        a = printer.operand(expr.args[0], "int")
        return f"({a} < 0 ? -{a} : {a})"
    return f"{printer.style.function('fabs')}({printer.real(expr.args[0])})"


def _sign(printer: Printer, expr: sp.Basic) -> str:
    kind = printer.kind(expr)
    a = printer.operand(expr.args[0], kind)
    zero, one = ("0", "1") if kind == "int" else map(printer.style.literal, (0.0, 1.0))
    return f"({a} > {zero} ? {one} : ({a} < {zero} ? -{one} : {zero}))"


def _heaviside(printer: Printer, expr: sp.Basic) -> str:
    a = printer.operand(expr.args[0], "real")
    zero, half, one = map(printer.style.literal, (0.0, 0.5, 1.0))
    return f"({a} > {zero} ? {one} : ({a} < {zero} ? {zero} : {half}))"


def _share(printer: Printer, expr: sp.Basic) -> str:
    value, extremum, *others = (printer.operand(a, "real") for a in expr.args)
    zero, one = map(printer.style.literal, (0.0, 1.0))
    ties = " + ".join(f"({o} == {extremum} ? {one} : {zero})" for o in others)
    return f"({value} == {extremum} ? {one} / ({ties}) : {zero})"


def _rounding(printer: Printer, expr: sp.Basic) -> str:
    argument = expr.args[0]
    if printer.kind(argument) == "int":
        return printer.operand(argument, "int")
    name = "floor" if isinstance(expr, sp.floor) else "ceil"
    return f"(int){printer.style.function(name)}({printer.real(argument)})"


def _integer_quotient(printer: Printer, expr: sp.Basic) -> str:
    return f"symad_floordiv({printer.text[expr.args[0]]}, {printer.text[expr.args[1]]})"


def _modulo(printer: Printer, expr: sp.Basic) -> str:
    a, n = expr.args
    if printer.kind(expr) == "int":
        return f"symad_mod({printer.text[a]}, {printer.text[n]})"
    x, y = printer.operand(a, "real"), printer.operand(n, "real")
    return f"({x} - {y} * {printer.style.function('floor')}({x} / {y}))"


def _compare(printer: Printer, expr: sp.Basic) -> str:
    integers = all(printer.kind(a) == "int" for a in expr.args)
    left, right = (printer.operand(a, "int" if integers else "real", SUM) for a in expr.args)
    return f"{left} {_COMPARISONS[expr.func]} {right}"


def _logic(printer: Printer, expr: sp.Basic) -> str:
    symbol = {sp.And: "&&", sp.Or: "||", sp.Xor: "!="}[expr.func]
    return f" {symbol} ".join(printer.operand(a, "bool") for a in expr.args)


def _not(printer: Printer, expr: sp.Basic) -> str:
    return f"!({printer.text[expr.args[0]]})"


def _piecewise(printer: Printer, expr: sp.Basic) -> str:
    kind = printer.kind(expr)
    text = printer.style.literal(float("nan"))
    for value, condition in reversed(expr.args):
        chosen = printer.operand(value, kind)
        if condition == sp.true:
            text = chosen
        else:
            text = f"({printer.operand(condition, 'bool')} ? {chosen} : {text})"
    return text


def _choice(printer: Printer, expr: sp.Basic) -> str:
    condition, yes, no = (printer.operand(a, "bool") for a in expr.args)
    return f"({condition} ? {yes} : {no})"


WRITERS: list[tuple[Any, int, Callable[[Printer, Any], str]]] = [
    ((sp.Number, sp.NumberSymbol, BooleanAtom), ATOM, _number),
    (sp.Symbol, ATOM, _symbol),
    (sp.Add, SUM, _add),
    (sp.Mul, PRODUCT, _mul),
    (sp.Pow, PRODUCT, _pow),
    ((sp.Max, sp.Min), ATOM, _extremum),
    (sp.Abs, ATOM, _absolute),
    (sp.sign, ATOM, _sign),
    (sp.Heaviside, ATOM, _heaviside),
    (Share, ATOM, _share),
    ((sp.floor, sp.ceiling), UNARY, _rounding),
    (FloorDivide, ATOM, _integer_quotient),
    (sp.Mod, ATOM, _modulo),
    (Relational, LOOSE, _compare),
    ((sp.And, sp.Or, sp.Xor), LOOSE, _logic),
    (sp.Not, ATOM, _not),
    (sp.Piecewise, ATOM, _piecewise),
    (sp.ITE, ATOM, _choice),
]


def write(printer: Printer, expr: sp.Basic) -> str:
    """The C text of ``expr``; its kind, level and binding are recorded."""
    parts = children(expr)
    printer.levels[expr] = max((printer.levels[p] for p in parts), default=0)
    printer.kinds[expr] = printer.own_kind(expr, parts)
    for matches, binding, rule in WRITERS:
        if isinstance(expr, matches):
            text = rule(printer, expr)
            printer.binding[expr] = UNARY if expr in printer.negative and binding > SUM else binding
            return text
    printer.binding[expr] = ATOM
    return _call(printer, expr)


def _call(printer: Printer, expr: sp.Basic) -> str:
    name = FUNCTIONS.get(expr.func)
    if name is None:
        known = ", ".join(sorted(f.__name__ for f in FUNCTIONS))
        raise LoweringError(
            f"{expr.func.__name__} in {expr} has no CUDA form; supported functions are "
            f"{known}, Abs, sign, Min, Max, Mod, floor, ceiling, Heaviside, Piecewise and "
            "comparisons"
        )
    if name == "tanh" and printer.style.fast and printer.style.real == "float":
        return f"tanh_fast({printer.real(expr.args[0])})"
    return f"{printer.style.function(name)}({', '.join(printer.real(a) for a in expr.args)})"
