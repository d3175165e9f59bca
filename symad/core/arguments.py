"""The arguments of a graph: their names, their order, and the grouping of inputs in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from inspect import Signature as PythonSignature
from typing import Any, Protocol, TypeAlias

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike
from symad.core.dims import Shape
from symad.core.identifiers import brief, counted, listed, parameter_names, printed, short_name
from symad.core.structures import DataclassOf, DictOf, ListOf, Structure, TupleOf, VectorOf, leaves, pack
from symad.errors import EvaluationError


@dataclass(frozen=True)
class Argument:
    """One argument of a graph: one input, or several in a structure.

    Attributes:
        name: the name that the user wrote.
        structure: its leaves are inputs of the graph, in order.
        code: the name in code, from which the parameter of generated functions is made.
    """

    name: str
    structure: Structure = None
    code: str = ""


@dataclass(frozen=True)
class Packing:
    """The inputs that ``packed=True`` flattens; numbers are positions of inputs.

    Attributes:
        x: the inputs of ``wrt``, in its order.
        v: the inputs that are directions or cotangents.
        results: nested tuples of `PackedResult`, which stand for the outputs in order.
    """

    x: tuple[int, ...]
    v: tuple[int, ...]
    results: Results


Results: TypeAlias = "PackedResult | tuple[Results, ...]"
"""The results of packed code: nested tuples of parts, which stand for the outputs in order."""


@dataclass(frozen=True)
class PackedResult:
    """Outputs that form one result of packed code.

    ``kind`` is "value" (a number if its size is 1, else a flat vector), "vector" (one flat vector of all of
    them), or "matrix" (unchanged).
    """

    kind: str
    count: int = 1


def argument_of(symbol: sympy.Basic) -> Argument:
    """The argument for a single input."""
    return Argument(printed(symbol), None, short_name(symbol))


def parameters_of(arguments: Sequence[Argument]) -> tuple[str, ...]:
    """The parameter names of a Python function of these arguments."""
    return parameter_names(a.code or a.name for a in arguments)


def signature_of(arguments: Sequence[Argument]) -> PythonSignature:
    """The signature of a Python function of these arguments."""
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return PythonSignature([Parameter(name, kind) for name in parameters_of(arguments)])


def as_columns(shapes: Sequence[Shape], values: Sequence[Any]) -> list[Any]:
    """The values, in which a vector (n,) given for a column (n, 1) is reshaped to that column."""
    return [
        np.reshape(value, (-1, 1)) if len(shape) == 2 and shape[1] == 1 and _is_vector(value) else value
        for shape, value in zip(shapes, values, strict=True)
    ]


def _is_vector(value: ArrayLike) -> bool:
    if isinstance(value, (list, tuple)):
        return all(np.isscalar(v) for v in value)
    return getattr(value, "ndim", 0) == 1


class HasArguments(Protocol):
    """An object that is called with arguments."""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments, in order."""


class SignatureOf:
    """``__signature__`` of objects with ``arguments``; classes have none of their own."""

    def __get__(self, instance: HasArguments | None, owner: type) -> PythonSignature:
        """The signature of an instance."""
        if instance is None:
            raise AttributeError("__signature__")
        return signature_of(instance.arguments)


# ---- binding --------------------------------------------------------------------------------------


def bind(
    title: str, arguments: Sequence[Argument], values: Sequence[ArrayLike], named: Mapping[str, ArrayLike]
) -> list[ArrayLike]:
    """One value for each argument, from those given by position and by name.

    A name is the name of the argument as the user wrote it, or the name of the parameter.

    Raises:
        EvaluationError: values are missing, too many, given twice, or given for no argument; the message
            names them.
    """
    names = [a.name for a in arguments]
    if len(values) > len(names):
        raise EvaluationError(f"{_takes(title, names)}, but {were_given(len(values))}")
    found: dict[int, ArrayLike] = dict(enumerate(values))
    if named:
        places = {name: k for k, name in enumerate(parameters_of(arguments))}
        places |= {name: k for k, name in enumerate(names) if names.count(name) == 1}
        for name, value in named.items():
            if name not in places:
                raise EvaluationError(f"{_takes(title, names)}; {brief(name)} is none of them")
            if (k := places[name]) in found:
                raise EvaluationError(f"{title} was given a value of {names[k]} twice")
            found[k] = value
    if missing := [name for k, name in enumerate(names) if k not in found]:
        raise EvaluationError(
            f"{_takes(title, names)}, but {were_given(len(found))}; missing: {listed(missing)}"
        )
    return [found[k] for k in range(len(names))]


def were_given(count: int) -> str:
    """``1 was given``, ``3 were given``."""
    return f"{count} {'was' if count == 1 else 'were'} given"


def _takes(title: str, names: Sequence[str]) -> str:
    return f"{title} takes {counted(len(names), 'value')} ({listed(names)})"


# ---- taking arguments apart -----------------------------------------------------------------------


def flat_values(arguments: Sequence[Argument], values: Sequence[Any]) -> list[Any]:
    """The values of all inputs, from one value for each argument.

    Raises:
        EvaluationError: a value has another structure than its argument; the message says where.
    """
    return [
        leaf
        for argument, value in zip(arguments, values, strict=True)
        for leaf in leaves_of(argument.structure, value, argument.name)
    ]


