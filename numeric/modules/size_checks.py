"""Checks of symbolic sizes: no array may have a negative size, and no slice may exceed its array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import sympy

from symad.core.contents import holds, inner_graphs, op_classes
from symad.core.dims import Dim, dim_symbols
from symad.core.graph import Graph, Node
from symad.core.identifiers import brief
from symad.errors import LoweringError
from symad.numeric.modules.module_text import one_line
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Pad, Slice
from symad.ops.basic.sources import Dimension, Source


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
