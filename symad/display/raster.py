"""Pictures as PNG and PDF. They need matplotlib, the extra ``draw``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from symad.display.scene import ACTIVE, EDGE, Curve, Rectangle, Scene, Shape, TextLine
from symad.errors import EvaluationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PIXELS = 96
"""Pixels of a scene in an inch."""


def write_raster(pages: Sequence[Scene], path: Path) -> None:
    """Pictures in a PDF file, each on a page; or one in a PNG file, at twice the size of the scene."""
    figures = list(map(figure_of, pages))
    if path.suffix.lower() == ".png":
        return figures[0].savefig(path, dpi=2 * PIXELS)
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(path) as document:
        for figure in figures:
            document.savefig(figure)


def figure_of(shown: Scene) -> Figure:
    """The picture as a figure of matplotlib.

    Raises:
        EvaluationError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EvaluationError(
            "PNG and PDF need matplotlib: pip install 'symad[draw]'; .svg and .tex files need nothing"
        ) from error
    figure = Figure(figsize=(shown.width / PIXELS, shown.height / PIXELS))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, shown.width), ylim=(shown.height, 0))
    axes.set_axis_off()
    for order, shape in enumerate(shown.shapes):
        _add(axes, shape, order)
    return figure


def _add(axes: Axes, shape: Shape, order: int) -> None:
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    if isinstance(shape, TextLine):
        anchor = {"middle": "center", "start": "left", "end": "right"}[shape.anchor]
        axes.text(
            shape.x, shape.y, _mathtext(shape), fontsize=0.66 * shape.size, ha=anchor, color=shape.color,
            style="italic" if shape.italic else "normal", zorder=order + 2, parse_math=bool(shape.latex),
        )  # fmt: skip
    elif isinstance(shape, Rectangle):
        axes.add_patch(
            FancyBboxPatch(
                (shape.x, shape.y), shape.width, shape.height, facecolor=shape.family.fill,
                boxstyle=f"round,pad=0,rounding_size={shape.radius}", zorder=order + 2,
                edgecolor=ACTIVE if shape.marked else shape.family.line,
                linewidth=2.4 if shape.marked else 0.75 * shape.stroke,
                linestyle="-" if shape.family.name else "--",
            )
        )  # fmt: skip
    else:
        axes.add_patch(
            FancyArrowPatch(
                path=_path(shape), arrowstyle="-|>", mutation_scale=8, zorder=order + 2,
                color=ACTIVE if shape.marked else EDGE, linewidth=1.8 if shape.marked else 1.0,
                shrinkA=0, shrinkB=0,
            )
        )  # fmt: skip


def _path(curve: Curve) -> Path:
    from matplotlib.path import Path as Outline

    points = [curve.points[0], *(p for bend in curve.bends for p in bend)]
    return Outline(points, [Outline.MOVETO, *[Outline.CURVE4] * (len(points) - 1)])


def _mathtext(words: TextLine) -> str:
    """Text with what follows an underscore as a subscript."""
    if not words.latex:
        return words.text
    text = words.text.replace("\\", r"\\").replace("$", r"\$")
    low = re.compile(r"_(\(\w[^()]*\)|\w+)")
    return low.sub(lambda found: "$_{" + re.sub("[_ ]", r"\\ ", found[1].strip("()")) + "}$", text)
