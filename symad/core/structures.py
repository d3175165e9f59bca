"""Structures: the grouping of arguments and of results. A leaf is one array or scalar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

Structure: TypeAlias = "TupleOf | ListOf | DictOf | DataclassOf | VectorOf | None"
"""None is a leaf."""


@dataclass(frozen=True)
class TupleOf:
    """A tuple."""

    items: tuple[Structure, ...]


@dataclass(frozen=True)
class ListOf:
    """A list."""

    items: tuple[Structure, ...]


@dataclass(frozen=True)
class DictOf:
    """A dict."""

    keys: tuple[str, ...]
    items: tuple[Structure, ...]


@dataclass(frozen=True)
class DataclassOf:
    """An instance of a dataclass, or a named tuple."""

    cls: type
    keys: tuple[str, ...]
    items: tuple[Structure, ...]


@dataclass(frozen=True)
class VectorOf:
    """An array of this shape whose entries are scalar inputs, in row-major order; only for arguments."""

    shape: tuple[int, ...]

    @property
    def items(self) -> tuple[Structure, ...]:
        """One leaf for each entry."""
        count = 1
        for length in self.shape:
            count *= length
        return (None,) * count


def leaves(structure: Structure) -> int:
    """The number of leaves of a structure."""
    return 1 if structure is None else sum(leaves(item) for item in structure.items)


def paths(structure: Structure) -> tuple[str, ...]:
    """How Python reads each leaf: ``['loss']`` of a dict, ``[0]`` of a tuple, ``.w`` of a dataclass."""
    if structure is None:
        return ("",)
    if isinstance(structure, DictOf):
        steps = [f"[{key!r}]" for key in structure.keys]
    elif isinstance(structure, DataclassOf):
        steps = [f".{key}" for key in structure.keys]
    else:
        steps = [f"[{k}]" for k in range(len(structure.items))]
    inner = zip(steps, structure.items, strict=True)
    return tuple(step + path for step, item in inner for path in paths(item))


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass or of a class of named tuples; empty for others."""
    if is_dataclass(cls):
        return tuple(f.name for f in fields(cls))
    return tuple(cls._fields) if issubclass(cls, tuple) and hasattr(cls, "_fields") else ()


def classes_in(*structures: Structure) -> tuple[type, ...]:
    """The dataclasses in several structures, each once."""
    found: dict[type, None] = {}
    waiting = list(structures)
    while waiting:
        structure = waiting.pop(0)
        if isinstance(structure, DataclassOf):
            found[structure.cls] = None
        if structure is not None and not isinstance(structure, VectorOf):
            waiting += structure.items
    return tuple(found)


def pack(structure: Structure, values: Sequence[Any]) -> Any:
    """Flat values in the structure a caller expects."""
    return _pack(structure, iter(values))


def _pack(structure: Structure, values: Iterator[Any]) -> Any:
    if structure is None:
        return next(values)
    items = [_pack(item, values) for item in structure.items]
    if isinstance(structure, DictOf):
        return dict(zip(structure.keys, items, strict=True))
    if isinstance(structure, DataclassOf):
        return structure.cls(**dict(zip(structure.keys, items, strict=True)))
    return items if isinstance(structure, ListOf) else tuple(items)
