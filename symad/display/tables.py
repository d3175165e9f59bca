"""Tables of values and formulas, formatted as plain text, as Markdown and as LaTeX."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.core.arrays import Number
from symad.display.latex import escaped, latex
from symad.numbers.dual import Dual

DIGITS = 6
"""Significant digits of floating-point numbers in tables."""

ENTRIES = 9
"""The number of entries above which arrays are summarized."""

WIDTH = 60
"""The maximum length of texts in plain text and Markdown."""


@dataclass(frozen=True)
class Math:
    """A formula, as text and in LaTeX."""

    text: str
    latex: str


@dataclass(frozen=True)
class Table:
    """A titled table; cells are numbers, arrays, SymPy objects, `Math`, Duals, text or None."""

    title: str
    headers: tuple[Any, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str | Math, ...] = ()

    def to_text(self, width: int = 80) -> str:
        """Aligned columns; wider tables stand in blocks, each with the title and the first column."""
        cells = [line for row in (self.headers, *self.rows) for line in _wrapped(row)]
        widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
        rights = self._numeric_columns()
        lines: list[str] = []
        for block in _blocks(widths, width):
            lines += ["", f"{self.title}, continued"] if lines else [self.title]
            shown = [[_aligned(row, widths, rights)[k] for k in block] for row in cells]
            head, *body = [line for row in shown if (line := "  ".join(row).rstrip())]
            rule = "─" * max(map(_width, (head, *body)))
            lines += [rule, head, rule, *body, rule]
        notes = (textwrap.fill(_note(note), width, subsequent_indent="  ") for note in self.notes)
        return "\n".join([*lines, *notes])

    def to_markdown(self) -> str:
        """A pipe table."""
        cells = [[text(c).replace("|", "\\|") or " " for c in r] for r in (self.headers, *self.rows)]
        widths = [max(3, *map(_width, column)) for column in zip(*cells, strict=True)]
        rights = self._numeric_columns()
        lines = [" | ".join(_aligned(row, widths, rights)) for row in cells]
        marks = ["-" * (w - 1) + (":" if r else "-") for w, r in zip(widths, rights, strict=True)]
        table = [f"| {line} |" for line in (lines[0], " | ".join(marks), *lines[1:])]
        return "\n".join([f"**{self.title}**", "", *table, "", *map(_note, self.notes)]).rstrip() + "\n"

    def to_latex(self) -> str:
        """A tabular that needs no package."""
        columns = "".join("r" if right else "l" for right in self._numeric_columns())
        body = [" & ".join(map(cell_latex, row)) + r" \\" for row in self.rows]
        notes = [f"\n\\noindent {cell_latex(note)}" for note in self.notes]
        head = " & ".join(map(cell_latex, self.headers)) + r" \\"
        title, start = rf"\subsection*{{{cell_latex(self.title)}}}", rf"\begin{{tabular}}{{{columns}}}"
        lines = [title, start, r"\hline", head, r"\hline", *body, r"\hline", r"\end{tabular}", *notes]
        return "\n".join(lines)

    def _numeric_columns(self) -> list[bool]:
        """For each column, true if it contains only numbers; such columns are right-aligned."""
        plain = (int, float, Fraction, np.generic, mpmath.mpf, sympy.Number, type(None))
        return [all(isinstance(row[k], plain) for row in self.rows) for k in range(len(self.headers))]


def _blocks(widths: Sequence[int], width: int) -> list[list[int]]:
    """Columns in blocks of at most a width; the first column begins each of them."""
    blocks = [[0]]
    for k in range(1, len(widths)):
        if sum(widths[j] + 2 for j in blocks[-1]) + widths[k] > width and len(blocks[-1]) > 1:
            blocks.append([0])
        blocks[-1].append(k)
    return blocks


def _wrapped(row: Sequence[Any]) -> list[list[str]]:
    """The lines of a row: formulas and words are not cut, but continued."""
    texts = [c.text if isinstance(c, Math) else text(c) for c in row]
    columns = [textwrap.wrap(t, WIDTH, break_long_words=True) or [""] for t in texts]
    return list(map(list, zip_longest(*columns, fillvalue="")))


def _note(note: str | Math) -> str:
    return note if isinstance(note, str) else note.text


def _aligned(row: Sequence[str], widths: Sequence[int], rights: Sequence[bool]) -> list[str]:
    made = []
    for cell, width, right in zip(row, widths, rights, strict=True):
        space = " " * (width - _width(cell))
        made.append(space + cell if right else cell + space)
    return made


def _width(shown: str) -> int:
    """Columns in a terminal: accents stand over a letter."""
    return sum(not unicodedata.combining(c) for c in shown)


def text(value: Any) -> str:
    """A cell as plain text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Math):
        return _cut(value.text)
    if isinstance(value, Dual):
        return f"({_half(value.value)}, {_half(value.tangent)})"
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating, sympy.Float)):
        return f"{float(value) + 0.0:.{DIGITS}g}"  # a zero has no sign
    if isinstance(value, mpmath.mpf):
        return str(mpmath.nstr(value, DIGITS))
    return _cut(str(value))


