"""Ops called directly on arrays: they are lowered for the arrays' shapes, and the code is kept."""

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
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import lower
from symad.ops.basic.sources import input_node, symbol_of
from symad.tracing.wrt import symbol_like

if TYPE_CHECKING:
    from symad.core.arrays import Array


@dataclass(frozen=True)
class Library:
    """The array library of the arguments, and the backend that computes on its arrays."""

    name: str
    xp: ModuleType
    backend: str
    options: Hashable = None
    """Settings on which the printed code depends, besides the graph."""
    device: bool = False
    """Whether kernels compute: with half precisions, any lengths, and positions clamped to the arrays."""


NUMPY = Library("numeric", np, "numpy")
COMPILED = Library("numeric", np, "c")


def inputs_of(shapes: Mapping[str, Shape], others: Sequence[Node] = ()) -> Nodes:
    """Inputs with these names and shapes; a number is appended to a name that another input has."""
    taken = {short_name(symbol_of(node)) for node in others}
    return tuple(input_node(symbol_like(name, shape, taken), shape) for name, shape in shapes.items())


def called(
    inputs: Nodes, outputs: Nodes, dtype: str, values: Sequence[Array], library: Library = NUMPY
) -> list[Array]:
    """The values of the outputs, from the values of the inputs."""
    return list(kernel_of(inputs, outputs, dtype, library)(*values))


@lru_cache(maxsize=256)
def kernel_of(inputs: Nodes, outputs: Nodes, dtype: str, library: Library) -> Kernel:
    """The code of some nodes; equal ops (including their formulas) with equal shapes share it."""
    graph = Graph(inputs, outputs, TupleOf((None,) * len(outputs)), "call")
    return lower(graph, backend=library.backend, dtype=dtype)
