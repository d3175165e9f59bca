"""What graphs show of themselves, as `symad.display` makes it: tables at a point, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol


class Readable(Protocol):
    """Text for terminals, pages and papers."""

    def to_text(self) -> str:
        """Plain text, columns aligned."""

    def to_markdown(self) -> str:
        """Markdown pipe tables."""

    def to_latex(self) -> str:
        """LaTeX for any document class."""


class Tabular(Readable, Protocol):
    """A titled table; cells are numbers, arrays, SymPy objects, text or None."""

    @property
    def title(self) -> str:
        """What the table shows."""

    @property
    def headers(self) -> Sequence[Any]:
        """The heads of the columns."""

    @property
    def rows(self) -> Sequence[Sequence[Any]]:
        """A cell for each column."""


class Explained(Readable, Protocol):
    """The tables of ``g.explain(...)``: printed as aligned text, displayed by notebooks."""

    @property
    def title(self) -> str:
        """The graph and the point."""

    @property
    def tables(self) -> Sequence[Tabular]:
        """The steps of the graph in each mode."""

    def play(self, path: Path | str, mode: str = "") -> list[Path]:
        """Every mode step by step: a page (.html), or frames (.svg, .png, .pdf, .tex)."""

    def draw(self, path: Path | str | None = None) -> Drawn | None:
        """The graph with values and adjoints in its boxes."""


class Drawn(Protocol):
    """The picture of ``g.draw()``: the text of an SVG document, which notebooks display."""

    def save(self, path: Path | str) -> None:
        """Write it to a file."""
