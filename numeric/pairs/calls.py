"""Ops on arrays at once: lowered for their shapes, and called. The code for an op is kept."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from symad.core.dims import Shape
from symad.core.graph import Graph, Node, TupleOf
from symad.core.identifiers import short_name
from symad.core.questions import Nodes
from symad.derivatives.wrt import symbol_like
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import lower
from symad.ops.arrays.sources import input_node, symbol_of

if TYPE_CHECKING:
    from symad.core.arrays import Array


@dataclass(frozen=True)
class Library:
    """The library whose arrays are given, and the backend that computes with them."""

    name: str
    xp: ModuleType
    backend: str
    options: Hashable = None
    """What the printed code depends on besides the graph."""
    device: bool = False
    """Whether kernels compute: half precisions as they are, all lengths, positions clamped to arrays."""


NUMPY = Library("numeric", np, "numpy")
COMPILED = Library("numeric", np, "c")


def inputs_of(shapes: Mapping[str, Shape], others: Sequence[Node] = ()) -> Nodes:
    """Inputs of these names and shapes; a name that another input has gets a number."""
    taken = {short_name(symbol_of(node)) for node in others}
    return tuple(input_node(symbol_like(name, shape, taken), shape) for name, shape in shapes.items())


def called(
    inputs: Nodes, outputs: Nodes, dtype: str, values: Sequence[Array], library: Library = NUMPY
) -> list[Array]:
    """The outputs at these values of the inputs."""
    return list(kernel_of(inputs, outputs, dtype, library)(*values))


@lru_cache(maxsize=256)
def kernel_of(inputs: Nodes, outputs: Nodes, dtype: str, library: Library) -> Kernel:
    """The code; nodes are equal where ops (with the formulas in them) and shapes are."""
    graph = Graph(inputs, outputs, TupleOf((None,) * len(outputs)), "call")
    return lower(graph, backend=library.backend, dtype=dtype)
