"""The operands of C text: their types, precedence and signs, as the expressions that use them need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sympy as sp
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from symad.errors import LoweringError
from symad.numeric.pairs.stable_sympy import FloorDivide

# Precedence of C text: a name or call, a negated one, a product, a sum, anything that binds less tightly.
ATOM, UNARY, PRODUCT, SUM, LOOSE = 4, 3, 2, 1, 0


@dataclass(frozen=True)
class Style:
    """The format of numbers.

    Attributes:
        real: "float" or "double".
        fast: use the approximate tanh instruction (absolute error about 5e-4; float only).
    """

    real: str = "float"
    fast: bool = False

    def __post_init__(self) -> None:
        if self.real not in ("float", "double"):
            raise LoweringError(f"real is {self.real!r}; use 'float' or 'double'")

    def literal(self, value: float) -> str:
        """A C literal that reads back as ``value`` rounded to the real type."""
        if value != value or value in (float("inf"), float("-inf")):
            sign = "-" if value < 0 else ""
            top = "0.0" if value != value else f"{sign}1.0"
            return f"({top}f / 0.0f)" if self.real == "float" else f"({top} / 0.0)"
        return f"{value!r}f" if self.real == "float" else repr(value)

    def function(self, name: str) -> str:
        """The C function of this precision."""
        return name + "f" if self.real == "float" else name


@dataclass(frozen=True)
class Variable:
    """The C text of a symbol, and its type.

    Attributes:
        text: a C expression without side effects, of type int or real.
        kind: "int", "real" or "bool".
        level: how often it changes: 0 for never within a kernel, larger numbers for inner loops.
    """

    text: str
    kind: str = "real"
    level: int = 0


Variables = Mapping[sp.Symbol, Variable]


def is_negative(number: sp.Basic) -> bool:
    """Whether the literal of a number begins with a minus sign; that of −∞ is a quotient in parentheses."""
    return -float("inf") < float(number) < 0


class Printer:
    """The text of the nodes that are written so far."""

    def __init__(self, variables: Variables, style: Style) -> None:
        self.variables = variables
        self.style = style
        self.text: dict[sp.Basic, str] = {}
        self.binding: dict[sp.Basic, int] = {}
        self.negative: set[sp.Basic] = set()
        """The expressions that are written with a leading minus sign."""
        self.kinds: dict[sp.Basic, str] = {}
        self.levels: dict[sp.Basic, int] = {}

    def kind(self, expr: sp.Basic) -> str:
        """The type of the text: int, real or bool."""
        return self.kinds[expr]

    def real(self, expr: sp.Basic) -> str:
        """The operand as a real number, for the argument of a function."""
        if isinstance(expr, sp.Number):
            return self.style.literal(float(expr))
        return self.text[expr] if self.kind(expr) == "real" else self.operand(expr, "real")

    def operand(self, expr: sp.Basic, kind: str, binding: int = ATOM) -> str:
        """The operand in the type of its user, in parentheses if it binds less tightly."""
        if kind == "real" and isinstance(expr, sp.Number):
            text = self.style.literal(float(expr))
            return f"({text})" if is_negative(expr) and binding > SUM else text
        if kind == "real" and self.kind(expr) != "real":
            return f"({self.style.real}){self.operand(expr, 'int')}"
        text = self.text[expr]
        return text if self.binding[expr] >= binding else f"({text})"

    def begins_negative(self, expr: sp.Basic, kind: str, binding: int) -> bool:
        """Whether `operand` begins with a minus sign."""
        if kind == "real" and isinstance(expr, sp.Number):
            return is_negative(expr) and binding <= SUM
        if kind == "real" and self.kind(expr) != "real":
            return False
        return expr in self.negative and self.binding[expr] >= binding

    def own_kind(self, expr: sp.Basic, parts: Sequence[sp.Basic]) -> str:
        """The type of an expression, from the types of its parts.

        Raises:
            LoweringError: a symbol is unknown.
        """
        if expr.is_Symbol:
            known = self.variables.get(expr)
            if known is None:
                names = ", ".join(sorted(str(s) for s in self.variables))
                raise LoweringError(f"unknown symbol {expr}: the expression may use {names}")
            return known.kind
        if isinstance(expr, (Relational, BooleanFunction, BooleanAtom)):
            return "bool"
        if isinstance(expr, (sp.Integer, FloorDivide, sp.floor, sp.ceiling)):
            return "int"
        closed = (sp.Add, sp.Mul, sp.Max, sp.Min, sp.Mod, sp.Abs, sp.sign)
        power = isinstance(expr, sp.Pow) and isinstance(expr.exp, sp.Integer) and expr.exp > 0
        values = parts[::2] if isinstance(expr, sp.Piecewise) else parts
        if (isinstance(expr, (*closed, sp.Piecewise)) or power) and all(
            self.kinds[p] == "int" for p in values
        ):
            return "int"
        return "real"

    def grouped(self, terms: Iterable[sp.Basic], binding: int, kind: str) -> Part:
        """A sum or product; the operands of each lower level are grouped in parentheses."""
        levels: dict[int, list[Part]] = {}
        # A right operand of equal binding needs parentheses: a * (b / c) is not a * b / c.
        needed = binding + (binding == PRODUCT)
        for term in terms:
            part = Part(self.operand(term, kind, needed), self.begins_negative(term, kind, needed))
            levels.setdefault(self.levels[term], []).append(part)
        inner: list[Part] = []
        for level in sorted(levels):
            made = _joined([*inner, *levels[level]], binding)
            inner = [Part(f"({made.text})", False) if len(levels) > 1 and " " in made.text else made]
        return made


class Part(NamedTuple):
    """An operand as text, and whether the text begins with a minus sign."""

    text: str
    negative: bool


def _joined(parts: Sequence[Part], binding: int) -> Part:
    """Operands joined to a text; a sum writes negative ones as differences, after the positive ones."""
    if binding == PRODUCT:
        return Part(" * ".join(p.text for p in parts), parts[0].negative)
    first, *rest = sorted(parts, key=lambda p: p.negative)
    tail = [f" - {p.text[1:]}" if p.negative else f" + {p.text}" for p in rest]
    return Part("".join([first.text, *tail]), first.negative)
