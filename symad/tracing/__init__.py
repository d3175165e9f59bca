"""The front door: SymPy objects and Python functions in, graphs out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy

from symad.dims import dim_symbols, format_shape
from symad.errors import TraceError
from symad.graph import DictOf, Graph, Node, Structure, TupleOf
from symad.ops.captured import check_closed
from symad.ops.sources import Input, input_node
from symad.pausing import without_collecting
from symad.sessions import SESSION, Session, is_tracing, session
from symad.tracing import arrays, entries, indexed, matrices, matrix_parts, own, rewritten, scalars
from symad.tracing.back import to_sympy
from symad.tracing.inputs import as_input_symbol, find_inputs
from symad.tracing.walk import Tracer
from symad.wrapped import Traced, Wrapped

__all__ = [
    "arrays", "as_graph", "entries", "indexed", "matrices",
    "matrix_parts", "own", "rewritten", "scalars", "to_sympy", "trace",
]  # fmt: skip


@without_collecting
def trace(f: Any, inputs: Sequence[Any] | None = None) -> Graph:
    """The graph of a SymPy object or a Python function.

    Args:
        f: a SymPy expression, matrix, matrix expression or array; a list, tuple or dict of such;
            a Graph; or a Python function of the inputs.
        inputs: the inputs in calling order. For SymPy ``f`` they may be left out: then the inputs that
            occur stand in the natural order of their names (x2 before x10). A function needs them:
            symbols, example arrays, or shape tuples.

    Returns:
        The graph. Symbols that occur as dimensions of an input are bound by the arrays given.

    Raises:
        TraceError: something in ``f`` has no real value or no derivative, or inputs are missing.
        ShapeError: shapes do not fit.
    """
    if isinstance(f, Graph):
        return _closed(f)
    if callable(f) and not isinstance(f, sympy.Basic):
        from symad.tracing.functions import trace_function

        return trace_function(f, inputs)
    return _trace_sympy(f, () if inputs is None else tuple(inputs), (), inputs is not None)


@without_collecting
def as_graph(f: Any, wrt: Any = None) -> Graph:
    """``f`` as a graph; symbols of ``wrt`` that a SymPy ``f`` does not contain become its last inputs."""
    if isinstance(f, Graph):
        return _closed(f)
    if callable(f) and not isinstance(f, sympy.Basic):
        name = getattr(f, "__name__", "f")
        parameters = ", ".join(inspect.signature(f).parameters)
        raise TraceError(
            f"the Python function {name}({parameters}) has inputs of unknown shape; trace it first: "
            f"symad.trace({name}, inputs=[...])"
        )
    wanted = () if wrt is None else tuple(wrt) if isinstance(wrt, (list, tuple, sympy.Tuple)) else (wrt,)
    return _trace_sympy(f, (), wanted, False)


def _closed(graph: Graph) -> Graph:
    """The graph; with values of an enclosing function only while that is being traced."""
    if not is_tracing():
        check_closed(graph, "a use")
    return graph


def _trace_sympy(f: Any, inputs: tuple[Any, ...], wrt: tuple[Any, ...], complete: bool) -> Graph:
    """Trace a SymPy structure; ``inputs`` are all inputs if ``complete``, ``wrt`` some of them."""
    structure, parts = _flatten(f)
    order = tuple(map(as_input_symbol, inputs))
    asked = tuple(map(as_input_symbol, wrt))
    found = find_inputs(parts)
    shapes = {s: found.shape_of(s) for s in (*order, *asked, *found.symbols)}
    dims = set().union(*(dim_symbols(shape) for shape in shapes.values()))
    found.check_indices(dims)
    for symbol in (*order, *asked):
        if symbol in dims:
            raise TraceError(
                f"{symbol} is a dimension: it is bound by the arrays given and is never an input"
            )
    _check_names((*order, *asked), found.symbols)
    present = [s for s in found.symbols if s not in dims and not isinstance(s, Traced)]
    if complete:
        _check_complete(order, present)
    else:
        order = (*sorted(present, key=natural_order), *asked)
    tracer = Tracer(dims, shapes)
    with expression_session(found.symbols):
        outputs = tuple(_trace_part(part, tracer) for part in parts)
    nodes = tuple(input_node(s, shapes[s]) for s in dict.fromkeys(order))
    return Graph(nodes, outputs, structure)


def _check_complete(order: Sequence[Any], present: Iterable[Any]) -> None:
    given = set(order)
    if missing := sorted((s for s in present if s not in given), key=natural_order):
        raise TraceError(
            f"the expression depends on {', '.join(map(str, missing))}, missing from "
            f"inputs={list(map(str, order))}"
        )


def _check_names(leading: Sequence[Any], found: Iterable[Any]) -> None:
    """Refuse a symbol that does not occur where another of its name does: the derivative would be 0.

    Raises:
        TraceError: says in which assumptions or shapes the two differ.
    """
    by_name = {str(symbol): symbol for symbol in found}
    known = set(by_name.values())
    for symbol in leading:
        other = by_name.get(str(symbol), symbol)
        if symbol not in known and other != symbol and other not in leading:
            raise TraceError(
                f"{symbol} ({_told(symbol)}) does not occur in the expression, which has another {other} "
                f"({_told(other)}); make the symbol once and use it everywhere"
            )


def _told(symbol: Any) -> str:
    """What a symbol was declared with."""
    if not isinstance(symbol, sympy.Symbol):
        shape = format_shape(symbol.shape) if symbol.shape else "unknown"
        return f"{type(symbol).__name__} of shape {shape}"
    given = {k: v for k, v in getattr(symbol, "_assumptions_orig", {}).items() if k != "commutative"}
    return ", ".join(f"{k}={v}" for k, v in given.items()) or "without assumptions"


def natural_order(symbol: Any) -> Any:
    """The key of the natural order of names: runs of digits count as numbers, so x2 stands before x10.

    Symbols of one name stand in the order of their assumptions, whatever the hash seed.
    """
    pieces = re.split(r"([0-9]+)", str(symbol))
    name = [(0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in pieces if piece]
    assumptions = getattr(symbol, "_assumptions_orig", getattr(symbol, "assumptions0", {}))
    return name, sorted((str(k), str(v)) for k, v in assumptions.items()), type(symbol).__name__


MOST_NESTED = 100
"""The depth to which lists and dicts may be nested; those that hold themselves end here."""


def _flatten(f: Any, depth: int = 0) -> tuple[Structure, list[Any]]:
    """The structure of lists, tuples and dicts, and its SymPy leaves in order.

    Raises:
        TraceError: nested too deeply, perhaps because a list holds itself.
    """
    if depth > MOST_NESTED:
        raise TraceError(f"lists and dicts are nested more than {MOST_NESTED} deep; does one hold itself?")
    if isinstance(f, dict):
        items = [_flatten(value, depth + 1) for value in f.values()]
        structure: Structure = DictOf(tuple(f.keys()), tuple(s for s, _ in items))
    elif isinstance(f, (list, tuple, sympy.Tuple)):
        items = [_flatten(value, depth + 1) for value in f]
        structure = TupleOf(tuple(s for s, _ in items))
    else:
        return None, [_as_sympy(f)]
    return structure, [leaf for _, leaves in items for leaf in leaves]


def _as_sympy(f: Any) -> Any:
    if isinstance(f, Node):
        return f
    if isinstance(f, Wrapped):
        raise TraceError(
            f"{f!r} is no function; write the function, and trace it at the point: "
            "symad.trace(lambda z: ..., [z])"
        )
    if isinstance(f, sympy.MatrixBase):
        return sympy.ImmutableDenseMatrix(f)
    if isinstance(f, sympy.NDimArray):
        return sympy.ImmutableDenseNDimArray(f)
    if isinstance(f, sympy.Basic):
        return f
    try:
        return sympy.sympify(f, strict=True)
    except sympy.SympifyError:
        raise TraceError(
            f"{f!r} of type {type(f).__name__} cannot be traced; trace takes SymPy objects, numbers, lists, "
            "tuples or dicts of them, and Python functions"
        ) from None


@contextmanager
def expression_session(symbols: Iterable[Any]) -> Iterator[None]:
    """While this lasts, traced values in an expression are constants: its graph is one of its own."""
    around = SESSION.get()
    if any(isinstance(symbol, Traced) for symbol in symbols):
        around = Session("an expression", around.dims, {}, around)
    with session(around):
        yield


def _trace_part(part: Any, tracer: Tracer) -> Node:
    return part if isinstance(part, Node) else tracer.trace(part)


def graph_inputs(graph: Graph) -> tuple[Input, ...]:
    """The input ops of a graph."""
    return tuple(node.op for node in graph.input_nodes)  # type: ignore[misc]
