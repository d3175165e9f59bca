"""Score functions and masks of attention as SymPy expressions: called once with symbols, and checked.

A score function is called with the scaled score s = scale ⟨q_i, k_j⟩, the integers b (batch),
h (query head), i (query position), j (key position), and the learned parameters by name.
Scalar parameters arrive as real symbols, arrays as indexed symbols: ``slope[h]``,
``bias[h, i, j]``, ``table[i - j + N - 1]``, ``doc[i]`` (integer arrays may index other arrays; s may
not). A mask is a SymPy Boolean of b, h, i, j and the parameters it names; a pair takes part if it is
true.

FlexAttention (Dong et al. 2024, arXiv 2412.05496) has the same two functions in tensor code; here
they are mathematics, so derivatives, intervals and kernels follow from one expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from sympy.logic.boolalg import Boolean

from symad.core.arrays import Array
from symad.errors import ShapeError, TraceError
from symad.fused.users_call import call_by_name

S = sp.Symbol("s", real=True)
B, H, I, J = sp.symbols("b h i j", integer=True, nonnegative=True)  # noqa: E741
LOOPS = (B, H, I, J)


@dataclass(frozen=True)
class Load:
    """One array read ``name[index]``; ``symbol`` stands for its value in expressions."""

    symbol: sp.Symbol
    name: str
    index: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class Parameter:
    """The properties of a parameter that a score function may use: its rank, and if it is an integer."""

    name: str
    ndim: int
    integer: bool


def parameters_of(params: Mapping[str, Any] | None) -> tuple[Parameter, ...]:
    """Rank and kind of each parameter value: numbers and 0-d arrays are scalars.

    Integer and Boolean values are integer parameters: they can index arrays, and have no gradient.
    """
    found = []
    for name, value in (params or {}).items():
        if not name.isidentifier():
            raise TraceError(f"parameter {name!r} is not a valid name; use a Python identifier")
        array = value if hasattr(value, "dtype") else np.asarray(value)
        if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
            raise TraceError(f"parameter {name} has dtype {array.dtype}; give real or integer numbers")
        found.append(Parameter(name, array.ndim, array.dtype.kind in "biu"))
    return tuple(found)


def call_functions(
    score: Callable[..., Array] | None,
    mask: Callable[..., Array] | None,
    parameters: tuple[Parameter, ...],
    causal: bool,
) -> tuple[sp.Expr, sp.Basic]:
    """The expressions that ``score(s, b, h, i, j, **params)`` and ``mask(b, h, i, j, **params)`` return.

    Each function receives the parameters it names (all of them if it takes ``**kwargs``). Without a
    function the score is s, and every pair takes part. ``causal`` adds the condition j ≤ i. A pair where a
    piece of the score, or of one of its terms, is −∞ does not take part.

    Raises:
        TraceError: a function does not return a scalar expression (a Boolean for the mask).
    """
    reserved = {str(symbol) for symbol in (S, *LOOPS)}
    for p in parameters:
        if p.name in reserved:
            raise TraceError(f"a parameter is called {p.name}, like a position; give it another name")
    symbols = {p.name: parameter_symbol(p) for p in parameters}
    loops = {str(symbol): symbol for symbol in LOOPS}
    value = S if score is None else call_by_name("score", score, {"s": S, **loops}, symbols)
    allowed = sp.true if mask is None else call_by_name("mask", mask, loops, symbols)
    value, allowed = _scalar(value, "score"), _boolean(allowed)
    if value.has(sp.S.NegativeInfinity):
        value, finite = _finite(value)
        allowed = sp.And(allowed, finite)
    return value, sp.And(allowed, J <= I) if causal else allowed


def _finite(value: sp.Expr) -> tuple[sp.Expr, sp.Basic]:
    """A score without the pieces −∞ of its terms, and the condition that none of them is chosen."""
    terms, finite = [], sp.true
    for term in sp.Add.make_args(value):
        before, kept = sp.false, []
        for piece, condition in term.args if isinstance(term, sp.Piecewise) else ():
            if piece == sp.S.NegativeInfinity:
                finite = sp.And(finite, sp.Or(before, sp.Not(condition)))
            else:
                kept.append((piece, condition))
            before = sp.Or(before, condition)
        if kept and before == sp.true:
            kept[-1] = (kept[-1][0], sp.true)
        terms.append(sp.Piecewise(*kept) if kept else term)
    return sp.Add(*terms), finite


def parameter_symbol(p: Parameter) -> sp.Expr:
    """The symbol or indexed base for a parameter in expressions."""
    assumption = {"integer": True} if p.integer else {"real": True}
    return (sp.IndexedBase if p.ndim else sp.Symbol)(p.name, **assumption)


def extract_reads(
    value: sp.Expr, allowed: sp.Basic, parameters: tuple[Parameter, ...]
) -> tuple[sp.Expr, sp.Basic, tuple[tuple[str, sp.Symbol], ...], tuple[Load, ...]]:
    """Both expressions with a symbol for every array read, the scalars by name, and the reads.

    Raises:
        TraceError: unknown symbols or arrays.
        ShapeError: a parameter is indexed with the wrong number of indices.
    """
    loads = Loads({p.name: p for p in parameters})
    value, allowed = (loads.extract(e) for e in (value, allowed))
    scalars = tuple((p.name, parameter_symbol(p)) for p in parameters if p.ndim == 0)
    known = {S, *LOOPS, *(s for _, s in scalars), *(r.symbol for r in loads.found.values())}
    refuse_unknown("score function", value, known, parameters)
    refuse_unknown("mask", allowed, known - {S}, parameters)
    return value, allowed, scalars, tuple(loads.found.values())


def _scalar(value: list[sp.Symbol] | sp.Expr, what: str) -> sp.Expr:
    if isinstance(value, (int, float)):
        return sp.Float(value) if isinstance(value, float) else sp.Integer(value)
    if not isinstance(value, sp.Expr) or isinstance(value, (sp.MatrixExpr, sp.IndexedBase)):
        raise TraceError(f"the {what} function returned {value!r}; return a scalar expression")
    return value


def _boolean(value: sp.Basic) -> sp.Basic:
    if isinstance(value, bool):
        return sp.true if value else sp.false
    if not isinstance(value, Boolean) or isinstance(value, sp.Expr):  # Symbols are both
        raise TraceError(
            f"the mask returned {value!r}; return a SymPy Boolean such as j <= i or Eq(a[i], a[j])"
        )
    return value


class Loads:
    """Replaces every ``name[index]`` by a symbol of its value, innermost first."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.parameters = parameters
        self.found: dict[sp.Indexed, Load] = {}

    def extract(self, expr: sp.Basic) -> sp.Basic:
        """The expression with symbols for its reads."""
        while reads := [r for r in expr.atoms(sp.Indexed) if not self._nested(r)]:
            reads.sort(key=sp.default_sort_key)
            expr = expr.xreplace({r: self._symbol(r) for r in reads})
        return expr

    @staticmethod
    def _nested(read: sp.Indexed) -> bool:
        return any(index.has(sp.Indexed) for index in read.indices)

    def _symbol(self, read: sp.Indexed) -> sp.Symbol:
        if read in self.found:
            return self.found[read].symbol
        name = str(read.base.label)
        known = self.parameters.get(name)
        if known is None:
            raise TraceError(
                f"unknown array {name} in {read}; params holds {', '.join(self.parameters) or '-'}"
            )
        if len(read.indices) != known.ndim:
            raise ShapeError(
                f"{read} has {len(read.indices)} indices; parameter {name} has {known.ndim} axes"
            )
        for index in read.indices:
            if not index.is_integer:
                raise TraceError(f"index {index} of {read} is not an integer expression")
            if index.has(S):
                raise TraceError(
                    f"index {index} of {read} contains the scaled product s; give an index of b, h, i, j, "
                    "integer parameters and integer arrays"
                )
        assumption = {"integer": True} if known.integer else {"real": True}
        symbol = sp.Dummy(f"{name}_{len(self.found)}", **assumption)
        self.found[read] = Load(symbol, name, tuple(read.indices))
        return symbol


def refuse_unknown(
    what: str, expr: sp.Basic, known: set[sp.Symbol], parameters: tuple[Parameter, ...]
) -> None:
    """Check that an expression contains known symbols only."""
    unknown = sorted((s for s in expr.free_symbols if s not in known), key=str)
    if not unknown:
        return
    arrays = [p.name for p in parameters if p.ndim and p.name == str(unknown[0])]
    hint = f"{arrays[0]} is an array: index it" if arrays else "pass it in params"
    raise TraceError(
        f"the {what} uses {unknown[0]}, which is not an argument of it; {hint} "
        f"(known: {', '.join(sorted(str(k) for k in known))})"
    )
