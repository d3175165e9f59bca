"""Symbolic sizes in generated code: T − 1 as text, n = len(u) from the shape of an argument, and checks.

A size such as (len(v) - 1)//2 follows from an axis of length 2*n + 1. No array may have a negative size, and
no slice may exceed its array.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sympy

from symad.core.contents import holds, inner_graphs, op_classes
from symad.core.dims import Dim, Shape, dim_symbols
from symad.core.graph import Graph, Node
from symad.core.identifiers import brief
from symad.errors import LoweringError
from symad.numeric.modules.module_text import one_line
from symad.numeric.targets.target import Level, Text
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Pad, Slice
from symad.ops.basic.sources import Dimension, Source

# ---- dimensions as text, the same for every target -----------------------------------------------


class NamesOfDims(Protocol):
    """An object that knows the names of dimensions."""

    def dim_name(self, symbol: sympy.Basic) -> str:
        """The name of a dimension."""


@dataclass(frozen=True)
class NamedDimensions:
    """Names of dimensions from a table."""

    names: Mapping[sympy.Symbol, str]

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension."""
        return self.names[symbol]


def dimension(dim: Dim, writer: NamesOfDims) -> Text:
    """A dimension with symbols first, as in T − 1, and with floor division for quotients.

    Raises:
        LoweringError: the expression cannot be written.
    """
    if isinstance(dim, int) or dim.is_Integer:
        return Text(str(int(dim)), Level.SIGN if dim < 0 else Level.ATOM)
    if dim.is_Symbol:
        return Text(writer.dim_name(dim))
    if dim.is_Add:
        return Text(_sum(dim, writer), Level.SUM)
    if dim.is_Mul:
        return _product(dim, writer)
    if dim.is_Pow and dim.exp.is_Integer and dim.exp > 0:
        return Text(f"{dimension(dim.base, writer).inside(Level.ATOM)}**{int(dim.exp)}", Level.POWER)
    if isinstance(dim, (sympy.floor, sympy.ceiling)):
        over, under = sympy.together(dim.args[0]).as_numer_denom()
        sign = -1 if isinstance(dim, sympy.ceiling) else 1  # ⌈a/b⌉ = −⌊−a/b⌋
        inner = dimension(sympy.expand(sign * over), writer).inside(Level.PRODUCT)
        text = Text(f"{inner}//{dimension(under, writer).inside(Level.SIGN)}", Level.PRODUCT)
        return text if sign == 1 else Text(f"-({text})", Level.SIGN)
    if isinstance(dim, (sympy.Max, sympy.Min)):
        return Text(f"{type(dim).__name__.lower()}({', '.join(dimension(a, writer).text for a in dim.args)})")
    raise LoweringError(f"the dimension {dim} has no form in generated code")


def _sum(dim: sympy.Expr, writer: NamesOfDims) -> str:
    """A sum with symbols first and negative terms subtracted."""
    text = ""
    for term in sorted(dim.args, key=lambda t: (t.is_number, t.could_extract_minus_sign(), str(t))):
        negative = term.could_extract_minus_sign()
        part = dimension(-term if negative else term, writer)
        joined = part.inside(Level.PRODUCT)
        text += (f" - {joined}" if negative else f" + {joined}") if text else f"{'-' * negative}{joined}"
    return text


def _product(dim: sympy.Expr, writer: NamesOfDims) -> Text:
    over, under = dim.as_numer_denom()
    if under != 1:
        top = dimension(over, writer).inside(Level.PRODUCT)
        return Text(f"{top}//{dimension(under, writer).inside(Level.SIGN)}", Level.PRODUCT)
    if dim.could_extract_minus_sign():
        return Text(f"-{dimension(-dim, writer).inside(Level.PRODUCT)}", Level.SIGN)
    return Text("*".join(dimension(a, writer).inside(Level.SIGN) for a in dim.args), Level.PRODUCT)


# ---- how symbolic sizes follow from the shapes of the arguments ----------------------------------


