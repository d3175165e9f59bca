"""Calling a graph: values are checked and bound, dimensions solved, nodes evaluated in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import prod
from operator import methodcaller
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.core.arguments import as_columns, bind, flat_values
from symad.core.arrays import Array, Number
from symad.core.dims import solve_dims
from symad.core.graph import Graph, Node, pack
from symad.core.identifiers import brief
from symad.errors import EvaluationError, ShapeError
from symad.evaluation.rational_results import as_result, evaluate_exactly
from symad.evaluation.scaled_norms import norms_in_range
from symad.numbers.dual import Dual, as_input
from symad.numbers.number_domains import FLOATS, AnyDomain, UndefinedValue, domain_of
from symad.numbers.values import unchecked
from symad.ops.basic.sources import symbol_of
from symad.stable import stabilize
from symad.tracing.inlining import inline, is_traced


def call(graph: Graph, values: Sequence[Any], named: Mapping[str, Number]) -> Number:
    """The outputs of a graph at these values, in the graph's structure.

    For a graph of scalar inputs the values may be arrays that broadcast together: a batch of
    points, whose axes lead in every output. A call inside a traced function adds the graph to that function.

    Raises:
        EvaluationError: values are missing, given twice, for no input, or not real numbers; the message names
            the input.
        ShapeError: shapes do not fit the declared ones, or disagree on a dimension symbol.
    """
    if graph.grouping or named or len(values) != len(graph.input_nodes):
        arguments = graph.arguments
        values = flat_values(arguments, bind(graph.name, arguments, values, named))
    if is_traced(graph, values):
        return inline(graph, values)
    names = [str(symbol) for symbol in graph.inputs]
    exact = evaluate_exactly(graph.output_nodes, dict(zip(graph.input_nodes, values, strict=True)))
    if exact is not None:
        return pack(graph.structure, [as_result(value) for value in exact.results])
    checked = as_values(values, graph.inputs)
    if domain_of(checked) is FLOATS:  # floats round and overflow; other numbers evaluate the graph as written
        graph = _for_floats(graph)
    checked = as_columns([node.shape for node in graph.input_nodes], checked)
    shapes = [np.shape(v) if isinstance(v, np.ndarray) else () for v in checked]
    if any(shapes) and not any(node.shape for node in graph.input_nodes):
        return _call_batch(graph, checked)
    declared = [node.shape for node in graph.input_nodes]
    dims = solve_dims(list(zip(names, declared, shapes, strict=True)))
    bound = graph.at(dims)
    results = run(bound.output_nodes, dict(zip(bound.input_nodes, checked, strict=True)))
    return pack(graph.structure, _owning(results, (*values, *checked)))


def _owning(results: Sequence[Any], given: Sequence[Number]) -> list[Number]:
    """The results, without shared memory: none is a view of an input, of a constant or of another result."""
    roots = {id(_root(value)) for value in given if isinstance(value, np.ndarray)}
    made = []
    for result in results:
        array = getattr(result, "data", None) if hasattr(result, "indptr") else result
        if isinstance(array, np.ndarray):
            repeated = 0 in array.strides and array.size > 1
            if id(_root(array)) in roots or repeated or not array.flags.writeable:
                result = result.copy()
                array = result.data if hasattr(result, "indptr") else result
            roots.add(id(_root(array)))
        made.append(result)
    return made


def _root(array: Array) -> object:
    """The owner of the memory of an array."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


@lru_cache(maxsize=32)
def _for_floats(graph: Graph) -> Graph:
    """The graph in stable forms, as it is when it is lowered."""
    return norms_in_range(stabilize(graph))


def as_values(values: Sequence[Number], symbols: Sequence[Number]) -> list[Number]:
    """Values in the types of the evaluators; integers stay exact beside exact or symbolic numbers."""
    checked = [as_value(v, s) for v, s in zip(values, symbols, strict=True)]
    domain = domain_of(checked)
    if domain is FLOATS:
        return checked
    return [_exact(given, value, domain) for given, value in zip(values, checked, strict=True)]


