"""Structures, arguments and packings in saved graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

from symad.core.arguments import Argument, PackedResult, Packing, Results
from symad.core.graph import Graph
from symad.core.signatures import Json
from symad.core.structures import (
    DataclassOf,
    DictOf,
    ListOf,
    Structure,
    TupleOf,
    VectorOf,
    field_names,
    leaves,
)
from symad.errors import SavingError
from symad.saving.saved_values import read_value, write_value

Classes: TypeAlias = Sequence[type]


def write_structure(structure: Structure) -> Json:
    """A structure as JSON. For a dataclass its name and the names of its fields are stored."""
    if structure is None:
        return None
    if isinstance(structure, VectorOf):
        return ["vector", list(structure.shape)]
    items = [write_structure(item) for item in structure.items]
    if isinstance(structure, DictOf):
        return ["dict", [write_value(k) for k in structure.keys], items]
    if isinstance(structure, DataclassOf):
        return ["class", structure.cls.__qualname__, list(structure.keys), items]
    return ["list" if isinstance(structure, ListOf) else "tuple", items]


def read_structure(saved: Json, most: int, classes: Classes = ()) -> Structure:
    """A structure from JSON, with at most ``most`` entries in a vector; ``classes`` are its dataclasses.

    Raises:
        SavingError: it is not a structure, or a class is missing.
    """
    match saved:
        case None:
            return None
        case ["vector", list(shape)] if all(type(n) is int and n >= 0 for n in shape) and prod(shape) <= most:
            return VectorOf(tuple(shape))
        case ["tuple", list(items)]:
            return TupleOf(tuple(read_structure(item, most, classes) for item in items))
        case ["list", list(items)]:
            return ListOf(tuple(read_structure(item, most, classes) for item in items))
        case ["dict", list(keys), list(items)] if len(keys) == len(items):
            parts = tuple(read_structure(item, most, classes) for item in items)
            return DictOf(tuple(map(read_value, keys)), parts)
        case ["class", str(name), list(keys), list(items)] if len(keys) == len(items):
            if not all(map(_is_name, (name, *keys))):
                raise SavingError("a structure of inputs or outputs is damaged")
            parts = tuple(read_structure(item, most, classes) for item in items)
            return DataclassOf(_class_of(name, keys, classes), tuple(keys), parts)
    raise SavingError("a structure of inputs or outputs is damaged")


def _is_name(text: object) -> bool:
    return isinstance(text, str) and all(
        w.isidentifier() for w in text.replace("<locals>", "locals").split(".")
    )


def _class_of(name: str, keys: Sequence[str], classes: Classes) -> type:
    """The class of this name among those given, which has these fields."""
    short = name.rpartition(".")[2]
    found = [cls for cls in classes if cls.__qualname__ == name]
    if not found:
        raise SavingError(
            f"the graph takes or returns a {name}, a class with the fields {', '.join(keys)}; a file imports "
            f"nothing, so give the class: symad.load(path, classes=[{short}])"
        )
    if (has := field_names(found[0])) != tuple(keys):
        raise SavingError(
            f"the {name} of the file has the fields {', '.join(keys)}, but the class given has "
            f"{', '.join(has)}"
        )
    return found[0]


def write_calling(graph: Graph) -> dict[str, Json]:
    """The arguments of a graph if inputs are grouped, and what packed code of it flattens."""
    found: dict[str, Json] = {}
    if graph.grouping:
        found["arguments"] = [[a.name, a.code, write_structure(a.structure)] for a in graph.grouping]
    if (made := graph.packing) is not None:
        found["packing"] = [list(made.x), list(made.v), _write_results(made.results)]
    return found


def _write_results(results: Results) -> Json:
    if isinstance(results, PackedResult):
        return {"kind": results.kind, "count": results.count}
    return [_write_results(part) for part in results]


def read_calling(
    saved: Mapping[str, Json], inputs: int, outputs: int, classes: Classes = ()
) -> tuple[tuple[Argument, ...], Packing | None]:
    """The arguments and the packing of a graph with these numbers of inputs and outputs.

    Raises:
        SavingError: they do not belong to such a graph.
    """
    arguments = tuple(_argument(entry, inputs, classes) for entry in _list(saved.get("arguments", [])))
    if arguments and sum(leaves(a.structure) for a in arguments) != inputs:
        raise SavingError(f"the arguments do not contain the {inputs} inputs")
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


def _list(saved: Json) -> list[Json]:
    if not isinstance(saved, list):
        raise SavingError("the arguments of the graph are damaged")
    return saved


def _argument(saved: Json, inputs: int, classes: Classes) -> Argument:
    match saved:
        case [str(name), str(code), structure]:
            return Argument(name, read_structure(structure, inputs, classes), code)
    raise SavingError("an argument of the graph is damaged")


def _read_results(saved: Json) -> tuple[Results, int]:
    """The results, and the number of outputs in them."""
    match saved:
        case {"kind": "value" | "vector" | "matrix" as kind, "count": int(count)} if count >= 0:
            return PackedResult(kind, count), count
        case list(items):
            found = [_read_results(item) for item in items]
            return tuple(part for part, _ in found), sum(count for _, count in found)
    raise SavingError("the packing of the graph is damaged")
