"""Pair functions f(x_i, y_j, θ) of two points of R^D, split into sums over components.

Most kernels depend on their points only through sums over components, such as |x − y|², ⟨x, y⟩ or
Σ_k |x_k − y_k| / ℓ_k. `trace_pair` finds them: f = F(σ_1, ..., σ_m, θ) with
σ_r = Σ_k g_r(x_k, y_k, θ_k). Then no expression grows with D, derivatives are
∂f/∂x_k = Σ_r ∂F/∂σ_r ∂g_r/∂x(x_k, y_k), and the sums are tiles of a matrix-like product. Components
outside of such sums remain as they are, at a cost that grows with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import sympy as sp

from symad.errors import ShapeError, TraceError
from symad.fused.users_call import call_by_name
from symad.numeric.pairs.stable_sympy import (
    children,
    derivative,
    exact_integers,
    rebuild,
    topological,
)

X, Y = sp.Dummy("x", real=True), sp.Dummy("y", real=True)


@dataclass(frozen=True)
class PairParameter:
    """A parameter: a number (``size`` None) or a vector of ``size`` entries.

    ``symbols`` are its entries in expressions; ``component`` is the symbol of entry k in the term k of a sum
    over components.
    """

    name: str
    size: int | None
    symbols: tuple[sp.Symbol, ...]
    component: sp.Symbol


@dataclass(frozen=True)
class ComponentSum:
    """σ = Σ_k term(x_k, y_k, θ_k), where ``term`` depends on `X`, `Y`, parameters and their components."""

    symbol: sp.Symbol
    term: sp.Expr


@dataclass(frozen=True)
class PairFunction:
    """f(x, y, θ) = outer(σ, x, y, θ).

    Attributes:
        dimension: D.
        outer: the expression, in the symbols of the sums, of parameters and of single components.
        sums: the sums over components.
        x: the symbols of the components x_1, ..., x_D.
        y: the symbols of the components of y.
        parameters: the parameters, in the given order.
    """

    dimension: int
    outer: sp.Expr
    sums: tuple[ComponentSum, ...]
    x: tuple[sp.Symbol, ...]
    y: tuple[sp.Symbol, ...]
    parameters: tuple[PairParameter, ...]

    @cached_property
    def loose(self) -> tuple[int, ...]:
        """The components k that occur outside of every sum, as x_k or y_k."""
        free = self.outer.free_symbols
        return tuple(k for k in range(self.dimension) if {self.x[k], self.y[k]} & free)

    @cached_property
    def entries(self) -> tuple[sp.Symbol, ...]:
        """Every parameter entry, in the order of the packed parameter vector."""
        return tuple(s for p in self.parameters for s in p.symbols)

    def outer_partial(self, symbol: sp.Symbol) -> sp.Expr:
        """∂F/∂symbol for a sum, a single component or a parameter entry."""
        return derivative(self.outer, symbol)

    def term_partial(self, r: int, symbol: sp.Symbol) -> sp.Expr:
        """∂g_r/∂symbol for `X`, `Y`, a parameter entry or a parameter's component."""
        return derivative(self.sums[r].term, symbol)


def trace_pair(
    f: Callable[..., object] | sp.Basic,
    dimension: int,
    sizes: Mapping[str, int | None] | None = None,
) -> PairFunction:
    """Trace f(x, y, **params) for points of R^D.

    Args:
        f: a function, called with x and y as D×1 SymPy matrices of real symbols, and with each
            parameter as a real symbol or a column of them; or a SymPy expression in which x and y
            are MatrixSymbols of shape (D, 1) or IndexedBases of these names.
        dimension: D.
        sizes: length of each parameter vector by name; None for a number.

    Raises:
        TraceError: f is not scalar, or uses symbols that are neither components nor parameters.
        ShapeError: a point has another dimension.
    """
    return _trace_pair(expression_of(f, dimension, sizes), dimension, tuple((sizes or {}).items()))


def expression_of(
    f: Callable[..., object] | sp.Basic, dimension: int, sizes: Mapping[str, int | None] | None = None
) -> sp.Expr:
    """f as an expression in reads x[k] and y[k], the parameters, and the parameters' entries by name."""
    if isinstance(f, sp.MatrixBase):
        return sp.ImmutableMatrix(f)
    return f if isinstance(f, sp.Basic) else _from_function(f, dimension, sizes or {})


@lru_cache(maxsize=256)
def _trace_pair(f: sp.Expr, dimension: int, sizes: tuple[tuple[str, int | None], ...]) -> PairFunction:
    """The traced pair function of an expression; cached."""
    x = tuple(sp.Dummy(f"x_{k}", real=True) for k in range(dimension))
    y = tuple(sp.Dummy(f"y_{k}", real=True) for k in range(dimension))
    parameters = tuple(_parameter(n, size) for n, size in sizes)
    value = f if isinstance(f, (int, float)) else _from_expression(f, x, y, parameters)
    if isinstance(value, sp.MatrixBase) and value.shape == (1, 1):
        value = value[0, 0]
    if isinstance(value, (int, float)):
        value = sp.Float(value)
    if not isinstance(value, sp.Expr) or isinstance(value, sp.MatrixExpr):
        raise TraceError(f"the pair function returned {value!r}; return a scalar expression")
    known = {*x, *y, *(s for p in parameters for s in p.symbols)}
    unknown = sorted(value.free_symbols - known, key=str)
    if unknown:
        names = ", ".join(p.name for p in parameters) or "none"
        raise TraceError(
            f"the pair function uses {unknown[0]}, which is not x, y or a parameter; "
            f"pass it in params (parameters given: {names})"
        )
    outer, sums = _Components(x, y, parameters).split(exact_integers(value))
    return PairFunction(dimension, outer, sums, x, y, parameters)


