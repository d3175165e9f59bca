"""Values of nodes to many digits, and where they are too close to a tie, a jump or a boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.core.arrays import ArrayLike, Number
from symad.core.graph import Node, Op, op_of, topological
from symad.errors import SymadError
from symad.numbers.number_domains import UndefinedValue
from symad.numbers.values import unchecked
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare
from symad.verification.budget import NODE, Meter, is_slow, operations
from symad.verification.fields.prime_fields import Array
from symad.verification.values.points import is_zero

PRECISIONS = (50, 100, 200, 400)
"""Decimal digits: each is confirmed by the next."""

SLOW_DIGITS = 200
"""The most digits where a function is slow."""

NEAR = mpmath.mpf(10) ** -12
"""Relative distance from a tie or a jump at which a point is not used."""

JUMPS = {sympy.sign, sympy.Abs, sympy.Heaviside}
STEPS = {sympy.floor, sympy.ceiling, sympy.frac}

Point = Mapping[Node, Any]
"""The rational values of inputs: a Fraction, or an object array of Fractions; ints for indices."""


def as_numbers(value: Array | Fraction) -> Array | mpmath.mpf:
    """Fractions as mpmath numbers at the working precision."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.frompyfunc(_number, 1, 1)(value)
    return _number(value) if isinstance(value, Fraction) else value


