"""The front door: SymPy objects and Python functions in, graphs out."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import sympy

from symad.dims import dim_symbols, format_shape
from symad.errors import TraceError
from symad.graph import DictOf, Graph, Node, Structure, TupleOf
from symad.ops.sources import Input, input_node
from symad.pausing import without_collecting
from symad.tracing import arrays, entries, indexed, matrices, matrix_parts, own, scalars
from symad.tracing.back import to_sympy
from symad.tracing.inputs import as_input_symbol, find_inputs
from symad.tracing.walk import Tracer

__all__ = [
    "arrays", "as_graph", "entries", "indexed", "matrices",
    "matrix_parts", "own", "scalars", "to_sympy", "trace",
]  # fmt: skip


@without_collecting
def trace(f: Any, inputs: Sequence[Any] | None = None) -> Graph:
    """The graph of a SymPy object or a Python function.

    Args:
        f: a SymPy expression, matrix, matrix expression or array; a list, tuple or dict of such;
            a Graph; or a Python function of the inputs.
        inputs: the inputs in calling order. For SymPy ``f`` they may be left out: then all inputs
            that occur stand in SymPy's canonical order. A function needs them: symbols, example
            arrays, or shape tuples.

    Returns:
        The graph. Symbols that occur as dimensions of an input are bound by the arrays given.

    Raises:
        TraceError: something in ``f`` has no real value or no derivative, or inputs are missing.
        ShapeError: shapes do not fit.
    """
    if isinstance(f, Graph):
        return f
    if callable(f) and not isinstance(f, sympy.Basic):
        from symad.tracing.functions import trace_function

        return trace_function(f, inputs)
    return _trace_sympy(f, tuple(inputs) if inputs is not None else (), inputs is not None)


@without_collecting
def as_graph(f: Any, wrt: Any = None) -> Graph:
    """``f`` as a graph; for SymPy ``f`` the entries of ``wrt`` become the first inputs."""
    if isinstance(f, Graph):
        return f
    if callable(f) and not isinstance(f, sympy.Basic):
        name = getattr(f, "__name__", "f")
        parameters = ", ".join(inspect.signature(f).parameters)
        raise TraceError(
            f"the Python function {name}({parameters}) has inputs of unknown shape; trace it first: "
            f"symad.trace({name}, inputs=[...])"
        )
    first = () if wrt is None else tuple(wrt) if isinstance(wrt, (list, tuple)) else (wrt,)
    return _trace_sympy(f, first, False)


def _trace_sympy(f: Any, first: tuple[Any, ...], complete: bool) -> Graph:
    """Trace a SymPy structure; ``first`` are the leading inputs, all of them if ``complete``."""
    structure, parts = _flatten(f)
    leading = tuple(map(as_input_symbol, first))
    found = find_inputs(parts)
    shapes = {s: found.shape_of(s) for s in (*leading, *found.symbols)}
    dims = set().union(*(dim_symbols(shape) for shape in shapes.values()))
    found.check_indices(dims)
    for symbol in leading:
        if symbol in dims:
            raise TraceError(
                f"{symbol} is a dimension: it is bound by the arrays given and is never an input"
            )
    _check_names(leading, found.symbols)
    given = set(leading)
    others = [s for s in found.symbols if s not in dims and s not in given]
    others.sort(key=_input_order)
    if complete and others:
        names = ", ".join(map(str, others))
        raise TraceError(
            f"the expression depends on {names}, missing from inputs={list(map(str, leading))}"
        )
    tracer = Tracer(dims, shapes)
    outputs = tuple(_trace_part(part, tracer) for part in parts)
    nodes = tuple(input_node(s, shapes[s]) for s in dict.fromkeys((*leading, *others)))
    return Graph(nodes, outputs, structure)


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


def _input_order(symbol: Any) -> Any:
    assumptions = sorted(
        getattr(symbol, "_assumptions_orig", getattr(symbol, "assumptions0", {})).items()
    )
    return sympy.default_sort_key(symbol), str(assumptions)


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


def _trace_part(part: Any, tracer: Tracer) -> Node:
    return part if isinstance(part, Node) else tracer.trace(part)


def graph_inputs(graph: Graph) -> tuple[Input, ...]:
    """The input ops of a graph."""
    return tuple(node.op for node in graph.input_nodes)  # type: ignore[misc]
