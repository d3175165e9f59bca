"""``inputs=``: the order of the arguments, and the grouping of inputs in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from symad.core.arguments import Argument
from symad.core.identifiers import printed, short_name
from symad.core.signatures import Inputs
from symad.core.structures import DataclassOf, DictOf, ListOf, Structure, TupleOf, VectorOf, field_names
from symad.errors import TraceError

Leaf = tuple[str, Any]
"""An input as it was given, and its name in the argument, such as ``params['W']``."""

MAX_NESTING = 100
"""The maximum nesting depth of arguments; it stops those that contain themselves."""


def entries_of(inputs: Inputs | None, what: str = "inputs") -> list[tuple[str, Any]]:
    """The arguments that ``inputs`` lists, each with its name; an argument without name has an empty one.

    A dict gives names to the arguments; a bare symbol or matrix is the only argument.

    Raises:
        TraceError: text, or a set, which has no order.
    """
    if isinstance(inputs, Mapping):
        if wrong := [key for key in inputs if not isinstance(key, str)]:
            raise TraceError(f"{what}: the dict names arguments by text, not by {wrong[0]!r}")
        return list(inputs.items())
    if isinstance(inputs, (sympy.MatrixBase, sympy.NDimArray)):
        return [("", inputs)]
    if isinstance(inputs, sympy.Basic) and not isinstance(inputs, sympy.Tuple):
        return [("", inputs)]
    if isinstance(inputs, (str, bytes, set, frozenset)) or not isinstance(inputs, Iterable):
        raise TraceError(f"{what} is a list with one entry for each argument, not {inputs!r}")
    return [("", entry) for entry in inputs]


def group(
    inputs: Sequence[tuple[str, Any]], is_leaf: Callable[[Any], bool], names: Sequence[str] = ()
) -> tuple[tuple[Argument, ...], list[Leaf]]:
    """The arguments, and their leaves in order.

    Args:
        inputs: from `entries_of`.
        is_leaf: true if an entry is one input.
        names: the names of the arguments, if they are known.

    Raises:
        TraceError: an entry is neither an input nor a list, tuple, dict, matrix or dataclass of inputs.
    """
    arguments: list[Argument] = []
    leaves: list[Leaf] = []
    taken = {printed(entry) for _, entry in inputs if isinstance(entry, sympy.Basic)}
    for k, (given, entry) in enumerate(inputs):
        known = given or (names[k] if k < len(names) else "")
        if is_leaf(entry):
            symbol = entry if isinstance(entry, sympy.Basic) else None
            name = known or printed(entry)
            argument = Argument(name, None, known or (short_name(symbol) if symbol is not None else name))
            found: list[Leaf] = [(name, entry)]
        else:
            structure, found = structure_of(entry, known, is_leaf)
            name = known or _name([leaf for _, leaf in found], taken) or f"argument_{k + 1}"
            argument = Argument(name, structure, name)
            if not known:
                found = [(f"{name}{where}", leaf) for where, leaf in found]
        taken.add(name)
        arguments.append(argument)
        leaves += found
    return tuple(arguments), leaves


def _name(leaves: Sequence[Any], taken: set[str]) -> str:
    """``y`` for y1, y2, ...; ``q_dot`` for the derivatives of q1(t), q2(t), ...; ``a_b`` for a, b.

    Many inputs with different names are ``a_to_f``, from the first to the last.
    """
    names = [short_name(leaf) if isinstance(leaf, sympy.Basic) else "" for leaf in leaves]
    matches = [re.fullmatch(r"([^\W\d]+?)_?\d+(\D*)", name) for name in names]
    stems = {m.group(1) + m.group(2) if m else "" for m in matches}
    stem = stems.pop() if len(stems) == 1 else ""
    if not stem and names and all(names):
        stem = "_".join(names) if len(names) <= MAX_JOINED_NAMES else f"{names[0]}_to_{names[-1]}"
    return stem if stem not in taken else ""


MAX_JOINED_NAMES = 4
"""Inputs whose names together are the name of their group."""


def is_container(entry: Any) -> bool:
    """True if an entry contains others: a list, tuple, dict, matrix, dataclass or named tuple."""
    kinds = (list, tuple, Mapping, sympy.Tuple, sympy.MatrixBase, sympy.NDimArray)
    return isinstance(entry, kinds) or bool(field_names(type(entry)))


def is_scalar_symbol(leaf: sympy.Basic) -> bool:
    """True if an input given as SymPy is one number."""
    return isinstance(leaf, (sympy.Symbol, AppliedUndef, sympy.Derivative))


def structure_of(
    entry: Any, where: str, is_leaf: Callable[[Any], bool], depth: int = 0
) -> tuple[Structure, list[Leaf]]:
    """The structure of one argument and its leaves, each named by its Python expression."""
    if depth > MAX_NESTING:
        raise TraceError(f"an argument is nested more than {MAX_NESTING} deep; does it contain itself?")
    if is_leaf(entry):
        return None, [(where, entry)]
    if isinstance(entry, (sympy.MatrixBase, sympy.NDimArray)):
        shape = tuple(int(d) for d in entry.shape)
        flat = entry.flat() if isinstance(entry, sympy.MatrixBase) else sympy.flatten(entry.tolist())
        shape = shape[:1] if shape[1:] == (1,) else shape
        return VectorOf(shape), [(f"{where}[{k}]", leaf) for k, leaf in enumerate(flat)]
    if isinstance(entry, Mapping):
        parts = {f"{where}[{key!r}]": value for key, value in entry.items()}
        items, leaves = _items(parts, is_leaf, depth)
        return DictOf(tuple(entry), items), leaves
    if names := field_names(type(entry)):
        items, leaves = _items({f"{where}.{name}": getattr(entry, name) for name in names}, is_leaf, depth)
        return DataclassOf(type(entry), names, items), leaves
    if isinstance(entry, (list, tuple, sympy.Tuple)):
        items, leaves = _items({f"{where}[{k}]": value for k, value in enumerate(entry)}, is_leaf, depth)
        rectangle = _rectangle(items)
        if leaves and rectangle is not None and all(is_scalar_symbol(leaf) for _, leaf in leaves):
            return VectorOf(rectangle), leaves
        return (ListOf if isinstance(entry, list) else TupleOf)(items), leaves
    raise TraceError(
        f"{where or 'an entry of inputs'} is given as {entry!r} of type {type(entry).__name__}, which is "
        "neither an input nor a list, tuple, dict, matrix or dataclass of inputs"
    )


def _items(
    parts: Mapping[str, Any], is_leaf: Callable[[Any], bool], depth: int
) -> tuple[tuple[Structure, ...], list[Leaf]]:
    made = [structure_of(value, where, is_leaf, depth + 1) for where, value in parts.items()]
    return tuple(s for s, _ in made), [leaf for _, leaves in made for leaf in leaves]


def _rectangle(items: Sequence[Structure]) -> tuple[int, ...] | None:
    """The shape of an array of scalars, from the structures of its rows; None if rows differ."""
    if all(item is None for item in items):
        return (len(items),)
    rows = {item.shape if isinstance(item, VectorOf) else None for item in items}
    row = rows.pop() if len(rows) == 1 else None
    return None if row is None else (len(items), *row)
