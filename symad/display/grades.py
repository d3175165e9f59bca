"""Answers to exercises, graded: `grade(f, x, gradient=answer)`."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, replace
from typing import Any

import mpmath

from symad.core.graph import Graph
from symad.core.identifiers import visible
from symad.core.signatures import Traceable, Wrt
from symad.derivatives.hessian import hessian
from symad.derivatives.jacobian import gradient, jacobian
from symad.display.reading import plain
from symad.display.typesetting.derivation import rule_name
from symad.display.typesetting.graphs import SHOWN
from symad.errors import SymadError
from symad.tracing import trace
from symad.verification.certificate.certificate import Certificate, Entry
from symad.verification.certificate.report import fault_text, fitted
from symad.verification.users import verify

VERDICTS = {
    "proved": "right, for all values",
    "tested": "right, up to a negligible probability",
    "measured": "right wherever it was tried",
    "undecided": "not decided",
    "refuted": "wrong",
}
RIGHT = ("proved", "tested", "measured")
COLORS = {"refuted": "#c62828", "undecided": "#ef6c00"}


@dataclass(frozen=True, repr=False)
class Grade:
    """The result of `grade`; prints as the verdict, what is right, and what is wrong with which values."""

    certificate: Certificate | None
    problem: str = ""
    function: Traceable | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The elements of the answer, each with its status."""
        return () if self.certificate is None else self.certificate.entries

    @property
    def right(self) -> bool:
        """True if the answer is proved, tested or measured."""
        return self.certificate is not None and self.certificate.status in RIGHT

    @property
    def score(self) -> float:
        """The share of the entries that are right, from 0 to 1; 0 without an answer."""
        return sum(e.status in RIGHT for e in self.entries) / max(len(self.entries), 1)

    def hint(self, level: int = 1) -> str:
        """The first entry that is not right with the rules it needs; at level 2 its formula.

        Raises:
            ValueError: another level than 1 and 2.
        """
        if level not in (1, 2):
            raise ValueError(f"hint has the levels 1 and 2, not {level!r}")
        fault = next((e for e in self.entries if e.status not in RIGHT), None)
        if fault is None or self.function is None:
            return repr(self)
        graph, name = trace(self.function), fault.name.rpartition("/∂")[2]
        wrt = [s for s in graph.inputs if str(s) == name] or list(graph.inputs)
        if level == 2:
            derive = gradient if "/∂" in fault.name else hessian if "²" in fault.name else jacobian
            return _formula(derive(graph, wrt), fault.name)
        pairs = zip(graph.inputs, graph.input_nodes, strict=True)
        reached, rules = {n for s, n in pairs if s in wrt}, dict[str, None]()
        for node in graph.nodes:
            if reached.intersection(node.args):
                reached.add(node)
                rules[rule_name(node.op, node)] = None
        return f"{fault.name} needs: {', '.join(rules) or 'nothing, it is zero'}"

    def _lines(self) -> list[str]:
        """The verdict, what is right, and the first fault."""
        if self.certificate is None:
            return [self.problem or "no answer yet"]
        status, names = self.certificate.status, dict.fromkeys(e.name for e in self.entries)
        lines = [f"{VERDICTS[status]} ({status})"]
        if status in RIGHT:
            return lines
        lines[0] += f": {sum(e.status in RIGHT for e in self.entries)} of {len(self.entries)} entries right"
        wrong = {e.name for e in self.entries if e.status not in RIGHT}
        fault = next(e for e in self.entries if e.status == status)
        lines += fitted(_in_six_digits(fault_text(_without_advice(fault)))).splitlines()
        return lines + [f"{name} is right" for name in names if name not in wrong]

    def __repr__(self) -> str:
        return visible("\n".join(self._lines()))

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(line) for line in self._lines())
        status = "" if self.certificate is None else self.certificate.status
        color = "#2e7d32" if self.right else COLORS.get(status, "#757575")
        body = "<pre>" + "\n".join(rest) + "</pre>" if rest else ""
        style = f"border-left: 4px solid {color}; padding-left: 8px"
        return visible(f'<div style="{style}"><b>{first}</b>{body}</div>')


MAX_HINT = 160
"""Characters of a formula in a hint; a longer one is no help."""


def _formula(derivative: Graph, name: str) -> str:
    """A derivative as one line, or where to read it step by step."""
    latex = derivative.to_latex() if len(derivative.nodes) <= SHOWN else "aligned"
    shown = "" if "aligned" in latex else plain(latex)
    if 0 < len(shown) <= MAX_HINT:
        return shown
    return f"{name} is long; symad.trace(f).explain(...) shows the adjoint of each step"


def _without_advice(fault: Entry) -> Entry:
    """The entry without the options of `verify`, which a student does not have."""
    return replace(fault, reason=fault.reason.partition("; computed_in=")[0])


def _in_six_digits(told: str) -> str:
    """Long numbers as students compare them, unless both values would look the same."""
    short = re.sub(r"\d+\.\d{7,}(e[+-]?\d+)?", lambda n: mpmath.nstr(mpmath.mpf(n[0]), 6), told)
    values = re.findall("^    (?:expected|found) +(.*)$", short, re.MULTILINE)
    return told if len(values) > len(set(values)) else short


def grade(f: Traceable, wrt: Wrt | None = None, **answer: Any) -> Grade:
    """The verdict on an answer to an exercise.

    Args:
        f: the function, as `symad.verify` takes it.
        wrt: the inputs to differentiate by.
        answer: one of ``value=``, ``gradient=``, ``jacobian=``, ``hessian=``: a formula or a numeric
            function; None while there is no answer.

    Returns:
        The grade. An answer of the wrong shape or kind raises no error: the grade says what is wrong with it.

    Example:
        >>> import sympy
        >>> x, y = sympy.symbols("x y", real=True)
        >>> answer = grade(x * y**2, (x, y), gradient=[y**2, x * y])
        >>> answer
        wrong (refuted): 1 of 2 entries right
        ∂f/∂y is wrong: missing factor 2
            at       x = 1/4, y = 7/5
            expected 0.7
            found    0.35
            the smallest part that differs:
              expected 2*y = 2.8
              found    y = 1.4
        ∂f/∂x is right
        >>> answer.hint(1)
        '∂f/∂y needs: power rule, product rule'
        >>> answer.hint(2)
        '∂f/∂y = 2 x y'
    """
    if any(candidate is None for candidate in answer.values()):
        return Grade(None)
    if any(isinstance(candidate, str) for candidate in answer.values()):
        return Grade(None, "not an answer: text; give a formula of the symbols, or a function")
    try:
        return Grade(verify(f, wrt, **answer), "", f)
    except SymadError as problem:
        return Grade(None, "not an answer: " + str(problem).removeprefix("verify: "))