def leaves_of(
    structure: Structure, value: Any, where: str, is_whole: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The leaves of a value that has this structure; ``where`` names it in errors.

    A part for which ``is_whole`` is true stands for all leaves below it.
    """
    if structure is None:
        return [value]
    if is_whole is not None and is_whole(value):
        return [value] * leaves(structure)
    if isinstance(structure, VectorOf):
        return elements(value, structure.shape, where)
    if isinstance(structure, DictOf):
        found = _in_dict(structure, value, where)
        pairs = [(f"{where}[{k!r}]", v) for k, v in zip(structure.keys, found, strict=True)]
    elif isinstance(structure, DataclassOf):
        found = _fields(structure, value, where)
        pairs = [(f"{where}.{k}", v) for k, v in zip(structure.keys, found, strict=True)]
    else:
        pairs = [(f"{where}[{k}]", v) for k, v in enumerate(_in_list(structure, value, where))]
    return [
        leaf
        for item, (place, part) in zip(structure.items, pairs, strict=True)
        for leaf in leaves_of(item, part, place, is_whole)
    ]


def grouped_values(
    arguments: Sequence[Argument], values: Sequence[Array | float], convert: Callable[[Any], Any]
) -> list[Any]:
    """One value for each argument from values of all inputs, each converted; the inverse of `flat_values`."""
    made, first = [], 0
    for argument in arguments:
        count = leaves(argument.structure)
        made.append(_grouped(argument.structure, values[first : first + count], convert))
        first += count
    return made


def _grouped(structure: Structure, values: Sequence[Array | float], convert: Callable[[Any], Any]) -> Any:
    if structure is None:
        return convert(values[0])
    if isinstance(structure, VectorOf):
        stacked = np.stack(np.broadcast_arrays(*values), axis=-1) if values else np.zeros(0)
        return convert(stacked.reshape((*stacked.shape[:-1], *structure.shape)))
    parts, first = [], 0
    for item in structure.items:
        count = leaves(item)
        parts.append(_grouped(item, values[first : first + count], convert))
        first += count
    return pack(replace(structure, items=(None,) * len(parts)), parts)


def _in_dict(structure: DictOf, value: Any, where: str) -> list[Any]:
    if not isinstance(value, Mapping):
        raise EvaluationError(
            f"{where} is a dict with the keys {listed(structure.keys)}, but was given {_told(value)}"
        )
    _compare(structure.keys, list(value), where)
    return [value[k] for k in structure.keys]


def _fields(structure: DataclassOf, value: Any, where: str) -> list[Array]:
    if isinstance(value, Mapping):
        _compare(structure.keys, list(value), where)
        return [value[k] for k in structure.keys]
    if missing := [k for k in structure.keys if not hasattr(value, k)]:
        raise EvaluationError(
            f"{where} is a {structure.cls.__name__} with the fields {listed(structure.keys)}, but was given "
            f"{_told(value)}, which has no {listed(missing)}"
        )
    return [getattr(value, k) for k in structure.keys]


def _in_list(structure: TupleOf | ListOf, value: Any, where: str) -> list[Any]:
    count = len(structure.items)
    if not isinstance(value, (list, tuple)) or len(value) != count:
        given = f"one of {len(value)}" if isinstance(value, (list, tuple)) else _told(value)
        raise EvaluationError(f"{where} is a list or tuple of {count} entries, but was given {given}")
    return list(value)


def _compare(wanted: Sequence[str], given: Sequence[str], where: str) -> None:
    missing = [k for k in wanted if k not in given]
    extra = [k for k in given if k not in wanted]
    if missing or extra:
        lacks = [f"lacks {listed(missing)}"] if missing else []
        told = [*lacks, *([f"has {listed(extra)} in addition"] if extra else [])]
        raise EvaluationError(f"{where} has the keys {listed(wanted)}; the value given {' and '.join(told)}")


def _told(value: object) -> str:
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + (f" of shape {shape}" if shape is not None else "")


def elements(value: Any, shape: tuple[int, ...], where: str) -> list[Array | float]:
    """The entries of an array (..., *shape), in row-major order; axes before it are those of a batch.

    An (n, 1) or (1, n) array stands for a vector of n entries.

    Raises:
        EvaluationError: the value has another shape.
    """
    if isinstance(value, (sympy.MatrixBase, sympy.NDimArray, sympy.Tuple)):
        value = np.array(value.tolist() if hasattr(value, "tolist") else list(value), dtype=object)
    if isinstance(value, (list, tuple)):
        nested = len(value) == shape[0] if shape else False
        if nested and len(shape) == 1:
            return list(value)
        if nested and all(isinstance(row, (list, tuple)) for row in value):
            return [e for k, row in enumerate(value) for e in elements(row, shape[1:], f"{where}[{k}]")]
        value = np.asarray(value)
    if not hasattr(value, "shape") or not hasattr(value, "__getitem__"):
        value = np.asarray(value)
    given = tuple(value.shape)
    lead = given[: len(given) - len(shape)]
    if given[len(lead) :] != shape:
        if [d for d in given if d != 1] != [d for d in shape if d != 1]:
            raise EvaluationError(
                f"{where} is an array of shape {shape}, but was given "
                f"{f'one of shape {given}' if given else _told(value)}"
            )
        value, lead = value.reshape(shape), ()
    return [value[(*[slice(None)] * len(lead), *place)] for place in np.ndindex(*shape)]
