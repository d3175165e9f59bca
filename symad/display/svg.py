"""Pictures as SVG documents, drawn without any library."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from symad.core.identifiers import visible
from symad.display.scene import ACTIVE, EDGE, Curve, Rectangle, Scene, Shape, TextLine

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
        made += f'<tspan dy="3" font-size="{0.7 * words.size:.1f}">{escape(low.strip("()"))}</tspan>'
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
