"""Points worth a precise look: two graphs evaluated in floating point at very many places.

A difference in floats proves nothing; it says where high precision should look. Where branches make
functions differ in a small region only, a few points would miss it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.derivatives.root import Root
from symad.errors import SymadError
from symad.numbers.function_values import implementation
from symad.numbers.number_domains import as_float
from symad.numbers.numpy_names import NUMPY_NAMES
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input, input_node, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.tracing.from_sympy.parameter_derivatives import is_numerical
from symad.transforms.batches import batch_outputs
from symad.verification.budget import NODE, Meter
from symad.verification.fields.integer_inputs import all_choices, integer_inputs
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.linear_terms import number
from symad.verification.values.fifty_digits import PRECISIONS, evaluate_all
from symad.verification.values.hostile_points import is_manageable
from symad.verification.values.points import affordable, points

if TYPE_CHECKING:
    import sympy as sp

MANY = 4096
"""Points tried at once where all inputs are scalars."""

SOME = 48
"""Points tried one by one where inputs are arrays."""

MAX_SCOUTED_NODES = 20_000
"""The maximum number of nodes of graphs that are scouted."""

FOUND = 6
"""So many points are handed on."""

FAR = (-40, 40)
"""Binary exponents of coordinates far away, and close to 0."""

SCALES = (0, 0, 0, 3, 6, 10, 20, -8)
"""Binary exponents by which elements of arrays are scattered."""

STEPS = 16
"""Coordinates are multiples of 1/STEPS, hence exact in binary."""

VISIBLE = 1e-6
"""A relative difference that rounding hardly makes at two points."""

MAX_FLOAT = 2**1023
"""The largest power of 2 that is a double."""

SUSPICIOUS = 1e-11
"""Relative differences beyond this are looked at; the largest ones first."""


def scout(
    a: Node,
    b: Node,
    inputs: Sequence[Node],
    integers: Mapping[Node, tuple[int, int]],
    watched: Array,
    meter: Meter,
) -> Iterator[dict[Node, Number]]:
    """Rational points at which floats suggest that two nodes differ in a watched element."""
    if len(topological([a, b])) > MAX_SCOUTED_NODES or not inputs:
        return
    slow = any(map(_takes_points_alone, topological([a, b])))  # a column would take seconds
    if any(n.shape for n in inputs) or integers or slow:
        yield from islice(_one_by_one(a, b, inputs, integers, watched, meter), FOUND)
        return
    rng = np.random.default_rng(0)
    numbers = _numbers(topological([a, b]))
    for column in (_column, partial(_far_column, numbers)):
        columns = {node: column(symbol_of(node), rng) for node in inputs}
        meter.spend(MANY * len(topological([a, b])) / 10)
        yield from islice(_at_once(a, b, columns, watched), FOUND)


def _takes_points_alone(n: Node) -> bool:
    """Whether a node is solved for, differentiated numerically, or a SymPy function of a user's."""
    if isinstance(n.op, Root) or is_numerical(n):
        return True
    head = n.op.head if isinstance(n.op, Apply) else None
    known = head is None or head in NUMPY_NAMES or implementation(head) is not None
    return not known and not head.__module__.startswith("sympy.")


def visibly_different(a: Node, b: Node, watched: Array) -> bool:
    """Whether values differ by far more than rounding in all watched elements at each of two points.

    This decides nothing; it tells where a search for hidden relations is in vain. Floats are asked first,
    and the first difference they show is confirmed by many digits: it may be one of cancellation.
    """
    nodes = topological([a, b])
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    seen = 0
    for point in points(inputs, integer_inputs(nodes), 6):
        try:
            u, v = unchecked((a, b), {n: as_floats(x) for n, x in point.items()})
        except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
            continue
        if not np.all((np.isfinite(np.asarray(u, dtype=float)) & np.isfinite(v))[watched]):
            continue
        if not np.all(relative_gaps(u, v, watched)[watched] > VISIBLE):
            return False
        if not seen and not _differ_in_digits(a, b, point, watched):
            return False
        seen += 1
        if seen == 2:
            return True
    return False


def have_values(outputs: Sequence[Node]) -> bool:
    """Whether all elements have finite values at some point."""
    nodes = topological(outputs)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    for point in points(inputs, integer_inputs(nodes), SOME):
        try:
            values = unchecked(outputs, {n: as_floats(x) for n, x in point.items()})
        except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
            continue
        if all(np.isfinite(np.asarray(v, dtype=float)).all() for v in values):
            return True
    return False


def _differ_in_digits(a: Node, b: Node, point: Mapping[Node, Number], watched: Array) -> bool:
    """Whether all watched elements differ visibly at a point when evaluated to many digits."""
    try:
        both = evaluate_all((a, b), point, PRECISIONS[0])
        u, v = (np.asarray(np.asarray(x) * 1) for x in both)  # truth values as 1 and 0
    except (SymadError, ArithmeticError, ValueError, TypeError):
        return True
    return all(abs(p - q) > VISIBLE * (abs(p) + abs(q)) for p, q in zip(u[watched], v[watched], strict=True))


def relative_gaps(u: Array | float, v: Array | float, watched: Array) -> Array:
    """Relative differences of watched elements where both values are finite, else 0."""
    with np.errstate(all="ignore"):
        gap = np.abs(np.asarray(u, dtype=float) - v) / (np.abs(u) + np.abs(v))
    return np.where(np.isfinite(gap) & watched, gap, 0.0)


