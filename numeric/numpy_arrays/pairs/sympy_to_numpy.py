"""Scalar formulas as statements on arrays; every distinct subexpression is computed once."""

from __future__ import annotations

import sympy as sp

from symad.errors import LoweringError
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.pairs.scores import LOOPS, Load, S, Score
from symad.numeric.pairs.stable_sympy import (
    FUNCTIONS,
    FloorDivide,
    Share,
    children,
    constant,
    topological,
)

INFIX = {
    sp.Add: " + ", sp.Mul: "*", sp.Eq: " == ", sp.Ne: " != ", sp.Lt: " < ", sp.Le: " <= ",
    sp.Gt: " > ", sp.Ge: " >= ", FloorDivide: "//", sp.Mod: " % ", sp.And: " & ", sp.Or: " | ",
    sp.Xor: " ^ ",
}  # fmt: skip
FOLDED = {sp.Max: "maximum", sp.Min: "minimum"}


class ExpressionText:
    """The statements of one generated function; `write` returns the name of an expression's value."""

    def __init__(self, printer: Printing, taken: set[str], names: dict[sp.Basic, str]) -> None:
        """``names`` are the names of symbols; new names differ from those in ``taken``."""
        self.printer = printer
        self.taken = taken
        self.lines: list[str] = []
        self.names = names

    def write(self, expr: sp.Basic) -> str:
        """The name or number that holds the value of an expression once `lines` have run."""
        for part in topological([expr]):
            if part in self.names:
                continue
            number = constant(part)
            if number is not None:
                self.names[part] = _number(number, self.printer.np)
            else:
                self.names[part] = self._keep(self._text(part))
        return self.names[expr]

    def operand(self, expr: sp.Basic) -> str:
        """The name or number of a value in a sum, a product or a power: a negative number is in brackets."""
        text, number = self.names.get(expr) or self.write(expr), constant(expr)
        return f"({text})" if number is not None and number < 0 else text

    def _keep(self, text: str) -> str:
        number = len(self.lines) + 1
        while f"f{number}" in self.taken:
            number += 1
        name = f"f{number}"
        self.taken.add(name)
        self.lines.append(f"{name} = {text}")
        return name

    def _text(self, expr: sp.Basic) -> str:
        np_ = self.printer.np
        args = [self.names[c] for c in children(expr)]
        head = expr.func
        if head in INFIX:
            return INFIX[head].join(map(self.operand, children(expr)))
        if head in FOLDED:
            text = args[0]
            for arg in args[1:]:
                text = f"{np_}.{FOLDED[head]}({text}, {arg})"
            return text
        if head is sp.Pow:
            return self._power(expr, args)
        if head is sp.Not:
            return f"{np_}.logical_not({args[0]})"
        if head is sp.Piecewise:
            text = f"{np_}.nan"
            for value, condition in reversed(list(zip(args[::2], args[1::2], strict=True))):
                text = f"{np_}.where({condition}, {value}, {text})"
            return text
        if head is Share:
            ties = " + ".join(f"({a} == {args[1]})*1.0" for a in args[2:])
            return f"{np_}.where({args[0]} == {args[1]}, 1/{np_}.maximum({ties}, 1), 0)"
        if head is sp.Heaviside:
            return f"{np_}.heaviside({args[0]}, {args[1] if len(args) > 1 else 0.5})"
        if head is sp.ITE:
            return f"{np_}.where({', '.join(args)})"
        return self._call(expr, args)

    def _power(self, expr: sp.Basic, args: list[str]) -> str:
        base, exponent = self.operand(children(expr)[0]), expr.args[1]
        if exponent.is_Integer:
            power = int(exponent)
            text = base if abs(power) == 1 else f"{base}**{abs(power)}"
            return text if power > 0 else f"1/({text})"
        if abs(exponent) == sp.Rational(1, 2):
            text = f"{self.printer.np}.sqrt({args[0]})"
            return text if exponent.is_positive else f"1/{text}"
        return f"{self.printer.np}.power(1.0*{base}, {args[1]})"

    def _call(self, expr: sp.Basic, args: list[str]) -> str:
        function = FUNCTIONS.get(expr.func)
        if function is None:
            raise LoweringError(
                f"{expr.func.__name__} in {expr} has no array form; supported functions are "
                + ", ".join(sorted(f.__name__ for f in FUNCTIONS))
            )
        name = function.__name__
        import numpy
        import scipy.special

        if getattr(numpy, name, None) is function:
            return f"{self.printer.np}.{name}({', '.join(args)})"
        if getattr(scipy.special, name, None) is function:
            self.printer.imports.add("import scipy.special")
            return f"scipy.special.{name}({', '.join(args)})"
        raise LoweringError(f"{expr.func.__name__} in {expr} has no form in generated code")


class FormulaText(ExpressionText):
    """The statements for the formulas of a score, including their array reads."""

    def __init__(self, score: Score, printer: Printing, taken: set[str]) -> None:
        """``taken`` are the names of arguments, which new names must not repeat."""
        names: dict[sp.Basic, str] = {s: str(s) for s in (S, *LOOPS)}
        super().__init__(printer, taken, names | {symbol: name for name, symbol in score.scalars})
        self.score = score
        self.places: dict[sp.Symbol, list[str]] = {}

    def write(self, expr: sp.Basic) -> str:
        """The name of the value, after the array reads that it depends on are written."""
        for load in self.score.reads(expr):
            self._read(load)
        return super().write(expr)

    def place(self, symbol: sp.Symbol) -> tuple[str, list[str]]:
        """The parameter that a differentiable symbol reads, and the texts of the read's indices."""
        for name, scalar in self.score.scalars:
            if scalar is symbol:
                return name, []
        load = next(r for r in self.score.loads if r.symbol is symbol)
        self._read(load)
        return load.name, self.places[symbol]

    def is_checked_by_numpy(self, index: sp.Expr) -> bool:
        """Whether an index needs no clipping: it is a number, or a position, and no pair is hidden."""
        return bool(index.is_Integer or (index in LOOPS and self.score.mask == sp.true))

    def _read(self, load: Load) -> None:
        """Write one array read; the position of a hidden pair may be outside, and is clipped."""
        if load.symbol in self.places:
            return
        np_, indices = self.printer.np, []
        for axis, index in enumerate(load.index):
            value = self.write(index)
            last = f"{load.name}.shape[{axis}] - 1"
            plain = self.is_checked_by_numpy(index)
            indices.append(value if plain else self._keep(f"{np_}.clip({value}, 0, {last})"))
        self.places[load.symbol] = indices
        kept = f"{load.name}[{', '.join(indices)}]"
        integer = bool(load.symbol.is_integer)
        self.names[load.symbol] = self._keep(f"{kept}.astype({np_}.int64)" if integer else kept)


def _number(value: float, np_: str) -> str:
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return f"{np_}.inf" if value > 0 else f"-{np_}.inf"
    return repr(value)
