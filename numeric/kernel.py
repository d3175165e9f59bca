"""A lowered function: its source text, compiled and ready to call."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

_numbers = count(1)


@dataclass(frozen=True)
class Kernel:
    """A generated function. ``source`` is a standalone module; its last function is the entry."""

    name: str
    source: str
    function: Callable[..., Any] = field(repr=False)
    namespace: dict[str, Any] = field(repr=False, default_factory=dict)
    c_source: str = field(repr=False, default="")
    """The standalone C99 file of backend "c"; empty for others."""
    c_header: str = field(repr=False, default="")
    """Its header."""

    def __call__(self, *values: Any) -> Any:
        """The function at these values."""
        return self.function(*values)

    def save(self, path: str | Path) -> None:
        """Write the source as a file that needs no symad; of backend "c" as .c or .h if named so."""
        chosen = {".c": self.c_source, ".h": self.c_header}.get(Path(path).suffix) or self.source
        Path(path).write_text(chosen, encoding="utf-8")


def compile_source(name: str, source: str) -> Kernel:
    """Compile generated source; tracebacks show its lines."""
    filename = f"<symad {name} {next(_numbers)}>"
    namespace: dict[str, Any] = {"__name__": f"symad_generated_{name}"}
    exec(compile(source, filename, "exec"), namespace)  # text made by our own printers only
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return Kernel(name, source, namespace[name], namespace)