def _at_once(a: Node, b: Node, columns: Mapping[Node, Array], watched: Array) -> Iterator[dict[Node, Number]]:
    """Scalar inputs: one evaluation of all points together."""
    batched = {node: input_node(symbol_of(node), (MANY,)) for node in columns}
    try:
        outputs = batch_outputs((a, b), batched, MANY)
        u, v = unchecked(outputs, {batched[n]: column for n, column in columns.items()})
    except (SymadError, ArithmeticError, ValueError, TypeError):
        return
    gaps = relative_gaps(u, v, watched[None]).reshape(MANY, -1).max(axis=1, initial=0.0)
    seen: set[tuple[float, ...]] = set()
    for k in np.argsort(-gaps, kind="stable"):
        if gaps[k] <= SUSPICIOUS:
            return
        coordinates = tuple(float(column[k]) for column in columns.values())
        if coordinates in seen:  # a few values fall on many points, such as the boundary of a branch
            continue
        seen.add(coordinates)
        if is_manageable((a, b), dict(zip(columns, coordinates, strict=True))):
            yield dict(zip(columns, map(Fraction, coordinates), strict=True))


def _column(symbol: sp.Symbol, rng: np.random.Generator) -> Array:
    """Coordinates of several sizes, of the signs that the symbol allows."""
    largest = rng.choice([8, 24, 80, 480], size=MANY)
    values = np.floor(rng.random(MANY) * largest + 1)
    if getattr(symbol, "is_integer", False):
        return _signed(values - (getattr(symbol, "is_zero", None) is not False), symbol, rng)
    return _signed(values / STEPS, symbol, rng)


def _numbers(nodes: Sequence[Node]) -> Array:
    """The sizes of the numbers in a graph: branches begin and end there."""
    found = {float(abs(c)) for c in map(number, nodes) if c and abs(c) < MAX_FLOAT}
    return np.array(sorted(v for v in found if np.isfinite(v)) or [1.0])


def _far_column(numbers: Array, symbol: sp.Symbol, rng: np.random.Generator) -> Array:
    """Coordinates of all sizes, and such as are close to numbers of the graph, among ordinary ones."""
    kinds = rng.random(MANY)
    sizes = np.exp2(rng.uniform(*FAR, size=MANY))
    apart = np.exp2(rng.uniform(-12, 1, size=MANY)) * np.where(rng.random(MANY) < 0.5, 1, -0.5)
    close = rng.choice(numbers, size=MANY) * (1 + apart)
    values = np.where(kinds < 0.5, sizes, np.where(kinds < 0.75, close, rng.random(MANY) * STEPS))
    mantissas, exponents = np.frexp(values)
    values = np.ldexp(np.round(mantissas * 2**16) / 2**16, exponents)  # short numbers
    return _signed(np.ceil(values) if getattr(symbol, "is_integer", False) else values, symbol, rng)


def _signed(values: Array, symbol: sp.Symbol, rng: np.random.Generator) -> Array:
    """Numbers with the signs that the symbol allows."""
    if getattr(symbol, "is_nonpositive", None):
        return -values
    if getattr(symbol, "is_nonnegative", None):
        return values
    return np.asarray(np.where(rng.random(MANY) < 0.5, values, -values))


def _one_by_one(
    a: Node,
    b: Node,
    inputs: Sequence[Node],
    integers: Mapping[Node, tuple[int, int]],
    watched: Array,
    meter: Meter,
) -> Iterator[dict[Node, Number]]:
    """Arrays: as many points as the budget allows, some with elements of very different sizes.

    Indices of few values are given all of them: a difference at one of a hundred shows at few points.
    """
    choices = (all_choices(integers) or []) if integers else []
    (base,) = points(inputs, integers, 1, seed=1)
    count = affordable(inputs, SOME)
    ordinary = points(inputs, integers, count, seed=1)
    nodes = len(topological([a, b]))
    far = (scattered(p, Random(k)) for k, p in enumerate(points(inputs, integers, count, seed=2)))
    for point in chain(ordinary, ({**base, **choice} for choice in choices), far):
        meter.spend(NODE * nodes / 3)
        floats = {n: as_floats(v) for n, v in point.items()}
        try:
            u, v = unchecked((a, b), floats)
        except (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError):
            continue
        if np.any(relative_gaps(u, v, watched) > SUSPICIOUS):
            yield point


def scattered(point: Mapping[Node, Number], rng: Random) -> dict[Node, Number]:
    """A point whose elements are multiplied by powers of two, some of them large."""

    def scaled(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return np.frompyfunc(scaled, 1, 1)(value) if value.dtype == object else value
        return value * Fraction(2) ** rng.choice(SCALES)

    whole = (bool(getattr(symbol_of(n), "is_integer", False)) for n in point)
    return {n: v if is_whole else scaled(v) for is_whole, (n, v) in zip(whole, point.items(), strict=True)}


def beside(point: Mapping[Node, Number], rng: Random) -> dict[Node, Number]:
    """A point close by, each coordinate moved on its own: off ties and jumps, where nothing is claimed."""

    def moved(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return np.frompyfunc(moved, 1, 1)(value) if value.dtype == object else value
        return value * (1 + Fraction(rng.randrange(1, 1 << 20), 1 << 31))

    whole = (bool(getattr(symbol_of(n), "is_integer", False)) for n in point)
    return {n: v if is_whole else moved(v) for is_whole, (n, v) in zip(whole, point.items(), strict=True)}


def as_floats(value: Number) -> Array | float:
    """Rational values as floats."""
    if isinstance(value, np.ndarray):
        return np.frompyfunc(as_float, 1, 1)(value).astype(np.float64) if value.dtype == object else value
    return as_float(value)
