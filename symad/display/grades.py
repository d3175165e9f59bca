"""Answers to exercises, graded: `grade(f, x, gradient=answer)`."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np

from symad.core.dims import dim_symbols
from symad.core.graph import Graph, Node
from symad.core.identifiers import visible
from symad.core.signatures import Traceable, Wrt
from symad.derivatives.jacobian import jacobian
from symad.display.notation import Notation, read
from symad.display.reading import plain
from symad.display.recurrences import depend_on
from symad.display.typesetting.derivation import rule_name
from symad.display.typesetting.graphs import SHOWN
from symad.display.writer import TableWriter
from symad.errors import SymadError
from symad.higher_order.scan import Scan
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
        """What the first entry that is not right needs; at level 2 all steps but the last.

        The steps are those of the function and of reverse mode; for a second derivative the gradient.

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
            return _steps(graph, wrt, fault.name)
        pairs = zip(graph.inputs, graph.input_nodes, strict=True)
        reached = depend_on(graph.nodes, {n for s, n in pairs if s in wrt})
        rules = dict.fromkeys(rule_name(n.op, n) for n in graph.nodes if n in reached and n.args)
        if fault.name.startswith("value"):
            return f"{fault.name} is computed step by step; hint(2) has all steps but the last"
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


def _steps(graph: Graph, wrt: Sequence[Any], name: str) -> str:
    """The steps to an entry, without its own; or where to read them."""
    long = f"{name} is long; symad.trace(f).explain(...) shows each step"
    if len(graph.nodes) > SHOWN or any(isinstance(n.op, Scan) for n in graph.nodes):
        return long
    if "²" in name:
        latex = jacobian(graph, wrt).to_latex()
        first = "" if "aligned" in latex else plain(latex)
        return f"{name} is the derivative of {first}" if 0 < len(first) <= MAX_HINT else long
    small = graph.at({dim: 2 for node in graph.input_nodes for dim in dim_symbols(node.shape)})
    names = TableWriter(small, {n: np.ones(n.shape)[()] for n in small.input_nodes}).names
    rows = [f"{names.math('s', n).text} = {read(names.state(n)).text}" for n in names.rows if n.args]
    if name.startswith("value"):
        return "\n".join([*rows[:-1], f"{rows[-1].partition(' = ')[0]} = ?"])
    asked = {n for n, s in zip(small.input_nodes, graph.inputs, strict=True) if s in wrt}
    rows += _adjoints(names, asked) if "/∂" in name else _tangents(names, set(small.output_nodes))
    return "\n".join([f"{name}, step by step:", *rows])


def _adjoints(names: Notation, asked: set[Node]) -> list[str]:
    """The adjoints of the states on the way from the output to the inputs that are asked for."""
    reached = depend_on(names.runs.order, asked)
    rows = [n for n in reversed(names.rows) if n in names.runs.real and n in reached]
    formulas = ("?" if n in asked else read(names.adjoint(n)).text for n in rows)
    return [f"{names.math('r', n).text} = {f}" for n, f in zip(rows, formulas, strict=True)]


def _tangents(names: Notation, last: set[Node]) -> list[str]:
    """The tangents of the states, without those of the outputs."""
    rows = [n for n in names.rows if n.args]
    formulas = ("?" if n in last else read(names.tangent(n)).text for n in rows)
    return [f"{names.math('t', n).text} = {f}" for n, f in zip(rows, formulas, strict=True)]


def _without_advice(fault: Entry) -> Entry:
    """The entry without the options of `verify`, which students do not have, and without its solution.

    The smallest part that differs is the solution if its value is that of the entry.
    """
    blame, witness = fault.blame, fault.witness
    value = blame.expected.rpartition(" = ")[2] if blame else ""
    if blame and (blame.expected.startswith("Matrix(") or (witness and value == str(witness.left))):
        blame = replace(blame, expected="", found="")
    return replace(fault, reason=fault.reason.partition("; computed_in=")[0], blame=blame)


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

    Raises:
        TypeError: not exactly one answer is given, or it has another name.

    Example:
        >>> import sympy
        >>> x, y = sympy.symbols("x y", real=True)
        >>> answer = grade(x * y**2, (x, y), gradient=[y**2, x * y])
        >>> answer
        wrong (refuted): 1 of 2 entries right
        ∂f/∂y is wrong: missing factor 2
            at       x = ..., y = ...
            expected ...
            found    ...
            the smallest part that differs:
              expected 2*y = ...
              found    y = ...
        ∂f/∂x is right
        >>> answer.hint(1)
        '∂f/∂y needs: power rule, product rule'
        >>> print(answer.hint(2))
        ∂f/∂y, step by step:
        s_1 = y²
        s_2 = s_1 x
        r_2 = 1
        r_1 = r_2 x
        r_y = ?
    """
    if any(candidate is None for candidate in answer.values()):
        return Grade(None)
    if any(isinstance(candidate, str) for candidate in answer.values()):
        return Grade(None, "not an answer: text; give a formula of the symbols, or a function")
    try:
        return Grade(verify(f, wrt, **answer), "", f)
    except SymadError as problem:
        told = str(problem).removeprefix("verify: ").partition("; change one of these")[0]
        return Grade(None, "not an answer: " + told.replace("candidate", "answer"))
