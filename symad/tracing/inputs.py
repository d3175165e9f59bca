"""The symbols of SymPy expressions that are inputs, and the shapes that their indices imply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache, singledispatch
from typing import Any

import sympy
from sympy.codegen.ast import none
from sympy.codegen.numpy_nodes import amax, amin
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.dims import Shape, as_shape
from symad.errors import TraceError
from symad.tracing.index_ranges import IndexRange, larger, ranges_of, reach
from symad.tracing.input_symbols import InferredBase, check_real, declared_shape, is_function_input

Ranges = tuple[IndexRange, ...]
Child = tuple[Any, Ranges, bool]


class FoundInputs:
    """The input symbols of some expressions, and the extents of the indices of bases without shape."""

    def __init__(self, arguments: Iterable[sympy.Basic] = ()) -> None:
        """An empty collection. ``arguments``: symbols that get a value in each call."""
        self.arguments = frozenset(arguments)
        self.ranks: dict[sympy.Basic, int] = {}
        """Symbols without a shape in an extreme (amin, amax), and the number of axes that it requires."""
        self.symbols: dict[sympy.Symbol, None] = {}
        self.uses: dict[sympy.Basic, list[tuple[sympy.Basic, ...]]] = {}
        self.free_indices: dict[sympy.Basic, sympy.Basic] = {}
        self.bound: set[sympy.Expr] = set()

    def shape_of(self, symbol: sympy.Symbol) -> Shape:
        """The shape that a symbol declares, or the shape that its indices imply.

        Raises:
            TraceError: the indices do not determine the shape.
        """
        declared = declared_shape(symbol)
        if declared is not None and symbol not in self.ranks:
            return declared
        uses = self.uses.get(symbol, [])
        if uses and all(len(use) == len(uses[0]) for use in uses):
            extents = [_joint_extent([use[axis] for use in uses]) for axis in range(len(uses[0]))]
            if FREE in extents:
                self.check_indices(())
            if None not in extents and FREE not in extents:
                lengths = (_given_length(symbol, k) if e is GIVEN else e for k, e in enumerate(extents))
                return as_shape(tuple(lengths))
        if not uses and symbol in self.ranks:
            return as_shape(tuple(_given_length(symbol, k) for k in range(self.ranks[symbol])))
        raise TraceError(
            f"the shape of {symbol} does not follow from its indices; declare it: "
            f"IndexedBase({str(symbol)!r}, shape=...)"
        )

    def check_indices(self, dims: Iterable[sympy.Symbol]) -> None:
        """Refuse indices that no sum binds.

        Raises:
            TraceError: the message names the index and the element, and says how to bind it.
        """
        known = set(dims)
        for index, element in self.free_indices.items():
            if index not in known:
                raise TraceError(
                    f"the index {index} of {element} is free; sum over it with Sum(..., ({index}, 0, "
                    "n - 1)), or write a "
                    "Python function of arrays"
                )


@lru_cache(maxsize=256)
def _given_length(base: sympy.Expr, axis: int) -> sympy.Basic:
    """The length of an axis whose indices depend on data: the length of the given array."""
    return sympy.Dummy(f"len_{base}_{axis}", integer=True, positive=True)


FREE = "free"
"""The extent for an index with unbound symbols: it follows from the other extents."""


GIVEN = "given"
"""The extent for indices that depend on data or arguments: the length of the array in a call."""


def _joint_extent(extents: Sequence[sympy.Expr]) -> sympy.Expr | str | None:
    """The maximum of some extents; None if they cannot be compared."""
    if any(extent is GIVEN for extent in extents):
        return GIVEN
    joint: Any = FREE
    for extent in extents:
        if joint is FREE or extent is None:
            joint = extent
        elif joint is not None and extent is not FREE:
            joint = larger(joint, extent)
    return joint


def find_inputs(parts: Sequence[sympy.Basic], arguments: Iterable[sympy.Basic] = ()) -> FoundInputs:
    """The inputs of some expressions; each distinct object is visited once in each range of indices.

    Bound indices of sums and variables of Lambdas are not inputs; symbols inside declared shapes are
    dimensions, and are collected as such.

    Raises:
        TraceError: an index is bound twice, or bound in one place and free in another.
    """
    found = FoundInputs(arguments)
    bound: dict[sympy.Expr, sympy.Expr] = {}
    seen: set[tuple[int, Ranges]] = set()
    children_of = cache(children.dispatch)
    stack: list[Child] = [(part, (), False) for part in reversed(parts)]
    while stack:
        current, ranges, guarded = stack.pop()
        key = (id(current), ranges)
        if key in seen or not isinstance(current, (sympy.Basic, sympy.NDimArray)):
            continue
        seen.add(key)
        if isinstance(current, sympy.Symbol):
            if not any(current == r.index for r in ranges):
                found.symbols[check_real(current)] = None
            continue
        if isinstance(current, (sympy.Sum, sympy.Product)):
            bound.update((limit[0], current) for limit in current.limits)
        below = children_of(current.__class__)(current, ranges, guarded, found)
        stack.extend(reversed(list(below)))
    found.bound = set(bound)
    for index, expression in bound.items():
        if index in found.symbols or index in found.free_indices:
            raise TraceError(
                f"{index} is the index of {expression} and is also free in the expression; rename one of them"
            )
    return found


# ---- subexpressions -----------------------------------------------------------------------------


@singledispatch
def children(expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs) -> Iterable[Child]:
    """The subexpressions that may contain inputs, each with the ranges around it.

    ``guarded`` is true if the expression is in a branch of a Piecewise: indices there may
    exceed the array if the branch is not taken.
    """
    return [(arg, ranges, guarded) for arg in expression.args]


@children.register(AppliedUndef)
@children.register(sympy.Derivative)
def function_children(
    expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """An input such as q(t); its argument is not an input."""
    if not is_function_input(expression):
        inside = expression.args if isinstance(expression, AppliedUndef) else expression.args[:1]
        return [(arg, ranges, guarded) for arg in inside]
    for r in ranges:
        if expression.has(r.index):
            raise TraceError(
                f"{expression} depends on the index {r.index}; an undefined function is one number, so use "
                "an IndexedBase, or register it with symad.register_function"
            )
    found.symbols[expression] = None
    return ()


@children.register(sympy.Limit)
def limit_children(
    expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """Its expression; the symbol of its direction is not an input."""
    return [(expression.args[0], ranges, guarded)]


@children.register(sympy.MatrixSymbol)
@children.register(ArraySymbol)
@children.register(sympy.IndexedBase)
def symbol_children(
    expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """An input; its dimensions are not inputs."""
    found.symbols[expression] = None
    return ()


@children.register(InferredBase)
def inferred_children(
    expression: InferredBase, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The base in its declared form, with the shape from an earlier trace."""
    found.symbols[expression.declared] = None
    found.uses.setdefault(expression.declared, []).append(expression.shape)
    return ()


