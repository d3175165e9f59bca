r"""Pictures as TikZ, for ``\input`` in a paper or in slides that load the package ``tikz``."""

from __future__ import annotations

from symad.core.identifiers import visible
from symad.display.latex import escaped
from symad.display.scene import ACTIVE, EDGE, Curve, Rectangle, Scene, Shape, TextLine

ANCHORS = {"middle": "base", "start": "base west", "end": "base east"}


def to_tikz(shown: Scene) -> str:
    """One tikzpicture, in pixels of 0.75 pt."""
    body = "\n".join(f"  {_shape(s)}" for s in shown.shapes)
    options = r"x=0.75pt, y=-0.75pt, font=\sffamily\small"
    return visible(f"\\begin{{tikzpicture}}[{options}]\n{body}\n\\end{{tikzpicture}}%\n")


def _color(value: str) -> str:
    """``#1f5fbf`` as a color of TikZ without a definition."""
    red, green, blue = (int(value[k : k + 2], 16) for k in (1, 3, 5))
    return f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"


def _shape(shape: Shape) -> str:
    if isinstance(shape, Rectangle):
        return _rectangle(shape)
    return _words(shape) if isinstance(shape, TextLine) else _curve(shape)


def _rectangle(box: Rectangle) -> str:
    line, width = (ACTIVE, 2.4) if box.marked else (box.family.line, 0.75 * box.stroke)
    dashes = "" if box.family.name else ", dashed"
    return (
        rf"\draw[rounded corners={0.75 * box.radius:.1f}pt, fill={_color(box.family.fill)}, "
        rf"draw={_color(line)}, line width={width:.2f}pt{dashes}] ({box.x:.1f},{box.y:.1f}) rectangle "
        f"({box.x + box.width:.1f},{box.y + box.height:.1f});"
    )


def _words(words: TextLine) -> str:
    text = f"${words.latex}$" if words.latex else escaped(words.text)
    size = r"\scriptsize " if words.size < 12 else r"\footnotesize " if words.size < 14 else ""
    return (
        rf"\node[anchor={ANCHORS[words.anchor]}, inner sep=0pt, text={_color(words.color)}] "
        rf"at ({words.x:.1f},{words.y:.1f}) {{{size}{chr(92) + 'itshape ' if words.italic else ''}{text}}};"
    )


def _curve(curve: Curve) -> str:
    (x, y), *_ = curve.points
    path = "".join(
        f" .. controls ({a:.1f},{b:.1f}) and ({c:.1f},{d:.1f}) .. ({e:.1f},{f:.1f})"
        for (a, b), (c, d), (e, f) in curve.bends
    )
    color, width = (ACTIVE, 1.8) if curve.marked else (EDGE, 1.0)
    return rf"\draw[->, draw={_color(color)}, line width={width}pt] ({x:.1f},{y:.1f}){path};"