def _number(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


def evaluate_all(nodes: Sequence[Node], point: Point, digits: int) -> list[np.ndarray | mpmath.mpf]:
    """The values of nodes at a rational point, as arrays of mpmath numbers; NaN where undefined.

    Raises:
        SymadError, ArithmeticError: the point lies outside the domain of a decomposition.
    """
    with mpmath.workdps(digits):
        numbers: dict[Node, Number] = {n: as_numbers(v) for n, v in point.items()}
        numbers[anchor()] = mpmath.mpf(1)
        return [_clean(v) for v in unchecked(nodes, numbers)]


def anchor() -> Node:
    """A node that is given an mpmath number, so that constants are evaluated in mpmath too."""
    from symad.ops.basic.sources import Constant

    return Node.of(Constant(sympy.EulerGamma, "symbol"))


def _clean(value: ArrayLike) -> Array:
    array = np.asarray(value)
    if array.dtype != object:
        return array
    return np.frompyfunc(lambda v: mpmath.nan if isinstance(v, UndefinedValue) else v, 1, 1)(array)


@dataclass(frozen=True)
class Precise:
    """Values that two precisions agree upon: arrays, NaN where they do not."""

    values: tuple[Array, ...]
    digits: int
    floor: mpmath.mpf
    """What cancellation may have hidden: the largest intermediate value, times 10^(GUARD − digits)."""
    largest: mpmath.mpf
    """A power of two above all intermediate values."""


GUARD = 20
"""So many digits may be lost to amplified rounding."""


def settled_values(
    outputs: Sequence[Node],
    point: Point,
    wanted: int = 35,
    precisions: Sequence[int] = PRECISIONS,
    meter: Meter | None = None,
) -> Precise:
    """The outputs at a point, to ``wanted`` digits, with rounding excluded by doubling the precision.

    The steps are counted by ``meter``. Elements that do not settle within the largest precision are NaN.
    Two precisions also agree on a 0 that is the remainder of a cancellation; what is not larger than
    ``floor`` may be such a remainder.

    Raises:
        SymadError, ArithmeticError: the point lies outside the domain of a decomposition.
    """
    order = topological(outputs)
    if any(isinstance(n.op, Apply) and is_slow(n.op.head) for n in order):
        precisions = [d for d in precisions if d <= SLOW_DIGITS] or PRECISIONS[:3]
    each = operations(order) if meter is not None else 0.0
    coarse = evaluate_all(outputs, point, precisions[0])
    for digits in precisions[1:]:
        if meter is not None:
            meter.spend(NODE + each * digits / 50)
        every = dict(zip(order, evaluate_all(order, point, digits), strict=True))
        fine = [every[o] for o in outputs]
        with mpmath.workdps(digits):
            agree = np.frompyfunc(partial(_agree, mpmath.mpf(10) ** -wanted), 2, 1)
            steady = [agree(a, b) for a, b in zip(coarse, fine, strict=True)]
        if all(np.all(s) for s in steady):
            break
        coarse = fine
    values = [np.where(np.asarray(s).astype(bool), f, mpmath.nan) for s, f in zip(steady, fine, strict=True)]
    largest = max((_magnitude(v) for v in every.values()), default=0)
    with mpmath.workdps(digits):
        above = mpmath.mpf(2) ** largest
        floor = above * mpmath.mpf(10) ** (GUARD - digits)
    return Precise(tuple(values), digits, floor, above)


def _magnitude(values: Array | mpmath.mpf) -> int:
    """log₂ of the largest finite number, rounded up."""
    values = np.asarray(values)
    if values.dtype != object:
        return 0
    found = [v for v in values.ravel() if isinstance(v, mpmath.mpf) and v and mpmath.isfinite(v)]
    return max((int(mpmath.mag(v)) for v in found), default=0)


def _agree(gap: mpmath.mpf, a: bool | mpmath.mpf, b: bool | mpmath.mpf) -> bool:
    """Whether two values have at most this relative gap; what is undefined in both counts as settled."""
    if isinstance(a, (bool, np.bool_)) or isinstance(b, (bool, np.bool_)):
        return bool(a == b)
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
        return True
    return bool(abs(a - b) <= gap * max(abs(a), abs(b)))


# ---- ties and jumps -----------------------------------------------------------------------------


def kinks(order: Sequence[Node]) -> list[Node]:
    """The nodes at which a value may jump or have a kink."""
    return [
        n
        for n in order
        if isinstance(n.op, (Compare, Extreme, SortingPositions))
        or (
            isinstance(n.op, Apply)
            and (n.op.head in JUMPS | STEPS or n.op.head in (sympy.Max, sympy.Min, sympy.Mod))
        )
    ]


def close_calls(nodes: Sequence[Node], point: Point) -> dict[Node, Array]:
    """For each kink which of its elements are too close to it at this point."""
    suspects = kinks(nodes)
    if not suspects:
        return {}
    wanted = list(dict.fromkeys(a for n in suspects for a in n.args))
    order = topological(wanted)
    values = dict(zip(order, evaluate_all(order, point, PRECISIONS[0]), strict=True))
    found = {n: np.asarray(_close(n, [values[a] for a in n.args])).astype(bool) for n in suspects}
    noisy = _within_rounding(suspects, order, values)
    if noisy:  # more digits tell a small value from the rest of a cancellation
        needed = list(dict.fromkeys(a for n in noisy for a in n.args))
        more = dict(zip(needed, evaluate_all(needed, point, 2 * PRECISIONS[0]), strict=True))
        for node, mask in noisy.items():
            first, second = (_distance(node, [v[a] for a in node.args]) for v in (values, more))
            steady = np.frompyfunc(lambda a, b: bool(abs(a - b) <= STEADY * abs(b)), 2, 1)(first, second)
            found[node] = found[node] | (mask & ~np.asarray(steady).astype(bool))
    return found


STEADY = mpmath.mpf(10) ** -8
"""Relative change of a distance from a jump, with twice the digits, beyond which it is rounding."""


def _distance(node: Node, args: Sequence[mpmath.mpf]) -> Array | mpmath.mpf:
    """How far the argument of a jump is from it."""
    if isinstance(node.op, Compare):
        return np.asarray(args[0]) - np.asarray(args[1])
    head = op_of(node, Apply).head
    value = np.asarray(args[0]) / np.asarray(args[1]) if head is sympy.Mod else np.asarray(args[0])
    if head in STEPS or head is sympy.Mod:
        return np.asarray(np.frompyfunc(lambda v: v - mpmath.nint(v), 1, 1)(value))
    return value


def _within_rounding(
    suspects: Sequence[Node], order: Sequence[Node], values: Mapping[Node, Number]
) -> dict[Node, Array]:
    """Jumps whose arguments are no larger than what cancellation may have left of them."""
    sizes: dict[Node, int] = {}
    found: dict[Node, Array] = {}
    for node in order:
        sizes[node] = max([_magnitude(values[node]), *(sizes[a] for a in node.args)])
    for node in suspects:
        op: Op = node.op
        if not isinstance(op, Compare) and getattr(op, "head", None) not in JUMPS | STEPS | {sympy.Mod}:
            continue
        if isinstance(op, Compare) and op.relation in ("==", "!="):
            continue
        floor = mpmath.mpf(2) ** max(sizes[a] for a in node.args) * mpmath.mpf(10) ** (GUARD - PRECISIONS[0])
        with np.errstate(all="ignore"):
            distance = _distance(node, [values[a] for a in node.args])
        mask = np.frompyfunc(lambda d, f=floor: bool(0 < abs(d) <= f), 1, 1)(distance)
        if np.any(mask):
            found[node] = np.asarray(mask).astype(bool)
    return found


def _close(node: Node, args: Sequence[mpmath.mpf]) -> Array | bool:
    op: Any = node.op
    if isinstance(op, Extreme):
        return _close_extreme(op, args[0])
    if isinstance(op, SortingPositions):
        return np.broadcast_to(np.any(_near(*_neighbors(args[0])), axis=-1, keepdims=True), node.shape)
    if isinstance(op, Compare):
        if op.relation in ("==", "!=") and any(_is_extreme(a) for a in node.args):
            return np.zeros(node.shape, dtype=bool)
        return _near(args[0], args[1])
    if op.head in JUMPS:
        return _near(args[0], 0)
    if op.head in STEPS:
        return np.frompyfunc(_near_integer, 1, 1)(args[0])
    if op.head is sympy.Mod:
        return np.frompyfunc(lambda a, b: _near_integer(a / b), 2, 1)(*args)
    flags = [_near(a, b) for k, a in enumerate(args) for b in args[:k]]
    return np.any(np.broadcast_arrays(*flags), axis=0) if flags else False


def _neighbors(a: Array) -> tuple[Array, Array]:
    """Elements that follow each other where the last axis is sorted: where two are equal, positions jump."""
    rows = np.sort(np.asarray(a), axis=-1)
    return rows[..., :-1], rows[..., 1:]


def _is_extreme(node: Node) -> bool:
    while isinstance(node.op, (Broadcast, Reshape)):
        node = node.args[0]
    if isinstance(node.op, Apply):
        return node.op.head in (sympy.Max, sympy.Min)
    return isinstance(node.op, Extreme)


def _near(a: mpmath.mpf, b: int | mpmath.mpf) -> Array | bool:
    """Whether two numbers are close; a finite number is never close to an infinite one."""

    def near(x: mpmath.mpf, y: int | mpmath.mpf) -> bool:
        if any(abs(v) == float("inf") for v in (x, y)):
            return bool(x == y)
        return bool(abs(x - y) <= NEAR * (abs(x) + abs(y)))

    return np.frompyfunc(near, 2, 1)(a, b)


def _near_integer(value: mpmath.mpf) -> bool:
    return bool(abs(value - mpmath.nint(value)) <= NEAR)


def _close_extreme(op: Extreme, a: Array) -> Array:
    """Where the largest two (smallest two) elements are close."""
    moved = np.moveaxis(np.asarray(a), op.axes, range(-len(op.axes), 0))
    kept = moved.shape[: moved.ndim - len(op.axes)]
    rows = moved.reshape(*kept, -1)
    if rows.shape[-1] < 2:
        return np.zeros(kept, dtype=bool)
    is_max = op.kind == "max"
    best = np.expand_dims((np.argmax if is_max else np.argmin)(rows, axis=-1), -1)
    others = np.where(np.arange(rows.shape[-1]) == best, -mpmath.inf if is_max else mpmath.inf, rows)
    second = (np.max if is_max else np.min)(others, axis=-1)
    return np.asarray(_near(np.take_along_axis(rows, best, -1)[..., 0], second)).astype(bool)


def usable(nodes: Sequence[Node], point: Point, always: Mapping[Node, Array] | None = None) -> bool:
    """Whether no kink is close at this point, but for those that do not matter.

    A maximum whose arguments are close at every point is continuous. Exact ties on an open set, as of
    max(x, 0) with 0, are no boundary.
    """
    try:
        found = close_calls(nodes, point)
        left = {
            n: mask
            for n, mask in found.items()
            if np.any(mask & ~_always(always, n, mask)) or (np.any(mask) and not _is_continuous(n))
        }
        return not left or all(_tied(left, p) for p in (point, *around(point, 30)))
    except (SymadError, ArithmeticError, ValueError):
        return False


def _always(always: Mapping[Node, Array] | None, node: Node, mask: Array) -> Array:
    return np.zeros_like(mask) if always is None or node not in always else always[node]


def _is_continuous(node: Node) -> bool:
    return isinstance(node.op, Extreme) or (
        isinstance(node.op, Apply) and node.op.head in (sympy.Abs, sympy.Max, sympy.Min)
    )


def _tied(found: Mapping[Node, Array], point: Point) -> bool:
    """Whether the kinks that are close tie exactly at a point, without rounding."""
    wanted = list(dict.fromkeys(a for n in found for a in n.args))
    for digits in PRECISIONS[:2]:
        values = dict(zip(wanted, evaluate_all(wanted, point, digits), strict=True))
        with mpmath.workdps(digits):
            for node, mask in found.items():
                if not np.all(_exact_tie(node, [values[a] for a in node.args]) | ~mask):
                    return False
    return True


def _exact_tie(node: Node, args: Sequence[mpmath.mpf]) -> Array:
    """Where a kink is met exactly."""
    if isinstance(node.op, Compare):
        return np.asarray(args[0] == args[1])
    if isinstance(node.op, SortingPositions):
        a, b = _neighbors(args[0])
        tied, near = a == b, np.asarray(_near(a, b)).astype(bool)
        exact = np.any(tied, axis=-1, keepdims=True) & np.all(tied | ~near, axis=-1, keepdims=True)
        return np.broadcast_to(exact, node.shape)
    head = node.op.head if isinstance(node.op, Apply) else None
    if head in JUMPS:
        return np.asarray(args[0] == 0)
    if head in STEPS or head is sympy.Mod:
        value = args[0] / args[1] if head is sympy.Mod else args[0]
        return np.asarray(value == np.frompyfunc(mpmath.nint, 1, 1)(value))
    return np.zeros(node.shape, dtype=bool)


def around(point: Point, bits: int) -> list[Point]:
    """Two points that are off by 2^−bits; integers stay. What ties there too, ties on an open set."""
    rng = Random(0)

    def moved(node: Node, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return np.frompyfunc(partial(moved, node), 1, 1)(value) if value.dtype == object else value
        apart = Fraction(rng.randrange(1000, 2000), 1000 << bits)
        turn = -1 if getattr(symbol_of(node), "is_nonpositive", False) else 1
        return value * (1 + apart) if value else turn * apart

    def is_whole(node: Node) -> bool:
        return bool(getattr(symbol_of(node), "is_integer", False))

    return [{n: v if is_whole(n) or is_zero(n) else moved(n, v) for n, v in point.items()} for _ in range(2)]


def close_everywhere(nodes: Sequence[Node], points: Sequence[Point]) -> dict[Node, Array]:
    """Elements of kinks that are close at all the points given: identically 0, and no accident."""
    total: dict[Node, Array] = {}
    for k, point in enumerate(points):
        try:
            found = close_calls(nodes, point)
        except (SymadError, ArithmeticError, ValueError):
            continue
        total = found if k == 0 or not total else {n: total[n] & m for n, m in found.items()}
    return total


def regions_of(nodes: Sequence[Node], values: Mapping[Node, Number]) -> bytes:
    """On which side of each kink a point lies, from the values of all nodes there."""
    sides: list[bytes] = []
    for node in kinks(nodes):
        args = [np.asarray(values[a]) for a in node.args]
        if isinstance(node.op, Compare):
            sides.append(np.asarray(values[node]).astype(bool).tobytes())
        elif isinstance(node.op, Extreme):
            sides.append(np.asarray(args[0] == np.asarray(values[node]).max()).astype(bool).tobytes())
        elif isinstance(node.op, SortingPositions):
            sides.append(np.asarray(values[node], dtype=np.int64).tobytes())
        elif op_of(node, Apply).head in JUMPS:
            sides.append(np.asarray(args[0] > 0).astype(bool).tobytes())
        elif len(args) > 1 and op_of(node, Apply).head is not sympy.Mod:
            sides.append(np.asarray(args[0] == values[node]).astype(bool).tobytes())
    return b"|".join(sides)


def all_nodes(*outputs: Node) -> list[Node]:
    """Everything the outputs need, arguments first."""
    return topological(outputs)
