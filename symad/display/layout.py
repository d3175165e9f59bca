"""Layered layout of a directed acyclic graph: layers, order within layers, coordinates.

The method of Sugiyama, Tagawa and Toda (1981): longest-path layers, dummy vertices on long edges,
order by barycenters, and coordinates that minimize squared edge slopes layer by layer, which under
the order constraints is isotonic regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Edge = tuple[int, int]
Point = tuple[float, float]

GAP = 26.0
"""The minimum horizontal distance between two boxes."""

ROW = 72.0
"""The vertical distance between layers."""


@dataclass
class Layout:
    """The positions of vertices, and the points through which each edge passes."""

    position: dict[int, Point] = field(default_factory=dict)
    route: dict[Edge, list[Point]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def layout(count: int, edges: Sequence[Edge], widths: Sequence[float], row: float = ROW) -> Layout:
    """Place vertices 0 … count − 1, numbered so that every edge goes upwards in number.

    Args:
        count: the number of vertices.
        edges: (from, to) pairs without repetition.
        widths: the width of each vertex's box.
        row: the vertical distance between layers.
    """
    layer = _layers(count, edges)
    chains, layer_of, width_of = _with_dummies(count, edges, widths, layer)
    links = [(a, b) for chain in chains.values() for a, b in pairwise(chain)]
    rows = _ordered(layer_of, links)
    x = _coordinates(rows, links, width_of)
    left = min((x[v] - width_of[v] / 2 for v in x), default=0.0)
    right = max((x[v] + width_of[v] / 2 for v in x), default=0.0)
    placed = {v: (x[v] - left, layer_of[v] * row) for v in x}
    return Layout(
        {v: placed[v] for v in range(count)},
        {edge: [placed[v] for v in chain] for edge, chain in chains.items()},
        right - left,
        (max(layer_of.values(), default=0)) * row,
    )


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """The longest path from a source; sources are directly above their first use."""
    layer = [0] * count
    for a, b in sorted(edges, key=lambda e: e[1]):
        layer[b] = max(layer[b], layer[a] + 1)
    targets = {b for _, b in edges}
    for source in range(count):
        users = [layer[b] for a, b in edges if a == source]
        if source not in targets and users:
            layer[source] = min(users) - 1
    return layer


def _with_dummies(
    count: int, edges: Sequence[Edge], widths: Sequence[float], layer: Sequence[int]
) -> tuple[dict[Edge, list[int]], dict[int, int], dict[int, float]]:
    """Each edge as a chain with one dummy vertex in every layer it crosses."""
    layer_of = dict(enumerate(layer))
    width_of = dict(enumerate(widths))
    chains: dict[Edge, list[int]] = {}
    fresh = count
    for a, b in edges:
        chain = [a]
        for level in range(layer[a] + 1, layer[b]):
            layer_of[fresh], width_of[fresh] = level, 2.0
            chain.append(fresh)
            fresh += 1
        chains[a, b] = [*chain, b]
    return chains, layer_of, width_of


def _neighbors(links: Sequence[Edge]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for a, b in links:
        below.setdefault(a, []).append(b)
        above.setdefault(b, []).append(a)
    return above, below


SWEEPS = 12
"""Passes over the layers, down and up in turn; more change the order of few graphs."""


def _ordered(layer_of: Mapping[int, int], links: Sequence[Edge]) -> list[list[int]]:
    """The vertices of each layer from left to right, with few crossings."""
    rows: list[list[int]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for vertex, level in layer_of.items():
        rows[level].append(vertex)
    above, below = _neighbors(links)
    best, fewest = [list(row) for row in rows], _crossings(rows, above)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for level in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            fixed = {v: k for k, v in enumerate(rows[level - 1 if down else level + 1])}
            if down:
                _sort_by_barycenter(rows[level], above, fixed, {})
            else:
                _sort_by_barycenter(rows[level], below, fixed, above)
        crossings = _crossings(rows, above)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _sort_by_barycenter(
    row: list[int],
    neighbors: Mapping[int, list[int]],
    fixed: Mapping[int, int],
    arguments: Mapping[int, list[int]],
) -> None:
    """Sort a row by the mean position of neighbors; vertices without neighbors keep their positions.

    Arguments of one vertex are kept in their order as far as possible.
    """
    key = {}
    for k, vertex in enumerate(row):
        near = neighbors.get(vertex, ())
        places = [fixed[n] + _slot(vertex, arguments.get(n, [])) for n in near]
        key[vertex] = sum(places) / len(places) if places else float(k)
    row.sort(key=key.__getitem__)


def _slot(vertex: int, arguments: Sequence[int]) -> float:
    """A fraction that increases with the position among some arguments."""
    return 0.3 * arguments.index(vertex) / len(arguments) if vertex in arguments else 0.0


def _crossings(rows: Sequence[Sequence[int]], above: Mapping[int, list[int]]) -> int:
    """The number of pairs of edges between neighboring layers that cross."""
    total = 0
    for upper, lower in pairwise(rows):
        place = {v: k for k, v in enumerate(upper)}
        ends = [e for v in lower for e in [place[u] for u in above.get(v, ())]]
        total += sum(b < a for k, a in enumerate(ends) for b in ends[k + 1 :])
    return total


def _coordinates(
    rows: Sequence[Sequence[int]], links: Sequence[Edge], width_of: Mapping[int, float]
) -> dict[int, float]:
    """Horizontal centers: each vertex near the mean of its neighbors, boxes kept apart."""
    above, below = _neighbors(links)
    x: dict[int, float] = {}
    for row in rows:
        offsets = _offsets(row, width_of)
        x.update({v: offset - offsets[-1] / 2 for v, offset in zip(row, offsets, strict=True)})
    for sweep in range(24):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wanted = []
            for vertex in row:
                near = (above if down else below).get(vertex) or below.get(vertex) or above.get(vertex)
                wanted.append(sum(x[n] for n in near) / len(near) if near else x[vertex])
            offsets = _offsets(row, width_of)
            free = _isotonic([w - o for w, o in zip(wanted, offsets, strict=True)])
            x.update({v: f + o for v, f, o in zip(row, free, offsets, strict=True)})
    return x


def _offsets(row: Sequence[int], width_of: Mapping[int, float]) -> list[float]:
    """The centers of adjacent boxes with minimum gaps."""
    offsets = [0.0]
    for a, b in pairwise(row):
        offsets.append(offsets[-1] + (width_of[a] + width_of[b]) / 2 + GAP)
    return offsets[: len(row)]


def _isotonic(wanted: Sequence[float]) -> list[float]:
    """The non-decreasing sequence nearest in least squares: pool adjacent violators."""
    blocks: list[tuple[float, int]] = []
    for value in wanted:
        mean, size = value, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    return [mean for mean, size in blocks for _ in range(size)]
