"""Pieces of formulas, which are simplified before they are written.

A `Summand` is a product: a rational coefficient, scalar factors with their exponents, array factors that are
multiplied elementwise. A `Sum` is a sum of terms. Everything else is a `LatexAtom` or a `FunctionPiece`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import sympy

from symad.core.dims import Shape
from symad.display.latex import latex, latex_name

Piece: TypeAlias = "LatexAtom | FunctionPiece | Summand | Sum | Entries"
Factor: TypeAlias = "tuple[Piece, Fraction]"


@dataclass(frozen=True)
class LatexAtom:
    """LaTeX that binds tightly; if ``loose``, it needs parentheses as a base or beside a subscript.

    For a part of an array, ``latex``, ``base`` is the array and ``places`` are its subscripts.
    """

    latex: str
    loose: bool = False
    base: str = ""
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class FunctionPiece:
    """A SymPy function of pieces."""

    head: type[sympy.Basic]
    args: tuple[Piece, ...]


@dataclass(frozen=True)
class Summand:
    """coefficient · numbers · arrays, each factor with an exponent."""

    coefficient: Fraction
    numbers: tuple[Factor, ...] = ()
    arrays: tuple[Factor, ...] = ()


@dataclass(frozen=True)
class Sum:
    """A sum of pieces, none of them a sum."""

    terms: tuple[Piece, ...]


@dataclass(frozen=True)
class Entries:
    """An array given entry by entry, in row-major order."""

    entries: tuple[Piece, ...]
    shape: Shape


def number(value: Fraction | int) -> Piece:
    """A rational number."""
    return Summand(Fraction(value))


# ---- collecting -----------------------------------------------------------------------------------


def as_term(piece: Piece, is_array: bool) -> Summand:
    """A piece as a product."""
    if isinstance(piece, Summand):
        return piece
    factor = ((piece, Fraction(1)),)
    return Summand(Fraction(1), (), factor) if is_array else Summand(Fraction(1), factor)


def product(factors: Iterable[tuple[Piece, Fraction, bool]]) -> Piece:
    """A product of (piece, exponent, true if it is an array); equal bases are collected."""
    coefficient = Fraction(1)
    numbers: dict[Piece, Fraction] = {}
    arrays: dict[Piece, Fraction] = {}
    for piece, exponent, is_array in factors:
        term = as_term(piece, is_array)
        if term.coefficient != 1:
            if exponent.denominator != 1 or (term.coefficient == 0 and exponent < 0):
                term = Summand(Fraction(1), ((piece, Fraction(1)),))
            else:
                coefficient *= term.coefficient**exponent.numerator
        if exponent.denominator != 1 and len(term.numbers) + len(term.arrays) != 1:
            term = Summand(
                Fraction(1), *(((), ((piece, Fraction(1)),)) if is_array else (((piece, Fraction(1)),),))
            )
        for kept, found in ((numbers, term.numbers), (arrays, term.arrays)):
            for base, power in found:
                if exponent.denominator != 1 and power != 1:
                    base, power = Summand(Fraction(1), ((base, power),)), Fraction(1)  # √(x²) is not x
                kept[base] = kept.get(base, Fraction(0)) + power * exponent
    if coefficient == 0:
        return Summand(Fraction(0))
    return Summand(coefficient, _left(numbers), _left(arrays))


def _left(factors: dict[Piece, Fraction]) -> tuple[Factor, ...]:
    return tuple((base, power) for base, power in factors.items() if power != 0)


def total(signs: Sequence[int], pieces: Sequence[Piece], are_arrays: Sequence[bool]) -> Piece:
    """A sum; nested sums are flattened."""
    made: list[Piece] = []
    for sign, piece, is_array in zip(signs, pieces, are_arrays, strict=True):
        for part in piece.terms if isinstance(piece, Sum) else (piece,):
            term = as_term(part, is_array)
            made.append(part if sign == 1 else Summand(-term.coefficient, term.numbers, term.arrays))
    made = like_terms(made, any(are_arrays)) or [Summand(Fraction(0))]
    return made[0] if len(made) == 1 else Sum(tuple(made))


def like_terms(pieces: Sequence[Piece], are_arrays: bool) -> list[Piece]:
    """Terms with the same factors added, without those that cancel; others unchanged."""
    found: dict[tuple[Any, Any], Fraction] = {}
    first: dict[tuple[Any, Any], Piece] = {}
    for piece in pieces:
        term = as_term(piece, are_arrays)
        key = frozenset(term.numbers), term.arrays
        found[key] = found.get(key, Fraction(0)) + term.coefficient
        first.setdefault(key, piece)
    made: list[Piece] = []
    for key, coefficient in found.items():
        kept = as_term(first[key], are_arrays)
        if coefficient == kept.coefficient:
            made.append(first[key])
        elif coefficient:
            made.append(Summand(coefficient, kept.numbers, kept.arrays))
    return made


# ---- writing --------------------------------------------------------------------------------------


def write(piece: Piece) -> str:
    """The LaTeX of a piece."""
    if isinstance(piece, LatexAtom):
        return piece.latex
    if isinstance(piece, FunctionPiece):
        return _call(piece, Fraction(1))
    if isinstance(piece, Summand):
        return ("-" if piece.coefficient < 0 else "") + _term(piece)
    if isinstance(piece, Entries):
        return _entries(piece)
    text = write(piece.terms[0])
    for part in piece.terms[1:]:
        negative = isinstance(part, Summand) and part.coefficient < 0
        text += f" - {_term(part)}" if negative and isinstance(part, Summand) else f" + {write(part)}"
    return text


def inside(piece: Piece) -> str:
    """A piece as a factor: sums and signed terms in parentheses."""
    signed = isinstance(piece, Sum) or (isinstance(piece, Summand) and piece.coefficient < 0)
    return parenthesised(write(piece)) if signed or is_cases(piece) else write(piece)


def tight(piece: Piece) -> str:
    """A piece as a base: in parentheses, unless it is a symbol, call or matrix without an exponent."""
    if (
        isinstance(piece, Summand)
        and piece == Summand(piece.coefficient)
        and piece.coefficient.denominator == 1
    ):
        return write(piece) if piece.coefficient >= 0 else parenthesised(write(piece))
    single = single_factor(piece)
    if single is not None:
        return tight(single)
    loose = isinstance(piece, (Sum, Summand))
    loose = loose or (isinstance(piece, LatexAtom) and (piece.loose or _has_exponent(piece.latex)))
    loose = loose or (isinstance(piece, FunctionPiece) and piece.head is sympy.exp)
    return parenthesised(write(piece)) if loose else write(piece)


def entry(array: Piece, below: str) -> str:
    r"""An entry of an array: ``{s_{2}}_{i j}``."""
    return f"{group(tight(array))}_{{{below}}}"


def group(base: str) -> str:
    r"""A base in braces that takes another script.

    An empty group stands before an accent: for TeX ``{\dot{r}_{2}}`` is no group but the accent, whose second
    subscript it refuses.
    """
    guard = "{}" if base.startswith((*ACCENTS.values(), OVERLINE)) else ""
    return f"{{{guard}{base}}}"


def _has_exponent(text: str) -> bool:
    """True if a superscript, or a prime, stands outside of all groups: LaTeX refuses a second one."""
    depth = 0
    for token in re.findall(r"\\(?:left|right)(?![a-zA-Z])|\\.|[{}^']", text):
        if token in ("^", "'") and not depth:
            return True
        depth += (token in ("{", r"\left")) - (token in ("}", r"\right"))
    return False


def single_factor(piece: Piece) -> Piece | None:
    """The only factor of a term; None if it has more than that."""
    if isinstance(piece, Summand) and piece.coefficient == 1 and len(piece.numbers) + len(piece.arrays) == 1:
        ((base, power),) = piece.numbers or piece.arrays
        return base if power == 1 else None
    return None


def is_cases(piece: Piece) -> bool:
    """True if a piece is a definition by cases."""
    return isinstance(piece, LatexAtom) and piece.latex.startswith(r"\begin{cases}")


def parenthesised(latex: str) -> str:
    """The LaTeX in parentheses that adapt their size."""
    return rf"\left({latex}\right)"


def _term(term: Summand) -> str:
    """A product without its sign: a fraction of its numbers, followed by its arrays."""
    size = abs(term.coefficient)
    numbers = sorted(term.numbers, key=_order)
    above = [_raised(b, p) for b, p in numbers if p > 0]
    below = [_raised(b, -p) for b, p in numbers if p < 0]
    arrays = r" \odot ".join(_raised(b, p, array=True, alone=len(term.arrays) == 1) for b, p in term.arrays)
    if size.denominator != 1:
        below.insert(0, str(size.denominator))
    if size.numerator != 1 or not (above or below or arrays):
        above.insert(0, str(size.numerator))
    over = beside(_lone(term, above, below))
    if below:
        under = beside(below)
        over = rf"\frac{{{over or '1'}}}{{{under}}}"
    return beside([part for part in (over, arrays) if part])


def beside(factors: Sequence[str]) -> str:
    """Factors of a product, with space between names of several letters."""
    return (r" \, " if any(WORD in f for f in factors) else " ").join(factors)


WORD = r"\mathrm{"
"""The commands for names of several letters."""


def _order(factor: Factor) -> tuple[int, str]:
    """The order of factors: symbols by name, then other tightly binding pieces, sums, and functions last."""
    base, _ = factor
    if isinstance(base, LatexAtom) and not base.loose:
        return 0, base.latex
    return (1 if isinstance(base, LatexAtom) else 2 if isinstance(base, Sum) else 3), ""


def _lone(term: Summand, above: list[str], below: list[str]) -> list[str]:
    """Without parentheses for a single sum above or below the line of a fraction."""
    sums = [b for b, p in term.numbers if p == 1 and isinstance(b, Sum)]
    return [write(sums[0])] if below and len(above) == 1 and len(sums) == 1 else above


def _raised(base: Piece, power: Fraction, array: bool = False, alone: bool = False) -> str:
    """A factor with its exponent."""
    if power == 1:
        return write(base) if array and alone and not isinstance(base, Sum) else inside(base)
    if (
        isinstance(base, FunctionPiece)
        and power.denominator == 1
        and power > 1
        and base.head is not sympy.exp
    ):
        return _call(base, power)
    if power == Fraction(1, 2) and not array:
        return rf"\sqrt{{{write(base)}}}"
    circle = r"\circ " if array else ""
    return rf"{tight(base)}^{{{circle}{write(Summand(power))}}}"


NAMES = {"sigmoid": r"\sigma", "logistic": r"\sigma", "Max": r"\max", "Min": r"\min"}
"""Functions with a symbol of their own."""


def _call(call: FunctionPiece, power: Fraction) -> str:
    """A function of its arguments, with the exponent after its name."""
    texts = [write(a) for a in call.args]
    if call.head is sympy.Abs:
        bars = rf"\left\lvert {texts[0]} \right\rvert"
        return bars if power == 1 else rf"{bars}^{{{power}}}"
    raised = f"^{{{power}}}" if power != 1 else ""
    name = NAMES.get(call.head.__name__)
    if name is not None:
        return rf"{name}{raised}\left({', '.join(texts)}\right)"
    slots = [sympy.Dummy(f"x{k}", real=True) for k in range(len(texts))]
    shown = call.head(*slots, evaluate=False) ** int(power)
    return latex(shown, symbol_names=dict(zip(slots, texts, strict=True)))


def _entries(array: Entries) -> str:
    """A matrix; a vector as a column."""
    columns = int(array.shape[1]) if len(array.shape) == 2 else 1
    texts = [write(e) for e in array.entries]
    rows = [" & ".join(texts[k : k + columns]) for k in range(0, len(texts), max(columns, 1))]
    body = r" \\ ".join(rows)
    return rf"\begin{{bmatrix}} {body} \end{{bmatrix}}"


# ---- names ----------------------------------------------------------------------------------------

OVERLINE = r"\overline"

ACCENTS = {"_bar": r"\bar", "_dot": r"\dot"}
"""Cotangents and tangents."""


SUBSCRIPTED = re.compile(r"(\\?[A-Za-z]+|\\mathrm\{\w+\})(_\{[^{}]*\}|_\w)")
"""A name and its subscript."""


def accented(accent: str, name: str) -> str:
    """A name with a bar or a dot over its letter, not over its subscript; several letters have a long bar."""
    found = SUBSCRIPTED.fullmatch(name)
    letter, below = found.groups() if found else (name, "")
    wide = accent == r"\bar" and letter.startswith(r"\mathrm") and "_" not in letter
    return f"{OVERLINE if wide else accent}{{{letter}}}{below}"


def name_of_input(symbol: sympy.Basic) -> str:
    """A symbol by its name; a function of time or a derivative as SymPy writes it."""
    name = getattr(symbol, "name", getattr(symbol, "label", None))
    return latex(symbol) if name is None or "^" in str(name) else name_of(str(name))


def name_of(name: str) -> str:
    """A name of the model: W_bar is W with a bar, theta_1 a letter with a subscript."""
    for ending, accent in ACCENTS.items():
        if name.endswith(ending) and len(name) > len(ending):
            return accented(accent, name_of(name[: -len(ending)]))
    if all(c.isalnum() or c == "_" for c in name):
        base, *below = latex_name(name).split("_", 1)
        base = base if len(base) < 2 or base.startswith("\\") else rf"\mathrm{{{base}}}"
        return "_".join([base, *below])
    return latex_name(name)