def _parameter(name: str, size: int | None) -> PairParameter:
    if not name.isidentifier():
        raise TraceError(f"parameter {name!r} is not a valid name; use a Python identifier")
    names = [name] if size is None else [f"{name}_{k}" for k in range(size)]
    symbols = tuple(sp.Dummy(n, real=True) for n in names)
    return PairParameter(name, size, symbols, sp.Dummy(name, real=True))


def _from_function(f: Callable[..., object], dimension: int, sizes: Mapping[str, int | None]) -> sp.Expr:
    """The result of a function, called with reads of indexed symbols as points and parameters."""
    reserved = [name for name in sizes if name in ("x", "y")]
    if reserved:
        raise TraceError(f"a parameter is called {reserved[0]}, like the points; give it another name")
    given = {
        name: sp.Symbol(name, real=True) if size is None else _column(name, size)
        for name, size in sizes.items()
    }
    points = {name: _column(name, dimension) for name in "xy"}
    value = call_by_name("f", f, points, given, every=True)
    return sp.ImmutableMatrix(value) if isinstance(value, sp.MatrixBase) else value


def _column(name: str, size: int) -> sp.MatrixExpr:
    base = sp.IndexedBase(name, real=True)
    return sp.ImmutableMatrix([base[k] for k in range(size)])


def _from_expression(
    f: sp.Basic,
    x: tuple[sp.Symbol, ...],
    y: tuple[sp.Symbol, ...],
    parameters: tuple[PairParameter, ...],
) -> sp.Expr:
    """A SymPy expression with x, y and the parameters replaced by their components."""
    entries = {"x": x, "y": y} | {p.name: p.symbols for p in parameters}
    dimension = len(x)
    for symbol in sorted(f.atoms(sp.MatrixSymbol), key=str):
        rows, columns = symbol.shape
        if symbol.name in ("x", "y") and rows.is_Symbol:
            f = f.subs(rows, dimension)
            rows = dimension
        if symbol.name in ("x", "y") and (rows, columns) != (dimension, 1):
            raise ShapeError(
                f"{symbol.name} is a MatrixSymbol of shape {symbol.shape}; "
                f"the points need shape ({dimension}, 1)"
            )
    f = f.as_explicit() if isinstance(f, sp.MatrixExpr) else f.doit()

    def entry(element: sp.Expr) -> sp.Symbol:
        name = str(element.parent if hasattr(element, "parent") else element.base.label)
        position = element.args[1] if hasattr(element, "parent") else element.indices[0]
        if name not in entries or not position.is_Integer or position >= len(entries[name]):
            raise TraceError(
                f"{element} is not an entry of x, y or a parameter vector; "
                f"known: {', '.join(f'{n} of {len(e)}' for n, e in entries.items())}"
            )
        return entries[name][int(position)]

    kinds = (sp.Indexed, sp.matrices.expressions.matexpr.MatrixElement)
    f = f.replace(lambda e: isinstance(e, kinds), entry)
    scalars = {p.name: p.symbols[0] for p in parameters if p.size is None}
    return f.xreplace({s: scalars[s.name] for s in f.free_symbols if s.name in scalars})


class _Components:
    """Finds the sums over components of one expression."""

    def __init__(
        self,
        x: tuple[sp.Symbol, ...],
        y: tuple[sp.Symbol, ...],
        parameters: tuple[PairParameter, ...],
    ) -> None:
        self.dimension = len(x)
        self.position = {s: k for k, s in enumerate(x)} | {s: k for k, s in enumerate(y)}
        self.vectors = [p for p in parameters if p.size == self.dimension]
        self.local = [{x[k]: X, y[k]: Y} for k in range(self.dimension)]
        self.inside = [{p.symbols[k]: p.component for p in self.vectors} for k in range(self.dimension)]
        self.components = {X, Y, *(p.component for p in self.vectors)}
        self.found: dict[sp.Expr, ComponentSum] = {}

    def split(self, expr: sp.Expr) -> tuple[sp.Expr, tuple[ComponentSum, ...]]:
        """``expr`` with every complete sum over components replaced by one symbol, and these sums."""
        rewritten: dict[sp.Basic, sp.Basic] = {}
        for part in topological([expr]):
            old = children(part)
            arguments = [rewritten[a] for a in old]
            new = part if arguments == list(old) else rebuild(part, arguments)
            rewritten[part] = self._collect(new) if new.is_Add and self.dimension > 1 else new
        return rewritten[expr], tuple(self.found.values())

    def _collect(self, total: sp.Add) -> sp.Expr:
        terms = list(total.args)
        for with_vectors in (True, False) if self.vectors else (False,):
            groups: dict[sp.Expr, dict[int, sp.Expr]] = {}
            for term in terms:
                where = {self.position[s] for s in term.free_symbols if s in self.position}
                if len(where) == 1:
                    (k,) = where
                    names = self.local[k] | (self.inside[k] if with_vectors else {})
                    groups.setdefault(term.xreplace(names), {})[k] = term
            for template, members in groups.items():
                if len(members) == self.dimension:
                    used = set(members.values())
                    terms = [t for t in terms if t not in used] + [self._sum(template)]
        return sp.Add(*terms)

    def _sum(self, template: sp.Expr) -> sp.Expr:
        """c σ for the sum of ``template`` = c g, with c free of components."""
        factor, term = template.as_independent(*self.components, as_Add=False)
        if term not in self.found:
            symbol = sp.Dummy(f"sigma_{len(self.found)}", real=True)
            self.found[term] = ComponentSum(symbol, term)
        return factor * self.found[term].symbol
