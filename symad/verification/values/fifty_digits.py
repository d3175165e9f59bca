"""Values of nodes to many digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import mpmath
import numpy as np
import sympy
from sympy.functions.special.bessel import BesselBase

from symad.core.arrays import ArrayLike, Number
from symad.core.graph import Node, op_of, topological
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.numbers.number_domains import UndefinedValue
from symad.numbers.values import unchecked
from symad.ops.basic.sources import ArrayConstant, Constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.verification.budget import NODE, Meter, is_slow, operations
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.linear_terms import number
from symad.verification.values.point_set import as_floats

PRECISIONS = (50, 100, 200, 400)
"""Decimal digits: each is confirmed by the next."""

SLOW_DIGITS = 200
"""The most digits where a function is slow."""

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
        data = (n for n in topological(nodes) if isinstance(n.op, ArrayConstant))
        numbers |= {n: made for n in data if (made := data_of(n)) is not None}
        numbers[anchor()] = mpmath.mpf(1)
        return [_clean(v) for v in unchecked(nodes, numbers)]


@lru_cache(maxsize=16)
def data_of(node: Node) -> Array | None:
    """The floats of a constant array as numbers of many digits, which they are exactly; None for others."""
    array = op_of(node, ArrayConstant).array
    return np.frompyfunc(mpmath.mpf, 1, 1)(array) if array.dtype.kind == "f" and array.size > 1 else None


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
    every: Mapping[Node, Array]
    """Those of all nodes, in the last precision."""
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
    return Precise(tuple(values), every, digits, floor, above)


def _magnitude(values: Array | mpmath.mpf) -> int:
    """log₂ of the largest finite number, rounded up."""
    values = np.asarray(values)
    if values.dtype != object:
        return 0
    found = [v for v in values.ravel() if isinstance(v, mpmath.mpf) and v and mpmath.isfinite(v)]
    return max((int(mpmath.mag(v)) for v in found), default=0)


def _agree(gap: mpmath.mpf, a: bool | mpmath.mpf, b: bool | mpmath.mpf) -> bool:
    """Whether two values have at most this relative gap; what is undefined in both counts as settled."""
    if a == b or isinstance(a, (bool, np.bool_)) or isinstance(b, (bool, np.bool_)):
        return bool(a == b)
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    if not (mpmath.isfinite(a) and mpmath.isfinite(b)):
        return True
    return bool(abs(a - b) <= gap * max(abs(a), abs(b)))


# ---- points at which values of many digits are soon computed -------------------------------------

MAX_EXACT_EXPONENT = 1e9
"""The largest exponent of a power that is computed exactly; beyond it, it would fill the memory."""

MAX_SLOW_ARGUMENT = 1e3
"""The largest argument at which slow functions are evaluated to many digits."""


def _is_small_power(node: Node) -> bool:
    exponent = number(node.args[1])
    return exponent is not None and abs(exponent) <= 100


def _is_infinite(node: Node) -> bool:
    """Whether a node is a constant that holds an infinity, such as a mask."""
    if isinstance(node.op, ArrayConstant):
        return bool(node.op.array.dtype.kind == "f" and np.any(np.isinf(node.op.array)))
    value = node.op.value if isinstance(node.op, Constant) else 0
    return (isinstance(value, float) and np.isinf(value)) or value in (sympy.oo, -sympy.oo)


def _is_slow_far_out(node: Node) -> bool:
    """True if many digits of a function may take long where an argument is large.

    mpmath sums long series for Bessel functions of a large order, and for ψ⁽ⁿ⁾(x) with x ≪ 0.
    """
    head = op_of(node, Apply).head
    if is_slow(head) or head is sympy.polygamma:
        return True
    return isinstance(head, type) and issubclass(head, BesselBase) and number(node.args[0]) is None


def is_manageable(outputs: Sequence[Node], point: Mapping[Node, Number], balls: bool = False) -> bool:
    """Whether no argument of an exponential, or of a slow function, is too large for many digits.

    In balls, whose exponents have no limit, no argument of a slow function alone.
    """
    order = topological(outputs)
    suspects = [n for n in order if (_is_slow if balls else _may_run_away)(n)]
    if not suspects:
        return True
    masked = any(map(_is_infinite, order))
    wanted = list(dict.fromkeys(a for n in suspects for a in n.args))
    try:
        floats = {n: as_floats(v) for n, v in point.items()}
        values = dict(zip(wanted, unchecked(wanted, floats), strict=True))
    except (SymadError, ArithmeticError, ValueError, TypeError):
        return False
    return not any(_runs_away(n, [np.asarray(values[a], dtype=np.float64) for a in n.args], masked)
                   for n in suspects)  # fmt: skip


def _may_run_away(node: Node) -> bool:
    """Whether a node may take long, or fill the memory, at large arguments."""
    if isinstance(node.op, Pow):
        return not _is_small_power(node)
    return isinstance(node.op, Apply) and (fact(node.op.head).grows or _is_slow_far_out(node))


def _is_slow(node: Node) -> bool:
    return isinstance(node.op, Apply) and _is_slow_far_out(node)


def _runs_away(node: Node, arguments: list[Array], masked: bool) -> bool:
    """Whether arguments are too large for a node; infinite ones of masks are not."""
    largest = MAX_EXACT_EXPONENT
    if isinstance(node.op, Pow):
        with np.errstate(all="ignore"):
            logs = np.log(np.abs(arguments[0])) * arguments[1]
        arguments = [logs[~np.isneginf(logs)]]
    elif isinstance(node.op, Apply) and _is_slow_far_out(node):
        largest = MAX_SLOW_ARGUMENT
    known = [a[~np.isinf(a)] if masked else a for a in arguments]
    return any(np.any(~(np.abs(a) <= largest)) for a in known)
