"""Whether two graphs visibly differ, as floats tell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.number_domains import as_float
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.fields.prime_fields import Array
from symad.verification.values.fifty_digits import PRECISIONS, evaluate_all
from symad.verification.values.points import points

VISIBLE = 1e-6
"""A relative difference that rounding hardly makes at two points."""


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


def as_floats(value: Number) -> Array | float:
    """Rational values as floats."""
    if isinstance(value, np.ndarray):
        return np.frompyfunc(as_float, 1, 1)(value).astype(np.float64) if value.dtype == object else value
    return as_float(value)
