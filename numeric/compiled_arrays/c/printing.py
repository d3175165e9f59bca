"""What kernels and calls of compiled loops may ask of the printer of their module."""

from __future__ import annotations

from typing import Protocol

from symad.core.graph import Node
from symad.numeric.compiled_arrays.c.c_body import NativeBody
from symad.numeric.compiled_arrays.c.loop_text import LoopText
from symad.numeric.numpy_arrays.printing import InPlacePrinting


class CompiledPrinting(InPlacePrinting, Protocol):
    """A `NativePrinter`."""

    @property
    def real(self) -> str:
        """The C type of numbers."""

    def kernel(
        self, text: str, body: NativeBody, types: str, signature: str = "", suffix: str = ""
    ) -> str:
        """Add a kernel to the module. Returns its name."""

    def loop(self, text: LoopText, source: str) -> str:
        """Add a compiled loop to the module. Returns its name."""

    def type_of(self, node: Node) -> str:
        """The letter of the element type of an array."""