@dataclass(frozen=True)
class SizeBinding:
    """A size, with the axis that fixes it: slope · symbol + offset is the length of that axis."""

    symbol: sympy.Symbol
    argument: int
    axis: int
    slope: Dim = 1
    offset: Dim = 0

    @property
    def reads(self) -> set[sympy.Basic]:
        """The sizes that must be known before."""
        parts = (self.slope, self.offset)
        return {s for part in parts if not isinstance(part, int) for s in part.free_symbols}

    def text(self, length: str, printer: Any) -> str:
        """The size, from the text of the length of its axis; ``printer`` names the sizes that it reads."""
        over = (
            f"{length} - {dimension(self.offset, printer).inside(Level.PRODUCT)}" if self.offset else length
        )
        if self.slope == 1:
            return over
        over = f"({over})" if self.offset else over
        if isinstance(self.slope, (int, sympy.Integer)):
            return f"{over}//{int(self.slope)}"
        return f"{over}//max({dimension(self.slope, printer)}, 1)"  # an empty axis fixes no size


def size_bindings(shapes: Sequence[Shape], wanted: Iterable[sympy.Symbol]) -> list[SizeBinding]:
    """The bindings of all symbols in the shapes of the arguments, each after those that it reads.

    An axis of that length is preferred; other symbols follow from linear expressions with one unknown size.

    Raises:
        LoweringError: the shapes do not fix a symbol of ``wanted``.
    """
    places = [(dim, k, axis) for k, shape in enumerate(shapes) for axis, dim in enumerate(shape)]
    made: dict[sympy.Basic, SizeBinding] = {}
    for dim, k, axis in places:
        if isinstance(dim, sympy.Symbol) and dim not in made:
            made[dim] = SizeBinding(dim, k, axis)
    waiting = [(dim, k, axis) for dim, k, axis in places if not isinstance(dim, (int, sympy.Symbol))]
    found = True
    while found:
        found = False
        for dim, k, axis in waiting:
            unknown = dim.free_symbols - made.keys()
            binding = _linear(dim, min(unknown, key=str), k, axis) if len(unknown) == 1 else None
            if binding is not None:
                made[binding.symbol] = binding
                found = True
    for symbol in wanted:
        if symbol not in made:
            raise LoweringError(f"no input fixes the dimension {symbol}")
    return list(made.values())


def _linear(dim: sympy.Expr, symbol: sympy.Symbol, argument: int, axis: int) -> SizeBinding | None:
    """The binding by an expression that is linear in the symbol; None for other expressions."""
    whole = sympy.expand(dim)
    slope = whole.coeff(symbol, 1)
    offset = whole - slope * symbol
    integers = all(number.is_Integer for part in (slope, offset) for number in part.atoms(sympy.Number))
    if not slope or not integers or symbol in offset.free_symbols:
        return None
    return SizeBinding(symbol, argument, axis, slope, offset)


def bound_in_turn(
    bindings: Sequence[SizeBinding], known: set[sympy.Basic], given: Container[int]
) -> list[SizeBinding]:
    """The bindings that can be computed now, of the arguments ``given``; their symbols join ``known``."""
    made = []
    for binding in bindings:
        if binding.symbol not in known and binding.argument in given and binding.reads <= known:
            made.append(binding)
            known.add(binding.symbol)
    return made


def needed_sizes(graph: Graph) -> tuple[sympy.Expr, ...]:
    """The expressions of sizes that must not be negative in a call, where the symbols leave that open.

    They are sizes such as T − 2, and the distances of slices from the ends of their arrays: n − 3 for
    ``x[1:3]`` of n elements, which NumPy would cut silently. A symbol declared positive may be 0 in a call.
    """
    found: dict[Dim, None] = {}
    for shape in {node.shape for node in graph.nodes}:
        found.update(dict.fromkeys(shape))
    for node in graph.nodes if holds(graph, Slice, Pad) else ():
        found.update(dict.fromkeys(_distances(node)))
    open_ones = [sympy.expand(e) for e in found if isinstance(e, sympy.Expr) and _is_open(e)]
    return tuple(_strongest(open_ones))


