"""Structures, arguments and packings in saved graphs."""

from __future__ import annotations

from math import prod
from typing import Any

from symad.core.arguments import Argument, Packing, Part
from symad.core.graph import Graph
from symad.core.structures import DataclassOf, DictOf, ListOf, Structure, TupleOf, VectorOf, leaves
from symad.errors import SavingError
from symad.saving.saved_values import read_value, write_value


def write_structure(structure: Structure) -> Any:
    """A structure as JSON. Of a dataclass the names of its fields are kept, not the class."""
    if structure is None:
        return None
    if isinstance(structure, VectorOf):
        return ["vector", list(structure.shape)]
    items = [write_structure(item) for item in structure.items]
    if isinstance(structure, DictOf):
        return ["dict", [write_value(k) for k in structure.keys], items]
    if isinstance(structure, DataclassOf):
        return ["fields", list(structure.keys), items]
    return ["list" if isinstance(structure, ListOf) else "tuple", items]


def read_structure(saved: Any, most: int) -> Structure:
    """A structure from JSON, vectors in it of at most so many entries; a dataclass becomes a dict.

    Raises:
        SavingError: it is none.
    """
    match saved:
        case None:
            return None
        case ["vector", list(shape)] if all(type(n) is int and n >= 0 for n in shape) and prod(shape) <= most:
            return VectorOf(tuple(shape))
        case ["tuple", list(items)]:
            return TupleOf(tuple(read_structure(item, most) for item in items))
        case ["list", list(items)]:
            return ListOf(tuple(read_structure(item, most) for item in items))
        case ["dict", list(keys), list(items)] if len(keys) == len(items):
            return DictOf(tuple(map(read_value, keys)), tuple(read_structure(item, most) for item in items))
        case ["fields", list(keys), list(items)] if len(keys) == len(items) and all(map(_is_name, keys)):
            return DataclassOf(dict, tuple(keys), tuple(read_structure(item, most) for item in items))
    raise SavingError("a structure of inputs or outputs is damaged")


def _is_name(key: Any) -> bool:
    return isinstance(key, str) and key.isidentifier()


def write_calling(graph: Graph) -> dict[str, Any]:
    """How a graph is called where inputs are grouped, and what packed code of it makes flat."""
    found: dict[str, Any] = {}
    if graph.grouping:
        found["arguments"] = [[a.name, a.code, write_structure(a.structure)] for a in graph.grouping]
    if (made := graph.packing) is not None:
        found["packing"] = [list(made.x), list(made.v), _write_results(made.results)]
    return found


def _write_results(results: Any) -> Any:
    if isinstance(results, Part):
        return {"kind": results.kind, "count": results.count}
    return [_write_results(part) for part in results]


def read_calling(
    saved: dict[str, Any], inputs: int, outputs: int
) -> tuple[tuple[Argument, ...], Packing | None]:
    """The arguments and the packing of a graph with so many inputs and outputs.

    Raises:
        SavingError: they do not belong to such a graph.
    """
    arguments = tuple(_argument(entry, inputs) for entry in _list(saved.get("arguments", [])))
    if arguments and sum(leaves(a.structure) for a in arguments) != inputs:
        raise SavingError(f"the arguments do not hold the {inputs} inputs")
    made = saved.get("packing")
    if made is None:
        return arguments, None
    match made:
        case [list(x), list(v), results]:
            for places in (x, v):
                known = all(type(k) is int and 0 <= k < inputs for k in places)
                if not known or len(set(places)) < len(places):
                    raise SavingError("the packing names inputs that the graph does not have")
            read, count = _read_results(results)
            if count == outputs:
                return arguments, Packing(tuple(x), tuple(v), read)
    raise SavingError("the packing of the graph is damaged")


def _list(saved: Any) -> list[Any]:
    if not isinstance(saved, list):
        raise SavingError("the arguments of the graph are damaged")
    return saved


def _argument(saved: Any, inputs: int) -> Argument:
    match saved:
        case [str(name), str(code), structure]:
            return Argument(name, read_structure(structure, inputs), code)
    raise SavingError("an argument of the graph is damaged")


def _read_results(saved: Any) -> tuple[Any, int]:
    """The results, and how many outputs they stand for."""
    match saved:
        case {"kind": "value" | "vector" | "matrix" as kind, "count": int(count)} if count >= 0:
            return Part(kind, count), count
        case list(items):
            found = [_read_results(item) for item in items]
            return tuple(part for part, _ in found), sum(count for _, count in found)
    raise SavingError("the packing of the graph is damaged")
