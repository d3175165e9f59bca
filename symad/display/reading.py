r"""Formulas in LaTeX, as symad writes them, read for terminals (``s̄_2``) and for pages (MathML).

Only the LaTeX of `typesetting` and of SymPy's printer occurs: groups, scripts, fractions, roots, accents,
names, and matrices. An unknown command is shown by its name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

TOKEN = re.compile(r"\\(?:begin|end)\{\w+\}|\\[A-Za-z]+|\\\\|\\.|\d+(?:\.\d+)?|[A-Za-z]+|\s+|.", re.DOTALL)

ACCENTS = {
    "bar": "\u0304", "overline": "\u0304", "dot": "\u0307", "ddot": "\u0308", "hat": "\u0302",
    "tilde": "\u0303",
}  # fmt: skip
UPRIGHT = ("operatorname", "text", "mathrm", "mathrel")
GROUPS = (*UPRIGHT, "mathbf", "mathsf", "mathit", "mathcal", "mathbb", "boldsymbol")
SILENT = ("left", "right", "textstyle", "displaystyle", "limits", "big", "Big")
SIGNS = {
    "cdot": "·", "odot": "⊙", "times": "×", "sum": "Σ", "prod": "∏", "partial": "∂", "circ": "∘",
    "top": "ᵀ", "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "le": "≤", "leq": "≤", "ge": "≥",
    "geq": "≥", "ne": "≠", "infty": "∞", "dots": "…", "ldots": "…", "wedge": "∧", "vee": "∨", "neg": "¬",
    "oplus": "⊕", "to": "→", "quad": " ", "qquad": " ", "colon": ":", "langle": "⟨", "rangle": "⟩",
    "nabla": "∇", "|": "‖", ",": " ", ";": " ", " ": " ", ":": " ", "!": "",
}  # fmt: skip
BOLD = str.maketrans("01", "𝟘𝟙")
RAISED = str.maketrans("0123456789-T", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ")


@dataclass(frozen=True)
class FormulaPart:
    """A part of a formula: a row, a script (base, below, above), a fraction, a root, an accent, a leaf."""

    kind: str
    parts: tuple[FormulaPart, ...] = ()
    text: str = ""


EMPTY = FormulaPart("row")


class TokenReader:
    """The tokens of a formula, read from left to right."""

    def __init__(self, latex: str) -> None:
        self.tokens: list[str] = TOKEN.findall(latex)[::-1]

    def row(self, *ends: str) -> FormulaPart:
        """The parts up to one of some tokens, or to the end."""
        found: list[FormulaPart] = []
        while self.tokens and self.tokens[-1] not in ends:
            token = self.tokens.pop()
            if token in "_^" and token.strip():
                base = found.pop() if found else EMPTY
                found.append(self._script(base, token))
            elif token.strip():
                found.append(self._part(token))
        return found[0] if len(found) == 1 else FormulaPart("row", tuple(found))

    def _script(self, base: FormulaPart, token: str) -> FormulaPart:
        made, inner, below, above = self._group(), base, EMPTY, EMPTY
        if base.kind == "script" and base.parts[1 if token == "_" else 2] == EMPTY:
            inner, below, above = base.parts
        return FormulaPart("script", (inner, made, above) if token == "_" else (inner, below, made))

    def _group(self) -> FormulaPart:
        """The next token or group in braces."""
        while self.tokens and not self.tokens[-1].strip():
            self.tokens.pop()
        return self._part(self.tokens.pop()) if self.tokens else EMPTY

    def _part(self, token: str) -> FormulaPart:
        name = token.removeprefix("\\")
        if token == "{":
            made = self.row("}")
            self.tokens = self.tokens[:-1]
            return made
        if token.startswith("\\begin"):
            return self._matrix("\\end" + token.removeprefix("\\begin"))
        if name == token:
            return FormulaPart("leaf", text=token)
        return self._command(name)

    def _command(self, name: str) -> FormulaPart:
        if name in SILENT:
            return EMPTY
        if name in ACCENTS:
            return FormulaPart("accent", (self._group(),), ACCENTS[name])
        if name in GROUPS:
            if name in UPRIGHT:
                return self._upright()
            made = self._group()
            return (
                FormulaPart("leaf", text=made.text.translate(BOLD))
                if name == "mathbf" and made.text
                else made
            )
        if name == "frac":
            return FormulaPart("frac", (self._group(), self._group()))
        if name == "sqrt":
            degree = EMPTY
            if self.tokens and self.tokens[-1] == "[":
                self.tokens.pop()
                degree = self.row("]")
                self.tokens = self.tokens[:-1]
            return FormulaPart("root", (self._group(), degree))
        return FormulaPart("leaf", text=SIGNS.get(name) or _greek(name) or name)

    def _upright(self) -> FormulaPart:
        """Text, whose spaces are kept."""
        depth, text = 0, ""
        while self.tokens:
            token = self.tokens.pop()
            depth += (token == "{") - (token == "}")
            if token == "{" or token == "}" or token == "\\text":
                if not depth:
                    break
                continue
            text += token.removeprefix("\\") if token != "\\" else ""
        return FormulaPart("leaf", text=text)

    def _matrix(self, end: str) -> FormulaPart:
        rows: list[FormulaPart] = []
        cells: list[FormulaPart] = []
        while self.tokens:
            cells.append(self.row("&", "\\\\", end))
            token = self.tokens.pop() if self.tokens else end
            if token != "&":
                rows.append(FormulaPart("cells", tuple(cells)))
                cells = []
            if token == end:
                break
        kind = next((k for k in ("cases", "aligned") if k in end), "")
        return FormulaPart("table", tuple(replace(row, text=kind) for row in rows), kind)


def _greek(name: str) -> str:
    r"""The letter of ``\theta``; empty for other commands."""
    case = "SMALL" if name.islower() else "CAPITAL"
    word = {"lambda": "lamda", "varepsilon": "epsilon", "varphi": "phi"}.get(name.lower(), name.lower())
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {word.upper()}")
    except KeyError:
        return ""


# ---- as text --------------------------------------------------------------------------------------


def plain(latex: str) -> str:
    r"""A formula as one line of text.

    >>> plain(r"s_{2} \odot \left(\bar{s}_{2} - B^{\mathsf{T}}\right)")
    's_2 ⊙ (s̄_2 - Bᵀ)'
    """
    text = _text(TokenReader(latex).row())
    text = unicodedata.normalize("NFC", text)
    return re.sub(r"(?<=[(\[]) | (?=[)\],;_^])|(?<= ) ", "", text).strip()


def _text(part: FormulaPart) -> str:
    inner = [_text(p) for p in part.parts] if part.kind != "row" else []
    made: dict[str, Callable[[], str]] = {
        "row": lambda: _row(part),
        "leaf": lambda: f" {part.text} " if part.text in BETWEEN else part.text.replace(",", ", "),
        "script": lambda: _scripts(part, *inner),
        "frac": lambda: "/".join(map(_bound, inner)),
        "root": lambda: f"{inner[1].translate(RAISED)}√{_bound(inner[0])}",
        "accent": lambda: inner[0][:1] + part.text + inner[0][1:],  # over the first letter
        "table": lambda: "; ".join(inner) if part.text else f"[{'; '.join(inner)}]",
        "cells": lambda: (" " if part.text == "aligned" else ", ").join(inner),
    }
    return made[part.kind]()


BETWEEN = ("+", "⊙", "=", "+=", "<", ">", "≤", "≥")
WORDS = re.compile(r"[\w\u0300-\u036f]")


def _row(part: FormulaPart) -> str:
    """Parts one after the other, with spaces between words, numbers and what follows a parenthesis."""
    text, previous = "", ""
    for each in part.parts:
        piece = _text(each)
        if piece == "-" and each.kind == "leaf":
            piece = " - " if previous and previous.strip() not in ("(", "=", ",", "[", "|") else "-"
        elif piece and previous and _apart(previous, piece, each):
            text += " "
        text += piece
        previous = piece or previous
    return text


def _apart(left: str, right: str, part: FormulaPart) -> bool:
    """Whether two neighbors need a space: not between a function and its parenthesis."""
    ends = bool(WORDS.match(left[-1])) or left[-1] in "ᵀ)]⁰¹²³⁴⁵⁶⁷⁸⁹Σ∏…"
    begins = bool(WORDS.match(right[0])) or (right[0] in "Σ√‖" and part.kind != "leaf") or right[0] in "Σ√[∂"
    if right[0] in "(" and part.kind == "row":
        return False
    return ends and begins


def _scripts(part: FormulaPart, base: str, below: str, above: str) -> str:
    base = base if part.parts[0].kind in ("leaf", "accent") or len(base) == 1 else _grouped(base)
    low = f"_{_grouped(below) if ' ' in below else below}" if below else ""
    above = above.removeprefix("∘").strip()
    if re.fullmatch(r"-?\d+|T|", above):
        return base + low + above.translate(RAISED)
    return f"{base}{low}^{above if len(above) == 1 else _grouped(above)}"


def _grouped(text: str) -> str:
    return text if text.startswith(("(", "[")) and text.endswith((")", "]")) else f"({text})"


def _bound(text: str) -> str:
    """A name or a number, or something in parentheses."""
    return text if re.fullmatch(r"[\w.√∂\u0300-\u036f]+", text) else _grouped(text)


# ---- as MathML ------------------------------------------------------------------------------------


def mathml(latex: str) -> str:
    """A formula as MathML, which browsers typeset without a library."""
    made = _ml(TokenReader(latex).row()).replace("<mo>-</mo>", "<mo>−</mo>")
    signs = re.sub("(^|<mrow>|<mo>[=(,+⊙]</mo>)<mo>−</mo>", r"\1<mo form='prefix'>−</mo>", made)
    if not any(tag in signs for tag in ("<mfrac", "<mtable", "<munder", "<mroot", "<msqrt")):
        signs = re.sub(r"<mo>([()])</mo>", r"<mo stretchy='false'>\1</mo>", signs)  # as tall as letters
    return f"<math>{signs}</math>"


def _ml(part: FormulaPart) -> str:
    if part.kind == "leaf":
        return _ml_leaf(part.text)
    inner = [_ml(p) for p in part.parts]
    if part.kind == "script":
        low, high = (p != EMPTY for p in part.parts[1:])
        kept = [m for m, shown in zip(inner, (True, low, high), strict=True) if shown]
        return _tag(f"m{'sub' * low}{'sup' * high}", *kept)
    if part.kind == "table":
        left, right = {"cases": ("{", ""), "aligned": ("", "")}.get(part.text, ("[", "]"))
        return f"<mo>{left}</mo>{_tag('mtable', *inner)}<mo>{right}</mo>"
    if part.kind == "cells":
        return _tag("mtr", *(_tag("mtd", c) for c in inner))
    if part.kind == "accent":
        return f"<mover accent='true'>{inner[0]}<mo>{ABOVE[part.text]}</mo></mover>"
    if part.kind == "root":
        return _tag("mroot", *inner) if inner[1] else _tag("msqrt", inner[0])
    return _tag("mfrac", *inner) if part.kind == "frac" else _tag("mrow", *inner) if inner else ""


def _tag(name: str, *inner: str) -> str:
    return f"<{name}>{''.join(inner)}</{name}>"


ABOVE = {"\u0304": "¯", "\u0307": "˙", "\u0308": "¨", "\u0302": "^", "\u0303": "~"}


def _ml_leaf(text: str) -> str:
    shown = escape(text)
    if re.fullmatch(r"[\d.]+", text):
        return f"<mn>{shown}</mn>"
    if " " in text.strip():
        return f"<mtext>{shown.replace(' ', chr(160))}</mtext>"
    if text.isalpha():  # functions stand apart from the factor before them
        return f"<mi>{shown}</mi>" if len(text) == 1 else f"<mo lspace='.17em' rspace='0'>{shown}</mo>"
    return f"<mo>{shown}</mo>"
