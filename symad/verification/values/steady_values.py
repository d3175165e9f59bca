"""Which elements of nodes have values at a point: evaluation that goes on where an op has none.

1/h has no value for an h that is 0 by an identity. Evaluated, such an h is the remainder of a cancellation,
and another one in another precision. So two evaluations of different precision go side by side, and what is
divided by a number on which they do not agree has no value. An op that raises an error, such as the Cholesky
factor of a matrix that is not positive definite, has none either, and the other nodes keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.core.questions import evaluate
from symad.errors import SymadError
from symad.higher_order.adjugate import singular_values
from symad.numbers.number_domains import AnyDomain, Undefined, domain_of
from symad.numbers.values import value_of
from symad.ops.basic.arithmetic import Mul
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition
from symad.ops.linalg.cholesky import Cholesky, TriangularSolve
from symad.ops.linalg.matrix_power import MatrixPower, MatrixPowerDerivative
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve
from symad.ops.sparse.sparse_solve import SparseSolve
from symad.verification.fields.prime_fields import Array
from symad.verification.values.fifty_digits import anchor, as_numbers

UNUSABLE = (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError)

AGREED, ROUGHLY = 1e-25, 0.1
"""Relative differences up to which numbers of 50 and 100 digits agree, and of 7 and 16 digits."""

SINGULAR = 1e-9
"""The ratio of singular values below which floats do not tell a matrix from a singular one."""

POLES = {
    sympy.log, sympy.loggamma, sympy.gamma, sympy.digamma, sympy.cot, sympy.csc, sympy.coth, sympy.csch,
    sympy.acoth, sympy.asec, sympy.acsc, sympy.Ci, sympy.Chi, sympy.expint, sympy.bessely, sympy.besselk,
}  # fmt: skip
"""Functions that have no value where an argument is 0."""


@dataclass(frozen=True)
class Way:
    """One way to evaluate: the point in numbers of some kind, and what stands for no number of this kind."""

    point: Mapping[Node, Any]
    nothing: Any
    no_truth: Any = False
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext
    rounded: Callable[[Any], Any] = lambda value: value
    missing: Callable[[Any], Any] = np.isnan

    @cached_property
    def domain(self) -> AnyDomain:
        """The domain of the numbers at the point: constants are written in it."""
        return domain_of(self.point.values())

    def value(self, node: Node, found: Mapping[Node, Any]) -> Any:
        """The value of a node from those of its arguments, in this precision; nothing where it has none."""
        try:
            value = self.rounded(value_of(node, found, self.domain))
            return self._whole(value) if isinstance(node.op, Cholesky) else value
        except UNUSABLE:
            return self._filled(node)

    def _whole(self, factors: Any) -> Any:
        """Factors of which each has all of its elements or none: that of an indefinite matrix has some."""
        lost = np.asarray(self.missing(factors), dtype=bool).any(axis=(-2, -1), keepdims=True)
        return self.without(factors, np.broadcast_to(lost, factors.shape))

    def _filled(self, node: Node) -> Any:
        value = self.no_truth if isinstance(node.op, Condition) else self.nothing
        if not node.shape:
            return value
        made = np.empty([int(d) for d in node.shape], dtype=bool if value is False else object)
        made.fill(value)
        return made.astype(float) if isinstance(value, float) else made

    def without(self, value: Any, lost: Array) -> Any:
        """A value of which some elements are lost."""
        if not isinstance(value, np.ndarray):
            return self.nothing if np.any(lost) else value
        return np.where(lost, np.asarray(self.nothing, dtype=value.dtype), value)


def in_floats(point: Mapping[Node, Number], kind: type[np.floating[Any]] = np.float64) -> Way:
    """In floats of 64 or 32 bits; every result is rounded."""

    def rounded(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.astype(kind) if value.dtype.kind == "f" else value
        return float(kind(value)) if isinstance(value, float) else value

    return Way({node: rounded(value) for node, value in point.items()}, float("nan"), rounded=rounded)


def in_digits(point: Mapping[Node, Any], digits: int) -> Way:
    """In so many decimal digits."""

    def rounded(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype == object:
            return np.frompyfunc(_number, 1, 1)(value)
        return _number(value)

    with mpmath.workdps(digits):
        numbers: dict[Node, Any] = {n: as_numbers(v) for n, v in point.items()}
        numbers[anchor()] = mpmath.mpf(1)
    missing = np.frompyfunc(mpmath.isnan, 1, 1)
    return Way(
        numbers, mpmath.nan, precision=partial(mpmath.workdps, digits), rounded=rounded, missing=missing
    )


def _number(value: Any) -> Any:
    return mpmath.nan if isinstance(value, Undefined) else value


def values_of(outputs: Sequence[Node], way: Way) -> list[Any]:
    """The values of some nodes, nothing where there is none."""
    found = dict(way.point)
    with way.precision(), np.errstate(all="ignore"):
        for node in topological(outputs):
            if node not in found:
                found[node] = way.value(node, found)
    return [found[o] for o in outputs]


def steady_values(outputs: Sequence[Node], ways: tuple[Way, Way], apart: float) -> list[tuple[Any, Any]]:
    """The values of some nodes in two ways; nothing where a divisor differs by more than ``apart``."""
    (one, other), (first, second) = ways, [dict(way.point) for way in ways]
    with np.errstate(all="ignore"):
        for node in topological(outputs):
            if node in first:
                continue
            with one.precision():
                a = one.value(node, first)
            with other.precision():
                b = other.value(node, second)
                lost = _lost(node, first, second, apart)
            if lost is not None and np.any(lost):
                a, b = one.without(a, lost), other.without(b, lost)
            first[node], second[node] = a, b
    return [(first[o], second[o]) for o in outputs]


def _lost(node: Node, first: Mapping[Node, Any], second: Mapping[Node, Any], apart: float) -> Array | None:
    """Which elements of a node are divided by a remainder; None for ops that divide by nothing."""
    if not isinstance(node.op, DIVIDING):
        return None
    try:
        return _divided_by_remainders(
            node, [first[a] for a in node.args], [second[a] for a in node.args], apart
        )
    except UNUSABLE:
        return None


def agree(a: Any, b: Any, apart: float) -> Array:
    """Which elements of two arrays are the same number but for rounding, and not 0."""
    a, b = (np.asarray(v, dtype=object if _is_precise(v) else float) for v in (a, b))
    near = np.asarray(abs(a - b) <= apart * abs(b), dtype=bool) | np.asarray(a == b, dtype=bool)
    return np.asarray(near & np.asarray(b != 0, dtype=bool))


def _is_precise(value: Any) -> bool:
    return isinstance(value, mpmath.mpf) or (isinstance(value, np.ndarray) and value.dtype.hasobject)


DIVIDING = (
    Mul, Pow, Apply, LogDeterminant, Solve, Cholesky, MatrixPower, MatrixPowerDerivative, TriangularSolve,
    SparseSolve,
)  # fmt: skip
"""Ops that may divide."""


def _divided_by_remainders(node: Node, a: Sequence[Any], b: Sequence[Any], apart: float) -> Array | None:
    """Which elements of a node are divided by a number that differs in two evaluations."""
    op = node.op
    if isinstance(op, Mul) and -1 in op.powers:
        parts = [~agree(a[k], b[k], apart) for k, power in enumerate(op.powers) if power == -1]
        return reduce(np.logical_or, parts)
    if isinstance(op, Pow):
        return ~agree(a[0], b[0], apart) & np.asarray(np.asarray(b[1]) < 0, dtype=bool)
    if isinstance(op, Apply) and op.head in POLES:
        lost = ~agree(a[-1], b[-1], apart)
        return lost if len(a) == 1 else lost | np.zeros(node.shape, dtype=bool)
    if isinstance(op, LogDeterminant):
        return ~_is_regular(a[0], b[0], apart)
    if isinstance(op, (Solve, Cholesky)):
        return ~_is_regular(a[0], b[0], apart)[..., None, None]
    if isinstance(op, (MatrixPower, MatrixPowerDerivative)):
        return (np.asarray(b[-1]) < 0) & ~_is_regular(a[0], b[0], apart)[..., None, None]
    if isinstance(op, TriangularSolve):
        one, other = (np.diagonal(np.asarray(v[0]), axis1=-2, axis2=-1) for v in (a, b))
        return np.asarray(~agree(one, other, apart).all(axis=-1))[..., None, None]
    if isinstance(op, SparseSolve):
        lost = ~_is_regular(_dense(op, a[0]), _dense(op, b[0]), apart)
        return lost.reshape(lost.shape + (1,) * (len(node.shape) - lost.ndim))
    return None


def _is_regular(a: Array, b: Array, apart: float) -> Array:
    """Which of some matrices are not singular."""
    if _is_precise(a):
        return agree(evaluate(Determinant(), (a,)), evaluate(Determinant(), (b,)), apart)
    (sign, size), (other, other_size) = (np.linalg.slogdet(m) for m in (a, b))
    stretched = singular_values(b)[1]
    near = np.asarray((sign == other) & (other != 0) & (np.abs(size - other_size) <= apart))
    return np.asarray(near & (stretched[..., -1] > SINGULAR * stretched[..., 0]))


def _dense(op: SparseSolve, entries: Array) -> Array:
    n = len(op.starts) - 1
    made = np.zeros((*entries.shape[:-1], n, n), dtype=entries.dtype)
    made[..., np.repeat(np.arange(n), np.diff(op.starts)), op.columns] = entries
    return made
