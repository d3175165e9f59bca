"""The shared parts of an array module: names, dimensions, constants, helper functions, imports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy

from symad.core.dims import Dim
from symad.core.graph import Graph, Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.modules.names import Names, identifier
from symad.numeric.numpy_arrays.texts import Name
from symad.numeric.targets.constants import constant_text
from symad.numeric.targets.dimensions import dimension
from symad.numeric.targets.target import Level
from symad.ops.basic.sources import Constant, Dimension


class ModuleParts:
    """The parts of one module outside of its function, and the names that are taken."""

    def __init__(self, graph: Graph, library: ArrayLibrary, dtype: str) -> None:
        """Begin a module for a library and a floating-point type."""
        self.library = library
        self.np = library.prefix
        self.dtype, self.type_text = dtype, library.type_text(dtype)
        self.names = Names()
        self.imports: set[str] = {f"import {library.module} as {library.prefix}"}
        self.helpers: dict[str, str] = {}
        """The source of helper functions, by name."""
        self.constants: dict[str, str] = {}
        """The names of constants, by the expressions that compute them."""
        self.settings: list[str] = []
        """Statements after the constants; the module executes them once."""
        self.symbols = {s: self.names.of(s) for s in (*graph.inputs, *sorted(graph.dims, key=str))}
        """The names of inputs and dimensions."""
        self.sizes: set[sympy.Symbol] = set()
        """The dimensions that statements read so far."""
        self.serial = 0
        """The number of names given to values so far."""

    def preliminaries(self) -> list[str]:
        """The lines before the function: the constants, and statements that prepare them."""
        return [*(f"{name} = {text}" for text, name in self.constants.items()), *self.settings]

    def value_name(self, stem: str = "v") -> Name:
        """A fresh name for an intermediate value."""
        while True:
            self.serial += 1
            if (name := f"{stem}{self.serial}") not in self.names.taken:
                return Name(name, self.serial)

    def called(self, stem: str) -> Name:
        """A fresh name after the name stem; numbered if the stem is empty."""
        if not stem:
            return self.value_name()
        self.serial += 1
        return Name(self.names.unique(stem), self.serial, identifier(stem))

    def dim(self, dim: Dim) -> str:
        """A dimension as an operand of an expression."""
        return str(dim) if isinstance(dim, int) else dimension(dim, self).inside(Level.ATOM)

    def bare(self, dim: Dim) -> str:
        """A dimension as a whole expression, between commas or colons."""
        return str(dim) if isinstance(dim, int) else dimension(dim, self).text

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension, which counts as read from now on."""
        self.sizes.add(symbol)
        return self.symbols[symbol]

    def dims(self, shape: Sequence[Dim]) -> str:
        """A shape as a tuple display."""
        items = [self.bare(d) for d in shape]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"

    def numbers_typed(self, nodes: Sequence[Node], texts: Sequence[str]) -> list[str]:
        """The texts of arguments, with constants and dimensions converted to the dtype.

        The body may broadcast an argument or divide by it, where Python's numbers differ from NumPy's.
        """
        return [
            f"{self.type_text}({t})" if isinstance(n.op, (Constant, Dimension)) else t
            for n, t in zip(nodes, texts, strict=True)
        ]

    def helper(self, name: str, source: str) -> str:
        """Add a helper function to the module. Returns its name."""
        self.helpers[name] = source
        return name

    def constant_array(self, array: np.ndarray) -> Name:
        """Add a constant array to the module. Returns its name."""
        dtype = (
            self.type_text
            if array.dtype.kind == "f" or array.dtype.name == self.dtype
            else f"{self.np}.{array.dtype.name}"
        )
        if array.dtype.kind == "b":
            dtype = "bool"
        return self.constant_text(constant_text(array, dtype, self))

    def constant_text(self, text: str, stem: str = "constant") -> Name:
        """Add a constant to the module by its expression. Returns its name, the same for equal texts."""
        if text not in self.constants:
            self.constants[text] = self.names.unique(f"{stem}_{len(self.constants) + 1}")
        return Name(self.constants[text])