def _exact(given: Number, value: Number, domain: AnyDomain) -> Number:
    """A checked value in which integers that were given as integers are numbers of a domain."""
    if isinstance(given, INTEGERS):
        return domain.number(int(given))
    if not isinstance(value, np.ndarray):
        return value
    entries = value if value.dtype == object else np.asarray(given)
    if entries.dtype.kind not in "iuO":
        return value
    number = np.frompyfunc(lambda v: domain.number(int(v)) if isinstance(v, INTEGERS) else v, 1, 1)
    return number(entries.astype(object))


INTEGERS = (int, np.integer)


def as_value(value: Any, symbol: sympy.Basic) -> Number:
    """A value in the types of the evaluators: exact scalars unchanged, numbers as float arrays.

    Raises:
        EvaluationError: text, complex numbers, None, or a fraction for an integer symbol.
    """
    if isinstance(value, (bool, int, np.bool_, np.integer, np.float16)):
        value = float(value)
    if isinstance(value, Dual):
        if _no_real_number(value):
            raise EvaluationError(f"{symbol} was given {brief(value)}; give duals of real numbers")
        value = as_input(value)
    if isinstance(value, np.ma.MaskedArray):
        refuse_masked(symbol, value)
    if isinstance(value, memoryview) or (hasattr(type(value), "__array__") and not isinstance(value, OWN)):
        value = read_array(symbol, value)  # of torch, jax, pandas, ...
    if isinstance(value, (sympy.MatrixBase, sympy.NDimArray)):
        value = np.array(value.tolist(), dtype=object)
    elif isinstance(value, (list, tuple)):
        value = _array_of(value, symbol)
    if isinstance(value, np.ndarray):
        value = np.asarray(value)  # np.matrix multiplies differently
        if value.dtype.kind in "bui" or value.dtype == np.float16:
            value = value.astype(np.float64)  # half precisions too: three digits are not enough
        elif value.dtype.kind not in "fO":
            raise EvaluationError(f"{symbol} was given an array of dtype {value.dtype}; give real numbers")
        elif value.dtype == object and any(map(_no_real_number, value.flat)):
            raise EvaluationError(f"{symbol} was given an array with entries that are not real numbers")
        if value.ndim == 0:
            value = value[()]
    elif isinstance(value, NO_NUMBERS) or _no_real_number(value):
        raise EvaluationError(f"{symbol} was given {brief(value)}; give a real number or an array of them")
    if getattr(symbol, "is_integer", False):
        refuse_fractions(symbol, value)
    return value


def _no_real_number(value: Any) -> bool:
    """True for text, None, objects that cannot be multiplied, and complex numbers, also inside of a Dual."""
    if isinstance(value, Dual):
        return any(_no_real_number(part) for part in (value.value, value.tangent) if part is not None)
    if isinstance(value, sympy.Basic):  # the whole of a large expression is not searched
        return any(part is sympy.I for part in islice(sympy.preorder_traversal(value), 50))
    no_number = (str, bytes, list, tuple, complex, np.complexfloating, mpmath.mpc)
    return isinstance(value, no_number) or not hasattr(type(value), "__mul__")


def refuse_fractions(symbol: sympy.Basic, value: Array | float) -> None:
    """Raise EvaluationError if the value of an integer is not one; integral floats are integers."""
    if isinstance(value, (float, np.ndarray)):
        numbers = np.asarray(value)
        if numbers.dtype.kind == "f" and np.any(numbers != np.floor(numbers)):
            raise EvaluationError(f"{symbol} is an integer, but was given {brief(value)}")


