"""``g.draw("f.svg")``: pictures of graphs as SVG, PNG, PDF and TikZ, or as DOT text for Graphviz."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from symad.core.graph import Graph
from symad.core.identifiers import visible
from symad.display.latex import escaped
from symad.display.picture import Picture, picture
from symad.display.scene import ACTIVE, EDGE, Curve, Rectangle, Scene, Shape, TextLine, scene
from symad.errors import EvaluationError
from symad.saving.atomic_files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---- pictures as PNG and PDF, by matplotlib (the extra draw) -------------------------------------


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
            "PNG and PDF need matplotlib (pip install matplotlib); .svg and .tex files need nothing"
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


# ---- pictures as SVG documents, drawn without any library ----------------------------------------


LEAST = 0.95
"""The least scale of a picture in a page: smaller text is not read, and the page scrolls instead."""


def to_svg(shown: Scene, frames: bool = False) -> str:
    """The picture as a standalone SVG document.

    With ``frames`` every shape carries the data of a page that shows one frame after the other, on a
    transparent ground.
    """
    wide, high = f"{shown.width:.0f}", f"{shown.height:.0f}"
    ground = "" if frames else f'<rect width="{wide}" height="{high}" fill="#ffffff"/>\n'
    least = f' style="min-width:{LEAST * shown.width:.0f}px;min-height:{LEAST * shown.height:.0f}px"'
    marks = "".join(_marker(name, color) for name, color in (("head", EDGE), ("marked", ACTIVE)))
    return visible(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
        f'{least if frames else ""} font-size="14" font-family="Helvetica, Arial, DejaVu Sans, sans-serif">\n'
        f"<title>{escape(shown.name)}</title>\n{ground}<defs>{marks}</defs>\n"
        + "\n".join(_grouped(shown, frames))
        + "\n</svg>\n"
    )


def _grouped(shown: Scene, frames: bool) -> list[str]:
    """The shapes; a box and its words are a group with a tooltip."""
    made, inside = [], False
    for shape in shown.shapes:
        if inside and not isinstance(shape, TextLine):
            made.append("</g>")
        inside = inside and isinstance(shape, TextLine)
        if isinstance(shape, Rectangle) and shape.number >= 0:
            made.append(f"<g><title>{escape(shape.tip)}</title>")
            inside = True
        made.append(_shape(shape, frames))
    return [*made, "</g>"] if inside else made


def _marker(name: str, color: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0,0.8 L8,4 L0,7.2 z" fill="{color}"/></marker>'
    )


def _shape(shape: Shape, frames: bool) -> str:
    if isinstance(shape, Rectangle):
        return _rectangle(shape, frames)
    return _words(shape, frames) if isinstance(shape, TextLine) else _curve(shape, frames)


def _rectangle(box: Rectangle, frames: bool) -> str:
    dashes = "" if box.family.name else ' stroke-dasharray="4 3"'
    data = f' class="box" data-box="{box.number}"' if frames and box.number >= 0 else ""
    line, stroke = (ACTIVE, 3.2) if box.marked else (box.family.line, box.stroke)
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.0f}" '
        f'rx="{box.radius:.0f}" fill="{box.family.fill}" stroke="{line}" stroke-width="{stroke}"{dashes}'
        f"{data}/>"
    )


def _words(words: TextLine, frames: bool) -> str:
    data = f' data-since="{words.since}"' if frames and words.since else ""
    outside = ' class="outside"' if frames and words.anchor != "middle" else ""
    style = ' font-style="italic"' if words.italic else ""
    inner = _subscripts(words) if words.latex else escape(words.text)
    return (
        f'<text x="{words.x:.1f}" y="{words.y:.1f}" text-anchor="{words.anchor}" '
        f'font-size="{words.size:.0f}" fill="{words.color}"{style}{data}{outside}>{inner}</text>'
    )


def _subscripts(words: TextLine) -> str:
    """Text with what follows an underscore set lower and smaller."""
    made, *rest = re.split(r"_(\(\w[^()]*\)|\w+)", words.text)
    made = escape(made)
    for low, after in zip(rest[::2], rest[1::2], strict=True):
        made += f'<tspan dy="3" font-size="{0.8 * words.size:.1f}">{escape(low.strip("()"))}</tspan>'
        made += f'<tspan dy="-3">{escape(after)}</tspan>' if after else ""
    return made


def _curve(curve: Curve, frames: bool) -> str:
    (x, y), *_ = curve.points
    path = f"M{x:.1f},{y:.1f}" + "".join(
        f" C{a:.1f},{b:.1f} {c:.1f},{d:.1f} {e:.1f},{f:.1f}" for (a, b), (c, d), (e, f) in curve.bends
    )
    data = f' class="edge" data-start="{curve.start}" data-end="{curve.end}"' if frames else ""
    color, width, head = (ACTIVE, "2.4", "marked") if curve.marked else (EDGE, "1.3", "head")
    style = f'fill="none" stroke="{color}" stroke-width="{width}"'
    return f'<path d="{path}" {style} marker-end="url(#{head})"{data}/>'


# ---- pictures as TikZ, for \input in a paper or in slides that load tikz and amsmath -------------


ANCHORS = {"middle": "base", "start": "base west", "end": "base east"}


def to_tikz(shown: Scene) -> str:
    """One tikzpicture, in pixels of 0.75 pt."""
    body = "\n".join(f"  {_tikz_shape(s)}" for s in shown.shapes)
    options = r"x=0.75pt, y=-0.75pt, font=\sffamily\small"
    return visible(f"\\begin{{tikzpicture}}[{options}]\n{body}\n\\end{{tikzpicture}}%\n")


def _color(value: str) -> str:
    """``#1f5fbf`` as a color of TikZ without a definition."""
    red, green, blue = (int(value[k : k + 2], 16) for k in (1, 3, 5))
    return f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"


