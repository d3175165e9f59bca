"""Sorting positions for libraries with NumPy's interface."""

from __future__ import annotations

from typing import Any

from symad.core.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Text, Texts, emit
from symad.ops.arrays.ordering import SortingPositions


@emit.dispatch
def sorting_positions_emit(
    op: SortingPositions, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    """Integers where they are read as row numbers only, numbers of the program's type otherwise."""
    order = f"{printer.np}.argsort({args[0]}, axis=-1, kind='stable')"
    return order if node in printer.row_numbers else f"{order}.astype({printer.np}.{printer.dtype})"
