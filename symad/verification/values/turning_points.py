"""Points where a formula turns: on both sides of each jump, and where an exponential is of ordinary size.

A branch between 100 and 101, or exp(−1000 (x − 5)²), shows at no point that is drawn without regard to the
formula. Along lines through a point, of one coordinate or of a whole array, the places are found at which
the argument of a jump, or of a function that saturates, is nearest to 0. Between them lie the regions.
Floats are enough: these are places to look at, and nothing follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Node
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import sub
from symad.ops.basic.sources import input_node, inputs_in, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare
from symad.transforms.batches import batch_outputs
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.linear_terms import number
from symad.verification.values.domains import margins

MAX_NODES, MAX_ELEMENTS = 600, 4000
"""The maximum numbers of nodes, and of elements of watched arguments, of graphs that are looked at."""

MAX_LINES, MAX_ARGUMENTS, MAX_PLACES = 6, 40, 48
"""The maximum numbers of lines, of arguments watched along a line, and of places found on it."""

MAX_POINTS = 10
"""The maximum number of points that are returned."""

ROUNDS, PARTS = 10, 16
"""The number of parts into which each round divides the neighborhood of a place."""

BESIDE = (2.0**-22, 2.0**-14, 2.0**-7)
"""Relative distances from a place at which points lie; of those in one region the first one counts."""


@dataclass(frozen=True)
class SearchLine:
    """A point of which one coordinate, or one array as a whole, runs along a line."""

    node: Node
    base: Mapping[Node, Array | float]
    index: tuple[int, ...] | None
    """The element that is set; None: the array is scaled."""

    def at(self, t: Array) -> Array:
        """The values of the input that runs, with a leading axis."""
        base = np.asarray(self.base[self.node], dtype=np.float64)
        if self.index is None:
            return t.reshape(-1, *[1] * base.ndim) * base
        values = np.repeat(base[None], len(t), axis=0)
        place: tuple[slice | int, ...] = (slice(None), *self.index)
        values[place] = t
        return values


def turning_points(
    nodes: Sequence[Node], base: Mapping[Node, Any], running: Sequence[Node], rng: np.random.Generator
) -> Iterator[dict[Node, Any]]:
    """Points in floats, each in a region of its own; all sizes must be numbers.

    Args:
        nodes: what is looked at, arguments first.
        base: the point through which the lines go.
        running: inputs that run along them.
        rng: chooses the elements of arrays that do.
    """
    watched = watched_quantities(nodes)
    large = len(nodes) > MAX_NODES or sum(_count(n) for n in watched) > MAX_ELEMENTS
    if large or not watched:
        return
    numbers = {abs(float(c)) for c in map(number, nodes) if c and abs(c) < 2**1000}
    seen: set[bytes] = set()
    for line in _lines(base, running, rng):
        found = _places(watched, line, _grid(line.node, numbers))
        if found is None:
            continue
        regions = _values(watched, line, np.array(found))
        for k, t in enumerate(found):
            key = b"" if regions is None else _binned(regions[k]).tobytes()
            if key not in seen:
                seen.add(key)
                value = line.at(np.array([t]))[0]
                yield {**line.base, line.node: value if line.node.shape else float(value)}
                if len(seen) >= MAX_POINTS:
                    return


def _count(node: Node) -> int:
    return prod(node.shape) if node.shape else 1


def watched_quantities(nodes: Sequence[Node]) -> list[Node]:
    """What is 0 where something turns."""
    found: dict[Node, None] = dict.fromkeys(m.inside for m in margins(nodes))
    for node in nodes:
        if isinstance(node.op, Compare):
            found.setdefault(sub(*node.args))
        elif isinstance(node.op, Apply) and node.op.head in (sympy.Max, sympy.Min):
            for other in node.args[1:]:
                found.setdefault(sub(node.args[0], other))
        elif (
            isinstance(node.op, Apply)
            and len(node.args) == 1
            and (fact(node.op.head).kink or fact(node.op.head).saturates)
        ):
            found.setdefault(node.args[0])
    return [q for q in found if inputs_in([q])][:MAX_ARGUMENTS]


def _lines(
    base: Mapping[Node, Any], running: Sequence[Node], rng: np.random.Generator
) -> Iterator[SearchLine]:
    """Lines through a point: of each scalar, of each array as a whole, and of some elements."""
    lines = [SearchLine(n, base, None if n.shape else ()) for n in running]
    lines += [SearchLine(n, base, tuple(int(rng.integers(d)) for d in n.shape)) for n in running if n.shape]
    yield from lines[:MAX_LINES]


def _grid(node: Node, numbers: set[float]) -> Array:
    """Where a line is looked at first: powers of √2, and the numbers of the formula."""
    sizes = np.concatenate([2.0 ** (np.arange(-24, 80) / 2), np.array(sorted(numbers)[:40])])
    symbol = symbol_of(node)
    if getattr(symbol, "is_nonnegative", None):
        return np.unique(sizes)
    if getattr(symbol, "is_nonpositive", None):
        return np.unique(-sizes)
    return np.unique(np.concatenate([-sizes, [0.0], sizes]))


def _places(watched: Sequence[Node], line: SearchLine, grid: Array) -> list[float] | None:
    """Points of a line beside and between the places at which something turns."""
    values = _values(watched, line, grid)
    if values is None:
        return None
    brackets = _brackets(values)
    if not len(brackets):
        return None
    low, high = grid[brackets[:, 1] - 1], grid[np.minimum(brackets[:, 1] + 1, len(grid) - 1)]
    for _ in range(ROUNDS):
        t = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, PARTS + 1)
        around = _values(watched, line, t.ravel())
        if around is None:
            return None
        sizes = np.abs(around.reshape(*t.shape, -1)[np.arange(len(t)), :, brackets[:, 0]])
        best = np.argmin(np.where(np.isfinite(sizes), sizes, np.inf), axis=1)
        rows = np.arange(len(t))
        low, high = t[rows, np.maximum(best - 1, 0)], t[rows, np.minimum(best + 1, PARTS)]
    roots = np.unique((low + high) / 2)
    near = [roots * (1 + sign * part) for part in BESIDE for sign in (1, -1)]
    return np.concatenate([(roots[1:] + roots[:-1]) / 2, *near[:2], roots, *near[2:]]).tolist()


def _brackets(values: Array) -> Array:
    """(quantity, position on the grid) of local minima of its size and of changes of its sign."""
    sizes = np.where(np.isfinite(values), np.abs(values), np.inf)
    inner, finite = sizes[1:-1], np.isfinite(sizes[1:-1])
    lowest = (
        (inner <= sizes[:-2]) & (inner <= sizes[2:]) & ((inner < sizes[:-2]) | (inner < sizes[2:])) & finite
    )
    with np.errstate(all="ignore"):
        turned = np.sign(values[1:-1]) * np.sign(values[2:]) < 0
    found = np.argwhere((lowest | turned).T)
    order = (
        np.random.default_rng(0).permutation(len(found)) if len(found) > MAX_PLACES else np.arange(len(found))
    )
    chosen = found[np.sort(order[:MAX_PLACES])]
    return chosen + np.array([0, 1])


def _values(watched: Sequence[Node], line: SearchLine, t: Array) -> Array | None:
    """What is watched, along a line: (places, quantities); None where floats do not reach."""
    count = len(t)
    running = input_node(symbol_of(line.node), (count, *line.node.shape))
    try:
        outputs = batch_outputs(watched, {line.node: running}, count)
        rest = {n: v for n, v in line.base.items() if n is not line.node}
        with np.errstate(all="ignore"):
            found = unchecked(outputs, {running: line.at(t), **rest})
    except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
        return None
    columns = [np.broadcast_to(np.asarray(v, dtype=np.float64), (count, *q.shape)).reshape(count, -1)
               for v, q in zip(found, watched, strict=True)]  # fmt: skip
    return np.concatenate(columns, axis=1)


def _binned(values: Array) -> Array:
    """In which region values lie: their signs, and whether they are small, ordinary or large."""
    return np.digitize(values, [-20.0, -1.0, 0.0, 1.0, 20.0]).astype(np.int8)
