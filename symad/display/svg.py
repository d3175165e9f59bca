"""Pictures as SVG documents, drawn without any library."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from symad.core.escaping import visible
from symad.display.labels import INPUT, Family
from symad.display.layout import Layout, layout
from symad.display.picture import Box, Picture

HEIGHT, MARGIN = 32.0, 24.0
"""The height of a box and the margin around the picture, in pixels."""


def to_svg(shown: Picture) -> str:
    """The picture as a standalone SVG document."""
    edges = list(dict.fromkeys(shown.edges))
    placed = layout(len(shown.boxes), edges, [box.room for box in shown.boxes])
    families = list(dict.fromkeys(b.family for b in shown.boxes if b.family.name))
    wide = max(placed.width, 16.0 + sum(_legend_width(f) for f in families)) + 2 * MARGIN + 30
    high = placed.height + HEIGHT + 2 * MARGIN + 64
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" '
        f'width="{wide:.0f}" height="{high:.0f}" font-size="14" '
        'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">',
        f"<title>{escape(shown.name)}</title>",
        f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0.8 L8,4 L0,7.2 z" fill="#555555"/>'
        "</marker></defs>",
    ]
    shift = (wide - placed.width) / 2
    lines += [f'<g transform="translate({shift:.1f},{MARGIN + HEIGHT / 2:.1f})">']
    for k in range(len(shown.boxes)):
        lines += _edges(placed, k, shown)
    lines += [_box(box, placed.position[k]) for k, box in enumerate(shown.boxes)]
    lines += ["</g>", *_legend(families, high - MARGIN), "</svg>"]
    return visible("\n".join(lines) + "\n")


def _edges(placed: Layout, k: int, shown: Picture) -> list[str]:
    """The edges that end in a box, side by side: in argument order, or with fewest crossings."""
    entering = [edge for edge in shown.edges if edge[1] == k]
    if not shown.boxes[k].ordered:
        entering.sort(key=lambda edge: placed.route[edge][-2][0])
    middle = (len(entering) - 1) / 2
    space = min(12.0, (shown.boxes[k].width - 16) / (2 * middle)) if middle else 0.0
    return [_edge(placed.route[e], space * (n - middle)) for n, e in enumerate(entering)]


def _edge(route: Sequence[tuple[float, float]], shift: float) -> str:
    """A smooth curve through the layers."""
    points = [(route[0][0], route[0][1] + HEIGHT / 2), *route[1:]]
    points[-1] = (points[-1][0] + shift, points[-1][1] - HEIGHT / 2 - 1)
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = (y1 - y0) / 2
        path += f" C{x0:.1f},{y0 + bend:.1f} {x1:.1f},{y1 - bend:.1f} {x1:.1f},{y1:.1f}"
    return f'<path d="{path}" fill="none" stroke="#555555" stroke-width="1.3" marker-end="url(#head)"/>'


def _box(box: Box, center: tuple[float, float]) -> str:
    x, y = center
    radius = HEIGHT / 2 if box.family is INPUT else 7
    stroke = 2.6 if box.output else 1.4
    dashes = "" if box.family.name else ' stroke-dasharray="4 3"'
    parts = [
        f"<g><title>{escape(box.tip)}</title>",
        f'<rect x="{x - box.width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{box.width:.1f}" '
        f'height="{HEIGHT:.0f}" rx="{radius:.0f}" fill="{box.family.fill}" '
        f'stroke="{box.family.line}" stroke-width="{stroke}"{dashes}/>',
        f'<text x="{x:.1f}" y="{y - 1 if box.inside else y + 5:.1f}" text-anchor="middle" fill="#1a1a1a">',
        f"{escape(box.label)}</text>",
    ]
    if box.inside:
        parts.append(
            f'<text x="{x:.1f}" y="{y + 11:.1f}" text-anchor="middle" font-size="10" '
            f'fill="#444444">{escape(box.inside)}</text>'
        )
    if box.result:
        parts.append(
            f'<text x="{x + box.width / 2 + 6:.1f}" y="{y + 5:.1f}" font-style="italic" '
            f'fill="#1a1a1a">{escape(box.result)}</text>'
        )
    return "".join(parts) + "</g>"


def _legend_width(kind: Family) -> float:
    return 7.2 * len(kind.name) + 40


def _legend(families: Sequence[Family], y: float) -> list[str]:
    x, parts = MARGIN, []
    for kind in families:
        parts.append(
            f'<rect x="{x:.0f}" y="{y - 11:.0f}" width="14" height="14" rx="3" fill="{kind.fill}" '
            f'stroke="{kind.line}"/><text x="{x + 20:.0f}" y="{y:.0f}" font-size="12" '
            f'fill="#444444">{escape(kind.name)}</text>'
        )
        x += _legend_width(kind)
    return parts