def symbolic_sizes(graph: Graph) -> list[sympy.Symbol]:
    """The symbols of the sizes of a graph, also in its loops, sorted by name."""
    found: set[sympy.Symbol] = set(graph.dims)
    for shape in {node.shape for node in graph.nodes}:
        found |= dim_symbols(shape)
    # elementwise ops and sources hold no graphs, and are many
    others = {k for k in op_classes(graph) if k is Dimension or not issubclass(k, (ElementwiseOp, Source))}
    for op in {node.op for node in graph.nodes if node.op.__class__ in others}:
        if isinstance(op, Dimension):
            found |= dim_symbols((op.expression,))
        for body in inner_graphs(op):
            found.update(symbolic_sizes(body))
    return sorted(found, key=str)


def numbers_of(graph: Graph, sizes: Mapping[sympy.Symbol | str, int]) -> dict[sympy.Symbol, int]:
    """Numbers for the symbolic sizes of a graph, given by symbol or by name.

    Raises:
        LoweringError: a name is not that of a size.
    """
    if not isinstance(sizes, Mapping):
        raise LoweringError(f"sizes is a dict from the names of sizes to numbers, not {brief(sizes)}")
    by_name = {str(symbol): symbol for symbol in symbolic_sizes(graph)}
    unknown = [one_line(key) for key in sizes if str(key) not in by_name]
    if unknown:
        known = ", ".join(map(one_line, by_name)) or "none"
        raise LoweringError(f"{graph.name} has no size {', '.join(unknown)}; its symbolic sizes: {known}")
    return {by_name[str(key)]: number for key, number in sizes.items()}


def check_sizes_known(graph: Graph) -> None:
    """Refuse a graph that depends on a size which no input has.

    Raises:
        LoweringError: the message names the size.
    """
    free = [symbol for symbol in symbolic_sizes(graph) if symbol not in graph.dims]
    if free:
        names = ", ".join(map(one_line, free))
        raise LoweringError(
            f"{graph.name} depends on the size {names}, which no input has, so that a call cannot determine "
            f"it; give it a number, as in f.at({{{one_line(free[0])}: 4}})"
        )


def _distances(node: Node) -> Iterable[Dim]:
    """The distances of a slice from the beginning and from the end of its array."""
    op = node.op
    if isinstance(op, Slice):
        whole, counts = node.args[0].shape, op.count
    elif isinstance(op, Pad):
        whole, counts = op.shape, node.args[0].shape
    else:
        return
    for length, start, count, step in zip(whole, op.start, counts, op.step, strict=True):
        if count != 0:
            last = start + (count - 1) * step
            yield start if step > 0 else last
            yield length - 1 - (last if step > 0 else start)


def _is_open(size: sympy.Expr) -> bool:
    """Whether a polynomial in the sizes may be negative."""
    if not size.is_polynomial():
        return False
    from_zero = {s: sympy.Dummy(s.name, integer=True, nonnegative=True) for s in size.free_symbols}
    return bool(from_zero) and not sympy.expand(size.subs(from_zero)).is_nonnegative


def _strongest(sizes: Sequence[sympy.Expr]) -> list[sympy.Expr]:
    """The smallest of each set of sizes that differ by a number only."""
    least: dict[sympy.Expr, sympy.Expr] = {}
    for size in sizes:
        rest = size.as_coeff_Add()[1]
        least[rest] = min(least.get(rest, size), size, key=lambda e: e.as_coeff_Add()[0])
    return sorted(least.values(), key=str)


def doubtful(shapes: Iterable[Sequence[Dim]]) -> tuple[sympy.Expr, ...]:
    """The sizes in some shapes that can be negative even if their symbols are positive."""
    sizes = (d for shape in shapes for d in shape if isinstance(d, sympy.Expr) and not d.is_Symbol)
    return tuple(_strongest([sympy.expand(d) for d in dict.fromkeys(sizes) if not d.is_nonnegative]))


def size_checks(sizes: Iterable[sympy.Expr], dim: Callable[[sympy.Expr], str]) -> list[str]:
    """Statements that reject negative sizes; ``dim`` gives the text of a size."""
    lines = []
    for size in sorted(_strongest([*dict.fromkeys(sizes)]), key=str):
        symbols = sorted(dim(s) for s in size.free_symbols)
        given = ", ".join(f"{name} = {{{name}}}" for name in symbols)
        lines += [
            f"if {dim(size)} < 0:",
            f'    raise ValueError(f"arrays are too short: {dim(size)} is negative at {given}")',
        ]
    return lines
