"""SymPy's LaTeX with safe names: no name is executed as a command by LaTeX, and every name compiles."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

import sympy
from sympy.printing.latex import LatexPrinter, greek_letters_set, other_symbols

from symad.display.reading import ACCENTS as MARKS

ACCENTS = (
    "acute bar breve check ddot dddot dot grave hat mathring overline tilde underline vec widehat "
    "widetilde boldsymbol mathbb mathbf mathcal mathfrak mathit mathrm mathsf mathtt operatorname text "
    "textbf textit textrm"
)
SIGNS = (
    "ast bot cdot circ dagger ddagger ell hbar hslash infty langle ldots left lVert lvert mid nabla odot "
    "ominus "
    "oplus oslash otimes parallel partial perp pm prime rVert rangle right rvert sharp flat star times top "
    "varepsilon varkappa varphi varpi varrho varsigma vartheta"
)
COMMANDS = {*ACCENTS.split(), *SIGNS.split(), *greek_letters_set, *other_symbols, "lambda"}
"""Commands that a name may contain, as in ``Symbol(r"\\dot{\\theta}_{1}")``."""

PLAIN = re.compile(r"\w*(\^\w+)*")
"""Letters, digits, subscripts, and superscripts of something: ``theta_1``, ``x^y``."""

MARKED = re.compile(r".[\u0300-\u036f]*", re.DOTALL)
"""A character with the marks that stand above it."""

COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)

TEXT: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "$": r"\$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "×": r"$\times$", "∂": r"$\partial$", "²": r"$^2$", "→": r"$\to$", "…": r"\ldots{}",
    "Σ": r"$\Sigma$", "≤": r"$\le$", "≥": r"$\ge$", "≠": r"$\ne$", "·": r"$\cdot$", "÷": r"$\div$",
    "−": "$-$", "√": r"$\surd$", "ᵀ": r"$^{\mathsf{T}}$", "⋯": r"$\cdots$", "‖": r"$\|$",
    "\n": " ", "\r": " ",
    **{c: f"$^{{{k}}}$" for k, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}  # fmt: skip


def latex(expression: sympy.Expr, **settings: dict[sympy.Symbol, str]) -> str:
    """An expression of SymPy as LaTeX; ``settings`` are those of `sympy.latex`."""
    return str(_Printer(settings).doprint(expression))


def escaped(text: str) -> str:
    """Text as LaTeX that shows it, outside mathematics."""
    return "".join(
        _beyond_text(c) or "".join(TEXT.get(part, part) for part in c) for c in MARKED.findall(text)
    )


def _beyond_text(character: str) -> str:
    r"""``$\dot{\mathrm{r}}$`` for ṙ, ``$\theta$`` for θ; empty for what LaTeX's text has, such as é."""
    base, *marks = list(unicodedata.normalize("NFD", character))
    greek = _greek(base)
    named = [name for name, mark in MARKS.items() if [mark] == marks]
    if named and base.isalnum() and (greek or len(character) > 1 or character > "\u017f"):
        letter = greek or rf"\mathrm{{{base}}}"
        return rf"$\{named[0]}{{{letter}}}$"
    return f"${greek}$" if greek and not marks else ""


def latex_name(name: str) -> str:
    r"""A name inside mathematics: ``theta_1`` as θ₁, ``\dot{q}`` unchanged, ``a&b`` as text."""
    if PLAIN.fullmatch(name):
        written = str(LatexPrinter()._deal_with_super_sub(name))
        written = re.sub(r"[^\x00-\x7f]+", lambda run: "".join(map(_letter, run[0])), written)
        written = re.sub(r"(\\[A-Za-z]+) (?![A-Za-z])", r"\1", written)
        return f"{{}}{written}" if written.startswith(("_", "^")) else written
    base, _, below = name.partition("_")
    if base.isalnum() and below and below[0] != "{":  # t_ and the name of an input
        return f"{latex_name(base)}_{{{latex_name(below)}}}"
    return name if _is_latex(name) else rf"\text{{{escaped(name)}}}"


def _is_latex(name: str) -> bool:
    """True if a name is written in the commands above, with braces in pairs and scripts of something."""
    rest = COMMAND.sub(lambda found: "x" if found[1] in COMMANDS or found[1] in ",;:! " else "$", name)
    if re.search(r"[$%&#~\n\r]|[_^]\s*([_^}]|$)|([_^])(\{[^{}]*\}|[^{}])\s*\2", rest):
        return False
    depth = 0
    for c in rest:
        depth += {"{": 1, "}": -1}.get(c, 0)
        if depth < 0:
            return False
    return depth == 0 and rest.isprintable() and ("{" in name or "\\" in name)


def _letter(character: str) -> str:
    r"""A letter beyond ASCII inside mathematics: ``\theta`` and a space for θ, others as text."""
    greek = _greek(character)
    return f"{greek} " if greek else rf"\text{{{character}}}"


def _greek(character: str) -> str:
    r"""``\theta`` for θ; empty for other characters than the Greek letters of LaTeX."""
    if character < "\u0370" or character > "\u03ff":
        return ""
    kind, _, letter = unicodedata.name(character, "").removeprefix("GREEK ").partition(" LETTER ")
    letter = {"LAMDA": "LAMBDA"}.get(letter, letter).lower()
    letter = letter if kind == "SMALL" else letter.capitalize()
    return str(LatexPrinter()._deal_with_super_sub(letter)) if letter.lower() in COMMANDS else ""


class _Printer(LatexPrinter):
    """SymPy's printer with `latex_name` for the names of symbols, matrices and functions."""

    def _deal_with_super_sub(self, string: str, style: str = "plain") -> str:
        written = latex_name(string)
        return rf"\mathbf{{{written}}}" if style == "bold" else written
