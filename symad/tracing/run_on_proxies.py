"""Python functions to graphs: the function runs once, on proxies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any

import numpy as np
import sympy
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.arguments import Argument, argument_of
from symad.core.arrays import ArrayLike
from symad.core.dims import Shape, as_shape, dim_symbols
from symad.core.following import told_of_rewriting
from symad.core.graph import DictOf, Graph, Node, Structure, TupleOf, leaves, pack
from symad.core.identifiers import counted
from symad.core.signatures import Inputs
from symad.core.variables import named
from symad.errors import SymadError, TraceError
from symad.ops.basic.sources import input_node, symbol_of
from symad.tracing.compared_sizes import sizes_are_not_compared
from symad.tracing.grouping import group, is_container, is_scalar_symbol
from symad.tracing.input_symbols import as_input_symbol, check_real
from symad.tracing.names import reading_stand_ins
from symad.tracing.proxies.frames import Frames
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import SESSION, Session, tracing
from symad.tracing.proxies.wrapped import Wrapped, as_node
from symad.tracing.random_draws import told_of_draws
from symad.tracing.users_line import refuse_library, tell
from symad.tracing.wrt import as_outputs, symbol_like


def trace_function(f: Callable[..., Any], inputs: Inputs | None) -> Graph:
    """The graph of a Python function of numbers and arrays.

    The function is called once with proxies. It may use Python's control flow on anything that does
    not depend on data, NumPy's functions and operators, SymPy's functions, and those of
    `symad.functions`. Arithmetic is that of real numbers: integers are promoted, ``/`` never rounds, and
    single-precision constants keep their value; the precision of the result is chosen when
    the graph is evaluated or lowered.

    Args:
        f: the function.
        inputs: one for each parameter: a SymPy symbol, an example (a number or an array, of which
            only the shape is used), a shape (a tuple of ints and SymPy expressions), or a dict, list, tuple
            or dataclass of these at any depth: the function gets the same structure. A dict in place of the
            list gives each parameter its input by name.

    Raises:
        TraceError: inputs are missing; the function branches on data, uses an operation that has no
            derivative here, or returns a value that is not a number.
    """
    name = getattr(f, "__name__", "f")
    try:
        grouping, nodes = _inputs(f, inputs)
    except RecursionError as error:
        tell(name, error)
        raise
    dims = frozenset().union(*(dim_symbols(node.shape) for node in nodes))
    symbols = {symbol_of(node): node for node in nodes}
    for symbol in symbols:
        if symbol in dims:
            raise TraceError(
                f"{symbol} is a dimension of another input, which binds it; do not pass it as an input"
            )
    around = SESSION.get()
    known = dims | (around.dims - set(symbols))
    frames = Frames(Proxy, _node_of)
    opened = Session(f"the traced function {name}", known, symbols, around, frames=frames)
    with tracing(opened), sizes_are_not_compared(), told_of_rewriting(frames.follow), told_of_draws(f, name):
        structure, outputs = _run(f, _proxies(grouping, nodes), name)
    title = name if name.isidentifier() else "f"
    plain = all(argument.structure is None for argument in grouping)
    names = named(frames.names(), outputs)
    return Graph(nodes, tuple(outputs), structure, title, "", None, () if plain else grouping, None, names)


def _node_of(value: object) -> Node | None:
    """The node for which the value of a variable stands."""
    return value._value if isinstance(value, Proxy) else None


def _proxies(grouping: Sequence[Argument], nodes: Sequence[Node]) -> list[Any]:
    """The arguments of the function; a vector of scalar inputs is an array."""
    values, first = [], 0
    for argument in grouping:
        count = leaves(argument.structure)
        made, structure = as_outputs(argument.structure, nodes[first : first + count])
        values.append(pack(structure, list(map(Proxy, made))))
        first += count
    return values


def _run(f: Callable[..., Any], values: Sequence[Any], name: str) -> tuple[Structure, list[Node]]:
    """The outputs of the function on proxies."""
    try:
        return _outputs(reading_stand_ins(f)(*values), name)
    except (TypeError, ValueError, IndexError, ZeroDivisionError, AttributeError, RuntimeError) as error:
        if not isinstance(error, (IndexError, ZeroDivisionError)):
            refuse_library(name, error)
        if not isinstance(error, SymadError):
            tell(name, error)
        raise


# ---- inputs -------------------------------------------------------------------------------------


def _inputs(f: Callable[..., Any], inputs: Inputs | None) -> tuple[tuple[Argument, ...], tuple[Node, ...]]:
    """One argument for each parameter, and the nodes of all inputs."""
    if inputs is None:
        name = getattr(f, "__name__", "f")
        raise TraceError(
            f"a Python function needs its inputs: symad.trace({name}, inputs=[...]) with a symbol, an "
            "example or "
            f"a shape for each of its parameters {signature_text(f)}"
        )
    if isinstance(inputs, Mapping):
        inputs = _by_parameter(f, inputs)
    if isinstance(inputs, (str, sympy.Basic, np.ndarray)) or not isinstance(inputs, Sequence):
        raise TraceError(f"inputs is a list with one entry for each parameter, not {inputs!r}")
    if isinstance(inputs, tuple) and any(type(v) is int for v in inputs) and all(map(_is_dim, inputs)):
        raise TraceError(
            f"inputs={inputs!r} has a number for each parameter, or is the shape of one: give "
            f"inputs=[{inputs!r}] for an array of this shape, or () for each parameter that is a number"
        )
    names = _parameter_names(f, inputs)
    arguments, found = group([("", entry) for entry in inputs], _is_leaf, names)
    taken = {str(v) for _, v in found if isinstance(v, (sympy.Basic, sympy.MatrixBase))}
    nodes = tuple(_input(name, value, taken) for name, value in found)
    if len(set(nodes)) < len(nodes):
        raise TraceError(f"inputs={list(inputs)!r} names one symbol twice; every parameter needs its own")
    rest = iter(nodes)
    grouping = []
    for argument in arguments:
        own = [next(rest) for _ in range(leaves(argument.structure))]
        grouping.append(argument if argument.structure is not None else argument_of(symbol_of(own[0])))
    return tuple(grouping), nodes


def _by_parameter(f: Callable[..., Any], inputs: Mapping[str, Any]) -> list[Any]:
    """The inputs that a dict gives to parameters by name, in the order of the parameters."""
    name, names = getattr(f, "__name__", "f"), ", ".join(map(str, inputs))
    try:
        bound = inspect.signature(f).bind(**inputs)
    except (TypeError, ValueError) as error:
        raise TraceError(
            f"inputs is a dict of the parameters {names}, but {name}{signature_text(f)} cannot be called "
            f"with these by name ({error}); give each parameter, or a list with one entry for each"
        ) from None
    if bound.kwargs:
        raise TraceError(
            f"inputs is a dict of the parameters {names}; {', '.join(bound.kwargs)} of {name}"
            f"{signature_text(f)} cannot be given by position; give the parameters before it as well, and "
            "take none by keyword alone"
        )
    return list(bound.args)


def _is_leaf(value: Any) -> bool:
    """True if an entry of ``inputs`` is one input: a symbol, a shape, or an example.

    Lists of numbers are examples; tuples whose entries could be dimensions are shapes.
    """
    if isinstance(value, (sympy.MatrixBase, sympy.NDimArray, sympy.Tuple)):
        return not all(map(is_scalar_symbol, sympy.flatten(value)))
    if isinstance(value, list):
        return _is_example(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return not any(type(v) is not int and (is_container(v) or np.ndim(v)) for v in value)
    return not is_container(value)


def _is_example(value: Any) -> bool:
    """True if a list contains only numbers, or lists of numbers."""
    numbers = (int, float, complex, np.generic, Fraction, sympy.Number, str, bytes, type(None))
    return all(_is_example(v) if isinstance(v, list) else isinstance(v, numbers) for v in value)


def signature_text(f: Callable[..., Any]) -> str:
    """The parameters of a function in parentheses, for messages."""
    try:
        return str(inspect.signature(f))
    except (TypeError, ValueError):
        return "(unknown)"


def _parameter_names(f: Callable[..., Any], inputs: Sequence[Any]) -> list[str]:
    """The names of the parameters that take the inputs."""
    if isinstance(f, FunctionType) and not vars(f):  # most functions, where no signature is to be made
        code = f.__code__
        plain = not code.co_kwonlyargcount and not code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
        if plain and code.co_argcount == len(inputs):
            return list(code.co_varnames[: len(inputs)])
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # built-in functions; ufuncs before NumPy 2.4, named as later
        if isinstance(f, np.ufunc):
            return ["x"] if len(inputs) == 1 else [f"x{k + 1}" for k in range(len(inputs))]
        return [f"x{k}" for k in range(len(inputs))]
    try:
        signature.bind(*inputs)
    except TypeError as error:
        name = getattr(f, "__name__", "f")
        raise TraceError(
            f"inputs has {counted(len(inputs), 'entry', 'entries')}, but the function is {name}{signature}: "
            f"{error}; give one entry for each parameter"
        ) from None
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.extend(f"{parameter.name}{k}" for k in range(len(inputs) - len(names)))
        else:
            names.append(parameter.name)
    return names[: len(inputs)]


def _input(name: str, value: ArrayLike, taken: set[str]) -> Node:
    """The input node of one entry of ``inputs``."""
    if isinstance(value, (sympy.MatrixSymbol, ArraySymbol, sympy.IndexedBase)):
        if value.shape is None:
            raise TraceError(
                f"the IndexedBase {value} has no shape; give IndexedBase({str(value)!r}, shape=...)"
            )
        return input_node(value, value.shape)
    if isinstance(value, sympy.Symbol):
        return input_node(check_real(value))
    if isinstance(value, (sympy.Expr, sympy.MatrixBase)) and not isinstance(value, sympy.Number):
        as_input_symbol(value)
    if isinstance(value, Wrapped):
        shape = value._node.shape
    elif isinstance(value, tuple):
        shape = _declared(name, value)
    elif isinstance(value, (str, bytes, type(None))):
        raise TraceError(
            f"the input {name} is given as {value!r}; give a symbol, an example number or array, or a "
            "shape such as (3,)"
        )
    else:
        try:
            example = np.asarray(value)
        except ValueError:
            raise TraceError(
                f"the input {name} is given as nested lists or arrays of different lengths; give one array, "
                "or one input for each array"
            ) from None
        if example.dtype.kind not in "biuf" and not isinstance(value, sympy.Number):
            raise TraceError(
                f"the input {name} is given as an example of dtype {example.dtype}; give real numbers"
            )
        shape = example.shape
    return input_node(symbol_like(name, shape, taken), shape)


def _declared(name: str, value: tuple[ArrayLike, ...]) -> Shape:
    """A tuple as the shape of an input.

    Raises:
        TraceError: an entry is not a dimension, such as a float, or a symbol that is not an integer.
    """
    for entry in value:
        if not _is_dim(entry):
            raise TraceError(
                f"the input {name} is given as {value!r}, but {entry!r} is not a dimension; a tuple is a "
                "shape, of ints >= 0 and SymPy integer symbols and expressions; give an example as a list or "
                "an array"
            )
    return as_shape(value)


def _is_dim(value: float | sympy.Expr) -> bool:
    if isinstance(value, sympy.Expr):
        facts = (value.is_integer, value.is_nonnegative, value.is_finite)
        return False not in facts and value is not sympy.nan
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)


# ---- outputs ------------------------------------------------------------------------------------


def _outputs(result: ArrayLike, name: str) -> tuple[Structure, list[Node]]:
    """The structure of the value that a function returned, and its nodes in order."""
    if isinstance(result, dict):
        items = [_outputs(value, name) for value in result.values()]
        structure: Structure = DictOf(tuple(result.keys()), tuple(s for s, _ in items))
    elif isinstance(result, (list, tuple)):
        items = [_outputs(value, name) for value in result]
        structure = TupleOf(tuple(s for s, _ in items))
    else:
        if result is None or isinstance(result, (str, bytes)):
            raise TraceError(
                f"{name} returned {result!r}; it must return numbers, arrays, or lists or dicts of them"
            )
        return None, [as_node(result)]
    return structure, [node for _, nodes in items for node in nodes]
