"""The entry point: SymPy objects and Python functions in, graphs out.

Start with `trace` in this file. SymPy expressions go through `walk`, with rules in `from_sympy`; functions
run once on traced values (`run_on_proxies`, `proxies`, their `elements`), and NumPy's functions of these are
in `from_numpy`. The way back to SymPy is `into_sympy`. `wrt` selects the inputs of a derivative.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from symad.core.arguments import Argument
from symad.core.dims import dim_symbols, format_shape
from symad.core.expressions import as_sympy
from symad.core.graph import DictOf, Graph, Node, Structure, TupleOf
from symad.core.identifiers import brief, printed, short_name
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.core.structures import VectorOf
from symad.errors import TraceError
from symad.higher_order.captured import check_closed
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import input_node
from symad.tracing import (
    from_numpy,  # noqa: F401  (registers NumPy's functions on traced values)
    implemented,  # noqa: F401  (registers undefined functions)
)
from symad.tracing.from_sympy import (
    arrays,
    index_sums,
    inside_functions,  # noqa: F401  (registers expressions inside of functions)
    matrices,
    matrix_parts,
    own_matrices,
    partials,  # noqa: F401  (registers the derivatives of functions)
    rewritten_functions,
    scalars,
)
from symad.tracing.grouping import entries_of, group, is_container
from symad.tracing.input_symbols import as_input_symbol, declared_shape, is_formula
from symad.tracing.inputs import find_inputs
from symad.tracing.into_sympy.nodes import to_sympy
from symad.tracing.proxies.sessions import SESSION, Session, is_tracing, session
from symad.tracing.proxies.wrapped import Traced, Wrapped
from symad.tracing.run_on_proxies import signature_text, trace_function
from symad.tracing.walk import Tracer

__all__ = [
    "arrays",
    "as_graph",
    "index_sums",
    "matrices",
    "matrix_parts",
    "own_matrices",
    "regrouped",
    "rewritten_functions",
    "scalars",
    "to_sympy",
    "trace",
]  # fmt: skip


@without_collecting
def trace(f: Traceable, inputs: Inputs | None = None) -> Graph:
    """The graph of a SymPy object or a Python function.

    Args:
        f: a SymPy expression, matrix, matrix expression or array; a list, tuple or dict of such;
            a Graph; or a Python function of the inputs.
        inputs: the arguments in calling order. For SymPy ``f`` they may be omitted: the inputs are then the
            symbols that occur, in the natural order of their names (x2 before x10). An entry is a symbol,
            also one that does not occur; a function of time such as q(t), or its derivative; or a list,
            tuple, dict, matrix or dataclass of these, which is one argument: a vector or array if all entries
            are scalars, otherwise a structure of arrays. With a vector among the arguments, columns (m, 1)
            among the results are vectors (m,). A dict in place of the list gives names to the arguments. A
            Python function needs inputs: symbols, example arrays, shape tuples, or such structures of them;
            a dict gives them to its parameters by name.
            For a Graph they are another order or grouping of its inputs.

    Returns:
        The graph. The arrays of a call determine the symbols that occur as dimensions of inputs.

    Raises:
        TraceError: a part of ``f`` has no real value or no derivative, or inputs are missing.
        ShapeError: shapes do not fit.

    Example:
        >>> import numpy as np, symad
        >>> layer = symad.trace(lambda W, x: np.tanh(W @ x), [(2, 3), (3,)])
        >>> layer(np.zeros((2, 3)), np.ones(3))
        array([0., 0.])
    """
    f = made_of(f)
    if isinstance(f, Graph):
        return _closed(f if inputs is None else regrouped(f, inputs))
    if callable(f) and not isinstance(f, sympy.Basic):
        return trace_function(f, inputs)
    return _trace_sympy(f, inputs, ())


@without_collecting
def as_graph(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """``f`` as a graph; symbols of ``wrt`` that a SymPy ``f`` does not contain become its last inputs."""
    f = made_of(f)
    if inputs is not None:
        return trace(f, inputs)
    if isinstance(f, Graph):
        return _closed(f)
    if callable(f) and not isinstance(f, sympy.Basic):
        name = getattr(f, "__name__", "f")
        if hasattr(f, "named_parameters"):
            raise TraceError(
                f"a {type(f).__name__} of PyTorch has inputs of unknown shape; read it by "
                "symad.torch.from_torch(module).trace(shape)"
            )
        if hasattr(f, "source") and hasattr(f, "save"):
            raise TraceError(f"{name} is generated code: pass its graph; {name}.save(...) saves the code")
        raise TraceError(
            f"the Python function {name}{signature_text(f)} has inputs of unknown shape; give inputs=[...], "
            f"or trace it first: symad.trace({name}, inputs=[...])"
        )
    return _trace_sympy(f, None, () if wrt is None else entries_of(_listed(wrt), "wrt"))


def made_of(f: Traceable) -> Traceable:
    """The graph behind an object such as that of `symad.function`; any other object unchanged."""
    graph = getattr(f, "graph", None)
    return graph if isinstance(graph, Graph) else f


def _closed(graph: Graph) -> Graph:
    """The graph; it may use values of an enclosing function only while that function is being traced."""
    if not is_tracing():
        check_closed(graph, "a use")
    return graph


def _listed(wrt: Wrt | None) -> Sequence[Wrt | None]:
    return wrt if isinstance(wrt, (list, tuple, sympy.Tuple)) else (wrt,)


def _trace_sympy(f: Traceable, inputs: Inputs | None, wrt: Sequence[tuple[str, sympy.Basic]]) -> Graph:
    """Trace a SymPy structure; ``inputs`` are all inputs unless None, ``wrt`` some of them."""
    structure, parts = _flatten(f)
    indices, grouping, given = _grouped(inputs)
    if indices:
        parts = [part.xreplace(indices) if hasattr(part, "xreplace") else part for part in parts]
    asked = [as_input_symbol(leaf) for _, leaf in group(wrt, _is_leaf)[1]]
    found = find_inputs(parts, (s for s in given if isinstance(s, sympy.Symbol)))
    shapes = {s: found.shape_of(s) for s in (*given, *asked, *found.symbols)}
    dims = set().union(*(dim_symbols(shape) for shape in shapes.values()))
    places = {s for s in given if isinstance(s, sympy.Symbol) and s not in found.bound}
    found.check_indices(dims | places)
    if dimensions := [s for s in (*given, *asked) if s in dims]:
        raise TraceError(
            f"{dimensions[0]} is a dimension: it is bound by the arrays given and is never an input"
        )
    _check_names((*given, *asked), found.symbols)
    present = [s for s in found.symbols if s not in dims and not isinstance(s, Traced)]
    if inputs is not None:
        _check_complete(given, present)
        order = given
    else:
        _check_namesakes((*found.symbols, *asked))
        order = list(dict.fromkeys((*sorted(present, key=natural_order), *asked)))
    tracer = Tracer(dims, shapes)
    tracer.places = frozenset(places)
    with expression_session(found.symbols):
        outputs = [_trace_part(part, tracer) for part in parts]
    if any(isinstance(argument.structure, VectorOf) for argument in grouping):
        outputs = [_without_column(output) for output in outputs]
    nodes = tuple(input_node(s, shapes[s]) for s in order)
    return Graph(nodes, tuple(outputs), structure, "f", "", None, grouping)


def _is_leaf(entry: object) -> bool:
    return not is_container(entry)


def _grouped(
    inputs: Inputs | None,
) -> tuple[dict[sympy.Basic, sympy.Symbol], tuple[Argument, ...], list[sympy.Basic]]:
    """The arguments, empty if each is one input of its own name, and all inputs in order.

    The result begins with the symbols that stand for indices and expressions among the inputs.
    """
    if inputs is None:
        return {}, (), []
    arguments, leaves = group(entries_of(inputs), _is_leaf)
    standing = {leaf: sympy.Symbol(str(leaf), real=True) for _, leaf in leaves if is_formula(leaf)}
    symbols = [standing.get(leaf) or as_input_symbol(leaf) for _, leaf in leaves]
    _check_distinct(symbols)
    pairs = zip(arguments, symbols, strict=False)
    plain = all(a.structure is None and a.name == printed(s) for a, s in pairs)
    indices = {leaf: leaf.label for _, leaf in leaves if isinstance(leaf, sympy.Idx)}
    return indices | standing, (() if plain else arguments), symbols


def _check_distinct(symbols: Sequence[sympy.Basic]) -> None:
    if len(set(symbols)) < len(symbols):
        twice, _ = Counter(symbols).most_common(1)[0]
        raise TraceError(f"inputs name {twice} twice; name each input once")


def _without_column(output: Node) -> Node:
    """A column (m, 1) as the vector (m,)."""
    column = len(output.shape) == 2 and output.shape[1] == 1
    return reshape(output, output.shape[:1]) if column else output


def _check_complete(order: Sequence[sympy.Basic], present: Iterable[sympy.Basic]) -> None:
    given = set(order)
    if missing := sorted((s for s in present if s not in given), key=natural_order):
        undefined = [s for s in missing if isinstance(s, AppliedUndef)]
        raise TraceError(
            f"the expression depends on {', '.join(map(str, missing))}, missing from "
            f"inputs={list(map(str, order))}"
            + (f"; {undefined[0].func} is an undefined function: {UNDEFINED}" if undefined else "")
        )


UNDEFINED = (
    "give its value as an input of its own, or its definition, by a subclass of sympy.Function with fdiff "
    "or by symad.register_function"
)


def _check_names(leading: Sequence[sympy.Basic], found: Iterable[sympy.Basic]) -> None:
    """Refuse a symbol that does not occur if another one of its name does: the derivative would be 0.

    Raises:
        TraceError: the message says in which assumptions or shapes the two differ.
    """
    by_name = {printed(symbol): symbol for symbol in found}
    known = set(by_name.values())
    for symbol in leading:
        other = by_name.get(printed(symbol), symbol)
        if symbol not in known and other != symbol and other not in leading:
            raise TraceError(
                f"{symbol} ({_told(symbol)}) does not occur in the expression, which has another {other} "
                f"({_told(other)}); make the symbol once and use it everywhere"
            )


def _check_namesakes(symbols: Iterable[sympy.Basic]) -> None:
    """Refuse two inputs of one name whose order nobody has given: a call could not tell them apart.

    Raises:
        TraceError: the message says in which assumptions or shapes they differ.
    """
    by_name: dict[str, sympy.Basic] = {}
    for symbol in symbols:
        other = by_name.setdefault(printed(symbol), symbol)
        if other != symbol:
            raise TraceError(
                f"the expression has two different symbols {symbol}: {symbol} ({_told(other)}) and {symbol} "
                f"({_told(symbol)}); make the symbol once and use it everywhere, rename one, or give both in "
                "inputs=[...]"
            )


def _told(symbol: sympy.Symbol) -> str:
    """The assumptions or the shape with which a symbol was declared."""
    if not isinstance(symbol, sympy.Symbol):
        shape = format_shape(symbol.shape) if symbol.shape else "unknown"
        return f"{type(symbol).__name__} of shape {shape}"
    given = {k: v for k, v in getattr(symbol, "_assumptions_orig", {}).items() if k != "commutative"}
    return ", ".join(f"{k}={v}" for k, v in given.items()) or "without assumptions"


def natural_order(symbol: sympy.Symbol) -> tuple[list[tuple[int, int, str]], str]:
    """The key of the natural order of names: runs of digits count as numbers, so x2 is before x10."""
    pieces = re.split(r"([0-9]+)", short_name(symbol))
    name = [(0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in pieces if piece]
    return name, printed(symbol)


MAX_NESTING = 100
"""The maximum nesting depth of lists and dicts; it stops those that contain themselves."""


def _flatten(f: Traceable, depth: int = 0) -> tuple[Structure, list[Traceable]]:
    """The structure of lists, tuples and dicts, and its SymPy leaves in order.

    Raises:
        TraceError: the nesting is too deep, possibly because a list contains itself.
    """
    if depth > MAX_NESTING:
        raise TraceError(f"lists and dicts are nested more than {MAX_NESTING} deep; does one contain itself?")
    if isinstance(f, dict):
        items = [_flatten(value, depth + 1) for value in f.values()]
        structure: Structure = DictOf(tuple(f.keys()), tuple(s for s, _ in items))
    elif isinstance(f, (list, tuple, sympy.Tuple)):
        items = [_flatten(value, depth + 1) for value in f]
        structure = TupleOf(tuple(s for s, _ in items))
    else:
        return None, [_as_sympy(f)]
    return structure, [leaf for _, leaves in items for leaf in leaves]


def _as_sympy(f: Traceable) -> Any:
    if isinstance(f, Node):
        return f
    if isinstance(f, Wrapped):
        raise TraceError(
            f"{f!r} is not a function; write the function, and trace it at the point: "
            "symad.trace(lambda z: ..., [z])"
        )
    if isinstance(f, sympy.MatrixBase):
        return sympy.ImmutableDenseMatrix(f)
    if isinstance(f, sympy.NDimArray):
        return sympy.ImmutableDenseNDimArray(f)
    if isinstance(f, sympy.Basic):
        return f
    if callable(f):
        raise TraceError(
            f"{brief(f)} is a function inside of a list; give one function that returns the list, such as "
            "lambda x, y: [f(x, y), g(x, y)]"
        )
    try:
        return as_sympy(f)
    except (ValueError, TypeError):  # SympifyError is a ValueError
        raise TraceError(
            f"{brief(f)} of type {type(f).__name__} cannot be traced; trace takes SymPy objects, numbers, "
            "lists, tuples or dicts of them, and Python functions"
        ) from None


@contextmanager
def expression_session(symbols: Iterable[sympy.Basic]) -> Iterator[None]:
    """A context in which traced values in an expression are constants: its graph is separate."""
    around = SESSION.get()
    if any(isinstance(symbol, Traced) for symbol in symbols):
        around = Session("an expression", around.dims, {}, around)
    with session(around):
        yield


def _trace_part(part: sympy.Basic, tracer: Tracer) -> Node:
    return part if isinstance(part, Node) else tracer.trace(part)


def regrouped(graph: Graph, inputs: Inputs | None) -> Graph:
    """A graph with its inputs in another order or grouping; symbols that it does not have are added.

    Raises:
        TraceError: an input of the graph is missing.
    """
    known = dict(zip(graph.inputs, graph.input_nodes, strict=True))
    by_name = {str(symbol): symbol for symbol in graph.inputs}
    arguments, leaves = group(entries_of(inputs), _is_leaf)
    symbols = [by_name[leaf] if leaf in by_name else as_input_symbol(leaf) for _, leaf in leaves]
    _check_distinct(symbols)
    _check_names(symbols, known)
    _check_complete(symbols, graph.inputs)
    nodes = tuple(known.get(s) or input_node(s, declared_shape(s) or ()) for s in symbols)
    packing = graph.packing
    if packing is not None:
        place = {position: nodes.index(node) for position, node in enumerate(graph.input_nodes)}
        packing = replace(packing, x=tuple(place[k] for k in packing.x), v=tuple(place[k] for k in packing.v))
    return Graph(
        nodes,
        graph.output_nodes,
        graph.structure,
        graph.name,
        graph.report,
        graph.origin,
        arguments,
        packing,
        graph.variables,
    )
