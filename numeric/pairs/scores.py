"""Traced score functions and masks of attention, with their derivatives and reductions.

`symad.fused.score_functions` defines what a score function is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp

from symad.fused.score_functions import (
    LOOPS,
    B,
    H,
    I,
    J,
    Load,
    Parameter,
    S,
    call_functions,
    extract_reads,
    parameters_of,
)
from symad.numeric.pairs.stable_sympy import derivative, exact_integers

__all__ = [
    "LOOPS", "B", "H", "I", "J", "Load", "Parameter", "S", "Score", "SummedOver", "parameters_of",
    "score_of", "trace_score",
]  # fmt: skip


class SummedOver(Enum):
    """The indices over which the cotangents of one parameter read are summed before they are stored.

    The loop symbols in the read's index determine it, such that no two threads ever add to the same place:
    the gradient then needs no atomics, and has the same bits in every run.
    """

    ALL = "sum over i and j: the index holds neither"
    ROW = "sum over j: the index holds i"
    COLUMN = "sum over i: the index holds j"
    DIAGONAL = "sum along i - j: the index is a function of i - j"
    PAIR = "no sum: the index is a function of i and j"


@dataclass(frozen=True)
class Score:
    """A traced score function and mask.

    Attributes:
        value: t = f(s, b, h, i, j, parameters, loads).
        mask: the SymPy Boolean that is true for visible pairs.
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
        """The loop symbols b, h, i, j that ``expr`` depends on, also through array reads."""
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
        """The loads that ``exprs`` depend on, including those that only index other loads, in order."""
        needed: set[sp.Symbol] = set()
        todo = list(exprs)
        by_symbol = {load.symbol: load for load in self.loads}
        while todo:
            for symbol in todo.pop().free_symbols & by_symbol.keys():
                if symbol not in needed:
                    needed.add(symbol)
                    todo.extend(by_symbol[symbol].index)
        return tuple(load for load in self.loads if load.symbol in needed)

    def reduction(self, symbol: sp.Symbol) -> SummedOver:
        """How the cotangents of a scalar parameter or an array read are summed."""
        index = next((load.index for load in self.loads if load.symbol is symbol), ())
        loops = self.loops(sp.Tuple(*index))
        if {I, J} <= loops:
            return SummedOver.DIAGONAL if self._along_diagonals(index) else SummedOver.PAIR
        if I in loops:
            return SummedOver.ROW
        return SummedOver.COLUMN if J in loops else SummedOver.ALL

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


def trace_score(
    score: Callable[..., Any] | None = None,
    mask: Callable[..., Any] | None = None,
    parameters: tuple[Parameter, ...] = (),
    causal: bool = False,
) -> Score:
    """Call ``score(s, b, h, i, j, **params)`` and ``mask(b, h, i, j, **params)`` with symbols.

    Each function receives the parameters it names (all of them if it takes ``**kwargs``). Results about a
    score are cached by its expressions, never by the functions, whose closures may change.
    ``causal`` adds the condition j ≤ i to the mask.

    Raises:
        TraceError: a function does not return a scalar expression (a Boolean for the mask), or uses
            symbols other than its arguments.
        ShapeError: a parameter is indexed with the wrong number of indices.
    """
    return score_of(*call_functions(score, mask, parameters, causal), parameters)


@lru_cache(maxsize=256)
def score_of(value: sp.Expr, allowed: sp.Basic, parameters: tuple[Parameter, ...]) -> Score:
    """The score of expressions such as ``slope[h]*s``, which read parameters."""
    exact = (exact_integers(value), exact_integers(allowed))
    value, allowed, scalars, loads = extract_reads(*exact, parameters)
    return Score(value, allowed, parameters, scalars, loads)