def _tikz_shape(shape: Shape) -> str:
    if isinstance(shape, Rectangle):
        return _tikz_rectangle(shape)
    return _tikz_words(shape) if isinstance(shape, TextLine) else _tikz_curve(shape)


def _tikz_rectangle(box: Rectangle) -> str:
    line, width = (ACTIVE, 2.4) if box.marked else (box.family.line, 0.75 * box.stroke)
    dashes = "" if box.family.name else ", dashed"
    return (
        rf"\draw[rounded corners={0.75 * box.radius:.1f}pt, fill={_color(box.family.fill)}, "
        rf"draw={_color(line)}, line width={width:.2f}pt{dashes}] ({box.x:.1f},{box.y:.1f}) rectangle "
        f"({box.x + box.width:.1f},{box.y + box.height:.1f});"
    )


def _tikz_words(words: TextLine) -> str:
    text = f"${words.latex}$" if words.latex else escaped(words.text)
    size = r"\scriptsize " if words.size < 12 else r"\footnotesize " if words.size < 14 else ""
    return (
        rf"\node[anchor={ANCHORS[words.anchor]}, inner sep=0pt, text={_color(words.color)}] "
        rf"at ({words.x:.1f},{words.y:.1f}) {{{size}{chr(92) + 'itshape ' if words.italic else ''}{text}}};"
    )


def _tikz_curve(curve: Curve) -> str:
    (x, y), *_ = curve.points
    path = "".join(
        f" .. controls ({a:.1f},{b:.1f}) and ({c:.1f},{d:.1f}) .. ({e:.1f},{f:.1f})"
        for (a, b), (c, d), (e, f) in curve.bends
    )
    color, width = (ACTIVE, 1.8) if curve.marked else (EDGE, 1.0)
    return rf"\draw[->, draw={_color(color)}, line width={width}pt] ({x:.1f},{y:.1f}){path};"


class Drawing(str):
    """A picture as the text of an SVG document, which notebooks display."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: Path | str) -> None:
        """Write it to a file."""
        write_text(Path(path), str(self))


def draw(graph: Graph, path: Path | str | None = None) -> Drawing | None:
    """A picture of a graph; without a path for notebooks.

    Colors distinguish op families; numbers are written inside the operations that use them; the shape of
    every array is written in its box, the state s_k of the tables to the left of it; a value used several
    times has several edges. In a browser each box shows its formula as a tooltip. For graphs with more than
    80 nodes the first and the last 40 are drawn. ``graph.explain(x=2.0).draw("f.svg")`` has the values and
    the adjoints in the boxes.

    Args:
        graph: any graph.
        path: ``.svg`` for browsers, ``.png`` and ``.pdf`` (these need matplotlib), ``.tex`` for papers that
            load the packages tikz and amsmath, ``.dot`` for Graphviz.

    Raises:
        EvaluationError: the name has another ending, or matplotlib is missing.
    """
    return drawn(picture(graph), path)


def drawn(shown: Picture, path: Path | str | None) -> Drawing | None:
    """A picture written to a path, or as a document."""
    if path is None:
        return Drawing(to_svg(scene(shown)))
    target = Path(path)
    if target.suffix.lower() == ".dot":
        write_text(target, to_dot(shown))
    else:
        write_scenes([scene(shown)], target)
    return None


def write_scenes(shown: Sequence[Scene], target: Path) -> None:
    """A scene, or the pages of a PDF, written to a file in the format that its name says."""
    kind = target.suffix.lower()
    if kind not in (".svg", ".tex", ".png", ".pdf"):
        raise EvaluationError(f"draw writes .svg, .png, .pdf, .tex and .dot files, not {target.name}")
    if kind in (".png", ".pdf"):
        write_raster(shown, target)
    else:
        write_text(target, to_svg(shown[0]) if kind == ".svg" else to_tikz(shown[0]))


def to_dot(shown: Picture) -> str:
    """The picture as a Graphviz digraph."""
    lines = [
        f"digraph {_quoted(shown.name)} {{",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10, color="#555555"];',
    ]
    for k, box in enumerate(shown.boxes):
        lines.append(
            f"  n{k} [label={_quoted(box.label)}, tooltip={_quoted(box.tip)}, "
            f'fillcolor="{box.family.fill}", color="{box.family.line}"];'
        )
        if box.output:
            lines.append(f"  out{k} [label={_quoted(box.output)}, shape=plaintext, style=solid];")
            lines.append(f"  n{k} -> out{k} [label={_quoted(box.shape)}];")
    for a, b in shown.edges:
        lines.append(f"  n{a} -> n{b} [label={_quoted(shown.boxes[a].shape)}];")
    return visible("\n".join([*lines, "}"]) + "\n")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
