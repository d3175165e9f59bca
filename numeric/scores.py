"""Score functions and masks of attention, as SymPy mathematics with their derivatives.

A score function is called once with symbols: the scaled score s = scale ⟨q_i, k_j⟩, the integers
b (batch), h (query head), i (query position), j (key position), and the learned parameters by name.
Scalar parameters arrive as real symbols, arrays as indexed symbols: ``slope[h]``,
``bias[h, i, j]``, ``table[i - j + N - 1]``, ``doc[i]`` (integer arrays may index other arrays). A
mask is a SymPy Boolean of b, h, i, j and the parameters it names; a pair takes part where it is
true.

FlexAttention (Dong et al. 2024, arXiv 2412.05496) has the same two functions in tensor code; here
they are mathematics, so derivatives, intervals and kernels follow from one expression.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from sympy.logic.boolalg import Boolean

from symad.errors import ShapeError, TraceError
from symad.numeric.pointwise import derivative, exact_integers

S = sp.Symbol("s", real=True)
B, H, I, J = sp.symbols("b h i j", integer=True, nonnegative=True)  # noqa: E741
LOOPS = (B, H, I, J)


class Reduction(Enum):
    """Over what the cotangents of one parameter read are summed, before they reach the parameter.

    Chosen from the loop symbols in the read's index, so that no two threads ever add to the same
    place: the gradient needs no atomics and is the same bits from run to run.
    """

    ALL = "sum over i and j: the index holds neither"
    ROW = "sum over j: the index holds i"
    COLUMN = "sum over i: the index holds j"
    DIAGONAL = "sum along i - j: the index is a function of i - j"
    PAIR = "no sum: the index is a function of i and j"


@dataclass(frozen=True)
class Load:
    """One array read ``name[index]``; ``symbol`` stands for its value in expressions."""

    symbol: sp.Symbol
    name: str
    index: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class Parameter:
    """What a score function may know about a parameter: its rank, and whether it is an integer."""

    name: str
    ndim: int
    integer: bool


@dataclass(frozen=True)
class Score:
    """A traced score function and mask.

    Attributes:
        value: t = f(s, b, h, i, j, parameters, loads).
        mask: the SymPy Boolean under which a pair takes part.
        parameters: every parameter given, in the order given.
        scalars: the symbol of each scalar parameter, by name.
        loads: array reads, in an order in which indices only use earlier reads.
    """

    value: sp.Expr
    mask: sp.Basic
    parameters: tuple[Parameter, ...]
    scalars: tuple[tuple[str, sp.Symbol], ...]
    loads: tuple[Load, ...]

    @cached_property
    def slope(self) -> sp.Expr:
        """∂t/∂s."""
        return derivative(self.value, S)

    @cached_property
    def curvature(self) -> sp.Expr:
        """∂²t/∂s²."""
        return derivative(self.slope, S)

    @cached_property
    def differentiable(self) -> tuple[sp.Symbol, ...]:
        """The scalar and load symbols of real parameters on which the value depends."""
        real = {p.name for p in self.parameters if not p.integer}
        symbols = [s for n, s in self.scalars if n in real]
        symbols += [load.symbol for load in self.loads if load.name in real]
        used = self.value.free_symbols
        return tuple(s for s in symbols if s in used)

    def partial(self, symbol: sp.Symbol) -> sp.Expr:
        """∂t/∂symbol for a scalar parameter or an array read."""
        return derivative(self.value, symbol)

    def loops(self, expr: sp.Basic) -> frozenset[sp.Symbol]:
        """The loop symbols b, h, i, j that ``expr`` depends on, through array reads too."""
        by_symbol = {load.symbol: load for load in self.loads}
        found: set[sp.Symbol] = set()
        todo = [expr]
        while todo:
            for symbol in todo.pop().free_symbols:
                if symbol in by_symbol:
                    todo.extend(by_symbol[symbol].index)
                elif symbol in LOOPS:
                    found.add(symbol)
        return frozenset(found)

    def reads(self, *exprs: sp.Basic) -> tuple[Load, ...]:
        """The loads that ``exprs`` need, those that only index other loads included, in order."""
        needed: set[sp.Symbol] = set()
        todo = list(exprs)
        by_symbol = {load.symbol: load for load in self.loads}
        while todo:
            for symbol in todo.pop().free_symbols & by_symbol.keys():
                if symbol not in needed:
                    needed.add(symbol)
                    todo.extend(by_symbol[symbol].index)
        return tuple(load for load in self.loads if load.symbol in needed)

    def reduction(self, symbol: sp.Symbol) -> Reduction:
        """How the cotangents of a scalar parameter or an array read are summed."""
        index = next((load.index for load in self.loads if load.symbol is symbol), ())
        loops = self.loops(sp.Tuple(*index))
        if {I, J} <= loops:
            return Reduction.DIAGONAL if self._along_diagonals(index) else Reduction.PAIR
        if I in loops:
            return Reduction.ROW
        return Reduction.COLUMN if J in loops else Reduction.ALL

    def _along_diagonals(self, index: tuple[sp.Expr, ...]) -> bool:
        """Whether ``index`` does not change under (i, j) -> (i + t, j + t)."""
        if self.loops(sp.Tuple(*[r.symbol for r in self.reads(*index)])) & {I, J}:
            return False
        t = sp.Symbol("t", integer=True)
        shifted = [e.subs({I: I + t, J: J + t}, simultaneous=True) for e in index]
        return all(_flat(moved) == _flat(e) for moved, e in zip(shifted, index, strict=True))


def _flat(expr: sp.Expr) -> sp.Expr:
    """``expr`` with every polynomial argument expanded, so that i + t - (j + t) becomes i - j."""
    return sp.expand(expr.replace(lambda e: e.is_Add or e.is_Mul, sp.expand))


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
            raise TraceError(
                f"parameter {name} has dtype {array.dtype}; give real or integer numbers"
            )
        found.append(Parameter(name, array.ndim, array.dtype.kind in "biu"))
    return tuple(found)


@lru_cache(maxsize=256)
def trace_score(
    score: Callable[..., Any] | None = None,
    mask: Callable[..., Any] | None = None,
    parameters: tuple[Parameter, ...] = (),
    causal: bool = False,
) -> Score:
    """Call ``score(s, b, h, i, j, **params)`` and ``mask(b, h, i, j, **params)`` with symbols.

    Each function object is called once, and its trace kept. It receives the parameters it names
    (all of them if it takes ``**kwargs``).
    ``causal`` adds the condition j ≤ i to the mask.

    Raises:
        TraceError: a function does not return a scalar expression (a Boolean for the mask), or uses
            symbols other than its arguments.
        ShapeError: a parameter is indexed with the wrong number of indices.
    """
    symbols: dict[str, Any] = {}
    for p in parameters:
        assumption = {"integer": True} if p.integer else {"real": True}
        made = sp.IndexedBase if p.ndim else sp.Symbol
        symbols[p.name] = made(p.name, **assumption)
    value = S if score is None else _call(score, (S, B, H, I, J), symbols)
    allowed: sp.Basic = sp.true if mask is None else _call(mask, LOOPS, symbols)
    value, allowed = _scalar(value, "score"), _boolean(allowed)
    if causal:
        allowed = sp.And(allowed, J <= I)
    loads = _Loads({p.name: p for p in parameters})
    value, allowed = (loads.extract(exact_integers(e)) for e in (value, allowed))
    scalars = tuple((p.name, symbols[p.name]) for p in parameters if p.ndim == 0)
    known = {S, *LOOPS, *(s for _, s in scalars), *(r.symbol for r in loads.found.values())}
    _refuse_unknown("score function", value, known, parameters)
    _refuse_unknown("mask", allowed, known - {S}, parameters)
    return Score(value, allowed, parameters, scalars, tuple(loads.found.values()))


def _call(function: Callable[..., Any], loops: tuple[Any, ...], symbols: Mapping[str, Any]) -> Any:
    if not callable(function):
        raise TraceError(
            f"score and mask are functions of (s, b, h, i, j) and (b, h, i, j), not {function!r}"
        )
    accepted = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
        return function(*loops, **symbols)
    missing = [n for n in list(accepted)[len(loops) :] if n not in symbols]
    missing = [n for n in missing if accepted[n].default is inspect.Parameter.empty]
    if missing:
        raise TraceError(
            f"{function} asks for parameter {missing[0]}; params holds "
            f"{', '.join(symbols) or 'nothing'}"
        )
    return function(*loops, **{n: s for n, s in symbols.items() if n in accepted})


def _scalar(value: Any, what: str) -> sp.Expr:
    if isinstance(value, (int, float)):
        return sp.Float(value) if isinstance(value, float) else sp.Integer(value)
    if not isinstance(value, sp.Expr) or isinstance(value, (sp.MatrixExpr, sp.IndexedBase)):
        raise TraceError(f"the {what} function returned {value!r}; return a scalar expression")
    return value


def _boolean(value: Any) -> sp.Basic:
    if isinstance(value, bool):
        return sp.true if value else sp.false
    if not isinstance(value, Boolean) or isinstance(value, sp.Expr):  # Symbols are both
        raise TraceError(
            f"the mask returned {value!r}; return a SymPy Boolean such as j <= i or Eq(a[i], a[j])"
        )
    return value


class _Loads:
    """Replaces every ``name[index]`` by a symbol of its value, innermost first."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.parameters = parameters
        self.found: dict[sp.Indexed, Load] = {}

    def extract(self, expr: sp.Basic) -> sp.Basic:
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
        assumption = {"integer": True} if known.integer else {"real": True}
        symbol = sp.Dummy(f"{name}_{len(self.found)}", **assumption)
        self.found[read] = Load(symbol, name, tuple(read.indices))
        return symbol


def _refuse_unknown(
    what: str, expr: sp.Basic, known: set[Any], parameters: tuple[Parameter, ...]
) -> None:
    unknown = sorted((s for s in expr.free_symbols if s not in known), key=str)
    if not unknown:
        return
    arrays = [p.name for p in parameters if p.ndim and p.name == str(unknown[0])]
    hint = f"{arrays[0]} is an array: index it" if arrays else "pass it in params"
    raise TraceError(
        f"the {what} uses {unknown[0]}, which is not an argument of it; {hint} "
        f"(known: {', '.join(sorted(str(k) for k in known))})"
    )