@children.register(sympy.Idx)
def idx_children(
    expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """An index, bound or free; its label and range are not inputs."""
    if not any(expression == r.index for r in ranges):
        found.free_indices.setdefault(expression, expression)
    return ()


@children.register(sympy.Indexed)
def indexed_children(
    expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The base and the symbols of its indices."""
    base = expression.base
    if isinstance(base, sympy.IndexedBase) and base.shape is None and not guarded:
        ends = [_end(index, ranges, found.arguments) for index in expression.indices]
        found.uses.setdefault(base, []).append(tuple(ends))
    result: list[Child] = [(base, ranges, guarded)]
    for index in expression.indices:
        plain = index.is_Symbol and not any(index == r.index for r in ranges)
        if plain:
            found.free_indices.setdefault(index, expression)
        else:
            result.append((index, ranges, guarded))
            _note_free(index, ranges, expression, found)
    return result


def _note_free(index: sympy.Expr, ranges: Ranges, element: sympy.Basic, found: FoundInputs) -> None:
    """Record the symbols of an affine index that no enclosing sum binds."""
    if index.has(sympy.Indexed):
        return
    names = {r.index for r in ranges}
    for symbol in sorted(index.free_symbols - names, key=str):
        if symbol.is_Symbol and not any(symbol in r.index.free_symbols for r in ranges):
            found.free_indices.setdefault(symbol, element)


def _end(index: sympy.Expr, ranges: Ranges, arguments: Iterable[sympy.Basic]) -> sympy.Expr | str | None:
    """The maximum of an index plus one; `GIVEN` if data or arguments determine it."""
    if index.has(sympy.Indexed, *arguments):
        return GIVEN
    known = {
        s for r in ranges for part in (r.index, r.low, r.high) if part is not None for s in part.free_symbols
    }
    if index.free_symbols - known:
        return FREE
    highest = reach(index, ranges, True)
    if highest is None or highest.has(*arguments):
        return GIVEN if arguments else None
    return sympy.expand(highest + 1)


@children.register(ExprWithLimits)
def limits_children(
    expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The body within its ranges, and each bound within the ranges around it."""
    if not isinstance(expression, (sympy.Sum, sympy.Product)):
        return []  # refused later, by name
    inner = ranges_of(expression, ranges)
    result: list[Child] = []
    for k, r in enumerate(inner):
        result += [(bound, ranges + inner[:k], guarded) for bound in (r.low, r.high) if bound is not None]
    return [*result, (expression.function, ranges + inner, guarded)]


@children.register(amin)
@children.register(amax)
def extreme_children(
    expression: sympy.Basic, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The array; a symbol without a shape has the axes that its extremes require, at least one."""
    array, axis = expression.args[0], expression.axis
    if isinstance(array, sympy.Symbol) or (isinstance(array, sympy.IndexedBase) and array.shape is None):
        needed = 1 if axis == none else max(int(axis) + 1, -int(axis))
        found.ranks[array] = max(needed, found.ranks.get(array, 1))
    return [(array, ranges, guarded)]


@children.register(sympy.Integral)
def integral_children(
    expression: sympy.Integral, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The integrand, in which the variables are bound, and the bounds."""
    inner, result = ranges, list[Child]()
    for variable, *bounds in reversed(expression.limits):
        result += [(bound, inner, guarded) for bound in bounds]
        inner = (*inner, IndexRange(variable))
    return [*result, (expression.function, inner, guarded)]


@children.register(sympy.Lambda)
def lambda_children(
    expression: sympy.Lambda, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The body, in which the variables are bound."""
    return [(expression.expr, ranges + tuple(map(IndexRange, expression.variables)), guarded)]


@children.register(sympy.Subs)
def subs_children(
    expression: sympy.Subs, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The point, and the body without the variables."""
    inner = ranges + tuple(map(IndexRange, expression.variables))
    return [
        (expression.expr, inner, guarded),
        *((value, ranges, guarded) for value in expression.point),
    ]


@children.register(sympy.Piecewise)
def piecewise_children(
    expression: sympy.Piecewise, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """Values are guarded by their conditions."""
    result: list[Child] = []
    for value, condition in expression.args:
        result += [(condition, ranges, guarded), (value, ranges, guarded or bool(ranges))]
    return result


@children.register(sympy.MatrixBase)
def matrix_children(
    expression: sympy.MatrixBase, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The entries."""
    return [(entry, ranges, guarded) for entry in expression.flat()]


@children.register(sympy.NDimArray)
def array_children(
    expression: sympy.NDimArray, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The entries."""
    entries = sympy.flatten(expression) if expression.shape else [expression[()]]
    return [(entry, ranges, guarded) for entry in entries]


@children.register(sympy.Poly)
def poly_children(
    expression: sympy.Poly, ranges: Ranges, guarded: bool, found: FoundInputs
) -> Iterable[Child]:
    """The coefficients; the generators are bound."""
    return [(coefficient, ranges, guarded) for coefficient in expression.coeffs()]