def _cut(long: str) -> str:
    return long if len(long) <= WIDTH else long[: WIDTH - 1] + "…"


def _half(value: Any) -> str:
    """A component of a pair: a long array by its shape."""
    shown = text(value)
    return _summary(value) if isinstance(value, np.ndarray) and len(shown) > WIDTH // 2 - 2 else shown


def _array_text(array: np.ndarray) -> str:
    if array.size <= ENTRIES:
        shown = entries(array)
        if len(shown) <= WIDTH:
            return shown
    return _summary(array)


def entries(array: np.ndarray) -> str:
    """All entries, in brackets."""
    if not array.ndim:
        return text(array[()])
    return "[" + ", ".join(entries(part) if np.ndim(part) else text(part) for part in array) + "]"


def _summary(array: np.ndarray) -> str:
    """The shape and the norm."""
    shape = "×".join(map(str, array.shape))
    if array.dtype.kind == "f":
        return f"{shape}, norm {text(float(np.linalg.norm(array)))}"
    return f"{shape} array"


def cell_latex(value: Any) -> str:
    """A cell as LaTeX, formulas in math mode."""
    if isinstance(value, Math):
        return f"${value.latex}$" if value.latex else ""
    numbers = (Dual, Fraction, sympy.Basic, int, float, np.number, mpmath.mpf)
    if isinstance(value, numbers) and not isinstance(value, bool):
        return f"${_bare(value)}$"
    return escaped(text(value))


def _bare(value: Number) -> str:
    """A number, an expression, or a pair or an array of such inside math mode."""
    if isinstance(value, Dual):
        return f"({_bare(value.value)},\\; {_bare(value.tangent)})"
    if isinstance(value, np.ndarray):
        return _bare_array(value)
    if isinstance(value, (Fraction, sympy.Basic)) and not isinstance(value, sympy.Float):
        return latex(sympy.sympify(value, strict=True))
    mantissa, _, exponent = text(value).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _bare_array(array: np.ndarray) -> str:
    """Its entries, or its shape and norm, as in `_array_text`."""
    if not array.ndim:
        return _bare(array[()])
    if array.size <= ENTRIES:
        return "[" + ",\\; ".join(map(_bare, array)) + "]"
    shape = r" \times ".join(map(str, array.shape))
    if array.dtype.kind != "f":
        return shape
    return rf"{shape},\; \|\cdot\| = {_bare(float(np.linalg.norm(array)))}"


MAX_VALUE = 22
"""Characters of a value in a box."""


def boxed(names: Sequence[Math], values: Sequence[Any]) -> Math:
    """``s_2 = 1`` in a box, ``s_2 = (1, 0.5)`` of a dual number; large arrays by norm, ``‖S‖ = 1.28``."""
    norms = any(_is_large(v) and v.dtype.kind == "f" for v in values)
    found = [_short(v, norms) for v in values]
    if norms:
        names = [Math(f"‖{n.text}‖", rf"\|{n.latex}\|") for n in names]
    left, right = _paired(names if norms else names[:1]), _paired(found)
    return Math(f"{left.text} = {right.text}", f"{left.latex} = {right.latex}")


def _paired(parts: Sequence[Math]) -> Math:
    if len(parts) == 1:
        return parts[0]
    first, second = parts
    return Math(f"({first.text}, {second.text})", rf"({first.latex},\ {second.latex})")


def _is_large(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (value.size > ENTRIES or len(entries(value)) > MAX_VALUE)


def _short(value: Any, norm: bool) -> Math:
    """A number, the norm of an array, its few entries, or its shape if it has formulas."""
    if norm and isinstance(value, np.ndarray):
        value = float(np.linalg.norm(value))
    shown = _summary(value) if _is_large(value) else text(value)
    if len(shown) > MAX_VALUE:
        return Math(shown[: MAX_VALUE - 1] + "…", r"\dots")
    return Math(shown, cell_latex(value).strip("$") if not isinstance(value, np.ndarray) else shown)
