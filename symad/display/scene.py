"""A laid-out picture as shapes with coordinates in pixels, which `drawing` writes to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from symad.display.labels import INPUT, Family
from symad.display.layout import ROW, Layout, Point, layout
from symad.display.picture import Box, Picture

HEIGHT, MARGIN, LINE = 32.0, 24.0, 17.0
"""The height of a box, the margin around the picture, and the height of a line of values, in pixels."""

INK, GRAY, EDGE = "#1a1a1a", "#444444", "#555555"
ACTIVE = "#c2185b"
"""The color of a step and of the edges through which it is computed."""


@dataclass(frozen=True)
class Rectangle:
    """A box, by its upper left corner; ``number`` is its place among the boxes, or −1 for a legend."""

    x: float
    y: float
    width: float
    height: float
    radius: float
    family: Family
    stroke: float
    tip: str = ""
    number: int = -1
    marked: bool = False


@dataclass(frozen=True)
class TextLine:
    """One line of text; ``anchor`` is "middle" or "start" at x, the base line at y."""

    x: float
    y: float
    text: str
    size: float = 14
    anchor: str = "middle"
    italic: bool = False
    color: str = INK
    latex: str = ""
    since: int = 0
    """The first frame that shows it."""


@dataclass(frozen=True)
class Curve:
    """An edge between two boxes: a smooth curve through points, with an arrow at its end."""

    points: tuple[Point, ...]
    start: int
    end: int
    marked: bool = False

    @property
    def bends(self) -> list[tuple[Point, Point, Point]]:
        """For each piece its two control points and its end (cubic Bézier curves)."""
        return [
            ((x0, y0 + (y1 - y0) / 2), (x1, y1 - (y1 - y0) / 2), (x1, y1))
            for (x0, y0), (x1, y1) in pairwise(self.points)
        ]


Shape: TypeAlias = "Rectangle | TextLine | Curve"


@dataclass(frozen=True)
class Scene:
    """The shapes of a picture, those in front last."""

    name: str
    width: float
    height: float
    shapes: tuple[Shape, ...]

    def frame(self, number: int, active: int, up: bool) -> Scene:
        """Without the words of later frames; a box is marked with the edges into it.

        If ``up``, with the edges out of it, and their arrows point back: adjoints come from the users.
        """
        kept: list[Shape] = []
        for s in self.shapes:
            if isinstance(s, TextLine):
                kept += [s] if s.since <= number else []
            elif isinstance(s, Rectangle):
                kept.append(replace(s, marked=s.number == active >= 0))
            else:
                marked = (s.start if up else s.end) == active >= 0
                points = s.points[::-1] if marked and up else s.points
                kept.append(replace(s, marked=marked, points=points))
        return replace(self, shapes=tuple(kept))


def scene(shown: Picture, since: Sequence[Sequence[int]] = ()) -> Scene:
    """The shapes of a picture; ``since`` holds the first frame of each line of each box."""
    edges = list(dict.fromkeys(shown.edges))
    tall = HEIGHT + LINE * max((len(box.lines) for box in shown.boxes), default=0)
    placed = layout(len(shown.boxes), edges, [box.room for box in shown.boxes], tall + ROW - HEIGHT)
    families = list(dict.fromkeys(b.family for b in shown.boxes if b.family.name))
    wide = max(placed.width, 16.0 + sum(_legend_width(f) for f in families)) + 2 * MARGIN + 30
    high = placed.height + tall + 2 * MARGIN + 64
    left, top = (wide - placed.width) / 2, MARGIN + tall / 2
    shapes: list[Shape] = []
    for k in range(len(shown.boxes)):
        shapes += _edges(placed, k, shown, tall, (left, top))
    for k, box in enumerate(shown.boxes):
        x, y = placed.position[k]
        shapes += _box(box, (x + left, y + top), tall, k, since[k] if since else ())
    return Scene(shown.name, wide, high, (*shapes, *_legend(families, high - MARGIN)))


def _edges(placed: Layout, k: int, shown: Picture, tall: float, origin: Point) -> list[Shape]:
    """The edges that end in a box, side by side: in argument order, or with fewest crossings."""
    entering = [edge for edge in shown.edges if edge[1] == k]
    if not shown.boxes[k].ordered:
        entering.sort(key=lambda edge: placed.route[edge][-2][0])
    middle = (len(entering) - 1) / 2
    space = min(12.0, (shown.boxes[k].width - 16) / (2 * middle)) if middle else 0.0
    made: list[Shape] = []
    for n, edge in enumerate(entering):
        (x, y), *passed, (u, v) = [(x + origin[0], y + origin[1]) for x, y in placed.route[edge]]
        points = [(x, y + tall / 2)]  # straight beside the boxes of a layer, curved between the layers
        points += [(a, b + side) for a, b in passed for side in (-tall / 2, tall / 2)]
        points.append((u + space * (n - middle), v - tall / 2 - 1))
        made.append(Curve(tuple(points), *edge))
    return made


def _box(box: Box, center: Point, tall: float, number: int, since: Sequence[int]) -> list[Shape]:
    x, y = center
    top, radius = y - tall / 2, min(HEIGHT / 2, tall / 2) if box.family is INPUT else 7
    stroke = 2.6 if box.output else 1.4
    first = top + HEIGHT / 2 + (-1 if box.inside else 5)
    made: list[Shape] = [
        Rectangle(x - box.width / 2, top, box.width, tall, radius, box.family, stroke, box.tip, number),
        TextLine(x, first, box.heading, latex=box.latex),
    ]
    if box.inside:
        made.append(TextLine(x, first + 13, box.inside, 12, color=GRAY))
    for k, line in enumerate(box.lines):
        at = since[k] if k < len(since) else 0
        made.append(TextLine(x, top + HEIGHT + LINE * k + 8, line.text, 13, latex=line.latex, since=at))
    if box.result:
        latex = _with_subscript(box.result) if box.latex else ""
        made.append(
            TextLine(x + box.width / 2 + 6, y + 5, box.result, anchor="start", italic=True, latex=latex)
        )
    if box.tag:
        made.append(
            TextLine(
                x - box.width / 2 - 4, y + 4, box.tag, 13, "end", color=GRAY, latex=_with_subscript(box.tag)
            )
        )
    return made


def _with_subscript(name: str) -> str:
    """``s_12`` in LaTeX."""
    stem, _, index = name.partition("_")
    return f"{stem}_{{{index}}}"


def _legend_width(kind: Family) -> float:
    return 6.2 * len(kind.name) + 44


def _legend(families: Sequence[Family], y: float) -> list[Shape]:
    x, made = MARGIN, list[Shape]()
    for kind in families:
        made += [
            Rectangle(x, y - 11, 14, 14, 3, kind, 1),
            TextLine(x + 20, y, kind.name, 12, "start", color=GRAY),
        ]
        x += _legend_width(kind)
    return made
