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
from functools import cached_property, partial
from typing import Any

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.numbers.number_domains import AnyDomain, UndefinedValue, domain_of
from symad.numbers.values import value_of
from symad.ops.elementwise.selection import Condition
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.fields.prime_fields import Array
from symad.verification.values.fifty_digits import anchor, as_numbers

UNUSABLE = (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError)


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
    """Evaluation in a given number of decimal digits."""

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
    return mpmath.nan if isinstance(value, UndefinedValue) else value


def values_of(outputs: Sequence[Node], way: Way) -> list[Any]:
    """The values of some nodes, nothing where there is none."""
    found = dict(way.point)
    with way.precision(), np.errstate(all="ignore"):
        for node in topological(outputs):
            if node not in found:
                found[node] = way.value(node, found)
    return [found[o] for o in outputs]
