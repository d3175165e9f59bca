"""The frame of generated modules: imports, helpers, docstrings, names, and the packing of outputs."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import sympy

from symad.core.dims import Dim, Shape, format_shape
from symad.core.graph import DictOf, Structure
from symad.core.identifiers import identifier, printed, short_name
from symad.core.structures import DataclassOf, ListOf, TupleOf
from symad.numeric.box import box_in_words


def frame(
    name: str, imports: Iterable[str], helpers: Iterable[str], blocks: Iterable[Sequence[str]], needs: str
) -> tuple[str, ...]:
    """The source of a module in parts: its docstring and imports, each helper, and the rest.

    ``blocks`` are lines of constants and of the functions of this module alone; the last one is the entry.
    """
    head = "\n".join(
        [
            f'"""{one_line(name)}, printed by symad{one_line(box_in_words())}. Needs {needs}."""',
            "",
            *sorted(imports),
        ]
    )
    rest = "\n\n\n".join("\n".join(block) for block in blocks if block)
    return (*(f"{part.strip()}\n\n\n" for part in (head, *helpers)), f"{rest}\n")


def one_line(text: object) -> str:
    """Text that is safe in a docstring or a C comment: printable, on one line, and unable to end either."""
    kept = "".join(c if c.isprintable() and c not in '"\\' else "_" for c in printed(text))
    return kept.replace("*/", "*_").replace("/*", "/_")[:200]


MAX_SHOWN = 8
"""A summary names at most this many results and arguments.

Origin: it bounds the length of a line.
"""


def summary(
    labels: Sequence[str], results: Sequence[Shape], structure: Structure, given: Iterable[tuple[str, Shape]]
) -> str:
    """A docstring of one line: the results, by roles or shapes, and the names and shapes of the arguments."""
    labels = [*labels, *[""] * (len(results) - len(labels))]
    shown = _first([label or kind_of(shape) for label, shape in zip(labels, results, strict=False)])
    arguments = _first([f"{name} {format_shape(shape)}" for name, shape in given if shape])
    made = shown if structure is None else f"({shown})"
    return f'"""{one_line(f"{made}; {arguments}" if arguments else made)}."""'


def _first(items: Sequence[str]) -> str:
    return ", ".join(items[:MAX_SHOWN]) + (", ..." if len(items) > MAX_SHOWN else "")


def kind_of(shape: Sequence[Dim]) -> str:
    """The description of a result without a name."""
    return f"array {one_line(format_shape(shape))}" if shape else "scalar"


def pack_text(
    structure: Structure, values: Sequence[str], classes: Mapping[type, str] = MappingProxyType({})
) -> str:
    """The expression of the outputs in the graph's structure; ``classes`` gives the names of dataclasses."""
    return _pack_text(structure, iter(values), classes)


def returned(structure: Structure, values: Sequence[str]) -> str:
    """The text after ``return``: a flat tuple of several values has no parentheses."""
    if isinstance(structure, TupleOf) and len(values) > 1 and all(item is None for item in structure.items):
        return ", ".join(values)
    return pack_text(structure, values)


def _pack_text(structure: Structure, values: Iterator[str], classes: Mapping[type, str]) -> str:
    if structure is None:
        return next(values)
    items = [_pack_text(item, values, classes) for item in structure.items]
    if isinstance(structure, DataclassOf):
        pairs = (f"{key}={item}" for key, item in zip(structure.keys, items, strict=True))
        return f"{classes.get(structure.cls, 'dict')}({', '.join(pairs)})"
    if isinstance(structure, ListOf):
        return f"[{', '.join(items)}]"
    if isinstance(structure, DictOf):
        pairs = (f"{_key(key)}: {item}" for key, item in zip(structure.keys, items, strict=True))
        return "{" + ", ".join(pairs) + "}"
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


def _key(key: object) -> str:
    return repr(key) if type(key) in (str, int, bool) else repr(str(key))


# ---- names: safe Python identifiers, as close as possible to what the user wrote -----------------


RESERVED = {
    *keyword.kwlist,
    *keyword.softkwlist,
    *dir(builtins),
    "np",
    "numpy",
    "cp",
    "cupy",
    "math",
    "types",
    "scipy",
}


_identifier = lru_cache(maxsize=1024)(identifier)
"""The identifier of a name; cached, since thousands of values have few different name stems."""


class Names:
    """Unique identifiers for the symbols and values of one generated module."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        """``reserved`` are names that the generated code uses itself."""
        self.taken = RESERVED | set(reserved)
        self._of: dict[sympy.Basic, str] = {}
        self._numbers: dict[str, int] = {}
        """For each name that was taken, the first number that has not been tried."""

    def unique(self, wanted: str) -> str:
        """A new identifier, ``wanted`` if it is free."""
        name = self.free(wanted)
        self.taken.add(name)
        return name

    def free(self, wanted: str) -> str:
        """The identifier that `unique` would give; it is not reserved."""
        base = _identifier(wanted)
        name = f"{base}_" if base in RESERVED else base
        if name not in self.taken:
            return name
        number = self._numbers.get(base, 2)
        while (name := f"{base}_{number}") in self.taken:
            number += 1
        self._numbers[base] = number
        return name

    def of(self, symbol: sympy.Basic) -> str:
        """The identifier of a symbol, always the same one."""
        if symbol not in self._of:
            self._of[symbol] = self.unique(short_name(symbol))
        return self._of[symbol]
