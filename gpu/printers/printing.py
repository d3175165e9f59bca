"""What the rules of ops for CuPy may ask of the printer of their module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from symad.core.dims import Dim
from symad.core.graph import Node
from symad.gpu.printers.kernels import Kernels
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.numpy_arrays.texts import Name

if TYPE_CHECKING:
    from numpy.typing import NDArray

Piece = tuple[tuple[int, ...], tuple[Dim, ...]] | None
"""The part of an array that a view shows: axes with a fixed position, and the positions; None for all."""

if TYPE_CHECKING:

    class CuPyPrinting(Printing, Protocol):
        """A `CuPyPrinter`."""

        kernels: Kernels
        """The kernels of the module."""
        accumulator: str
        """The type in which sums are computed."""
        as_given: set[Node]
        """The inputs that are read in the type in which they are given."""
        host: set[Node]
        """The nodes whose values are numbers on the host."""
        pieces: dict[Node, list[Piece]]
        """The parts of arrays that are results, by the node of the array."""
        sites: list[tuple[str, bool, str]]
        """Places where kernels check indices: the error, whether negative indices are allowed, the axis."""
        rows_known: dict[tuple[str, ...], tuple[dict[Node, str], str]]
        """Checked row numbers, by the names of the arrays that they were checked in."""

        def on_device(self, node: Node) -> Sequence[str]:
            """The arguments of a kernel; if all are numbers, one becomes an array."""

        def array_text(self, node: Node) -> str:
            """The value as an array, even if it is a number on the host."""

        def type_of(self, node: Node) -> str:
            """The type of the array that holds a node's value, as text."""

        def flag_name(self) -> str:
            """The name of the array in which kernels record wrong indices."""

        def constant_array(self, array: NDArray[Any], dtype: str | None = None) -> Name:
            """The name of a constant array, of the program's type or another."""

        def constant_source(self, text: str) -> str:
            """The name of a module-level string that holds the source of kernels."""

else:  # plum dispatches on the op and the library
    CuPyPrinting = Any