def refuse_masked(symbol: sympy.Expr, value: Array) -> None:
    """Raise EvaluationError if elements of a masked array are missing."""
    if np.ma.is_masked(value):
        raise EvaluationError(
            f"{symbol} was given a masked array, whose missing elements have no value here; fill them, or "
            "pass NaN and sum by np.nansum or np.where(np.isnan(x), 0, x)"
        )


def read_array(symbol: sympy.Basic, value: Any) -> np.ndarray:
    """Another library's array as NumPy's; of a tensor that requires grad its values, without its history.

    Raises:
        EvaluationError: the library does not convert its array, as PyTorch does not for tensors that are on
            another device, or whose type NumPy lacks.
    """
    try:
        return np.asarray(_without_history(value))
    except (TypeError, ValueError, RuntimeError) as error:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise EvaluationError(f"{symbol} was given a {kind} that NumPy cannot read: {error}") from None


def _without_history(value: object) -> object:
    """A tensor without the history of its gradients; lists of such; other values unchanged."""
    if isinstance(value, (list, tuple)):
        return [_without_history(v) for v in value]
    return methodcaller("detach")(value) if getattr(value, "requires_grad", False) is True else value


OWN = (np.ndarray, np.generic, Fraction, sympy.Basic, sympy.MatrixBase, sympy.NDimArray, Dual)
"""Types that are used as they are; arrays of other types are converted by NumPy."""

NO_NUMBERS = (
    str, bytes, complex, np.complexfloating, np.flexible, np.datetime64, np.timedelta64,
    dict, set, frozenset, type,
)  # fmt: skip
"""Types of values that are refused; other types may be numbers that a user defined."""


def _array_of(values: Number, symbol: sympy.Basic) -> np.ndarray:
    try:
        return np.asarray(values)
    except RuntimeError:  # PyTorch's, of scalars that require grad
        return np.asarray(_without_history(values))
    except ValueError:
        raise EvaluationError(
            f"{symbol} was given nested lists whose rows differ in length; give an array"
        ) from None


def _call_batch(graph: Graph, values: list[Array | float]) -> Number:
    """A scalar graph on arrays of points."""
    from symad.ops.basic.sources import input_node
    from symad.transforms.batches import batch_outputs

    shapes = [np.shape(v) if isinstance(v, np.ndarray) else () for v in values]
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in zip(graph.inputs, shapes, strict=True))
        raise ShapeError(
            f"the arrays of points given to {graph.name} do not broadcast together: {given}"
        ) from None
    count = prod(common)
    point: dict[Node, Number] = {}
    replaced: dict[Node, Node] = {}
    for node, value in zip(graph.input_nodes, values, strict=True):
        if isinstance(value, np.ndarray):
            replaced[node] = input_node(symbol_of(node), (count,))
            point[replaced[node]] = np.broadcast_to(value, common).reshape(count)
        else:
            point[node] = value
    results = run(batch_outputs(graph.output_nodes, replaced, count), point)
    shaped = [np.reshape(r, common + np.shape(r)[1:]) for r in results]
    return pack(graph.structure, _owning(shaped, values))


def run(outputs: Sequence[Node], point: Mapping[Node, Number]) -> list[Any]:
    """The values of some nodes, from the values of the inputs; dimensions must be numbers.

    Raises:
        EvaluationError: a dimension is not fixed, or an exact value does not exist.
    """
    return [_finished(v, o) for v, o in zip(unchecked(outputs, point), outputs, strict=True)]


def _finished(value: Number, output: Node) -> Number:
    """An output value; constants become floats, and undefined exact values are errors here."""
    if isinstance(value, UndefinedValue):
        raise EvaluationError(f"the value is undefined: {value.reason}")
    if isinstance(value, np.ndarray) and value.dtype == object:
        for entry in value.flat:
            if isinstance(entry, UndefinedValue):
                raise EvaluationError(f"an entry of the value is undefined: {entry.reason}")
    if isinstance(value, bool) or (isinstance(value, np.ndarray) and value.dtype == bool):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return value.astype(np.float64)
    return value
