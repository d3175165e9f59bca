"""Numbers at which no rule combines a function's values on parts of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import bind, dim_symbols
from symad.core.graph import Graph, Node
from symad.errors import SymadError
from symad.splitting.plan import Cut
from symad.verification.certificate.witness import Witness
from symad.verification.fields.integer_inputs import integer_inputs

if TYPE_CHECKING:
    import sympy as sp

PARTS = ((2, 3), (4, 1), (1, 2, 3), (5, 6))
"""Lengths of the parts."""

DIFFERENT = 1e-6
"""The relative difference above which a rule is wrong."""

FLOOR = 1e-3
"""The minimum scale for differences, for inputs about 1, so that rounding refutes no rule."""


NO_SHAPE = "none, for no rule has a value of its shape"


@dataclass(frozen=True)
class SplitWitness:
    """The result of the search for one output.

    Attributes:
        witness: a point at which the closest rule is wrong, if every rule is wrong at some point.
        nearest: the name of that rule.
        standing: the rules that agreed at every point.
        points: the number of points.
    """

    witness: Witness | None
    nearest: str
    standing: tuple[str, ...]
    points: int


Record: TypeAlias = "tuple[dict[str, float], Any]"
"""For each rule the gap at a point, and this point."""


def search(graph: Graph, cut: Cut) -> list[SplitWitness]:
    """For each output, the rules that numbers contradict and those that they do not."""
    records: list[list[Record]] = [[] for _ in graph.output_nodes]
    for lengths, values in _points(graph, cut):
        try:
            whole = _flat(graph, values)
            pieces = [_flat(graph, part) for part in _parts(values, cut, lengths)]
        except (SymadError, ArithmeticError, ValueError, np.linalg.LinAlgError):
            continue
        for k, value in enumerate(whole):
            mine = [part[k] for part in pieces]
            if np.all(np.isfinite(value)) and all(np.all(np.isfinite(p)) for p in mine):
                fitting = [c for c in _combinations(mine, lengths) if np.shape(c[1]) == np.shape(value)]
                gaps = {name: _gap(value, made) for name, made in fitting}
                records[k].append((gaps, (value, mine, lengths, values)))
    return [_judged(graph, record) for record in records]


def _judged(graph: Graph, record: Sequence[Record]) -> SplitWitness:
    names = list(dict.fromkeys(name for gaps, _ in record for name in gaps))
    worst = {name: max(gaps.get(name, np.inf) for gaps, _ in record) for name in names}
    standing = tuple(name for name in names if worst[name] <= DIFFERENT)
    if standing or not record:
        return SplitWitness(None, "", standing, len(record))
    nearest = min(names, key=lambda name: worst[name], default=NO_SHAPE)
    _, (value, mine, lengths, values) = max(
        record, key=lambda r: (np.size(r[1][0]) > 0, min(r[0].get(nearest, np.inf), 1e300))
    )
    if not np.size(value):
        return SplitWitness(None, "", (), 0)
    made = dict(_combinations(mine, lengths)).get(nearest)
    if made is None or np.shape(made) != np.shape(value):
        made = np.full(np.shape(value), np.nan)
    gaps = np.nan_to_num(np.abs(made - value), nan=np.inf)
    index = np.unravel_index(int(np.argmax(gaps)), np.shape(value))
    place = tuple(int(k) for k in index)
    point = {str(s): np.asarray(v).tolist() for s, v in zip(graph.inputs, values, strict=True)}
    witness = Witness(
        {**point, "rows of the parts": list(lengths)},
        repr(float(np.asarray(value)[place])),
        repr(float(np.asarray(made)[place])),
        place,
    )
    return SplitWitness(witness, nearest, (), len(record))


def _gap(value: Array, made: Array | float) -> float:
    scale = max(float(np.max(np.abs(value), initial=0.0)), float(np.max(np.abs(made), initial=0.0)), FLOOR)
    gap = float(np.max(np.abs(value - made), initial=0.0))
    return gap / scale if np.isfinite(gap) else np.inf


def _combinations(parts: list[Array], lengths: Sequence[int]) -> Iterator[tuple[str, np.ndarray]]:
    """The value of every rule whose shape matches."""
    total = sum(lengths)
    shares = [length / total for length in lengths]
    if len({np.shape(p) for p in parts}) == 1:
        stack = np.stack([np.asarray(p, dtype=np.float64) for p in parts])
        if np.all(stack == stack[0]):
            yield "the same on every part", stack[0]
        yield "sum", stack.sum(axis=0)
        yield "mean", np.tensordot(shares, stack, 1)
        yield "maximum", stack.max(axis=0)
        yield "minimum", stack.min(axis=0)
        yield "product", stack.prod(axis=0)
        with np.errstate(over="ignore"):
            yield "logsumexp", np.logaddexp.reduce(stack, axis=0)
    for axis in range(np.ndim(parts[0])):
        fits = {(*np.shape(p)[:axis], *np.shape(p)[axis + 1 :]) for p in parts}
        if len(fits) == 1:
            yield f"concatenation along axis {axis}", np.concatenate(parts, axis)
            weighted = [np.asarray(p) * s for p, s in zip(parts, shares, strict=True)]
            yield f"concatenation along axis {axis}, weighted by n_p/n", np.concatenate(weighted, axis)


def _flat(graph: Graph, values: Sequence[Array]) -> list[Array]:
    from symad.evaluation.evaluate import as_values
    from symad.numbers.values import unchecked

    dims = _dims(graph, values)
    concrete = graph.at(dims)
    point = dict(zip(concrete.input_nodes, as_values(list(values), concrete.inputs), strict=True))
    with np.errstate(all="ignore"):
        return [np.asarray(v, dtype=np.float64) for v in unchecked(list(concrete.output_nodes), point)]


def _dims(graph: Graph, values: Sequence[Array]) -> dict[sp.Basic, int]:
    from symad.core.dims import solve_dims

    rows = zip(graph.inputs, graph.input_nodes, values, strict=True)
    return solve_dims([(str(s), node.shape, np.shape(v)) for s, node, v in rows])


def _parts(values: Sequence[Array], cut: Cut, lengths: Sequence[int]) -> list[list[Array]]:
    made, start = [], 0
    for length in lengths:
        rows = slice(start, start + length)
        start += length
        made.append(
            [
                v if (axis := cut.axis(k)) is None else v[(slice(None),) * axis + (rows,)]
                for k, v in enumerate(values)
            ]
        )
    return made


def _points(graph: Graph, cut: Cut) -> Iterator[tuple[Sequence[int], list[Array]]]:
    """Values of the inputs: positive ones and ones of both signs; integers for indices."""
    others = sorted(graph.dims - {cut.length}, key=str)
    for number, lengths in enumerate(PARTS):
        sizes = {s: 2 + (k + number) % 3 for k, s in enumerate(others)} | {cut.length: sum(lengths)}
        try:
            concrete = graph.at({s: v for s, v in sizes.items() if s in _symbols(graph)})
            ranges = integer_inputs(concrete.output_nodes)
        except SymadError:  # the function needs longer arrays
            continue
        for kind in ("positive", "any"):
            rng = np.random.default_rng([number, kind == "any"])
            yield lengths, [_draw(rng, node, kind, ranges.get(node)) for node in concrete.input_nodes]


def _symbols(graph: Graph) -> set[sympy.Symbol]:
    return set().union(*(dim_symbols(node.shape) for node in graph.input_nodes))


def _draw(rng: np.random.Generator, node: Node, kind: str, span: tuple[int, int] | None) -> Array:
    shape = bind(node.shape, {})
    if span is not None:
        return rng.integers(*span, shape).astype(np.float64)
    if kind == "positive":
        return rng.uniform(0.2, 0.9, shape)
    return rng.standard_normal(shape)
